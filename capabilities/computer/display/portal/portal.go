//go:build linux

package portal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Interfaces that Version knows.
const (
	Screenshot      = "org.freedesktop.portal.Screenshot"
	ScreenCast      = "org.freedesktop.portal.ScreenCast"
	RemoteDesktop   = "org.freedesktop.portal.RemoteDesktop"
	GlobalShortcuts = "org.freedesktop.portal.GlobalShortcuts"
)

const (
	busName      = "org.freedesktop.portal.Desktop"
	objectPath   = dbus.ObjectPath("/org/freedesktop/portal/desktop")
	requestIface = "org.freedesktop.portal.Request"
	sessionIface = "org.freedesktop.portal.Session"
)

// Errors that callers tell apart.
var (
	ErrNoBus    = errors.New("there is no session bus")
	ErrNoPortal = errors.New("xdg-desktop-portal does not answer")
	// ErrMissing: the desktop has no backend for that interface.
	ErrMissing = errors.New("this desktop has no such portal")
	// ErrDeclined: the person said no, ErrRefused: the system did.
	ErrDeclined = errors.New("it was declined in the system's own dialog")
	ErrRefused  = errors.New("the system refused")
	// ErrEnded: a session was ended by the system or the person.
	ErrEnded = errors.New("the system ended the sharing of the screen")
)

// Portal is a connection to the portals. Its methods may be called from many
// goroutines.
type Portal struct {
	conn     *dbus.Conn
	desktop  dbus.BusObject
	versions map[string]uint32
	done     chan struct{}

	mu      sync.Mutex // guards the three below
	answers map[dbus.ObjectPath]chan answer
	closed  map[dbus.ObjectPath]func()
	pressed map[dbus.ObjectPath]func()
}

// answer is what a request ends with.
type answer struct {
	code    uint32
	results map[string]dbus.Variant
}

// Open connects, and starts the portals where they don't run. Closing it ends
// everything that was begun with it. The session bus is that of env; nil is
// os.Getenv.
func Open(ctx context.Context, env func(string) string) (*Portal, error) {
	if env == nil {
		env = os.Getenv
	}
	address := env("DBUS_SESSION_BUS_ADDRESS")
	if address == "" { // a bus is never started: nobody else would be on it
		socket := filepath.Join(env("XDG_RUNTIME_DIR"), "bus")
		if _, err := os.Stat(socket); err != nil {
			return nil, ErrNoBus
		}
		address = "unix:path=" + socket
	}
	conn, err := dbus.Connect(address, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBus, err)
	}
	p := &Portal{conn: conn, desktop: conn.Object(busName, objectPath), versions: map[string]uint32{}, done: make(chan struct{}),
		answers: map[dbus.ObjectPath]chan answer{}, closed: map[dbus.ObjectPath]func(){}, pressed: map[dbus.ObjectPath]func(){}}
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	go p.dispatch(signals)
	for _, rule := range [][]dbus.MatchOption{
		{dbus.WithMatchInterface(requestIface)}, {dbus.WithMatchInterface(sessionIface)}, {dbus.WithMatchInterface(GlobalShortcuts)},
	} {
		if err := conn.AddMatchSignalContext(ctx, append(rule, dbus.WithMatchSender(busName))...); err != nil {
			_ = p.Close()
			return nil, fmt.Errorf("%w: %w", ErrNoBus, err)
		}
	}
	if err := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.StartServiceByName", 0, busName, uint32(0)).Err; err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoPortal, err)
	}
	for _, name := range []string{Screenshot, ScreenCast, RemoteDesktop, GlobalShortcuts} {
		var v dbus.Variant
		if err := p.desktop.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, name, "version").Store(&v); err == nil {
			if n, ok := v.Value().(uint32); ok {
				p.versions[name] = n
			}
		}
	}
	return p, nil
}

// Version is that of an interface; 0 where the desktop has none.
func (p *Portal) Version(name string) uint32 { return p.versions[name] }

// Close ends the connection, and with it every session.
func (p *Portal) Close() error {
	err := p.conn.Close()
	<-p.done
	return err
}

// dispatch hands signals to who waits for them; it ends with the connection.
func (p *Portal) dispatch(signals <-chan *dbus.Signal) {
	defer close(p.done)
	for s := range signals {
		switch s.Name {
		case requestIface + ".Response":
			var a answer
			if dbus.Store(s.Body, &a.code, &a.results) != nil {
				a.code = 2
			}
			p.mu.Lock()
			waits := p.answers[s.Path]
			delete(p.answers, s.Path)
			p.mu.Unlock()
			if waits != nil {
				waits <- a
			}
		case sessionIface + ".Closed":
			p.call(p.closed, s.Path)
		case GlobalShortcuts + ".Activated":
			if len(s.Body) > 0 {
				if session, ok := s.Body[0].(dbus.ObjectPath); ok {
					p.call(p.pressed, session)
				}
			}
		}
	}
	p.mu.Lock() // the connection is gone, and all sessions with it
	ended := p.closed
	p.closed = map[dbus.ObjectPath]func(){}
	p.mu.Unlock()
	for _, fn := range ended {
		fn()
	}
}

func (p *Portal) call(table map[dbus.ObjectPath]func(), path dbus.ObjectPath) {
	p.mu.Lock()
	fn := table[path]
	p.mu.Unlock()
	if fn != nil {
		fn()
	}
}

// request calls a method that answers through a Request object, and waits for
// the answer, which may be a person's. Where ctx ends first the request is
// closed, so that no dialog outlives it.
func (p *Portal) request(ctx context.Context, method string, options map[string]any, args ...any) (map[string]dbus.Variant, error) {
	token := newToken()
	options["handle_token"] = token
	sender := strings.ReplaceAll(strings.TrimPrefix(p.conn.Names()[0], ":"), ".", "_")
	path := dbus.ObjectPath("/org/freedesktop/portal/desktop/request/" + sender + "/" + token)
	waits := make(chan answer, 1)
	p.mu.Lock()
	p.answers[path] = waits
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.answers, path)
		p.mu.Unlock()
	}()
	var handle dbus.ObjectPath
	if err := p.desktop.CallWithContext(ctx, method, 0, append(args, variants(options))...).Store(&handle); err != nil {
		return nil, failed(method, err)
	}
	select {
	case a := <-waits:
		switch a.code {
		case 0:
			return a.results, nil
		case 1:
			return nil, ErrDeclined
		}
		return nil, ErrRefused
	case <-p.done:
		return nil, ErrNoPortal
	case <-ctx.Done():
		p.conn.Object(busName, handle).Go(requestIface+".Close", dbus.FlagNoReplyExpected, nil)
		return nil, context.Cause(ctx)
	}
}

// failed makes a plain error of what the bus says.
func failed(method string, err error) error {
	var e dbus.Error
	if errors.As(err, &e) {
		switch e.Name {
		case "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownInterface":
			return ErrMissing
		case "org.freedesktop.portal.Error.NotAllowed", "org.freedesktop.DBus.Error.AccessDenied":
			return fmt.Errorf("%w: %s: %w", ErrRefused, method, err)
		}
	}
	return fmt.Errorf("%s: %w", method, err)
}

func variants(options map[string]any) map[string]dbus.Variant {
	out := make(map[string]dbus.Variant, len(options))
	for k, v := range options {
		out[k] = dbus.MakeVariant(v)
	}
	return out
}

func newToken() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "localpc" + hex.EncodeToString(b[:])
}
