package tools

import (
	"errors"
	"regexp"
	"strings"
)

// maxPattern bounds a pattern or glob: RE2 is linear in the text, but not free in the pattern.
const maxPattern = 1000

// compileGlob turns a glob into a match on paths relative to the workspace. Without a slash
// it matches the file's name in any directory, as people expect of "*.go".
func compileGlob(glob string) (func(rel string) bool, error) {
	expr, err := globExpr(strings.TrimPrefix(glob, "./"))
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(`(?s)\A` + expr + `\z`)
	if err != nil {
		return nil, errors.New("not a valid glob")
	}
	if strings.Contains(glob, "/") {
		return re.MatchString, nil
	}
	return func(rel string) bool { return re.MatchString(rel[strings.LastIndexByte(rel, '/')+1:]) }, nil
}

func globExpr(glob string) (string, error) {
	var b strings.Builder
	braces := 0
	for i := 0; i < len(glob); i++ {
		switch ch := glob[i]; ch {
		case '*':
			switch {
			case strings.HasPrefix(glob[i:], "**/"):
				b.WriteString(`(?:.*/)?`)
				i += 2
			case strings.HasPrefix(glob[i:], "**"):
				b.WriteString(`.*`)
				i++
			default:
				b.WriteString(`[^/]*`)
			}
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			end := strings.IndexByte(glob[i+1:], ']')
			if end < 1 {
				return "", errors.New("[ is not closed")
			}
			class := glob[i+1 : i+1+end]
			if class[0] == '!' || class[0] == '^' {
				b.WriteString("[^/")
				class = class[1:]
			} else {
				b.WriteString("[")
			}
			b.WriteString(strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(class))
			b.WriteString("]")
			i += end + 1
		case '{':
			braces++
			b.WriteString("(?:")
		case '}':
			if braces == 0 {
				return "", errors.New("} is not opened")
			}
			braces--
			b.WriteString(")")
		case ',':
			if braces > 0 {
				b.WriteString("|")
			} else {
				b.WriteString(",")
			}
		case '\\':
			if i+1 == len(glob) {
				return "", errors.New("\\ at the end")
			}
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	if braces > 0 {
		return "", errors.New("{ is not closed")
	}
	return b.String(), nil
}
