package redis

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"coxswain/session"
)

var _ session.Waker = (*Store)(nil)

// Subscribe implements session.Waker: it calls wake with the key of every lane
// that an accept, amend, begin, commit, stop, reset, post or release of another Store changed,
// and with a key of the reserved platform "meter" when one was granted more.
// Call it from a goroutine of your own; it ends with ctx, with Close, or with an
// error. Due and OutDue are the truth. wake gets the zero Key each time the
// subscription begins or begins anew.
//
// What this Store wrote itself is left out: its process has looked already, and
// would read each lane once more for every write.
func (s *Store) Subscribe(ctx context.Context, wake func(session.Key)) error {
	// This pattern and no finer one: an ACL that allows the channels &gw:*
	// allows exactly the pattern it is written with.
	ps := s.client.PSubscribe(ctx, s.prefix+":*")
	defer ps.Close()
	// A health check every 3 s finds a connection that died without a word.
	messages := ps.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(3 * time.Second))
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.closed:
			return redis.ErrClosed
		case m, ok := <-messages:
			if !ok {
				return errors.New("redis: the subscription ended")
			}
			switch m := m.(type) {
			case *redis.Subscription:
				wake(session.Key{})
			case *redis.Message:
				lane, call, _ := strings.Cut(m.Payload, "\n")
				if strings.HasPrefix(call, s.caller) {
					continue
				}
				if key, err := session.ParseKey(lane); err == nil {
					wake(key)
				}
			}
		}
	}
}
