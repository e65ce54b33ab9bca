// Package autogpt is step 2 for the AutoGPT platform: the machine's end of its
// local executor protocol 1.1. It keeps one control connection, lets the hub
// browse folders and bind chats through an interface it declares, opens one
// data connection for each chat that is activated, and translates what comes
// there into the messages of localpc.v1, so that one handler runs them all.
package autogpt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	msg "localpc/tunnel/wire/autogpt"
)

// Options build a Client. URL, Token, Hello, Folders and Handler are needed.
type Options struct {
	// URL is the base of the WebSocket addresses, http(s) or ws(s): the path of
	// the protocol is added.
	URL string
	// HubName is what the hub is called in State.
	HubName string
	// Token, Rejected and Fresh are those of tunnel.Options. A token that was
	// renewed ahead of its end is used from the next moment on in which nothing
	// is under way.
	Token    func(ctx context.Context) (string, error)
	Rejected func(ctx context.Context, token string) error
	Fresh    func(ctx context.Context, token string) (string, error)
	// Hello returns what the machine is and has. The client fills in the
	// protocol's version, the folder of a data connection, and directory_browse
	// where that belongs.
	Hello   func() msg.Hello
	Folders Folders
	// Handler runs data requests, as messages of localpc.v1 whose SessionID is
	// the chat's id. Exchange.Begin tells it whether somebody still waits.
	Handler tunnel.Handler
	// OnState is told of every change of the control connection, in order.
	OnState func(tunnel.State)
	// OnStopped is told that a chat's data connection has ended by itself: it
	// was idle, or refused. The binding stays.
	OnStopped func(session string)
	// RecordBytes is the size of the record, for STATUS. Nil: 0.
	RecordBytes func() int64
	// MaxConcurrent requests of all chats run at once; 0 means 4.
	MaxConcurrent int
	// MaxFileSize and CommandTimeout are this machine's own limits; 0 means
	// those of the protocol.
	MaxFileSize    int64
	CommandTimeout time.Duration
	// Network is how the hub is reached; nil means the system's.
	Network *tunnel.Network
	Timings Timings
	Log     *slog.Logger
}

// Timings are the protocol's clocks; zero fields have its values.
type Timings struct {
	// BackoffBase and BackoffMax are those of tunnel.Options: 1 s, 60 s.
	BackoffBase, BackoffMax time.Duration
	Heartbeat, PongTimeout  time.Duration // 20 s, 10 s
	Hello                   time.Duration // 10 s for HELLO_ACK
	Status                  time.Duration // 30 s
	// Asking is when a data request that waits for the person is answered with
	// PERMISSION_PENDING, Running when one that runs is, and Control when a
	// control request is: 25 s, 28 s, 8 s.
	Asking, Running, Control time.Duration
	// Keep is how long the result of a request that was answered with
	// PERMISSION_PENDING waits for its repeat: 10 min.
	Keep time.Duration
	// Idle ends a data connection on which nothing came, looked at every
	// IdleCheck: 600 s, 30 s.
	Idle, IdleCheck time.Duration
	// Goodbye is how long the hub has to answer a close: 1 s.
	Goodbye time.Duration
}

func (t *Timings) fill() {
	for _, f := range []struct {
		d     *time.Duration
		usual time.Duration
	}{
		{&t.BackoffBase, time.Second}, {&t.BackoffMax, time.Minute},
		{&t.Heartbeat, msg.Heartbeat}, {&t.PongTimeout, msg.PongTimeout}, {&t.Hello, msg.HelloTimeout}, {&t.Status, msg.StatusEvery},
		{&t.Asking, 25 * time.Second}, {&t.Running, 28 * time.Second}, {&t.Control, 8 * time.Second}, {&t.Keep, 10 * time.Minute},
		{&t.Idle, 10 * time.Minute}, {&t.IdleCheck, 30 * time.Second}, {&t.Goodbye, time.Second},
	} {
		if *f.d == 0 {
			*f.d = f.usual
		}
	}
}

// The ends that no reconnect can mend, beside those of package tunnel.
var (
	// ErrNotEnabled is a platform that does not let this account's machines in.
	ErrNotEnabled = fmt.Errorf("the platform has not switched local machines on for this account: %w", tunnel.ErrForbidden)
	// ErrGreeting is a hub whose HELLO_ACK does not keep to the protocol.
	ErrGreeting = errors.New("the hub's greeting does not keep to the protocol")
)

var finals = []error{tunnel.ErrReplaced, tunnel.ErrRevoked, tunnel.ErrUnauthorized, tunnel.ErrForbidden, tunnel.ErrVersion, ErrGreeting, errIdle}

func isFinal(err error) bool {
	return slices.ContainsFunc(finals, func(final error) bool { return errors.Is(err, final) })
}

var (
	errRejected = errors.New("the hub did not accept the token")
	errRenewed  = errors.New("a new token is there") // closed here, to come back with it
	errIdle     = errors.New("nothing came for a while")
	errNoPath   = errors.New("the hub has no local machines at this address")
)

// Client is the machine's end. Make it with New, run it with Run, once.
type Client struct {
	o    Options
	url  string        // of the control connection
	work chan struct{} // one element for each data request that is handled
	book *book
	// Of all chats, and of all control connections.
	commands, controls, pictures rate

	wg sync.WaitGroup // runtimes

	mu       sync.Mutex
	runtimes map[string]*runtime // by chat; guarded by mu
	busy     int                 // requests of all connections not yet answered; guarded by mu
	held     int                 // bytes of large requests in memory; guarded by mu
	line     <-chan struct{}     // when the last request about the computer was answered; guarded by mu
}

// Of large requests, and of what they bring to be written, maxHeld bytes are
// kept in memory for all connections together: a card may take minutes.
const (
	maxHeld = 128 << 20
	large   = 64 << 10
)

// hold counts the bytes of a request in; false when there are too many. release
// counts them out, once however often it is called.
func (c *Client) hold(n int) (release func(), ok bool) {
	if n < large {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held+n > maxHeld {
		return nil, false
	}
	c.held += n
	return sync.OnceFunc(func() {
		c.mu.Lock()
		c.held -= n
		c.mu.Unlock()
	}), true
}

func (s *socket) tooMuch() error {
	return &msg.Detailed{Code: msg.CodeOverloaded, Details: map[string]any{"max_concurrent": s.max},
		Message: "Too much that was sent waits on this computer already; try again in a moment."}
}

// New checks o and makes a Client.
func New(o Options) (*Client, error) {
	if o.Token == nil || o.Hello == nil || o.Folders == nil || o.Handler == nil {
		return nil, errors.New("autogpt: token, hello, folders and handler are needed")
	}
	address, err := tunnel.SocketURL(o.URL, msg.Path)
	if err != nil {
		return nil, err
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = msg.Concurrent
	}
	if o.MaxFileSize == 0 {
		o.MaxFileSize = msg.MaxFile
	}
	if o.CommandTimeout == 0 {
		o.CommandTimeout = msg.CommandTimeout
	}
	if o.OnState == nil {
		o.OnState = func(tunnel.State) {}
	}
	if o.OnStopped == nil {
		o.OnStopped = func(string) {}
	}
	if o.RecordBytes == nil {
		o.RecordBytes = func() int64 { return 0 }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Network == nil {
		if o.Network, err = tunnel.NewNetwork(""); err != nil {
			return nil, err
		}
	}
	o.Timings.fill()
	return &Client{o: o, url: address, work: make(chan struct{}, o.MaxConcurrent), book: newBook(o.Timings.Keep), commands: rate{most: commandsPerMinute}, controls: rate{most: controlsPerMinute}, pictures: rate{most: picturesPerMinute}, runtimes: map[string]*runtime{}}, nil
}

// Run keeps the machine connected until ctx ends (nil) or an end comes that no
// reconnect can mend. When it returns nothing of it runs any more.
func (c *Client) Run(ctx context.Context) error {
	defer c.wg.Wait()
	defer c.stopAll(context.Background())
	err := c.keep(ctx, c.url, &channel{control: true}, c.o.OnState)
	if ctx.Err() != nil {
		c.o.OnState(tunnel.State{Phase: tunnel.Offline, Reason: "This computer was disconnected here."})
		return nil
	}
	c.o.Log.Warn("Tunnel ended", "err", err)
	c.o.OnState(tunnel.State{Phase: tunnel.Offline, Reason: Sentence(err)})
	return err
}

// channel is what tells the two kinds of connection apart.
type channel struct {
	control bool
	session string // data: the chat
	root    string // data: its folder
	bound   string // data: tells its bindings apart
	// ending: it will not come back.
	ending atomic.Bool
}

// keep is one connection after the other until ctx ends, or an end that no
// reconnect can mend, which it returns.
func (c *Client) keep(ctx context.Context, address string, ch *channel, onState func(tunnel.State)) error {
	refused := false // a token was refused, and no connection has stood since
	for backoff := (tunnel.Backoff{Base: c.o.Timings.BackoffBase, Max: c.o.Timings.BackoffMax}); ; {
		onState(tunnel.State{Phase: tunnel.Connecting})
		began := time.Now()
		token, err := c.connect(ctx, address, ch, onState)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		backoff.Ended(time.Since(began), err)
		if time.Since(began) > tunnel.Steady {
			refused = false
		}
		if errors.Is(err, errRenewed) {
			continue
		}
		if errors.Is(err, errRejected) {
			again := c.another(ctx, token, refused)
			refused = true
			if again == nil {
				continue // at once, and once
			}
			err = fmt.Errorf("%w: %w", again, err)
		}
		if isFinal(err) {
			return err
		}
		wait := backoff.Next()
		c.o.Log.Info("Tunnel lost", "err", err, "control", ch.control, "retryIn", wait)
		onState(tunnel.State{Phase: tunnel.Offline, Reason: Sentence(err), Retry: time.Now().Add(wait)})
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// another tells, with nil, that there is another token to try: once.
func (c *Client) another(ctx context.Context, token string, refused bool) error {
	if refused || c.o.Rejected == nil {
		return tunnel.ErrUnauthorized
	}
	return c.o.Rejected(ctx, token)
}

// connect is one connection; it returns the token that it was made with.
func (c *Client) connect(ctx context.Context, address string, ch *channel, onState func(tunnel.State)) (string, error) {
	token, err := c.o.Token(ctx)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	conn, resp, err := c.o.Network.Dial(ctx, address, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		if resp == nil {
			return token, fmt.Errorf("dial: %w", err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096))
		resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusUnauthorized:
			return token, fmt.Errorf("%w (status %d)", errRejected, resp.StatusCode)
		case resp.StatusCode == http.StatusForbidden && ch.control:
			return token, ErrNotEnabled
		case resp.StatusCode == http.StatusForbidden:
			return token, fmt.Errorf("%w (status %d)", tunnel.ErrForbidden, resp.StatusCode)
		case resp.StatusCode == http.StatusNotFound:
			return token, errNoPath
		}
		return token, fmt.Errorf("dial: hub answered %s", resp.Status)
	}
	defer conn.Close()
	if ch.control {
		c.stopAll(ctx)
		c.o.Folders.Reset()
		c.book.drop("")
	}
	s := newSocket(c, conn, ch, token)
	if err := s.greet(ctx); err != nil {
		return token, closed(err)
	}
	onState(tunnel.State{Phase: tunnel.Online, HubName: c.o.HubName})
	return token, closed(s.serve(ctx))
}

// closed gives the hub's close codes their meaning.
func closed(err error) error {
	var ce *websocket.CloseError
	if errors.As(err, &ce) {
		switch ce.Code {
		case msg.CloseUnauthorized:
			return fmt.Errorf("%w: %w", errRejected, err)
		case msg.CloseForbidden:
			return fmt.Errorf("%w: %w", tunnel.ErrForbidden, err)
		case msg.CloseVersion:
			return fmt.Errorf("%w: %w", tunnel.ErrVersion, err)
		case msg.CloseReplaced:
			return fmt.Errorf("%w: %w", tunnel.ErrReplaced, err)
		case msg.CloseRevoked:
			return fmt.Errorf("%w: %w", tunnel.ErrRevoked, err)
		}
	}
	return err
}

// Sentence says in plain words why the machine is offline.
func Sentence(err error) string {
	switch {
	case errors.Is(err, ErrNotEnabled):
		return "AutoGPT has not switched local computers on for this account. Once it has, connect again."
	case errors.Is(err, errNoPath):
		return "AutoGPT offers no local computers at this address yet. This computer keeps trying."
	case errors.Is(err, ErrGreeting):
		return "AutoGPT answered in a way that this program does not understand. Update this program, then connect again."
	}
	return tunnel.Sentence(err)
}
