package computer

import (
	"context"
	"time"

	"localpc/consent"
	"localpc/tunnel/wire"
)

// errCard ends an action when a card opens: what could answer it in the
// person's place holds still.
func errCard() error {
	return wire.Errorf(wire.CodePaused, "A question is open on this computer, so its screen, mouse and keyboard are not used until it is answered. Take a new picture then.")
}

// Freeze ends the action under way when a card opens, lets go of what is held
// down, and refuses others until the last card has gone. Pictures wait.
func (c *Computer) Freeze(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !on && c.frozen != nil:
		close(c.frozen)
		c.frozen = nil
	case on && c.frozen == nil:
		c.frozen = make(chan struct{})
		if c.acting != nil {
			c.acting(errCard())
		}
		c.letGo(func(s *session) bool { return s.held })
	}
}

// letGo releases keys and buttons in the background, where a session that which
// picks may hold some. Called with mu held.
func (c *Computer) letGo(which func(*session) bool) {
	any := false
	for _, s := range c.sessions {
		if which(s) {
			any, s.held = true, false
		}
	}
	if !any || c.closed {
		return
	}
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), handsWithin)
		defer cancel()
		if err := c.o.Hands.Release(ctx); err != nil {
			c.o.Log.Error("Keys and buttons could not be released", "err", err)
		}
	})
}

// thawed waits until no card is open, for as long as given.
func (c *Computer) thawed(ctx context.Context, wait time.Duration) error {
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		c.mu.Lock()
		frozen := c.frozen
		c.mu.Unlock()
		if frozen == nil {
			return nil
		}
		select {
		case <-frozen:
		case <-late.C:
			return errCard()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// touch takes the display for one request of s, which uses it as u says; done
// gives it back. Requests have their turn one after the other. An action's
// context ends when a card opens.
func (c *Computer) touch(ctx context.Context, s *session, u use, wait time.Duration) (_ context.Context, done func(), err error) {
	for {
		if err := c.thawed(ctx, wait); err != nil {
			return nil, nil, err
		}
		if u.blind {
			if err := c.alone(ctx); err != nil {
				return nil, nil, err
			}
		}
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		if ctx.Err() != nil { // ended before it began
			<-c.turn
			return nil, nil, context.Cause(ctx)
		}
		if u.blind && c.opened() > 0 { // one was opened while it waited for its turn
			<-c.turn
			continue
		}
		ctx, cancel := context.WithCancelCause(ctx)
		c.mu.Lock()
		if c.frozen != nil { // a card has opened while it waited for its turn
			c.mu.Unlock()
			cancel(nil)
			<-c.turn
			continue
		}
		if u.acts {
			c.acting = cancel
		}
		was, failed := *s, false
		s.begins(u, time.Now())
		c.mu.Unlock()
		done = func() {
			c.mu.Lock()
			if u.acts {
				c.acting = nil
			}
			s.ends(u, time.Now())
			if failed && s.used.On() { // it never came to the display
				s.used, s.allowed = was.used, was.allowed
			}
			c.mu.Unlock()
			cancel(nil)
			<-c.turn
		}
		if err := c.begin(ctx); err != nil {
			failed = true
			done()
			return nil, nil, err
		}
		if u.blind {
			c.wg.Go(func() { c.guard(ctx, cancel) })
		}
		return ctx, done, nil
	}
}

// Where a display does not tell which windows there are, one of this program's
// that can change something, a card too, must not be open while a picture is
// taken or mouse and keyboard are used; elsewhere the hands see to it.

func errOpen() error {
	return wire.Errorf(wire.CodeOwnWindow, "A window of Local PC Executor is open, and this desktop does not tell where it is. It has to be closed first.")
}

// errOpened is that of what was under way then.
func errOpened() error {
	return wire.Errorf(wire.CodeOwnWindow, "A window of Local PC Executor was opened meanwhile, and this desktop does not tell where it is, so this was broken off. Take a new picture when it is closed.")
}

// opened is how many of them are open.
func (c *Computer) opened() int {
	c.mu.Lock()
	open := c.host.Open
	c.mu.Unlock()
	if open == nil {
		return 0
	}
	return open()
}

// asked tells whether a card is open, which requests wait for.
func (c *Computer) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen != nil
}

const (
	// lookOut is how often it is looked whether one is open.
	lookOut = 20 * time.Millisecond
	// leaveIn is how long one may take to leave: a card that was just answered.
	leaveIn = 2 * time.Second
)

// alone waits until none is open.
func (c *Computer) alone(ctx context.Context) error {
	for end := time.Now().Add(leaveIn); c.opened() > 0 && !c.asked(); { // a card is waited for by thawed
		if time.Now().After(end) {
			return errOpen()
		}
		select {
		case <-time.After(lookOut):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// guard ends what is under way when one is opened.
func (c *Computer) guard(ctx context.Context, end context.CancelCauseFunc) {
	for {
		if c.opened() > 0 {
			end(errOpened())
		}
		select {
		case <-time.After(lookOut):
		case <-ctx.Done():
			return
		}
	}
}

// waitOf is how long a picture waits for a card.
func waitOf(ms int) time.Duration {
	if ms == 0 {
		return defaultWait
	}
	return time.Duration(ms) * time.Millisecond
}

// useOf is how a granted request uses the display: for longer than itself where
// the grant is for longer.
func useOf(g consent.Grant, acts bool) use {
	return use{sees: !acts, acts: acts, once: g.Choice().Scope == consent.Once && g.By() != "policy"}
}
