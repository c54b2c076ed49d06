package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"coxswain/session"
)

// What is kept for the model is a picture, small enough, of this session, and
// stays as it was; all else is refused.
func TestPicturesKept(t *testing.T) {
	workIn(t)
	w, err := newWorkspaces(Defaults())
	if err != nil {
		t.Fatal(err)
	}
	k := session.Key{Platform: "web", Chat: "one"}
	dir, err := w.dir(k)
	if err != nil {
		t.Fatal(err)
	}
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{1}, 100)...)
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a.png", png)
	put("text.png", []byte("no picture at all"))
	put("svg.png", []byte("<svg xmlns='http://www.w3.org/2000/svg'></svg>"))
	put("large.png", append(bytes.Clone(png), make([]byte, pictureMost)...))
	outside := filepath.Join(t.TempDir(), "secret.png")
	if err := os.WriteFile(outside, png, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"pipe.png", "text.png", "svg.png", "large.png", "none.png", "link.png", "../one/a.png", outside, ".", ""} {
		if name, mime, err := w.Keep(t.Context(), k, bad); err == nil {
			t.Errorf("%s was kept as %s, %s", bad, name, mime)
		}
	}
	name, mime, err := w.Keep(t.Context(), k, "a.png")
	if err != nil || mime != "image/png" {
		t.Fatalf("got %s, %v", mime, err)
	}
	if again, _, err := w.Keep(t.Context(), k, "a.png"); err != nil || again != name {
		t.Errorf("kept again as %s, %v; want %s", again, err, name)
	}
	put("a.png", []byte("painted over"))
	if data, err := w.Load(k, name); err != nil || !bytes.Equal(data, png) {
		t.Errorf("loaded %d bytes, %v; want what was kept", len(data), err)
	}
	for _, bad := range []string{"", "../" + name, strings.ToUpper(name[:31]) + "/", name + "0"} {
		if _, err := w.Load(k, bad); err == nil {
			t.Errorf("%q was loaded", bad)
		}
	}
	if _, err := w.Load(session.Key{Platform: "web", Chat: "two"}, name); err == nil {
		t.Error("another session sees it (I13)")
	}
	if err := w.remove(k); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Load(k, name); err == nil {
		t.Error("it outlives its session")
	}
}

func TestSeesImages(t *testing.T) {
	for _, c := range []struct {
		url, images string
		want        bool
	}{
		{"https://api.openai.com/v1", "auto", true}, {"https://API.openai.com/v1", "auto", true}, {"https://openrouter.ai/api/v1", "auto", true},
		{"http://127.0.0.1:8080/v1", "auto", false}, {"http://127.0.0.1:8080/v1", "on", true}, {"https://api.openai.com/v1", "off", false},
		{"https://api.openai.com.evil.example/v1", "auto", false}, {"%", "auto", false},
	} {
		if got := (ModelConf{BaseURL: c.url, Images: c.images}).seesImages(); got != c.want {
			t.Errorf("%s, %s: got %v", c.url, c.images, got)
		}
	}
}
