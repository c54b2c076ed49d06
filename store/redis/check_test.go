package redis

import (
	"errors"
	"strings"
	"testing"

	"coxswain/store/redis/redistest"
)

// TestUnfitServer is F23: each unfit setting is named with its cure, and only
// Relaxed opens such a server.
func TestUnfitServer(t *testing.T) {
	fit := map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
	for setting, bad := range map[string]string{"appendonly": "no", "appendfsync": "everysec", "maxmemory-policy": "volatile-lru"} {
		srv := redistest.Start(t, setting+" "+bad)
		_, err := Open(t.Context(), srv.URL, Options{})
		var cfg *ConfigError
		if !errors.As(err, &cfg) || len(cfg.Problems) != 1 {
			t.Fatalf("%s %s: got %v; want one problem", setting, bad, err)
		}
		p := cfg.Problems[0]
		if p.Setting != setting || p.Have != bad || p.Want != fit[setting] || !strings.Contains(p.Cure, "CONFIG SET "+setting+" "+fit[setting]) {
			t.Errorf("%s %s: got %+v", setting, bad, p)
		}
		open(t, srv, func(o *Options) { o.Relaxed = true })
	}
	srv := redistest.Start(t)
	if problems := open(t, srv).Check(t.Context()); len(problems) != 0 {
		t.Errorf("a fit server: got %v; want no problem", problems)
	}
	srv.Set("appendfsync", "no")
	srv.Set("maxmemory-policy", "allkeys-lru")
	_, err := Open(t.Context(), srv.URL, Options{})
	for _, word := range []string{"appendfsync", "maxmemory-policy"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("two unfit settings: got %v; want %s named", err, word)
		}
	}
}

// TestConfigBlocked: a service that hides its settings needs the operator's
// word.
func TestConfigBlocked(t *testing.T) {
	srv := redistest.Start(t)
	srv.Do("ACL", "SETUSER", "hidden", "on", ">secret", "~*", "&*", "+@all", "-config")
	url := strings.Replace(srv.URL, "redis://", "redis://hidden:secret@", 1)
	_, err := Open(t.Context(), url, Options{Prefix: redistest.Prefix(t)})
	if err == nil || !strings.Contains(err.Error(), "CONFIG GET") || !strings.Contains(err.Error(), "durability: relaxed") {
		t.Errorf("got %v; want CONFIG GET named and relaxed offered", err)
	}
	begun(t, openAt(t, url, func(o *Options) { o.Relaxed = true }))
}

// TestLeastRights: the ACL that operators are told to use is enough.
func TestLeastRights(t *testing.T) {
	srv := redistest.Start(t)
	srv.Do("ACL", "SETUSER", "least", "on", ">secret", "~gw:*", "&gw:*", "-@all", "+@read", "+@write", "+@scripting",
		"+@pubsub", "+@connection", "+wait", "+time", "-@dangerous", "+info", "+config|get")
	s := openAt(t, strings.Replace(srv.URL, "redis://", "redis://least:secret@", 1), func(o *Options) { o.Prefix = "gw" })
	begun(t, s)
	for name, err := range everyOp(t.Context(), s) {
		if err != nil && name != "begin" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	subscribed(t, s)
}

func TestOldServer(t *testing.T) {
	for version, ok := range map[string]bool{"7.0.15": true, "8.2.0": true, "10.0.0": true, "6.2.14": false, "5.0": false, "unknown": false} {
		if got := versionProblem("# Server\r\nredis_version:" + version + "\r\nos:x\r\n"); (len(got) == 0) != ok {
			t.Errorf("version %s: got %v; want fit: %v", version, got, ok)
		}
	}
}

// TestShapeOfTheStore: the number of partitions is the store's own for ever,
// and another schema is another gateway's.
func TestShapeOfTheStore(t *testing.T) {
	srv := redistest.Start(t)
	prefix := redistest.Prefix(t)
	with := func(n int) error {
		s, err := Open(t.Context(), srv.URL, Options{Prefix: prefix, Partitions: n})
		if err != nil {
			return err
		}
		defer s.Close()
		if s.partitions != 16 {
			t.Errorf("partitions: got %d; want 16", s.partitions)
		}
		return nil
	}
	if err := with(16); err != nil {
		t.Fatalf("made with 16: got %v", err)
	}
	if err := with(0); err != nil {
		t.Errorf("opened with none given: got %v", err)
	}
	if err := with(64); err == nil || !strings.Contains(err.Error(), "16 partitions, not 64") {
		t.Errorf("opened with 64: got %v; want both numbers", err)
	}
	srv.Do("HSET", prefix+":cfg", "schema", 3)
	if err := with(16); err == nil || !strings.Contains(err.Error(), "schema 3") {
		t.Errorf("another schema: got %v; want it named", err)
	}
}

// A password with a sign that ends the host is not quoted as a port, a path, an
// option or an address, whatever comes before the sign and behind it (I13).
func TestURLsHidePasswords(t *testing.T) {
	for _, scheme := range Schemes {
		for _, sign := range []string{"#", "/", "?", "%", "?x=", "[", " ", "#/?"} {
			for _, name := range []string{"u", ""} {
				for _, pw := range []string{"hidden" + sign + "rest", "12345" + sign + "rest", sign + "rest", sign} {
					url := scheme + "://" + name + ":" + pw + "@127.0.0.1:1/0?master_name=m"
					c, _, err := connect(url, Options{}, nil)
					if c != nil {
						c.Close()
					}
					switch {
					case err == nil:
						t.Errorf("%s: it was taken", url)
					case strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "12345") || strings.Contains(err.Error(), "rest"):
						t.Errorf("%s: the password is in the error: %v", url, err)
					}
				}
			}
		}
	}
}

func TestURLs(t *testing.T) {
	for url, ok := range map[string]bool{
		"redis://127.0.0.1:6379/0": true, "rediss://u:secretpw@host": true,
		"redis+sentinel://host:26379/0?master_name=m&addr=other:26379": true, "redis+cluster://host:7000?addr=other:7001": true,
		"http://host": false, "": false, "redis://u:secretpw@host:port": false, "redis://u:secretpw@host/x": false,
	} {
		c, _, err := connect(url, Options{}, nil)
		if (err == nil) != ok {
			t.Errorf("%s: got %v; want fit: %v", url, err, ok)
		}
		if err != nil && strings.Contains(err.Error(), "secretpw") {
			t.Errorf("the password is in the error: %v", err) // I13
		}
		if c != nil {
			c.Close()
		}
	}
	if c, _, err := connect("redis+sentinel://u:a%23b@h:1/0?master_name=m&client_name=gw@one", Options{}, nil); err != nil {
		t.Errorf("an @ where it may be: %v", err)
	} else {
		c.Close()
	}
	if _, err := Open(t.Context(), "redis://127.0.0.1:1", Options{Prefix: "a{b}*"}); err == nil || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("a prefix with braces: got %v; want it refused", err)
	}
}
