package discordtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// upload sends a message with files, each a field and a name.
func upload(t *testing.T, url, call string, data []byte, files ...[2]string) (int, map[string]any) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if call != "" {
		if err := w.WriteField("payload_json", call); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		part, err := w.CreateFormFile(f[0], f[1])
		if err == nil {
			_, err = part.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/api/v10/channels/1/messages", &b)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+Token)
	req.Header.Set("User-Agent", "DiscordBot (test, 1)")
	req.Header.Set("Content-Type", w.FormDataContentType())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var o map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&o); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, o
}

func TestUpload(t *testing.T) {
	s, url := start(t)
	s.FileMost = 10
	const call = `{"content":"two","nonce":"a","enforce_nonce":true,"allowed_mentions":{"parse":[]}}`
	status, first := upload(t, url, call, []byte("0123456789"), [2]string{"files[0]", "a.txt"}, [2]string{"files[1]", "a.txt"})
	list, _ := first["attachments"].([]any)
	if status != 200 || first["content"] != "two" || len(list) != 2 {
		t.Fatalf("%d %v", status, first)
	}
	at, _ := list[1].(map[string]any)
	if at["filename"] != "a.txt" || at["size"] != 10.0 || at["id"] == list[0].(map[string]any)["id"] {
		t.Errorf("attachment %v", at)
	}
	link, _ := at["url"].(string)
	resp, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, _ := io.ReadAll(resp.Body); string(data) != "0123456789" {
		t.Errorf("%s gives %q", link, data)
	}
	if status, again := upload(t, url, call, []byte("again"), [2]string{"files[0]", "b.txt"}); status != 200 || again["id"] != first["id"] || len(again["attachments"].([]any)) != 2 {
		t.Errorf("the same nonce: %d %v", status, again)
	}
	if c := s.Calls("POST", "messages")[0]; c.Body["nonce"] != "a" {
		t.Errorf("call %v", c.Body)
	}
	other := strings.Replace(call, `"a"`, `"b"`, 1)
	for _, c := range []struct {
		name         string
		call, data   string
		field, file  string
		status, code int
	}{
		{"too large", other, "01234567890", "files[0]", "a", 413, 40005},
		{"no call", "", "x", "files[0]", "a", 400, 50035},
		{"a field that is none", other, "x", "upload", "a", 400, 50035},
		{"no name", other, "x", "files[0]", "", 400, 50035},
	} {
		if status, o := upload(t, url, c.call, []byte(c.data), [2]string{c.field, c.file}); status != c.status || o["code"] != float64(c.code) {
			t.Errorf("%s: %d %v", c.name, status, o)
		}
	}
	// Without a limit of its own the guild's boosts say how much is taken.
	s.FileMost = 0
	s.AddChannel(Channel{ID: "1", Guild: "9"})
	for _, c := range []struct{ tier, status int }{{0, 413}, {1, 413}, {2, 200}} {
		s.Boost("9", c.tier)
		last := strings.Replace(call, `"a"`, fmt.Sprintf(`"t%d"`, c.tier), 1)
		if status, o := upload(t, url, last, make([]byte, fileMost+1), [2]string{"files[0]", "a"}); status != c.status || status != 200 && o["code"] != 40005.0 {
			t.Errorf("tier %d: %d %v", c.tier, status, o)
		}
	}
	s.AddChannel(Channel{ID: "1", Guild: "9", NoFiles: true})
	if status, o := upload(t, url, other, []byte("x"), [2]string{"files[0]", "a"}); status != 403 || o["code"] != 50013.0 {
		t.Errorf("files forbidden: %d %v", status, o)
	}
	if n := len(s.Bot("1")); n != 2 {
		t.Errorf("%d messages; want 2", n)
	}
}
