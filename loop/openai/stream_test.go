package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/loop"
	"coxswain/modeltest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is what one Stream call gave.
type seen struct {
	reply    loop.Reply
	err      error
	log      []string // text as "text", Reset as "!", silence as "5s 2/5", a new try as "2/5"
	text     string   // what a person sees at the end
	accepted int
	took     time.Duration
}

func (s seen) deltas() string { return strings.Join(s.log, " ") }

// ask sends one request of a user's "hi" to srv, in memory.
func ask(ctx context.Context, t *testing.T, srv *modeltest.Server, mod func(*Options), r loop.Request) seen {
	t.Helper()
	c := testClient(t, func(o *Options) {
		o.HTTPClient = &http.Client{Transport: srv.Transport()}
		if mod != nil {
			mod(o)
		}
	})
	return askWith(ctx, t, c, r)
}

func askWith(ctx context.Context, t *testing.T, c *Client, r loop.Request) (s seen) {
	t.Helper()
	if r.Messages == nil {
		r.Messages = []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}
	}
	start := time.Now()
	s.reply, s.err = c.Stream(ctx, r, func(d loop.Delta) {
		switch {
		case d.Reset:
			s.text = ""
			s.log = append(s.log, "!")
		case d.Silent > 0:
			s.log = append(s.log, fmt.Sprintf("%v %d/%d", d.Silent, d.Attempt, d.Attempts))
		case d.Text == "":
			s.log = append(s.log, fmt.Sprintf("%d/%d", d.Attempt, d.Attempts))
		default:
			s.text += d.Text
			s.log = append(s.log, d.Text)
		}
	}, func() { s.accepted++ })
	s.took = time.Since(start)
	return s
}

// want fails unless the call ended with this text and these deltas.
func (s seen) want(t *testing.T, text, deltas string) {
	t.Helper()
	if s.err != nil || s.reply.Text != text || s.deltas() != deltas {
		t.Errorf("got %q, %v, deltas %q; want %q, deltas %q", s.reply.Text, s.err, s.deltas(), text, deltas)
	}
	if s.text != text {
		t.Errorf("a person sees %q; want %q", s.text, text)
	}
}

// failed fails unless the call ended in a ModelError of the kind, and gives it.
func (s seen) failed(t *testing.T, kind loop.ErrKind, partial string) *loop.ModelError {
	t.Helper()
	var me *loop.ModelError
	if !errors.As(s.err, &me) {
		t.Fatalf("got %v; want a ModelError", s.err)
	}
	if me.Kind != kind || me.Partial != partial || s.text != partial {
		t.Errorf("got kind %d partial %q shown %q (%v); want kind %d partial %q", me.Kind, me.Partial, s.text, me, kind, partial)
	}
	return me
}

// clean fails if the server saw a bad request or has steps left, and unless
// all requests were the same bytes (I5).
func clean(t *testing.T, srv *modeltest.Server, requests int) {
	t.Helper()
	if v := srv.Violations(); len(v) > 0 {
		t.Errorf("violations: %q", v)
	}
	if srv.Left() > 0 {
		t.Errorf("%d steps left", srv.Left())
	}
	rs := srv.Requests()
	if len(rs) != requests {
		t.Fatalf("got %d requests; want %d", len(rs), requests)
	}
	for i, r := range rs {
		if !bytes.Equal(r.Body, rs[0].Body) {
			t.Errorf("request %d differs:\n%s\n%s", i+1, r.Body, rs[0].Body)
		}
	}
}

// bubble runs a table of tests in fake time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestStreamAnswers(t *testing.T) {
	bubble(t, "text", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Think("hm"), modeltest.Say("Hel", "lo"), modeltest.Usage(10, 5, 8)))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		s.want(t, "Hello", "Hel lo")
		clean(t, srv, 1)
		if s.reply.Usage != (loop.Usage{Prompt: 10, Completion: 5, Cached: 8}) || s.accepted != 1 || string(s.reply.Private) != `{"reasoning_content":"hm"}` {
			t.Errorf("got usage %+v accepted %d private %s", s.reply.Usage, s.accepted, s.reply.Private)
		}
	})
	bubble(t, "calls", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("see"),
			modeltest.Ask(modeltest.Call{Name: "read", Args: `{"path":"a/long/path"}`, Extra: json.RawMessage(`{"g":"sig"}`)}, modeltest.Call{Name: "list", Args: `{}`})))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		s.want(t, "see", "see")
		c := s.reply.Calls
		if len(c) != 2 || c[0].Name != "read" || c[0].Args != `{"path":"a/long/path"}` || c[1].Args != "{}" || s.reply.Finish != loop.FinishTools ||
			string(c[0].Private) != `{"id":"call_1","extra_content":{"g":"sig"}}` {
			t.Errorf("got %+v", s.reply)
		}
	})
	bubble(t, "a server that ignores stream", func(t *testing.T) {
		srv := modeltest.New(modeltest.JSON("{\n \"choices\": [{\"message\": {\"content\": \"hi\"}, \"finish_reason\": \"stop\"}],\n \"usage\": {\"prompt_tokens\": 3}}"))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		s.want(t, "hi", "hi")
		if s.reply.Usage.Prompt != 3 {
			t.Errorf("got usage %+v", s.reply.Usage)
		}
	})
	bubble(t, "400 keep-alives (go-openai gives up at 300)", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Raw(strings.Repeat(": ping\n\n", 400)), modeltest.Say("hi")))
		ask(t.Context(), t, srv, nil, loop.Request{}).want(t, "hi", "hi")
	})
	bubble(t, "a connection left open behind the finish", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("hi"), modeltest.Finish("stop"), modeltest.Silence()))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		s.want(t, "hi", "hi")
		if s.took != finishGrace {
			t.Errorf("took %v; want %v", s.took, finishGrace)
		}
	})
	bubble(t, "a connection broken behind the finish", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("hi"), modeltest.Finish("stop"), modeltest.Hang()))
		ask(t.Context(), t, srv, nil, loop.Request{}).want(t, "hi", "hi")
	})
	bubble(t, "filtered text is taken back", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("bad"), modeltest.Finish("content_filter")))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		s.want(t, "", "bad !")
		if s.reply.Finish != loop.FinishFilter {
			t.Errorf("got finish %d", s.reply.Finish)
		}
		clean(t, srv, 1)
	})
}

func TestStreamRetries(t *testing.T) {
	bubble(t, "busy, then an answer", func(t *testing.T) {
		srv := modeltest.New(modeltest.Status(503, ""), modeltest.Status(429, ""), modeltest.Text("hi"))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		s.want(t, "hi", "2/5 3/5 hi")
		clean(t, srv, 3)
		if s.accepted != 1 || s.took <= 0 || s.took > 3*time.Second+2*time.Millisecond {
			t.Errorf("accepted %d, took %v; want 1 and the jitter below 1 s + 2 s", s.accepted, s.took)
		}
	})
	bubble(t, "Retry-After is kept to", func(t *testing.T) {
		srv := modeltest.New(modeltest.Status(429, "", "Retry-After", "7"), modeltest.Status(529, "", "Retry-After", "7200"), modeltest.Text("hi"))
		s := ask(t.Context(), t, srv, func(o *Options) { o.Attempts = 3 }, loop.Request{})
		if s.took != 67*time.Second {
			t.Errorf("took %v; want 7 s and the cap of 60 s", s.took)
		}
		s.want(t, "hi", "2/3 5s 2/3 3/3 10s 3/3 15s 3/3 20s 3/3 25s 3/3 30s 3/3 35s 3/3 40s 3/3 45s 3/3 50s 3/3 55s 3/3 1m0s 3/3 1m5s 3/3 hi")
	})
	bubble(t, "used up", func(t *testing.T) {
		srv := modeltest.New()
		srv.When(func(modeltest.Request) bool { return true }, modeltest.Status(503, ""))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		if me := s.failed(t, loop.ErrOverloaded, ""); !me.Retryable || me.Status != 503 {
			t.Errorf("got %+v", me)
		}
		clean(t, srv, 5)
		if s.accepted != 0 || s.took > 15*time.Second+4*time.Millisecond {
			t.Errorf("accepted %d, took %v; want 0 and at most 1+2+4+8 s", s.accepted, s.took)
		}
	})
	for _, status := range []int{400, 401, 403, 404, 422, 402} {
		bubble(t, fmt.Sprint("never on ", status), func(t *testing.T) {
			srv := modeltest.New(modeltest.Status(status, ""))
			s := ask(t.Context(), t, srv, nil, loop.Request{})
			var me *loop.ModelError
			if !errors.As(s.err, &me) || me.Retryable || me.Status != status || s.took != 0 {
				t.Errorf("got %v after %v", s.err, s.took)
			}
			clean(t, srv, 1)
		})
	}
	broken := map[string]modeltest.Event{
		"hang up": modeltest.Hang(), "no finish": modeltest.Drop(), "error frame": modeltest.Fail("overloaded_error", "busy"),
		"finish error": modeltest.Finish("error"), "damaged frame": modeltest.Frame(`{"choices":[{`),
		"[DONE] without a finish (a proxy covering up)": modeltest.Frame("[DONE]"),
	}
	for name, event := range broken {
		bubble(t, name+": the frame is replaced", func(t *testing.T) {
			srv := modeltest.New(modeltest.Stream(modeltest.Say("Hel"), event, modeltest.Drop()), modeltest.Text("Good ", "day"))
			s := ask(t.Context(), t, srv, nil, loop.Request{})
			s.want(t, "Good day", "Hel 2/5 ! Good  day")
			clean(t, srv, 2)
			if s.accepted != 1 {
				t.Errorf("accepted %d times", s.accepted)
			}
		})
	}
	bubble(t, "a later try of calls alone takes the text back", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("Hel"), modeltest.Hang()), modeltest.Calls(modeltest.Call{Name: "f", Args: "{}"}))
		ask(t.Context(), t, srv, nil, loop.Request{}).want(t, "", "Hel 2/5 !")
	})
	bubble(t, "used up in mid-answer: the last piece is kept, alone", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("one"), modeltest.Hang()), modeltest.Stream(modeltest.Say("two"), modeltest.Hang()), modeltest.Status(503, ""))
		s := ask(t.Context(), t, srv, func(o *Options) { o.Attempts = 3 }, loop.Request{})
		s.failed(t, loop.ErrOverloaded, "two")
		if s.deltas() != "one 2/3 ! two 3/3" {
			t.Errorf("got %q", s.deltas())
		}
	})
	bubble(t, "an error in the stream that no try will mend", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("one"), modeltest.Fail("context_length_exceeded", "too long")))
		ask(t.Context(), t, srv, nil, loop.Request{}).failed(t, loop.ErrContextLength, "one")
	})
	bubble(t, "filtered by an error: nothing is kept", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("bad"), modeltest.Fail("content_filter", "no")))
		ask(t.Context(), t, srv, nil, loop.Request{}).failed(t, loop.ErrFiltered, "")
	})
	bubble(t, "empty once", func(t *testing.T) {
		srv := modeltest.New(modeltest.Text(), modeltest.Text("hi"))
		s := ask(t.Context(), t, srv, nil, loop.Request{})
		s.want(t, "hi", "2/5 hi")
		clean(t, srv, 2)
		if s.took != 0 {
			t.Errorf("took %v; want no wait", s.took)
		}
	})
	bubble(t, "only reasoning, twice, with a failure between", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Think("hm")), modeltest.Status(503, ""), modeltest.Stream(modeltest.Think("hm")))
		ask(t.Context(), t, srv, nil, loop.Request{}).failed(t, loop.ErrEmpty, "")
		clean(t, srv, 3)
	})
	bubble(t, "a request made wrong is not sent", func(t *testing.T) {
		for _, r := range []loop.Request{{Messages: []json.RawMessage{nil}}, {Messages: []json.RawMessage{}}, {System: json.RawMessage("x"), Messages: []json.RawMessage{}}} {
			srv := modeltest.New()
			s := ask(t.Context(), t, srv, nil, r)
			s.failed(t, loop.ErrBadRequest, "")
			clean(t, srv, 0)
		}
	})
}

func TestStreamSilence(t *testing.T) {
	bubble(t, "people are told, then it goes on", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("a"), modeltest.Wait(12*time.Second), modeltest.Say("b")))
		ask(t.Context(), t, srv, nil, loop.Request{}).want(t, "ab", "a 5s 1/5 10s 1/5 b")
	})
	bubble(t, "reasoning ends the silence too", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Wait(6*time.Second), modeltest.Think("hm"), modeltest.Wait(6*time.Second), modeltest.Say("b")))
		ask(t.Context(), t, srv, nil, loop.Request{}).want(t, "b", "5s 1/5 1/5 5s 1/5 b")
	})
	bubble(t, "silent between bytes for Idle: another try", func(t *testing.T) {
		srv := modeltest.New(modeltest.Stream(modeltest.Say("a"), modeltest.Silence()), modeltest.Text("b"))
		s := ask(t.Context(), t, srv, func(o *Options) { o.Idle = 7 * time.Second }, loop.Request{})
		s.want(t, "b", "a 5s 1/5 2/5 ! b")
		clean(t, srv, 2)
		if s.took < 7*time.Second || s.took > 8*time.Second+time.Millisecond {
			t.Errorf("took %v; want 7 s and the jitter", s.took)
		}
	})
	bubble(t, "silent before the first token for FirstToken", func(t *testing.T) {
		srv := modeltest.New()
		srv.When(func(r modeltest.Request) bool { return true }, modeltest.Stream(modeltest.Silence()))
		s := ask(t.Context(), t, srv, func(o *Options) { o.Attempts = 2; o.Idle = time.Second; o.FirstToken = 6 * time.Second }, loop.Request{})
		s.failed(t, loop.ErrSilent, "")
		if s.took < 12*time.Second || s.took > 13*time.Second+time.Millisecond || s.accepted != 1 {
			t.Errorf("took %v, accepted %d", s.took, s.accepted)
		}
	})
	bubble(t, "silent before the status line", func(t *testing.T) {
		srv := modeltest.New()
		srv.When(func(r modeltest.Request) bool { return true }, modeltest.Text("x").After(nil))
		s := ask(t.Context(), t, srv, func(o *Options) { o.Attempts = 2; o.FirstToken = 60 * time.Second }, loop.Request{})
		s.failed(t, loop.ErrSilent, "")
		// The second try counts from the start of the call: nothing came at all.
		if got := s.deltas(); !strings.HasPrefix(got, "5s 1/2 10s 1/2 ") || !strings.HasSuffix(got, " 1m55s 2/2 2m0s 2/2") {
			t.Errorf("got %q", got)
		}
	})
	bubble(t, "keep-alives are life", func(t *testing.T) {
		beat := func(n int) (e []modeltest.Event) {
			for range n {
				e = append(e, modeltest.Wait(4*time.Second), modeltest.Comment("ping"))
			}
			return e
		}
		srv := modeltest.New(modeltest.Stream(append(beat(20), modeltest.Say("hi"))...))
		ask(t.Context(), t, srv, func(o *Options) { o.Idle = 10 * time.Second }, loop.Request{}).want(t, "hi", "hi")

		srv = modeltest.New(modeltest.Stream(beat(1000)...))
		s := ask(t.Context(), t, srv, func(o *Options) { o.Idle = 10 * time.Second; o.Attempts = 1 }, loop.Request{})
		s.failed(t, loop.ErrSilent, "")
		if s.took != keepAliveMost*10*time.Second {
			t.Errorf("nothing but keep-alives: took %v; want %v", s.took, keepAliveMost*10*time.Second)
		}
	})
}

var errStopped = errors.New("stopped by alice")

func TestStreamCancel(t *testing.T) {
	never := func(s modeltest.Step) *modeltest.Server {
		srv := modeltest.New()
		srv.When(func(modeltest.Request) bool { return true }, s)
		return srv
	}
	tests := []struct {
		name string
		step modeltest.Step
		text string
	}{
		{"before the status line", modeltest.Text("x").After(nil), ""},
		{"in mid-answer", modeltest.Stream(modeltest.Say("Hel"), modeltest.Silence()), "Hel"},
		{"while backing off", modeltest.Status(503, "", "Retry-After", "50"), ""},
		{"while backing off from a broken answer: it stays shown", modeltest.Stream(modeltest.Say("Hel"), modeltest.Fail("x", "y")), "Hel"},
		{"in a flood", modeltest.Stream(func() (e []modeltest.Event) {
			for range 100 {
				e = append(e, modeltest.Wait(time.Second), modeltest.Think("x"))
			}
			return e
		}()...), ""},
	}
	for _, tt := range tests {
		bubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			at := 30*time.Second + 500*time.Microsecond
			if strings.Contains(tt.name, "broken") {
				at = 500 * time.Microsecond // the first back-off lasts at least 1 ms
			}
			time.AfterFunc(at, func() { cancel(errStopped) })
			s := ask(ctx, t, never(tt.step), nil, loop.Request{})
			if s.err != errStopped || s.took != at {
				t.Errorf("got %v after %v; want the cause after %v", s.err, s.took, at)
			}
			if s.text != tt.text || s.reply.Text != tt.text {
				t.Errorf("got shown %q, reply %q; want %q", s.text, s.reply.Text, tt.text)
			}
		})
	}
	bubble(t, "before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errStopped)
		if s := ask(ctx, t, never(modeltest.Text("x")), nil, loop.Request{}); s.err != errStopped || len(s.log) != 0 {
			t.Errorf("got %v, %q", s.err, s.log)
		}
	})
	bubble(t, "from inside a delta", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := testClient(t, func(o *Options) {
			o.HTTPClient = &http.Client{Transport: never(modeltest.Text("a", "b", "c")).Transport()}
		})
		n := 0
		_, err := c.Stream(ctx, loop.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"x"}`)}},
			func(loop.Delta) { n++; cancel(errStopped) }, nil)
		if err != errStopped || n != 1 {
			t.Errorf("got %v after %d deltas; want the cause and no more deltas", err, n)
		}
	})
}
