package loop

import (
	"encoding/json"
	"testing"
	"time"

	"coxswain/session"
)

// A file that a tool sends is stored for sending in the very step that stores
// the call's row: neither is there without the other (I6, I9). The caption is
// the model's word and is cleaned like one (I8).
func TestFilesGoWithTheirRow(t *testing.T) {
	send := ToolSpec{Name: "send", Schema: json.RawMessage(`{}`)}
	var key string
	b := &toolbox{specs: []ToolSpec{send}, rule: func(c ToolCall) ToolResult {
		if c.SendMost != 4242 {
			t.Errorf("the tool is told that a file may have %d bytes; want what the platform says", c.SendMost)
		}
		return ToolResult{Body: "it goes", Files: []session.File{{Path: "a.txt", Name: "a.txt", Caption: "see " + key}}}
	}}
	m := &model{name: "m", rule: func(n int, r Request, _ func(Delta)) (Reply, error) {
		if n == 1 {
			key = keyIn(r)
			return Reply{Calls: []session.Call{{ID: "call00001", Name: "send", Args: "{}"}}}, nil
		}
		return Reply{Text: "sent"}, nil
	}}
	play(t, m, b, nil, func(s *stage) {
		s.says("send it")
		var kinds, texts []string
		for {
			p, ok, _, err := s.store.OutTake(s.t.Context(), room, "life1", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			kinds, texts = append(kinds, string(p.Kind)), append(texts, string(p.Data))
			if err := s.store.OutDone(s.t.Context(), room, "life1", session.PartDone{ID: p.ID, State: session.PartSent}); err != nil {
				t.Fatal(err)
			}
		}
		if len(kinds) != 2 || kinds[0] != "file" || kinds[1] != "final" {
			t.Fatalf("sent %q; want a file, then the answer", kinds)
		}
		if key == "" || len(texts[0]) < 5 || texts[0] == "see "+key {
			t.Errorf("the caption %q holds the key", texts[0])
		}
	})
}
