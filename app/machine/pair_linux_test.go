package machine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"localpc/app/login"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/hub"
)

// ownHub is a hub of somebody's with its pages, and its owner's browser.
type ownHub struct {
	t   *testing.T
	url string
	h   *hub.Hub
	web *http.Client
	end func()
}

func newOwnHub(t *testing.T, change ...func(*hub.Options)) *ownHub {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	o := hub.Options{Data: t.TempDir(), PublicURL: "http://" + l.Addr().String(), Name: "Anna's hub", Pages: true}
	for _, c := range change {
		c(&o)
	}
	h, err := hub.New(context.Background(), o)
	must(t, err)
	server := h.Server()
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	jar, err := cookiejar.New(nil)
	must(t, err)
	a := &ownHub{t: t, url: o.PublicURL, h: h, web: &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	ended := false
	a.end = func() {
		if !ended {
			ended = true
			server.Close()
			<-done
			must(t, h.Close())
		}
	}
	t.Cleanup(a.end)
	link, ok := h.SetupURL(t.Context())
	if !ok {
		t.Fatal("the hub has no set-up link")
	}
	u, err := url.Parse(link)
	must(t, err)
	a.post("/setup", url.Values{"token": {u.Query().Get("token")}, "name": {"Anna"}, "password": {"correct horse battery"}}, "connect a computer")
	return a
}

func (a *ownHub) read(resp *http.Response, err error) (int, string) {
	a.t.Helper()
	must(a.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(a.t, err)
	return resp.StatusCode, string(b)
}

// post sends a form of a page and wants a page with these words.
func (a *ownHub) post(path string, form url.Values, want string) string {
	a.t.Helper()
	status, body := a.read(a.web.PostForm(a.url+path, form))
	if status != 200 || !strings.Contains(body, want) {
		a.t.Fatalf("%s was answered %d %s", path, status, body)
	}
	return body
}

var (
	requestField = regexp.MustCompile(`name="request" value="([^"]+)"`)
	matchDigits  = regexp.MustCompile(`class="digits"[^>]*>(\d{4})<`)
)

// agree opens the page of a sign-in, wants the same code there as here, and
// answers. The browser then comes back to this computer.
func (a *ownHub) agree(page, match, answer string) {
	a.t.Helper()
	status, body := a.read(a.web.Get(page))
	id := requestField.FindStringSubmatch(body)
	if status != 200 || id == nil {
		a.t.Fatalf("the page is %d %s", status, body)
	}
	if m := matchDigits.FindStringSubmatch(body); match != "" && (m == nil || m[1] != match) {
		a.t.Errorf("the page shows the code %q, the Pair window %q", m, match)
	}
	a.post("/pair/answer", url.Values{"request": {id[1]}, "answer": {answer}}, "You can close this page")
}

// paired is a machine that runs, and what a person at it sees.
type paired struct {
	t      *testing.T
	m      *Machine
	probe  *probe
	opened string // the file in which a "browser" writes the page it was given
	done   chan error
	cancel context.CancelFunc
}

func newPaired(t *testing.T) *paired {
	t.Helper()
	keyring.MockInit()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	p := &paired{t: t, m: newMachine(t), probe: &probe{}, opened: filepath.Join(t.TempDir(), "opened")}
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$1\" > "+p.opened+".new && mv "+p.opened+".new "+p.opened+"\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":99")
	p.m.registry = capabilities.NewRegistry(p.m.sessions, p.m.chats, p.probe)
	p.m.o.Executors = []capabilities.Capability{p.probe}
	person := &person{m: p.m, answer: func(q consent.Request) (consent.Answer, bool) {
		c := consent.Choice{Scope: consent.Once}
		if q.Capability == consent.CapabilitySession {
			c = consent.Choice{Scope: consent.Session, Mode: consent.ModeWork, Folder: filepath.Join(os.Getenv("HOME"), "project")}
		}
		return consent.Answer{Allow: true, Choice: c, Via: "card"}, true
	}}
	must(t, os.MkdirAll(filepath.Join(os.Getenv("HOME"), "project"), 0o755))
	p.m.asks.Add(person)
	p.run()
	t.Cleanup(p.quit)
	return p
}

func (p *paired) run() {
	ctx, cancel := context.WithCancel(context.Background())
	p.done, p.cancel = make(chan error, 1), cancel
	go func() { p.done <- p.m.Run(ctx) }()
}

func (p *paired) quit() {
	p.cancel()
	if err := within(p.t, "the end", p.done); err != nil {
		p.t.Error(err)
	}
	p.done <- nil
}

// until waits for a state.
func (p *paired) until(what string, ok func(snapshot.Snapshot) bool) snapshot.Snapshot {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s := p.m.Snapshot()
		if ok(s) {
			return s
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: not within 20 s; the state is %+v", what, s)
		}
	}
}

func (p *paired) online() snapshot.Snapshot {
	p.t.Helper()
	return p.until("online", func(s snapshot.Snapshot) bool { return s.Hub.Online && s.State != snapshot.SignIn })
}

type paireds struct {
	reply snapshot.Reply
	err   error
}

// pair begins to pair, as the Pair window does.
func (p *paired) pair(in snapshot.Intent) chan paireds {
	in.Kind = snapshot.Pair
	done := make(chan paireds, 1)
	go func() { r, err := p.m.Intend(context.Background(), in); done <- paireds{r, err} }()
	return done
}

// stage waits for a stage of the sign-in.
func (p *paired) stage(stage snapshot.SignInStage) snapshot.SigningIn {
	p.t.Helper()
	s := p.until(string(stage), func(s snapshot.Snapshot) bool { return s.Connect.SignIn != nil && s.Connect.SignIn.Stage == stage })
	if !s.Connect.Pairing {
		p.t.Error("it signs in and does not pair")
	}
	return *s.Connect.SignIn
}

// page is what was opened in the browser.
func (p *paired) page() string {
	p.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(p.opened); err == nil {
			must(p.t, os.Remove(p.opened))
			return string(b)
		}
		if time.Now().After(end) {
			p.t.Fatal("no browser was opened")
		}
	}
}

func (p *paired) says(done chan paireds, want string) {
	p.t.Helper()
	r := within(p.t, "the pairing", done)
	got := r.reply.Text
	if r.err != nil {
		got = r.err.Error()
	}
	if !strings.Contains(got, want) {
		p.t.Errorf("it says %q, want %q", got, want)
	}
	s := p.m.Snapshot()
	if s.Connect.SignIn != nil || s.Connect.Pairing {
		p.t.Errorf("it pairs still: %+v", s.Connect)
	}
}

// signIn pairs with a by browser, whose person agrees.
func (p *paired) signIn(a *ownHub) {
	p.t.Helper()
	done := p.pair(snapshot.Intent{Text: a.url})
	now := p.stage(snapshot.SignInBrowser)
	if now.Kind != "own" || now.Hub != a.url || now.URL != p.page() || len(now.Match) != 4 {
		p.t.Errorf("the window has %+v", now)
	}
	a.agree(now.URL, now.Match, "yes")
	p.says(done, "Paired with Anna's hub as Anna.")
	p.online()
}

func (p *paired) tokens(hub string) (login.Tokens, error) {
	return login.Load(context.Background(), p.m.o.Keychain, login.TokenItem(hub))
}

func (p *paired) intend(kind snapshot.IntentKind) string {
	p.t.Helper()
	r, err := p.m.Intend(context.Background(), snapshot.Intent{Kind: kind})
	must(p.t, err)
	return r.Text
}

func TestOwnHubByBrowser(t *testing.T) {
	a, p := newOwnHub(t), newPaired(t)
	p.signIn(a)
	s := p.m.Snapshot()
	if s.Hub.Kind != "own" || s.Hub.Name != "Anna's hub" || s.Hub.Account != "Anna" || s.Hub.Address != a.url || s.Hub.SignIn != "kept in the keychain" || s.Problem != "" || len(s.Warnings) != 0 {
		t.Errorf("it shows %+v, %q, %q", s.Hub, s.Problem, s.Warnings)
	}
	if p.m.o.Settings.Get().Hub != a.url {
		t.Error("the settings do not have the hub")
	}
	tokens, err := p.tokens(a.url)
	if err != nil || !strings.HasPrefix(tokens.Access, "lpa_") || !strings.HasPrefix(tokens.Refresh, "lpr_") || tokens.Seconds <= 0 {
		t.Errorf("the keychain has %+v, %v", tokens, err)
	}
	_, machines := a.read(a.web.Get(a.url + "/"))
	if !strings.Contains(machines, "Online") && !strings.Contains(machines, "online") {
		t.Errorf("the hub's page does not show it: %s", machines)
	}
	// Another one, while it is paired.
	p.says(p.pair(snapshot.Intent{Text: "https://other.example"}), "paired already")

	if said := p.intend(snapshot.Unpair); said != "Unpaired." {
		t.Errorf("it says %q", said)
	}
	if _, err := p.tokens(a.url); !errors.Is(err, login.ErrMissing) {
		t.Errorf("the keychain: %v", err)
	}
	if status := tokenStatus(t, a.url, tokens); status == 200 {
		t.Error("the hub renews it still")
	}
	if s := p.m.Snapshot(); s.Hub.Paired || s.State != snapshot.Offline {
		t.Errorf("it shows %+v", s.Hub)
	}
}

// tokenStatus is the hub's answer to a renewal.
func tokenStatus(t *testing.T, hub string, k login.Tokens) int {
	t.Helper()
	resp, err := http.PostForm(k.TokenURL, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}, "client_id": {k.Client}})
	must(t, err)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode
}

func TestOwnHubByCode(t *testing.T) {
	a, p := newOwnHub(t), newPaired(t)
	done := p.pair(snapshot.Intent{Text: strings.TrimPrefix(a.url, "http://"), Way: "code"})
	now := p.stage(snapshot.SignInCode)
	if now.UserCode == "" || now.URL != a.url+"/pair" || now.Match != "" || time.Until(now.Until) > 10*time.Minute {
		t.Errorf("the window has %+v", now)
	}
	body := a.post("/pair", url.Values{"code": {strings.ToLower(now.UserCode)}}, p.m.o.Settings.Get().Name)
	if !strings.Contains(body, login.System()) {
		t.Errorf("the page does not name the system: %s", body)
	}
	a.post("/pair/answer", url.Values{"request": {requestField.FindStringSubmatch(body)[1]}, "answer": {"yes"}, "started": {"yes"}}, "")
	p.says(done, "Paired")
	p.online()
	// The hub has gone when it is unpaired.
	a.end()
	began := time.Now()
	if said := p.intend(snapshot.Unpair); !strings.Contains(said, "could not be told") || time.Since(began) > 12*time.Second {
		t.Errorf("it says %q after %s", said, time.Since(began))
	}
}

// Whatever goes wrong, an earlier pairing stays as it was, and is not even
// disturbed.
func TestPairingThatFails(t *testing.T) {
	a, p := newOwnHub(t), newPaired(t)
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	tlsElsewhere := httptest.NewTLSServer(http.NotFoundHandler())
	defer tlsElsewhere.Close()
	localhost := strings.Replace(a.url, "127.0.0.1", "localhost", 1)
	for text, want := range map[string]string{
		elsewhere.URL:        "There is no hub at " + elsewhere.URL,
		"http://127.0.0.1:1": "does not answer",
		"hub.invalid":        "could not be found",
		tlsElsewhere.URL:     "ca_file",
		"https" + strings.TrimPrefix(elsewhere.URL, "http"): "http:// in front",
		localhost:                          "calls itself " + a.url,
		"ftp://hub.example":                "no hub's address",
		"https://hub.example/?x=y":         "no hub's address",
		"https://hub.example#":             "no pairing line",
		"hub.example#lpm_1":                "no pairing line",
		"https://ann:pw@hub.example#lpm_1": "no hub's address",
		"https://hub.example?a=b#lpm_1":    "no hub's address",
		"not an address":                   "no hub's address",
	} {
		p.says(p.pair(snapshot.Intent{Text: text}), want)
		if s := p.m.Snapshot(); !strings.Contains(s.Connect.PairError, want) || s.Hub.Paired {
			t.Errorf("%s: the window says %q", text, s.Connect.PairError)
		}
	}
	p.signIn(a)
	before, err := p.tokens(a.url)
	must(t, err)
	undisturbed := func(what string) {
		t.Helper()
		after, err := p.tokens(a.url)
		if err != nil || after != before || !p.m.Snapshot().Hub.Online || p.m.o.Settings.Get().Hub != a.url {
			t.Errorf("%s: %+v, %v", what, after, err)
		}
	}
	var lost atomic.Int32
	watch, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watch.Err() == nil {
			if !p.m.Snapshot().Hub.Online {
				lost.Add(1)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()

	done := p.pair(snapshot.Intent{Text: a.url})
	now := p.stage(snapshot.SignInBrowser)
	p.page()
	p.refuses(p.pair(snapshot.Intent{Text: a.url}), "being paired already")
	a.agree(now.URL, now.Match, "no")
	p.says(done, "declined")
	undisturbed("declined")

	done = p.pair(snapshot.Intent{Text: a.url})
	now = p.stage(snapshot.SignInBrowser)
	p.page()
	p.intend(snapshot.CancelPair)
	p.says(done, "cancelled")
	if p.m.Snapshot().Connect.PairError != "" {
		t.Error("a person who cancels is told of an error")
	}
	if resp, err := http.Get(redirectOf(t, now.URL)); err == nil {
		resp.Body.Close()
		t.Error("it listens still")
	}
	undisturbed("cancelled")

	keyring.MockInitWithError(errors.New("the collection is locked"))
	p.says(p.pair(snapshot.Intent{Text: a.url}), "keychain can't be used")
	keyring.MockInit()
	must(t, login.Save(t.Context(), p.m.o.Keychain, login.TokenItem(a.url), before))
	undisturbed("locked")
	stop()
	<-watched
	if n := lost.Load(); n != 0 {
		t.Errorf("it was offline meanwhile, %d times", n)
	}
	p.intend(snapshot.CancelPair) // nothing is under way
}

// Unpair and Quit end a sign-in that is under way.
func TestSignInEndsWithItsReason(t *testing.T) {
	a, p := newOwnHub(t), newPaired(t)
	p.signIn(a)
	done := p.pair(snapshot.Intent{Text: a.url})
	p.stage(snapshot.SignInBrowser)
	p.intend(snapshot.Unpair)
	p.says(done, "cancelled")
	done = p.pair(snapshot.Intent{Text: a.url, Way: "code"})
	p.stage(snapshot.SignInCode)
	p.quit()
	p.says(done, "cancelled")
	if hub := p.m.o.Settings.Get().Hub; hub != "" {
		t.Errorf("it is paired with %q", hub)
	}
}

// refuses waits for the word to a pairing that another one stands in the way of.
func (p *paired) refuses(done chan paireds, want string) {
	p.t.Helper()
	if r := within(p.t, "the second", done); r.err == nil || !strings.Contains(r.err.Error(), want) {
		p.t.Errorf("%+v", r)
	}
}

func redirectOf(t *testing.T, page string) string {
	t.Helper()
	u, err := url.Parse(page)
	must(t, err)
	return u.Query().Get("redirect_uri")
}
