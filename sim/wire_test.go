package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/adapters/outbox"
	"coxswain/adapters/telegram"
	"coxswain/loop"
	"coxswain/loop/openai"
	"coxswain/modeltest"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
	"coxswain/telegramtest"
)

// TestWire plays conversations over the real wires: the Telegram adapter
// against a fake Bot API, the model client against a strict model server, and
// a store that fails. What is written down is exactly what the person sees.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = playWire(t, string(data)) })
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

const ann = 7001

// A wireWorld is the gateway between a fake Telegram and a fake model.
type wireWorld struct {
	*world
	tg    *telegramtest.Server
	model *modeltest.Server
	down  bool
	lose  bool
	// untimed: retries are jittered, so times and what the bubble says between
	// are left out.
	untimed  bool
	progress session.Progress // what is shown of calls; "" = all
	heads    []string
	in       []line
	ids      map[int]int // message id → number of the input
}

var wireInput = regexp.MustCompile(`^\+(\d+(?:\.\d+)?)s\s+(.*)$`)

func playWire(t testing.TB, text string) string {
	w := &wireWorld{world: newWorld(t, defaults()), tg: telegramtest.New(), model: modeltest.New(), ids: map[int]int{}}
	w.tg.AddUser(telegramtest.User{ID: ann, FirstName: "Ann"})
	type event struct {
		at   time.Duration
		text string
		raw  string
	}
	var events []event
	for i, l := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(l, "#"):
			w.heads = append(w.heads, l)
		case l == "untimed":
			w.heads, w.untimed = append(w.heads, l), true
		case strings.HasPrefix(l, "progress "):
			w.heads, w.progress = append(w.heads, l), session.Progress(strings.TrimPrefix(l, "progress "))
		case strings.HasPrefix(l, "model: "):
			w.heads = append(w.heads, l)
			step, err := wireStep(strings.TrimPrefix(l, "model: "))
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			w.model.Add(step)
		default:
			if m := wireInput.FindStringSubmatch(l); m != nil {
				events = append(events, event{seconds(m[1]), m[2], l})
			}
		}
	}
	stop := w.startWire()
	time.Sleep(time.Second) // the first poll, the menu
	w.began = time.Now()
	for _, e := range events {
		time.Sleep(time.Until(w.began.Add(e.at)))
		synctest.Wait()
		w.in = append(w.in, line{e.at, e.raw})
		w.event(e.text)
	}
	time.Sleep(40 * time.Minute)
	stop()
	for _, v := range w.model.Violations() {
		t.Errorf("model request: %s", v)
	}
	for _, c := range w.tg.Calls() {
		if sent := fmt.Sprint(c.Params); w.progress == session.ProgressOff && (strings.Contains(sent, "for=") || strings.Contains(sent, "so far")) {
			t.Errorf("%s tells of a call: %s", c.Method, sent)
		}
	}
	for _, v := range storetest.Check(context.Background(), w.store, nil) {
		t.Errorf("invariant: %s", v)
	}
	return w.render()
}

// wireStep reads one answer of the model server.
func wireStep(text string) (modeltest.Step, error) {
	words := quoted(text)
	switch words[0] {
	case "text":
		return modeltest.Text(strings.SplitAfter(words[1], " ")...), nil
	case "tool":
		return modeltest.Calls(modeltest.Call{Name: words[1], Args: fmt.Sprintf(`{"do":%q,"for":%q}`, words[2], words[3])}), nil
	case "status":
		code, err := strconv.Atoi(words[1])
		if err != nil {
			return modeltest.Step{}, err
		}
		body := fmt.Sprintf(`{"error":{"message":"secret inside of the provider","code":%q}}`, words[len(words)-1])
		if len(words) > 3 && words[2] == "retry-after" {
			return modeltest.Status(code, body, "Retry-After", words[3]), nil
		}
		return modeltest.Status(code, body), nil
	case "hang-up":
		return modeltest.Stream(modeltest.Say(words[1]), modeltest.Wait(time.Second), modeltest.Hang()), nil
	case "slow":
		d, err := time.ParseDuration(words[1])
		return modeltest.Stream(modeltest.Wait(d), modeltest.Say(words[2])), err
	case "silent":
		return modeltest.Stream(modeltest.Silence()), nil
	}
	return modeltest.Step{}, fmt.Errorf("no answer %q", text)
}

// startWire starts the process; the function it gives stops it.
func (w *wireWorld) startWire() func() {
	ctx, stopRun := context.WithCancel(context.Background())
	w.process = &process{w: w.world, dead: make(chan struct{})}
	st := &storetest.Faulty{Store: w.store, Hook: func(point string, when storetest.When) storetest.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case w.down && when == storetest.Before:
			return storetest.Down
		case w.lose && when == storetest.After && slices.Contains(storetest.Points(), point):
			w.lose = false
			return storetest.LostReply
		}
		return storetest.None
	}}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	out := outbox.New(context.Background(), outbox.Options{Store: st, Nonce: "w/out", HubNonce: "w", UnknownAfter: 10 * time.Second, Log: log})
	llm, err := openai.New(openai.Options{BaseURL: "http://model.test/v1", Name: "m", Hosted: true, HTTPClient: modelClient(w.model), Logger: log})
	if err != nil {
		w.t.Fatal(err)
	}
	var hub *session.Hub
	l, err := loop.New(loop.Options{
		Profile: loop.Profile{Model: llm, System: "You help.", Hosted: true}, Tools: toolPort{w.box, w.process}, YieldAfter: 5 * time.Second, SkipUnstarted: true,
		Steps: 60, Time: time.Hour, CacheBytes: 1 << 20,
		JobEnded: func(key session.Key, j session.Job) { hub.JobEnded(context.Background(), key, j) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	hub = session.NewHub(context.Background(), session.Options{
		Store: st, Agent: l, Outbox: out, Nonce: "w", Mode: func(session.Key) steer.Mode { return steer.Steer },
		Access:     session.NewAccess(st, map[session.PlatformName]session.Policy{telegram.Name: {AllowUsers: []string{fmt.Sprint(ann)}}}),
		JoinWindow: time.Second, StopWords: []string{"stop"}, SteerFrom: "owner", LeaseTTL: 5 * time.Second, JobsOnEnd: "turn",
		Progress: func(session.Key) session.Progress { return w.progress }, HistoryBytes: 1 << 20, Log: log,
	})
	tg, err := telegram.New(telegram.Options{
		Token: func() string { return telegramtest.Token }, Door: hub, Docs: st, HTTPClient: w.tg.Client(), Log: log,
		Save: func(context.Context, session.Key, string, io.Reader) (string, int64, error) { return "", 0, nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	hub.Register(tg)
	out.Register(tg)
	polled, hubbed := make(chan struct{}), make(chan struct{})
	go func() { defer close(polled); _ = tg.Run(ctx) }()
	go func() { defer close(hubbed); _ = hub.Run(ctx, 0) }()
	return func() {
		stopRun()
		<-polled
		<-hubbed
		out.Close(time.Second)
		_ = tg.Close(context.Background())
		close(w.dead)
		llm.Close()
		w.process.tools.Wait()
	}
}

func (w *wireWorld) event(text string) {
	if say, ok := strings.CutPrefix(text, "ann> "); ok {
		id := w.tg.Say(ann, ann, say)
		w.ids[id] = len(w.ids) + 1
		return
	}
	if label, ok := strings.CutPrefix(text, "ann presses "); ok {
		w.press(label)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	words := strings.Fields(text)
	switch {
	case text == "store goes down":
		w.down = true
	case text == "store comes back":
		w.down = false
	case text == "store loses a reply":
		w.lose = true
	case text == "telegram is well again":
		w.tg.Heal()
	case words[0] == "telegram" && words[1] == "floods":
		secs, err := strconv.Atoi(words[2])
		if err != nil {
			w.t.Fatal(err)
		}
		w.tg.Fault(telegramtest.Fault{Method: "sendMessage", Code: 429, Description: "Too Many Requests", RetryAfter: secs})
	case words[0] == "telegram" && words[1] == "answers":
		w.tg.Fault(telegramtest.Fault{Method: "sendMessage", HTML: 502})
	case words[0] == "telegram" && words[1] == "loses":
		w.tg.Fault(telegramtest.Fault{Method: "sendMessage", LoseReply: true})
	case words[0] == "telegram" && words[1] == "refuses":
		w.tg.Fault(telegramtest.Fault{Method: "sendMessage", Refuse: true, Times: 3})
	default:
		w.t.Fatalf("no such event: %q", text)
	}
}

// render writes the inputs and what the person saw, in order of time.
func (w *wireWorld) render() string {
	lines := slices.Clone(w.in)
	for _, c := range w.tg.Calls() {
		if text := w.saw(c); text != "" {
			lines = append(lines, line{c.At.Sub(w.began), text})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		if c := cmp.Compare(a.at.Round(time.Millisecond), b.at.Round(time.Millisecond)); c != 0 {
			return c
		}
		return cmp.Compare(wireRank(a.text), wireRank(b.text))
	})
	var b strings.Builder
	for _, h := range w.heads {
		b.WriteString(h + "\n")
	}
	b.WriteByte('\n')
	signs := map[string]string{}
	for i, l := range lines {
		sign, msg, isSign := strings.Cut(l.text, " on message ")
		if isSign {
			signs[msg] = sign
		}
		switch {
		case strings.HasPrefix(l.text, "+"):
			b.WriteString(l.text + "\n")
		case passing(lines[i:]), strings.HasPrefix(l.text, "bot changes"):
		case !w.untimed:
			fmt.Fprintf(&b, "%8s  %s\n", stamp(l.at), l.text)
		case !isSign && !working.MatchString(strings.TrimPrefix(l.text, "bot, silently: ")):
			fmt.Fprintf(&b, "          %s\n", l.text)
		}
	}
	w.renderBubble(&b, lines)
	for _, msg := range slices.Sorted(maps.Keys(signs)) {
		fmt.Fprintf(&b, "in the end: %s on message %s\n", signs[msg], msg)
	}
	return b.String()
}

// working is how a bubble begins while its turn runs.
var working = regexp.MustCompile(`^(Step|Still running,) `)

var spent = regexp.MustCompile(`(,| ·)? *\d+ (s|min)\b( \d+ s\b)?`)

// renderBubble lists what the bubble said besides its steps: the edits
// themselves are paced, so which of them came is chance.
func (w *wireWorld) renderBubble(b *strings.Builder, lines []line) {
	seen := map[string]bool{}
	for _, l := range lines {
		text, ok := strings.CutPrefix(l.text, "bot changes its message: ")
		if !ok {
			continue
		}
		if i := strings.Index(text, "The model is not"); i >= 0 && !w.untimed {
			text = text[i:]
		} else if working.MatchString(text) {
			continue
		}
		text = spent.ReplaceAllString(text, "")
		if !seen[text] {
			seen[text] = true
			fmt.Fprintf(b, "the bubble: %s\n", text)
		}
	}
}

// wireRank orders what is seen at one instant: inputs, messages, the bubble,
// signs.
func wireRank(text string) int {
	for i, prefix := range []string{"+", "bot:", "bot, silently:", "bot"} {
		if strings.HasPrefix(text, prefix) {
			return i
		}
	}
	return 9
}

// passing reports whether a sign is replaced in the same instant: whether it
// was seen at all is chance.
func passing(lines []line) bool {
	_, msg, ok := strings.Cut(lines[0].text, " on message ")
	for _, l := range lines[1:] {
		if l.at.Round(10*time.Millisecond) != lines[0].at.Round(10*time.Millisecond) {
			break
		}
		if _, m, is := strings.Cut(l.text, " on message "); ok && is && m == msg {
			return true
		}
	}
	return false
}

// saw is what a call shows a person; drafts and typing come and go.
func (w *wireWorld) saw(c telegramtest.Call) string {
	if !c.OK {
		return ""
	}
	switch c.Method {
	case "sendMessage":
		how := "bot"
		if silent, _ := c.Params["disable_notification"].(bool); silent {
			how = "bot, silently"
		}
		return how + ": " + oneLine(c.String("text")) + keys(c)
	case "editMessageText":
		return "bot changes its message: " + oneLine(c.String("text"))
	case "deleteMessage":
		return "bot deletes a message"
	case "setMessageReaction":
		emoji := "nothing"
		if list, ok := c.Params["reaction"].([]any); ok && len(list) > 0 {
			if r, ok := list[0].(map[string]any); ok {
				emoji = fmt.Sprint(r["emoji"])
			}
		}
		return fmt.Sprintf("%s on message %d", emoji, w.ids[int(c.Int("message_id"))])
	}
	return ""
}
