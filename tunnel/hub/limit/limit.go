// Package limit is step 1 where strangers try: it counts tries by the network
// that they come from, or by what they guess at, and says when there were too
// many. A leaf.
package limit

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// MaxKeys is how many keys a Limiter tells apart. The rest share one allowance,
// so that a flood from everywhere costs no memory.
const MaxKeys = 4096

// Limiter gives each key a number of tries at once, and a new one every so
// often up to that number. It is safe for concurrent use.
type Limiter struct {
	burst float64
	every time.Duration
	now   func() time.Time

	mu    sync.Mutex
	of    map[string]*bucket // guarded by mu
	swept time.Time          // guarded by mu
	rest  bucket             // guarded by mu
}

// bucket is the tries that a key had left at some time.
type bucket struct {
	left float64
	at   time.Time
}

// New is a Limiter of burst tries, and one more every so often. now is the
// clock.
func New(burst int, every time.Duration, now func() time.Time) *Limiter {
	return &Limiter{burst: float64(burst), every: every, now: now, of: map[string]*bucket{}, rest: bucket{float64(burst), now()}}
}

// fill adds the tries that came to b since it was last looked at.
func (l *Limiter) fill(b *bucket, now time.Time) {
	if since := now.Sub(b.at); since > 0 {
		b.left = min(l.burst, b.left+float64(since)/float64(l.every))
	}
	b.at = now
}

// get is called with mu.
func (l *Limiter) get(key string) *bucket {
	now := l.now()
	b := l.of[key]
	// To look for idle ones costs more than a try, so it is seldom done.
	if b == nil && len(l.of) >= MaxKeys && now.Sub(l.swept) >= l.every {
		l.swept = now
		for k, old := range l.of {
			if l.fill(old, now); old.left >= l.burst {
				delete(l.of, k)
			}
		}
	}
	switch {
	case b != nil:
	case len(l.of) >= MaxKeys:
		b = &l.rest
	default:
		b = &bucket{l.burst, now}
		l.of[key] = b
	}
	l.fill(b, now)
	return b
}

// Take uses up a try before it is made, so that many at once are counted too.
// It is false when there was none.
func (l *Limiter) Take(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.get(key)
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// Give takes a try back that was no guess.
func (l *Limiter) Give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.get(key)
	b.left = min(l.burst, b.left+1)
}

// Spent tells whether there is no try left.
func (l *Limiter) Spent(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(key).left < 1
}

// From is the address that a request came from. A hub behind a proxy sets
// RemoteAddr to what the proxy told, without a port.
func From(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	a := ap.Addr()
	if err != nil {
		a, _ = netip.ParseAddr(r.RemoteAddr)
	}
	return a.Unmap().WithZone("")
}

// Network is what an address counts to. Of IPv6 that is the /48: one subscriber
// may have as much, and with 65,536 networks of /64 could take everybody's turn.
func Network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(48); err == nil {
			return p.String()
		}
	}
	return a.String()
}
