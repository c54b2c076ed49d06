package steer

import (
	"strings"
	"testing"
)

// size is the most a tool row holds.
const size = 50_000

func fill(unit string) string { return strings.Repeat(unit, size/len(unit)+1)[:size] }

func BenchmarkDecide(b *testing.B) {
	in := Input{Phase: PhaseTools, Mode: Steer, MaySteer: true}
	for b.Loop() {
		Decide(in)
	}
}

func BenchmarkRender(b *testing.B) {
	note := Note{N: 42, From: RoleMember, Entries: []NoteEntry{{"m2", "use the March data"}, {"m3", "and skip 2023"}}}
	body := fill("total 12 rows\n")
	for b.Loop() {
		Render(body, note, testKey)
	}
}

func benchmarkSanitize(b *testing.B, text string) {
	s := NewSanitizer(testKey)
	if got, hits := s.Sanitize(text); got != text || hits != 0 {
		b.Fatalf("%d hits in the sample", hits)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Sanitize(text)
	}
}

func BenchmarkSanitizeClean50k(b *testing.B) {
	benchmarkSanitize(b, fill("The quick brown fox jumps over all the lazy dogs of Illinois.\n"))
}

func BenchmarkSanitizeDigits50k(b *testing.B) {
	benchmarkSanitize(b, fill("3141592653589793238462643383279502884197169399375105820974944592307816406286"))
}

func BenchmarkSanitizeGoSource50k(b *testing.B) {
	benchmarkSanitize(b, fill("\tif n := len(x); n > 1024 && x[0] == '\\n' { return fmt.Errorf(\"line %d: %w\", 17, err) }\n"))
}

func BenchmarkSanitizeJSON50k(b *testing.B) {
	benchmarkSanitize(b, fill(`{"id":1048576,"path":"C:\\tmp\\a","url":"http:\/\/x\/%7Euser?a=1&amp;b=2","t":"2024-01-02T03:04:05Z"},`))
}

func BenchmarkSanitizeRussian50k(b *testing.B) {
	benchmarkSanitize(b, strings.ToValidUTF8(fill("В 2024 году золото подорожало, зато бобы подешевели. "), ""))
}

// The worst text there is: every decoder finds something in every view.
func BenchmarkSanitizeHostile50k(b *testing.B) {
	benchmarkSanitize(b, fill(`\\\\u0025\u0026#x5c;%2526amp;&#37;5c%255cu003&amp;#5%3525;`))
}
