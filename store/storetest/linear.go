package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"coxswain/session"
)

// Histories has several processes use one store at once, with replies that are
// lost and leases that run out, and asks whether what they were answered is what
// one store could have answered that does one thing after another: first the
// lease of a session, a register with epoch and nonce, then each message, which
// is accepted once and goes into one turn or is dropped.
//
// A lease runs out by the clock of the store, which now must be: a call sees some
// moment between its beginning and its end, and what may have run out at that
// moment may be taken or not. So nobody waits for anything, and ttl decides how
// many leases run out.
func Histories(t *testing.T, now func() time.Time, ttl time.Duration, open func(t *testing.T) session.Store) {
	t.Helper()
	met := map[string]int{}
	for i := range histories {
		t.Run("leases", func(t *testing.T) {
			if wrong := leaseHistory(t.Context(), open(t), now, ttl, uint64(i), met); wrong != "" {
				t.Fatal(wrong)
			}
		})
		t.Run("messages", func(t *testing.T) {
			if wrong := messageHistory(t.Context(), open(t), now, uint64(i), met); wrong != "" {
				t.Fatal(wrong)
			}
		})
	}
	for _, what := range histMust {
		if met[what] == 0 && !t.Failed() {
			t.Errorf("never met: %s", what)
		}
	}
	var words []string
	for _, what := range slices.Sorted(maps.Keys(met)) {
		words = append(words, fmt.Sprintf("%s %d", what, met[what]))
	}
	t.Log(strings.Join(words, ", "))
}

// histMust is what some history must have: a comparison that did not happen proves
// nothing.
var histMust = strings.Split("claim ok,claim held,claim lost,taken over,renew ok,renew fenced,begin ok,begin held,begin stale,begin lost,"+
	"commit ok,commit fenced,commit lost,release ok,release fenced,accept ok,accept dup,accept lost,drop done,drop late,drop lost,take ok,take no,take lost", ",")

const (
	histories   = 12
	histClients = 6
	histCalls   = 40 // of each client
	histLost    = 10 // one call in so many loses its reply, another is not done at all
	histTime    = 20 * time.Second
)

// A recorder records what processes asked and were answered.
type recorder struct {
	now func() time.Time
	met map[string]int

	mu  sync.Mutex
	ops []porcupine.Operation
}

// A histAsk is what a call was, with the moments between which it was done.
type histAsk struct {
	call     any
	from, to int64 // ms, by the store's clock
}

// lost is the answer of a call whose reply did not come: it was done or not.
type lost struct{}

// do makes one call and records it. ask gives the answer, comparable, and a word
// for it.
func (r *recorder) do(client int, name string, call any, ask func() (answer any, word string, err error)) (got any) {
	from, begun := r.now(), time.Now()
	got, word, err := ask()
	if err != nil {
		got, word = lost{}, "lost"
	}
	took, to := time.Since(begun), r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met[name+" "+word]++
	at := begun.Sub(histBegan).Nanoseconds()
	r.ops = append(r.ops, porcupine.Operation{
		ClientId: client, Input: histAsk{call, from.UnixMilli(), to.UnixMilli()}, Call: at, Output: got, Return: at + took.Nanoseconds(),
	})
	return got
}

var histBegan = time.Now()

// losing is a store as a process sees it that loses replies: some calls are done
// and not answered, some not done.
func losing(st session.Store, rng *rand.Rand) session.Store {
	return &Faulty{Store: st, Hook: func(_ string, when When) Fault {
		switch n := rng.IntN(histLost); {
		case when == Before && n == 0:
			return LostReply
		case when == Before && n == 1:
			return Down
		}
		return None
	}}
}

// clients runs f as each of the processes and waits for all.
func clients(seed uint64, f func(i int, rng *rand.Rand)) {
	var wg sync.WaitGroup
	for i := range histClients {
		wg.Go(func() { f(i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	wg.Wait()
}

// judge says what is wrong with a history, "" if nothing.
func (r *recorder) judge(m porcupine.NondeterministicModel) string {
	model := m.ToModel()
	switch porcupine.CheckOperationsTimeout(model, r.ops, histTime) {
	case porcupine.Ok:
		return ""
	case porcupine.Unknown:
		return "too long to judge"
	}
	var b strings.Builder
	b.WriteString("no order of these calls gives these answers:")
	slices.SortFunc(r.ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range r.ops {
		in := o.Input.(histAsk)
		fmt.Fprintf(&b, "\n%d: %d-%d µs, %d-%d ms: %T%+v: %T%+v", o.ClientId, o.Call/1000, o.Return/1000, in.from, in.to, in.call, in.call, o.Output, o.Output)
	}
	return b.String()
}

// An outcome is what a call may answer in a state, and the state behind it.
type outcome struct{ answer, state any }

// possible gives the states behind a call that was answered so: of those that it
// may have led to, and if its reply was lost also the one before.
func possible(before, answer any, all []outcome) (states []any) {
	_, unknown := answer.(lost)
	if unknown {
		states = append(states, before)
	}
	for _, o := range all {
		if unknown || o.answer == answer {
			states = append(states, o.state)
		}
	}
	return states
}

// refusal is a store's refusal as an answer; what is none is a reply that was lost.
func refusal(err error) (answer any, word string, lost error) {
	for word, refusal := range map[string]error{"held": session.ErrHeld, "fenced": session.ErrFenced, "stale": session.ErrStale} {
		if errors.Is(err, refusal) {
			return no(word), word, nil
		}
	}
	return nil, "", err
}

// no is a refusal.
type no string
