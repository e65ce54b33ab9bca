package tunnel

import (
	"math/rand/v2"
	"time"
)

// growth is how much longer each window is than the one before it, in tenths.
// With windows that double, machines that just missed a hub's return come so
// much later that the first ones are three times as dense as the average.
const growth = 14

// backoff says when to dial again. Time since the loss is cut into windows,
// each longer than the last up to max, and there is one dial in each, at a
// random moment. Machines that lost their hub together so stay spread evenly
// over the window that their hub comes back in, however long it was gone;
// waits that were drawn anew from each failure would bunch them.
type backoff struct {
	base, max time.Duration
	window    time.Duration // the one of the last dial; 0 before the first
	rest      time.Duration // what is left of it after that dial
}

// next is how long to wait from now.
func (b *backoff) next() time.Duration {
	if b.window == 0 {
		b.window = min(b.base, b.max)
	} else {
		b.window = min(b.window*growth/10, b.max)
	}
	at := time.Duration(rand.Int64N(int64(b.window) + 1))
	wait := b.rest + at
	b.rest = b.window - at
	return wait
}

// reset begins anew, after a connection that has stood.
func (b *backoff) reset() { b.window, b.rest = 0, 0 }
