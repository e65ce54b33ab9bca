// Package computer is steps 3 and 5 for the screen, mouse and keyboard, windows
// and the clipboard: it says what a request would see or do, and has it done by
// a hands.Hands. It knows which screens each session was allowed to see, and
// which pictures it was sent: what is aimed at one of them is mapped to device
// pixels here (space), and refused where the screens are not those any more.
package computer

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"os"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// The actions of this capability, as rules and policy files name them.
const (
	actSee    = "see"    // pictures, and lists of windows and programs
	actAct    = "act"    // mouse and keyboard, focus
	actLaunch = "launch" // starts a program
	actRead   = "clipboard-read"
	actWrite  = "clipboard-write"
	actCheck  = "check" // whether the system lets it
	actWait   = "wait"
)

// Options build a Computer. Hands is needed; whoever made it closes it, after
// the Computer.
type Options struct {
	Hands hands.Hands
	// Environ is the person's own environment, for programs that are started;
	// nil: this process's.
	Environ func() []string
	// Idle is after which time a session that does not use what it was allowed
	// has it no more; 0: 10 minutes.
	Idle time.Duration
	Log  *slog.Logger // nil: slog.Default

	settle time.Duration // after a card's answer, before an action; 0: settleFor
	thaw   time.Duration // how long an action waits for a card to close; 0: thawWithin
}

const (
	// settleFor lets the hand that has just allowed an action come to rest.
	settleFor = 500 * time.Millisecond
	// thawWithin is for a card that closes at this moment: its answer arrives a
	// little before it has gone.
	thawWithin = time.Second
	// handsWithin bounds what is looked up at the display for one request; the
	// process that has it may have to be started first.
	handsWithin = 8 * time.Second
	// defaultWait is how long a picture waits for a card where its client names
	// no time.
	defaultWait = 50 * time.Second
)

// Computer is the executor. Make it with New, and Bind it before its first
// request. It is safe for concurrent use. The end of a Run's context, of its
// session, or of the Computer leaves no key and no button held.
type Computer struct {
	o    Options
	turn chan struct{} // holds one value while a request touches the display

	mu       sync.Mutex
	host     hands.Host                   // guarded by mu
	closed   bool                         // guarded by mu
	frozen   chan struct{}                // guarded by mu: closed when the last card has gone; nil: none is open
	acting   context.CancelCauseFunc      // guarded by mu: ends the action under way; nil: none
	sessions map[string]*session          // guarded by mu
	runs     map[string]map[*run]struct{} // guarded by mu: by session
	children []int                        // guarded by mu: programs that were started and not yet reaped
	reaping  bool                         // guarded by mu: a goroutine reaps them
	quit     chan struct{}                // closed by Close
	wg       sync.WaitGroup
}

type run struct{ cancel context.CancelCauseFunc }

var (
	_ capabilities.Capability = (*Computer)(nil)
	_ capabilities.Freezer    = (*Computer)(nil)
)

// New makes a Computer.
func New(o Options) *Computer {
	if o.Environ == nil {
		o.Environ = os.Environ
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Idle == 0 {
		o.Idle = idleAfter
	}
	if o.settle == 0 {
		o.settle = settleFor
	}
	if o.thaw == 0 {
		o.thaw = thawWithin
	}
	return &Computer{o: o, turn: make(chan struct{}, 1), quit: make(chan struct{}), sessions: map[string]*session{}, runs: map[string]map[*run]struct{}{}}
}

// Bind says what the machine has set, and what it does before the display is
// touched.
func (c *Computer) Bind(h hands.Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host = h
}

func (c *Computer) terms() hands.Terms {
	c.mu.Lock()
	h := c.host
	c.mu.Unlock()
	if h.Terms == nil {
		return hands.Terms{Clipboard: hands.ClipOwn, Hide: hands.Curtain{Words: hands.Usual}}
	}
	return h.Terms()
}

// Person says that the person's own hands are at work: what is held down is let
// go.
func (c *Computer) Person() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.letGo(func(s *session) bool { return s.held })
}

// begin has the machine make ready for the display being touched.
func (c *Computer) begin(ctx context.Context) error {
	c.mu.Lock()
	h := c.host
	c.mu.Unlock()
	if h.Begin == nil {
		return nil
	}
	return h.Begin(ctx)
}

func (*Computer) Name() string { return consent.CapabilityComputer }

func (*Computer) Types() []wire.Type {
	return []wire.Type{wire.TypeScreenshot, wire.TypeInput, wire.TypeCursor, wire.TypeDisplays, wire.TypeWindows, wire.TypeWindowFocus,
		wire.TypeApps, wire.TypeAppLaunch, wire.TypeClipRead, wire.TypeClipWrite, wire.TypePermissions}
}

// job is a request that was looked at.
type job struct {
	d capabilities.Description
	// run does it; what it is granted with has been checked.
	run func(ctx context.Context, g consent.Grant) (capabilities.Result, error)
	// marks are the device pixels that an action goes to, for its card; fleeting:
	// where it goes now may change while the card is open.
	marks    []image.Point
	fleeting bool
	keyboard *space.Window // that it goes to, where its card says so
	aim      []hands.Aim   // what lies there, where only its card shows that
	blind    bool          // of use
}

// Describe looks at the screens; nothing is changed, and nobody is asked about
// what can't be done here.
func (c *Computer) Describe(ctx context.Context, call capabilities.Call) (capabilities.Description, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	s := c.session(call.Session.ID)
	s.hides(call.Payload) // of a card before
	j, err := c.plan(ctx, call)
	if err != nil {
		return capabilities.Description{}, err
	}
	if j.blind {
		if err := c.alone(ctx); err != nil {
			return capabilities.Description{}, err
		}
	}
	if j.fleeting || j.aim != nil {
		s.shows(shown{call.Payload, j.marks, j.keyboard, j.aim})
	}
	return j.d, nil
}

// patient is ctx without its short deadline: the process that has the display
// may have to be started first. It ends when ctx is cancelled.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), handsWithin)
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel()
		}
	})
	return out, func() { stop(); cancel() }
}

// Run looks again, and does what was granted.
func (c *Computer) Run(ctx context.Context, call capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
	ctx, leave, err := c.enter(ctx, call.Session.ID)
	if err != nil {
		return capabilities.Result{}, err
	}
	defer leave()
	within, cancel := patient(ctx)
	defer cancel()
	j, err := c.plan(within, call)
	if err != nil {
		return capabilities.Result{}, ended(ctx, err)
	}
	if err := g.Check(consent.DigestOf(j.d.Payload), j.d.Fingerprint); err != nil {
		return capabilities.Result{}, err
	}
	res, err := j.run(ctx, g)
	return res, ended(ctx, err)
}

// plan finds out what a request would do.
func (c *Computer) plan(ctx context.Context, call capabilities.Call) (job, error) {
	s := c.session(call.Session.ID)
	switch p := call.Payload.(type) {
	case *wire.Screenshot:
		return c.screenshot(ctx, s, p)
	case *wire.InputAction:
		return c.input(ctx, s, p)
	case *wire.ComputerQuery:
		if call.Type == wire.TypeCursor {
			return c.cursor(ctx, s)
		}
		return c.displays(ctx, s)
	case *wire.Windows:
		return c.windows(ctx, s, p)
	case *wire.WindowFocus:
		return c.focus(ctx, s, p)
	case *wire.Apps:
		return c.apps(ctx, s, p)
	case *wire.AppLaunch:
		return c.launch(ctx, s, p)
	case *wire.ClipRead:
		return c.readClip(ctx, s, p)
	case *wire.ClipWrite:
		return c.writeClip(ctx, s, p)
	case *wire.Permissions:
		return c.permissions(ctx, p)
	}
	return job{}, wire.Errorf(wire.CodeNotSupported, "The screen, mouse and keyboard do not take %s.", call.Type)
}
