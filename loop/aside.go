package loop

import (
	"context"
	"encoding/json"
	"fmt"

	"coxswain/session"
)

// Aside implements session.Agent: one request over the rows so far, with the
// same head, and tools off. Nothing is stored in the rows.
func (l *Loop) Aside(ctx context.Context, key session.Key, rows []session.Row, tail string, in session.Input, pay session.Payer) (string, error) {
	tr := &transcript{p: l.of(key), key: key}
	if !hasHead(rows) {
		data, err := l.Head(ctx, key, nil)
		if err != nil {
			return "", err
		}
		rows = append([]session.Row{{Type: session.RowHead, Data: data}}, rows...)
	}
	if err := l.render(tr, 1, rows); err != nil {
		return "", err
	}
	msgs := append([]json.RawMessage(nil), tr.msgs...)
	add := func(w Wire) error {
		data, err := tr.p.Model.Encode(w)
		if err != nil {
			return fmt.Errorf("encode %s message: %w", w.Role, err)
		}
		msgs = append(msgs, data)
		return nil
	}
	// The rows may end anywhere: open calls are answered with what they have
	// said, and an assistant message keeps the roles in turn.
	for _, c := range openCalls(rows) {
		body := "still running"
		if tail != "" {
			body += "; output so far:\n" + tail
			tail = ""
		}
		if err := add(Wire{Role: "tool", CallID: c.ID, Text: tr.text(body), Private: tr.private[c.ID]}); err != nil {
			return "", err
		}
	}
	if len(msgs) > 0 && (len(rows) == 0 || rows[len(rows)-1].Type != session.RowAssistant || len(openCalls(rows)) > 0) {
		if err := add(Wire{Role: "assistant", Text: rowWorking}); err != nil {
			return "", err
		}
	}
	if err := add(Wire{Role: "user", Text: tr.text(inputText(in))}); err != nil {
		return "", err
	}
	extra := 0 // what is added here to the rows
	for _, m := range msgs[len(tr.msgs):] {
		extra += len(m)
	}
	paid, err := pay.Afford(ctx, func() int64 { return tr.p.cost(tr.estimate(extra)) })
	if err != nil {
		return "", err
	}
	accepted := false
	reply, err := tr.p.Model.Stream(ctx, Request{
		System: tr.head.System, Tools: tr.head.Tools, Messages: msgs, NoTools: true, Session: key.String(),
	}, func(Delta) {}, func() { accepted = true })
	tr.p.settle(paid, reply.Usage, accepted, err)
	if err != nil {
		return "", err
	}
	text, _ := tr.clean.Sanitize(reply.Text)
	return text, nil
}

func hasHead(rows []session.Row) bool {
	for _, r := range rows {
		if r.Type == session.RowHead {
			return true
		}
	}
	return false
}

// openCalls lists the calls of the newest assistant row without a result.
func openCalls(rows []session.Row) []session.Call {
	done := map[string]bool{}
	for i := len(rows) - 1; i >= 0; i-- {
		switch rows[i].Type {
		case session.RowTool:
			done[session.DecodeTool(rows[i]).Call] = true
		case session.RowAssistant:
			var open []session.Call
			for _, c := range session.DecodeAssistant(rows[i]).Calls {
				if !done[c.ID] {
					open = append(open, c)
				}
			}
			return open
		case session.RowUser:
			return nil
		}
	}
	return nil
}
