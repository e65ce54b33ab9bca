package machine

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Computer is the executor of screen, mouse and keyboard, as the machine needs
// it beyond a capability.
type Computer interface {
	capabilities.Capability
	// Bind is called once, before its first request.
	Bind(hands.Host)
	// Look takes the pictures for the card of r, which asks for c.
	Look(ctx context.Context, c capabilities.Call, r consent.Request) []consent.Look
	// Uses are the sessions that see or act, or may again, and those whose time is
	// just over.
	Uses() []hands.Use
	// Drop ends that for a session, "" for all, with what is under way; forget
	// has it forget what was allowed.
	Drop(session string, cause error, forget bool)
	// Person says that the person's own hands are at work.
	Person()
	// Moved says that the screens have changed.
	Moved()
	// Without are the sessions that share some screens, of which none is left.
	Without(space.Layout) []string
	// Void says that the hub has connected anew, or is gone.
	Void()
}

const (
	// personFor is how long the person's hands count as at work after they were.
	personFor = 3 * time.Second
	// personEvery is how often Activity tells of them.
	personEvery = 30 * time.Second
	// handsWithin bounds what the display is asked for outside of requests.
	handsWithin = 10 * time.Second
)

// controls is who sees the screens and has mouse and keyboard: the frame, the
// strip, and how that ends. It does nothing where there is no display.
type controls struct {
	m     *Machine
	hands hands.Hands // nil: there is no display
	exec  Computer    // nil: this build can't
	wake  chan struct{}

	ops     sync.Mutex                // one change of the frame at a time
	applied *hands.Control            // the last that was told; nil: none was, or it was lost; guarded by ops
	timed   map[string]consent.Stored // grants that end by themselves, by id; run's own

	mu        sync.Mutex
	person    time.Time            // guarded by mu: when the person's hands were last at work
	told      time.Time            // guarded by mu: when Activity last said so
	abilities *hands.Abilities     // guarded by mu: as they were last found; nil: not yet
	calls     map[string]*pictured // guarded by mu: what may be pictured on a card, by question
	stopLooks context.CancelFunc   // guarded by mu; nil: no card is pictured
	card      bool                 // guarded by mu: one is open
	test      *snapshot.ScreenTest // guarded by mu
	testing   bool                 // guarded by mu
	screens   int                  // guarded by mu: how often the screens have changed
	pausedBy  *snapshot.Control    // guarded by mu: who saw or acted as the person paused
}

func newControls(m *Machine) *controls {
	c := &controls{m: m, hands: m.o.Hands, wake: make(chan struct{}, 1), timed: map[string]consent.Stored{}, calls: map[string]*pictured{}}
	for _, e := range m.o.Executors {
		if exec, ok := e.(Computer); ok && c.hands != nil {
			c.exec = exec
		}
	}
	if c.exec == nil {
		c.hands = nil
		return c
	}
	c.exec.Bind(hands.Host{Terms: func() hands.Terms { return termsOf(m.o.Settings.Get()) }, Begin: c.begin, Open: m.o.Hooks.Open})
	c.hands.Listen(c.event)
	return c
}

func termsOf(s settings.Settings) hands.Terms {
	t := hands.Terms{PerAction: s.Computer.PerAction, Clipboard: s.Computer.Clipboard, Hide: hands.Curtain{Words: s.Computer.Hide.List()}}
	if s.Computer.HideUsual {
		t.Hide.Words = append(t.Hide.Words, hands.Usual...)
	}
	return t
}

func (c *controls) kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// uses are those of now, the oldest first, and what is over for not being used.
func (c *controls) uses() (now, idle []hands.Use) {
	if c.exec == nil {
		return nil, nil
	}
	for _, u := range c.exec.Uses() {
		switch left := u.Until.After(time.Now()); {
		case left && u.On():
			now = append(now, u)
		case !left && u.Idle:
			idle = append(idle, u)
		}
	}
	if c.m.isPaused() {
		now = nil
	}
	return now, idle
}

// wanted is how the frame has to be now.
func (c *controls) wanted() hands.Control {
	var w hands.Control
	if own := c.m.o.Hooks.Own; own != nil {
		w.Own = slices.Sorted(slices.Values(own()))
	}
	if now, _ := c.uses(); len(now) > 0 {
		w.On, w.Colour, w.StopKey = true, colourOf(foremost(now).Session), true
	}
	return w
}

// begin makes ready for the display being touched; what was granted before a
// pause and comes after it is refused.
func (c *controls) begin(ctx context.Context) error {
	if err := c.apply(ctx); err != nil {
		return err
	}
	if c.m.isPaused() {
		return errPaused()
	}
	return nil
}

// apply draws the frame as it has to be, or takes it away, and tells which
// windows are this program's. The display is touched only after it.
func (c *controls) apply(ctx context.Context) error {
	c.ops.Lock()
	defer c.ops.Unlock()
	w := c.wanted()
	if a := c.applied; a != nil && a.On == w.On && a.Colour == w.Colour && slices.Equal(a.Own, w.Own) {
		return nil
	}
	if err := c.hands.Control(ctx, w); err != nil {
		c.applied = nil
		return err
	}
	if first := c.applied == nil || !c.applied.On; first && w.On {
		c.m.background(c.find) // the stop key is bound now
	}
	if !w.On {
		c.unbound()
	}
	c.applied = &w
	c.m.changed()
	return nil
}

// unbound notes that the stop key went with the frame.
func (c *controls) unbound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abilities != nil {
		a := *c.abilities
		a.StopKey = ""
		c.abilities = &a
	}
}

// run keeps the frame in step, and ends what is not used any more.
func (c *controls) run(ctx context.Context) {
	if c.exec == nil {
		return
	}
	for {
		now, idle := c.uses()
		for _, u := range idle {
			c.unused(ctx, u)
		}
		c.ops.Lock()
		touched := c.applied != nil
		c.ops.Unlock()
		if len(now) > 0 || touched {
			within, cancel := context.WithTimeout(ctx, handsWithin)
			if err := c.apply(within); err != nil && ctx.Err() == nil {
				c.m.log.Error("The frame on the screens could not be changed", "err", err)
			}
			cancel()
		}
		wait := c.overdue()
		for _, u := range c.exec.Uses() { // what is not used at the moment ends as well
			if left := time.Until(u.Until); left > 0 || u.Idle {
				wait = min(wait, max(left, 0)+time.Millisecond)
			}
		}
		if left := personFor - time.Since(c.personAt()); left > 0 {
			wait = min(wait, left+time.Millisecond)
		}
		next := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-c.wake:
		case <-next.C:
			c.m.pub.kick()
		}
		next.Stop()
	}
}

func (c *controls) personAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.person
}

// foremost is the use that the strip shows: one that acts, else the newest.
func foremost(now []hands.Use) hands.Use {
	u := now[len(now)-1]
	for _, v := range now {
		if v.Acts {
			u = v
		}
	}
	return u
}

// frameColours are told apart from each other, and from most desktops.
var frameColours = []string{"#d9480f", "#1971c2", "#9c36b5", "#2f9e44", "#c2255c", "#e8890c"}

// colourOf is the colour of a session's frame.
func colourOf(session string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(session))
	return frameColours[int(h.Sum32()%uint32(len(frameColours)))]
}

// shown is what the strip shows; nil while nobody sees or acts. While the person
// pauses it is who did: what they go on with stands where they paused.
func (c *controls) shown() *snapshot.Control {
	now, _ := c.uses()
	if len(now) == 0 {
		return c.paused()
	}
	u := foremost(now)
	s := &snapshot.Control{Session: u.Session, Who: c.who(u.Session), Sees: u.Sees, Acts: u.Acts, Since: u.Since, Colour: colourOf(u.Session)}
	c.mu.Lock()
	defer c.mu.Unlock()
	// It does not wait where the person only answered its card, or it has taken a
	// new picture since.
	s.Person = u.Acts && c.person.After(u.Rested) && time.Since(c.person) < personFor
	if c.abilities != nil {
		s.StopKey = c.abilities.StopKey
	}
	return s
}

func (c *controls) who(session string) string {
	if s, err := c.m.sessions.get(session); err == nil {
		return consent.Visible(s.who.principal.Name, false)
	}
	return "A program"
}

// drop ends what sessions see and do, "" for all of them; what a pause holds up
// of it ends too.
func (c *controls) drop(session string, cause error, forget bool) {
	if c.exec == nil {
		return
	}
	c.exec.Drop(session, cause, forget)
	c.mu.Lock()
	if p := c.pausedBy; p != nil && (session == "" || p.Session == session) {
		c.pausedBy = nil
	}
	c.mu.Unlock()
	c.kick()
}

// halt ends what all sessions see and do as the person pauses.
func (c *controls) halt() {
	if c.exec == nil {
		return
	}
	c.exec.Drop("", errPaused(), false)
	c.kick()
}

// void says that the hub has connected anew, or is gone: what is held down is let
// go, and the ids of windows mean nothing any more. While it is gone nobody sees
// or acts; what was allowed holds on for when it is back.
func (c *controls) void(gone bool) {
	if c.exec == nil {
		return
	}
	c.exec.Void()
	if gone {
		c.exec.Drop("", wire.Errorf(wire.CodeOffline, "The connection to the hub was lost in the middle of this."), false)
	}
	c.kick()
}

// find looks up what works at this display.
func (c *controls) find(ctx context.Context) {
	if c.exec == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handsWithin)
	defer cancel()
	a, err := c.hands.Abilities(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.m.log.Error("The display does not say what works on it", "err", err)
		}
		return
	}
	c.mu.Lock()
	c.abilities = &a
	c.mu.Unlock()
	c.m.changed()
}

// offered tells whether programs may ask for the screen here.
func (c *controls) offered() bool {
	return c.exec != nil && c.m.o.Settings.Get().Capabilities.Computer != "off"
}

// settings are what the window shows of it; nil where there is no display.
func (c *controls) settings(s settings.Settings) *snapshot.Computer {
	if c.exec == nil {
		return nil
	}
	out := &snapshot.Computer{PerAction: s.Computer.PerAction, Clipboard: s.Computer.Clipboard, Hide: s.Computer.Hide.List(), HideUsual: s.Computer.HideUsual,
		Usual: hands.Usual, Remote: s.Computer.RemoteAnswers}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.abilities; a != nil {
		out.StopKey, out.StopKeyProblem = a.StopKey, a.StopKeyProblem
		for _, name := range []string{hands.AbilityPictures, hands.AbilityInput, hands.AbilityWindows, hands.AbilityClipboard, hands.AbilityPerson, hands.AbilityFrame} {
			if why := a.Why[name]; why != "" && !slices.Contains(out.Problems, why) {
				out.Problems = append(out.Problems, why)
			}
		}
	}
	if c.test != nil {
		test := *c.test
		out.Test = &test
	}
	out.Testing = c.testing
	return out
}

// errPaused ends what a session does at the screen when the person pauses.
func errPaused() error {
	return wire.Errorf(wire.CodePaused, "The person paused this computer; nothing new is run until they resume.")
}
