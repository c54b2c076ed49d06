package markup

import (
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// table shows a narrow table aligned in a Pre. A wide one, or one with links
// (which a Pre cannot hold), becomes one group of lines per row: the first
// cell bold, then "• header: value". Aligned tables that are too wide wrap on
// a phone and cannot be read.
func (r *renderer) table(n *extast.Table) {
	var rows [][]ast.Node
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []ast.Node
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, c)
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return
	}
	grid := make([][]string, len(rows))
	for i, row := range rows {
		for _, c := range row {
			grid[i] = append(grid[i], r.cellText(c))
		}
	}
	widths := columnWidths(grid)
	total := 3 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	switch {
	case total <= 0: // every cell is empty
	case total <= r.tableWidth && !hasLink(n):
		code, head := aligned(grid, widths, n.Alignments)
		r.pre(code, "", head)
	default:
		r.rowGroups(rows, grid)
	}
}

// cellText is a cell's text on one line, without formatting.
func (r *renderer) cellText(c ast.Node) string {
	cell := renderer{builder: &builder{}, dialect: r.dialect, src: r.src, hide: r.hide, flat: true}
	cell.inlines(c)
	return strings.Join(strings.FieldsFunc(string(cell.buf), blank), " ")
}

func hasLink(n ast.Node) bool {
	found := false
	_ = ast.Walk(n, func(n ast.Node, _ bool) (ast.WalkStatus, error) { // never fails: the callback does not
		switch n.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink:
			found = true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return found
}

func columnWidths(grid [][]string) []int {
	widths := make([]int, len(grid[0]))
	for _, row := range grid {
		for i, s := range row[:min(len(row), len(widths))] {
			widths[i] = max(widths[i], uniseg.StringWidth(s))
		}
	}
	return widths
}

// aligned draws the table and returns the bytes its header lines take.
func aligned(grid [][]string, widths []int, align []extast.Alignment) (code string, head int) {
	var b strings.Builder
	line := func(row []string) {
		var l strings.Builder
		for i, w := range widths {
			if i > 0 {
				l.WriteString(" | ")
			}
			cell := ""
			if i < len(row) {
				cell = row[i]
			}
			free := max(w-uniseg.StringWidth(cell), 0)
			left := 0
			if i < len(align) {
				switch align[i] {
				case extast.AlignRight:
					left = free
				case extast.AlignCenter:
					left = free / 2
				}
			}
			l.WriteString(strings.Repeat(" ", left) + cell + strings.Repeat(" ", free-left))
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	if strings.Join(grid[0], "") == "" { // a table without header texts
		for _, row := range grid[1:] {
			line(row)
		}
		return strings.TrimRight(b.String(), "\n"), 0
	}
	line(grid[0])
	for i, w := range widths {
		if i > 0 {
			b.WriteString("-+-")
		}
		b.WriteString(strings.Repeat("-", w))
	}
	b.WriteByte('\n')
	head = b.Len()
	for _, row := range grid[1:] {
		line(row)
	}
	code = strings.TrimRight(b.String(), "\n")
	return code, min(head, len(code))
}

func (r *renderer) rowGroups(rows [][]ast.Node, grid [][]string) {
	r.flat = true
	defer func() { r.flat = false }()
	if len(rows) == 1 || len(rows[0]) == 1 { // a header alone, or a plain list
		r.styled(Bold, &r.bold, func() { r.text(strings.Join(grid[0], " | ")) })
	}
	for i, row := range rows[1:] {
		value := grid[i+1]
		if len(rows[0]) == 1 {
			r.sep(1)
			r.rowLine("", row[0], value[0])
			continue
		}
		if i > 0 {
			r.sep(2)
		}
		if value[0] != "" {
			r.styled(Bold, &r.bold, func() { r.inlines(row[0]) })
		}
		for j := 1; j < min(len(row), len(grid[0])); j++ {
			r.sep(1)
			r.rowLine(grid[0][j], row[j], value[j])
		}
	}
}

// rowLine writes one "• header: value"; an empty cell has no line.
func (r *renderer) rowLine(header string, cell ast.Node, value string) {
	if value == "" {
		return
	}
	marker := bullet
	if r.native {
		marker = "-"
	}
	done := r.marker(marker, r.native)
	defer done()
	if header != "" {
		r.text(header + ":")
		r.lead = " "
	}
	r.inlines(cell)
}
