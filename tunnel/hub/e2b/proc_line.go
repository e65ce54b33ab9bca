package e2b

import (
	"context"
	"time"

	"localpc/tunnel/wire"
)

// A computer takes only so many requests of one session at a time, and SDKs
// start a hundred commands at once, or write a hundred files. Those that it has
// no room for stand in line here, in the order in which they came, for as long
// as their clients wait.

// The lines of one sandbox: files don't wait behind commands.
const (
	forCommands = "commands"
	forFiles    = "files"
)

// line is the requests of one kind in one sandbox that wait for room.
type line struct {
	turn chan struct{} // has a value when it is nobody's
	n    int           // how many stand in it; guarded by Face.mu
	said error         // how the computer refused last; guarded by Face.mu
}

// Whoever's turn it is tries again after again. A try that has no answer after
// settled may have found room, and the next one tries: a command answers when it
// has started, a file when all of it is there.
const again = 100 * time.Millisecond

var settled = map[string]time.Duration{forCommands: 250 * time.Millisecond, forFiles: 20 * time.Millisecond}

// inLine calls try until the computer has room for it. The first try is made
// at once where nobody stands in line.
func (f *Face) inLine(ctx context.Context, c *call, kind string, try func() error) error {
	name := c.sandbox.ID + " " + kind
	patient := f.o.Wait
	if c.timeout > 0 {
		patient = min(patient, c.timeout-5*time.Second)
	}
	until := c.arrived.Add(patient)
	err := error(wire.Errorf(wire.CodeOverloaded, "This session already has more requests under way than the computer takes; try again in a moment."))
	if !f.queued(name) {
		if err = try(); !full(err) || time.Now().After(until) {
			return err
		}
	}
	l := f.joinLine(name)
	defer f.leaveLine(name, l)
	said := func() error { // one that never had its turn tells what the others heard
		f.mu.Lock()
		defer f.mu.Unlock()
		if l.said == nil {
			return err
		}
		return l.said
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		select {
		case <-l.turn:
		case <-ctx.Done():
			return said()
		}
		for held := true; held; {
			pass := time.AfterFunc(settled[kind], func() { l.turn <- struct{}{} })
			err = try()
			held = pass.Stop()
			if full(err) {
				f.mu.Lock()
				l.said = err
				f.mu.Unlock()
			}
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

// opened sends a request about files and waits for the first frame of its reply.
// p makes its payload, anew for each try.
func (f *Face) opened(ctx context.Context, c *call, t wire.Type, p func() wire.Payload) (s Stream, first wire.Message, err error) {
	err = f.inLine(ctx, c, forFiles, func() (err error) {
		if s, err = f.o.Backend.Do(ctx, c.sandbox, t, p()); err != nil {
			return err
		}
		if first, err = s.Recv(); err != nil {
			s.Close()
		}
		return err
	})
	return s, first, err
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

func (f *Face) queued(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[name] != nil
}

func (f *Face) joinLine(name string) *line {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lines[name]
	if l == nil {
		l = &line{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		f.lines[name] = l
	}
	l.n++
	return l
}

func (f *Face) leaveLine(name string, l *line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.n--; l.n == 0 {
		delete(f.lines, name)
	}
}
