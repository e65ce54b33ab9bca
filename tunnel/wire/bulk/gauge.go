package bulk

import (
	"time"

	"localpc/tunnel/wire"
)

const (
	// Enough data of a request goes over the control socket; what comes after it
	// is worth a stream.
	Enough = 64 << 10
	// pause ends a burst. What a program prints now and then, however much in
	// all, stays beside the keystrokes.
	pause = time.Second
)

// Gauge sees what one end sends of a request, and says when it is time for a
// stream. The zero value is ready; for one goroutine at a time.
type Gauge struct {
	sent int
	last time.Time
}

// Due counts what is to be sent next, and tells whether that is worth a stream.
func (g *Gauge) Due(p wire.Payload) bool {
	n := wire.DataLen(p)
	if n == 0 {
		return false
	}
	if _, file := p.(*wire.FileChunk); !file {
		now := time.Now()
		if now.Sub(g.last) > pause {
			g.sent = 0
		}
		g.last = now
	}
	g.sent += n
	return g.sent > Enough
}
