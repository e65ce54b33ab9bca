package oauth

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

// Whatever comes, the answer is one of the few, well formed, and never 500.
func FuzzAutoGPTBodies(f *testing.F) {
	for _, body := range []string{"", "{}", "null", "[]", `{"grant_type":"refresh_token","client_id":"autogpt-local-executor","refresh_token":"agpt_rt_x"}`,
		`{"grant_type":7,"client_id":{"a":[]},"token":null}`, "grant_type=authorization_code&code=x&client_id=autogpt-local-executor&redirect_uri=x&code_verifier=y",
		"a=1&a=2", "%zz=1", "token=x;client_id=y", `{"token":"\ud800","client_id":"autogpt-local-executor","token_type_hint":"access_token"}`} {
		f.Add(body, true)
		f.Add(body, false)
	}
	h := fuzzHub(f)
	f.Fuzz(func(t *testing.T, body string, isJSON bool) {
		h.failures = limit.New(60, 1, h.now)
		for _, path := range []string{"/api/oauth/token", "/api/oauth/revoke", "/api/oauth/introspect", "/api/oauth/authorize"} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", map[bool]string{true: "application/json", false: "application/x-www-form-urlencoded"}[isJSON])
			w := httptest.NewRecorder()
			h.AutoGPT().ServeHTTP(w, r)
			var answer map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code >= 500 || w.Code != 200 && answer["detail"] == nil {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	})
}

func FuzzForms(f *testing.F) {
	for _, body := range []string{"", "grant_type=refresh_token&client_id=localpc&refresh_token=x", "grant_type=authorization_code&client_id=localpc&code=x&redirect_uri=y",
		"client_id=localpc&token=x", "client_id=localpc&scope=machine&machine_id=m&machine_name=%ff&machine_system=s", "max_age=x&client_id=localpc",
		"grant_type=urn:ietf:params:oauth:grant-type:device_code&client_id=localpc&device_code=x", "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=a.b.c",
		"grant_type=urn:ietf:params:oauth:grant-type:token-exchange&client_id=localpc&subject_token=x&subject_token_type=urn:ietf:params:oauth:token-type:jwt"} {
		f.Add(body)
	}
	h := fuzzHub(f)
	f.Fuzz(func(t *testing.T, body string) {
		h.failures, h.asks = limit.New(60, 1, h.now), limit.New(60, 1, h.now)
		for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/device_authorization"} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.Handler().ServeHTTP(w, r)
			if b := bytes.TrimSpace(w.Body.Bytes()); w.Code >= 500 || len(b) > 0 && !json.Valid(b) {
				t.Fatalf("%s: %d %s", path, w.Code, b)
			}
		}
	})
}

// A redirect that is taken goes to this computer, whatever its writing.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{redirect, "http://[::1]:1/callback", "http://127.0.0.1:1@x/callback", "http://127.0.0.1:1\\@x/callback", "http://127.0.0.1:1/callback\t", "http://[::1%25eth0]:1/callback"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		if !loopback(uri) {
			return
		}
		u, err := url.Parse(uri)
		if err != nil || u.Scheme != "http" || u.User != nil || u.Path != "/callback" || u.RawQuery != "" || u.Fragment != "" || u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" || u.String() != uri {
			t.Fatalf("%q is taken", uri)
		}
	})
}

func fuzzHub(f *testing.F) *Face {
	f.Helper()
	st, err := store.Open(f.Context(), f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	face, err := New(f.Context(), Options{Store: st, Issuer: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler),
		User: func(*http.Request) (string, bool) { return "owner", true }})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := face.Close(); err != nil {
			f.Error(err)
		}
		if err := st.Close(); err != nil {
			f.Error(err)
		}
	})
	return face
}
