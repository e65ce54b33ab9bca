package display

import (
	"bytes"
	"context"
	"image"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/res"
	"github.com/jezek/xgb/shape"
	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/space"
)

// x11Windows lists what the X server has on the screen, and what the window
// manager says of it. The tree of windows is what counts: a window that the
// window manager has not told of yet is in it.
type x11Windows struct {
	*xconn
	res, shape bool
	mask       uint32 // what of an id is the client's own
	trail      *trail
	ears       *xconn // hears of changes; nobody waits for an answer on it
	mine       xproto.Window
	times      chan xproto.Timestamp // of what now asked for
}

func newX11Windows(name string) (*x11Windows, error) {
	c, err := dialX11(name)
	if err != nil {
		return nil, err
	}
	w := &x11Windows{xconn: c, mask: xproto.Setup(c.Conn).ResourceIdMask, trail: newTrail(), times: make(chan xproto.Timestamp, 1)}
	if _, w.res = c.extension("X-Resource"); w.res {
		v, err := res.QueryVersion(c.Conn, 1, 2).Reply()
		w.res = err == nil && (v.ServerMajor > 1 || v.ServerMinor >= 2)
	}
	_, w.shape = c.extension("SHAPE")
	if w.ears, err = dialX11(name); err != nil {
		c.close()
		return nil, err
	}
	ears := w.ears.Conn
	if w.mine, err = xproto.NewWindowId(ears); err == nil {
		err = xproto.CreateWindowChecked(ears, 0, w.mine, c.root, -1, -1, 1, 1, 0, xproto.WindowClassInputOnly, 0,
			xproto.CwOverrideRedirect|xproto.CwEventMask, []uint32{1, xproto.EventMaskPropertyChange}).Check()
	}
	if err == nil {
		err = xproto.ChangeWindowAttributesChecked(ears, c.root, xproto.CwEventMask, []uint32{xproto.EventMaskSubstructureNotify}).Check()
	}
	if err != nil {
		w.ears.close()
		c.close()
		return nil, err
	}
	w.ears.heard = true
	go w.ears.each(w.event)
	return w, nil
}

func (x *x11Windows) close() {
	x.ears.close()
	x.xconn.close()
	<-x.ears.gone
}

func (x *x11Windows) list(ctx context.Context, since time.Time) (stack, over space.Stack, err error) {
	both, err := ask(ctx, x.xconn, func() (both [2]space.Stack, err error) {
		if both[0], both[1], err = x.read(); err != nil {
			return both, err
		}
		// Every move until now has been heard of when this returns.
		if _, err := x.now(ctx); err != nil {
			return both, err
		}
		x.trail.unpainted(both[0], since)
		both[1] = append(both[1], x.trail.old(since)...)
		return both, nil
	})
	return both[0], both[1], err
}

// seen is one child of the root window, or a client that is not on the screen.
type seen struct {
	top, client xproto.Window
	frame       image.Rectangle
	popup       bool
	border      int
	clear       bool              // something may show through
	through     bool              // no click reaches it
	clicks      []image.Rectangle // as in space.Window
	off         bool              // not on the screen
}

func (x *x11Windows) read() (stack, over space.Stack, err error) {
	tree, err := xproto.QueryTree(x.Conn, x.root).Reply()
	if err != nil {
		return nil, nil, err
	}
	screen, err := xproto.GetGeometry(x.Conn, xproto.Drawable(x.root)).Reply()
	if err != nil {
		return nil, nil, err
	}
	whole := image.Rect(0, 0, int(screen.Width), int(screen.Height))
	var all []*seen
	for _, s := range x.look(tree.Children) {
		if !s.frame.Intersect(whole).Empty() {
			all = append(all, s)
		}
	}
	slices.Reverse(all) // the server's list begins at the bottom
	managed := x.clients(all)
	for _, s := range all {
		if s.client == 0 {
			s.client = x.inside(s.top)
		}
	}
	for _, c := range managed {
		if !slices.ContainsFunc(all, func(s *seen) bool { return s.client == c }) {
			all = append(all, x.away(c))
		}
	}
	// A compositing manager paints later than windows are mapped and moved, and
	// may show what is below with any effect of its own.
	manager, err := xproto.GetSelectionOwner(x.Conn, x.atom("_NET_WM_CM_S"+strconv.Itoa(x.DefaultScreen))).Reply()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		s.clear = s.clear || manager.Owner != 0
	}
	stack, over = x.describe(all, nil)
	return stack, over, nil
}

// look is what is shown of the windows, in their order.
func (x *x11Windows) look(ids []xproto.Window) []*seen {
	type asked struct {
		attributes xproto.GetWindowAttributesCookie
		geometry   xproto.GetGeometryCookie
	}
	asks := make([]asked, len(ids))
	for i, id := range ids {
		asks[i] = asked{xproto.GetWindowAttributes(x.Conn, id), xproto.GetGeometry(x.Conn, xproto.Drawable(id))}
	}
	var out []*seen
	for i, id := range ids {
		a, err := asks[i].attributes.Reply()
		g, err2 := asks[i].geometry.Reply()
		if err != nil || err2 != nil || a.MapState != xproto.MapStateViewable || a.Class != xproto.WindowClassInputOutput {
			continue // gone, or nothing of it shows
		}
		b := 2 * int(g.BorderWidth)
		out = append(out, &seen{top: id, frame: image.Rect(0, 0, int(g.Width)+b, int(g.Height)+b).Add(image.Pt(int(g.X), int(g.Y))), popup: a.OverrideRedirect, clear: g.Depth == 32, border: int(g.BorderWidth)})
	}
	if !x.shape {
		return out
	}
	extents := make([]shape.QueryExtentsCookie, len(out))
	inputs, bounds := make([]shape.GetRectanglesCookie, len(out)), make([]shape.GetRectanglesCookie, len(out))
	for i, s := range out {
		extents[i], inputs[i] = shape.QueryExtents(x.Conn, s.top), shape.GetRectangles(x.Conn, s.top, shape.SkInput)
		bounds[i] = shape.GetRectangles(x.Conn, s.top, shape.SkBounding)
	}
	for i, s := range out {
		if e, err := extents[i].Reply(); err == nil && e.BoundingShaped {
			s.clear = true
		}
		input, err := inputs[i].Reply()
		bound, err2 := bounds[i].Reply()
		if err != nil || err2 != nil {
			continue
		}
		s.through = len(input.Rectangles) == 0
		s.clicks = clicks(s.frame, s.border, input.Rectangles, bound.Rectangles)
	}
	return out
}

// clicks is where in frame both shapes of a window are; nil: everywhere.
func clicks(frame image.Rectangle, border int, input, bound []xproto.Rectangle) []image.Rectangle {
	out := []image.Rectangle{}
	if len(input)*len(bound) > 1<<16 {
		return out // odd enough: nowhere for certain
	}
	inside := frame.Min.Add(image.Pt(border, border)) // which they count from
	rect := func(r xproto.Rectangle) image.Rectangle {
		return image.Rect(0, 0, int(r.Width), int(r.Height)).Add(image.Pt(int(r.X), int(r.Y))).Add(inside)
	}
	for _, i := range input {
		for _, b := range bound {
			if r := rect(i).Intersect(rect(b)).Intersect(frame); !r.Empty() {
				out = append(out, r)
			}
		}
	}
	if len(out) == 1 && out[0] == frame {
		return nil
	}
	return out
}

// clients finds the children of the root window that the window manager's
// clients lie in, and returns all clients.
func (x *x11Windows) clients(all []*seen) []xproto.Window {
	var managed []xproto.Window
	for _, name := range []string{"_NET_CLIENT_LIST_STACKING", "_NET_CLIENT_LIST"} {
		for _, c := range x.cardinals(x.root, name) {
			if w := xproto.Window(c); !slices.Contains(managed, w) {
				managed = append(managed, w)
			}
		}
	}
	at := slices.Clone(managed)
	for range 5 { // frames within frames
		asks := map[int]xproto.QueryTreeCookie{}
		for i, w := range at {
			if w != 0 {
				asks[i] = xproto.QueryTree(x.Conn, w)
			}
		}
		if len(asks) == 0 {
			break
		}
		for i, ask := range asks {
			r, err := ask.Reply()
			switch {
			case err != nil:
				at[i] = 0
			case r.Parent == x.root:
				for _, s := range all {
					if s.top == at[i] {
						s.client, s.popup = managed[i], false
					}
				}
				at[i] = 0
			default:
				at[i] = r.Parent
			}
		}
	}
	return managed
}

// inside is the window in top that says which program it is of: top itself, or
// what a window manager has put into it and not told of yet.
func (x *x11Windows) inside(top xproto.Window) xproto.Window {
	class := x.atom("WM_CLASS")
	level := []xproto.Window{top}
	for range 4 {
		var next []xproto.Window
		props := make([]xproto.GetPropertyCookie, len(level))
		trees := make([]xproto.QueryTreeCookie, len(level))
		for i, w := range level {
			props[i], trees[i] = xproto.GetProperty(x.Conn, false, w, class, xproto.AtomString, 0, 1), xproto.QueryTree(x.Conn, w)
		}
		found := xproto.Window(0)
		for i, w := range level {
			if r, err := props[i].Reply(); err == nil && r.ValueLen > 0 && found == 0 {
				found = w
			}
			if r, err := trees[i].Reply(); err == nil && len(next) < 64 {
				next = append(next, r.Children...)
			}
		}
		if found != 0 {
			return found
		}
		level = next
	}
	return top
}

// away is a client that is minimised, or on another workspace.
func (x *x11Windows) away(c xproto.Window) *seen {
	s := &seen{top: c, client: c, off: true}
	g, err := xproto.GetGeometry(x.Conn, xproto.Drawable(c)).Reply()
	if err != nil {
		return s
	}
	if at, err := xproto.TranslateCoordinates(x.Conn, c, x.root, 0, 0).Reply(); err == nil {
		s.frame = image.Rect(0, 0, int(g.Width), int(g.Height)).Add(image.Pt(int(at.DstX), int(at.DstY)))
	}
	return s
}

// described are the properties that say what a window is.
var described = []string{"WM_CLASS", "_NET_WM_NAME", "WM_NAME", "_NET_WM_PID", "_NET_WM_STATE", "_NET_WM_WINDOW_OPACITY", "WM_TRANSIENT_FOR"}

// describe says what all are; known are others that they may belong to.
func (x *x11Windows) describe(all []*seen, known space.Stack) (stack, over space.Stack) {
	hidden, full := x.atom("_NET_WM_STATE_HIDDEN"), x.atom("_NET_WM_STATE_FULLSCREEN")
	asks := make([][]xproto.GetPropertyCookie, len(all))
	frames := make([]xproto.GetPropertyCookie, len(all))
	for i, s := range all {
		for _, name := range described {
			asks[i] = append(asks[i], xproto.GetProperty(x.Conn, false, s.client, x.atom(name), xproto.GetPropertyTypeAny, 0, 1<<16))
		}
		frames[i] = xproto.GetProperty(x.Conn, false, s.top, x.atom("_NET_WM_WINDOW_OPACITY"), xproto.GetPropertyTypeAny, 0, 1)
	}
	pids := x.pids(all)
	focused := x.focused()
	procs := map[int]process{}
	var found space.Stack
	var of []*seen // of found
	for i, s := range all {
		value := map[string][]byte{}
		gone := 0
		for j, name := range described {
			if r, err := asks[i][j].Reply(); err == nil {
				value[name] = r.Value
			} else {
				gone++
			}
		}
		opacity, err := frames[i].Reply()
		if err == nil && len(opacity.Value) == 4 && xgb.Get32(opacity.Value) != ^uint32(0) {
			s.clear = true
		}
		if v := value["_NET_WM_WINDOW_OPACITY"]; len(v) == 4 && xgb.Get32(v) != ^uint32(0) {
			s.clear = true
		}
		if gone > 0 && s.off {
			continue // the window manager has not noticed yet
		}
		w := space.Window{ID: uint64(s.client), PID: pids[uint32(s.client)&^x.mask], Frame: s.frame, Popup: s.popup, Seethrough: s.clear || gone > 0, Clicks: s.clicks, Minimized: s.off, Focused: s.client == focused}
		if v := value["_NET_WM_PID"]; w.PID == 0 && len(v) == 4 {
			w.PID = int(xgb.Get32(v))
		}
		class := bytes.Split(bytes.TrimRight(value["WM_CLASS"], "\x00"), []byte{0})
		w.Class = text(class[len(class)-1])
		w.Title = text(ends(value["_NET_WM_NAME"]))
		if w.Title == "" {
			w.Title = text(ends(value["WM_NAME"]))
		}
		for v := value["_NET_WM_STATE"]; len(v) >= 4; v = v[4:] {
			switch xproto.Atom(xgb.Get32(v)) {
			case hidden:
				w.Minimized = w.Minimized || s.off
			case full:
				w.Full = true
			}
		}
		if _, ok := procs[w.PID]; !ok {
			procs[w.PID] = look(w.PID)
		}
		w.App, w.Started = procs[w.PID].name, procs[w.PID].started
		if w.App == "" {
			w.App = w.Class
		}
		if v := value["WM_TRANSIENT_FOR"]; len(v) == 4 {
			w.Owner = uint64(xgb.Get32(v))
		}
		found, of = append(found, w), append(of, s)
	}
	found.Belong(slices.Concat(found, known))
	for i, w := range found {
		s := of[i]
		if !s.off {
			x.trail.at(s.top, w)
		}
		if s.through && !s.off {
			over = append(over, w)
		} else {
			stack = append(stack, w)
		}
	}
	return stack, over
}

// ends shortens a title that no person reads whole: its beginning, and its end,
// where browsers say that they are private.
func ends(b []byte) []byte {
	b = bytes.TrimRight(b, "\x00")
	if len(b) <= 4096 {
		return b
	}
	return slices.Concat(b[:3072], []byte("…"), b[len(b)-1000:])
}

// text is what may be shown of a property.
func text(b []byte) string {
	return strings.ToValidUTF8(strings.TrimRight(string(b), "\x00"), "\uFFFD")
}

// pids is the process of each client, by the client's part of an id, as the
// server knows it from the connection: a window can't say another.
func (x *x11Windows) pids(all []*seen) map[uint32]int {
	out := map[uint32]int{}
	if !x.res {
		return out
	}
	var specs []res.ClientIdSpec
	for _, s := range all {
		id := uint32(s.client) &^ x.mask
		if !slices.ContainsFunc(specs, func(o res.ClientIdSpec) bool { return o.Client&^x.mask == id }) {
			specs = append(specs, res.ClientIdSpec{Client: uint32(s.client), Mask: res.ClientIdMaskLocalClientPID})
		}
	}
	r, err := res.QueryClientIds(x.Conn, uint32(len(specs)), specs).Reply()
	if err != nil {
		return out
	}
	for _, v := range r.Ids {
		if v.Spec.Mask == res.ClientIdMaskLocalClientPID && len(v.Value) > 0 {
			out[v.Spec.Client&^x.mask] = int(v.Value[0])
		}
	}
	return out
}

func (x *x11Windows) focused() xproto.Window {
	if v := x.cardinals(x.root, "_NET_ACTIVE_WINDOW"); len(v) > 0 && v[0] != 0 {
		return xproto.Window(v[0])
	}
	r, err := xproto.GetInputFocus(x.Conn).Reply()
	if err != nil {
		return 0
	}
	return r.Focus
}

// now is the server's time, which it says with every change of a property; by
// then all events that came before have been heard. Its caller has the token.
func (x *x11Windows) now(ctx context.Context) (xproto.Timestamp, error) {
	select {
	case <-x.times: // one that nobody waited for
	default:
	}
	xproto.ChangeProperty(x.ears.Conn, xproto.PropModeAppend, x.mine, xproto.AtomWmName, xproto.AtomString, 8, 0, nil)
	select {
	case t := <-x.times:
		return t, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-x.ears.gone:
		return 0, errGone
	}
}

func (x *x11Windows) event(e xgb.Event) {
	box := func(x, y int16, w, h, border uint16) image.Rectangle {
		return image.Rect(0, 0, int(w)+2*int(border), int(h)+2*int(border)).Add(image.Pt(int(x), int(y)))
	}
	switch e := e.(type) {
	case xproto.PropertyNotifyEvent:
		select {
		case x.times <- e.Time:
		default:
		}
	case xproto.ConfigureNotifyEvent:
		x.trail.moved(e.Window, box(e.X, e.Y, e.Width, e.Height, e.BorderWidth))
	case xproto.UnmapNotifyEvent:
		x.trail.left(e.Window)
	case xproto.ReparentNotifyEvent:
		x.trail.left(e.Window)
		if e.Parent != x.root {
			x.trail.forget(e.Window)
		}
	case xproto.CirculateNotifyEvent:
		x.trail.came(e.Window)
	case xproto.DestroyNotifyEvent:
		x.trail.left(e.Window)
		x.trail.forget(e.Window)
	case xproto.MapNotifyEvent:
		if x.trail.came(e.Window) {
			return
		}
		// It may be gone again before the windows are listed.
		defer func() { _ = recover() }() // of xgb, on a reply that is cut short
		for _, s := range x.look([]xproto.Window{e.Window}) {
			s.client = x.inside(s.top)
			x.describe([]*seen{s}, x.trail.all())
		}
	}
}
