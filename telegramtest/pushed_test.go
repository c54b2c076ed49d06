package telegramtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"coxswain/telegramtest"
)

// Files, as an independent client sends them.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		s.AddChat(telegramtest.Chat{ID: 5})
		s.AddChat(telegramtest.Chat{ID: 6, NoVoice: true})
		b := client(t, s)
		file := func(data string) *models.InputFileUpload {
			return &models.InputFileUpload{Filename: "x.bin", Data: strings.NewReader(data)}
		}
		picture := "\x89PNG\r\nand so on"
		document := func(data, caption string) error {
			_, err := b.SendDocument(t.Context(), &bot.SendDocumentParams{ChatID: int64(5), Document: file(data), Caption: caption})
			return err
		}
		photo := func(data string) error {
			_, err := b.SendPhoto(t.Context(), &bot.SendPhotoParams{ChatID: int64(5), Photo: file(data)})
			return err
		}
		voice := func(chat int64) error {
			_, err := b.SendVoice(t.Context(), &bot.SendVoiceParams{ChatID: chat, Voice: file("OggS")})
			return err
		}
		for _, c := range []struct {
			name string
			err  error
			want string // "" = done
		}{
			{"document", document("all is well", strings.Repeat("x", 1024)), ""},
			{"long caption", document("x", strings.Repeat("x", 1025)), "caption is too long"},
			{"50 MB and a byte", document(strings.Repeat("x", 50<<20+1), ""), "Too Large"},
			{"nothing", document("", ""), "there is no document"},
			{"photo", photo(picture), ""},
			{"photo of 10 MB and a byte", photo(picture + strings.Repeat("x", 10<<20)), "PHOTO_SAVE_FILE_INVALID"},
			{"photo that is none", photo("text"), "IMAGE_PROCESS_FAILED"},
			{"voice", voice(5), ""},
			{"voice where it is forbidden", voice(6), "VOICE_MESSAGES_FORBIDDEN"},
		} {
			if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
				t.Errorf("%s: %v; want %q", c.name, c.err, c.want)
			}
		}
		ms := s.Messages(5)
		if len(ms) != 3 || ms[0].Kind != "document" || string(ms[0].Data) != "all is well" || ms[0].FileName != "x.bin" || len(ms[0].Text) != 1024 || ms[1].Kind != "photo" {
			t.Errorf("stands %+v", ms)
		}
	})
}

// Topics that are opened again, buttons that are taken away.
func TestTopicsAndButtons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		s.AddChat(telegramtest.Chat{ID: -1008, Forum: true, Topics: map[int]bool{4: false}})
		s.AddChat(telegramtest.Chat{ID: -1009, Forum: true, Manages: true, Topics: map[int]bool{4: false}})
		b := client(t, s)
		for chat, want := range map[int64]string{-1008: "not enough rights", -1009: ""} {
			_, err := b.ReopenForumTopic(t.Context(), &bot.ReopenForumTopicParams{ChatID: chat, MessageThreadID: 4})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d: %v; want %q", chat, err, want)
			}
		}
		m, err := b.SendMessage(t.Context(), &bot.SendMessageParams{ChatID: int64(-1009), MessageThreadID: 4, Text: "x",
			ReplyMarkup: models.InlineKeyboardMarkup{InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "Go", CallbackData: "go"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "not modified"} {
			_, err := b.EditMessageReplyMarkup(t.Context(), &bot.EditMessageReplyMarkupParams{ChatID: int64(-1009), MessageID: m.ID})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d: %v; want %q", i, err, want)
			}
		}
		if got := s.Messages(-1009)[0]; len(got.Keyboard) != 0 || got.Text != "x" {
			t.Errorf("stands %+v", got)
		}
	})
}

// A webhook: set, asked about, pushed to in order chat by chat, tried again
// until it is taken, and taken away with what waits kept.
func TestWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		b := client(t, s)
		ctx := t.Context()
		_, err := b.SetWebhook(ctx, &bot.SetWebhookParams{URL: "http://plain.example", SecretToken: "s", AllowedUpdates: []string{"message"}})
		if err == nil {
			t.Error("an address without TLS is taken")
		}
		if _, err := b.SetWebhook(ctx, &bot.SetWebhookParams{URL: "https://bot.example/x", SecretToken: "s-1", AllowedUpdates: []string{"message"}}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex // requests of two chats come at a time
		refuse, got := true, []string{}
		texts := func() string {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprint(got)
		}
		push, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Push(push, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				var u models.Update
				if json.Unmarshal(body, &u) != nil || r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != "s-1" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				if u.Message.Chat.ID == 5 && refuse {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				got = append(got, u.Message.Text)
			}))
		}()
		for i := range 3 {
			s.Say(5, 5, fmt.Sprint("a", i))
			s.Say(6, 6, fmt.Sprint("b", i))
		}
		s.Update(`{"edited_message":{"message_id":1,"chat":{"id":5}}}`) // not asked for
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if texts() != "[b0 b1 b2]" {
			t.Errorf("pushed %v while the other chat is refused", texts())
		}
		info, err := b.GetWebhookInfo(ctx)
		if err != nil || info.URL != "https://bot.example/x" || info.PendingUpdateCount != 3 || !strings.Contains(info.LastErrorMessage, "Service Unavailable") {
			t.Errorf("info %+v, %v", info, err)
		}
		mu.Lock()
		refuse = false
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if texts() != "[b0 b1 b2 a0 a1 a2]" {
			t.Errorf("pushed %v", texts())
		}
		stop()
		<-done
		s.Say(5, 5, "kept")
		if _, err := b.DeleteWebhook(ctx, &bot.DeleteWebhookParams{}); err != nil {
			t.Fatal(err)
		}
		if n, _ := s.Pending(); n != 1 || s.Webhook() != "" || len(s.Problems()) != 0 {
			t.Errorf("%d pending, webhook %q, problems %q", n, s.Webhook(), s.Problems())
		}
	})
}

// A clock of its own: in the answers' Date and the dates of messages.
func TestSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegramtest.New()
		s.Skew = 3 * time.Hour
		s.Say(5, 5, "hello")
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://x/bot"+telegramtest.Token+"/getUpdates", strings.NewReader(`{"allowed_updates":["message"]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		want := time.Now().Add(3 * time.Hour)
		body, _ := io.ReadAll(resp.Body)
		if resp.Header.Get("Date") != want.UTC().Format(http.TimeFormat) || !strings.Contains(string(body), fmt.Sprintf(`"date":%d`, want.Unix())) {
			t.Errorf("Date %q, body %s", resp.Header.Get("Date"), body)
		}
	})
}
