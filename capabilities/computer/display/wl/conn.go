//go:build linux

package wl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Errors that callers tell apart.
var (
	// ErrMissing: the compositor does not offer that to programs.
	ErrMissing = errors.New("this desktop does not offer that to programs")
	// ErrFailed: it refused one picture.
	ErrFailed = errors.New("the desktop gave no picture")
	errGone   = errors.New("the connection to the desktop is gone")
)

// patience bounds one answer of the compositor.
const patience = 5 * time.Second

// Conn is one connection to the compositor. Its methods may be called from many
// goroutines; each waits for the one before. It reads only while one of them
// runs, so nothing has to be stopped but by Close.
type Conn struct {
	sock *net.UnixConn
	gone atomic.Bool // broken is set

	mu      sync.Mutex // guards all below
	in      []byte
	fds     []int  // that came beside in, the oldest first
	last    uint32 // the newest object's id
	events  map[uint32]func(event)
	globals map[uint32]global // by the registry's name
	reg     uint32
	outputs map[uint32]*output // by the registry's name
	bound   map[string]uint32  // singletons by interface: the object's id
	broken  error

	pointer, keyboard uint32
	keys              map[uint32]uint32 // of the keyboard: which keysym is on which key
	started           time.Time
}

type global struct {
	iface   string
	version uint32
}

// event is one message of the compositor: its opcode and what follows.
type event struct {
	op   uint16
	data []byte
}

// Open connects to the compositor that WAYLAND_DISPLAY of env names; nil is
// os.Getenv.
func Open(ctx context.Context, env func(string) string) (*Conn, error) {
	if env == nil {
		env = os.Getenv
	}
	name := env("WAYLAND_DISPLAY")
	if name == "" {
		name = "wayland-0"
	}
	if !filepath.IsAbs(name) {
		dir := env("XDG_RUNTIME_DIR")
		if dir == "" {
			return nil, errors.New("XDG_RUNTIME_DIR is not set")
		}
		name = filepath.Join(dir, name)
	}
	var d net.Dialer
	sock, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		return nil, fmt.Errorf("connect to the desktop: %w", err)
	}
	c := &Conn{sock: sock.(*net.UnixConn), last: 1, events: map[uint32]func(event){}, globals: map[uint32]global{},
		outputs: map[uint32]*output{}, bound: map[string]uint32{}, started: time.Now()}
	c.events[1] = c.display
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reg = c.object(c.registry)
	err = c.do(ctx, func() error {
		if err := c.send(1, 1, nil, c.reg); err != nil {
			return err
		}
		return c.sync()
	})
	if err != nil {
		_ = sock.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection; the compositor releases what was held down. A call
// that waits for a compositor that hangs ends by it.
func (c *Conn) Close() error {
	err := c.sock.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fd := range c.fds {
		_ = unix.Close(fd)
	}
	c.fds = nil
	return err
}

// do runs fn, which talks, until ctx ends. What was broken off in the middle
// can't be taken up again.
func (c *Conn) do(ctx context.Context, fn func() error) error {
	if c.broken != nil {
		return c.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_ = c.sock.SetDeadline(time.Now().Add(patience))
	stop := context.AfterFunc(ctx, func() { _ = c.sock.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := fn()
	if err != nil && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrFailed) {
		c.broken = fmt.Errorf("%w: %w", errGone, err)
		c.gone.Store(true)
		_ = c.sock.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return c.broken
	}
	return err
}

// Broken tells that a new connection is needed. It does not wait for what is
// under way.
func (c *Conn) Broken() bool { return c.gone.Load() }

// object makes an id whose events fn hears; fn may be nil.
func (c *Conn) object(fn func(event)) uint32 {
	c.last++
	c.events[c.last] = fn
	return c.last
}

// send writes one request. Arguments are uint32, int32, fixed and string; fd is
// passed beside them.
func (c *Conn) send(object uint32, op uint16, fd *os.File, args ...any) error {
	b := make([]byte, 8, 64)
	for _, a := range args {
		switch a := a.(type) {
		case uint32:
			b = binary.NativeEndian.AppendUint32(b, a)
		case int32:
			b = binary.NativeEndian.AppendUint32(b, uint32(a))
		case fixed:
			b = binary.NativeEndian.AppendUint32(b, uint32(a))
		case string:
			b = binary.NativeEndian.AppendUint32(b, uint32(len(a)+1))
			b = append(b, a...)
			b = append(b, make([]byte, 4-len(a)%4)...) // its zero, and up to four
		default:
			panic(fmt.Sprintf("wl: %T is no argument", a))
		}
	}
	binary.NativeEndian.PutUint32(b, object)
	binary.NativeEndian.PutUint32(b[4:], uint32(len(b))<<16|uint32(op))
	var rights []byte
	if fd != nil {
		rights = unix.UnixRights(int(fd.Fd()))
	}
	n, _, err := c.sock.WriteMsgUnix(b, rights, nil)
	if err == nil && n < len(b) {
		_, err = c.sock.Write(b[n:])
	}
	return err
}

// fixed is a number with 8 binary places.
type fixed int32

// sync waits until everything that was sent has been done.
func (c *Conn) sync() error {
	done := false
	id := c.object(func(event) { done = true })
	if err := c.send(1, 0, nil, id); err != nil {
		return err
	}
	return c.until(func() bool { return done })
}

// until reads events until ok.
func (c *Conn) until(ok func() bool) error {
	buf := make([]byte, 4096)
	for {
		for c.broken == nil && !ok() {
			if len(c.in) < 8 {
				break
			}
			head := binary.NativeEndian.Uint32(c.in[4:])
			size := int(head >> 16)
			if size < 8 {
				return errors.New("a message is too short")
			}
			if len(c.in) < size {
				break
			}
			id, data := binary.NativeEndian.Uint32(c.in), c.in[8:size]
			if fn := c.events[id]; fn != nil {
				fn(event{op: uint16(head), data: data})
			}
			c.in = c.in[size:]
		}
		if c.broken != nil {
			return c.broken
		}
		if ok() {
			return nil
		}
		if err := c.read(buf); err != nil {
			return err
		}
	}
}

// read takes what has come, with the descriptors beside it.
func (c *Conn) read(buf []byte) error {
	rights := make([]byte, unix.CmsgSpace(4*28)) // as many as there may be at once
	n, r, _, _, err := c.sock.ReadMsgUnix(buf, rights)
	if err != nil {
		return err
	}
	if n == 0 {
		return io.EOF
	}
	c.in = append(c.in, buf[:n]...)
	parts, err := unix.ParseSocketControlMessage(rights[:r])
	if err != nil {
		return err
	}
	for _, p := range parts {
		fds, err := unix.ParseUnixRights(&p)
		if err != nil {
			return err
		}
		c.fds = append(c.fds, fds...)
	}
	return nil
}

// uint takes a number off e, text a string: zero and "" where it is too short.
func (e *event) uint() uint32 {
	if len(e.data) < 4 {
		return 0
	}
	n := binary.NativeEndian.Uint32(e.data)
	e.data = e.data[4:]
	return n
}

func (e *event) int() int { return int(int32(e.uint())) }

func (e *event) text() string {
	n := int(e.uint())
	padded := (n + 3) &^ 3
	if n < 1 || padded > len(e.data) {
		return ""
	}
	s := string(e.data[:n-1])
	e.data = e.data[padded:]
	return s
}

// display hears errors, after which the compositor hangs up, and which ids are
// free.
func (c *Conn) display(e event) {
	switch e.op {
	case 0:
		object, code := e.uint(), e.uint()
		c.broken = fmt.Errorf("the desktop reports an error: object %d, code %d: %q", object, code, e.text())
	case 1:
		delete(c.events, e.uint()) // ids are never used again, there are enough
	}
}

// registry hears what the compositor offers.
func (c *Conn) registry(e event) {
	name := e.uint()
	if e.op == 1 {
		delete(c.globals, name)
		delete(c.outputs, name)
		return
	}
	g := global{iface: e.text(), version: e.uint()}
	c.globals[name] = g
}

// bind makes an object of what is offered under name.
func (c *Conn) bind(name, version uint32, fn func(event)) (uint32, error) {
	g := c.globals[name]
	id := c.object(fn)
	return id, c.send(c.reg, 0, nil, name, g.iface, min(version, g.version), id)
}

// single is the one object of an interface, made when it is first needed.
func (c *Conn) single(iface string, version uint32) (uint32, error) {
	if id, ok := c.bound[iface]; ok {
		return id, nil
	}
	for name, g := range c.globals {
		if g.iface == iface {
			id, err := c.bind(name, version, nil)
			if err == nil {
				c.bound[iface] = id
			}
			return id, err
		}
	}
	return 0, fmt.Errorf("%w: %s", ErrMissing, iface)
}

// Offers tells whether the compositor has an interface.
func (c *Conn) Offers(iface string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.globals {
		if g.iface == iface {
			return true
		}
	}
	return false
}
