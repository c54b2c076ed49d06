package web

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"coxswain/session"
	"coxswain/steer"
)

// The page in a real browser: a task is steered, the note is seen inside it,
// and neither a reload nor a restart of the server loses or doubles anything.
func TestBrowserSteeredTask(t *testing.T) {
	t.Parallel()
	hub := newFakeHub()
	a := newTestAdapter(t, hub, "")
	base, stop := serve(t, a)
	defer func() { stop() }()
	s := &story{t: t, hub: hub, a: a, ctx: newBrowser(t)}
	dir := t.ArtifactDir()

	s.run(chromedp.EmulateViewport(390, 844), chromedp.Navigate(base+"/"))
	s.text(".empty", "Give me a task")
	s.shoot(dir, "0-empty")
	s.write("Write a short report on the *data* folder")
	task := s.got(session.KindText)
	if task.Text != "Write a short report on the *data* folder" || !isID(string(task.ID), 8, 64) || task.Key.Platform != Name {
		t.Fatalf("got %+v", task)
	}
	s.begin(task)
	s.text(".you .state", "running")
	s.text("#phase", "Thinking")
	s.call(1, "call00001", "list_files", `{"path":"data"}`, "")
	s.result("call00001", "list_files", "april.csv\nmarch.csv")
	s.call(2, "call00002", "read_file", `{"path":"data/april.csv"}`, "day,amount\n1,20")
	s.text(".call.running", "april.csv")
	s.text("#phase", "step 2")

	// Two messages while the tool runs: one is to be steered in, one queued.
	s.write("use the March data, not April")
	note := s.got(session.KindText)
	s.wait(2, note, steer.Steer)
	s.write("/queue then translate it to French")
	next := s.got(session.KindText)
	next.Text = strings.TrimPrefix(next.Text, "/queue ")
	s.wait(3, next, steer.Queue)
	s.text(".wait .state", "waits to be steered in")
	s.text(".wait .state", "queued, runs after this task")
	s.text("#waiting", "Waiting 2")
	s.shoot(dir, "1-waiting")

	// The reload shows the same and keeps what was typed and not sent.
	s.run(chromedp.SendKeys(chromedp.ID("text"), "half a thou"), chromedp.Reload())
	s.text(".wait .state", "waits to be steered in")
	s.text(".call.running", "april.csv")
	s.until("the draft is kept", `document.getElementById('text').value === 'half a thou'`)
	s.run(chromedp.Focus(chromedp.ID("text")), chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent(kb.Backspace))
	s.until("the box is empty", `document.getElementById('text').value === ''`)

	// The buttons and ↑ say what the hub understands.
	s.run(chromedp.Click(`//article[contains(., 'French')]//button[contains(., 'Steer in now')]`))
	if m := s.got(session.KindPress); m.Button != "now:3@" {
		t.Errorf("got button %q; want now:3@", m.Button)
	}
	s.run(chromedp.SendKeys(chromedp.ID("text"), kb.ArrowUp))
	s.until("↑ edits the last that waits", `document.getElementById('text').value === 'then translate it to French'`)
	s.run(chromedp.SendKeys(chromedp.ID("text"), kb.End+", please"+kb.Enter))
	if m := s.got(session.KindEdit); m.ID != next.ID || m.Text != "then translate it to French, please" {
		t.Errorf("got %+v; want the edit of the queued message", m)
	}

	// The steer goes in: it stands inside the task, after step 2, before step 3.
	s.result("call00002", "read_file", "day,amount\n1,20\n2,30", note)
	s.fate(2, note.ID, session.FateAttached, 3)
	s.text(".steer .state", "waits → goes in at step 3")
	s.fate(2, note.ID, session.FateSteered, 3)
	s.text(".steer .state", "waits → steered in at step 3")
	s.call(3, "call00003", "read_file", `{"path":"data/march.csv"}`, "")
	s.text(".steer", "your note went in at step 3")
	s.text(".steer", "use the March data, not April")
	s.until("the note stands between step 2 and step 3", `(() => {
		const all = [...document.querySelectorAll('.task .steps > *')].map(e => e.className.split(' ')[0] + (e.querySelector('.step') ? e.querySelector('.step').innerText : ''));
		return all.join() === 'callstep 1,callstep 2,steer,callstep 3';
	})()`)
	s.until("it waits no more", `document.querySelectorAll('.wait').length === 1`)
	s.run(chromedp.Click(`//summary[contains(., 'data/april.csv')]`))
	s.text(".call[open] .out", "2,30")
	s.text(".steer .state", "waits → steered in at step 3")
	s.shoot(dir, "2-steered")

	// The store is away, the page is loaded anew, the server restarts: what was
	// written meanwhile waits here, and comes once, under its own id.
	ids := make(chan session.MessageID, 64)
	hub.setDeliver(func(_ context.Context, m session.Message) error {
		ids <- m.ID
		return errStore
	})
	s.write("make it two lines")
	s.text(".sending", "sending")
	s.run(chromedp.Reload())
	s.text(".sending", "sending")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	hub.setDeliver(nil)
	s.text("#banner", "retrying")
	s.shoot(dir, "3-offline")
	b := newTestAdapter(t, hub, "")
	s.a = b
	ln, err := net.Listen("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	stop = serveOn(t, b, ln)
	late := s.got(session.KindText)
	if first := <-ids; late.ID != first {
		t.Errorf("got id %s after %s; want the same message", late.ID, first)
	}
	if late.Text != "make it two lines" || late.Sent.IsZero() {
		t.Errorf("got %+v; want what was written while the server was away, with its age", late)
	}
	s.wait(4, late, steer.Steer)
	s.text(".wait", "make it two lines")
	s.text(".call", "data/march.csv")
	s.until("it is shown once", `[...document.querySelectorAll('article')].filter(e => e.innerText.includes('two lines')).length === 1`)
	s.text(".steer", "your note went in at step 3")

	// The answer streams in, and is there once when it is a row.
	s.edit(func(_ *session.Transcript, v *session.View) {
		v.Phase, v.Step, v.Text = steer.PhaseShowing, 4, "## Report\n\nMarch came to **50**"
	})
	s.text(".live h4, .live h3", "Report")
	s.text("#phase", "Writing")
	answer := "## Report\n\nMarch came to **50** in two days:\n\n| day | amount |\n|---|---|\n| 1 | 20 |\n| 2 | 30 |\n\n- first, `20`\n- then 30\n\n```sh\nsort -n data/march.csv\n```\nMore at https://example.com/report."
	s.edit(func(l *session.Transcript, v *session.View) {
		addRow(l, session.RowTool, session.ToolRow{Call: "call00003", Name: "read_file", Body: "day,amount"})
		addRow(l, session.RowAssistant, session.AssistantRow{Text: answer, End: session.EndAnswered})
		l.Turn = 0
		v.Text, v.Done, v.End, v.Phase = answer, true, session.EndAnswered, steer.PhaseIdle
	})
	s.fate(1, task.ID, session.FateAnswered, 0)
	s.fate(2, note.ID, session.FateAnswered, 3)
	s.say(session.PartFinal, "t:1:final/1", answer)
	s.text(".answer", "More at")
	s.until("the answer is shown once", `document.querySelectorAll('.answer').length === 1 && !document.querySelector('.live')`)
	s.text(".answer .foot time", ":")
	s.text(".steer .state", "waits → steered in at step 3 → answered")
	s.until("the answer is read out", `document.getElementById('say').innerText.includes('March came to')`)
	s.say(session.PartReply, "r:9/1", "Stopped. Held:\n1. held, 3 s: make it two lines", session.Button{Text: "Run 1", Data: "run:4"}, session.Button{Text: "Drop 1", Data: "drop:4"})
	s.text(".system button", "Run 1")
	s.shoot(dir, "4-answered")
	s.run(chromedp.Click(`//button[text()='Run 1']`))
	if m := s.got(session.KindPress); m.Button != "run:4" {
		t.Errorf("got button %q; want run:4", m.Button)
	}
	// A dropped message is still shown, struck out.
	s.edit(func(l *session.Transcript, _ *session.View) { l.Slot = nil })
	s.fate(4, late.ID, session.FateDropped, 0)
	s.text(".gone", "make it two lines")
	s.text(".gone .state", "dropped")
}

// Keys: commands complete, Esc stops, Ctrl+K lists, the mode switch sends /busy.
func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	hub := newFakeHub()
	a := newTestAdapter(t, hub, testToken)
	base, stop := serve(t, a)
	defer stop()
	other := session.Key{Platform: Name, Chat: "another-chat"}
	hub.edit(other, func(l *session.Transcript, _ *session.View) {
		l.Title = "Yesterday's task"
		addRow(l, session.RowUser, session.UserRow{Inputs: []session.Input{inputOf(1, "bbbbbbbb-1", "from yesterday")}})
	})
	s := &story{t: t, hub: hub, a: a, ctx: newBrowser(t)}
	dir := t.ArtifactDir()

	s.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(base+"/#fresh-chat"))
	s.until("the login is asked for", `document.getElementById('login').open`)
	s.shoot(dir, "5-login")
	s.run(chromedp.SendKeys(chromedp.ID("token"), "wrong"+kb.Enter))
	s.text("#loginfault", "not the token")
	s.run(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.SendKeys(chromedp.ID("token"), testToken+kb.Enter))
	s.until("the login is done", `!document.getElementById('login').open && document.querySelector('.empty')`)
	s.until("scripts cannot read the cookie", `document.cookie === ''`)
	// Fates come by the stream and by reading, in any order: none goes back, but
	// among those that wait the newest holds.
	got := eval[string](s, `import('/model.js').then(({ Model }) => {
		const m = new Model('x');
		return ['queued', 'pending', 'held', 'queued', 'steered', 'pending', 'attached', 'answered', 'steered'].map((state) => {
			m.putFate(state === 'steered' ? { ticket: 1, state, step: 3 } : { ticket: 1, state });
			return m.fates.get(1).state + m.fates.get(1).step;
		}).join();
	})`)
	if want := "queued0,pending0,held0,queued0,steered3,steered3,steered3,answered3,answered3"; got != want {
		t.Errorf("fates: got %s; want %s", got, want)
	}
	// Of a message whose fate is too old to be kept, the end of its turn tells.
	got = eval[string](s, `import('/model.js').then(({ Model }) => {
		const m = new Model('x');
		m.applyTranscript({ whole: true, fates: [], memo: [], slot: [], turn: 0, now: 0, rows: ['answered', 'stopped', 'replaced', 'failed', ''].flatMap((end, i) => [
			{ seq: 2 * i + 1, turn: i + 1, type: 'user', inputs: [{ ticket: i + 1, ids: [] }] },
			{ seq: 2 * i + 2, turn: i + 1, type: 'assistant', end, text: 'x' },
		]) }, 0);
		return m.blocks([]).filter((b) => b.kind === 'user').map((b) => b.fate ? b.fate.state : 'unknown').join();
	})`)
	if want := "answered,stopped,stopped,failed,unknown"; got != want {
		t.Errorf("old messages: got %s; want %s", got, want)
	}

	s.run(chromedp.SendKeys(chromedp.ID("text"), "/st"))
	s.text("#commands [aria-selected=true]", "/status")
	s.run(chromedp.SendKeys(chromedp.ID("text"), kb.ArrowDown))
	s.text("#commands [aria-selected=true]", "/steer TEXT")
	s.shoot(dir, "6-commands")
	s.run(chromedp.SendKeys(chromedp.ID("text"), kb.Tab))
	s.until("Tab completes", `document.getElementById('text').value === '/steer ' && document.getElementById('commands').hidden`)
	s.run(chromedp.SendKeys(chromedp.ID("text"), "left"+kb.Enter))
	m := s.got(session.KindText)
	if m.Text != "/steer left" || m.Key.Chat != "fresh-chat" {
		t.Fatalf("got %+v", m)
	}
	s.begin(m)
	s.until("Stop is offered", `!document.getElementById('stop').hidden`)
	s.run(chromedp.KeyEvent(kb.Escape))
	if m := s.got(session.KindPress); m.Button != "stop:1@" {
		t.Errorf("Esc: got %q; want stop:1@, which cannot stop a later turn", m.Button)
	}
	s.run(chromedp.Click(chromedp.CSS(`#mode input[value=queue]`)))
	s.asked("/busy queue", "", "Mode: queue (set here)")
	s.text("#hint", "runs after this task")
	s.until("the mode switch leaves no bubble", `document.querySelectorAll('article').length === 1`)
	s.until("and the focus goes to the box", `document.activeElement.id === 'text'`)
	// What became of a message is shown below it and nowhere else.
	s.run(chromedp.Click(chromedp.CSS(`.you .state`)))
	s.asked("/why", m.ID, "Message 1: being worked on. Turn 1.")
	s.text(".you .life", "Accepted")
	s.text(".you .life", "being worked on. Turn 1.")
	s.until("it is no part of the conversation", `document.querySelectorAll('article').length === 1`)
	s.run(chromedp.KeyEvent(kb.Escape))
	s.until("Esc closes it", `!document.querySelector('.life') && document.activeElement.dataset.act.startsWith('why:')`)
	if n := len(s.hub.arrived); n != 0 {
		t.Errorf("Esc with something open also sent %d messages; want nothing stopped", n)
	}
	s.run(chromedp.KeyEvent("3", chromedp.KeyModifiers(chromedp.ModifierAlt)))
	s.asked("/busy interrupt", "", "Mode: interrupt (set here)")
	s.text("#hint", "replaces the running task")
	s.run(chromedp.KeyEvent("?"))
	s.until("the keys are listed", `document.getElementById('keys').open && document.querySelectorAll('#keylist dt').length > 5`)
	s.shoot(dir, "6-keys")
	s.run(chromedp.KeyEvent(kb.Escape))
	s.until("Esc closes the list", `!document.getElementById('keys').open`)
	if n := len(s.hub.arrived); n != 0 {
		t.Errorf("Esc in a dialog sent %d messages; want nothing stopped", n)
	}
	// Ctrl+K from anywhere.
	s.run(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	s.until("the sessions are listed", `document.getElementById('sessions').open && document.querySelectorAll('#dialoglist button').length === 2`)
	s.run(chromedp.SendKeys(chromedp.ID("filter"), "yester"))
	s.until("the list is filtered", `document.querySelectorAll('#dialoglist button').length === 1`)
	s.shoot(dir, "7-sessions")
	s.run(chromedp.SendKeys(chromedp.ID("filter"), kb.Enter))
	s.text(".you", "from yesterday")
	s.until("its address is its id", `location.hash === '#another-chat' && !document.getElementById('sessions').open`)
	// Shift+Enter is a new line; Enter in an empty box sends nothing.
	s.run(chromedp.SendKeys(chromedp.ID("text"), kb.Enter), chromedp.SendKeys(chromedp.ID("text"), "one"),
		chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierShift)), chromedp.SendKeys(chromedp.ID("text"), "two"+kb.Enter))
	if m := s.got(session.KindText); m.Text != "one\ntwo" || m.Key != other {
		t.Errorf("got %q in %v; want two lines in the other session", m.Text, m.Key)
	}
}
