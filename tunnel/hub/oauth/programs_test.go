package oauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"localpc/tunnel/hub/store"
)

// forPrograms is a sign-in server whose programs come to /mcp.
func forPrograms(o *Options) { o.Resource = o.Issuer + "/mcp" }

func (h *hub) request(method, path, kind, body string) (*http.Response, map[string]any) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := h.http.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	answer := map[string]any{}
	if json.Unmarshal(data, &answer) != nil {
		answer["text"] = string(data)
	}
	return resp, answer
}

func (h *hub) signUp(description string) (*http.Response, map[string]any) {
	return h.request(http.MethodPost, "/oauth/register", "application/json", description)
}

const programRedirect = "http://127.0.0.1:53682/back"

func (h *hub) program() string {
	h.t.Helper()
	resp, a := h.signUp(`{"client_name":"Agent","redirect_uris":["` + programRedirect + `"]}`)
	if resp.StatusCode != http.StatusCreated {
		h.t.Fatalf("%d %v", resp.StatusCode, a)
	}
	return a["client_id"].(string)
}

const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// asking is a good request with some parameters changed; "-" leaves one out.
func (h *hub) asking(id string, change ...string) url.Values {
	q := url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {programRedirect}, "scope": {ScopeUse}, "state": {"s"},
		"resource": {h.url + "/mcp"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"}}
	for i := 0; i+1 < len(change); i += 2 {
		if q.Set(change[i], change[i+1]); change[i+1] == "-" {
			q.Del(change[i])
		}
	}
	return q
}

// code is what the program gets when its person says yes.
func (h *hub) code(q url.Values) string {
	h.t.Helper()
	resp, a := h.request(http.MethodGet, "/oauth/authorize?"+q.Encode(), "", "")
	page, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || page.Path != "/connect" {
		h.t.Fatalf("authorize: %d %s %v", resp.StatusCode, page, a)
	}
	to, err := h.Approve(h.t.Context(), page.Query().Get("request"), store.OwnerID)
	if err != nil {
		h.t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil || back.Query().Get("iss") != h.url || back.Query().Get("state") != q.Get("state") {
		h.t.Fatalf("the answer goes to %s", to)
	}
	return back.Query().Get("code")
}

func (h *hub) tokens(form url.Values) (*http.Response, map[string]any) {
	return h.request(http.MethodPost, "/oauth/token", "application/x-www-form-urlencoded", form.Encode())
}

func (h *hub) exchange(id, code string, change ...string) (*http.Response, map[string]any) {
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code}, "redirect_uri": {programRedirect}, "code_verifier": {verifier}, "resource": {h.url + "/mcp"}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return h.tokens(form)
}

// Only https and the person's own computer get answers; a program there by
// http, or by a scheme that is its own.
func TestWhoMaySignUp(t *testing.T) {
	h := start(t, forPrograms)
	for redirect, ok := range map[string]bool{
		"http://127.0.0.1:1/x": true, "http://localhost/x": true, "http://[::1]:7/x": true, "https://agent.example/x?y=1": true,
		"http://agent.example/x": false, "http://127.0.0.1.agent.example/": false, "javascript:alert(1)": false, "cursor://back": false, "cursor://anysphere.cursor-mcp/oauth/callback": true,
		"cursor://anysphere.cursor-mcp/oauth/callback/": false, "cursor://anysphere.cursor-mcp/oauth/callback?x=1": false, "cursor://anysphere.cursor-deeplink/mcp/install": false,
		"Cursor://anysphere.cursor-mcp/oauth/callback": false, "com.example.app:/back": true, "com.example.app://oauth/back": true, "org.example.my-agent:/": false, "com.example.app:back": false, "com.example.app:": false,
		"com.example.app:/a b": false, "com.example.app:/a%22": false, "com.example.app:/a?b=c": false, "com.example.app://a@b/": false, "com.example.app:/x#y": false, "com.example.app:/" + strings.Repeat("x", 600): false,
		"vscode://vscode.git/clone": false, "ms-msdt:/id": false, "file:///etc/passwd": false, "mailto:x@agent.example": false, "intent://x/": false, "ftp://127.0.0.1/x": false, "127.0.0.1:/x": false,
		"https://vscode.dev/redirect": true, "http://127.0.0.1/": true, "http://localhost:33418/": true, "https://a@agent.example/": false,
		"https://agent.example/#x": false, "//agent.example/": false, "https://": false, "http://127.0.0.2/": false, "https://agent.example;x/": false, "data:text/html,x": false,
	} {
		body, _ := json.Marshal(map[string]any{"redirect_uris": []string{redirect}})
		resp, a := h.signUp(string(body))
		if (resp.StatusCode == http.StatusCreated) != ok {
			t.Errorf("%s: %d %v", redirect, resp.StatusCode, a)
		}
		if !ok && a["error"] != "invalid_redirect_uri" {
			t.Errorf("%s: %v", redirect, a)
		}
	}
	for _, body := range []string{`{}`, `[]`, `{"redirect_uris":[]}`, `x`, `{"redirect_uris":["https://a.example/"],"response_types":["token"]}`, `{"redirect_uris":["https://a.example/"],"client_name":"` + strings.Repeat("x", 300) + `"}`} {
		if resp, a := h.signUp(body); resp.StatusCode != http.StatusBadRequest || a["error"] == nil {
			t.Errorf("%.60s: %d %v", body, resp.StatusCode, a)
		}
	}
	plain := start(t)
	if resp, _ := plain.signUp(`{"redirect_uris":["https://a.example/"]}`); resp.StatusCode != http.StatusNotFound {
		t.Errorf("where no program can come: %d", resp.StatusCode)
	}
}

func TestSigningUpIsBounded(t *testing.T) {
	h := start(t, forPrograms)
	for i := range 25 {
		if resp, _ := h.signUp(`{"redirect_uris":["https://a.example/"]}`); (resp.StatusCode == http.StatusTooManyRequests) != (i >= 20) {
			t.Fatalf("number %d: %d", i, resp.StatusCode)
		}
	}
	for i := range 100 {
		h.pass(time.Minute)
		if resp, a := h.signUp(`{"redirect_uris":["https://a.example/"]}`); (resp.StatusCode == http.StatusTooManyRequests) != (i >= 80) {
			t.Fatalf("number %d of a network: %d %v", 20+i, resp.StatusCode, a)
		}
	}
}

// What is wrong before it is clear where an answer may go is told the browser
// alone; the rest goes back to the program.
func TestWhatAProgramMayAsk(t *testing.T) {
	h := start(t, forPrograms)
	id := h.program()
	for _, change := range [][]string{{"client_id", "nobody"}, {"client_id", "https://"}, {"redirect_uri", "http://127.0.0.1:53682/other"}, {"redirect_uri", "-"}, {"redirect_uri", "https://evil.example/"},
		{"redirect_uri", "http://localhost:53682/back"}, {"redirect_uri", "http://127.0.0.1:53682/back?x=1"}} {
		if resp, _ := h.request(http.MethodGet, "/oauth/authorize?"+h.asking(id, change...).Encode(), "", ""); resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Location") != "" {
			t.Errorf("%v: %d to %s", change, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	for _, c := range []struct {
		want   string
		change []string
	}{
		{"invalid_request", []string{"code_challenge_method", "plain"}}, {"invalid_request", []string{"code_challenge", "-"}}, {"invalid_target", []string{"resource", "https://other.example/mcp"}},
		{"unsupported_response_type", []string{"response_type", "token"}}, {"invalid_scope", []string{"scope", "machine openid"}}, {"invalid_request", []string{"state", strings.Repeat("x", 2000)}},
		{"interaction_required", []string{"prompt", "none"}}, {"request_not_supported", []string{"request_uri", "https://x.example"}},
	} {
		resp, _ := h.request(http.MethodGet, "/oauth/authorize?"+h.asking(id, c.change...).Encode(), "", "")
		to, err := url.Parse(resp.Header.Get("Location"))
		if err != nil || !strings.HasPrefix(to.String(), programRedirect+"?") || to.Query().Get("error") != c.want || to.Query().Get("iss") != h.url {
			t.Errorf("%.60v: %d to %s", c.change, resp.StatusCode, to)
		}
	}
	// Nobody is sent elsewhere before they have answered.
	const elsewhere = "https://agent.example/back"
	_, a := h.signUp(`{"client_name":"Cloud","redirect_uris":["` + elsewhere + `"]}`)
	cloud := a["client_id"].(string)
	for _, change := range [][]string{{"code_challenge_method", "plain"}, {"prompt", "none"}, {"scope", "machine openid"}, {"state", strings.Repeat("x", 2000)}} {
		q := h.asking(cloud, append(change, "redirect_uri", elsewhere)...)
		resp, a := h.request(http.MethodGet, "/oauth/authorize?"+q.Encode(), "", "")
		if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Location") != "" || !strings.Contains(fmt.Sprint(a["text"]), "The program asks for something") {
			t.Errorf("%.60v: %d to %q %v", change, resp.StatusCode, resp.Header.Get("Location"), a)
		}
	}
	h.code(h.asking(cloud, "redirect_uri", elsewhere))
	// The port is the program's to choose; nothing else is.
	h.code(h.asking(id, "redirect_uri", "http://127.0.0.1:1234/back"))
	h.code(h.asking(id, "resource", "-", "scope", "-", "state", "-"))
	// As VS Code and Cursor sign up: several places, one of which it then names.
	_, a = h.signUp(`{"client_name":"Editor","redirect_uris":["https://vscode.dev/redirect","http://127.0.0.1/","cursor://anysphere.cursor-mcp/oauth/callback"]}`)
	editor := a["client_id"].(string)
	for _, place := range []string{"https://vscode.dev/redirect", "http://127.0.0.1:33418/", "http://127.0.0.1:33418", "cursor://anysphere.cursor-mcp/oauth/callback"} {
		h.code(h.asking(editor, "redirect_uri", place))
	}
	if resp, _ := h.request(http.MethodGet, "/oauth/authorize?"+h.asking(id, "redirect_uri", "cursor://anysphere.cursor-mcp/oauth/callback").Encode(), "", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a scheme that it did not sign up with: %d", resp.StatusCode)
	}
}

func TestAProgramsTokens(t *testing.T) {
	h := start(t, forPrograms)
	id, other := h.program(), h.program()
	for _, change := range [][]string{{"code_verifier", strings.Repeat("x", 43)}, {"redirect_uri", "http://127.0.0.1:1/back"}, {"client_id", other}} {
		if resp, a := h.exchange(id, h.code(h.asking(id)), change...); resp.StatusCode != http.StatusBadRequest || a["error"] != "invalid_grant" {
			t.Errorf("%v: %d %v", change, resp.StatusCode, a)
		}
	}
	if resp, a := h.exchange(id, h.code(h.asking(id)), "resource", "https://other.example/mcp"); resp.StatusCode != http.StatusBadRequest || a["error"] != "invalid_target" {
		t.Errorf("for another place: %d %v", resp.StatusCode, a)
	}
	for _, change := range [][]string{{"client_id", "nobody"}, {"client_secret", "x"}} {
		if resp, a := h.exchange(id, "x", change...); resp.StatusCode != http.StatusUnauthorized || a["error"] != "invalid_client" {
			t.Errorf("%v: %d %v", change, resp.StatusCode, a)
		}
	}
	if resp, a := h.tokens(url.Values{"grant_type": {"password"}, "client_id": {id}}); resp.StatusCode != http.StatusBadRequest || a["error"] != "unsupported_grant_type" {
		t.Errorf("another grant: %d %v", resp.StatusCode, a)
	}

	resp, a := h.exchange(id, h.code(h.asking(id)))
	if resp.StatusCode != http.StatusOK || a["token_type"] != "Bearer" || a["scope"] != ScopeUse || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", resp.StatusCode, a)
	}
	access, refresh := a["access_token"].(string), a["refresh_token"].(string)
	who, err := h.Program(t.Context(), access)
	if err != nil || who.Name != "Agent" || who.Called != "Program "+who.SignIn[1:7] || who.User != store.OwnerID || strings.Join(who.Scopes, " ") != ScopeUse || who.Resource != h.url+"/mcp" {
		t.Errorf("the token stands for %+v, %v", who, err)
	}
	if a, err := h.Access(t.Context(), access); err == nil {
		t.Errorf("it opens a tunnel: %+v", a)
	}
	if who, err := h.Program(t.Context(), refresh); err == nil {
		t.Errorf("a refresh token is taken: %+v", who)
	}
	renew := func(token string) (*http.Response, map[string]any) {
		return h.tokens(url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {token}})
	}
	resp, b := renew(refresh)
	if resp.StatusCode != http.StatusOK || b["refresh_token"] == refresh || b["scope"] != ScopeUse {
		t.Fatalf("renewed: %d %v", resp.StatusCode, b)
	}
	if _, err := h.Program(t.Context(), b["access_token"].(string)); err != nil {
		t.Error(err)
	}
	h.pass(2 * time.Hour)
	if who, err := h.Program(t.Context(), b["access_token"].(string)); err == nil {
		t.Errorf("an expired token stands for %+v", who)
	}
	// One that comes twice is in two hands: all of it ends.
	if resp, b := renew(refresh); resp.StatusCode != http.StatusBadRequest || b["error"] != "invalid_grant" {
		t.Errorf("a used one: %d %v", resp.StatusCode, b)
	}
	if resp, _ := renew(b["refresh_token"].(string)); resp.StatusCode != http.StatusBadRequest || len(h.ended()) == 0 {
		t.Errorf("the newest one after that: %d, ended %v", resp.StatusCode, h.ended())
	}
}

// A token of a computer is none of a program's, even where both come here.
func TestTokensOfComputersAreNoPrograms(t *testing.T) {
	h := start(t, forPrograms)
	id := h.program()
	_, a := h.exchange(id, h.code(h.asking(id)))
	for _, form := range []url.Values{
		{"grant_type": {"refresh_token"}, "client_id": {ClientID}, "refresh_token": {a["refresh_token"].(string)}},
		{"grant_type": {"refresh_token"}, "client_id": {h.program()}, "refresh_token": {a["refresh_token"].(string)}},
	} {
		if resp, b := h.tokens(form); resp.StatusCode != http.StatusBadRequest || b["error"] != "invalid_grant" {
			t.Errorf("%v: %d %v", form, resp.StatusCode, b)
		}
	}
	if _, err := h.Program(t.Context(), a["access_token"].(string)); err != nil {
		t.Error(err)
	}
}

// describes serves a program's description under https.
func describes(t *testing.T, answer func(w http.ResponseWriter, self string)) (*httptest.Server, string) {
	t.Helper()
	var self string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, self) }))
	t.Cleanup(s.Close)
	self = s.URL + "/client.json"
	return s, self
}

// trusting makes the hub read from a test's server.
func trusting(h *hub, s *httptest.Server) {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	h.fetcher.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
}

func TestAProgramThatIsDescribed(t *testing.T) {
	good := func(w http.ResponseWriter, self string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"client_id":%q,"client_name":"Described","redirect_uris":["http://127.0.0.1/back"]}`, self)
	}
	everywhere := func(o *Options) { o.Reach = func(netip.Addr) bool { return true } }
	h := start(t, forPrograms, everywhere)
	s, self := describes(t, good)
	trusting(h, s)
	resp, a := h.exchange(self, h.code(h.asking(self)))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", resp.StatusCode, a)
	}
	if who, err := h.Program(t.Context(), a["access_token"].(string)); err != nil || who.Name != "Described" || who.Client != self {
		t.Errorf("%+v, %v", who, err)
	}
	for name, answer := range map[string]func(w http.ResponseWriter, self string){
		"of another": func(w http.ResponseWriter, _ string) { good(w, "https://other.example/client.json") },
		"no JSON": func(w http.ResponseWriter, self string) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":["http://127.0.0.1/back"]}`, self)
		},
		"elsewhere": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", self)
			w.WriteHeader(http.StatusFound)
		},
		"too large": func(w http.ResponseWriter, self string) { good(w, self); fmt.Fprint(w, strings.Repeat(" ", 20<<10)) },
		"a secret": func(w http.ResponseWriter, self string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":["http://127.0.0.1/back"],"token_endpoint_auth_method":"client_secret_post"}`, self)
		},
	} {
		s, self := describes(t, answer)
		trusting(h, s)
		if resp, _ := h.request(http.MethodGet, "/oauth/authorize?"+h.asking(self).Encode(), "", ""); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d to %s", name, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	// By itself the hub goes to no address of a private network.
	h = start(t, forPrograms)
	asked := false
	s, self = describes(t, func(w http.ResponseWriter, self string) { asked = true; good(w, self) })
	trusting(h, s)
	if resp, _ := h.request(http.MethodGet, "/oauth/authorize?"+h.asking(self).Encode(), "", ""); resp.StatusCode != http.StatusBadRequest || asked {
		t.Errorf("on loopback: %d, asked %v", resp.StatusCode, asked)
	}
	for address, ok := range map[string]bool{"127.0.0.1": false, "10.1.2.3": false, "169.254.169.254": false, "100.64.0.1": false, "::1": false, "fd00::1": false, "fe80::1": false, "0.0.0.0": false, "8.8.8.8": true, "2606:4700::1": true,
		"0.1.2.3": false, "192.0.0.8": false, "192.0.1.8": true, "198.18.0.1": false, "198.19.255.255": false, "198.20.0.1": true, "240.0.0.1": false, "255.255.255.255": false,
		"64:ff9b::7f00:1": false, "64:ff9b::808:808": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2001::1": false, "fec0::1": false, "::7f00:1": false, "::ffff:127.0.0.1": false,
		"::ffff:8.8.8.8": true, "2001:4860:4860::8888": true, "192.168.0.1": false, "172.16.0.1": false, "224.0.0.1": false} {
		if public(netip.MustParseAddr(address)) != ok {
			t.Errorf("%s is taken for public: %v", address, !ok)
		}
	}
}

// A hub without a way to the internet lets a program in whose description it
// can't read: as one that signed itself up, on the person's computer alone.
func TestADescriptionOutOfReach(t *testing.T) {
	h := start(t, forPrograms, func(o *Options) { o.Reach = func(netip.Addr) bool { return true } })
	s, self := describes(t, func(http.ResponseWriter, string) {})
	trusting(h, s)
	s.Close()
	for _, redirect := range []string{"https://agent.example/back", "com.example.app:/back", "http://agent.example/back"} {
		if resp, _ := h.request(http.MethodGet, "/oauth/authorize?"+h.asking(self, "redirect_uri", redirect).Encode(), "", ""); resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Location") != "" {
			t.Errorf("%s: %d", redirect, resp.StatusCode)
		}
	}
	resp, a := h.exchange(self, h.code(h.asking(self)))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", resp.StatusCode, a)
	}
	at, err := url.Parse(self)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := h.Program(t.Context(), a["access_token"].(string)); err != nil || who.Name != "a program of "+at.Host {
		t.Errorf("%+v, %v", who, err)
	}
	// What is there and says nothing good is not let in.
	s, self = describes(t, func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNotFound) })
	trusting(h, s)
	if resp, _ := h.request(http.MethodGet, "/oauth/authorize?"+h.asking(self).Encode(), "", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without a description: %d", resp.StatusCode)
	}
}

// What a program opened ends with its sign-in.
func TestADisconnectedProgramLeavesNothingOpen(t *testing.T) {
	h := start(t, forPrograms)
	id := h.program()
	_, a := h.exchange(id, h.code(h.asking(id)))
	who, err := h.Program(t.Context(), a["access_token"].(string))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := h.store.AddMachineToken(ctx, store.OwnerID, "m1", "PC", false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.AddSandbox(ctx, store.Sandbox{ID: "s1", User: store.OwnerID, Machine: "m1", Principal: who.SignIn, Mode: "work"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := h.store.RevokeSignIn(ctx, who.SignIn, "its person ended it"); err != nil {
		t.Fatal(err)
	}
	if b, err := h.store.Sandbox(ctx, "s1"); err != nil || !b.Ended {
		t.Errorf("its session: %+v, %v", b, err)
	}
	if who, err := h.Program(ctx, a["access_token"].(string)); err == nil {
		t.Errorf("its token stands for %+v", who)
	}
}

func TestMetadataForPrograms(t *testing.T) {
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		_, a := start(t, forPrograms).request(http.MethodGet, path, "", "")
		if a["registration_endpoint"] == nil || a["client_id_metadata_document_supported"] != true || !strings.Contains(fmt.Sprint(a["scopes_supported"]), ScopeInput) {
			t.Errorf("%s: %v", path, a)
		}
		if _, a = start(t).request(http.MethodGet, path, "", ""); a["registration_endpoint"] != nil || strings.Contains(fmt.Sprint(a["scopes_supported"]), ScopeInput) {
			t.Errorf("%s where no program comes: %v", path, a)
		}
	}
}

// A token is for the place that it was made for: not for the same hub under
// another name, where it may have come by somebody else's hands.
func TestATokenIsForOnePlace(t *testing.T) {
	h := start(t, forPrograms)
	id := h.program()
	_, a := h.exchange(id, h.code(h.asking(id)))
	dir := h.dir
	h.stop()
	moved := startIn(t, dir, forPrograms)
	if who, err := moved.Program(t.Context(), a["access_token"].(string)); err == nil {
		t.Errorf("at another address it stands for %+v", who)
	}
	if resp, b := moved.tokens(url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {a["refresh_token"].(string)}}); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("and is renewed: %d %v", resp.StatusCode, b)
	}
}
