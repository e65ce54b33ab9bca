package display

import (
	"math"
	"sync"
	"time"
)

// The person's mouse has moved when it is this far, in pixels, from where it
// was at most so long ago: a mouse that lies still on an unquiet table has not.
const (
	jitter     = 8
	jitterTime = 500 * time.Millisecond
	// tellEvery is how often listeners are told, at most.
	tellEvery = 100 * time.Millisecond
)

// person is what is known about the person's own hands.
type person struct {
	mu     sync.Mutex // of everything
	last   time.Time  // when they were last at work
	told   time.Time
	x, y   float64 // how far the mouse has come
	ax, ay float64 // and where that began
	since  time.Time
}

// moved adds a movement of a mouse; it tells whether that was the person, and
// whether listeners are to hear of it.
func (p *person) moved(dx, dy float64, at time.Time) (busy, tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Sub(p.since) > jitterTime || at.Before(p.since) {
		p.ax, p.ay, p.since = p.x, p.y, at
	}
	p.x += dx
	p.y += dy
	if math.Hypot(p.x-p.ax, p.y-p.ay) < jitter {
		return false, false
	}
	p.ax, p.ay, p.since = p.x, p.y, at
	return true, p.busy(at)
}

// pressed says that a key or a button was used.
func (p *person) pressed(at time.Time) (tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy(at)
}

func (p *person) busy(at time.Time) (tell bool) {
	if at.After(p.last) {
		p.last = at
	}
	if at.Sub(p.told) < tellEvery && !at.Before(p.told) {
		return false
	}
	p.told = at
	return true
}

// after tells whether they were at work after t. A t that is still to come says
// that the clock was set back: then they may have been.
func (p *person) after(t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.After(t) || !p.last.IsZero() && t.After(time.Now())
}
