package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"localpc/tunnel/hub/store"
)

// signUp has a program sign itself up, and gives its id.
func (s *site) signUp(name, redirect string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirect}})
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := client.Post(s.url+"/oauth/register", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		ClientID string `json:"client_id"`
	}
	if data, _ := io.ReadAll(resp.Body); json.Unmarshal(data, &answer) != nil || resp.StatusCode != http.StatusCreated {
		s.t.Fatalf("register: %d %s", resp.StatusCode, data)
	}
	return answer.ClientID
}

// programAsks is where an MCP client sends the browser.
func (s *site) programAsks(id, redirect, scope string) string {
	return s.url + "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {redirect}, "scope": {scope}, "state": {"its state"},
		"resource": {s.url + "/mcp"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}}.Encode()
}

// A person lets a program in on the page, finds it among the connected ones,
// and shuts it out again.
func TestConnectAProgram(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s, p := owned(t), newProgram(t)
		id := s.signUp("Claude\u202e Code", p.redirect)
		b := s.browser(z).logIn("Ana").open(s.programAsks(id, p.redirect, "machines:read machines:input")).
			sees("Let this program use your computers?", "It calls itself", "“Claude", "Code”", "What should it be called", "A program on this computer", "list, read and search files", "mouse and keyboard").
			seesNot("Run commands", "\u202e").check("program")
		b.click("No").sees("close this page")
		if a := <-p.answers; a.Get("error") != "access_denied" || a.Get("state") != "its state" || a.Get("iss") != s.url {
			t.Errorf("after No the program got %v", a)
		}
		b.open(s.programAsks(id, p.redirect, "")).sees("Run commands").seesNot("mouse")
		if _, err := s.store.AddKey(t.Context(), store.OwnerID, "Research agent"); err != nil {
			t.Fatal(err)
		}
		const called = "What should it be called on your computers?"
		b.fill(called, "research agent").key(kb.Enter)
		b.click("Yes, connect this program").sees("Another of your programs has this name", "“Claude").check("program-name")
		b.fill(called, "Coding helper").click("Yes, connect this program").sees("close this page")
		code := (<-p.answers).Get("code")
		resp, err := client.PostForm(s.url+"/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code}, "redirect_uri": {p.redirect},
			"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, "resource": {s.url + "/mcp"}})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var tokens struct {
			Access string `json:"access_token"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&tokens); err != nil || tokens.Access == "" {
			t.Fatalf("token: %d, %v", resp.StatusCode, err)
		}
		if a, err := s.oauth.Program(t.Context(), tokens.Access); err != nil || a.User == "" || a.Called != "Coding helper" || !strings.HasPrefix(a.Name, "Claude") || strings.Join(a.Scopes, " ") != "machines:read machines:use" {
			t.Errorf("the token stands for %+v, %v", a, err)
		}
		b.open("/account").seesNot("Code”")
		b.open("/keys").sees("Programs that signed in", "Coding helper", "calls itself “Claude").check("keys-programs")
		b.click("Disconnect").sees("Disconnect Coding helper?", "shut out now").check("program-end").click("Disconnect").sees("The program is disconnected.").seesNot("Programs that signed in")
		if a, err := s.oauth.Program(t.Context(), tokens.Access); err == nil {
			t.Errorf("its token still stands for %+v", a)
		}
	})
}

// A program's request is answered on its own page alone, says where the answer
// goes, and Enter alone says no more than the keyboard chose.
func TestAProgramElsewhere(t *testing.T) {
	t.Parallel()
	s := owned(t)
	id := s.signUp("Cloud agent", "https://agent.example/answer")
	b := s.browser(desk).open(s.programAsks(id, "https://agent.example/answer", "")).sees("Log in")
	b.fill("Name", "Ana").fill("Password", password).click("Log in").sees("agent.example", "started this just now, at agent.example")
	to := b.url()
	b.key(kb.Enter)
	b.open(strings.Replace(to, "/connect?", "/pair?", 1)).sees("This request has ended")
	b.open(to).sees("Cloud agent")
	q := s.asks("http://127.0.0.1:9/callback", "m1", "Workshop PC", "4711")
	b.open(q).sees("4711")
	b.open(strings.Replace(b.url(), "/pair?", "/connect?", 1)).sees("This request has ended")
	policy := func() string {
		resp, err := client.Get(to)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.Header.Get("Content-Security-Policy")
	}()
	if strings.Contains(policy, "agent.example") {
		t.Errorf("who is not logged in gets a page that leads there: %s", policy)
	}
}

// A program that is started by a scheme of its own gets its answer by a link
// that the person presses: the page names the scheme, and the browser goes
// there by nothing else.
func TestAProgramWithAScheme(t *testing.T) {
	t.Parallel()
	const redirect = "cursor://anysphere.cursor-mcp/oauth/callback"
	s := owned(t)
	id := s.signUp("Cursor", redirect)
	b := s.browser(desk).logIn("Ana")
	b.open(s.programAsks(id, redirect, "")).sees("The program on this computer that opens cursor: links", "in the program on this computer that opens cursor: links").check("program-app")
	b.click("No").sees("Nothing was connected").check("program-app-no")
	for _, c := range []struct{ press, answer string }{{"No", "error"}, {"Yes, connect this program", "code"}} {
		b.open(s.programAsks(id, redirect, "")).click(c.press).sees("Back to the program")
		if !strings.HasPrefix(b.url(), s.url) {
			t.Errorf("after %s the browser is at %s", c.press, b.url())
		}
		to, err := url.Parse(js[string](b, `[...document.querySelectorAll("a")].find(a => a.innerText === "Back to the program").href`))
		if err != nil || to.Scheme+"://"+to.Host+to.Path != redirect || to.Query().Get(c.answer) == "" || to.Query().Get("state") != "its state" || to.Query().Get("iss") != s.url {
			t.Errorf("after %s the link leads to %s, %v", c.press, to, err)
		}
	}
	b.sees("whether to open what cursor: links belong to").check("program-app-yes")
}
