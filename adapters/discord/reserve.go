package discord

import (
	"time"

	"coxswain/session"
)

// Reserve implements session.Paced. Discord tells its limits with each answer
// and counts itself, so nothing is set aside: a send waits out what is known.
func (a *Adapter) Reserve(key session.Key, most time.Duration) (time.Duration, bool) {
	wait := a.pace.wait("send:" + target(key))
	return wait, wait <= most
}

// Return implements session.Paced.
func (a *Adapter) Return(session.Key) {}
