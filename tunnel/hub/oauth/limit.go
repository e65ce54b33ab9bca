package oauth

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxNetworks is how many networks a limiter tells apart. The rest share one
// allowance, so that a flood from everywhere costs no memory.
const maxNetworks = 4096

// limiter gives each network a burst of attempts, and a new one every so often.
type limiter struct {
	burst int
	every time.Duration

	mu    sync.Mutex
	of    map[string]*rate.Limiter // guarded by mu
	swept time.Time                // guarded by mu
	rest  *rate.Limiter
}

func newLimiter(burst int, every time.Duration) *limiter {
	return &limiter{burst: burst, every: every, of: map[string]*rate.Limiter{}, rest: rate.NewLimiter(rate.Every(every), burst)}
}

func (l *limiter) get(now time.Time, network string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.of[network]; ok {
		return r
	}
	// Looking for idle ones costs more than an attempt, so it is seldom done.
	if len(l.of) >= maxNetworks && now.Sub(l.swept) >= l.every {
		l.swept = now
		for n, r := range l.of {
			if r.TokensAt(now) >= float64(l.burst) {
				delete(l.of, n)
			}
		}
	}
	if len(l.of) >= maxNetworks {
		return l.rest
	}
	r := rate.NewLimiter(rate.Every(l.every), l.burst)
	l.of[network] = r
	return r
}

// take uses up an attempt, and reports false when there was none.
func (l *limiter) take(now time.Time, network string) bool {
	return l.get(now, network).AllowN(now, 1)
}

// spent tells whether there is no attempt left.
func (l *limiter) spent(now time.Time, network string) bool {
	return l.get(now, network).TokensAt(now) < 1
}

// network is what an address counts to. Of IPv6 that is the /48: one subscriber
// may have as much, and with 65,536 networks of /64 could take everybody's turn.
func network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(48); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// addressOf is who sent a request. A hub behind a proxy sets RemoteAddr to what
// the proxy told before it calls this package.
func addressOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	a, _ := netip.ParseAddr(host)
	return a.Unmap()
}
