package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"localpc/tunnel/hub/store"
)

func (h *hub) poll(deviceCode string) (int, map[string]any) {
	h.t.Helper()
	return h.post("/oauth/token", url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {"localpc"}, "device_code": {deviceCode}})
}

func TestDevice(t *testing.T) {
	h := start(t)
	conf := h.config()
	d, err := conf.DeviceAuth(h.ctx(), about("m-1")...)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(d.UserCode) || d.VerificationURI != h.url+"/pair" || d.VerificationURIComplete != "" {
		t.Errorf("device %+v", d)
	}
	if left := time.Until(d.Expiry); left < 9*time.Minute || left > 10*time.Minute || d.Interval != 1 {
		t.Errorf("expires in %v, interval %d", left, d.Interval)
	}
	typed := strings.ToLower(strings.ReplaceAll(d.UserCode, "-", " "))
	p, err := h.PendingDevice(t.Context(), " "+typed+" ", loopbackAddr)
	if err != nil || !p.Device || p.Match != "" || p.MachineName != "Mac-1" || p.System != "Debian GNU/Linux 12, x86_64" || p.Address != "127.0.0.1" {
		t.Errorf("%+v, %v", p, err)
	}
	// golang.org/x/oauth2 keeps asking by itself, on the real clock.
	done := make(chan error, 1)
	var token *oauth2.Token
	go func() {
		var err error
		token, err = conf.DeviceAccessToken(h.ctx(), d)
		done <- err
	}()
	stop := make(chan struct{})
	ticking := make(chan struct{})
	go func() {
		defer close(ticking)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				h.pass(50 * time.Millisecond)
			}
		}
	}()
	defer func() { close(stop); <-ticking }()
	time.Sleep(1300 * time.Millisecond)
	if to, err := h.Approve(t.Context(), p.ID, "owner"); to != "" || err != nil {
		t.Errorf("approve: %q, %v", to, err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no token came")
	}
	if a, err := h.Access(t.Context(), token.AccessToken); err != nil || a.Machine != "m-1" || a.User != "owner" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := h.refreshed(token.RefreshToken); err != nil {
		t.Error(err)
	}
	h.pass(10 * time.Second)
	if status, answer := h.poll(d.DeviceCode); status != 400 || answer["error"] != "invalid_grant" {
		t.Errorf("the same device code again: %d %v", status, answer)
	}
	if _, err := h.PendingDevice(t.Context(), d.UserCode, loopbackAddr); err != store.ErrNotFound {
		t.Errorf("the same user code again: %v", err)
	}
}

func TestDevicePolling(t *testing.T) {
	h := start(t, func(o *Options) { o.DevicePoll = 0 })
	device := func(machine string) *oauth2.DeviceAuthResponse {
		t.Helper()
		d, err := h.config().DeviceAuth(h.ctx(), about(machine)...)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := device("m-1")
	if d.Interval != 5 {
		t.Errorf("interval %d", d.Interval)
	}
	for i, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, "authorization_pending"}, {5 * time.Second, "authorization_pending"}, {time.Second, "slow_down"},
		// It has to add five seconds from now on.
		{6 * time.Second, "slow_down"}, {15 * time.Second, "authorization_pending"}, {14800 * time.Millisecond, "authorization_pending"},
	} {
		h.pass(c.after)
		if status, answer := h.poll(d.DeviceCode); status != 400 || answer["error"] != c.want {
			t.Errorf("poll %d: %d %v, want %s", i, status, answer, c.want)
		}
	}
	h.pass(10 * time.Minute)
	if _, err := h.PendingDevice(t.Context(), d.UserCode, loopbackAddr); err != store.ErrNotFound {
		t.Errorf("a late person: %v", err)
	}
	if _, answer := h.poll(d.DeviceCode); answer["error"] != "expired_token" {
		t.Errorf("late: %v", answer)
	}
	d = device("m-2")
	p, err := h.PendingDevice(t.Context(), d.UserCode, loopbackAddr)
	if err != nil {
		t.Fatal(err)
	}
	if to, err := h.Deny(t.Context(), p.ID); to != "" || err != nil {
		t.Errorf("deny: %q, %v", to, err)
	}
	if _, answer := h.poll(d.DeviceCode); answer["error"] != "access_denied" {
		t.Errorf("denied: %v", answer)
	}
	// A person who answers at the last moment has not answered for nothing.
	d = device("m-3")
	h.pass(10*time.Minute - time.Second)
	if p, err = h.PendingDevice(t.Context(), d.UserCode, loopbackAddr); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Approve(t.Context(), p.ID, "owner"); err != nil {
		t.Fatal(err)
	}
	h.pass(5 * time.Second)
	if status, answer := h.poll(d.DeviceCode); status != 200 {
		t.Errorf("at the last moment: %d %v", status, answer)
	}
	if _, answer := h.poll(random(32)); answer["error"] != "invalid_grant" {
		t.Errorf("unknown: %v", answer)
	}
	for name, bad := range map[string]url.Values{
		"no scope":   {"client_id": {"localpc"}, "machine_id": {"m"}, "machine_name": {"n"}, "machine_system": {"s"}},
		"no machine": {"client_id": {"localpc"}, "scope": {"machine"}},
		"no client":  {"scope": {"machine"}, "machine_id": {"m"}, "machine_name": {"n"}, "machine_system": {"s"}},
	} {
		if status, answer := h.post("/oauth/device_authorization", bad); status != 400 {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}

// Typed codes are few for each address, and for all together.
func TestTypedCodesAreLimited(t *testing.T) {
	h := start(t)
	try := func(a netip.Addr) error {
		_, err := h.PendingDevice(t.Context(), "BBBB-BBBB", a)
		return err
	}
	for i := range 10 {
		if err := try(loopbackAddr); err != store.ErrNotFound {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	if err := try(loopbackAddr); err != ErrTooMany {
		t.Errorf("the eleventh: %v", err)
	}
	// One subscriber has a whole /64.
	for i := range 11 {
		err := try(netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1)))
		if want := map[bool]error{true: store.ErrNotFound, false: ErrTooMany}[i < 10]; err != want {
			t.Errorf("try %d of a /64: %v, want %v", i, err, want)
		}
	}
	h.pass(6 * time.Second)
	if err := try(loopbackAddr); err != store.ErrNotFound {
		t.Errorf("after a while: %v", err)
	}
	tried := 0
	for i := range 200 {
		if try(netip.MustParseAddr(fmt.Sprintf("198.51.100.%d", i+1))) == store.ErrNotFound {
			tried++
		}
	}
	if tried < 30 || tried > 60 {
		t.Errorf("%d tries from everywhere", tried)
	}
	for _, bad := range []string{"", "BBBB", "BBBB-BBBBB", "AAAA-BBBB", "BBBB-BBB0", strings.Repeat("B", 100000), "\xff"} {
		if _, ok := typedCode(bad); ok {
			t.Errorf("%.20q is a code", bad)
		}
	}
}

// A flood of requests fills neither the database nor the way of other people.
func TestFlood(t *testing.T) {
	h := start(t)
	query := h.config().AuthCodeURL("s", append(about("m-1"), oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))...)
	refused := 0
	for i := range 60 {
		resp, err := h.http.Get(query)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if at, _ := resp.Location(); at == nil || strings.Contains(at.RawQuery, "error=temporarily_unavailable") {
			refused++
		} else if i >= 20 {
			t.Fatalf("request %d was kept", i)
		}
	}
	if refused != 40 {
		t.Errorf("%d of 60 refused", refused)
	}
	if status, answer := h.post("/oauth/device_authorization", url.Values{"client_id": {"localpc"}, "scope": {"machine"}, "machine_id": {"m"}, "machine_name": {"n"},
		"machine_system": {"s"}}); status != http.StatusTooManyRequests {
		t.Errorf("the device's way: %d %v", status, answer)
	}
	// Slowly, too, one network has few; another still has its turn.
	ask := func(from string) error {
		r := &store.SignInRequest{Scopes: []string{"machine"}, Redirect: redirect, Machine: "m", MachineName: "n", System: "s"}
		return h.add(context.WithValue(t.Context(), fromKey{}, netip.MustParseAddr(from)), own, r, "", "")
	}
	for range 100 {
		h.pass(2 * time.Second)
		if err := ask("198.51.100.1"); err != nil && !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
	}
	if err := ask("198.51.100.1"); !errors.Is(err, store.ErrFull) {
		t.Errorf("one network: %v", err)
	}
	if err := ask("198.51.100.2"); err != nil {
		t.Errorf("another network: %v", err)
	}
	// Nor does the number of networks that IPv6 gives a single subscriber help.
	kept := 0
	for i := range 5000 {
		if err := ask(fmt.Sprintf("2001:db8:7:%x::1", i)); err == nil {
			kept++
		} else if !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
	}
	if kept > 30 {
		t.Errorf("one subscriber has %d requests waiting", kept)
	}
	for _, other := range []string{"198.51.100.3", "2001:db8:8::1"} {
		if err := ask(other); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
	h.pass(21 * time.Minute)
	if err := ask("198.51.100.1"); err != nil {
		t.Errorf("after the old ones went: %v", err)
	}
}

// A page of another site cannot use up what its visitor may ask for.
func TestNoRequestsInPassing(t *testing.T) {
	h := start(t)
	ours := h.config().AuthCodeURL("s", append(about("m-1"), oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))...)
	theirs := h.url + "/auth/authorize?" + theirQuery(oauth2.GenerateVerifier()).Encode()
	for _, at := range []string{ours, theirs} {
		for _, c := range []struct{ method, dest string }{{"GET", "image"}, {"GET", "iframe"}, {"GET", "empty"}, {"GET", "script"}, {"HEAD", ""}, {"HEAD", "document"}} {
			for range 30 {
				req, err := http.NewRequestWithContext(t.Context(), c.method, at, nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.dest != "" {
					req.Header.Set("Sec-Fetch-Dest", c.dest)
					req.Header.Set("Sec-Fetch-Site", "cross-site")
				}
				resp, err := h.http.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusForbidden {
					t.Fatalf("%s as %q: %d", c.method, c.dest, resp.StatusCode)
				}
			}
		}
	}
	for _, at := range []string{ours, theirs} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Dest", "document")
		resp, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if to := resp.Header.Get("Location"); !strings.HasPrefix(to, h.url+"/pair?request=") {
			t.Errorf("a window goes to %q", to)
		}
	}
}

// An address that guesses tokens is held off; one that has good ones is not
// counted.
func TestGuessesAreLimited(t *testing.T) {
	h := start(t)
	token := h.signIn("m-1")
	for range 100 {
		var err error
		if token, err = h.refreshed(token.RefreshToken); err != nil {
			t.Fatal(err)
		}
	}
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {"localpc"}, "refresh_token": {"lpr_" + random(32)}}
	for i := range 70 {
		status, _ := h.post("/oauth/token", form)
		if want := map[bool]int{true: 400, false: 429}[i < 60]; status != want {
			t.Fatalf("guess %d: %d", i, status)
		}
	}
	for _, path := range []string{"/oauth/revoke", "/api/oauth/token", "/api/oauth/revoke", "/api/oauth/introspect"} {
		if status, _ := h.post(path, form); status != 429 {
			t.Errorf("%s: %d", path, status)
		}
	}
	h.pass(time.Minute)
	if _, err := h.refreshed(token.RefreshToken); err != nil {
		t.Errorf("after a minute: %v", err)
	}
}
