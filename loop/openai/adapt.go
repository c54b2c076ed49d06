package openai

import (
	"errors"
	"net/http"
	"strings"

	"coxswain/loop"
)

// refusals are the words of an endpoint that does not know a field.
var refusals = []string{"unsupported parameter", "unsupported_parameter", "not supported", "unknown", "unrecognized",
	"unrecognised", "extra_forbidden", "extra inputs", "not permitted", "not allowed", "unexpected"}

// adapt corrects what we believe of the endpoint when it refused an optional
// field by name, and reports whether the request is worth sending again, with
// other fields and the same messages. Each field is corrected once in the life
// of the client, so this ends. The correction holds for all later requests.
func (s *run) adapt(me *loop.ModelError) bool {
	var ae *answerError
	if !errors.As(me.Err, &ae) || ae.inStream ||
		ae.status != http.StatusBadRequest && ae.status != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(ae.code + " " + ae.message)
	refused := false
	for _, r := range refusals {
		refused = refused || strings.Contains(text, r)
	}
	if !refused {
		return false
	}
	sent := s.body.traits
	flip, tried := traits(0), traits(0)
	switch {
	case strings.Contains(text, "prompt_cache_key") && sent&traitCacheKey != 0:
		flip, tried = traitCacheKey, traitTriedCacheKey
	case (strings.Contains(text, "stream_options") || strings.Contains(text, "include_usage")) && sent&traitStreamOptions != 0:
		flip, tried = traitStreamOptions, traitTriedStreamOptions
	case strings.Contains(text, "max_tokens") || strings.Contains(text, "max_completion_tokens"):
		if s.body.req.MaxTokens > 0 {
			flip, tried = traitMaxCompletion, traitTriedMax
		}
	}
	if flip == 0 {
		return false
	}
	for {
		now := s.c.traits.Load()
		next := now
		if traits(now)&flip == sent&flip { // no other request has corrected it yet
			if traits(now)&tried != 0 {
				return false
			}
			next = uint32((traits(now) ^ flip) | tried)
		}
		if s.c.traits.CompareAndSwap(now, next) {
			s.body = &body{req: s.body.req, traits: traits(next)}
			s.c.log.Info("model endpoint refused an optional field", "model", s.c.Name(), "traits", next)
			return true
		}
	}
}
