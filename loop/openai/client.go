package openai

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coxswain/loop"
)

// Options say how to reach a model. Only BaseURL and Name are required.
type Options struct {
	// BaseURL is the API root, as in https://api.openai.com/v1. Redirects are
	// refused: a POST would turn into a GET, and the key would travel.
	BaseURL string
	// APIKey gives the key, asked for before each try, so that it may change. It
	// is called from any goroutine and must not block.
	// Nil or empty: no Authorization header, as local servers want it.
	APIKey func() string
	// Name is the model. A Request with a Model of its own wins.
	Name string
	// ContextWindow in tokens. Too large a value makes the endpoint refuse or
	// silently cut long conversations. Default 0: ask the endpoint, else guess.
	ContextWindow int
	// Hosted says that the endpoint is a public service, not a local server. A
	// local one gets no prompt_cache_key, which it could not use. Default false.
	Hosted bool
	// HTTPClient replaces the client, for tests and proxies. It must have no
	// Timeout, which would end long answers; silence is watched by Idle.
	HTTPClient *http.Client
	// Attempts is the most tries of one request, the first included. Default 5.
	Attempts int
	// Idle is how long the endpoint may send nothing, not even a keep-alive,
	// once it has begun to answer. Too small a value kills answers of a busy
	// endpoint. Default 60 s.
	Idle time.Duration
	// FirstToken is the same until the first text, reasoning or tool call: a
	// local server reads the prompt and a reasoning model thinks without a sign
	// of life, and a try ended there is paid for and starts from nothing. People
	// are told of the silence from 5 s on. Default 5 × Idle.
	FirstToken time.Duration
	// Logger gets one line for each failed try, without keys or message text.
	// Default: none.
	Logger *slog.Logger
}

// A Client is a model at an endpoint. Make it with New. Any goroutine may call
// its methods.
type Client struct {
	o     Options
	base  string
	host  string
	http  *http.Client
	log   *slog.Logger
	shape replayShape
	// traits are the optional fields the endpoint takes: set from what is known
	// of the host, corrected when it refuses one.
	traits atomic.Uint32

	windowMu   sync.Mutex // one lookup at a time
	window     int        // found, 0 = not yet
	windowNext time.Time  // no new lookup before
}

var _ loop.Model = (*Client)(nil)

// New makes a client. It sends nothing.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		// The text of err repeats the URL, which may hold a password.
		return nil, fmt.Errorf("model base_url is not an http or https URL")
	}
	if o.Name == "" {
		return nil, fmt.Errorf("model name is missing")
	}
	o.Attempts = cmp.Or(o.Attempts, 5)
	o.Idle = cmp.Or(o.Idle, 60*time.Second)
	o.FirstToken = cmp.Or(o.FirstToken, 5*o.Idle)
	if o.APIKey == nil {
		o.APIKey = func() string { return "" }
	}
	c := &Client{o: o, base: strings.TrimRight(o.BaseURL, "/"), host: u.Host, log: o.Logger}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.http = httpClient(o.HTTPClient)
	c.shape = shapeFor(u.Hostname())
	c.traits.Store(uint32(traitsFor(u.Hostname(), o.Hosted)))
	return c, nil
}

// Name is the endpoint's host and the model: what owns Private fields.
func (c *Client) Name() string { return c.host + "/" + c.o.Name }

// Close drops idle connections. Requests that run are not touched.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func httpClient(given *http.Client) *http.Client {
	hc := http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 32, // one per turn that runs; more are dialled anew
		IdleConnTimeout:     90 * time.Second,
		// A proxy that compresses a stream also holds it back.
		DisableCompression: true,
	}}
	if given != nil {
		hc = *given
	}
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &hc
}

// traits are optional fields of a request. Servers differ on them, and some
// refuse a request for one unknown key.
type traits uint32

const (
	traitCacheKey      traits = 1 << iota // prompt_cache_key
	traitStreamOptions                    // stream_options.include_usage
	traitMaxCompletion                    // the limit is max_completion_tokens, else max_tokens

	// traitTried… mark a correction made once, so that an endpoint that refuses
	// both forms cannot make us flip for ever.
	traitTriedCacheKey
	traitTriedStreamOptions
	traitTriedMax
)

// traitsFor is the first guess for a host. OpenAI's newer models know only
// max_completion_tokens; of the others all know max_tokens.
func traitsFor(host string, hosted bool) traits {
	t := traitStreamOptions
	if under(host, "openai.com") || under(host, "azure.com") {
		t |= traitMaxCompletion
	}
	// Mistral answers 422 to any extra input.
	if hosted && !under(host, "mistral.ai") {
		t |= traitCacheKey
	}
	return t
}

func under(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
