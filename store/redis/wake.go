package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"coxswain/session"
)

// Subscribe calls wake with the key of every lane that an accept, amend, stop,
// reset, post or release changed, on whatever gateway. It runs until ctx ends
// or the store is closed, and returns why; call it from a goroutine of your
// own. wake is called from that goroutine and should not block.
//
// Keys are hints: one may come late, twice or never. Due and OutDue are the
// truth. wake gets the zero Key each time the subscription begins or begins
// anew: hints may have been lost before it, so look at everything (F31).
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
				if key, err := session.ParseKey(m.Payload); err == nil {
					wake(key)
				}
			}
		}
	}
}
