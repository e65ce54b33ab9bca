package shell

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
	s.wg.Go(s.applyFreeze)
}

// applyFreeze brings every process to what Freeze wants now.
func (s *Shell) applyFreeze() {
	s.freezing.Lock()
	defer s.freezing.Unlock()
	s.mu.Lock()
	on := s.frozen && !s.closed
	var all []*process
	for _, ps := range s.processes {
		for _, p := range ps {
			if p.full && p.frozen != on {
				all = append(all, p)
			}
		}
	}
	s.mu.Unlock()
	sig := sigGoOn
	if on {
		sig = sigHold
	}
	for _, p := range all {
		p.frozen = on
		p.signal(sig)
	}
}
