package display

import (
	"context"
	"image"
	"image/color"
	"os"
	"slices"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// tries is how often a picture is taken anew when the screens, or the window
// that it is of, changed while it was taken.
const tries = 4

// moment is one grab, with what was known of the screens around it.
type moment struct {
	raster *raster
	layout space.Layout
	stack  space.Stack // nil: windows can't be listed
	area   image.Rectangle
	black  []image.Rectangle
	// curtain: a window of the hide list shows in area.
	curtain bool
	hidden  []string
	// own is what of black is this program's own; covers are the windows: for a
	// card only.
	own    []image.Rectangle
	covers []hands.Cover
	at     time.Time
}

// Shoot lists the windows before and after it looks, and blacks out what
// either list hides: a window that moves meanwhile is black at both places.
func (d *desk) Shoot(ctx context.Context, a hands.Ask) (hands.Shot, error) {
	if d.pictures == nil {
		return hands.Shot{}, lacks(d.why[hands.AbilityPictures])
	}
	select {
	case d.shots <- struct{}{}:
		defer func() { <-d.shots }()
	case <-ctx.Done():
		return hands.Shot{}, ctx.Err()
	}
	select {
	case <-time.After(time.Until(d.clear)):
	case <-ctx.Done():
		return hands.Shot{}, ctx.Err()
	}
	m, err := d.moment(ctx, a)
	if err != nil {
		return hands.Shot{}, err
	}
	defer m.raster.done()
	if err := d.blank(ctx, m); err != nil {
		return hands.Shot{}, err
	}
	m.raster.fill(m.black, color.RGBA{})
	m.raster.fill(m.own, ownGrey)
	if m.raster.pointer != nil {
		m.raster.draw(m.raster.pointer)
	}
	data, format, size, err := encode(m.raster, a)
	if err != nil {
		return hands.Shot{}, err
	}
	d.took(m.at)
	return hands.Shot{
		Data: data, Format: format, Layout: m.layout, Stack: m.stack, Hidden: m.hidden, Covers: m.covers, At: m.at,
		View: space.View{ID: a.ID, Layout: m.layout.Fingerprint(), Area: m.area, Size: size},
	}, nil
}

// moment looks until nothing that matters changed while it did.
func (d *desk) moment(ctx context.Context, a hands.Ask) (*moment, error) {
	for try := 1; ; try++ {
		m, settled, err := d.look(ctx, a)
		if err == nil && (settled || try == tries) {
			return m, nil
		}
		if err == nil {
			m.raster.done()
		} else if try == tries || ctx.Err() != nil || wire.CodeOf(err) != wire.CodeInternal {
			return nil, err
		}
	}
}

func (d *desk) look(ctx context.Context, a hands.Ask) (m *moment, settled bool, err error) {
	m = &moment{at: time.Now()}
	if m.layout, err = d.pictures.layout(ctx); err != nil {
		return nil, false, err
	}
	var before, after, over space.Stack
	if d.windows != nil {
		if before, over, err = d.list(ctx, m.at); err != nil {
			return nil, false, err
		}
	}
	if m.area, err = areaOf(a, m.layout, before); err != nil {
		return nil, false, err
	}
	if m.raster, err = d.pictures.grab(ctx, m.area, a.Cursor); err != nil {
		return nil, false, err
	}
	m.raster = m.raster.whole(m.area)
	taken := m.raster
	defer func() {
		if err != nil {
			taken.done() // m is nil by then
		}
	}()
	black := outside(m.area, m.layout, a.Dark)
	black = append(black, d.cover()...)
	settled = true
	if d.windows != nil {
		var overAfter space.Stack
		if after, overAfter, err = d.list(ctx, m.at); err != nil {
			return nil, false, err
		}
		hide := func(w space.Window) bool {
			// The screen test looks for its targets, windows of this process.
			return w.Ours && !(a.Test && w.PID == os.Getpid()) || a.Hide.Hides(w)
		}
		for _, s := range []space.Stack{before, after} {
			black = append(black, s.Visible(m.area, hide)...)
			for i, w := range s {
				if a.Hide.Hides(w) && len(s.Visible(m.area, func(o space.Window) bool { return o.ID == s[i].ID })) > 0 {
					m.name(w)
				}
			}
		}
		for _, w := range slices.Concat(over, overAfter) {
			if r := w.Frame.Intersect(m.area); !r.Empty() && hide(w) && !slices.Contains(black, r) {
				black = append(black, r)
				if a.Hide.Hides(w) {
					m.name(w)
				}
			}
		}
		m.stack = after
		if a.Card {
			m.coverings(a.Hide, [2]space.Stack{before, after}, slices.Concat(over, overAfter))
		}
		if a.Window != nil {
			now, err := areaOf(a, m.layout, after)
			settled = err == nil && now == m.area
		}
	}
	if a.Card {
		m.own = append(m.own, d.cover()...)
	}
	for _, r := range black {
		if r = r.Intersect(m.area); !r.Empty() {
			m.black = append(m.black, r)
		}
	}
	layout, err := d.pictures.layout(ctx)
	if err != nil {
		return nil, false, err
	}
	return m, settled && layout.Fingerprint() == m.layout.Fingerprint(), nil
}

// areaOf is the device pixels that the picture is of.
func areaOf(a hands.Ask, l space.Layout, s space.Stack) (image.Rectangle, error) {
	bounds := l.Bounds()
	if a.Window == nil {
		area := a.Area.Intersect(bounds)
		if area.Empty() {
			return area, wire.Errorf(wire.CodeBounds, "That part of the screen does not exist: the screens are from (%d, %d) to (%d, %d).", bounds.Min.X, bounds.Min.Y, bounds.Max.X, bounds.Max.Y)
		}
		return area, nil
	}
	i := slices.IndexFunc(s, a.Window.Same)
	if i < 0 {
		return image.Rectangle{}, stale()
	}
	switch w := s[i]; {
	case w.Ours:
		return image.Rectangle{}, wire.Errorf(wire.CodeOwnWindow, "That window belongs to Local PC Executor itself.")
	case w.Minimized:
		return image.Rectangle{}, wire.Errorf(wire.CodeNotSupported, "That window is minimised, so nothing of it is on the screen. Bring it to the front first.")
	case w.Frame.Intersect(bounds).Empty():
		return image.Rectangle{}, wire.Errorf(wire.CodeBounds, "That window is outside of the screens.")
	default:
		return w.Frame.Intersect(bounds), nil
	}
}

// name says that w is blacked out in the area; this program's own windows are
// never said.
func (m *moment) name(w space.Window) {
	if w.Ours {
		return
	}
	m.curtain = true
	if name := programOf(w); !slices.Contains(m.hidden, name) {
		m.hidden = append(m.hidden, name)
	}
}

// coverings notes what a picture for a card does not show: before and after it
// was taken, and as the windows lie now.
func (m *moment) coverings(hide hands.Curtain, stacks [2]space.Stack, over space.Stack) {
	own := func(w space.Window) bool { return w.Ours }
	for _, s := range stacks {
		m.own = append(m.own, s.Visible(m.area, own)...)
	}
	for _, w := range over {
		if w.Ours {
			m.own = append(m.own, w.Frame.Intersect(m.area))
		}
	}
	for i, w := range stacks[1] {
		if !w.Ours && !hide.Hides(w) {
			continue
		}
		c := hands.Cover{Own: w.Ours}
		for _, r := range stacks[1].Visible(m.area, func(o space.Window) bool { return o.ID == stacks[1][i].ID }) {
			if r.Dx()*r.Dy() > c.Area.Dx()*c.Area.Dy() {
				c.Area = r
			}
		}
		if !w.Ours {
			c.Name = programOf(w)
		}
		if !c.Area.Empty() {
			m.covers = append(m.covers, c)
		}
	}
}

// programOf is what the person knows a window's program by.
func programOf(w space.Window) string {
	if w.App == "" {
		return w.Class
	}
	return w.App
}

// outside is what of area is on no screen, or on a dark one.
func outside(area image.Rectangle, l space.Layout, dark []int) []image.Rectangle {
	left := []image.Rectangle{area}
	for _, s := range l.Screens {
		if !slices.Contains(dark, s.Index) {
			left = space.Without(left, s.Device)
		}
	}
	for _, s := range l.Screens { // two screens may show the same pixels
		if slices.Contains(dark, s.Index) {
			left = append(left, s.Device.Intersect(area))
		}
	}
	return left
}

// blank is the error of a picture that is black by itself.
func (d *desk) blank(ctx context.Context, m *moment) error {
	if m.curtain || !m.raster.blackBut(m.black) {
		return nil
	}
	if all := m.layout.Bounds(); m.area != all { // a black corner is nothing odd
		m.raster = m.raster.apart()
		r, err := d.pictures.grab(ctx, all, false)
		if err != nil {
			return err
		}
		defer r.done()
		own := m.stack.Visible(all, func(w space.Window) bool { return w.Ours })
		if !r.blackBut(append(own, d.cover()...)) {
			return nil
		}
	}
	why := d.pictures.blank(ctx)
	if why == "" && m.filled() {
		why = "Everything on this screen is black: a window covers all of it, and is black itself. Leave its full screen, or wait until it shows something, and try again."
	}
	if why == "" {
		why = "Everything on this screen is black: it may be locked, or switched off. Unlock the computer and try again."
	}
	return wire.Errorf(wire.CodeBlank, "%s", why)
}

// filled tells whether a program's window has the whole of a screen that the
// picture is of. What no window manager manages is none: so screens are locked.
func (m *moment) filled() bool {
	for _, s := range m.layout.Screens {
		i := slices.IndexFunc(m.stack, func(w space.Window) bool { return !w.Ours && !w.Minimized && s.Device.In(w.Frame) })
		if !s.Device.Intersect(m.area).Empty() && i >= 0 && !m.stack[i].Popup {
			return true
		}
	}
	return false
}

// cover is where the frame is.
func (d *desk) cover() []image.Rectangle {
	if d.frame == nil {
		return nil
	}
	return d.frame.covers()
}
