package tools

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTerminal(t *testing.T) {
	long := strings.Repeat("x", maxCommand+1)
	tests := []struct {
		name, command, want string
		failed              bool
	}{
		{"output and code", "echo hi", "hi\n[exit code 0]", false},
		{"no output", "true", "(no output)\n[exit code 0]", false},
		{"failure", "echo out; echo err >&2; exit 7", "out\nerr\n[exit code 7]", true},
		{"signal", "kill -SEGV $$", "(no output)\n[ended by signal SIGSEGV]", true},
		{"not found", "no-such-command-here 2>/dev/null", "(no output)\n[exit code 127]", true},
		{"colour is stripped", `printf '\033[31mred\033[0m\n'`, "red\n[exit code 0]", false},
		{"progress bar", `printf '10%%\r50%%\r100%%\n'`, "100%\n[exit code 0]", false},
		{"bad UTF-8", `printf 'a\377b\n'`, "a\uFFFDb\n[exit code 0]", false},
		{"stdin is empty", "cat; echo end", "end\n[exit code 0]", false},
		{"a session of its own, so no terminal to ask", "read -r _ _ _ _ _ sid _ < /proc/$$/stat; [ $sid = $$ ] && echo own", "own\n[exit code 0]", false},
		{"begins in the workspace", `[ "$PWD" = "$HOME" ] && echo same`, "same\n[exit code 0]", false},
		{"empty", " \n", wordEmptyCommand, true},
		{"NUL", "echo \x00", wordNulCommand, true},
		{"too long", long, fmt.Sprintf(wordLongCommand, len(long), maxCommand), true},
	}
	s, dir := newSet(t, Options{}), t.TempDir()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := do(t, s, dir, "terminal", "command", tt.command); got.Body != tt.want || got.Failed != tt.failed {
				t.Errorf("got %+v; want %q, failed %v", got, tt.want, tt.failed)
			}
		})
	}
}

// TestTerminalEnvironment (I13): no secret of the gateway's environment reaches a command.
func TestTerminalEnvironment(t *testing.T) {
	secrets := []string{"OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN", "REDIS_URL", "SSH_AUTH_SOCK", "BASH_ENV"}
	for _, name := range secrets {
		t.Setenv(name, "hush-"+name)
	}
	s, dir := newSet(t, Options{Life: newLife(t, t.TempDir())}), t.TempDir()
	got := do(t, s, dir, "terminal", "command", "env")
	if strings.Contains(got.Body, "hush-") {
		t.Fatalf("a secret of the parent is in the child's environment:\n%s", got.Body)
	}
	allowed := map[string]bool{"PATH": true, "HOME": true, "LANG": true, "TERM": true, "TMPDIR": true, markName: true, lifeName: true,
		"PWD": true, "SHLVL": true, "_": true, "OLDPWD": true} // the last four are the shell's own
	for line := range strings.Lines(strings.TrimSuffix(got.Body, "[exit code 0]")) {
		if name, _, _ := strings.Cut(line, "="); !allowed[name] {
			t.Errorf("%q is in the environment of a command", line)
		}
	}
	if want := "HOME=" + dir + "\n"; !strings.Contains(got.Body, want) {
		t.Errorf("got %q; want %q in it", got.Body, want)
	}
	env := shellEnv("/w", func(name string) string {
		return map[string]string{"PATH": ".:/bin::bin:/sbin", "HOME": "/root", "LANG": ""}[name]
	})
	want := "PATH=/bin:/sbin HOME=/w LANG=C.UTF-8 TERM=dumb TMPDIR=/w/.tmp"
	if got := strings.Join(env, " "); got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

// TestTerminalPermission (I10): admins and the named, nobody else, and checked at each call.
func TestTerminalPermission(t *testing.T) {
	tests := []struct {
		name  string
		allow []string
		admin bool
		who   string
		ok    bool
	}{
		{"admin", nil, true, "telegram:1", true},
		{"stranger to an empty list", nil, false, "telegram:1", false},
		{"bare id", []string{"1"}, false, "telegram:1", true},
		{"full id", []string{"telegram:1"}, false, "telegram:1", true},
		{"full id of another platform", []string{"telegram:1"}, false, "discord:1", false},
		{"prefix", []string{"1"}, false, "telegram:12", false},
		{"everybody", []string{"*"}, false, "web:x", true},
		{"an empty entry names nobody", []string{""}, false, "telegram:", false},
		{"nor does an empty person", []string{"", "1"}, false, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := newSet(t, Options{TerminalAllow: tt.allow}), t.TempDir()
			r := s.Start(t.Context(), Call{Name: "terminal", Args: args(t, "command", "touch ran"), Dir: dir, Admin: tt.admin, Person: tt.who})
			wait(t, r.Done(), "terminal")
			_, err := os.Stat(dir + "/ran")
			if ran := err == nil; ran != tt.ok {
				t.Errorf("the command ran: %v; want %v", ran, tt.ok)
			}
			if got := r.Result(); !tt.ok && (!got.Failed || got.Body != wordNotPermitted) {
				t.Errorf("got %+v; want failed %q", got, wordNotPermitted)
			}
		})
	}
}

// TestTerminalLongOutput: head and tail stay, the whole is in the workspace, in bounds.
func TestTerminalLongOutput(t *testing.T) {
	s, dir := newSet(t, Options{}), t.TempDir()
	got := do(t, s, dir, "terminal", "command", "seq 1 20000; exit 3")
	if !got.Failed || len(got.Body) > defaultMaxOutput {
		t.Errorf("failed %v with %d bytes; want true and at most %d", got.Failed, len(got.Body), defaultMaxOutput)
	}
	if !strings.HasPrefix(got.Body, "1\n2\n3\n") || !strings.HasSuffix(got.Body, "\n20000\n[exit code 3]") {
		t.Errorf("head or tail is missing: %.40q … %q", got.Body, got.Body[len(got.Body)-40:])
	}
	if !strings.Contains(got.Body, "full text in .out/c1.txt") {
		t.Errorf("no word of the full text in %q", got.Body)
	}
	full := read(t, dir, ".out/c1.txt")
	if !strings.HasPrefix(full, "1\n") || strings.Count(full, "\n") != 20000 {
		t.Errorf("the full text has %d lines; want 20000", strings.Count(full, "\n"))
	}

	// An endless writer costs bounded memory, and the first file is not overwritten.
	got = do(t, s, dir, "terminal", "command", "yes | head -c 3000000; echo last")
	if !strings.Contains(got.Body, "first and last 512 KiB are in .out/c1-2.txt") || !strings.HasSuffix(got.Body, "last\n[exit code 0]") {
		t.Errorf("got %.100q … %q", got.Body, got.Body[len(got.Body)-200:])
	}
	if n := len(read(t, dir, ".out/c1-2.txt")); n < 2*captureHalf || n > 2*captureHalf+100 {
		t.Errorf("the spilled part has %d bytes; want about %d", n, 2*captureHalf)
	}
	if read(t, dir, ".out/c1.txt") != full {
		t.Error("an earlier spilled text was changed")
	}
}

// TestProgress: what a running command prints is seen while it runs, clean and short.
func TestProgress(t *testing.T) {
	s, dir := newSet(t, Options{}), t.TempDir()
	tails := make(chan string, 100)
	r := s.Start(t.Context(), Call{Name: "terminal", Dir: dir, Admin: true, Progress: func(tail string) { tails <- tail },
		Args: args(t, "command", `seq 1 3000; printf '\033[1mready\033[0m\n'; while [ ! -e go ]; do :; done; echo end`)})
	for tail := ""; !strings.HasSuffix(tail, "2999\n3000\nready"); tail = <-tails {
		if len(tail) > maxTail {
			t.Fatalf("a tail of %d bytes; want at most %d", len(tail), maxTail)
		}
	}
	if got := r.Tail(); !strings.HasSuffix(got, "3000\nready") || len(got) > maxTail {
		t.Errorf("Tail: got %d bytes ending %q", len(got), got[max(len(got)-20, 0):])
	}
	write(t, dir, "go", "")
	wait(t, r.Done(), "the command")
}
