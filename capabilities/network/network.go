// Package network is steps 3 and 5 for the connections of contained commands:
// it says where a connection would lead, and makes it. A container has no
// network of its own; the shell executor's proxy asks for each connection, and
// this one connects to exactly the addresses that it has judged.
package network

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Resolver looks a name up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options build a Network. The zero value is right.
type Options struct {
	Resolver Resolver // nil: the system's
	// Interfaces are this computer's own addresses with their networks; nil asks
	// the system each time.
	Interfaces func() ([]netip.Prefix, error)
	// Dial makes a TCP connection to a judged address; nil: the system.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Proxy is the proxy through which this computer itself reaches an address
	// on the internet: its name without a log-in, and how to connect through it;
	// "" for none. nil: there is none.
	Proxy func(host string, port int) (name string, dial func(ctx context.Context) (net.Conn, error))
	Log   *slog.Logger // nil: slog.Default
}

// Network is the executor of connections. It is safe for concurrent use. The
// end of a Run's context, of its session, or of the Network closes both ends.
type Network struct {
	o Options

	mu     sync.Mutex
	closed bool                                             // guarded by mu
	runs   map[string]map[*context.CancelCauseFunc]struct{} // by session; guarded by mu
	wg     sync.WaitGroup
}

var _ capabilities.Capability = (*Network)(nil)

// New makes a Network.
func New(o Options) *Network {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Interfaces == nil {
		o.Interfaces = interfaces
	}
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
		}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Network{o: o, runs: map[string]map[*context.CancelCauseFunc]struct{}{}}
}

func (*Network) Name() string { return "network" }

func (*Network) Types() []wire.Type { return []wire.Type{capabilities.TypeConnect} }

// payload is what decides what runs. What kind of place it is stands in the
// fingerprint: the same name may lead elsewhere by the time it is connected to,
// and is then asked anew.
type payload struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func connectOf(c capabilities.Call) (*capabilities.Connect, error) {
	p, ok := c.Payload.(*capabilities.Connect)
	if !ok {
		return nil, wire.Errorf(wire.CodeNotSupported, "The network does not take %s.", c.Type)
	}
	return p, nil
}

// Describe looks the name up; ctx bounds it.
func (n *Network) Describe(ctx context.Context, call capabilities.Call) (capabilities.Description, error) {
	c, err := connectOf(call)
	if err != nil {
		return capabilities.Description{}, err
	}
	s, err := n.look(ctx, c)
	if err != nil {
		return capabilities.Description{}, err
	}
	return s.describe(c), nil
}

// look finds out where a connection would lead.
func (n *Network) look(ctx context.Context, c *capabilities.Connect) (*spot, error) {
	h, err := parse(c.Host)
	if err != nil {
		return nil, err
	}
	s := &spot{host: h, port: c.Port, place: internet}
	if n.o.Proxy != nil {
		s.through, _ = n.o.Proxy(h.name, c.Port)
	}
	own, err := n.o.Interfaces()
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeInternal, "This computer's own addresses could not be read, so nothing was connected.")
	}
	if h.addr.IsValid() {
		s.addrs = []netip.Addr{h.addr}
	} else if s.addrs, err = n.o.Resolver.LookupNetIP(ctx, "ip", h.name); err != nil || len(s.addrs) == 0 {
		s.addrs = nil
		if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded {
			return nil, context.Cause(ctx)
		}
		if s.through == "" || near(h.name) {
			return nil, wire.Wrap(err, wire.CodePathNotFound, "The name %s could not be looked up: either there is none, or this computer is not connected.", h.name)
		}
	}
	const most = 32
	s.addrs = s.addrs[:min(len(s.addrs), most)]
	for i, a := range s.addrs {
		s.addrs[i] = a.Unmap()
		p := placeOf(a, own)
		s.places = append(s.places, p)
		s.place = graver(s.place, p)
		s.service = s.service || in(a.WithZone("").Unmap(), metadata)
	}
	if s.place == nowhere {
		return nil, wire.Errorf(wire.CodeInvalid, "%s stands for no single computer, so there is nothing to connect to.", h.name)
	}
	if s.place != internet {
		s.through = "" // it is near: the proxy is for what is far
	}
	return s, nil
}

// near tells whether a name is never one of the internet's, so that it is not
// for a proxy to look up.
func near(name string) bool {
	if !strings.Contains(name, ".") {
		return true
	}
	for _, end := range []string{".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".corp", ".private", ".intranet"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// Run connects, and pipes until both ends have closed.
func (n *Network) Run(ctx context.Context, call capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
	c, err := connectOf(call)
	if err != nil {
		return capabilities.Result{}, err
	}
	ctx, leave, err := n.enter(ctx, call.Session.ID)
	if err != nil {
		return capabilities.Result{}, err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	s, err := n.look(within, c)
	if err != nil {
		return capabilities.Result{}, ended(ctx, err)
	}
	if err := g.Check(consent.DigestOf(payload{s.host.name, s.port}), string(s.place)); err != nil {
		return capabilities.Result{}, err
	}
	remote, err := n.dial(within, s)
	if err != nil {
		return capabilities.Result{}, ended(ctx, err)
	}
	cancel()
	return n.pipe(ctx, c, remote)
}

// ended replaces err where ctx ended from outside.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// enter counts a run in, so that the end of its session ends it.
func (n *Network) enter(ctx context.Context, session string) (context.Context, func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, nil, wire.Errorf(wire.CodeStopped, "This computer is shutting down.")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	key := &cancel
	if n.runs[session] == nil {
		n.runs[session] = map[*context.CancelCauseFunc]struct{}{}
	}
	n.runs[session][key] = struct{}{}
	n.wg.Add(1)
	return ctx, func() {
		n.mu.Lock()
		delete(n.runs[session], key)
		if len(n.runs[session]) == 0 {
			delete(n.runs, session)
		}
		n.mu.Unlock()
		cancel(nil)
		n.wg.Done()
	}, nil
}

// Running is 0: each connection is a request.
func (*Network) Running(string) int { return 0 }

func errStopped() error {
	return wire.Errorf(wire.CodeStopped, "The connection was closed on this computer, or its session ended.")
}

// EndSession closes the session's connections and waits for it.
func (n *Network) EndSession(ctx context.Context, session string) error {
	n.mu.Lock()
	for cancel := range n.runs[session] {
		(*cancel)(errStopped())
	}
	n.mu.Unlock()
	for {
		n.mu.Lock()
		left := len(n.runs[session])
		n.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return wire.Wrap(ctx.Err(), wire.CodeInternal, "A connection could not be closed in time.")
		case <-time.After(time.Millisecond):
		}
	}
}

// Close closes every connection and waits for it.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	for _, runs := range n.runs {
		for cancel := range runs {
			(*cancel)(errStopped())
		}
	}
	n.mu.Unlock()
	n.wg.Wait()
	return nil
}

// connectWithin bounds the look-up and the connecting together.
const connectWithin = 30 * time.Second

// dial connects to the addresses that were judged and to no other: the next
// one begins when one has failed, or has taken a moment.
func (n *Network) dial(ctx context.Context, s *spot) (net.Conn, error) {
	if s.through != "" {
		_, dial := n.o.Proxy(s.host.name, s.port)
		conn, err := dial(ctx)
		if err != nil {
			return nil, wire.Wrap(err, wire.CodeOffline, "There is no connection to %s through this computer's proxy %s.", s.host.name, s.through)
		}
		return conn, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	type tried struct {
		conn net.Conn
		err  error
	}
	results := make(chan tried)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	begin := func(a netip.Addr) {
		wg.Go(func() {
			conn, err := n.o.Dial(ctx, netip.AddrPortFrom(a, uint16(s.port)))
			select {
			case results <- tried{conn, err}:
			case <-ctx.Done():
				if conn != nil {
					conn.Close()
				}
			}
		})
	}
	todo, pending := slices.Clone(s.addrs), 0
	next := time.NewTimer(0)
	defer next.Stop()
	var last error
	for len(todo) > 0 || pending > 0 {
		select {
		case <-next.C:
			if len(todo) > 0 {
				begin(todo[0])
				todo = todo[1:]
				pending++
				next.Reset(300 * time.Millisecond)
			}
		case r := <-results:
			pending--
			if r.err == nil {
				return r.conn, nil
			}
			last = r.err
			next.Reset(0)
		case <-ctx.Done():
			last = ctx.Err()
			todo, pending = nil, 0
		}
	}
	if errors.Is(last, context.DeadlineExceeded) {
		return nil, wire.Wrap(last, wire.CodeOffline, "%s does not answer.", s.host.name)
	}
	return nil, wire.Wrap(last, wire.CodeOffline, "There is no connection to %s at port %d.", s.host.name, s.port)
}
