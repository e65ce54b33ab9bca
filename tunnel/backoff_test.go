package tunnel

import (
	"testing"
	"time"
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
			b := backoff{base: time.Second, max: time.Minute}
			at := b.next()
			for at < gone {
				at += b.next()
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
