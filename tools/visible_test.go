package tools

import (
	"testing"

	"coxswain/steer"
)

// TestTwoReaders: the model gets the characters of a file, so that its edit matches; people
// get to see them.
func TestTwoReaders(t *testing.T) {
	s, dir := newSet(t, Options{}), t.TempDir()
	write(t, dir, "f", "a\u202eb\u200f\n")
	if got := do(t, s, dir, "read_file", "path", "f"); got.Body != "a\u202eb\u200f\n" {
		t.Errorf("read_file: got %q; want the characters themselves", got.Body)
	}
	if got := do(t, s, dir, "edit_file", "path", "f", "old", "a\u202eb\u200f", "new", "c"); got.Failed {
		t.Errorf("edit_file: %s", got.Body)
	}
	shown := make(chan string, 100)
	r := s.Start(t.Context(), Call{Name: "terminal", Dir: dir, Admin: true, Progress: func(tail string) { shown <- tail },
		Args: args(t, "command", `printf 'ok\342\200\256evil\n'; while [ ! -e go ]; do :; done`)})
	want := `ok\u202eevil`
	if got := <-shown; got != want || r.Tail() != want {
		t.Errorf("people see %q, tail %q; want %q", got, r.Tail(), want)
	}
	write(t, dir, "go", "")
	wait(t, r.Done(), "the command")
	if got := r.Result().Body; got != "ok\u202eevil\n[exit code 0]" {
		t.Errorf("the model gets %q", got)
	}
}

// FuzzShown: whatever a command prints or a file is called, people see it with their eyes.
func FuzzShown(f *testing.F) {
	for _, s := range []string{"", "a\u202eb", "\xff\x00", "\r\n", "א\u200f", "\U000e0041", `\u202e`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if tail := lastText([]byte(s), true); tail != steer.Visible(tail) {
			t.Errorf("lastText(%q) = %q", s, tail)
		}
		if name := shown(s); name != steer.Visible(name) || quote(s) != steer.Visible(quote(s)) {
			t.Errorf("a name is shown as %q or %q", name, quote(s))
		}
	})
}
