package machine

import (
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// A program may pause its own session: what runs in it stands still, and all it
// asks for is refused until it has it resumed. Its time stands still too, for as
// long as any session may live.

func describePause(t wire.Type, p *wire.SessionRef) capabilities.Description {
	action, title, text := "pause", "Pause the session", "stops its own processes for a while"
	if t == wire.TypeSessionResume {
		action, title, text = "resume", "Resume the session", "lets its own processes go on"
	}
	return capabilities.Description{Action: action, Title: title, Payload: []any{action, p.SessionID}, Risk: consent.RiskLow,
		Effects: []consent.Effect{{Kind: consent.EffectOwn, Text: text, Own: true}}}
}

// sleep pauses a session, or has it go on. It may be so already.
func (ss *sessions) sleep(id string, on bool) (capabilities.Result, error) {
	s, err := ss.get(id)
	if err != nil {
		return capabilities.Result{}, err
	}
	ss.pausing.Lock() // so that what is kept and what is done are the same
	defer ss.pausing.Unlock()
	if !s.sleep(on, time.Now(), ss.look) {
		return capabilities.Result{}, sessionGone()
	}
	for _, c := range ss.m.o.Executors {
		if sl, ok := c.(capabilities.Sleeper); ok {
			sl.PauseSession(id, on)
		}
	}
	ss.m.changed()
	outcome := "resumed"
	if on {
		outcome = "paused"
	}
	return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: outcome}, nil
}

// sleep is false when the session is ending. Whether its time is over is looked
// at after look at the latest.
func (s *session) sleep(on bool, now time.Time, look time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone:
		return false
	case on == !s.asleep.IsZero():
	case on:
		s.rest, s.asleep = s.left(now), now
	default:
		s.asleep, s.until = time.Time{}, now.Add(s.rest)
		s.timer.Reset(min(s.rest, look))
	}
	return true
}

// sleeps tells whether its program paused it.
func (s *session) sleeps() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.asleep.IsZero()
}

// ends is when its time is over. Called with mu held.
func (s *session) ends() time.Time {
	if s.asleep.IsZero() {
		return s.until
	}
	return s.asleep.Add(maxTTL)
}

// wakesFirst refuses what is not for a session that is paused. What ends or
// resumes it, or ends a process of it, is.
func (t *task) wakesFirst() error {
	if t.session == nil || !t.session.sleeps() || t.executor == capabilities.Capability(t.m.sessions) || t.call.Type == wire.TypeProcessSignal {
		return nil
	}
	return wire.Errorf(wire.CodePaused, "This session is paused by its program; it has to be resumed first.")
}
