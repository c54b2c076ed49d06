package discordtest

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strings"
)

const (
	// bodyMost is how much of a call is read.
	bodyMost = 128 << 20
	// fileMost is Discord's limit of each file where nobody pays for more.
	fileMost = 10 << 20
)

// fileMosts are the limits by a guild's boost level.
var fileMosts = [4]int{fileMost, fileMost, 50 << 20, 100 << 20}

// Boost sets a guild's boost level, 0 to 3, and tells of it.
func (s *Server) Boost(guild string, tier int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tiers[guild] = tier
	o := s.guildLocked(guild)
	for _, only := range []string{"channels", "threads", "members", "member_count", "joined_at", "large", "voice_states", "presences",
		"stage_instances", "guild_scheduled_events", "unavailable"} {
		delete(o, only) // of GUILD_CREATE
	}
	s.dispatchLocked("GUILD_UPDATE", o)
}

// fileMostLocked is the limit of each file sent to a channel.
func (s *Server) fileMostLocked(channel string) int {
	if s.FileMost != 0 {
		return s.FileMost
	}
	if c := s.channels[channel]; c != nil && c.Guild != "" {
		return fileMosts[s.tiers[c.Guild]]
	}
	return fileMost
}

// A File is one part of a multipart call, as it came.
type File struct {
	Field string // files[0]
	Name  string
	Type  string // as the client says, empty = it did not
	Data  []byte
}

// readForm reads a multipart body: payload_json is the call itself. ok is false
// when the form is broken or has none.
func readForm(data []byte, boundary string) (payload []byte, files []File, ok bool) {
	r := multipart.NewReader(bytes.NewReader(data), strings.Trim(boundary, `"`))
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return payload, files, payload != nil
		}
		if err != nil {
			return nil, nil, false
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, nil, false
		}
		if p.FormName() == "payload_json" {
			payload = body
			continue
		}
		files = append(files, File{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), body})
	}
}

// takeLocked takes the files of the call being done, which is to a channel.
func (s *Server) takeLocked(path string, files []File) *refusal {
	channel, _, _ := strings.Cut(strings.TrimPrefix(path, "channels/"), "/")
	most := s.fileMostLocked(channel)
	for _, f := range files {
		if len(f.Data) > most {
			return &refusal{status: http.StatusRequestEntityTooLarge, code: 40005, message: "Request entity too large"}
		}
		if f.Name == "" || !strings.HasPrefix(f.Field, "file") {
			return invalid(f.Field)
		}
	}
	s.uploaded = files
	return nil
}

// attachLocked puts the files of the call on a message, where they can be loaded
// from.
func (s *Server) attachLocked(m *Message) {
	if len(s.uploaded) == 0 {
		return
	}
	m.Files = s.uploaded
	var list []any
	for _, f := range m.Files {
		id := s.idLocked()
		s.files[id+"/"+f.Name] = f.Data
		at := s.url + "/files/" + id + "/" + url.PathEscape(f.Name)
		kind := mime.TypeByExtension(path.Ext(f.Name)) // whatever the client says
		if kind == "" {
			kind = "application/octet-stream"
		}
		list = append(list, map[string]any{"id": id, "filename": f.Name, "size": len(f.Data), "url": at, "proxy_url": at, "content_type": kind})
	}
	m.Extra = map[string]any{"attachments": list}
}
