package login_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"localpc/app/login"
)

// authority is the smallest server that signs a machine in, with what can go
// wrong at its end.
type authority struct {
	t   *testing.T
	srv *httptest.Server

	mu        sync.Mutex
	asked     url.Values        // the last authorize or device request
	codes     map[string]string // code -> PKCE challenge
	refresh   string            // the one that is good
	access    string
	issued    int
	refreshes int           // requests to renew
	seconds   int           // expires_in
	absolute  bool          // answer with access_token_expires_at instead
	clock     time.Duration // how far its clock is off
	polls     []string      // what the next polls of a device code answer; "" is the tokens
	revoked   []string
	meta      map[string]any
	onRefresh func(w http.ResponseWriter) bool // false: answered already
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, codes: map[string]string{}, seconds: 3600}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		m := map[string]any{"authorization_response_iss_parameter_supported": true, "issuer": a.srv.URL, "authorization_endpoint": a.srv.URL + "/authorize", "token_endpoint": a.srv.URL + "/token",
			"device_authorization_endpoint": a.srv.URL + "/device", "revocation_endpoint": a.srv.URL + "/revoke"}
		a.mu.Lock()
		for k, v := range a.meta {
			m[k] = v
		}
		a.mu.Unlock()
		a.answer(w, 200, m)
	})
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		must(t, r.ParseForm())
		a.mu.Lock()
		a.asked = r.PostForm
		a.mu.Unlock()
		a.answer(w, 200, map[string]any{"device_code": "dc", "user_code": "BCDF-GHJK", "verification_uri": a.srv.URL + "/pair", "expires_in": 20, "interval": 1})
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.revoked = append(a.revoked, r.FormValue("token_type_hint")+" "+r.FormValue("token"))
		a.mu.Unlock()
	})
	a.srv = httptest.NewServer(mux)
	t.Cleanup(a.srv.Close)
	return a
}

func (a *authority) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Date", time.Now().Add(a.clock).UTC().Format(http.TimeFormat))
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// authorize agrees at once: the browser is sent back with a code.
func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	a.asked = q
	code := fmt.Sprintf("code-%d", len(a.codes))
	a.codes[code] = q.Get("code_challenge")
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if a.meta["authorization_response_iss_parameter_supported"] != false {
		back.Set("iss", a.srv.URL)
	}
	a.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	must(a.t, r.ParseForm())
	f := r.PostForm
	a.mu.Lock()
	defer a.mu.Unlock()
	refuse := func(code string) { a.answer(w, 400, map[string]string{"error": code}) }
	switch f.Get("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if c, ok := a.codes[f.Get("code")]; !ok || c != base64.RawURLEncoding.EncodeToString(sum[:]) || f.Get("redirect_uri") != a.asked.Get("redirect_uri") || f.Get("client_id") != a.asked.Get("client_id") {
			refuse("invalid_grant")
			return
		}
		delete(a.codes, f.Get("code"))
	case "refresh_token":
		a.refreshes++
		if a.onRefresh != nil && !a.onRefresh(w) {
			return
		}
		if f.Get("refresh_token") != a.refresh {
			a.refresh = "" // used twice: the whole sign-in is over
			refuse("invalid_grant")
			return
		}
	default:
		next := ""
		if len(a.polls) > 0 {
			next, a.polls = a.polls[0], a.polls[1:]
		}
		switch next {
		case "":
		case "503":
			w.WriteHeader(503)
			return
		case "lost":
			panic(http.ErrAbortHandler)
		default:
			refuse(next)
			return
		}
	}
	a.answer(w, 200, a.pair())
}

// pair makes a new pair of tokens; a.mu is held.
func (a *authority) pair() map[string]any {
	a.issued++
	a.access, a.refresh = fmt.Sprintf("access-%d", a.issued), fmt.Sprintf("refresh-%d", a.issued)
	m := map[string]any{"access_token": a.access, "refresh_token": a.refresh, "token_type": "Bearer"}
	if a.absolute {
		m["access_token_expires_at"] = time.Now().Add(a.clock + time.Duration(a.seconds)*time.Second).UTC().Format("2006-01-02T15:04:05.999999+00:00")
	} else {
		m["expires_in"] = a.seconds
	}
	return m
}

// signedIn puts a sign-in at a into the keychain, received some time ago.
func (a *authority) signedIn(k login.Keychain, item string, ago time.Duration) login.Tokens {
	a.t.Helper()
	a.mu.Lock()
	a.pair()
	t := login.Tokens{Access: a.access, Refresh: a.refresh, Received: time.Now().Add(-ago), Seconds: int64(a.seconds), Client: "localpc",
		TokenURL: a.srv.URL + "/token", RevokeURL: a.srv.URL + "/revoke"}
	a.mu.Unlock()
	must(a.t, login.Save(a.t.Context(), k, item, t))
	return t
}

func (a *authority) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refreshes
}
