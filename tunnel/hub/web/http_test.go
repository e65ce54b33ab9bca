package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/hub/web"
)

// caller is a browser without a window.
type caller struct {
	t    *testing.T
	site *site
	http *http.Client
}

func (s *site) caller() *caller {
	jar, _ := cookiejar.New(nil)
	c := *client
	c.Jar = jar
	return &caller{s.t, s, &c}
}

type answer struct {
	*http.Response
	text string
}

func (c *caller) do(method, path string, form url.Values, header ...string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.site.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{resp, string(body)}
}

func (c *caller) get(path string) answer { c.t.Helper(); return c.do("GET", path, nil) }

func (c *caller) post(path string, form url.Values) answer {
	c.t.Helper()
	return c.do("POST", path, form)
}

func (c *caller) logIn(name string) *caller {
	c.t.Helper()
	if a := c.post("/login", url.Values{"name": {name}, "password": {password}}); a.StatusCode != http.StatusSeeOther {
		c.t.Fatalf("log-in: %d %s", a.StatusCode, a.text)
	}
	return c
}

func (c *caller) cookie() *http.Cookie {
	u, _ := url.Parse(c.site.url)
	for _, k := range c.http.Jar.Cookies(u) {
		if k.Name == "localpc_hub" {
			return k
		}
	}
	return nil
}

// setCookie is the header that sets a cookie, "" for none.
func setCookie(h http.Header, name string) string {
	for _, k := range h.Values("Set-Cookie") {
		if strings.HasPrefix(k, name+"=") {
			return k
		}
	}
	return ""
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := owned(t)
	c := s.caller().logIn("Ana")
	for _, path := range []string{"/", "/keys", "/account", "/people", "/pair", "/login", "/setup", "/join?token=x", "/nothing/here", "/web/nothing", "/web/style.css"} {
		h := c.get(path).Header
		policy := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, part)
			}
		}
		for _, part := range []string{"unsafe", "*", "data:"} {
			if strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q has %s", path, policy, part)
			}
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: headers %v", path, h)
		}
		if !strings.HasPrefix(path, "/web/") && !strings.Contains(h.Get("Cache-Control"), "no-store") {
			t.Errorf("%s may be kept: %q", path, h.Values("Cache-Control"))
		}
	}
	// Only the page whose form leads to a program on this computer may.
	p := newProgram(t)
	to, err := url.Parse(c.do("GET", strings.TrimPrefix(s.asks(p.redirect, "m1", "PC", "4711"), s.url), nil).Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	if policy := c.get(to.RequestURI()).Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' http://127.0.0.1:* http://localhost:*;") {
		t.Errorf("the policy of the pairing page is %q", policy)
	}
	page := c.get("/account").text
	if regexp.MustCompile(`(?i)<script>|\son\w+=|style=|javascript:`).MatchString(page) {
		t.Errorf("a page has scripts or styles in itself:\n%s", page)
	}
	asset := regexp.MustCompile(`/web/style\.css\?v=\w+`).FindString(page)
	if a := c.get(asset); asset == "" || !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("Set-Cookie") != "" {
		t.Errorf("%q: %v", asset, a.Header)
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	s := owned(t)
	c := s.caller()
	if a := c.get("/login"); a.Header.Get("Set-Cookie") != "" {
		t.Errorf("a visit alone sets a cookie: %q", a.Header.Get("Set-Cookie"))
	}
	a := c.post("/login", url.Values{"name": {"Ana"}, "password": {password}})
	for name, days := range map[string]int{"localpc_hub": 30, "localpc_device": 365} {
		k := setCookie(a.Header, name)
		if !strings.Contains(k, "HttpOnly") || !strings.Contains(k, "SameSite=Lax") || !strings.Contains(k, "Path=/;") || strings.Contains(k, "Domain") {
			t.Errorf("cookie %q", k)
		}
		if c, err := http.ParseSetCookie(k); err != nil || c.MaxAge < days*86400-60 || c.MaxAge > days*86400+60 {
			t.Errorf("the cookie %q is not good for %d days", k, days)
		}
	}
	// What is kept is not what the browser has.
	first := c.cookie().Value
	if _, err := s.store.Browser(t.Context(), first); err == nil {
		t.Error("the cookie itself is kept")
	}
	// A log-in renews it: one that somebody else set before is worth nothing.
	c.post("/login", url.Values{"name": {"Ana"}, "password": {password}})
	if c.cookie().Value == first {
		t.Error("the cookie stayed the same at the log-in")
	}
	old := s.caller()
	if a := old.do("GET", "/", nil, "Cookie", "localpc_hub="+first); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the cookie of before the log-in is good: %d", a.StatusCode)
	}
	last := c.cookie().Value
	c.post("/logout", nil)
	if a := old.do("GET", "/", nil, "Cookie", "localpc_hub="+last); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the cookie is good after the log-out: %d", a.StatusCode)
	}

	secure, err := web.New(web.Options{Store: s.store, OAuth: s.oauth, Hub: s, PublicURL: "https://hub.example/"})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "https://hub.example/login", strings.NewReader(url.Values{"name": {"Ana"}, "password": {password}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	secure.Handler().ServeHTTP(w, r)
	k := setCookie(w.Header(), "__Host-localpc_hub")
	if d := setCookie(w.Header(), "__Host-localpc_device"); !strings.Contains(k, "; Secure") || !strings.Contains(d, "; Secure") {
		t.Errorf("cookies over https: %q, %q", k, d)
	}
	// Another face takes it too, but not from another site's page.
	r = httptest.NewRequest("POST", "https://hub.example/api/oauth/authorize", nil)
	r.Header.Set("Cookie", strings.SplitN(k, ";", 2)[0])
	if u, ok := secure.User(r); !ok || u != store.OwnerID {
		t.Errorf("user %q, %v", u, ok)
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if u, ok := secure.User(r); ok {
		t.Errorf("user %q of another site's page", u)
	}
}

// Browsers shall come over https alone where the hub has the name to itself.
func TestHTTPSAlone(t *testing.T) {
	t.Parallel()
	s := owned(t)
	for at, want := range map[string]string{"https://hub.example": "max-age=31536000", "https://Hub.example:443/": "max-age=31536000", "https://hub.example:8443": "",
		"http://hub.example": "", "https://localhost": "", "https://hub.localhost": "", "https://192.0.2.7": "", "https://[2001:db8::1]": ""} {
		f, err := web.New(web.Options{Store: s.store, OAuth: s.oauth, Hub: s, PublicURL: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/login", "/nothing", "/web/style.css"} {
			w := httptest.NewRecorder()
			f.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if got := w.Header().Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s%s: %q, want %q", at, path, got, want)
			}
		}
	}
}

func TestNoWayElsewhere(t *testing.T) {
	t.Parallel()
	s := owned(t)
	for _, next := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "/\t/evil.example", "javascript:alert(1)", "/pair@evil.example", "http:evil", "/logout", "/web/style.css", "/pair?request=//evil.example", "%2f%2fevil.example", "keys"} {
		a := s.caller().post("/login", url.Values{"name": {"Ana"}, "password": {password}, "next": {next}})
		to := a.Header.Get("Location")
		if to != "/" && to != "/pair" {
			t.Errorf("after the log-in, %q leads to %q", next, to)
		}
	}
	a := s.caller().get("/pair?request=abc_DEF-1")
	if to := a.Header.Get("Location"); to != "/login?next=%2Fpair%3Frequest%3Dabc_DEF-1" {
		t.Errorf("the log-in does not lead back: %q", to)
	}
	cookie := s.caller().logIn("Ana").cookie().String()
	// Even a sign-in face that was fooled sends nobody away from this computer.
	for to, ok := range map[string]bool{"https://evil.example/callback": false, "http://127.0.0.1.evil.example:80/callback": false, "http://user@127.0.0.1:8000/callback": false,
		"http://10.0.0.1:80/": false, "http://127.0.0.1:8000/callback?code=1": true, "http://localhost:41899/callback": true, "http://[::1]:8000/callback": true} {
		f, err := web.New(web.Options{Store: s.store, OAuth: fooled{to}, Hub: s, PublicURL: s.url, Log: logTo(s)})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", s.url+"/pair/answer", strings.NewReader("request=r1&answer=yes"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, r)
		went := w.Code == http.StatusSeeOther && w.Header().Get("Location") == to || w.Code == http.StatusOK && strings.Contains(w.Body.String(), `href="`+to+`"`)
		if went != ok {
			t.Errorf("%s: %d %q", to, w.Code, w.Header().Get("Location"))
		}
	}
}

// fooled is a sign-in face that answers with an address of somebody's choice.
type fooled struct{ to string }

func (f fooled) Pending(_ context.Context, id string) (oauth.Pending, error) {
	return oauth.Pending{ID: id, MachineName: "PC", Until: time.Now().Add(time.Minute)}, nil
}
func (f fooled) PendingDevice(context.Context, string, netip.Addr) (oauth.Pending, error) {
	return oauth.Pending{}, store.ErrNotFound
}
func (f fooled) Approve(context.Context, string, string) (string, error) { return f.to, nil }
func (f fooled) ApproveProgram(context.Context, string, string, string) (string, error) {
	return f.to, nil
}
func (f fooled) Deny(context.Context, string) (string, error) { return f.to, nil }

func TestAnotherSitesFormsAreRefused(t *testing.T) {
	t.Parallel()
	s := owned(t)
	c := s.caller().logIn("Ana")
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		for _, path := range []string{"/keys", "/login", "/logout", "/people", "/pair/answer", "/passkey/options"} {
			a := c.do("POST", path, url.Values{"name": {"Evil"}}, header...)
			if a.StatusCode != http.StatusForbidden || !strings.Contains(a.text, "Another site sent you here") {
				t.Errorf("%s with %v: %d", path, header, a.StatusCode)
			}
		}
	}
	if keys, err := s.store.Keys(t.Context(), ""); err != nil || len(keys) != 0 {
		t.Errorf("keys %v, %v", keys, err)
	}
	if a := c.get("/keys"); a.StatusCode != http.StatusOK {
		t.Errorf("the person was logged out: %d", a.StatusCode)
	}
}

// Every address asks again for who comes, whatever the page before showed.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	s := owned(t)
	bo := s.member("Bo")
	s.machine(store.OwnerID, "m1", "Ana's PC", true)
	key, err := s.store.AddKey(t.Context(), store.OwnerID, "Ana's program")
	if err != nil {
		t.Fatal(err)
	}
	passkey := &store.Passkey{User: store.OwnerID, Credential: []byte("c"), Name: "Phone", Data: []byte("{}")}
	if err := s.store.AddPasskey(t.Context(), passkey); err != nil {
		t.Fatal(err)
	}
	nobody, member, owner := s.caller(), s.caller().logIn("Bo"), s.caller().logIn("Ana")
	list, err := s.store.Browsers(t.Context(), store.OwnerID)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, path := range []string{"/", "/keys", "/account", "/people", "/pair", "/machines/m1/disconnect", "/keys/" + key.ID + "/revoke"} {
		if a := nobody.get(path); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login?next=") {
			t.Errorf("nobody gets %s: %d %q", path, a.StatusCode, a.Header.Get("Location"))
		}
	}
	posts := []string{"/keys", "/pair", "/pair/answer", "/machines/m1/disconnect", "/keys/" + key.ID + "/revoke", "/account/password", "/account/password/remove", "/account/passkeys",
		"/account/passkeys/" + passkey.ID + "/remove", "/account/browsers/end", "/account/signins/s1/end", "/people", "/people/" + bo.ID + "/remove", "/people/" + bo.ID + "/reset"}
	for _, path := range posts {
		if a := nobody.post(path, url.Values{"name": {"Evil"}, "browser": {list[0].ID}}); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login?next=") {
			t.Errorf("nobody posts to %s: %d %q", path, a.StatusCode, a.Header.Get("Location"))
		}
	}
	// A member finds neither the owner's pages nor the owner's things.
	for _, path := range []string{"/people", "/people/" + bo.ID + "/remove", "/people/owner/reset", "/machines/m1/disconnect", "/keys/" + key.ID + "/revoke", "/account/passkeys/" + passkey.ID + "/remove"} {
		if a := member.get(path); a.StatusCode != http.StatusNotFound {
			t.Errorf("a member gets %s: %d", path, a.StatusCode)
		}
		if a := member.post(path, url.Values{"name": {"Evil"}}); a.StatusCode != http.StatusNotFound {
			t.Errorf("a member posts to %s: %d", path, a.StatusCode)
		}
	}
	member.post("/account/browsers/end", url.Values{"browser": {list[0].ID}})
	if a := owner.get("/keys"); a.StatusCode != http.StatusOK || !strings.Contains(a.text, "Ana&#39;s program") {
		t.Errorf("the owner: %d", a.StatusCode)
	}
	// The owner cannot be removed, nor reset from a browser left open.
	if a := owner.post("/people/owner/remove", nil); a.StatusCode != http.StatusConflict {
		t.Errorf("the owner removes the owner: %d", a.StatusCode)
	}
	if a := owner.post("/people/owner/reset", nil); a.StatusCode != http.StatusConflict {
		t.Errorf("the owner resets the owner: %d", a.StatusCode)
	}
	s.pass(time.Hour)
	if a := owner.post("/people/"+bo.ID+"/reset", nil); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login?again=1") {
		t.Errorf("an hour after the log-in: %d %q", a.StatusCode, a.Header.Get("Location"))
	}
	// Who was removed is out with the next request.
	if err := s.store.RemoveUser(t.Context(), bo.ID); err != nil {
		t.Fatal(err)
	}
	if a := member.post("/keys", url.Values{"name": {"Late"}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("a removed member makes a key: %d", a.StatusCode)
	}
	if keys, err := s.store.Keys(t.Context(), ""); err != nil || len(keys) != 1 {
		t.Errorf("keys %v, %v", keys, err)
	}
}

// A browser that is logged out from elsewhere stays so, though its own request
// was under way.
func TestLoggedOutElsewhereWhileARequestRuns(t *testing.T) {
	t.Parallel()
	s := owned(t)
	a, b := s.caller().logIn("Ana"), s.caller().logIn("Ana")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				r, _ := http.NewRequest("GET", s.url+"/keys", nil)
				r.AddCookie(b.cookie())
				if resp, err := client.Do(r); err == nil {
					resp.Body.Close()
				}
			}
		})
	}
	a.post("/account/browsers/end", nil)
	wg.Wait()
	if got := b.get("/keys"); got.StatusCode != http.StatusSeeOther {
		t.Errorf("the other browser is in: %d", got.StatusCode)
	}
	if got := a.get("/keys"); got.StatusCode != http.StatusOK {
		t.Errorf("this browser is out: %d", got.StatusCode)
	}
}

// Passwords are counted by address and by name, whether they come one after
// the other or at once; passkeys and other people go on.
func TestTries(t *testing.T) {
	t.Parallel()
	s := owned(t)
	var mu sync.Mutex
	count := map[int]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			a := s.caller().post("/login", url.Values{"name": {"Ana"}, "password": {"not the right words"}})
			mu.Lock()
			defer mu.Unlock()
			count[a.StatusCode]++
		})
	}
	wg.Wait()
	if count[http.StatusUnauthorized] != 10 || count[http.StatusTooManyRequests] != 10 {
		t.Errorf("answers %v", count)
	}
	if strings.Contains(s.logs.String(), "not the right words") {
		t.Error("a password is in the log")
	}
}

func TestPasskeysNeedAName(t *testing.T) {
	t.Parallel()
	s := owned(t)
	for address, want := range map[string]bool{"http://localhost:1": true, "https://hub.example": true, "https://192.0.2.1": false, "http://hub.example": false, "https://[2001:db8::1]": false} {
		f, err := web.New(web.Options{Store: s.store, OAuth: s.oauth, Hub: s, PublicURL: address})
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest("GET", address+"/login", nil))
		if got := strings.Contains(w.Body.String(), "Log in with a passkey"); got != want {
			t.Errorf("%s offers passkeys: %v", address, got)
		}
		w = httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1:1/login", nil))
		if strings.Contains(w.Body.String(), "Log in with a passkey") {
			t.Errorf("%s offers passkeys under another name", address)
		}
	}
	for _, bad := range []string{"", "hub.example", "ftp://hub.example", "https://"} {
		if _, err := web.New(web.Options{Store: s.store, OAuth: s.oauth, Hub: s, PublicURL: bad}); err == nil {
			t.Errorf("%q was taken as an address", bad)
		}
	}
}

func TestPasskeyOptions(t *testing.T) {
	t.Parallel()
	s := owned(t)
	c := s.caller()
	for form, want := range map[string]int{"kind=login": 200, "kind=account": 403, "kind=invite&token=x": 410, "kind=": 404} {
		q, _ := url.ParseQuery(form)
		if a := c.post("/passkey/options", q); a.StatusCode != want || want != 200 && !strings.Contains(a.text, `"error":"`) {
			t.Errorf("%s: %d %s", form, a.StatusCode, a.text)
		}
	}
	// Where nobody has set the hub up, there is no owner to ask.
	if a := newSite(t).caller().post("/passkey/options", url.Values{"kind": {"invite"}, "token": {"x"}}); a.StatusCode != http.StatusGone || !strings.Contains(a.text, "Take the newest one") || strings.Contains(a.text, "owner") {
		t.Errorf("set-up: %d %s", a.StatusCode, a.text)
	}
	for _, answer := range []string{"x", "{}", `{"id":"AA","rawId":"AA","type":"public-key","response":{}}`} {
		c.post("/passkey/options", url.Values{"kind": {"login"}})
		if a := c.post("/login", url.Values{"credential": {answer}}); a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.text, "That passkey is not known here.") {
			t.Errorf("%s: %d", answer, a.StatusCode)
		}
	}
	for i := range 70 {
		if a := c.post("/passkey/options", url.Values{"kind": {"login"}}); a.StatusCode == http.StatusTooManyRequests {
			return
		} else if a.StatusCode != http.StatusOK {
			t.Fatalf("%d: %d", i, a.StatusCode)
		}
	}
	t.Error("a browser may begin as often as it likes")
}

func TestHostileInput(t *testing.T) {
	t.Parallel()
	s := owned(t)
	c := s.caller().logIn("Ana")
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/keys", strings.Repeat("x", 1<<20)},
		{"POST", "/login", "name=" + strings.Repeat("%ff", 5000)},
		{"POST", "/pair", "code=" + strings.Repeat("B", 10000)},
		{"POST", "/pair/answer", "request=../../x&answer=yes"},
		{"GET", "/machines/..%2f..%2fx/disconnect", ""},
		{"GET", "/pair?request=%00%ff", ""},
		{"GET", "/web/..%2fbase.html", ""},
		{"PUT", "/keys", ""},
		{"DELETE", "/", ""},
	} {
		q, _ := http.NewRequest(r.method, s.url+r.path, strings.NewReader(r.body))
		q.AddCookie(c.cookie())
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(q)
		if err != nil {
			t.Errorf("%s %s: %v", r.method, r.path, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s %s: %d", r.method, r.path, resp.StatusCode)
		}
	}
	for _, p := range []string{"/", "/nothing", "/pair?request=none"} {
		if a := c.get(p); !strings.Contains(a.text, "<h1>") {
			t.Errorf("%s has no heading", p)
		}
	}
}

func TestNamesAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.machine(store.OwnerID, "m1", "<script>alert(1)</script>\u202e\u200b\u00a0\ufeff", false)
	text := s.caller().logIn("Ana").get("/").text
	if !strings.Contains(text, `&lt;script&gt;alert(1)&lt;/script&gt;\u202e\u200b\u00a0\ufeff`) || strings.ContainsAny(text, "\u202e\u200b\ufeff") {
		t.Errorf("the name is shown as it is not:\n%s", text)
	}
	p := newProgram(t)
	c := s.caller().logIn("Ana")
	at := c.get(strings.TrimPrefix(s.asks(p.redirect, "m2", "PC\u202e", "4711"), s.url)).Header.Get("Location")
	if text := c.get(strings.TrimPrefix(at, s.url)).text; strings.Contains(text, "\u202e") || !strings.Contains(text, `PC\u202e`) {
		t.Errorf("a computer's name turns the words around it:\n%s", text)
	}
}

// A link is not called used where the hub cannot look.
func TestPasskeyOptionsOfABrokenStore(t *testing.T) {
	t.Parallel()
	s, broken := newSite(t), newSite(t)
	f, err := web.New(web.Options{Store: broken.store, OAuth: s.oauth, Hub: s, PublicURL: s.url, Log: logTo(s)})
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.store.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", s.url+"/passkey/options", strings.NewReader("kind=invite&token=x"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "its log says why") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSetUpLinkIsNewEachTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, _ := s.web.SetupURL(t.Context())
	second, ok := s.web.SetupURL(t.Context())
	if !ok || first == second || !strings.HasPrefix(second, s.url+"/setup?token=") {
		t.Fatalf("%q, %q", first, second)
	}
	c := s.caller()
	for _, path := range []string{"/", "/login", "/keys", "/pair"} {
		if a := c.get(path); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/setup" {
			t.Errorf("%s of a new hub: %d %q", path, a.StatusCode, a.Header.Get("Location"))
		}
	}
	if a := c.get(strings.TrimPrefix(first, s.url)); a.StatusCode != http.StatusForbidden {
		t.Errorf("an earlier link: %d", a.StatusCode)
	}
	token := func(link string) string { u, _ := url.Parse(link); return u.Query().Get("token") }
	if a := c.post("/setup", url.Values{"token": {token(first)}, "name": {"Eve"}, "password": {password}}); a.StatusCode != http.StatusForbidden {
		t.Errorf("an earlier link sets up: %d", a.StatusCode)
	}
	if a := c.post("/setup", url.Values{"token": {token(second)}, "name": {"Ana"}, "password": {password}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the link does not set up: %d %s", a.StatusCode, a.text)
	}
	for _, form := range []url.Values{nil, {"token": {token(second)}, "name": {"Eve"}, "password": {password}}} {
		if a := s.caller().post("/setup", form); a.StatusCode != http.StatusGone {
			t.Errorf("set up again: %d", a.StatusCode)
		}
	}
	if strings.Contains(s.logs.String(), token(second)) {
		t.Error("the token is in the log")
	}
}

func TestManyWrongLinks(t *testing.T) {
	t.Parallel()
	s := owned(t)
	c := s.caller()
	for i := range 31 {
		a := c.get("/join?token=" + fmt.Sprint(i))
		want := http.StatusGone
		if i == 30 {
			want = http.StatusTooManyRequests
		}
		if a.StatusCode != want {
			t.Errorf("link %d: %d", i, a.StatusCode)
		}
	}
}
