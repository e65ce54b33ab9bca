package machine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/tunnel"
)

// pairing is the one that is under way, if any.
type pairing struct {
	mu     sync.Mutex
	cancel context.CancelFunc // guarded by mu; nil: none
	done   chan struct{}      // guarded by mu
}

// start begins one; end is called when it has ended. ok is false while another
// one is under way.
func (p *pairing) start(ctx context.Context) (_ context.Context, end func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	p.cancel, p.done = cancel, done
	return ctx, func() {
		p.mu.Lock()
		p.cancel = nil
		p.mu.Unlock()
		cancel()
		close(done)
	}, true
}

// stop cancels it, and waits for its end.
func (p *pairing) stop() {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// target is what a person wants to pair with.
type target struct {
	hub     string           // as settings have it
	token   string           // of a pairing line
	autoGPT settings.AutoGPT // for that platform
}

// readTarget reads what was typed, or chosen.
func (m *Machine) readTarget(in snapshot.Intent) (target, error) {
	text := strings.TrimSpace(in.Text)
	switch {
	case text == "" || text == settings.HubThis:
		return target{hub: settings.HubThis}, nil
	case text == settings.HubAutoGPT:
		a := m.o.Settings.Get().AutoGPT
		if in.AutoGPT != nil {
			first, last, err := settings.ParsePorts(in.AutoGPT.Ports)
			if err != nil {
				return target{}, sentence("AutoGPT can't be reached so: " + err.Error() + ".")
			}
			a = settings.AutoGPT{Web: in.AutoGPT.Web, API: in.AutoGPT.API, WS: in.AutoGPT.WS, ClientID: in.AutoGPT.ClientID, Scope: in.AutoGPT.Scope, FirstPort: first, LastPort: last}
		}
		a = a.Fill()
		if err := a.Check(); err != nil {
			return target{}, sentence(err.Error() + ".")
		}
		return target{hub: text, autoGPT: a}, nil
	}
	address, token, line := strings.Cut(text, "#")
	if line && (token == "" || !strings.Contains(address, "://")) {
		return target{}, sentence("That is no pairing line. It looks like https://hub.example#token; the hub prints it.")
	}
	hub, err := settings.HubAddress(address)
	if err != nil {
		return target{}, sentence("That is no hub's address: " + err.Error() + ".")
	}
	return target{hub: hub, token: token}, nil
}

func shownAutoGPT(a settings.AutoGPT) snapshot.AutoGPT {
	return snapshot.AutoGPT{Web: a.Web, API: a.API, WS: a.WS, ClientID: a.ClientID, Scope: a.Scope, Ports: a.Ports()}
}

// pair makes this machine known to a hub and connects to it. It works again for
// one that is paired already; where it fails, all is as it was before.
func (m *Machine) pair(ctx context.Context, in snapshot.Intent) (snapshot.Reply, error) {
	t, err := m.readTarget(in)
	if err != nil {
		m.setConnect(func(c *snapshot.Connect) { c.PairError = err.Error() })
		return snapshot.Reply{}, err
	}
	ctx, end, ok := m.link.now.start(ctx)
	if !ok {
		return snapshot.Reply{}, sentence("This computer is being paired already. Finish that, or cancel it.")
	}
	defer end()
	if old := m.o.Settings.Get().Hub; old != "" && old != t.hub {
		return snapshot.Reply{}, sentence("This computer is paired already. Unpair it first.")
	}
	m.setConnect(func(c *snapshot.Connect) { c.Pairing, c.PairError = true, "" })
	if t.hub == settings.HubThis || t.token != "" {
		err = m.pairAtOnce(ctx, t)
	} else {
		err = m.signIn(ctx, t, in.Way)
	}
	cancelled := err != nil && ctx.Err() != nil
	if cancelled {
		err = sentence("Pairing was cancelled.")
	}
	m.setConnect(func(c *snapshot.Connect) {
		c.Pairing, c.SignIn = false, nil
		if err != nil && !cancelled {
			c.PairError = err.Error()
		}
	})
	if err != nil {
		return snapshot.Reply{}, err
	}
	// Whose it is now, the hub says when it is connected.
	m.link.answered(ctx, helloLimit)
	words := pairedAs(m.link.state().hub)
	if w := openWarning(t.hub); w != "" {
		words += " " + w
	}
	return say(words), nil
}

// helloLimit is how long a pairing waits to say how the connection began.
const helloLimit = 5 * time.Second

// pairedAs says with whom the computer is paired, and as whose.
func pairedAs(h snapshot.Hub) string {
	switch {
	case h.Kind == settings.HubThis || h.Name == "":
		return "Paired."
	case h.Account == "":
		return "Paired with " + consent.Visible(h.Name, false) + "."
	}
	return "Paired with " + consent.Visible(h.Name, false) + " as " + consent.Visible(h.Account, false) + "."
}

// pairAtOnce pairs with the hub inside, or by the line that a hub printed.
func (m *Machine) pairAtOnce(ctx context.Context, t target) error {
	m.link.ops.Lock()
	defer m.link.ops.Unlock()
	if t.hub != settings.HubThis {
		return m.commit(ctx, t, login.Tokens{Access: t.token})
	}
	if m.o.Hub == nil {
		return sentence("This build has no hub inside.")
	}
	old := m.o.Settings.Get().Hub
	m.link.end()
	err := m.pairThis(ctx)
	if err == nil {
		err = m.paired(ctx, t)
	}
	if err != nil && old != "" {
		m.link.begin(old) // as it was before
	}
	return err
}

func (m *Machine) pairThis(ctx context.Context) error {
	if _, err := m.o.Hub.Start(ctx); err != nil {
		m.log.Error("The hub inside could not start", "err", err)
		return sentence(m.startProblem(err))
	}
	if _, err := m.link.mint(ctx); err != nil {
		m.log.Error("The hub inside gave no token", "err", err)
		return sentence("The hub inside this program could not make a key for this computer; the log says why.")
	}
	return nil
}

// commit puts a new sign-in in the place of what was, all of it or nothing. It
// is called with ops, and is not cut short.
func (m *Machine) commit(ctx context.Context, t target, tokens login.Tokens) (err error) {
	ctx = context.WithoutCancel(ctx)
	item := login.TokenItem(t.hub)
	// The earlier one may be under way to the keychain, renewed: it must not
	// come after the new one.
	old := m.o.Settings.Get().Hub
	m.link.end()
	defer func() {
		if err != nil && old != "" {
			m.link.begin(old) // as it was before
		}
	}()
	before, missing := m.o.Keychain.Get(ctx, item)
	if err := login.Save(ctx, m.o.Keychain, item, tokens); err != nil {
		m.log.Error("The keychain does not take the token", "err", err)
		return pairUnkept(err)
	}
	if err = m.paired(ctx, t); err == nil {
		return nil
	}
	var undo error
	if missing == nil {
		undo = m.o.Keychain.Set(ctx, item, before)
	} else {
		undo = m.o.Keychain.Delete(ctx, item)
	}
	if undo != nil {
		m.log.Error("The keychain does not take the earlier sign-in back", "err", undo)
	}
	return err
}

// paired records and saves the pairing, and connects. It is called with ops.
func (m *Machine) paired(ctx context.Context, t target) error {
	if err := m.o.Record.Happened(ctx, "paired", t.hub); err != nil {
		m.log.Error("Pairing could not be recorded", "err", err)
		return sentence("This computer could not write its record, so it was not paired. Is the disk full?")
	}
	err := m.o.Settings.Change(func(s *settings.Settings) {
		s.Hub = t.hub
		if t.hub == settings.HubAutoGPT {
			s.AutoGPT = t.autoGPT
		}
	})
	if err != nil {
		m.log.Error("The settings could not be saved", "err", err)
		return sentence("The settings could not be saved, so this computer was not paired. Is the disk full?")
	}
	m.link.begin(t.hub)
	return nil
}

// giveBackLimit is how long a hub may take to hear that a sign-in is over.
const giveBackLimit = 8 * time.Second

// giveBack revokes a sign-in at its hub; false where the hub could not be told.
func (m *Machine) giveBack(ctx context.Context, t login.Tokens) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackLimit)
	defer cancel()
	network, err := tunnel.NewNetwork(m.o.Settings.Get().CAFile)
	if err == nil {
		err = login.Revoke(ctx, network.Client(), t)
	}
	if err != nil {
		m.log.Warn("The hub could not be told that a sign-in is over", "err", err)
	}
	return err == nil
}

// signIn pairs with a hub of somebody's: the person agrees on its page. Until
// they have, nothing of an earlier pairing is touched.
func (m *Machine) signIn(ctx context.Context, t target, way string) error {
	kind := "own"
	if t.hub == settings.HubAutoGPT {
		kind = settings.HubAutoGPT
	}
	show := func(fn func(*snapshot.SigningIn)) {
		m.setConnect(func(c *snapshot.Connect) {
			now := snapshot.SigningIn{Kind: kind, Hub: t.hub, Stage: snapshot.SignInStarting}
			if c.SignIn != nil {
				now = *c.SignIn
			}
			fn(&now)
			c.SignIn = &now
		})
	}
	show(func(*snapshot.SigningIn) {})
	// What can't be kept in the end is not asked for.
	if err := m.o.Keychain.Check(ctx); err != nil {
		m.log.Error("The keychain can't be used", "err", err)
		return pairUnkept(err)
	}
	tokens, err := m.tokens(ctx, t, way, show)
	if err != nil {
		m.log.Warn("The sign-in failed", "err", err)
		return pairProblem(err, t.hub)
	}
	show(func(s *snapshot.SigningIn) { s.Stage = snapshot.SignInFinishing })
	m.link.ops.Lock()
	defer m.link.ops.Unlock()
	old, missing := login.Load(ctx, m.o.Keychain, login.TokenItem(t.hub))
	if err = ctx.Err(); err == nil {
		err = m.commit(ctx, t, tokens)
	}
	if err != nil {
		m.giveBack(ctx, tokens)
		return err
	}
	if missing == nil && old.Refresh != "" {
		m.background(func(ctx context.Context) { m.giveBack(ctx, old) })
	}
	return nil
}

// tokens signs in by the way that was chosen.
func (m *Machine) tokens(ctx context.Context, t target, way string, show func(func(*snapshot.SigningIn))) (login.Tokens, error) {
	set := m.o.Settings.Get()
	network, err := tunnel.NewNetwork(set.CAFile)
	if err != nil {
		return login.Tokens{}, sentence("Pairing can't begin: " + err.Error() + ". Mend that, and pair again.")
	}
	client, match := network.Client(), ""
	var server login.Server
	if t.hub == settings.HubAutoGPT {
		a := t.autoGPT
		server = login.AutoGPT(a.Web, a.API, a.ClientID, a.Scope, a.FirstPort, a.LastPort)
	} else {
		if server, err = login.OwnHub(ctx, client, t.hub); err != nil {
			return login.Tokens{}, err
		}
		server.MachineID, server.MachineName, server.MachineSystem = set.MachineID, set.Name, login.System()
		match = login.Match()
	}
	if way == "code" {
		return login.ByCode(ctx, client, server, func(c login.Code) {
			show(func(s *snapshot.SigningIn) {
				s.Stage, s.URL, s.UserCode, s.Until = snapshot.SignInCode, c.Page, c.Code, c.Until
			})
		})
	}
	return login.Browser(ctx, client, server, match, func(page string, until time.Time) {
		show(func(s *snapshot.SigningIn) {
			s.Stage, s.URL, s.Match, s.Until = snapshot.SignInBrowser, page, match, until
		})
		m.background(func(context.Context) {
			if err := login.Open(ctx, page); err != nil && ctx.Err() == nil {
				m.log.Warn("The browser could not be opened", "err", err)
			}
		})
	}, func() { show(func(s *snapshot.SigningIn) { s.Stage = snapshot.SignInFinishing }) })
}

// pairProblem says in one sentence why a sign-in failed, and what mends it.
func pairProblem(err error, hub string) error {
	var said sentence
	var moved *login.MovedError
	where := hub
	if hub == settings.HubAutoGPT {
		where = "AutoGPT"
	}
	switch {
	case errors.As(err, &said):
		return said
	case errors.As(err, &moved):
		return sentence("That hub calls itself " + moved.Address + ". Pair with that address.")
	case errors.Is(err, login.ErrNotAHub):
		return sentence("There is no hub at " + where + "; something else answers there. Is the address right?")
	case errors.Is(err, login.ErrDeclined):
		return sentence("The sign-in was declined in the browser. Pair again if that was a mistake.")
	case errors.Is(err, login.ErrExpired):
		return sentence("Nobody agreed on the hub's page in time. Pair again to get another ten minutes.")
	case errors.Is(err, login.ErrNoCodes):
		return sentence("This hub takes no codes: sign in with the browser.")
	case errors.Is(err, login.ErrNoPort):
		return sentence("The ports that the sign-in may come back to are all in use on this computer. Close other programs that sign in to AutoGPT, and pair again.")
	case errors.Is(err, login.ErrRefused):
		return sentence("The hub did not sign this computer in. Pair again; if it happens again, whoever runs the hub can say why.")
	}
	if why := tunnel.Reason(err); why != "" {
		return sentence(why)
	}
	return sentence("The sign-in at " + where + " failed; the log says why. Pair again to try once more.")
}

// unpair ends every session, disconnects, gives the sign-in back and forgets
// the hub.
func (m *Machine) unpair(ctx context.Context) (snapshot.Reply, error) {
	m.link.now.stop()
	m.link.ops.Lock()
	defer m.link.ops.Unlock()
	s := m.o.Settings.Get()
	if s.Hub == "" {
		return snapshot.Reply{}, sentence("This computer is not paired.")
	}
	m.flights.stop("", stoppedBy("This computer was unpaired."))
	m.sessions.endAll(ctx, "This computer was unpaired.")
	m.link.end()
	m.chats.forget("This computer was unpaired.")
	if err := m.o.Settings.Change(func(s *settings.Settings) { s.Hub = "" }); err != nil {
		m.log.Error("The settings could not be saved", "err", err)
		m.link.begin(s.Hub)
		return snapshot.Reply{}, sentence("The settings could not be saved, so this computer is still paired. Is the disk full?")
	}
	told := m.tellUnpaired(ctx, s)
	if err := m.o.Keychain.Delete(ctx, login.TokenItem(s.Hub)); err != nil {
		m.log.Warn("The token could not be removed from the keychain", "err", err)
	}
	if err := m.o.Record.Happened(ctx, "unpaired", s.Hub); err != nil {
		m.log.Error("Unpairing could not be recorded", "err", err)
	}
	m.link.set(func(v *linkState) { v.embeddedToken = "" })
	m.setConnect(func(c *snapshot.Connect) { *c = snapshot.Connect{} })
	m.link.begin("")
	if !told {
		return say("Unpaired here. The hub could not be told: take this computer away on its page too."), nil
	}
	return say("Unpaired."), nil
}

// tellUnpaired gives the sign-in back; false where the hub does not know.
func (m *Machine) tellUnpaired(ctx context.Context, s settings.Settings) bool {
	if s.Hub == settings.HubThis {
		if m.o.Hub == nil {
			return true
		}
		err := m.o.Hub.RevokeMachine(ctx, s.MachineID)
		if err != nil {
			m.log.Warn("The hub could not be told of the unpairing", "err", err)
		}
		m.o.Hub.Stop()
		return true
	}
	t, err := login.Load(ctx, m.o.Keychain, login.TokenItem(s.Hub))
	if err != nil {
		m.log.Warn("The sign-in could not be read", "err", err)
		return errors.Is(err, login.ErrMissing)
	}
	// A pairing line's token can be taken back on the hub only.
	return t.RevokeURL != "" && m.giveBack(ctx, t)
}
