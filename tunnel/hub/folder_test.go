//go:build unix

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"localpc/tunnel"
	machineend "localpc/tunnel/autogpt"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

const harbour = "a quiet harbour at noon"

// page is a browser's page.
type page struct {
	t   *testing.T
	ctx context.Context
}

func newPage(t *testing.T) *page {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(options, chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.ExecPath("/usr/bin/chromium-headless-shell"), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(60*time.Second))...)
	tab, cancel := chromedp.NewContext(alloc)
	if err := chromedp.Do(tab); err != nil {
		cancel()
		stop()
		t.Fatalf("chromium does not start: %v", err)
	}
	ctx, late := context.WithTimeout(tab, 90*time.Second)
	t.Cleanup(func() {
		late()
		if err := chromedp.Cancel(tab); err != nil {
			t.Errorf("chromium does not end: %v", err)
		}
		cancel()
		stop()
	})
	return &page{t, ctx}
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page says:\n%s", err, p.text())
	}
}

func (p *page) text() string {
	s, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	return s
}

func (p *page) sees(words string) *page {
	p.t.Helper()
	eventually(p.t, "the page says "+words, func() bool { return strings.Contains(p.text(), words) })
	return p
}

// click presses the link or button with that name.
func (p *page) click(name string) *page {
	p.t.Helper()
	q := chromedp.Search(fmt.Sprintf(`(//button|//a)[normalize-space()="%[1]s" or @aria-label="%[1]s"]`, name))
	p.run(chromedp.WaitVisible(q), chromedp.Click(q))
	return p
}

// create makes a sandbox as an E2B client does.
func create(t *testing.T, url, key string) (int, string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", url+"/api/sandboxes", strings.NewReader(`{"templateID":"base"}`))
	req.Header.Set("X-API-KEY", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A person sets the hub up, chooses a folder of the companion's computer on the
// page, and a program works there. The computer's program ends on the way.
func TestAFolderIsChosenOnThePage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if err := os.MkdirAll(filepath.Join(s.home, "work", "shop"), 0o755); err != nil {
		t.Fatal(err)
	}
	link, ok := s.SetupURL(t.Context())
	if !ok {
		t.Fatal("the hub has no set-up link")
	}
	p := newPage(t)
	p.run(chromedp.Navigate(s.url + strings.TrimPrefix(link, "http://127.0.0.1")))
	p.run(chromedp.SendKeys(chromedp.Search(`//input[@name="name"]`), "Ana"), chromedp.SendKeys(chromedp.Search(`//input[@name="password"]`), harbour))
	p.click("Set up with this password").sees("No folder yet: programs can't work here")
	key, err := s.MakeKey(t.Context(), "Test program")
	if err != nil {
		t.Fatal(err)
	}
	if status, body := create(t, s.url, key); status != http.StatusPreconditionFailed || !strings.Contains(body, "/folder") {
		t.Errorf("without a folder: %d %s", status, body)
	}
	home := filepath.Base(s.home)
	p.click("Choose a folder for Workshop").click("Open " + home).sees("Use this folder")
	s.stop()
	s.online(false)
	p.click("Open work").sees("It is not connected")
	s.start()
	p.click("Look again").sees("The list had ended")
	p.click("Open " + home).click("Open work").click("Open shop").sees("There is no folder in here.").click("Use this folder")
	folder := filepath.Join(s.home, "work", "shop")
	p.sees("Programs work in " + folder)

	status, body := create(t, s.url, key)
	var made struct{ SandboxID string }
	if err := json.Unmarshal([]byte(body), &made); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	out, _, err := s.run(store.Sandbox{ID: made.SandboxID, User: store.OwnerID, Machine: workshop}, "pwd", 5000)
	if err != nil || out != "stdout:"+folder+"\n" {
		t.Errorf("it works in %q, %v", out, err)
	}
	s.dropsNothing()
}

// asked is a computer of our own that asks its person before it shows folders,
// and does not lend its home.
type asked struct {
	answer chan error
	looks  atomic.Int64
	ended  atomic.Int64
}

func (a *asked) Reset() {}

func (a *asked) List(ctx context.Context, d msg.DirectoryList) (msg.Directory, error) {
	out := msg.Directory{BrowseID: "b1", ExpiresAt: float64(time.Now().Unix() + 300)}
	here := &msg.DirectoryRef{Ref: "r1", Name: "ana", Path: "/home/ana"}
	switch {
	case d.BrowseID == nil:
		a.looks.Add(1)
		select {
		case err := <-a.answer:
			out.Entries = msg.List[msg.DirectoryRef]{*here}
			return out, err
		case <-ctx.Done():
			return out, ctx.Err()
		}
	case *d.BrowseID != "b1" || *d.DirectoryRef != "r1":
		return out, wire.Errorf(msg.CodeReferenceInvalid, "There is no such browse.")
	}
	out.Current = here
	return out, nil
}

func (a *asked) Attach(context.Context, msg.Attach) (msg.Binding, error) {
	return msg.Binding{}, wire.Errorf(msg.CodeUnavailable, "The folder /home/ana can't be lent: it is the home itself.")
}

func (a *asked) Activate(context.Context, msg.Activate) (msg.Binding, error) {
	return msg.Binding{}, wire.Errorf(msg.CodeNotAttached, "Not bound.")
}

func (a *asked) Restore(context.Context, msg.Restore) (msg.Binding, error) {
	return msg.Binding{}, wire.Errorf(msg.CodeGrantInvalid, "Not known.")
}

func (a *asked) Detach(context.Context, string) error { a.ended.Add(1); return nil }

// Our own program, paired as AutoGPT's, asks its person; and what it does not
// lend is refused on the page, not when a program starts.
func TestAFolderWhosePersonIsAsked(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data, o.Pages, o.PublicURL = data, true, "http://127.0.0.1" })
	token := tunneltest.CompanionToken(t, data)
	folders := &asked{answer: make(chan error)}
	c, err := machineend.New(machineend.Options{URL: b.url, HubName: "Test hub", Token: func(context.Context) (string, error) { return token, nil },
		Hello: func() msg.Hello {
			return msg.Hello{ShimVersion: "1.0", Protocol: msg.Version, MachineID: workshop, DisplayName: "Workshop", Platform: "linux", Arch: "x86_64", Capabilities: msg.List[string]{"files"}}
		},
		Folders: folders,
		Handler: func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
			return "", nil, wire.Errorf(wire.CodeNotSupported, "Nothing is asked here.")
		},
		Timings: machineend.Timings{BackoffBase: 10 * time.Millisecond, Control: 200 * time.Millisecond}, Log: tunneltest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	eventually(t, "the computer is connected", func() bool { return b.Online() == 1 })

	link, _ := b.SetupURL(t.Context())
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	read := func(resp *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return html.UnescapeString(string(body))
	}
	says := func(page, words string) {
		t.Helper()
		if !strings.Contains(page, words) {
			t.Errorf("the page does not say %q:\n%s", words, page)
		}
	}
	says(read(client.PostForm(b.url+"/setup", url.Values{"token": {u.Query().Get("token")}, "name": {"Ana"}, "password": {harbour}})), "Choose a folder for Workshop")
	at := b.url + "/machines/" + workshop + "/folder"
	says(read(client.Get(at)), "Click Allow there, then look again.")
	says(read(client.Get(at)), "Click Allow there, then look again.")
	folders.answer <- nil
	list := read(client.Get(at))
	says(list, "Open ana")
	if n := folders.looks.Load(); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
	to := regexp.MustCompile(`href="([^"]*)" aria-label="Open ana"`).FindStringSubmatch(list)
	if to == nil {
		t.Fatal("there is no link to the folder")
	}
	says(read(client.Get(b.url+to[1])), "Use this folder")
	says(read(client.PostForm(at, url.Values{"look": {"b1"}, "in": {"r1"}})), "The folder was not set. It says: “The folder /home/ana can't be lent: it is the home itself.”")
	go func() { folders.answer <- wire.Errorf(wire.CodeDenied, "The person said no.") }()
	says(read(client.Get(at)), "It says: “The person said no.”")
	kept, err := store.Open(t.Context(), data)
	must(t, err)
	defer kept.Close()
	if folder, err := kept.Folder(t.Context(), store.OwnerID, workshop); err != nil || folder != "" {
		t.Errorf("kept %q, %v", folder, err)
	}
}
