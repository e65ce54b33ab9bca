package web

import (
	"sync"
	"time"
)

// maxKeys bounds a limiter's memory; what comes on top shares one count.
const maxKeys = 10_000

// limiter counts tries by key, and refuses those over max within per.
type limiter struct {
	max int
	per time.Duration
	now func() time.Time

	mu   sync.Mutex
	keys map[string]*tries // guarded by mu
}

type tries struct {
	n     int
	since time.Time
}

func newLimiter(max int, per time.Duration, now func() time.Time) *limiter {
	return &limiter{max: max, per: per, now: now, keys: map[string]*tries{}}
}

// take counts a try before it is made, so that many at once are counted too.
// It tells whether it may be made.
func (l *limiter) take(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	t := l.keys[key]
	if t == nil && len(l.keys) >= maxKeys {
		for k, old := range l.keys {
			if now.Sub(old.since) >= l.per {
				delete(l.keys, k)
			}
		}
		if len(l.keys) >= maxKeys {
			key = ""
			t = l.keys[key]
		}
	}
	if t == nil || now.Sub(t.since) >= l.per {
		t = &tries{since: now}
		l.keys[key] = t
	}
	t.n++
	return t.n <= l.max
}

// give takes a try back that was no guess.
func (l *limiter) give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.keys[key]; t != nil && t.n > 0 {
		t.n--
	}
}
