// Package modeltest is a scripted, strict model server that speaks the
// OpenAI-compatible chat API, for tests.
//
// A Server plays one Step per request: first the step of a When rule that
// matches, else the next of those given to New and Add. Before that it checks
// the request more strictly than any one provider does, since what passes here
// must pass at all of them. A request that breaks a rule is answered 400 with
// the reason, takes no step, and stays in Violations for the test to see. So
// does a request for which no step is left.
//
// Serve it over httptest, or call it in memory with Transport: no sockets, so
// it works inside a testing/synctest bubble. The server starts no goroutine
// of its own; Transport runs one for each request, which ends with the answer,
// with the closing of its body, or with the request's context. All methods
// may be called from any goroutine.
package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Server is the scripted model. Make it with New.
type Server struct {
	mu         sync.Mutex
	steps      []Step
	rules      []rule
	reqs       []Recorded
	violations []string
	models     string
	key        string
	calls      int // tool call ids given out
	waiting    []waiter
}

type rule struct {
	match func(Request) bool
	step  Step
}

type waiter struct {
	n    int
	done chan struct{}
}

// Recorded is one chat request as it arrived, refused ones included.
type Recorded struct {
	Body     []byte            // the whole body, byte for byte
	Messages []json.RawMessage // its messages, byte for byte
	Tools    json.RawMessage   // its tools array, byte for byte, or nil
	Header   http.Header
	At       time.Time
	Request  Request
}

// Request is what a request asks, for matchers and assertions.
type Request struct {
	N        int // 1 for the first request of the server
	Model    string
	Messages []Message
	Tools    []string // the names of the tools offered
	NoTools  bool     // tool_choice is "none"
	CacheKey string
	Max      int // the output limit, by either name
}

// Message is one message, decoded. Text joins the text parts of an array.
type Message struct {
	Role   string
	Text   string
	Images int
	Calls  []Call
	CallID string
}

// Call is one tool call: asked for by a step, or read back from a request.
type Call struct {
	ID    string // empty in a step: the server gives call_1, call_2, …
	Name  string
	Args  string
	Extra json.RawMessage // extra_content, as Gemini sends it
}

// Last gives the newest message, or a zero one.
func (r Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Says reports whether any message contains the text.
func (r Request) Says(text string) bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool { return strings.Contains(m.Text, text) })
}

// New makes a server that plays the steps in order.
func New(steps ...Step) *Server {
	return &Server{steps: steps, models: `{"object":"list","data":[]}`}
}

// Add puts steps behind those that wait.
func (s *Server) Add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// When answers every request that matches with step, before the order of Add.
// Earlier rules win. match must not call the server.
func (s *Server) When(match func(Request) bool, step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rule{match, step})
}

// SetModels sets the body of GET /models; default: an empty list.
func (s *Server) SetModels(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = body
}

// SetKey makes the server refuse requests without this key with 401.
func (s *Server) SetKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// Requests gives the chat requests so far, oldest first.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reqs)
}

// Violations gives what was wrong with requests so far, oldest first. A test
// ends with a check that it is empty.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Left is the number of steps not played yet.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps)
}

// Await returns once n requests have arrived, or with the cause of ctx.
func (s *Server) Await(ctx context.Context, n int) error {
	s.mu.Lock()
	if len(s.reqs) >= n {
		s.mu.Unlock()
		return nil
	}
	w := waiter{n, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// PrefixOf returns nil if the messages of b begin with those of a, byte for
// byte (I5, I11), else an error that names the first that does not.
func PrefixOf(a, b Recorded) error {
	for i, m := range a.Messages {
		if i >= len(b.Messages) {
			return fmt.Errorf("messages[%d] is gone: %s", i, clip(m))
		}
		if !bytes.Equal(m, b.Messages[i]) {
			return fmt.Errorf("messages[%d] changed:\n was %s\n now %s", i, clip(m), clip(b.Messages[i]))
		}
	}
	return nil
}

func clip(b []byte) string {
	if len(b) > 400 {
		return fmt.Sprintf("%s… (%d bytes)", b[:400], len(b))
	}
	return string(b)
}

// ServeHTTP answers POST …/chat/completions and GET …/models.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	key, models := s.key, s.models
	s.mu.Unlock()
	if key != "" && r.Header.Get("Authorization") != "Bearer "+key {
		refuse(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided")
		return
	}
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, models)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.chat(w, r)
	default:
		refuse(w, http.StatusNotFound, "not_found", "no such path: "+r.Method+" "+r.URL.Path)
	}
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "read", err.Error())
		return
	}
	rec := Recorded{Body: body, Header: r.Header.Clone(), At: time.Now()}
	p, bad := parse(body)
	rec.Messages, rec.Tools, rec.Request = p.messages, p.tools, p.req
	step, n, why := s.next(rec, bad)
	if why != "" {
		refuse(w, http.StatusBadRequest, "strict", why)
		return
	}
	step.play(&play{w: w, r: r, s: s, n: n, model: p.req.Model, usage: p.usage, stream: p.stream, in: len(body) / 4})
}

// next records the request and chooses its step. why is the violation, if any.
func (s *Server) next(rec Recorded, bad error) (step Step, n int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = len(s.reqs) + 1
	rec.Request.N = n
	s.reqs = append(s.reqs, rec)
	s.waiting = slices.DeleteFunc(s.waiting, func(w waiter) bool {
		if n >= w.n {
			close(w.done)
		}
		return n >= w.n
	})
	if bad != nil {
		why = fmt.Sprintf("request %d: %v", n, bad)
		s.violations = append(s.violations, why)
		return Step{}, n, why
	}
	for _, r := range s.rules {
		if r.match(rec.Request) {
			return r.step, n, ""
		}
	}
	if len(s.steps) == 0 {
		why = fmt.Sprintf("request %d: no step is left for it", n)
		s.violations = append(s.violations, why)
		return Step{}, n, why
	}
	step = s.steps[0]
	s.steps = s.steps[1:]
	return step, n, ""
}

// callID gives the next id for a tool call, unlike any given before.
func (s *Server) callID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return fmt.Sprintf("call_%d", s.calls)
}

func refuse(w http.ResponseWriter, status int, code, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(errorBody(code, "modeltest: "+why))
}

func errorBody(code, message string) []byte {
	b, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "code": code}})
	if err != nil {
		panic(err) // two strings always marshal
	}
	return b
}
