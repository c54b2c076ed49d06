package web

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"coxswain/session"
	"coxswain/steer"
)

// What a person sees when things end: the answer becomes final in its place,
// the connection goes and comes back, the server is another one, and all that
// was said and dropped is there as it was.
func TestBrowserEnds(t *testing.T) {
	t.Parallel()
	hub, st := newFakeHub(), newFakeStore()
	a := newStoredAdapter(t, hub, st, "")
	base, stop := serve(t, a)
	defer func() { stop() }()
	s := &story{t: t, hub: hub, a: a, ctx: newBrowser(t)}
	dir := t.ArtifactDir()
	s.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(base+"/#story-one"))
	s.text(".empty", "Give me a task")
	s.write("Build it")
	task := s.got(session.KindText)
	s.begin(task)
	s.text(".you .state", "running")
	s.write("/status")
	s.got(session.KindText)
	s.say(session.PartReply, "r:m:story-one:x/1", "**model**, mode steer")
	s.text(".system", "mode steer")

	// Three messages wait. Dropped by a click, the next one keeps its place and
	// no button that would drop it has the focus.
	var waiting []session.Message
	for i, text := range []string{"first thought", "second thought", "third " + strings.Repeat("thought", 30)} {
		s.write(text)
		m := s.got(session.KindText)
		waiting = append(waiting, m)
		s.wait(int64(i+2), m, []steer.Mode{steer.Queue, steer.Steer, steer.Queue}[i])
	}
	s.until("three wait", `document.querySelectorAll('.wait').length === 3`)
	s.shoot(dir, "1-slot")
	drop := func(ticket int64, m session.Message) {
		t.Helper()
		s.run(chromedp.Click(`//article[contains(., '` + m.Text[:8] + `')]//button[text()='Drop']`))
		if got := s.got(session.KindPress); got.Button != fmt.Sprintf("drop:%d@", ticket) {
			t.Fatalf("got %q", got.Button)
		}
		s.edit(func(l *session.Transcript, v *session.View) {
			for i, e := range l.Slot {
				if e.Ticket == ticket {
					l.Slot = append(l.Slot[:i:i], l.Slot[i+1:]...)
					break
				}
			}
			v.Waiting = len(l.Slot)
		})
		s.fate(ticket, m.ID, session.FateDropped, 0)
		s.text(".gone", m.Text)
	}
	drop(2, waiting[0])
	s.until("the focus is on the sign of the next that waits", `document.activeElement.classList.contains('state') &&
		document.activeElement.closest('.wait').innerText.includes('second thought')`)
	drop(4, waiting[2])
	s.until("with none behind it, in the box", `document.activeElement.id === 'text'`)

	// A job goes on beside the task: it is shown, and ended from here.
	s.edit(func(l *session.Transcript, _ *session.View) {
		l.Jobs = []session.Job{{ID: "j1", Turn: 1, Name: "make " + strings.Repeat("all", 60), State: session.JobRunning, At: time.Now().Add(-time.Minute).UnixMilli()}}
	})
	s.fate(1, task.ID, session.FateRunning, 0)
	s.text("#jobs", "j1")
	s.text("#jobs .took", "1:0")
	s.shoot(dir, "2-job")
	s.run(chromedp.Focus(chromedp.CSS("#jobs button")), chromedp.KeyEvent(kb.Enter))
	s.asked("/jobs kill j1", "", "Job j1 is being ended.")
	s.text("#hint", "Job j1 is being ended.")
	s.edit(func(l *session.Transcript, _ *session.View) { l.Jobs = nil })
	s.fate(1, task.ID, session.FateRunning, 0)
	s.until("the chip goes and the focus with it home", `document.getElementById('jobs').hidden && document.activeElement.id === 'text'`)

	// The connection is lost: no clock goes on, and the page says why.
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.text("#banner", "Connection lost")
	s.text("#phase", "Connection lost, retrying")
	s.shoot(dir, "3-lost")
	if moved := eval[bool](s, `new Promise((done) => {
		const read = () => document.getElementById('phase').innerText + [...document.querySelectorAll('[data-since]')].map(e => e.innerText).join();
		const at = read();
		const times = document.querySelectorAll('[data-since]').length;
		setTimeout(() => done(read() !== at || times === 0), 1600);
	})`); moved {
		t.Error("a clock goes on although nothing is known")
	}

	// Another process comes: all is there as it was.
	b := newStoredAdapter(t, hub, st, "")
	s.a = b
	ln, err := net.Listen("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	stop = serveOn(t, b, ln)
	s.until("the clocks go on", `document.getElementById('banner').hidden || document.getElementById('banner').innerText.includes('restarted')`)
	s.text("#phase", "Thinking")
	s.run(chromedp.Reload())
	s.text(".system", "mode steer")
	s.text(".command", "/status")
	for _, m := range []session.Message{waiting[0], waiting[2]} {
		s.text(".gone", m.Text)
	}
	s.until("both are dropped, once", `document.querySelectorAll('.gone .s-dropped').length === 2`)
	s.until("one waits", `document.querySelectorAll('.wait').length === 1`)

	s.testFinal(task, dir)
	s.testCopy()
	s.testSilence()
}

// testFinal watches every frame while an answer ends: from its first word it is
// never gone, and it is one element.
func (s *story) testFinal(task session.Message, dir string) {
	s.t.Helper()
	s.edit(func(_ *session.Transcript, v *session.View) {
		v.Phase, v.Step, v.Text = steer.PhaseShowing, 2, "It is **built**:\n\n```sh\nmake all\n```\n\nand"
	})
	s.text(".answer.live", "and")
	eval[bool](s, `(() => {
		window.first = document.querySelector('.answer.live');
		window.pre = first.querySelector('pre');
		window.blinks = 0;
		window.changes = 0;
		const look = () => {
			const all = document.querySelectorAll('.answer');
			if (all.length !== 1 || all[0] !== first || !first.innerText.includes('make all') || first.querySelector('pre') !== pre) {
				window.blinks++;
				window.how = [all.length, all[0] === first, first.innerText.slice(0, 60), first.querySelector('pre') === pre].join();
			}
		};
		new MutationObserver(() => { window.changes++; look(); }).observe(document.getElementById('items'), { childList: true, subtree: true });
		return true;
	})()`)
	answer := "It is **built**:\n\n```sh\nmake all\n```\n\nand that is all.\n\n| step | what was done | time |\n|:--|---|--:|\n| 1 | `a|b` and " + strings.Repeat("verylongword", 12) + " | 3 s |\n| 2 | שלום עולם | 4 s |\n\nשלום, זו תשובה.\n"
	s.edit(func(_ *session.Transcript, v *session.View) { v.Text = answer })
	s.text(".answer.live", "that is all")
	// The live view is gone a good while before the row has been read.
	slow := make(chan struct{})
	s.hub.mu.Lock()
	s.hub.slow = slow
	s.hub.mu.Unlock()
	s.edit(func(l *session.Transcript, v *session.View) {
		addRow(l, session.RowAssistant, session.AssistantRow{Text: answer, End: session.EndAnswered})
		l.Turn = 0
		*v = session.View{}
	})
	s.a.Show(session.View{Key: s.key, Turn: 1, Done: true})
	eval[bool](s, `new Promise(f => setTimeout(() => f(true), 300))`)
	s.hub.mu.Lock()
	s.hub.slow = nil
	s.hub.mu.Unlock()
	close(slow)
	s.fate(1, task.ID, session.FateAnswered, 0)
	s.say(session.PartFinal, "t:1:final/1", answer)
	s.text(".answer .foot", "Copy")
	if n := eval[int](s, `window.changes`); n == 0 {
		s.t.Error("nothing was watched")
	}
	if n := eval[int](s, `window.blinks`); n != 0 {
		s.t.Errorf("the answer blinked %d times (%s); want it to become final in its place", n, eval[string](s, `window.how`))
	}
	s.until("a table is a table", `document.querySelectorAll('.answer td').length === 6 && document.querySelector('.answer .table').scrollWidth >= document.querySelector('.answer table').offsetWidth - 1`)
	s.shoot(dir, "4-final")
	s.edit(func(l *session.Transcript, _ *session.View) {
		l.Turn = 2
		addRow(l, session.RowUser, session.UserRow{Inputs: []session.Input{inputOf(9, "cccccccc-1", "once more, with "+strings.Repeat("feeling", 20))}})
		addRow(l, session.RowAssistant, session.AssistantRow{Text: "Failed before answering.", End: session.EndFailed})
		l.Turn = 0
	})
	s.fate(9, "cccccccc-1", session.FateFailed, 0)
	s.say(session.PartNotice, "t:2:err/1", "The model refuses the key (401). Ask the operator to look at model.api_key; what waits is held.")
	s.text(".answer.failed .mark", "failed")
	s.text(".system.notice", "refuses the key")
	s.shoot(dir, "5-error")
}

// testCopy presses the copy buttons of the answer and of its code.
func (s *story) testCopy() {
	s.t.Helper()
	eval[bool](s, `(() => {
		window.copied = [];
		Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (x) => { window.copied.push(x); } }, configurable: true });
		return true;
	})()`)
	s.run(chromedp.Click(chromedp.CSS(".answer .codehead .copy")))
	s.until("the code is copied", `copied[0] === 'make all' && document.querySelector('.answer .codehead .copy').innerText === 'Copied'`)
	s.run(chromedp.Click(chromedp.CSS(".answer .foot .copy")))
	s.until("the answer is copied as it was written", `copied[1] && copied[1].startsWith('It is **built**') && copied[1].includes('| step |')`)
	// Without a clipboard, on plain http to another machine, the old way.
	eval[bool](s, `(() => {
		Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
		document.addEventListener('copy', () => { window.old = document.activeElement.value; }, { once: true });
		return true;
	})()`)
	s.run(chromedp.Click(chromedp.CSS(".answer .codehead .copy")))
	s.until("the old way", `window.old === 'make all'`)
}

// testSilence lets a stream fall silent without an error, as when a laptop
// slept or a network swallowed the connection.
func (s *story) testSilence() {
	s.t.Helper()
	if got := eval[string](s, `import('/api.js').then(({ Stream }) => new Promise((done) => {
		const real = window.EventSource, now = Date.now;
		let made = 0;
		window.EventSource = class extends EventTarget {
			constructor(url) {
				super();
				if (!url.includes('chat-two')) return new real(url);
				made++;
			}
			close() {}
		};
		const x = new Stream('chat-two', { up() {}, down() {
			setTimeout(() => { x.close(); window.EventSource = real; done('lost, opened ' + made + ' times'); }, 0);
		} });
		Date.now = () => now() + 26000;
		setTimeout(() => { Date.now = now; done('never lost'); }, 8000);
	}))`); got != "lost, opened 2 times" {
		s.t.Errorf("a silent stream: %s; want it lost and opened again", got)
	}
}
