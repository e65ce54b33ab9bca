package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"localpc/tunnel/hub/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hub is a sign-in server behind real HTTP, with a clock to set.
type hub struct {
	*Face
	t     *testing.T
	dir   string
	url   string
	http  *http.Client
	serve *httptest.Server

	mu      sync.Mutex
	clock   time.Time // guarded by mu
	revoked []string  // guarded by mu
	logs    *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (h *hub) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = h.clock.Add(d)
}

func (h *hub) ended() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.revoked...)
}

func start(t *testing.T, change ...func(*Options)) *hub {
	t.Helper()
	return startIn(t, t.TempDir(), change...)
}

func startIn(t *testing.T, dir string, change ...func(*Options)) *hub {
	t.Helper()
	st, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{t: t, dir: dir, clock: time.Now(), logs: &lockedBuffer{}}
	var face *Face
	h.serve = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/oauth/"), strings.HasPrefix(r.URL.Path, "/.well-known/"):
			face.Handler().ServeHTTP(w, r)
		default:
			face.AutoGPT().ServeHTTP(w, r)
		}
	}))
	h.url = h.serve.URL
	// As a browser before a person: it goes nowhere by itself.
	h.http = &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	o := Options{Store: st, Issuer: h.url, Log: slog.New(slog.NewTextHandler(h.logs, nil)),
		Now: func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.clock },
		Revoked: func(signIn, _ string) {
			if live, err := st.SignInLive(context.Background(), signIn); err != nil || live {
				t.Errorf("told of the end of %s, which lives: %v, %v", signIn, live, err)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.revoked = append(h.revoked, signIn)
		},
		DevicePoll: time.Second,
	}
	for _, c := range change {
		c(&o)
	}
	if face, err = New(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	h.Face = face
	t.Cleanup(h.stop)
	return h
}

func (h *hub) stop() {
	if h.serve == nil {
		return
	}
	h.serve.Close()
	h.http.CloseIdleConnections()
	if err := h.Face.Close(); err != nil {
		h.t.Error(err)
	}
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
	h.serve = nil
}

func (h *hub) ctx() context.Context {
	return context.WithValue(h.t.Context(), oauth2.HTTPClient, h.http)
}

const redirect = "http://127.0.0.1:53682/callback"

func (h *hub) config() *oauth2.Config {
	return &oauth2.Config{ClientID: ClientID, RedirectURL: redirect, Scopes: []string{"openid", "offline_access", "machine"},
		Endpoint: oauth2.Endpoint{AuthURL: h.url + "/oauth/authorize", TokenURL: h.url + "/oauth/token",
			DeviceAuthURL: h.url + "/oauth/device_authorization", AuthStyle: oauth2.AuthStyleInParams}}
}

func about(machine string) []oauth2.AuthCodeOption {
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("machine_id", machine), oauth2.SetAuthURLParam("machine_name", "Mac-1"),
		oauth2.SetAuthURLParam("machine_system", "Debian GNU/Linux 12, x86_64"), oauth2.SetAuthURLParam("match", "0417")}
}

// ask goes to the pairing page, and gives the id of what waits.
func (h *hub) ask(authURL string) string {
	h.t.Helper()
	resp, err := h.http.Get(authURL)
	if err != nil {
		h.t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	at, err := resp.Location()
	if err != nil || resp.StatusCode != http.StatusFound || !strings.HasPrefix(at.String(), h.url+"/pair?request=") {
		h.t.Fatalf("status %d, location %v, %v: %s", resp.StatusCode, at, err, body)
	}
	return at.Query().Get("request")
}

// answered reads the code out of the redirect to the program.
func (h *hub) approve(id string) url.Values {
	h.t.Helper()
	to, err := h.Approve(h.t.Context(), id, "owner")
	if err != nil {
		h.t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, redirect+"?") && u.Hostname() != "localhost" {
		h.t.Fatalf("the answer goes to %s, %v", to, err)
	}
	return u.Query()
}

// signIn goes the whole way with golang.org/x/oauth2.
func (h *hub) signIn(machine string) *oauth2.Token {
	h.t.Helper()
	conf, verifier := h.config(), oauth2.GenerateVerifier()
	id := h.ask(conf.AuthCodeURL("the state", append(about(machine), oauth2.S256ChallengeOption(verifier))...))
	token, err := conf.Exchange(h.ctx(), h.approve(id).Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

func (h *hub) live(access string) bool {
	h.t.Helper()
	_, err := h.Access(h.t.Context(), access)
	if err != nil && err != store.ErrNotFound {
		h.t.Fatal(err)
	}
	return err == nil
}

func (h *hub) refreshed(refresh string) (*oauth2.Token, error) {
	return h.config().TokenSource(h.ctx(), &oauth2.Token{RefreshToken: refresh}).Token()
}

// post sends a form and gives the status and the JSON of the answer.
func (h *hub) post(path string, form url.Values) (int, map[string]any) {
	h.t.Helper()
	return h.send(path, "application/x-www-form-urlencoded", form.Encode(), "")
}

func (h *hub) send(path, kind, body, bearer string) (int, map[string]any) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := h.http.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Cache-Control") != "no-store" {
		h.t.Errorf("%s may be cached", path)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	var out map[string]any
	if len(data) > 0 {
		if err := json.Unmarshal(data, &out); err != nil {
			h.t.Fatalf("%s: %d %s", path, resp.StatusCode, data)
		}
	}
	return resp.StatusCode, out
}

var loopbackAddr = netip.MustParseAddr("127.0.0.1")
