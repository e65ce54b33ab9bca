package display

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// openX11 makes the parts of an X11 display, each with its own connection.
func openX11(o Options, name string) (*parts, error) {
	p := &parts{system: "x11", why: map[string]string{}}
	pics, err := newX11Pictures(name)
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeNotSupported, "Local PC Executor can't reach the screen %s of this computer.", name)
	}
	p.pictures = pics
	if p.windows, err = newX11Windows(name); err != nil {
		pics.close()
		return nil, err
	}
	p.clear = time.Now().Add(trailFades)
	if p.clipboard, err = newX11Clipboard(name); err != nil {
		o.Log.Warn("No clipboard", "err", err)
		p.why[hands.AbilityClipboard] = "The clipboard of this display can't be reached."
	}
	if p.frame, err = newX11Frame(name); err != nil {
		o.Log.Warn("No frame on the screens", "err", err)
	}
	p.newInput = func(a around) (input, error) { return newX11Input(name, a) }
	return p, nil
}

// xconn is a connection to the X server that asks it through token, one caller
// at a time, and gives up when the caller's context ends.
type xconn struct {
	*xgb.Conn
	screen *xproto.ScreenInfo
	root   xproto.Window
	token  chan struct{}
	heard  bool          // each reads its events
	gone   chan struct{} // closed when each has ended
	once   sync.Once

	atomsMu sync.Mutex
	atoms   map[string]xproto.Atom
	names   map[xproto.Atom]string // under token
}

// rawEvent is an event of an extension: 32 bytes that its reader takes apart.
type rawEvent []byte

func (e rawEvent) Bytes() []byte  { return e }
func (e rawEvent) String() string { return "an extension's event" }

// rawError is an error of an extension.
type rawError []byte

func (e rawError) SequenceId() uint16 { return xgb.Get16(e[2:]) }
func (e rawError) BadId() uint32      { return xgb.Get32(e[4:]) }
func (e rawError) Error() string      { return "the X server refused a request of an extension" }

// tables fills xgb's tables of events and errors once, before there is any
// connection that reads them: an extension's own Init would write them while
// other connections read, and the numbers differ from one server to another.
var tables = sync.OnceFunc(func() {
	xgb.Logger.SetOutput(io.Discard) // errors are returned too
	for n := 64; n < 128; n++ {
		xgb.NewEventFuncs[n] = func(b []byte) xgb.Event { return rawEvent(b) }
	}
	for n := 128; n < 256; n++ {
		xgb.NewErrorFuncs[n] = func(b []byte) xgb.Error { return rawError(b) }
	}
})

func dialX11(name string) (*xconn, error) {
	tables()
	c, err := xgb.NewConnDisplay(name)
	if err != nil {
		return nil, err
	}
	s := xproto.Setup(c).DefaultScreen(c)
	return &xconn{Conn: c, screen: s, root: s.Root, token: make(chan struct{}, 1), gone: make(chan struct{}),
		atoms: map[string]xproto.Atom{}, names: map[xproto.Atom]string{}}, nil
}

// extension makes an extension usable; first is the number of its first event.
func (c *xconn) extension(name string) (first byte, ok bool) {
	r, err := xproto.QueryExtension(c.Conn, uint16(len(name)), name).Reply()
	if err != nil || !r.Present {
		return 0, false
	}
	c.ExtLock.Lock()
	c.Extensions[name] = r.MajorOpcode
	c.ExtLock.Unlock()
	return r.FirstEvent, true
}

// ask runs fn, which talks to the server, and no other fn of c meanwhile. When
// ctx ends first it returns at once; fn then ends when the server answers or is
// gone, and what it found is nobody's.
func ask[T any](ctx context.Context, c *xconn, fn func() (T, error)) (found T, err error) {
	select {
	case c.token <- struct{}{}:
	case <-ctx.Done():
		return found, ctx.Err()
	}
	type answer struct {
		found T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-c.token }()
		defer func() {
			if recover() != nil { // xgb, on a reply that is cut short
				done <- answer{err: errGone}
			}
		}()
		c.drop()
		var a answer
		a.found, a.err = fn()
		done <- a
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return found, c.said(a.err)
		}
		return a.found, nil
	case <-ctx.Done():
		return found, ctx.Err()
	}
}

// do is ask where there is nothing to find.
func (c *xconn) do(ctx context.Context, fn func() error) error {
	_, err := ask(ctx, c, func() (struct{}, error) { return struct{}{}, fn() })
	return err
}

// drop throws away what the server sent unasked, such as that the keyboard has
// another layout: with too many of them kept, no answer is read any more.
func (c *xconn) drop() {
	for !c.heard {
		if e, err := c.PollForEvent(); e == nil && err == nil {
			return
		}
	}
}

var errGone = errors.New("the X server did not answer")

// said makes what xgb returns fit for a client.
func (c *xconn) said(err error) error {
	var known *wire.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return wire.Wrap(err, wire.CodeInternal, "The connection to this computer's screen failed.")
}

// each calls fn for every event, until the connection ends. Where events are
// asked for, heard is set and it is called, once.
func (c *xconn) each(fn func(xgb.Event)) {
	defer close(c.gone)
	for {
		e, err := c.WaitForEvent()
		if e == nil && err == nil {
			return
		}
		if e != nil {
			fn(e)
		}
	}
}

func (c *xconn) close() { c.once.Do(c.Conn.Close) }

func (c *xconn) atom(name string) xproto.Atom {
	c.atomsMu.Lock()
	a, ok := c.atoms[name]
	c.atomsMu.Unlock()
	if ok {
		return a
	}
	r, err := xproto.InternAtom(c.Conn, false, uint16(len(name)), name).Reply()
	if err != nil {
		return xproto.AtomNone
	}
	c.atomsMu.Lock()
	c.atoms[name] = r.Atom
	c.atomsMu.Unlock()
	return r.Atom
}

// property is the whole value of a property, at most max bytes.
func (c *xconn) property(w xproto.Window, name string, max int) (typ xproto.Atom, format byte, value []byte, err error) {
	r, err := xproto.GetProperty(c.Conn, false, w, c.atom(name), xproto.GetPropertyTypeAny, 0, uint32((max+3)/4)).Reply()
	if err != nil {
		return 0, 0, nil, err
	}
	return r.Type, r.Format, r.Value, nil
}

// cardinals is a property of 32-bit numbers.
func (c *xconn) cardinals(w xproto.Window, name string) []uint32 {
	_, format, v, err := c.property(w, name, 1<<20)
	if err != nil || format != 32 {
		return nil
	}
	out := make([]uint32, 0, len(v)/4)
	for ; len(v) >= 4; v = v[4:] {
		out = append(out, xgb.Get32(v))
	}
	return out
}
