package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/hub/web"
)

const password = "a quiet harbour at noon"

// site is a hub's data, its sign-in and its pages, at http://localhost:PORT.
type site struct {
	t     *testing.T
	store *store.Store
	oauth *oauth.Face
	web   *web.Face
	url   string
	port  string

	mu     sync.Mutex
	ahead  time.Duration // how far the pages' clock is ahead
	checks int           // how often the hub was told to look again
	logs   strings.Builder
	disk   disk // of every computer that speaks AutoGPT's wire
}

func (s *site) Capabilities(machine string) []string {
	if machine == "m-on" {
		return []string{"session", "files", "shell", "computer", "hardware", "llm"}
	}
	return nil
}

func (s *site) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks++
}

func (s *site) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.Write(p)
}

func (s *site) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// pass sets the clock of pages and sign-in forward.
func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

func newSite(t *testing.T) *site {
	t.Helper()
	return siteOf(t, t.TempDir())
}

// siteOf is a site with the data in dir.
func siteOf(t *testing.T, dir string) *site {
	t.Helper()
	s := &site{t: t}
	var err error
	if s.store, err = store.Open(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	s.url = "http://localhost:" + s.port
	log := logTo(s)
	if s.oauth, err = oauth.New(context.Background(), oauth.Options{Store: s.store, Issuer: s.url, Resource: s.url + "/mcp", Log: log, Now: s.now}); err != nil {
		t.Fatal(err)
	}
	s.web, err = web.New(web.Options{Store: s.store, OAuth: s.oauth, Hub: s, PublicURL: s.url, Name: "Ana’s hub", Log: log, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/oauth/", s.oauth.Handler())
	mux.Handle("/auth/", s.oauth.AutoGPT())
	mux.HandleFunc("/axe.min.js", func(w http.ResponseWriter, r *http.Request) {
		source, err := axe()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/javascript")
		w.Header().Set("Cache-Control", "max-age=3600, immutable")
		_, _ = w.Write(source)
	})
	mux.Handle("/", s.web.Handler())
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := s.oauth.Close(); err != nil {
			t.Error(err)
		}
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// owned is a site whose owner is Ana with a password.
func owned(t *testing.T) *site {
	t.Helper()
	data, err := setUp()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, dataName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return siteOf(t, dir)
}

const dataName = "hub.db"

// setUp is the data of a hub whose owner is Ana: made once, as the password's
// hash and the migrations take their time.
var setUp = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "hub")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s, err := store.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	token, err := s.SetupToken(ctx)
	if err == nil {
		_, err = s.Claim(ctx, token, store.Claim{Name: "Ana", Password: password})
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, dataName))
})

// machine connects a computer of a user's; it says goodbye unless online.
func (s *site) machine(user, id, name string, online bool) {
	s.t.Helper()
	if _, err := s.store.AddMachineToken(s.t.Context(), user, id, name, false); err != nil {
		s.t.Fatal(err)
	}
	epoch, err := s.store.Connected(s.t.Context(), store.Machine{ID: id, User: user, Name: name, Platform: "linux", Arch: "x86_64", Software: "localpc/1"})
	if err != nil {
		s.t.Fatal(err)
	}
	if !online {
		if err := s.store.Disconnected(s.t.Context(), id, epoch); err != nil {
			s.t.Fatal(err)
		}
	}
}

// member adds a person with a password.
func (s *site) member(name string) store.User {
	s.t.Helper()
	_, invite, err := s.store.AddUser(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := s.store.Claim(s.t.Context(), invite, store.Claim{Password: password})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// program waits on a loopback address as localpc does, and gives what the
// browser brought it.
type program struct {
	redirect string
	answers  chan url.Values
}

func newProgram(t *testing.T) *program {
	t.Helper()
	return programAt(t, "127.0.0.1:0")
}

func programAt(t *testing.T, address string) *program {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{answers: make(chan url.Values, 4)}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/callback" {
			http.NotFound(w, r)
			return
		}
		p.answers <- r.URL.Query()
		fmt.Fprint(w, "<!doctype html><title>Local PC</title><p>You can close this page.")
	})}}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p.redirect = server.URL + "/callback"
	return p
}

// asks is where the program sends the browser.
func (s *site) asks(redirect, machine, name, match string) string {
	return s.url + "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {"localpc"}, "redirect_uri": {redirect},
		"scope": {"openid offline_access machine"}, "state": {"a-state-of-the-program"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
		"machine_id": {machine}, "machine_name": {name}, "machine_system": {"Debian GNU/Linux 12, x86_64"}, "match": {match}}.Encode()
}

// device asks for a code to type, as a computer without a browser does.
func (s *site) device(machine, name string) string {
	s.t.Helper()
	resp, err := client.PostForm(s.url+"/oauth/device_authorization", url.Values{"client_id": {"localpc"}, "scope": {"openid offline_access machine"},
		"machine_id": {machine}, "machine_name": {name}, "machine_system": {"Raspberry Pi OS, arm64"}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var answer struct {
		UserCode string `json:"user_code"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.UserCode == "" {
		s.t.Fatalf("device_authorization: %d %s, %v", resp.StatusCode, body, err)
	}
	return answer.UserCode
}

// client keeps no connections, so that nothing outlives a test.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       20 * time.Second,
}

// redeem asks for the tokens of a code, as the program does.
func (s *site) redeem(redirect, code string) {
	s.t.Helper()
	resp, err := client.PostForm(s.url+"/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {"localpc"}, "code": {code},
		"redirect_uri": {redirect}, "code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		s.t.Fatalf("token: %d %s", resp.StatusCode, body)
	}
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
