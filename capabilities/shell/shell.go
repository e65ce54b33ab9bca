// Package shell is steps 3 and 5 for commands: it says what a command would
// run, and runs it, contained in bubblewrap or with the person's own rights,
// always below a localpc-spawn that ends its whole process tree.
package shell

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Options build a Shell. Spawn is needed.
type Options struct {
	// Spawn is the path of localpc-spawn.
	Spawn string
	// Bwrap is the path of bubblewrap; "" looks it up.
	Bwrap string
	// Home is the person's home, where toolchains are looked for; "" asks the
	// system.
	Home string
	// LoginPath is the PATH of the person's log-in; "" asks their shell once.
	LoginPath string
	// Stall is how long a full output buffer holds a command up while its
	// reader takes nothing; then output is left out. 0 means 5 s.
	Stall time.Duration
	// Drain is how long output is awaited after a command has ended while its
	// children hold it. 0 means 2 s.
	Drain time.Duration
	// Connect takes each connection that a contained command asks for through
	// the seven steps; nil: there is no network in a container.
	Connect capabilities.Connector
	// Keep holds the folder before a command that may change it; nil: what a
	// command changes can't be undone.
	Keep capabilities.Keep
	Log  *slog.Logger // nil: slog.Default
}

// Shell is the executor of commands. It is safe for concurrent use.
//
// When the context of a Run ends, so does the command with all its children.
// Otherwise children that a command leaves behind live until EndSession, Close
// or a signal from their session.
type Shell struct {
	o     Options
	login *login

	probed    chan struct{} // closed when noContain is known
	noContain string        // why commands cannot be contained, or ""
	extra     []string      // arguments that this bubblewrap takes; known when noContain is
	keeps     bool          // a container can be entered once for many commands; known when noContain is

	mu        sync.Mutex
	closed    bool                        // guarded by mu
	processes map[string]map[int]*process // guarded by mu; by session and pid
	frozen    bool                        // guarded by mu; what Freeze wants
	asleep    map[string]struct{}         // guarded by mu; sessions that PauseSession wants to stand still
	holding   sync.Mutex                  // one at a time brings both about
	large     map[string]struct{}         // guarded by mu; sessions whose folder is too large to list
	rooms     map[string]*room            // guarded by mu; by session: bounds of its connections
	boxing    sync.Mutex
	boxes     map[string]*box // guarded by boxing; by session
	wg        sync.WaitGroup  // the probe and the log-in's PATH
	stop      context.CancelFunc
	life      context.Context
}

var _ capabilities.Capability = (*Shell)(nil)

// New makes a Shell, which asks for the log-in's PATH and tries a container in
// the background.
func New(o Options) (*Shell, error) {
	if o.Spawn == "" {
		return nil, errors.New("shell: the path of localpc-spawn is needed")
	}
	if o.Bwrap == "" {
		o.Bwrap, _ = exec.LookPath("bwrap")
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir()
	}
	if o.Stall == 0 {
		o.Stall = 5 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Shell{o: o, probed: make(chan struct{}), processes: map[string]map[int]*process{}, large: map[string]struct{}{}, asleep: map[string]struct{}{}, rooms: map[string]*room{}, boxes: map[string]*box{}}
	s.life, s.stop = context.WithCancel(context.Background())
	s.login = askLogin(s.life, &s.wg, o.LoginPath)
	s.wg.Add(1)
	go s.try()
	return s, nil
}

func (*Shell) Name() string { return "shell" }

func (*Shell) Types() []wire.Type {
	return []wire.Type{wire.TypeProcessStart, wire.TypeProcessSignal}
}

// Probe says whether commands can be contained, as a trial at the start found
// out: it returns "" or one sentence that says why not and what helps.
func (s *Shell) Probe(ctx context.Context) string {
	why, err := s.probe(ctx)
	if err != nil {
		return err.Error()
	}
	return why
}

// probe is Probe; its error means that the trial has not ended yet.
func (s *Shell) probe(ctx context.Context) (string, error) {
	select {
	case <-s.probed:
		return s.noContain, nil
	default:
	}
	select {
	case <-s.probed:
		return s.noContain, nil
	case <-ctx.Done():
		return "", wire.Errorf(wire.CodeUnconfined, "This computer is still finding out whether commands can be contained. Try again in a moment.")
	}
}

func (s *Shell) try() {
	defer s.wg.Done()
	ctx, cancel := context.WithTimeout(s.life, 10*time.Second)
	defer cancel()
	s.noContain = s.tryContainer(ctx)
	if s.noContain != "" && s.life.Err() == nil {
		s.o.Log.Warn("Commands cannot be contained", "reason", s.noContain)
	}
	close(s.probed)
}

func (s *Shell) Describe(ctx context.Context, c capabilities.Call) (capabilities.Description, error) {
	switch p := c.Payload.(type) {
	case *wire.ProcessStart:
		pl, err := s.plan(ctx, c.Session, p)
		if err != nil {
			return capabilities.Description{}, err
		}
		return pl.describe(p), nil
	case *wire.ProcessSignal:
		if _, err := s.find(c.Session.ID, p.PID); err != nil {
			return capabilities.Description{}, err
		}
		return describeSignal(p), nil
	}
	return capabilities.Description{}, wire.Errorf(wire.CodeNotSupported, "The shell does not take %s.", c.Type)
}

func (s *Shell) Run(ctx context.Context, c capabilities.Call, g consent.Grant, out capabilities.Output) (capabilities.Result, error) {
	switch p := c.Payload.(type) {
	case *wire.ProcessStart:
		return s.runCommand(ctx, c, g, out)
	case *wire.ProcessSignal:
		return s.runSignal(ctx, c.Session, p, g)
	}
	return capabilities.Result{}, wire.Errorf(wire.CodeNotSupported, "The shell does not take %s.", c.Type)
}

// signalled is what decides a signal: the digest's payload.
type signalled struct {
	PID    int    `json:"pid"`
	Signal string `json:"signal"`
}

func describeSignal(p *wire.ProcessSignal) capabilities.Description {
	return capabilities.Description{
		Action: "signal", Title: "Stop a process that the session started",
		Sentence: "%s wants to stop a process that its session started.",
		Exact:    "kill -" + p.Signal[len("SIG"):] + " " + itoa(p.PID),
		Effects:  []consent.Effect{{Kind: consent.EffectOwn, Text: "stops a process of its own session", Own: true}},
		Risk:     consent.RiskLow, Payload: signalled{p.PID, p.Signal},
	}
}

func (s *Shell) runSignal(ctx context.Context, sess *capabilities.Session, p *wire.ProcessSignal, g consent.Grant) (capabilities.Result, error) {
	if err := g.Check(consent.DigestOf(signalled{p.PID, p.Signal}), ""); err != nil {
		return capabilities.Result{}, err
	}
	proc, err := s.find(sess.ID, p.PID)
	if err != nil {
		return capabilities.Result{}, err
	}
	if p.Signal == "SIGTERM" {
		s.askToEnd(proc)
	} else if err := proc.end(ctx); err != nil {
		return capabilities.Result{}, err
	}
	return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "sent " + p.Signal}, nil
}

func (s *Shell) find(session string, pid int) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[session][pid]; p != nil {
		return p, nil
	}
	return nil, wire.Errorf(wire.CodePathNotFound, "This session has no process %d any more.", pid)
}

// add makes a started process known until it has gone.
func (s *Shell) add(p *process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return wire.Errorf(wire.CodeStopped, "This computer is shutting down.")
	}
	if s.processes[p.session] == nil {
		s.processes[p.session] = map[int]*process{}
	}
	s.processes[p.session][p.pid] = p
	if s.holds(p) {
		s.wg.Go(s.applyHold)
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		<-p.gone
		s.mu.Lock()
		delete(s.processes[p.session], p.pid)
		if len(s.processes[p.session]) == 0 {
			delete(s.processes, p.session)
		}
		s.mu.Unlock()
		s.leaveBox(p)
		p.closeProxy()
		p.closeOutput()
	}()
	return nil
}

// leaveBox says that nothing of p is left in its container.
func (s *Shell) leaveBox(p *process) {
	if p.box != nil {
		s.leave(p.session, p.box)
	}
}

// Running counts the processes that ended commands of the session left behind.
func (s *Shell) Running(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.processes[session] {
		n += p.left()
	}
	return n
}

// EndSession ends every process of the session and waits for it.
func (s *Shell) EndSession(ctx context.Context, session string) error {
	s.mu.Lock()
	var all []*process
	for _, p := range s.processes[session] {
		all = append(all, p)
	}
	delete(s.large, session)
	delete(s.rooms, session)
	delete(s.asleep, session)
	s.mu.Unlock()
	return errors.Join(endAll(ctx, all), s.closeBox(ctx, session))
}

// Close ends every process and waits for it, ten seconds at most.
func (s *Shell) Close() error {
	s.mu.Lock()
	s.closed = true
	var all []*process
	for _, ps := range s.processes {
		for _, p := range ps {
			all = append(all, p)
		}
	}
	s.mu.Unlock()
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := errors.Join(endAll(ctx, all), s.closeBox(ctx, "")); err != nil {
		return err
	}
	s.wg.Wait()
	return nil
}

func endAll(ctx context.Context, all []*process) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		p.markStopped()
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = p.end(ctx)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}
