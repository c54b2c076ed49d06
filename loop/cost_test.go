package loop

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"coxswain/session"
)

// Costs are integers, rounded up, with what was cached at its own price.
func TestCost(t *testing.T) {
	priced := &profile{Profile: Profile{Prices: &Prices{Input: 1_250_000, Cached: 125_000, Output: 10_000_000}}}
	const most = 1_000_000_000_000_000 // of what may be configured
	dearest := &profile{Profile: Profile{Prices: &Prices{Input: most, Cached: most, Output: most}}}
	for _, c := range []struct {
		p    *profile
		u    Usage
		want int64
	}{
		{&profile{}, Usage{Prompt: 10, Completion: 5, Cached: 8}, 15},
		{priced, Usage{Prompt: 1_000_000}, 1_250_000},
		{priced, Usage{Prompt: 1_000_000, Cached: 400_000, Completion: 2000}, 600_000*5/4 + 400_000/8 + 20_000},
		{priced, Usage{Prompt: 1}, 2},
		{priced, Usage{Prompt: 4, Cached: 9}, 1},
		{priced, Usage{Prompt: -4, Completion: -1}, 0},
		{&profile{}, Usage{Prompt: math.MaxInt, Completion: math.MaxInt}, 2 * session.MeterMost},
		{priced, Usage{Prompt: math.MaxInt, Completion: math.MaxInt}, session.MeterMost},
		{dearest, Usage{Prompt: 10_000}, 10_000 * 1_000_000_000},
		{dearest, Usage{Prompt: 4000, Cached: 1000, Completion: 6000}, 10_000 * 1_000_000_000},
		{dearest, Usage{Prompt: math.MaxInt, Cached: math.MaxInt / 2, Completion: math.MaxInt}, session.MeterMost},
	} {
		if got := c.p.cost(c.u); got != c.want {
			t.Errorf("%+v: got %d; want %d", c.u, got, c.want)
		}
	}
}

// The estimate is four bytes a token until the provider has said what a request
// used, and from then on that and what was added; a picture counts as one.
func TestEstimate(t *testing.T) {
	tr := &transcript{head: head{System: make(json.RawMessage, 400), Tools: make(json.RawMessage, 800)}}
	tr.tally.add(400, false)
	want := func(what string, prompt, completion int) {
		t.Helper()
		if got := tr.estimate(0); got != (Usage{Prompt: prompt, Completion: completion}) {
			t.Errorf("%s: got %+v; want %d and %d", what, got, prompt, completion)
		}
	}
	want("nothing known", 401, answerRoom)
	tr.used(Usage{Prompt: 700, Completion: 3000})
	want("just asked", 701, 3000)
	tr.tally.add(4000, false)
	want("a message more", 1701, 3000)
	tr.tally.add(400, true)
	want("another instead", 801, 3000)
	tr.tally.add(5<<20, false)
	want("a picture", 801+weighMost/4, 3000)
	tr.used(Usage{}) // the provider was silent this time
	want("silent", 801+weighMost/4, 3000)
	if got := tr.estimate(400).Prompt; got != 901+weighMost/4 {
		t.Errorf("with more beside: got %d", got)
	}
}

// What is settled: what the provider says; nothing where it never took the request;
// else the estimate stays.
func TestSettle(t *testing.T) {
	refused := &ModelError{Status: 429}
	for _, c := range []struct {
		name     string
		u        Usage
		accepted bool
		err      error
		want     int64 // -1: not settled
	}{
		{"answered", Usage{Prompt: 10, Completion: 2}, true, nil, 12},
		{"answered, no usage", Usage{}, true, nil, -1},
		{"refused", Usage{}, false, refused, 0},
		{"broke off", Usage{}, true, refused, -1},
		{"broke off, told", Usage{Prompt: 10}, true, refused, 10},
		{"called back before a word", Usage{}, false, session.ErrJoined, -1},
		{"called back", Usage{}, true, context.Canceled, -1},
	} {
		got := int64(-1)
		(&profile{}).settle(func(n int64) { got = n }, c.u, c.accepted, c.err)
		if got != c.want {
			t.Errorf("%s: settled %d; want %d", c.name, got, c.want)
		}
	}
}

// A turn pays for each request, before it goes out; while a budget is used up no
// request goes out, and the time does not count as the task's.
func TestTurnPays(t *testing.T) {
	m := &model{name: "m", rule: func(n int, r Request, on func(Delta)) (Reply, error) {
		u := Usage{Prompt: 1000, Completion: 200}
		if n < 3 || n == 5 {
			return Reply{Calls: []Call{{ID: "c", Name: "look", Args: "{}"}}, Finish: FinishTools, Usage: u}, nil
		}
		return Reply{Text: "done", Usage: u}, nil
	}}
	b := &toolbox{specs: []ToolSpec{look}, rule: func(ToolCall) ToolResult { return ToolResult{Body: "seen"} }}
	spend := session.Spend{Unit: session.UnitTokens, Day: 6000}
	playSpending(t, m, b, func(o *Options) { o.Time = time.Hour }, spend, func(s *stage) {
		s.says("task")
		used := func() int64 {
			t.Helper()
			meters := s.store.Meters()
			if len(meters) != 1 {
				t.Fatalf("got %d meters; want the day's", len(meters))
			}
			return meters[0]
		}
		if got := used(); got != 3600 {
			t.Errorf("used %d; want three requests of 1200", got)
		}
		s.says("again")
		s.says("and again") // some 2000 for the request and its answer: too much
		sent := func(want int) {
			t.Helper()
			m.mu.Lock()
			defer m.mu.Unlock()
			if len(m.reqs) != want {
				t.Errorf("%d requests; want %d", len(m.reqs), want)
			}
		}
		sent(4)
		time.Sleep(24 * time.Hour)
		sent(6)
		if got := s.end(); got.Text != "done" || strings.Contains(s.everything(), bodyTime) {
			t.Errorf("got %+v; want the answer of the next day, and its call run", got)
		}
	})
}

// A request that nobody took costs nothing; one whose provider reports nothing
// costs what was thought.
func TestTurnSettles(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		most int64
		text string
	}{
		{"silent provider", nil, 3000, "done"},
		{"refused", &ModelError{Kind: ErrBadRequest, Public: "No.", Status: 400}, 0, ""},
	} {
		m := &model{name: "m", refuse: c.err != nil, rule: func(int, Request, func(Delta)) (Reply, error) {
			return Reply{Text: c.text}, c.err
		}}
		playSpending(t, m, &toolbox{}, nil, session.Spend{Unit: session.UnitTokens, Turn: 90_000}, func(s *stage) {
			s.says(strings.Repeat("word ", 10))
			got := s.store.Meters()
			if len(got) != 1 || got[0] > c.most || c.most > 0 && got[0] < answerRoom {
				t.Errorf("%s: used %v; want at most %d", c.name, got, c.most)
			}
		})
	}
}
