package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// decodeConfig decodes over c. Unknown keys are errors.
func decodeConfig(data []byte, path string, c *Config) error {
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil
	}
	err := yaml.UnmarshalWithOptions(data, c, yaml.Strict())
	if err == nil {
		return wholeNumbers(data, c)
	}
	var ye yaml.Error
	if errors.As(err, &ye) {
		line := 0
		if tok := ye.GetToken(); tok != nil && tok.Position != nil {
			line = tok.Position.Line
		}
		msg, _, _ := strings.Cut(ye.GetMessage(), "\n")
		m := wrongType.FindStringSubmatch(msg)
		if m == nil {
			m = wrongKind.FindStringSubmatch(msg)
		}
		if m != nil {
			msg = fmt.Sprintf("%s is %s, but it must be %s", keyAt(string(data), line), cmp.Or(typeWords[m[1]], m[1]), cmp.Or(typeWords[m[2]], "something else"))
		}
		return fmt.Errorf("config: %s:%d: %s; config.example.yaml lists every key", path, line, msg)
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("config: %s%s: %s", path, whereIs(string(data), msg), msg)
}

// How the decoder says that a value has another type than its key.
var (
	wrongType = regexp.MustCompile(`^cannot unmarshal (\S+(?: \{\})?) into Go (?:struct field \S+ of type|value of type) (\S+)`)
	wrongKind = regexp.MustCompile(`^(\w+) was used where (\w+) is expected`)
)

var typeWords = map[string]string{
	"string": "a text", "int": "a number", "int64": "a number", "uint64": "a number", "float64": "a number", "bool": "true or false",
	"map": "a section", "slice": "a list", "[]string": "a list", "sequence": "a list", "mapping": "a section",
	"[]interface {}": "a list", "map[string]interface {}": "a section",
}

// wholeNumbers refuses parts of a number where a whole one is meant: the decoder
// cuts them off, and 0.5 would be 0, which is no limit.
func wholeNumbers(data []byte, c *Config) error {
	var raw map[string]any
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if key, is := partIn(raw, reflect.TypeOf(*c)); is != nil {
		return fmt.Errorf("config: %s is %v; write a whole number", key, is)
	}
	return nil
}

// partIn finds such a value in what becomes a t, and its key.
func partIn(v any, t reflect.Type) (key string, is any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	below := func(name string, v any, t reflect.Type) bool {
		if key, is = partIn(v, t); is != nil {
			key = strings.TrimSuffix(name+"."+key, ".")
		}
		return is != nil
	}
	m, _ := v.(map[string]any)
	f, part := v.(float64)
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.InterfaceUnmarshaler]()): // it judges itself
	case part && (reflect.Zero(t).CanInt() || reflect.Zero(t).CanUint()) && f != math.Trunc(f):
		return "", f
	case t.Kind() == reflect.Struct:
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if have, ok := m[name]; ok && below(name, have, field.Type) {
				return key, is
			}
		}
	case t.Kind() == reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if below(name, m[name], t.Elem()) {
				return key, is
			}
		}
	}
	return "", nil
}

// keyAt is the key on a line of a file.
func keyAt(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return "a value"
	}
	keys := regexp.MustCompile(`(\w+):`).FindAllStringSubmatch(lines[line-1], -1)
	if len(keys) == 0 {
		return "a value"
	}
	return keys[len(keys)-1][1]
}

// whereIs finds the line and key of a value that a type of ours refused: the
// decoder does not say.
func whereIs(text, msg string) string {
	bad, _, ok := strings.Cut(strings.TrimPrefix(msg, `"`), `"`)
	if !ok || bad == "" {
		return ""
	}
	key := regexp.MustCompile(`(\w+):\s*["']?` + regexp.QuoteMeta(bad) + `["']?\s*([,}#]|$)`)
	for i, line := range strings.Split(text, "\n") {
		if m := key.FindStringSubmatch(line); m != nil {
			return fmt.Sprintf(":%d: %s", i+1, m[1])
		}
	}
	return ""
}
