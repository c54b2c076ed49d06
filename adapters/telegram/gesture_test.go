package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/telegramtest"
)

const carl = int64(7003)

// A reaction by its author drops a message that waits, whichever it is.
func TestReactionDropsOwnMessage(t *testing.T) {
	gated(t, gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		drop := g.api.Say(ann, ann, "use March")
		keep := g.api.Say(ann, ann, "and charts")
		g.got()
		g.api.React(ann, drop, ann, "👎")
		g.one()
		g.want("waits", g.slot(key(ann)), "queue: and charts")
		g.want("signs", g.sign(ann, drop)+g.sign(ann, keep), "👎😴")
		g.api.React(ann, keep, ann) // taken back
		g.want("took", len(g.got()), 0)
		g.api.React(ann, 10, ann, "👍") // the running turn's own message
		g.settle(time.Second)
		g.want("open turn", g.lane(key(ann)).Turn, 1)
		g.off()
		g.up()
		g.settle(time.Second)
		g.got()
		g.api.React(ann, keep, ann, "👍")
		g.got()
		g.want("waits after a restart", g.slot(key(ann)), "")
		for _, s := range g.said(ann) {
			if strings.Contains(s, "wait") || strings.Contains(s, "button") {
				g.t.Errorf("a gesture was answered: %q", s)
			}
		}
	})
}

// A reaction by the owner of the running turn lets another's message in; one by
// anybody else does nothing, and nothing is said about it. The topic is that of
// the message.
func TestReactionLetsAnothersMessageIn(t *testing.T) {
	for _, thread := range []int{0, 77} {
		gated(t, gateSet{mode: steer.Queue, policy: &session.Policy{AllowUsers: []string{"*"}, Pairing: session.PairingOff}}, func(g *gate) {
			g.api.AddChat(telegramtest.Chat{ID: group, Forum: thread != 0, Topics: map[int]bool{77: true}})
			k, in := key(group), telegramtest.Fields{}
			if thread != 0 {
				k, in = topicKey(group, thread), telegramtest.Fields{"message_thread_id": thread, "is_topic_message": true}
			}
			g.api.Say(group, ann, "@cox_test_bot go", in)
			g.one()
			bobs := g.api.Say(group, bob, "@cox_test_bot use March", in)
			anns := g.api.Say(group, ann, "@cox_test_bot and charts", in)
			g.want("took", len(g.got()), 2)
			waits := "queue: use March\nqueue: and charts"
			g.api.React(group, bobs, carl, "❤")
			g.api.React(group, anns, bob, "❤")
			g.api.Update(fmt.Sprintf(`{"message_reaction":{"chat":{"id":%d,"type":"supergroup"},"message_id":%d,"actor_chat":{"id":%[1]d,"type":"supergroup"},"date":1,"old_reaction":[],"new_reaction":[{"type":"paid"}]}}`, group, bobs))
			g.want("took of bystanders", len(g.got()), 2) // that of nobody is not one
			g.want("waits", g.slot(k), waits)
			g.api.React(group, bobs, ann, "❤")
			if m := g.one(); m.Kind != session.KindReact || m.Key != k {
				g.t.Errorf("took %+v", m)
			}
			g.want("waits", g.slot(k), strings.Replace(waits, "queue", "steer", 1))
			g.want("sign", g.sign(group, bobs), "👀")
			g.api.React(group, anns, ann, "👎")
			g.got()
			g.want("waits", g.slot(k), "steer: use March")
			g.answers(k, "done")
			g.settle(5 * time.Second)
			g.got()
			g.api.React(group, bobs, carl, "🔥")
			g.one()
			for _, s := range g.said(group) {
				if strings.Contains(s, "owner") || strings.Contains(s, "wait") {
					g.t.Errorf("a gesture was answered: %q", s)
				}
			}
		})
	}
}

// T31: a reaction from a backlog is void like a press.
func TestStaleReactionIsVoid(t *testing.T) {
	gated(t, gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		id := g.api.Say(ann, ann, "and charts")
		g.got()
		g.settle(2 * time.Minute)
		g.off()
		g.api.React(ann, id, ann, "👎")
		g.settle(3 * time.Hour)
		g.up()
		g.settle(5 * time.Second)
		g.want("waits", g.slot(key(ann)), "queue: and charts")
	})
}

// Words said aloud are words; a file that nobody can put into words stays one.
func TestT33Voice(t *testing.T) {
	said, fail, slow := "use the March data", error(nil), time.Duration(0)
	s := &shelf{files: map[string][]byte{"inbox/voice-120": []byte("OggS"), "inbox/video_note-121": []byte("mp4")}}
	hear := func(ctx context.Context, name string, audio io.Reader) (string, error) {
		data, err := io.ReadAll(audio)
		if err != nil || len(data) == 0 {
			return "", errors.New("no sound")
		}
		if !pause(ctx, slow) {
			return "", ctx.Err()
		}
		return " " + said + "\n", fail
	}
	gated(t, gateSet{mode: steer.Steer, options: Options{Open: s.open, Hear: hear}}, func(g *gate) {
		g.api.AddFile("v1", []byte("OggS"))
		g.api.AddFile("vn1", []byte("mp4"))
		g.golden("ask.json")
		g.one()
		g.golden("T33_media.json", 0, 1)
		g.got()
		g.want("waits", g.slot(key(ann)), "steer: use the March data[voice inbox/voice-120]\nsteer: use the March data[video_note inbox/video_note-121]")
	})
	for _, c := range []struct {
		name, said string
		fail       error
		slow       time.Duration
		want       string // of the message
		takes      time.Duration
	}{
		{"nobody speaks a command", "/stop", nil, 0, " /stop", 0},
		{"not understood", "", errors.New("no speech"), 0, "", 0},
		{"takes too long", "late", nil, time.Hour, "", hearTime},
	} {
		said, fail, slow = c.said, c.fail, c.slow
		play(t, Options{Open: s.open, Hear: hear}, func(w *world) {
			w.api.AddFile("v1", []byte("OggS"))
			w.golden("T33_media.json", 0)
			w.settle(c.takes)
			m := w.one()
			if m.Text != c.want || m.Attachments[0].Path != "inbox/voice-120" {
				t.Errorf("%s: %q %+v", c.name, m.Text, m.Attachments)
			}
		})
	}
}

// T12: /stop does not wait for the words of a voice message.
func TestT12StopWhileListening(t *testing.T) {
	s := &shelf{files: map[string][]byte{"inbox/voice-120": []byte("OggS")}}
	hear := func(ctx context.Context, _ string, _ io.Reader) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	gated(t, gateSet{mode: steer.Queue, options: Options{Open: s.open, Hear: hear}}, func(g *gate) {
		g.api.AddFile("v1", []byte("OggS"))
		g.golden("ask.json")
		g.one()
		g.golden("T33_media.json", 0)
		g.settle(time.Second)
		g.golden("T12_stop.json")
		g.settle(time.Second)
		g.want("open turn", g.lane(key(ann)).Turn, 0)
		g.want("waits", g.slot(key(ann)), "held: [voice inbox/voice-120]")
	})
}

// A press in vain takes the question about a budget from nobody: it is there for
// admins, also where each person of a group has a session (issue 4, limits).
func TestBudgetButtonIsForAdmins(t *testing.T) {
	c := &callback{From: models.User{ID: bob}, Message: &message{}}
	m := session.Message{Key: session.Key{User: session.UserID(fmt.Sprint(bob))}, From: session.Person{ID: session.UserID(fmt.Sprint(bob))}, Button: "drop:1"}
	if !asksFor(c, m) {
		t.Error("what waits in a session of one's own is not there for its person")
	}
	if m.Button = "more:c1.2.3.4"; asksFor(c, m) {
		t.Error("a question to admins is taken away by the press of who may not answer it")
	}
}
