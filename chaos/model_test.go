//go:build linux

package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"coxswain/modeltest"
)

// Each text that a person writes bears a word of its own: chat and number.
var wordRule = regexp.MustCompile(`c(\d+)n\d+\b`)

// A model answers by rule: calls that leave a numbered trace, then an answer of
// its own number. Each request is judged by modeltest, and against those that
// came before it.
type model struct {
	log     *journal
	effects string // the file that calls write to

	mu       sync.Mutex
	n        int
	calls    int
	requests int
	live     int
	seen     map[string]bool // words that came with a request
	asked    map[int]int     // the chat of each request
	epochs   map[string]*epoch
}

// An epoch is the longest request of one stored head (I11).
type epoch struct {
	messages []modeltest.Message
	raw      []json.RawMessage
}

func newModel(log *journal, effects string) *model {
	return &model{log: log, effects: effects, seen: map[string]bool{}, asked: map[int]int{}, epochs: map[string]*epoch{}}
}

// saw reports whether a request has carried the word.
func (m *model) saw(word string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[word]
}

// chat is the one that a request was of.
func (m *model) chat(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[n]
}

func (m *model) busy() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		modeltest.New().ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed while it wrote
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.mu.Lock()
	m.live++
	m.n++
	n := m.n
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.live--
		m.mu.Unlock()
	}()
	step, calls := m.answer(n, body)
	one := modeltest.New(step) // for this request alone: a run has more of them than memory
	defer func() {
		for _, rec := range one.Requests() {
			m.judge(n, rec, calls)
		}
		for _, v := range one.Violations() {
			m.log.wrong(refused, chatOf(string(body)), "model request %d: %s", n, v)
		}
	}()
	one.ServeHTTP(w, r)
}

// answer is what the model says: to a task two calls, one after the other, to a
// long one a call that may become a job, to a greeting and to what the gateway
// itself has to tell nothing but an answer.
func (m *model) answer(n int, body []byte) (step modeltest.Step, calls int) {
	var req struct {
		Messages []struct{ Role, Content string }
	}
	_ = json.Unmarshal(body, &req) // modeltest refuses it
	task, results := "", 0
	for _, msg := range req.Messages {
		switch msg.Role {
		case "user":
			task, results = msg.Content, 0
		case "tool":
			results++
		}
	}
	want := 2
	switch {
	case strings.HasPrefix(task, "hi ") || strings.HasPrefix(task, "[from the gateway"):
		want = 0
	case strings.HasPrefix(task, "long "):
		want = 1
	}
	if results >= want {
		return modeltest.Stream(modeltest.Say("answer "), modeltest.Wait(30*time.Millisecond), modeltest.Say(fmt.Sprintf("%d.", n))), 0
	}
	sleep := "0.1"
	if want == 1 {
		sleep = "1.2"
	}
	args, _ := json.Marshal(map[string]string{"command": fmt.Sprintf("echo effect %d >> %s; sleep %s", n, m.effects, sleep)})
	ask := modeltest.Ask(modeltest.Call{ID: fmt.Sprintf("call_%d", n), Name: "terminal", Args: string(args)})
	return modeltest.Stream(modeltest.Wait(30*time.Millisecond), ask), 1
}

// judge holds a request against the longest one of its epoch: one of the two
// begins with the other, byte for byte (I5, I11); only a join changes the user
// message that both end with. A gateway that was stopped for a while may send an
// older one late.
func (m *model) judge(n int, rec modeltest.Recorded, calls int) {
	ms := rec.Request.Messages
	if len(ms) < 2 || len(ms) != len(rec.Messages) {
		return // refused as malformed
	}
	chat := chatOf(string(rec.Body))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.calls += calls
	m.asked[n] = chat
	words := map[string]int{}
	for _, msg := range ms {
		for _, word := range wordRule.FindAllString(msg.Text, -1) {
			m.seen[word] = true
			if words[word]++; words[word] == 2 {
				m.log.wrong(steerTwice, chat, "model request %d carries %s twice", n, word)
			}
		}
	}
	last := ms[len(ms)-1]
	m.log.note(chat, "request %d: %d messages, the last: %s: %s", n, len(ms), last.Role, clip(last.Text))
	key := fmt.Sprintf("%d %x", chat, sha256.Sum256(rec.Messages[0]))
	e := m.epochs[key]
	if e == nil {
		e = &epoch{}
		m.epochs[key] = e
	}
	for i := range min(len(ms), len(e.raw)) {
		if bytes.Equal(rec.Messages[i], e.raw[i]) {
			continue
		}
		a, b := e.messages[i], ms[i]
		ends := i == len(ms)-1 || i == len(e.raw)-1
		grown := strings.HasPrefix(a.Text, b.Text) || strings.HasPrefix(b.Text, a.Text)
		switch {
		case a.Role == "user" && b.Role == "user" && ends && grown: // a join
		case a.Role == "tool" && b.Role == "tool" && grown:
			m.log.wrong(steerOnSent, chat, "model request %d, messages[%d]:\n was %s\n now %s", n, i, clip(a.Text), clip(b.Text))
		default:
			m.log.wrong(prefix, chat, "model request %d, messages[%d]:\n was %s\n now %s", n, i, clip(string(e.raw[i])), clip(string(rec.Messages[i])))
		}
		break
	}
	if len(ms) > len(e.raw) || len(ms) == len(e.raw) && len(rec.Body) > 0 && len(last.Text) > len(e.messages[len(ms)-1].Text) {
		e.messages, e.raw = ms, rec.Messages
	}
}

// chatOf finds the chat in the words of a text, 0 if there are none.
func chatOf(text string) int {
	found := wordRule.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func clip(s string) string {
	s = strings.ReplaceAll(s, "\n", " ⏎ ")
	if len(s) > 300 {
		return s[:200] + " … " + s[len(s)-80:]
	}
	return s
}
