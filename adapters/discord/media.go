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
	// fileTime bounds the loading of a message's files. Later messages of the
	// channel wait for it, a /stop among them.
	fileTime = 15 * time.Second
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

// attach loads the files of a message now: their addresses are good for a day
// only, and for as long as the message stands (D16).
func (a *Adapter) attach(ctx context.Context, w *message, m *session.Message) []session.Attachment {
	files := w.Attachments
	if forwarded(w) {
		files = append(files, w.Snapshots[0].Message.Attachments...)
	}
	if len(files) == 0 {
		return nil
	}
	wanted := m.Addressed && (a.o.Files == nil || a.o.Files(ctx, *m))
	within, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	var out []session.Attachment
	for _, f := range files {
		at := session.Attachment{Kind: kindOf(w, f), Name: f.Filename, Size: f.Size}
		switch {
		case !wanted:
			at.Note = wordsNotLoaded
		case f.Size > fileMost:
			at.Note = wordsTooBig
		default:
			a.load(within, m.Key, f, &at)
		}
		out = append(out, at)
	}
	return out
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
