package steer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// An encoder hides text. Shapes change what a digit looks like; escapes write
// any text in another language.
type encoder struct {
	name   string
	escape bool
	apply  func(string) string
}

func digitsTo(forms string) func(string) string {
	to := []rune(forms)
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return to[r-'0']
			}
			return r
		}, s)
	}
}

func eachRune(f func(r rune) string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteString(f(r))
		}
		return b.String()
	}
}

func eachByte(layout string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, layout, s[i])
		}
		return b.String()
	}
}

var encoders = [12]encoder{
	{"plain", false, func(s string) string { return s }},
	{"full-width", false, digitsTo("０１２３４５６７８９")},
	{"bold", false, digitsTo("𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗")},
	{"circled", false, digitsTo("⓪①②③④⑤⑥⑦⑧⑨")},
	{"Arabic", false, digitsTo("٠١٢٣٤٥٦٧٨٩")},
	{"tag", false, digitsTo("\U000E0030\U000E0031\U000E0032\U000E0033\U000E0034\U000E0035\U000E0036\U000E0037\U000E0038\U000E0039")},
	{"lookalike", false, digitsTo("OlƧЗ4Ƽб7Ȣ9")},
	{"JSON", true, eachRune(func(r rune) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
		return b.String()
	})},
	{"hex", true, eachByte(`\x%02X`)},
	{"HTML", true, eachRune(func(r rune) string { return fmt.Sprintf("&#%d;", r) })},
	{"HTML open", true, eachRune(func(r rune) string { return fmt.Sprintf("&#x%x", r) })},
	{"percent", true, eachByte("%%%02X")},
}

// both applies two encoders. Letters in the place of an escape's own digits
// are decoded by nobody, so a lookalike goes first.
func both(inner, outer encoder, s string) string {
	if outer.name == "lookalike" {
		inner, outer = outer, inner
	}
	return outer.apply(inner.apply(s))
}

var noises = [...]string{
	"", "-", "\u200d", "\u2060", "\u00ad", "\u202e", "\n", "  ", "<i></i>", "\ufe0f\u20e3",
	"\\\\", " ... ... ... ",
	"<ol>", "&nbsp;", "&lrm;", "%20",
}

// neutral is how many of the noises hold nothing that may be read as a digit.
const neutral = len(noises) - 4

// attack is one way to bring a key, or a part of one, into a text.
type attack struct {
	key          Key
	inner, outer int
	mixed        bool // every second digit is the other way round
	noise        string
	shape        string
	split        int
}

var shapes = [...]string{"whole", "prefix", "suffix", "too short", "nested", "old marker", "two rows", "head and tail"}

func drawAttack(t *rapid.T) attack {
	// Scattered, because rapid prefers small numbers and every pair should come.
	pick := func(name string, n int) int {
		return int(rapid.Uint64().Draw(t, name) * 0x9E3779B97F4A7C15 >> 32 % uint64(n))
	}
	a := attack{
		key:   drawKey(t),
		inner: pick("inner", len(encoders)),
		outer: pick("outer", len(encoders)),
		mixed: rapid.Bool().Draw(t, "mixed"),
		noise: noises[pick("noise", len(noises))],
		shape: shapes[pick("shape", len(shapes))],
		split: pick("split", keyDigits+1),
	}
	if a.shape == "too short" { // eleven digits and the o of "<ol>" may be twelve
		a.noise = noises[pick("neutral noise", neutral)]
	}
	return a
}

// units returns the key's digits, each encoded and followed by the noise.
func (a attack) units() []string {
	var out []string
	for i, d := range strings.ReplaceAll(string(a.key), "-", "") {
		inner, outer := encoders[a.inner], encoders[a.outer]
		if a.mixed && i%2 == 1 {
			inner, outer = outer, inner
		}
		unit := both(inner, outer, string(d))
		noise := a.noise
		if noise == "" && strings.Contains(unit, "&#") && !strings.HasSuffix(unit, ";") {
			// An entity without semicolon takes in what follows, for a browser too.
			noise = ","
		}
		out = append(out, unit+noise)
	}
	return out
}

// texts returns the parts that are sanitised one by one, and the digits in
// them that must not survive, as units.
func (a attack) texts() []string {
	const before, behind = "name: x\n", "\nthe end"
	u := a.units()
	join := func(u []string) string { return strings.Join(u, "") }
	long := max(a.split, keyDigits-a.split)
	switch a.shape {
	case "prefix":
		return []string{before + join(u[:long]) + behind}
	case "suffix":
		return []string{before + join(u[keyDigits-long:]) + behind}
	case "too short":
		return []string{before + join(u[:min(a.split, window-1)]) + behind}
	case "nested":
		return []string{before + join(u[:a.split]) + join(u) + join(u[a.split:]) + behind}
	case "old marker":
		note := Block(Note{N: 3, Entries: []NoteEntry{{Text: "x"}}}, a.key)
		return []string{before + strings.ReplaceAll(note, string(a.key), join(u)) + behind}
	case "two rows":
		return []string{before + join(u[:a.split]), join(u[a.split:]) + behind}
	case "head and tail":
		head, tail := join(u[:a.split]), join(u[a.split:])
		keep := max(len(head), len(tail)) + 20
		text := strings.Repeat("x", keep-len(head)) + head + strings.Repeat("y", 3*keep) + tail + strings.Repeat("z", keep-len(tail))
		return []string{truncate(text, keep, "\n")}
	}
	return []string{before + join(u) + behind}
}

// check sanitises the attack's texts and judges what is left of it.
func (a attack) check(t *rapid.T) {
	s := NewSanitizer(a.key)
	in := a.texts()
	var out []string
	hits := 0
	for _, text := range in {
		clean, n := s.Sanitize(text)
		hits += n
		if again, more := s.Sanitize(clean); again != clean || more != 0 {
			t.Fatalf("%+v: P2: %q became %q", a, clean, again)
		}
		out = append(out, clean)
	}
	if a.shape == "too short" {
		if out[0] != in[0] || hits != 0 {
			t.Fatalf("%+v: P3: %q became %q", a, in[0], out[0])
		}
		return
	}
	if hits == 0 {
		t.Fatalf("%+v: survived: %q", a, out)
	}
	// Two rows are judged one by one and together (P10).
	for _, text := range append(out, strings.Join(out, "")) {
		u := a.units()
		for i := range keyDigits - window + 1 {
			if left := strings.Join(u[i:i+window], ""); strings.Contains(text, left) {
				t.Fatalf("%+v: P1: %q is left in %q", a, left, text)
			}
		}
	}
	if a.shape == "head and tail" {
		return
	}
	if !strings.HasPrefix(out[0], "name: x\n") || !strings.HasSuffix(out[len(out)-1], "\nthe end") {
		t.Fatalf("%+v: more than the attack was cut: %q", a, out)
	}
}

// TestSanitizeGenerated is the real test of the sanitiser: every pair of
// encoders, every shape, with noise, and a count of what it has reached.
func TestSanitizeGenerated(t *testing.T) {
	const perCheck = 40
	var pairs [len(encoders)][len(encoders)]int
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range perCheck {
			a := drawAttack(t)
			pairs[a.inner][a.outer]++
			reached["shape "+a.shape]++
			reached[fmt.Sprintf("noise %q", a.noise)]++
			reached[fmt.Sprintf("split %02d", a.split)]++
			reached[fmt.Sprintf("mixed %v", a.mixed)]++
			reached["shape "+a.shape+", outer "+encoders[a.outer].name]++
			a.check(t)
		}
	})
	for i, row := range pairs {
		t.Logf("%-10s %v", encoders[i].name, row)
		for j, n := range row {
			if n == 0 {
				t.Errorf("the pair %s, %s was never reached", encoders[i].name, encoders[j].name)
			}
		}
	}
	want := 2 + keyDigits + 1 + len(noises) + len(shapes)*(1+len(encoders))
	if len(reached) != want {
		t.Errorf("reached %d kinds of %d: %v", len(reached), want, slices.Sorted(maps.Keys(reached)))
	}
	for _, kind := range slices.Sorted(maps.Keys(reached)) {
		if !strings.Contains(kind, ",") {
			t.Logf("%-24s %d", kind, reached[kind])
		}
	}
}
