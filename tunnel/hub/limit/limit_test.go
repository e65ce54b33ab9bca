package limit_test

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"localpc/tunnel/hub/limit"
)

func TestLimiter(t *testing.T) {
	now := time.Now()
	l := limit.New(2, 30*time.Second, func() time.Time { return now })
	take := func(key string, want bool) {
		t.Helper()
		if spent := l.Spent(key); spent == want {
			t.Errorf("%s: spent %v", key, spent)
		}
		if got := l.Take(key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
	take("a", true)
	take("a", true)
	take("a", false)
	take("b", true)
	l.Give("b")
	l.Give("b") // never more than at the start
	take("b", true)
	take("b", true)
	take("b", false)
	now = now.Add(29 * time.Second)
	take("a", false)
	now = now.Add(time.Second)
	take("a", true)
	take("a", false)
	now = now.Add(time.Hour)
	take("a", true)
	take("a", true)
	take("a", false)
	now = now.Add(-time.Hour) // a clock that was set back gives nothing, and takes nothing
	take("a", false)
	now = now.Add(30 * time.Second)
	take("a", true)
}

// A flood of keys lets no more through, and what comes on top shares one
// allowance until others are idle.
func TestLimiterIsBounded(t *testing.T) {
	now := time.Now()
	l := limit.New(2, time.Second, func() time.Time { return now })
	for i := range limit.MaxKeys {
		l.Take(fmt.Sprint(i))
		l.Take(fmt.Sprint(i))
	}
	through := 0
	for i := range 100 {
		if l.Take(fmt.Sprint("late ", i)) {
			through++
		}
	}
	if through != 2 {
		t.Errorf("%d keys on top got through", through)
	}
	now = now.Add(time.Minute)
	for i := range 3 {
		if got := l.Take("late again"); got != (i < 2) {
			t.Errorf("try %d, when the others are idle: %v", i, got)
		}
	}
	if !l.Take("later") {
		t.Error("the idle are not forgotten")
	}
}

func TestNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1234": "192.0.2.7", "192.0.2.7": "192.0.2.7", "[::ffff:192.0.2.7]:1": "192.0.2.7", "::1": "::/48",
		"[2001:db8:1:2::3]:80": "2001:db8:1::/48", "2001:db8:1:ffff::9": "2001:db8:1::/48", "[fe80::1%eth0]:80": "fe80::/48",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = remote
		if got := limit.Network(limit.From(r)); got != want {
			t.Errorf("%s counts to %q, want %q", remote, got, want)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "@"
	if a := limit.From(r); a.IsValid() || limit.Network(a) != limit.Network(netip.Addr{}) {
		t.Errorf("a socket without an address comes from %s", a)
	}
}
