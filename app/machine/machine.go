// Package machine is the machine end put together. dispatch.go takes every
// request through the seven steps; the other files are what it stands on: the
// sessions, the queue of questions, the journal that windows draw, pause and
// stop, and the link to the hub.
package machine

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/setup"
	"localpc/app/snapshot"
	"localpc/app/store"
	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/consent/record"
)

// EmbeddedHub is the hub inside this program, as main provides it.
type EmbeddedHub interface {
	// Start begins to listen, or does nothing when it listens already. It
	// returns the address that clients use: "http://127.0.0.1:4417".
	Start(ctx context.Context) (address string, err error)
	// Stop ends listening and waits for it.
	Stop()
	// MachineToken mints a token for this machine; earlier ones end.
	MachineToken(ctx context.Context, machineID, name string) (string, error)
	// PassingToken mints one for memory; the one in the keychain stays good.
	PassingToken(ctx context.Context, machineID, name string) (string, error)
	RevokeMachine(ctx context.Context, machineID string) error
	// MakeKey makes a key for a program; it is returned once.
	MakeKey(ctx context.Context, name string) (string, error)
	// Keys are the keys of programs that were not revoked.
	Keys(ctx context.Context) ([]Key, error)
	// RevokeKey ends one, and what was opened with it.
	RevokeKey(ctx context.Context, id string) error
	// Practice plays the built-in sample against this machine.
	Practice(ctx context.Context, machineID string) error
}

// Hooks are what the machine wants done outside itself. Nil ones are skipped.
// They are called on the machine's goroutines and return at once.
type Hooks struct {
	Publish    func(snapshot.Snapshot)
	ShowWindow func(window string)
	RaiseCard  func()
	// Notify says that somebody is needed; "" takes the notification away.
	Notify func(title, body string)
	Quit   func()
	// Own are the processes whose windows are this program's: black in every
	// picture, and out of reach. Machine.Changed tells that they changed.
	Own func() []int
	// Open is how many windows are open that can change something.
	Open func() int
	// Remove ends the program, and takes it off the computer then; keep leaves
	// the record and what belongs to it.
	Remove func(keep bool)
}

// Options build a Machine. All but Keychain, Unkept, Hands, Kept, Hub, Folder, Warnings,
// Autostart, Clients, SelfTest and Hooks are needed.
type Options struct {
	Paths    settings.Paths
	Settings *settings.Store
	Store    *store.Store
	Record   *record.Log
	// RecordKey is the key that the record's newest epoch must have; nil when
	// it could not be kept.
	RecordKey ed25519.PublicKey
	// Keychain is where secrets are kept; nil means the system's keychain.
	Keychain Keychain
	// Unkept says why it can't be used; nil when it can.
	Unkept    error
	Executors []capabilities.Capability
	// Display tells what AutoGPT's platform is to be told of the display. It
	// answers at once, and the same for as long as this program runs: a person's
	// consent there is tied to it. nil: this machine has none to offer.
	Display func() Display
	// Hands touches the display, for the Executors' Computer; nil: there is none.
	Hands hands.Hands
	// Kept holds old versions; nil: nothing can be undone.
	Kept   Kept
	Policy policy.Policy
	Hub    EmbeddedHub
	// Folder is offered first on session cards; "" means the settings'.
	Folder string
	// ContainProblem says why nothing can run contained here; "" when it can.
	ContainProblem string
	// Warnings are said loudly in every window until they are dismissed;
	// Standing can't be.
	Warnings, Standing []string

	// Autostart is nil where the system can't be made to start this program.
	Autostart Autostart
	// Clients are the programs on this computer that can be connected; nil where
	// none can.
	Clients *setup.Clients
	// SelfTest looks at what works on this computer, until ctx ends at most.
	SelfTest func(ctx context.Context) []snapshot.Check

	Version string
	Hooks   Hooks
	Log     *slog.Logger
}

// Machine is the running machine end. Make it with New, run it with Run.
type Machine struct {
	o        Options
	log      *slog.Logger
	registry *capabilities.Registry
	gate     *consent.Gate
	asks     *Asks
	denied   *denials
	rates    *rates
	sessions *sessions
	journal  *journal
	flights  *flights
	chats    *chats
	connects *connects
	undos    undos
	keys     *programKeys
	clients  *clients
	link     *link
	lists    *lists
	metrics  *metrics
	controls *controls
	pub      *publisher

	mu       sync.Mutex
	paused   bool              // guarded by mu
	stopped  *snapshot.Stopped // guarded by mu
	connect  snapshot.Connect  // guarded by mu
	checked  snapshot.Record   // guarded by mu
	warnings []string          // guarded by mu
	quiet    []string          // guarded by mu: warnings that were dismissed
	window   string            // guarded by mu: the one shown last
	starts   starts            // guarded by mu
	checks   []snapshot.Check  // guarded by mu: of the last self-test
	checking bool              // guarded by mu: one is under way
	closing  bool              // guarded by mu: nothing new begins in the background

	// freeDisk tells how much is free where a folder is; nil asks the system.
	freeDisk func(folder string) (free, total int64, known bool)

	ctx    context.Context // background work hangs on it; ends last
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New puts a machine together.
func New(o Options) (*Machine, error) {
	if o.Settings == nil || o.Store == nil || o.Record == nil {
		return nil, errors.New("machine: settings, store and record are needed")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Keychain == nil {
		o.Keychain = login.Keychain{Machine: o.Settings.Get().MachineID}
	}
	if o.Unkept != nil {
		o.Warnings = append([]string{inMemory(o.Unkept)}, o.Warnings...)
	}
	m := &Machine{o: o, log: o.Log, flights: newFlights(), warnings: append([]string(nil), o.Warnings...)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.pub = newPublisher(m)
	m.denied, m.rates = newDenials(time.Now), newRates(m)
	m.asks = &Asks{now: time.Now, changed: m.changed, info: m.cardInfo, notify: m.notify, denied: m.denied, ruled: m.ruled,
		first: func(ctx context.Context, r consent.Request) { m.controls.firstLook(ctx, r) }}
	m.journal = newJournal(m)
	m.sessions = newSessions(m)
	m.link = &link{m: m}
	m.lists = &lists{m: m}
	m.metrics = &metrics{m: m}
	m.chats = newChats(m)
	m.connects = newConnects(m)
	m.undos = undos{m}
	m.keys = &programKeys{m: m}
	m.clients = &clients{m: m}
	m.controls = newControls(m)
	m.registry = capabilities.NewRegistry(append([]capabilities.Capability{m.sessions, m.chats, m.undos}, o.Executors...)...)
	m.gate = consent.New(consent.Options{Decider: pausable{m, o.Policy}, Prompter: m.asks, Recorder: ending{clipped{m}, m}, Book: book{o.Store, m.asks}, Log: o.Log})
	return m, nil
}

// Run does everything until ctx ends, and then puts everything away: the
// tunnel, the sessions with their processes, the executors. It clears what an
// earlier run left behind first.
func (m *Machine) Run(ctx context.Context) error {
	if err := m.clear(ctx); err != nil {
		return err
	}
	if err := m.journal.load(ctx); err != nil {
		return err
	}
	if err := m.o.Record.Happened(ctx, "start", m.o.Version); err != nil {
		return err
	}
	m.background(m.pub.run)
	m.background(m.verify)
	m.background(m.expire)
	m.background(m.controls.run)
	m.lookAtAutostart()
	m.link.ops.Lock()
	if m.link.state().id == "" { // else it was paired meanwhile, and has begun
		m.link.begin(m.o.Settings.Get().Hub)
	}
	m.link.ops.Unlock()
	m.changed()

	<-ctx.Done()
	m.close()
	return nil
}

// close ends what Run began, in the order that lets each say its last word.
func (m *Machine) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	m.within(ctx, "pairing", m.link.now.stop)
	m.flights.stop("", stoppedBy("This computer's program was closed."))
	m.within(ctx, "sessions", func() { m.sessions.endAll(ctx, "This computer's program was closed.") })
	m.within(ctx, "link", m.link.end)
	m.rates.close()
	for _, c := range m.o.Executors {
		m.within(ctx, c.Name(), func() {
			if err := c.Close(); err != nil {
				m.log.Error("Executor did not close", "capability", c.Name(), "err", err)
			}
		})
	}
	if err := m.o.Record.Happened(ctx, "quit", ""); err != nil {
		m.log.Error("The end could not be recorded", "err", err)
	}
	m.mu.Lock()
	m.closing = true
	m.mu.Unlock()
	m.cancel()
	m.within(ctx, "background", m.wg.Wait)
}

// within waits for fn, but not beyond ctx: a part that hangs must not keep the
// program from ending, and with it everything that it started.
func (m *Machine) within(ctx context.Context, part string, fn func()) {
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-ctx.Done():
		m.log.Error("A part did not end in time", "part", part)
	}
}

// clear removes what sessions of an earlier run left: grants that held for
// them, their own directories, and uploads that were never asked about.
func (m *Machine) clear(ctx context.Context) error {
	if err := m.o.Store.EndSession(ctx, ""); err != nil {
		return err
	}
	for _, dir := range []string{m.o.Paths.Sessions(), m.o.Paths.Spool()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				m.log.Warn("A leftover could not be removed", "err", err)
			}
		}
	}
	if err := m.o.Store.Prune(time.Now()); err != nil {
		m.log.Warn("Old outputs could not be removed", "err", err)
	}
	return nil
}

// expire drops grants that have ended or were not used for long, at the start
// and then each day. They hold no more in between either.
func (m *Machine) expire(ctx context.Context) {
	for {
		if n, err := m.o.Store.Expire(ctx, time.Now()); err != nil && ctx.Err() == nil {
			m.log.Error("Old permissions could not be removed", "err", err)
		} else if n > 0 {
			m.log.Info("Old permissions were removed", "count", n)
			m.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(24 * time.Hour):
		}
	}
}

// verify walks the record once, beside everything else.
func (m *Machine) verify(ctx context.Context) {
	report, err := record.Verify(ctx, m.o.Store, m.o.RecordKey)
	r := snapshot.Record{OK: report.OK, Since: report.Since, Problem: report.Problem}
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		m.log.Error("The record could not be read", "err", err)
		r = snapshot.Record{Problem: "The record could not be read."}
	}
	m.mu.Lock()
	m.checked = r
	m.mu.Unlock()
	if !r.OK {
		m.log.Error("The record does not verify", "reason", r.Problem)
	}
	m.changed()
}

// Asks is the queue of questions, for the surfaces that show them.
func (m *Machine) Asks() *Asks { return m.asks }

// background runs fn until it returns; close waits for it. Once the machine
// closes it does nothing and reports false.
func (m *Machine) background(fn func(ctx context.Context)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return false
	}
	m.wg.Add(1)
	go func() { defer m.wg.Done(); fn(m.ctx) }()
	return true
}

func (m *Machine) changed() {
	m.pub.kick()
	m.controls.kick()
}

// Changed has a new snapshot made, after something that a part of the program
// outside of the machine has done.
func (m *Machine) Changed() { m.changed() }

func (m *Machine) notify(r *consent.Request) {
	for _, c := range m.o.Executors {
		if f, ok := c.(capabilities.Freezer); ok {
			f.Freeze(r != nil)
		}
	}
	m.controls.looks(r)
	if m.o.Hooks.Notify == nil {
		return
	}
	if r == nil {
		m.o.Hooks.Notify("", "")
		return
	}
	m.o.Hooks.Notify(consent.Visible(r.Principal.Name, false)+" is asking", "Open the card to answer. Nothing runs until you do.")
}
