package steer

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Parse is the marker's one contract, in reverse. It exists for the tests
// only: the product knows from its typed rows which of them carry a note (I7).
//
// ok: the key occurs exactly twice and in no other form, the row ends with
// CLOSE(n), OPEN(n) stands before it, and n is canonical decimal.
func Parse(row string, k Key) (body, inner string, n int64, ok bool) {
	if strings.Count(row, string(k)) != 2 {
		return "", "", 0, false
	}
	closing := "\n" + closeHead + string(k) + " n="
	end := strings.LastIndex(row, closing)
	if end < 0 {
		return "", "", 0, false
	}
	seq, found := strings.CutSuffix(row[end+len(closing):], closeTail)
	n, err := strconv.ParseInt(seq, 10, 64)
	if !found || err != nil || n < 1 || strconv.FormatInt(n, 10) != seq {
		return "", "", 0, false
	}
	for _, from := range []string{"", " from=owner", " from=member"} {
		opening := "\n\n" + openHead + string(k) + " n=" + seq + from + openTail + "\n"
		if body, inner, ok = strings.Cut(row[:end], opening); ok {
			return body, inner, n, clean(body, k) && clean(inner, k)
		}
	}
	return "", "", 0, false
}

func clean(text string, k Key) bool {
	got, _ := NewSanitizer(k).Sanitize(text)
	return got == text
}

var roles = []Role{RoleNone, RoleOwner, RoleMember}

// inImage reports whether some note renders to row, given what Parse read.
func inImage(row, body, inner string, n int64, k Key) bool {
	for _, role := range roles {
		if Render(body, Note{N: n, From: role, Entries: []NoteEntry{{Text: inner}}}, k) == row {
			return true
		}
	}
	return false
}

func drawKey(t *rapid.T) Key {
	var b strings.Builder
	for i := range keyDigits {
		if i > 0 && i%keyGroup == 0 {
			b.WriteByte('-')
		}
		b.WriteByte('0' + byte(rapid.Uint64().Draw(t, "digit")%10))
	}
	return Key(b.String())
}

// drawText draws text that is interesting to a marker: brackets, halves of
// markers, keys and parts of keys, line ends of all kinds.
func drawText(t *rapid.T, name string, k Key) string {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{
			"\n", "\r\n", "\u2028", "]]", "[[", "(1) m2: ", "(2) ", " n=1", "[key removed]",
			string(k), string(k[:13]), string(k[14:]), string(k[:10]),
			openHead, closeHead, openHead + string(k), "\n" + closeHead + string(k) + " n=1]]",
			openTail, "12345678", "&#49;", `\u0031`, "%31", "\xff",
		}),
	)
	return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, name), "")
}

func drawNote(t *rapid.T, k Key) Note {
	n := Note{N: rapid.Int64Min(1).Draw(t, "n"), From: rapid.SampledFrom(roles).Draw(t, "from")}
	for range rapid.IntRange(1, 4).Draw(t, "entries") {
		n.Entries = append(n.Entries, NoteEntry{
			Label: rapid.SampledFrom([]string{"", "m1", "m2", "m13"}).Draw(t, "label"),
			Text:  drawText(t, "text", k),
		})
	}
	return n
}

// P4: what was rendered parses, to exactly what was rendered.
func TestParseRender(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		note := drawNote(t, k)
		body, _ := NewSanitizer(k).Sanitize(drawText(t, "body", k))
		row := Render(body, note, k)
		gotBody, inner, n, ok := Parse(row, k)
		if !ok || gotBody != body || n != note.N {
			t.Fatalf("Parse(%q) = %q, %q, %d, %v", row, gotBody, inner, n, ok)
		}
		if want := note.inner(NewSanitizer(k)); inner != want {
			t.Fatalf("inner %q; want %q", inner, want)
		}
		if !inImage(row, body, inner, n, k) {
			t.Fatalf("Render(Parse(x)) != x for %q", row)
		}
	})
}

// P5: whatever parses could have been rendered. The rows tried are real ones
// with a few bytes changed, doubled, moved or lost.
func TestParseOnlyRendered(t *testing.T) {
	parsed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		body, _ := NewSanitizer(k).Sanitize(drawText(t, "body", k))
		row := Render(body, drawNote(t, k), k)
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(row)).Draw(t, "at")
			to := min(len(row), at+rapid.IntRange(0, 60).Draw(t, "length"))
			row = row[:at] + drawText(t, "put", k) + row[to:]
		}
		body, inner, n, ok := Parse(row, k)
		if !ok {
			refused++
			return
		}
		parsed++
		if !inImage(row, body, inner, n, k) {
			t.Fatalf("parsed but never rendered: %q", row)
		}
	})
	t.Logf("parsed %d, refused %d", parsed, refused)
	if parsed == 0 || refused == 0 {
		t.Error("one of the two was never reached")
	}
}

func TestParseRefuses(t *testing.T) {
	k, other := testKey, Key("111111-222222-333333-444444")
	row := Render("ok", Note{N: 12, Entries: []NoteEntry{{Text: "go on"}}}, k)
	if _, _, _, ok := Parse(row, k); !ok {
		t.Fatalf("the row itself is refused: %q", row)
	}
	for name, bad := range map[string]string{
		"another key":             Render("ok", Note{N: 12, Entries: []NoteEntry{{Text: "go on"}}}, other),
		"text after the end":      row + "\n",
		"the key a third time":    string(k) + row,
		"n differs":               strings.Replace(row, " n=12 |", " n=13 |", 1),
		"n not canonical":         strings.ReplaceAll(row, "n=12", "n=012"),
		"n zero":                  strings.ReplaceAll(row, "n=12", "n=0"),
		"n signed":                strings.ReplaceAll(row, "n=12", "n=+12"),
		"no new paragraph":        strings.Replace(row, "\n\n", "\n", 1),
		"an unknown role":         strings.Replace(row, " |", " from=admin |", 1),
		"another sentence":        strings.Replace(row, "typed by", "written by", 1),
		"half of the key in body": string(k[:13]) + row,
		"the key encoded in body": strings.ReplaceAll(string(k), "8", "%38") + row,
		"only the end":            row[strings.LastIndex(row, "\n"):],
	} {
		if bad == row {
			t.Errorf("%s: the row was not changed", name)
		}
		if _, _, _, ok := Parse(bad, k); ok {
			t.Errorf("%s: parsed %q", name, bad)
		}
	}
}
