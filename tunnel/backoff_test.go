package tunnel

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Thousand machines that lost their hub at the same moment come back at a rate
// that stays under three times the average, however long the hub was gone:
// a restart of a moment, and an outage of hours.
func TestBackoffSpreads(t *testing.T) {
	const machines, parts = 1000, 10
	for _, gone := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond, time.Second, 1050 * time.Millisecond, 2500 * time.Millisecond,
		5 * time.Second, 20 * time.Second, time.Minute, 10 * time.Minute, 3 * time.Hour} {
		back := make([]time.Duration, machines)
		var last time.Duration
		for i := range back {
			b := Backoff{Base: time.Second, Max: time.Minute}
			at := b.Next()
			for at < gone {
				at += b.Next()
			}
			back[i] = at - gone
			last = max(last, back[i])
		}
		var counts [parts]int
		for _, at := range back {
			counts[min(int(at*parts/last), parts-1)]++
		}
		for i, n := range counts {
			if n >= 3*machines/parts {
				t.Errorf("gone for %s: %d of %d come in part %d of %s: %v", gone, n, machines, i, last, counts)
			}
		}
		if last > 2*time.Minute {
			t.Errorf("gone for %s: the last comes after %s", gone, last)
		}
	}
}

// A good connection begins anew, and so does one that the hub ended in peace;
// any other goes on to ever longer windows.
func TestBackoffBeginsAnew(t *testing.T) {
	closed := func(code int) error { return fmt.Errorf("read: %w", &websocket.CloseError{Code: code}) }
	for name, c := range map[string]struct {
		lasted time.Duration
		err    error
		anew   bool
	}{
		"steady":           {Steady + time.Second, errors.New("reset"), true},
		"not long enough":  {Steady - time.Second, errors.New("reset"), false},
		"normal close":     {0, closed(1000), true},
		"hub stopped":      {0, closed(1001), true},
		"another close":    {0, closed(4500), false},
		"not even dialled": {0, errors.New("refused"), false},
	} {
		b := Backoff{Base: time.Second, Max: time.Minute}
		for range 50 {
			b.Next()
		}
		b.Ended(c.lasted, c.err)
		var longest time.Duration
		for range 200 {
			again := b
			longest = max(longest, again.Next())
		}
		if c.anew != (longest <= time.Second) {
			t.Errorf("%s: the next wait is up to %s", name, longest)
		}
	}
}
