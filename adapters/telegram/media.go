package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/go-telegram/bot/models"

	"coxswain/session"
)

const (
	// fileMost: what a bot may load over the cloud API, in bytes (T34).
	fileMost = 20 << 20
	// fileTime bounds the loading of one file. Later messages of the chat wait
	// for it, a /stop among them.
	fileTime = 15 * time.Second
	// nameMost bounds a file's name in bytes, as file systems do with room for
	// what Save may add.
	nameMost = 120
)

// media gives the file of a message and its kind, nil if there is none. A
// message has at most one.
func media(w *message) (kind string, f *file) {
	switch {
	case len(w.Photo) > 0: // sizes of one picture, the biggest last
		f := &w.Photo[len(w.Photo)-1]
		for i := range w.Photo {
			if w.Photo[i].Size <= fileMost && w.Photo[i].Size > f.Size {
				f = &w.Photo[i]
			}
		}
		return "photo", f
	case w.Animation != nil: // comes with a document that is the same file
		return "animation", w.Animation
	case w.Document != nil:
		return "document", w.Document
	case w.Audio != nil:
		return "audio", w.Audio
	case w.Voice != nil:
		return "voice", w.Voice
	case w.Video != nil:
		return "video", w.Video
	case w.VideoNote != nil:
		return "video_note", w.VideoNote
	}
	return "", nil
}

func fileIdentity(w *message) string {
	if _, f := media(w); f != nil {
		return f.Unique
	}
	return ""
}

// attach loads the file of a message into the session's inbox, and gives words
// for what has no file (T33).
func (a *Adapter) attach(ctx context.Context, w *message, m *session.Message) (described string, err error) {
	if kind, f := media(w); f != nil {
		at, err := a.load(ctx, m, kind, f, w)
		if err != nil {
			return "", err
		}
		m.Attachments = append(m.Attachments, at)
		if at.Path != "" && (kind == "voice" || kind == "video_note") {
			a.listen(ctx, w, m, at)
		}
		return "", nil
	}
	for _, k := range []struct {
		kind string
		is   present
	}{{"story", w.Story}, {"checklist", w.Checklist}, {"paid media", w.PaidMedia}, {"game", w.Game}, {"giveaway", w.Giveaway}, {"invoice", w.Invoice}} {
		if k.is {
			m.Attachments = append(m.Attachments, session.Attachment{Kind: k.kind, Note: wordsUnreadable})
			a.sayOf(ctx, *m, wordsCannotRead(k.kind))
			return "", nil
		}
	}
	return describe(w), nil
}

// describe puts into words what has neither text nor file.
func describe(w *message) string {
	switch {
	case w.Sticker != nil:
		if w.Sticker.Emoji != "" {
			return w.Sticker.Emoji
		}
		return "[sticker]"
	case w.Venue != nil:
		return fmt.Sprintf("[place: %s, %s, at %.6f, %.6f]", w.Venue.Title, w.Venue.Address, w.Venue.Location.Latitude, w.Venue.Location.Longitude)
	case w.Location != nil:
		return fmt.Sprintf("[location: %.6f, %.6f]", w.Location.Latitude, w.Location.Longitude)
	case w.Contact != nil:
		return fmt.Sprintf("[contact: %s, %s]", personName(&models.User{FirstName: w.Contact.FirstName, LastName: w.Contact.LastName}), w.Contact.PhoneNumber)
	case w.Dice != nil:
		return fmt.Sprintf("[dice %s: %d]", w.Dice.Emoji, w.Dice.Value)
	case w.Poll != nil:
		var options []string
		for _, o := range w.Poll.Options {
			options = append(options, o.Text)
		}
		return fmt.Sprintf("[poll: %s (%s)]", w.Poll.Question, strings.Join(options, " / "))
	}
	return ""
}

// load saves one file, of what speaks to the bot: of other messages of a group
// at most the words are kept. What cannot be had is noted on the attachment: the
// message counts without it. An error is only that of ctx.
func (a *Adapter) load(ctx context.Context, m *session.Message, kind string, f *file, w *message) (session.Attachment, error) {
	at := session.Attachment{Kind: kind, Name: f.Name, Size: f.Size}
	if !m.Addressed || a.files != nil && !a.files(ctx, *m) {
		at.Note = wordsNotLoaded
		return at, nil
	}
	if f.Size > fileMost {
		at.Note = wordsTooBig
		a.sayOf(ctx, *m, wordsTooBig)
		return at, nil
	}
	within, end := a.hurry.begin(ctx, w.sender())
	defer end()
	select {
	case a.loads <- struct{}{}:
		defer func() { <-a.loads }()
	case <-within.Done():
	}
	within, cancel := context.WithTimeout(within, fileTime)
	defer cancel()
	var got models.File
	err := a.retrying(within, func() error {
		return a.api.call(within, "getFile", map[string]string{"file_id": f.ID}, &got)
	})
	if err == nil {
		name := fileName(f.Name, kind, w.ID, got.FilePath)
		if at.Name == "" {
			at.Name = name
		}
		err = a.retrying(within, func() (err error) {
			at.Path, at.Size, err = a.loadOnce(within, m.Key, name, got.FilePath)
			return err
		})
	}
	switch {
	case ctx.Err() != nil:
		return at, ctx.Err()
	case err == nil:
	case context.Cause(within) == errHurry:
		at.Note, at.Path = wordsNotWaited, ""
	case errors.Is(err, errTooBig), tooBig(err):
		at.Note, at.Path = wordsTooBig, ""
		a.sayOf(ctx, *m, wordsTooBig)
	default:
		at.Note, at.Path = wordsNoFile, ""
		a.log.Warn("file not loaded", "kind", kind, "size", f.Size, "err", err)
	}
	return at, nil
}

func tooBig(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.says("file is too big")
}

// sayOf tells the sender of a message that speaks to the bot what could not be
// had of it, beside what the model is told.
func (a *Adapter) sayOf(ctx context.Context, m session.Message, words string) {
	if !m.Addressed {
		return
	}
	a.beside.Go(func() {
		if a.permits(ctx, m) {
			a.say(ctx, m.Key, m.ID, words)
		}
	})
}

var errTooBig = errors.New("file is over the limit")

func (a *Adapter) loadOnce(ctx context.Context, key session.Key, name, from string) (string, int64, error) {
	body, err := a.api.fetch(ctx, from)
	if err != nil {
		return "", 0, err
	}
	defer body.Close()
	return a.save(ctx, key, name, &limited{body, fileMost})
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

// retrying tries f up to three times while ctx lasts and trying may help.
func (a *Adapter) retrying(ctx context.Context, f func() error) error {
	wait := newBackoff(500*time.Millisecond, 2*time.Second)
	for n := 1; ; n++ {
		err := f()
		if err == nil || n == 3 || errors.Is(err, errTooBig) {
			return err
		}
		d := wait.next()
		if e, ok := errors.AsType[*apiError](err); ok {
			if e.code >= 400 && e.code < 500 && e.code != 429 {
				return err
			}
			d = max(d, e.retryAfter)
		}
		if !pause(ctx, d) {
			return err
		}
	}
}

// fileName makes one plain file name: letters, digits and ._- of what the
// sender called it, or kind and message id with the extension Telegram gives.
func fileName(given, kind string, msg int, remote string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, path.Base(strings.ReplaceAll(given, `\`, "/")))
	clean = strings.TrimLeft(clean, ".")
	if given == "" || strings.Trim(clean, "._") == "" {
		return fmt.Sprintf("%s-%d%s", kind, msg, cleanExt(remote))
	}
	if ext := cleanExt(clean); len(clean) > nameMost {
		clean = strings.ToValidUTF8(clean[:nameMost-len(ext)], "") + ext
	}
	return clean
}

// cleanExt gives a short extension with its dot, or nothing.
func cleanExt(name string) string {
	ext := path.Ext(name)
	if len(ext) < 2 || len(ext) > 10 {
		return ""
	}
	for _, r := range ext[1:] {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return ""
		}
	}
	return ext
}
