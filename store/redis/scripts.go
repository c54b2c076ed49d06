package redis

import (
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is one file of lua/ as the server gets it.
type script struct {
	name, text string
	readOnly   bool // by its flags: the server lets it write nothing
	*redis.Script
}

// The scripts, one per operation. The two of Open stand alone: they make what
// the prelude checks.
var (
	scriptAccept  = loadScript("accept")
	scriptLoad    = loadScript("load")
	scriptBegin   = loadScript("begin")
	scriptClaim   = loadScript("claim")
	scriptRenew   = loadScript("renew")
	scriptCommit  = loadScript("commit")
	scriptRelease = loadScript("release")
	scriptAmend   = loadScript("amend")
	scriptStop    = loadScript("stop")
	scriptReset   = loadScript("reset")
	scriptPost    = loadScript("post")
	scriptRows    = loadScript("rows")
	scriptDue     = loadScript("due")
	scriptOutTake = loadScript("outtake")
	scriptOutDone = loadScript("outdone")
	scriptOutDue  = loadScript("outdue")
	scriptFates   = loadScript("fates")
	scriptSeen    = loadScript("seen")
	scriptSettle  = loadScript("settle")
	scriptNames   = loadScript("names")
	scriptDelete  = loadScript("delete")
	scriptExpire  = loadScript("expire")
	scriptDoc     = loadScript("doc")
	scriptPutDoc  = loadScript("putdoc")
	scriptStats   = loadScript("stats")
	scriptReserve = loadScript("reserve")
	scriptSpent   = loadScript("spent")
	scriptGrant   = loadScript("grant")

	scriptDump      = loadScript("dump")
	scriptParts     = loadScript("parts")
	scriptDocNames  = loadScript("docnames")
	scriptCopyPage  = loadScript("copypage")
	scriptCopyLane  = loadScript("copylane")
	scriptCopyDoc   = loadScript("copydoc")
	scriptCopyStats = loadScript("copystats")

	scriptCfg   = loadAlone("cfg")
	scriptStamp = loadAlone("stamp")
	scriptPing  = loadAlone("ping")
	scriptTouch = loadAlone("touch")

	scriptTakeOver = loadAlone("takeover")
)

// loadScript joins a script and the prelude. The first line must stay first:
// "#!lua" makes the server judge the flags and the memory limit before the
// script's first effect (F22).
func loadScript(name string) script {
	first, rest := readScript(name)
	prelude, err := luaFiles.ReadFile("lua/prelude.lua")
	if err != nil {
		panic(err)
	}
	return newScript(name, first, string(prelude)+rest)
}

func loadAlone(name string) script {
	first, rest := readScript(name)
	return newScript(name, first, rest)
}

func newScript(name, first, rest string) script {
	text := first + "\n" + rest
	return script{name, text, strings.Contains(first, "no-writes"), redis.NewScript(text)}
}

func readScript(name string) (first, rest string) {
	b, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	first, rest, _ = strings.Cut(string(b), "\n")
	if !strings.HasPrefix(first, "#!lua") {
		panic(fmt.Sprintf("lua/%s.lua: the first line must be #!lua", name))
	}
	return first, rest
}
