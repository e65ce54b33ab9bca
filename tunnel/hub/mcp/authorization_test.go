//go:build unix

package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

const password = "a quiet harbour at noon"

// site is a hub with pages, and its owner's browser.
type site struct {
	t       *testing.T
	hub     *hub.Hub
	url     string
	browser *http.Client // logged in
	plain   *http.Client // a program's
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	st, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	token, err := st.SetupToken(t.Context())
	if err == nil {
		_, err = st.Claim(t.Context(), token, store.Claim{Name: "Ana", Password: password})
	}
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, url: "http://" + l.Addr().String()}
	h, err := hub.New(context.Background(), hub.Options{Data: dir, Pages: true, PublicURL: s.url, Log: tunneltest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.hub = h
	server, done := h.Server(), make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.browser = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Jar: jar, CheckRedirect: stay}
	s.plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: stay}
	t.Cleanup(func() {
		server.Close()
		<-done
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	s.do(s.browser, http.MethodGet, "/login", nil)
	if resp, body := s.do(s.browser, http.MethodPost, "/login", url.Values{"name": {"Ana"}, "password": {password}}); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("log in: %d %s", resp.StatusCode, body)
	}
	return s
}

// computer connects one of the owner's; ask stands for them.
func (s *site) computer(ask func(context.Context, wire.Message) error) {
	s.t.Helper()
	token, err := s.hub.MachineToken(s.t.Context(), "m1", "PC")
	if err != nil {
		s.t.Fatal(err)
	}
	online := make(chan struct{}, 1)
	tunneltest.Run(s.t, tunnel.Options{URL: s.url, Token: func(context.Context) (string, error) { return token, nil },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "m1", DisplayName: "PC", Platform: "linux", Arch: "amd64", Capabilities: []string{"files"}, Sessions: []string{}}
		},
		Status: func() wire.Status { return wire.Status{} }, Handler: (&tunneltest.Folder{Dir: s.t.TempDir(), Ask: ask}).Handle, Log: tunneltest.Log(s.t),
		OnState: func(now tunnel.State) {
			if now.Phase == tunnel.Online {
				select {
				case online <- struct{}{}:
				default:
				}
			}
		}})
	select {
	case <-online:
	case <-time.After(30 * time.Second):
		s.t.Fatal("the computer did not connect")
	}
}

// do sends a request, with a form when it is not nil.
func (s *site) do(c *http.Client, method, path string, form url.Values, header ...string) (*http.Response, string) {
	s.t.Helper()
	to := path
	if strings.HasPrefix(path, "/") {
		to = s.url + path
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, to, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(body)
}

// register signs a program up.
func (s *site) register(redirect string) string {
	s.t.Helper()
	resp, err := s.plain.Post(s.url+"/oauth/register", "application/json", strings.NewReader(`{"client_name":"Suite","redirect_uris":["`+redirect+`"],"token_endpoint_auth_method":"client_secret_post"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		ID     string `json:"client_id"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusCreated || answer.Method != "none" {
		s.t.Fatalf("register: %d %+v %v", resp.StatusCode, answer, err)
	}
	return answer.ID
}

// agree is what the person does with the address that a program opens, which
// they call so: it returns where the browser goes with the answer.
func (s *site) agree(address, name string) string {
	s.t.Helper()
	resp, body := s.do(s.browser, http.MethodGet, address, nil)
	page, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || page.Path != "/connect" {
		s.t.Fatalf("authorize leads to %s: %d %s", page, resp.StatusCode, body)
	}
	s.do(s.browser, http.MethodGet, page.String(), nil)
	resp, body = s.do(s.browser, http.MethodPost, "/connect/answer", url.Values{"request": {page.Query().Get("request")}, "answer": {"yes"}, "name": {name}}, "Origin", s.url)
	if resp.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("answer: %d %s", resp.StatusCode, body)
	}
	return resp.Header.Get("Location")
}

// The suite's part for authorization servers, as published, against the hub's
// own sign-in and page.
func TestAuthorizationConformance(t *testing.T) {
	if err := install(); err != nil {
		t.Fatalf("npm ci: %v", err)
	}
	s := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	id := s.register("http://127.0.0.1:" + strconv.Itoa(port) + "/callback")
	bin, err := filepath.Abs(filepath.Join(npmDir, "node_modules", ".bin"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "node"), filepath.Join(bin, "conformance"), "authorization", "--url", s.url,
		"--client-id", id, "--resource", s.url+"/mcp", "--port", strconv.Itoa(port))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said, complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, address, listens := bufio.NewScanner(out), "", false
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		listens = listens || strings.HasPrefix(lines.Text(), "Callback server started")
		if strings.HasPrefix(lines.Text(), s.url+"/oauth/authorize?") {
			address = lines.Text()
		}
		if listens && address != "" {
			s.do(s.plain, http.MethodGet, s.agree(address, ""), nil)
			address = ""
		}
	}
	err = cmd.Wait()
	text := said.String() + complaints.String()
	if err != nil || !strings.Contains(text, "authorization-code-grant") || regexp.MustCompile(`(?i)✗|⚠|[1-9]\d* (failed|warnings?)|skipped`).MatchString(text) {
		t.Fatalf("%v\n%s", err, text)
	}
}

// A token is good at this hub's face for MCP clients, as far as its scopes go,
// and no longer than its person wants.
func TestTokensOfPrograms(t *testing.T) {
	s := newSite(t)
	const redirect = "http://127.0.0.1:9/callback"
	ask := func(token, method, params string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := s.plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp, string(body)
	}
	resp, _ := ask("", "tools/list", "{}")
	found := regexp.MustCompile(`resource_metadata="?([^",]+)`).FindStringSubmatch(resp.Header.Get("WWW-Authenticate"))
	if resp.StatusCode != http.StatusUnauthorized || found == nil {
		t.Fatalf("without a token: %d %q", resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
	}
	for _, at := range []string{found[1], "/.well-known/oauth-protected-resource"} {
		_, body := s.do(s.plain, http.MethodGet, at, nil)
		var about struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal([]byte(body), &about); err != nil || about.Resource != s.url+"/mcp" || len(about.Servers) != 1 || about.Servers[0] != s.url || len(about.Scopes) != 3 {
			t.Errorf("%s says %s", at, body)
		}
	}

	id := s.register(redirect)
	to, err := url.Parse(s.agree("/oauth/authorize?"+url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {redirect}, "scope": {"machines:read"}, "state": {"x"}, "resource": {s.url + "/mcp"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}}.Encode(), " Coding helper "))
	if err != nil {
		t.Fatal(err)
	}
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	_, body := s.do(s.plain, http.MethodPost, "/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {to.Query().Get("code")}, "redirect_uri": {redirect},
		"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, "resource": {s.url + "/mcp"}})
	if err := json.Unmarshal([]byte(body), &tokens); err != nil || tokens.Access == "" || tokens.Refresh == "" {
		t.Fatalf("token: %s", body)
	}
	if resp, body := ask(tokens.Access, "tools/list", "{}"); resp.StatusCode != http.StatusOK || !strings.Contains(body, "list_machines") {
		t.Errorf("with a token: %d %s", resp.StatusCode, body)
	}
	// On a computer it has the name that its person gave it; its own is its claim.
	asked := make(chan *wire.SessionOpen, 1)
	s.computer(func(_ context.Context, m wire.Message) error {
		if p, ok := m.Payload.(*wire.SessionOpen); ok {
			asked <- p
			return wire.Errorf(wire.CodeDenied, "No.")
		}
		return nil
	})
	if resp, body := ask(tokens.Access, "tools/call", `{"name":"list_directory","arguments":{}}`); resp.StatusCode != http.StatusOK {
		t.Fatalf("list_directory: %d %s", resp.StatusCode, body)
	}
	if p := <-asked; p.PrincipalName != "Coding helper" || p.Agent != "Suite" {
		t.Errorf("the person is asked for %+v", p)
	}
	if resp, body := ask(tokens.Access, "tools/call", `{"name":"run_command","arguments":{"command":"true"}}`); resp.StatusCode != http.StatusForbidden ||
		!strings.Contains(resp.Header.Get("WWW-Authenticate"), `insufficient_scope`) || !strings.Contains(resp.Header.Get("WWW-Authenticate"), "machines:use") {
		t.Errorf("beyond its scope: %d %q %s", resp.StatusCode, resp.Header.Get("WWW-Authenticate"), body)
	}
	// Files are no screen.
	if resp, body := ask(tokens.Access, "tools/call", `{"name":"local_pc_screenshot","arguments":{}}`); resp.StatusCode != http.StatusForbidden ||
		!strings.Contains(resp.Header.Get("WWW-Authenticate"), "machines:input") {
		t.Errorf("a picture beyond its scope: %d %q %s", resp.StatusCode, resp.Header.Get("WWW-Authenticate"), body)
	}
	if resp, _ := ask(tokens.Refresh, "tools/list", "{}"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a refresh token is taken: %d", resp.StatusCode)
	}
	if resp, body := s.do(s.plain, http.MethodPost, "/oauth/revoke", url.Values{"client_id": {id}, "token": {tokens.Refresh}}); resp.StatusCode != http.StatusOK {
		t.Errorf("revoke: %d %s", resp.StatusCode, body)
	}
	if resp, _ := ask(tokens.Access, "tools/list", "{}"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after it was revoked: %d", resp.StatusCode)
	}
}
