package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"coxswain/session"
)

// optionName is the one option of slash commands that take something.
const optionName = "text"

// slashMost is Discord's limit of slash commands.
const slashMost = 100

// A slashCommand is one as Discord is told of it; a message command has a name
// alone.
type slashCommand struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Type        int           `json:"type"`
	Options     []slashOption `json:"options,omitempty"`
}

type slashOption struct {
	Type        int    `json:"type"` // 3 = text
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

var slashName = regexp.MustCompile(`^[-_\p{Ll}\p{N}]{1,32}$`)

// commandList are all commands: the registry's, /thread unless the registry has
// it, and the four that act on a message.
func (a *Adapter) commandList() []slashCommand {
	var list []slashCommand
	thread := false
	add := func(c Command) {
		if slashName.MatchString(c.Name) && strings.TrimSpace(c.Short) != "" && len(list) < slashMost {
			list = append(list, slashCommand{c.Name, cutUnits(c.Short, 100), commandSlash, optionsOf(c.Args)})
			thread = thread || c.Name == threadCommand
		}
	}
	for _, c := range a.o.Commands {
		add(c)
	}
	if len(list) == 0 {
		return nil
	}
	if !thread {
		add(Command{threadCommand, wordsThread, "TEXT"})
	}
	for _, name := range menuNames {
		list = append(list, slashCommand{Name: name, Type: commandMessage})
	}
	return list
}

// optionsOf gives the option of a command that takes args, none for one that
// takes nothing.
func optionsOf(args string) []slashOption {
	if args = strings.TrimSpace(args); args == "" {
		return nil
	}
	what := strings.Trim(args, "[]")
	return []slashOption{{3, optionName, cutUnits(wordsOption(what), 100), what == args}}
}

// register sets the commands when they are not what was last set: Discord
// limits how often that may be done, so a restart must not do it again.
func (a *Adapter) register(ctx context.Context) {
	list, app := a.commandList(), a.app.Load()
	if len(list) == 0 || app == nil {
		a.registering.Store(app != nil)
		return
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic("discord: commands do not encode: " + err.Error()) // strings always do
	}
	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	for wait := (&backoff{2 * time.Second, 5 * time.Minute}); ctx.Err() == nil; {
		have, version, err := a.o.Docs.Doc(ctx, a.docName("commands"))
		if err == nil && string(have) == want {
			return
		}
		if err == nil {
			err = a.call(ctx, http.MethodPut, "applications/"+*app+"/commands", "commands", list, nil)
		}
		if err == nil {
			err = a.o.Docs.PutDoc(ctx, a.docName("commands"), version, []byte(want))
		}
		if err == nil || errors.Is(err, session.ErrStale) {
			return // stale: another replica has set them
		}
		if permanent(err) {
			a.log.Warn("slash commands refused", "err", err)
			return
		}
		d := wait.next()
		if e, ok := errors.AsType[*apiError](err); ok {
			d = max(d, e.wait)
		}
		pause(ctx, d)
	}
}
