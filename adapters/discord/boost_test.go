package discord

import (
	"context"
	"io"
	"strings"
	"testing"

	"coxswain/session"
)

// What a file may have follows the server's boost level, which a server tells of
// when the bot comes and when it changes; threads are their server's.
func TestBoostedUploads(t *testing.T) {
	s := newShelf()
	open := func(ctx context.Context, key session.Key, path string) (io.ReadCloser, int64, error) {
		r, size, err := s.open(ctx, key, path)
		if path == "out/report.txt" {
			size = uploadMost2 + 1 // refused before it is read
		}
		return r, size, err
	}
	w := newWorld(t, Options{Open: open})
	w.api.Boost(guild, 2)
	w.run()
	w.connected()
	most := func(chat, thread string, want int64) {
		t.Helper()
		w.until("told of the boosts", func() bool { return w.a.FileMost(keyOf(chat, thread)) == want })
	}
	big := session.File{Path: "out/dump.zip"} // uploadMost + 1
	no := "(`dump.zip` is 11 MB, and Discord takes 10 MB at most: it stays in the workspace)"
	most(room, "", uploadMost2)
	for _, c := range []struct{ chat, thread string }{{room, ""}, {room, topic}, {forum, post}} { // the post was not told of
		most(c.chat, c.thread, uploadMost2)
		w.sendAs("f"+c.thread, keyOf(c.chat, c.thread), session.Outgoing{}, big)
		w.stands(target(keyOf(c.chat, c.thread)), "[dump.zip]")
	}
	most(dm, "", uploadMost)
	w.sendAs("dm", keyOf(dm, ""), session.Outgoing{}, big)
	w.stands(dm, no)
	w.sendAs("over", keyOf(room, topic), session.Outgoing{}, session.File{Path: "out/report.txt"})
	if got := strings.Join(w.standing(topic), " "); !strings.HasSuffix(got, "(`report.txt` is 51 MB, and Discord takes 50 MB at most: it stays in the workspace)") {
		t.Errorf("stands %q", got)
	}
	w.api.Boost(guild, 3)
	most(room, "", uploadMost3)
	// A change that says nothing of it changes nothing.
	w.api.Dispatch("GUILD_UPDATE", `{"id":"`+guild+`","name":"new"}`)
	w.api.Say(dm, ann, "barrier")
	w.next()
	most(room, "", uploadMost3)
	w.api.Boost(guild, 1)
	most(room, "", uploadMost)
	w.sendAs("less", keyOf(room, ""), session.Outgoing{}, big)
	w.stands(room, "[dump.zip]", no)
	for _, c := range w.api.Calls("POST", "/messages") {
		if c.Status != 200 {
			t.Errorf("%s answered %d: sent more than is taken", c.Path, c.Status)
		}
	}
	w.until("files closed", s.allClosed)
	w.end()
}
