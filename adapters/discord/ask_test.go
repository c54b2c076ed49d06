package discord

import (
	"testing"
	"time"

	"coxswain/session"
)

// reply answers an input as the hub does.
func (w *world) reply(m session.Message, text string, alone bool) {
	w.t.Helper()
	o := session.Outgoing{Kind: session.PartReply, Markdown: text, ReplyTo: m.ID, Interaction: m.Interaction, Alone: alone}
	if m.Private {
		o.ReplyTo = ""
	}
	if _, err := w.say(m.Key, text, o); err != nil {
		w.t.Errorf("%s: %v", text, err)
	}
}

// privately are the texts that only who asked sees.
func (w *world) privately(token string) string { return texts(w.api.Private(token)) }

// An answer that concerns only who asked is seen by nobody else, also where all
// saw that something is thought about; what changes something is seen by all.
func TestAloneAnswers(t *testing.T) {
	play(t, Options{}, func(w *world) {
		refused := w.api.Slash(room, bob, "stop", "")
		w.reply(w.next(), "not yours", true)
		if got := w.privately(refused); got != "not yours" || !w.api.Dismissed(refused) || len(w.api.Bot(room)) != 0 {
			t.Errorf("refused: alone %q, all %q", got, texts(w.api.Bot(room)))
		}
		done := w.api.Slash(room, ann, "stop", "")
		m := w.next()
		w.reply(m, "stopped", false)
		w.reply(m, "and held", false)
		if got := texts(w.api.Bot(room)); got != "stopped | and held" || w.privately(done) != "" {
			t.Errorf("done: all %q, alone %q", got, w.privately(done))
		}
		// Too late for the token it goes to who asked in private, not to all.
		w.api.Slash(room, ann, "busy", "")
		m = w.next()
		k, _ := w.a.asks.get(m.Interaction)
		if !k.taken(w.ctx) {
			t.Fatal("not acked")
		}
		k.till = time.Now() // its token works no more
		w.reply(m, "the mode", true)
		if got := texts(w.api.Bot(w.api.DM(ann))); got != "the mode" || len(w.api.Bot(room)) != 2 {
			t.Errorf("late: in private %q, all %q", got, texts(w.api.Bot(room)))
		}
	})
}

// What a command asked for is shown to all and stands for the input, whether a
// word to who asked comes before it or behind.
func TestAloneAndInput(t *testing.T) {
	for _, first := range []string{"the word", "the sign"} {
		t.Run(first, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				token := w.api.Slash(room, bob, "steer", "use March")
				m := w.next()
				if first == "the word" {
					w.reply(m, "queued instead", true)
				}
				if err := w.sign(m.Key, 3, session.FateQueued, string(m.ID)); err != nil {
					t.Fatal(err)
				}
				if first == "the sign" {
					w.reply(m, "queued instead", true)
				}
				all := w.api.Bot(room)
				if texts(all) != "» use March" || !all[0].Reactions["😴"] || w.privately(token) != "queued instead" {
					t.Errorf("all %+v, alone %q", all, w.privately(token))
				}
			})
		})
	}
}

// What the hub said to who asked is not written over by a state.
func TestStateLeavesAnswer(t *testing.T) {
	play(t, Options{}, func(w *world) {
		own := w.api.Say(room, bob, "use March")
		w.next()
		token := w.api.Menu(room, bob, menuSteer, own)
		m := w.next()
		w.reply(m, "queued instead", true)
		if err := w.sign(m.Key, 3, session.FateQueued, string(m.ID)); err != nil {
			t.Fatal(err)
		}
		if got := w.privately(token); got != "queued instead" {
			t.Errorf("alone %q", got)
		}
	})
}

// In a private chat there is nobody else: an answer is one message, and it stays.
func TestPrivateChatAnswers(t *testing.T) {
	play(t, Options{}, func(w *world) {
		token := w.api.Slash(dm, ann, "status", "")
		m := w.next()
		w.nothing() // whatever comes of it without the hub has come
		w.reply(m, "idle", true)
		if _, text := w.api.Answer(token); text != "idle" {
			t.Errorf("in place of what was thought about stands %q", text)
		}
		w.reply(m, "and more", true)
		shown := w.api.Say(dm, ann, "x")
		w.next()
		press := w.api.Press(dm, shown, ann, "drop:1")
		w.reply(w.next(), "out of date", true)
		if got := texts(w.api.Bot(dm)); got != "idle | and more | out of date" || w.privately(token)+w.privately(press) != "" {
			t.Errorf("shown %q, alone %q %q", got, w.privately(token), w.privately(press))
		}
	})
}

// What takes long shows what was asked for until it comes; of what asked for
// nothing that could be shown, nothing stays.
func TestPrivateChatSlow(t *testing.T) {
	w := newWorld(t, Options{})
	w.a.timing.grace = 50 * time.Millisecond
	w.run()
	w.connected()
	long := w.api.Slash(dm, ann, "btw", "how far?")
	m := w.next()
	w.until("shown", func() bool { _, text := w.api.Answer(long); return text == "» how far?" })
	w.reply(m, "half way", false)
	if got := texts(w.api.Bot(dm)); got != "» how far? | half way" {
		t.Errorf("shown %q", got)
	}
	nothing := w.api.Slash(dm, bob, "status", "")
	w.next()
	w.until("dismissed", func() bool { return w.api.Dismissed(nothing) })
	w.end()
}
