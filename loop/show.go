package loop

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
)

// What people see of calls. Arguments and output are outside text: cleaned of
// the key and of control characters before they are shown (I8).

// briefMost is how much of a call's arguments people see, in bytes.
const briefMost = 160

// brief is a call's arguments for people: what it is about first, bare, and the
// other short ones by name. Long texts (a file's content) are left out.
func (r *runner) brief(c session.Call) string {
	clean, _ := r.clean.Sanitize(c.Args)
	return session.CleanLine(steer.Visible(briefArgs(clean)), briefMost)
}

// subjects are the names under which tools take what a call is about.
var subjects = []string{"command", "path", "pattern", "query", "url", "id"}

func briefArgs(args string) string {
	fields, ok := orderedFields(args)
	if !ok {
		return args
	}
	about := slices.IndexFunc(fields, func(f field) bool { return slices.Contains(subjects, f.name) })
	if about < 0 {
		about = slices.IndexFunc(fields, func(f field) bool { return f.text })
	}
	var words []string
	for i, f := range fields {
		switch {
		case i == about:
			words = slices.Insert(words, 0, f.value)
		case len(f.value) <= 40:
			words = append(words, f.name+"="+f.value)
		}
	}
	return strings.Join(words, " ")
}

// A field is one argument: a string's text, or anything else as JSON.
type field struct {
	name, value string
	text        bool
}

func orderedFields(args string) ([]field, bool) {
	d := json.NewDecoder(strings.NewReader(args))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var fields []field
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, false
		}
		f := field{name: name.(string)} // a key: More said so
		if f.text = json.Unmarshal(raw, &f.value) == nil && raw[0] == '"'; !f.text {
			f.value = string(raw)
		}
		fields = append(fields, f)
	}
	return fields, true
}

func (r *runner) showStarted(c session.Call, began time.Time) {
	args := r.brief(c)
	step := r.requests
	r.t.Show(func(v *session.View) {
		v.Tools = append(v.Tools, session.ToolView{
			Call: c.ID, Name: session.CleanLine(c.Name, 40), Args: args,
			Step: step, State: session.ToolRunning, Began: began,
		})
	})
}

func (r *runner) showSkipped(c session.Call) {
	args := r.brief(c)
	step := r.requests
	r.t.Show(func(v *session.View) {
		v.Tools = append(v.Tools, session.ToolView{
			Call: c.ID, Name: session.CleanLine(c.Name, 40), Args: args,
			Step: step, State: session.ToolSkipped, Failed: true,
		})
	})
}

func (r *runner) showTail(c session.Call, tail string) {
	tail, _ = r.clean.Sanitize(tail)
	r.change(c, func(t *session.ToolView) { t.Tail = tail })
}

func (r *runner) showEnded(c session.Call, took time.Duration, failed bool) {
	r.change(c, func(t *session.ToolView) {
		t.State, t.Took, t.Failed = session.ToolDone, took.Seconds(), failed
	})
}

func (r *runner) showJob(c session.Call) {
	r.change(c, func(t *session.ToolView) { t.State = session.ToolJob })
}

func (r *runner) change(c session.Call, f func(*session.ToolView)) {
	r.t.Show(func(v *session.View) {
		for i := range v.Tools {
			if v.Tools[i].Call == c.ID {
				// Views that were handed out share the array: change a copy.
				tools := append([]session.ToolView(nil), v.Tools...)
				f(&tools[i])
				v.Tools = tools
			}
		}
	})
}
