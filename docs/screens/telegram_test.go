package screens

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"coxswain/adapters/telegram"
	"coxswain/session"
	"coxswain/store/storetest"
	"coxswain/telegramtest"
)

const ann = 7001

// A telegramNet is a private chat of Ann with the bot, on fake time.
type telegramNet struct {
	t   *testing.T
	api *telegramtest.Server
	top int // the newest message of a person
}

// onTelegram plays the story on Telegram.
func onTelegram(t *testing.T) (middle, end []message, api *telegramtest.Server) {
	t.Helper()
	api = telegramtest.New()
	api.AddUser(telegramtest.User{ID: ann, FirstName: "Ann"})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(9*time.Hour + 41*time.Minute) // fake time begins at midnight
		b := newBox()
		stop := gateway(t, b, telegram.Name, func(hub *session.Hub, st *storetest.Model) adapter {
			a, err := telegram.New(telegram.Options{
				Token: func() string { return telegramtest.Token }, Door: hub, Docs: st, Save: noFile, HTTPClient: api.Client(),
			})
			if err != nil {
				t.Fatal(err)
			}
			return a
		})
		n := &telegramNet{t: t, api: api}
		n.pass(time.Second) // the first poll
		middle, end = play(t, n, b)
		stop()
	})
	return middle, end, api
}

func (n *telegramNet) say(text string) string {
	n.top = n.api.Say(ann, ann, text)
	return strconv.Itoa(n.top)
}

func (n *telegramNet) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (n *telegramNet) until(what string, cond func() bool) {
	n.t.Helper()
	for range 600 {
		if cond() {
			return
		}
		n.pass(100 * time.Millisecond)
	}
	n.t.Fatalf("%s: never; the chat is %+v", what, n.chat())
}

// chat is what the calls so far made of the chat.
func (n *telegramNet) chat() []message {
	var out []message
	replies, last := map[string]string{}, n.top
	for _, m := range n.api.Messages(ann) {
		last = max(last, m.ID)
	}
	for id := 1; id <= last; id++ {
		m, ok := n.api.Message(ann, id)
		if !ok {
			continue
		}
		d := message{
			ID: strconv.Itoa(id), Mine: !m.FromBot, Name: "Ann", Text: m.Text, HTML: spans(m.Text, m.Entities),
			Edited: m.Edits > 0, Clock: m.At.UTC().Format("15:04"),
		}
		if m.FromBot {
			d.Name = "Coxswain"
		}
		if m.Reaction != "" {
			d.Signs = []string{m.Reaction}
		}
		for _, row := range m.Keyboard {
			var labels []string
			for _, b := range row {
				labels = append(labels, b.Text)
			}
			d.Buttons = append(d.Buttons, labels)
		}
		replies[d.ID] = strconv.Itoa(m.ReplyTo)
		out = append(out, d)
	}
	return linked(out, replies)
}
