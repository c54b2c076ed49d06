package sim

import (
	"fmt"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/store/storetest"
)

// message makes the platform event of an input.
func (s *script) message(t interface{ Fatalf(string, ...any) }, n int, in input) session.Message {
	m := session.Message{
		Key: keyOf(in.room), From: session.Person{ID: session.UserID(in.who), Name: in.who}, Private: !s.shared, Addressed: true,
		ID: session.MessageID(fmt.Sprintf("#%d", n)), Text: in.text, Received: time.Now(), Sent: time.Now(),
	}
	m.Dedupe = "m:room:" + string(m.ID)
	switch in.verb {
	case ">":
	case "to all>":
		m.Addressed = false
	case "pastes>":
		// As Telegram's clients cut long texts: one of 2,000 units may have a rest.
		if m.Group = "paste"; len(m.Text) >= 2000 {
			m.OpenFor = 1500 * time.Millisecond
		}
	case "sends":
		f := fileLine.FindStringSubmatch(in.text)
		if f == nil {
			t.Fatalf("no such file: %q", in.raw)
		}
		m.Text, m.Attachments = f[3], []session.Attachment{{Kind: "photo", Name: f[1], Path: "inbox/" + f[1], Size: 1000}}
		if f[2] != "" {
			m.Group, m.OpenFor = "album:"+f[2], 800*time.Millisecond
		}
	case "edits":
		id, text, _ := strings.Cut(in.text, ": ")
		m.Kind, m.ID, m.Text = session.KindEdit, session.MessageID(id), text
		m.Dedupe = fmt.Sprintf("e:room:%s:%d", id, n)
	case "deletes":
		m.Kind, m.ID, m.Text = session.KindDelete, session.MessageID(in.text), ""
		m.Dedupe = "d:" + in.text
	case "presses":
		m.Kind, m.Button, m.Text = session.KindPress, in.text, ""
		m.Dedupe = fmt.Sprintf("i:%d", n)
	case "replies to":
		id, text, _ := strings.Cut(in.text, ": ")
		m.ReplyTo, m.Text = session.MessageID(id), text
	default:
		t.Fatalf("no such input: %q", in.raw)
	}
	return m
}

// input makes an input happen.
func (s *script) input(w *world, n int, in input) {
	var m session.Message
	switch in.verb {
	case "gateway crashes":
		w.crash()
		return
	case "gateway stops":
		w.run()
		return
	case "gateway starts":
		if !w.isDead() {
			w.stop()
		}
		w.restart()
		for _, m := range w.missed {
			w.deliver(m)
		}
		w.missed = nil
		return
	case "flood begins", "send replies get lost", "flood ends", "next sends":
		w.plat.setFaults(w.t, in)
		return
	case "platform repeats":
		w.mu.Lock()
		sent, ok := s.sent[session.MessageID(in.text)]
		w.mu.Unlock()
		if m = sent; !ok {
			w.t.Fatalf("nothing to repeat: %q", in.raw)
		}
		m.Received = time.Now()
	case "end":
		return
	default:
		m = s.message(w.t, n, in)
	}
	s.deliver(w, m)
}

// arm readies an input for the gap it is to come in.
func (s *script) arm(w *world, n int, in input) {
	m := s.message(w.t, n, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	s.gaps = append(s.gaps, gap{in, m})
}

func (s *script) deliver(w *world, m session.Message) {
	w.mu.Lock()
	s.sent[m.ID] = m
	w.texts[m.Text] = true
	w.mu.Unlock()
	if w.isDead() {
		w.missed = append(w.missed, m) // the platform keeps it for the next process
		return
	}
	w.deliver(m)
}

// strike delivers what was written for the gap that a store call is in. The
// call goes on when the message is accepted.
func (s *script) strike(w *world) storetest.Hook {
	return func(point string, when storetest.When) storetest.Fault {
		w.mu.Lock()
		var found *gap
		for i, g := range s.gaps {
			if g.in.point == point && g.in.after == (when == storetest.After) {
				found = &gap{g.in, g.m}
				s.gaps = append(s.gaps[:i], s.gaps[i+1:]...)
				break
			}
		}
		w.mu.Unlock()
		if found == nil {
			return storetest.None
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(20 * time.Millisecond) // so that it stands behind what led here
			w.logf("\x00%s", found.in.raw)
			found.m.Sent, found.m.Received = time.Now(), time.Now()
			s.deliver(w, found.m)
			time.Sleep(20 * time.Millisecond)
		}()
		<-done
		return storetest.None
	}
}

// keyOf is the session of a chat, or of a topic in it (CHAT/TOPIC); "" is the
// room in which everybody writes.
func keyOf(name string) session.Key {
	if name == "" {
		return room
	}
	chat, thread, _ := strings.Cut(name, "/")
	return session.Key{Platform: "fake", Chat: session.ChatID(chat), Thread: session.ThreadID(thread)}
}

// where names a session in what is logged; the room goes without.
func where(k session.Key) string {
	switch {
	case k == room:
		return ""
	case k.Thread != "":
		return " in " + string(k.Chat) + "/" + string(k.Thread)
	}
	return " in " + string(k.Chat)
}
