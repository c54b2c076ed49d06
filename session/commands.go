package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"coxswain/steer"
)

// A Command is one chat command. The registry feeds parsing, help, Telegram's
// menu and the documentation test.
type Command struct {
	Name  string // without slash
	Short string // another name, or empty
	Args  string // for usage lines
	Help  string // what it does, one line
	Admin bool
	run   func(h *Hub, ctx context.Context, p Principal, m Message, args string) error
}

// Commands lists the registry in the order of help.
func Commands() []*Command {
	return []*Command{
		{Name: "start", Help: "say hello", run: (*Hub).cmdStart},
		{Name: "help", Help: "list the commands", run: (*Hub).cmdHelp},
		{Name: "status", Help: "what the session is doing", run: (*Hub).cmdStatus},
		{Name: "whoami", Help: "who you are to this gateway", run: (*Hub).cmdWhoami},
		{Name: "new", Help: "begin a new conversation", run: (*Hub).cmdNew},
		{Name: "busy", Args: "[queue|interrupt|steer]", Help: "what a follow-up does while a task runs", run: (*Hub).cmdBusy},
		{Name: "steer", Short: "s", Args: "TEXT", Help: "send TEXT into the running task", run: explicit(steer.Steer)},
		{Name: "queue", Short: "q", Args: "TEXT", Help: "run TEXT after this task", run: explicit(steer.Queue)},
		{Name: "interrupt", Short: "i", Args: "TEXT", Help: "stop the task and run TEXT", run: explicit(steer.Interrupt)},
		{Name: "stop", Args: "[all]", Help: "stop the task; what waits is held (all: dropped)", run: (*Hub).cmdStop},
		{Name: "thread", Args: "TEXT", Help: "begin a task in a thread of its own, where the platform has threads", run: plainText},
		{Name: "retry", Help: "send what failed or was stopped again", run: (*Hub).cmdRetry},
		{Name: "pending", Help: "list what waits", run: (*Hub).cmdPending},
		{Name: "cancel", Help: "in reply to a message that waits: drop it", run: (*Hub).cmdCancel},
		{Name: "btw", Args: "TEXT", Help: "ask beside the task, without touching it", run: (*Hub).cmdBtw},
		{Name: "why", Help: "in reply to a message: what became of it", run: (*Hub).cmdWhy},
		{Name: "jobs", Args: "[kill ID]", Help: "list background jobs", run: (*Hub).cmdJobs},
		{Name: "resume", Args: "[NAME]", Help: "go on here with a session of yours from another chat", run: (*Hub).cmdResume},
		{Name: "link", Args: "[CODE]", Help: "join your accounts on two platforms", run: (*Hub).cmdLink},
		{Name: "unlink", Help: "part this account from your others", run: (*Hub).cmdUnlink},
	}
}

func registry() map[string]*Command {
	reg := map[string]*Command{}
	for _, c := range Commands() {
		reg[c.Name] = c
		if c.Short != "" {
			reg[c.Short] = c
		}
	}
	return reg
}

// parseCommand splits "/name args". A slash followed by anything but a letter
// is no command, and neither is a path ("/etc/hosts").
func parseCommand(text string) (name, args string, ok bool) {
	if !strings.HasPrefix(text, "/") {
		return "", "", false
	}
	word, rest := text[1:], ""
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word, rest = word[:i], strings.TrimSpace(word[i:])
	}
	for i, r := range word {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && (r >= '0' && r <= '9' || r == '_')) {
			return "", "", false
		}
	}
	if word == "" || len(word) > 32 {
		return "", "", false
	}
	return strings.ToLower(word), rest, true
}

// deliverCommand runs a command. A known one never reaches the model; an
// unknown one is answered with the nearest.
func (h *Hub) deliverCommand(ctx context.Context, p Principal, m Message, name, args string) error {
	c := h.commands[name]
	if c == nil {
		return h.reply(ctx, m, textNoCommand(name, h.nearest(name)))
	}
	if c.Admin && !p.Admin {
		return h.reply(ctx, m, textNotYours)
	}
	return c.run(h, ctx, p, m, args)
}

// nearest is the only known command that begins so, else the one with the smallest
// edit distance, at most 2.
func (h *Hub) nearest(name string) string {
	begin, begins, best, at := "", 0, "", 3
	for _, c := range Commands() {
		if len(name) > 2 && strings.HasPrefix(c.Name, name) {
			begin = c.Name
			begins++
		}
		if d := distance(name, c.Name); d < at {
			best, at = c.Name, d
		}
	}
	if begins == 1 {
		return begin
	}
	return best
}

// distance counts inserted, removed, replaced and swapped letters between two
// short ASCII words.
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+boolInt(a[i-1] != b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func explicit(mode steer.Mode) func(*Hub, context.Context, Principal, Message, string) error {
	return func(h *Hub, ctx context.Context, p Principal, m Message, args string) error {
		if m.MsgDedupe != "" {
			if done, err := h.again(ctx, p, m, mode); done || err != nil {
				return err
			}
		}
		if args == "" && len(m.Attachments) == 0 {
			return h.reply(ctx, m, textUsage(h.commands[mode.String()]))
		}
		m.Text = args
		if mode == steer.Steer && h.isStopWord(args) { // a reply to the bubble is this verb, too
			return h.deliverStopWord(ctx, p, m)
		}
		return h.accept(ctx, p, m, &mode)
	}
}

// plainText runs TEXT as a message. A platform with threads has made one and
// delivers it there.
func plainText(h *Hub, ctx context.Context, p Principal, m Message, args string) error {
	if args == "" && len(m.Attachments) == 0 {
		return h.reply(ctx, m, textUsage(h.commands["thread"]))
	}
	m.Text = args
	return h.accept(ctx, p, m, nil)
}

func (h *Hub) cmdStart(ctx context.Context, p Principal, m Message, args string) error {
	if args != "" {
		done, err := h.Access.redeem(ctx, p.Platform, m.From, m.Private, args)
		if err != nil {
			return err
		}
		if done {
			return h.reply(ctx, m, textAdminNow)
		}
	}
	return h.reply(ctx, m, textWelcome)
}

func (h *Hub) cmdHelp(ctx context.Context, p Principal, m Message, _ string) error {
	var b strings.Builder
	for _, c := range Commands() {
		if c.Admin && !p.Admin {
			continue
		}
		b.WriteString("- `/" + c.Name)
		if c.Args != "" {
			b.WriteString(" " + c.Args)
		}
		b.WriteString("` " + c.Help)
		if c.Short != "" {
			b.WriteString(" (short: `/" + c.Short + "`)")
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n" + textHelpTail + "\n" + textHelpSigns + "\n" + textHelpGestures)
	if own := h.howTo(p, m, "help"); own != "" {
		b.WriteString("\n" + own)
	}
	return h.reply(ctx, m, b.String())
}

func (h *Hub) cmdStatus(ctx context.Context, p Principal, m Message, _ string) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	return h.reply(ctx, m, h.statusOf(lane, m.Key).text())
}

func (h *Hub) cmdWhoami(ctx context.Context, p Principal, m Message, _ string) error {
	accounts, err := h.Links.accounts(ctx, me(p, m.Key))
	if err != nil {
		return err
	}
	text := textWho(p, accounts)
	if !m.Private {
		text += "\nthis chat: " + CleanLine(string(m.written(p).Key.Chat), 40)
	}
	return h.reply(ctx, m, text)
}

func (h *Hub) cmdNew(ctx context.Context, p Principal, m Message, _ string) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if !h.mayStop(p, lane) {
		return h.reply(ctx, m, textNotYours)
	}
	after, err := h.Store.Reset(ctx, Reset{Key: m.Key, Dedupe: m.Dedupe})
	if err != nil {
		h.endHere(ctx, m.Key, runningTurn(lane)) // as for a /stop whose reply was lost
		return fmt.Errorf("store reset: %w", err)
	}
	if after.Gen != lane.Gen { // else delivered again: what runs now may have begun since
		if a := h.actorOf(m.Key); a != nil && lane.Turn != 0 {
			a.stopNow(lane.Turn)
		}
		if _, err := h.stopJobs(ctx, m, after); err != nil {
			return err
		}
	}
	h.nudge(m.Key, nil)
	for _, e := range after.Slot {
		if e.Held {
			h.Outbox.Sign(m.Key, Fate{Ticket: e.Ticket, Msgs: e.Msgs, State: FateHeld, Waited: true})
		}
	}
	text, buttons := heldList(textNew, after.Slot, after)
	return h.announce(ctx, m, text, buttons...)
}

func (h *Hub) cmdBusy(ctx context.Context, p Principal, m Message, args string) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if args == "" {
		return h.reply(ctx, m, textMode(h.mode(m.Key, lane), decodePrefs(lane.Prefs).Mode != ""))
	}
	mode, err := steer.ParseMode(strings.ToLower(args))
	if err != nil {
		return h.reply(ctx, m, textUsage(h.commands["busy"]))
	}
	if lane.Turn != 0 && !h.maySteer(lane.Owner, p.ID, p.Admin) {
		return h.reply(ctx, m, textNotYours) // it would change what a word to their task means
	}
	prefs := decodePrefs(lane.Prefs)
	prefs.Mode = mode.String()
	return h.post(ctx, m, Outgoing{Markdown: textMode(mode, true)}, Post{Prefs: mustJSON(prefs)})
}

func (h *Hub) cmdStop(ctx context.Context, p Principal, m Message, args string) error {
	return h.stop(ctx, p, m, strings.EqualFold(args, "all"))
}

// stoppedAnswer says what was stopped and lists what is held.
func stoppedAnswer(s Stopped, lane Lane, drop bool, beside stoppedJobs) (string, []Button) {
	text := textStopped
	if s.Turn == 0 && lane.Turn == 0 && beside == (stoppedJobs{}) {
		text = textNothingRuns
	}
	if beside.jobs > 0 {
		text += fmt.Sprintf(" Background jobs ended: %d.", beside.jobs)
	}
	if beside.asides > 0 {
		text += fmt.Sprintf(" Questions beside it ended: %d.", beside.asides)
	}
	if drop {
		if len(s.Held) > 0 {
			text += fmt.Sprintf(" %d dropped.", len(s.Held))
		}
		return text, nil
	}
	return heldList(text, s.Lane.Slot, s.Lane)
}

// heldList lists held entries below text, with buttons to run or drop them.
func heldList(text string, slot []Entry, lane Lane) (string, []Button) {
	var b strings.Builder
	b.WriteString(text)
	var buttons []Button
	n := 0
	for _, e := range slot {
		if !e.Held {
			continue
		}
		if n++; n == 1 {
			b.WriteString(" Held:")
		}
		b.WriteString("\n" + textEntry(n, e, lane.Now))
		if n <= 8 { // a keyboard longer than a phone helps nobody
			buttons = append(buttons,
				Button{Text: fmt.Sprintf("Run %d", n), Data: fmt.Sprintf("run:%d", e.Ticket), Row: true},
				Button{Text: fmt.Sprintf("Drop %d", n), Data: fmt.Sprintf("drop:%d", e.Ticket)})
		}
	}
	return b.String(), buttons
}

func (h *Hub) cmdPending(ctx context.Context, p Principal, m Message, _ string) error {
	lane, err := h.Store.Load(ctx, m.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if len(lane.Slot) == 0 {
		return h.reply(ctx, m, textPendingNone)
	}
	var b strings.Builder
	var buttons []Button
	for i, e := range lane.Slot {
		b.WriteString(textEntry(i+1, e, lane.Now) + "\n")
		if i >= 8 {
			continue
		}
		n, t := strconv.Itoa(i+1), strconv.FormatInt(e.Ticket, 10)
		first := len(buttons)
		switch {
		case e.Held:
			buttons = append(buttons, Button{Text: "Run " + n, Data: "run:" + t})
		case e.Want == steer.Steer:
			buttons = append(buttons, Button{Text: "Queue " + n, Data: "queue:" + t})
		case lane.Turn != 0 && decodeInput(e).Retry == 0: // which has no text to steer with
			buttons = append(buttons, Button{Text: "Send " + n + " now", Data: "now:" + t})
		}
		buttons = append(buttons, Button{Text: "Drop " + n, Data: "drop:" + t})
		buttons[first].Row = true
	}
	if h.waitsForRoom(lane) {
		b.WriteString("It " + textWaitsForRoom + ".")
	}
	return h.reply(ctx, m, b.String(), buttons...)
}

func (h *Hub) cmdCancel(ctx context.Context, p Principal, m Message, _ string) error {
	if m.ReplyTo == "" {
		return h.reply(ctx, m, cmp.Or(h.howTo(p, m, "cancel"), textReplyToIt))
	}
	p, at, err := h.replied(ctx, p, m)
	if err != nil {
		return err
	}
	lane, err := h.Store.Load(ctx, at.Key)
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	e, ok := entryOf(lane, at.ReplyTo)
	if !ok {
		fates, err := h.Store.Fates(ctx, at.Key, 0)
		if err != nil {
			return fmt.Errorf("read fates: %w", err)
		}
		for _, f := range fates {
			if slices.Contains(f.Msgs, at.ReplyTo) {
				return h.gone(ctx, m, at, f.Ticket, textDropped)
			}
		}
		return h.reply(ctx, m, textNotPending)
	}
	if e.Author != p.ID && !p.Admin {
		return h.reply(ctx, m, textNotYours)
	}
	done, err := h.drop(ctx, at, e)
	if err != nil {
		return err
	}
	if !done {
		return h.reply(ctx, m, textNotPending)
	}
	return h.announce(ctx, m, textDropped)
}
