package display

import (
	"context"
	"slices"
	"time"

	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// focusWait is how long the window manager has to do what it is asked for.
const focusWait = 2 * time.Second

func (x *x11Windows) focus(ctx context.Context, w space.Window, raise bool) error {
	id := xproto.Window(w.ID)
	if err := x.do(ctx, func() error { return x.activate(ctx, id, w.Minimized, raise) }); err != nil {
		return err
	}
	for end := time.Now().Add(focusWait); ; {
		has, err := ask(ctx, x.xconn, func() (bool, error) {
			a, err := xproto.GetWindowAttributes(x.Conn, id).Reply()
			if err != nil {
				return false, stale()
			}
			return a.MapState == xproto.MapStateViewable && (x.hasFocus(id) || x.focused() == id), nil
		})
		if err != nil || has {
			return err
		}
		if time.Now().After(end) {
			return wire.Errorf(wire.CodeNotSupported, "The desktop did not bring that window to the front: it may be blocked by a dialog, or take no keyboard.")
		}
		select {
		case <-time.After(15 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hasFocus: the keyboard is in id, or in a window within it.
func (x *x11Windows) hasFocus(id xproto.Window) bool {
	f, err := xproto.GetInputFocus(x.Conn).Reply()
	if err != nil {
		return false
	}
	for at := f.Focus; at > 1 && at != x.root; {
		if at == id {
			return true
		}
		t, err := xproto.QueryTree(x.Conn, at).Reply()
		if err != nil {
			return false
		}
		at = t.Parent
	}
	return false
}

func (x *x11Windows) activate(ctx context.Context, id xproto.Window, minimized, raise bool) error {
	now, err := x.now(ctx)
	if err != nil {
		return err
	}
	managed := slices.Contains(x.cardinals(x.root, "_NET_SUPPORTED"), uint32(x.atom("_NET_ACTIVE_WINDOW"))) && len(x.cardinals(x.root, "_NET_SUPPORTING_WM_CHECK")) > 0
	if managed && (raise || minimized) {
		const pager = 2 // not a program that pushes itself to the front
		return x.send(x.root, id, "_NET_ACTIVE_WINDOW", xproto.EventMaskSubstructureRedirect|xproto.EventMaskSubstructureNotify, pager, uint32(now), 0)
	}
	if !managed {
		xproto.MapWindow(x.Conn, id)
		if raise {
			xproto.ConfigureWindow(x.Conn, id, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
		}
	}
	for _, p := range x.cardinals(id, "WM_PROTOCOLS") {
		if xproto.Atom(p) == x.atom("WM_TAKE_FOCUS") {
			if err := x.send(id, id, "WM_PROTOCOLS", 0, p, uint32(now)); err != nil {
				return err
			}
		}
	}
	if hints := x.cardinals(id, "WM_HINTS"); len(hints) > 1 && hints[0]&1 != 0 && hints[1] == 0 {
		return nil // it takes the keyboard itself when told to
	}
	return xproto.SetInputFocusChecked(x.Conn, xproto.InputFocusParent, id, now).Check()
}

func (x *x11Windows) send(to, about xproto.Window, typ string, mask uint32, data ...uint32) error {
	data = append(data, make([]uint32, 5-len(data))...)
	e := xproto.ClientMessageEvent{Format: 32, Window: about, Type: x.atom(typ), Data: xproto.ClientMessageDataUnionData32New(data)}
	return xproto.SendEventChecked(x.Conn, false, to, mask, string(e.Bytes())).Check()
}
