package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

const (
	waitText   = "Wait some seconds, for example before asking a job again."
	waitSchema = `{"type":"object","properties":{"seconds":{"type":"integer","minimum":1,"maximum":60}},"required":["seconds"],"additionalProperties":false}`

	maxWait = 60 // seconds: a longer wait is a job's work
)

// Wait is the timer. It has no effect, so it may run again after a crash.
func Wait() Tool {
	return Tool{Name: "wait", Description: waitText, Schema: json.RawMessage(waitSchema), Pure: true, Run: runWait}
}

func runWait(ctx context.Context, c Call) Result {
	var args struct {
		Seconds int `json:"seconds"`
	}
	if err := json.Unmarshal(c.Args, &args); err != nil || args.Seconds < 1 || args.Seconds > maxWait {
		return Result{Body: fmt.Sprintf(wordArgRange, "wait", "seconds", 1, maxWait), Failed: true}
	}
	t := time.NewTimer(time.Duration(args.Seconds) * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
		return Result{Body: fmt.Sprintf("waited %d s", args.Seconds)}
	case <-ctx.Done():
		return Result{Body: wordKilled, Failed: true}
	}
}
