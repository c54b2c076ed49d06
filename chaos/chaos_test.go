//go:build linux

package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/store"
)

var (
	killCount = flag.Int("kills", 20, "how many gateways each run kills at least")
	seedFlag  = flag.Uint64("seed", 1, "what the faults and what people do are drawn by")
	persons   = flag.Int("people", 24, "how many people write")
	longest   = flag.Duration("longest", 45*time.Second, "when the faults of a run end although something was not reached")
	keepAll   = flag.Bool("keep", false, "keep the directory of a run that found nothing, too")
	patched   = flag.String("mutation", "", "break the gateway so first, by the name of a mutation")
)

// TestChaos: three gateways over one Redis, with every fault drawn by a seed. One
// run polls Telegram; in the other it pushes to a webhook behind a balancer.
func TestChaos(t *testing.T) {
	bin := build(t, *patched)
	for _, webhook := range []bool{false, true} {
		t.Run(map[bool]string{false: "polling", true: "webhook"}[webhook], func(t *testing.T) {
			f := newFleet(t, bin, webhook, *seedFlag, *persons)
			if s := f.run(*killCount, *longest, time.Minute); !s.reached {
				t.Errorf("within %s not reached: %d of %d kills, or a kind of fault that is 0 above", *longest, s.kills(), *killCount)
			}
			f.verdict()
		})
	}
}

// build builds the gateway with failpoints, and broken if a mutation is named.
func build(t *testing.T, mutation string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "gateway")
	args := []string{"build", "-tags", "failpoints", "-o", bin}
	if mutation != "" {
		args = append(args, "-overlay", overlay(t, mutation))
	}
	cmd := exec.Command("go", append(args, "./cmd/gateway")...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// run lets people write and the storm blow for at most longest, waits for rest as
// long as it may take, and counts.
func (f *fleet) run(kills int, longest, rests time.Duration) *storm {
	t, began := f.t, time.Now()
	s := newStorm(f)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	if f.webhook {
		wg.Go(func() { f.tg.Push(ctx, http.HandlerFunc(f.balance)) })
	}
	writing, quiet := context.WithCancel(ctx)
	var people sync.WaitGroup
	for _, p := range f.people {
		people.Go(func() { p.live(writing) })
	}
	s.reached = s.blow(kills, longest)
	blown := time.Since(began)
	quiet()
	people.Wait()
	rest := s.settle(rests)
	for _, g := range f.ships {
		g.leaves, g.began = true, time.Now()
		g.signal(syscall.SIGTERM)
	}
	for _, g := range f.ships {
		select {
		case <-g.gone:
		case <-time.After(20 * time.Second):
			f.log.wrong(stuck, 0, "%s did not end within 20 s of SIGTERM", g.name)
		}
		s.bury(g)
	}
	stop()
	wg.Wait()
	r := f.check()
	f.leftovers()
	f.report(s, r, blown, rest)
	return s
}

// report prints what was done and what came of it.
func (f *fleet) report(s *storm, r *reading, blown, rest time.Duration) {
	st, err := r.stats()
	if err != nil {
		f.t.Error(err)
	}
	texts := 0
	for _, p := range f.people {
		texts += len(p.said)
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("%s, seed %d: %d replicas, %d people; faults for %s, at rest %s later", f.name, f.seed, len(f.ships), len(f.people), blown.Round(time.Second), rest.Round(100*time.Millisecond))
	for _, kind := range append([]string{killPoint, killRandom}, faults...) {
		say("  %-44s %d", kind, s.struck[kind])
	}
	say("  %-44s %d", "starts refused, and made again", s.starts)
	say("  texts %d, accepted %d, delivered again %d, pushes %d; slot full %d", texts, st.Accepted, st.Duplicates, f.deliveries, st.Full)
	say("  turns %d (%s), model requests %d, calls %d, result unknown %d, steers %d, dropped %d, held %d",
		st.Turns, ends(r.turns), f.model.requests, f.model.calls, r.unsure, r.steers, st.Dropped, st.InSlot)
	say("  taken over %d, fenced %d, answered from memory %d; parts sent %d, fate unknown %d", st.Recovered, st.Fenced, st.Replayed, st.OutSent, st.OutUnknown)
	for _, side := range sides() {
		say("    %-24s %d of %d", side, s.hits[side], s.tries[side])
		if s.hits[side] == 0 && s.kills() >= 5*len(sides()) {
			f.t.Errorf("%s: %s was never hit", f.name, side)
		}
	}
	n := f.log.tally()
	for _, kind := range counts {
		say("  %-52s %d", kind, n[kind])
	}
	f.t.Log("\n" + b.String())
}

func ends(n map[session.EndKind]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		all = append(all, fmt.Sprintf("%s %d", k, n[k]))
	}
	return strings.Join(all, ", ")
}

// stats reads the counters of the store.
func (r *reading) stats() (session.Stats, error) {
	l := newLook(r.f)
	defer l.close()
	return l.st.Stats(r.f.t.Context())
}

// verdict fails the test for what was found. Then the directory is kept, with the
// store, and the transcript of the first chat concerned is printed.
func (f *fleet) verdict() {
	found := f.log.found
	if len(found) == 0 && !f.t.Failed() && !*keepAll {
		if err := os.RemoveAll(f.dir); err != nil {
			f.t.Error(err)
		}
		return
	}
	for i, v := range found {
		if i == 20 {
			f.t.Errorf("and %d more", len(found)-i)
			break
		}
		f.t.Errorf("%s: chat %d: %s", v.kind, v.chat, v.text)
	}
	if _, err := store.Copy(f.t.Context(), f.redis.URL, "sqlite:"+filepath.Join(f.dir, "store.db"), store.Options{}); err != nil {
		f.t.Errorf("keep the store: %v", err)
	}
	keep := func(name, text string) {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			f.t.Error(err)
		}
	}
	keep("journal", f.transcript(-1))
	if i := slices.IndexFunc(found, func(v violation) bool { return v.chat != 0 }); i >= 0 {
		text := f.transcript(found[i].chat)
		keep("transcript", text)
		f.t.Logf("chat %d, around what was found:\n%s", found[i].chat, excerpt(text, found[i].text))
	}
	f.t.Logf("seed %d; logs, store, journal and transcript are kept in %s", f.seed, f.dir)
}
