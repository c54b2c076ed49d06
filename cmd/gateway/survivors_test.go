//go:build linux

package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"coxswain/telegramtest"
)

// TestKilledGatewayTakesItsCommands: SIGKILL of the built gateway ends what its
// commands left in the background and in sessions of their own, too.
func TestKilledGatewayTakesItsCommands(t *testing.T) {
	bin, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	tg := telegramtest.New()
	tg.AddUser(telegramtest.User{ID: alice, FirstName: "Alice"})
	model := &benchModel{diary: newDiary(), command: "sleep 1000 & echo $! >>" + pids + "; setsid sh -c 'echo $$ >>" + pids + "; exec sleep 1000' & echo $$ >>" + pids + "; wait"}
	api, llm := httptest.NewServer(tg), httptest.NewServer(model)
	defer api.Close()
	defer llm.Close()
	conf := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("platforms:\n  telegram: {token: %q, api_url: %q, admins: [%d]}\n  web: {listen: \"\"}\n"+
		"model: {base_url: %q, api_key: key, name: bench, context_window: 100000}\nstore: {url: %q}\nworkspace: {dir: %q}\nops: {listen: \"\"}\n",
		telegramtest.Token, api.URL, alice, llm.URL+"/v1", "sqlite:"+filepath.Join(dir, "data", "gateway.db"), filepath.Join(dir, "data", "workspace"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "run", "--config", conf)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait() // killed
	}()
	defer func() {
		_ = cmd.Process.Kill() // it may be gone
		<-gone
	}()
	tg.Say(alice, alice, "run bench:1:1.")
	var tree []int
	waitFor(t, func() bool {
		data, _ := os.ReadFile(pids) // not there yet
		tree = tree[:0]
		for _, f := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				return false
			}
			tree = append(tree, pid)
		}
		return len(tree) == 3
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		for _, pid := range tree {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}
