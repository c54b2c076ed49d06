package tools

import (
	"context"
	"path"
)

const (
	sendText   = "Send a file of the workspace to the chat, for example a report you made. The caption is shown with it."
	sendSchema = `{"type":"object","properties":{"path":{"type":"string"},"caption":{"type":"string"}},"required":["path"],"additionalProperties":false}`

	// maxSend is what a chat takes from a bot whose platform does not say how much
	// (Telegram's cloud API: 50 MB).
	maxSend = 50 << 20
	// maxCaption is the longest caption any platform shows below a file, with room
	// for what a send may put before it.
	maxCaption = 900
)

// A SentFile is a file to be sent to the chat.
type SentFile struct {
	Path    string // inside the workspace
	Name    string // as people see it
	Caption string
}

type sendArgs struct {
	Path    string `json:"path"`
	Caption string `json:"caption"`
}

func (s *Set) sendFile() Tool {
	return define(s, "send_file", sendText, sendSchema, false, s.runSend)
}

// runSend checks the file; who stores the call's row stores the sending with it,
// so a crash sends it once or not at all. What is read then is the file as it is
// at that time.
func (s *Set) runSend(ctx context.Context, c Call, a sendArgs) output {
	if !c.Sends {
		return failf("%s", wordNoSending)
	}
	ws, wrong := openWorkspace(c.Dir)
	if wrong != "" {
		return failf("%s", wrong)
	}
	defer ws.close()
	rel, wrong := ws.resolve(a.Path)
	if wrong != "" {
		return failf("%s", wrong)
	}
	f, info, wrong := ws.openRegular(rel)
	if wrong != "" {
		return failf("%s", wrong)
	}
	f.Close()
	most := c.SendMost
	if most == 0 {
		most = maxSend
	}
	switch {
	case info.Size() == 0:
		return failf(wordSendEmpty, quote(rel))
	case info.Size() > most:
		return failf(wordSendTooBig, quote(rel), info.Size(), most)
	case len(a.Caption) > maxCaption:
		return failf(wordSendCaption, len(a.Caption), maxCaption)
	}
	if ctx.Err() != nil { // nothing was handed over yet
		return failf(wordInterrupted, "send_file")
	}
	o := sayf(wordSending, quote(rel), info.Size())
	o.files = []SentFile{{Path: rel, Name: path.Base(rel), Caption: a.Caption}}
	return o
}
