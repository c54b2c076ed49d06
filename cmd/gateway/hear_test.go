package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Voice goes to the endpoint as a file with its name; without a model it stays
// a file.
func TestHear(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, h, err := r.FormFile("file")
		if err != nil || r.URL.Path != "/v1/audio/transcriptions" || r.Header.Get("Authorization") != "Bearer k" || r.FormValue("model") != "whisper-1" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		data, _ := io.ReadAll(f)
		_, _ = w.Write([]byte(`{"text":"` + h.Filename + " says " + string(data) + `"}`))
	}))
	defer srv.Close()
	c := Config{Transcription: Transcription{BaseURL: srv.URL + "/v1", APIKey: "k"}}
	if c.hear() != nil {
		t.Error("without a model something hears")
	}
	c.Transcription.Model = "whisper-1"
	got, err := c.hear()(t.Context(), "voice-1.oga", strings.NewReader("hello"))
	if err != nil || got != "voice-1.oga says hello" {
		t.Errorf("got %q, %v", got, err)
	}
}
