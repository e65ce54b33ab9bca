package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"localpc/app/login"
)

// hc makes its calls as the program does: one connection each, no redirects.
var hc = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// get is a browser's; it follows redirects.
func get(t *testing.T, method, page, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, page, nil)
	must(t, err)
	req.Host = host
	resp, err := (&http.Client{Transport: hc.Transport}).Do(req)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b)
}

func ownHub(t *testing.T, a *authority) login.Server {
	t.Helper()
	s, err := login.OwnHub(t.Context(), hc, a.srv.URL)
	must(t, err)
	s.MachineID, s.MachineName, s.MachineSystem = "m-1", "Anna's PC", login.System()
	return s
}

func TestBrowser(t *testing.T) {
	a := newAuthority(t)
	s := ownHub(t, a)
	var callback string
	agreed := false
	tokens, err := login.Browser(t.Context(), hc, s, "0042", func(page string, until time.Time) {
		if d := time.Until(until); d > 10*time.Minute || d < 9*time.Minute {
			t.Errorf("it waits for %s", d)
		}
		u, err := url.Parse(page)
		must(t, err)
		q := u.Query()
		callback = q.Get("redirect_uri")
		if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/callback$`).MatchString(callback) {
			t.Errorf("it comes back to %q", callback)
		}
		for name, want := range map[string]string{"client_id": "localpc", "scope": "openid offline_access machine", "code_challenge_method": "S256",
			"machine_id": "m-1", "machine_name": "Anna's PC", "machine_system": login.System(), "match": "0042", "response_type": "code"} {
			if q.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, q.Get(name), want)
			}
		}
		// What else comes along changes nothing.
		host := strings.TrimSuffix(strings.TrimPrefix(callback, "http://"), "/callback")
		state := "?state=" + url.QueryEscape(q.Get("state"))
		for _, stray := range []struct {
			method, page, host string
			status             int
		}{
			{"GET", "http://" + host + "/", "", 404},
			{"GET", "http://" + host + "/favicon.ico", "", 404},
			{"GET", "http://" + host + "/callback/x" + state + "&code=x", "", 404},
			{"GET", callback + "?code=x", "", 400},
			{"GET", callback + "?code=x&state=guessed", "", 400},
			{"GET", callback + state + "&code=x&iss=https://other.example", "", 400},
			{"GET", callback + state + "&code=x", "", 400},
			{"GET", callback + state + "&code=x&iss=", "", 400},
			{"GET", callback + state + "&error=access_denied", "", 400},
			{"GET", callback + state + "&code=x", "evil.example", 421},
			{"POST", callback + state + "&code=x", "", 405},
		} {
			if status, body := get(t, stray.method, stray.page, stray.host); status != stray.status || !strings.Contains(body, "<p>") {
				t.Errorf("%s %s was answered %d %s", stray.method, stray.page, status, body)
			}
		}
		status, body := get(t, "GET", page, "")
		if status != 200 || !strings.Contains(body, "You can close this page") {
			t.Errorf("the browser shows %d %s", status, body)
		}
	}, func() {
		agreed = true
		// The person reloads the page.
		if status, _ := get(t, "GET", callback+"?code=again&state=wrong", ""); status != 400 {
			t.Errorf("while it finishes: %d", status)
		}
	})
	if err != nil || !agreed || tokens.Access != "access-1" || tokens.Refresh != "refresh-1" || tokens.Seconds != 3600 || tokens.RevokeURL != a.srv.URL+"/revoke" {
		t.Fatalf("%+v, %v", tokens, err)
	}
	if resp, err := hc.Get(callback); err == nil {
		resp.Body.Close()
		t.Error("it listens still")
	}
}

// A hub that does not say who answers is believed.
func TestBrowserAtAHubThatDoesNotNameItself(t *testing.T) {
	a := newAuthority(t)
	a.meta = map[string]any{"authorization_response_iss_parameter_supported": false}
	tokens, err := login.Browser(t.Context(), hc, ownHub(t, a), "", func(page string, _ time.Time) { get(t, "GET", page, "") }, func() {})
	if err != nil || tokens.Access != "access-1" {
		t.Errorf("%+v, %v", tokens, err)
	}
}

func TestBrowserWithoutTokens(t *testing.T) {
	a := newAuthority(t)
	s := ownHub(t, a)
	back := func(t *testing.T, page, answer string) {
		u, err := url.Parse(page)
		must(t, err)
		status, body := get(t, "GET", u.Query().Get("redirect_uri")+"?"+answer+"&iss="+url.QueryEscape(a.srv.URL)+"&state="+url.QueryEscape(u.Query().Get("state")), "")
		if status != 200 || !strings.Contains(body, "You can close this page") {
			t.Errorf("the browser shows %d %s", status, body)
		}
	}
	for name, c := range map[string]struct {
		answer string
		want   error
	}{
		"declined":     {"error=access_denied", login.ErrDeclined},
		"refused":      {"error=server_error&error_description=%3Cscript%3E", login.ErrRefused},
		"no code":      {"x=y", login.ErrRefused},
		"another code": {"code=nobody's", login.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := login.Browser(t.Context(), hc, s, "", func(page string, _ time.Time) { back(t, page, c.answer) }, func() {})
			if !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("nobody comes", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := login.Browser(ctx, hc, s, "", func(string, time.Time) {}, func() {}); !errors.Is(err, login.ErrExpired) {
			t.Errorf("%v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var callback string
		_, err := login.Browser(ctx, hc, s, "", func(page string, _ time.Time) {
			u, _ := url.Parse(page)
			callback = u.Query().Get("redirect_uri")
			cancel()
		}, func() {})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if resp, err := hc.Get(callback); err == nil {
			resp.Body.Close()
			t.Error("it listens still")
		}
	})
}

// threePorts is the first of three in a row that are free: the platform's own
// may be in use by whatever else runs here.
func threePorts(t *testing.T) int {
	t.Helper()
next:
	for range 100 {
		first := 20000 + rand.IntN(10000)
		for p := first; p < first+3; p++ {
			l, err := login.Listen(strconv.Itoa(p))
			if err != nil {
				continue next
			}
			must(t, l.Close())
		}
		return first
	}
	t.Fatal("there are no three free ports in a row")
	return 0
}

// AutoGPT's platform knows a few redirect addresses, letter by letter; the
// first port that is free is taken, and none at all is said.
func TestAutoGPTPorts(t *testing.T) {
	a := newAuthority(t)
	a.absolute = true
	first := threePorts(t)
	s := login.AutoGPT(a.srv.URL, a.srv.URL, "autogpt-local-executor", "USE_TOOLS", first, first+2)
	middle := strconv.Itoa(first + 1)
	s.AuthorizeURL, s.TokenURL = a.srv.URL+"/authorize", a.srv.URL+"/token"
	for _, port := range []string{strconv.Itoa(first), strconv.Itoa(first + 2)} {
		l, err := login.Listen(port)
		must(t, err)
		defer l.Close()
	}
	tokens, err := login.Browser(t.Context(), hc, s, "", func(page string, _ time.Time) {
		u, _ := url.Parse(page)
		q := u.Query()
		if q.Get("redirect_uri") != "http://localhost:"+middle+"/callback" || q.Get("scope") != "USE_TOOLS" || q.Has("match") || q.Has("machine_id") {
			t.Errorf("it asks with %s", page)
		}
		get(t, "GET", page, "")
	}, func() {})
	if err != nil || tokens.Seconds < 3590 || tokens.Seconds > 3600 || tokens.Client != "autogpt-local-executor" {
		t.Errorf("%+v, %v", tokens, err)
	}
	l, err := login.Listen(middle)
	must(t, err)
	defer l.Close()
	if _, err := login.Browser(t.Context(), hc, s, "", func(string, time.Time) { t.Error("it began") }, func() {}); !errors.Is(err, login.ErrNoPort) {
		t.Errorf("%v", err)
	}
}

func TestByCode(t *testing.T) {
	for name, c := range map[string]struct {
		polls   []string
		want    error
		atLeast time.Duration
	}{
		"agreed":           {[]string{"authorization_pending", ""}, nil, 2 * time.Second},
		"too often":        {[]string{"slow_down", ""}, nil, 7 * time.Second},
		"the hub was away": {[]string{"503", "lost", ""}, nil, 3 * time.Second},
		"declined":         {[]string{"access_denied"}, login.ErrDeclined, 0},
		"the code is over": {[]string{"expired_token"}, login.ErrExpired, 0},
		"something is odd": {[]string{"invalid_grant"}, login.ErrRefused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			a.polls = c.polls
			s := ownHub(t, a)
			began := time.Now()
			var code login.Code
			tokens, err := login.ByCode(t.Context(), hc, s, func(c login.Code) { code = c })
			if code.Code != "BCDF-GHJK" || code.Page != a.srv.URL+"/pair" || time.Until(code.Until) > 20*time.Second {
				t.Errorf("the person is told %+v", code)
			}
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || tokens.Access != "access-1") {
				t.Errorf("%+v, %v", tokens, err)
			}
			if took := time.Since(began); took < c.atLeast {
				t.Errorf("it asked again after %s", took)
			}
			if a.asked.Get("machine_name") != "Anna's PC" || a.asked.Has("match") || a.asked.Get("scope") != "openid offline_access machine" {
				t.Errorf("it asked with %v", a.asked)
			}
		})
	}
	for name, c := range map[string]struct{ code, page string }{
		"none":                   {"", "/pair"},
		"blank":                  {" \n", "/pair"},
		"longer than anybody's":  {strings.Repeat("A", 1<<19), "/pair"},
		"no page":                {"BCDF-GHJK", ""},
		"a page of another site": {"BCDF-GHJK", "https://other.example/pair"},
		"a file":                 {"BCDF-GHJK", "file:///etc/passwd"},
		"a script":               {"BCDF-GHJK", "javascript:alert(1)"},
	} {
		t.Run("a code that is none: "+name, func(t *testing.T) {
			var srv *httptest.Server
			srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page := c.page
				if strings.HasPrefix(page, "/") {
					page = srv.URL + page
				}
				// Odd numbers too: they must do nothing either.
				_ = json.NewEncoder(w).Encode(map[string]any{"device_code": "d", "user_code": c.code, "verification_uri": page, "expires_in": -1 << 62, "interval": 1 << 62})
			}))
			defer srv.Close()
			s := login.Server{DeviceURL: srv.URL + "/device", TokenURL: srv.URL + "/token", Client: "localpc"}
			_, err := login.ByCode(t.Context(), hc, s, func(login.Code) { t.Error("the person is told") })
			if !errors.Is(err, login.ErrRefused) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("not offered", func(t *testing.T) {
		if _, err := login.ByCode(t.Context(), hc, login.AutoGPT("https://x", "https://x", "c", "s", 1, 1), nil); !errors.Is(err, login.ErrNoCodes) {
			t.Errorf("%v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		a := newAuthority(t)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if _, err := login.ByCode(ctx, hc, ownHub(t, a), func(login.Code) { cancel() }); !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestOwnHub(t *testing.T) {
	a := newAuthority(t)
	if s := ownHub(t, a); s.Issuer != a.srv.URL || s.DeviceURL != a.srv.URL+"/device" || s.Client != "localpc" {
		t.Errorf("%+v", s)
	}
	var moved *login.MovedError
	a.meta = map[string]any{"issuer": "https://hub.example/"}
	if _, err := login.OwnHub(t.Context(), hc, a.srv.URL); !errors.As(err, &moved) || moved.Address != "https://hub.example" {
		t.Errorf("a hub of another name: %v", err)
	}
	// All of it is done at the hub itself.
	for _, field := range []string{"authorization_endpoint", "token_endpoint", "device_authorization_endpoint", "revocation_endpoint"} {
		for _, to := range []string{"file:///etc/passwd", "https://other.example/token", "http://127.0.0.1:631/", "//other.example/token", "/token", "javascript:alert(1)", "%",
			strings.Replace(a.srv.URL, "http:", "https:", 1) + "/token", strings.Replace(a.srv.URL, "http://", "http://anna@", 1) + "/token", a.srv.URL + ".other.example/token"} {
			a.meta = map[string]any{field: to}
			if _, err := login.OwnHub(t.Context(), hc, a.srv.URL); !errors.Is(err, login.ErrNotAHub) {
				t.Errorf("%s at %s: %v", field, to, err)
			}
		}
	}
	// What it calls itself is shown to the person.
	for _, name := range []string{"", "hub", "file:///x", "javascript:alert(1)", "https://\x1b[2Jhub.example", "https://hub.example/\u202egnp", "https://anna@hub.example",
		"https://hub.example/ pair with another", "https://" + strings.Repeat("x", 400)} {
		a.meta = map[string]any{"issuer": name}
		if _, err := login.OwnHub(t.Context(), hc, a.srv.URL); !errors.Is(err, login.ErrNotAHub) || len(err.Error()) > 600 {
			t.Errorf("a hub that calls itself %q: %v", name, err)
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"another server": http.NotFound,
		"a web page":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"half of it":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"issuer":"x"}`) },
		"a log-in page":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
		"no end": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20)+"{}")
		},
	} {
		srv := httptest.NewServer(h)
		if _, err := login.OwnHub(t.Context(), hc, srv.URL); !errors.Is(err, login.ErrNotAHub) {
			t.Errorf("%s: %v", name, err)
		}
		srv.Close()
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://hub.example/base"+r.URL.Path, http.StatusMovedPermanently)
	}))
	defer srv.Close()
	if _, err := login.OwnHub(t.Context(), hc, srv.URL); !errors.As(err, &moved) || moved.Address != "https://hub.example/base" {
		t.Errorf("a hub that moved: %v", err)
	}
}

func TestOpen(t *testing.T) {
	bin := t.TempDir()
	opened := filepath.Join(bin, "opened")
	script := func(s string) {
		must(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\n"+s+"\n"), 0o755))
	}
	t.Setenv("PATH", bin)
	t.Setenv("DISPLAY", ":9")
	page := "https://hub.example/oauth?a=1&b=%27$(touch x)"
	script(`printf %s "$1" > ` + opened)
	must(t, login.Open(t.Context(), page))
	if b, err := os.ReadFile(opened); err != nil || string(b) != page {
		t.Errorf("opened %q, %v", b, err)
	}
	script("exit 3")
	if err := login.Open(t.Context(), page); err == nil {
		t.Error("an opener that failed counts as done")
	}
	for _, odd := range []string{"file:///etc/passwd", "--help", "javascript:alert(1)"} {
		if err := login.Open(t.Context(), odd); err == nil {
			t.Errorf("%s was opened", odd)
		}
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if err := login.Open(t.Context(), page); err == nil {
		t.Error("without a display a page was opened")
	}
}

func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		m := login.Match()
		if !regexp.MustCompile(`^\d{4}$`).MatchString(m) {
			t.Errorf("match %q", m)
		}
		seen[m] = true
	}
	if len(seen) < 25 {
		t.Errorf("only %d of 50 differ", len(seen))
	}
	if s := login.System(); !regexp.MustCompile(`^\S.*\S, (x86_64|arm64|x86|[a-z0-9]+)$`).MatchString(s) || strings.Contains(s, `"`) {
		t.Errorf("this system is %q", s)
	}
}
