package machine

import (
	"testing"
	"time"

	"localpc/tunnel/wire"
)

// sleeps has a session's time go by while its timer stands still, as in a
// computer that sleeps.
func (r *rig) sleeps(id string) *session {
	r.t.Helper()
	s, err := r.m.sessions.get(id)
	must(r.t, err)
	s.mu.Lock()
	s.until = time.Now().Round(0).Add(-time.Second)
	s.mu.Unlock()
	return s
}

// A session whose time was over while the computer slept takes nothing more,
// and ends.
func TestASessionEndsInTheSleep(t *testing.T) {
	r := newRig(t)
	r.open("s1", 3600)
	s := r.sleeps("s1")
	wantCode(t, r.do("s1"), wire.CodeSessionNotOpen)
	within(t, "its end", s.over)
}

// It does so without being asked for anything, too.
func TestASessionEndsAfterTheSleep(t *testing.T) {
	r := newRig(t)
	r.m.sessions.look = 20 * time.Millisecond
	r.open("s1", 3600)
	must(t, r.do("s1"))
	within(t, "its end", r.sleeps("s1").over)
	wantCode(t, r.do("s1"), wire.CodeSessionNotOpen)
}
