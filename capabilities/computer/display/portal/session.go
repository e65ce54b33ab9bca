//go:build linux

package portal

import (
	"context"
	"fmt"
	"image"
	"os"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Devices of a session, as bits.
const (
	Keyboard uint32 = 1
	Pointer  uint32 = 2
)

// How the pointer is in a stream: bits of AvailableCursorModes.
const (
	cursorHidden   uint32 = 1
	cursorEmbedded uint32 = 2
)

// untilRevoked is the persist_mode of which the person is asked once.
const untilRevoked uint32 = 2

// Stream is one shared screen.
type Stream struct {
	Node uint32 // its PipeWire node, which input is relative to
	// Position and Size are in points; Placed tells that the desktop said where
	// it lies.
	Position, Size image.Point
	Placed         bool
}

// Session is screens that the desktop shares, with mouse and keyboard where it
// has the RemoteDesktop portal.
type Session struct {
	p    *Portal
	path dbus.ObjectPath
	// Devices may be used; 0 where there are pictures only.
	Devices uint32
	Streams []Stream
	// Token starts the next session without asking; "" where the desktop, or the
	// person, does not want that. It counts once: the next session has another.
	Token string

	ended     chan struct{}
	endedOnce sync.Once
}

// Share has the desktop share all screens, and mouse and keyboard where input
// is set. It shows its own dialog unless token is one that it still takes, so
// this may take as long as ctx lets it. ErrMissing where there is no such
// portal, ErrDeclined where the person said no.
func (p *Portal) Share(ctx context.Context, input bool, token string) (*Session, error) {
	main := ScreenCast
	if input {
		main = RemoteDesktop
	}
	if p.Version(main) == 0 {
		return nil, ErrMissing
	}
	results, err := p.request(ctx, main+".CreateSession", map[string]any{"session_handle_token": newToken()})
	if err != nil {
		return nil, err
	}
	s := &Session{p: p, path: sessionOf(results), ended: make(chan struct{})}
	if !s.path.IsValid() {
		return nil, fmt.Errorf("%w: it named no session", ErrRefused)
	}
	p.mu.Lock()
	p.closed[s.path] = s.end
	p.mu.Unlock()
	if err := s.start(ctx, main, input, token); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// sessionOf is the session that was created. The specification has a string
// where it means a path.
func sessionOf(results map[string]dbus.Variant) dbus.ObjectPath {
	switch handle := results["session_handle"].Value().(type) {
	case string:
		return dbus.ObjectPath(handle)
	case dbus.ObjectPath:
		return handle
	}
	return ""
}

func (s *Session) start(ctx context.Context, main string, input bool, token string) error {
	p := s.p
	keep := map[string]any{"persist_mode": untilRevoked}
	if token != "" {
		keep["restore_token"] = token
	}
	sources := map[string]any{"types": uint32(1), "multiple": true}
	if modes := p.property(ctx, ScreenCast, "AvailableCursorModes"); modes&cursorHidden != 0 {
		sources["cursor_mode"] = cursorHidden // it is drawn into pictures here, where it is asked for
	} else if modes&cursorEmbedded != 0 {
		sources["cursor_mode"] = cursorEmbedded
	}
	if input {
		devices := map[string]any{"types": Keyboard | Pointer}
		if p.Version(RemoteDesktop) >= 2 {
			merge(devices, keep)
		}
		if _, err := p.request(ctx, RemoteDesktop+".SelectDevices", devices, s.path); err != nil {
			return err
		}
	} else if p.Version(ScreenCast) >= 4 {
		merge(sources, keep)
	}
	if p.Version(ScreenCast) > 0 {
		if _, err := p.request(ctx, ScreenCast+".SelectSources", sources, s.path); err != nil {
			return err
		}
	}
	results, err := p.request(ctx, main+".Start", map[string]any{}, s.path, "")
	if err != nil {
		return err
	}
	s.Token, _ = results["restore_token"].Value().(string)
	s.Devices, _ = results["devices"].Value().(uint32)
	s.Streams, err = streams(results["streams"])
	return err
}

func merge(into, from map[string]any) {
	for k, v := range from {
		into[k] = v
	}
}

// streams reads the a(ua{sv}) of Start.
func streams(v dbus.Variant) ([]Stream, error) {
	if v.Value() == nil {
		return nil, nil
	}
	var raw []struct {
		Node  uint32
		Props map[string]dbus.Variant
	}
	if err := v.Store(&raw); err != nil {
		return nil, fmt.Errorf("read the shared screens: %w", err)
	}
	var out []Stream
	for _, r := range raw {
		s := Stream{Node: r.Node}
		s.Position, s.Placed = pair(r.Props["position"])
		s.Size, _ = pair(r.Props["size"])
		out = append(out, s)
	}
	return out, nil
}

func pair(v dbus.Variant) (image.Point, bool) {
	if v.Value() == nil {
		return image.Point{}, false
	}
	var xy struct{ X, Y int32 }
	if v.Store(&xy) != nil {
		return image.Point{}, false
	}
	return image.Pt(int(xy.X), int(xy.Y)), true
}

// property reads a uint32; 0 where there is none.
func (p *Portal) property(ctx context.Context, iface, name string) uint32 {
	var v dbus.Variant
	if p.desktop.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, iface, name).Store(&v) != nil {
		return 0
	}
	n, _ := v.Value().(uint32)
	return n
}

// Ended is closed when the session ends, by whom ever.
func (s *Session) Ended() <-chan struct{} { return s.ended }

func (s *Session) end() { s.endedOnce.Do(func() { close(s.ended) }) }

// Close ends the session; the desktop releases what it held down.
func (s *Session) Close() {
	s.p.mu.Lock()
	delete(s.p.closed, s.path)
	s.p.mu.Unlock()
	s.p.conn.Object(busName, s.path).Go(sessionIface+".Close", dbus.FlagNoReplyExpected, nil)
	s.end()
}

// PipeWire opens a connection to the frames of the shared screens, which the
// caller closes.
func (s *Session) PipeWire(ctx context.Context) (*os.File, error) {
	var fd dbus.UnixFD
	if err := s.p.desktop.CallWithContext(ctx, ScreenCast+".OpenPipeWireRemote", 0, s.path, map[string]dbus.Variant{}).Store(&fd); err != nil {
		return nil, failed("OpenPipeWireRemote", err)
	}
	return os.NewFile(uintptr(fd), "pipewire"), nil
}

// Buttons of Button, as the kernel counts them.
const (
	Left   int32 = 0x110
	Right  int32 = 0x111
	Middle int32 = 0x112
)

// Axes of Scroll.
const (
	Vertical   uint32 = 0
	Horizontal uint32 = 1
)

// MoveTo puts the pointer at x, y of stream, in its points.
func (s *Session) MoveTo(ctx context.Context, stream uint32, x, y float64) error {
	return s.notify(ctx, "NotifyPointerMotionAbsolute", stream, x, y)
}

// Button presses or lets go of a button where the pointer is.
func (s *Session) Button(ctx context.Context, button int32, down bool) error {
	return s.notify(ctx, "NotifyPointerButton", button, state(down))
}

// Scroll turns the wheel by steps, down or right where positive.
func (s *Session) Scroll(ctx context.Context, axis uint32, steps int32) error {
	return s.notify(ctx, "NotifyPointerAxisDiscrete", axis, steps)
}

// Key presses or lets go of the key with an X keysym.
func (s *Session) Key(ctx context.Context, keysym int32, down bool) error {
	return s.notify(ctx, "NotifyKeyboardKeysym", keysym, state(down))
}

func state(down bool) uint32 {
	if down {
		return 1
	}
	return 0
}

// notify sends one event, and waits until the desktop has it.
func (s *Session) notify(ctx context.Context, method string, args ...any) error {
	select {
	case <-s.ended:
		return ErrEnded
	default:
	}
	all := append([]any{s.path, map[string]dbus.Variant{}}, args...)
	if err := s.p.desktop.CallWithContext(ctx, RemoteDesktop+"."+method, 0, all...).Err; err != nil {
		return failed(method, err)
	}
	return nil
}
