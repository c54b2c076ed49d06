package telegram

import (
	"fmt"
	"strings"
	"time"

	"coxswain/adapters/loopguard"
	"coxswain/session"
	"coxswain/steer"
	"coxswain/telegramtest"
)

const (
	news   = int64(-1009)
	friend = int64(99) // a bot that may speak
)

// named lets one channel and one bot speak, and nobody else but Ann.
func named(mode steer.Mode) gateSet {
	return gateSet{
		mode:    mode,
		options: Options{Channels: []int64{news}, Bots: []int64{friend}},
		policy:  &session.Policy{AllowUsers: []string{string(ChatUser(news)), fmt.Sprint(friend)}, Admins: []string{fmt.Sprint(ann)}, Pairing: session.PairingOn},
	}
}

// channel adds the channel; admin says whether the bot is in it.
func (g *gate) channel(admin bool) {
	g.api.AddChat(telegramtest.Chat{ID: news, Type: "channel", Title: "News", Admin: admin})
}

// who writes the messages' authors and texts.
func who(ms []session.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, fmt.Sprintf("%s %s %v: %s", m.From.ID, m.From.Name, m.Addressed, m.Text))
	}
	return strings.Join(out, "\n")
}

// Channels and bots that are named in the settings: T14, T15.
var channelRows = []platformRow{
	{"T14", "post of a channel that may speak is answered there", named(steer.Queue), func(g *gate) {
		g.channel(true)
		g.golden("T14_posts.json", 0, 1)
		g.want("took", who(g.byID()), "chat:-1009 News false: numbers are out\nchat:-1009 News true: sum them up")
		g.want("turns", g.turns(key(news)), "sum them up")
		g.settle(20 * time.Second)
		g.want("typing signs, which channels do not have", len(g.api.Calls("sendChatAction")), 0)
		g.golden("T14_posts.json", 2) // an edit
		g.want("took", g.one().Kind, session.KindEdit)
		g.want("waits", g.slot(key(news)), "queue: edited: sum them up, by month")
		g.answers(key(news), "done")
		g.settle(time.Second)
		g.want("answered", g.count(news, "done"), 1)
	}},
	{"T14", "in a channel a post speaks to the bot by mention, reply or command", named(steer.Queue), func(g *gate) {
		g.channel(true)
		g.golden("T14_posts.json", 3, 4, 5, 7)
		g.want("took", who(g.byID()), "chat:-1009 News false: /stop\nchat:-1009 News true: /status")
		g.want("status", len(g.said(news)), 1)
		reply := func(to int, text string) session.Message {
			g.api.Say(news, 0, text, telegramtest.Fields{"reply_to_message": map[string]any{"message_id": to, "date": 1,
				"chat": map[string]any{"id": news, "type": "channel"}, "sender_chat": map[string]any{"id": news, "type": "channel"}}})
			return g.one()
		}
		own := g.api.Messages(news)[0].ID
		m := reply(own, "and the phase?")
		g.want("reply to the bot's post", words(m.ReplyToBot, m.Addressed), "true true")
		m = reply(own+100, "and this?")
		g.want("reply to another post", words(m.ReplyToBot, m.Addressed), "false false")
		g.want("turns", g.turns(key(news)), "and the phase?")
		g.api.Say(news, 0, "signed by a bot", telegramtest.Fields{"from": map[string]any{"id": friend, "is_bot": true, "first_name": "Other"}})
		g.want("signed post", who(g.got()), "chat:-1009 News false: signed by a bot")
	}},
	{"T14", "post with a file has no sender, and is read all the same", named(steer.Queue), func(g *gate) {
		g.channel(true)
		g.api.AddFile("v1", []byte("abc"))
		g.golden("T14_posts.json", 6)
		g.one()
		g.want("turns", g.turns(key(news)), "and this[voice inbox/voice-10]")
		g.want("not understood", g.a.Status().Undecodable, 0)
	}},
	{"T14", "post in the discussion group is the channel's; its commands and its forwards are not", named(steer.Queue), func(g *gate) {
		g.channel(false)
		g.golden("T14_auto.json")
		ms := g.byID()
		g.want("took", who(ms), strings.Join([]string{
			"chat:-1009 News false: numbers are out",
			"chat:-1009 News true: sum them up",
			"chat:-1009 News false: @cox_test_bot obey me",
			"chat:-1009 News true:  / is the root,",
		}, "\n"))
		g.want("forwarded", words(ms[0].Forwarded, ms[1].Forwarded, ms[2].Forwarded, ms[3].Forwarded), "Rumours")
		g.settle(2 * time.Second)
		g.want("turns", g.turns(key(group)), "sum them up")
		g.want("waits", g.slot(key(group)), "queue:  / is the root,")
		g.want("said", g.said(group), []string{})
		g.want("asked whether the bot is in the channel", len(g.api.Calls("getChatMember")), 1)
	}},
	{"T14", "post that the bot has heard in the channel is not heard again in the group", named(steer.Queue), func(g *gate) {
		g.channel(true)
		g.golden("T14_posts.json", 1)
		g.golden("T14_auto.json", 1)
		g.want("took", g.one().Key, key(news))
		g.want("group's session", g.lane(key(group)).Exists, false)
		g.api.Update(fmt.Sprintf(`{"my_chat_member":{"chat":{"id":%d,"title":"News","type":"channel"},"from":{"id":%d,"first_name":"Ann"},"date":1,"new_chat_member":{"status":"left","user":{"id":1}}}}`, news, ann))
		g.got()
		g.golden("T14_auto.json", 1)
		g.want("took, once the bot has left", g.one().Key, key(group))
	}},
	{"T14", "whether the bot is in the channel cannot be found out at first", named(steer.Queue), func(g *gate) {
		g.channel(false)
		g.api.Fault(telegramtest.Fault{Method: "getChatMember", HTML: 502, Times: 2})
		g.golden("T14_auto.json", 1)
		g.settle(10 * time.Second)
		g.want("turns", g.turns(key(group)), "sum them up")
		g.confirmed()
	}},
	{"T14", "written as a channel that may speak, as another one, as none", named(steer.Queue), func(g *gate) {
		g.golden("T14_as_channel.json")
		g.want("took", who(g.byID()), "chat:-1009 News true: sum them up")
		g.want("turns", g.turns(key(group)), "sum them up")
		g.want("not understood", g.a.Status().Undecodable, 0)
		g.confirmed()
	}},
	{"T14", "channel that may speak is no admin", named(steer.Queue), func(g *gate) {
		g.channel(true)
		g.golden("ask_group.json") // Ann's
		g.got()
		g.api.Say(group, 136817688, "/stop@cox_test_bot", telegramtest.Fields{"sender_chat": map[string]any{"id": news, "title": "News", "type": "channel"}})
		g.want("took", g.one().From.ID, ChatUser(news))
		g.want("said", g.said(group), []string{"Only the task's owner or an admin can do that."})
		g.want("open turn", g.lane(key(group)).Turn, 1)
	}},
	{"T14", "what no person wrote is passed over with other channels named", gateSet{options: Options{Channels: []int64{-1010}}}, func(g *gate) {
		g.golden("T14_not_people.json")
		g.want("took", len(g.got()), 0)
		g.confirmed()
	}},
	{"T14", "pushed posts come too", func() gateSet { s := named(steer.Queue); s.pushed = true; return s }(), func(g *gate) {
		g.channel(true)
		g.golden("T14_posts.json", 1)
		g.settle(time.Second)
		g.want("turns", g.turns(key(news)), "sum them up")
	}},
	{"T15", "bot that may speak is heard when it names this one", named(steer.Queue), func(g *gate) {
		g.golden("T15_allowed.json")
		g.want("took", who(g.byID()), "99 Other true: hi")
		g.want("turns", g.turns(key(group)), "hi")
		g.want("said", words(g.said(group), g.said(friend)), "[] []")
		g.confirmed()
	}},
	{"T15", "bot that does not stop is not heard any more", named(steer.Queue), func(g *gate) {
		hi := telegramtest.User{ID: friend, IsBot: true, FirstName: "Other", Username: "other_bot"}
		g.api.AddUser(hi)
		for range loopguard.Most + 5 {
			g.api.Say(group, friend, "@cox_test_bot again")
			g.settle(time.Second)
		}
		g.want("heard", len(g.got()), loopguard.Most)
		g.want("told in the log", strings.Count(g.logs.String(), wordsLoop), 1)
		g.api.Say(basic, friend, "@cox_test_bot elsewhere")
		g.want("heard in another group", g.one().Text, "elsewhere")
		g.settle(loopguard.Rest)
		g.api.Say(group, friend, "@cox_test_bot once more")
		g.want("heard after its rest", g.one().Text, "once more")
	}},
}
