//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"localpc/app/apptest"
)

// browser is Debian's Chromium, in which the person looks at the hub's pages.
type browser struct {
	t   testing.TB
	ctx context.Context
	hub string
}

// newBrowser starts one that remembers nothing.
func newBrowser(t testing.TB, hub string) *browser {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.ExecPath("/usr/bin/chromium"),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(60*time.Second))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	b := &browser{t: t, ctx: ctx, hub: hub}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("chromium does not end: %v", err)
		}
		cancel()
		stop()
	})
	// The browser lives as long as the context of the first use.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return b
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 40*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page says:\n%s", err, b.text())
	}
}

func (b *browser) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	s, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	return s
}

// phone makes the window as small as a phone's.
func (b *browser) phone() *browser {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 1, Mobile: true}); err != nil {
		b.t.Fatal(err)
	}
	return b
}

// open goes to an address, or a path of the hub.
func (b *browser) open(to string) *browser {
	b.t.Helper()
	if strings.HasPrefix(to, "/") {
		to = b.hub + to
	}
	b.run(chromedp.Navigate(to))
	return b
}

// sees waits until the page says all of it.
func (b *browser) sees(words ...string) *browser {
	b.t.Helper()
	var text string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		text = b.text()
		missing := false
		for _, w := range words {
			missing = missing || !strings.Contains(text, w)
		}
		if !missing {
			return b
		}
	}
	b.t.Fatalf("the page does not say %q:\n%s", words, text)
	return b
}

// click presses a button or link by its name.
func (b *browser) click(name string) *browser {
	b.t.Helper()
	q := chromedp.Search(fmt.Sprintf(`(//button|//a)[normalize-space()=%[1]q or @aria-label=%[1]q]`, name))
	b.run(chromedp.WaitVisible(q), chromedp.Click(q))
	return b
}

// fill types into the field with that label.
func (b *browser) fill(label, text string) *browser {
	b.t.Helper()
	q := chromedp.Search(fmt.Sprintf(`//label[contains(normalize-space(), %q)]//input`, label))
	b.run(chromedp.WaitVisible(q), chromedp.Focus(q), chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`))
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.t.Fatal(err)
	}
	return b
}

func (b *browser) tick(label string) *browser {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.Search(fmt.Sprintf(`//label[contains(normalize-space(), %q)]`, label))))
	return b
}

// word is the first word of the page with that beginning.
func (b *browser) word(prefix string) string {
	b.t.Helper()
	for _, w := range strings.FieldsFunc(b.text(), func(r rune) bool { return r == ' ' || r == '\n' || r == '=' || r == '\t' }) {
		if strings.HasPrefix(w, prefix) && !strings.HasSuffix(w, "…") {
			return w
		}
	}
	b.t.Fatalf("the page has no word that begins with %q:\n%s", prefix, b.text())
	return ""
}

const ownersPassword = "seven quiet herons wade"

// ownHub is localpc-hub as a process of its own, set up in a browser.
type ownHub struct {
	*browser
	p       *apptest.Process
	address string
	data    string
}

// startHub starts a hub in the desktop and makes Ana its owner.
func startHub(t testing.TB, d *apptest.Desktop, bin string) *ownHub {
	t.Helper()
	h := &ownHub{address: "http://" + freeAddress(t), data: filepath.Join(d.Home, "hub")}
	h.p = d.Start(filepath.Join(bin, "localpc-hub"), "serve", "--data", h.data, "--listen", strings.TrimPrefix(h.address, "http://"))
	d.WaitOutput(h.p, 20*time.Second, "set it up")
	link := ""
	for _, w := range strings.Fields(h.p.Output()) {
		if strings.HasPrefix(w, h.address+"/setup") {
			link = w
		}
	}
	h.browser = newBrowser(t, h.address)
	h.open(link).fill("Your name", "Owner").fill("Password", ownersPassword).click("Set up with this password").sees("Log out")
	return h
}

// key makes a key on the hub's page and returns the lines that a program needs.
func (h *ownHub) key(name string) []string {
	h.t.Helper()
	h.open("/keys").fill("Name of the program", name).click("Make a key").sees("Copy it now")
	return []string{"E2B_API_KEY=" + h.word("e2b_"), "E2B_API_URL=" + h.address + "/api", "E2B_SANDBOX_URL=" + h.address + "/sbx"}
}

// catchBrowser stands in for the desktop's default browser, which a test could
// not look into: the page that would be opened is written to a file.
func catchBrowser(t testing.TB, d *apptest.Desktop) (page func() string) {
	t.Helper()
	file := filepath.Join(d.Home, "opened")
	opener := filepath.Join(d.Dir, "bin", "xdg-open")
	if err := os.WriteFile(opener, []byte("#!/bin/sh\nprintf '%s' \"$1\" > '"+file+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		var b []byte
		if !d.Until(20*time.Second, func() (ok bool) {
			var err error
			b, err = os.ReadFile(file)
			return err == nil && len(b) > 0
		}) {
			t.Fatal("no page was opened in the browser")
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}
