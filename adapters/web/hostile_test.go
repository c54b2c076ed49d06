package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"coxswain/session"
)

// hostilePage tries, from another port of the same machine, every way a page
// has of asking. %[1]s is the chat's address.
const hostilePage = `<!doctype html><title>hostile</title>
<iframe id="frame" src="%[1]s/"></iframe>
<form id="form" method="post" enctype="text/plain" target="sink" action="%[1]s/api/sessions/chat-one/messages">
<input name='{"id":"aaaaaaaa-9","text":"by form","reply_to":"' value='"}'></form>
<iframe name="sink"></iframe>
<script>
async function attack() {
  const out = {};
  const tries = {
    read: () => fetch('%[1]s/api/sessions/chat-one'),
    readCookies: () => fetch('%[1]s/api/sessions/chat-one', {credentials: 'include'}),
    list: () => fetch('%[1]s/api/sessions'),
    post: () => fetch('%[1]s/api/sessions/chat-one/messages', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"id":"aaaaaaaa-9","text":"by fetch"}'}),
    simple: () => fetch('%[1]s/api/sessions/chat-one/messages', {method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body: '{"id":"aaaaaaaa-9","text":"by no-cors"}'})
      .then((r) => { if (r.type === 'opaque') throw new Error('opaque'); return r; }),
    beacon: async () => { navigator.sendBeacon('%[1]s/api/sessions/chat-one/messages', new Blob(['{"id":"aaaaaaaa-9","text":"by beacon"}'], {type: 'text/plain'})); throw new Error('no answer'); },
    script: () => new Promise((ok, no) => { const s = document.createElement('script'); s.src = '%[1]s/api/sessions'; s.onload = ok; s.onerror = () => no(new Error('refused')); document.head.append(s); }),
    events: () => new Promise((ok, no) => { const e = new EventSource('%[1]s/api/sessions/chat-one/events'); e.onopen = ok; e.addEventListener('hello', ok); e.onerror = () => { e.close(); no(new Error('refused')); }; }),
  };
  for (const [name, f] of Object.entries(tries)) {
    try { await f(); out[name] = 'GOT THROUGH'; } catch (e) { out[name] = 'failed'; }
  }
  const frame = document.getElementById('frame');
  try { out.frame = frame.contentDocument && frame.contentDocument.getElementById('text') ? 'GOT THROUGH' : 'failed'; } catch { out.frame = 'failed'; }
  document.getElementById('form').submit();
  return JSON.stringify(out);
}
</script>`

// A page of another port cannot read, write, listen or frame; nor can one that
// came by a rebound name.
func TestBrowserHostilePage(t *testing.T) {
	t.Parallel()
	hub := newFakeHub()
	steered(hub)
	hub.edit(testKey, func(l *session.Transcript, _ *session.View) { l.Turn = 0 })
	a := newTestAdapter(t, hub, "")
	// Every request that is refused is told here, so that the test knows when
	// the last attempt has come in.
	asked := make(chan string, 64)
	guarded := a.Handler()
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &statusWriter{ResponseWriter: w, code: 200}
		guarded.ServeHTTP(rec, r)
		asked <- fmt.Sprintf("%s %s from %q: %d", r.Method, r.URL.Path, r.Header.Get("Origin"), rec.code)
	}))
	defer chat.Close()
	defer a.endStreams()
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, hostilePage, chat.URL)
	}))
	defer evil.Close()
	s := &story{t: t, hub: hub, a: a, ctx: newBrowser(t)}
	s.run(chromedp.Navigate(evil.URL + "/"))
	raw := eval[string](s, `attack()`)
	var out map[string]string
	if err := json.Unmarshal([]byte(raw), &out); err != nil || len(out) != 9 {
		t.Fatalf("got %q, %v; want nine attempts", raw, err)
	}
	for name, got := range out {
		if got != "failed" {
			t.Errorf("%s from another port: %s", name, got)
		}
	}
	// The form is the last to arrive; it and the beacon answer to nobody.
	posts := 0
	for posts < 4 { // preflight aside: no-cors, beacon, form and the answered fetch's preflight
		select {
		case line := <-asked:
			if strings.HasPrefix(line, "POST") || strings.HasPrefix(line, "OPTIONS") {
				posts++
			}
			if strings.Contains(line, "/api/") && strings.HasSuffix(line, ": 200") {
				t.Errorf("passed: %s", line)
			}
		case <-s.ctx.Done():
			t.Fatalf("%d attempts to write came in; want 4", posts)
		}
	}
	if got := hub.messages(); len(got) != 0 {
		t.Errorf("a hostile page delivered %+v", got)
	}
	// The same browser on the page itself: it works, so the refusals above are
	// not of a server that refuses everything.
	s.run(chromedp.Navigate(chat.URL + "/#chat-one"))
	s.text(".steer", "use March")
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(c int) {
	w.code = c
	w.ResponseWriter.WriteHeader(c)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// I8: whatever a model, a tool, a person or a file says is text on the page.
func TestBrowserHostileText(t *testing.T) {
	t.Parallel()
	hub := newFakeHub()
	bad := strings.Join([]string{
		`<img src=x onerror="window.hit=1"> <script>window.hit=2</script>`,
		`[click](javascript:window.hit=3) [data](data:text/html,x) [ok](https://example.com/a?b=c) [file](file:///etc/passwd) [sly](JaVaScRiPt:x)`,
		"**<b onclick=window.hit=4>bold</b>** `<i>code</i>` _under_ ~~gone~~ https://example.com/x\"onmouseover=1",
		"# <svg onload=window.hit=5>", "> <iframe src=//evil.example>", "- <a href=javascript:1>x</a>\n  - deeper *item*", "1. one\n2. two",
		"| a | <script>hit</script> |\n|---|---|\n| 1 | 2 |", "```<img src=x>\n</code></pre><script>window.hit=6</script>\n```", "![pic](https://example.com/p.png)", "---", "open ```",
	}, "\n\n")
	hub.edit(testKey, func(l *session.Transcript, _ *session.View) {
		l.Turn, l.Title = 1, `<script>window.hit=7</script>`
		addRow(l, session.RowUser, session.UserRow{Inputs: []session.Input{inputOf(1, "aaaaaaaa-1", bad)}, Event: bad})
		addRow(l, session.RowAssistant, session.AssistantRow{Text: bad, Calls: []session.Call{{ID: "call00001", Name: `<img src=x onerror=window.hit=8>`, Args: `{"a":"</pre><script>window.hit=9</script>"}`}}})
		s := addRow(l, session.RowTool, session.ToolRow{Call: "call00001", Body: bad})
		st := addRow(l, session.RowSteer, inputOf(0, "aaaaaaaa-2", bad))
		st.On, st.N, st.Tick = s.Seq, 1, 2
		addRow(l, session.RowAssistant, session.AssistantRow{Text: bad, End: session.EndAnswered})
		l.Turn = 0
	})
	a := newTestAdapter(t, hub, "")
	base, stop := serve(t, a)
	defer stop()
	s := &story{t: t, hub: hub, a: a, ctx: newBrowser(t), key: testKey}
	s.run(chromedp.Navigate(base + "/#chat-one"))
	s.text(".answer", "<img src=x")
	s.say(session.PartReply, "r:1/1", bad, session.Button{Text: "<b>x</b>", Data: "run:1"})
	s.text(".system", "deeper item")
	type found struct {
		Hit    any
		Tags   []string
		Links  []string
		Strong string
		Items  int
	}
	got := eval[found](s, `({
		hit: window.hit === undefined ? null : window.hit,
		tags: [...new Set([...document.querySelectorAll('#chat *')].map(e => e.tagName.toLowerCase()))].filter(t => /^(script|img|iframe|svg|i|b|object|embed|style|link)$/.test(t)),
		links: [...new Set([...document.querySelectorAll('#chat a')].map(e => e.getAttribute('href') + ' ' + e.rel))],
		strong: document.querySelector('.answer strong').innerText,
		items: document.querySelectorAll('.answer li').length,
	})`)
	if got.Hit != nil || len(got.Tags) != 0 {
		t.Errorf("text became code: %+v", got)
	}
	if got.Strong != "<b onclick=window.hit=4>bold</b>" || got.Items != 4 {
		t.Errorf("got %q and %d items; want Markdown rendered around the text", got.Strong, got.Items)
	}
	for _, l := range got.Links {
		if !strings.HasPrefix(l, "https://example.com/") || !strings.Contains(l, "noopener") {
			t.Errorf("link %q; want https only", l)
		}
	}
	if len(got.Links) == 0 {
		t.Error("no link was made of https addresses")
	}
	s.testMarkdown()
}

func codeBox(lang, code string) string {
	return `<div class="code"><div class="codehead"><span>` + lang + `</span><button type="button" class="copy" data-copy="next" aria-label="Copy the code">Copy</button></div>` +
		`<pre tabindex="0"><code>` + code + `</code></pre></div>`
}

func tableBox(head string, rows ...string) string {
	return `<div class="table" tabindex="0" role="region" aria-label="Table"><table><thead><tr>` + head + `</tr></thead><tbody><tr>` +
		strings.Join(rows, "</tr><tr>") + `</tr></tbody></table></div>`
}

// testMarkdown holds the renderer's output for what models write, and its pace
// on what they should not.
func (s *story) testMarkdown() {
	for in, want := range map[string]string{
		"a *b* **c** ***d***":            "<p>a <em>b</em> <strong>c</strong> ***d***</p>",
		"snake_case_name and __init__":   "<p>snake_case_name and <strong>init</strong></p>",
		"2 * 3 * 4":                      "<p>2 * 3 * 4</p>",
		"`a*b*` ``x`y``":                 "<p><code>a*b*</code> <code>x`y</code></p>",
		"# One #\ntext":                  "<h3>One</h3><p>text</p>",
		"- a\n- b\n\n  more\n- c":        "<ul><li>a</li><li>b<p>more</p></li><li>c</li></ul>",
		"3. x\n4. y":                     `<ol start="3"><li>x</li><li>y</li></ol>`,
		"line\nbreak":                    "<p>line<br>break</p>",
		`\*no\* \[x](y)`:                 "<p>*no* [x](y)</p>",
		"```go\nx := 1\n```":             codeBox("go", "x := 1"),
		"```\nopen":                      codeBox("", "open"),
		"> q\n> r":                       "<blockquote><p>q<br>r</p></blockquote>",
		"(see https://example.com/a_b).": `<p>(see <a href="https://example.com/a_b" target="_blank" rel="noopener noreferrer nofollow">https://example.com/a_b</a>).</p>`,
		"[a](http://x.example/(y))":      `<p><a href="http://x.example/(y)" target="_blank" rel="noopener noreferrer nofollow">a</a></p>`,
		"[a](//x.example) [b](/y)":       "<p>[a](//x.example) [b](/y)</p>",
		"| a | b |\n|--|--|\n| 1 | 22 |": tableBox("<th scope=\"col\">a</th><th scope=\"col\">b</th>", "<td>1</td><td>22</td>"),
		"a|b\n:-:|-:\n`x|y`|z\\|w|more\n1": tableBox(`<th class="mid" scope="col">a</th><th class="end" scope="col">b</th>`,
			`<td class="mid"><code>x|y</code></td><td class="end">z|w</td>`) + "<p>1</p>",
		"| a |\n|---|\n| <b> ` | *c* |\n| |": tableBox(`<th scope="col">a</th>`, "<td>&lt;b&gt; `</td>", "<td></td>"),
	} {
		quoted, err := json.Marshal(in)
		if err != nil {
			s.t.Fatal(err)
		}
		got := eval[string](s, `import('/markdown.js').then(m => { const d = document.createElement('div'); d.append(m.markdown(`+string(quoted)+`)); return d.innerHTML; })`)
		if got != want {
			s.t.Errorf("markdown %q:\n got %s\nwant %s", in, got, want)
		}
	}
	ms := eval[float64](s, `import('/markdown.js').then(m => { const at = performance.now();
		for (const x of ['*a ', '**', '_', '[', '[a](', '`+"`"+`', '`+"` `` "+`', '> ', '- ', '~~x', 'http://', '  - a\n', '|\n', '*a_b', '|', '|-|\n', '|a |-'])
			m.markdown(x.repeat(64000 / x.length));
		return performance.now() - at; })`)
	if limit := float64(20 * time.Second / time.Millisecond); ms > limit {
		s.t.Errorf("64 kB of marks took %.0f ms; want under %.0f", ms, limit)
	}
	s.t.Logf("64 kB each of 17 marks: %.0f ms", ms)
}
