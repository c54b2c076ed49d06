package session

// Progress is what chats see of a running task's tool calls (progress).
type Progress string

// What is shown of calls. Text, notes and steps are shown in any case.
const (
	ProgressAll Progress = "all" // each call
	ProgressNew Progress = "new" // only one of another tool than the one before
	ProgressOff Progress = "off" // none
)

// A Thorough platform is shown every call, whatever progress says: its page
// has the room, and folds them.
type Thorough interface{ ShowsEveryCall() }

// progressOf is what a chat is shown of the calls of the session that lives there.
func (h *Hub) progressOf(chat Key) Progress {
	if _, ok := h.platforms[chat.Platform].(Thorough); ok || h.Progress == nil {
		return ProgressAll
	}
	return h.Progress(chat)
}

// reduced is v with the calls that p lets people see. It may change v's lists,
// which are the caller's own.
func (v View) reduced(p Progress) View {
	switch p {
	case ProgressOff:
		v.Tools = nil
		for i := range v.Notes {
			v.Notes[i].Call = "" // nothing here tells of calls
		}
	case ProgressNew:
		v.Tools = inRows(v.Tools)
	}
	return v
}

// inRows makes one of several calls in a row of the same tool: the newest, or the
// newest that still runs, with how many they are.
func inRows(all []ToolView) []ToolView {
	var out []ToolView
	for _, t := range all {
		last := len(out) - 1
		if last < 0 || out[last].Name != t.Name {
			out = append(out, t)
			continue
		}
		n := max(out[last].Times, 1) + max(t.Times, 1)
		if t.State == ToolRunning || out[last].State != ToolRunning {
			out[last] = t
		}
		out[last].Times = n
	}
	return out
}
