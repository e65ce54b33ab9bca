package oauth

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"localpc/tunnel/hub/store"
	msg "localpc/tunnel/wire/autogpt"
)

func TestCodeThroughTheBrowser(t *testing.T) {
	h := start(t)
	conf, verifier := h.config(), oauth2.GenerateVerifier()
	id := h.ask(conf.AuthCodeURL("the state", append(about("m-1"), oauth2.S256ChallengeOption(verifier))...))
	p, err := h.Pending(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if p.ID != id || p.Client != "localpc" || p.ClientName != "Local PC Executor" || p.Machine != "m-1" || p.MachineName != "Mac-1" || p.Device ||
		p.System != "Debian GNU/Linux 12, x86_64" || p.Address != "127.0.0.1" || p.Match != "0417" || p.Scope != "openid offline_access machine" {
		t.Errorf("the page would show %+v", p)
	}
	if in := p.Until.Sub(h.now()); in < 9*time.Minute || in > 10*time.Minute {
		t.Errorf("it waits %v", in)
	}
	answer := h.approve(id)
	if answer.Get("state") != "the state" || answer.Get("iss") != h.url {
		t.Errorf("answer %v", answer)
	}
	for what, again := range map[string]func(context.Context, string) (string, error){
		"approve": func(ctx context.Context, id string) (string, error) { return h.Approve(ctx, id, "owner") }, "deny": h.Deny,
		"pending": func(ctx context.Context, id string) (string, error) { _, err := h.Pending(ctx, id); return "", err },
	} {
		if _, err := again(t.Context(), id); err != store.ErrNotFound {
			t.Errorf("%s after the answer: %v", what, err)
		}
	}
	token, err := conf.Exchange(h.ctx(), answer.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(token.AccessToken, "lpa_") || !strings.HasPrefix(token.RefreshToken, "lpr_") || token.TokenType != "Bearer" || token.ExpiresIn != 3600 {
		t.Errorf("token %+v", token)
	}
	a, err := h.Access(t.Context(), token.AccessToken)
	if err != nil || a.User != "owner" || a.Client != "localpc" || a.Machine != "m-1" || strings.Join(a.Scopes, " ") != "openid offline_access machine" {
		t.Errorf("access %+v, %v", a, err)
	}
	if left := a.Expires.Sub(h.now()); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it lives %v", left)
	}
	for _, other := range []string{token.RefreshToken, token.AccessToken + "0", "lpa_", "", "lpm_" + strings.Repeat("0", 64), "lpa_" + strings.Repeat("f", 5000)} {
		if _, err := h.Access(t.Context(), other); err != store.ErrNotFound {
			t.Errorf("%.80q opens something: %v", other, err)
		}
	}
	// The code came back: whoever has it is not the one who asked.
	if _, err := conf.Exchange(h.ctx(), answer.Get("code"), oauth2.VerifierOption(verifier)); err == nil {
		t.Error("a code was good twice")
	}
	if h.live(token.AccessToken) || len(h.ended()) != 1 || h.ended()[0] != a.SignIn {
		t.Errorf("after a code came twice, live %v, ended %v", h.live(token.AccessToken), h.ended())
	}
}

// What is wrong is said to the program where the answer may go to it, and to
// the browser where it may not.
func TestAuthorizeRefusals(t *testing.T) {
	h := start(t, func(o *Options) { o.Issuer = strings.Replace(o.Issuer, "127.0.0.1", "localhost", 1) })
	good := url.Values{"client_id": {"localpc"}, "redirect_uri": {redirect}, "response_type": {"code"}, "scope": {"openid offline_access machine"}, "state": {"s t"},
		"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"},
		"machine_id": {"m-1"}, "machine_name": {"Mac-1"}, "machine_system": {"Debian"}, "match": {"0417"}}
	for _, c := range []struct{ name, field, value, want string }{
		{"no client", "client_id", "", ""},
		{"another client", "client_id", "autogpt-local-executor", ""},
		{"no redirect", "redirect_uri", "", ""},
		{"by name", "redirect_uri", "http://localhost:53682/callback", ""},
		{"another loopback", "redirect_uri", "http://127.0.0.2:53682/callback", ""},
		{"another computer", "redirect_uri", "http://192.168.1.2:53682/callback", ""},
		{"another path", "redirect_uri", "http://127.0.0.1:53682/other", ""},
		{"a query", "redirect_uri", redirect + "?x=1", ""},
		{"a fragment", "redirect_uri", redirect + "#x", ""},
		{"a user", "redirect_uri", "http://a@127.0.0.1:53682/callback", ""},
		{"a host in the user", "redirect_uri", "http://127.0.0.1:53682@evil.example/callback", ""},
		{"https", "redirect_uri", "https://127.0.0.1:53682/callback", ""},
		{"no port", "redirect_uri", "http://127.0.0.1/callback", ""},
		{"port 0", "redirect_uri", "http://127.0.0.1:0/callback", ""},
		{"port of five and a half digits", "redirect_uri", "http://127.0.0.1:065000/callback", ""},
		{"another writing", "redirect_uri", "HTTP://127.0.0.1:53682/callback", ""},
		{"another writing of ::1", "redirect_uri", "http://[0:0:0:0:0:0:0:1]:53682/callback", ""},
		{"a dot", "redirect_uri", "http://127.0.0.1:53682/./callback", ""},
		{"no code", "response_type", "token", "unauthorized_client"},
		{"id_token", "response_type", "id_token token", "unauthorized_client"},
		{"no response type", "response_type", "", "invalid_request"},
		{"no PKCE", "code_challenge", "", "invalid_request"},
		{"short PKCE", "code_challenge", "short", "invalid_request"},
		{"plain", "code_challenge_method", "plain", "invalid_request"},
		{"PKCE without a method", "code_challenge_method", "", "invalid_request"},
		{"no scope", "scope", "", "invalid_request"},
		{"too little scope", "scope", "openid offline_access", "invalid_scope"},
		{"a fragment's mode", "response_mode", "fragment", "invalid_request"},
		{"without a person", "prompt", "none", "interaction_required"},
		{"a request object", "request", "e30.e30.", "request_not_supported"},
		{"a request object elsewhere", "request_uri", "https://evil.example/", "request_not_supported"},
		{"long state", "state", strings.Repeat("s", maxState+1), "invalid_request"},
		{"no machine", "machine_id", "", "invalid_request"},
		{"a strange machine", "machine_id", "../x", "invalid_request"},
		{"a long machine", "machine_id", strings.Repeat("m", 300), "invalid_request"},
		{"no name", "machine_name", " ", "invalid_request"},
		{"a long name", "machine_name", strings.Repeat("n", 241), "invalid_request"},
		{"no text", "machine_name", "\xff", "invalid_request"},
		{"no system", "machine_system", "", "invalid_request"},
		{"no match", "match", "", "invalid_request"},
		{"a strange match", "match", "12345", "invalid_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := url.Values{}
			for k, v := range good {
				q[k] = v
			}
			q.Set(c.field, c.value)
			if c.value == "" {
				q.Del(c.field)
			}
			resp, err := h.http.Get(h.url + "/oauth/authorize?" + q.Encode())
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			to := resp.Header.Get("Location")
			if c.want == "" {
				if resp.StatusCode != http.StatusBadRequest || to != "" || strings.Contains(string(body), "{") || !strings.HasSuffix(string(body), ".\n") {
					t.Errorf("status %d, location %q, %s", resp.StatusCode, to, body)
				}
				return
			}
			u, err := url.Parse(to)
			if err != nil || resp.StatusCode != http.StatusFound || u.Scheme+"://"+u.Host+u.Path != redirect {
				t.Fatalf("status %d, location %q: %s", resp.StatusCode, to, body)
			}
			v := u.Query()
			if u.Fragment != "" { // where the way that was asked for would put it
				v, _ = url.ParseQuery(u.Fragment)
			}
			if v.Get("error") != c.want || v.Get("state") != q.Get("state") || v.Get("iss") != h.o.Issuer || v.Get("code") != "" {
				t.Errorf("answer %v", v)
			}
		})
	}
	resp, err := h.http.Get(h.url + "/oauth/authorize?" + good.Encode() + "&state=another")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a parameter twice: %d", resp.StatusCode)
	}
	six := url.Values{}
	for k, v := range good {
		six[k] = v
	}
	six.Set("redirect_uri", "http://[::1]:9/callback")
	six.Set("machine_name", "Mac\u202e-1\n")
	resp, err = h.http.Get(h.url + "/oauth/authorize?" + six.Encode())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	at, err := resp.Location()
	if err != nil || at.Host != strings.TrimPrefix(h.o.Issuer, "http://") {
		t.Fatalf("IPv6 loopback: %v, %v", at, err)
	}
	p, err := h.Pending(t.Context(), at.Query().Get("request"))
	if err != nil || p.MachineName != "Mac\u202e-1" {
		t.Errorf("%+q, %v", p.MachineName, err)
	}
	if to, err := h.Deny(t.Context(), p.ID); err != nil || !strings.HasPrefix(to, "http://[::1]:9/callback?") || !strings.Contains(to, "error=access_denied") || !strings.Contains(to, "state=s+t") {
		t.Errorf("denied: %s, %v", to, err)
	}
	if _, err := h.Approve(t.Context(), p.ID, "owner"); err != store.ErrNotFound {
		t.Errorf("approved after no: %v", err)
	}
}

// A stranger who sees the code, or guesses, gets nothing, and the code is gone.
func TestExchangeRefusals(t *testing.T) {
	h := start(t, func(o *Options) { o.CodeTTL = time.Minute })
	verifier := oauth2.GenerateVerifier()
	exchange := func(change func(url.Values)) (int, map[string]any) {
		t.Helper()
		id := h.ask(h.config().AuthCodeURL("s", append(about("m-1"), oauth2.S256ChallengeOption(verifier))...))
		form := url.Values{"grant_type": {"authorization_code"}, "client_id": {"localpc"}, "code": {h.approve(id).Get("code")}, "redirect_uri": {redirect}, "code_verifier": {verifier}}
		change(form)
		return h.post("/oauth/token", form)
	}
	for _, c := range []struct {
		name   string
		change func(url.Values)
		status int
		want   string
	}{
		{"good", func(url.Values) {}, 200, ""},
		{"another verifier", func(f url.Values) { f.Set("code_verifier", oauth2.GenerateVerifier()) }, 400, "invalid_grant"},
		{"no verifier", func(f url.Values) { f.Del("code_verifier") }, 400, "invalid_grant"},
		{"the challenge as verifier", func(f url.Values) { f.Set("code_verifier", oauth2.S256ChallengeFromVerifier(verifier)) }, 400, "invalid_grant"},
		{"another redirect", func(f url.Values) { f.Set("redirect_uri", "http://127.0.0.1:1/callback") }, 400, "invalid_grant"},
		{"no redirect", func(f url.Values) { f.Del("redirect_uri") }, 400, "invalid_request"},
		{"no code", func(f url.Values) { f.Del("code") }, 400, "invalid_request"},
		{"a guessed code", func(f url.Values) { f.Set("code", random(32)) }, 400, "invalid_grant"},
		{"another client", func(f url.Values) { f.Set("client_id", msg.ClientID) }, 401, "invalid_client"},
		{"no client", func(f url.Values) { f.Del("client_id") }, 400, "invalid_request"},
		{"a secret", func(f url.Values) { f.Set("client_secret", "x") }, 401, "invalid_client"},
		{"no grant", func(f url.Values) { f.Del("grant_type") }, 400, "invalid_request"},
		{"another grant", func(f url.Values) { f.Set("grant_type", "password") }, 400, "unsupported_grant_type"},
		{"client credentials", func(f url.Values) { f.Set("grant_type", "client_credentials") }, 400, "unauthorized_client"},
		{"twice", func(f url.Values) { f.Add("code", "x") }, 400, "invalid_request"},
		{"late", func(url.Values) { h.pass(2 * time.Minute) }, 400, "invalid_grant"},
	} {
		h.pass(time.Minute)
		status, answer := exchange(c.change)
		if code, _ := answer["error"].(string); status != c.status || code != c.want {
			t.Errorf("%s: %d %v", c.name, status, answer)
		}
	}
	id := h.ask(h.config().AuthCodeURL("s", append(about("m-2"), oauth2.S256ChallengeOption(verifier))...))
	code := h.approve(id).Get("code")
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {"localpc"}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {oauth2.GenerateVerifier()}}
	h.post("/oauth/token", form)
	form.Set("code_verifier", verifier)
	if status, answer := h.post("/oauth/token", form); status != 400 {
		t.Errorf("the code was still good after a wrong verifier: %v", answer)
	}
	if status, _ := h.send("/oauth/token", "application/json", `{"grant_type":"authorization_code"}`, ""); status != 400 {
		t.Errorf("JSON: %d", status)
	}
	if status, _ := h.send("/oauth/token?code=x", "application/x-www-form-urlencoded", form.Encode(), ""); status != 400 {
		t.Errorf("a code in the address: %d", status)
	}
	if status, _ := h.send("/oauth/token", "application/x-www-form-urlencoded", "x="+strings.Repeat("y", maxBody), ""); status != 400 {
		t.Errorf("a large body: %d", status)
	}
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	h := startIn(t, dir)
	verifier := oauth2.GenerateVerifier()
	id := h.ask(h.config().AuthCodeURL("s", append(about("m-2"), oauth2.S256ChallengeOption(verifier))...))
	token := h.signIn("m-1")
	h.stop()
	h = startIn(t, dir)
	if !h.live(token.AccessToken) {
		t.Error("a token was forgotten")
	}
	code := h.approve(id).Get("code")
	h.stop()
	h = startIn(t, dir)
	if _, err := h.config().Exchange(h.ctx(), code, oauth2.VerifierOption(verifier)); err != nil {
		t.Error(err)
	}
}

// A computer that signs in again takes the place of its earlier sign-in; one
// that is another person's is theirs until they disconnect it.
func TestOneSignInPerMachine(t *testing.T) {
	h := start(t)
	first := h.signIn("m-1")
	a, err := h.Access(t.Context(), first.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	second := h.signIn("m-1")
	if h.live(first.AccessToken) || !h.live(second.AccessToken) || len(h.ended()) != 1 || h.ended()[0] != a.SignIn {
		t.Errorf("ended %v", h.ended())
	}
	guest, _, err := h.store.AddUser(t.Context(), "Guest")
	if err != nil {
		t.Fatal(err)
	}
	conf, verifier := h.config(), oauth2.GenerateVerifier()
	id := h.ask(conf.AuthCodeURL("s", append(about("m-1"), oauth2.S256ChallengeOption(verifier))...))
	if _, err := h.Approve(t.Context(), id, guest.ID); err != store.ErrTaken {
		t.Errorf("another's computer: %v", err)
	}
	if _, err := h.Pending(t.Context(), id); err != nil {
		t.Errorf("it waits no more: %v", err)
	}
	if status, _ := h.post("/oauth/revoke", url.Values{"client_id": {"localpc"}, "token": {second.AccessToken}}); status != 200 {
		t.Error(status)
	}
	if _, err := h.Approve(t.Context(), id, guest.ID); err != nil {
		t.Errorf("after it was disconnected: %v", err)
	}
}

// Neither the database nor the log has anything that opens something.
func TestNothingInPlain(t *testing.T) {
	h := start(t, func(o *Options) { o.User = func(*http.Request) (string, bool) { return "owner", true } })
	token := h.signIn("m-1")
	next, err := h.refreshed(token.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	device, err := h.config().DeviceAuth(h.ctx(), about("m-3")...)
	if err != nil {
		t.Fatal(err)
	}
	verifier := oauth2.GenerateVerifier()
	code := h.approve(h.ask(h.config().AuthCodeURL("s", append(about("m-2"), oauth2.S256ChallengeOption(verifier))...))).Get("code")
	theirs := h.autogptSignIn()
	secrets := []string{token.AccessToken, token.RefreshToken, next.AccessToken, next.RefreshToken, device.DeviceCode, device.UserCode,
		strings.ReplaceAll(device.UserCode, "-", ""), verifier, code, theirs["access_token"].(string), theirs["refresh_token"].(string)}
	h.refreshed(token.RefreshToken)
	logs := h.logs.String()
	h.stop()
	files, err := filepath.Glob(filepath.Join(h.dir, "hub.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s contains %.12s…", filepath.Base(name), s)
			}
		}
	}
	for _, s := range secrets {
		if strings.Contains(logs, s) {
			t.Errorf("the log contains %.12s…", s)
		}
	}
}

func TestNewRefusesAnAddress(t *testing.T) {
	st, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, issuer := range []string{"", "hub.example", "ftp://hub.example", "https://hub.example/path", "https://hub.example?x", "https://hub.example#x"} {
		if f, err := New(t.Context(), Options{Store: st, Issuer: issuer}); err == nil {
			f.Close()
			t.Errorf("%q was taken", issuer)
		}
	}
}
