package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// Caps of one machine (wire 1.1, section 9).
const (
	maxLive  = 8  // chats that are active
	maxBound = 64 // chats that are remembered
)

// capFolders is the capability of browsing and binding folders.
const capFolders = "folders"

// chats binds the chats of a hub that speaks wire 1.1 to folders. It is the
// capability "folders", so that what the hub wants of it takes the same seven
// steps as all else. The tunnel to such a hub is given it (link.autoGPT): as
// the Folders of its control connection, and with Handler for what bound chats
// ask.
//
// A binding lends nothing. The names of folders are told once the person has
// allowed it, and a chat's first request raises the card of its session.
type chats struct {
	m       *Machine
	browser *browser
	secrets *secrets
	// asking is what a permission to browse "for this session" holds for: as
	// long as this program runs.
	asking string

	ops sync.Mutex // one change of bindings at a time

	mu    sync.Mutex
	bound map[string]*binding // by autogpt.SessionKey of the chat; guarded by mu
	// settling are the sessions of which something is being ended. Guarded by mu.
	settling map[string]chan struct{}
}

// binding is one chat bound to one folder. Its fields do not change, but for
// those after mu.
type binding struct {
	hub, chat   string
	root        string
	fingerprint string
	revision    int64
	grant       string
	session     string // the id of its session on this machine

	// Guarded by chats.mu:
	used    time.Time
	ctx     context.Context // of its runtime; nil when it is not active
	stop    context.CancelCauseFunc
	opening *opening
	// declined is the person's no to its session; it holds until the chat is
	// activated anew.
	declined error
}

var _ capabilities.Capability = (*chats)(nil)

func newChats(m *Machine) *chats {
	return &chats{m: m, browser: newBrowser(m.sessions.forbidden), secrets: &secrets{keychain: m.o.Keychain}, asking: "folders." + consent.NewID(), bound: map[string]*binding{}, settling: map[string]chan struct{}{}}
}

func (c *chats) Name() string { return capFolders }

func (c *chats) Types() []wire.Type {
	var out []wire.Type
	for _, t := range []autogpt.Type{autogpt.TypeDirectoryList, autogpt.TypeAttach, autogpt.TypeActivate, autogpt.TypeRestore, autogpt.TypeDetach} {
		out = append(out, wire.Type(t))
	}
	return out
}

func (c *chats) Running(string) int                       { return 0 }
func (c *chats) EndSession(context.Context, string) error { return nil }
func (c *chats) Close() error                             { return nil }

// who asks on the control connection: the platform itself.
func (c *chats) who() asker {
	hub, name := c.m.link.hub()
	return asker{hub: hub, hubName: name, principal: platform(name), session: c.asking}
}

// platform is the principal of all chats of a hub: what they are is known to
// the hub alone.
func platform(hubName string) consent.Principal {
	if hubName == "" {
		hubName = "AutoGPT"
	}
	return consent.Principal{ID: "platform", Name: hubName}
}

// get returns the binding of a chat of the hub that this machine is paired
// with now, or nil. Called with mu held.
func (c *chats) get(chat string) *binding {
	hub, _ := c.m.link.hub()
	if b := c.bound[autogpt.SessionKey(chat)]; b != nil && b.hub == hub {
		return b
	}
	return nil
}

// remember keeps a binding in place of the chat's earlier one. Of too many the
// one that is longest unused goes, with its session, never an active one.
func (c *chats) remember(b *binding) {
	var oldest *binding
	c.mu.Lock()
	b.used = time.Now()
	c.bound[autogpt.SessionKey(b.chat)] = b
	if len(c.bound) > maxBound {
		for _, other := range c.bound {
			if other.ctx == nil && other != b && (oldest == nil || other.used.Before(oldest.used)) {
				oldest = other
			}
		}
		delete(c.bound, autogpt.SessionKey(oldest.chat))
	}
	c.mu.Unlock()
	if oldest != nil {
		c.endSession(oldest, "The hub has bound many other chats since.")
	}
}

// fits makes sure that a session that is a chat's opens in the folder that the
// chat was bound to, which another one may have replaced.
func (c *chats) fits(session, fingerprint string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.bound {
		if b.session == session && b.fingerprint != fingerprint {
			return wire.Errorf(wire.CodeChanged, "Another folder is in the place of %s, which this chat was bound to. Choose the folder again.", b.root)
		}
	}
	return nil
}

// bind makes a binding. The session's id is one of ours: a chat that comes
// back with the same folder finds the consent that it had.
func (c *chats) bind(chat, root, fingerprint string, revision int64, grant string) *binding {
	hub, _ := c.m.link.hub()
	sum := sha256.Sum256([]byte(hub + "\x00" + chat + "\x00" + root + "\x00" + fingerprint))
	return &binding{hub: hub, chat: chat, root: root, fingerprint: fingerprint, revision: revision, grant: grant, session: "chat." + hex.EncodeToString(sum[:16])}
}

func (b *binding) told() *autogpt.Binding {
	return &autogpt.Binding{SessionID: b.chat, AllowedRoot: b.root, Fingerprint: b.fingerprint, Revision: b.revision, RootGrant: b.grant}
}

// check makes sure that the folder is there, the same, and may be lent.
func (c *chats) check(root, fingerprint string) error {
	if real, err := c.m.sessions.lendable(root); err != nil || real != root {
		return grantInvalid("the folder is not there, or can't be lent")
	}
	if id, err := capabilities.FolderID(root); err != nil || fingerprintOf(root, id) != fingerprint {
		return grantInvalid("another folder is in its place")
	}
	return nil
}

// start makes a binding active. The tunnel keeps no more than maxLive
// connections of chats: of more, one here has lost its own, and is halted.
func (c *chats) start(b *binding) {
	c.mu.Lock()
	b.used = time.Now()
	var idle *binding
	if b.ctx == nil {
		b.declined = nil
		b.ctx, b.stop = context.WithCancelCause(c.m.ctx)
		live := 1
		for _, other := range c.bound {
			if other.ctx == nil || other == b {
				continue
			}
			if live++; idle == nil || other.used.Before(idle.used) {
				idle = other
			}
		}
		if live <= maxLive {
			idle = nil
		}
	}
	c.mu.Unlock()
	if idle != nil {
		c.halt(idle, idleStop)
	}
}

const idleStop = "The chat's connection has ended."

// halt ends what an active chat does: its requests at once, what they left
// running soon after. The consent for its session lives on for its time.
func (c *chats) halt(b *binding, why string) {
	cause := stoppedBy(why)
	c.mu.Lock()
	stop := b.stop
	b.ctx, b.stop = nil, nil
	c.mu.Unlock()
	if stop == nil {
		return
	}
	stop(cause)
	c.m.flights.stop(b.session, cause)
	c.settle(b.session, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		for _, e := range c.m.o.Executors {
			if err := e.EndSession(ctx, b.session); err != nil {
				c.m.log.Error("A chat's work did not end", "capability", e.Name(), "err", err)
			}
		}
	})
}

// settle ends something of a session in the background, one after the other;
// a request that would work in it waits for that (open). When the program ends
// it does nothing: all ends then.
func (c *chats) settle(session string, end func(ctx context.Context)) {
	done := make(chan struct{})
	c.mu.Lock()
	before := c.settling[session]
	c.settling[session] = done
	c.mu.Unlock()
	finish := func() {
		c.mu.Lock()
		if c.settling[session] == done {
			delete(c.settling, session)
		}
		c.mu.Unlock()
		close(done)
	}
	ok := c.m.background(func(ctx context.Context) {
		defer finish()
		if before != nil {
			<-before
		}
		end(ctx)
	})
	if !ok {
		finish()
	}
}

// Reset is called for each new control connection: every reference dies, and
// so does what the chats of the last one were doing.
func (c *chats) Reset() {
	c.browser.reset()
	c.mu.Lock()
	all := make([]*binding, 0, len(c.bound))
	for _, b := range c.bound {
		all = append(all, b)
	}
	c.mu.Unlock()
	for _, b := range all {
		c.halt(b, "The connection to the hub was lost.")
	}
}

// Stopped says that a chat's data connection has ended by itself: it was idle,
// refused or given up. The binding stays.
func (c *chats) Stopped(chat string) {
	c.mu.Lock()
	b := c.bound[autogpt.SessionKey(chat)]
	c.mu.Unlock()
	if b != nil {
		c.halt(b, idleStop)
	}
}

// forget ends every chat of the hub, its session too: the hub was left, or has
// revoked this computer.
func (c *chats) forget(why string) {
	c.Reset()
	c.mu.Lock()
	all := c.bound
	c.bound = map[string]*binding{}
	c.mu.Unlock()
	for _, b := range all {
		c.endSession(b, why)
	}
}

// endSession ends a chat's session, where it has one, and does not wait for it.
func (c *chats) endSession(b *binding, why string) {
	c.settle(b.session, func(ctx context.Context) { _ = c.m.sessions.end(ctx, b.session, why, "") })
}
