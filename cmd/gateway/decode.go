package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
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
		return nil
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
			msg = fmt.Sprintf("%s is %s, but it must be %s", keyAt(string(data), line), typeWords[m[1]], cmp.Or(typeWords[m[2]], "something else"))
		}
		return fmt.Errorf("config: %s:%d: %s; config.example.yaml lists every key", path, line, msg)
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("config: %s%s: %s", path, whereIs(string(data), msg), msg)
}

// How the decoder says that a value has another type than its key.
var (
	wrongType = regexp.MustCompile(`^cannot unmarshal (\w+) into Go (?:struct field \S+ of type|value of type) (\S+)`)
	wrongKind = regexp.MustCompile(`^(\w+) was used where (\w+) is expected`)
)

var typeWords = map[string]string{
	"string": "a text", "int": "a number", "int64": "a number", "uint64": "a number", "float64": "a number", "bool": "true or false",
	"map": "a section", "slice": "a list", "[]string": "a list", "sequence": "a list", "mapping": "a section",
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
