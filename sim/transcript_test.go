package sim

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var update = flag.Bool("update", false, "rewrite what the transcripts saw")

// TestTranscripts plays every conversation in testdata and compares what was
// seen, line by line.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := parseScript(t, string(data))
			var got string
			synctest.Test(t, func(t *testing.T) { got = s.play(t) })
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(data) {
				t.Errorf("%s: what was seen differs (run with -update and read the diff)\n%s", file, diff(string(data), got))
			}
		})
	}
}

// play runs the script and renders the whole conversation.
func (s *script) play(t testing.TB) string {
	w := newWorld(t, s.conf)
	w.model.script = slices.Clone(s.model)
	w.hook = s.strike(w)
	w.start()
	for n, in := range s.inputs {
		if in.point != "" {
			continue // armed with the input before
		}
		time.Sleep(time.Until(w.began.Add(in.at)))
		synctest.Wait()
		w.logf("\x00%s", in.raw)
		for k := n + 1; k < len(s.inputs) && s.inputs[k].point != ""; k++ {
			s.arm(w, k+1, s.inputs[k])
		}
		s.input(w, n+1, in)
	}
	w.quiet()
	if !w.isDead() {
		w.stop()
	}
	for _, v := range append(check(w), checkEcho(w)...) {
		t.Errorf("invariant: %s", v)
	}
	for _, g := range s.gaps {
		t.Errorf("the store never came to this point: %s", g.in.raw)
	}
	return s.render(w)
}

// quiet waits until nothing moves any more, at most an hour of fake time.
func (w *world) quiet() {
	still := 0
	for i := 0; i < 3600 && still < 25; i++ {
		w.mu.Lock()
		before := len(w.lines)
		w.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		w.mu.Lock()
		if len(w.lines) == before {
			still++
		} else {
			still = 0
		}
		w.mu.Unlock()
	}
}

// render writes the conversation: the head as it was, then what happened.
func (s *script) render(w *world) string {
	var b strings.Builder
	for _, h := range s.head {
		b.WriteString(h + "\n")
	}
	b.WriteByte('\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := slices.Clone(w.lines)
	// What happens at one instant in several goroutines has no order of its own:
	// it is written in the order of cause.
	slices.SortStableFunc(lines, func(a, b logged) int {
		if c := cmp.Compare(a.at.Round(time.Millisecond), b.at.Round(time.Millisecond)); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(rank(a.text), rank(b.text)), cmp.Compare(a.key, b.key))
	})
	signs := map[string]string{} // message → newest sign written
	for i, l := range lines {
		if supersededSign(lines[i:]) {
			continue
		}
		if msg, sign, ok := strings.Cut(l.text, ": "); ok && strings.HasPrefix(msg, "bot signs ") {
			if signs[msg] == sign {
				continue // one that came and went in the same instant stood between
			}
			signs[msg] = sign
		}
		if raw, ok := strings.CutPrefix(l.text, "\x00"); ok {
			b.WriteString(raw + "\n")
			continue
		}
		fmt.Fprintf(&b, "%8s  %s\n", stamp(l.at), l.text)
	}
	return b.String()
}

// supersededSign reports whether a sign is replaced in the same instant: the
// newest one wins, and whether the older was seen at all is chance.
func supersededSign(lines []logged) bool {
	sign, ok := strings.CutPrefix(lines[0].text, "bot signs ")
	msg, _, _ := strings.Cut(sign, ":")
	for _, l := range lines[1:] {
		if l.at.Round(time.Millisecond) != lines[0].at.Round(time.Millisecond) {
			break
		}
		if strings.HasPrefix(l.text, "bot signs "+msg+":") {
			return ok
		}
	}
	return false
}

// rank orders what happens at one instant.
func rank(text string) string {
	for i, prefix := range []string{"\x00", "gateway", "tool", "model", "bot notes", "bot says", "bot answers", "bot replies"} {
		if strings.HasPrefix(text, prefix) {
			if prefix == "tool" && strings.HasSuffix(text, "begins") {
				return "3b"
			}
			if strings.HasSuffix(text, "is killed") {
				return fmt.Sprint(i, " ", text) // several die at once, in no order
			}
			return fmt.Sprint(i)
		}
	}
	sign, _, _ := strings.Cut(text, ":")
	return sign // by message; of one message as they came
}

func stamp(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// diff shows the lines that differ.
func diff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out strings.Builder
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			fmt.Fprintf(&out, "%d- %s\n%d+ %s\n", i+1, x, i+1, y)
		}
	}
	return out.String()
}
