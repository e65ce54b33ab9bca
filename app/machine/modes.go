package machine

import (
	"context"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/policy"
)

// modeAt is how the session may work at that moment, and until when it is
// trusted, where it is.
func (s *session) modeAt(now time.Time) (m consent.Mode, trustedUntil time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode != consent.ModeTrusted {
		return s.mode, time.Time{}
	}
	if consent.Over(s.trusted, now, consent.TrustedFor) {
		return settled(s.mode), time.Time{}
	}
	return s.mode, s.trusted.Add(consent.TrustedFor)
}

// settled is a mode as it stays: trust becomes work.
func settled(m consent.Mode) consent.Mode {
	if m == consent.ModeTrusted {
		return consent.ModeWork
	}
	return m
}

// now is the session and who asks in it, as it is at this moment: what one
// request is described, decided and run with. Executors know of trust only that
// it is work.
func (s *session) now() (*capabilities.Session, asker) {
	mode, _ := s.modeAt(time.Now())
	sess, who := *s.Session, s.who
	sess.Mode, who.mode = settled(mode), mode
	return &sess, who
}

// put sets a session's mode; false when it is ending. When trust ends by
// itself, the windows are told.
func (ss *sessions) put(s *session, m consent.Mode) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	if s.over15 != nil {
		s.over15.Stop()
		s.over15 = nil
	}
	s.mode = m
	if m == consent.ModeTrusted {
		s.trusted = time.Now()
		s.over15 = time.AfterFunc(consent.TrustedFor, ss.m.changed)
	}
	return true
}

// setMode changes how an open session may work, from its next request on: what
// runs goes on as it was begun. Nothing changes when that can't be recorded.
func (ss *sessions) setMode(ctx context.Context, id string, m consent.Mode) error {
	if m != consent.ModeLook && m != consent.ModeWork && m != consent.ModeAsk && m != consent.ModeTrusted {
		return sentence("There is no such way to work in a folder.")
	}
	s, err := ss.get(id)
	if err != nil {
		return err
	}
	if err := ss.m.o.Record.Happened(ctx, "session mode", s.who.principal.ID+": "+policy.ModeWords(m)); err != nil {
		ss.m.log.Error("A session's mode could not be recorded", "err", err)
		return sentence("This computer could not write its record, so nothing was changed. Is the disk full?")
	}
	if !ss.put(s, m) {
		return sessionGone()
	}
	ss.m.changed()
	return nil
}
