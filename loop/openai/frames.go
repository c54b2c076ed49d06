package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Caps on what an endpoint may make us hold. No real answer comes near them.
const (
	frameCap  = 16 << 20
	streamCap = 16 << 20
)

// frames is the body of a 2xx response, normalised for go-openai: each frame
// is one line "data: …" and nothing else comes. What servers really send:
//
//   - comments, event:, id: and retry: lines are dropped, in any number;
//   - data: lines of one frame are joined; frames that stand together without
//     the blank line are taken apart; a last frame without a newline counts;
//   - a plain JSON body, or JSON lines without data:, are frames as well;
//   - an error, wherever it stands in a frame, ends the body with an
//     *answerError, after the frames before it;
//   - a frame, or all of them, over the cap ends it with errTooLong.
//
// One goroutine reads; beat is told of every byte that comes.
type frames struct {
	src  io.ReadCloser
	r    *bufio.Reader
	key  string
	beat *pulse

	frameCap, streamCap int

	out    bytes.Buffer // ready to be read
	data   []byte       // data lines of the frame being put together
	event  string       // its event: line
	line   []byte       // a line longer than the reader's buffer
	total  int
	begun  bool
	values *json.Decoder // not nil: the body is JSON values, not events
	err    error
}

func newFrames(src io.ReadCloser, key string, beat *pulse) *frames {
	f := &frames{src: src, key: key, beat: beat, frameCap: frameCap, streamCap: streamCap}
	f.r = bufio.NewReaderSize(activity{f}, 4<<10) // a frame has a few hundred bytes
	return f
}

// activity is the source, watched.
type activity struct{ f *frames }

func (a activity) Read(p []byte) (int, error) {
	n, err := a.f.src.Read(p)
	if n > 0 {
		a.f.beat.beat()
		if a.f.total += n; a.f.total > a.f.streamCap {
			return 0, errTooLong
		}
	}
	return n, err
}

func (f *frames) Close() error { return f.src.Close() }

func (f *frames) Read(p []byte) (int, error) {
	for f.out.Len() == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.out.Reset()
		if err := f.fill(); err != nil {
			f.err = err
		}
	}
	return f.out.Read(p)
}

// fill takes in one line, or a whole plain body.
func (f *frames) fill() error {
	if !f.begun {
		f.begun = true
		if plain, err := f.plain(); plain || err != nil {
			return err
		}
	}
	if f.values != nil {
		return f.value()
	}
	line, err := f.readLine()
	if err != nil && len(line) == 0 {
		if errors.Is(err, io.EOF) {
			if e := f.emit(); e != nil {
				return e
			}
		}
		return err
	}
	line = bytes.TrimRight(line, "\r\n")
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case len(line) == 0:
		return f.emit()
	case string(name) == "data":
		return f.add(bytes.TrimPrefix(value, []byte(" ")))
	case string(name) == "event":
		f.event = string(bytes.TrimSpace(value))
	case line[0] == '{': // JSON lines, or an error thrown into the stream
		if err := f.emit(); err != nil {
			return err
		}
		return f.add(line)
	}
	return nil
}

// readLine gives a line with its end. It is valid until the next call.
func (f *frames) readLine() ([]byte, error) {
	f.line = f.line[:0]
	for {
		part, err := f.r.ReadSlice('\n')
		if err == nil && len(f.line) == 0 {
			return part, nil
		}
		if len(f.line)+len(part) > f.frameCap {
			return nil, errTooLong
		}
		f.line = append(f.line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return f.line, err
		}
	}
}

// add puts one data line into the frame. One that would follow a whole frame
// begins the next: inside JSON no } stands before a {, so no parsing is needed.
func (f *frames) add(value []byte) error {
	if have := bytes.TrimSpace(f.data); len(have) > 0 {
		whole := have[len(have)-1] == '}' || string(have) == "[DONE]"
		if whole && (bytes.HasPrefix(value, []byte("{")) || bytes.HasPrefix(value, []byte("[DONE]"))) {
			if err := f.emit(); err != nil {
				return err
			}
		} else {
			// A space, not a newline: the frame must be one line, and in JSON a
			// newline can stand only where a space can.
			f.data = append(f.data, ' ')
		}
	}
	if len(f.data)+len(value) > f.frameCap {
		return errTooLong
	}
	f.data = append(f.data, value...)
	return nil
}

// emit ends the frame.
func (f *frames) emit() error {
	data, event := bytes.TrimSpace(f.data), f.event
	f.event = ""
	defer func() { f.data = f.data[:0] }()
	if len(data) == 0 {
		return nil
	}
	if string(data) != "[DONE]" {
		if err := f.failure(data, event); err != nil {
			return err
		}
	}
	f.out.WriteString("data: ")
	if bytes.HasPrefix(data, []byte(`{"error":`)) {
		// "error": null. go-openai takes the prefix for an error; a space hides it.
		f.out.WriteString("{ ")
		data = data[1:]
	}
	f.out.Write(data)
	f.out.WriteByte('\n')
	return nil
}

// failure finds the error in a frame: at the top, in its choice, or all of it
// after "event: error".
func (f *frames) failure(data []byte, event string) error {
	if event != "error" && !bytes.Contains(data, []byte(`"error"`)) {
		return nil
	}
	var o struct {
		Error   json.RawMessage `json:"error"`
		Choices []struct {
			Error json.RawMessage `json:"error"`
		} `json:"choices"`
	}
	// What cannot be decoded fails where frames are decoded.
	_ = json.Unmarshal(data, &o)
	found := o.Error
	for _, c := range o.Choices {
		if isNull(found) {
			found = c.Error
		}
	}
	switch {
	case !isNull(found):
		data = append(append([]byte(`{"error":`), found...), '}')
	case event != "error":
		return nil
	}
	return f.streamError(data)
}

func (f *frames) streamError(body []byte) *answerError {
	e := readError(body)
	e.redact(f.key)
	e.inStream = true
	first, _, _ := strings.Cut(e.code, " ")
	if n, err := strconv.Atoi(first); err == nil && n >= 300 && n < 600 {
		e.status = n
	}
	return e
}

// plain handles a body that is no event stream: JSON values, or a web page.
func (f *frames) plain() (bool, error) {
	for {
		b, err := f.r.Peek(1)
		if err != nil {
			return false, nil // readLine meets the same error
		}
		switch b[0] {
		case 0xEF, 0xBB, 0xBF, ' ', '\t', '\r', '\n': // a byte order mark, or space
			f.r.Discard(1)
			continue
		case '<':
			raw, _ := io.ReadAll(io.LimitReader(f.r, errorCap))
			e := readError(raw)
			e.webPage = true
			return true, e
		case '[':
			raw, err := io.ReadAll(io.LimitReader(f.r, errorCap))
			if err != nil {
				return true, err
			}
			if bytes.HasPrefix(raw, []byte("[DONE]")) {
				return true, io.EOF
			}
			return true, f.streamError(raw)
		case '{':
			f.values = json.NewDecoder(io.LimitReader(f.r, int64(f.frameCap)+1))
			return true, nil
		}
		return false, nil
	}
}

// value reads one JSON value, over however many lines, as a frame.
func (f *frames) value() error {
	var v json.RawMessage
	if err := f.values.Decode(&v); err != nil {
		var bad *json.SyntaxError
		switch {
		case f.total > f.frameCap:
			return errTooLong
		case errors.As(err, &bad):
			return errBadFrame
		}
		return err
	}
	var one bytes.Buffer
	if err := json.Compact(&one, v); err != nil {
		return errBadFrame
	}
	f.data = append(f.data[:0], one.Bytes()...)
	return f.emit()
}
