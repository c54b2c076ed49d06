package main

import (
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// A composed is what the tests below read of docker-compose.yml.
type composed struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Profiles    []string          `yaml:"profiles"`
	Image       string            `yaml:"image"`
	Build       string            `yaml:"build"`
	Restart     string            `yaml:"restart"`
	Depends     any               `yaml:"depends_on"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	Command     []string          `yaml:"command"`
	ReadOnly    bool              `yaml:"read_only"`
	Tmpfs       []string          `yaml:"tmpfs"`
	CapDrop     []string          `yaml:"cap_drop"`
	Security    []string          `yaml:"security_opt"`
	Grace       string            `yaml:"stop_grace_period"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

func readCompose(t *testing.T) composed {
	t.Helper()
	var c composed
	if err := yaml.Unmarshal([]byte(readFile(t, "../../docker-compose.yml")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// scaleConfig is the configuration of the profile's gateways, as one with a webhook
// and a web chat has it.
func scaleConfig(t *testing.T) Config {
	t.Helper()
	workIn(t)
	for name, value := range map[string]string{
		"TELEGRAM_BOT_TOKEN": "1:token", "TELEGRAM_MODE": "webhook", "TELEGRAM_WEBHOOK_URL": "https://chat.example/telegram",
		"TELEGRAM_WEBHOOK_SECRET": strings.Repeat("s", 32), "GATEWAY_WEB_TOKEN": strings.Repeat("w", 32), "REDIS_URL": "redis://redis:6379/0",
	} {
		t.Setenv(name, value)
	}
	c, err := loadConfig(deployed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// deployed is found before a test moves elsewhere.
var deployed = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return path.Join(dir, "../../deploy/scale.yaml")
}()

const gateways = 3

// TestComposeScale holds the profile "scale" to the code: three gateways alike, each
// with its own data and all with one workspace, and without the profile what there
// was before.
func TestComposeScale(t *testing.T) {
	all := readCompose(t)
	var plain, scale []string
	for name, s := range all.Services {
		switch {
		case len(s.Profiles) == 0:
			plain = append(plain, name)
		case slices.Equal(s.Profiles, []string{"scale"}):
			scale = append(scale, name)
		}
	}
	slices.Sort(plain)
	slices.Sort(scale)
	if !slices.Equal(plain, []string{"gateway", "redis"}) || !slices.Equal(scale, []string{"balancer", "gateway1", "gateway2", "gateway3"}) {
		t.Fatalf("services %q, and with the profile %q", plain, scale)
	}
	first := all.Services["gateway1"]
	for _, name := range scale[1:] {
		s := all.Services[name]
		own := []string{name + ":/data", "workspace:/data/workspace", "./deploy/scale.yaml:/etc/gateway/config.yaml:ro"}
		if !slices.Equal(s.Volumes, own) {
			t.Errorf("%s: volumes %q; want %q", name, s.Volumes, own)
		}
		for _, v := range own[:2] {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := all.Volumes[volume]; !ok {
				t.Errorf("%s: no volume %s is declared", name, volume)
			}
		}
		s.Volumes = first.Volumes
		if !reflect.DeepEqual(s, first) {
			t.Errorf("%s differs from gateway1:\n%+v\n%+v", name, s, first)
		}
	}
	one := all.Services["gateway"]
	for name, value := range one.Environment {
		if first.Environment[name] != value {
			t.Errorf("%s is %q with the profile, %q without", name, first.Environment[name], value)
		}
	}
	if one.ReadOnly != first.ReadOnly || !slices.Equal(one.CapDrop, first.CapDrop) || !slices.Equal(one.Security, first.Security) {
		t.Error("a gateway of the profile is held less tightly")
	}
	if got := strings.Join(all.Services["redis"].Command, " "); !strings.Contains(got, "--appendonly yes --appendfsync always --maxmemory-policy noeviction") {
		t.Errorf("redis keeps not what it acknowledges: %s", got)
	}
	for name := range maps.Keys(first.Environment) {
		if strings.Contains(first.Environment[name], ":?") {
			t.Errorf("%s is required, also of who does without the profile", name)
		}
	}
	text := readFile(t, deployed)
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		if _, ok := first.Environment[m[1]]; !ok {
			t.Errorf("deploy/scale.yaml wants %s, which no gateway is given", m[1])
		}
	}

	c := scaleConfig(t)
	if got := c.Workspace.Dir; got != "/data/workspace" || c.dataDir() != "/data" {
		t.Errorf("workspace %s, data %s; want the volumes'", got, c.dataDir())
	}
	if string(c.Store.URL) != first.Environment["REDIS_URL"] || first.Environment["GATEWAY_CONFIG"] != "/etc/gateway/config.yaml" {
		t.Errorf("store %s; want %s", c.Store.URL, first.Environment["REDIS_URL"])
	}
	grace, err := time.ParseDuration(first.Grace)
	if err != nil || grace < duration(c.Limits.Drain)+15*time.Second {
		t.Errorf("stop_grace_period %s, %v; want limits.drain (%s) and what ending takes", first.Grace, err, duration(c.Limits.Drain))
	}
	_, port, err := net.SplitHostPort(c.Ops.Listen)
	if probe := strings.Join(first.Healthcheck.Test, " "); err != nil || !strings.Contains(probe, "/dev/tcp/127.0.0.1/"+port+" ") || !strings.Contains(probe, "GET /readyz ") {
		t.Errorf("the health check %q does not ask /readyz at %s", probe, c.Ops.Listen)
	}
}

var (
	serverLine  = regexp.MustCompile(`(?m)^backend (\w+)$|^    server (\S+) (\S+)$`)
	balanceLine = regexp.MustCompile(`(?m)^    bind (\S+)$`)
)

// TestBalancer holds deploy/haproxy.cfg to the gateways' configuration: every one of
// them stands behind both backends, at the port where it listens, and the webhook's
// path leads to the webhook.
func TestBalancer(t *testing.T) {
	text := readFile(t, path.Join(path.Dir(deployed), "haproxy.cfg"))
	all := readCompose(t)
	c := scaleConfig(t)
	got := map[string][]string{}
	backend := ""
	for _, m := range serverLine.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			backend = m[1]
			continue
		}
		if host, _, _ := strings.Cut(m[3], ":"); host != m[2] || len(all.Services[host].Volumes) == 0 {
			t.Errorf("%s: server %s at %s is no gateway", backend, m[2], m[3])
		}
		got[backend] = append(got[backend], m[3])
	}
	for backend, listen := range map[string]string{"telegram": c.Platforms.Telegram.Webhook.Listen, "web": c.Platforms.Web.Listen} {
		host, port, err := net.SplitHostPort(listen)
		if err != nil || host != "0.0.0.0" {
			t.Errorf("%s listens on %s; other containers do not reach that", backend, listen)
		}
		var want []string
		for i := range gateways {
			want = append(want, "gateway"+string(rune('1'+i))+":"+port)
		}
		if !slices.Equal(got[backend], want) {
			t.Errorf("backend %s has %q; want %q", backend, got[backend], want)
		}
	}
	u, err := url.Parse(c.Platforms.Telegram.Webhook.URL)
	if err != nil || !strings.Contains(text, "use_backend telegram if { path "+u.Path+" }\n    default_backend web\n") {
		t.Errorf("%s does not lead to the webhook: %v", u, err)
	}
	bind := balanceLine.FindStringSubmatch(text)
	ports := all.Services["balancer"].Ports
	if len(bind) != 2 || len(ports) != 1 || !strings.HasSuffix(ports[0], bind[1]) || !strings.HasPrefix(ports[0], "127.0.0.1:") {
		t.Errorf("it binds %q and publishes %q", bind, ports)
	}
	// A webhook request waits up to 25 s to be stored; what is cut off comes again.
	if !strings.Contains(text, "retry-on conn-failure empty-response 503\n") || !strings.Contains(text, "timeout server 75s\n") {
		t.Error("what one gateway does not take is not brought to another")
	}
}
