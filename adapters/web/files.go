package web

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"

	"coxswain/session"
)

// A file that the agent sends is a link on the page. What is behind it is read
// from the workspace when somebody follows it, and always as a download: a file
// is outside text, and must not run on this origin.

// FileParts implements session.FileSender.
func (a *Adapter) FileParts(o session.Outgoing) [][]byte {
	data, err := json.Marshal(payload{Text: o.Markdown, ReplyTo: o.ReplyTo, Buttons: o.Buttons, Silent: o.Silent, Files: o.Files})
	if err != nil {
		panic("web: a payload does not encode: " + err.Error())
	}
	return [][]byte{data}
}

// fileName is how people see a file.
func fileName(f session.File) string {
	name := f.Name
	if name == "" {
		name = path.Base(f.Path)
	}
	return session.CleanLine(name, 120)
}

// file answers GET …/file?id=PART&n=INDEX with a file that was sent there.
func (a *Adapter) file(w http.ResponseWriter, r *http.Request, key session.Key, _ session.Principal) {
	if err := a.recall(r.Context(), key); err != nil {
		a.storeFailed(r.Context(), w, "read memo", key, err)
		return
	}
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	f, lane, ok := a.rooms.of(key).file(r.URL.Query().Get("id"), n)
	if err != nil || !ok || a.open == nil {
		fail(w, http.StatusNotFound, wordsNoFile)
		return
	}
	if lane == (session.Key{}) {
		lane = key // kept by an earlier version
	}
	src, size, err := a.open(r.Context(), lane, f.Path)
	if err != nil {
		a.log.InfoContext(r.Context(), "a file that was sent is gone", "session", key.String(), "err", err)
		fail(w, http.StatusNotFound, wordsFileGone)
		return
	}
	defer src.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(f)}))
	if _, err := io.CopyN(w, src, size); err != nil {
		a.log.DebugContext(r.Context(), "file not read to its end", "session", key.String(), "err", err)
	}
}

// file finds a file of a reply.
func (r *room) file(id string, n int) (session.File, session.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range r.replies {
		if it.ID == id && n >= 0 && n < len(it.Files) {
			return it.Files[n], it.Lane, true
		}
	}
	return session.File{}, session.Key{}, false
}

// Opener opens a file of a session's workspace and gives its size. Paths come
// from tools: it must not leave the workspace.
type Opener func(ctx context.Context, key session.Key, path string) (io.ReadCloser, int64, error)

var _ session.FileSender = (*Adapter)(nil)

// named gives each file the name people see, for the page.
func named(files []session.File) []session.File {
	out := make([]session.File, len(files))
	for i, f := range files {
		f.Name, f.Caption = fileName(f), ""
		out[i] = f
	}
	return out
}
