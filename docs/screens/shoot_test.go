//go:build screens

package screens

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestShoot photographs the pages into this directory.
func TestShoot(t *testing.T) {
	ctx := newBrowser(t)
	dir := t.TempDir()
	for _, p := range []struct {
		name, title, under string
		play               func(*testing.T) (middle, end []message)
	}{
		{"telegram", "Coxswain", "bot", func(t *testing.T) (m, e []message) { m, e, _ = onTelegram(t); return m, e }},
		{"discord", "# reports", "", func(t *testing.T) (m, e []message) { m, e, _ = onDiscord(t); return m, e }},
	} {
		middle, end := p.play(t)
		for when, chat := range map[string][]message{"middle": middle, "end": end} {
			for look, dark := range map[string]bool{"light": false, "dark": true} {
				html, err := draw(screen{Platform: p.name, Dark: dark, Title: p.title, Under: p.under, Messages: chat})
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, p.name+".html")
				if err := os.WriteFile(file, []byte(html), 0o600); err != nil {
					t.Fatal(err)
				}
				for width, scale := range map[int64]float64{390: 2, 1280: 1} {
					shoot(t, ctx, file, fmt.Sprintf("%s-%s-%d-%s.png", p.name, when, width, look), width, scale)
				}
			}
		}
	}
}

// shoot writes the picture of a page as wide as that and as high as it is.
func shoot(t *testing.T, ctx context.Context, file, name string, width int64, scale float64) {
	t.Helper()
	wide := func(height int64) chromedp.Action[chromedp.Void] {
		return chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale))
	}
	if err := chromedp.Do(ctx, wide(100), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	height, err := chromedp.Run(ctx, chromedp.Evaluate[int64]("Math.ceil(document.body.getBoundingClientRect().height)"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := chromedp.Do(ctx, wide(height)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(png) > photoMost {
		t.Errorf("%s has %d bytes; at most %d", name, len(png), photoMost)
	}
	if err := os.WriteFile(name, png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// newBrowser starts a headless browser with a profile of its own.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatal("no chromium, chromium-browser or google-chrome in PATH: install one to photograph the pages")
	}
	if out, _ := exec.Command("fc-list", ":lang=und-zsye").Output(); len(out) == 0 {
		t.Fatal("no font has the signs: install fonts-noto-color-emoji to photograph the pages")
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(stop)
	dir, err := os.MkdirTemp("", "coxswain-screens-*") // not t.TempDir: helpers of the browser may still write when it is removed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, stop = chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.NoFirstRun, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
	)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // it waits for the browser; how it ended is no matter
	return ctx
}
