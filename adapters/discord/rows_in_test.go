package discord

import (
	"encoding/json"
	"strings"
	"time"

	"coxswain/adapters/loopguard"
	"coxswain/discordtest"
	"coxswain/session"
)

// Rows of what comes in.

func rowDeletedQueued(w *world, g *golden) {
	g.feed(0, 3)
	g.stored(`say dm ann #1 "build the report"`, `say dm ann #2 "and the second"`, `say dm ann #3 "and the third"`)
	if err := w.sign(keyOf(dm, ""), 2, session.FateQueued, g.id(2)); err != nil {
		w.t.Error(err)
	}
	g.feed(3, 5)
	g.stored(`delete dm ann #1`, `delete dm ann #2`, `delete dm ann #3`)
	// The receipt goes with the message (10008): no error, and nobody is told.
	if err := w.sign(keyOf(dm, ""), 2, session.FateDropped, g.id(2)); err != nil {
		w.t.Errorf("sign: %v", err)
	}
	g.sent(dm)
}

func rowDeletedRunning(w *world, g *golden) {
	g.all()
	g.stored(`say dm ann #1 "build the report"`, `delete dm ann #1`)
	// It stopped the task: nothing is sent, and the sign is gone with the message
	// (10008).
	v := session.View{Key: keyOf(dm, ""), Turn: 1, Rev: 1, Asked: session.MessageID(g.id(1))}
	w.a.Show(v)
	v.Rev, v.Done, v.End = 2, true, session.EndStopped
	w.a.Show(v)
	if err := w.sign(v.Key, 1, session.FateStopped, g.id(1)); err != nil {
		w.t.Errorf("sign: %v", err)
	}
	if err := w.a.Close(w.ctx); err != nil { // waits for what is shown
		w.t.Error(err)
	}
	g.sent(dm)
	// It came too late for that: the answer hangs on a message that is gone.
	if _, err := w.say(keyOf(dm, ""), "f", session.Outgoing{Markdown: "the report", ReplyTo: session.MessageID(g.id(1))}); err != nil {
		w.t.Error(err)
	}
	g.sent(dm, "the report")
	ref, _ := json.Marshal(w.api.Calls("POST", dm+"/messages")[0].Body["message_reference"])
	if want := `{"fail_if_not_exists":false,"message_id":"` + g.id(1) + `"}`; string(ref) != want {
		w.t.Errorf("reference %s; want %s", ref, want)
	}
}

func rowEdits(w *world, g *golden) {
	g.all()
	g.stored(`say room ann #1 "see https://example.org"`, `edit room ann #1 "see the other page"`)
	g.silent(room)
	g.sent(room)
	if n := len(w.api.Calls("GET", "messages/")); n != 0 {
		w.t.Errorf("asked %d times for what an update without author and time of edit was", n)
	}
}

func rowInteractions(w *world, g *golden) {
	w.door.failing(func(session.Message) error { return errDown })
	g.feed(0, 1)
	w.until("acked before any work", func() bool { kind, _ := w.api.Answer("token-of-1"); return kind == ackDeferred })
	if _, content := w.api.Answer("token-of-1"); content != "" {
		w.t.Errorf("shown as done before it was stored (I1): %q", content)
	}
	w.door.failing(nil)
	g.feed(1, 4)
	g.stored(`say room bob #1 "/queue the next thing"`, `say room bob #2 "/status"`, `press room bob #9 stop:3`)
	// Only who asked sees the answer to /status.
	if _, err := w.say(keyOf(room, ""), "r", session.Outgoing{Kind: session.PartReply, Markdown: "all is well", ReplyTo: session.MessageID("i" + g.id(2))}); err != nil {
		w.t.Error(err)
	}
	if p := w.api.Private("token-of-2"); len(p) != 1 || p[0].Content != "all is well" {
		w.t.Errorf("private %+v", p)
	}
	if err := w.sign(keyOf(room, ""), 1, session.FateQueued, "i"+g.id(1)); err != nil {
		w.t.Error(err)
	}
	g.sent(room, "» the next thing")
	if got := w.api.Bot(room)[0].Reactions; !got["😴"] {
		w.t.Errorf("signs %v", got)
	}
	w.until("press acked", func() bool { kind, _ := w.api.Answer("token-of-3"); return kind == ackDeferredUpdate })
	// The ack is lost (10062): an answer in the channel. Acked already (40060): as
	// if it had been.
	g.answer(0, 1)
	g.feed(4, 6)
	g.stored(`say room bob #5 "/help"`, `say room bob #6 "/whoami"`)
	for n, text := range map[int]string{5: "help for all", 6: "who you are"} {
		if _, err := w.say(keyOf(room, ""), "r"+text, session.Outgoing{Kind: session.PartReply, Markdown: text, ReplyTo: session.MessageID("i" + g.id(n))}); err != nil {
			w.t.Error(err)
		}
	}
	// token-of-6 was never acked at this server, which answers 10015: in private.
	g.sent(room, "» the next thing", "help for all")
	g.feed(6, 7) // the same interaction again
	g.silent(room)
	if n := len(w.api.Calls("POST", "interactions/"+g.id(1))); n != 1 {
		w.t.Errorf("acked %d times; want once", n)
	}
}

func rowToken(w *world, g *golden) {
	g.all()
	g.stored(`say room bob #1 "/status"`, `say room bob #2 "/stop"`, `say room bob #3 "/help"`, `say room bob #4 "/whoami"`)
	old := func(n int) {
		k, _ := w.a.asks.get(g.id(n))
		k.taken(w.ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.till = time.Now()
	}
	reply := func(n int, text string) {
		w.t.Helper()
		o := session.Outgoing{Kind: session.PartReply, Markdown: text, ReplyTo: session.MessageID("i" + g.id(n))}
		if _, err := w.say(keyOf(room, ""), "r"+text, o); err != nil {
			w.t.Error(err)
		}
	}
	// After 14 minutes the token is not tried any more: what all may see goes to
	// the channel, what concerns one person to them.
	old(1)
	old(2)
	reply(1, "for bob")
	reply(2, "for all")
	g.answer(0, 1) // 50027, 10015: the same when Discord says so
	reply(3, "help")
	reply(4, "you")
	g.sent(room, "for all")
	g.sent(w.api.DM(bob), "for bob", "help", "you")
	if n := len(w.api.Calls("PATCH", "token-of-1")) + len(w.api.Calls("PATCH", "token-of-2")); n != 0 {
		w.t.Errorf("tried %d times with a token that is too old", n)
	}
	// Who takes no private messages gets it where they asked (D22).
	w.api.AddChannel(discordtest.Channel{ID: w.api.DM(bob), Type: discordtest.TypeDM, NoSend: 50007})
	reply(1, "closed")
	g.sent(room, "for all", "closed")
}

func rowBots(w *world, g *golden) {
	g.all()
	g.stored(`say room 79 #6 "ping"`) // it is named in Bots, and mentions the bot
	g.silent(room)
	for n := range loopguard.Most + 5 {
		w.api.Post(discordtest.Message{Channel: room, Author: discordtest.User{ID: "79", Bot: true}, Content: me + " again"})
		if n < loopguard.Most-1 {
			w.next()
		}
	}
	g.silent(room)
	if n := strings.Count(w.logs.String(), wordsLoop); n != 1 {
		w.t.Errorf("told of the loop %d times; want once", n)
	}
	g.sent(room, me+" from me") // its own message of the input, nothing besides
}

func rowSystem(w *world, g *golden) {
	g.all()
	g.stored(`say room ann #30 "a reply"`)
	g.silent(room)
	g.sent(room)
}

func rowAutoThread(w *world, g *golden) {
	// Making it times out although it is made.
	w.api.Fault(discordtest.Fault{Method: "POST", Path: "/threads", LoseReply: true})
	g.feed(0, 1)
	g.stored(`say room/#1 ann #1 "build the report"`)
	if n := len(w.api.Calls("POST", "/threads")); n != 1 {
		w.t.Errorf("made %d times; want once, then looked for", n)
	}
	// The starter is seen in the channel and in the thread; what is written there
	// needs no mention.
	g.feed(0, 4)
	g.stored(`say room/#1 ann #3 "use the March data"`)
	g.silent(g.id(1))
	if err := w.sign(keyOf(room, g.id(1)), 1, session.FateAnswered, g.id(1)); err != nil || !w.api.Messages(room)[0].Reactions["👍"] {
		w.t.Errorf("sign on the starter: %v, %v", err, w.api.Messages(room)[0].Reactions)
	}
	if _, err := w.say(keyOf(room, g.id(1)), "f", session.Outgoing{Markdown: "done"}); err != nil {
		w.t.Error(err)
	}
	g.sent(g.id(1), "done")
	g.sent(room)
	// Again after a restart: decided is decided, whatever Discord says now.
	w.stop()
	w.docs.forget("cursors")
	w.fresh()
	w.run()
	w.connected()
	c, _ := w.api.Channel(room)
	c.NoThreads = true
	w.api.AddChannel(c)
	g.feed(0, 1)
	// Its dedupe id is one of a lane: the door's record has the thread's.
	g.again("m:" + room + ":" + g.id(1))
	if m := w.door.last("m:" + room + ":" + g.id(1)); m.Key != keyOf(room, g.id(1)) {
		w.t.Errorf("given to %v the second time", m.Key)
	}
}

func rowForum(w *world, g *golden) {
	g.all()
	g.stored(`say forum/#1 bob #1 "It crashes\n\nwhen I press save"`, `say forum/#1 bob #2 "only on Mondays"`)
	if _, err := w.say(keyOf(forum, g.id(1)), "f", session.Outgoing{Markdown: "fixed"}); err != nil {
		w.t.Error(err)
	}
	g.sent(g.id(1), "fixed")
	// A forum itself takes no messages: nothing goes there from a locked post.
	g.answer(0)
	_, err := w.say(keyOf(forum, g.id(1)), "f2", session.Outgoing{Markdown: "again"})
	if e := outcome(w.t, err); e.Outcome != session.SendRefused || len(w.api.Calls("POST", forum+"/messages")) != 0 {
		w.t.Errorf("outcome %+v", e)
	}
}

func rowNoText(w *world, g *golden) {
	w.api.AddFile("voice.ogg", []byte("OggS"))
	g.feed(0, 2)
	g.stored(`say dm ann #1 "[sticker: Wumpus]"`, `say dm ann #2 "[files: voice-message.ogg]"`, `say dm ann #2 "" voice inbox/voice-message.ogg`)
	g.feed(2, 4)
	g.stored(`say dm ann #3 "/stop and `+me+`" forwarded`, `say dm ann #4 "[poll: When? (now / later)]"`)
	g.silent(dm)
}

func rowReplay(w *world, g *golden) {
	for range 2 {
		g.all()
	}
	g.stored(`say dm ann #1 "one"`, `edit dm ann #1 "one, better"`, `say dm ann #2 "/stop"`, `delete dm ann #1`)
	g.silentTwice(dm)
	// The same over a Resume: with and without RESUMED, events that were taken.
	for _, s := range []discordtest.Script{{Replay: 4}, {Replay: 4, OmitResumed: true}} {
		w.api.Next(s)
		w.api.Drop(0)
		w.until("connected again", func() bool { return w.api.Connected() == 1 })
		g.silentTwice(dm)
	}
	if n := len(w.api.Calls("POST", "interactions")); n != 1 {
		w.t.Errorf("acked %d times; want once", n)
	}
	// Another process, which remembers nothing: the ids are the same.
	w.stop()
	w.fresh()
	w.run()
	w.connected()
	g.all()
	g.silentTwice(dm)
}

func rowBackfill(w *world, g *golden) {
	w.api.Post(discordtest.Message{ID: g.id(0), Channel: room, Author: discordtest.User{ID: bob}, Content: "chatter nobody means"})
	g.feed(0, 1)
	g.stored(`say room bob #0 "chatter nobody means" unaddressed`, `say dm ann #1 "before"`)
	w.until("newest stored", func() bool { return strings.Contains(w.docs.get("cursors"), g.id(1)) })
	w.stop()
	g.feed(1, 3) // while away
	w.fresh()
	w.api.Next(g.Gateway...)
	w.api.Fault(discordtest.Fault{Method: "GET", Path: dm + "/messages", Status: 500, Times: 2})
	w.run()
	w.until("new login", func() bool { return w.a.Status().Logins >= 1 })
	g.feed(3, 4)
	g.stored(`say dm ann #2 "missed"`, `say dm ann #4 "live"`, `say room bob #3 "missed in a channel nobody spoke in"`)
	g.silent(dm)
	g.sent(dm)
}

func rowEmpty(w *world, g *golden) {
	w.api.NoContent = true
	if err := w.a.Run(w.ctx); err != ErrIntents {
		w.t.Errorf("Run: %v; want ErrIntents", err)
	}
	if s := w.a.Status(); s.Err != wordsNoIntent || s.Connected || w.api.Dials() != 1 {
		w.t.Errorf("status %+v after %d connections; want one", s, w.api.Dials())
	}
	w.api.NoContent = false
	w.fresh()
	w.run()
	w.connected()
	g.all()
	g.silent(room)
	if n := strings.Count(w.logs.String(), wordsNoContent); n != 1 {
		w.t.Errorf("told %d times; want once", n)
	}
	w.end()
}

func rowExpired(w *world, g *golden) {
	// The address has run out; the message, asked for again, has a new one.
	url := w.api.AddFile("fresh.txt", []byte("data"))
	w.api.OnGet(func(o map[string]any) {
		if list, ok := o["attachments"].([]any); ok && len(list) == 1 {
			list[0].(map[string]any)["url"] = url
		}
	})
	g.all()
	g.stored(`say dm ann #1 "look"`, `say dm ann #1 "" document inbox/a.txt`)
	w.save.mu.Lock()
	defer w.save.mu.Unlock()
	if w.save.files["a.txt"] != "data" {
		w.t.Errorf("saved %q", w.save.files)
	}
}
