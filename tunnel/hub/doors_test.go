package hub_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
)

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func ask(t *testing.T, method, url, host string, header http.Header) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	if host != "" {
		req.Host = host
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

func TestDoorsNeedToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	key, err := b.MakeKey(t.Context(), "Test program")
	if err != nil {
		t.Fatal(err)
	}
	token := b.token(t, "m1")
	for _, path := range []string{"/healthz", "/health"} {
		if status, _, body := ask(t, "GET", b.url+path, "", nil); status != 204 || body != "" {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	paths := []string{"/", "/favicon.ico", "/api/", "/api/sandboxes", "/api/v2/sandboxes", "/api/v2/sandboxes/x", "/api/health", "/api/../api/sandboxes", "/sbx/", "/sbx/health",
		"/sbx/files", "/sbx/process.Process/List", "/sbx/by-id/x/health", "/files", "/mcp", "/oauth/token", wire.Path, wire.Path + "/bulk", "/healthz/x"}
	for name, header := range map[string]http.Header{
		"nothing":         {},
		"an empty key":    {"X-Api-Key": {""}},
		"an unknown key":  {"X-Api-Key": {"e2b_" + strings.Repeat("0", 40)}},
		"part of the key": {"X-Api-Key": {key[:len(key)-1]}},
		"a machine token": {"X-Api-Key": {token}},
		"basic":           {"Authorization": {"Basic " + key}},
	} {
		for _, path := range paths {
			for _, method := range []string{"GET", "POST", "DELETE", "PUT"} {
				status, h, body := ask(t, method, b.url+path, "", header.Clone())
				// A method that no route takes, or a path to be made clean, tells nothing.
				if status != 401 && status != 405 && status != 307 && status != 308 && status != 301 {
					t.Errorf("%s with %s: %s gives %d %s", path, name, method, status, body)
				}
				if h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
					t.Errorf("%s: headers %v", path, h)
				}
			}
		}
	}
	for name, header := range map[string]http.Header{"X-API-KEY": {"X-Api-Key": {key}}, "bearer": {"Authorization": {"Bearer " + key}}} {
		if status, _, body := ask(t, "GET", b.url+"/api/v2/sandboxes", "", header.Clone()); status != 200 || body != "[]\n" {
			t.Errorf("with the key as %s: %d %s", name, status, body)
		}
		if status, _, _ := ask(t, "GET", b.url+"/nothing", "", header.Clone()); status != 404 {
			t.Errorf("nothing there, with the key as %s: %d", name, status)
		}
	}
	// A key opens no tunnel.
	if _, resp, err := dial(t, b.url, key, nil); err == nil || resp.StatusCode != 401 {
		t.Errorf("a tunnel with a key: %v", err)
	}
}

func TestDoorsHostAndOrigin(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *hub.Options) { o.PublicURL = "https://Hub.example:8443" })
	token := b.token(t, "m1")
	host := strings.TrimPrefix(b.url, "http://")
	port := host[strings.LastIndex(host, ":"):]
	for h, want := range map[string]int{
		host: 204, "localhost": 204, "localhost" + port: 204, "LOCALHOST.": 204, "[::1]" + port: 204, "192.168.1.7" + port: 204,
		"hub.example": 204, "HUB.EXAMPLE:8443": 204, "49983-i0.hub.example:8443": 204,
		"evil.example": 421, "evil.example" + port: 421, "nothub.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "hub.example.evil": 421,
	} {
		if status, _, body := ask(t, "GET", b.url+"/healthz", h, nil); status != want {
			t.Errorf("Host %q: %d %s, want %d", h, status, body, want)
		}
	}
	for origin, want := range map[string]int{
		"http://" + host: 204, "https://" + host: 204, "": 204,
		"http://evil.example": 403, "null": 403, "http://localhost:1": 403, "file://": 403, "chrome-extension://abc": 403, "http://" + host + ".evil.example": 403,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		if status, _, body := ask(t, "GET", b.url+"/healthz", "", header); status != want {
			t.Errorf("Origin %q: %d %s, want %d", origin, status, body, want)
		}
	}
	if _, resp, err := dial(t, b.url, token, http.Header{"Origin": {"http://evil.example"}}); err == nil || resp.StatusCode != 403 {
		t.Errorf("a tunnel from a page: %v", err)
	}
	if _, resp, err := dial(t, b.url, token, http.Header{"Host": {"evil.example"}}); err == nil || resp.StatusCode != 421 {
		t.Errorf("a tunnel under another name: %v", err)
	}
}

func TestPublicURLIsChecked(t *testing.T) {
	for _, u := range []string{"hub.example", "ftp://hub.example", "https://", "::"} {
		if h, err := hub.New(t.Context(), hub.Options{Data: t.TempDir(), PublicURL: u}); err == nil {
			h.Close()
			t.Errorf("%q was taken for an address", u)
		}
	}
}
