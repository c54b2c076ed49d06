package sim

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
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

// A script is a parsed transcript.
type script struct {
	head   []string // comments, settings and the model's script, as written
	conf   config
	model  []reply
	inputs []input
}

type input struct {
	at   time.Duration
	who  string
	verb string // ">", "edits", "deletes", "presses", or an event of the machine
	text string
	raw  string
}

var inputLine = regexp.MustCompile(`^\+(\d+(?:\.\d+)?)s\s+(\w+)(>| edits | deletes | presses | replies to | downloads )(.*)$`)
var machineLine = regexp.MustCompile(`^\+(\d+(?:\.\d+)?)s\s+(gateway crashes|gateway stops|gateway starts|store goes down|store comes back|flood begins|flood ends|send replies get lost|end)$`)

func parseScript(t testing.TB, text string) *script {
	s := &script{conf: defaults()}
	for i, l := range strings.Split(text, "\n") {
		bad := func(err error) {
			if err != nil {
				t.Fatalf("line %d: %q: %v", i+1, l, err)
			}
		}
		switch {
		case strings.HasPrefix(l, "#"):
			s.head = append(s.head, l)
		case strings.HasPrefix(l, "set "):
			s.head = append(s.head, l)
			bad(s.set(strings.Fields(l)[1:]))
		case strings.HasPrefix(l, "model: "):
			s.head = append(s.head, l)
			r, err := parseReply(strings.TrimPrefix(l, "model: "))
			bad(err)
			s.model = append(s.model, r)
		default:
			if m := inputLine.FindStringSubmatch(l); m != nil {
				s.inputs = append(s.inputs, input{seconds(m[1]), m[2], strings.TrimSpace(m[3]), strings.TrimSpace(m[4]), l})
			} else if m := machineLine.FindStringSubmatch(l); m != nil {
				s.inputs = append(s.inputs, input{seconds(m[1]), "", m[2], "", l})
			}
		}
	}
	return s
}

func seconds(s string) time.Duration {
	d, err := time.ParseDuration(s + "s")
	if err != nil {
		panic(err)
	}
	return d
}

func (s *script) set(words []string) (err error) {
	for _, kv := range words {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case "mode":
			s.conf.mode, err = steer.ParseMode(v)
		case "join":
			s.conf.join, err = time.ParseDuration(v)
		case "yield":
			s.conf.yield, err = time.ParseDuration(v)
		case "drain":
			s.conf.drain, err = time.ParseDuration(v)
		case "together":
			s.conf.together = v == "true"
		case "skip":
			s.conf.skip = v == "true"
		case "from":
			s.conf.from = v
		case "on_end":
			s.conf.onEnd = v
		case "steps":
			_, err = fmt.Sscan(v, &s.conf.steps)
		default:
			err = fmt.Errorf("no setting %q", k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseReply reads: `shell "make" 10s; shell "test" 1s`, `say "text"`, `hang`,
// `error 500 "public"`, each with optional `after 2s` (first byte) and
// `over 3s` (talking).
func parseReply(text string) (reply, error) {
	var r reply
	words := quoted(text)
	for len(words) > 0 {
		w := words[0]
		switch {
		case w == "hang":
			r.hang = true
			words = words[1:]
		case len(words) < 2:
			return r, fmt.Errorf("%q wants more", w)
		case w == "say":
			r.say = words[1]
			words = words[2:]
		case w == "after" || w == "over":
			d, err := time.ParseDuration(words[1])
			if err != nil {
				return r, err
			}
			if w == "after" {
				r.first = d
			} else {
				r.talk = d
			}
			words = words[2:]
		case w == "fail":
			kinds := map[string]loop.ErrKind{"auth": loop.ErrAuth, "quota": loop.ErrQuota, "network": loop.ErrNetwork, "overloaded": loop.ErrOverloaded}
			k, ok := kinds[words[1]]
			if !ok {
				return r, fmt.Errorf("no failure %q", words[1])
			}
			r.err = &loop.ModelError{Kind: k, Public: "The model failed (" + words[1] + ").", Err: errScripted}
			words = words[2:]
		case len(words) >= 3:
			d, err := time.ParseDuration(words[2])
			if err != nil {
				return r, err
			}
			r.calls = append(r.calls, scriptCall{tool: w, arg: words[1], took: d})
			words = words[3:]
		default:
			return r, fmt.Errorf("cannot read %q", w)
		}
	}
	return r, nil
}

// quoted splits words, keeping "quoted text" together.
func quoted(s string) []string {
	var words []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '"' {
			i := strings.IndexByte(s[1:], '"')
			if i < 0 {
				return append(words, s[1:])
			}
			words = append(words, s[1:1+i])
			s = strings.TrimPrefix(s[i+2:], ";")
			continue
		}
		w, rest, _ := strings.Cut(s, " ")
		w = strings.TrimSuffix(w, ";")
		words = append(words, w)
		s = rest
	}
	return words
}

// play runs the script and renders the whole conversation.
func (s *script) play(t testing.TB) string {
	w := newWorld(t, s.conf)
	w.model.script = slices.Clone(s.model)
	w.start()
	s.faults(w)
	msgs := map[string]session.MessageID{} // text → id, for edits and replies
	for n, in := range s.inputs {
		time.Sleep(time.Until(w.began.Add(in.at)))
		synctest.Wait()
		w.logf("%s", "\x00"+in.raw)
		s.input(w, n+1, in, msgs)
	}
	w.quiet()
	if !w.isDead() {
		w.stop()
	}
	for _, v := range check(w) {
		t.Errorf("invariant: %s", v)
	}
	return s.render(w)
}

func (s *script) input(w *world, n int, in input, msgs map[string]session.MessageID) {
	m := session.Message{
		Key: room, From: session.Person{ID: session.UserID(in.who), Name: in.who}, Private: true, Addressed: true,
		ID: session.MessageID(fmt.Sprintf("#%d", n)), Text: in.text, Received: time.Now(), Sent: time.Now(),
	}
	m.Dedupe = "m:room:" + string(m.ID)
	switch in.verb {
	case ">":
		msgs[in.text] = m.ID
	case "edits":
		id, text, _ := strings.Cut(in.text, ": ")
		m.Kind, m.ID, m.Text = session.KindEdit, session.MessageID(id), text
		m.Dedupe = fmt.Sprintf("e:room:%s:%d", id, n)
	case "deletes":
		m.Kind, m.ID, m.Text = session.KindDelete, session.MessageID(in.text), ""
		m.Dedupe = "d:" + in.text
	case "presses":
		m.Kind, m.Button, m.Text = session.KindPress, in.text, ""
		m.Dedupe = fmt.Sprintf("i:%d", n)
	case "replies to":
		id, text, _ := strings.Cut(in.text, ": ")
		m.ReplyTo, m.Text = session.MessageID(id), text
	case "gateway crashes":
		w.crash()
		return
	case "gateway stops":
		w.run()
		return
	case "gateway starts":
		if !w.isDead() {
			w.stop()
		}
		w.restart()
		s.faults(w)
		for _, m := range w.missed {
			w.deliver(m)
		}
		w.missed = nil
		return
	case "flood begins":
		w.plat.setFault(sendFlood)
		return
	case "send replies get lost":
		w.plat.setFault(sendLost)
		return
	case "flood ends":
		w.plat.setFault(sendOK)
		return
	case "end":
		return
	default:
		w.t.Fatalf("no such input: %q", in.raw)
	}
	if w.isDead() {
		w.missed = append(w.missed, m) // the platform keeps it for the next process
		return
	}
	w.deliver(m)
}

func (s *script) faults(*world) {}

func (p *platform) setFault(f sendFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = func(session.Part) sendFault { return f }
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
	slices.SortStableFunc(lines, func(a, b line) int {
		if c := cmp.Compare(a.at.Round(time.Millisecond), b.at.Round(time.Millisecond)); c != 0 {
			return c
		}
		return cmp.Compare(rank(a.text), rank(b.text))
	})
	for i, l := range lines {
		if supersededSign(lines[i:]) {
			continue
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
func supersededSign(lines []line) bool {
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
