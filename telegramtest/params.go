package telegramtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// params are the parameters of a request in any of its three forms.
type params struct {
	json  map[string]json.RawMessage
	form  url.Values
	files map[string]upload
}

// An upload is one file of a multipart form.
type upload struct {
	name string
	data []byte
}

func readParams(r *http.Request) (params, error) {
	p := params{form: r.URL.Query()}
	body, err := io.ReadAll(r.Body)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return p, err // a call without parameters may still say multipart
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	kind, attrs, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "multipart/form-data":
		if attrs["boundary"] == "" {
			return p, errors.New("telegramtest: multipart without boundary")
		}
		if err := r.ParseMultipartForm(64 << 20); err != nil {
			return p, err
		}
		for k, v := range r.MultipartForm.Value {
			p.form[k] = v
		}
		for k, list := range r.MultipartForm.File {
			f, err := list[0].Open()
			if err != nil {
				return p, err
			}
			data, err := io.ReadAll(f)
			f.Close()
			if err != nil {
				return p, err
			}
			if p.files == nil {
				p.files = make(map[string]upload)
			}
			p.files[k] = upload{list[0].Filename, data}
		}
		return p, nil
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return p, err
		}
		p.form = r.Form
		return p, nil
	}
	return p, json.Unmarshal(body, &p.json)
}

func (p params) all() map[string]any {
	out := make(map[string]any)
	for k, v := range p.form {
		out[k] = v[0]
	}
	for k, v := range p.json {
		var x any
		_ = json.Unmarshal(v, &x) // it was read as JSON before
		out[k] = x
	}
	return out
}

// upload gives the file of a field: the part of its name, or the one its text
// points at with attach://.
func (p params) upload(name string) (upload, bool) {
	if part, ok := strings.CutPrefix(p.form.Get(name), "attach://"); ok {
		name = part
	}
	f, ok := p.files[name]
	return f, ok
}

func (p params) has(name string) bool {
	_, ok := p.json[name]
	return ok || p.form.Has(name)
}

// raw gives a parameter that is an object, list or bool.
func (p params) raw(name string) []byte {
	if v, ok := p.json[name]; ok {
		return v
	}
	return []byte(p.form.Get(name))
}

func (p params) str(name string) string {
	if v, ok := p.json[name]; ok {
		var s string
		if json.Unmarshal(v, &s) == nil {
			return s
		}
		return string(v)
	}
	return p.form.Get(name)
}

func (p params) int(name string) int64 {
	n, _ := strconv.ParseInt(p.str(name), 10, 64)
	return n
}

func (p params) bool(name string) bool { return p.str(name) == "true" }

func (p params) decode(name string, out any) error {
	if !p.has(name) {
		return nil
	}
	return json.Unmarshal(p.raw(name), out)
}
