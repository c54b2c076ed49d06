package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed page
var page embed.FS

// A file is one file of the page, served as it is: no build step.
type file struct {
	data []byte
	kind string
	tag  string // ETag: changes with the content
}

// files are the page's files by path.
var files = loadFiles()

var kinds = map[string]string{
	"html": "text/html; charset=utf-8",
	"css":  "text/css; charset=utf-8",
	"js":   "text/javascript; charset=utf-8",
	"svg":  "image/svg+xml",
}

func loadFiles() map[string]file {
	out := map[string]file{}
	err := fs.WalkDir(page, "page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := page.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		f := file{data: data, kind: kinds[path[strings.LastIndexByte(path, '.')+1:]], tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
		at := strings.TrimPrefix(path, "page")
		if at == "/index.html" {
			at = "/"
		}
		out[at] = f
		return nil
	})
	if err != nil {
		panic("web: the embedded page cannot be read: " + err.Error())
	}
	return out
}

func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache") // asked again after an upgrade
	h.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	w.Write(f.data) // a page that went away needs no answer
}
