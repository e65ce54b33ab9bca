package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"sync"
	"time"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/tunnel"
	"localpc/tunnel/autogpt"
	"localpc/tunnel/wire"
)

// link is the machine's connection to its hub. At most one is kept; begin and
// end are called one at a time by whoever holds ops.
type link struct {
	m   *Machine
	ops sync.Mutex // one change of the pairing, or reconnect, at a time
	now pairing    // under way; it holds ops only when it changes something

	mu     sync.Mutex
	client *tunnel.Client     // guarded by mu
	cancel context.CancelFunc // guarded by mu; nil: nothing runs
	done   chan struct{}      // guarded by mu
	heard  chan struct{}      // closed when it is known how begin went; guarded by mu
	view   linkState          // guarded by mu
}

type linkState struct {
	hub           snapshot.Hub
	id            string // of the hub in rules and the record
	signIn        bool
	warning       string // said loudly
	problem       string
	fix           snapshot.IntentKind
	fixLabel      string
	embeddedToken string // without a keychain, for the hub inside
}

func (l *link) state() linkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

// hub is the id and the name of the hub.
func (l *link) hub() (id, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view.id, l.view.hub.Name
}

func (l *link) set(fn func(v *linkState)) {
	l.mu.Lock()
	fn(&l.view)
	l.mu.Unlock()
	l.m.changed()
}

// begin connects to a hub: "" for none, "this", or an address. It returns at
// once; the state says how it goes.
func (l *link) begin(hub string) {
	l.end()
	l.set(func(v *linkState) {
		*v = linkState{embeddedToken: v.embeddedToken}
		if hub == "" {
			return
		}
		v.id = idOf(hub, l.m.o.Settings.Get())
		v.hub = snapshot.Hub{Paired: true, Kind: "own", Name: hub, Address: hub}
		switch hub {
		case settings.HubThis:
			v.hub = snapshot.Hub{Paired: true, Kind: hub, Name: "This computer only"}
		case settings.HubAutoGPT:
			shown, _ := addressOf(hub, l.m.o.Settings.Get())
			v.hub = snapshot.Hub{Paired: true, Kind: hub, Name: "AutoGPT", Address: shown}
		default:
			v.warning = openWarning(hub)
		}
	})
	if hub == "" {
		return
	}
	ctx, cancel := context.WithCancel(l.m.ctx)
	done := make(chan struct{})
	l.mu.Lock()
	l.cancel, l.done, l.heard = cancel, done, make(chan struct{})
	l.mu.Unlock()
	ok := l.m.background(func(context.Context) {
		defer close(done)
		defer cancel()
		if err := l.run(ctx, hub); err != nil {
			l.fail(err)
		}
	})
	if !ok {
		cancel()
		close(done)
	}
}

// tell says that it is known how begin went.
func (l *link) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard != nil {
		close(l.heard)
		l.heard = nil
	}
}

// answered waits until it is known how begin went, or for limit.
func (l *link) answered(ctx context.Context, limit time.Duration) {
	l.mu.Lock()
	heard := l.heard
	l.mu.Unlock()
	if heard == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-heard:
	case <-ctx.Done():
	}
}

// end disconnects, and waits for it.
func (l *link) end() {
	l.mu.Lock()
	cancel, done := l.cancel, l.done
	l.cancel, l.client = nil, nil
	l.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
	l.tell()
	l.set(func(v *linkState) { v.hub.Online = false })
}

var errNoToken = errors.New("no token for this hub")

func (l *link) run(ctx context.Context, hub string) error {
	s := l.m.o.Settings.Get()
	network, err := tunnel.NewNetwork(s.CAFile)
	if err != nil {
		return sentence("This computer can't connect: " + err.Error() + ". Mend that, and try again.")
	}
	o := tunnel.Options{Network: network, Log: l.m.log, Handler: l.m.dispatch, OnState: l.onState, Hello: l.hello, Status: l.status}
	shown := ""
	if hub == settings.HubThis {
		if l.m.o.Hub == nil {
			return errors.New("this build has no hub inside")
		}
		if shown, err = l.m.o.Hub.Start(ctx); err != nil {
			return &startError{err}
		}
		o.URL, o.Token = shown, l.token
	} else {
		shown, o.URL = addressOf(hub, s)
		source := l.source(hub, network)
		o.Token, o.Rejected, o.Fresh = source.token, source.rejected, source.Fresh
	}
	l.set(func(v *linkState) { v.hub.Address, v.hub.Proxy = shown, network.ProxyName(o.URL) })
	if hub == settings.HubAutoGPT {
		client, err := l.autoGPT(o)
		if err != nil {
			return err
		}
		return client.Run(ctx)
	}
	client, err := tunnel.New(o)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.client = client
	l.mu.Unlock()
	return client.Run(ctx)
}

// source is the sign-in at a hub of somebody's, with its errors as the tunnel
// takes them.
type source struct{ *login.Source }

func (l *link) source(hub string, network *tunnel.Network) source {
	return source{login.NewSource(login.SourceOptions{Keychain: l.m.o.Keychain, Item: login.TokenItem(hub), HTTP: network.Client(), Log: l.m.log})}
}

func (s source) token(ctx context.Context) (string, error) {
	token, err := s.Token(ctx)
	return token, signInError(err)
}

func (s source) rejected(ctx context.Context, token string) error {
	return signInError(s.Rejected(ctx, token))
}

func signInError(err error) error {
	switch {
	case errors.Is(err, login.ErrMissing):
		return fmt.Errorf("%w: %w: %w", tunnel.ErrUnauthorized, errNoToken, err)
	case errors.Is(err, login.ErrSignIn):
		return fmt.Errorf("%w: %w", tunnel.ErrUnauthorized, err)
	case errors.Is(err, login.ErrNoKeychain):
		return wire.Wrap(err, wire.CodeInternal, "%s", hubUnkept(err))
	}
	return err
}

// openWarning says that a connection is not encrypted; "" where it is, or does
// not leave this computer.
func openWarning(hub string) string {
	u, err := url.Parse(hub)
	if err != nil || u.Scheme != "http" || settings.Loopback(u.Hostname()) {
		return ""
	}
	return "The connection to " + u.Host + " is not encrypted: whoever is on the network between can read and change what goes over it."
}

// token is what proves this machine to the hub inside: a missing one is minted;
// without a keychain it is kept in memory.
func (l *link) token(ctx context.Context) (string, error) {
	l.mu.Lock()
	held := l.view.embeddedToken
	l.mu.Unlock()
	if held != "" {
		return held, nil
	}
	token, err := l.m.o.Keychain.Get(ctx, login.TokenItem(settings.HubThis))
	switch {
	case err == nil:
		return token, nil
	case errors.Is(err, login.ErrMissing):
		return l.mint(ctx)
	}
	l.m.log.Warn("The keychain does not give the token", "err", err)
	l.m.Warn(inMemory(err))
	return l.pass(ctx)
}

// pass makes a token of the hub inside that lasts until this program ends; the
// one in the keychain, which can't be read now, stays good.
func (l *link) pass(ctx context.Context) (string, error) {
	s := l.m.o.Settings.Get()
	token, err := l.m.o.Hub.PassingToken(ctx, s.MachineID, s.Name)
	if err != nil {
		return "", err
	}
	l.set(func(v *linkState) { v.embeddedToken = token })
	return token, nil
}

// mint makes a token of the hub inside and keeps it.
func (l *link) mint(ctx context.Context) (string, error) {
	s := l.m.o.Settings.Get()
	token, err := l.m.o.Hub.MachineToken(ctx, s.MachineID, s.Name)
	if err != nil {
		return "", err
	}
	held := ""
	if err := l.m.o.Keychain.Set(ctx, login.TokenItem(settings.HubThis), token); err != nil {
		l.m.log.Warn("The keychain does not take the token", "err", err)
		l.m.Warn(inMemory(err))
		held = token
	}
	// An earlier one has just ended, in memory too.
	l.set(func(v *linkState) { v.embeddedToken = held })
	return token, nil
}

func (l *link) hello() wire.Hello {
	s := l.m.o.Settings.Get()
	names := []string{}
	for _, c := range l.m.registry.All() {
		// Those of the other protocol are not named here, nor is what is off.
		if c.Name() != capFolders && (c.Name() != consent.CapabilityComputer || l.m.controls.offered()) {
			names = append(names, c.Name())
		}
	}
	return wire.Hello{Software: "localpc/" + l.m.o.Version, Protocol: wire.Version, MachineID: s.MachineID, DisplayName: s.Name,
		Platform: runtime.GOOS, Arch: runtime.GOARCH, Capabilities: names, Sessions: l.m.sessions.ids(), Record: l.head()}
}

func (l *link) status() wire.Status {
	if k := l.m.o.Kept; k != nil {
		l.m.background(k.Tidy) // it looks once an hour
	}
	l.m.metrics.kick()
	return wire.Status{Waiting: l.m.asks.Waiting(), Record: l.head()}
}

func (l *link) head() *wire.RecordHead {
	seq, hash := l.m.o.Record.Head()
	return &wire.RecordHead{Seq: seq, Hash: hash}
}

func (l *link) onState(s tunnel.State) {
	if s.Phase != tunnel.Connecting {
		defer l.tell()
	}
	l.m.controls.void(s.Phase == tunnel.Offline)
	l.set(func(v *linkState) {
		v.hub.Online = s.Phase == tunnel.Online
		switch s.Phase {
		case tunnel.Online:
			v.problem, v.fix, v.fixLabel, v.signIn = "", "", "", false
			v.hub.SignIn = "kept " + l.m.o.Keychain.Where()
			if v.embeddedToken != "" {
				v.hub.SignIn = "kept in memory until this program ends"
			}
			if s.HubName != "" && v.hub.Kind != settings.HubThis {
				v.hub.Name = s.HubName
			}
			v.hub.Account = s.Account
		case tunnel.Offline:
			v.problem = s.Reason
		}
	})
}

// fail says why the link has ended, and what mends it.
func (l *link) fail(err error) {
	defer l.tell()
	l.m.controls.void(true)
	if l.m.ctx.Err() != nil {
		return
	}
	l.m.log.Error("The link to the hub has ended", "err", err)
	if errors.Is(err, tunnel.ErrRevoked) || errors.Is(err, tunnel.ErrUnauthorized) {
		l.m.chats.forget("The hub disconnected this computer.")
	}
	l.set(func(v *linkState) {
		v.hub.Online = false
		var se *startError
		var said sentence
		switch {
		case errors.As(err, &se):
			v.problem = l.m.startProblem(se)
			v.fix, v.fixLabel = snapshot.Reconnect, "Try again"
		case errors.Is(err, autogpt.ErrNotEnabled):
			v.problem, v.fix, v.fixLabel = autogpt.Sentence(err), snapshot.Reconnect, "Try again"
		case errors.Is(err, tunnel.ErrReplaced):
			v.problem, v.fix, v.fixLabel = tunnel.Sentence(err), snapshot.Reconnect, "Connect here again"
		case errors.As(err, &said):
			v.problem, v.fix, v.fixLabel = said.Error(), snapshot.Reconnect, "Try again"
		case errors.Is(err, errNoToken):
			v.problem, v.fix, v.fixLabel, v.signIn = "This computer is not signed in to its hub.", snapshot.Pair, "Sign in", true
			v.hub.SignIn = "missing"
		case errors.Is(err, tunnel.ErrUnauthorized), errors.Is(err, tunnel.ErrRevoked):
			v.problem, v.fix, v.fixLabel, v.signIn = tunnel.Sentence(err), snapshot.Pair, "Sign in again", true
			v.hub.SignIn = "ended"
		default:
			v.problem, v.fix, v.fixLabel = autogpt.Sentence(err), snapshot.Reconnect, "Try again"
		}
	})
}

// startError is that of the hub inside when it does not start.
type startError struct{ cause error }

func (e *startError) Error() string { return "start the hub inside: " + e.cause.Error() }
func (e *startError) Unwrap() error { return e.cause }

// startProblem says why the hub inside does not start.
func (m *Machine) startProblem(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "listen" {
		return "The hub inside this program can't listen on " + m.o.Settings.Get().EmbeddedHub + "; another program may be using it. Close that one, or start this one with --embedded-hub and another address."
	}
	return "The hub inside this program can't start; the log says why."
}

// ended tells the hub that a session ended here. A hub that can't be told
// learns it from the next HELLO.
func (l *link) ended(session, reason string) {
	l.mu.Lock()
	c := l.client
	l.mu.Unlock()
	if c == nil {
		return
	}
	if err := c.Notify(wire.TypeSessionEnded, &wire.SessionEnded{SessionID: session, Reason: reason}); err != nil {
		l.m.log.Info("The hub could not be told of a session's end", "err", err)
	}
}

func (m *Machine) setConnect(fn func(*snapshot.Connect)) {
	m.mu.Lock()
	fn(&m.connect)
	m.mu.Unlock()
	m.changed()
}
