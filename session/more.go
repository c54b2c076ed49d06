package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Who is asked when a budget is used up, and what their button does. The button
// names the meter, its window and how often it was granted before: pressed twice,
// by two people or on two replicas, it grants once, and in the next window it is
// out of date. It is no authority: an admin must press it (I10).

// verbMore begins the data of that button.
const verbMore = "more"

// A question is what admins are asked.
type question struct {
	meter  string
	window int64 // Unix ms
	grants int64 // before
	limit  int64 // as configured: what one more grants
}

// questionOf is the question about the meter that refused.
func questionOf(r Reserved, meters []Meter) question {
	for i, m := range meters {
		if m.Name == r.Refused {
			return question{meter: m.Name, window: r.Meters[i].Window, grants: r.Meters[i].Grants, limit: m.Limit}
		}
	}
	panic("a meter refused that was not asked: " + r.Refused)
}

func (q question) scope() rune { return rune(q.meter[0]) }

// mark is the dedupe mark under which it is asked: once in each lane.
func (q question) mark() string {
	return fmt.Sprintf("%s:%s:%d:%d", verbMore, q.meter, q.window/1000, q.grants)
}

// period is the length of the meter's windows.
func (q question) period() time.Duration {
	if q.window == 0 {
		return 0
	}
	return utcDay
}

// button is the question's data: at most 50 bytes (T32).
func (q question) button() string {
	n := func(v int64) string { return strconv.FormatInt(v, 36) }
	return verbMore + ":" + strings.Join([]string{q.meter, n(q.window / 1000), n(q.grants), n(q.limit)}, ".")
}

// readQuestion reads what button wrote behind its verb. Whoever sends other data
// is an admin or gets nothing for it.
func readQuestion(arg string) (q question, ok bool) {
	f := strings.Split(arg, ".")
	if len(f) != 4 || f[0] == "" || !strings.ContainsRune("tcpd", rune(f[0][0])) {
		return q, false
	}
	var n [3]int64
	for i, s := range f[1:] {
		v, err := strconv.ParseInt(s, 36, 64)
		if err != nil || v < 0 || v > MeterMost {
			return q, false
		}
		n[i] = v
	}
	return question{meter: f[0], window: n[0] * 1000, grants: n[1], limit: n[2]}, n[2] > 0
}

// askMore asks in the chat whose turn waits and in each admin's private one, where
// the store knows a session of theirs, once in each.
func (h *Hub) askMore(ctx context.Context, lane Key, q question) error {
	if err := h.askIn(ctx, lane, textUsedUp(q.scope()), q); err != nil {
		return err
	}
	for name := range h.platforms {
		admins, err := h.Access.admins(ctx, name)
		if err != nil {
			return err
		}
		for _, id := range admins {
			chat := Key{Platform: name, Chat: ChatID(id)} // a private chat has its person's id, where platforms tell
			private, err := h.Routes.Lane(ctx, chat)
			if err != nil {
				return err
			}
			l, err := h.Store.Load(ctx, private)
			if err != nil {
				return fmt.Errorf("load session: %w", err)
			}
			if !l.Exists || h.Routes.Home(lane) == chat {
				continue
			}
			if err := h.askIn(ctx, private, textUsedUpThere(q.scope(), h.Routes.Home(lane).Platform), q); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *Hub) askIn(ctx context.Context, lane Key, text string, q question) error {
	o := Outgoing{Key: lane, Kind: PartNotice, Markdown: text, Buttons: []Button{{Text: buttonMore, Data: q.button()}}}
	if _, err := h.Store.Post(ctx, Post{Key: lane, Dedupe: q.mark(), Outs: h.parts(o, 0, q.mark())}); err != nil {
		return fmt.Errorf("store question: %w", err)
	}
	h.Outbox.Nudge(lane, nil)
	return nil
}

// admins are the ids of a platform's admins, as configured and as granted.
func (a *Access) admins(ctx context.Context, name PlatformName) ([]UserID, error) {
	g, err := a.read(ctx, name)
	if err != nil {
		return nil, err
	}
	ids := slices.Collect(maps.Keys(g.Admins))
	for _, id := range a.policy[name].Admins {
		ids = append(ids, UserID(id))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// deliverMore lets a budget go on.
func (h *Hub) deliverMore(ctx context.Context, p Principal, m Message, arg string) error {
	if !p.Admin {
		return h.reply(ctx, m, textMoreAdmin)
	}
	q, ok := readQuestion(arg)
	if !ok {
		return h.reply(ctx, m, textExpired)
	}
	g, err := h.Store.Grant(ctx, Grant{Meter: q.meter, Window: q.window, Extra: q.limit, Mark: fmt.Sprint(q.grants)})
	if err != nil {
		return fmt.Errorf("store grant: %w", err)
	}
	defer func() { // behind the answer, so that what people read is in order
		h.mu.Lock()
		defer h.mu.Unlock()
		h.wakeSpendersLocked()
	}()
	switch g.Outcome {
	case GrantDup:
		return h.reply(ctx, m, textMoreBefore)
	case GrantGone:
		return h.reply(ctx, m, textExpired)
	}
	return h.announce(ctx, m, textMore)
}

// spentMore reports whether a button of this kind has had its effect.
func (h *Hub) spentMore(ctx context.Context, arg string) (bool, error) {
	q, ok := readQuestion(arg)
	if !ok {
		return true, nil
	}
	r, err := h.Store.Reserve(ctx, Reserve{Meters: []Meter{{Name: q.meter, Limit: q.limit, Period: q.period()}}})
	if err != nil {
		return false, fmt.Errorf("read a budget: %w", err)
	}
	return r.Meters[0].Window != q.window || r.Meters[0].Grants > q.grants, nil
}

// warn says once in a chat, silently, that most of a budget is used up. Who is told
// is remembered here for a while and in the lane's marks for good, so a restart
// tells nobody again, and most calls ask nothing.
func (h *Hub) warn(ctx context.Context, lane Key, meters []Meter, r Reserved) {
	for i, m := range meters {
		s := r.Meters[i]
		if s.Used*5 < s.Limit*4 { // under 80 %
			continue
		}
		mark := fmt.Sprintf("most:%s:%d", m.Name, s.Window/1000)
		h.mu.Lock()
		if h.warned == nil || len(h.warned) > 4096 {
			h.warned = map[toldKey]time.Time{}
		}
		_, told := h.warned[toldKey{lane, mark}]
		h.mu.Unlock()
		if told {
			continue
		}
		o := Outgoing{Key: lane, Kind: PartNotice, Markdown: textMost(rune(m.Name[0])), Silent: true}
		if _, err := h.Store.Post(ctx, Post{Key: lane, Dedupe: mark, Outs: h.parts(o, 0, mark)}); err != nil {
			h.note(ctx, "say that a budget runs out", err) // with the next call
			continue
		}
		h.mu.Lock()
		h.warned[toldKey{lane, mark}] = time.Now()
		h.mu.Unlock()
		h.Outbox.Nudge(lane, nil)
	}
}
