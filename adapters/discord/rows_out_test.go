package discord

import (
	"encoding/json"
	"strings"
	"time"

	"coxswain/discordtest"
	"coxswain/session"
)

// Rows of what goes out, and of the gateway.

func rowThreads(w *world, g *golden) {
	key := keyOf(room, topic)
	asked := w.api.Say(topic, ann, me+" go")
	w.next()
	send := func(k session.Key, id, text string) error {
		_, err := w.say(k, id, session.Outgoing{Markdown: text})
		return err
	}
	// Archived: a send opens it; an edit and a reaction open it once and then try
	// again.
	c, _ := w.api.Channel(topic)
	c.Archived = true
	w.api.AddChannel(c)
	if err := send(key, "1", "one"); err != nil {
		w.t.Error(err)
	}
	g.answer(1)
	if err := w.sign(key, 1, session.FateQueued, asked); err != nil {
		w.t.Error(err)
	}
	w.a.timing.typingAfter, w.a.timing.bubbleAfter, w.a.timing.editEvery = time.Hour, 0, 5*time.Millisecond
	v := session.View{Key: key, Turn: 1, Rev: 1, Step: 1}
	w.a.Show(v)
	w.until("bubble", func() bool { return len(w.api.Bot(topic)) == 2 })
	g.answer(0)
	v.Rev, v.Notice = 2, "waiting"
	w.a.Show(v)
	w.until("edited", func() bool { return strings.Contains(w.api.Bot(topic)[1].Content, "waiting") })
	v.Rev, v.Done = 3, true
	w.a.Show(v)
	w.until("closed", func() bool { return strings.HasPrefix(w.api.Bot(topic)[1].Content, "✓") })
	opens := 0
	for _, call := range w.api.Calls("PATCH", "channels/"+topic) {
		if call.Body["archived"] == false {
			opens++
		}
	}
	if opens != 2 {
		w.t.Errorf("opened %d times; want once for the reaction and once for the edit", opens)
	}
	// Locked, or not to be written to: to its channel, with a link; once tried is
	// enough.
	g.answer(2)
	for _, id := range []string{"2", "3"} {
		if err := send(key, id, "locked "+id); err != nil {
			w.t.Error(err)
		}
	}
	g.answer(3)
	if err := send(keyOf(room, opened), "4", "no permission"); err != nil {
		w.t.Error(err)
	}
	link := func(thread string) string { return "(<#" + thread + "> is closed to me, so the answer is here) " }
	g.sent(room, link(topic)+"locked 2", link(topic)+"locked 3", link(opened)+"no permission")
	// Something is heard from it: it is tried again.
	w.api.Say(topic, ann, "open again")
	w.next()
	if err := send(key, "5", "five"); err != nil {
		w.t.Error(err)
	}
	if got := w.api.Bot(topic); got[len(got)-1].Content != "five" {
		w.t.Errorf("got %q", texts(got))
	}
}

func rowPermissions(w *world, g *golden) {
	g.all()
	g.stored(`say room ann #1 "build the report"`)
	g.answer(0)
	for n := range 3 {
		_, err := w.say(keyOf(room, ""), string(rune('a'+n)), session.Outgoing{Markdown: "x"})
		if e := outcome(w.t, err); e.Outcome != session.SendRefused {
			w.t.Errorf("outcome %+v", e)
		}
	}
	if n := len(w.api.Calls("POST", room+"/messages")); n != 1 {
		w.t.Errorf("%d calls; want 1", n)
	}
	g.sent(dm, wordsTellClosed(room)) // its owner, once
	if s := w.a.Status(); s.Refused != 1 || w.api.Invalid() != 1 {
		w.t.Errorf("status says %d refused, the server %d; want 1", s.Refused, w.api.Invalid())
	}
	// Calls that are refused are counted, and stop before Discord bars the address.
	for range invalidMost - 1 {
		w.a.countInvalid()
	}
	_, err := w.say(keyOf(dm, ""), "z", session.Outgoing{Markdown: "x"})
	if e := outcome(w.t, err); e.Outcome != session.SendNot || e.Wait < invalidPause/2 || len(w.api.Calls("POST", dm+"/messages")) != 1 {
		w.t.Errorf("outcome %+v; want a pause", e)
	}
}

func rowOverflow(w *world, g *golden) {
	// As stored by a build with another limit.
	long, _ := json.Marshal(payload{Text: strings.Repeat("word ", 300)})
	g.answer(0, 1)
	p := w.part(dm, "x")
	p.Data = long
	if _, err := w.a.Send(w.ctx, p); err != nil {
		w.t.Error(err)
	}
	got := w.api.Bot(dm)
	if len(got) != 2 || strings.Join(strings.Fields(got[0].Content+" "+got[1].Content), " ") != strings.TrimSpace(strings.Repeat("word ", 300)) {
		w.t.Errorf("sent %d pieces: %q", len(got), texts(got))
	}
	o := session.Outgoing{Markdown: "choose", Buttons: []session.Button{{Text: "Run", Data: "run:1"}}}
	if _, err := w.say(keyOf(room, ""), "b", o); err != nil {
		w.t.Error(err)
	}
	g.sent(room, "choose")
	if c := w.api.Bot(room)[0].Components; len(c) != 0 {
		w.t.Errorf("buttons %s; want none", c)
	}
}

func rowLimits(w *world, g *golden) {
	wait := func(chat, id string) time.Duration {
		w.t.Helper()
		began := time.Now()
		_, err := w.say(keyOf(room, ""), id, session.Outgoing{Markdown: "x"})
		if chat != room {
			p := w.part(chat, id)
			p.ID = id
			_, err = w.a.Send(w.ctx, p)
		}
		if time.Since(began) > 5*time.Second {
			w.t.Errorf("slept %v", time.Since(began))
		}
		if err == nil {
			return 0
		}
		e := outcome(w.t, err)
		if e.Outcome != session.SendNot {
			w.t.Errorf("outcome %+v", e)
		}
		return e.Wait.Round(time.Second)
	}
	g.answer(0, 1)
	if d := wait(dm, "1"); d < 29*time.Second { // of the route: others go on
		w.t.Errorf("route: wait %v", d)
	}
	if d := wait(topic, "2"); d < 29*time.Second { // shared
		w.t.Errorf("shared: wait %v", d)
	}
	if d := wait(room, "3"); d != 0 {
		w.t.Errorf("another channel waits %v", d)
	}
	if n := w.a.Status().Refused; n != 1 {
		w.t.Errorf("%d count against the address; want the one that is not shared", n)
	}
	g.answer(2)
	if d := wait(room, "4"); d < 29*time.Second {
		w.t.Errorf("global: wait %v", d)
	}
	if d := wait(opened, "5"); d < 29*time.Second {
		w.t.Errorf("another channel waits %v after a global limit", d)
	}
	// The global limit does not hold for answers to interactions; the wall before
	// Discord bars all.
	g.feed(0, 1)
	g.stored(`say dm ann #1 "/status"`)
	w.until("acked", func() bool { kind, _ := w.api.Answer("token-of-1"); return kind == ackDeferred })
	g.answer(3)
	n := len(w.api.Calls("POST", "/callback"))
	g.feed(1, 2)
	g.stored(`say dm ann #2 "/status"`)
	w.until("barred", func() bool { return w.a.pace.wait(interactions+"0") > 50*time.Second })
	if d := wait(opened, "6"); d < 59*time.Second || len(w.api.Calls("POST", "/callback")) != n+1 {
		w.t.Errorf("behind the wall: wait %v", d)
	}
}

func rowNonce(w *world, g *golden) {
	// Lost after it was done, a 502 of a proxy, a 500: the same nonce, one message.
	w.api.Fault(discordtest.Fault{Method: "POST", Path: room + "/messages", LoseReply: true})
	g.answer(0, 1)
	var last error
	for range 4 {
		_, last = w.say(keyOf(room, ""), "f", session.Outgoing{Markdown: "once"})
		if last != nil && outcome(w.t, last).Outcome != session.SendNot {
			w.t.Errorf("outcome %v", last)
		}
	}
	g.sent(room, "once")
	calls := w.api.Calls("POST", room+"/messages")
	for _, c := range calls {
		if c.Body["nonce"] != calls[0].Body["nonce"] || c.Body["enforce_nonce"] != true {
			w.t.Errorf("nonce %v, enforced %v", c.Body["nonce"], c.Body["enforce_nonce"])
		}
	}
	if last != nil || len(calls) != 4 {
		w.t.Errorf("%d calls, last %v", len(calls), last)
	}
}

func rowPings(w *world, g *golden) {
	g.all()
	g.stored(`say room ann #1 "tell everybody"`)
	if _, err := w.say(keyOf(room, ""), "f", session.Outgoing{Markdown: "@everyone <@" + ann + "> <@&5> @here"}); err != nil {
		w.t.Error(err)
	}
	for _, c := range w.api.Calls("POST", room+"/messages") {
		if am, _ := json.Marshal(c.Body["allowed_mentions"]); string(am) != `{"parse":[]}` {
			w.t.Errorf("allowed_mentions %s", am)
		}
	}
	if got := texts(w.api.Bot(room)); strings.Contains(got, "@everyone") || strings.Contains(got, "@here") {
		w.t.Errorf("sent %q", got)
	}
}

func rowGuilds(w *world, g *golden) {
	send := func(id string) (*session.SendError, int) {
		w.t.Helper()
		_, err := w.say(keyOf(room, ""), id, session.Outgoing{Markdown: id})
		n := len(w.api.Calls("POST", room+"/messages"))
		if err == nil {
			return nil, n
		}
		return outcome(w.t, err), n
	}
	g.feed(0, 1)
	g.stored(`say room ann #1 "build the report"`)
	g.feed(1, 2) // an outage: everything is kept, and waits
	w.until("out", func() bool { out, _ := w.a.guilds.get(guild); return out })
	if e, n := send("one"); e == nil || e.Outcome != session.SendNot || e.Wait == 0 || n != 0 {
		w.t.Errorf("outage: %+v after %d calls", e, n)
	}
	g.feed(2, 3)
	w.until("back", func() bool { out, _ := w.a.guilds.get(guild); return !out })
	if e, n := send("one"); e != nil || n != 1 {
		w.t.Errorf("back: %+v after %d calls", e, n)
	}
	g.feed(3, 4) // kicked: nothing is sent, nothing is tried, views stop
	w.until("gone", func() bool { _, gone := w.a.guilds.get(guild); return gone })
	if e, n := send("two"); e == nil || e.Outcome != session.SendRefused || n != 1 {
		w.t.Errorf("kicked: %+v after %d calls", e, n)
	}
	if w.a.cursors.get(room) == "" {
		w.t.Error("its cursor was forgotten")
	}
	w.a.timing.typingAfter, w.a.timing.bubbleAfter = 0, 0
	w.a.Show(session.View{Key: keyOf(room, ""), Turn: 1, Rev: 1})
	w.a.Show(session.View{Key: keyOf(room, ""), Turn: 1, Rev: 2, Done: true})
	g.feed(2, 3) // let in again
	w.until("in", func() bool { _, gone := w.a.guilds.get(guild); return !gone })
	if e, _ := send("three"); e != nil {
		w.t.Errorf("let in: %+v", e)
	}
	g.sent(room, "one", "three")
	if n := len(w.api.Calls("POST", "typing")); n != 0 {
		w.t.Errorf("%d typing signs into a guild it is not in", n)
	}
	// What is said while a guild is out is read when it is back, also in a channel
	// that was read when this session began.
	w.api.Next(discordtest.Script{RefuseResume: true})
	w.api.Drop(0)
	w.until("new login", func() bool { return w.a.Status().Logins >= 2 && len(w.api.Calls("GET", room+"/messages")) > 0 })
	w.api.Outage(guild, true)
	w.api.Say(room, ann, me+" unheard")
	w.api.Outage(guild, false)
	if m := w.next(); m.Text != "unheard" {
		w.t.Errorf("got %+v", m)
	}
}

func rowClosedDM(w *world, g *golden) {
	g.all()
	g.stored(`say dm ann #1 "hello"`)
	g.answer(0)
	for n := range 3 {
		_, err := w.say(keyOf(dm, ""), string(rune('a'+n)), session.Outgoing{Markdown: "x"})
		if e := outcome(w.t, err); e.Outcome != session.SendRefused {
			w.t.Errorf("outcome %+v", e)
		}
	}
	if n := len(w.api.Calls("POST", dm+"/messages")); n != 1 || len(w.api.Calls("POST", "users/@me/channels")) != 0 {
		w.t.Errorf("%d calls; want 1, and nobody told", n)
	}
}

func rowDeaf(w *world, g *golden) {
	w.a.timing.open, w.a.timing.tick, w.a.timing.quiet = stuckOpen, 20*time.Millisecond, 400*time.Millisecond
	w.api.Next(g.Gateway...) // READY never comes
	w.run()
	w.until("replaced", func() bool { s := w.a.Status(); return s.Replaced >= 1 && s.Connected })
	logins := w.a.Status().Logins
	g.all()
	g.stored(`say dm ann #2 "with parts"`)
	g.silent(dm)
	// A zombie whose heartbeats are answered: silence is looked into.
	w.api.Mute(true)
	w.api.Say(dm, ann, "unheard")
	if m := w.next(); m.Text != "unheard" {
		w.t.Errorf("got %+v", m)
	}
	w.until("resumed", func() bool { return w.a.Status().Resumes > 0 })
	if s := w.a.Status(); s.Undecodable != 0 || s.Logins != logins {
		w.t.Errorf("status %+v; want a resume, and no login for it", s)
	}
	w.end()
}

func rowFatal(w *world, g *golden) {
	w.api.Next(g.Gateway...)
	if err := w.a.Run(w.ctx); err != ErrToken {
		w.t.Errorf("Run: %v; want ErrToken", err)
	}
	if s := w.a.Status(); s.Err != wordsBadToken || s.Connected || w.api.Dials() != 1 {
		w.t.Errorf("status %+v after %d connections; want one", s, w.api.Dials())
	}
	// The day's logins are nearly gone: none is spent, the status says so.
	g.answer(0)
	w.api.SetLogins(3) // the server's own answer from then on
	w.fresh()
	w.a.timing.lowLogins = 50 * time.Millisecond
	w.run()
	w.until("told", func() bool { s := w.a.Status(); return s.Err == wordsNoLogins && s.LoginsLeft == 3 })
	if n := w.api.Dials(); n != 1 {
		w.t.Errorf("%d connections", n)
	}
	w.api.SetLogins(1000) // a day later
	w.connected()
	w.end()
}
