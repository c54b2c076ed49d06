package screens

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"coxswain/telegramtest"
)

// photoMost is how many bytes a picture may have: they live in the repository.
const photoMost = 150 << 10

// Every text of the bot that is drawn came by a recorded call, the note's sign
// stands under it while it is in, and the answer is that of the steered task.
func TestTelegramScreens(t *testing.T) {
	middle, end, api := onTelegram(t)
	var sent []string
	for _, c := range api.Calls("sendMessage", "editMessageText") {
		sent = append(sent, c.String("text"))
	}
	drawn(t, "telegram", middle, end, sent)
	for _, want := range []string{`<blockquote class="expandable_blockquote">✓ <b class="bold">list_files</b> data`, `<pre class="pre">reports/march.pdf   214 kB</pre>`, `<code class="code">€48,310</code>`} {
		if got := html(t, "telegram", end); !strings.Contains(got, want) {
			t.Errorf("the page at the end lacks %s:\n%s", want, got)
		}
	}
	if p := api.Problems(); len(p) > 0 {
		t.Errorf("the API would have forgiven: %q", p)
	}
}

func TestDiscordScreens(t *testing.T) {
	middle, end, api := onDiscord(t)
	var sent []string
	for _, c := range slices.Concat(api.Calls("POST", "/messages"), api.Calls("PATCH", "/messages/")) {
		sent = append(sent, fmt.Sprint(c.Body["content"]))
	}
	drawn(t, "discord", middle, end, sent)
	for _, want := range []string{`<pre>reports/march.pdf   214 kB</pre>`, `<span class="mention">@Coxswain</span> use the March data`, `(edited)`} {
		if got := html(t, "discord", end); !strings.Contains(got, want) {
			t.Errorf("the page at the end lacks %s:\n%s", want, got)
		}
	}
}

// drawn checks what both platforms have in common.
func drawn(t *testing.T, platform string, middle, end []message, sent []string) {
	t.Helper()
	for _, m := range slices.Concat(middle, end) {
		if m.Name == "Coxswain" && !slices.Contains(sent, m.Text) {
			t.Errorf("no call brought %q; calls %q", m.Text, sent)
		}
	}
	for _, c := range []struct {
		when string
		chat []message
		want []string
		not  string
	}{
		{"in the middle", middle, []string{asks, notes, `<span class="sign">✍`, "make report MONTH=03", "went in at step 3", "<span>Stop</span>"}, "report is built"},
		{"at the end", end, []string{asks, notes, `<span class="sign">👍`, "The March report is built.", "✓ 5 steps"}, "<span>Stop</span>"},
	} {
		got := html(t, platform, c.chat)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("the page %s lacks %q:\n%s", c.when, want, got)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("the page %s has %q", c.when, c.not)
		}
	}
}

// html is a page's body.
func html(t *testing.T, platform string, chat []message) string {
	t.Helper()
	got, err := draw(screen{Platform: platform, Messages: chat})
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(got, "<body")
	return body
}

// The pictures that README.md shows are there, with words for who sees none,
// and no picture makes the repository heavy.
func TestPictures(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`<img src="docs/screens/([^"]+)"[^>]* alt="[^"]+"`).FindAllSubmatch(readme, -1)
	if len(shown) < 2 || len(shown) != strings.Count(string(readme), `"docs/screens/`) {
		t.Errorf("README.md shows %d pictures with words", len(shown))
	}
	for _, m := range shown {
		if _, err := os.Stat(string(m[1])); err != nil {
			t.Error(err)
		}
	}
	all, err := filepath.Glob("*.png")
	if err != nil || len(all) != 16 {
		t.Errorf("%d pictures, %v; want 16 (make screens)", len(all), err)
	}
	for _, name := range all {
		if s, err := os.Stat(name); err != nil || s.Size() > photoMost {
			t.Errorf("%s: %v, at most %d bytes", name, err, photoMost)
		}
	}
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		text string
		ents []telegramtest.Entity
		want string
	}{
		{"a <b> & c", nil, "a &lt;b&gt; &amp; c"},
		{"👍 bold", []telegramtest.Entity{{Type: "bold", Offset: 3, Length: 4}}, `👍 <b class="bold">bold</b>`},
		{"x\na b\nc", []telegramtest.Entity{{Type: "bold", Offset: 4, Length: 1}, {Type: "expandable_blockquote", Offset: 2, Length: 3}},
			"x\n" + `<blockquote class="expandable_blockquote">a <b class="bold">b</b></blockquote>c`},
		{"ab", []telegramtest.Entity{{Type: "italic", Offset: 0, Length: 2}, {Type: "bold", Offset: 0, Length: 1}}, `<i class="italic"><b class="bold">a</b>b</i>`},
	} {
		if got := string(spans(c.text, c.ents)); got != c.want {
			t.Errorf("%q: %s; want %s", c.text, got, c.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"a <b> \\*c\\*":         "a &lt;b&gt; *c*",
		"**x `y` <z>**":         "<b>x <code>y</code> &lt;z&gt;</b>",
		"```go\na < b\n```\nc":  "<pre>a &lt; b</pre>c",
		"- one\n- two - three":  "• one\n• two - three",
		"<@424242424242424242>": `<span class="mention">@Coxswain</span>`,
		"<@1>":                  `<span class="mention">@someone</span>`,
	} {
		if got := string(markdown(text)); got != want {
			t.Errorf("%q: %s; want %s", text, got, want)
		}
	}
}
