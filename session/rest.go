package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// A Rest holds the members of a stored JSON object that this version has no field
// for, as they stood. A value with one can be read, changed and written back beside
// a newer version without losing what that put there (F35). It goes where the value
// goes, so no code that changes a value has to think of it. The zero Rest is none;
// it is compared like any other field.
//
// A type takes part with an unexported field of it and two methods:
//
//	func (v *T) UnmarshalJSON(b []byte) error { type plain T; return v.rest.Decode(b, (*plain)(v)) }
//	func (v T) MarshalJSON() ([]byte, error)  { type plain T; return v.rest.Encode(plain(v)) }
type Rest struct{ members string } // each with a comma before it

// Decode reads an object into v, a pointer to a struct, and keeps the rest.
func (r *Rest) Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	known := knownNames(reflect.TypeOf(v).Elem())
	var b []byte
	eachMember(data, func(name, member []byte) {
		for _, k := range known {
			if strings.EqualFold(k, string(name)) { // as encoding/json matches them
				return
			}
		}
		b = append(append(b, ','), member...)
	})
	r.members = string(b)
	return nil
}

// Encode writes v, a struct or a pointer to one, with the rest behind its own members. Text stands as
// it is: whoever wants "<" escaped does so with the whole.
func (r Rest) Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	data := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if r.members == "" {
		return data, nil
	}
	data = append(data[:len(data)-1], r.members...)
	if data[1] == ',' { // v itself has no members
		data = append(data[:1], data[2:]...)
	}
	return append(data, '}'), nil
}

// namesOf has the names of each type's members.
var namesOf sync.Map // reflect.Type → []string

func knownNames(t reflect.Type) []string {
	if has, ok := namesOf.Load(t); ok {
		return has.([]string)
	}
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			if name == "" {
				name = f.Name
			}
			names = append(names, name)
		}
	}
	namesOf.Store(t, names)
	return names
}

// eachMember calls f with each member of an object, its name and the whole of it.
// data is valid JSON; anything but an object has none.
func eachMember(data []byte, f func(name, member []byte)) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return
	}
	for i = skipSpace(data, i+1); i < len(data) && data[i] == '"'; {
		start := i
		i = endOfText(data, i)
		name := data[start+1 : i-1]
		i = skipSpace(data, skipSpace(data, i)+1) // over the colon
		i = endOfValue(data, i)
		f(name, data[start:i])
		if i = skipSpace(data, i); i < len(data) && data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' {
		i++
	}
	return i
}

// endOfText is behind the quotation mark that ends the text at i.
func endOfText(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func endOfValue(data []byte, i int) int {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfText(data, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i // the value before was a number or a word
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}
