package telegram

import (
	"context"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/telegramtest"
)

// What every platform can bring about: X1 to X4. X5 needs two platforms and stands
// beside the built gateway, as TestX5.
var crossRows = []platformRow{
	{"X1", "two people at once: each keeps their name, only the owner steers", gateSet{mode: steer.Steer}, func(g *gate) {
		g.api.AddUser(telegramtest.User{ID: carl, FirstName: "Carl"})
		g.toBot(bob, "build the report")
		bystander := g.toBot(carl, "use April")
		owner := g.toBot(bob, "use March")
		g.want("waits", g.slot(key(group)), "queue: use April\nsteer: use March")
		g.want("signs", g.sign(group, bystander)+g.sign(group, owner), "😴👀")
		var who []string
		for _, e := range g.lane(key(group)).Slot {
			in := session.DecodeSteer(session.Row{Data: e.Data})
			who = append(who, words(in.From.ID, in.From.Name, in.Shared))
		}
		g.want("who wrote", who, []string{"7003 Carl true", "7002 Bob true"})
		g.toBot(carl, "/stop@cox_test_bot")
		g.want("stopped by a bystander", g.lane(key(group)).Stop, 0)
		g.answers(key(group), "built")
		g.want("turns", g.turns(key(group)), "build the report\nuse April")
		g.want("the owner's note waits its turn", g.slot(key(group)), "steer: use March")
		g.answers(key(group), "with April")
		g.answers(key(group), "with March")
		g.want("turns", g.turns(key(group)), "build the report\nuse April\nuse March")
		g.want("signs", g.sign(group, bystander)+g.sign(group, owner), "👍👍")
	}},
	{"X2", "written between the end of a turn and its answer's way out: the next turn's", gateSet{mode: steer.Steer}, func(g *gate) {
		g.api.Say(ann, ann, "build the report")
		g.one()
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", Code: 429, RetryAfter: 20, Description: "Too Many Requests: retry after 20"})
		g.answers(key(ann), "built")
		g.settle(time.Second)
		l := g.lane(key(ann))
		g.want("turn, parts to send", words(l.Turn, l.Out), "0 1")
		g.api.Say(ann, ann, "now print it")
		g.one()
		l = g.lane(key(ann))
		g.want("turn, waits", words(l.Turn, len(l.Slot)), "2 0")
		g.api.Heal()
		g.answers(key(ann), "printed")
		g.settle(time.Minute)
		g.want("turns", g.turns(key(ann)), "build the report\nnow print it")
		g.want("answers", g.said(ann), []string{"built", "printed"})
	}},
	{"X3", "a steer while the answer is being written is the next turn, and says so", gateSet{mode: steer.Steer}, func(g *gate) {
		g.api.Say(ann, ann, "build the report")
		g.one()
		g.agent.do(key(ann), func(_ context.Context, t *session.Turn) *session.Outcome {
			t.ShowText(true, "The report is")
			return nil
		})
		note := g.api.Say(ann, ann, "use March")
		g.one()
		g.want("waits", g.slot(key(ann)), "steer: use March")
		g.want("sign", g.sign(ann, note), "👀")
		g.answers(key(ann), "The report is built.")
		l := g.lane(key(ann))
		g.want("turn, waits", words(l.Turn, len(l.Slot)), "2 0")
		g.want("turns", g.turns(key(ann)), "build the report\nuse March")
		g.answers(key(ann), "Now with March.")
		g.settle(10 * time.Second)
		g.want("sign", g.sign(ann, note), "👍")
		f, err := g.store.Fates(g.t.Context(), key(ann), 1)
		if err != nil || f[0].Step != 0 || f[0].Turn != 2 || f[0].State != session.FateAnswered {
			g.t.Errorf("its life: %+v, %v; want it answered by a turn of its own, steered in at no step", f, err)
		}
		g.api.Say(ann, ann, "/why", telegramtest.Fields{"reply_to_message": map[string]any{"message_id": note, "date": 1, "chat": map[string]any{"id": ann, "type": "private"}, "from": map[string]any{"id": ann, "first_name": "Ann"}}})
		g.settle(time.Second)
		said := g.said(ann)
		g.want("why", said[len(said)-1][:9], "Answered.")
	}},
	{"X4", "a stop with a task running: it goes on, what waits runs, what comes meanwhile is not lost", gateSet{mode: steer.Queue}, func(g *gate) {
		g.api.Say(ann, ann, "build the report")
		g.one()
		waits := g.api.Say(ann, ann, "then print it")
		g.one()
		g.off()
		l := g.lane(key(ann))
		g.want("stopped: turn, waits, released", words(l.Turn, len(l.Slot), l.Released), "1 1 true")
		g.api.Say(ann, ann, "and send it")
		g.settle(time.Minute)
		g.up()
		g.settle(3 * time.Second)
		g.want("again: waits", g.slot(key(ann)), "queue: then print it\nqueue: and send it")
		g.want("sign", g.sign(ann, waits), "😴")
		for _, text := range []string{"built", "printed", "sent"} {
			g.answers(key(ann), text)
			g.settle(2 * time.Second)
		}
		g.want("turns", g.turns(key(ann)), "build the report\nthen print it\nand send it")
		g.want("answers", g.answered(ann), []string{"built", "printed", "sent"})
	}},
}

// toBot is a message of a group that mentions the bot.
func (g *gate) toBot(from int64, text string) (id int) {
	g.t.Helper()
	if text[0] == '/' {
		id = g.api.Say(group, from, text)
	} else {
		id = g.api.Say(group, from, "@cox_test_bot "+text, telegramtest.Fields{"entities": []map[string]any{{"type": "mention", "offset": 0, "length": 13}}})
	}
	g.one()
	return id
}
