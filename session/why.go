package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// cmdWhy tells the life of the message replied to.
func (h *Hub) cmdWhy(ctx context.Context, p Principal, m Message, _ string) error {
	if m.ReplyTo == "" {
		return h.reply(ctx, m, cmp.Or(h.howTo(p, m, "why"), textReplyToIt))
	}
	_, at, err := h.replied(ctx, p, m)
	if err != nil {
		return err
	}
	fates, err := h.Store.Fates(ctx, at.Key, 0)
	if err != nil {
		return fmt.Errorf("read fates: %w", err)
	}
	lane, err := h.Store.Load(ctx, at.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	for _, f := range fates {
		if slices.Contains(f.Msgs, at.ReplyTo) {
			skipped, err := h.skippedFor(ctx, at.Key, lane, f)
			if err != nil {
				return err
			}
			return h.reply(ctx, m, textWhy(f, lane.Now, skipped))
		}
	}
	return h.reply(ctx, m, textNoFate)
}

// howTo is what the platform on which m was written says of a command, if it has
// a word of its own.
func (h *Hub) howTo(p Principal, m Message, command string) string {
	if g, ok := h.platforms[m.written(p).Key.Platform].(Guide); ok {
		return g.HowTo(command)
	}
	return ""
}

// skippedFor counts the calls that were not started because of a steer: they
// stand directly before the row it was put on.
func (h *Hub) skippedFor(ctx context.Context, key Key, lane Lane, f Fate) (int, error) {
	if f.Step == 0 {
		return 0, nil
	}
	rows, err := h.Store.Rows(ctx, key, lane.Gen, max(0, lane.Seq-2000), 0)
	if err != nil {
		return 0, fmt.Errorf("read rows: %w", err)
	}
	for i, r := range rows {
		if r.Type != RowSteer || r.Tick != f.Ticket {
			continue
		}
		n := 0
		for j := i - 1; j >= 0 && (rows[j].Type == RowTool || rows[j].Type == RowSteer); j-- {
			n += boolInt(rows[j].Type == RowTool && decodeTool(rows[j]).NotRun)
		}
		return n, nil
	}
	return 0, nil
}
