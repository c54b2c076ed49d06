package tools

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	jobText   = "Look at or end calls that went on as jobs. The end of a job is reported to you by itself."
	jobSchema = `{"type":"object","properties":{"action":{"type":"string","enum":["poll","kill","list"]},"id":{"type":"string"}},"required":["action"],"additionalProperties":false}`
)

type jobArgs struct {
	Action string `json:"action"`
	ID     string `json:"id"`
}

// job is not pure: a poll marks an end as seen.
func (s *Set) job() Tool { return define(s, "job", jobText, jobSchema, false, s.runJob) }

func (s *Set) runJob(ctx context.Context, c Call, a jobArgs) output {
	switch {
	case a.Action == "list":
		return listJobs(s.jobs.List(c.Session))
	case a.Action != "poll" && a.Action != "kill":
		return failf(wordJobAction, quote(a.Action))
	case a.ID == "":
		return failf(wordJobNeedsID)
	case a.Action == "kill":
		return s.killJob(ctx, c, a.ID)
	}
	st, ok := s.jobs.Poll(c.Session, a.ID)
	if !ok {
		return failf(wordJobUnknown, quote(a.ID))
	}
	return pollJob(st, wordJobEnded)
}

func pollJob(st Status, endWord string) output {
	id, tool := shown(st.ID), shown(st.Tool)
	switch {
	case !st.Running:
		return output{text: fmt.Sprintf(endWord, id, tool, st.Result.Body), failed: st.Result.Failed, whole: true}
	case st.Tail == "":
		return output{text: fmt.Sprintf(wordJobQuiet, id, tool, age(st.Started))}
	}
	return output{text: fmt.Sprintf(wordJobRuns, id, tool, age(st.Started), st.Tail)}
}

// killJob waits for the end, so that the answer can say it is over. Killing what a turn of
// someone else started takes an admin: in a shared session a member's turn must not end the
// owner's work (I10).
func (s *Set) killJob(ctx context.Context, c Call, id string) output {
	r, ok := s.jobs.running(c.Session, id)
	if !ok {
		return failf(wordJobUnknown, quote(id))
	}
	if !c.Admin && c.Person != r.call.Person {
		return failf(wordJobForeign, quote(id))
	}
	word := wordJobEnded
	if s.jobs.Kill(c.Session, id) {
		word = wordJobKilled
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
		return failf(wordJobDying, quote(id), shown(r.call.Name))
	}
	st, ok := s.jobs.Poll(c.Session, id)
	if !ok { // pushed out by many other ends meanwhile
		return failf(wordJobUnknown, quote(id))
	}
	o := pollJob(st, word)
	o.failed = false // ending it was the task
	return o
}

func listJobs(jobs []Status) output {
	if len(jobs) == 0 {
		return output{text: wordJobNone}
	}
	rows := make([]string, len(jobs))
	for i, st := range jobs {
		if st.Running {
			rows[i] = fmt.Sprintf(wordJobRow, shown(st.ID), shown(st.Tool), age(st.Started))
		} else {
			rows[i] = fmt.Sprintf(wordJobRowEnd, shown(st.ID), shown(st.Tool))
		}
	}
	return output{text: strings.Join(rows, "\n")}
}

func age(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }
