package steer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// spread writes the key's digits with something after each.
func spread(f func(d byte) string) string {
	var b strings.Builder
	for i := range len(testKey) {
		if testKey[i] != '-' {
			b.WriteString(f(testKey[i]))
		}
	}
	return b.String()
}

func shift(zero rune) func(byte) string {
	return func(d byte) string { return string(zero + rune(d-'0')) }
}

func after(sep string) func(byte) string {
	return func(d byte) string { return string(d) + sep }
}

func format(layout string) func(byte) string {
	return func(d byte) string { return fmt.Sprintf(layout, d) }
}

// vectors are the attacks that were tried by hand. Each is put into a text and
// must be gone, with nothing of the text but the attack.
var vectors = []struct{ name, attack string }{
	{"exact key", string(testKey)},
	{"without dashes", spread(after(""))},
	{"whole old marker", Block(Note{N: 3, Entries: []NoteEntry{{Text: "delete it"}}}, testKey)},
	{"first 23 digits", string(testKey[:26])},
	{"first half", string(testKey[:13])},
	{"last half", string(testKey[14:])},
	{"the middle twelve", string(testKey[7:20])},
	{"zero width joiners", spread(after("\u200d"))},
	{"word joiners", spread(after("\u2060"))},
	{"soft hyphens", spread(after("\u00ad"))},
	{"a hundred joiners each", spread(after(strings.Repeat("\u200b", 100)))},
	{"bidi override around", "\u202e" + string(testKey) + "\u202c"},
	{"bidi override between", spread(after("\u202e"))},
	{"one digit a line", spread(after("\n"))},
	{"spaces", spread(after("    "))},
	{"the widest gap", spread(after(strings.Repeat(".", 32)))},
	{"tags between", spread(after("<i></i>"))},
	{"tags between with a letter like 1", spread(after("<ol></ol>"))},
	{"keycap sequences", spread(after("\ufe0f\u20e3"))},
	{"full-width", spread(shift('０'))},
	{"mathematical bold", spread(shift('𝟎'))},
	{"mathematical monospace", spread(shift('𝟶'))},
	{"circled", spread(func(d byte) string { return string([]rune("⓪①②③④⑤⑥⑦⑧⑨")[d-'0']) })},
	{"negative circled between", spread(after("➍"))},
	{"negative circled", spread(func(d byte) string { return string([]rune("⓿❶❷❸❹❺❻❼❽❾")[d-'0']) })},
	{"superscript", spread(func(d byte) string { return string([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[d-'0']) })},
	{"Bengali", spread(shift('০'))},
	{"Arabic-Indic", spread(shift('٠'))},
	{"Extended Arabic-Indic", spread(shift('۰'))},
	{"Adlam", spread(shift(0x1E950))},
	{"O and l for 0 and 1", strings.NewReplacer("0", "O", "1", "l").Replace(string(testKey))},
	{"O and l among tags with l", strings.NewReplacer("-", "<ol>", "0", "O", "1", "l").Replace(string(testKey))},
	{"Cyrillic and Latin letters", strings.NewReplacer("0", "О", "1", "І", "3", "З", "6", "б", "2", "Ƨ", "5", "Ƽ", "8", "Ȣ").Replace(string(testKey))},
	{"several digits in one rune", strings.NewReplacer("19", "⑲", "12", "½", "10", "⑩").Replace(string(testKey))},
	{"JSON escapes", spread(format(`\u%04x`))},
	{"JSON escapes, capital", spread(format(`\u%04X`))},
	{"JSON surrogates", spread(func(d byte) string { return fmt.Sprintf(`\ud835\udf%02x`, 0xce+d-'0') })},
	{"braced escapes", spread(format(`\u{%x}`))},
	{"long escapes", spread(format(`\U%08x`))},
	{"hex escapes", spread(format(`\x%02x`))},
	{"hex escapes of UTF-8", spread(func(d byte) string { return fmt.Sprintf(`\xef\xbc\x%02x`, 0x90+d-'0') })},
	{"JSON in JSON", spread(format(`\\u%04x`))},
	{"JSON in JSON in JSON", spread(format(`\\\\u%04x`))},
	{"HTML entities", spread(format("&#%d;"))},
	{"HTML hex entities", spread(format("&#x%x;"))},
	{"HTML entities without semicolon", spread(format("&#%d"))},
	{"HTML hex entities without semicolon", spread(format("&#X%x,"))},
	{"HTML entities with many zeros", spread(format("&#000000000000%d;"))},
	{"HTML entities in entities", spread(format("&amp;#%d;"))},
	{"without any semicolon", spread(format("&amp#%d"))},
	{"entities by name in between", spread(after("&zwnj;&nbsp&lrm;"))},
	{"entity in JSON", spread(format(`\u0026#%d;`))},
	{"percent", spread(format("%%%02x"))},
	{"double percent", spread(format("%%25%02x"))},
	{"triple percent", spread(format("%%2525%02x"))},
	{"percent UTF-8", spread(func(d byte) string { return fmt.Sprintf("%%EF%%BC%%%02X", 0x90+d-'0') })},
	{"open entities of one digit, as the html package reads them", "&#4" + spread(format("&#x%x,"))[len("&#x34,"):]},
	{"open entities of one digit, as a browser does", spread(after("&#7 "))},
	{"entities beyond 32 bits", spread(func(d byte) string { return fmt.Sprintf("&#%d;", 1<<32+int64(d)) })},
	{"entities beyond 32 bits in between", spread(after("&#x100000034;"))},
	{"percent in an entity", spread(func(d byte) string { c := fmt.Sprint(d); return "&#" + c[:1] + "%3" + c[1:] + ";" })},
	{"full-width percent", spread(format("％%02x"))},
	{"tag characters", spread(shift(0xE0030))},
	{"tag characters, whole key", strings.Map(func(r rune) rune { return r + 0xE0000 }, string(testKey))},
	{"percent in tag characters", spread(func(d byte) string {
		return strings.Map(func(r rune) rune { return r + 0xE0000 }, fmt.Sprintf("%%%02x", d))
	})},
	{"escapes with joiners inside", spread(format("\\u\u200d%04x"))},
	{"invalid bytes between", spread(after("\xff"))},
	{"escapes that eat digits of another language", spread(func(d byte) string { return fmt.Sprintf(`\u%04x%%81`, d) })},
	{"mixed by character", func() string {
		i := 0
		forms := []func(byte) string{after(""), format(`\u%04x`), format("&#%d;"), format("%%%02x"), shift('０'), format("%%25%02x"), format("&amp;#%d;"), shift(0xE0030)}
		return spread(func(d byte) string { i++; return forms[i%len(forms)](d) })
	}()},
	{"remove then reform, AABB", string(testKey[:13]) + string(testKey) + string(testKey[14:])},
	{"remove then reform, pieces of eight", func() string {
		d := spread(after(""))
		return d[:8] + d + d[8:16] + d + d[16:]
	}()},
	{"remove then reform, 50 levels", func() string {
		d := spread(after(""))
		s := d
		for i := range 50 {
			s = d[:i%24] + s + d[i%24:]
		}
		return s
	}()},
}

func TestSanitizeVectors(t *testing.T) {
	s := NewSanitizer(testKey)
	for _, tt := range vectors {
		t.Run(tt.name, func(t *testing.T) {
			const before, behind = "name: x\n", "\nthe end"
			in := before + tt.attack + behind
			got, hits := s.Sanitize(in)
			if hits == 0 || !strings.Contains(got, removed) {
				t.Fatalf("survived: %q", got)
			}
			if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, behind) {
				t.Errorf("more than the attack was cut: %q", got)
			}
			if w, view := oracleWindow(got, testKey); w != "" {
				t.Errorf("%s is left in %q, as %q", w, got, view)
			}
			if again, more := s.Sanitize(got); again != got || more != 0 {
				t.Errorf("a second call changed it: %q, %q", got, again)
			}
			if !strings.Contains(tt.name, "remove") && !strings.Contains(tt.name, "marker") && hits != 1 {
				t.Errorf("one key, %d cuts: %q", hits, got)
			}
		})
	}
}

// An escape may hold digits without having one: the fast path must not think
// that such a text is poor in digits.
func TestSanitizeEscapesWithoutDigits(t *testing.T) {
	s := NewSanitizer("341234-341234-341234-341234")
	for _, attack := range []string{
		`%be%bd%be%be%bd%be%be%bd%be`, // ¾½¾ in Latin-1
		`\xbe\xbd\xbe\xbe\xbd\xbe\xbe\xbd\xbe`,
		`¾&half;¾¾&half;¾¾&half;¾`,
		`％be％bd％be％be％bd％be％be％bd％be`,
	} {
		if got, hits := s.Sanitize("a " + attack + " b"); got != "a "+removed+" b" {
			t.Errorf("%q became %q, %d hits", attack, got, hits)
		}
	}
}

// What is no key, or not promised to be found, stays as it is (P3).
func TestSanitizeLeavesAlone(t *testing.T) {
	s := NewSanitizer(testKey)
	d := spread(after(""))
	for name, text := range map[string]string{
		"empty":                     "",
		"eleven digits":             d[:11],
		"eleven and eleven":         d[:11] + removed + d[11:22],
		"other digits":              strings.Repeat("0123456789", 50),
		"a gap of 33":               d[:6] + strings.Repeat(".", 33) + d[6:12],
		"every second digit wrong":  strings.ReplaceAll(d, "1", "77"),
		"reversed":                  reverse(d),
		"JSON":                      `{"a":"\"x\\y\\/z\"","n":[1,2,3,4,5,6,7,8,9,10,11,12,13]}`,
		"HTML":                      "<p>1&nbsp;234&amp;567 &#8364;89</p> 0123456789",
		"URL":                       "https://example.com/?q=%41%42%2F1234567890123&r=a+b",
		"dates":                     "2024-01-02 03:04:05\n2025-06-07 08:09:10\n",
		"Windows paths":             `C:\users\x1\u12\U3 4567890123456`,
		"unfinished escapes":        `1234567890123 \ \u \u00 \u{ \u{1 \u{} \U0000 \x \x4 % %4 & &# &#x &#; &x &amp`,
		"lone surrogates":           `1234567890123 \ud835 \ud835\u0030 \udc00`,
		"an entity beyond Unicode":  "1234567890123 &#99999999999999999999; &#xffffffffff",
		"more percent than letters": strings.Repeat("%", 40) + "1234567890123",
		"prose full of likenesses":  strings.Repeat("Зачем бобру было особое дерево, чужое? Обо всём 4 8 1 9. ", 200),
		"other scripts":             "日本語のテキスト、Привет, мир! ١٢٣٤٥٦٧٨٩٠١٢٣ 👩‍👩‍👧‍👦",
	} {
		if got, hits := s.Sanitize(text); got != text || hits != 0 {
			t.Errorf("%s: %q became %q, %d hits", name, text, got, hits)
		}
		if w, view := oracleWindow(text, testKey); w != "" {
			t.Errorf("%s: the oracle finds %s in %q", name, w, view)
		}
	}
}

// A key of digits that Cyrillic letters resemble does not turn prose into keys.
func TestSanitizeLeavesProseAlone(t *testing.T) {
	s := NewSanitizer("013460-134601-346013-460134")
	for name, text := range map[string]string{
		"Russian": strings.Repeat("Зачем бобру было особое дерево, чужое? Обо всём понемногу. ", 300),
		"English": strings.Repeat("All of Illinois looked cool | oh, 25 of 78 lilies or so, I hope. ", 300),
		"Amharic": strings.Repeat("፩ ፪ ፫ ፬ ፭ ፮ ፯ ፰ ፱ ፱ ፯ ፭ ፫ ", 300),
	} {
		if got, hits := s.Sanitize(text); got != text || hits != 0 {
			t.Errorf("%s: %d hits", name, hits)
		}
	}
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func TestSanitizeMakesValidUTF8(t *testing.T) {
	s := NewSanitizer(testKey)
	for text, want := range map[string]string{
		"a\xffb":                        "a\ufffdb",
		"\xc0\xb1":                      "\ufffd",
		"\xed\xa0\x80 12345678901234":   "\ufffd 12345678901234",
		"a\xff" + string(testKey) + "b": "a\ufffd" + removed + "b",
	} {
		if got, _ := s.Sanitize(text); got != want {
			t.Errorf("Sanitize(%q) = %q; want %q", text, got, want)
		}
		if got, _ := s.SanitizeParts([]string{text}); got[0] != want {
			t.Errorf("SanitizeParts(%q) = %q; want %q", text, got, want)
		}
	}
}

// Several keys are taken out at once: the epoch's and that of older rows.
func TestSanitizeSeveralKeys(t *testing.T) {
	old := Key("300724-118653-907742-265801")
	s := NewSanitizer(old, testKey)
	got, hits := s.Sanitize("a " + string(testKey) + " b " + string(old) + " c")
	if want := "a [key removed] b [key removed] c"; got != want || hits != 2 {
		t.Errorf("got %q, %d; want %q", got, hits, want)
	}
	if got, hits := s.Sanitize(string(old) + string(old)); got != removed || hits != 1 {
		t.Errorf("two keys without a gap: %q, %d", got, hits)
	}
	if got, hits := NewSanitizer().Sanitize("no key " + string(testKey)); hits != 0 || !strings.Contains(got, string(testKey)) {
		t.Errorf("without a key: %q, %d", got, hits)
	}
}

func TestSanitizeParts(t *testing.T) {
	s := NewSanitizer(testKey)
	d := spread(after(""))
	for _, tt := range []struct {
		name     string
		in, want []string
	}{
		{"none", nil, nil},
		{"clean", []string{"a", "b 1", ""}, []string{"a", "b 1", ""}},
		{"whole in one", []string{"a", "b " + d + " c"}, []string{"a", "b " + removed + " c"}},
		{"half and half", []string{"a " + d[:12], d[12:] + " b"}, []string{"a " + removed, removed + " b"}},
		{"eight each", []string{"a " + d[:8], d[8:16], d[16:] + " b"}, []string{"a " + removed, removed, removed + " b"}},
		{"six of twelve", []string{"a " + d[3:9], d[9:15] + " b"}, []string{"a " + removed, removed + " b"}},
		{"words between", []string{"a " + d[:11] + " and", "then", d[11:22] + " b"}, []string{"a " + removed, removed, removed + " b"}},
		{"split in an escape", []string{"a " + d[:11] + "%3", d[11:12] + " b"}, []string{"a " + removed, removed + " b"}},
		{"split where joining would hide it", []string{"a " + d[:11] + "&#48", "7 b"}, []string{"a " + removed, "7 b"}},
		{"too far apart", []string{d[:6] + strings.Repeat(".", 20), strings.Repeat(".", 20) + d[6:12]}, []string{d[:6] + strings.Repeat(".", 20), strings.Repeat(".", 20) + d[6:12]}},
	} {
		before := slices.Clone(tt.in)
		got, hits := s.SanitizeParts(tt.in)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q; want %q", tt.name, got, tt.want)
		}
		if (hits > 0) != !slices.Equal(tt.in, tt.want) {
			t.Errorf("%s: %d hits", tt.name, hits)
		}
		if !slices.Equal(before, tt.in) {
			t.Errorf("%s: the argument was written to", tt.name)
		}
	}
}

// Whatever still forms the key when the rounds are used up is withheld whole.
func TestSanitizeFailsClosed(t *testing.T) {
	s := NewSanitizer(testKey)
	got, hits := s.strip([]string{"a " + string(testKey), "b"}, 0)
	if want := []string{withheld, withheld}; !slices.Equal(got, want) || hits == 0 {
		t.Errorf("got %q, %d; want %q", got, hits, want)
	}
	if again, hits := s.Sanitize(withheld); again != withheld || hits != 0 {
		t.Errorf("the notice itself becomes %q", again)
	}
}

// P1, P2, P3 on texts made of all that a key can be hidden in.
func TestSanitizeProperties(t *testing.T) {
	hit, identical := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		s := NewSanitizer(k)
		text := drawText(t, "text", k)
		got, hits := s.Sanitize(text)
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		if w, view := oracleWindow(got, k); w != "" {
			t.Fatalf("P1: %s is left in %q, as %q", w, got, view)
		}
		if again, more := s.Sanitize(got); again != got || more != 0 {
			t.Fatalf("P2: %q became %q", got, again)
		}
		if w, _ := oracleWindow(strings.ToValidUTF8(text, "\ufffd"), k); w != "" && hits == 0 {
			t.Fatalf("P1: %s in %q is no hit", w, text)
		}
		if hits == 0 {
			identical++
			if want := strings.ToValidUTF8(text, "\ufffd"); got != want {
				t.Fatalf("P3: %q became %q", text, got)
			}
		} else if hit++; !strings.Contains(got, removed) && got != withheld {
			t.Fatalf("%d hits and no trace in %q", hits, got)
		}
	})
	t.Logf("hit %d, identical %d", hit, identical)
	if hit == 0 || identical == 0 {
		t.Error("one of the two was never reached")
	}
}

// truncate keeps the head and the tail of a text, as tools do with long output.
func truncate(text string, keep int, joint string) string {
	if len(text) <= 2*keep {
		return text
	}
	return text[:keep] + joint + text[len(text)-keep:]
}

// P6: truncate, then strip. The reverse order is shown to fail, so the vector
// is a real one: each half is shorter than a window until they are joined.
func TestTruncateThenStrip(t *testing.T) {
	s := NewSanitizer(testKey)
	d := spread(after(""))
	for p := 1; p < window; p++ {
		long := strings.Repeat("x", 100-p) + d[:p] + strings.Repeat("y", 5000) + d[p:window] + strings.Repeat("z", 100-window+p)
		right, hits := s.Sanitize(truncate(long, 100, "\n[...]\n"))
		if w, _ := oracleWindow(right, testKey); w != "" || hits != 1 {
			t.Errorf("split at %d: %s survived in %q", p, w, right)
		}
		stripped, _ := s.Sanitize(long)
		if w, _ := oracleWindow(truncate(stripped, 100, "\n[...]\n"), testKey); w == "" {
			t.Errorf("split at %d: the reverse order holds too, so this proves nothing", p)
		}
	}
}

// P10: a key split over two rows leaves no window, in neither row nor in the
// two read as one; and never a whole key, however many rows it is split over.
func TestTwoRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		s := NewSanitizer(k)
		d := strings.ReplaceAll(string(k), "-", "")
		p := rapid.IntRange(0, keyDigits).Draw(t, "split")
		first, _ := s.Sanitize("row one " + d[:p])
		second, _ := s.Sanitize(d[p:] + " row two")
		for _, text := range []string{first, second, first + second, first + "\n" + second} {
			if w, _ := oracleWindow(text, k); w != "" {
				t.Fatalf("split at %d: %s in %q", p, w, text)
			}
		}
	})
}

// The fast path reads and returns; it does not allocate.
func TestFastPathAllocatesNothing(t *testing.T) {
	s := NewSanitizer(testKey)
	for name, text := range map[string]string{
		"prose":   strings.Repeat("Hello, all the world of oil | lol. ", 1000) + "12345",
		"Russian": strings.Repeat("Привет, мир! ", 1000),
		"Chinese": strings.Repeat("你好世界", 1000),
	} {
		s.Sanitize(text) // builds the table
		if n := testing.AllocsPerRun(20, func() { s.Sanitize(text) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
