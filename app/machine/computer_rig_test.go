package machine

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/capabilities/computer"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/hub"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// display is two screens of the test's own, at the edge where the real ones
// stand: it draws targets into its pictures, and notes what it is told.
type display struct {
	mu       sync.Mutex
	layout   space.Layout
	fn       func(hands.Event)
	under    bool // the card lies over all that is pictured on it
	controls []hands.Control
	acts     []hands.Action
	asks     []hands.Ask
	released int
	targets  []image.Point
	hits     []image.Point
	off      image.Point // by how much clicks miss
	shifted  image.Point // by how much pictures lie
	actErr   error
	shootErr error
	system   string
	// question, where set, is the system's own about each picture for a card: it
	// is open until it is closed; patient is how long the last one was given.
	question chan struct{}
	patient  time.Duration
	button   bool // held down
	keys     int  // how many actions hold keys
}

func newDisplay() *display {
	return &display{system: "x11", layout: space.Layout{Screens: []space.Screen{
		{Index: 0, Name: "DP-1", Device: image.Rect(0, 0, 1920, 1080), Points: image.Rect(0, 0, 1920, 1080), Scale: 1, Primary: true},
		{Index: 1, Name: "HDMI-1", Device: image.Rect(-600, 0, 0, 800), Points: image.Rect(-600, 0, 0, 800), Scale: 1, Turned: 90},
	}}}
}

func (d *display) Abilities(context.Context) (hands.Abilities, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return hands.Abilities{System: d.system, Pictures: true, Input: true, Windows: true, Clipboard: true, Person: true, StopKey: "Ctrl+Alt+Esc",
		Why: map[string]string{}}, nil
}

func (d *display) Layout(context.Context) (space.Layout, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.layout, nil
}

func (d *display) Shoot(ctx context.Context, a hands.Ask) (hands.Shot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.question; q != nil && a.Card {
		until, _ := ctx.Deadline()
		d.patient = time.Until(until)
		d.mu.Unlock()
		select {
		case <-q:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if err := ctx.Err(); err != nil {
			return hands.Shot{}, err
		}
	}
	d.asks = append(d.asks, a)
	if d.shootErr != nil {
		return hands.Shot{}, d.shootErr
	}
	v := space.View{ID: a.ID, Layout: d.layout.Fingerprint(), Area: a.Area, Size: a.Limit.Fit(a.Area.Size())}
	img := image.NewRGBA(image.Rectangle{Max: v.Size})
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{30, 90, 60, 255}), image.Point{}, draw.Src)
	if a.Test {
		for _, t := range d.targets {
			for y := -24; y <= 24; y++ {
				for x := -24; x <= 24; x++ {
					if p, ok := v.Picture(t.Add(image.Pt(x, y)).Add(d.shifted)); ok {
						img.Set(p.X, p.Y, hands.TargetColour)
					}
				}
			}
		}
	}
	var out bytes.Buffer
	var err error
	if a.Format == hands.PNG {
		err = png.Encode(&out, img)
	} else {
		err = jpeg.Encode(&out, img, nil)
	}
	shot := hands.Shot{Data: out.Bytes(), Format: a.Format, View: v, Layout: d.layout, Stack: space.Stack{}, At: time.Now()}
	if a.Card && d.under {
		shot.Covers, shot.Stack = []hands.Cover{{Area: a.Area, Own: true}}, space.Stack{{ID: 1, Ours: true, Frame: a.Area}}
	}
	return shot, err
}

func (d *display) Act(ctx context.Context, a hands.Action) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.actErr != nil {
		return d.actErr
	}
	switch a.Kind {
	case hands.Press:
		d.button = true
	case hands.HoldKey:
		d.keys++
		d.mu.Unlock()
		<-ctx.Done()
		d.mu.Lock()
		d.keys--
		return context.Cause(ctx)
	}
	d.acts = append(d.acts, a)
	if a.Test {
		d.hits = append(d.hits, a.At.Add(d.off))
	}
	return nil
}

func (d *display) Target(_ context.Context, points []image.Point) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.targets, d.hits = slices.Clone(points), nil
	return nil
}

func (d *display) Hits(context.Context) ([]image.Point, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.hits), nil
}

func (d *display) Control(_ context.Context, c hands.Control) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.controls = append(d.controls, c)
	return nil
}

func (d *display) Release(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.released++
	d.button = false
	return nil
}

func (d *display) Listen(fn func(hands.Event)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fn = fn
}

func (d *display) Cursor(context.Context) (image.Point, error)                { return image.Pt(1, 1), nil }
func (d *display) Windows(context.Context) (space.Stack, error)               { return space.Stack{}, nil }
func (d *display) Focus(context.Context, space.Window, bool, time.Time) error { return nil }
func (d *display) ReadClipboard(context.Context, int) (hands.Clip, error)     { return hands.Clip{}, nil }
func (d *display) WriteClipboard(context.Context, string) error               { return nil }
func (d *display) Close() error                                               { return nil }
func (d *display) tell(e hands.Event)                                         { of(d, func() func(hands.Event) { return d.fn })(e) }
func of[T any](d *display, fn func() T) T                                     { d.mu.Lock(); defer d.mu.Unlock(); return fn() }
func (d *display) set(fn func())                                              { d.mu.Lock(); fn(); d.mu.Unlock() }
func (d *display) frame() (c hands.Control) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.controls); n > 0 {
		c = d.controls[n-1]
	}
	return c
}
func (d *display) releases() int { return of(d, func() int { return d.released }) }
func (d *display) held() bool    { return of(d, func() bool { return d.button || d.keys > 0 }) }
func (d *display) actions() int  { return of(d, func() int { return len(d.acts) }) }

// looker is a person whose surface shows pictures.
type looker struct {
	*person
	lookMu sync.Mutex
	looks  []consent.Look
}

func (l *looker) Look(k consent.Look) {
	l.lookMu.Lock()
	defer l.lookMu.Unlock()
	l.looks = append(l.looks, k)
}

func (l *looker) seenLooks() []consent.Look {
	l.lookMu.Lock()
	defer l.lookMu.Unlock()
	return slices.Clone(l.looks)
}

// screens is a rig whose machine has a display.
type screensRig struct {
	*rig
	d *display
	l *looker
	// The hub of elsewhere, and the way there.
	other *hub.Hub
	line  *wayThere
}

// own is what the machine is told of its other process.
const ownPID = 4711

func newScreens(t *testing.T, o computer.Options) *screensRig {
	t.Helper()
	d := newDisplay()
	o.Hands = d
	m := newMachine(t)
	paths := m.o.Paths
	must(t, m.o.Store.Close())
	m = openMachine(t, paths, func(mo *Options) {
		mo.Hands, mo.Executors = d, []capabilities.Capability{computer.New(o)}
		mo.Hooks.Own = func() []int { return []int{ownPID} }
	})
	r := &rig{t: t, m: m}
	m.link.view.id, m.link.view.hub.Name = settings.HubThis, "This computer only"
	r.person = &person{m: m, answer: func(q consent.Request) (consent.Answer, bool) {
		c := consent.Choice{Scope: consent.Session}
		switch {
		case q.Capability == consent.CapabilitySession:
			c = consent.Choice{Scope: consent.Session, Mode: consent.ModeWork, Folder: r.folder}
		case len(q.Screens) > 0:
			c.Screens = "DP-1"
		}
		if !slices.Contains(q.Scopes, consent.Session) && q.Capability != consent.CapabilitySession {
			c.Scope = consent.Once
		}
		return consent.Answer{Allow: true, Choice: c, Via: "card"}, true
	}}
	s := &screensRig{rig: r, d: d, l: &looker{person: r.person}}
	m.asks.Add(s.l)
	home, err := os.UserHomeDir()
	must(t, err)
	r.folder = filepath.Join(home, "project")
	must(t, os.Mkdir(r.folder, 0o755))
	m.background(m.controls.run)
	t.Cleanup(func() {
		m.sessions.endAll(context.Background(), "The test is over.")
		m.cancel()
		m.wg.Wait()
		must(t, m.o.Executors[0].Close())
	})
	r.pair = tunneltest.New(t, m.dispatch, tunneltest.WithScreen)
	r.open("s1", 0)
	return s
}

func (s *screensRig) see() (*wire.ScreenshotResponse, error) {
	m, err := s.call(wire.TypeScreenshot, &wire.Screenshot{SessionID: "s1", MaxEdge: 400})
	if err != nil {
		return nil, err
	}
	return m.Payload.(*wire.ScreenshotResponse), nil
}

func (s *screensRig) act(action string) error {
	p := &wire.InputAction{SessionID: "s1", Action: action}
	if action == wire.ActKey {
		p.Key = "a"
	}
	_, err := s.call(wire.TypeInput, p)
	return err
}

func (s *screensRig) cards() int { return len(s.person.seen()) }

// entry is the newest line of the log that begins so.
func (s *screensRig) entry(what string) (snapshot.Entry, bool) {
	for _, e := range s.m.Snapshot().Entries {
		if len(e.What) >= len(what) && e.What[:len(what)] == what {
			return e, true
		}
	}
	return snapshot.Entry{}, false
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
