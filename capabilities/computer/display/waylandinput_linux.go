package display

import (
	"context"
	"errors"
	"fmt"
	"image"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"localpc/capabilities/computer/display/portal"
	"localpc/capabilities/computer/display/wl"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// newInput is mouse and keyboard: the compositor's own where it lets programs
// have them, else those of the RemoteDesktop portal.
func (w *wayland) newInput(a around, layout func(context.Context) (space.Layout, error), direct bool) (input, error) {
	at := &pointerAt{layout: layout}
	var m mover
	switch {
	case direct && w.conn.Offers(wl.VirtualPointer) && w.conn.Offers(wl.VirtualKeyboard):
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.conn.Attach(ctx); err != nil {
			return nil, wire.Wrap(err, wire.CodeNotSupported, "%s let no mouse and keyboard be plugged in: %s.", w.desktop(), err)
		}
		m = &wlrootsMover{wayland: w, pointerAt: at}
	case w.portal != nil && w.portal.Version(portal.RemoteDesktop) > 0:
		m = &portalMover{wayland: w, pointerAt: at}
	default:
		return nil, errors.New(w.said(portal.ErrMissing, wire.CodeNotSupported, "mouse and keyboard from programs").Error())
	}
	return newActor(a, m, &waylandWatch{wayland: w}), nil
}

// pointerAt is where the mouse pointer was put: Wayland tells no program where
// it is.
type pointerAt struct {
	layout func(context.Context) (space.Layout, error)
	last   *image.Point
}

func (p *pointerAt) cursor(context.Context) (image.Point, error) {
	if p.last == nil {
		return image.Point{}, wire.Errorf(wire.CodeNotSupported, "On Wayland no program knows where the mouse pointer is before it has moved it. Move it first, or say where to click.")
	}
	return *p.last, nil
}

// wlrootsMover has a pointer and a keyboard of its own.
type wlrootsMover struct {
	*wayland
	*pointerAt
	mods uint32
}

func (m *wlrootsMover) move(ctx context.Context, p image.Point) error {
	c, err := m.compositor(ctx)
	if err != nil {
		return err
	}
	l, err := m.layout(ctx)
	if err != nil {
		return err
	}
	at, size, err := fraction(l, p)
	if err != nil {
		return err
	}
	if err := c.MoveTo(ctx, at, size); err != nil {
		return err
	}
	m.last = &p
	return nil
}

// fraction is the device pixel p as a part of the smallest rectangle around all
// screens in points: at of size.
func fraction(l space.Layout, p image.Point) (at, size image.Point, err error) {
	s, ok := l.At(p)
	if !ok {
		return at, size, fmt.Errorf("%v is on no screen", p)
	}
	var all image.Rectangle
	for _, s := range l.Screens {
		all = all.Union(s.Points)
	}
	const fine = 4096 // parts of a point
	x, y := unscaled(p.Sub(s.Device.Min), s.Scale)
	from := s.Points.Min.Sub(all.Min)
	return image.Pt(int((float64(from.X)+x)*fine), int((float64(from.Y)+y)*fine)), all.Size().Mul(fine), nil
}

func (m *wlrootsMover) button(ctx context.Context, name string, down bool, _ int) error {
	c, err := m.compositor(ctx)
	if err != nil {
		return err
	}
	return c.Button(ctx, map[string]uint32{"left": wl.Left, "middle": wl.Middle, "right": wl.Right}[name], down)
}

func (m *wlrootsMover) scroll(ctx context.Context, direction string, steps int) error {
	c, err := m.compositor(ctx)
	if err != nil {
		return err
	}
	horizontal, steps := axis(direction, steps)
	return c.Scroll(ctx, horizontal, steps)
}

// axis is a direction as an axis and a sign.
func axis(direction string, steps int) (horizontal bool, signed int) {
	if direction == "up" || direction == "left" {
		steps = -steps
	}
	return direction == "left" || direction == "right", steps
}

func (m *wlrootsMover) press(ctx context.Context, sym keysym, down bool) error {
	c, err := m.compositor(ctx)
	if err != nil {
		return err
	}
	if bit := wlModifier[sym]; bit != 0 {
		m.mods &^= bit
		if down {
			m.mods |= bit
		}
	}
	return c.Key(ctx, sym, down, m.mods)
}

var wlModifier = map[keysym]uint32{symShift: wl.Shift, 0xffe2: wl.Shift, symControl: wl.Ctrl, 0xffe4: wl.Ctrl,
	symAlt: wl.Alt, 0xffea: wl.Alt, symSuper: wl.Super, 0xffec: wl.Super}

func (m *wlrootsMover) text(ctx context.Context, syms []textSym) error {
	c, err := m.compositor(ctx)
	if err != nil {
		return err
	}
	var all []uint32
	for _, s := range syms {
		all = append(all, s.any[0])
	}
	if err := c.Prepare(ctx, all); err != nil {
		return err
	}
	return tap(ctx, all, func(sym keysym, down bool) error { return c.Key(ctx, sym, down, m.mods) })
}

// tap presses one key after another.
func tap(ctx context.Context, syms []keysym, key func(sym keysym, down bool) error) error {
	for _, sym := range syms {
		if err := key(sym, true); err != nil {
			return err
		}
		if err := key(sym, false); err != nil {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (m *wlrootsMover) close() error { return nil } // the connection is the pictures'

// portalMover acts through the RemoteDesktop portal.
type portalMover struct {
	*wayland
	*pointerAt
}

// fit chooses of what is to be typed the keysyms that the person's keyboard has:
// desktops press no others, and say nothing. An error says which there are none
// for. Where the keyboard can't be looked at, everything is tried.
func (m *portalMover) fit(ctx context.Context, text []textSym) ([]textSym, error) {
	keymap := ""
	c, err := wl.Open(ctx, m.env)
	if err == nil {
		keymap, err = c.Keymap(ctx)
		_ = c.Close()
	}
	if err == nil {
		var layouts []map[keysym]bool
		if layouts, err = layoutsOf(keymap); err == nil {
			return fitted(text, layouts)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.log.Info("What the keyboard can type is not known", "err", err)
	return text, nil
}

// fitted is text with the keysyms that layouts have, those first that all have:
// which layout the person has chosen Wayland tells nobody.
func fitted(text []textSym, layouts []map[keysym]bool) ([]textSym, error) {
	out := make([]textSym, 0, len(text))
	for _, s := range text {
		best, most := keysym(0), 0
		for _, sym := range s.any {
			n := 0
			for _, l := range layouts {
				if l[sym] {
					n++
				}
			}
			if n > most {
				best, most = sym, n
			}
		}
		if most == 0 {
			what := "that key"
			if s.r != 0 {
				what = strconv.Quote(string(s.r))
			}
			return nil, wire.Errorf(wire.CodeNotSupported, "Nothing was typed: this computer's keyboard layout has no key for %s, and its desktop lets programs press only keys that it has. Its person can add a layout that has it in the desktop's settings, or log in with an X11 session.", what)
		}
		s.any = []keysym{best}
		out = append(out, s)
	}
	return out, nil
}

// with has fn act in the session, which the person may be asked for.
func (m *portalMover) with(ctx context.Context, needs uint32, fn func(s *portal.Session) error) error {
	s, err := m.share(ctx, true)
	switch {
	case err == nil && s.Devices&bothDevices == 0:
		m.unshare(s)
		return wire.Errorf(wire.CodeNotSupported, "In the system's own question the screen was shared, but not mouse and keyboard. Try again after half a minute, and switch on there that they may be used (Allow remote interaction).")
	case err == nil && s.Devices&needs == 0:
		has, lacks := "the keyboard", "the mouse"
		if needs == portal.Keyboard {
			has, lacks = lacks, has
		}
		return wire.Errorf(wire.CodeNotSupported, "In the system's own question %s may be used, but not %s. To have both, end the sharing of the screen at this computer, try again, and choose both there.", has, lacks)
	case err == nil:
		err = fn(s)
	}
	if err != nil {
		return m.said(err, wire.CodeNotSupported, "mouse and keyboard from programs")
	}
	return nil
}

func (m *portalMover) move(ctx context.Context, p image.Point) error {
	l, err := m.layout(ctx)
	if err != nil {
		return err
	}
	return m.with(ctx, portal.Pointer, func(s *portal.Session) error {
		screen, ok := l.At(p)
		if !ok {
			return fmt.Errorf("%v is on no screen", p)
		}
		stream, ok := streamOf(s.Streams, screen, screen.Index)
		if !ok {
			return wire.Errorf(wire.CodeNotSupported, "The screen %s is not shared. Try again, and choose all screens in the system's own question.", screen.Name)
		}
		x, y := unscaled(p.Sub(screen.Device.Min), screen.Scale)
		if err := s.MoveTo(ctx, stream.Node, x, y); err != nil {
			return err
		}
		m.last = &p
		return nil
	})
}

func (m *portalMover) button(ctx context.Context, name string, down bool, _ int) error {
	return m.with(ctx, portal.Pointer, func(s *portal.Session) error {
		return s.Button(ctx, map[string]int32{"left": portal.Left, "middle": portal.Middle, "right": portal.Right}[name], down)
	})
}

func (m *portalMover) scroll(ctx context.Context, direction string, steps int) error {
	horizontal, steps := axis(direction, steps)
	of := portal.Vertical
	if horizontal {
		of = portal.Horizontal
	}
	return m.with(ctx, portal.Pointer, func(s *portal.Session) error { return s.Scroll(ctx, of, int32(steps)) })
}

func (m *portalMover) press(ctx context.Context, sym keysym, down bool) error {
	return m.with(ctx, portal.Keyboard, func(s *portal.Session) error { return s.Key(ctx, int32(sym), down) })
}

func (m *portalMover) text(ctx context.Context, syms []textSym) error {
	return m.with(ctx, portal.Keyboard, func(s *portal.Session) error {
		var all []keysym
		for _, sym := range syms {
			all = append(all, sym.any[0])
		}
		return tap(ctx, all, func(sym keysym, down bool) error { return s.Key(ctx, int32(sym), down) })
	})
}

func (m *portalMover) close() error { return nil }

// waylandWatch has the stop key where the desktop gives one; whose hands move
// the mouse Wayland tells nobody.
type waylandWatch struct {
	*wayland
	mu       sync.Mutex // of shortcut; a dialog may be open meanwhile
	shortcut *portal.Shortcut
	fn       atomic.Pointer[func(hands.Event)]
}

// stopTrigger is the key that is preferred, in the words of the portal.
const stopTrigger = "CTRL+ALT+Escape"

func (w *waylandWatch) listen(fn func(hands.Event)) { w.fn.Store(&fn) }

func (w *waylandWatch) after(time.Time) bool { return false }

func (w *waylandWatch) person() (bool, string) {
	return false, "On Wayland the mouse and keyboard of the person can't be told from the agent's, so using them does not pause it. Use Pause or Stop everything, on the strip or in the tray's menu."
}

func (w *waylandWatch) stopKey(ctx context.Context, on bool) (bound, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !on {
		if w.shortcut != nil {
			w.shortcut.Close()
			w.shortcut = nil
		}
		return "", ""
	}
	if w.shortcut != nil {
		return w.shortcut.Trigger, ""
	}
	err := w.portalErr
	if w.portal != nil {
		w.shortcut, err = w.portal.Bind(ctx, "stop", "Stop everything that Local PC Executor does", stopTrigger, w.stop)
	}
	if err != nil {
		w.shortcut = nil
		if errors.Is(err, portal.ErrMissing) || errors.Is(err, portal.ErrNoPortal) || errors.Is(err, portal.ErrNoBus) {
			return "", w.desktop() + " gives programs no key of their own. Stop everything from the tray icon instead."
		}
		w.log.Warn("No key for Stop everything", "err", err)
		return "", w.desktop() + " gave no key for Stop everything. Stop everything from the tray icon instead."
	}
	return w.shortcut.Trigger, ""
}

func (w *waylandWatch) stop() {
	if fn := w.fn.Load(); fn != nil && *fn != nil {
		(*fn)(hands.Event{Stop: true, At: time.Now()})
	}
}

func (w *waylandWatch) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shortcut != nil {
		w.shortcut.Close()
		w.shortcut = nil
	}
	return nil
}
