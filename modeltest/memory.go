package modeltest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Transport calls the server in memory. It opens no socket, so a test may use
// it inside a testing/synctest bubble, where waiting on a socket would never
// count as idle.
func (s *Server) Transport() http.RoundTripper { return memory{s} }

type memory struct{ h http.Handler }

// RoundTrip runs the handler in a goroutine that ends when the handler does.
// Cancelling the request or closing the body cancels the handler's context.
func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	pr, pw := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pw: pw, head: make(chan struct{})}
	// A cancelled request breaks a read that waits for the next piece.
	stop := context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	in := req.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	go func() {
		defer stop()
		defer in.Body.Close()
		defer func() {
			switch v := recover(); v {
			case nil:
				w.WriteHeader(http.StatusOK)
				// A handler that gave up on a cancelled request did not end its answer.
				pw.CloseWithError(ctx.Err())
			case http.ErrAbortHandler:
				w.fail(io.ErrUnexpectedEOF)
			default:
				panic(v)
			}
		}()
		m.h.ServeHTTP(w, in)
	}()
	select {
	case <-w.head:
	case <-ctx.Done():
		cancel()
		return nil, context.Cause(ctx)
	}
	if w.status == 0 { // hung up before the status line
		cancel()
		return nil, io.EOF
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: -1, Request: req,
		Body: &pipeBody{PipeReader: pr, cancel: cancel},
	}, nil
}

// pipeWriter is used by the handler's goroutine alone; status and sent may be
// read by others once head is closed.
type pipeWriter struct {
	header http.Header
	sent   http.Header
	status int
	pw     *io.PipeWriter
	once   sync.Once
	head   chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.head)
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pw.Write(b)
}

func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// fail breaks the answer where it is: before the status line, or in the body.
func (w *pipeWriter) fail(err error) {
	w.once.Do(func() { close(w.head) })
	w.pw.CloseWithError(err)
}

type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	err := b.PipeReader.Close()
	b.cancel()
	return err
}
