package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// send_file checks what it is given and hands it over; it never sends by itself.
func TestSendFile(t *testing.T) {
	s, dir := newSet(t, Options{}), trap(t)
	write(t, dir, "out/report.txt", "numbers")
	write(t, dir, "empty", "")
	if err := os.Truncate(filepath.Join(dir, "empty"), 0); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large")
	write(t, dir, "large", "x")
	if err := os.Truncate(large, maxSend+1); err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	send := func(sends bool, kv ...any) Result {
		r := s.Start(t.Context(), Call{Name: "send_file", Dir: dir, Sends: sends, SendMost: most, Args: args(t, kv...)})
		wait(t, r.Done(), "send_file")
		return r.Result()
	}
	for _, c := range []struct {
		kv   []any
		want string
	}{
		{[]any{"path", "none.txt"}, "none.txt"},
		{[]any{"path", ""}, wordPathEmpty},
		{[]any{"path", "../secret.txt"}, "secret.txt"},
		{[]any{"path", "/etc/passwd"}, "passwd"},
		{[]any{"path", "out"}, "out"},
		{[]any{"path", "empty"}, fmt.Sprintf(wordSendEmpty, quote("empty"))},
		{[]any{"path", "large"}, fmt.Sprintf(wordSendTooBig, quote("large"), maxSend+1, maxSend)},
		{[]any{"path", "out/report.txt", "caption", strings.Repeat("x", maxCaption+1)}, fmt.Sprintf(wordSendCaption, maxCaption+1, maxCaption)},
	} {
		if got := send(true, c.kv...); !got.Failed || len(got.Files) != 0 || !strings.Contains(got.Body, c.want) {
			t.Errorf("%v: got %+v; want a refusal with %q", c.kv, got, c.want)
		}
	}
	if got := send(false, "path", "out/report.txt"); !got.Failed || got.Body != wordNoSending || len(got.Files) != 0 {
		t.Errorf("where nothing can be sent: got %+v", got)
	}
	got := send(true, "path", "./out/../out/report.txt", "caption", "the report")
	want := []SentFile{{Path: "out/report.txt", Name: "report.txt", Caption: "the report"}}
	if got.Failed || !slices.Equal(got.Files, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	// A chat may take less than others, or more.
	most = 6
	if got := send(true, "path", "out/report.txt"); !got.Failed || !strings.Contains(got.Body, fmt.Sprintf(wordSendTooBig, quote("out/report.txt"), 7, most)) {
		t.Errorf("got %+v; want it too large for this chat", got)
	}
	most = maxSend + 1
	if got := send(true, "path", "large"); got.Failed {
		t.Errorf("got %+v; want it sent where so much is taken", got)
	}
}
