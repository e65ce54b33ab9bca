package hub_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// signInBench is a hub with pages, and its data in this test's hands.
type signInBench struct {
	*bench
	store *store.Store
	data  string
}

func newSignInBench(t *testing.T, change ...func(*hub.Options)) *signInBench {
	t.Helper()
	dir := t.TempDir()
	b := newBench(t, append([]func(*hub.Options){func(o *hub.Options) { o.Data, o.Pages, o.PublicURL = dir, true, "http://127.0.0.1" }}, change...)...)
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &signInBench{b, s, dir}
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
}

func (b *signInBench) post(t *testing.T, path string, form url.Values, into any) {
	t.Helper()
	form.Set("client_id", "localpc")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
	}
}

// signIn is a device's sign-in for a user, who says yes.
func (b *signInBench) signIn(t *testing.T, user, machine, scope string) tokens {
	t.Helper()
	var d struct {
		Device string `json:"device_code"`
		User   string `json:"user_code"`
	}
	b.post(t, "/oauth/device_authorization", url.Values{"scope": {scope}, "machine_id": {machine}, "machine_name": {"Mac-1"}, "machine_system": {"Debian"}}, &d)
	now := b.store.Steady()
	r, err := b.store.WaitingDevice(t.Context(), now, strings.ReplaceAll(d.User, "-", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.ApproveSignIn(t.Context(), now, r.ID, user, "", time.Minute); err != nil {
		t.Fatal(err)
	}
	return b.token(t, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {d.Device}})
}

func (b *signInBench) token(t *testing.T, form url.Values) tokens {
	t.Helper()
	var got tokens
	b.post(t, "/oauth/token", form, &got)
	if got.Access == "" {
		t.Fatalf("no token: %s", got.Error)
	}
	return got
}

func (b *signInBench) refresh(t *testing.T, refresh string) tokens {
	t.Helper()
	return b.token(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
}

const scopes = "openid offline_access machine"

// A computer is told whose it is, so that its person sees who has agreed. The
// owner has no name until they have set the hub up.
func TestAccount(t *testing.T) {
	t.Parallel()
	b := newSignInBench(t)
	account := func(user, machine string) string {
		r := mustDial(t, b.url, b.signIn(t, user, machine, scopes).Access)
		r.send(wire.TypeHello, "", hello(machine))
		ack, ok := r.read().Payload.(*wire.HelloAck)
		if !ok {
			t.Fatal("HELLO was answered with something else")
		}
		return ack.Account
	}
	if got := account(store.OwnerID, "m1"); got != "" {
		t.Errorf("a hub that nobody has set up has the account %q", got)
	}
	mallory, _, err := b.store.AddUser(t.Context(), "Mallory")
	if err != nil {
		t.Fatal(err)
	}
	if got := account(mallory.ID, "m2"); got != "Mallory" {
		t.Errorf("account %q", got)
	}
	token, err := b.store.SetupToken(t.Context())
	if err == nil {
		_, err = b.store.Claim(t.Context(), token, store.Claim{Name: "Ana", Password: "a quiet harbour at noon"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := account(store.OwnerID, "m3"); got != "Ana" {
		t.Errorf("account %q", got)
	}
	// Still theirs while they choose anew how to log in.
	if _, err := b.store.ResetUser(t.Context(), store.OwnerID); err != nil {
		t.Fatal(err)
	}
	if got := account(store.OwnerID, "m4"); got != "Ana" {
		t.Errorf("account %q", got)
	}
}

// A newer token of the same sign-in keeps a connection beyond the first one's
// end, with what is under way; without one it ends with 4401.
func TestAuthorizeExtends(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second
	b := newSignInBench(t, func(o *hub.Options) { o.AccessTTL = ttl })
	first := b.signIn(t, store.OwnerID, "m1", scopes)
	began := time.Now()
	r := b.join(t, first.Access, hello("m1"))
	s, err := b.Do(t.Context(), on("m1"), wire.TypeProcessStart, &wire.ProcessStart{SessionID: "s", Cmd: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	time.Sleep(ttl / 2)
	next := b.refresh(t, first.Refresh)
	renewed := time.Now()
	r.send(wire.TypeAuthorize, "", &wire.Authorize{Token: next.Access})
	time.Sleep(time.Until(began.Add(ttl + 200*time.Millisecond)))
	b.works(t, r, "m1")
	r.closed(wire.CloseUnauthorized)
	if d := time.Since(renewed); d < ttl-500*time.Millisecond || d > ttl+4*time.Second {
		t.Errorf("it ended %s after the renewal, want %s", d, ttl)
	}
	if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("the request ended with %v", err)
	}
	if _, resp, err := dial(t, b.url, first.Access, nil); err == nil || resp.StatusCode != 401 {
		t.Errorf("the expired token opens the door: %v", err)
	}
}

func TestAuthorizeRefuses(t *testing.T) {
	t.Parallel()
	b := newSignInBench(t)
	for name, token := range map[string]func(tokens) string{
		"no token of ours":       func(tokens) string { return "lpa_0000" },
		"a refresh token":        func(mine tokens) string { return mine.Refresh },
		"another sign-in's":      func(tokens) string { return b.signIn(t, store.OwnerID, "m2", scopes).Access },
		"a token of the machine": func(tokens) string { return b.bench.token(t, "m3") },
	} {
		t.Run(name, func(t *testing.T) {
			mine := b.signIn(t, store.OwnerID, "m1", scopes)
			r := b.join(t, mine.Access, hello("m1"))
			r.send(wire.TypeAuthorize, "", &wire.Authorize{Token: token(mine)})
			r.closed(wire.CloseUnauthorized)
		})
	}
}

// However a sign-in ends, its connection ends within a second.
func TestSignInEnds(t *testing.T) {
	t.Parallel()
	b := newSignInBench(t)
	for name, end := range map[string]func(mine tokens) error{
		"at the endpoint": func(mine tokens) error {
			b.post(t, "/oauth/revoke", url.Values{"token": {mine.Refresh}}, nil)
			return nil
		},
		"by a refresh token used twice": func(mine tokens) error {
			b.refresh(t, mine.Refresh)
			var again tokens
			b.post(t, "/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {mine.Refresh}}, &again)
			if again.Access != "" {
				t.Error("a used refresh token gave a new one")
			}
			return nil
		},
		"by another sign-in of the computer": func(tokens) error { b.signIn(t, store.OwnerID, "m1", scopes); return nil },
		"by another process": func(tokens) error {
			if err := b.store.RevokeMachine(t.Context(), store.OwnerID, "m1"); err != nil {
				return err
			}
			return b.store.Poke()
		},
	} {
		t.Run(name, func(t *testing.T) {
			mine := b.signIn(t, store.OwnerID, "m1", scopes)
			r := b.join(t, mine.Access, hello("m1"))
			s, err := b.Do(t.Context(), on("m1"), wire.TypeProcessStart, &wire.ProcessStart{SessionID: "s", Cmd: "x"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			began := time.Now()
			if err := end(mine); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
				t.Errorf("the command ended with %v", err)
			}
			r.closed(wire.CloseRevoked)
			if d := time.Since(began); d > time.Second {
				t.Errorf("it took %s", d)
			}
			if _, resp, err := dial(t, b.url, mine.Access, nil); err == nil || resp.StatusCode != 401 {
				t.Errorf("the token still opens the door: %v", err)
			}
		})
	}
}

// A sign-in belongs to one computer, and a computer to one person.
func TestSignInOfAnother(t *testing.T) {
	t.Parallel()
	b := newSignInBench(t)
	ann, _, err := b.store.AddUser(t.Context(), "Ann")
	if err != nil {
		t.Fatal(err)
	}
	mine := b.signIn(t, store.OwnerID, "m1", scopes)
	r := mustDial(t, b.url, mine.Access)
	r.send(wire.TypeHello, "", hello("m2"))
	r.closed(wire.CloseForbidden)
	kept := b.join(t, mine.Access, hello("m1"))

	// Ann's sign-in, and her pairing line, with a computer that is the owner's.
	hers := b.signIn(t, ann.ID, "m7", scopes)
	line, err := b.store.AddPairingToken(t.Context(), ann.ID, "Hers")
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{hers.Access, line} {
		r := mustDial(t, b.url, token)
		r.send(wire.TypeHello, "", hello("m1"))
		r.closed(wire.CloseForbidden)
	}
	b.works(t, kept, "m1")
	joined := b.join(t, hers.Access, hello("m7"))
	for _, m := range []string{"m1", "m7"} {
		if _, err := b.Do(t.Context(), store.Sandbox{User: "nobody", Machine: m}, wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); wire.CodeOf(err) != wire.CodeOffline {
			t.Errorf("another's request to %s: %v", m, err)
		}
	}
	// The newest of a person's computers, and never another's.
	open := func(user string) string {
		t.Helper()
		ctx := within(t, 300*time.Millisecond)
		go func() {
			_, _ = b.Open(ctx, wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "x", TTLSeconds: 60, WaitMS: 200}, store.Sandbox{User: user, Principal: store.OwnPrincipal})
		}()
		for name, r := range map[string]*raw{"m1": kept, "m7": joined} {
			_ = r.ws.SetReadDeadline(time.Now().Add(5 * time.Second))
			if (name == "m1") == (user == store.OwnerID) {
				r.until(wire.TypeSessionOpen)
				return name
			}
		}
		return ""
	}
	if got := open(store.OwnerID); got != "m1" {
		t.Errorf("the owner's session is asked for on %s", got)
	}
	if got := open(ann.ID); got != "m7" {
		t.Errorf("Ann's session is asked for on %s", got)
	}
}

// A sign-in for something else connects no computer.
func TestScope(t *testing.T) {
	t.Parallel()
	b := newSignInBench(t)
	ctx, now := t.Context(), b.store.Steady()
	r := store.SignInRequest{ID: "r1", Client: "localpc", Scopes: []string{"openid"}, Machine: "m1", Device: true, Until: now.Add(time.Minute)}
	if err := b.store.AddSignInRequest(ctx, now, r, "device", "BBBBBBBB", time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.ApproveSignIn(ctx, now, r.ID, store.OwnerID, "", time.Minute); err != nil {
		t.Fatal(err)
	}
	access := "lpa_" + strings.Repeat("0a", 32)
	if _, err := b.store.PollDevice(ctx, now, "localpc", "device", func(store.SignInRequest) (store.Pair, error) {
		return store.Pair{Access: access, AccessFor: time.Minute}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.FindAccess(ctx, now, access); err != nil {
		t.Fatal(err)
	}
	if _, resp, err := dial(t, b.url, access, nil); err == nil || resp.StatusCode != 401 {
		t.Errorf("without its scope: %v", err)
	}
}

// Drain sends the idle off, refuses the new, and leaves the busy alone.
func TestDrain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	idle, busy := b.join(t, b.token(t, "m1"), hello("m1")), b.join(t, b.token(t, "m2"), hello("m2"))
	token := b.token(t, "m3")
	s, err := b.Do(t.Context(), on("m2"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b.Drain()
	idle.closed(1001)
	if _, resp, err := dial(t, b.url, token, nil); err == nil || resp.StatusCode != 503 {
		t.Errorf("a new computer: %v", err)
	}
	busy.send(wire.TypeFileStatResponse, busy.until(wire.TypeFileStat).ID, &wire.FileStatResponse{})
	if _, err := s.Recv(); err != nil {
		t.Errorf("what was under way: %v", err)
	}
	for path, want := range map[string]int{"/healthz": 204, "/readyz": 503} {
		resp, err := http.Get(b.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// counts is a meter that remembers.
type counts struct {
	mu       sync.Mutex
	requests map[string]int
	closes   map[int]int
	signIns  int
	reused   int
}

func (c *counts) Request(kind, outcome string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[kind+" "+outcome]++
}
func (c *counts) Closed(code int) { c.mu.Lock(); defer c.mu.Unlock(); c.closes[code]++ }
func (c *counts) SignIn()         { c.mu.Lock(); defer c.mu.Unlock(); c.signIns++ }
func (c *counts) Reused()         { c.mu.Lock(); defer c.mu.Unlock(); c.reused++ }

// The ends of a companion's connections are counted with the others.
func TestMeterOfCompanions(t *testing.T) {
	t.Parallel()
	c := &counts{requests: map[string]int{}, closes: map[int]int{}}
	b := newSignInBench(t, func(o *hub.Options) { o.Meter = c })
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(b.url, "http")+wire.Path,
		http.Header{"Authorization": {"Bearer " + tunneltest.CompanionToken(t, b.data)}})
	must(t, err)
	defer ws.Close()
	must(t, ws.WriteMessage(websocket.TextMessage, []byte("[]")))
	eventually(t, "the close is counted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.closes[wire.CloseBadHello] == 1
	})
}

func TestMeter(t *testing.T) {
	t.Parallel()
	c := &counts{requests: map[string]int{}, closes: map[int]int{}}
	b := newSignInBench(t, func(o *hub.Options) { o.Meter = c })
	mine := b.signIn(t, store.OwnerID, "m1", scopes)
	r := b.join(t, mine.Access, hello("m1"))
	b.works(t, r, "m1")
	for code, want := range map[wire.Code]string{wire.CodeDenied: "denied", "SOMETHING_OF_ITS_OWN": "other"} {
		s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		r.send(wire.TypeError, r.until(wire.TypeFileStat).ID, &wire.ErrorPayload{Code: code, Message: "No."})
		if _, err := s.Recv(); wire.CodeOf(err) != code {
			t.Errorf("%v", err)
		}
		s.Close()
		c.mu.Lock()
		if n := c.requests["file_stat "+want]; n != 1 {
			t.Errorf("%s is counted %d times", want, n)
		}
		c.mu.Unlock()
	}
	s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, _ = b.Do(t.Context(), on("m5"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
	b.refresh(t, mine.Refresh)
	var again tokens
	b.post(t, "/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {mine.Refresh}}, &again)
	r.closed(wire.CloseRevoked)
	eventually(t, "the close is counted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.closes[wire.CloseRevoked] == 1
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signIns != 1 || c.reused != 1 || c.requests["file_stat ok"] != 1 || c.requests["file_stat cancelled"] != 1 || c.requests["file_stat machine_not_connected"] != 1 {
		t.Errorf("counted: %+v", c)
	}
}
