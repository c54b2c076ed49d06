// Command gateway runs the chat gateway, and looks after one that runs.
//
// It reads the configuration once, builds the parts, runs them and stops them
// in order: intake first, then turns, then sending, then the store. Everything
// else is in the packages; here they are joined.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"coxswain/store/redis"
	"coxswain/tools"
)

// errShown is returned when what is wrong has been said already.
var errShown = errors.New("said already")

func main() {
	tools.Guard() // in a guardian of commands this never returns
	if err := tools.Shield(); err != nil {
		fmt.Fprintln(os.Stderr, "gateway: commands may be able to read this process's secrets:", err)
	}
	if os.Getenv("GOGC") == "" {
		// Few live bytes, much passing through: 41 MB resident after a crowd instead
		// of 54, for a few hundredths of a millisecond per turn (make bench).
		debug.SetGCPercent(40)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the exit, for tests that are the gateway.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, args, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case !errors.Is(err, errShown):
		// One line each, no stack: these are for people.
		for _, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
			fmt.Fprintln(stderr, "gateway: "+line)
		}
	}
	if errors.Is(err, redis.ErrWiped) {
		return exitWiped
	}
	return 1
}

// exitWiped tells a supervisor not to start it again: that would begin anew in
// the empty Redis before anyone has looked (F18).
const exitWiped = 3

// options are the flags before or after the command's words.
type options struct {
	config string
	json   bool
	words  []string
}

func parseArgs(args []string) (options, error) {
	var o options
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--config" || a == "-config":
			if i++; i >= len(args) {
				return o, errors.New("--config wants a file")
			}
			o.config = args[i]
		case strings.HasPrefix(a, "--config="):
			o.config = strings.TrimPrefix(a, "--config=")
		case a == "--json":
			o.json = true
		case a == "--version":
			o.words = append([]string{"version"}, o.words...)
		case a == "-h" || a == "--help":
			o.words = append([]string{"help"}, o.words...)
		case strings.HasPrefix(a, "-"):
			return o, fmt.Errorf("there is no flag %s; gateway help lists what there is", a)
		default:
			o.words = append(o.words, a)
		}
	}
	if len(o.words) == 0 {
		o.words = []string{"run"}
	}
	return o, nil
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseArgs(args)
	if err != nil {
		return err
	}
	switch o.words[0] {
	case "version", "run", "check", "status":
		if len(o.words) > 1 {
			return fmt.Errorf("gateway %s takes nothing more, not %q", o.words[0], o.words[1])
		}
	}
	switch o.words[0] {
	case "help":
		fmt.Fprint(stdout, textUsage)
		return nil
	case "version":
		fmt.Fprintln(stdout, version())
		return nil
	case "run", "check", "status", "sessions", "pair", "store", "workspace":
	default:
		return fmt.Errorf("there is no command %q; gateway help lists what there is", o.words[0])
	}
	c, err := loadConfig(configPath(o.config))
	if err != nil {
		return err
	}
	switch o.words[0] {
	case "check":
		return check(ctx, c, stdout)
	case "status":
		return status(ctx, c, o, stdout)
	case "sessions":
		return sessions(ctx, c, o, stdout)
	case "pair":
		return pair(ctx, c, o, stdout)
	case "store":
		return storeCommand(ctx, c, o, stdout)
	case "workspace":
		return workspaceCommand(ctx, c, o, stdout)
	}
	return serve(ctx, c, stdout, stderr)
}

// version is what was built, from the build's own stamps.
func version() string {
	v, commit := "(devel)", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return fmt.Sprintf("gateway %s, commit %s, %s", v, commit, runtime.Version())
}
