package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode"

	"coxswain/session"
)

const (
	// fileMost is what people without paid plans may upload, in bytes.
	fileMost = 10 << 20
	// fileTime bounds the loading of a message's files. The input is open for a
	// little longer; then it goes without them.
	fileTime   = 15 * time.Second
	fileSlack  = 2 * time.Second
	filesGroup = "files:" // of a message and its files
	// nameMost bounds a file's name in bytes, with room for what Save may add.
	nameMost = 120
)

// describe puts into words what has neither text nor file (D12).
func describe(w *message) string {
	switch {
	case len(w.Stickers) > 0:
		var names []string
		for _, s := range w.Stickers {
			names = append(names, s.Name)
		}
		return wordsSticker(strings.Join(names, ", "))
	case w.Poll != nil:
		var options []string
		for _, o := range w.Poll.Answers {
			options = append(options, o.Media.Text)
		}
		return wordsPoll(w.Poll.Question.Text, strings.Join(options, " / "))
	}
	return ""
}

// attachments reads the files of a message: those that are to be loaded are
// given back, of the others m says why not.
func (a *Adapter) attachments(ctx context.Context, w *message, m *session.Message) (load []attachment) {
	files := w.Attachments
	if forwarded(w) {
		files = append(files, w.Snapshots[0].Message.Attachments...)
	}
	if len(files) == 0 {
		return nil
	}
	wanted := m.Addressed && (a.o.Files == nil || a.o.Files(ctx, *m))
	for _, f := range files {
		f.kind, f.in = kindOf(w, f), w
		at := session.Attachment{Kind: f.kind, Name: f.Filename, Size: f.Size}
		switch {
		case !wanted:
			at.Note = wordsNotLoaded
		case f.Size > fileMost:
			at.Note = wordsTooBig
		default:
			load = append(load, f)
			continue
		}
		m.Attachments = append(m.Attachments, at)
	}
	return load
}

// loadAll loads files now: their addresses are good for a day only, and for as
// long as the message stands (D16).
func (a *Adapter) loadAll(ctx context.Context, m session.Message, files []attachment) []session.Attachment {
	within, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	var out []session.Attachment
	for _, f := range files {
		at := session.Attachment{Kind: f.kind, Name: f.Filename, Size: f.Size}
		a.load(within, m.Key, f, &at)
		out = append(out, at)
	}
	return out
}

// loadLater loads the files of a message beside its channel's lane and hands
// them to the door as a part of the input that the message has opened: what is
// written meanwhile, a /stop above all, does not wait for them. The channel's
// cursor does: a process that ends now leaves the message to the next one, which
// loads them (I1).
func (a *Adapter) loadLater(ctx context.Context, w *message, m session.Message, files []attachment) {
	if len(files) == 0 {
		return
	}
	a.cursors.hold(w.ChannelID, w.ID, false)
	m.Dedupe = "f:" + w.ChannelID + ":" + w.ID
	m.Text, m.Quote, m.ReplyTo, m.OpenFor = "", "", "", 0
	a.beside(func(ctx context.Context) {
		m.Attachments = a.loadAll(ctx, m, files)
		if ctx.Err() == nil && a.deliver(ctx, m) {
			a.cursors.release(w.ChannelID, w.ID)
		}
	})
}

func kindOf(w *message, f attachment) string {
	switch kind, _, _ := strings.Cut(f.ContentType, "/"); {
	case w.Flags&flagVoice != 0:
		return "voice"
	case kind == "image":
		return "photo"
	case kind == "audio" || kind == "video":
		return kind
	}
	return "document"
}

var errTooBig = errors.New("file is over the limit")

// load saves one file. What cannot be had is noted on the attachment: the
// message counts without it.
func (a *Adapter) load(ctx context.Context, key session.Key, f attachment, at *session.Attachment) {
	var err error
	for wait, n := (&backoff{a.timing.retry, 2 * time.Second}), 0; n < 3; n++ {
		var no *http.Response
		if no, err = a.loadOnce(ctx, key, f, at); err == nil {
			return
		}
		if no != nil && (no.StatusCode == http.StatusNotFound || no.StatusCode == http.StatusForbidden) && a.refresh(ctx, &f) {
			continue
		}
		if errors.Is(err, errTooBig) || no != nil && no.StatusCode < 500 || !pause(ctx, wait.next()) {
			break
		}
	}
	at.Path, at.Size, at.Note = "", f.Size, wordsNoFile
	if errors.Is(err, errTooBig) {
		at.Note = wordsTooBig
	}
	a.log.Warn("file not loaded", "kind", at.Kind, "size", f.Size)
	a.log.Debug("file not loaded", "err", err) // it says the address, which is signed
}

// refresh asks for the message of a file whose address has run out: it then has
// a new one (D16). False when it has not.
func (a *Adapter) refresh(ctx context.Context, f *attachment) bool {
	var w message
	if f.in == nil || a.call(ctx, http.MethodGet, "channels/"+f.in.ChannelID+"/messages/"+f.in.ID, "get:"+f.in.ChannelID, nil, &w) != nil {
		return false
	}
	for _, now := range w.Attachments {
		if now.ID == f.ID && now.URL != f.URL {
			f.URL = now.URL
			return true
		}
	}
	return false
}

// loadOnce tries once; no is an answer that was not the file.
func (a *Adapter) loadOnce(ctx context.Context, key session.Key, f attachment, at *session.Attachment) (no *http.Response, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.files.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp, fmt.Errorf("status %d", resp.StatusCode)
	}
	at.Path, at.Size, err = a.o.Save(ctx, key, fileName(f), &limited{resp.Body, fileMost})
	return nil, err
}

// limited fails, rather than ends, when there is more than it may give: a cut
// file is worse than none.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooBig
	}
	return n, err
}

// fileName makes one plain file name of what the sender called it.
func fileName(f attachment) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, path.Base(strings.ReplaceAll(f.Filename, `\`, "/")))
	clean = strings.TrimLeft(clean, ".")
	if strings.Trim(clean, "._") == "" {
		return "file-" + f.ID
	}
	if len(clean) > nameMost {
		ext := path.Ext(clean)
		if len(ext) > 10 {
			ext = ""
		}
		clean = strings.ToValidUTF8(clean[:nameMost-len(ext)], "") + ext
	}
	return clean
}
