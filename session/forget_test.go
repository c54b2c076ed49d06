package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/store/storetest"
)

// TestForgetsIdle: another process drops a session that was not used for long,
// and serves the chat anew. What this process remembered of the old one is not
// taken for rows of the new one.
func TestForgetsIdle(t *testing.T) {
	play(t, set{}, func(w *world) {
		w.deliver(w.says("ann", "ann", "an old secret"))
		w.finish("old answer")
		w.sent("ann")
		time.Sleep(session.MarkLife + time.Minute)
		if err := w.store.Expire(t.Context(), key("ann"), session.MarkLife); err != nil {
			t.Fatal(err)
		}
		for i := range 2 { // turns of the other process
			a, err := w.store.Accept(t.Context(), session.Accept{Key: key("ann"), Dedupe: fmt.Sprint("x", i), Want: steer.Queue, Author: "ann", Msg: "x", Data: []byte(`{}`), Fate: session.FateAccepted})
			if err != nil {
				t.Fatal(err)
			}
			l := a.Lane
			b, err := w.store.Begin(t.Context(), session.Begin{
				Op: session.OpID(fmt.Sprint("b", i)), Key: key("ann"), Nonce: "life2", TTL: time.Second, Gen: l.Gen, Seq: l.Seq,
				Take: []session.Take{{Ticket: l.Tickets, Version: 1}}, Rows: []session.Row{{Type: session.RowHead, Data: []byte(`{}`)}, {Type: session.RowUser, Data: []byte(`{}`)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.store.Commit(t.Context(), b.Lease, session.Commit{Op: session.OpID(fmt.Sprint("c", i)), Seq: b.Lane.Seq, Rows: []session.Row{{Type: session.RowAssistant, Data: []byte(`{}`)}}, End: true}); err != nil {
				t.Fatal(err)
			}
		}
		w.deliver(w.says("ann", "ann", "what do you know?"))
		rows := w.agent.turn.Load().Rows()
		if len(rows) < 7 {
			t.Fatalf("the turn has %d rows; want at least 7", len(rows))
		}
		for _, r := range rows {
			if strings.Contains(string(r.Data), "old") {
				t.Errorf("row %d is of the session that was dropped: %s", r.Seq, r.Data)
			}
		}
		w.finish("nothing")
	})
}

// TestForgetAsleep: a session that sleeps in a chat loses its place there; the one
// that is spoken to keeps it, for it begins anew there.
func TestForgetAsleep(t *testing.T) {
	store := storetest.NewModel(time.Now)
	lanes := func() string {
		data, _, err := store.Doc(t.Context(), "routes")
		if err != nil {
			t.Fatal(err)
		}
		var has struct {
			Chats []struct{ Lanes []session.Key }
		}
		if err := json.Unmarshal(data, &has); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(has.Chats[0].Lanes)
	}
	awake, asleep := annHere, annThere
	if err := store.PutDoc(t.Context(), "routes", 0, []byte(`{"chats":[{"chat":{"platform":"other","chat":"d77"},"lanes":[{"platform":"fake","chat":"ann"},{"platform":"other","chat":"d77"}]}]}`)); err != nil {
		t.Fatal(err)
	}
	routes := session.NewRoutes(store)
	for _, step := range []struct {
		drop session.Key
		want []session.Key
	}{{awake, []session.Key{awake, asleep}}, {crowd, []session.Key{awake, asleep}}, {asleep, []session.Key{awake}}} {
		if err := routes.ForgetAsleep(t.Context(), step.drop); err != nil {
			t.Fatal(err)
		}
		if got := lanes(); got != fmt.Sprint(step.want) {
			t.Errorf("%v was dropped: %s live there; want %v", step.drop, got, step.want)
		}
	}
	if lane, err := session.NewRoutes(store).Lane(t.Context(), annThere); err != nil || lane != awake {
		t.Errorf("who is spoken to there: %v, %v", lane, err)
	}
}
