package front

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProxies(t *testing.T) {
	trusted, err := ParseProxies([]string{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, remote string
		said         []string
		want         string
	}{
		{"nobody said anything", "10.0.0.1:5", nil, "10.0.0.1:5"},
		{"a trusted proxy", "10.0.0.1:5", []string{"203.0.113.9"}, "203.0.113.9:5"},
		{"two trusted proxies", "10.0.0.1:5", []string{"203.0.113.9, 192.0.2.7"}, "203.0.113.9:5"},
		{"two headers", "10.0.0.1:5", []string{"203.0.113.9", "10.1.1.1"}, "203.0.113.9:5"},
		{"what the client wrote before it", "10.0.0.1:5", []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9:5"},
		{"somebody else", "198.51.100.1:5", []string{"6.6.6.6"}, "198.51.100.1:5"},
		{"all trusted", "10.0.0.1:5", []string{"10.0.0.2"}, "10.0.0.2:5"},
		{"nonsense", "10.0.0.1:5", []string{"6.6.6.6, unknown"}, "10.0.0.1:5"},
		{"empty", "10.0.0.1:5", []string{""}, "10.0.0.1:5"},
		{"with a port", "10.0.0.1:5", []string{"203.0.113.9:1234"}, "203.0.113.9:5"},
		{"IPv6", "[2001:db8::1]:5", []string{"2001:db9::7"}, "[2001:db9::7]:5"},
		{"IPv6 in brackets with a port", "[2001:db8::1]:5", []string{"[2001:db9::7]:99"}, "[2001:db9::7]:5"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:5", []string{"::ffff:203.0.113.9"}, "203.0.113.9:5"},
	} {
		var got *http.Request
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		for _, s := range c.said {
			r.Header.Add("X-Forwarded-For", s)
		}
		trusted.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r })).ServeHTTP(httptest.NewRecorder(), r)
		if got.RemoteAddr != c.want || got.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("%s: %s, header %q; want %s", c.name, got.RemoteAddr, got.Header.Get("X-Forwarded-For"), c.want)
		}
	}
	for _, bad := range []string{"", "ten", "10.0.0.0/33", "10.0.0"} {
		if _, err := ParseProxies([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	// Without a proxy nobody is believed.
	var got string
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "127.0.0.1:5"
	r.Header.Set("X-Forwarded-For", "6.6.6.6")
	Proxies(nil).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })).ServeHTTP(httptest.NewRecorder(), r)
	if got != "127.0.0.1:5" {
		t.Errorf("without a proxy: %s", got)
	}
}

func TestLogTellsNoSecrets(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	h := Log(log, NewMetrics(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("1234"))
	}))
	secret := strings.Repeat("5ec2e7", 8)
	for path, kind := range map[string]string{
		"/files?signature=" + secret: "kind=e2b-sandbox", "/join/" + secret: "kind=page", "/api/oauth/token?code=" + secret: "kind=sign-in",
		"/api/v2/sandboxes": "kind=e2b-control", "/sbx/by-id/i0123456789abcdef0123/files": "path=/sbx/by-id/i0123456789abcdef0123/files", "/ws/local-executor": "kind=tunnel",
		"/a%0Alevel=ERROR": `path="/a\nlevel=ERROR"`,
	} {
		out.Reset()
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		h.ServeHTTP(httptest.NewRecorder(), r)
		line := out.String()
		if strings.Contains(line, secret) || !strings.Contains(line, kind) || !strings.Contains(line, "status=418") || !strings.Contains(line, "bytes=4") || strings.Count(line, "\n") != 1 {
			t.Errorf("%s is logged as %s", path, line)
		}
	}
	out.Reset()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/healthz", nil))
	if out.Len() > 0 {
		t.Errorf("a look at its health is logged: %s", out.String())
	}
}
