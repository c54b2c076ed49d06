package discordtest

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
)

// formLocked reads a multipart body: payload_json is the call itself, files[n]
// are kept and can be loaded.
func (s *Server) formLocked(data []byte, boundary string) (payload []byte, files []any) {
	r := multipart.NewReader(bytes.NewReader(data), strings.Trim(boundary, `"`))
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return payload, files
		}
		if err != nil {
			return nil, nil
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, nil
		}
		if p.FormName() == "payload_json" {
			payload = body
			continue
		}
		name := p.FileName()
		s.files[name] = body
		url := s.url + "/files/" + name
		files = append(files, map[string]any{"id": s.idLocked(), "filename": name, "size": len(body), "url": url, "proxy_url": url,
			"content_type": p.Header.Get("Content-Type")})
	}
}
