package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"coxswain/session"
)

// A button that was pressed and had its effect is taken away with its row, so
// that nobody presses it again. This is a courtesy: it is done when there is room
// for it, once, and delays nothing.

// fadesMost is how many presses wait to have their buttons taken away; those of
// more stay.
const fadesMost = 64

// A pressed is one press that the door has taken.
type pressed struct {
	k  *ask
	in session.Message
	on *message // with its components as they were at the press
	id string   // the data of what was pressed
}

// fade has a pressed button taken away, unless it is one of the running bubble.
func (a *Adapter) fade(k *ask, i *interaction, m session.Message) {
	if m.Button == "pending" || strings.HasPrefix(m.Button, "stop:") {
		return
	}
	select {
	case a.pressed <- pressed{k, m, i.Message, i.id()}:
	default: // the button stays, and says that it is out of date
	}
}

// fading takes buttons away, one after another: each edit says what all before
// it did.
func (a *Adapter) fading(ctx context.Context) {
	for {
		select {
		case p := <-a.pressed:
			a.guarded("fade", func() { a.takeAway(ctx, p) })
		case <-ctx.Done():
			return
		}
	}
}

// An editedButtons changes the buttons of a message and nothing else.
type editedButtons struct {
	Components []json.RawMessage `json:"components"`
	Mentions   mentions          `json:"allowed_mentions"`
}

func (a *Adapter) takeAway(ctx context.Context, p pressed) {
	if a.o.Spent != nil {
		if spent, err := a.o.Spent(ctx, p.in); err != nil || !spent {
			return
		}
	}
	// What came before this press may have been pressed when it was still shown.
	known, _ := a.spent.get(p.on.ID)
	gone := append(slices.Clone(known), p.id)
	left, changed := without(p.on.Components, gone)
	if !changed {
		return
	}
	a.spent.put(p.on.ID, gone)
	body := editedButtons{left, nobody}
	var err error
	if p.on.Flags&flagEphemeral != 0 {
		if !p.k.taken(ctx) {
			return
		}
		p.k.mu.Lock()
		defer p.k.mu.Unlock()
		if p.k.fresh() { // the first answer to a press is the message with the button
			_, err = a.hook(ctx, p.k, http.MethodPatch, "/messages/@original", body)
		}
	} else {
		channel := p.on.ChannelID
		err = a.call(ctx, http.MethodPatch, "channels/"+channel+"/messages/"+p.on.ID, "edit:"+channel, body, nil)
	}
	if err != nil {
		a.log.Debug("button not taken away", "err", err)
	}
}

// without gives the rows in which none of these was, and menus without those
// choices. What is not understood stays as it is.
func without(rows []json.RawMessage, gone []string) (left []json.RawMessage, changed bool) {
	left = []json.RawMessage{}
	for _, raw := range rows {
		var r struct {
			Components []struct {
				CustomID string `json:"custom_id"`
			} `json:"components"`
		}
		if json.Unmarshal(raw, &r) != nil {
			left = append(left, raw)
			continue
		}
		row, cut := raw, false
		for _, c := range r.Components {
			switch {
			case c.CustomID == menuData:
				row, cut = withoutChoices(raw, gone)
			case slices.Contains(gone, c.CustomID):
				row, cut = nil, true
			}
		}
		changed = changed || cut
		if row != nil {
			left = append(left, row)
		}
	}
	return left, changed
}

// withoutChoices gives a row with a menu without these choices, nil if none is
// left.
func withoutChoices(raw json.RawMessage, gone []string) (row json.RawMessage, changed bool) {
	var r map[string]any
	if json.Unmarshal(raw, &r) != nil {
		return raw, false
	}
	list, _ := r["components"].([]any)
	if len(list) != 1 {
		return raw, false
	}
	menu, _ := list[0].(map[string]any)
	options, _ := menu["options"].([]any)
	rest := slices.DeleteFunc(slices.Clone(options), func(o any) bool {
		c, _ := o.(map[string]any)
		value, _ := c["value"].(string)
		return slices.Contains(gone, value)
	})
	if len(rest) == len(options) {
		return raw, false
	}
	if len(rest) == 0 {
		return nil, true
	}
	menu["options"] = rest
	row, err := json.Marshal(r)
	if err != nil {
		return raw, false
	}
	return row, true
}
