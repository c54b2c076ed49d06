package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/bwmarrin/discordgo"

	"coxswain/session"
)

const (
	// uploadMost is how large a file a bot may send, in bytes: Discord's limit of
	// each file where nobody pays for more. A server's boosts raise it, at level 2
	// and at level 3.
	uploadMost  = 10 << 20
	uploadMost2 = 50 << 20
	uploadMost3 = 100 << 20
	// uploadRate is the slowest line that is waited for, in bytes a second.
	uploadRate = 64 << 10
)

var (
	_ session.FileSender  = (*Adapter)(nil)
	_ session.FileLimiter = (*Adapter)(nil)
)

// FileMost is the limit of a session's channel.
func (a *Adapter) FileMost(key session.Key) int64 { return a.uploadLimit(target(key), key) }

// uploadLimit is how many bytes a file may have in a channel, which a session
// writes to: its own, or the one its thread is in.
func (a *Adapter) uploadLimit(to string, key session.Key) int64 {
	c, ok := a.places.get(to)
	if !ok { // a thread that no event has told of
		c, _ = a.places.get(string(key.Chat))
	}
	switch tier := a.guilds.tier(c.GuildID); {
	case tier >= 3:
		return uploadMost3
	case tier == 2:
		return uploadMost2
	}
	return uploadMost
}

// FileParts makes the payloads of a message with files. Each file is a message,
// with its words above it if they fit there, else behind it; what is said to all
// of them stands with the first, or behind the last. A file is everybody's in
// the chat, also where a slash command asked for it. Its kind plays no part:
// Discord shows a file by its name's ending.
func (a *Adapter) FileParts(o session.Outgoing) [][]byte {
	all := o.Markdown
	var list []payload
	for i, f := range o.Files {
		if f.Name == "" {
			f.Name = path.Base(f.Path)
		}
		words := f.Caption
		if i == 0 && (words == "" || words == all) {
			words, all = all, ""
		}
		f.Caption = "" // it is said once, by the text
		p, behind := payload{Silent: o.Silent, File: &f}, spoken(words, o.Silent)
		if len(behind) == 1 {
			p.Text, behind = behind[0].Text, nil
		}
		list = append(append(list, p), behind...)
	}
	return encode(o, append(list, spoken(all, o.Silent)...))
}

// spoken is pieces, none of a text that says nothing.
func spoken(markdown string, silent bool) []payload {
	if strings.TrimSpace(markdown) == "" {
		return nil
	}
	return pieces(markdown, silent)
}

// sentName makes one plain file name: letters, digits, points and lines, so that
// nothing in it can break the form, the words about it or the way it is read.
func sentName(f session.File) string {
	name := f.Name
	if name == "" {
		name = path.Base(f.Path)
	}
	return fileName(attachment{ID: "1", Filename: name})
}

// carries reports whether a message has the file; nil = none is asked for.
func carries(w message, f *session.File) bool {
	if f == nil {
		return true
	}
	for _, at := range w.Attachments {
		if at.Filename == sentName(*f) {
			return true
		}
	}
	return false
}

// A fileError is a file that cannot be sent, with the words that stand in its
// place. Nothing was sent.
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

// postFile is post of a message with a file, which is read anew at each call.
func (a *Adapter) postFile(ctx context.Context, to string, key session.Key, p payload, nonce string) (string, error) {
	name := sentName(*p.File)
	if a.o.Open == nil {
		return "", &fileError{wordsFileAt(p.File.Path), errors.New("discord: no way to read files")}
	}
	r, size, err := a.o.Open(ctx, key, p.File.Path)
	if ctx.Err() != nil {
		if err == nil {
			_ = r.Close() // nothing was read
		}
		return "", ctx.Err()
	}
	if err != nil {
		return "", &fileError{wordsFileGone(name), fmt.Errorf("discord: open file to send: %w", err)}
	}
	body, err := newForm(a.outMessage(p, nonce), name, r, size, a.uploadLimit(to, key))
	if err != nil {
		_ = r.Close() // nothing was read
		return "", err
	}
	within := callTime + time.Duration(size/uploadRate)*time.Second
	var sent struct {
		ID string `json:"id"`
	}
	err = a.exchange(ctx, http.MethodPost, "send:"+to, within, &sent, func(ctx context.Context) ([]byte, error) {
		// A lock of its own: what is said meanwhile does not wait for the file.
		data, err := a.rest.RequestRaw(http.MethodPost, discordgo.EndpointAPI+"channels/"+to+"/messages", "", nil, "file:"+to, 0,
			discordgo.WithContext(ctx), discordgo.WithClient(&http.Client{Transport: a.rest.Client.Transport}), body.into)
		return data, body.blame(err, name)
	})
	if !body.used {
		_ = r.Close() // nothing was read
	}
	if e, ok := errors.AsType[*apiError](err); ok && (e.code == codeTooLarge || e.status == http.StatusRequestEntityTooLarge) {
		err = &fileError{wordsFileTooLarge(name, size), err}
	}
	return sent.ID, err
}

// A form is the body of a message with one file.
type form struct {
	head bytes.Buffer
	kind string
	tail string
	file io.ReadCloser
	size int64 // of the file
	used bool  // the library has it, and closes the file

	left   int64                 // of the file to read; the reader's
	failed atomic.Pointer[error] // why the file could not be read
	short  atomic.Bool           // the file has become shorter
	closed atomic.Bool
}

// newForm checks a file's size against the most there may be and makes the form
// around it. The error may be a *fileError.
func newForm(m outMessage, name string, file io.ReadCloser, size, most int64) (*form, error) {
	switch {
	case size > most:
		return nil, &fileError{wordsFileTooBig(name, size, most), fmt.Errorf("discord: file of %d bytes", size)}
	case size <= 0:
		return nil, &fileError{wordsFileEmpty(name), errors.New("discord: file of no bytes")}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("discord: encode message: %w", err)
	}
	f := &form{file: file, size: size, left: size}
	w := multipart.NewWriter(&f.head)
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="payload_json"`}, "Content-Type": {"application/json"}})
	if err == nil {
		_, err = part.Write(data)
	}
	if err == nil {
		_, err = w.CreateFormFile("files[0]", name)
	}
	f.kind, f.tail = w.FormDataContentType(), "\r\n--"+w.Boundary()+"--\r\n"
	return f, err
}

// into puts the form into a request of the library, which takes only bodies that
// are in memory as a whole.
func (f *form) into(c *discordgo.RequestConfig) {
	f.used = true
	r := c.Request
	r.Header.Set("Content-Type", f.kind)
	r.ContentLength = int64(f.head.Len()) + f.size + int64(len(f.tail))
	r.GetBody = nil // the library's gives an empty one; another call opens the file again
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(f.head.Bytes()), f, strings.NewReader(f.tail)), f}
}

// Close closes the file. It may be called while Read reads, when the call has
// ended before all was sent.
func (f *form) Close() error {
	f.closed.Store(true)
	return f.file.Close()
}

// Read reads the file, of the size that was told: what has been put behind it
// since is left away.
func (f *form) Read(b []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.file.Read(b[:min(int64(len(b)), f.left)])
	f.left -= int64(n)
	switch {
	case f.closed.Load(): // it is not the file's fault
	case err == io.EOF && f.left > 0:
		f.short.Store(true)
		return n, io.ErrUnexpectedEOF
	case err != nil && err != io.EOF:
		f.failed.Store(&err)
	}
	return n, err
}

// blame says what an error means when it was the file's: the request was cut off
// in the middle, so it was certainly not taken. A file that has become shorter
// is being written: it is tried again.
func (f *form) blame(err error, name string) error {
	if why := f.failed.Load(); err != nil && why != nil {
		return &fileError{wordsFileGone(name), fmt.Errorf("discord: read file to send: %w", *why)}
	}
	if err != nil && f.short.Load() {
		return &session.SendError{Outcome: session.SendNot, Err: errors.New("discord: the file changed while it was sent")}
	}
	return err
}

// printable puts a line where s has what cannot be seen: nothing may make it read
// as another.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}

// sizeOf says a size for people.
func sizeOf(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt((n+1023)>>10, 10) + " kB"
	}
	return strconv.FormatInt((n+1<<20-1)>>20, 10) + " MB"
}
