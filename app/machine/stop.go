package machine

import (
	"context"
	"sync"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

// byPause is the Decision.By of a request refused since the person paused.
const byPause = "pause"

// pausable is the policy with what Settings has switched off now, and before
// it: pause.
type pausable struct {
	m *Machine
	policy.Policy
}

func (p pausable) Decide(r consent.Request, remembered []consent.Stored, now time.Time) consent.Verdict {
	if v, ok := byYou(r); ok {
		return v
	}
	if opens(r) {
		remembered = p.m.sessions.usable(remembered)
	}
	pol := p.Policy
	pol.Switches = p.m.switches()
	v := pol.Decide(r, remembered, now)
	// What only ends something goes on in a pause; new folder bindings do not.
	if begins := r.Capability == capFolders && r.Action != "detach"; p.m.isPaused() && (v.By != "session" || begins) {
		return consent.Verdict{Outcome: consent.Denied, By: byPause, Reason: "The person paused this computer; nothing new is run until they resume."}
	}
	return v
}

// switches are what may be asked for at this moment. They are held against a
// request twice: before it is asked, so that its card offers nothing that is
// off, and in the policy.
func (m *Machine) switches() policy.Switches {
	c := m.o.Settings.Get().Capabilities
	return policy.Switches{Files: c.Files, Shell: c.Shell, Network: c.Network, Computer: c.Computer}
}

func (m *Machine) isPaused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paused
}

func (m *Machine) pause(ctx context.Context) error {
	if err := m.o.Record.Happened(ctx, "pause", ""); err != nil {
		m.log.Error("Pause could not be recorded", "err", err)
	}
	m.mu.Lock()
	m.paused = true
	m.mu.Unlock()
	m.controls.halt() // at once, what is under way too
	m.changed()
	return nil
}

// resume refuses when it can't be recorded: what follows would not be either.
func (m *Machine) resume(ctx context.Context) error {
	if err := m.o.Record.Happened(ctx, "resume", ""); err != nil {
		return err
	}
	m.mu.Lock()
	m.paused, m.stopped = false, nil
	m.mu.Unlock()
	m.controls.goesOn()
	m.changed()
	return nil
}

// stopEverything ends all requests and all processes, keeps the sessions, and
// pauses. It returns when that is true, or with what could not be ended.
func (m *Machine) stopEverything(ctx context.Context) error {
	m.controls.goesOn()
	_ = m.pause(ctx) // first, so that nothing new begins
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	commands := 0
	sessions := m.sessions.list()
	for _, s := range sessions {
		commands += m.runningIn(s.ID)
	}
	ended := m.flights.stop("", stoppedBy("The person at this computer stopped everything."))
	var failed error
	m.controls.revoke(ctx, "")
	for _, s := range sessions {
		for _, c := range m.o.Executors {
			if err := c.EndSession(ctx, s.ID); err != nil && failed == nil {
				failed = err
			}
		}
	}
	if err := m.flights.wait(ctx, ended); err != nil && failed == nil {
		failed = err
	}
	if err := m.o.Record.Happened(context.WithoutCancel(ctx), "stop everything", ""); err != nil {
		m.log.Error("Stop could not be recorded", "err", err)
	}
	if failed != nil {
		m.log.Error("Not everything could be stopped", "err", failed)
		return wire.Wrap(failed, wire.CodeInternal, "Not everything could be stopped; the log says what still runs. Quit ends the program and everything it started.")
	}
	m.mu.Lock()
	m.stopped = &snapshot.Stopped{Commands: commands, Sessions: len(sessions), At: time.Now()}
	m.mu.Unlock()
	m.changed()
	return nil
}

// runningIn counts what goes on in a session: requests, and what they left.
func (m *Machine) runningIn(session string) int {
	return max(0, m.flights.in(session)-m.journal.askingIn(session)) + m.leftIn(session)
}

// leftIn counts the processes that ended requests of a session left behind.
func (m *Machine) leftIn(session string) int {
	n := 0
	for _, c := range m.o.Executors {
		n += c.Running(session)
	}
	return n
}

func stoppedBy(sentence string) error { return wire.Errorf(wire.CodeStopped, "%s", sentence) }

// flights are the requests under way. Safe for concurrent use.
type flights struct {
	mu  sync.Mutex
	all map[string]*flight // guarded by mu; by request id
}

type flight struct {
	session string
	entry   string // in the log; guarded by flights.mu
	kind    flightKind
	asked   *consent.Request // see asks; guarded by flights.mu
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

// flightKind is what a request counts as.
type flightKind int

const (
	flightRequest    flightKind = iota
	flightConnection            // of a command, which is counted itself
	flightWatch                 // does nothing but wait
	flightCommand               // goes on as long as its process
)

func newFlights() *flights { return &flights{all: map[string]*flight{}} }

// begin makes a request's context. end must be called once.
func (f *flights) begin(ctx context.Context, id, session string, kind flightKind) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	fl := &flight{session: session, entry: id, kind: kind, cancel: cancel, done: make(chan struct{})}
	f.mu.Lock()
	f.all[id] = fl
	f.mu.Unlock()
	return ctx, func() {
		f.mu.Lock()
		delete(f.all, id)
		f.mu.Unlock()
		cancel(nil)
		close(fl.done)
	}
}

// stop cancels the requests of a session ("" for all of them) but the ones
// named, and returns them for wait.
func (f *flights) stop(session string, cause error, except ...string) []*flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*flight
next:
	for id, fl := range f.all {
		if session != "" && fl.session != session {
			continue
		}
		for _, e := range except {
			if id == e {
				continue next
			}
		}
		fl.cancel(cause)
		out = append(out, fl)
	}
	return out
}

// one cancels what an entry of the log stands for; false when nothing of it is
// under way.
func (f *flights) one(entry string, cause error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := false
	for _, fl := range f.all {
		if fl.entry == entry {
			fl.cancel(cause)
			found = true
		}
	}
	return found
}

// shownAs says that a request has joined another's entry in the log.
func (f *flights) shownAs(id, entry string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.all[id]; fl != nil {
		fl.entry = entry
	}
}

// count counts those of a kind in a session, "" for all.
func (f *flights) count(session string, kind flightKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, fl := range f.all {
		if fl.kind == kind && (session == "" || fl.session == session) {
			n++
		}
	}
	return n
}

func (f *flights) wait(ctx context.Context, all []*flight) error {
	for _, fl := range all {
		select {
		case <-fl.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// in counts the requests of a session, "" for all, but neither connections nor
// watches.
func (f *flights) in(session string) int {
	return f.count(session, flightRequest) + f.count(session, flightCommand)
}
