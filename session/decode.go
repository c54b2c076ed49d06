package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// mustJSON encodes one of this package's own row types, which always encode.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("session: a row does not encode: " + err.Error())
	}
	return data
}

// encodeInput writes an input, text as it stands: "<" as six bytes would make
// a page of markup too long for the slot.
func encodeInput(in Input) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(in); err != nil {
		panic("session: an input does not encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decodeInput reads an entry: one JSON document a part, the first with what
// holds for all.
func decodeInput(e Entry) Input {
	in := decodeInputData(e.Data)
	in.Ticket = e.Ticket
	return in
}

// decodeRowInput reads the input of a RowSteer.
func decodeRowInput(r Row) Input {
	in := decodeInputData(r.Data)
	in.Ticket = r.Tick
	return in
}

func decodeInputData(data []byte) Input {
	var in Input
	d := json.NewDecoder(bytes.NewReader(data))
	for first := true; ; first = false {
		var part Input
		if err := d.Decode(&part); err != nil {
			return in // io.EOF: the store gives back what was put in
		}
		if first {
			in = part
		} else {
			in.Parts = append(in.Parts, part.Parts...)
		}
	}
}

// DecodeSteer reads the input of a RowSteer, its ticket set.
func DecodeSteer(r Row) Input { return decodeRowInput(r) }

// DecodeUser reads a RowUser or RowFold.
func DecodeUser(r Row) UserRow {
	var u UserRow
	if err := json.Unmarshal(r.Data, &u); err != nil {
		return UserRow{}
	}
	return u
}

// DecodeAssistant reads a RowAssistant.
func DecodeAssistant(r Row) AssistantRow {
	var a AssistantRow
	if err := json.Unmarshal(r.Data, &a); err != nil {
		return AssistantRow{}
	}
	return a
}

// DecodeTool reads a RowTool.
func DecodeTool(r Row) ToolRow { return decodeTool(r) }

func decodeTool(r Row) ToolRow {
	var t ToolRow
	if err := json.Unmarshal(r.Data, &t); err != nil {
		return ToolRow{}
	}
	return t
}

// rowInputs are the inputs a row holds, those it sends again too.
func rowInputs(r Row) []Input {
	switch r.Type {
	case RowUser, RowFold:
		u := DecodeUser(r)
		return slices.Concat(u.Inputs, u.Again, u.AgainNotes)
	case RowSteer:
		return []Input{decodeRowInput(r)}
	}
	return nil
}

// msgs are the platform messages of the input.
func (in Input) msgs() []MessageID {
	ids := make([]MessageID, 0, len(in.Parts))
	for _, p := range in.Parts {
		ids = append(ids, p.ID)
	}
	return ids
}

// text is what the person wrote, parts joined.
func (in Input) text() string {
	var texts []string
	for _, p := range in.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Text is what the person wrote, parts joined.
func (in Input) Text() string { return in.text() }

// Prefs are a session's own settings.
type Prefs struct {
	Mode string `json:"mode,omitempty"` // queue, interrupt or steer; empty = configured

	rest Rest
}

func decodePrefs(data []byte) Prefs {
	var p Prefs
	if len(data) > 0 && json.Unmarshal(data, &p) != nil {
		return Prefs{}
	}
	return p
}
