//go:build linux

package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	zlog "github.com/rs/zerolog/log"
)

// A line is the network between one gateway and Redis.
type line struct {
	proxy *toxiproxy.Proxy
	on    []string // the toxics on it
}

func init() { zlog.Logger = zerolog.Nop() } // toxiproxy's toxics log there

func newLine(t *testing.T, name, redis string) *line {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &line{proxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", redis)}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

func (l *line) url() string { return "redis://" + l.proxy.Listen }

// spoil makes the line bad in one way until heal.
func (l *line) spoil(t *testing.T, kind, stream string, attributes string) {
	t.Helper()
	name := kind + "_" + stream
	body := fmt.Sprintf(`{"name":%q,"type":%q,"stream":%q,"attributes":{%s}}`, name, kind, stream, attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(body)); err != nil {
		t.Fatalf("toxic %s: %v", body, err)
	}
	l.on = append(l.on, name)
}

// heal makes the line good again. Connections that lost something end.
func (l *line) heal(t *testing.T) {
	t.Helper()
	for _, name := range l.on {
		if err := l.proxy.Toxics.RemoveToxic(zerolog.Nop().WithContext(context.Background()), name); err != nil {
			t.Fatalf("toxic %s: %v", name, err)
		}
	}
	l.on = nil
}
