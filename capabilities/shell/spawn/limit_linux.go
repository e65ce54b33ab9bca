package spawn

import (
	"sync"
	"time"
)

// limit is a time limit that can stand still. The zero value is none; safe for
// concurrent use.
type limit struct {
	mu    sync.Mutex
	timer *time.Timer   // guarded by mu; nil while there is none, and once it has ended
	left  time.Duration // guarded by mu; of the limit, when it last went on
	since time.Time     // guarded by mu; when that was
	held  bool          // guarded by mu
}

// begin starts it; over is called on a goroutine of its own when d has gone by.
func (l *limit) begin(d time.Duration, over func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.since = d, time.Now()
	l.timer = time.AfterFunc(d, over)
	if l.held {
		l.timer.Stop()
	}
}

// end takes the limit away.
func (l *limit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// hold has it stand still, unless it is over.
func (l *limit) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return
	}
	l.held = true
	if l.timer != nil {
		if !l.timer.Stop() {
			l.timer = nil
			return
		}
		l.left -= time.Since(l.since)
	}
}

// goOn ends hold.
func (l *limit) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		return
	}
	l.held = false
	if l.timer != nil {
		l.since = time.Now()
		l.timer.Reset(max(l.left, 0))
	}
}
