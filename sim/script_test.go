package sim

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"coxswain/loop"
	"coxswain/session"
	"coxswain/steer"
)

// A script is a parsed transcript.
type script struct {
	head   []string // comments, settings and the model's script, as written
	conf   config
	shared bool // several people write: they are labelled
	model  []reply
	inputs []input
	sent   map[session.MessageID]session.Message // as delivered, for repeats
	gaps   []gap                                 // armed
}

type input struct {
	at    time.Duration
	point string // not empty: it comes while the store is at this point
	after bool   // of the point's two sides
	who   string
	room  string
	verb  string // ">", "edits", "deletes", "presses", or an event of the machine
	text  string
	raw   string
}

// A gap is a message that comes in the middle of a store call.
type gap struct {
	in input
	m  session.Message
}

var (
	inputLine = regexp.MustCompile(`^(?:\+(\d+(?:\.\d+)?)s|@(after )?([a-z.]+))\s+(\w+)(?: in ([\w/]+))?(>| edits | deletes | presses | replies to | pastes> | to all> | sends )(.*)$`)
	fileLine  = regexp.MustCompile(`^(\S+?)(?: of (\w+))?(?:> ?(.*))?$`)
)
var machineLine = regexp.MustCompile(`^\+(\d+(?:\.\d+)?)s\s+(gateway crashes|gateway stops|gateway starts|flood begins|flood ends|send replies get lost|next sends|platform repeats|end)(?::? (.*))?$`)

func parseScript(t testing.TB, text string) *script {
	s := &script{conf: defaults(), sent: map[session.MessageID]session.Message{}}
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
		case strings.HasPrefix(l, "model: "), strings.HasPrefix(l, "model in "):
			s.head = append(s.head, l)
			where, what, _ := strings.Cut(l, ": ")
			r, err := parseReply(what)
			bad(err)
			r.room = strings.TrimPrefix(strings.TrimPrefix(where, "model"), " in ")
			s.model = append(s.model, r)
		case strings.HasPrefix(l, "+"), strings.HasPrefix(l, "@"):
			if m := machineLine.FindStringSubmatch(l); m != nil {
				s.inputs = append(s.inputs, input{at: seconds(m[1]), verb: m[2], text: m[3], raw: l})
			} else if m := inputLine.FindStringSubmatch(l); m != nil {
				in := input{after: m[2] != "", point: m[3], who: m[4], room: m[5], verb: strings.TrimSpace(m[6]), text: expand(strings.TrimSpace(m[7])), raw: l}
				if in.point == "" {
					in.at = seconds(m[1])
				}
				s.inputs = append(s.inputs, in)
			} else {
				bad(fmt.Errorf("nothing that can happen"))
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
		case "time":
			s.conf.time, err = time.ParseDuration(v)
		case "together":
			s.conf.together = v == "true"
		case "delete_stops":
			s.conf.deletes = v == "true"
		case "skip":
			s.conf.skip = v == "true"
		case "shared":
			s.shared = v == "true"
		case "from":
			s.conf.from = v
		case "on_end":
			s.conf.onEnd = v
		case "steps":
			s.conf.steps, err = strconv.Atoi(v)
		case "observe":
			s.conf.observe, err = strconv.Atoi(v)
		case "cut":
			s.conf.cut, err = strconv.Atoi(v)
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
// `fail auth`, each with optional `after 2s` (first byte), `over 3s` (talking)
// and `dies 3s` (how long its calls take to die).
func parseReply(text string) (reply, error) {
	var r reply
	var dies time.Duration
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
		case w == "after" || w == "over" || w == "dies":
			d, err := time.ParseDuration(words[1])
			if err != nil {
				return r, err
			}
			*map[string]*time.Duration{"after": &r.first, "over": &r.talk, "dies": &dies}[w] = d
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
	for i := range r.calls {
		r.calls[i].dies = dies
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

var times = regexp.MustCompile(`\{(.)×(\d+)\}`)

// expand writes long texts out: {a×2500} is 2,500 times a.
func expand(s string) string {
	return times.ReplaceAllStringFunc(s, func(m string) string {
		p := times.FindStringSubmatch(m)
		n, err := strconv.Atoi(p[2])
		if err != nil {
			panic(err)
		}
		return strings.Repeat(p[1], n)
	})
}

// contract is the way back, for runs of 100 and more.
func contract(s string) string {
	var b strings.Builder
	for s != "" {
		first, size := utf8.DecodeRuneInString(s)
		n := len(s) - len(strings.TrimLeftFunc(s, func(r rune) bool { return r == first }))
		if n >= 100 && first < utf8.RuneSelf {
			fmt.Fprintf(&b, "{%c×%d}", first, n)
		} else {
			b.WriteString(s[:max(n, size)])
		}
		s = s[max(n, size):]
	}
	return b.String()
}
