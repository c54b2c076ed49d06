package openai

import "coxswain/loop"

// The sentences of this package. Those of sayKind and of say… are for people
// in a chat; a provider's own words never are, since they may hold a piece of
// the key or of the conversation. Those of call… are for the model.

var sayKind = map[loop.ErrKind]string{
	loop.ErrNetwork:       "The model cannot be reached. Your work is kept; try again in a minute.",
	loop.ErrAuth:          "The model's endpoint refused our key. An admin must check model.api_key.",
	loop.ErrQuota:         "The model's account is out of credit. An admin must top it up or raise its limit.",
	loop.ErrUnknownModel:  "The endpoint does not have this model. An admin must check model.name.",
	loop.ErrContextLength: "This conversation is too long for the model. Use /compact to shorten it or /new to begin anew.",
	loop.ErrFiltered:      "The provider's content filter stopped this answer. Try to word the request differently.",
	loop.ErrOverloaded:    "The model is overloaded. Your work is kept; try again in a minute.",
	loop.ErrSilent:        "The model stopped answering. Your work is kept; try again in a minute.",
	loop.ErrBadRequest:    "The model's endpoint refused the request. The log at level debug tells an admin why.",
	loop.ErrEmpty:         "The model gave an empty answer twice. Try again, or word the request differently.",
}

const (
	sayMoved   = "The model's endpoint has moved. An admin must correct model.base_url."
	sayNoPath  = "The model's endpoint has no such path. An admin must check model.base_url."
	sayWebPage = "The model's address answers with a web page. An admin must check model.base_url."
	sayTooLong = "The model's answer grew without end and was stopped. Try again, or ask for less at once."
	sayJinja   = "The model's chat template refused the conversation. The log at level debug tells why."
)

const (
	callCut     = "not run: the answer was cut off by the output limit; send less at once"
	callNoName  = "not run: the call names no tool"
	callNoJSON  = "not run: the arguments are not valid JSON: %s at position %d"
	callNotObj  = "not run: the arguments must be a JSON object, not %s"
	emptyResult = "(no output)" // of a tool: an empty content is refused by some servers
)
