package telegram

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/telegramtest"
)

// keys writes the buttons below a message, row by row.
func (g *gate) keys(chat int64, msg int) string {
	g.t.Helper()
	m, ok := g.api.Message(chat, msg)
	if !ok {
		g.t.Fatalf("chat %d has no message %d", chat, msg)
	}
	var rows []string
	for _, r := range m.Keyboard {
		var row []string
		for _, b := range r {
			row = append(row, b.Text)
		}
		rows = append(rows, strings.Join(row, " "))
	}
	return strings.Join(rows, " | ")
}

// held begins a turn of Ann's, lets n messages wait and stops it. msg is the
// answer, which lists them with buttons; data are what these send, row by row.
func (g *gate) held(chat int64, n int) (msg int, data [][]string) {
	g.t.Helper()
	at := ""
	if chat != ann {
		at = "@cox_test_bot "
	}
	for i := range n + 1 {
		g.api.Say(chat, ann, fmt.Sprintf("%smessage %d", at, i))
		g.settle(100 * time.Millisecond)
	}
	g.api.Say(chat, ann, "/stop@cox_test_bot")
	g.settle(20 * time.Second)
	g.got()
	ms := slices.DeleteFunc(g.api.Messages(chat), func(m telegramtest.Message) bool { return len(m.Keyboard) == 0 })
	if len(ms) != 1 || len(ms[0].Keyboard) != n {
		g.t.Fatalf("messages with buttons: %+v; want one with %d rows", ms, n)
	}
	for _, r := range ms[0].Keyboard {
		data = append(data, []string{r[0].Data, r[1].Data})
	}
	return ms[0].ID, data
}

// edits counts the calls that changed buttons alone.
func (g *gate) edits() int { return len(g.api.Calls("editMessageReplyMarkup")) }

// strangersOut loads files, and sees as people of the chat, all but Bob.
var strangersOut = Options{Files: func(_ context.Context, m session.Message) bool { return m.From.ID != userID(bob) }}

// What becomes of the row of a button that was pressed: T32.
var rowRows = []platformRow{
	{"T32", "row that was pressed goes, the others stay", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(ann, 3)
		text, _ := g.api.Message(ann, msg)
		g.want("rows", g.keys(ann, msg), "Run 1 Drop 1 | Run 2 Drop 2 | Run 3 Drop 3")
		g.api.Press(ann, msg, ann, data[1][1])
		g.settle(time.Second)
		g.want("rows", g.keys(ann, msg), "Run 1 Drop 1 | Run 3 Drop 3")
		g.api.Press(ann, msg, ann, data[0][0])
		g.settle(time.Second)
		g.want("rows", g.keys(ann, msg), "Run 3 Drop 3")
		g.api.Press(ann, msg, ann, data[2][1])
		g.settle(time.Second)
		g.want("rows", g.keys(ann, msg), "")
		m, _ := g.api.Message(ann, msg)
		g.want("words", m.Text, text.Text)
		g.want("unanswered", g.api.Unanswered(), []string{})
		g.want("turns", g.turns(key(ann)), "message 0\nmessage 1")
	}},
	{"T32", "two rows pressed at once are both gone", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(ann, 3)
		g.api.Fault(telegramtest.Fault{Method: "editMessageReplyMarkup", Delay: 2 * time.Second})
		g.api.Press(ann, msg, ann, data[0][1]) // each shows all rows
		g.api.Press(ann, msg, ann, data[2][1])
		g.settle(10 * time.Second)
		g.want("rows", g.keys(ann, msg), "Run 2 Drop 2")
	}},
	{"T32", "button that is out of date goes too", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(ann, 2)
		g.api.Say(ann, ann, "/stop all")
		g.settle(5 * time.Second)
		g.api.Press(ann, msg, ann, data[0][0])
		g.settle(time.Second)
		g.want("rows", g.keys(ann, msg), "Run 2 Drop 2")
		said := g.said(ann)
		g.want("said", said[len(said)-1], "That message does not wait any more.")
	}},
	{"T32", "other's press takes no row away", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(group, 2)
		g.api.Press(group, msg, bob, data[0][1])
		g.settle(5 * time.Second)
		g.want("rows", g.keys(group, msg), "Run 1 Drop 1 | Run 2 Drop 2")
		said := g.said(group)
		g.want("said", said[len(said)-1], "Only the task's owner or an admin can do that.")
		g.api.Press(group, msg, ann, data[0][1])
		g.settle(5 * time.Second)
		g.want("rows", g.keys(group, msg), "Run 2 Drop 2")
		// Out of date, and the message is the answer to Ann's /stop.
		g.api.Press(group, msg, ann, "drop:99")
		g.settle(5 * time.Second)
		g.want("rows", g.keys(group, msg), "Run 2 Drop 2")
		g.api.Say(group, ann, "/stop@cox_test_bot all")
		g.settle(5 * time.Second)
		g.api.Press(group, msg, bob, data[1][1])
		g.settle(5 * time.Second)
		g.want("rows", g.keys(group, msg), "Run 2 Drop 2")
		g.api.Press(group, msg, ann, data[1][1])
		g.settle(5 * time.Second)
		g.want("rows", g.keys(group, msg), "")
	}},
	{"T32", "stranger's press takes no row away", gateSet{mode: steer.Queue, options: strangersOut, policy: &session.Policy{Admins: []string{fmt.Sprint(ann)}, Pairing: session.PairingOff}}, func(g *gate) {
		msg, data := g.held(group, 1)
		g.api.Press(group, msg, bob, data[0][1])
		g.settle(5 * time.Second)
		g.want("rows", g.keys(group, msg), "Run 1 Drop 1")
		g.want("waits", g.slot(key(group)), "held: message 1")
		g.want("unanswered", g.api.Unanswered(), []string{})
	}},
	{"T32", "Retry goes when it was pressed, whoever the failure answers", gateSet{}, func(g *gate) {
		g.golden("ask_group.json")
		g.one()
		g.agent.do(key(group), func(context.Context, *session.Turn) *session.Outcome {
			return &session.Outcome{End: session.EndFailed, Public: "The model does not answer."}
		})
		g.settle(5 * time.Second)
		ms := g.api.Messages(group)
		m := ms[len(ms)-1]
		g.want("rows", g.keys(group, m.ID), "Retry")
		g.api.Press(group, m.ID, bob, m.Keyboard[0][0].Data)
		g.settle(5 * time.Second)
		g.want("rows after another's press", g.keys(group, m.ID), "Retry")
		g.api.Press(group, m.ID, ann, m.Keyboard[0][0].Data)
		g.settle(5 * time.Second)
		g.want("rows", g.keys(group, m.ID), "")
		g.want("open turn", g.lane(key(group)).Turn, 2)
	}},
	{"T32", "buttons of the running bubble stay", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		g.api.Say(ann, ann, "later")
		g.settle(4 * time.Second)
		bubble := g.api.Messages(ann)[0]
		g.want("rows", g.keys(ann, bubble.ID), "Stop Waiting 1")
		g.api.Press(ann, bubble.ID, ann, pendingData)
		g.settle(4 * time.Second)
		g.want("rows", g.keys(ann, bubble.ID), "Stop Waiting 1")
		g.api.Press(ann, bubble.ID, ann, "stop:1")
		g.settle(10 * time.Second)
		g.want("changes of buttons alone", g.edits(), 0)
	}},
	{"T32", "row is left when there is no room, and nothing waits for it", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(ann, 2)
		g.a.pace.cool(ann, time.Minute)
		query := g.api.Press(ann, msg, ann, data[0][1])
		g.api.Say(ann, ann, "go on")
		g.settle(100 * time.Millisecond)
		g.want("took", len(g.got()), 2)
		if slices.Contains(g.api.Unanswered(), query) {
			g.t.Error("the press is not answered")
		}
		g.settle(5 * time.Minute)
		g.want("changes of buttons", g.edits(), 0)
	}},
	{"T32", "call that hangs holds nothing up, and ends with the process", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(ann, 2)
		g.api.Fault(telegramtest.Fault{Method: "editMessageReplyMarkup", Hang: true, Times: -1})
		g.api.Press(ann, msg, ann, data[0][1])
		g.api.Press(ann, msg, ann, data[1][1])
		g.api.Say(ann, ann, "go on")
		g.settle(100 * time.Millisecond)
		g.want("took", len(g.got()), 3)
		g.want("unanswered", g.api.Unanswered(), []string{})
		at := time.Now()
		g.off()
		if d := time.Since(at); d > 4*time.Second {
			g.t.Errorf("the end took %v", d)
		}
	}},
	{"T32", "message that is gone, cannot be seen or has strange buttons", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(ann, 2)
		press := func(id, markup string) {
			g.api.Update(fmt.Sprintf(`{"callback_query":{"id":%q,"from":{"id":%d,"first_name":"Ann"},"chat_instance":"1","data":%q,"message":{"message_id":%d,"date":0,"chat":{"id":%d,"type":"private"}%s}}}`,
				id, ann, data[0][1], msg, ann, markup))
			g.settle(5 * time.Second)
		}
		press("a", "") // too old to see
		for i, markup := range []string{`null`, `5`, `{"inline_keyboard":7}`, `{"inline_keyboard":[null,[5],[{"text":1}]]}`} {
			press(fmt.Sprint("s", i), `,"reply_markup":`+markup)
		}
		g.want("took", len(g.got()), 5)
		g.want("changes of buttons", g.edits(), 0)
		g.want("not understood", g.a.Status().Undecodable, 0)
		g.api.Press(ann, msg, ann, data[1][1])
		g.api.Delete(ann, msg)
		g.settle(5 * time.Second)
		g.want("changes of buttons", g.edits(), 1)
		g.want("left to send", g.lane(key(ann)).Out, 0)
	}},
	{"T32", "row goes back as it came", gateSet{mode: steer.Queue}, func(g *gate) {
		msg, data := g.held(ann, 1)
		g.api.Update(fmt.Sprintf(`{"callback_query":{"id":"a","from":{"id":%d,"first_name":"Ann"},"chat_instance":"1","data":%q,"message":{"message_id":%d,"date":1,"chat":{"id":%d,"type":"private"},"reply_markup":{"inline_keyboard":[[{"text":"Drop","callback_data":%q}],[{"text":"Site","url":"https://x.example/","style":"danger"}]]}}}}`,
			ann, data[0][1], msg, ann, data[0][1]))
		g.settle(5 * time.Second)
		c := g.api.Calls("editMessageReplyMarkup")[0]
		g.want("sent back", c.Params["reply_markup"], "map[inline_keyboard:[[map[style:danger text:Site url:https://x.example/]]]]")
	}},
	{"T32", "session of one's own in a group: its owner's presses take rows away", gateSet{mode: steer.Queue, options: Options{GroupSessions: "user"}}, func(g *gate) {
		msg, data := g.held(group, 2)
		g.api.Say(group, ann, "/stop@cox_test_bot all")
		g.settle(5 * time.Second)
		raw := fmt.Sprintf(`{"callback_query":{"id":"%%s","from":{"id":%%d,"first_name":"X"},"chat_instance":"1","data":%q,"message":{"message_id":%d,"date":1,"chat":{"id":%d,"type":"supergroup"},"reply_markup":{"inline_keyboard":[[{"text":"Run 1","callback_data":%q}]]}}}}`,
			data[0][0], msg, group, data[0][0])
		g.api.Update(fmt.Sprintf(raw, "b", bob))
		g.settle(5 * time.Second)
		g.want("changes after another's press", g.edits(), 0)
		g.api.Update(fmt.Sprintf(raw, "a", ann)) // out of date, and hers
		g.settle(5 * time.Second)
		g.want("changes", g.edits(), 1)
	}},
}
