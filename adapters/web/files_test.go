package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"coxswain/session"
)

// A file that was sent is a link to a download; no other file of the workspace
// can be had, and what is in it never runs on this origin.
func TestSentFiles(t *testing.T) {
	hub := newFakeHub()
	opened := ""
	files := map[string]string{"out/report.html": "<script>alert(1)</script>", "secret.txt": "hers"}
	a := newTestAdapter(t, hub, "")
	a.open = func(_ context.Context, key session.Key, path string) (io.ReadCloser, int64, error) {
		opened = key.String() + " " + path
		text, ok := files[path]
		if !ok {
			return nil, 0, errors.New("gone")
		}
		return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	}
	data := a.FileParts(session.Outgoing{Key: testKey, Kind: session.PartFile, Markdown: "the report", Files: []session.File{{Path: "out/report.html"}}})
	if len(data) != 1 {
		t.Fatalf("%d parts", len(data))
	}
	if _, err := a.Send(t.Context(), session.Part{PartNew: session.PartNew{ID: "t:1:file:3:0/1", Kind: session.PartFile, Data: data[0]}, Key: testKey}); err != nil {
		t.Fatal(err)
	}
	get := func(query string) *http.Response {
		return ask(a, "GET", "/api/sessions/"+string(testKey.Chat)+"/file?"+query, "").Result()
	}
	resp := get("id=t%3A1%3Afile%3A3%3A0%2F1&n=0")
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || string(body) != files["out/report.html"] || opened != testKey.String()+" out/report.html" {
		t.Errorf("got %s %q, opened %q, %v", resp.Status, body, opened, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=report.html", "X-Content-Type-Options": "nosniff",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: got %q; want %q", name, got, want)
		}
	}
	for _, bad := range []string{"", "id=t%3A1%3Afile%3A3%3A0%2F1&n=1", "id=t%3A1%3Afile%3A3%3A0%2F1&n=-1", "id=secret.txt&n=0", "id=t%3A1%3Afile%3A3%3A0%2F1&n=x", "path=secret.txt"} {
		if resp := get(bad); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%q: got %s; want 404", bad, resp.Status)
		}
	}
	delete(files, "out/report.html")
	if resp := get("id=t%3A1%3Afile%3A3%3A0%2F1&n=0"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a file that is gone: %s; want 404", resp.Status)
	}
	other := session.Key{Platform: Name, Chat: "another-chat"}
	if resp := ask(a, "GET", "/api/sessions/"+string(other.Chat)+"/file?id=t%3A1%3Afile%3A3%3A0%2F1&n=0", "").Result(); resp.StatusCode != http.StatusNotFound {
		t.Errorf("from another conversation: %s; want 404 (I13)", resp.Status)
	}
}
