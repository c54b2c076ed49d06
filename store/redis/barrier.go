package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Wait is how many replicas must confirm a write before it is acknowledged,
// and how long one try waits for them. The zero value asks for none.
type Wait struct {
	Replicas int
	Timeout  time.Duration
}

// errNotDurable is an answer too few replicas have confirmed. The call goes
// out again under its own name, until RetryFor or its ctx is over.
var errNotDurable = errors.New("not durable yet")

// unwaited are the scripts that write and yet wait for no replica: what they
// write is liveness, or only tells of something (session.Store: not synced).
// A claim that a failover loses costs nothing: the nonce decides who may write
// (F20). All others do wait, whichever they are: an acknowledged input (a), a
// step before its calls are run (b), a planned or taken part before it is
// sent (c), and all that a person is told is done (d).
var unwaited = map[string]bool{
	"claim": true, "renew": true, "release": true, "expire": true, "outdone": true, "settle": true,
}

// waits is the key of a ctx whose script must be confirmed; its value is the
// key to write to besides, or "".
type waits struct{}

// confirmed asks that the script a ctx goes with be confirmed by replicas. A
// call that goes out again may find its work done and write nothing, and WAIT
// is about writes of its connection: so it writes a mark of its own then.
func (s *Store) confirmed(ctx context.Context, sc script, keys []string, again bool) context.Context {
	if s.wait.Replicas == 0 || sc.readOnly || unwaited[sc.name] {
		return ctx
	}
	mark := ""
	if again && len(keys) == 1 && keys[0] != s.cfgKey() && sc.name != scriptStamp.name {
		mark = keys[0] + "cnt"
	}
	return context.WithValue(ctx, waits{}, mark)
}

// A barrier sends WAIT behind a script, in the same write and so on the same
// connection, to the same server. It sits on the client of each server: the
// library has followed MOVED and ASK by then.
type barrier struct {
	client *redis.Client
	wait   Wait
}

func carriesScript(cmd redis.Cmder) bool { return strings.HasPrefix(cmd.Name(), "eval") }

func (b barrier) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b barrier) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(waits{}) == nil || !carriesScript(cmd) {
			return next(ctx, cmd) // also what a new connection says first
		}
		pipe := b.client.Pipeline() // which ends in the hook below
		_ = pipe.Process(ctx, cmd)
		_, err := pipe.Exec(ctx)
		return err
	}
}

func (b barrier) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		mark, ok := ctx.Value(waits{}).(string)
		if !ok || !slices.ContainsFunc(cmds, carriesScript) {
			return next(ctx, cmds)
		}
		sent := cmds
		if mark != "" {
			sent = append(sent[:len(sent):len(sent)], redis.NewCmd(ctx, "eval", scriptTouch.text, 1, mark))
		}
		n := redis.NewIntCmd(ctx, "wait", b.wait.Replicas, b.wait.Timeout.Milliseconds())
		err := next(ctx, append(sent[:len(sent):len(sent)], n))
		for _, cmd := range cmds { // the script's own error says more
			if cmd.Err() != nil {
				return cmd.Err()
			}
		}
		var answered redis.Error
		switch {
		case errors.As(err, &answered): // to WAIT, by a server that became a replica
			return fmt.Errorf("%w: %s", errNotDurable, answered)
		case err != nil:
			return err
		case n.Val() < int64(b.wait.Replicas):
			return fmt.Errorf(wordsConfirmed+": %w", n.Val(), b.wait.Replicas, errNotDurable)
		}
		return nil
	}
}
