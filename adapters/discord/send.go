package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"coxswain/adapters/markup"
	"coxswain/session"
)

// Discord's codes that mean something here.
const (
	codeUnknownChannel = 10003
	codeUnknownMessage = 10008
	codeUnknownWebhook = 10015
	codeUnknownAsk     = 10062
	codeAcked          = 40060
	codeTooLarge       = 40005
	codeNoAccess       = 50001
	codeNoDM           = 50007
	codeNoPermission   = 50013
	codeBadForm        = 50035
	codeDeadToken      = 50027
	codeArchived       = 50083
	codeHasThread      = 160004
	codeLocked         = 160005
)

const (
	// nonceTime is how long Discord surely knows a nonce; it says "the past few
	// minutes".
	nonceTime = 2 * time.Minute
	// paceWait is how long Send waits out a rate limit; a longer wait is the
	// outbox's, which keeps it over a restart.
	paceWait = 3 * time.Second
	// shutFor is how long a refusal keeps sends to a channel back when nothing is
	// heard from it (D7, D22).
	shutFor = 10 * time.Minute
)

var (
	errShut = errors.New("discord: " + wordsClosedChan)
	errOut  = errors.New("discord: " + wordsOutage)
)

// Send sends one part and returns the id of the message; that of the first when
// the part had to be cut.
//
// A send whose answer is lost is SendNot for two minutes, counted from the
// first that was lost: until then the same nonce gives the same message (D19).
// A part that comes as unknown after that is first looked for in the channel,
// and marked as a possible repeat if it is not there (I9).
//
// What Discord refuses for a reason that can be cured is sent again, cured,
// once for each reason: a text too long or a component it does not take (D17),
// a thread it may not be written to (D6), a file (upload.go). The answer to a
// slash command goes to who gave it (ask.go).
func (a *Adapter) Send(ctx context.Context, p session.Part) (session.MessageID, error) {
	var pl payload
	if err := json.Unmarshal(p.Data, &pl); err != nil || pl.Text == "" && pl.File == nil {
		return "", &session.SendError{Outcome: session.SendRefused, Err: fmt.Errorf("discord: part %s holds no message", p.ID)}
	}
	to := target(p.Key)
	if to == "" {
		return "", &session.SendError{Outcome: session.SendRefused, Err: fmt.Errorf("discord: %q is no channel here", p.Key)}
	}
	nonce := nonceOf(p.Key, p.ID)
	if pl.Ask != "" {
		if id, over, err := a.answer(ctx, pl, nonce); over {
			return session.MessageID(id), err
		}
	}
	if p.State == session.PartUnknown && a.lost.get(nonce).IsZero() {
		a.lost.note(nonce, p.Since) // lost by a process before this one
	}
	if first := a.lost.get(nonce); !first.IsZero() && time.Since(first) >= nonceTime {
		id, err := a.find(ctx, to, pl, first)
		if err != nil {
			return "", &session.SendError{Outcome: session.SendNot, Err: err}
		}
		if id != "" {
			a.lost.forget(nonce)
			return session.MessageID(id), nil
		}
		pl.Text = wordsRepeat + pl.Text
	}
	began := time.Now()
	s := sending{a: a, files: p.Session(), to: to, parent: string(p.Key.Chat)}
	if a.moved.has(to) {
		s.move(&pl)
	}
	id, err := s.send(ctx, pl, nonce)
	if err == nil {
		a.lost.forget(nonce)
		return session.MessageID(id), nil
	}
	first := a.lost.get(nonce)
	if sendError(err, time.Time{}).Outcome == session.SendUnknown {
		first = a.lost.note(nonce, began)
	}
	return "", sendError(err, first)
}

// find looks for an own message with this text and file that is not older than
// the attempt.
func (a *Adapter) find(ctx context.Context, channel string, p payload, since time.Time) (string, error) {
	q := url.Values{"limit": {"100"}, "after": {idAt(since.Add(-time.Minute))}} // clocks differ a little
	var list []message
	err := a.call(ctx, http.MethodGet, "channels/"+channel+"/messages?"+q.Encode(), "history:"+channel, nil, &list)
	if permanent(err) {
		return "", nil // may not be read: then it cannot be known
	}
	for _, w := range list {
		if w.Author != nil && w.Author.ID == a.id && strings.TrimSpace(w.Content) == strings.TrimSpace(p.Text) && carries(w, p.File) {
			return w.ID, nil
		}
	}
	return "", err
}

// A sending is one Send with what it has tried.
type sending struct {
	a      *Adapter
	files  session.Key // whose files it names
	to     string
	parent string
	bare   bool     // buttons were refused
	short  bool     // the text was cut
	moved  bool     // the thread is locked
	whole  *payload // what it was before its file was left away for want of a permission
}

func (s *sending) send(ctx context.Context, p payload, nonce string) (string, error) {
	for {
		id, err := s.once(ctx, p, nonce)
		if err == nil {
			return id, nil
		}
		if f, ok := errors.AsType[*fileError](err); ok {
			s.a.log.Warn("file not sent")
			s.a.log.Debug("file not sent", "err", err) // it says the path
			p = asWords(p, f.words)
			continue
		}
		e, ok := errors.AsType[*apiError](err)
		switch {
		case !ok:
			return "", err
		case e.code == codeBadForm && strings.Contains(e.detail, `"components"`) && !s.bare && len(p.Rows) > 0:
			s.bare, p.Rows = true, nil
			s.a.log.Warn("buttons refused, sent without", "err", err)
		case e.code == codeBadForm && strings.Contains(e.detail, `"content"`) && !s.short && markup.Units(p.Text) > 64:
			s.short = true
			return s.pieces(ctx, p, nonce)
		case p.File != nil && e.code == codeNoPermission: // to attach files is one of its own
			whole := p
			s.whole, p = &whole, asWords(p, wordsFileForbidden(sentName(*p.File)))
		case p.File != nil && e.status == http.StatusBadRequest && e.code != codeLocked && e.code != codeArchived:
			s.a.log.Warn("file refused, sent without", "err", err)
			p = asWords(p, wordsFileRefused(sentName(*p.File)))
		case (e.code == codeLocked || e.code == codeArchived || e.code == codeNoPermission) && s.mayMove(ctx):
			s.a.moved.set(s.to, shutFor)
			if s.whole != nil { // it was not the file
				p, s.whole = *s.whole, nil
			}
			s.move(&p)
		case e.code == codeNoAccess || e.code == codeNoDM || e.code == codeNoPermission || e.code == codeUnknownChannel:
			s.a.shutChannel(ctx, s.to, err)
			return "", err
		default:
			return "", err
		}
	}
}

// mayMove reports whether what a thread refuses can go to its channel: nothing
// can be written to a forum itself (D11).
func (s *sending) mayMove(ctx context.Context) bool {
	return !s.moved && s.to != s.parent && !s.a.look(ctx, s.parent).forum()
}

// move sends to the thread's channel from here on, with a link (D6).
func (s *sending) move(p *payload) {
	s.moved = true
	p.Text, p.ReplyTo = wordsLocked(s.to)+p.Text, ""
	s.to = s.parent
}

// pieces sends a text that is too long after all as several messages. Each has
// a nonce of its own that another try makes again, so a piece that stands in
// the channel is not sent twice.
func (s *sending) pieces(ctx context.Context, p payload, nonce string) (string, error) {
	var first string
	list := markup.DiscordMarkdown(p.Text, markup.Units(p.Text)/2+1)
	for i, text := range list {
		part := payload{Text: text, Silent: p.Silent}
		if i == 0 {
			part.ReplyTo, part.File = p.ReplyTo, p.File
		}
		if i == len(list)-1 {
			part.Rows = p.Rows
		}
		id, err := s.send(ctx, part, nonce[:22]+"-"+strconv.Itoa(min(i, 9)))
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = id
		}
	}
	return first, nil
}

// once makes one call, after waiting out a short rate limit.
func (s *sending) once(ctx context.Context, p payload, nonce string) (string, error) {
	if err := s.a.barred(s.to); err != nil {
		return "", err
	}
	if d := s.a.pace.wait("send:" + s.to); d > 0 && d <= paceWait && !pause(ctx, d) {
		return "", ctx.Err()
	}
	if p.File != nil {
		return s.a.postFile(ctx, s.to, s.files, p, nonce)
	}
	return s.a.post(ctx, s.to, p, nonce)
}

// post is the call itself. The nonce is enforced: what is sent again with it is
// the message that was sent before (D19).
func (a *Adapter) post(ctx context.Context, to string, p payload, nonce string) (string, error) {
	var sent struct {
		ID string `json:"id"`
	}
	err := a.call(ctx, http.MethodPost, "channels/"+to+"/messages", "send:"+to, a.outMessage(p, nonce), &sent)
	return sent.ID, err
}

func (a *Adapter) outMessage(p payload, nonce string) outMessage {
	m := outMessage{Content: p.Text, Nonce: nonce, Enforce: true, Mentions: nobody}
	if len(p.Rows) > 0 {
		m.Components = p.Rows
	}
	if id := a.realMessage(string(p.ReplyTo)); id != "" {
		m.Reference = &reference{MessageID: id}
	}
	if p.Silent {
		m.Flags = flagSilent
	}
	return m
}
