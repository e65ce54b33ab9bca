package e2b

import (
	"context"
	"time"

	"localpc/tunnel/wire"
)

// A computer takes only so many requests of one session at a time, and SDKs
// start a hundred commands at once. Those that it has no room for stand in
// line here, in the order in which they came, for as long as their clients
// wait.

// line is the starts of one sandbox that wait for room.
type line struct {
	turn chan struct{} // has a value when it is nobody's
	n    int           // how many stand in it; guarded by Face.mu
}

// Whoever's turn it is tries again after again; a try that has no answer after
// settled has found room, and the next one tries.
const (
	again   = 100 * time.Millisecond
	settled = 250 * time.Millisecond
)

// inLine calls try until the computer has room for it. The first try is made
// at once where nobody stands in line.
func (f *Face) inLine(ctx context.Context, c *call, try func() error) error {
	patient := f.o.Wait
	if c.timeout > 0 {
		patient = min(patient, c.timeout-5*time.Second)
	}
	until := c.arrived.Add(patient)
	err := error(wire.Errorf(wire.CodeOverloaded, "This session already has more commands under way than the computer takes; try again in a moment."))
	if !f.queued(c.sandbox.ID) {
		if err = try(); !full(err) || time.Now().After(until) {
			return err
		}
	}
	l := f.joinLine(c.sandbox.ID)
	defer f.leaveLine(c.sandbox.ID, l)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		select {
		case <-l.turn:
		case <-ctx.Done():
			return err
		}
		for held := true; held; {
			pass := time.AfterFunc(settled, func() { l.turn <- struct{}{} })
			err = try()
			held = pass.Stop()
			if full(err) && sleep(ctx, again) {
				continue
			}
			if held {
				l.turn <- struct{}{}
			}
			return err
		}
	}
}

// full tells whether the computer had no room.
func full(err error) bool { return wire.CodeOf(err) == wire.CodeOverloaded }

// sleep waits, and reports whether there is time left.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (f *Face) queued(sandbox string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[sandbox] != nil
}

func (f *Face) joinLine(sandbox string) *line {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lines[sandbox]
	if l == nil {
		l = &line{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		f.lines[sandbox] = l
	}
	l.n++
	return l
}

func (f *Face) leaveLine(sandbox string, l *line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.n--; l.n == 0 {
		delete(f.lines, sandbox)
	}
}
