package session

import (
	"context"
	"fmt"
	"time"
)

// Identify authorises a person for a chat, for reading. ok is false when they
// may not talk there (I10). An adapter that has authenticated its people
// itself (web) still asks here.
func (h *Hub) Identify(ctx context.Context, key Key, who Person, private bool) (p Principal, ok bool, err error) {
	p, v, err := h.Access.authorize(ctx, Message{Key: key, From: who, Private: private})
	return p, v == allowed && err == nil, err
}

// A Transcript is what can be read of a session.
type Transcript struct {
	Key    Key
	Title  string
	Gen    int64
	Turn   int64 // open, 0 = idle
	Rows   []Row // of the newest generation, seq > After
	After  int64
	Slot   []Entry // what waits, held ones too
	Fates  []Fate  // newest first
	Status Status
	Now    time.Time
}

// transcriptRows bounds what one reading gives: the newest rows.
const transcriptRows = 2000

// Read gives the newest state of a session to a principal of its chat. after
// is the seq the reader knows already, within gen; rows of another generation
// are given whole.
func (h *Hub) Read(ctx context.Context, p Principal, key Key, gen, after int64) (Transcript, error) {
	if !p.May(key) {
		return Transcript{}, ErrNotYours
	}
	lane, err := h.Store.Load(ctx, key)
	if err != nil {
		return Transcript{}, fmt.Errorf("load session: %w", err)
	}
	if gen != lane.Gen {
		after = 0
	}
	after = max(after, lane.Seq-transcriptRows, 0)
	rows, err := h.Store.Rows(ctx, key, lane.Gen, after, 0)
	if err != nil {
		return Transcript{}, fmt.Errorf("read rows: %w", err)
	}
	fates, err := h.Store.Fates(ctx, key, 0)
	if err != nil {
		return Transcript{}, fmt.Errorf("read fates: %w", err)
	}
	return Transcript{
		Key: key, Title: lane.Title, Gen: lane.Gen, Turn: lane.Turn, Rows: rows, After: after, Slot: lane.Slot,
		Fates: fates, Status: h.statusOf(lane, key), Now: lane.Now,
	}, nil
}

// A Listing is one session in a list.
type Listing struct {
	Key     Key
	Title   string
	Turn    int64
	Waiting int
	Touched time.Time
}

// List gives the sessions of a platform, for an adapter whose people may see
// all of them (web: whoever is let in is an admin). Sessions in which nothing
// was ever accepted are left out.
func (h *Hub) List(ctx context.Context, platform PlatformName) ([]Listing, error) {
	var all []Listing
	after := string(platform) + ":"
	for {
		lanes, err := h.Store.Sessions(ctx, after, 500)
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		for _, l := range lanes {
			if l.Key.Platform != platform {
				return all, nil
			}
			if l.Tickets > 0 {
				all = append(all, Listing{Key: l.Key, Title: l.Title, Turn: l.Turn, Waiting: len(l.Slot), Touched: l.Touched})
			}
		}
		if len(lanes) < 500 {
			return all, nil
		}
		after = lanes[len(lanes)-1].Key.String()
	}
}
