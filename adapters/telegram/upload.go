package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"coxswain/adapters/markup"
	"coxswain/session"
)

// Limits of what a bot may send over the cloud API (T20).
const (
	uploadMost  = 50 << 20 // bytes of any file
	photoMost   = 10 << 20 // bytes of a photo
	captionMost = 1024     // UTF-16 units of the text below a file
	// captionPart leaves room for the words a send may put in front.
	captionPart = captionMost - 96
	// uploadRate is the slowest line that is waited for, in bytes a second.
	uploadRate = 64 << 10
)

var _ session.FileSender = (*Adapter)(nil)

// FileParts makes the payloads of a message with files. Each file is a message,
// with its words below it if they fit there, else behind it; what is said to all
// of them stands below the first, or behind the last.
func (a *Adapter) FileParts(o session.Outgoing) [][]byte {
	files := slices.Clone(o.Files)
	rest := o
	rest.Files, rest.ReplyTo, rest.Buttons = nil, "", nil
	var list []payload
	for i := range files {
		f := &files[i]
		if f.Name == "" {
			f.Name = path.Base(f.Path)
		}
		words := f.Caption
		if i == 0 && (words == "" || words == rest.Markdown) {
			words, rest.Markdown = rest.Markdown, ""
		}
		f.Caption = "" // it is said once, by the text
		p := payload{Silent: o.Silent, File: f}
		text := markup.Parse(words)
		if markup.Units(text.Plain) <= captionPart && len(text.Spans) <= entitiesMost {
			p.Text, p.Entities = text.Plain, entities(text)
			list = append(list, p)
			continue
		}
		behind := rest
		behind.Markdown = words
		list = append(append(list, p), a.payloads(behind)...)
	}
	return encodeAll(o, append(list, a.payloads(rest)...))
}

// fileKinds are the ways to send a file: the method's last word.
var fileKinds = map[string]string{
	"document": "Document", "photo": "Photo", "voice": "Voice", "audio": "Audio", "video": "Video", "animation": "Animation",
}

// kindOf gives how to send a file of that size.
func kindOf(f session.File, size int64) string {
	k := f.Kind
	if k == "" {
		switch strings.ToLower(path.Ext(f.Name)) {
		case ".jpg", ".jpeg", ".png":
			k = "photo"
		}
	}
	if fileKinds[k] == "" || k == "photo" && size > photoMost {
		return "document"
	}
	return k
}

// sendFile makes the call that sends a payload with a file. The file is read
// from the workspace anew for each try.
func (a *Adapter) sendFile(ctx context.Context, t target, key session.Key, p payload) (int, error) {
	f := *p.File
	if a.open == nil {
		return 0, &fileError{wordsFileGone(f.Name), errors.New("telegram: no way to read files")}
	}
	r, size, err := a.open(ctx, key, f.Path)
	if err != nil {
		return 0, &fileError{wordsFileGone(f.Name), fmt.Errorf("telegram: open file to send: %w", err)}
	}
	r.Close() // its size is known; each try opens it for itself
	if size > uploadMost {
		return 0, &fileError{wordsFileTooBig(f.Name, size), fmt.Errorf("telegram: file of %d bytes", size)}
	}
	if size == 0 {
		return 0, &fileError{wordsFileEmpty(f.Name), errors.New("telegram: file of no bytes")}
	}
	kind := kindOf(f, size)
	fields := map[string]any{"chat_id": t.chat, "disable_notification": p.Silent}
	if t.thread != 0 {
		fields["message_thread_id"] = t.thread
	}
	if p.Text != "" {
		fields["caption"] = p.Text
	}
	if len(p.Entities) > 0 {
		fields["caption_entities"] = p.Entities
	}
	if p.Keyboard != nil {
		fields["reply_markup"] = p.Keyboard
	}
	if id, ok := a.wireID(t.chat, p.ReplyTo); ok {
		fields["reply_parameters"] = &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
	}
	b, err := form(fields, kind, fileName(f.Name, kind, 0, f.Path), size, func() (io.ReadCloser, error) {
		r, _, err := a.open(ctx, key, f.Path)
		return r, err
	})
	if err != nil {
		return 0, err
	}
	var sent struct {
		ID int `json:"message_id"`
	}
	within := callTimeout + time.Duration(size/uploadRate)*time.Second
	err = a.api.post(ctx, "send"+fileKinds[kind], b, within, &sent)
	a.flooded(t.chat, err)
	a.stands(t.chat, sent.ID)
	return sent.ID, err
}

// A fileError is a file that cannot be sent, with the words that stand in its
// place.
type fileError struct {
	words string
	err   error
}

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// asWords is a payload whose file cannot be sent: its text with what is the
// matter.
func asWords(p payload, words string) payload {
	p.File = nil
	if p.Text != "" {
		words = "\n" + words
	}
	p.Text += words
	return p
}

// form makes a multipart body of fields and one file whose size is known, so
// that the request has a length and can be made again.
func form(fields map[string]any, kind, name string, size int64, open func() (io.ReadCloser, error)) (body, error) {
	var head bytes.Buffer
	w := multipart.NewWriter(&head)
	for k, v := range fields {
		text, ok := v.(string)
		if !ok {
			data, err := json.Marshal(v)
			if err != nil {
				return body{}, fmt.Errorf("telegram: encode %s: %w", k, err)
			}
			text = string(data)
		}
		if err := w.WriteField(k, text); err != nil {
			return body{}, err
		}
	}
	if _, err := w.CreateFormFile(kind, name); err != nil {
		return body{}, err
	}
	tail := "\r\n--" + w.Boundary() + "--\r\n"
	return body{w.FormDataContentType(), int64(head.Len()) + size + int64(len(tail)), func() (io.ReadCloser, error) {
		f, err := open()
		if err != nil {
			return nil, err
		}
		r := io.MultiReader(bytes.NewReader(head.Bytes()), io.LimitReader(f, size), strings.NewReader(tail))
		return struct {
			io.Reader
			io.Closer
		}{r, f}, nil
	}}, nil
}

// sizeOf says a size for people.
func sizeOf(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt((n+1023)>>10, 10) + " kB"
	}
	return strconv.FormatInt((n+1<<20-1)>>20, 10) + " MB"
}
