package telegramtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"coxswain/telegramtest"
)

// client is the library's client, which did not come from here: it sends
// multipart forms and decodes answers into its own full types.
func client(t *testing.T, s *telegramtest.Server, o ...bot.Option) *bot.Bot {
	t.Helper()
	o = append([]bot.Option{bot.WithSkipGetMe(), bot.WithHTTPClient(50*time.Second, s.Client())}, o...)
	b, err := bot.New(telegramtest.Token, o...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An independent client, over a real socket, gets on with the server.
func TestLibraryOverSockets(t *testing.T) {
	s := telegramtest.New()
	srv := httptest.NewServer(s)
	defer srv.Close()
	got := make(chan string, 10)
	b, err := bot.New(telegramtest.Token, bot.WithServerURL(srv.URL), bot.WithNotAsyncHandlers(),
		bot.WithAllowedUpdates(bot.AllowedUpdates{"message", "edited_message", "callback_query"}),
		bot.WithDefaultHandler(func(ctx context.Context, b *bot.Bot, u *models.Update) {
			switch {
			case u.Message != nil:
				m, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: u.Message.Chat.ID, Text: "you said " + u.Message.Text,
					ReplyMarkup: models.InlineKeyboardMarkup{InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "Go", CallbackData: "go"}}}}})
				if err != nil {
					got <- err.Error()
					return
				}
				got <- m.Text
			case u.EditedMessage != nil:
				got <- "edit " + u.EditedMessage.Text
			case u.CallbackQuery != nil:
				_, err := b.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: u.CallbackQuery.ID})
				got <- "press " + u.CallbackQuery.Data
				if err != nil {
					got <- err.Error()
				}
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Start(ctx)
	}()
	want := func(s string) {
		t.Helper()
		if g := <-got; g != s {
			t.Errorf("got %q; want %q", g, s)
		}
	}
	id := s.Say(5, 5, "hello @someone_else")
	want("you said hello @someone_else")
	s.Edit(5, 5, id, "bye")
	want("edit bye")
	m := s.Messages(5)[0]
	s.Press(5, m.ID, 5, m.Keyboard[0][0].Data)
	want("press go")
	if err := s.Wait(ctx, func() bool { return len(s.Unanswered()) == 0 }); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
}

// The errors of the API, as an independent client understands them.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		s.AddChat(telegramtest.Chat{ID: 5})
		s.AddChat(telegramtest.Chat{ID: 6, Blocked: true})
		s.AddChat(telegramtest.Chat{ID: -7, MigratedTo: -1007})
		s.AddChat(telegramtest.Chat{ID: -1008, Forum: true, Topics: map[int]bool{3: true, 4: false}})
		b := client(t, s)
		send := func(p bot.SendMessageParams) error {
			_, err := b.SendMessage(t.Context(), &p)
			return err
		}
		mine, err := b.SendMessage(t.Context(), &bot.SendMessageParams{ChatID: int64(5), Text: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		theirs := s.Say(5, 5, "theirs")
		edit := func(id int, text string) error {
			_, err := b.EditMessageText(t.Context(), &bot.EditMessageTextParams{ChatID: int64(5), MessageID: id, Text: text})
			return err
		}
		for _, c := range []struct {
			name string
			err  error
			want string // "" = done
		}{
			{"4,096 units", send(bot.SendMessageParams{ChatID: int64(5), Text: strings.Repeat("😀", 2048)}), ""},
			{"4,097 units", send(bot.SendMessageParams{ChatID: int64(5), Text: strings.Repeat("😀", 2048) + "x"}), "message is too long"},
			{"blank", send(bot.SendMessageParams{ChatID: int64(5), Text: " \n"}), "message text is empty"},
			{"unknown chat", send(bot.SendMessageParams{ChatID: int64(99), Text: "x"}), "chat not found"},
			{"blocked", send(bot.SendMessageParams{ChatID: int64(6), Text: "x"}), "bot was blocked"},
			{"open topic", send(bot.SendMessageParams{ChatID: int64(-1008), MessageThreadID: 3, Text: "x"}), ""},
			{"closed topic", send(bot.SendMessageParams{ChatID: int64(-1008), MessageThreadID: 4, Text: "x"}), "TOPIC_CLOSED"},
			{"no topic", send(bot.SendMessageParams{ChatID: int64(-1008), MessageThreadID: 5, Text: "x"}), "message thread not found"},
			{"reply to nothing", send(bot.SendMessageParams{ChatID: int64(5), Text: "x", ReplyParameters: &models.ReplyParameters{MessageID: 77}}), "message to be replied not found"},
			{"reply to nothing, allowed", send(bot.SendMessageParams{ChatID: int64(5), Text: "x", ReplyParameters: &models.ReplyParameters{MessageID: 77, AllowSendingWithoutReply: true}}), ""},
			{"same text", edit(mine.ID, "mine"), "message is not modified"},
			{"other text", edit(mine.ID, "changed"), ""},
			{"not there", edit(777, "x"), "message to edit not found"},
			{"not mine", edit(theirs, "x"), "message can't be edited"},
			{"data over 64 bytes", send(bot.SendMessageParams{ChatID: int64(5), Text: "x", ReplyMarkup: models.InlineKeyboardMarkup{
				InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "b", CallbackData: strings.Repeat("x", 65)}}}}}), "BUTTON_DATA_INVALID"},
			{"entity out of range", send(bot.SendMessageParams{ChatID: int64(5), Text: "abc", Entities: []models.MessageEntity{{Type: "bold", Offset: 1, Length: 3}}}), "can't parse entities"},
		} {
			if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
				t.Errorf("%s: %v; want %q", c.name, c.err, c.want)
			}
		}
		err = send(bot.SendMessageParams{ChatID: int64(-7), Text: "x"})
		if e, ok := errors.AsType[*bot.MigrateError](err); !ok || e.MigrateToChatID != -1007 {
			t.Errorf("moved group: %v", err)
		}
		if p := s.Problems(); len(p) != 2 { // the edit of another's message, the entity
			t.Errorf("problems %q", p)
		}
	})
}

// Updates are forgotten when a higher offset is asked for, and after a day.
func TestOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		for range 3 {
			s.Say(5, 5, "x")
		}
		var seen []int64
		var b *bot.Bot
		ctx, cancel := context.WithCancel(t.Context())
		b = client(t, s, bot.WithNotAsyncHandlers(), bot.WithAllowedUpdates(bot.AllowedUpdates{"message"}),
			bot.WithDefaultHandler(func(_ context.Context, _ *bot.Bot, u *models.Update) { seen = append(seen, u.ID) }))
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Start(ctx)
		}()
		synctest.Wait()
		if n, offset := s.Pending(); n != 0 || offset != 1003 || len(seen) != 3 {
			t.Errorf("%d pending, offset %d, seen %v", n, offset, seen)
		}
		cancel()
		<-done
		s.Say(5, 5, "old")
		time.Sleep(25 * time.Hour)
		s.Say(5, 5, "new")
		ctx, cancel = context.WithCancel(t.Context())
		done = make(chan struct{})
		go func() {
			defer close(done)
			b.Start(ctx)
		}()
		synctest.Wait()
		if len(seen) != 4 || seen[3] != 1004 {
			t.Errorf("seen %v; want the old one gone", seen)
		}
		cancel()
		<-done
	})
}

// A poll is long, and its answer comes at once when there is something.
func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		post := func() (string, time.Duration) {
			at := time.Now()
			resp, err := s.Client().Post("https://api.telegram.org/bot"+telegramtest.Token+"/getUpdates", "application/json",
				strings.NewReader(`{"timeout":50,"allowed_updates":["message"]}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body), time.Since(at)
		}
		if body, d := post(); d != 50*time.Second || body != `{"ok":true,"result":[]}` {
			t.Errorf("%v, %s", d, body)
		}
		go func() {
			time.Sleep(7 * time.Second)
			s.Say(5, 5, "x")
		}()
		if body, d := post(); d != 7*time.Second || !strings.Contains(body, `"text":"x"`) {
			t.Errorf("%v, %s", d, body)
		}
	})
}

func TestCheckEntities(t *testing.T) {
	e := func(kind string, off, n int) telegramtest.Entity {
		return telegramtest.Entity{Type: kind, Offset: off, Length: n}
	}
	text := "ab 😀 cd ef"
	for _, c := range []struct {
		name string
		ents []telegramtest.Entity
		ok   bool
	}{
		{"side by side", []telegramtest.Entity{e("bold", 0, 2), e("italic", 3, 2)}, true},
		{"nested", []telegramtest.Entity{e("bold", 0, 8), e("italic", 3, 2)}, true},
		{"to the end", []telegramtest.Entity{e("bold", 9, 2)}, true},
		{"past the end", []telegramtest.Entity{e("bold", 9, 3)}, false},
		{"cuts a pair", []telegramtest.Entity{e("bold", 0, 4)}, false},
		{"begins in a pair", []telegramtest.Entity{e("bold", 4, 3)}, false},
		{"crossing", []telegramtest.Entity{e("bold", 0, 5), e("italic", 3, 5)}, false},
		{"bold in code", []telegramtest.Entity{e("code", 0, 8), e("bold", 0, 2)}, false},
		{"quote in quote", []telegramtest.Entity{e("blockquote", 0, 8), e("expandable_blockquote", 0, 2)}, false},
		{"blank", []telegramtest.Entity{e("bold", 2, 1)}, false},
		{"empty", []telegramtest.Entity{e("bold", 2, 0)}, false},
		{"unknown", []telegramtest.Entity{e("blink", 0, 2)}, false},
		{"script link", []telegramtest.Entity{{Type: "text_link", Offset: 0, Length: 2, URL: "javascript:alert(1)"}}, false},
	} {
		if err := telegramtest.CheckEntities(text, c.ents); (err == nil) != c.ok {
			t.Errorf("%s: %v; want ok = %v", c.name, err, c.ok)
		}
	}
}

// Flood answers 429 where the API would, and says for how long.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		s.Flood = true
		s.AddChat(telegramtest.Chat{ID: 5})
		s.AddChat(telegramtest.Chat{ID: -6})
		b := client(t, s)
		n := func(chat int64, pause time.Duration, most int) (sent int, err error) {
			for range most {
				if _, err = b.SendMessage(t.Context(), &bot.SendMessageParams{ChatID: chat, Text: "x"}); err != nil {
					return sent, err
				}
				sent++
				time.Sleep(pause)
			}
			return sent, nil
		}
		if sent, err := n(5, 0, 10); sent != 4 || err == nil {
			t.Errorf("burst of %d, then %v", sent, err)
		}
		time.Sleep(time.Minute)
		if sent, err := n(5, time.Second, 60); sent != 60 {
			t.Errorf("%d at one a second, then %v", sent, err)
		}
		sent, err := n(-6, 1500*time.Millisecond, 40)
		if e, ok := errors.AsType[*bot.TooManyRequestsError](err); sent != 20 || !ok || e.RetryAfter < 25 {
			t.Errorf("%d in a group, then %v", sent, err)
		}
	})
}

// A channel: its posts have no sender and are updates of their own, and who is
// not in it may not ask who is.
func TestChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		s.AddChat(telegramtest.Chat{ID: -1008, Type: "channel"})
		s.AddChat(telegramtest.Chat{ID: -1009, Type: "channel", Title: "News", Admin: true})
		b := client(t, s)
		for chat, want := range map[int64]string{-1007: "chat not found", -1008: "member list is inaccessible", -1009: ""} {
			m, err := b.GetChatMember(t.Context(), &bot.GetChatMemberParams{ChatID: chat, UserID: telegramtest.BotID})
			if want == "" && (err != nil || m.Type != models.ChatMemberTypeAdministrator) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d: %+v, %v; want %q", chat, m, err, want)
			}
		}
		if _, err := b.SendChatAction(t.Context(), &bot.SendChatActionParams{ChatID: int64(-1009), Action: "typing"}); err == nil {
			t.Error("a typing sign in a channel is taken")
		}
		id := s.Say(-1009, 0, "out now")
		s.Edit(-1009, 0, id, "out today")
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://x/bot"+telegramtest.Token+"/getUpdates", strings.NewReader(`{"allowed_updates":["channel_post","edited_channel_post"]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got struct {
			Result []models.Update `json:"result"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || len(got.Result) != 2 {
			t.Fatalf("got %+v, %v; want two updates", got, err)
		}
		p, e := got.Result[0].ChannelPost, got.Result[1].EditedChannelPost
		if p == nil || p.From != nil || p.SenderChat == nil || p.SenderChat.Title != "News" || p.Text != "out now" {
			t.Errorf("post %+v", p)
		}
		if e == nil || e.ID != id || e.Text != "out today" {
			t.Errorf("edit %+v", e)
		}
	})
}
