package display

import (
	"sync"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
)

// TestStopIsHeard: however much else waits to be told.
func TestStopIsHeard(t *testing.T) {
	l := &listener{events: make(chan hands.Event, 32), stops: make(chan hands.Event, 1), told: make(chan struct{})}
	for range 40 {
		l.say(hands.Event{Person: true, At: time.Now()})
	}
	l.say(hands.Event{Stop: true, At: time.Now()})
	var mu sync.Mutex
	stopped := false
	l.listen(func(e hands.Event) {
		mu.Lock()
		defer mu.Unlock()
		stopped = stopped || e.Stop
	})
	go l.tell()
	close(l.events)
	<-l.told
	mu.Lock()
	defer mu.Unlock()
	if !stopped {
		t.Error("nobody heard of the stop key")
	}
}
