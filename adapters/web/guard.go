package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What may be asked, in the order it is judged, before a byte of a body is read:
//
//  1. Host is a loopback name or address, unless there is a token: a page of
//     another name that was made to resolve to 127.0.0.1 is refused.
//  2. Origin, where sent, is this host.
//  3. Everything but the page's own files: Sec-Fetch-Site, where sent, is
//     same-origin or none. Browsers leave it out on plain http to other
//     machines; then Origin and the cookie's SameSite stand.
//  4. Everything but the page's own files and the login: the token, if there is
//     one, as bearer or as the login's cookie.
//  5. A POST is JSON, which no form can send and no other origin may without
//     asking first, and there is no CORS here.

// policy lets the page load its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// bodyMost is the longest body: twice the text the slot takes, for JSON's
// escapes.
const bodyMost = 128 << 10

const loginPath = "/api/login"

func (a *Adapter) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if status, why := a.refuse(r); status != 0 {
			if status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", "Bearer")
			}
			fail(w, status, why)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, bodyMost)
		next.ServeHTTP(w, r)
	})
}

// refuse judges a request; status 0 lets it pass.
func (a *Adapter) refuse(r *http.Request) (status int, why string) {
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	_, file := files[r.URL.Path]
	file = file && get
	switch {
	case a.token == "" && !isLoopback(hostOf(r.Host)):
		return http.StatusForbidden, wordsHost
	case !sameOrigin(r):
		return http.StatusForbidden, wordsForeign
	case file:
		return 0, ""
	case !sameSite(r.Header.Values("Sec-Fetch-Site")):
		return http.StatusForbidden, wordsForeign
	case a.token != "" && r.URL.Path != loginPath && !a.known(r):
		return http.StatusUnauthorized, wordsToken
	case r.Method == http.MethodPost && !isJSON(r):
		return http.StatusUnsupportedMediaType, wordsJSON
	}
	return 0, ""
}

// hostOf is a Host header without its port.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// isLoopback reports whether a name can only mean this machine. Names other
// than localhost cannot be trusted: whoever owns them says what they mean.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// sameOrigin reports whether Origin, if sent, names the host that is asked.
func sameOrigin(r *http.Request) bool {
	vs := r.Header.Values("Origin")
	if len(vs) == 0 {
		return true
	}
	u, err := url.Parse(vs[0])
	return len(vs) == 1 && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil &&
		u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

func sameSite(vs []string) bool {
	return len(vs) == 0 || len(vs) == 1 && (vs[0] == "same-origin" || vs[0] == "none")
}

func isJSON(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}

// known reports whether a request carries the token or the login's cookie.
func (a *Adapter) known(r *http.Request) bool {
	if auth := r.Header.Get("Authorization"); auth != "" {
		scheme, token, _ := strings.Cut(auth, " ")
		return strings.EqualFold(scheme, "Bearer") && a.isToken(strings.TrimSpace(token))
	}
	c, err := r.Cookie(cookieName)
	return err == nil && a.isCookie(c.Value, time.Now())
}

// isToken compares in a time that tells nothing of the token, its length
// included.
func (a *Adapter) isToken(s string) bool {
	x, y := sha256.Sum256([]byte(s)), sha256.Sum256([]byte(a.token))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// The cookie holds when it was given and a proof made with the token, never
// the token: it outlives a restart, ends with the token, and who reads it on
// its way (cookies do not keep to one port) cannot ask elsewhere with it.
const (
	cookieName = "coxswain_web"
	cookieLife = 30 * 24 * time.Hour
)

func (a *Adapter) cookie(now time.Time) string {
	given := strconv.FormatInt(now.Unix(), 10)
	return given + "." + a.proof(given)
}

func (a *Adapter) proof(given string) string {
	m := hmac.New(sha256.New, []byte(a.token))
	io.WriteString(m, "coxswain web login "+given) // a hash takes everything
	return hex.EncodeToString(m.Sum(nil))
}

func (a *Adapter) isCookie(v string, now time.Time) bool {
	given, proof, _ := strings.Cut(v, ".")
	at, err := strconv.ParseInt(given, 10, 64)
	if err != nil || subtle.ConstantTimeCompare([]byte(proof), []byte(a.proof(given))) != 1 {
		return false
	}
	age := now.Sub(time.Unix(at, 0))
	return age >= -time.Minute && age < cookieLife
}

// tries slows down guessing: at most triesMost wrong tokens a minute, by
// whomever. A right one is never refused through a bearer header.
type tries struct {
	mu    sync.Mutex
	since time.Time
	wrong int
}

const triesMost = 10

func (t *tries) spent(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.since) > time.Minute {
		t.since, t.wrong = now, 0
	}
	return t.wrong >= triesMost
}

func (t *tries) miss() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong++
}

// login answers POST /api/login with the cookie.
func (a *Adapter) login(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Token string `json:"token"`
	}
	if !read(w, r, &in) {
		return
	}
	now := time.Now()
	switch {
	case a.token == "":
		answer(w, struct{}{})
		return
	case a.tries.spent(now):
		fail(w, http.StatusTooManyRequests, wordsTries)
		return
	case !a.isToken(strings.TrimSpace(in.Token)):
		a.tries.miss()
		a.log.WarnContext(r.Context(), "web login refused", "from", r.RemoteAddr)
		fail(w, http.StatusUnauthorized, wordsBadToken)
		return
	}
	c := a.newCookie(r, a.cookie(now))
	c.MaxAge = int(cookieLife.Seconds())
	http.SetCookie(w, c)
	answer(w, struct{}{})
}

func (a *Adapter) logout(w http.ResponseWriter, r *http.Request) {
	c := a.newCookie(r, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
	answer(w, struct{}{})
}

// newCookie is one that scripts cannot read and other sites cannot send.
func (a *Adapter) newCookie(r *http.Request, value string) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/api", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// A proxy that ends TLS says so; nobody else can set this for a browser.
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}

// read decodes a body, all of it and nothing unknown, or answers the fault.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return true
		}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		fail(w, http.StatusRequestEntityTooLarge, wordsTooBig)
		return false
	}
	fail(w, http.StatusBadRequest, wordsBadBody)
	return false
}

// fail answers with a public text.
func fail(w http.ResponseWriter, status int, why string) {
	send(w, status, map[string]string{"error": why})
}

func answer(w http.ResponseWriter, v any) { send(w, http.StatusOK, v) }

func send(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("web: an answer does not encode: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(data) // whoever asked may be gone; that is theirs to notice
}
