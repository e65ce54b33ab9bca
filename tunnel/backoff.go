package tunnel

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gorilla/websocket"
)

// growth is how much longer each window is than the one before it, in tenths.
// With windows that double, machines that just missed a hub's return come so
// much later that the first ones are three times as dense as the average.
const growth = 14

// Steady is how long a connection must have lasted to count as a good one: what
// failed before it is forgotten then.
const Steady = 30 * time.Second

// Backoff says when to dial again. Time since the loss is cut into windows,
// each longer than the last up to max, and there is one dial in each, at a
// random moment. Machines that lost their hub together so stay spread evenly
// over the window that their hub comes back in, however long it was gone;
// waits that were drawn anew from each failure would bunch them.
type Backoff struct {
	// Base is the first window, Max the longest.
	Base, Max time.Duration

	window time.Duration // the one of the last dial; 0 before the first
	rest   time.Duration // what is left of it after that dial
}

// Ended is told how long a connection, or the try to make one, lasted, and how
// it ended. After a steady one, and one that the hub ended in peace, the windows
// begin anew.
func (b *Backoff) Ended(lasted time.Duration, err error) {
	var ce *websocket.CloseError
	if lasted > Steady || errors.As(err, &ce) && (ce.Code == websocket.CloseNormalClosure || ce.Code == websocket.CloseGoingAway) {
		b.window, b.rest = 0, 0
	}
}

// Next is how long to wait from now.
func (b *Backoff) Next() time.Duration {
	if b.window == 0 {
		b.window = min(b.Base, b.Max)
	} else {
		b.window = min(b.window*growth/10, b.Max)
	}
	at := time.Duration(rand.Int64N(int64(b.window) + 1))
	wait := b.rest + at
	b.rest = b.window - at
	return wait
}
