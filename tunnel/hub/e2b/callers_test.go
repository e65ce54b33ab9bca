package e2b

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"
)

// A network has the tries of one, however many addresses and however many
// other networks there are.
func TestCallers(t *testing.T) {
	now := time.Now()
	c := newCallers(func() time.Time { return now })
	try := func(address string) bool {
		r := httptest.NewRequest("GET", "/files?signature=x", nil)
		r.RemoteAddr = address
		return c.allow(r)
	}
	// Addresses of one IPv6 subscriber.
	for i := range signedBurst {
		if !try(fmt.Sprintf("[2001:db8:1:%x::1]:1", i)) {
			t.Fatalf("try %d is refused", i)
		}
	}
	spent := func(when string) {
		t.Helper()
		if try("[2001:db8:1:ffff::9]:2") {
			t.Error("one more of the same network is let in " + when)
		}
	}
	spent("at once")
	if !try("192.0.2.1:1") {
		t.Error("another network is refused")
	}
	let := signedBurst + 1
	for i := range 3 * signedBurstAll {
		if try(fmt.Sprintf("10.%d.%d.1:1", i>>8, i&255)) {
			let++
		}
	}
	if let != signedBurstAll {
		t.Errorf("%d of all were let in, want %d", let, signedBurstAll)
	}
	now = now.Add(signedEvery / 2)
	spent("after a flood from everywhere")
	if !try("192.0.2.1:1") {
		t.Error("another network is refused a moment later")
	}
}
