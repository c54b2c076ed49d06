package loop

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	"coxswain/session"
	"coxswain/steer"
)

// A Profile is what turns are run with: the model, what it is told first, and
// the tools it may use. Options hold the one of all sessions that are given no
// other.
type Profile struct {
	Model Model
	// System is the trusted part of the system prompt; the lines about notes are
	// added to it.
	System string
	// Hosted is false for endpoints that read control tokens in text.
	Hosted bool
	// Prices are the model's, where budgets are money; nil: tokens are counted.
	Prices *Prices
	// Images says that the model sees pictures in what people write.
	Images bool
	// Only are the names of the tools that may be used; nil = all.
	Only []string
}

// profile is a Profile made ready. It does not change.
type profile struct {
	Profile
	specs map[string]ToolSpec
	names []string
	tools []byte // wire bytes
	print string // of the head that it would render
	tail  []byte // how such a head ends, as stored
}

// ready makes a profile ready; all are the tools there are.
func (p Profile) ready(all []ToolSpec) (*profile, error) {
	r := &profile{Profile: p, specs: map[string]ToolSpec{}}
	var specs []ToolSpec
	for _, s := range all {
		if _, twice := r.specs[s.Name]; twice {
			return nil, fmt.Errorf("two tools are named %q", s.Name)
		}
		if p.Only != nil && !slices.Contains(p.Only, s.Name) {
			continue
		}
		r.specs[s.Name] = s
		r.names = append(r.names, s.Name)
		specs = append(specs, s)
	}
	for _, name := range p.Only {
		if _, ok := r.specs[name]; !ok {
			return nil, fmt.Errorf("there is no tool %q", name)
		}
	}
	var err error
	if r.tools, err = toolBytes(specs); err != nil {
		return nil, err
	}
	r.print = printOf(p.System, r.tools, p.Model.Name(), p.Hosted, p.Images)
	r.tail = fmt.Appendf(nil, `"print":%q}`, r.print)
	return r, nil
}

// head is a new head when this profile would render another than cur, else nil.
func (p *profile) head(cur []byte) ([]byte, error) {
	if bytes.HasSuffix(cur, p.tail) {
		return nil, nil // the common case, without reading the tools in it
	}
	if cur != nil {
		var h head
		if err := json.Unmarshal(cur, &h); err == nil && h.Print == p.print {
			return nil, nil
		}
	}
	key, err := steer.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	system, err := p.Model.Encode(Wire{Role: "system", Text: p.System + "\n\n" + steer.SystemLines(key)})
	if err != nil {
		return nil, fmt.Errorf("encode system prompt: %w", err)
	}
	return json.Marshal(head{
		System: system, Tools: p.tools, Key: key, Model: p.Model.Name(), Renderer: renderer, Hosted: p.Hosted, Images: p.Images, Print: p.print,
	})
}

// of is the profile of a session. It is asked at every turn, so it must be quick
// and give one session the same answer for the life of the process.
func (l *Loop) of(key session.Key) *profile {
	if l.ProfileOf != nil {
		if p := l.named[l.ProfileOf(key)]; p != nil {
			return p
		}
	}
	return l.std
}
