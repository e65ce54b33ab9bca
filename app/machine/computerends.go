package machine

import (
	"context"
	"slices"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/consent/policy"
)

// unused ends a session's use that it has made nothing of for a while. It has
// to ask again.
func (c *controls) unused(ctx context.Context, u hands.Use) {
	c.drop(u.Session, stoppedBy("Screen, mouse and keyboard were not used for 10 minutes, so that has ended; ask again."), true)
	if c.revoke(ctx, u.Session) == 0 && !u.On() {
		return // what it had was taken away before
	}
	c.tell(u.Session, "Screen, mouse and keyboard: ended, not used for 10 minutes", "It asks again before it uses them.", snapshot.Done)
}

// revoke takes what a session was allowed at the screen away, "" for all, and
// says how much that was.
func (c *controls) revoke(ctx context.Context, session string) (revoked int) {
	if c.exec == nil {
		return 0
	}
	all, err := c.m.o.Store.Remembered(ctx, "", "")
	if err != nil {
		c.m.log.Error("The grants could not be read", "err", err)
		return 0
	}
	for _, g := range all {
		if g.Deny || g.Rule.Capability != consent.CapabilityComputer || !c.holds(g, session) {
			continue
		}
		n, err := c.m.o.Store.Revoke(ctx, g.ID)
		if err != nil {
			c.m.log.Error("A grant could not be revoked", "err", err)
		}
		revoked += n
	}
	c.m.changed()
	return revoked
}

// holds tells whether a grant is for this session, "" for any: its own, or one
// for a while of its program.
func (c *controls) holds(g consent.Stored, session string) bool {
	switch {
	case g.Scope == consent.Session:
		return session == "" || g.Session == session
	case session == "":
		return g.Scope == consent.Minutes15
	}
	s, err := c.m.sessions.get(session)
	return err == nil && g.Scope == consent.Minutes15 && reaches(g, s)
}

// revoked ends what was allowed by what is gone now.
func (c *controls) revoked(gone []consent.Stored) {
	c.end(gone, stoppedBy("The person at this computer took away what allowed this."))
}

// end is revoked with a cause of its own. What something else still allows goes
// on.
func (c *controls) end(gone []consent.Stored, cause error) {
	left, _ := c.m.lists.stored() // where they can't be read, nothing allows it
	for _, g := range gone {
		if g.Deny || g.Rule.Capability != consent.CapabilityComputer {
			continue
		}
		for _, s := range c.m.sessions.list() {
			if !reaches(g, s) || slices.ContainsFunc(left, func(other consent.Stored) bool { return reaches(other, s) && instead(other, g) }) {
				continue
			}
			// Which screens are shared is a matter of seeing them alone.
			c.drop(s.ID, cause, g.Rule.Action == "see")
		}
	}
}

// reaches tells whether a grant is for this session: its own, or one of its
// program.
func reaches(g consent.Stored, s *session) bool {
	if g.Scope == consent.Session {
		return g.Session == s.ID
	}
	return s.who.hub == g.Rule.Hub && s.who.principal.ID == g.Rule.Principal
}

// instead tells whether other allows all that g did, in the sessions that both
// are for.
func instead(other, g consent.Stored) bool {
	a, b := other.Rule, g.Rule
	if b.Action == "see" && g.Choice.Screens != "" {
		shared := consent.SplitScreens(other.Choice.Screens)
		for _, name := range consent.SplitScreens(g.Choice.Screens) {
			if !slices.Contains(shared, name) {
				return false
			}
		}
		a.Exact, b.Exact = "", ""
	}
	return !other.Deny && a == b
}

// overdueAgain is when grants that could not be read are read again.
const overdueAgain = 2 * time.Second

// overdue ends what was allowed for a time that is over, and says how long it is
// until the next.
func (c *controls) overdue() time.Duration {
	held := map[string]bool{}
	stored, ok := c.m.lists.stored()
	for _, g := range stored {
		if !g.Deny && g.Rule.Capability == consent.CapabilityComputer && !g.Expires.IsZero() {
			c.timed[g.ID], held[g.ID] = g, true
		}
	}
	now, next := time.Now(), time.Hour
	if !ok {
		next = overdueAgain
	}
	var over []consent.Stored
	for id, g := range c.timed {
		switch live := policy.Live(g, now); {
		case live && (held[id] || !ok):
			next = min(next, g.Expires.Sub(now)+time.Millisecond)
			continue
		case !live:
			over = append(over, g)
		}
		delete(c.timed, id) // else it was revoked
	}
	c.end(over, stoppedBy("What was allowed for a time is over; ask again."))
	return next
}

// lastChange tells whether the screens have not changed again since the change
// of this number.
func (c *controls) lastChange(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screens == n
}

// screensStay is how long a screen may be away while the screens are changed.
const screensStay = 700 * time.Millisecond

// moved ends what the screens that are not there any more were for: an action at
// once, a session when its last one stays away.
func (c *controls) moved(ctx context.Context, change int) {
	c.exec.Moved()
	select {
	case <-ctx.Done():
		return
	case <-time.After(screensStay):
	}
	if !c.lastChange(change) {
		return // the last one looks
	}
	within, cancel := context.WithTimeout(ctx, handsWithin)
	defer cancel()
	l, err := c.hands.Layout(within)
	if err != nil {
		if ctx.Err() == nil {
			c.m.log.Error("The screens have changed, and the display does not say how", "err", err)
		}
		return
	}
	for _, session := range c.exec.Without(l) {
		c.drop(session, stoppedBy("The screen that the person shared is not connected any more; ask again."), true)
		c.revoke(ctx, session)
		c.tell(session, "Screen, mouse and keyboard: ended, the shared screen is gone", "It asks again before it uses them.", snapshot.Done)
	}
}

// tell puts a line of its own into Activity, and into the record.
func (c *controls) tell(session, what, reason string, outcome snapshot.Outcome) {
	who, id := c.who(session), consent.NewID()
	principal := ""
	if s, err := c.m.sessions.get(session); err == nil {
		principal = s.who.principal.ID + ": "
	} else if session == "" {
		who = ""
	}
	if err := c.m.o.Record.Happened(context.WithoutCancel(c.m.ctx), "screen, mouse and keyboard", principal+what); err != nil {
		c.m.log.Error("What happened at the screen could not be recorded", "err", err)
	}
	c.m.journal.note(snapshot.Entry{ID: id, Time: time.Now(), Who: who, What: what, Capability: consent.CapabilityComputer, Outcome: outcome}, reason)
}

// event is called by the hands, and returns at once.
func (c *controls) event(e hands.Event) {
	switch {
	case e.Stop:
		c.m.background(func(ctx context.Context) {
			if _, err := c.m.Intend(ctx, snapshot.Intent{Kind: snapshot.StopAll, Text: snapshot.WindowActivity}); err != nil {
				c.m.log.Error("The stop key did not stop everything", "err", err)
			}
		})
	case e.Person:
		c.exec.Person()
		c.byPerson()
	case e.Screens:
		c.mu.Lock()
		c.screens++
		change := c.screens
		c.mu.Unlock()
		c.m.background(func(ctx context.Context) { c.moved(ctx, change) })
		c.m.background(func(ctx context.Context) { c.testAgain(ctx, change) })
		c.m.changed()
	case e.Lost:
		c.m.background(func(context.Context) {
			c.ops.Lock()
			c.applied = nil
			c.ops.Unlock()
			session := ""
			if now, _ := c.uses(); len(now) > 0 {
				session = foremost(now).Session
			}
			c.tell(session, "The part that uses the screen ended by itself", "A fresh one has taken its place and let go of every key and button.", snapshot.Failed)
			c.kick()
		})
	}
}

// pauses notes who sees or acts as the person pauses, and goesOn forgets it.
func (c *controls) pauses() { c.keepWaiting(c.shown()) }
func (c *controls) goesOn() { c.keepWaiting(nil) }

func (c *controls) keepWaiting(s *snapshot.Control) {
	if s != nil {
		s.Person, s.StopKey = false, "" // the key goes with the frame
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pausedBy = s
}

// paused is who the person's pause holds up: nil once they have gone on, or
// stopped everything, or what it was allowed, or its session, has ended. It is
// the caller's own.
func (c *controls) paused() *snapshot.Control {
	c.mu.Lock()
	p := c.pausedBy
	c.mu.Unlock()
	if p == nil || !c.m.isPaused() {
		return nil
	}
	if _, err := c.m.sessions.get(p.Session); err != nil {
		return nil
	}
	s := *p
	return &s
}

// byPerson notes that the person's own hands are at work. At a card they answer.
func (c *controls) byPerson() {
	now, _ := c.uses()
	at := time.Now()
	c.mu.Lock()
	if c.card {
		c.mu.Unlock()
		return
	}
	begins := at.Sub(c.person) >= personFor
	c.person = at
	tell := len(now) > 0 && foremost(now).Acts && begins && at.Sub(c.told) >= personEvery
	if tell {
		c.told = at
	}
	c.mu.Unlock()
	if begins {
		c.m.changed()
	}
	if tell {
		session := foremost(now).Session
		c.m.background(func(context.Context) {
			c.tell(session, "Your own hands were at work, so it waits", "It goes on with a new picture of the screen.", snapshot.Halted)
		})
	}
}
