package machine

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/tunnel/wire"
)

// lookUpWithin is describeWithin for a connection: its name has to be looked
// up, and only the command waits for that.
const lookUpWithin = 5 * time.Second

// maxConnections of one session may be under way.
const maxConnections = 64

// Connect takes a connection that a contained command asks for through the
// seven steps; it is the capabilities.Connector. Of several to the same host
// and port by one command the first asks, and the others wait for its answer:
// when it is yes the grant of scope Command is theirs too, and when it is no
// it is the answer to all that the command tries there.
func (m *Machine) Connect(ctx context.Context, c *capabilities.Connect) error {
	if err := c.Validate(); err != nil {
		return err
	}
	for {
		d, first, err := m.connects.enter(c)
		if err != nil {
			return err
		}
		if first {
			return m.connects.first(ctx, c, d)
		}
		select {
		case <-d.decided:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case d.err != nil:
			return d.err
		case d.allowed:
			return m.connectNow(ctx, c)
		}
		// The first has gone without an answer: another one asks.
	}
}

func (m *Machine) connectNow(ctx context.Context, c *capabilities.Connect) error {
	_, _, err := m.dispatch(ctx, wire.Message{Type: capabilities.TypeConnect, Payload: c}, here{})
	return err
}

// connects are the commands that have asked for connections. Safe for
// concurrent use.
type connects struct {
	m *Machine

	mu       sync.Mutex
	commands map[string]map[string]*destination // by command, host and port; guarded by mu
}

// destination is where a command wants to go. What is in it is set before
// decided is closed.
type destination struct {
	decided chan struct{}
	allowed bool
	err     error // the answer to all others, too
}

func newConnects(m *Machine) *connects {
	return &connects{m: m, commands: map[string]map[string]*destination{}}
}

func destinationOf(c *capabilities.Connect) string {
	return strings.ToLower(strings.TrimSuffix(c.Host, ".")) + ":" + strconv.Itoa(c.Port)
}

// maxDestinations bounds what is kept of one command.
const maxDestinations = 1000

// enter finds c's destination; first says that c is the one to ask.
func (cs *connects) enter(c *capabilities.Connect) (_ *destination, first bool, err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	all := cs.commands[c.Command]
	if all == nil {
		if !cs.m.background(func(ctx context.Context) {
			select {
			case <-c.Ended:
			case <-ctx.Done():
			}
			cs.end(c.Command)
		}) {
			return nil, false, stoppedBy("This computer's program was closed.")
		}
		all = map[string]*destination{}
		cs.commands[c.Command] = all
	}
	key := destinationOf(c)
	if d := all[key]; d != nil {
		return d, false, nil
	}
	if len(all) >= maxDestinations {
		return nil, false, wire.Errorf(wire.CodeOverloaded, "This command has asked for connections to %d places already.", maxDestinations)
	}
	d := &destination{decided: make(chan struct{})}
	all[key] = d
	return d, true, nil
}

// first asks, and lets the others know.
func (cs *connects) first(ctx context.Context, c *capabilities.Connect, d *destination) error {
	told := false
	tell := func(allowed bool, err error, keep bool) {
		if told {
			return
		}
		told = true
		d.allowed, d.err = allowed, err
		if !keep {
			cs.mu.Lock()
			delete(cs.commands[c.Command], destinationOf(c))
			cs.mu.Unlock()
		}
		close(d.decided)
	}
	asking := *c
	asking.Established = func() error {
		tell(true, nil, true)
		return c.Established()
	}
	err := cs.m.connectNow(ctx, &asking)
	switch wire.CodeOf(err) {
	case wire.CodeDenied:
		tell(false, err, true)
	case wire.CodeExpired, wire.CodeUndelivered, wire.CodePaused, wire.CodePathNotFound, wire.CodeInvalid:
		// The answer to those who wait now; who comes later asks again.
		tell(false, err, false)
	default:
		tell(false, nil, false)
	}
	return err
}

// end forgets a command that has ended with all its children, and what it was
// allowed.
func (cs *connects) end(command string) {
	cs.mu.Lock()
	delete(cs.commands, command)
	cs.mu.Unlock()
	cs.m.journal.commandEnded(command)
	if err := cs.m.o.Store.EndSession(context.Background(), command); err != nil {
		cs.m.log.Error("The grants of a command could not be ended", "err", err)
	}
}

// here is the Exchange of a request that comes from this computer itself.
type here struct{}

func (here) Send(context.Context, wire.Type, wire.Payload) error { return nil }

func (here) Next(context.Context) (wire.Follow, error) {
	return nil, errors.New("machine: nothing follows a local request")
}

func (here) Begin() bool { return true }
