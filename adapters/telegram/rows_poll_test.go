package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"coxswain/session"
	"coxswain/steer"
	"coxswain/telegramtest"
)

// Updates and the poll: T26 to T29, T36.
var pollRows = []platformRow{
	{"T26", "the same update again, before and after a restart", gateSet{}, func(g *gate) {
		g.golden("T01_edit.json")
		first := g.got()
		g.golden("T01_edit.json")
		again := g.got()
		g.want("identities", words(again[0].Dedupe, again[1].Dedupe), words(first[0].Dedupe, first[1].Dedupe))
		g.off()
		g.up()
		g.golden("T01_edit.json")
		for i, m := range g.got() {
			g.want("identity after a restart", m.Dedupe, first[i].Dedupe)
		}
		g.want("open turn", g.lane(key(ann)).Turn, 1)
		if slot := g.slot(key(ann)); strings.Contains(slot, "\n") {
			g.t.Errorf("waits %q; want the edit at most", slot)
		}
	}},
	{"T27", "after a quiet week the next id may be anything", gateSet{}, func(g *gate) {
		g.api.SetNextUpdate(900_000_000)
		g.golden("ask.json")
		g.one()
		g.answers(key(ann), "done")
		g.settle(8 * 24 * time.Hour)
		g.api.SetNextUpdate(17)
		g.golden("T01_edit.json", 0)
		g.settle(2 * time.Minute)
		g.want("turns", g.turns(key(ann)), "build the report\nuse the Febuary data")
		g.confirmed()
	}},
	{"T28", "another poller: waits, tells, and goes on", gateSet{}, func(g *gate) {
		g.api.Fault(telegramtest.Fault{Method: "getUpdates", Times: -1, Code: 409, Description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"})
		g.golden("ask.json") // ends the poll that is out
		g.got()
		g.settle(10 * time.Minute)
		var last time.Time
		n := 0
		for _, c := range g.api.Calls("getUpdates") {
			if c.OK {
				continue
			}
			if d := c.At.Sub(last); n > 0 && (d < 2500*time.Millisecond || d > time.Minute) {
				g.t.Errorf("waited %v", d)
			}
			last = c.At
			n++
		}
		if n < 10 || n > 25 {
			g.t.Errorf("%d polls in ten minutes of conflict", n)
		}
		if s := g.a.Status(); s.Connected || s.Err != wordsConflict {
			g.t.Errorf("status %+v", s)
		}
		g.api.Heal()
		g.golden("T01_edit.json", 0)
		g.settle(2 * time.Minute)
		if s := g.a.Status(); !s.Connected || s.Err != "" {
			g.t.Errorf("status after the other has gone: %+v", s)
		}
		g.want("turns", g.turns(key(ann)), "build the report")
		g.want("waits", g.slot(key(ann)), "queue: use the Febuary data")
	}},
	{"T28", "somebody else's webhook is not deleted", gateSet{asleep: true}, func(g *gate) {
		g.api.SetWebhook(true)
		g.golden("ask.json")
		g.up()
		g.settle(2 * time.Minute)
		g.want("status", g.a.Status().Err, wordsWebhook)
		g.want("webhook", g.api.Webhook(), "https://elsewhere.example/hook")
		n, _ := g.api.Pending()
		g.want("pending", n, 1)
	}},
	{"T29", "revoked token stops the platform and says so", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.api.Revoke()
		g.settle(2 * time.Minute)
		g.off()
		if !errors.Is(g.err, ErrToken) || g.a.Status().Err != wordsBadToken || !strings.Contains(g.logs.String(), "level=ERROR") {
			g.t.Errorf("Run: %v, status %+v", g.err, g.a.Status())
		}
		g.want("open turn, parked for a good token", g.lane(key(ann)).Turn, 1)
	}},
	{"T36", "what cannot be read is kept raw and holds nothing up", gateSet{mode: steer.Queue}, func(g *gate) {
		g.golden("T36_unknown.json")
		g.confirmed()
		g.want("took", texts(g.got()), "before poison for typed decoders after")
		if turns := g.turns(key(ann)); !strings.HasPrefix(turns, "before") {
			g.t.Errorf("turns %q", turns)
		}
		data, _, err := g.store.Doc(g.ctx, g.a.docName("quarantine"))
		var kept []quarantined
		if err != nil || json.Unmarshal(data, &kept) != nil || len(kept) != 1 || !strings.Contains(kept[0].Raw, "not a number") {
			g.t.Errorf("kept %s, %v", data, err)
		}
		if s := g.a.Status(); s.Undecodable != 1 || s.Ignored != 2 {
			g.t.Errorf("status %+v; want 1 undecodable, 2 ignored", s)
		}
	}},
}

// Clocks and absences: T30, T31.
var clockRows = []platformRow{
	{"T30", "this machine's clock is three hours ahead", gateSet{mode: steer.Queue}, skewed(-3 * time.Hour)},
	{"T30", "this machine's clock is three hours behind", gateSet{mode: steer.Queue}, skewed(3 * time.Hour)},
	{"T31", "backlog is one input, what was pressed meanwhile is void", gateSet{asleep: true}, func(g *gate) {
		g.up()
		g.api.Say(ann, ann, "before")
		g.one()
		g.settle(2 * time.Minute) // it is stored that the gateway lives
		bubble := g.api.Messages(ann)[0]
		g.off()
		g.settle(time.Minute)
		for i := range 260 { // more than two polls give
			g.api.Say(bob, bob, fmt.Sprintf("m%d", i))
		}
		query := g.api.Press(ann, bubble.ID, ann, bubble.Keyboard[0][0].Data)
		g.api.Say(ann, ann, "/stop")
		g.api.Say(ann, ann, "and charts")
		g.settle(10 * time.Hour)
		g.up()
		g.settle(30 * time.Second)
		ms := g.got()
		g.want("took", len(ms), 262)
		since := "I was offline since 1 Jan 00:0" // the stroke of the minute before
		g.want("told", words(g.count(bob, since), g.count(ann, since)), "1 1")
		// The press is void. The late /stop has its date: it ends the turn that ran
		// when it was written, and no later one.
		g.want("turns of the one who stopped", g.turns(key(ann)), "before\nand charts")
		g.want("turns of the one who wrote", strings.Count(g.turns(key(bob)), "\n"), 0)
		if turns := g.turns(key(bob)); !strings.HasPrefix(turns, "m0 | m1 | m2") || !strings.HasSuffix(turns, "m258 | m259") {
			g.t.Errorf("the backlog's turn is %.200q", turns)
		}
		for _, c := range g.api.Calls("answerCallbackQuery") {
			g.want("answer to the press", c.String("callback_query_id")+c.String("text"), query+wordsVoid)
		}
		g.confirmed()
	}},
	{"T31", "restart is no absence", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(2 * time.Minute)
		bubble := g.api.Messages(ann)[0]
		g.off()
		g.api.Press(ann, bubble.ID, ann, bubble.Keyboard[0][0].Data)
		g.settle(20 * time.Second)
		g.up()
		g.settle(5 * time.Second)
		g.want("open turn", g.lane(key(ann)).Turn, 0)
		g.want("told", g.count(ann, "offline"), 0)
	}},
	{"T31", "a network that was away for hours is an absence", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(10 * time.Second)
		bubble := g.api.Messages(ann)[0]
		g.api.Fault(telegramtest.Fault{Method: "getUpdates", HTML: 502, Times: -1})
		g.settle(2 * time.Minute)
		g.api.Press(ann, bubble.ID, ann, bubble.Keyboard[0][0].Data)
		g.settle(3 * time.Hour)
		g.api.Heal()
		g.settle(time.Minute)
		g.want("open turn", g.lane(key(ann)).Turn, 1)
		g.want("told", g.count(ann, "offline"), 1)
		bubble = g.api.Messages(ann)[0]
		g.api.Press(ann, bubble.ID, ann, bubble.Keyboard[0][0].Data)
		g.settle(time.Second)
		g.want("pressed again", g.lane(key(ann)).Turn, 0)
	}},
}

// count counts the bot's messages in a chat that hold some words.
func (g *gate) count(chat int64, words string) (n int) {
	for _, s := range g.said(chat) {
		if strings.Contains(s, words) {
			n++
		}
	}
	return n
}

// skewed plays a conversation against a server whose clock is ahead: nothing
// in it is late, and a /stop stops.
func skewed(ahead time.Duration) func(g *gate) {
	return func(g *gate) {
		g.api.Skew = ahead
		g.off()
		g.up()
		g.settle(time.Minute)
		g.api.Say(ann, ann, "go")
		m := g.one()
		if d := m.Received.Sub(m.Sent).Abs(); d > 2*time.Second {
			g.t.Errorf("a message sent now is %v old", d)
		}
		g.api.Say(ann, ann, "and charts")
		g.got()
		l := g.lane(key(ann))
		g.want("waits, of a backlog", words(g.slot(key(ann)), session.DecodeSteer(session.Row{Data: l.Slot[0].Data}).Late, l.Slot[0].Group), "queue: and charts false paste")
		g.settle(5 * time.Second)
		g.api.Say(ann, ann, "/stop")
		g.one()
		g.want("open turn", g.lane(key(ann)).Turn, 0)
		g.want("told", g.count(ann, "offline"), 0)
	}
}

// Buttons, the Stop on a draft, and what is said at the start: T32, T35, T37.
var pressRows = []platformRow{
	{"T32", "presses are answered at once, also below what cannot be seen", gateSet{}, func(g *gate) {
		g.api.AddChat(telegramtest.Chat{ID: ann})
		release := make(chan struct{})
		g.door.set(func(d *door) { d.hold = release })
		g.golden("T32_presses.json")
		g.got()
		g.want("unanswered while the door is busy", g.api.Unanswered(), []string{})
		close(release)
		by := make(map[string]session.Message)
		for _, m := range g.got() { // chats are delivered side by side
			by[m.Interaction] = m
		}
		g.want("took", len(by), 3) // that of an inline message is not ours
		m := by["4382bfdwdsb323b2d9"]
		if m.Kind != session.KindPress || m.Button != "stop:17" || m.ID != "110" || m.Dedupe != "i:4382bfdwdsb323b2d9" || m.From.ID != "7001" {
			g.t.Errorf("press is %+v", m)
		}
		if m := by["4382bfdwdsb323b2da"]; m.Key != key(group) || m.ID != "111" || m.Private {
			g.t.Errorf("press below a message too old to see is %+v", m)
		}
		g.want("press in a topic", by["4382bfdwdsb323b2db"].Key.Thread, "77")
		g.settle(time.Minute)
		g.want("said", g.said(ann), []string{"That button is out of date."})
	}},
	{"T32", "other's press does nothing, the first of the owner's wins", gateSet{mode: steer.Queue, policy: &session.Policy{AllowUsers: []string{"*"}, Pairing: session.PairingOff}}, func(g *gate) {
		g.golden("ask_group.json")
		g.one()
		g.api.AddChat(telegramtest.Chat{ID: group})
		g.golden("T32_stop_twice.json", 0)
		g.one()
		g.want("open turn after another's press", g.lane(key(group)).Turn, 1)
		g.golden("T32_stop_twice.json", 1)
		g.one()
		g.golden("T32_stop_twice.json", 2)
		g.one()
		g.want("open turn", g.lane(key(group)).Turn, 0)
		g.golden("T32_stop_twice.json", 3)
		g.got()
		g.settle(time.Minute)
		g.want("said", g.said(group), []string{"Only the task's owner or an admin can do that.", "Stopped.", "That button is out of date.", "That message does not wait any more."})
		g.want("unanswered", g.api.Unanswered(), []string{})
	}},
	{"T32", "buttons of a turn that is over are taken away when pressed", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		bubble := g.api.Messages(ann)[0]
		g.api.Fault(telegramtest.Fault{Method: "editMessageText", Refuse: true, Times: -1})
		g.answers(key(ann), "done") // and the bubble's last edit is lost
		g.settle(20 * time.Minute)
		g.api.Press(ann, bubble.ID, ann, "stop:1")
		g.settle(time.Second)
		g.want("buttons", len(g.api.Messages(ann)[0].Keyboard), 0)
		g.want("said", g.said(ann)[2:], []string{"That button is out of date."})
	}},
	{"T32", "too late to be answered is a press all the same", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.settle(4 * time.Second)
		g.api.Fault(telegramtest.Fault{Method: "answerCallbackQuery", Code: 400, Description: "Bad Request: query is too old and response timeout expired or query ID is invalid"})
		g.api.Press(ann, g.api.Messages(ann)[0].ID, ann, "stop:1")
		g.one()
		g.want("open turn", g.lane(key(ann)).Turn, 0)
	}},
	{"T35", "Stop on a draft stops its turn, and what was shown stays", gateSet{}, func(g *gate) {
		g.golden("ask.json")
		g.one()
		g.shows(key(ann), func(v *session.View) { v.Text = "The report says that all is well so far" })
		g.settle(time.Second)
		d := g.api.Calls("sendMessageDraft")[0]
		g.want("draft", words(d.Int("draft_id"), d.Params["can_stop"]), "1 true")
		g.golden("T35_stop_draft.json")
		m := g.one() // the other draft is nobody's
		if m.Kind != session.KindPress || m.Button != "stop:1" || m.From.ID != "7001" || !strings.HasPrefix(m.Dedupe, "u:") {
			g.t.Errorf("took %+v", m)
		}
		g.want("open turn", g.lane(key(ann)).Turn, 0)
		g.settle(5 * time.Second)
		drafts := len(g.api.Calls("sendMessageDraft"))
		g.settle(time.Minute)
		g.want("drafts afterwards", len(g.api.Calls("sendMessageDraft")), drafts)
		g.want("kept", g.count(ann, "The report says that all is well so far\n\n— interrupted"), 1)
	}},
	{"T37", "privacy mode is told of at the start, and not promised away", gateSet{}, func(g *gate) {
		g.golden("T37_privacy.json")
		g.settle(time.Minute)
		g.want("told in the log", strings.Count(g.logs.String(), "privacy mode"), 1)
		if s := g.a.Status(); s.SeesAll || s.Username != telegramtest.Username || s.Hint != wordsPrivacyHint {
			g.t.Errorf("status %+v", s)
		}
		g.want("session of a group that did not ask", g.lane(key(group)).Exists, false)
	}},
	{"T37", "without privacy mode there is no hint", gateSet{asleep: true}, func(g *gate) {
		g.api.SeesAll = true
		g.up()
		g.golden("T37_privacy.json")
		g.settle(time.Minute)
		if s := g.a.Status(); !s.SeesAll || s.Hint != "" || strings.Contains(g.logs.String(), "privacy mode") {
			g.t.Errorf("status %+v", s)
		}
	}},
	{"T37", "what a group says beside the bot is observed if asked for, and loads nothing", gateSet{observe: 5, asleep: true}, func(g *gate) {
		g.api.SeesAll = true
		for _, id := range []string{"d97", "v97"} {
			g.api.AddFile(id, []byte("12345"))
		}
		g.up()
		g.golden("T37_observed.json")
		g.settle(time.Second)
		g.want("taken", len(g.got()), 6)
		g.want("turns", g.turns(key(group)), "fix it")
		g.want("told", g.told(key(group)), "[file report.pdf] these\n[voice]\nthe March numbers are wrong")
		g.want("loaded", len(g.api.Calls("getFile", "file")), 0)
		g.want("saved", len(g.save.files), 0)
		g.want("said", g.said(group), []string{})
	}},
}

// told are what turns were told of a chat, sorted.
func (g *gate) told(key session.Key) string {
	g.t.Helper()
	l := g.lane(key)
	rows, err := g.store.Rows(g.ctx, key, l.Gen, 0, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		if r.Type == session.RowUser {
			for _, o := range session.DecodeUser(r).Observed {
				out = append(out, o.Text)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
