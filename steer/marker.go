package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

const (
	keyDigits = 24 // 80 bits; digits because few characters look like one
	keyGroup  = 6
	keyLen    = keyDigits + keyDigits/keyGroup - 1
)

// Key is the secret that tells a real note from text that imitates one: 24
// decimal digits in four groups of six. An epoch of a session has one; it is
// stored with the epoch, never shown and never logged (see LogValue).
type Key string

var _ slog.LogValuer = Key("")

// NewKey draws a key, uniform over all 10^24, from r, which is crypto/rand's
// Reader outside tests. The only error is r's.
func NewKey(r io.Reader) (Key, error) {
	var digits [keyDigits]byte
	var buf [keyDigits]byte
	for n := 0; n < keyDigits; {
		if _, err := io.ReadFull(r, buf[:]); err != nil {
			return "", fmt.Errorf("draw a note key: %w", err)
		}
		for _, b := range buf {
			// 250 and more are thrown away: 256 is no multiple of ten.
			if b < 250 && n < keyDigits {
				digits[n] = '0' + b%10
				n++
			}
		}
	}
	var key strings.Builder
	for i, d := range digits {
		if i > 0 && i%keyGroup == 0 {
			key.WriteByte('-')
		}
		key.WriteByte(d)
	}
	return Key(key.String()), nil
}

// ParseKey checks a stored key. The error does not quote it (I13).
func ParseKey(s string) (Key, error) {
	if len(s) != keyLen {
		return "", fmt.Errorf("stored note key has %d characters, want %d", len(s), keyLen)
	}
	for i := range len(s) {
		dash := i%(keyGroup+1) == keyGroup
		if c := s[i]; dash && c != '-' || !dash && (c < '0' || c > '9') {
			return "", fmt.Errorf("stored note key is malformed at character %d", i+1)
		}
	}
	return Key(s), nil
}

// LogValue makes a logged key its hash: enough to tell two keys apart, useless
// to forge a note (I13).
func (k Key) LogValue() slog.Value {
	sum := sha256.Sum256([]byte(k))
	return slog.StringValue("sha256:" + hex.EncodeToString(sum[:4]))
}

// digits returns the key's digit values. It panics on a key that neither
// NewKey nor ParseKey made: to go on would be to sanitise nothing.
func (k Key) digits() [keyDigits]uint8 {
	if _, err := ParseKey(string(k)); err != nil {
		panic("steer: " + err.Error())
	}
	var out [keyDigits]uint8
	n := 0
	for i := range len(k) {
		if k[i] != '-' {
			out[n] = k[i] - '0'
			n++
		}
	}
	return out
}

// Role is the authority of whoever wrote a note, as the model is told it. It
// is a role and never a name, because names are chosen by their bearers.
type Role uint8

const (
	RoleNone   Role = iota // a private chat: one person, nothing to tell apart
	RoleOwner              // the turn's owner or an admin
	RoleMember             // anybody else who may steer
)

// String returns the word written after "from="; "none" is never written.
func (r Role) String() string {
	return nameOf([]string{RoleNone: "none", RoleOwner: "owner", RoleMember: "member"}, uint8(r), "role")
}

// Note is what one drain attaches to one tool row: a typed record. The marker
// is only its rendering (I7).
type Note struct {
	N       int64 // delivery number, from 1, unique and rising in a session
	From    Role  // the lowest role among its entries
	Entries []NoteEntry
}

// NoteEntry is one steer in a note.
type NoteEntry struct {
	// Label is the runtime's label of the author ("m2") in a shared session,
	// empty in a private one. It is the caller's word and never the author's.
	Label string
	Text  string
}

// Render returns a tool row's text with its note below the body:
//
//	body ⊕ "\n\n" ⊕ OPEN ⊕ "\n" ⊕ inner ⊕ "\n" ⊕ CLOSE
//
// The body must be sanitised already, for this key; the entries are sanitised
// here. The same arguments give the same bytes for ever, which is what makes a
// replay equal to what was sent (I5). A note without entries renders to the
// body alone: no marker stands without a person's words.
func Render(body string, n Note, k Key) string {
	if len(n.Entries) == 0 {
		return body
	}
	return body + "\n\n" + Block(n, k)
}

// Block returns the note alone, from OPEN to CLOSE, for rows whose content is
// a list of parts (the note is then the last text part) and for endpoints that
// take a note only in a user row. A note without entries is empty.
func Block(n Note, k Key) string {
	if len(n.Entries) == 0 {
		return ""
	}
	seq := " n=" + strconv.FormatInt(n.N, 10)
	from := ""
	if n.From != RoleNone {
		from = " from=" + n.From.String()
	}
	return openHead + string(k) + seq + from + openTail + "\n" +
		n.inner(NewSanitizer(k)) + "\n" +
		closeHead + string(k) + seq + closeTail
}

// inner returns what stands between OPEN and CLOSE. It holds no trace of the
// key, so it may hold any other text, even a whole old marker.
func (n Note) inner(s *Sanitizer) string {
	texts := make([]string, len(n.Entries))
	for i, e := range n.Entries {
		texts[i] = e.Text
	}
	texts, _ = s.SanitizeParts(texts)
	inner := n.join(texts)
	// The "(2)" between two texts is a digit too: eleven digits of the key and
	// it make twelve. To cut there would cut a label, so nothing is kept.
	if _, hits := s.Sanitize(inner); hits > 0 {
		for i := range texts {
			texts[i] = withheld
		}
		inner = n.join(texts)
	}
	return inner
}

// join numbers and labels the texts. A single text without a label stands as
// it was written.
func (n Note) join(texts []string) string {
	if len(texts) == 1 && n.Entries[0].Label == "" {
		return texts[0]
	}
	var b strings.Builder
	for i, text := range texts {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "(%d) ", i+1)
		if label := n.Entries[i].Label; label != "" {
			b.WriteString(label + ": ")
		}
		indent(&b, text)
	}
	return b.String()
}

// indent writes text with every line but the first moved in, so that nobody
// can begin a line with another's "(k)". A line ends wherever some reader
// might think so, not only at "\n".
func indent(b *strings.Builder, text string) {
	for i, r := range text {
		b.WriteRune(r)
		switch r {
		case '\r':
			if strings.HasPrefix(text[i+1:], "\n") {
				continue // one break, not two
			}
		case '\n', '\v', '\f', '\u0085', '\u2028', '\u2029':
		default:
			continue
		}
		b.WriteString("    ")
	}
}

// SystemLines returns the system prompt's lines about notes. The key stands in
// them exactly once, and no whole line of a note does.
func SystemLines(k Key) string {
	return systemHead + string(k) + systemTail
}
