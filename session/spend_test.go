package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// A bank is several processes over one store whose turns pay for what they do.
type bank struct {
	t     *testing.T
	store *storetest.Model
	bus   *bus
	out   *signs
	views *views
	conf  session.Options
	task  task
	hubs  []*session.Hub
	dead  []bool
	ends  []func()
	n     int
	hook  storetest.Hook

	mu    sync.Mutex
	spent int64
	calls int
}

// A task is what each turn does: so many requests, each set aside as cost and
// settled as actual (-1 = never).
type task struct {
	calls        int
	cost, actual int64
	takes        time.Duration
}

// A payer is an agent whose turns do the bank's task and answer.
type payer struct {
	*agent
	b *bank
}

func (p payer) Run(ctx context.Context, t *session.Turn) session.Outcome {
	for range p.b.task.calls {
		if _, err := t.Join(ctx); err != nil {
			return session.Outcome{Err: err}
		}
		req, done := t.Request(ctx)
		paid, err := t.Afford(req, func() int64 { return p.b.task.cost })
		done()
		if errors.Is(err, session.ErrJoined) {
			return session.Outcome{End: session.EndAnswered, Text: "joined"}
		}
		if err != nil {
			switch context.Cause(req) {
			case session.ErrStopped:
				return session.Outcome{End: session.EndStopped}
			case session.ErrReplaced:
				return session.Outcome{End: session.EndReplaced}
			case session.ErrParked:
				return session.Outcome{Parked: true}
			}
			return session.Outcome{Err: err}
		}
		p.b.mu.Lock()
		p.b.calls++
		p.b.spent += max(p.b.task.actual, 0)
		p.b.mu.Unlock()
		time.Sleep(p.b.task.takes)
		if p.b.task.actual >= 0 {
			paid(p.b.task.actual)
		}
	}
	return session.Outcome{End: session.EndAnswered, Text: "done"}
}

func (p payer) Aside(ctx context.Context, _ session.Key, _ []session.Row, _ string, _ session.Input, pay session.Payer) (string, error) {
	paid, err := pay.Afford(ctx, func() int64 { return p.b.task.cost })
	if err != nil {
		return "", err
	}
	paid(p.b.task.actual)
	return "aside", nil
}

// branch is the shared store as one process has it.
type branch struct{ replica }

func (b branch) Grant(ctx context.Context, g session.Grant) (session.Granted, error) {
	got, err := b.Store.Grant(ctx, g)
	b.wrote(session.Key{Platform: "meter", Chat: session.ChatID(g.Meter)}, err)
	return got, err
}

func spending(t *testing.T, s session.Spend, r session.Rate, k task, f func(b *bank)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bank{t: t, store: storetest.NewModel(func() time.Time { return time.Now().Add(24*time.Hour - dayLeft) }), bus: &bus{}, out: &signs{full: true}, views: &views{}, task: k}
		b.conf = session.Options{Spend: func(session.Key) session.Spend { return s }, Rate: r}
		b.open()
		defer func() {
			for i := range b.hubs {
				b.ends[i]()
			}
		}()
		f(b)
	})
}

// dayLeft is how long it is until midnight by the store's clock when a test begins:
// a bubble plays each second of it.
const dayLeft = 10 * time.Minute

// open begins one more process.
func (b *bank) open() *session.Hub {
	i := len(b.hubs)
	st := &storetest.Faulty{Store: branch{replica{b.store, b.bus, fmt.Sprint("p", i)}}, Hook: func(point string, when storetest.When) storetest.Fault {
		b.mu.Lock()
		hook := b.hook
		b.mu.Unlock()
		if hook == nil {
			return storetest.None
		}
		return hook(point, when)
	}}
	o := b.conf
	o.Store, o.Agent, o.Outbox, o.Access, o.Nonce = st, payer{&agent{}, b}, b.out, session.NewAccess(st, everyone), fmt.Sprint("life", i+1)
	o.Mode, o.SteerFrom, o.StopWords = func(session.Key) steer.Mode { return steer.Steer }, "owner", []string{"stop"}
	o.LeaseTTL, o.JobsOnEnd, o.HistoryBytes, o.Log = 5*time.Second, "turn", 1<<20, slog.New(slog.DiscardHandler)
	hub := session.NewHub(b.t.Context(), o)
	hub.Register(showing{platform("fake"), b.views})
	run, stop := context.WithCancel(b.t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := hub.Run(run, time.Second); err != nil && !b.dead[i] {
			b.t.Errorf("hub %d: %v", i, err)
		}
	}()
	b.hubs, b.dead, b.ends = append(b.hubs, hub), append(b.dead, false), append(b.ends, func() { stop(); <-gone })
	synctest.Wait()
	return hub
}

// faults sets what the stores do wrong, or who watches them.
func (b *bank) faults(hook storetest.Hook) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hook = hook
}

// kill ends a process as SIGKILL does.
func (b *bank) kill(i int) {
	b.dead[i] = true
	b.hubs[i].Kill()
	b.ends[i]()
}

func (b *bank) says(hub int, who session.UserID, chat session.ChatID, text string) session.Message {
	b.t.Helper()
	w := world{n: b.n}
	m := w.says(who, chat, text)
	b.n = w.n
	b.deliver(hub, m)
	return m
}

func (b *bank) press(hub int, who session.UserID, chat session.ChatID, button string) {
	b.t.Helper()
	w := world{n: b.n}
	m := w.says(who, chat, "")
	b.n = w.n
	m.Kind, m.Button, m.Dedupe = session.KindPress, button, "i:"+m.Dedupe
	b.deliver(hub, m)
}

func (b *bank) deliver(hub int, m session.Message) {
	b.t.Helper()
	if err := b.hubs[hub].Deliver(b.t.Context(), m); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// sent is what was sent to a chat since last asked.
func (b *bank) sent(chat session.ChatID) []session.Outgoing {
	b.t.Helper()
	w := world{t: b.t, store: b.store}
	return w.sent(chat)
}

// wants checks the words of all that was sent to a chat.
func (b *bank) wants(chat session.ChatID, parts ...string) (all []session.Outgoing) {
	b.t.Helper()
	all = b.sent(chat)
	var texts []string
	for _, o := range all {
		texts = append(texts, o.Markdown)
	}
	ok := len(all) == len(parts)
	for i := range all {
		ok = ok && strings.Contains(texts[i], parts[i])
	}
	if !ok {
		b.t.Errorf("sent to %s: %q; want %q", chat, texts, parts)
	}
	return all
}

// more is the one button that lets a budget go on.
func more(t *testing.T, all []session.Outgoing) (data string) {
	t.Helper()
	for _, o := range all {
		for _, btn := range o.Buttons {
			if strings.HasPrefix(btn.Data, "more:") {
				data = btn.Data
			}
		}
	}
	if data == "" || len(data) > 64 {
		t.Fatalf("no button, or one of over 64 bytes: %q in %+v", data, all)
	}
	return data
}

func (b *bank) lane(chat session.ChatID) session.Lane {
	b.t.Helper()
	l, err := b.store.Load(b.t.Context(), key(chat))
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (b *bank) busy(chat session.ChatID) bool { return b.lane(chat).Turn != 0 }

// parked checks that a chat's turn waits in its place.
func (b *bank) parked(chat session.ChatID, why string) {
	b.t.Helper()
	l, v := b.lane(chat), b.views.last(key(chat))
	if l.Turn == 0 || l.Nonce == "" || v.Phase != steer.PhaseModel || !strings.Contains(v.Notice, why) {
		b.t.Errorf("turn %d of %q, phase %v, notice %q; want an open turn that waits: %q", l.Turn, l.Nonce, v.Phase, v.Notice, why)
	}
}

// At 80 % people are told once, silently; at 100 % the turn waits in its place, an
// admin is asked once, here and in their private chat, and only they can let it
// go on.
func TestSpendAsks(t *testing.T) {
	spending(t, session.Spend{Unit: session.UnitTokens, Person: 100}, session.Rate{}, task{calls: 1, cost: 30, actual: 30}, func(b *bank) {
		b.says(0, "root", "root", "/status") // knows no session yet: nothing is sent there
		b.sent("root")
		for range 2 {
			b.says(0, "ann", lobby, "task")
			b.wants(lobby, "done")
		}
		b.says(0, "root", "root", "hello") // another person's budget
		b.wants("root", "done")
		b.says(0, "ann", lobby, "task")
		warned := b.wants(lobby, "80 % is used up of the asker's budget", "done")
		if !warned[0].Silent {
			t.Error("the warning rings")
		}
		b.says(0, "ann", lobby, "task")
		asked := b.wants(lobby, "Used up: the asker's budget of today.")
		b.parked(lobby, "waits for 00:00 UTC")
		if asked[0].Silent {
			t.Error("the question does not ring")
		}
		there := b.wants("root", "Used up in fake: a person's budget of today.")
		if more(t, asked) != more(t, there) {
			t.Error("two buttons for one budget")
		}
		time.Sleep(5 * time.Minute)
		b.parked(lobby, "waits for 00:00 UTC")
		b.wants(lobby)
		b.says(0, "bob", lobby, "a task of mine") // waits behind it
		b.press(0, "ann", lobby, more(t, asked))
		b.wants(lobby, "Only an admin")
		b.parked(lobby, "waits for 00:00 UTC")
		press := session.Message{Key: key(lobby), Button: more(t, asked)}
		if spent, err := b.hubs[0].Spent(t.Context(), press); spent || err != nil {
			t.Errorf("before: the button is spent: %v, %v", spent, err)
		}
		b.press(0, "root", "root", more(t, there))
		b.wants("root", "It goes on")
		b.wants(lobby, "done", "done") // ann's, then bob's
		if b.busy(lobby) {
			t.Error("the turn is open still")
		}
		if spent, err := b.hubs[0].Spent(t.Context(), press); !spent || err != nil {
			t.Errorf("after: the button is spent: %v, %v", spent, err)
		}
		b.press(0, "root", lobby, more(t, asked))
		b.wants(lobby, "let go on already")
	})
}

// People are told of the 80 % once a day, whichever process makes the calls.
func TestSpendWarnsOnce(t *testing.T) {
	spending(t, session.Spend{Unit: session.UnitTokens, Chat: 100}, session.Rate{}, task{calls: 1, cost: 5, actual: 5}, func(b *bank) {
		warned := func(hub, turns int) (n int) {
			for range turns {
				b.says(hub, "ann", lobby, "task")
			}
			for _, o := range b.sent(lobby) {
				if strings.Contains(o.Markdown, "80 %") {
					n++
				}
			}
			return n
		}
		if n := warned(0, 15); n != 0 {
			t.Errorf("told %d times at 75 %%", n)
		}
		if n := warned(0, 2); n != 1 {
			t.Errorf("told %d times at 85 %%; want once", n)
		}
		b.open()
		b.kill(0)
		if n := warned(1, 2); n != 0 {
			t.Errorf("told %d times more by another process", n)
		}
		time.Sleep(dayLeft)
		if n := warned(1, 17); n != 1 {
			t.Errorf("told %d times the next day; want once", n)
		}
	})
}

// It goes on by itself when the day ends, and a button of that day is of no use
// any more.
func TestSpendNextDay(t *testing.T) {
	spending(t, session.Spend{Unit: session.UnitTokens, Day: 100}, session.Rate{}, task{calls: 1, cost: 50, actual: 50}, func(b *bank) {
		b.says(0, "ann", lobby, "task")
		b.says(0, "ann", lobby, "task")
		b.says(0, "bob", den, "task")
		b.wants(lobby, "done", "80 %", "done")
		asked := b.wants(den, "Used up: the gateway's budget of today.")
		b.says(0, "bob", den, "and this") // a steer: nothing of it is lost
		time.Sleep(dayLeft - time.Second)
		b.parked(den, "waits for 00:00 UTC")
		time.Sleep(2 * time.Second)
		b.wants(den, "done", "80 %", "done")
		b.press(0, "root", den, more(t, asked))
		b.wants(den, "out of date")
	})
}

// What ends or changes a turn does so while it waits for a budget too.
func TestSpendWaitEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *bank)
		want session.FateState
	}{
		"stop":      {func(b *bank) { b.says(0, "ann", lobby, "/stop") }, session.FateStopped},
		"interrupt": {func(b *bank) { b.says(0, "ann", lobby, "/interrupt no, this") }, session.FateStopped},
	} {
		t.Run(name, func(t *testing.T) {
			spending(t, session.Spend{Unit: session.UnitTokens, Turn: 100}, session.Rate{}, task{calls: 3, cost: 60, actual: 60}, func(b *bank) {
				first := b.says(0, "ann", lobby, "task")
				b.wants(lobby, "Used up: what this task may use.")
				b.parked(lobby, "/stop ends it")
				b.says(0, "ann", lobby, "/status")
				b.wants(lobby, "waits: Used up: what this task may use.")
				c.do(b)
				if got := b.out.of(first); got != c.want {
					t.Errorf("fate %s; want %s", got, c.want)
				}
				if l := b.lane(lobby); name == "stop" && l.Turn != 0 || name == "interrupt" && l.Turn != 2 {
					t.Errorf("turn %d is open", l.Turn)
				}
			})
		})
	}
}

// A process that is killed, or drained, while its turn waits: the next one waits on,
// does not ask again, and the old button works; what waited is there.
func TestSpendTakeover(t *testing.T) {
	for _, how := range []string{"killed", "drained"} {
		t.Run(how, func(t *testing.T) {
			spending(t, session.Spend{Unit: session.UnitTokens, Chat: 100}, session.Rate{}, task{calls: 1, cost: 60, actual: 60}, func(b *bank) {
				b.says(0, "ann", lobby, "task")
				b.says(0, "ann", lobby, "the second")
				asked := b.sent(lobby)
				b.says(0, "bob", lobby, "the third")
				b.parked(lobby, "this chat's budget")
				b.open()
				if how == "killed" {
					b.kill(0)
				} else {
					b.ends[0]()
				}
				time.Sleep(8 * time.Second)
				b.parked(lobby, "this chat's budget")
				if l := b.lane(lobby); l.Nonce != "life2" {
					t.Errorf("held by %s; want life2", l.Nonce)
				}
				b.wants(lobby) // not asked again
				b.press(1, "root", lobby, more(t, asked))
				b.wants(lobby, "It goes on", "done", "80 %", "done")
			})
		})
	}
}

// A grant is heard at the process whose turn waits, whichever heard the press; if
// that word is lost, it asks by itself.
func TestSpendWakesReplicas(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		spending(t, session.Spend{Unit: session.UnitTokens, Day: 100}, session.Rate{}, task{calls: 1, cost: 60, actual: 60}, func(b *bank) {
			b.open()
			b.says(1, "ann", lobby, "task")
			b.says(1, "bob", den, "task")
			asked := b.sent(den)
			b.bus.mu.Lock()
			b.bus.deaf = deaf
			b.bus.mu.Unlock()
			b.press(0, "root", lobby, more(t, asked))
			if open := b.busy(den); open != deaf {
				t.Errorf("deaf %v: open %v", deaf, open)
			}
			time.Sleep(31 * time.Second)
			if b.busy(den) {
				t.Errorf("deaf %v: it waits still", deaf)
			}
		})
	}
}

// 200 turns in three processes, whose requests cost twice what was set aside:
// what is over the limit is at most one call for each.
func TestSpendOfThree(t *testing.T) {
	const limit, cost = 20_000, 100
	k := task{calls: 5, cost: cost, actual: 2 * cost, takes: time.Second}
	spending(t, session.Spend{Unit: session.UnitTokens, Day: limit}, session.Rate{}, k, func(b *bank) {
		b.open()
		b.open()
		for i := range 200 {
			chat := session.ChatID(fmt.Sprint("chat", i))
			b.says(i%3, "ann", chat, "task")
		}
		time.Sleep(time.Minute)
		b.mu.Lock()
		defer b.mu.Unlock()
		over := b.spent - limit
		if over < 0 || over > 200*cost {
			t.Errorf("spent %d of %d in %d calls; want at most one call over for each turn", b.spent, limit, b.calls)
		}
		waiting := 0
		for i := range 200 {
			if b.busy(session.ChatID(fmt.Sprint("chat", i))) {
				waiting++
			}
		}
		if waiting < 100 {
			t.Errorf("%d turns wait; want most", waiting)
		}
		t.Logf("spent %d of %d in %d calls; %d turns wait", b.spent, limit, b.calls, waiting)
	})
}

// A question beside the task is paid for, and refused in words when the budget is
// used up; nothing waits for it.
func TestSpendAside(t *testing.T) {
	spending(t, session.Spend{Unit: session.UnitTokens, Chat: 100}, session.Rate{}, task{calls: 1, cost: 60, actual: 60}, func(b *bank) {
		b.says(0, "ann", lobby, "/btw how far?")
		b.wants(lobby, "aside")
		b.says(0, "ann", lobby, "/btw and now?")
		b.wants(lobby, "A budget is used up")
	})
}

// What was set aside and not used is there for the next request.
func TestSpendSettles(t *testing.T) {
	spending(t, session.Spend{Unit: session.UnitTokens, Chat: 100}, session.Rate{}, task{calls: 1, cost: 50, actual: 10}, func(b *bank) {
		for range 3 {
			b.says(0, "ann", lobby, "task")
			b.wants(lobby, "done")
		}
		b.says(0, "ann", lobby, "task")
		b.wants(lobby, "80 %", "done") // 30 and 50
	})
}

// With a limit that is lower than what one request is thought to cost, a whole
// budget lets one through all the same.
func TestSpendLowLimit(t *testing.T) {
	spending(t, session.Spend{Unit: session.UnitTokens, Turn: 10}, session.Rate{}, task{calls: 1, cost: 5000, actual: 5000}, func(b *bank) {
		b.says(0, "ann", lobby, "task")
		b.wants(lobby, "80 %", "done")
	})
}

// Over the rate a turn does not begin: its message is shown as waiting, nothing of
// it is lost or out of order, and it begins when the minute has room.
func TestRateOfTurns(t *testing.T) {
	spending(t, session.Spend{}, session.Rate{PersonTurns: 2}, task{calls: 1}, func(b *bank) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		b.says(0, "ann", lobby, "one")
		b.says(0, "ann", den, "two")
		b.wants(lobby, "done")
		three := b.says(0, "ann", lobby, "three")
		four := b.says(0, "ann", lobby, "four")
		b.wants(lobby)
		if l := b.lane(lobby); l.Turn != 0 || len(l.Slot) != 2 || l.Nonce == "" {
			t.Errorf("turn %d, %d waiting, held by %q; want both to wait under a lease", l.Turn, len(l.Slot), l.Nonce)
		}
		for _, m := range []session.Message{three, four} {
			if got := b.out.of(m); got != session.FateQueued {
				t.Errorf("%s is shown as %s; want queued", m.Text, got)
			}
		}
		b.says(0, "bob", lobby, "/status")
		b.wants(lobby, "queued 2")
		var reads atomic.Int64
		b.faults(func(_ string, when storetest.When) storetest.Fault {
			if when == storetest.Before {
				reads.Add(1)
			}
			return storetest.None
		})
		time.Sleep(50 * time.Second)
		if quiet := int64(4 * 50); reads.Load() > quiet { // two sweeps a second, and renewals
			t.Errorf("%d store calls while it waits; want at most %d", reads.Load(), quiet)
		}
		b.wants(lobby)
		time.Sleep(11 * time.Second)
		b.wants(lobby, "done") // one turn: two steers of one author
		if got := b.out.of(four); got != session.FateAnswered {
			t.Errorf("four is %s", got)
		}
	})
}

// A stop while a turn waits for its minute holds it, and the lease is given up.
func TestRateStop(t *testing.T) {
	spending(t, session.Spend{}, session.Rate{ChatTurns: 1}, task{calls: 1}, func(b *bank) {
		b.says(0, "ann", lobby, "one")
		b.says(0, "ann", lobby, "two")
		b.says(0, "ann", lobby, "/stop")
		if l := b.lane(lobby); l.Nonce != "" || len(l.Slot) != 1 || !l.Slot[0].Held {
			t.Errorf("held by %q, slot %+v; want what waited held and no lease", l.Nonce, l.Slot)
		}
		time.Sleep(2 * time.Minute)
		b.wants(lobby, "done", "Nothing is running. Held:")
	})
}

// A process that drains or dies while a turn waits for its minute leaves it to the
// next.
func TestRateTakeover(t *testing.T) {
	for _, how := range []string{"killed", "drained"} {
		t.Run(how, func(t *testing.T) { rateTakeover(t, how) })
	}
}

func rateTakeover(t *testing.T, how string) {
	spending(t, session.Spend{}, session.Rate{ChatTurns: 1}, task{calls: 1}, func(b *bank) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		b.says(0, "ann", lobby, "one")
		b.says(0, "ann", lobby, "two")
		b.says(0, "bob", den, "one")
		b.says(0, "bob", den, "two")
		b.open()
		if how == "killed" {
			b.kill(0)
		} else {
			b.ends[0]()
			if l := b.lane(lobby); l.Nonce != "" {
				t.Errorf("the lease is held by %s; want it given up", l.Nonce)
			}
		}
		time.Sleep(5 * time.Second)
		b.wants(lobby, "done")
		time.Sleep(time.Minute)
		b.wants(lobby, "done")
		b.wants(den, "done", "done")
	})
}

// Requests over the rate wait for the next minute, and nobody is asked.
func TestRateOfCalls(t *testing.T) {
	spending(t, session.Spend{}, session.Rate{ChatCalls: 2}, task{calls: 5}, func(b *bank) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		b.says(0, "ann", lobby, "task")
		b.parked(lobby, "Too many model requests")
		time.Sleep(time.Minute + time.Second)
		b.parked(lobby, "Too many model requests")
		b.wants(lobby)
		time.Sleep(time.Minute)
		b.wants(lobby, "done")
	})
}

// Where nothing is limited no store is asked.
func TestSpendNothing(t *testing.T) {
	spending(t, session.Spend{}, session.Rate{}, task{calls: 3, cost: 1 << 40, actual: 1}, func(b *bank) {
		b.faults(func(point string, _ storetest.When) storetest.Fault {
			if point == "reserve" || point == "spent" || point == "grant" {
				t.Errorf("%s was called", point)
			}
			return storetest.None
		})
		b.says(0, "ann", lobby, "task")
		b.wants(lobby, "done")
	})
}

// A reply that is lost takes nothing twice: the limit is reached when it should be.
func TestSpendLostReplies(t *testing.T) {
	spending(t, session.Spend{Unit: session.UnitTokens, Day: 100}, session.Rate{}, task{calls: 1, cost: 50, actual: -1}, func(b *bank) {
		var mu sync.Mutex
		lost := false
		b.faults(func(point string, when storetest.When) storetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if when == storetest.After && point == "reserve" {
				lost = !lost
				if lost {
					return storetest.LostReply
				}
			}
			return storetest.None
		})
		for range 2 {
			b.says(0, "ann", lobby, "task")
			time.Sleep(time.Second)
		}
		b.wants(lobby, "done", "80 %", "done")
		b.says(0, "ann", lobby, "task")
		time.Sleep(time.Second)
		b.wants(lobby, "Used up")
	})
}

// What buttons of others say is no fault of the gateway.
func TestSpendButtons(t *testing.T) {
	spending(t, session.Spend{}, session.Rate{}, task{calls: 1}, func(b *bank) {
		for _, data := range []string{"more:", "more:17", "more:d.1.2", "more:x.1.2.3", "more:d.-1.2.3", "more:d.1.2.zzzzzzzzzzzzzz", "more:d.1.2.0", "more:dabc.1.2.3"} {
			b.press(0, "root", lobby, data)
			b.wants(lobby, "out of date")
			if spent, err := b.hubs[0].Spent(t.Context(), session.Message{Key: key(lobby), Button: data}); !spent && data != "more:dabc.1.2.3" || err != nil {
				t.Errorf("%s: spent %v, %v", data, spent, err)
			}
		}
	})
}
