package computer

import (
	"context"
	"time"

	"localpc/tunnel/wire"
)

// ended replaces err where ctx ended from outside.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// enter counts a run in, so that the end of its session ends it.
func (c *Computer) enter(ctx context.Context, id string) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, wire.Errorf(wire.CodeStopped, "This computer's program is being closed.")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := &run{cancel}
	if c.runs[id] == nil {
		c.runs[id] = map[*run]struct{}{}
	}
	c.runs[id][r] = struct{}{}
	c.wg.Add(1)
	return ctx, func() {
		c.mu.Lock()
		delete(c.runs[id], r)
		if len(c.runs[id]) == 0 {
			delete(c.runs, id)
		}
		c.mu.Unlock()
		cancel(nil)
		c.wg.Done()
	}, nil
}

// Running is 0: nothing goes on beyond a request, and programs that a person
// can see are theirs.
func (*Computer) Running(string) int { return 0 }

func errStopped() error {
	return wire.Errorf(wire.CodeStopped, "It was stopped on this computer, or its session ended.")
}

// EndSession ends the session's requests, waits for them, and lets go of what
// it holds down. What the session was allowed is forgotten.
func (c *Computer) EndSession(ctx context.Context, id string) error {
	c.mu.Lock()
	for r := range c.runs[id] {
		r.cancel(errStopped())
	}
	s := c.sessions[id]
	c.mu.Unlock()
	for {
		c.mu.Lock()
		left := len(c.runs[id])
		if left == 0 {
			delete(c.sessions, id)
		}
		c.mu.Unlock()
		if left == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return wire.Wrap(ctx.Err(), wire.CodeInternal, "Something at the screen, mouse or keyboard could not be ended in time.")
		case <-time.After(time.Millisecond):
		}
	}
	if s == nil || !s.acted() {
		return nil
	}
	if err := c.o.Hands.Release(ctx); err != nil {
		return wire.Wrap(err, wire.CodeInternal, "Keys and buttons could not be released.")
	}
	return nil
}

// Close ends every request, waits for them, and lets go of what is held down.
func (c *Computer) Close() error {
	c.mu.Lock()
	if !c.closed {
		close(c.quit)
	}
	c.closed = true
	acted := false
	for _, runs := range c.runs {
		for r := range runs {
			r.cancel(errStopped())
		}
	}
	for _, s := range c.sessions {
		acted = acted || s.actedLocked()
	}
	c.mu.Unlock()
	c.wg.Wait()
	c.reap()
	if !acted {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), handsWithin)
	defer cancel()
	return c.o.Hands.Release(ctx)
}
