package telegram

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"coxswain/telegramtest"
)

// BenchmarkDecodeUpdate is one update from its bytes to a session.Message.
func BenchmarkDecodeUpdate(b *testing.B) {
	data, err := os.ReadFile("testdata/T08_reply.json")
	if err != nil {
		b.Fatal(err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		b.Fatal(err)
	}
	a, err := New(Options{Token: func() string { return telegramtest.Token }, Door: &door{}, Docs: &docs{}, Save: (&inbox{}).save})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(list[0])))
	b.ReportAllocs()
	for b.Loop() {
		var u update
		if err := json.Unmarshal(list[0], &u); err != nil {
			b.Fatal(err)
		}
		if m, ok, err := a.read(b.Context(), &u); err != nil || !ok || !m.ReplyToBot {
			b.Fatal(m, ok, err)
		}
	}
}

// BenchmarkPollToDeliver is a thousand updates of ten chats from the API's queue
// to the door, polls and offsets included, without sockets.
func BenchmarkPollToDeliver(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		w := &world{api: telegramtest.New(), door: &door{}, docs: &docs{}, save: &inbox{}, ctx: b.Context()}
		for i := range 1000 {
			chat := ann + int64(i%10)
			w.api.Say(chat, chat, fmt.Sprint("message ", i))
		}
		var err error
		w.a, err = New(Options{Token: func() string { return telegramtest.Token }, Door: w.door, Docs: w.docs, Save: w.save.save, HTTPClient: w.api.Client()})
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan struct{})
		w.door.full = func(n int) {
			if n == 1000 {
				close(done)
			}
		}
		b.StartTimer()
		w.start()
		<-done
		b.StopTimer()
		w.stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/update")
}
