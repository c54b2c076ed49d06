package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
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
	Gen    int64 // unique among all sessions that live in the chat, one after another
	Turn   int64 // open, 0 = idle
	Rows   []Row // of the newest generation, seq > After
	After  int64
	Slot   []Entry // what waits, held ones too
	Jobs   []Job   // not yet told
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
	chat := key
	key, err := h.Routes.Lane(ctx, chat)
	if err != nil {
		return Transcript{}, err
	}
	lane, err := h.Store.Load(ctx, key)
	if err != nil {
		return Transcript{}, fmt.Errorf("load session: %w", err)
	}
	shown := lane.Gen + lineage(key, chat)
	if gen != shown {
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
	if lane.Key != chat {
		for i := range fates {
			fates[i].Msgs = localIDs(chat, fates[i].Msgs)
		}
		for i := range lane.Slot {
			lane.Slot[i].Msgs = localIDs(chat, lane.Slot[i].Msgs)
		}
	}
	return Transcript{
		Key: chat, Title: lane.Title, Gen: shown, Turn: lane.Turn, Rows: rows, After: after, Slot: lane.Slot, Jobs: lane.Jobs,
		Fates: fates, Status: h.statusOf(lane, key), Now: lane.Now,
	}, nil
}

// lineage tells generations of a chat's sessions apart: 0 for the chat's own. It
// stays exact in a float.
func lineage(lane, chat Key) int64 {
	if lane == chat {
		return 0
	}
	sum := sha256.Sum256([]byte(lane.String()))
	return (1 + int64(binary.BigEndian.Uint32(sum[:])>>4)) << 24
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
// all of them (web: whoever is let in is an admin), by the chats they live in.
// Those that sleep, and those in which nothing was ever accepted, are left out.
func (h *Hub) List(ctx context.Context, platform PlatformName) ([]Listing, error) {
	has, err := h.Routes.shelf.get(ctx)
	if err != nil {
		return nil, err
	}
	var all []Listing
	add := func(l Lane, chat Key) {
		if l.Tickets > 0 {
			all = append(all, Listing{Key: chat, Title: l.Title, Turn: l.Turn, Waiting: len(l.Slot), Touched: l.Touched})
		}
	}
	for _, c := range has.Chats {
		if c.Chat.Platform != platform {
			continue
		}
		l, err := h.Store.Load(ctx, c.Lanes[0])
		if err != nil {
			return nil, fmt.Errorf("load session: %w", err)
		}
		add(l, c.Chat)
	}
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
			if has.chat(l.Key.own()) == nil { // else it is listed
				add(l, l.Key)
			}
		}
		if len(lanes) < 500 {
			return all, nil
		}
		after = lanes[len(lanes)-1].Key.String()
	}
}
