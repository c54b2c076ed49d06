package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"coxswain/session"
)

// What a journal keeps, whichever is reached first (I12).
const (
	journalFor   = 60 * time.Second
	journalCalls = 10_000
	journalBytes = 32 << 20
)

// A journal holds what this process was told is stored, for a minute, and
// stores it again where a server takes over that may not have it: replication
// is asynchronous, and appendfsync everysec may lose a second (F17, F19).
// Dedupe marks make that free: what is there answers that it is.
//
// It brings messages back, and what commands posted; no step of a turn. Of a
// message whose life lies partly in the lost window:
//
//   - Nothing of it survived: it is a new message, with a new ticket, and runs.
//     If its turn had begun, calls of that turn that had run may run again.
//   - Its accept survived, the begin of its turn did not: it waits, and its
//     turn begins again. Likewise a steer whose drain was lost goes in again.
//   - The begin survived, later steps did not: the turn is taken over where its
//     rows end. A call in the last row is "result unknown" and not run again;
//     one whose row was lost too is the model's to ask for once more.
//   - The end was lost, but the answer was sent: it is given a second time.
//   - Its fate was final, by /cancel or /stop, and that was lost with its
//     accept: it is a new message and runs. With its accept kept, it waits.
//
// So a step in the window may repeat; a message is not lost. A runner of before
// has a lease that is not there, or is another's, and writes nothing (F20). With
// Wait none of this arises, short of losing the primary and all replicas that
// confirmed.
//
// /stop, /new and edits are not kept: done late they would meet another turn.
// A refused message (AcceptFull) is not either: its sender was told so.
type journal struct {
	keepFor time.Duration // set before use

	// busy is held while entries are stored again, one server after another.
	busy chan struct{}

	mu        sync.Mutex
	calls     []journalCall // oldest first
	bytes     int
	histories map[string]bool // of primaries that have all that is kept
	gen       uint64          // grows when entries are about to be stored again
	owed      map[string]bool // partitions whose entries must be, at the next sweep
	owners    map[string]string
}

// A journalCall is a script as it was sent.
type journalCall struct {
	at        time.Time
	lane      session.Key
	script    script
	partition string
	args      args
	bytes     int
}

func newJournal() *journal {
	return &journal{
		keepFor: journalFor,
		busy:    make(chan struct{}, 1), histories: map[string]bool{}, owed: map[string]bool{}, owners: map[string]string{},
	}
}

// now gives the generation a call begins in, which keep wants back.
func (j *journal) now() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.gen
}

// keep notes a call that succeeded. Where entries were stored again since it
// began, it was not among them and is owed.
func (j *journal) keep(gen uint64, c journalCall) {
	for _, v := range c.args {
		switch v := v.(type) {
		case string:
			c.bytes += len(v)
		case []byte:
			c.bytes += len(v)
		}
	}
	c.at = time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls, j.bytes = append(j.calls, c), j.bytes+c.bytes
	if gen != j.gen {
		j.owed[c.partition] = true
	}
	j.trimLocked()
}

func (j *journal) trimLocked() {
	n := 0
	for n < len(j.calls) {
		c := &j.calls[n]
		if time.Since(c.at) < j.keepFor && len(j.calls)-n <= journalCalls && j.bytes <= journalBytes {
			break
		}
		j.bytes -= c.bytes
		*c = journalCall{}
		n++
	}
	j.calls = j.calls[n:]
	if len(j.calls) == 0 {
		j.calls = nil // the array may be large
	}
}

// forget drops a lane that was deleted: it must not come back.
func (j *journal) forget(lane session.Key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := j.calls[:0]
	for _, c := range j.calls {
		if c.lane == lane {
			j.bytes -= c.bytes
		} else {
			kept = append(kept, c)
		}
	}
	clear(j.calls[len(kept):])
	j.calls = kept
}

// pick takes what is kept, of some partitions (nil: of all), to be stored again.
func (j *journal) pick(partitions map[string]bool) []journalCall {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gen++
	j.trimLocked()
	var picked []journalCall
	for _, c := range j.calls {
		if partitions == nil || partitions[c.partition] {
			picked = append(picked, c)
		}
	}
	return picked
}

// knows reports whether a history was seen; the very first is known at once,
// and so is any while nothing is kept.
func (j *journal) knows(history string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.histories) > 256 { // one more with each failover
		clear(j.histories)
	}
	if len(j.calls) == 0 {
		j.gen++
		j.histories[history] = true
	}
	return j.histories[history]
}

func (j *journal) owe(partition string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.owed[partition] = true
}

// debts takes the partitions that are owed.
func (j *journal) debts() map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trimLocked()
	owed := j.owed
	if len(owed) > 0 {
		j.owed = map[string]bool{}
	}
	return owed
}

// lock waits for its turn to store entries again.
func (j *journal) lock(ctx context.Context) error {
	select {
	case j.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (j *journal) unlock() { <-j.busy }

// connected looks at each new connection before it is used. A promoted replica
// begins a history of its own (master_replid), and so does a server that
// started anew: what is kept goes there first, on this very connection, so
// that nothing of this process comes before it.
func (s *Store) connected(ctx context.Context, cn *redis.Conn) error {
	ctx = context.WithValue(ctx, waits{}, nil) // the call that dials waits later, for its own
	info, err := cn.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	role, history := infoField(info, "role"), infoField(info, "master_replid")
	switch {
	case role == "": // a Sentinel
		return nil
	case role != "master" && s.cluster: // MOVED says where to go; a sweep sees it promoted
		return nil
	case role != "master":
		return errors.New(wordsReplica)
	}
	if s.journal.knows(history) {
		return nil
	}
	if err := s.journal.lock(ctx); err != nil {
		return err
	}
	defer s.journal.unlock()
	if s.journal.knows(history) { // another connection was first
		return nil
	}
	calls := s.journal.pick(nil)
	if err := s.storeOn(ctx, cn, calls); err != nil {
		return fmt.Errorf("store again after a failover: %w", err)
	}
	s.journal.mu.Lock()
	s.journal.histories[history] = true
	s.journal.mu.Unlock()
	s.log.WarnContext(ctx, "redis has another primary, or started anew: the last messages were stored again", "count", len(calls))
	return nil
}

// journalBatch is how many calls go in one round trip.
const journalBatch = 200

// storeOn sends calls on one connection. What that server does not take is
// owed: a sweep tries it where it belongs.
func (s *Store) storeOn(ctx context.Context, cn *redis.Conn, calls []journalCall) error {
	for _, sc := range []script{scriptAccept, scriptPost} {
		if err := sc.Load(ctx, cn).Err(); err != nil {
			return err
		}
	}
	for len(calls) > 0 {
		batch := calls[:min(len(calls), journalBatch)]
		calls = calls[len(batch):]
		pipe := cn.Pipeline()
		sent := make([]*redis.Cmd, len(batch))
		for i, c := range batch {
			sent[i] = c.script.EvalSha(ctx, pipe, s.whole([]string{c.partition}), c.args...)
		}
		var answered redis.Error
		if _, err := pipe.Exec(ctx); err != nil && !errors.As(err, &answered) {
			return err
		}
		for i, cmd := range sent {
			if cmd.Err() != nil {
				s.journal.owe(batch[i].partition)
			}
		}
	}
	return nil
}

// sweepJournal stores again what is owed. In a cluster it also looks whether a
// partition has another primary: a replica may have been connected to before.
func (s *Store) sweepJournal(ctx context.Context) error {
	s.oweMoved(ctx)
	owed := s.journal.debts()
	if len(owed) == 0 {
		return nil
	}
	if err := s.journal.lock(ctx); err != nil {
		return err
	}
	defer s.journal.unlock()
	for calls := s.journal.pick(owed); len(calls) > 0; {
		batch := calls[:min(len(calls), journalBatch)]
		_, err := s.pipeline(ctx, len(batch), func(i int) (script, []string, args) {
			return batch[i].script, []string{batch[i].partition}, batch[i].args
		})
		if err != nil {
			for p := range owed {
				s.journal.owe(p)
			}
			return fmt.Errorf("store again after a failover: %w", err)
		}
		calls = calls[len(batch):]
	}
	return nil
}

func (s *Store) oweMoved(ctx context.Context) {
	c, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return
	}
	for i := range s.partitions {
		p := s.partition(i)
		node, err := c.MasterForKey(ctx, p) // from the client's map: no command
		if err != nil {
			return
		}
		s.journal.own(p, node.Options().Addr)
	}
}

// own notes which server has a partition; another than before is owed its entries.
func (j *journal) own(partition, addr string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if was := j.owners[partition]; was != "" && was != addr {
		j.owed[partition] = true
	}
	j.owners[partition] = addr
}

// infoField reads one line of INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
