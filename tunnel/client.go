// Package tunnel is step 2: the machine's outbound end. It dials the hub, says
// HELLO, keeps the connection alive, comes back after a loss with backoff and
// full jitter, decodes and validates every frame, and hands each request to
// the handler it was given. It listens on nothing.
package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
)

// Handler runs one request and returns its terminal reply, or an error (which
// crosses as wire.ToWire makes it). It is called on a goroutine of its own;
// ctx ends when the hub cancels the request or the connection is lost, and
// then the cause is a *wire.Error. x is valid until Handler returns.
type Handler func(ctx context.Context, m wire.Message, x Exchange) (wire.Type, wire.Payload, error)

// Options build a Client. URL, Token, Hello, Status and Handler are needed.
type Options struct {
	// URL is the hub's base address, http(s) or ws(s); wire.Path is added.
	URL string
	// Token returns the bearer token for the next dial. An error wraps
	// ErrUnauthorized where there is none; a *wire.Error says in its sentence
	// why it can't be had now.
	Token func(ctx context.Context) (string, error)
	// Rejected is told that the hub did not accept a token (401, 4401). Nil
	// means that Token gives another one now: it is dialled once more. An error
	// that wraps ErrUnauthorized is the end; others are tried again later. A nil
	// function means that there is never another token.
	Rejected func(ctx context.Context, token string) error
	// Fresh waits until a token was renewed ahead of its end, and returns the
	// new one, which the connection then goes on with. Nil: tokens do not end.
	Fresh func(ctx context.Context, token string) (string, error)
	Hello func() wire.Hello
	// Status returns the current load; the client fills InFlight,
	// MaxConcurrent and UptimeSeconds.
	Status  func() wire.Status
	Handler Handler
	// OnState is told of every change, in order, on the client's goroutine.
	OnState func(State)
	// MaxConcurrent requests are handled at once; the next are refused as
	// overloaded. A process counts until it begins. 0 means 32.
	MaxConcurrent int
	// BackoffBase and BackoffMax are the first and the longest of the windows
	// in which there is one dial each, at a random moment. 0 means 1 s and 60 s.
	BackoffBase, BackoffMax time.Duration
	// Heartbeat is the time between pings, and PongTimeout the silence after
	// one that ends the connection. 0 means wire's.
	Heartbeat, PongTimeout time.Duration
	// Network is how the hub is reached; nil means the system's, as the
	// environment says.
	Network *Network
	Log     *slog.Logger
}

// Phase of the connection.
type Phase string

const (
	Connecting Phase = "connecting"
	Online     Phase = "online"
	Offline    Phase = "offline" // waiting before the next dial
)

// State is one change of the connection. Reason is one plain sentence, set
// when offline.
type State struct {
	Phase   Phase
	Reason  string
	HubName string    // online
	Account string    // online: whose machine it is there; "" where nobody logs in
	Retry   time.Time // offline: the next dial
}

// The ends that no reconnect can mend. Run returns them.
var (
	ErrReplaced     = errors.New("a newer connection of this machine took over")
	ErrRevoked      = errors.New("the hub revoked this machine")
	ErrUnauthorized = errors.New("the hub does not accept this machine's sign-in")
	ErrForbidden    = errors.New("the hub refuses this machine")
	ErrVersion      = errors.New("the hub speaks another version of the protocol")
)

// errRejected is a token that the hub did not accept; another one may do.
var errRejected = errors.New("the hub did not accept the token")

// errTurnedAway is a 403. Our hubs give none, but what stands before one may,
// for a while: it is final only after a token was refused, too.
var errTurnedAway = errors.New("dial: answered 403")

// Client is the machine's end. Make it with New, run it with Run.
type Client struct {
	o    Options
	url  string
	bulk string // where the second socket is dialled

	mu      sync.Mutex
	current *socket // greeted and serving, else nil; guarded by mu
}

var finals = []error{ErrReplaced, ErrRevoked, ErrUnauthorized, ErrForbidden, ErrVersion}

// ErrOffline means that there is no connection right now.
var ErrOffline = errors.New("not connected to the hub")

// Notify sends a message that answers nothing, such as SESSION_ENDED. It is
// safe for concurrent use; without a connection it returns ErrOffline, and
// nothing is kept for later.
func (c *Client) Notify(t wire.Type, p wire.Payload) error {
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s == nil {
		return ErrOffline
	}
	return s.write(wire.Message{Type: t, ID: uuid.NewString(), Payload: p})
}

// BulkJoined tells whether data has a second connection to the hub now.
func (c *Client) BulkJoined() bool {
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	return s != nil && s.bulk.Joined()
}

func (c *Client) setCurrent(s *socket) {
	c.mu.Lock()
	c.current = s
	c.mu.Unlock()
}

// SocketURL is where the socket at path of a hub is dialled, of the hub's base
// address: http, https, ws or wss.
func SocketURL(base, path string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is not the address of a hub: it must look like https://hub.example", base)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("%q is not the address of a hub: it must begin with https:// or http://", base)
	}
	u.Path, u.RawQuery, u.Fragment = strings.TrimSuffix(u.Path, "/")+path, "", ""
	return u.String(), nil
}

// New checks o and makes a Client.
func New(o Options) (*Client, error) {
	if o.Token == nil || o.Hello == nil || o.Status == nil || o.Handler == nil {
		return nil, errors.New("tunnel: token, hello, status and handler are needed")
	}
	address, err := SocketURL(o.URL, wire.Path)
	if err != nil {
		return nil, err
	}
	second, err := SocketURL(o.URL, wire.BulkPath)
	if err != nil {
		return nil, err
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 32
	}
	if o.BackoffBase == 0 {
		o.BackoffBase = time.Second
	}
	if o.BackoffMax == 0 {
		o.BackoffMax = time.Minute
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = wire.Heartbeat
	}
	if o.PongTimeout == 0 {
		o.PongTimeout = wire.PongTimeout
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.OnState == nil {
		o.OnState = func(State) {}
	}
	if o.Network == nil {
		if o.Network, err = systemNetwork(); err != nil {
			return nil, err
		}
	}
	return &Client{o: o, url: address, bulk: second}, nil
}

// Run keeps the machine connected until ctx ends (nil) or an end comes that no
// reconnect can mend (one of the errors above, wrapped).
func (c *Client) Run(ctx context.Context) error {
	refused := false // a token was refused, and no connection has stood since
	for again := (Backoff{Base: c.o.BackoffBase, Max: c.o.BackoffMax}); ; {
		c.o.OnState(State{Phase: Connecting})
		began := time.Now()
		token, err := c.once(ctx)
		again.Ended(time.Since(began), err)
		if time.Since(began) > Steady {
			refused = false
		}
		if errors.Is(err, errRejected) && ctx.Err() == nil {
			none := c.another(ctx, token, refused)
			refused = true
			if none == nil {
				continue // at once, and once
			}
			err = fmt.Errorf("%w: %w", none, err)
		}
		if refused && errors.Is(err, errTurnedAway) {
			err = fmt.Errorf("%w: %w", ErrForbidden, err)
		}
		if ctx.Err() != nil {
			c.o.OnState(State{Phase: Offline, Reason: "This computer was disconnected here."})
			return nil
		}
		for _, final := range finals {
			if errors.Is(err, final) {
				c.o.Log.Warn("Tunnel ended", "err", err)
				c.o.OnState(State{Phase: Offline, Reason: Sentence(err)})
				return err
			}
		}
		wait := again.Next()
		c.o.Log.Info("Tunnel lost", "err", err, "retryIn", wait)
		c.o.OnState(State{Phase: Offline, Reason: Sentence(err), Retry: time.Now().Add(wait)})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// another tells, with nil, that there is another token to try. The second one
// that is refused is the last: a hub is never asked over and over
// (LanternOps/breeze#401, punkpeye/mcp-remote#338).
func (c *Client) another(ctx context.Context, token string, refused bool) error {
	if refused || c.o.Rejected == nil {
		return ErrUnauthorized
	}
	return c.o.Rejected(ctx, token)
}

// Sentence says in plain words why the machine is offline.
func Sentence(err error) string {
	var said *wire.Error // by Options.Token
	switch {
	case errors.Is(err, ErrReplaced):
		return "Another running copy of this computer took over the connection."
	case errors.Is(err, ErrRevoked):
		return "The hub disconnected this computer. Sign in again to go on."
	case errors.Is(err, ErrUnauthorized):
		return "The hub does not accept this computer's sign-in any more. Sign in again to go on."
	case errors.Is(err, ErrForbidden):
		return "The hub refuses this computer. Whoever runs the hub can say why."
	case errors.Is(err, ErrVersion):
		return "The hub speaks another version. Update this program or the hub."
	case errors.Is(err, errTurnedAway):
		return "The hub, or a proxy before it, turns this computer away. This computer keeps trying."
	case errors.As(err, &said):
		return said.Message
	}
	if why := Reason(err); why != "" {
		return why + " This computer keeps trying."
	}
	return "The connection to the hub was lost. This computer keeps trying."
}

// once is one connection; it returns the token that it was made with.
func (c *Client) once(ctx context.Context) (string, error) {
	token, err := c.o.Token(ctx)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	conn, resp, err := c.o.Network.Dial(ctx, c.url, http.Header{"Authorization": {"Bearer " + token}}, wire.Subprotocol)
	if err != nil {
		if resp == nil {
			return token, fmt.Errorf("dial: %w", err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096))
		resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusUnauthorized:
			return token, fmt.Errorf("%w (status %d)", errRejected, resp.StatusCode)
		case http.StatusForbidden:
			return token, errTurnedAway
		}
		return token, fmt.Errorf("dial: hub answered %s", resp.Status)
	}
	defer conn.Close()
	if conn.Subprotocol() != wire.Subprotocol {
		return token, fmt.Errorf("%w: subprotocol %q", ErrVersion, conn.Subprotocol())
	}
	s := newSocket(c, conn, token)
	if err := s.greet(ctx); err != nil {
		return s.token(), closeError(err)
	}
	c.setCurrent(s)
	defer c.setCurrent(nil)
	err = closeError(s.serve(ctx))
	return s.token(), err
}

// closeError gives the hub's close codes their meaning.
func closeError(err error) error {
	var ce *websocket.CloseError
	if errors.As(err, &ce) {
		switch ce.Code {
		case wire.CloseReplaced:
			return fmt.Errorf("%w: %w", ErrReplaced, err)
		case wire.CloseRevoked:
			return fmt.Errorf("%w: %w", ErrRevoked, err)
		case wire.CloseVersion:
			return fmt.Errorf("%w: %w", ErrVersion, err)
		case wire.CloseUnauthorized:
			return fmt.Errorf("%w: %w", errRejected, err)
		case wire.CloseForbidden:
			return fmt.Errorf("%w: %w", ErrForbidden, err)
		}
	}
	return err
}

// Exchange is the handler's side of one request: frames before the last, and
// what follows it. Send is safe for concurrent use; one goroutine at a time may
// call Next.
type Exchange interface {
	// Send sends a frame that is not the last. A data frame waits until the hub
	// has room for it; the wait ends with ctx or the request.
	Send(ctx context.Context, t wire.Type, p wire.Payload) error
	// Next returns the next frame that follows the request: a piece of an
	// upload, input for a process, a terminal's new size. The data of a piece of
	// an upload is good until Next is called again.
	Next(ctx context.Context) (wire.Follow, error)
	// Begin is called once, when what was granted is about to run. False means
	// that the client was told meanwhile that the person is still being asked,
	// and waits no more: then it must not run now.
	Begin() bool
}

// Chunk is x.Next of an upload.
func Chunk(ctx context.Context, x Exchange) (*wire.FileChunk, error) {
	for {
		f, err := x.Next(ctx)
		if err != nil {
			return nil, err
		}
		if c, ok := f.(*wire.FileChunk); ok {
			return c, nil
		}
	}
}

// exchange is the Exchange of a localpc.v1 request.
type exchange struct {
	s      *socket
	id     string
	asked  wire.Type
	cancel context.CancelCauseFunc // of the request

	turn  chan struct{} // full while somebody sends
	out   *bulk.Out     // where the reply goes on; nil before; of whose turn it is
	gauge bulk.Gauge    // of whose turn it is

	mu     sync.Mutex
	cond   *sync.Cond
	credit int           // data bytes that may be sent; guarded by mu
	follow []wire.Follow // arrived and not yet taken; guarded by mu
	queued int           // bytes in follow; guarded by mu
	whole  bool          // the last piece of data has come; guarded by mu
	ended  error         // why nothing more moves; guarded by mu

	// What follows comes over the bulk socket from when over is set; it lives as
	// long as the request.
	over  context.Context
	leave context.CancelCauseFunc
	in    *bulk.In // nil before the first is read; set under mu by the caller of Next
}

func newExchange(s *socket, id string, asked wire.Type, cancel context.CancelCauseFunc) *exchange {
	x := &exchange{s: s, id: id, asked: asked, cancel: cancel, credit: wire.InitialCredit, turn: make(chan struct{}, 1)}
	x.cond = sync.NewCond(&x.mu)
	return x
}

// Begin: clients of localpc.v1 wait for as long as they said in wait_ms.
func (x *exchange) Begin() bool {
	x.s.begun(x.id)
	return true
}

func (x *exchange) Send(ctx context.Context, t wire.Type, p wire.Payload) error {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m := wire.Message{Type: t, ID: x.id, Payload: p}
	if handled, err := x.sendOver(ctx, m); handled {
		return err
	}
	if n := wire.DataLen(p); n > 0 {
		stop := context.AfterFunc(ctx, func() { x.mu.Lock(); x.cond.Broadcast(); x.mu.Unlock() })
		defer stop()
		x.mu.Lock()
		for x.credit < n && x.ended == nil && ctx.Err() == nil {
			x.cond.Wait()
		}
		if x.ended != nil {
			x.mu.Unlock()
			return x.ended
		}
		if ctx.Err() != nil {
			x.mu.Unlock()
			return context.Cause(ctx)
		}
		x.credit -= n
		x.mu.Unlock()
	}
	return x.s.write(m)
}

func (x *exchange) Next(ctx context.Context) (wire.Follow, error) {
	stop := context.AfterFunc(ctx, func() { x.mu.Lock(); x.cond.Broadcast(); x.mu.Unlock() })
	defer stop()
	x.mu.Lock()
	for len(x.follow) == 0 && x.ended == nil && x.over == nil && ctx.Err() == nil {
		x.cond.Wait()
	}
	if len(x.follow) == 0 {
		ended := x.ended
		x.mu.Unlock()
		switch {
		case ended != nil:
			return nil, ended
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return x.nextOver(ctx)
	}
	f := x.follow[0]
	x.follow[0] = nil
	x.follow = x.follow[1:]
	n := wire.DataLen(f)
	x.queued -= n
	x.mu.Unlock()
	if n > 0 && !last(f) {
		if err := x.s.write(wire.Message{Type: wire.TypeCredit, ID: x.id, Payload: &wire.Credit{Bytes: n}}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// last tells whether no more data follows f.
func last(f wire.Follow) bool {
	switch f := f.(type) {
	case *wire.FileChunk:
		return f.Last
	case *wire.ProcessInput:
		return f.End
	}
	return false
}

func (x *exchange) addCredit(n int) {
	x.mu.Lock()
	x.credit = min(x.credit+n, 64<<20)
	x.cond.Broadcast()
	x.mu.Unlock()
}

// maxFollow bounds what waits and costs no credit: sizes of a terminal.
const maxFollow = 4096

// add keeps a frame that follows the request; it reports false when the hub
// sent more than it may.
func (x *exchange) add(f wire.Follow) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over != nil {
		return false // it said that the rest comes elsewhere
	}
	n := wire.DataLen(f)
	if size, ok := f.(*wire.TerminalSize); ok {
		if i := len(x.follow) - 1; i >= 0 {
			if _, again := x.follow[i].(*wire.TerminalSize); again {
				x.follow[i] = size // only the newest counts
				return true
			}
		}
	} else if x.whole || n == 0 && !last(f) {
		return true // nothing that counts: it must not fill the queue
	}
	if x.queued+n > wire.InitialCredit+wire.MaxChunk || len(x.follow) >= maxFollow {
		return false
	}
	x.whole = x.whole || last(f)
	x.follow = append(x.follow, f)
	x.queued += n
	x.cond.Broadcast()
	return true
}

func (x *exchange) end(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended == nil {
		x.ended = err
	}
	x.cond.Broadcast()
	if x.over != nil {
		x.leave(err)
		x.s.bulk.Drop(x.id)
	}
	if x.in != nil {
		x.in.Reset()
	}
}
