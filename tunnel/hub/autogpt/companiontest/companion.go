//go:build unix

// Package companiontest is a machine end for tests of step 1: it does what the
// existing companion does on AutoGPT's wire 1.1, written from the reference
// alone. It shares no code with our own messages, so that a mistake in those
// is not made twice. It works in real folders and runs real commands, without
// asking anybody.
package companiontest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Options make a Companion. URL, MachineID and Home are needed; a zero time is
// what the companion has.
type Options struct {
	// URL of the hub: ws, wss, http or https.
	URL string
	// Token gives the access token, a fresh one when asked to refresh. "" sends
	// no header.
	Token     func(refresh bool) string
	MachineID string
	Name      string
	// Home is the only root that can be browsed.
	Home string
	// Shell is the local opt-in; Desktop and Model add canned ones.
	Shell, Desktop bool
	Model          string
	// Screens are the monitors of the display: one of 1280 × 720 where none is
	// named.
	Screens []Screen
	// Secret keys the grants; a restarted companion has the same.
	Secret string

	MaxConcurrent  int   // 4
	MaxFileSize    int64 // 10 MiB
	CommandTimeout time.Duration

	AckTimeout, Ping, Pong, Status                       time.Duration
	IdleStop, IdleCheck                                  time.Duration
	BackoffBase, BackoffMax, Jitter                      time.Duration
	TermWait                                             time.Duration // from TERM to KILL
	BrowseLife                                           time.Duration
	CommandsPerMinute, PicturesPerMinute, RuntimesAtOnce int

	// Saw is told of every frame, session "" on the control channel.
	Saw func(session string, fromHub bool, data []byte)
	// Hold is called before a request is handled.
	Hold func(ctx context.Context, kind string)
	// Hello may change the payload of HELLO before it is sent.
	Hello func(session string, payload map[string]any)
	// Picture may change the payload of SCREENSHOT_RESPONSE before it is sent.
	Picture func(payload map[string]any)
	Log     *slog.Logger
}

// Companion is one run of the program.
type Companion struct {
	o      Options
	work   chan struct{} // the semaphore of all data sockets
	browse browser
	binds  bindings

	mu       sync.Mutex
	dropped  []string // frames that were dropped, and why; guarded by mu
	closes   []int    // codes that ended sockets; guarded by mu
	runtimes map[string]*runtime
	starts   []time.Time // of commands within the last minute; guarded by mu
	screens  []Screen    // guarded by mu
	shots    []time.Time // screenshots within the last minute; guarded by mu
	wg       sync.WaitGroup
}

type runtime struct {
	binding binding
	cancel  context.CancelFunc
	done    chan struct{}
}

// New makes a companion; Run runs it.
func New(o Options) *Companion {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.CommandTimeout, 30*time.Second)
	set(&o.AckTimeout, 10*time.Second)
	set(&o.Ping, 20*time.Second)
	set(&o.Pong, 10*time.Second)
	set(&o.Status, 30*time.Second)
	set(&o.IdleStop, 600*time.Second)
	set(&o.IdleCheck, 30*time.Second)
	set(&o.BackoffBase, time.Second)
	set(&o.BackoffMax, time.Minute)
	set(&o.Jitter, 5*time.Second)
	set(&o.TermWait, 2*time.Second)
	set(&o.BrowseLife, 300*time.Second)
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 4
	}
	if o.MaxFileSize == 0 {
		o.MaxFileSize = 10 << 20
	}
	if o.CommandsPerMinute == 0 {
		o.CommandsPerMinute = 60
	}
	if o.PicturesPerMinute == 0 {
		o.PicturesPerMinute = 10
	}
	if len(o.Screens) == 0 {
		o.Screens = []Screen{{W: 1280, H: 720, Scale: 1}}
	}
	if o.RuntimesAtOnce == 0 {
		o.RuntimesAtOnce = 8
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	o.URL = strings.Replace(strings.Replace(o.URL, "https://", "wss://", 1), "http://", "ws://", 1)
	return &Companion{o: o, work: make(chan struct{}, o.MaxConcurrent), runtimes: map[string]*runtime{}, screens: o.Screens,
		browse: browser{home: o.Home, life: o.BrowseLife}, binds: bindings{machine: o.MachineID, secret: o.Secret, list: map[string]binding{}}}
}

// Dropped are the frames that the companion dropped without a word.
func (c *Companion) Dropped() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.dropped...)
}

// Closes are the codes of the close frames that came from the hub.
func (c *Companion) Closes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]int{}, c.closes...)
}

// Running are the chats whose runtime lives.
func (c *Companion) Running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runtimes)
}

func (c *Companion) drop(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, reason)
}

// Ends of a channel that no reconnect mends.
var (
	ErrUnauthorized = errors.New("the hub does not accept the sign-in")
	ErrTerminal     = errors.New("the channel ended for good")
)

// Run keeps the control channel until ctx ends (nil) or an end that is final,
// and ends every runtime with it.
func (c *Companion) Run(ctx context.Context) error {
	defer c.wg.Wait()
	defer c.stopRuntimes()
	return c.keep(ctx, "", "")
}

// RunSession is the companion of old: only the data socket of one chat.
func (c *Companion) RunSession(ctx context.Context, session, root string) error {
	return c.keep(ctx, session, root)
}

// keep holds one channel up, as section 7 says.
func (c *Companion) keep(ctx context.Context, session, root string) error {
	for n := 0; ; {
		normal, err := c.connect(ctx, session, root)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, ErrTerminal) || errors.Is(err, ErrUnauthorized) {
			return err
		}
		c.o.Log.Info("Companion reconnects", "session", session, "err", err)
		if normal {
			n = 0
		}
		wait := min(c.o.BackoffBase<<min(n, 16), c.o.BackoffMax) + rand.N(c.o.Jitter)
		if !normal {
			n++
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (c *Companion) connect(ctx context.Context, session, root string) (normal bool, err error) {
	ws, status, err := c.dial(ctx, session, false)
	if status == http.StatusUnauthorized {
		if ws, status, err = c.dial(ctx, session, true); status == http.StatusUnauthorized {
			return false, ErrUnauthorized
		}
	}
	if status == http.StatusForbidden {
		return false, ErrTerminal
	}
	if err != nil {
		return false, err
	}
	s := newSocket(c, ws, session, root)
	err = s.run(ctx)
	var ce *websocket.CloseError
	if errors.As(err, &ce) {
		c.mu.Lock()
		c.closes = append(c.closes, ce.Code)
		c.mu.Unlock()
		switch ce.Code {
		case 1000, 1001:
			return true, err
		case 4426, 4427, 4428, 4429:
			return false, errors.Join(ErrTerminal, err)
		}
	}
	return false, err
}

func (c *Companion) dial(ctx context.Context, session string, refresh bool) (*websocket.Conn, int, error) {
	address := c.o.URL + "/ws/local-executor"
	if session != "" {
		address += "/" + url.PathEscape(session)
	}
	header := http.Header{}
	if token := c.o.Token(refresh); token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	d := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	ws, resp, err := d.DialContext(ctx, address, header)
	status := 0
	if err != nil && resp != nil {
		status = resp.StatusCode
		resp.Body.Close()
	}
	return ws, status, err
}

// start makes the binding's runtime run; one with another binding is replaced.
func (c *Companion) start(b binding) *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.runtimes[b.Session]; old != nil {
		if old.binding == b {
			return nil
		}
		c.mu.Unlock()
		c.stop(b.Session)
		c.mu.Lock()
	}
	if len(c.runtimes) >= c.o.RuntimesAtOnce {
		return failf("INTERNAL_ERROR", "%d runtimes are live", len(c.runtimes))
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &runtime{binding: b, cancel: cancel, done: make(chan struct{})}
	c.runtimes[b.Session] = r
	c.wg.Go(func() {
		defer close(r.done)
		defer cancel()
		_ = c.keep(ctx, b.Session, b.Root)
		c.mu.Lock()
		if c.runtimes[b.Session] == r {
			delete(c.runtimes, b.Session)
		}
		c.mu.Unlock()
	})
	return nil
}

func (c *Companion) stop(session string) {
	c.mu.Lock()
	r := c.runtimes[session]
	c.mu.Unlock()
	if r != nil {
		r.cancel()
		<-r.done
	}
}

func (c *Companion) live(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runtimes[session] != nil
}

func (c *Companion) stopRuntimes() {
	c.mu.Lock()
	var list []*runtime
	for _, r := range c.runtimes {
		list = append(list, r)
	}
	c.mu.Unlock()
	for _, r := range list {
		r.cancel()
	}
	for _, r := range list {
		<-r.done
	}
}
