//go:build unix

package mcp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/mcp"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

func httpClient() *http.Client { return &http.Client{} }

// newPost is a POST of one message as a client makes it.
func newPost(t *testing.T, r *rig, body, protocol string) (*http.Request, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.Key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if protocol != "" {
		req.Header.Set("Mcp-Protocol-Version", protocol)
	}
	return req, nil
}

// served is a hub that listens; stop ends it.
type served struct {
	base, addr string
	stop       func()
}

func serveOnce(t *testing.T, o hub.Options, addr ...string) (*hub.Hub, served) {
	t.Helper()
	h, err := hub.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:0"
	if len(addr) > 0 {
		at = addr[0]
	}
	var l net.Listener
	for range 100 {
		if l, err = net.Listen("tcp", at); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	srv := h.Server()
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	stop := sync.OnceFunc(func() {
		_ = srv.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	t.Cleanup(stop)
	return h, served{"http://" + l.Addr().String(), l.Addr().String(), stop}
}

func TestDoors(t *testing.T) {
	r := newRig(t, nil)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	ask := func(change func(*http.Request)) (int, http.Header, string) {
		t.Helper()
		req, err := newPost(t, r, list, "2025-11-25")
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		resp, err := httpClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header, string(b)
	}
	if status, _, body := ask(func(*http.Request) {}); status != http.StatusOK || !strings.Contains(body, "run_command") {
		t.Errorf("with a key: %d %s", status, body)
	}
	if status, _, body := ask(func(req *http.Request) {
		req.Header.Del("Authorization")
		req.Header.Set("X-API-KEY", r.Key)
	}); status != http.StatusOK || !strings.Contains(body, "run_command") {
		t.Errorf("with X-API-KEY: %d %s", status, body)
	}
	status, header, _ := ask(func(req *http.Request) { req.Header.Del("Authorization") })
	if status != http.StatusUnauthorized || !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer") {
		t.Errorf("without a key: %d %v", status, header)
	}
	if status, _, _ := ask(func(req *http.Request) { req.Header.Set("Authorization", "Bearer e2b_"+strings.Repeat("0", 40)) }); status != http.StatusUnauthorized {
		t.Errorf("with a wrong key: %d", status)
	}
	if status, _, _ := ask(func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+r.Token) }); status != http.StatusUnauthorized {
		t.Errorf("with a machine's token: %d", status)
	}
	if status, _, _ := ask(func(req *http.Request) { req.Host = "evil.example" }); status != http.StatusMisdirectedRequest {
		t.Errorf("by another name: %d", status)
	}
	if status, _, _ := ask(func(req *http.Request) { req.Header.Set("Origin", "http://evil.example") }); status != http.StatusForbidden {
		t.Errorf("from a page of another origin: %d", status)
	}
	if status, _, body := ask(func(req *http.Request) {
		req.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x`), strings.NewReader(strings.Repeat("x", 9<<20))))
		req.ContentLength = -1
	}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a message of 9 MiB: %d %s", status, body)
	}
	if status, _, _ := ask(func(req *http.Request) { req.Method, req.Body, req.ContentLength = http.MethodGet, nil, 0 }); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
}

// A key that is revoked opens nothing any more, and its session ends.
func TestRevokedKey(t *testing.T) {
	r := newRig(t, nil)
	s := r.client(t, r.Key, "2025-11-25")
	call(t, s, "list_directory", nil).ok()
	keys, err := r.Hub.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if err := r.Hub.RevokeKey(t.Context(), k.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ListTools(t.Context(), nil); err == nil {
		t.Error("a revoked key still opens the tools")
	}
	for range 200 {
		if len(r.Sessions()) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("its session goes on")
}

// One program has no more under way than fits; the rest is told, at once.
func TestTooManyAtOnce(t *testing.T) {
	p := newPerson(opens)
	r := newRig(t, p.ask)
	s := r.client(t, r.Key, "")
	refused := make(chan string, 40)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if got := call(t, s, "run_command", args{"command": "true"}); got.isError {
				refused <- got.text
			}
		})
	}
	for range 8 {
		select {
		case text := <-refused:
			if !strings.Contains(text, "already has 32 calls") {
				t.Errorf("refused with %q", text)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("more than 32 calls wait")
		}
	}
	p.answers <- nil
	wg.Wait()
	close(refused)
	for text := range refused {
		// The machine has a bound of its own for what runs.
		if !strings.Contains(text, "busy") && !strings.Contains(text, "requests") {
			t.Errorf("refused later with %q", text)
		}
	}
}

// An access token does what it was made for and no more; the client is told
// where to get a larger one.
func TestScopes(t *testing.T) {
	const secret = "access-token-of-the-test"
	var mu sync.Mutex
	who := mcp.Principal{Name: "Chat program", User: store.OwnerID, Scopes: []string{mcp.ScopeRead}}
	asked := make(chan *wire.SessionOpen, 8)
	r := newRig(t, func(_ context.Context, m wire.Message) error {
		if p, ok := m.Payload.(*wire.SessionOpen); ok {
			asked <- p
		}
		return nil
	}, func(h *hub.Options, _ *tunnel.Options) {
		h.MCP = func(o *mcp.Options) {
			k, err := o.Store.AddKey(t.Context(), store.OwnerID, "Stands for a sign-in")
			if err != nil {
				t.Error(err)
			}
			who.ID = k.ID
			o.Resource, o.Issuer = "https://hub.example/mcp", "https://hub.example"
			o.Verify = func(_ context.Context, token string) (mcp.Principal, error) {
				mu.Lock()
				defer mu.Unlock()
				if token != secret {
					return mcp.Principal{}, store.ErrNotFound
				}
				return who, nil
			}
		}
	})
	s := r.client(t, secret, "2025-11-25")
	call(t, s, "list_directory", nil).ok("empty")
	if p := <-asked; p.PrincipalID != who.ID || p.PrincipalName != "Chat program" {
		t.Errorf("the person was asked for %+v", p)
	}
	post := func(token, tool string) (int, http.Header) {
		t.Helper()
		req, err := newPost(t, r, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{"path":"a","content":""}}}`, "2025-11-25")
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := httpClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Header
	}
	const metadata = `resource_metadata="https://hub.example/.well-known/oauth-protected-resource/mcp"`
	status, header := post(secret, "write_file")
	if c := header.Get("WWW-Authenticate"); status != http.StatusForbidden || !strings.Contains(c, `error="insufficient_scope"`) || !strings.Contains(c, `scope="machines:use"`) || !strings.Contains(c, metadata) {
		t.Errorf("without the scope: %d %q", status, c)
	}
	if status, header = post("other", "write_file"); status != http.StatusUnauthorized || !strings.Contains(header.Get("WWW-Authenticate"), metadata) {
		t.Errorf("with another token: %d %v", status, header)
	}
	mu.Lock()
	who.Scopes = []string{mcp.ScopeRead, mcp.ScopeUse}
	mu.Unlock()
	call(t, s, "write_file", args{"path": "a", "content": ""}).ok()
	// Keys go on as before, and are somebody else.
	call(t, r.client(t, r.Key, ""), "list_machines", nil).ok("Mac-1")
	mu.Lock()
	who.Expires = time.Now().Add(-time.Minute)
	mu.Unlock()
	if status, _ := post(secret, "read_file"); status != http.StatusUnauthorized {
		t.Errorf("with a token that is over: %d", status)
	}
}
