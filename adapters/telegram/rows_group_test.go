package telegram

import (
	"fmt"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/telegramtest"
)

// Who is spoken to, and who speaks: T8 to T15.
var groupRows = []platformRow{
	{"T8", "reply to the bot addresses it and brings the words", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("T08_reply.json")
		ms := g.byID()
		for i, want := range []string{"49|true|I took report A, then report B.|true", "49|true|then report B|true", "48|false|lunch?|false", "|false|Prices rise|true"} {
			m := ms[i]
			g.want(m.Text, fmt.Sprintf("%s|%v|%s|%v", m.ReplyTo, m.ReplyToBot, m.Quote, m.Addressed), want)
		}
		g.want("group's turns", g.turns(key(group)), "no, the other one")
		g.want("group's waiting", g.slot(key(group)), "queue: this bit")
		g.want("private turns", g.turns(key(ann)), "and this?")
	}},
	{"T8", "reply to the bot from another chat addresses it", gateSet{}, func(g *gate) {
		g.golden("T08_external.json")
		ms := g.byID()
		g.want("addressed", words(ms[0].Addressed, ms[1].Addressed), "true false")
		g.want("reply to a message that is not here", words(ms[0].ReplyTo, ms[0].ReplyToBot), "false")
		g.want("turns", g.turns(key(group)), "what about this?")
		g.want("quoted", ms[0].Quote, "prices rise")
	}},
	{"T8", "reply to the running bubble steers, whatever the mode", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		bubble := g.api.Messages(ann)[0].ID
		reply := telegramtest.Fields{"reply_to_message": map[string]any{"message_id": bubble, "date": 1, "chat": map[string]any{"id": ann, "type": "private"}, "from": map[string]any{"id": telegramtest.BotID, "is_bot": true, "first_name": "Cox"}}}
		id := g.api.Say(ann, ann, "use March", reply)
		g.one()
		g.api.Say(ann, ann, "no reply")
		g.want("waits", g.slot(key(ann)), "steer: use March\nqueue: no reply")
		g.want("sign", g.sign(ann, id), "👀")
		g.answers(key(ann), "done")
		g.settle(10 * time.Second)
		g.got()
		g.api.Say(ann, ann, "use May", reply)
		g.want("to a bubble that is over", g.one().Text, "use May")
	}},
	{"T9", "the message replied to is gone", gateSet{}, func(g *gate) {
		g.golden("T09_reply_gone.json")
		m := g.one()
		g.want("reply", words(m.ReplyTo, m.Quote), "3")
		g.api.Delete(group, 56)
		g.answers(key(group), "done")
		g.want("said", g.said(group), []string{"done"})
		g.want("left to send", g.lane(key(group)).Out, 0)
		g.golden("ask_group.json")
		g.one()
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", Code: 400, Description: "Bad Request: message to be replied not found"})
		g.answers(key(group), "again")
		g.settle(time.Second)
		g.want("said", g.said(group), []string{"done", "again"})
	}},
	{"T10", "mention counts by entity, in UTF-16 units and any case", gateSet{}, func(g *gate) {
		g.golden("T10_mentions.json")
		g.settle(10 * time.Second) // the picture is not to be had
		var got []bool
		for _, m := range g.got() {
			got = append(got, m.Addressed)
		}
		g.want("addressed", got, []bool{true, false, false, true})
		g.want("turns", g.turns(key(group)), "Привет 😀 @Cox_Test_Bot, что это?[photo "+wordsNoFile+"]")
		g.want("waits", g.slot(key(group)), "queue: hey bot, look")
	}},
	{"T11", "command of the bot, of another, of nobody", gateSet{}, func(g *gate) {
		g.golden("ask_group.json")
		g.one()
		g.golden("T11_commands.json", 1, 2, 3) // for another bot; bare; inside a text
		var got []string
		for _, m := range g.byID() {
			got = append(got, fmt.Sprintf("%s|%v", m.Text, m.Addressed))
		}
		g.want("took", got, []string{"/stop|false", "please /stop|false"})
		g.want("open turn", g.lane(key(group)).Turn, 1)
		g.golden("T11_commands.json", 0) // Bob's, for us: not his turn
		g.want("own command", g.one().Text, "/stop all")
		g.want("said", g.said(group), []string{"Only the task's owner or an admin can do that."})
		g.golden("T11_commands.json", 4, 5)
		g.got()
		g.want("text with a slash begins a turn", g.turns(key(ann)), " / is the root")
		g.want("verb", g.slot(key(ann)), "steer: use the March data")
	}},
	{"T11", "in privacy mode a command of the menu needs no name; behind the name is one, too", gateSet{mode: steer.Steer, options: Options{Commands: []Command{{Name: "stop"}, {Name: "status"}}, Shorts: []string{"/q"}}}, func(g *gate) {
		g.settle(time.Second) // it is known by then that it is on
		command := func(offset, length int) telegramtest.Fields {
			list := []map[string]any{{"type": "bot_command", "offset": offset, "length": length}}
			if offset > 0 {
				list = append([]map[string]any{{"type": "mention", "offset": 0, "length": 13}}, list...)
			}
			return telegramtest.Fields{"entities": list}
		}
		g.api.Say(group, bob, "/strange", command(0, 8)) // another bot's, for all that is known
		g.api.Say(group, bob, "/q tidy up", command(0, 2))
		g.api.Say(group, bob, "@cox_test_bot  /status", command(15, 7))
		var got []string
		for _, m := range g.byID() {
			got = append(got, fmt.Sprintf("%s|%v", m.Text, m.Addressed))
		}
		g.want("took", got, []string{"/strange|false", "/q tidy up|true", "/status|true"})
		g.want("turns", g.turns(key(group)), "tidy up")
		g.api.Say(group, bob, "/stop", command(0, 5))
		g.got()
		g.want("stopped: turn", g.lane(key(group)).Turn, 0)
		g.api.SeesAll = true // other bots' commands come, too
		g.off()
		g.up()
		g.settle(time.Second)
		g.api.Say(group, bob, "/status", command(0, 7))
		g.want("with privacy off", words(g.one().Addressed), "false")
	}},
	{"T11", "a stop word speaks for itself beside the bot's name, and to the bubble", gateSet{mode: steer.Steer}, func(g *gate) {
		for _, text := range []string{"@cox_test_bot stop", "stop @cox_test_bot", "@cox_test_bot, stop"} {
			g.toBot(bob, "build the report")
			turn := g.lane(key(group)).Turn
			at := strings.Index(text, "@")
			g.api.Say(group, bob, text, telegramtest.Fields{"entities": []map[string]any{{"type": "mention", "offset": at, "length": 13}}})
			g.one()
			if l := g.lane(key(group)); turn == 0 || l.Turn != 0 || len(l.Slot) > 0 {
				g.t.Errorf("%q: turn %d of %d runs, %d wait", text, l.Turn, turn, len(l.Slot))
			}
		}
		g.api.Say(ann, ann, "build the report")
		g.one()
		g.settle(4 * time.Second)
		bubble := g.api.Messages(ann)[0].ID
		g.api.Say(ann, ann, "Stop", telegramtest.Fields{"reply_to_message": map[string]any{"message_id": bubble, "date": 1, "chat": map[string]any{"id": ann, "type": "private"}, "from": map[string]any{"id": telegramtest.BotID, "is_bot": true, "first_name": "Cox"}}})
		g.one()
		l := g.lane(key(ann))
		g.want("to the bubble: turn, waits", words(l.Turn, len(l.Slot)), "0 0")
	}},
	{"T11", "unknown command is answered, not run", gateSet{}, func(g *gate) {
		g.golden("T11_unknown.json")
		g.one()
		g.want("said", g.said(ann), []string{"There is no command /stpo. Did you mean /stop?"})
		g.want("turns", g.turns(key(ann)), "")
	}},
	{"T12", "stop bypasses the queue", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.golden("T12_twenty.json")
		g.want("took", len(g.got()), 20)
		at := time.Now()
		g.golden("T12_stop.json")
		g.one()
		l := g.lane(key(ann))
		g.want("open turn", l.Turn, 0)
		for _, e := range l.Slot {
			if !e.Held {
				g.t.Errorf("ticket %d is not held", e.Ticket)
			}
		}
		g.want("held", len(l.Slot), 20)
		if d := time.Since(at); d > time.Second {
			g.t.Errorf("took %v", d)
		}
		g.settle(10 * time.Second)
		said := len(g.said(ann))
		g.golden("T12_stop.json") // the same again
		g.settle(10 * time.Second)
		g.want("said after the same again", len(g.said(ann)), said)
		g.want("held after the same again", len(g.lane(key(ann)).Slot), 20)
		g.want("signs", g.sign(ann, 10)+g.sign(ann, 1000), "😴")
		g.want("turns", g.turns(key(ann)), "build the report")
	}},
	{"T12", "stop does not wait for a file before it", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.AddFile("p0", []byte("x"))
		g.api.Fault(telegramtest.Fault{Method: "getFile", Delay: 12 * time.Second})
		g.golden("T04_album.json", 0)
		g.settle(2 * time.Second)
		at := time.Now()
		g.golden("T12_stop.json")
		for g.lane(key(ann)).Turn != 0 && time.Since(at) < time.Minute {
			g.settle(100 * time.Millisecond)
		}
		if d := time.Since(at); d > time.Second {
			g.t.Errorf("the turn ran on for %v", d)
		}
		g.want("the message before it", g.slot(key(ann)), "held: sort these[photo "+wordsNotWaited+"]")
	}},
	{"T12", "stop does not wait for the files of other chats", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.AddFile("p0", []byte("x"))
		g.api.Fault(telegramtest.Fault{Method: "getFile", Delay: 12 * time.Second, Times: -1})
		for i := range int64(40) {
			g.api.Say(100+i, 100+i, "", telegramtest.Fields{"photo": []map[string]any{{"file_id": "p0", "file_unique_id": "u", "file_size": 1}}})
		}
		g.settle(time.Second)
		g.golden("T12_stop.json")
		g.settle(time.Second)
		g.want("open turn", g.lane(key(ann)).Turn, 0)
		g.settle(2 * time.Minute)
		loaded := 0
		for _, m := range g.door.everything() {
			if len(m.Attachments) == 1 && m.Attachments[0].Path != "" {
				loaded++
			}
		}
		g.want("files loaded in the end", loaded, 40)
	}},
	{"T13", "anonymous admin is nobody a list could name", gateSet{policy: &session.Policy{AllowUsers: []string{"1087968824", "7001"}, Pairing: session.PairingOff}}, func(g *gate) {
		g.golden("T13_anonymous_asks.json")
		m := g.one()
		g.want("from", words(m.From.ID, m.From.Name), "chat:-1001234567890 owner")
		g.want("turns", g.turns(key(group)), "")
		g.want("said", g.said(group), []string{})
	}},
	{"T13", "anonymous admin of an allowed group may talk", gateSet{policy: &session.Policy{AllowChats: []string{fmt.Sprint(group)}, Pairing: session.PairingOff}}, func(g *gate) {
		g.golden("T13_anonymous_asks.json")
		m := g.one()
		g.want("turns", g.turns(key(group)), m.Text)
	}},
	{"T14", "what no person wrote is passed over", gateSet{}, func(g *gate) {
		g.golden("T14_not_people.json")
		g.want("took", len(g.got()), 0)
		g.want("session", g.lane(key(group)).Exists, false)
		g.confirmed()
	}},
	{"T15", "other bots are passed over, their words are data", gateSet{}, func(g *gate) {
		g.golden("T15_bots.json")
		m := g.one()
		g.want("by way of an inline bot", m.Forwarded, "@inline_bot")
		g.want("group's session", g.lane(m.Key).Exists, false)
		g.api.Say(ann, ann, "/stop", telegramtest.Fields{"via_bot": map[string]any{"id": 98, "is_bot": true, "first_name": "Inline", "username": "inline_bot"}})
		g.one()
		g.settle(2 * time.Second)
		g.want("turns", g.turns(key(ann)), "<@inline_bot> /stop")
		g.confirmed()
	}},
}

// confirmed checks that nothing is left to be polled again.
func (g *gate) confirmed() {
	g.t.Helper()
	g.settle(time.Minute)
	if n, _ := g.api.Pending(); n != 0 {
		g.t.Errorf("%d updates unconfirmed; want 0", n)
	}
}

// Where a session is: T16 to T19.
var placeRows = []platformRow{
	{"T16", "session goes on when the group becomes a supergroup", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("T16_migrate.json")
		ms := g.got()
		if len(ms) != 2 || ms[0].Key != key(basic) || ms[1].Key != key(basic) || ms[1].ID != "s2" || ms[1].Dedupe != "m:-1001234567890:2" {
			g.t.Fatalf("took %+v", ms)
		}
		g.want("turns", g.turns(key(basic)), ms[0].Text)
		g.want("waits", g.slot(key(basic)), "queue: "+ms[1].Text)
		g.want("new chat's session", g.lane(key(group)).Exists, false)
		g.answers(key(basic), "done")
		g.want("said", words(g.said(basic), g.said(group)), "[] [done]")
		g.off()
		g.up() // the move is stored
		g.answers(key(basic), "done too")
		g.want("said", g.said(group), []string{"done", "done too"})
	}},
	{"T16", "group that moved unseen is found at the first send", gateSet{}, func(g *gate) {
		g.api.Say(basic, ann, "@cox_test_bot go")
		g.one()
		g.api.AddChat(telegramtest.Chat{ID: basic, MigratedTo: group})
		g.api.AddChat(telegramtest.Chat{ID: group})
		g.answers(key(basic), "done")
		g.want("said", g.said(group), []string{"done"})
		g.want("sends", len(g.api.Calls("sendMessage")), 2)
		g.golden("ask_group.json")
		g.want("session", g.one().Key, key(basic))
	}},
	{"T17", "closed topic is opened again with rights", gateSet{}, func(g *gate) {
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Manages: true, Topics: map[int]bool{77: true}})
		g.golden("ask_topic.json")
		g.one()
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Manages: true, Topics: map[int]bool{77: false}})
		g.answers(topicKey(group, 77), "done")
		m := g.api.Messages(group)[0]
		g.want("sent", words(m.Thread, m.Text, len(g.api.Calls("reopenForumTopic"))), "77 done 1")
	}},
	{"T17", "closed topic without rights: General, told once", gateSet{}, func(g *gate) {
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Topics: map[int]bool{77: true}})
		g.golden("ask_topic.json")
		k := topicKey(group, 77)
		g.want("session", g.one().Key, k)
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Topics: map[int]bool{77: false}})
		g.settle(20 * time.Second) // the bubble cannot be shown there
		frames := len(g.api.Calls("sendMessage"))
		if frames > 2 {
			g.t.Errorf("%d tries to show the bubble in a closed topic", frames)
		}
		g.api.Fault(telegramtest.Fault{Method: "sendMessage", Code: 500, Description: "Internal Server Error"})
		g.answers(k, "done")
		g.settle(time.Minute)
		if _, err := g.send(g.finalPart(k, "and more")); err != nil {
			g.t.Fatal(err)
		}
		var got []string
		for _, m := range g.api.Messages(group) {
			got = append(got, fmt.Sprintf("%d %s", m.Thread, m.Text))
		}
		g.want("sent", got, []string{"0 " + wordsTopicGone + "done", "0 and more"})
		g.want("left to send", g.lane(k).Out, 0)
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Topics: map[int]bool{77: true}})
		g.golden("T17_reopened.json")
		g.got()
		if _, err := g.send(g.finalPart(k, "back")); err != nil {
			g.t.Fatal(err)
		}
		m := g.api.Messages(group)[2]
		g.want("after it was opened", words(m.Thread, m.Text), "77 back")
	}},
	{"T17", "topic that is no more", gateSet{}, func(g *gate) {
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Manages: true, Topics: map[int]bool{77: true}})
		g.golden("ask_topic.json")
		g.one()
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Manages: true})
		g.answers(topicKey(group, 77), "done")
		m := g.api.Messages(group)[0]
		g.want("sent", words(m.Thread, m.Text, len(g.api.Calls("reopenForumTopic"))), "0 "+wordsTopicGone+"done 0")
	}},
	{"T18", "thread is a topic only if it says so, and General has no id", gateSet{}, func(g *gate) {
		g.golden("T18_topics.json")
		ms := g.byID()
		for i, want := range []session.ThreadID{"77", "", "", "9"} {
			g.want(ms[i].Text, ms[i].Key.Thread, want)
		}
		if ms[0].ReplyTo != "" || ms[0].ReplyToBot || ms[0].Addressed {
			g.t.Errorf("the topic's first message counts as a reply: %+v", ms[0])
		}
		g.want("reply chain", ms[2].ReplyTo, "55")
		g.api.AddChat(telegramtest.Chat{ID: group, Forum: true, Topics: map[int]bool{77: true}})
		g.golden("ask_general.json")
		g.one()
		g.settle(2 * time.Second)
		typed := "nowhere"
		for _, c := range g.api.Calls("sendChatAction") {
			if c.Int("chat_id") == group {
				typed = words(c.Int("message_thread_id"))
			}
		}
		g.want("typing in General", typed, "1")
		g.answers(key(group), "done")
		g.settle(time.Second)
		for _, c := range g.api.Calls("sendMessage") {
			g.want("sent to General with thread", c.Params["message_thread_id"], nil)
		}
		g.want("said", g.said(group)[0], "done")
	}},
	{"T19", "chat that blocked the bot gets nothing until it is back", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		g.golden("T19_blocked.json")
		g.got()
		calls := len(g.api.Calls())
		g.shows(key(ann), func(v *session.View) { v.Step++; v.Text = "a text that is being streamed to nobody" })
		g.settle(30 * time.Second)
		g.answers(key(ann), "to nobody")
		g.settle(time.Minute)
		g.want("calls to a chat that blocked the bot", g.api.Calls()[calls:], []string{})
		g.want("left to send", g.lane(key(ann)).Out, 0)
		g.golden("T19_unblocked.json")
		g.golden("T01_edit.json", 0)
		g.got()
		g.answers(key(ann), "back again")
		g.want("said", g.said(ann)[1:], []string{"back again"})
		g.want("history", g.turns(key(ann)), "build the report\nuse the Febuary data")
	}},
	{"T19", "403 on a send ends the sends", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.AddChat(telegramtest.Chat{ID: ann, Blocked: true})
		g.settle(time.Minute)
		g.answers(key(ann), "to nobody")
		g.settle(time.Minute)
		if n := len(g.api.Calls("sendMessage", "sendChatAction", "editMessageText", "sendMessageDraft")); n > 2 {
			g.t.Errorf("%d calls to a chat that blocked the bot", n)
		}
		g.want("left to send", g.lane(key(ann)).Out, 0)
	}},
}

// finalPart makes the one part of a text for a session.
func (g *gate) finalPart(k session.Key, md string) session.Part {
	g.t.Helper()
	list := g.a.Parts(session.Outgoing{Key: k, Kind: session.PartFinal, Markdown: md})
	return session.Part{PartNew: session.PartNew{ID: "x", Kind: session.PartFinal, Turn: 99, Data: list[0]}, Key: k, State: session.PartSending, Attempt: 1}
}
