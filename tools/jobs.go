package tools

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"
)

// endedKept bounds the ended jobs whose results stay pollable, over all sessions: 256 results
// of 16 KiB are 4 MiB. Older ones answer "unknown"; their end was reported through OnEnd.
const endedKept = 256

// errJobKilled is the cause of a job ended by the job tool, /jobs or /stop.
var errJobKilled = errors.New("tools: job killed")

// A Status is one look at a job.
type Status struct {
	ID      string
	Tool    string
	Person  string // whose turn started it, platform:userid
	Turn    int64
	Started time.Time
	Running bool
	Seen    bool   // its end was polled, or it was killed: nobody needs waking
	Tail    string // last output while Running
	Result  Result // when not Running
}

type jobKey struct{ session, id string }

type job struct {
	run  *Running
	turn int64
	seen bool
}

// Jobs knows the calls that went on after their turn stopped waiting for them, keyed by
// session and job id. All methods may be called from any goroutine; no lock is held while
// OnEnd runs. It lives as long as its Set and is empty after a restart.
type Jobs struct {
	onEnd func(session, id string, turn int64, r Result, polled bool)

	mu    sync.Mutex // taken before a Running's lock, never after
	all   map[jobKey]*job
	ended []jobKey // oldest first
}

func newJobs(onEnd func(string, string, int64, Result, bool)) *Jobs {
	return &Jobs{onEnd: onEnd, all: make(map[jobKey]*job)}
}

// Adopt makes a running call a job. True: the caller must not use r's Result, the job is
// pollable, outlives the turn's context, and its end goes to OnEnd (perhaps before Adopt
// returns). False: the call has ended or is ending, its result is the caller's; or id is
// taken in this session. Adopt first and commit the job row after: the other order would
// lose the result of a call that ends between the two.
func (j *Jobs) Adopt(session, id string, turn int64, r *Running) bool {
	key := jobKey{session, id}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, taken := j.all[key]; taken {
		return false
	}
	// The end waits for j.mu, so it finds the job in the map.
	if !r.adopt(func(res Result) { j.end(key, res) }) {
		return false
	}
	j.all[key] = &job{run: r, turn: turn}
	return true
}

func (j *Jobs) end(key jobKey, res Result) {
	j.mu.Lock()
	jb := j.all[key]
	polled, turn := jb.seen, jb.turn
	j.ended = append(j.ended, key)
	if len(j.ended) > endedKept {
		delete(j.all, j.ended[0])
		j.ended = slices.Delete(j.ended, 0, 1)
	}
	j.mu.Unlock()
	if j.onEnd != nil {
		j.onEnd(key.session, key.id, turn, res, polled)
	}
}

// Poll looks at a job and, when it has ended, marks the end as seen. False: no such job is
// known in this process.
func (j *Jobs) Poll(session, id string) (Status, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	jb, ok := j.all[jobKey{session, id}]
	if !ok {
		return Status{}, false
	}
	st := jb.status(id)
	if !st.Running {
		jb.seen, st.Seen = true, true
	}
	return st, true
}

// Seen reports whether the end of a job needs nobody's attention any more. Who stored an
// OnEnd with polled false asks it again before waking an idle session.
func (j *Jobs) Seen(session, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	jb, ok := j.all[jobKey{session, id}]
	return ok && jb.seen
}

// Kill ends a running job and marks its end as seen: who kills needs no waking. It does not
// wait. False: the job is unknown or has ended. Whether the asker may do it is judged before.
func (j *Jobs) Kill(session, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.killLocked(jobKey{session, id})
}

// KillAll ends all running jobs of a session and returns their ids, sorted. Cancel the turn's
// context before: a call adopted by then is here, one that is not can no longer be adopted.
func (j *Jobs) KillAll(session string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for key := range j.all {
		if key.session == session && j.killLocked(key) {
			ids = append(ids, key.id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (j *Jobs) killLocked(key jobKey) bool {
	jb, ok := j.all[key]
	if !ok {
		return false
	}
	if ended, _, _ := jb.run.state(); ended {
		return false
	}
	jb.seen = true
	jb.run.Kill(errJobKilled)
	return true
}

// List returns a session's running jobs and those whose end nobody has seen, oldest first.
func (j *Jobs) List(session string) []Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []Status
	for key, jb := range j.all {
		if key.session != session {
			continue
		}
		if st := jb.status(key.id); st.Running || !st.Seen {
			list = append(list, st)
		}
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// running returns the handle of a job.
func (j *Jobs) running(session, id string) (*Running, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	jb, ok := j.all[jobKey{session, id}]
	if !ok {
		return nil, false
	}
	return jb.run, true
}

func (jb *job) status(id string) Status {
	ended, tail, res := jb.run.state()
	st := Status{
		ID: id, Tool: jb.run.call.Name, Person: jb.run.call.Person, Turn: jb.turn,
		Started: jb.run.started, Running: !ended, Seen: jb.seen,
	}
	if ended {
		st.Result = res
	} else {
		st.Tail = tail
	}
	return st
}
