package computer

import (
	"context"
	"errors"
	"image"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// screen is a display of the test's own, at the edge where the real one stands:
// it has the screens and windows that it is given, and notes what is asked.
type screen struct {
	mu        sync.Mutex
	abilities hands.Abilities
	layout    space.Layout
	stack     space.Stack
	stackErr  error // of listing the windows
	pointer   image.Point
	clip      hands.Clip
	clipErr   error
	picture   []byte
	covers    []hands.Cover // what a picture for a card does not show
	hidden    []string      // of each picture
	hold      chan struct{} // Act waits for it, or for its context
	actErr    error
	asks      []hands.Ask
	acts      []hands.Action
	shooting  func() // while a picture is taken
	begun     int    // actions that have begun
	focused   []space.Window
	seen      time.Time // of the last Focus
	released  int
	inside    int // at the display now
	most      int
}

func two() space.Layout {
	return space.Layout{Screens: []space.Screen{
		{Index: 0, Name: "DP-1", Device: image.Rect(0, 0, 1920, 1080), Points: image.Rect(0, 0, 1920, 1080), Scale: 1, Primary: true},
		{Index: 1, Name: "HDMI-1", Device: image.Rect(-1280, 0, 0, 1024), Points: image.Rect(-1280, 0, 0, 1024), Scale: 1},
	}}
}

func newScreen() *screen {
	return &screen{layout: two(), abilities: hands.Abilities{System: "x11", Pictures: true, Input: true, Windows: true, Clipboard: true, Person: true, Frame: true},
		picture: []byte("\xff\xd8\xff a picture"),
		stack: space.Stack{
			{ID: 1, PID: 101, Class: "gedit", App: "gedit", Title: "notes", Frame: image.Rect(100, 100, 500, 400), Started: 7, Focused: true},
			{ID: 2, PID: 102, Class: "firefox", App: "Firefox", Title: "bank (Private Browsing)", Frame: image.Rect(-1000, 100, -500, 400), Started: 8},
		}}
}

func (s *screen) enter() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside++
	s.most = max(s.most, s.inside)
	return func() { s.mu.Lock(); s.inside--; s.mu.Unlock() }
}

func (s *screen) Abilities(context.Context) (hands.Abilities, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abilities, nil
}

func (s *screen) Layout(context.Context) (space.Layout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.layout, nil
}

func (s *screen) Shoot(ctx context.Context, a hands.Ask) (hands.Shot, error) {
	defer s.enter()()
	if fn := get(s, func(s *screen) func() { return s.shooting }); fn != nil {
		fn()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, a)
	if ctx.Err() != nil {
		return hands.Shot{}, context.Cause(ctx)
	}
	size := a.Limit.Fit(a.Area.Size())
	var covers []hands.Cover
	if a.Card {
		covers = s.covers
	}
	return hands.Shot{Covers: covers, Hidden: s.hidden, Data: s.picture, Format: a.Format, Layout: s.layout, Stack: s.stack, At: time.Now(),
		View: space.View{ID: a.ID, Layout: s.layout.Fingerprint(), Area: a.Area, Size: size}}, nil
}

func (s *screen) Act(ctx context.Context, a hands.Action) error {
	defer s.enter()()
	s.mu.Lock()
	s.begun++
	hold, err := s.hold, s.actErr
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts = append(s.acts, a)
	return nil
}

func (s *screen) Cursor(context.Context) (image.Point, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pointer, nil
}

func (s *screen) Windows(context.Context) (space.Stack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stack), s.stackErr
}

func (s *screen) Focus(_ context.Context, w space.Window, _ bool, seen time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = seen
	s.focused = append(s.focused, w)
	return nil
}

func (s *screen) ReadClipboard(context.Context, int) (hands.Clip, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clip, s.clipErr
}

func (s *screen) WriteClipboard(_ context.Context, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clip, s.clipErr = hands.Clip{Text: text, Owned: true}, nil
	return nil
}

func (s *screen) Control(context.Context, hands.Control) error { return nil }

func (s *screen) Release(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released++
	return nil
}

func (s *screen) Target(context.Context, []image.Point) error { return errors.New("no targets here") }
func (s *screen) Hits(context.Context) ([]image.Point, error) { return nil, nil }
func (s *screen) Listen(func(hands.Event))                    {}
func (s *screen) Close() error                                { return nil }
func (s *screen) set(fn func(*screen))                        { s.mu.Lock(); fn(s); s.mu.Unlock() }
func get[T any](s *screen, fn func(*screen) T) T              { s.mu.Lock(); defer s.mu.Unlock(); return fn(s) }
func (s *screen) lastAct() hands.Action {
	return get(s, func(s *screen) hands.Action { return s.acts[len(s.acts)-1] })
}
func (s *screen) lastAsk() hands.Ask {
	return get(s, func(s *screen) hands.Ask { return s.asks[len(s.asks)-1] })
}
func (s *screen) actions() int  { return get(s, func(s *screen) int { return len(s.acts) }) }
func (s *screen) releases() int { return get(s, func(s *screen) int { return s.released }) }
func text(n int) (out string) {
	for i := range n {
		out += strconv.Itoa(i % 10)
	}
	return out
}

// rig is a Computer at such a display, with one session.
type rig struct {
	t     *testing.T
	s     *screen
	c     *Computer
	terms hands.Terms
	open  atomic.Int64 // windows of this program
	ses   *capabilities.Session
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, s: newScreen(), terms: hands.Terms{Clipboard: hands.ClipOwn, Hide: hands.Curtain{Words: hands.Usual}}}
	r.c = New(Options{Hands: r.s, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), settle: time.Millisecond, thaw: 50 * time.Millisecond})
	r.c.Bind(hands.Host{Terms: func() hands.Terms { return r.terms }, Begin: func(context.Context) error { return nil },
		Open: func() int { return int(r.open.Load()) }})
	r.ses = capabilitytest.NewSession(t, consent.ModeWork)
	t.Cleanup(func() {
		if err := r.c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return r
}

func (r *rig) call(typ wire.Type, p wire.Payload) capabilities.Call {
	r.t.Helper()
	return capabilitytest.NewCall(r.t, r.ses, typ, p)
}

// session is a grant for the session, of these screens.
func (r *rig) session(screens ...string) consent.Choice {
	return consent.Choice{Scope: consent.Session, Screens: consent.JoinScreens(screens)}
}

func (r *rig) do(typ wire.Type, p wire.Payload, c consent.Choice) (capabilities.Result, error) {
	r.t.Helper()
	res, _, err := capabilitytest.DoWith(r.t.Context(), r.t, r.c, r.call(typ, p), c)
	if err == nil {
		if !wire.Replies(typ, res.Type) {
			r.t.Errorf("%s does not answer %s", res.Type, typ)
		} else if verr := res.Payload.Validate(); verr != nil {
			r.t.Errorf("the answer is not valid: %v", verr)
		}
	}
	return res, err
}

func (r *rig) describe(typ wire.Type, p wire.Payload) capabilities.Description {
	r.t.Helper()
	d, err := r.c.Describe(r.t.Context(), r.call(typ, p))
	if err != nil {
		r.t.Fatalf("Describe: %v", err)
	}
	return d
}

// see takes a picture of a screen, both of which are allowed.
func (r *rig) see(monitor int) *wire.ScreenshotResponse {
	r.t.Helper()
	res, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: monitor, MaxEdge: 960}, r.session("DP-1", "HDMI-1"))
	if err != nil {
		r.t.Fatalf("a picture: %v", err)
	}
	return res.Payload.(*wire.ScreenshotResponse)
}

func (r *rig) click(picture string, x, y int) error {
	r.t.Helper()
	_, err := r.do(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: wire.ActLeftClick, Picture: picture, Coordinate: &wire.Point{x, y}}, r.session())
	return err
}

func wantCode(t *testing.T, err error, code wire.Code) {
	t.Helper()
	if wire.CodeOf(err) != code {
		t.Errorf("%v (%q), want %q", err, wire.CodeOf(err), code)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
