package shell

import (
	"syscall"
	"time"
)

// Freeze stops everything that runs with full access, and what starts
// meanwhile, or lets it go on: while a card is open, nothing that could answer
// it runs. It returns at once; the newest call holds.
func (s *Shell) Freeze(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen == on || s.closed {
		return
	}
	s.frozen = on
	s.wg.Go(s.applyHold)
}

// PauseSession stops everything that runs in a session, contained or not, and
// what starts there meanwhile, or lets it go on. Time limits stand still with
// it. It returns at once; the newest call holds.
func (s *Shell) PauseSession(session string, on bool) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	if on {
		s.asleep[session] = struct{}{}
	} else {
		delete(s.asleep, session)
	}
	s.mu.Unlock()
	s.applyHold()
}

// holds tells whether p is to stand still now. Called with mu held.
func (s *Shell) holds(p *process) bool {
	_, asleep := s.asleep[p.session]
	return !s.closed && (asleep || s.frozen && p.full)
}

// applyHold brings every process to what Freeze and PauseSession want now.
func (s *Shell) applyHold() {
	s.holding.Lock()
	defer s.holding.Unlock()
	want := map[*process]bool{}
	s.mu.Lock()
	for _, ps := range s.processes {
		for _, p := range ps {
			if on := s.holds(p); p.held != on {
				want[p] = on
			}
		}
	}
	s.mu.Unlock()
	for p, on := range want {
		p.held = on
		if on {
			p.signal(sigHold)
		} else {
			p.signal(sigGoOn)
		}
	}
}

// endsWithin is how long a process that stands still has to end by itself.
const endsWithin = 2 * time.Second

// askToEnd sends p the signal that asks it to end. One that stands still could not
// answer: it goes on for a while, but not while a card is open that it might
// answer; then it learns of the signal when the card has gone.
func (s *Shell) askToEnd(p *process) {
	s.holding.Lock()
	defer s.holding.Unlock()
	p.signal(syscall.SIGTERM)
	if !p.held {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.frozen && p.full {
		return
	}
	p.held = false
	p.signal(sigGoOn)
	s.wg.Go(func() {
		select {
		case <-p.gone:
		case <-time.After(endsWithin):
			s.applyHold()
		case <-s.life.Done():
		}
	})
}
