package web

import (
	"encoding/json"
	"strings"
	"testing"

	"coxswain/session"
)

// What is asked once more is told as that, and not as a message of its own;
// while it waits it says what it is.
func TestRenderRetry(t *testing.T) {
	u := session.UserRow{
		Inputs: []session.Input{{Ticket: 9, Retry: 3, Parts: []session.InputPart{{ID: "press1"}}}},
		Again: []session.Input{
			{Ticket: 4, Parts: []session.InputPart{{ID: "m1", Text: "build it"}}},
			{Ticket: 5, Parts: []session.InputPart{{ID: "m2", Text: "with the\nMarch data"}}},
		},
	}
	data, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := renderRow(testKey, session.Row{Type: session.RowUser, Seq: 8, Data: data}, nil)
	if !ok || len(r.Inputs) != 0 || r.Event != "" || r.Again != "build it\nwith the March data" {
		t.Errorf("got %+v", r)
	}
	if in := renderInput(testKey, u.Inputs[0], nil); !strings.Contains(in.Text, "task 3") {
		t.Errorf("while it waits it says %q; want the task's number in it", in.Text)
	}
}

// Bodies, arguments and events are shown with what hides in them (I8).
func TestRenderShowsHidden(t *testing.T) {
	for _, row := range []any{
		session.ToolRow{Call: "c", Name: "terminal", Body: "ok\u202eevil"},
		session.AssistantRow{Calls: []session.Call{{ID: "c", Args: "{\"command\":\"\u202e\"}"}}},
		session.UserRow{Event: "\u202e"},
	} {
		data, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		kind := map[bool]session.RowType{true: session.RowTool, false: session.RowUser}[strings.Contains(string(data), "body")]
		if strings.Contains(string(data), "calls") {
			kind = session.RowAssistant
		}
		r, _ := renderRow(testKey, session.Row{Type: kind, Data: data}, nil)
		out, err := json.Marshal(r)
		if err != nil || strings.Contains(string(out), "\u202e") || !strings.Contains(string(out), `\\u202e`) {
			t.Errorf("%s became %s", data, out)
		}
	}
}

// What a chat said beside the bot is shown to nobody as words of who asked.
func TestRenderObserved(t *testing.T) {
	data, err := json.Marshal(session.UserRow{
		Inputs:   []session.Input{{Ticket: 1, Parts: []session.InputPart{{ID: "m1", Text: "book it"}}}},
		Observed: []session.Observed{{From: session.Person{ID: "bob"}, Text: "lunch?"}}, ObservedTo: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := renderRow(testKey, session.Row{Type: session.RowUser, Seq: 8, Data: data}, nil)
	out, err := json.Marshal(r)
	if !ok || err != nil || len(r.Inputs) != 1 || r.Inputs[0].Text != "book it" || strings.Contains(string(out), "lunch") {
		t.Errorf("got %s, %v", out, err)
	}
}
