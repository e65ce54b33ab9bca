package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"go.uber.org/goleak"
)

var chromium context.Context // the one browser of all tests

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "chromium")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
		// Chromium without its windows, which cost more than all the pages.
		options = append(options, chromedp.UserDataDir(dir), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.ExecPath("/usr/bin/chromium-headless-shell"),
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(60*time.Second))
		alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
		defer stop()
		var cancel context.CancelFunc
		chromium, cancel = chromedp.NewContext(alloc)
		if err := chromedp.Do(chromium); err != nil {
			fmt.Fprintln(os.Stderr, "chromium does not start:", err)
			cancel()
			return 1
		}
		code := m.Run()
		if err := chromedp.Cancel(chromium); err != nil {
			fmt.Fprintln(os.Stderr, "chromium does not end:", err)
			code = 1
		}
		cancel()
		stop()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	}())
}

const npmDir = "testdata/npm"

// axe is axe-core as its lock file has it. The site serves it: so the browser
// keeps it, compiled.
var axe = sync.OnceValues(func() ([]byte, error) {
	path := filepath.Join(npmDir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(path); err != nil {
		cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
		cmd.Dir, cmd.Stderr = npmDir, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(path)
})

// size of a window, in CSS pixels.
type size struct {
	name          string
	width, height int64
	mobile        bool
}

var (
	desk  = size{"desk", 1280, 800, false}
	phone = size{"phone", 390, 844, true}
)

// bothSizes runs a test as on a desk and as on a phone.
func bothSizes(t *testing.T, do func(t *testing.T, z size)) {
	for _, z := range []size{desk, phone} {
		t.Run(z.name, func(t *testing.T) {
			t.Parallel()
			do(t, z)
		})
	}
}

// tab is a page of a browser that remembers nothing of other tests.
type tab struct {
	t    *testing.T
	ctx  context.Context
	site *site
	size size

	mu         sync.Mutex
	complaints []string // guarded by mu
}

func (s *site) browser(z size) *tab {
	s.t.Helper()
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	s.t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 100*time.Second)
	s.t.Cleanup(stop)
	b := &tab{t: s.t, ctx: ctx, site: s, size: z}
	b.resize(z.width)
	// What the browser complains of, such as a breach of the content policy, is
	// an error.
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, "the page threw: "+e.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			if e.Entry.Source == cdplog.EntrySourceSecurity || e.Entry.Source == cdplog.EntrySourceJavascript {
				b.complaints = append(b.complaints, e.Entry.Text)
			}
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			b.t.Errorf("the browser complains: %s", c)
		}
	})
	return b
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v\nat %s:\n%s", err, b.url(), b.text())
	}
}

// call sends the browser one command.
func call[P, R any](b *tab, cmd cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, cmd, params)
	if err != nil {
		b.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return r
}

func (b *tab) resize(width int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: b.size.height, DeviceScaleFactor: 1, Mobile: b.size.mobile})
}

func (b *tab) url() string {
	s, _ := chromedp.Run(b.ctx, chromedp.Location())
	return s
}

func (b *tab) text() string {
	s, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	return s
}

// js gives what an expression is in the page.
func js[T any](b *tab, expr string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expr, options...))
	if err != nil {
		b.t.Fatalf("%v\nat %s:\n%s", err, b.url(), b.text())
	}
	return v
}

// open goes to an address, or to a path of the site.
func (b *tab) open(to string) *tab {
	b.t.Helper()
	if strings.HasPrefix(to, "/") {
		to = b.site.url + to
	}
	b.run(chromedp.Navigate(to))
	return b
}

// sees waits until the page says all of it.
func (b *tab) sees(words ...string) *tab {
	b.t.Helper()
	var text string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		text = b.text()
		missing := false
		for _, w := range words {
			missing = missing || !strings.Contains(text, w)
		}
		if !missing {
			return b
		}
	}
	b.t.Fatalf("the page %s does not say %q:\n%s", b.url(), words, text)
	return b
}

func (b *tab) seesNot(words ...string) *tab {
	b.t.Helper()
	text := b.text()
	for _, w := range words {
		if strings.Contains(text, w) {
			b.t.Errorf("the page %s says %q:\n%s", b.url(), w, text)
		}
	}
	return b
}

func named(name string) chromedp.Search {
	return chromedp.Search(fmt.Sprintf(`(//button|//a)[normalize-space()="%[1]s" or @aria-label="%[1]s"]`, name))
}

// press presses the button or link with that name.
func (b *tab) press(name string) *tab {
	b.t.Helper()
	b.run(chromedp.WaitVisible(named(name)), chromedp.Click(named(name)))
	return b
}

// click presses it and waits for the page to which it leads.
func (b *tab) click(name string) *tab {
	b.t.Helper()
	return b.leads(name, func() { b.press(name) })
}

func (b *tab) leads(name string, do func()) *tab {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](`document.documentElement.id = "old"`))
	do()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		fresh, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && document.documentElement.id !== "old"`))
		if err == nil && fresh {
			return b
		}
	}
	b.t.Fatalf("%q leads nowhere; the page says:\n%s", name, b.text())
	return b
}

// fill types into the field with that label.
func (b *tab) fill(label, text string) *tab {
	b.t.Helper()
	q := chromedp.Search(fmt.Sprintf(`//label[contains(normalize-space(), %q)]//input`, label))
	b.run(chromedp.WaitVisible(q), chromedp.Focus(q), chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`))
	call(b, input.InsertText, input.InsertTextParams{Text: text})
	return b
}

func (b *tab) tick(label string) *tab {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.Search(fmt.Sprintf(`//label[contains(normalize-space(), %q)]`, label))))
	return b
}

// logIn lets the browser in with a password, without the page for it.
func (b *tab) logIn(name string) *tab {
	b.t.Helper()
	k, hidden := b.site.caller().logIn(name).cookie(), true
	call(b, network.SetCookie, network.SetCookieParams{Name: k.Name, Value: k.Value, URL: b.site.url + "/", HTTPOnly: &hidden, SameSite: network.CookieSameSiteLax})
	return b
}

// passkeys gives the browser a fingerprint reader that always agrees.
func (b *tab) passkeys(transport webauthn.AuthenticatorTransport) *tab {
	b.t.Helper()
	call(b, webauthn.Enable, webauthn.EnableParams{})
	call(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: transport, HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}})
	return b
}

// key presses one key.
func (b *tab) key(k string) *tab {
	b.t.Helper()
	b.run(chromedp.KeyEvent(k))
	return b
}

// enter presses Enter and waits for the page to which it leads.
func (b *tab) enter() *tab {
	b.t.Helper()
	return b.leads("Enter", func() { b.key(kb.Enter) })
}

// focused is the name of what has the keyboard.
func (b *tab) focused() string {
	b.t.Helper()
	return js[string](b, `(e => e.labels && e.labels.length ? e.labels[0].innerText.split("\n")[0].trim() : (e.getAttribute("aria-label") || e.innerText || "").trim())(document.activeElement)`)
}

// tabTo presses Tab until what is named has the keyboard, and sees that every
// stop on the way shows it.
func (b *tab) tabTo(name string) *tab {
	b.t.Helper()
	var seen []string
	for range 40 {
		b.key(kb.Tab)
		shown := js[bool](b, `(e => e === document.body || getComputedStyle(e).outlineStyle !== "none" && parseFloat(getComputedStyle(e).outlineWidth) >= 2)(document.activeElement)`)
		f := b.focused()
		if !shown {
			b.t.Errorf("%q has the keyboard and does not show it", f)
		}
		if f == name {
			return b
		}
		seen = append(seen, f)
	}
	b.t.Fatalf("Tab does not reach %q; it went over %q", name, seen)
	return b
}

// What axe-core looks for. Another theme changes colours alone.
const (
	allRules = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`
	colours  = `["color-contrast", "link-in-text-block"]`
)

// check looks at a page as it is: axe-core finds nothing in light and in dark,
// nothing sticks out sideways at this size, at 320 pixels and at 200 %, and
// what is pressed is 24 pixels high and wide.
func (b *tab) check(name string) *tab {
	b.t.Helper()
	if problem := js[string](b, `import("/axe.min.js").then(() => "", String)`, chromedp.EvalAwaitPromise); problem != "" {
		b.t.Fatalf("axe-core: %s", problem)
	}
	b.axe(name, "light", allRules)
	b.shoot(name + "-" + b.size.name + "-light")
	b.axe(name, "dark", colours)
	b.shoot(name + "-" + b.size.name + "-dark")
	for _, width := range []int64{b.size.width, b.size.width / 2, 320} {
		if width < 320 {
			continue // WCAG asks for no less
		}
		b.resize(width)
		if wide := js[int64](b, `document.documentElement.scrollWidth`); wide > width {
			b.t.Errorf("%s at %d pixels is %d wide", name, width, wide)
		}
	}
	for _, small := range js[[]string](b, `[...document.querySelectorAll("button, input:not([type=hidden]), .btn, nav a, .brand")].filter(e => e.offsetParent).map(e => [e, e.getBoundingClientRect()]).filter(([e, r]) => r.width < 24 || r.height < 24).map(([e, r]) => e.outerHTML + " " + r.width + "×" + r.height)`) {
		b.t.Errorf("%s: too small to press: %s", name, small)
	}
	b.shoot(name + "-320")
	b.resize(b.size.width)
	return b
}

// axe has axe-core look at the page in a theme.
func (b *tab) axe(name, theme, rules string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	found := js[string](b, `axe.run(document, {runOnly: `+rules+`, resultTypes: ["violations"], preload: false}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join(" / "))))`, chromedp.EvalAwaitPromise)
	var list []string
	if err := json.Unmarshal([]byte(found), &list); err != nil {
		b.t.Fatalf("axe-core said %q: %v", found, err)
	}
	for _, v := range list {
		b.t.Errorf("%s, %s, %s: axe-core: %s", name, b.size.name, theme, v)
	}
}

// shoot keeps a picture of the whole page where PAGES_PICTURES says.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("PAGES_PICTURES")
	if dir == "" {
		return
	}
	whole := true
	png := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole}).Data
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// withoutScripts keeps the pages' script from the browser.
func (b *tab) withoutScripts() *tab {
	b.t.Helper()
	call(b, network.Enable, network.EnableParams{})
	call(b, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: b.site.url + "/web/app.js*", Block: true}}})
	return b
}

// Where a passkey lies: in the device, or in a key that is plugged in.
const (
	builtIn = webauthn.AuthenticatorTransportInternal
	plugged = webauthn.AuthenticatorTransportUsb
)
