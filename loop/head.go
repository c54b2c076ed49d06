package loop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"coxswain/session"
	"coxswain/steer"
)

// renderer is the version of the code that turns rows into wire bytes. Change
// it with every change of what render.go writes: a new version begins a new
// epoch, so a running conversation's bytes never change under it (I11).
const renderer = 5

// head is the stored head of an epoch (RowHead). Requests send it whatever is
// configured now.
type head struct {
	System   json.RawMessage `json:"system"` // wire message
	Tools    json.RawMessage `json:"tools,omitempty"`
	Key      steer.Key       `json:"key"`
	Model    string          `json:"model"`
	Renderer int             `json:"renderer"`
	Hosted   bool            `json:"hosted"`
	Images   bool            `json:"images,omitempty"`
	Print    string          `json:"print"` // of everything but the key
}

// Head implements session.Agent: a new head when this build and configuration
// would render another than cur, nil to go on with cur.
func (l *Loop) Head(_ context.Context, key session.Key, cur []byte) ([]byte, error) {
	return l.of(key).head(cur)
}

// printOf is the fingerprint of all that makes a head, the key apart.
func printOf(system string, tools []byte, model string, hosted, images bool) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%s\x00%v\x00%v\x00%s", renderer, system, tools, model, hosted, images, steer.SystemLines("000000-000000-000000-000000"))
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// toolBytes is the wire array of the tools; nil if there are none.
func toolBytes(specs []ToolSpec) (json.RawMessage, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	tools := make([]tool, 0, len(specs))
	for _, s := range specs {
		tools = append(tools, tool{"function", function{s.Name, s.Description, s.Schema}})
	}
	data, err := json.Marshal(tools)
	if err != nil {
		return nil, fmt.Errorf("encode tools: %w", err)
	}
	return data, nil
}
