package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"coxswain/modeltest"
)

// scriptModel answers by rule: two tool calls that leave a numbered trace,
// then an answer of its own number. What a request may look like is checked by
// modeltest.
type scriptModel struct {
	srv *modeltest.Server

	mu    sync.Mutex
	n     int
	calls int
	live  int
}

func newScriptModel() *scriptModel { return &scriptModel{srv: modeltest.New()} }

func (m *scriptModel) requests() []modeltest.Recorded { return m.srv.Requests() }
func (m *scriptModel) violations() []string           { return m.srv.Violations() }

// tools is how many calls were asked for.
func (m *scriptModel) tools() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func (m *scriptModel) busy() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live
}

func (m *scriptModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		m.srv.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed while it wrote
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.live++
	m.n++
	task, results := "", 0
	for _, msg := range req.Messages {
		switch msg.Role {
		case "user":
			task, results = msg.Content, 0
		case "tool":
			results++
		}
	}
	var step modeltest.Step
	asks := results < 2
	if asks {
		sleep := "0.12"
		if strings.HasPrefix(task, "long") {
			sleep = "1.5"
		}
		args := fmt.Sprintf(`{"command":"echo effect %d >> effects; sleep %s"}`, m.n, sleep)
		step = modeltest.Calls(modeltest.Call{Name: "terminal", Args: args})
		if results == 0 {
			step = modeltest.Stream(modeltest.Wait(60*time.Millisecond), modeltest.Ask(modeltest.Call{Name: "terminal", Args: args}))
		}
	} else {
		step = modeltest.Text(fmt.Sprintf("answer %d", m.n))
	}
	m.srv.Add(step)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.live--
		if asks {
			m.calls++ // the gateway has the whole answer: the tool begins
		}
		m.mu.Unlock()
	}()
	m.srv.ServeHTTP(w, r)
}
