package tools

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// A lineReader yields lines of any length in bounded memory. One goroutine at a time.
type lineReader struct {
	r    *bufio.Reader
	keep int // bytes of a line that are kept
	buf  []byte
	read int64 // bytes taken from r so far
	crlf bool  // a line ended in CR LF
}

func newLineReader(r io.Reader, keep int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), keep: keep}
}

// peek returns the first bytes without taking them.
func (l *lineReader) peek(n int) []byte {
	b, _ := l.r.Peek(n)
	return b
}

// next returns a line without its end, cut to keep bytes and valid until the next call, its
// full length, and io.EOF when there is none. A last line without a line end is a line.
func (l *lineReader) next() (line []byte, full int, err error) {
	l.buf = l.buf[:0]
	last := byte(0) // the byte before the line end, which may lie beyond what is kept
	for {
		part, err := l.r.ReadSlice('\n')
		l.read += int64(len(part))
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		full += len(part)
		if len(part) > 0 {
			last = part[len(part)-1]
		}
		l.buf = append(l.buf, part[:min(len(part), l.keep-len(l.buf))]...)
		switch {
		case ended:
			if last == '\r' {
				l.crlf = true
				full--
				l.buf = bytes.TrimSuffix(l.buf, []byte{'\r'})
			}
			return l.buf, full, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if full == 0 {
				return nil, 0, io.EOF
			}
			return l.buf, full, nil
		default:
			return nil, 0, err
		}
	}
}
