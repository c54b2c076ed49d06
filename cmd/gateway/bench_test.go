//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coxswain/adapters/web"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/store"
)

// The speeds the gateway promises. Each benchmark does its work once, whatever
// b.N is, and reports its own figures; beside what waits for the disk stands
// "commit-ms", one durable commit of the same store measured in the same run.
// What is said of a process is said of the built one, with Telegram and the
// model played by this process.

func bothStores(b *testing.B, f func(b *testing.B, r *benchRig)) {
	for _, kind := range []string{"sqlite", "redis"} {
		b.Run(kind, func(b *testing.B) { f(b, newBenchRig(b, kind)) })
	}
}

// BenchmarkUpdateToRequest is from the answer to a poll that carries a message
// to the model request about it, in an idle session. Promised: p50 at most
// four commits and, where one takes 0.3 ms, 1.2 ms; p95 at most 3 ms.
func BenchmarkUpdateToRequest(b *testing.B) {
	bothStores(b, func(b *testing.B, r *benchRig) {
		r.start()
		const n, warm = 300, 60
		chats := chatIDs(60) // each is spoken to every two seconds, as Telegram's pace asks
		var took, raw []time.Duration
		for i := range n + warm {
			mark := r.say(i, chats[i%len(chats)])[0]
			r.await(b, sent, mark, 1)
			if i < warm {
				continue
			}
			took = append(took, r.when(asked, mark).Sub(r.when(served, mark)))
			raw = append(raw, r.commit())
		}
		commit := percentile(raw, 50)
		report(b, ms(percentile(took, 50)), "p50-ms")
		report(b, ms(percentile(took, 95)), "p95-ms")
		report(b, ms(commit), "commit-ms")
		report(b, ms(percentile(raw, 95)), "commit-p95-ms")
		report(b, float64(percentile(took, 50))/float64(commit), "p50/commit")
	})
}

// BenchmarkTurnAt is what a turn costs beside the model, at a session's tenth
// turn and at its 400th: from the accept to the model request, and from the
// answer to the stored final. Promised: the 400th takes at most 1.2 times as
// long and writes as much. It runs the parts in this process, and counts the
// writes of a turn and those of them that wait for the disk.
func BenchmarkTurnAt(b *testing.B) {
	bothStores(b, func(b *testing.B, r *benchRig) {
		const sessions, window = 4, 10
		var mark string
		m := &meter{on: func(what string, _ session.Key) { r.note(what+" ", mark, time.Now()) }}
		p := r.inProcess(m)
		took, wrote := map[int][]time.Duration{}, map[int][]time.Duration{}
		turns, synced, all := 0, 0, 0
		for s := range sessions {
			key := session.Key{Platform: web.Name, Chat: session.ChatID(fmt.Sprint("bench", s))}
			for i := 1; i <= 400+window/2; i++ {
				at := 0
				for _, turn := range []int{10, 400} {
					if i > turn-window/2 && i <= turn+window/2 {
						at = turn
					}
				}
				mark = fmt.Sprintf("bench:%d:%d", s, i)
				before := r.written()
				m.take()
				r.deliver(p, key, i, mark)
				r.await(b, "outdone ", mark, 1)
				if at == 0 {
					continue
				}
				took[at] = append(took[at], r.when(asked, mark).Sub(r.when("accept ", mark))+r.when("end ", mark).Sub(r.when(answered, mark)))
				if n := r.written() - before; n >= 0 { // else the log began anew
					wrote[at] = append(wrote[at], time.Duration(n))
				}
				a, c := m.take()
				turns, synced, all = turns+1, synced+a, all+c
			}
		}
		for _, at := range []int{10, 400} {
			report(b, ms(percentile(took[at], 50)), fmt.Sprintf("p50-ms-at-%d", at))
			report(b, float64(percentile(wrote[at], 50)), fmt.Sprintf("B-written-at-%d", at))
		}
		report(b, float64(percentile(took[400], 50))/float64(percentile(took[10], 50)), "ratio")
		report(b, float64(synced)/float64(turns), "synced-writes/turn")
		report(b, float64(all)/float64(turns), "writes/turn")
		report(b, ms(r.commits(100)), "commit-ms")
	})
}

// inProcess runs the joined parts here, with m between them and their store.
func (r *benchRig) inProcess(m *meter) *parts {
	r.b.Helper()
	c, err := loadConfig(r.config)
	if err != nil {
		r.b.Fatal(err)
	}
	base, kill := benchContext(r.b)
	p, err := build(base, c, slog.New(slog.DiscardHandler))
	if err != nil {
		r.b.Fatal(err)
	}
	m.Store = p.store
	p.hub.Store, p.outbox.Store = m, m
	over := make(chan error, 1)
	ctx, cancel := benchContext(r.b)
	go func() { over <- p.serve(ctx, base, io.Discard) }()
	r.b.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			r.b.Error(err)
		}
		kill()
	})
	r.await(r.b, "poll ", "", 1)
	return p
}

func (r *benchRig) deliver(p *parts, key session.Key, n int, mark string) {
	r.b.Helper()
	err := p.hub.Deliver(r.b.Context(), session.Message{
		Key: key, ID: session.MessageID(strconv.Itoa(n)), From: session.Person{ID: "web", Name: "you"}, Private: true, Addressed: true,
		Dedupe: "m:" + mark, Text: "please use the March data, " + mark + ".", Received: time.Now(),
	})
	if err != nil {
		r.b.Fatal(err)
	}
}

// written is how many bytes the store has added to its log.
func (r *benchRig) written() int64 {
	r.b.Helper()
	if r.redis != nil {
		for line := range strings.Lines(r.redis.Do("INFO", "persistence").(string)) {
			if v, ok := strings.CutPrefix(line, "aof_current_size:"); ok {
				n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				if err != nil {
					r.b.Fatal(err)
				}
				return n
			}
		}
		r.b.Fatal("redis does not say how large its file is")
	}
	// mxFrame of the log's index: the last valid page (SQLite, WAL-index header).
	index, err := os.ReadFile(filepath.Join(r.dir, "data", "gateway.db-shm"))
	if err != nil || len(index) < 20 {
		r.b.Fatalf("log index: %d bytes, %v", len(index), err)
	}
	return int64(binary.NativeEndian.Uint32(index[16:])) * (4096 + 24)
}

// BenchmarkManyChats is 200 chats that write at one instant to a model that
// answers at once, three times. Promised: 400 turns a second on the model's
// side, 2 ms of the gateway's CPU for a plain turn with all that belongs to it.
// On Redis the commands of a turn are counted too: in the crowd, where answers
// wait for Telegram's pace, and alone (promised: four beyond the accept).
func BenchmarkManyChats(b *testing.B) {
	bothStores(b, func(b *testing.B, r *benchRig) {
		r.start()
		const many, rounds = 200, 3
		chats := chatIDs(many)
		r.say(0, chats[:20]...)
		r.await(b, sent, "", 20) // warm
		r.turnsAlone(chats)
		calls := r.redisCalls()
		before, began := r.usage(), time.Now()
		had := r.happened(answered)
		var rates []time.Duration
		var busy time.Duration // CPU until the model has answered all
		for round := range rounds {
			cpu := r.usage().cpu
			marks := r.say(1+round, chats...)
			r.await(b, answered, "", had+many*(1+round))
			busy += r.usage().cpu - cpu
			first, last := r.when(served, marks[0]), time.Time{}
			for _, m := range marks {
				if at := r.when(answered, m); at.After(last) {
					last = at
				}
			}
			rates = append(rates, last.Sub(first))
			r.await(b, sent, "", had+many*(1+round))
		}
		after, took := r.usage(), time.Since(began)
		if r.redis != nil {
			calls = r.redisCalls() - calls
			report(b, (float64(calls)-r.idleCommands()*took.Seconds())/(many*rounds), "commands/turn")
		}
		report(b, many/percentile(rates, 50).Seconds(), "turns/s")
		report(b, ms(after.cpu-before.cpu)/(many*rounds), "cpu-ms/turn")
		report(b, ms(busy)/(many*rounds), "cpu-ms/turn-to-answer")
		report(b, ms(r.commits(100)), "commit-ms")
	})
}

// turnsAlone is what a turn costs while no other runs: CPU, and commands sent to
// Redis.
func (r *benchRig) turnsAlone(chats []int64) {
	calls, cpu, began := r.redisCalls(), r.usage().cpu, time.Now()
	const n = 60
	for i := range n {
		r.await(r.b, sent, r.say(100, chats[i])[0], 1)
		quiet(r.b.Context(), 40*time.Millisecond) // Telegram's pace: a part that waits for it is taken by a command of its own
	}
	quiet(r.b.Context(), 100*time.Millisecond) // the last send is noted
	took := time.Since(began)
	report(r.b, ms(r.usage().cpu-cpu)/n, "cpu-ms/turn-alone")
	if r.redis != nil {
		calls = r.redisCalls() - calls
		report(r.b, (float64(calls)-r.idleCommands()*took.Seconds())/n, "commands/turn-alone")
	}
}

// idleCommands is how many commands a second the gateway sends by itself.
func (r *benchRig) idleCommands() float64 {
	const seconds = 3
	calls := r.redisCalls()
	quiet(r.b.Context(), seconds*time.Second)
	return float64(r.redisCalls()-calls) / seconds
}

// BenchmarkMemory is the memory of the process: idle (promised: under 30 MB),
// after 200 chats have written five times each (under 45 MB), and what 10,000
// stored idle sessions add (under 1 kB each, and no goroutine).
func BenchmarkMemory(b *testing.B) {
	b.Run("traffic", func(b *testing.B) {
		r := newBenchRig(b, "sqlite")
		r.start()
		quiet(b.Context(), 2*time.Second)
		report(b, r.usage().rss, "idle-MB")
		const many = 200
		top := 0.0
		for round := range 5 {
			r.say(round, chatIDs(many)...)
			r.await(b, sent, "", many*(1+round))
			top = max(top, r.usage().rss)
		}
		report(b, top, "after-MB")
		report(b, r.usage().peak, "peak-MB")
	})
	b.Run("stored", func(b *testing.B) {
		const many = 10_000
		rss, routines := [2]float64{}, [2]int{}
		for i, n := range []int{0, many} {
			r := newBenchRig(b, "sqlite")
			seedSessions(b, r.url, n)
			r.start()
			quiet(b.Context(), 3*time.Second)
			rss[i] = r.usage().rss
			r.end(syscall.SIGQUIT)
			for _, g := range strings.Split(r.stderr.String(), "\n\n") {
				if strings.HasPrefix(g, "goroutine ") && strings.Contains(g, "coxswain/") { // those of HTTP connections come and go
					routines[i]++
				}
			}
			if routines[i] == 0 {
				b.Fatalf("SIGQUIT printed no goroutine:\n%s", r.stderr.String())
			}
		}
		report(b, (rss[1]-rss[0])*1e6/many, "B/session")
		report(b, float64(routines[1]-routines[0]), "goroutines-added")
		report(b, float64(routines[0]), "goroutines")
		report(b, rss[1], "rss-MB")
	})
}

// seedSessions stores n sessions that had one turn each, 64 at a time.
func seedSessions(b *testing.B, url string, n int) {
	b.Helper()
	st, err := store.Open(b.Context(), url, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	todo := make(chan int)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range todo {
				if err := seedSession(b, st, i); err != nil {
					b.Errorf("seed session %d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	wg.Wait()
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
}

func seedSession(b *testing.B, st session.Store, i int) error {
	ctx, key := b.Context(), session.Key{Platform: "telegram", Chat: session.ChatID(strconv.Itoa(100_000 + i))}
	a, err := st.Accept(ctx, session.Accept{Key: key, Dedupe: "m:1", Want: steer.Steer, Author: session.UserID(key.Chat), Msg: "1",
		Data: []byte(`{"from":{"id":"1"},"parts":[{"id":"1","text":"please use the March data"}]}`), Title: "March", Fate: session.FateAccepted})
	if err != nil {
		return err
	}
	e := a.Lane.Slot[0]
	g, err := st.Begin(ctx, session.Begin{Op: "b", Key: key, Nonce: "seed", TTL: time.Second, Gen: a.Lane.Gen, Seq: a.Lane.Seq, Owner: e.Author,
		Phase: steer.PhasePreparing, Take: []session.Take{{Ticket: e.Ticket, Version: e.Version}}, Rows: []session.Row{{Type: session.RowUser, Data: e.Data}}})
	if err != nil {
		return err
	}
	_, err = st.Commit(ctx, g.Lease, session.Commit{Op: "c", Seq: g.Lane.Seq, End: true,
		Rows: []session.Row{{Type: session.RowAssistant, Data: []byte(`{"text":"Done.","end":"answered"}`)}}})
	return err
}

// BenchmarkFirstPoll is from the start of the process to its first poll.
// Promised: 50 ms, with the file in the cache.
func BenchmarkFirstPoll(b *testing.B) {
	r := newBenchRig(b, "sqlite")
	var took []time.Duration
	for range 41 {
		began := time.Now()
		r.start()
		took = append(took, r.poll.Sub(began))
		r.end(syscall.SIGTERM)
	}
	took = took[1:] // the first start makes the store
	report(b, ms(percentile(took, 50)), "p50-ms")
	report(b, ms(percentile(took, 95)), "p95-ms")
}

// BenchmarkStop is from the answer to a poll that carries /stop to the end of
// the last process of the terminal's tree. Promised: 50 ms.
func BenchmarkStop(b *testing.B) {
	r := newBenchRig(b, "sqlite")
	pids := filepath.Join(r.dir, "pids")
	r.model.command = "sleep 1000 & echo $! >>" + pids + "; sh -c 'sleep 1000 & echo $! $$ >>" + pids + "; wait' & echo $$ >>" + pids + "; wait"
	r.start()
	var took, raw []time.Duration
	for i := range 20 {
		if err := os.Remove(pids); err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
		r.say(i, 1) // chat 1 is the admin's
		var tree []int
		r.poke("the terminal's processes", func() bool {
			data, _ := os.ReadFile(pids)
			tree = tree[:0]
			for _, f := range strings.Fields(string(data)) {
				pid, err := strconv.Atoi(f)
				if err != nil {
					return false
				}
				tree = append(tree, pid)
			}
			return len(tree) == 4 && bytes.HasSuffix(data, []byte("\n"))
		})
		r.forget(served + "/stop")
		r.tg.Update(r.message(1, "/stop"))
		r.await(b, served, "/stop", 1)
		r.poke("their end", func() bool {
			for _, pid := range tree {
				if alive(pid) {
					return false
				}
			}
			return true
		})
		took = append(took, time.Since(r.when(served, "/stop")))
		raw = append(raw, r.commit())
		quiet(b.Context(), 1100*time.Millisecond) // Telegram's pace in one chat
	}
	report(b, ms(percentile(took, 50)), "p50-ms")
	report(b, ms(percentile(took, 95)), "p95-ms")
	report(b, ms(percentile(raw, 50)), "commit-ms")
}

// poke asks every 200 µs until cond holds.
func (r *benchRig) poke(what string, cond func() bool) {
	r.b.Helper()
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	late := time.NewTimer(benchWait)
	defer late.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late.C:
			r.b.Fatalf("waited %v for %s; stderr:\n%s", benchWait, what, r.stderr.String())
		}
	}
}

// alive reports whether a process runs; one that is only not reaped yet does
// not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(stat, ')')
	return i+2 < len(stat) && stat[i+2] != 'Z' && stat[i+2] != 'X'
}

// BenchmarkReceipt is, with 200 turns running, from the answer to a poll that
// carries a message for one of them to the sign on it: the message is accepted
// in between. Promised: p99 at most 50 ms.
func BenchmarkReceipt(b *testing.B) {
	bothStores(b, func(b *testing.B, r *benchRig) {
		r.model.hold = make(chan struct{})
		b.Cleanup(func() { close(r.model.hold) })
		r.start()
		const many = 200
		chats := chatIDs(many)
		r.say(0, chats...)
		r.await(b, asked, "", many)
		quiet(b.Context(), 1500*time.Millisecond) // a follow-up within a second may join
		var took, raw []time.Duration
		one := func(marks []string) {
			r.await(b, reacted, marks[len(marks)-1], 1)
			for _, m := range marks {
				r.await(b, reacted, m, 1)
				took = append(took, r.when(reacted, m).Sub(r.when(served, m)))
			}
		}
		for _, c := range chats {
			one(r.say(1, c))
			raw = append(raw, r.commit())
		}
		report(b, ms(percentile(took, 50)), "p50-ms")
		report(b, ms(percentile(took, 99)), "p99-ms")
		report(b, ms(percentile(raw, 50)), "commit-ms")
		// The same, 50 at one instant.
		took = nil
		for i := 0; i < many; i += 50 {
			one(r.say(2, chats[i:i+50]...))
		}
		report(b, ms(percentile(took, 99)), "p99-ms-50-at-once")
	})
}
