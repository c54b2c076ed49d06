package tools

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coxswain/steer"
)

// Every sentence a tool can answer stands here. Each says what happened and what to do, in
// one line. Names that came from arguments or from the file system are put in with quote or
// shown, so that they can break neither the line nor the sentence.
const (
	wordArgsSyntax = "%s: the arguments are not JSON (byte %d: %s); send one object with: %s"
	wordArgsObject = "%s: the arguments must be one JSON object with: %s"
	wordArgUnknown = "%s: unknown argument %s; it takes: %s"
	wordArgMissing = "%s: argument %q is missing; it takes: %s"
	wordArgType    = "%s: argument %q must be %s, not a %s"
	wordArgRange   = "%s: argument %q must be from %d to %d"

	wordNoTool       = "no tool is named %s; use one of the listed tools"
	wordCrashed      = "%s failed inside the gateway; try another way, and tell an operator (see the gateway's log)"
	wordShuttingDown = "not run: the gateway is shutting down; call it again after the restart"

	wordNotPermitted    = "not permitted here: shell commands are for admins and people in tools.terminal.allow"
	wordEmptyCommand    = "terminal: the command is empty; give a shell command"
	wordNulCommand      = "terminal: the command holds a NUL byte; leave it out"
	wordLongCommand     = "terminal: the command is %d bytes, the most is %d; put it in a file with write_file and run that"
	wordNoStart         = "terminal: the shell did not start: %s; an operator must look at the gateway's host"
	wordNoOutput        = "(no output)"
	wordExit            = "[exit code %d]"
	wordSignal          = "[ended by signal %s]"
	wordTimedOut        = "[timed out after %s and ended; the most is tools.terminal.timeout]"
	wordKilled          = "[killed before it ended]"
	wordEndedByShutdown = "[ended: the gateway is shutting down]"
	wordLeftBehind      = " [processes left in the background ended with the call: %d]"
	wordStuck           = " [a process does not end: pid %d]"

	wordCutSpilled  = "\n… %d bytes cut; full text in %s (read_file with offset) …\n"
	wordCutPart     = "\n… %d bytes cut; its first and last 512 KiB are in %s …\n"
	wordCutLost     = "\n… %d bytes cut; the full text could not be saved …\n"
	wordNotKept     = "\n… %d bytes were not kept …\n"
	wordLineCut     = "… (%d bytes of this line cut)"
	wordInterrupted = "%s: stopped before it was done"

	wordPathEmpty   = "the path is empty; give one inside the workspace, such as \"notes.txt\""
	wordPathLong    = "the path is %d bytes long, the most is %d; use a shorter one"
	wordPathNul     = "path %s holds a NUL byte; leave it out"
	wordPathOutside = "path %s leads out of the workspace; use one inside it, relative to its top"
	wordPathLinkOut = "path %s cannot be reached inside the workspace (a link leads out of it); use the real file's path"
	wordNoWorkspace = "the workspace cannot be opened (%s); an operator must look at workspace.dir"
	wordNotFound    = "there is no %s; list_files shows what there is"
	wordDenied      = "no permission for %s; choose another file, or ask an operator to change its mode"
	wordIOError     = "%s: %s; check the path with list_files"
	wordIsDir       = "%s is a directory; use list_files for it, or name a file in it"
	wordNotDir      = "%s is not a directory; use read_file for it"
	wordNotRegular  = "%s is a %s; only regular files can be used here"
	wordIsLink      = "%s is a symbolic link to %s; use the path of the file itself"

	wordEmptyFile   = "(empty file)"
	wordBinary      = "%s is binary (%s, %d bytes); only text can be read"
	wordUTF16       = "%s is UTF-16 text (%d bytes); convert it to UTF-8 first"
	wordPastEnd     = "%s has %d lines; offset %d is past the end"
	wordPastScan    = "line %d of %s lies beyond the first %d MiB; use the terminal to cut a part out"
	wordLines       = "[lines %d-%d of %d]"
	wordLinesNext   = "[lines %d-%d of %d; go on with offset=%d]"
	wordLinesNoEnd  = "[lines %d-%d of more than %d; go on with offset=%d]"
	wordCRLF        = " [line ends are CRLF]"
	wordNotUTF8     = " [not UTF-8: bytes shown as \uFFFD cannot be edited]"
	wordWriteTooBig = "%s: the text would be %d bytes, the most is %d; write it in parts or with the terminal"
	wordWroteNew    = "wrote %s (%d bytes, new)"
	wordWroteOver   = "wrote %s (%d bytes, replaced %d bytes)"
	wordChanged     = "%s was changed by something else meanwhile and was not written; read_file it again"
	wordCannotWrite = "%s was not written: %s; what was there is unchanged"

	wordEditEmpty  = "edit_file: \"old\" is empty; copy the text to replace from read_file, or use write_file"
	wordEditSame   = "edit_file: \"old\" and \"new\" are the same; nothing to do"
	wordEditNone   = "the text in \"old\" is not in %s; read_file and copy it exactly, with its spaces"
	wordEditNear   = "the text in \"old\" is not in %s; its first line looks like line %d: copy the text exactly, with its spaces"
	wordEditMany   = "the text in \"old\" is in %s more than once (lines %s); add lines around it, or set all=true"
	wordEditTooBig = "%s is %d bytes, the most for edit_file is %d; use the terminal"
	wordEditBinary = "%s is not UTF-8 text; edit_file changes only text"
	wordEdited     = "replaced 1 place in %s (line %d)"
	wordEditedAll  = "replaced %d places in %s (first in line %d)"

	wordEmptyDir       = "(empty directory)"
	wordListMore       = "[stopped after %d entries; list a directory below, or less depth]"
	wordDirMore        = "[a directory holds more than %d entries; only those read first are shown]"
	wordListUnread     = "[directories not read: %d]"
	wordSearchNeeds    = "search_files: give \"pattern\" (a regular expression), \"glob\", or both"
	wordBadPattern     = "search_files: pattern %s: %s; RE2 syntax, no look-around, no back-references"
	wordBadGlob        = "search_files: glob %s: %s; use * ** ? [a-z] {a,b}"
	wordLongPattern    = "search_files: %q is %d bytes, the most is %d; use a shorter one"
	wordBigPattern     = "search_files: pattern %s is too large (%d steps, the most is %d); use fewer or smaller repetitions"
	wordSearchLong     = "[stopped after %s; use a simpler pattern, or narrow the path or the glob]"
	wordNoMatch        = "no match"
	wordSearchMore     = "[stopped after %d matches; narrow the pattern, the glob or the path]"
	wordSearchTooMuch  = "[stopped after %d entries or %d MiB; narrow the path or the glob]"
	wordSearchUnread   = "[files not read: %d]"
	wordSearchLongFile = "[files searched only up to %d MiB: %d]"

	wordNoSending   = "files cannot be sent to this chat; say where the file is"
	wordSendEmpty   = "%s is empty and was not sent; write it first"
	wordSendTooBig  = "%s is too large to send (%d bytes, the most is %d); send less, or a part"
	wordSendCaption = "send_file: the caption has %d bytes, the most is %d; say the rest in your answer"
	wordSending     = "%s goes to the chat (%d bytes)"

	wordJobAction  = "job: unknown action %s; use poll, kill or list"
	wordJobNeedsID = "job: give the \"id\" of the job; action list shows them"
	wordJobUnknown = "job %s is not known here: if it existed it ended with the gateway, result unknown; action list shows the jobs"
	wordJobRuns    = "job %s (%s) has been running for %s; output so far:\n%s"
	wordJobQuiet   = "job %s (%s) has been running for %s; no output so far"
	wordJobEnded   = "job %s (%s) ended:\n%s"
	wordJobKilled  = "job %s (%s) was killed:\n%s"
	wordJobDying   = "job %s (%s) is being killed; poll it for the rest"
	wordJobForeign = "not permitted here: job %s was started for someone else; they or an admin can end it"
	wordJobNone    = "no jobs"
	wordJobRow     = "%s  %s  running for %s"
	wordJobRowEnd  = "%s  %s  ended; poll it for the result"
)

// maxNameShown keeps one name from filling a sentence.
const maxNameShown = 80

// quote renders untrusted text as one quoted, printable, bounded word.
func quote(s string) string {
	if utf8.RuneCountInString(s) > maxNameShown {
		r := []rune(s)
		s = string(r[:maxNameShown/2]) + "…" + string(r[len(r)-maxNameShown/2:])
	}
	return escaped(s)
}

// escaped is strconv.Quote, which leaves some letters and marks that are blank as they are.
func escaped(s string) string { return steer.Visible(strconv.Quote(s)) }

// shown renders a path in a listing: as it is when it is plain, quoted when it could be
// mistaken for something else (spaces at the ends, line breaks, invisible runes).
func shown(name string) string {
	if name == "" || !utf8.ValidString(name) || strings.TrimSpace(name) != name || name[0] == '"' {
		return escaped(name)
	}
	for _, r := range name {
		if r != ' ' && !unicode.IsPrint(r) || steer.Deceives(r) {
			return escaped(name)
		}
	}
	return name
}

// below joins a directory and an entry as the tools take paths: relative, without "./".
func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return path.Join(dir, name)
}

func outOfRange(tool, arg string, low, high int) output {
	return failf("%s", fmt.Sprintf(wordArgRange, tool, arg, low, high))
}
