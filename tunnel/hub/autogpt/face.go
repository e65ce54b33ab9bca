// Package autogpt is step 1 for computers that speak AutoGPT's local executor
// protocol 1.1, the existing companion among them: it accepts their control
// and data connections, browses and binds folders, and sends requests of
// chats. It emits exactly what the companion takes. In strict mode it drops a
// connection at every breach of the protocol, as AutoGPT's own platform does;
// otherwise it only notes those that do no harm.
package autogpt

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// Hub is what the face needs of the hub. store.ErrNotFound says that there is
// no such thing; any other error is a failure of the hub's.
type Hub interface {
	// Access gives what a bearer token is good for. Expires holds when the
	// computer's clock is set, as time.Until of it is taken.
	Access(ctx context.Context, bearer string) (store.Access, error)
	// BindSignIn keeps a sign-in for the first machine that comes with it, and
	// fails for any other, and for one that belongs to somebody else.
	BindSignIn(ctx context.Context, signIn, machine string) error
	// SignInLive tells whether a sign-in has not been revoked.
	SignInLive(ctx context.Context, signIn string) (bool, error)
	// Binding gives the folder that a chat is bound to.
	Binding(ctx context.Context, session string) (store.Binding, error)
	// Joined is told of a machine's new control connection before it is
	// answered; Left, exactly once, that it has ended, unless Joined failed.
	Joined(ctx context.Context, m *Machine) error
	Left(m *Machine)
	// Heard is told of STATUS on a control connection, every few seconds at the
	// most, and once when the connection has been answered.
	Heard(ctx context.Context, m *Machine)
}

// Options build a Face. Hub is needed; a zero value is the protocol's.
type Options struct {
	Hub Hub
	Log *slog.Logger
	// Closed is told of each end of a connection, by its close code: 1006 when
	// there was none. nil: nobody counts.
	Closed func(code int)
	// Strict drops a connection at every breach of section 11 of the protocol.
	Strict bool
	// Grants are the capabilities that are granted when they are advertised.
	// nil is shell, files, computer_use, local_llm and directory_browse.
	Grants []string
	// What HELLO_ACK tells the machine.
	MaxFileSize    int64
	CommandTimeout time.Duration
	MaxConcurrent  int

	HelloTimeout                     time.Duration
	DataWait, ControlWait, ForDetach time.Duration // for replies
	Hold                             time.Duration // for room at a busy machine
	Reconnect                        time.Duration // for a data connection to come back, before the one retry
	LateFor                          time.Duration // how long a late reply is harmless
	Heartbeat, PongTimeout           time.Duration
	Outstanding                      int // requests of one connection
	BacklogFrames, BacklogBytes      int // replies of one request that nobody has taken
}

func (o *Options) settle() {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Closed == nil {
		o.Closed = func(int) {}
	}
	if o.Grants == nil {
		o.Grants = []string{msg.Shell, msg.Files, msg.ComputerUse, msg.LocalLLM, msg.Browse}
	}
	if o.MaxFileSize == 0 {
		o.MaxFileSize = msg.MaxFile
	}
	for _, n := range []struct {
		v   *int
		std int
	}{{&o.MaxConcurrent, msg.Concurrent}, {&o.Outstanding, 256}, {&o.BacklogFrames, 128}, {&o.BacklogBytes, 64 << 20}} {
		if *n.v == 0 {
			*n.v = n.std
		}
	}
	for _, d := range []struct{ v, std *time.Duration }{
		{&o.CommandTimeout, new(msg.CommandTimeout)}, {&o.HelloTimeout, new(msg.HelloTimeout)},
		{&o.DataWait, new(msg.DataWait)}, {&o.ControlWait, new(msg.ControlWait)}, {&o.ForDetach, new(msg.DetachWait)},
		{&o.Hold, new(30 * time.Second)}, {&o.Reconnect, new(30 * time.Second)}, {&o.LateFor, new(msg.LateFor)},
		{&o.Heartbeat, new(msg.Heartbeat)}, {&o.PongTimeout, new(msg.PongTimeout)},
	} {
		if *d.v == 0 {
			*d.v = *d.std
		}
	}
}

// Face serves machines of protocol 1.1. Its methods are safe for concurrent
// use.
type Face struct {
	o       Options
	log     *slog.Logger
	handler http.Handler
	ctx     context.Context // until Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup // connections

	// joining is held while a control connection takes its place, so that the
	// hub hears of them in the order in which they won.
	joining sync.Mutex

	mu       sync.Mutex
	closed   bool                // guarded by mu
	conns    map[*conn]struct{}  // all that are greeted; guarded by mu
	controls map[owned]*conn     // guarded by mu
	chats    map[string]*conn    // data connections by session; guarded by mu
	arrivals map[string]*arrival // what is waited for, by session; guarded by mu
}

// owned names a machine of a user.
type owned struct{ user, machine string }

// New makes a face that ends with ctx or Close; Close must be called.
func New(ctx context.Context, o Options) *Face {
	o.settle()
	f := &Face{o: o, log: o.Log, conns: map[*conn]struct{}{}, controls: map[owned]*conn{}, chats: map[string]*conn{}, arrivals: map[string]*arrival{}}
	f.ctx, f.cancel = context.WithCancel(ctx)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+msg.Path, f.serve)
	mux.HandleFunc("GET "+msg.Path+"/{session}", f.serve)
	f.handler = mux
	return f
}

// Close ends every connection with 1001, so that the machines come back when
// the hub does, and waits.
func (f *Face) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.wg.Wait()
}

// Handler serves GET msg.Path and msg.Path/{session}.
func (f *Face) Handler() http.Handler { return f.handler }

var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second,
	// The hub's doors have looked at Origin already.
	CheckOrigin: func(*http.Request) bool { return true },
}

// denial is a refused upgrade.
type denial struct {
	status int
	detail string
}

func deny(w http.ResponseWriter, d *denial) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(d.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": d.detail})
}

// check does what must hold before the upgrade, in the protocol's order.
func (f *Face) check(r *http.Request, session string) (store.Access, store.Binding, *denial) {
	bad := &denial{http.StatusUnauthorized, "A sign-in is needed that this hub knows."}
	failed := func(err error) *denial {
		f.log.Error("Sign-in could not be checked", "err", err)
		return &denial{http.StatusServiceUnavailable, "Something went wrong in the hub; its log says what."}
	}
	bearer := bearer(r)
	if bearer == "" {
		return store.Access{}, store.Binding{}, bad
	}
	a, err := f.o.Hub.Access(r.Context(), bearer)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return a, store.Binding{}, bad
	case err != nil:
		return a, store.Binding{}, failed(err)
	case a.User == "" || a.Client != msg.ClientID || !slices.Contains(a.Scopes, msg.Scope) || time.Until(a.Expires) <= 0:
		return a, store.Binding{}, bad
	}
	if session == "" {
		return a, store.Binding{}, nil
	}
	b, err := f.o.Hub.Binding(r.Context(), session)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && b.User != a.User:
		return a, b, &denial{http.StatusForbidden, "There is no such chat, or it is not bound to a computer."}
	case err != nil:
		return a, b, failed(err)
	}
	return a, b, nil
}

// bearer is the token of a request, "" without one.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// serve takes a connection and keeps it until it ends.
func (f *Face) serve(w http.ResponseWriter, r *http.Request) {
	began, session := time.Now(), r.PathValue("session")
	access, binding, denied := f.check(r, session)
	if denied != nil {
		deny(w, denied)
		return
	}
	if !f.enter() {
		deny(w, &denial{http.StatusServiceUnavailable, "The hub is being stopped."})
		return
	}
	defer f.wg.Done()
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		f.log.Warn("Connection could not be accepted", "user", access.User, "err", err)
		return
	}
	defer socket.Close()
	c := newConn(f, socket, access, session)
	c.began = began
	stop := context.AfterFunc(f.ctx, func() {
		c.end(websocket.CloseGoingAway, "the hub is being stopped", "")
	})
	defer stop()
	hello, err := c.greet(binding)
	if err != nil {
		f.log.Warn("Connection refused", "user", access.User, "session", session, "err", err)
		f.o.Closed(c.closeCode(err))
		return
	}
	err = c.serve(hello)
	f.o.Closed(c.closeCode(err))
	if err != nil {
		f.log.Info("Connection ended", "user", c.access.User, "machine", c.machine, "session", c.session, "err", err)
	}
}

// enter counts one more connection, unless the face is being closed.
func (f *Face) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.wg.Add(1)
	return true
}

// Machine is one control connection.
type Machine struct {
	User, ID, SignIn string
	// Connection is new for each connection.
	Connection string
	Since      time.Time
	Hello      msg.Hello
	Granted    []string
	c          *conn
}

// Replaced ends the connection because another took over that this face does
// not know of, and Revoked because the right to it ended. Both end the data
// connections of the machine too.
func (m *Machine) Replaced() { m.c.f.endMachine(m, msg.CloseReplaced, msg.ReasonAnother) }
func (m *Machine) Revoked()  { m.c.f.endMachine(m, msg.CloseRevoked, msg.ReasonUser) }

// SendOff ends them so that the machine comes back: the hub is being stopped.
func (m *Machine) SendOff() { m.c.f.endMachine(m, websocket.CloseGoingAway, "") }

func (f *Face) endMachine(m *Machine, code int, reason string) {
	f.endAll(code, reason, func(c *conn) bool {
		return c == m.c || c.session != "" && c.access.User == m.User && c.machine == m.ID
	})
}

// SignIns are those that connections were made with, each once: of data
// connections too whose control connection is gone.
func (f *Face) SignIns() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	set := map[string]struct{}{}
	for c := range f.conns {
		set[c.access.SignIn] = struct{}{}
	}
	return slices.Collect(maps.Keys(set))
}

// RevokeSignIn ends every connection that was made with one sign-in.
func (f *Face) RevokeSignIn(signIn string) {
	f.endAll(msg.CloseRevoked, msg.ReasonUser, func(c *conn) bool { return c.access.SignIn == signIn })
}

// endAll ends the connections that match, and returns when they were told.
func (f *Face) endAll(code int, reason string, match func(*conn) bool) {
	f.mu.Lock()
	var list []*conn
	for c := range f.conns {
		if match(c) {
			list = append(list, c)
		}
	}
	f.mu.Unlock()
	// One whose socket is stuck holds up no other.
	var wg sync.WaitGroup
	for _, c := range list {
		wg.Go(func() { c.end(code, why(code), reason) })
	}
	wg.Wait()
}

// why is what a close frame says to people.
func why(code int) string {
	return map[int]string{msg.CloseRevoked: "revoked", msg.CloseReplaced: "a newer connection took over", websocket.CloseGoingAway: "the hub is being stopped"}[code]
}

// offline is the error for a machine whose control connection is not there.
func offline() *wire.Error {
	return wire.Errorf(wire.CodeOffline, "The computer is not connected to the hub. It has to be switched on, with its program running.")
}
