package machine

import (
	"testing"
	"time"

	"localpc/tunnel/wire"
)

func (r *rig) pauses(id string, on bool) {
	r.t.Helper()
	typ := wire.TypeSessionPause
	if !on {
		typ = wire.TypeSessionResume
	}
	m, err := r.call(typ, &wire.SessionRef{SessionID: id})
	must(r.t, err)
	if m.Type != wire.TypeAck {
		r.t.Fatalf("answered %s", m.Type)
	}
}

// A paused session stands still and takes nothing but its resumption and its
// end; nobody is asked about any of that.
func TestAPausedSessionWaits(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	r.open("s2", 0)
	cards := len(r.person.seen())
	r.pauses("s1", true)
	r.pauses("s1", true)
	wantCode(t, r.do("s1"), wire.CodePaused)
	must(t, r.do("s2"))
	if s := r.m.sessions.snapshot(); len(s) != 2 || !s[0].Asleep || s[1].Asleep {
		t.Errorf("shown: %+v", s)
	}
	if ids := r.m.sessions.ids(); len(ids) != 2 {
		t.Errorf("HELLO names %q", ids)
	}
	r.pauses("s1", false)
	must(t, r.do("s1"))
	if n := len(r.person.seen()) - cards; n != 2 { // the two commands
		t.Errorf("%d cards were shown", n)
	}
	r.probe.mu.Lock()
	if got := r.probe.paused; len(got) != 3 || !got[0] || !got[1] || got[2] {
		t.Errorf("the executor was told %v", got)
	}
	r.probe.mu.Unlock()
	r.pauses("s1", true)
	_, err := r.call(wire.TypeSessionClose, &wire.SessionRef{SessionID: "s1"})
	must(t, err)
	wantCode(t, r.do("s1"), wire.CodeSessionNotOpen)
}

// Its time stands still as well, and it has a new one when it goes on.
func TestAPausedSessionDoesNotEndByItsTime(t *testing.T) {
	r := newRig(t)
	r.m.sessions.look = 20 * time.Millisecond
	r.open("s1", 3600)
	r.pauses("s1", true)
	s := r.sleeps("s1")
	time.Sleep(200 * time.Millisecond)
	wantCode(t, r.do("s1"), wire.CodePaused)
	_, err := r.call(wire.TypeSessionTTL, &wire.SessionTTL{SessionID: "s1", TTLSeconds: 1800})
	must(t, err)
	r.pauses("s1", false)
	must(t, r.do("s1"))
	s.mu.Lock()
	left := s.left(time.Now())
	s.mu.Unlock()
	if left < 29*time.Minute || left > 30*time.Minute {
		t.Errorf("it has %v left", left)
	}
	// After a day it ends all the same.
	r.pauses("s1", true)
	s.mu.Lock()
	s.asleep = s.asleep.Add(-maxTTL)
	s.mu.Unlock()
	within(t, "its end", s.over)
}
