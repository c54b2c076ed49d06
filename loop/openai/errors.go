package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"coxswain/loop"

	goopenai "github.com/sashabaranov/go-openai"
)

// answerError is a failure the endpoint told us of: a status other than 2xx,
// or an error in the stream. It passes through go-openai unchanged.
type answerError struct {
	status     int // 0 in a stream, if the error names none
	inStream   bool
	code       string // the provider's code and type, if it gave any
	message    string // the provider's own words: for logs, never for people
	retryAfter time.Duration
	hasRetry   bool // retryAfter was given, be it 0
	webPage    bool // HTML where JSON was due
}

func (e *answerError) Error() string {
	where := fmt.Sprintf("model endpoint: status %d", e.status)
	if e.inStream {
		where = "model endpoint: error in the stream"
	}
	if e.code != "" {
		where += " (" + e.code + ")"
	}
	if e.message != "" {
		where += ": " + e.message
	}
	return where
}

// Failures of the connection and of the stream's form.
var (
	errSilent   = errors.New("model endpoint: silent for too long")
	errNoFinish = errors.New("model endpoint: the stream ended without a finish_reason")
	errBadFrame = errors.New("model endpoint: a frame of the stream is not valid JSON")
	errTooLong  = errors.New("model endpoint: a frame or the stream is over its cap")
	errAborted  = errors.New("model endpoint: it broke the answer off itself")
	errEmpty    = errors.New("model endpoint: an answer without text or tool calls")
)

// messageCap bounds what is kept of a provider's words.
const messageCap = 600

// readError reads the error shapes seen in the field: OpenAI's {"error":{}},
// Gemini's array of it, {"error":"text"}, vLLM's flat object, FastAPI's
// {"detail":…}, Mistral's {"message":…}, and plain text or HTML.
func readError(body []byte) *answerError {
	e := &answerError{}
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var o struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message looseString     `json:"message"`
		Code    looseString     `json:"code"`
		Type    looseString     `json:"type"`
	}
	if json.Unmarshal(body, &o) != nil {
		e.webPage = bytes.HasPrefix(body, []byte("<"))
		if !e.webPage {
			e.message = string(body)
		}
		e.message = clipText(e.message)
		return e
	}
	codes := []string{string(o.Code), string(o.Type)}
	e.message = string(o.Message)
	if len(o.Error) > 0 {
		var in struct {
			Message looseString `json:"message"`
			Code    looseString `json:"code"`
			Type    looseString `json:"type"`
			Status  looseString `json:"status"`
		}
		if json.Unmarshal(o.Error, &in) == nil {
			e.message = string(in.Message)
			codes = []string{string(in.Code), string(in.Type), string(in.Status)}
		} else {
			e.message = string(readLoose(o.Error))
		}
	}
	if e.message == "" && len(o.Detail) > 0 {
		e.message = readDetail(o.Detail)
	}
	for _, c := range codes {
		if c != "" && !strings.Contains(e.code, c) {
			e.code = strings.TrimSpace(e.code + " " + c)
		}
	}
	e.message = clipText(e.message)
	e.code = clipText(e.code)
	return e
}

// readDetail gives place and reason of FastAPI's validation errors, without
// their "input", which repeats the conversation.
func readDetail(raw json.RawMessage) string {
	var list []struct {
		Type looseString       `json:"type"`
		Msg  looseString       `json:"msg"`
		Loc  []json.RawMessage `json:"loc"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return string(readLoose(raw))
	}
	var parts []string
	for _, d := range list {
		var loc []string
		for _, l := range d.Loc {
			loc = append(loc, string(readLoose(l)))
		}
		parts = append(parts, fmt.Sprintf("%s: %s (%s)", strings.Join(loc, "."), d.Msg, d.Type))
	}
	return strings.Join(parts, "; ")
}

func clipText(s string) string {
	if len(s) > messageCap {
		return strings.ToValidUTF8(s[:messageCap], "") + "…"
	}
	return s
}

// Phrases by which providers name a failure that their status does not. They
// are looked for in code and message only, in lower case.
var (
	phrasesQuota = []string{"insufficient_quota", "billing_hard_limit", "billing_not_active", "insufficient balance",
		"insufficient credit", "insufficient_credit", "credit balance is too low", "requires more credits"}
	phrasesContext = []string{"context_length_exceeded", "maximum context length", "context length", "context window",
		"context size", "exceed_context_size", "prompt is too long", "input is too long", "prompt too long",
		"reduce the length of the messages", "exceeds the maximum number of tokens", "too many input tokens"}
	phrasesFilter = []string{"content_filter", "content_policy", "responsibleaipolicy", "content management policy",
		"data_inspection_failed", "flagged as potentially violating", "requires moderation", "was flagged"}
	phrasesModel = []string{"model_not_found", "model not found", "unknown model", "invalid model", "no such model",
		"not a valid model", "model_not_supported"}
	phrasesAuth = []string{"invalid_api_key", "incorrect api key", "api key not valid", "invalid api key"}
	phrasesBusy = []string{"overloaded", "rate_limit", "rate limit", "too many requests", "resource_exhausted",
		"server_error", "timeout", "unavailable", "capacity"}
)

// classify turns any failure of a try into the error the loop sees. partial
// is added by the caller.
func classify(err error) *loop.ModelError {
	if ae, ok := errors.AsType[*answerError](err); ok {
		return classifyAnswer(ae)
	}
	kind, retry := loop.ErrNetwork, true
	public := ""
	switch {
	case errors.Is(err, errSilent):
		kind = loop.ErrSilent
	case errors.Is(err, errEmpty):
		kind = loop.ErrEmpty
	case errors.Is(err, goopenai.ErrChatCompletionInvalidModel):
		kind, retry = loop.ErrUnknownModel, false
	case isRequestError(err):
		kind, retry = loop.ErrBadRequest, false
	case errors.Is(err, errTooLong):
		kind, retry, public = loop.ErrBadRequest, false, sayTooLong
	}
	return modelError(kind, public, 0, retry, err)
}

func isRequestError(err error) bool {
	_, ok := errors.AsType[requestError](err)
	return ok
}

func classifyAnswer(e *answerError) *loop.ModelError {
	text := strings.ToLower(e.code + " " + e.message)
	has := func(phrases []string) bool {
		for _, p := range phrases {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	fail := func(kind loop.ErrKind, public string) *loop.ModelError {
		return modelError(kind, public, e.status, false, e)
	}
	limited := e.status == http.StatusTooManyRequests
	switch {
	case e.status == http.StatusPaymentRequired || has(phrasesQuota):
		return fail(loop.ErrQuota, "")
	case !limited && (e.status == http.StatusRequestEntityTooLarge || has(phrasesContext)):
		return fail(loop.ErrContextLength, "")
	case !limited && has(phrasesFilter):
		return fail(loop.ErrFiltered, "")
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden || !limited && has(phrasesAuth):
		return fail(loop.ErrAuth, "")
	case !limited && (has(phrasesModel) || strings.Contains(text, "model") && strings.Contains(text, "does not exist")):
		return fail(loop.ErrUnknownModel, "")
	case strings.Contains(text, "jinja"):
		// llama.cpp answers 500 when its template refuses the conversation; the
		// same bytes will be refused again.
		return fail(loop.ErrBadRequest, sayJinja)
	case e.status == http.StatusNotFound && strings.Contains(text, "model"):
		return fail(loop.ErrUnknownModel, "")
	case e.status == http.StatusNotFound:
		return fail(loop.ErrBadRequest, sayNoPath)
	case e.status >= 300 && e.status < 400:
		return fail(loop.ErrBadRequest, sayMoved)
	case e.webPage && e.status < 300:
		return fail(loop.ErrBadRequest, sayWebPage)
	case retryStatus(e.status) || e.inStream && (e.status == 0 || has(phrasesBusy)):
		// An error in a stream came after the request was taken: it is of the
		// answer, and another try may go better.
		return modelError(loop.ErrOverloaded, "", e.status, true, e)
	}
	return fail(loop.ErrBadRequest, "")
}

// retryStatus: 408 and 409 are OpenAI's own client's choice; 501 and 505 say
// that the request will never work; the other 5xx pass.
func retryStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

func modelError(kind loop.ErrKind, public string, status int, retry bool, err error) *loop.ModelError {
	if public == "" {
		public = sayKind[kind]
	}
	return &loop.ModelError{Kind: kind, Public: public, Status: status, Retryable: retry, Err: err}
}

// scrub takes the URL out of a transport error, since it may hold a key or a
// password, and the key itself out of whatever repeats it. The chain below is
// kept for errors.Is unless the key is in its text.
func scrub(err error, key string) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = fmt.Errorf("%s request to the model endpoint: %w", strings.ToLower(ue.Op), ue.Err)
	}
	if text := err.Error(); len(key) >= 8 && strings.Contains(text, key) {
		return errors.New(strings.ReplaceAll(text, key, "[key]"))
	}
	return err
}

// redact takes the key out of a provider's words. Some repeat it whole.
func (e *answerError) redact(key string) {
	if len(key) >= 8 { // shorter ones are placeholders, such as "none"
		e.message = strings.ReplaceAll(e.message, key, "[key]")
		e.code = strings.ReplaceAll(e.code, key, "[key]")
	}
}
