package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
)

// proof is what a computer proved itself with when it connected: a token of
// its own, or the access token of a sign-in.
type proof struct {
	user    string
	machine string // "" when no machine has come with it yet
	token   string // the id of the machine token, or
	signIn  string // the id of the sign-in
	client  string // the sign-in's
	scopes  []string
	expires time.Time // zero: it does not expire
}

// same tells whether a later proof is of the same token or sign-in.
func (p proof) same(later proof) bool { return p.token == later.token && p.signIn == later.signIn }

// may tells whether the proof lets its bearer do what scope says. A token of
// the machine's own does all that a computer does.
func (p proof) may(scope string) bool { return p.signIn == "" || slices.Contains(p.scopes, scope) }

// prove finds what a bearer token stands for. store.ErrNotFound when it is not
// good.
func (h *Hub) prove(ctx context.Context, secret string) (proof, error) {
	if strings.HasPrefix(secret, store.MachinePrefix) {
		t, err := h.store.FindMachineToken(ctx, secret)
		return proof{user: t.User, machine: t.Machine, token: t.ID}, err
	}
	if h.oauth == nil {
		return proof{}, store.ErrNotFound
	}
	a, err := h.oauth.Access(ctx, secret)
	return proof{user: a.User, machine: a.Machine, signIn: a.SignIn, client: a.Client, scopes: a.Scopes, expires: a.Expires}, err
}

// bind gives the token or sign-in to the machine that came with it, if no
// machine has it yet. The errors are the store's.
func (h *Hub) bind(ctx context.Context, p *proof, machine string) error {
	if p.machine != "" {
		return nil
	}
	var err error
	if p.signIn != "" {
		err = h.store.BindSignIn(ctx, p.signIn, machine)
	} else {
		err = h.store.Bind(ctx, p.token, machine)
	}
	if err == nil {
		p.machine = machine
	}
	return err
}

// live tells whether what was proved is still good, its expiry aside.
func (h *Hub) live(ctx context.Context, p proof) (bool, error) {
	if p.signIn != "" {
		return h.store.SignInLive(ctx, p.signIn)
	}
	return h.store.TokenLive(ctx, p.token)
}

// recheckChats ends what was revoked of the connections of AutoGPT's wire: a chat's may live
// on when its computer's own is gone, and then no computer is asked for it.
func (h *Hub) recheckChats() {
	for _, id := range h.chats.SignIns() {
		live, err := h.store.SignInLive(h.ctx, id)
		switch {
		case err != nil:
			h.log.Error("Sign-in could not be checked", "signIn", id, "err", err)
		case !live:
			h.chats.RevokeSignIn(id)
		}
	}
}

// spawn runs work that Close waits for, unless the hub is closed.
func (h *Hub) spawn(work func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() == nil {
		h.wg.Go(work)
	}
}

// connected lists the connections of now.
func (h *Hub) connected() []computer {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]computer, 0, len(h.machines))
	for _, c := range h.machines {
		list = append(list, c)
	}
	return list
}

// present are those, and one that is just being enrolled.
func (h *Hub) present() []computer {
	list := h.connected()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.arriving != nil {
		list = append(list, h.arriving)
	}
	return list
}

// signInEnded ends the connections that were made with a sign-in, now.
func (h *Hub) signInEnded(signIn, reason string) {
	h.chats.RevokeSignIn(signIn)
	computers := false
	for _, c := range h.present() {
		if c.proven().signIn == signIn {
			computers = true
			h.log.Info("Sign-in ended", "machine", c.machineID(), "reason", reason)
			c.revoked()
		}
	}
	if !computers { // a program's, perhaps: what it opened ends with it
		h.spawn(h.lookAtAll)
	}
}

// expiry ends a connection when its token has expired and no newer one of the
// same sign-in has come. It is set by the connection's goroutines in turn.
type expiry struct{ timer *time.Timer }

// set puts the end at a proof's expiry.
func (e *expiry) set(p proof, end func()) {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	if !p.expires.IsZero() {
		e.timer = time.AfterFunc(max(0, time.Until(p.expires)), end)
	}
}

func (e *expiry) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}
