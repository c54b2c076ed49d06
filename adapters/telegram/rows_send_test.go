package telegram

import (
	"strings"
	"time"

	"coxswain/session"
	"coxswain/telegramtest"
)

// What the API refuses, and what is not known: T20 to T23, T25.
var sendRows = []platformRow{
	{"T20", "too long after all is cut, nothing lost", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.Fault(tooLong)
		text := strings.TrimSpace(strings.Repeat("word ", 1500))
		g.answers(key(ann), text)
		g.settle(time.Minute)
		said := g.said(ann)
		if len(said) < 3 || strings.Join(said, " ") != text {
			g.t.Errorf("%d messages do not make the answer", len(said))
		}
		g.want("left to send", g.lane(key(ann)).Out, 0)
	}},
	{"T21", "formatting refused: the same words without it, once", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.Fault(cantParse)
		g.answers(key(ann), "it is **42**")
		m := g.api.Messages(ann)[0]
		g.want("sent", words(m.Text, len(m.Entities)), "it is 42 0")
		if log := g.logs.String(); !strings.Contains(log, "formatting refused") || !strings.Contains(log, "bold 6+2") || strings.Contains(log, "it is 42") {
			g.t.Errorf("the log should have the sample's entities and not its words: %s", log)
		}
		no := cantParse
		no.Times = -1
		g.api.Fault(no)
		g.golden("T01_edit.json", 0)
		g.got()
		before := len(g.api.Calls("sendMessage"))
		g.answers(key(ann), "it is **43**")
		g.settle(time.Minute)
		g.want("tries, left", words(len(g.api.Calls("sendMessage"))-before, g.lane(key(ann)).Out), "2 0")
	}},
	{"T22", "not modified is done, and nothing is sent anew", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		g.api.Fault(notChanged)
		g.shows(key(ann), func(v *session.View) { v.Step++ })
		g.settle(4 * time.Second)
		g.want("bubbles", len(g.said(ann)), 1)
		g.want("sends", len(g.api.Calls("sendMessage")), 1)
	}},
	{"T23", "deleted bubble is made anew while the turn runs, not at its end", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		g.api.Delete(ann, g.api.Messages(ann)[0].ID)
		g.shows(key(ann), func(v *session.View) { v.Step += 2 })
		g.settle(6 * time.Second)
		ms := g.api.Messages(ann)
		if len(ms) != 1 || len(ms[0].Keyboard) == 0 {
			g.t.Fatalf("after deletion: %+v; want one new bubble", ms)
		}
		g.api.Delete(ann, ms[0].ID)
		g.answers(key(ann), "done")
		g.settle(time.Minute)
		g.want("said", g.said(ann), []string{"done"})
	}},
	{"T25", "final of unknown outcome is sent once more, marked", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", LoseReply: true, Times: 2})
		g.answers(key(ann), "it is **42**")
		g.want("at first", g.said(ann), []string{"it is 42"})
		g.settle(9 * time.Second)
		g.want("before its time", g.said(ann), []string{"it is 42"})
		g.settle(time.Hour)
		g.want("in the end", g.said(ann), []string{"it is 42", "(possible repeat) it is 42"})
		g.want("left to send", g.lane(key(ann)).Out, 0)
	}},
	{"T25", "status of unknown outcome is dropped", gateSet{}, func(g *gate) {
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", LoseReply: true})
		g.golden("T11_unknown.json") // answered with a word
		g.one()
		g.settle(time.Hour)
		g.want("said", len(g.said(ann)), 1)
		g.want("left to send", g.lane(key(ann)).Out, 0)
	}},
}

// Floods: T24.
var floodRows = []platformRow{
	{"T24", "429 on a final: it waits, other chats go on", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.Say(bob, bob, "me too")
		g.one()
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", Chat: ann, Code: 429, RetryAfter: 40, Description: "Too Many Requests: retry after 40"})
		g.answers(key(ann), "for Ann")
		g.answers(key(bob), "for Bob")
		g.settle(39 * time.Second)
		g.want("before its time", words(g.said(ann), g.said(bob)), "[] [for Bob]")
		g.settle(3 * time.Second)
		g.want("after the wait", g.said(ann), []string{"for Ann"})
		g.want("sends to Ann", len(g.api.Calls("sendMessage")), 3)
	}},
	{"T24", "429 on a final is kept over a restart", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", Code: 429, RetryAfter: 40, Description: "Too Many Requests: retry after 40"})
		g.answers(key(ann), "for Ann")
		g.off()
		g.up()
		g.settle(20 * time.Second)
		g.want("sends", len(g.api.Calls("sendMessage")), 1)
		g.settle(30 * time.Second)
		g.want("said", g.said(ann), []string{"for Ann"})
	}},
	{"T24", "429 on a frame: it is dropped and the chat cools down", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		g.api.Fault(telegramtest.Fault{Method: "editMessageText", Code: 429, RetryAfter: 100, Description: "Too Many Requests: retry after 100"})
		before := len(g.api.Calls())
		for range 40 {
			g.shows(key(ann), func(v *session.View) { v.Step++ })
			g.settle(2 * time.Second)
		}
		if n := len(g.api.Calls()) - before; n > 3 {
			g.t.Errorf("%d calls in cool-off", n)
		}
		g.answers(key(ann), "done")
		g.settle(2 * time.Minute)
		said := g.said(ann)
		if len(said) != 2 || !strings.HasPrefix(said[0], "✓") || said[1] != "done" {
			g.t.Errorf("in the end: %q", said)
		}
	}},
	{"T24", "several chats at once cool the whole bot down", gateSet{}, func(g *gate) {
		for i := range int64(4) {
			g.api.Say(100+i, 100+i, "go")
			g.one()
		}
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", Times: 3, Code: 429, RetryAfter: 20, Description: "Too Many Requests: retry after 20"})
		for i := range int64(4) {
			g.answers(key(100+i), "done")
		}
		g.want("sends", len(g.api.Calls("sendMessage")), 3)
		g.settle(19 * time.Second)
		g.want("sends before the time", len(g.api.Calls("sendMessage")), 3)
		g.settle(5 * time.Second)
		for i := range int64(4) {
			g.want("said", g.said(100+i), []string{"done"})
		}
	}},
}
