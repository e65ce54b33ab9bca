package oauth

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"localpc/tunnel/hub/store"
	msg "localpc/tunnel/wire/autogpt"
)

const theirRedirect = "http://localhost:41899/callback"

func theirQuery(verifier string) url.Values {
	return url.Values{"response_type": {"code"}, "client_id": {msg.ClientID}, "redirect_uri": {theirRedirect}, "scope": {"USE_TOOLS"},
		"state": {"the state"}, "code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"}}
}

func theirExchange(code, verifier string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {theirRedirect}, "client_id": {msg.ClientID}, "code_verifier": {verifier}}
}

func asJSON(form url.Values) string {
	m := map[string]string{}
	for k := range form {
		m[k] = form.Get(k)
	}
	b, _ := json.Marshal(m)
	return string(b)
}

// autogptSignIn does what the existing program does: browser, form, tokens.
func (h *hub) autogptSignIn() map[string]any {
	h.t.Helper()
	verifier := oauth2.GenerateVerifier()
	id := h.ask(h.url + "/auth/authorize?" + theirQuery(verifier).Encode())
	p, err := h.Pending(h.t.Context(), id)
	if err != nil || p.Client != msg.ClientID || p.ClientName != "AutoGPT local executor" || p.Scope != "USE_TOOLS" || p.Machine != "" || p.Address != "127.0.0.1" {
		h.t.Errorf("the page would show %+v, %v", p, err)
	}
	answer := h.approve(id)
	if answer.Get("state") != "the state" || answer.Has("iss") {
		h.t.Errorf("answer %v", answer)
	}
	status, tokens := h.post("/api/oauth/token", theirExchange(answer.Get("code"), verifier))
	if status != 200 {
		h.t.Fatalf("%d %v", status, tokens)
	}
	return tokens
}

func TestAutoGPTSignIn(t *testing.T) {
	h := start(t)
	tokens := h.autogptSignIn()
	access, _ := tokens["access_token"].(string)
	refresh, _ := tokens["refresh_token"].(string)
	if got := slices.Sorted(maps.Keys(tokens)); strings.Join(got, " ") != "access_token access_token_expires_at refresh_token refresh_token_expires_at scopes token_type" {
		t.Errorf("fields %v", got)
	}
	if !strings.HasPrefix(access, "agpt_xt_") || !strings.HasPrefix(refresh, "agpt_rt_") || tokens["token_type"] != "Bearer" || fmt.Sprint(tokens["scopes"]) != "[USE_TOOLS]" {
		t.Errorf("tokens %v", tokens)
	}
	for field, ttl := range map[string]time.Duration{"access_token_expires_at": time.Hour, "refresh_token_expires_at": 30 * 24 * time.Hour} {
		at, err := time.Parse(time.RFC3339, tokens[field].(string))
		if left := at.Sub(h.now()); err != nil || left > ttl || left < ttl-time.Minute || at.Location() != time.UTC {
			t.Errorf("%s: %v, %v", field, tokens[field], err)
		}
	}
	a, err := h.Access(t.Context(), access)
	if err != nil || a.Client != msg.ClientID || a.User != "owner" || a.Machine != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	// The first computer that comes with it keeps it.
	if err := h.store.BindSignIn(t.Context(), a.SignIn, "m-9"); err != nil {
		t.Fatal(err)
	}
	if err := h.store.BindSignIn(t.Context(), a.SignIn, "m-8"); err != store.ErrNotFound {
		t.Errorf("another computer: %v", err)
	}
	// JSON does as well as a form.
	status, next := h.send("/api/oauth/token", "application/json; charset=utf-8", asJSON(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {msg.ClientID}}), "")
	if status != 200 || !h.live(next["access_token"].(string)) {
		t.Fatalf("refresh: %d %v", status, next)
	}
	if b, err := h.Access(t.Context(), next["access_token"].(string)); err != nil || b.SignIn != a.SignIn || b.Machine != "m-9" {
		t.Errorf("%+v, %v", b, err)
	}
	// Neither client may use the other's tokens.
	if status, _ := h.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"localpc"}, "refresh_token": {next["refresh_token"].(string)}}); status != 400 {
		t.Errorf("ours took theirs: %d", status)
	}
	mine := h.signIn("m-1")
	if status, _ := h.post("/api/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {msg.ClientID}, "refresh_token": {mine.RefreshToken}}); status != 400 {
		t.Errorf("theirs took ours: %d", status)
	}
	if status, _ := h.post("/api/oauth/revoke", url.Values{"client_id": {msg.ClientID}, "token": {mine.AccessToken}}); status != 200 || !h.live(mine.AccessToken) {
		t.Errorf("theirs ended ours: %d", status)
	}
	if len(h.ended()) != 0 {
		t.Errorf("ended %v", h.ended())
	}
	// The one rule for reuse.
	if status, answer := h.post("/api/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {msg.ClientID}, "refresh_token": {refresh}}); status != 400 || answer["detail"] == nil {
		t.Errorf("reuse: %d %v", status, answer)
	}
	if got := h.ended(); h.live(next["access_token"].(string)) || len(got) != 1 || got[0] != a.SignIn {
		t.Errorf("ended %v", got)
	}
}

func TestAutoGPTRevoke(t *testing.T) {
	h := start(t)
	for i, kind := range []string{"access_token", "refresh_token"} {
		for j, send := range []func(url.Values) (int, map[string]any){
			func(f url.Values) (int, map[string]any) { return h.post("/api/oauth/revoke", f) },
			func(f url.Values) (int, map[string]any) {
				return h.send("/api/oauth/revoke", "application/json", asJSON(f), "")
			},
		} {
			h.pass(time.Minute)
			tokens := h.autogptSignIn()
			form := url.Values{"token": {tokens[kind].(string)}, "token_type_hint": {kind}, "client_id": {msg.ClientID}}
			for range 2 { // the second time it is unknown, and that is no error
				if status, answer := send(form); status != 200 || answer["status"] != "ok" {
					t.Errorf("%d %v", status, answer)
				}
			}
			if len(h.ended()) != 2*i+j+1 || h.live(tokens["access_token"].(string)) {
				t.Errorf("%s: ended %v", kind, h.ended())
			}
		}
	}
}

// Every failure of section 10.
func TestAutoGPTFailures(t *testing.T) {
	h := start(t, func(o *Options) {
		o.User = func(r *http.Request) (string, bool) { return "owner", r.Header.Get("Authorization") == "Bearer mine" }
	})
	verifier := oauth2.GenerateVerifier()
	without := func(v url.Values, field string) url.Values {
		out := maps.Clone(v)
		out.Del(field)
		return out
	}
	with := func(v url.Values, field, value string) url.Values {
		out := maps.Clone(v)
		out[field] = []string{value}
		return out
	}
	good := theirQuery(verifier)

	for _, c := range []struct {
		name  string
		query url.Values
		want  string // the error that goes back, or "" for a 400 here
	}{
		{"no client", without(good, "client_id"), ""},
		{"unknown client", with(good, "client_id", "other"), ""},
		{"our client", with(good, "client_id", "localpc"), ""},
		{"no redirect", without(good, "redirect_uri"), ""},
		{"port below", with(good, "redirect_uri", "http://localhost:41898/callback"), ""},
		{"port above", with(good, "redirect_uri", "http://localhost:41911/callback"), ""},
		{"by number", with(good, "redirect_uri", "http://127.0.0.1:41899/callback"), ""},
		{"a slash more", with(good, "redirect_uri", theirRedirect+"/"), ""},
		{"https", with(good, "redirect_uri", "https://localhost:41899/callback"), ""},
		{"token", with(good, "response_type", "token"), "unsupported_response_type"},
		{"no response type", without(good, "response_type"), "unsupported_response_type"},
		{"another scope", with(good, "scope", "EXECUTE_GRAPH"), "invalid_scope"},
		{"more scope", with(good, "scope", "USE_TOOLS EXECUTE_GRAPH"), "invalid_scope"},
		{"no scope", without(good, "scope"), "invalid_scope"},
		{"plain", with(good, "code_challenge_method", "plain"), "invalid_request"},
		{"no PKCE", without(without(good, "code_challenge"), "code_challenge_method"), "invalid_request"},
		{"no state", without(good, "state"), "invalid_request"},
	} {
		resp, err := h.http.Get(h.url + "/auth/authorize?" + c.query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		at := resp.Header.Get("Location")
		if c.want == "" {
			if resp.StatusCode != 400 || at != "" || !strings.HasPrefix(string(body), `{"detail":"`) {
				t.Errorf("%s: %d %q %s", c.name, resp.StatusCode, at, body)
			}
			continue
		}
		u, err := url.Parse(at)
		if err != nil || resp.StatusCode != 302 || !strings.HasPrefix(at, theirRedirect+"?") || u.Query().Get("error") != c.want || u.Query().Get("state") != c.query.Get("state") {
			t.Errorf("%s: %d %q", c.name, resp.StatusCode, at)
		}
	}

	consent := func(change func(map[string]any)) string {
		m := map[string]any{"client_id": msg.ClientID, "redirect_uri": theirRedirect, "scopes": []string{"USE_TOOLS"}, "state": "s",
			"response_type": "code", "code_challenge": good.Get("code_challenge"), "code_challenge_method": "S256"}
		change(m)
		b, _ := json.Marshal(m)
		return string(b)
	}
	same := func(map[string]any) {}
	for _, c := range []struct {
		name, body, kind, bearer string
		status                   int
		want                     string // in redirect_url
	}{
		{"good", consent(same), "application/json", "mine", 200, "code="},
		{"defaults", consent(func(m map[string]any) { delete(m, "response_type"); delete(m, "code_challenge_method") }), "application/json", "mine", 200, "code="},
		{"nobody", consent(same), "application/json", "", 401, ""},
		{"a stranger", consent(same), "application/json", "x", 401, ""},
		{"a form", theirQuery(verifier).Encode(), "application/x-www-form-urlencoded", "mine", 422, ""},
		{"text, as a page can send", consent(same), "text/plain", "mine", 422, ""},
		{"no object", `["x"]`, "application/json", "mine", 422, ""},
		{"null", `null`, "application/json", "mine", 422, ""},
		{"cut off", `{"client_id":`, "application/json", "mine", 422, ""},
		{"more behind", consent(same) + "{}", "application/json", "mine", 422, ""},
		{"no client", consent(func(m map[string]any) { delete(m, "client_id") }), "application/json", "mine", 422, ""},
		{"no scopes", consent(func(m map[string]any) { delete(m, "scopes") }), "application/json", "mine", 422, ""},
		{"scopes as text", consent(func(m map[string]any) { m["scopes"] = "USE_TOOLS" }), "application/json", "mine", 422, ""},
		{"scopes of numbers", consent(func(m map[string]any) { m["scopes"] = []int{1} }), "application/json", "mine", 422, ""},
		{"no state", consent(func(m map[string]any) { delete(m, "state") }), "application/json", "mine", 422, ""},
		{"no challenge", consent(func(m map[string]any) { delete(m, "code_challenge") }), "application/json", "mine", 422, ""},
		{"a strange method", consent(func(m map[string]any) { m["code_challenge_method"] = "S512" }), "application/json", "mine", 422, ""},
		{"a number", consent(func(m map[string]any) { m["state"] = 7 }), "application/json", "mine", 422, ""},
		{"unknown client", consent(func(m map[string]any) { m["client_id"] = "other" }), "application/json", "mine", 400, ""},
		{"unregistered", consent(func(m map[string]any) { m["redirect_uri"] = "http://localhost:1/callback" }), "application/json", "mine", 400, ""},
		{"plain", consent(func(m map[string]any) { m["code_challenge_method"] = "plain" }), "application/json", "mine", 200, "error=invalid_request"},
		{"token", consent(func(m map[string]any) { m["response_type"] = "token" }), "application/json", "mine", 200, "error=unsupported_response_type"},
		{"another scope", consent(func(m map[string]any) { m["scopes"] = []string{"X"} }), "application/json", "mine", 200, "error=invalid_scope"},
		{"empty scopes", consent(func(m map[string]any) { m["scopes"] = []string{} }), "application/json", "mine", 200, "error=invalid_scope"},
	} {
		status, answer := h.send("/api/oauth/authorize", c.kind, c.body, c.bearer)
		to, _ := answer["redirect_url"].(string)
		if status != c.status || c.status != 200 && answer["detail"] == nil || c.status == 200 && (!strings.HasPrefix(to, theirRedirect+"?") || !strings.Contains(to, c.want) || !strings.Contains(to, "state=s")) {
			t.Errorf("consent, %s: %d %v", c.name, status, answer)
		}
	}

	h.pass(time.Minute)
	exchange, refresh := theirExchange(random(32), verifier), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"agpt_rt_x"}, "client_id": {msg.ClientID}}
	revoke := url.Values{"token": {"agpt_xt_x"}, "client_id": {msg.ClientID}}
	introspect := url.Values{"token": {"agpt_xt_x"}, "client_id": {"relay"}, "client_secret": {"s3cret"}}
	for _, c := range []struct {
		name, path string
		form       url.Values
		status     int
	}{
		{"guessed code", "token", exchange, 400},
		{"guessed refresh", "token", refresh, 400},
		{"another grant", "token", with(exchange, "grant_type", "password"), 400},
		{"no grant", "token", without(exchange, "grant_type"), 422},
		{"no code", "token", without(exchange, "code"), 422},
		{"no redirect", "token", without(exchange, "redirect_uri"), 422},
		{"no verifier", "token", without(exchange, "code_verifier"), 422},
		{"empty verifier", "token", with(exchange, "code_verifier", ""), 422},
		{"no client", "token", without(exchange, "client_id"), 422},
		{"unknown client", "token", with(exchange, "client_id", "other"), 401},
		{"our client", "token", with(exchange, "client_id", "localpc"), 401},
		{"no refresh token", "token", without(refresh, "refresh_token"), 422},
		{"refresh of an unknown client", "token", with(refresh, "client_id", "other"), 401},
		{"unknown token", "revoke", revoke, 200},
		{"revoke of an unknown client", "revoke", with(revoke, "client_id", "other"), 401},
		{"revoke without a token", "revoke", without(revoke, "token"), 422},
		{"revoke without a client", "revoke", without(revoke, "client_id"), 422},
		{"a strange hint", "revoke", with(revoke, "token_type_hint", "id_token"), 422},
		{"introspect", "introspect", introspect, 401},
		{"a public client", "introspect", with(introspect, "client_id", msg.ClientID), 401},
		{"no secret", "introspect", without(introspect, "client_secret"), 422},
		{"introspect without a token", "introspect", without(introspect, "token"), 422},
	} {
		path := "/api/oauth/" + c.path
		for kind, body := range map[string]string{"application/x-www-form-urlencoded": c.form.Encode(), "application/json": asJSON(c.form)} {
			status, answer := h.send(path, kind, body, "")
			if status != c.status || (status != 200) != (answer["detail"] != nil) || len(answer) != 1 && status != 200 {
				t.Errorf("%s as %s: %d %v", c.name, kind, status, answer)
			}
			if status == 422 {
				entry, _ := answer["detail"].([]any)[0].(map[string]any)
				if entry["loc"] == nil || entry["msg"] == nil || entry["type"] == nil {
					t.Errorf("%s: %v", c.name, answer)
				}
			}
		}
	}
	for _, kind := range []string{"text/plain", "multipart/form-data", ""} {
		if status, _ := h.send("/api/oauth/token", kind, exchange.Encode(), ""); status != 422 {
			t.Errorf("%q: %d", kind, status)
		}
	}
	if status, answer := h.send("/api/oauth/token", "application/json", `"`+strings.Repeat("x", maxBody)+`"`, ""); status != 413 || answer["detail"] == nil {
		t.Errorf("a large body: %d %v", status, answer)
	}

	// The code given at the consent call is good, once, and told about.
	h.pass(time.Minute)
	_, answer := h.send("/api/oauth/authorize", "application/json", consent(same), "mine")
	u, _ := url.Parse(answer["redirect_url"].(string))
	form := theirExchange(u.Query().Get("code"), verifier)
	status, tokens := h.post("/api/oauth/token", form)
	if status != 200 {
		t.Fatalf("%d %v", status, tokens)
	}
	if !h.live(tokens["access_token"].(string)) {
		t.Error("its token is not good")
	}
	if status, _ := h.post("/api/oauth/token", form); status != 400 || h.live(tokens["access_token"].(string)) {
		t.Errorf("the same code again: %d", status)
	}
	// A broken store is a 500, and goes back as server_error from the browser.
	h.pass(time.Minute)
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	for path, form := range map[string]url.Values{"token": exchange, "revoke": revoke} {
		if status, answer := h.post("/api/oauth/"+path, form); status != 500 || answer["detail"] != brokenDetail {
			t.Errorf("%s with a broken store: %d %v", path, status, answer)
		}
	}
	resp, err := h.http.Get(h.url + "/auth/authorize?" + good.Encode())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if at := resp.Header.Get("Location"); !strings.HasPrefix(at, theirRedirect+"?") || !strings.Contains(at, "error=server_error") {
		t.Errorf("the browser with a broken store: %d %q", resp.StatusCode, at)
	}
	if status, answer := h.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"localpc"}, "refresh_token": {"lpr_x"}}); status != 500 || strings.Contains(fmt.Sprint(answer), "sql") {
		t.Errorf("ours with a broken store: %d %v", status, answer)
	}
}

// Who is logged out while they hold back the rest of the body agrees to nothing.
func TestHeldConsent(t *testing.T) {
	var ended atomic.Bool
	h := start(t, func(o *Options) { o.User = func(*http.Request) (string, bool) { return "owner", !ended.Load() } })
	body := fmt.Sprintf(`{"client_id":%q,"redirect_uri":%q,"scopes":["USE_TOOLS"],"state":"s","code_challenge":%q,"code_challenge_method":"S256"}`,
		msg.ClientID, theirRedirect, oauth2.S256ChallengeFromVerifier(oauth2.GenerateVerifier()))
	for _, held := range []bool{false, true} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "POST /api/oauth/authorize HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:len(body)-1])
		time.Sleep(200 * time.Millisecond) // it waits for the rest
		ended.Store(held)
		_, _ = io.WriteString(conn, body[len(body)-1:])
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := map[bool]int{false: 200, true: 401}[held]; resp.StatusCode != want || strings.Contains(string(answer), "code=") == held {
			t.Errorf("logged out meanwhile %v: %d %s", held, resp.StatusCode, answer)
		}
	}
}
