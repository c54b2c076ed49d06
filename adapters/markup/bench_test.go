package markup

import "testing"

func BenchmarkParse8k(b *testing.B) {
	md := big(8 << 10)
	b.SetBytes(int64(len(md)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(md)
	}
}

// A reply of 8 kB that grows by 100 bytes a frame; the time is that of all 82
// frames.
func BenchmarkStreamReparse(b *testing.B) {
	md := big(8 << 10)
	b.ReportAllocs()
	for b.Loop() {
		for n := 100; n < len(md); n += 100 {
			ParsePartial(md[:n])
		}
	}
}

func BenchmarkSplit64k(b *testing.B) {
	x := Parse(big(64 << 10))
	b.ReportAllocs()
	for b.Loop() {
		Split(x, 4096)
	}
}

func BenchmarkDiscord8k(b *testing.B) {
	md := big(8 << 10)
	b.ReportAllocs()
	for b.Loop() {
		DiscordMarkdown(md, 2000)
	}
}
