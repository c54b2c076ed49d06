package session

import (
	"fmt"
	"strconv"
	"strings"
)

// PlatformName names a platform: telegram, discord, web.
type PlatformName string

// ChatID, ThreadID, UserID and MessageID are a platform's own identifiers.
// Only the adapter that made one parses it; here they are compared and
// stored, never taken apart.
type (
	ChatID    string
	ThreadID  string
	UserID    string
	MessageID string
)

// A Key names one conversation. It is a routing handle and no authority:
// knowing a key opens nothing (I10).
type Key struct {
	Platform PlatformName `json:"platform"`
	Chat     ChatID       `json:"chat"`
	Thread   ThreadID     `json:"thread,omitempty"`
	User     UserID       `json:"user,omitempty"` // only with sessions.group: user
	// Line is not 0 for a session that began in its chat after the one before it
	// had been moved to another (Routes). Platforms see chats only: Line 0.
	Line int `json:"line,omitempty"`
}

// seatPlatform begins the keys of seats; no platform has that name.
const seatPlatform PlatformName = "seat"

// SeatKey is the lane whose lease is the seat of that name.
func SeatKey(name string) Key { return Key{Platform: seatPlatform, Chat: ChatID(name)} }

// IsSeat reports whether k is a seat and no session.
func (k Key) IsSeat() bool { return k.Platform == seatPlatform }

// String gives the reversible text form platform:chat[:thread[:user[:line]]], with
// ':' and '%' inside a part written as %3A and %25.
func (k Key) String() string {
	parts := []string{string(k.Platform), string(k.Chat), string(k.Thread), string(k.User), ""}
	if k.Line != 0 {
		parts[4] = strconv.Itoa(k.Line)
	}
	for len(parts) > 2 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	for i, p := range parts {
		parts[i] = keyEscaper.Replace(p)
	}
	return strings.Join(parts, ":")
}

var (
	keyEscaper   = strings.NewReplacer("%", "%25", ":", "%3A", "{", "%7B", "}", "%7D", "\n", "%0A")
	keyUnescaper = strings.NewReplacer("%25", "%", "%3A", ":", "%7B", "{", "%7D", "}", "%0A", "\n")
)

const wrongKey = "session key %q: want platform:chat[:thread[:user[:line]]]"

// ParseKey reads what String wrote.
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 5 || parts[0] == "" || parts[1] == "" {
		return Key{}, fmt.Errorf(wrongKey, s)
	}
	for len(parts) < 5 {
		parts = append(parts, "")
	}
	line := 0
	if parts[4] != "" {
		var err error
		if line, err = strconv.Atoi(parts[4]); err != nil || line < 1 || strconv.Itoa(line) != parts[4] {
			return Key{}, fmt.Errorf(wrongKey, s)
		}
	}
	for i, p := range parts {
		parts[i] = keyUnescaper.Replace(p)
	}
	return Key{Platform: PlatformName(parts[0]), Chat: ChatID(parts[1]), Thread: ThreadID(parts[2]), User: UserID(parts[3]), Line: line}, nil
}
