package oauth

import (
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"localpc/tunnel/hub/store"
)

func TestRefreshReuse(t *testing.T) {
	var signedIn, reused atomic.Int32
	h := start(t, func(o *Options) {
		o.SignedIn, o.Reused = func() { signedIn.Add(1) }, func() { reused.Add(1) }
	})
	defer func() {
		if signedIn.Load() != 2 || reused.Load() != 1 {
			t.Errorf("counted %d sign-ins, %d reuses", signedIn.Load(), reused.Load())
		}
	}()
	first := h.signIn("m-1")
	other := h.signIn("m-2")
	a, err := h.Access(t.Context(), first.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.refreshed(first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	if second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken || !h.live(second.AccessToken) {
		t.Errorf("after a refresh: %+v", second)
	}
	if b, err := h.Access(t.Context(), second.AccessToken); err != nil || b.SignIn != a.SignIn || b.Machine != "m-1" {
		t.Errorf("another sign-in after a refresh: %+v, %v", b, err)
	}
	if len(h.ended()) != 0 {
		t.Fatalf("ended %v", h.ended())
	}
	// Somebody else's client cannot end it with a guess.
	if _, err := h.refreshed("lpr_" + random(32)); err == nil {
		t.Error("a guessed token was taken")
	}
	if _, err := h.refreshed(first.AccessToken); err == nil {
		t.Error("an access token refreshed")
	}
	if !h.live(second.AccessToken) {
		t.Fatal("a guess ended the sign-in")
	}
	if _, err := h.refreshed(first.RefreshToken); err == nil {
		t.Error("a retired token was taken")
	}
	if got := h.ended(); len(got) != 1 || got[0] != a.SignIn {
		t.Errorf("ended %v, want %s", got, a.SignIn)
	}
	for _, token := range []string{first.AccessToken, second.AccessToken} {
		if h.live(token) {
			t.Error("an access token outlived the family")
		}
	}
	if _, err := h.refreshed(second.RefreshToken); err == nil {
		t.Error("a refresh token outlived the family")
	}
	if !h.live(other.AccessToken) {
		t.Error("another sign-in ended too")
	}
	if live, err := h.store.SignInLive(t.Context(), a.SignIn); err != nil || live {
		t.Errorf("live %v, %v", live, err)
	}
}

// The same token twice at the same moment: one gets tokens, the other is seen
// as what it may be, a thief.
func TestRefreshAtOnce(t *testing.T) {
	h := start(t)
	for range 5 {
		token := h.signIn("m-1")
		before := len(h.ended())
		var wg sync.WaitGroup
		results := make(chan *oauth2.Token, 2)
		for range 2 {
			wg.Go(func() {
				if next, err := h.refreshed(token.RefreshToken); err == nil {
					results <- next
				}
			})
		}
		wg.Wait()
		close(results)
		if len(results) != 1 {
			t.Fatalf("%d of 2 won", len(results))
		}
		if h.live((<-results).AccessToken) || len(h.ended()) != before+1 {
			t.Error("the sign-in lived on")
		}
	}
}

func TestRevoke(t *testing.T) {
	h := start(t)
	for _, kind := range []string{"access", "refresh", "retired", "hinted wrongly", "expired"} {
		token := h.signIn("m-" + strings.ReplaceAll(kind, " ", "-"))
		a, err := h.Access(t.Context(), token.AccessToken)
		if err != nil {
			t.Fatal(err)
		}
		form := url.Values{"client_id": {"localpc"}, "token": {token.AccessToken}}
		switch kind {
		case "refresh":
			form.Set("token", token.RefreshToken)
		case "retired":
			form.Set("token", token.RefreshToken)
			if _, err := h.refreshed(token.RefreshToken); err != nil {
				t.Fatal(err)
			}
		case "hinted wrongly":
			form.Set("token_type_hint", "refresh_token")
		case "expired":
			h.pass(2 * time.Hour)
		}
		if status, answer := h.post("/oauth/revoke", form); status != 200 {
			t.Errorf("%s: %d %v", kind, status, answer)
		}
		// It was told before the answer came.
		if got := h.ended(); len(got) == 0 || got[len(got)-1] != a.SignIn {
			t.Errorf("%s: ended %v, want %s", kind, got, a.SignIn)
		}
		if _, err := h.refreshed(token.RefreshToken); err == nil || h.live(token.AccessToken) {
			t.Errorf("%s: a token lived on", kind)
		}
	}
	n := len(h.ended())
	for _, c := range []struct {
		form   url.Values
		status int
	}{
		{url.Values{"client_id": {"localpc"}, "token": {"lpa_unknown"}}, 200},
		{url.Values{"client_id": {"localpc"}}, 400},
		{url.Values{"client_id": {"other"}, "token": {"lpa_unknown"}}, 401},
		{url.Values{"token": {"lpa_unknown"}}, 400},
	} {
		if status, answer := h.post("/oauth/revoke", c.form); status != c.status {
			t.Errorf("%v: %d %v", c.form, status, answer)
		}
	}
	if len(h.ended()) != n {
		t.Error("a refused revocation ended something")
	}
}

func TestExpiry(t *testing.T) {
	h := start(t)
	token := h.signIn("m-1")
	h.pass(time.Hour - time.Second)
	if !h.live(token.AccessToken) {
		t.Error("it died early")
	}
	h.pass(2 * time.Second)
	if h.live(token.AccessToken) {
		t.Error("it lives past its hour")
	}
	// The clock is set back an hour: what is dead stays dead, and so does what
	// the clock would now call young.
	h.pass(-time.Hour)
	if h.live(token.AccessToken) {
		t.Error("it came back when the clock was set back")
	}
	next, err := h.refreshed(token.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	h.pass(24 * 31 * time.Hour)
	if _, err := h.refreshed(next.RefreshToken); err == nil {
		t.Error("a refresh token lives past its 30 days")
	}
	if ended, err := h.store.SweepSignIns(t.Context(), h.now()); err != nil || len(ended) != 1 {
		t.Errorf("swept %v, %v", ended, err)
	}
}

// A hub that starts with a clock an hour behind cannot know how old an access
// token is; the client has to refresh.
func TestClockBehindAfterRestart(t *testing.T) {
	dir := t.TempDir()
	h := startIn(t, dir)
	token := h.signIn("m-1")
	id := h.ask(h.config().AuthCodeURL("s", append(about("m-2"), oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))...))
	h.stop()
	h = startIn(t, dir, func(o *Options) {
		now := o.Now
		o.Now = func() time.Time { return now().Add(-time.Hour) }
	})
	if h.live(token.AccessToken) {
		t.Error("an access token from the future is taken")
	}
	if _, err := h.Pending(t.Context(), id); err != store.ErrNotFound {
		t.Errorf("a request from the future: %v", err)
	}
	next, err := h.refreshed(token.RefreshToken)
	if err != nil || !h.live(next.AccessToken) {
		t.Errorf("refresh: %v", err)
	}
}

// With the store's own clock, Expires holds whatever the computer's clock says.
func TestExpiresHasAMonotonicReading(t *testing.T) {
	h := start(t, func(o *Options) { o.Now = nil })
	a, err := h.Access(t.Context(), h.signIn("m-1").AccessToken)
	if err != nil || !strings.Contains(a.Expires.String(), "m=+") {
		t.Errorf("expires %v, %v", a.Expires, err)
	}
	if left := time.Until(a.Expires); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it lives %v", left)
	}
}

// A thief who renews quickly cannot push the token that they took out of the
// hub's memory: the sign-in ends before, and its tunnels with it.
func TestRenewedTooOften(t *testing.T) {
	h := start(t)
	token := h.signIn("m-1")
	a, err := h.Access(t.Context(), token.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	// Most of it is put there: it would take long.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.dir, "hub.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4950)
		INSERT INTO signin_tokens (hash, signin, kind, created, expires, retired) SELECT randomblob(32), ?, 'refresh', 1, ?, 1 FROM n`,
		a.SignIn, time.Now().Add(time.Hour).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	refresh, n := token.RefreshToken, 0
	for ; n < 2000; n++ {
		_, p, rerr := h.refresh(t.Context(), own, refresh)
		if err = rerr; err != nil {
			break
		}
		refresh = p.Refresh
	}
	if n < 20 || !errors.Is(err, store.ErrTooOften) {
		t.Fatalf("after %d: %v", n, err)
	}
	if got := h.ended(); len(got) != 1 || got[0] != a.SignIn {
		t.Errorf("ended %v", got)
	}
	for _, gone := range []string{token.RefreshToken, refresh} {
		if status, answer := h.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {ClientID}, "refresh_token": {gone}}); status != 400 || answer["error"] != "invalid_grant" {
			t.Errorf("afterwards: %d %v", status, answer)
		}
	}
}
