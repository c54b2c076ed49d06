package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func procFile(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// probeCommand is a command that wants its gateway's secrets.
const probeCommand = `
for f in environ mem maps; do (exec 3</proc/$PPID/$f) 2>/dev/null && echo "opened $f"; done
grep -q hush-hush /proc/$PPID/environ 2>/dev/null && echo "read the key"
ls /proc/$PPID/fd >/dev/null 2>&1 && echo "listed fd"
(setsid sleep 1000 &)
echo over`

// playProbe is a gateway with a key in its environment and a command that looks for it.
func playProbe(shield bool, dir string) {
	if shield {
		if err := Shield(); err != nil {
			panic(err)
		}
	}
	life, err := OpenLife(filepath.Join(dir, "data"))
	if err != nil {
		panic(err)
	}
	s := New(Options{Life: life})
	raw, _ := json.Marshal(terminalArgs{Command: probeCommand})
	r := s.Start(context.Background(), Call{Name: "terminal", Admin: true, Dir: dir, Args: raw})
	<-r.Done()
	fmt.Println(r.Result().Body)
	fmt.Println("guarded:", guardianOf(os.Getpid()) != 0)
	_, err = os.Executable()
	fmt.Println("executable:", err)
	s.Close(context.Background())
	life.Close()
}

// TestShield: a command cannot read its gateway's environment, memory and descriptors, and
// nothing of ours needs that it could: the guardian starts, and what a command left in a
// session of its own is found and ended.
//
// Root with CAP_SYS_PTRACE reads everything whatever the process wants; so where the test runs
// as root, the gateway and its command run as nobody.
func TestShield(t *testing.T) {
	play := func(role string) string {
		dir, err := os.MkdirTemp("", "shield") // not t.TempDir: nobody must get into it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		gateway := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"gateway"}, Dir: "/"} // the binary's own directory is closed to nobody
		gateway.Env = []string{helperVar + "=" + role + ":" + dir, "PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=hush-hush"}
		if os.Getuid() == 0 {
			const nobody = 65534
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Fatal(err)
			}
			gateway.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		out, err := gateway.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", role, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const end = "over\n[exit code 0] [processes left in the background ended with the call: 1]\nguarded: true\nexecutable: <nil>"
	if got, want := play("bare"), "opened environ\nopened mem\nopened maps\nread the key\nlisted fd\n"+end; got != want {
		t.Errorf("without the shield got\n%s\nwant\n%s\n(else the test shows nothing)", got, want)
	}
	if got := play("shielded"); got != end {
		t.Errorf("with the shield got\n%s\nwant\n%s", got, end)
	}
}
