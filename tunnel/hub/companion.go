package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// opening is how long a computer may take to open the data connection of a
// chat that it has activated.
const opening = 8 * time.Second

// companion is a connected computer that speaks AutoGPT's wire 1.1: the
// existing companion program, for one. It asks nobody and knows no sessions: a
// sandbox is a chat bound to the folder that the computer's person has set on
// this hub.
type companion struct {
	h     *Hub
	m     *autogpt.Machine
	epoch int64
	pids  atomic.Int64
	busy  atomic.Int64 // requests under way

	// settling is held while a session and its sandbox are noted, and while the
	// two lists are compared. It is taken before mu.
	settling sync.Mutex

	mu    sync.Mutex
	fresh map[string]struct{}    // being opened, and not noted yet; guarded by mu
	waits map[string]*sync.Mutex // one restore at a time for each session; guarded by mu
	// views are how the last pictures of each session lie on the screens, the
	// newest last; guarded by mu.
	views map[string][]space.View
}

var _ computer = (*companion)(nil)

// companions is what the 1.1 face sees of a hub.
type companions struct {
	*Hub
	mu   sync.Mutex
	list map[*autogpt.Machine]*companion // guarded by mu
}

// newCompanions makes the 1.1 face.
func (h *Hub) newCompanions() *autogpt.Face {
	return autogpt.New(h.ctx, autogpt.Options{
		Hub: &companions{Hub: h, list: map[*autogpt.Machine]*companion{}}, Log: h.log, Strict: h.o.Strict, Closed: h.o.Meter.Closed,
		HelloTimeout: h.o.HelloTimeout, Heartbeat: h.o.Heartbeat, PongTimeout: h.o.PongTimeout,
	})
}

// serveTunnel tells the profiles of a computer's connection apart.
func (h *Hub) serveTunnel(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("session") == "" && slices.Contains(websocket.Subprotocols(r), wire.Subprotocol) {
		h.serveMachine(w, r)
		return
	}
	if !h.enter() {
		writeError(w, http.StatusServiceUnavailable, "The hub is being stopped.")
		return
	}
	defer h.wg.Done()
	h.chats.Handler().ServeHTTP(w, r)
}

func (b *companions) Access(ctx context.Context, bearer string) (store.Access, error) {
	if b.oauth == nil {
		return store.Access{}, store.ErrNotFound
	}
	return b.oauth.Access(ctx, bearer)
}

func (b *companions) BindSignIn(ctx context.Context, signIn, machine string) error {
	return b.store.BindSignIn(ctx, signIn, machine)
}

func (b *companions) SignInLive(ctx context.Context, signIn string) (bool, error) {
	return b.store.SignInLive(ctx, signIn)
}

func (b *companions) Binding(ctx context.Context, session string) (store.Binding, error) {
	return b.store.Binding(ctx, session)
}

// Joined notes a computer's new connection as its newest.
func (b *companions) Joined(ctx context.Context, m *autogpt.Machine) error {
	h := b.Hub
	c := &companion{h: h, m: m, fresh: map[string]struct{}{}, waits: map[string]*sync.Mutex{}, views: map[string][]space.View{}}
	arch := map[string]string{"x86_64": "amd64"}[m.Hello.Arch]
	if arch == "" {
		arch = m.Hello.Arch
	}
	name := m.Hello.DisplayName
	if name == "" {
		name = m.ID
	}
	h.enrolling.Lock()
	defer h.enrolling.Unlock()
	epoch, err := h.store.Connected(ctx, store.Machine{ID: m.ID, User: m.User, Name: name, Platform: m.Hello.Platform, Arch: arch, Software: store.CompanionSoftware + m.Hello.ShimVersion})
	if err != nil {
		return err
	}
	c.epoch = epoch
	b.mu.Lock()
	b.list[m] = c
	b.mu.Unlock()
	h.mu.Lock()
	old := h.machines[m.ID]
	h.machines[m.ID] = c
	h.mu.Unlock()
	// Of its own kind the face ends the older one, and says why.
	if v1, ok := old.(*machine); ok {
		v1.replaced()
	}
	return nil
}

// Left takes a connection that has ended out of the registry.
func (b *companions) Left(m *autogpt.Machine) {
	h := b.Hub
	b.mu.Lock()
	c := b.list[m]
	delete(b.list, m)
	b.mu.Unlock()
	h.mu.Lock()
	if h.machines[m.ID] == computer(c) {
		delete(h.machines, m.ID)
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), 5*time.Second)
	defer cancel()
	if err := h.store.Disconnected(ctx, m.ID, c.epoch); err != nil {
		h.log.Error("Disconnection could not be noted", "machine", m.ID, "err", err)
	}
}

// Heard is a sign of life.
func (b *companions) Heard(ctx context.Context, m *autogpt.Machine) {
	b.mu.Lock()
	c := b.list[m]
	b.mu.Unlock()
	if c == nil {
		return
	}
	if err := b.store.Seen(ctx, m.ID, c.epoch); err != nil {
		b.log.Error("Presence could not be noted", "machine", m.ID, "err", err)
	}
	b.recheck(ctx, c)
}

func (c *companion) machineID() string { return c.m.ID }

// offers names what was granted in the words of localpc.v1.
func (c *companion) offers() []string {
	var out []string
	for _, g := range c.m.Granted {
		switch g {
		case msg.Files, msg.Shell:
			out = append(out, g)
		case msg.ComputerUse:
			out = append(out, "computer")
		}
	}
	return out
}

func (c *companion) joined() time.Time { return c.m.Since }

func (c *companion) proven() proof {
	return proof{user: c.m.User, machine: c.m.ID, signIn: c.m.SignIn, client: msg.ClientID, scopes: []string{msg.Scope}}
}

func (c *companion) replaced() { c.m.Replaced() }

func (c *companion) revoked() { c.m.Revoked() }

func (c *companion) drain() {
	if c.busy.Load() == 0 {
		c.m.SendOff()
	}
}

// open binds a new chat to the computer's folder and has it activated.
func (c *companion) open(ctx context.Context, o wire.SessionOpen) (*wire.SessionOpened, error) {
	folder, err := c.h.store.Folder(ctx, c.m.User, c.m.ID)
	if err != nil {
		return nil, asWire(err)
	}
	if folder == "" {
		return nil, c.noFolder(ctx)
	}
	c.busy.Add(1)
	defer c.busy.Add(-1)
	c.mu.Lock()
	c.fresh[o.SessionID] = struct{}{}
	c.mu.Unlock()
	root, err := c.bind(ctx, o, folder)
	if err != nil {
		c.mu.Lock()
		delete(c.fresh, o.SessionID)
		c.mu.Unlock()
		c.closeSession(o.SessionID)
		return nil, fromMachine(err)
	}
	return &wire.SessionOpened{Folder: root, Mode: "companion", TTLSeconds: o.TTLSeconds}, nil
}

func (c *companion) noFolder(ctx context.Context) error {
	where := "the hub's page, under Machines"
	if address, err := c.h.store.Address(ctx); err == nil && address != "" {
		where = address + "/machines/" + url.PathEscape(c.m.ID) + "/folder"
	}
	return wire.Errorf(wire.CodeUndelivered, "No folder is set yet for the computer %s, so no program can work there. Its person sets one at %s", c.m.Hello.DisplayName, where)
}

func (c *companion) bind(ctx context.Context, o wire.SessionOpen, folder string) (string, error) {
	face, user, id := c.h.chats, c.m.User, c.m.ID
	browse, ref, err := face.Walk(ctx, user, id, folder)
	if err != nil {
		return "", err
	}
	b, err := face.Attach(ctx, user, id, msg.Attach{SessionID: o.SessionID, BrowseID: browse, DirectoryRef: ref, ExpectedConnection: &c.m.Connection})
	if err != nil {
		return "", err
	}
	// Before the data connection comes, which is let in for a bound chat alone.
	if err := c.h.store.SetBinding(ctx, store.Binding{Session: b.SessionID, User: user, Machine: id, Root: b.AllowedRoot,
		Fingerprint: b.Fingerprint, Revision: b.Revision, Grant: b.RootGrant, Env: o.Env}); err != nil {
		return "", err
	}
	if _, err := face.Activate(ctx, user, id, msg.Activate{SessionID: b.SessionID, Revision: b.Revision}); err != nil {
		return "", err
	}
	return b.AllowedRoot, face.Await(ctx, b.SessionID, opening)
}

func (c *companion) note(ctx context.Context, b store.Sandbox, ttl time.Duration) (store.Sandbox, error) {
	c.settling.Lock()
	defer c.settling.Unlock()
	b, err := c.h.store.AddSandbox(ctx, b, ttl)
	c.mu.Lock()
	delete(c.fresh, b.ID)
	c.mu.Unlock()
	return b, err
}

// ensure has a chat's data connection open: one that was idle, and all after a
// restart of either end, are restored.
func (c *companion) ensure(ctx context.Context, session string) (store.Binding, error) {
	b, err := c.h.store.Binding(ctx, session)
	if errors.Is(err, store.ErrNotFound) || err == nil && (b.User != c.m.User || b.Machine != c.m.ID) {
		return b, wire.Errorf(wire.CodeSessionNotOpen, "The session is not open on the computer any more.")
	}
	if err != nil {
		return b, err
	}
	c.mu.Lock()
	one := c.waits[session]
	if one == nil {
		one = &sync.Mutex{}
		c.waits[session] = one
	}
	c.mu.Unlock()
	one.Lock()
	defer one.Unlock()
	if c.h.chats.Connected(session) {
		return b, nil
	}
	if err := c.h.chats.Restore(ctx, b.User, b.Machine, msg.Binding{SessionID: b.Session, AllowedRoot: b.Root, Fingerprint: b.Fingerprint, Revision: b.Revision, RootGrant: b.Grant}); err != nil {
		if slices.Contains([]wire.Code{msg.CodeGrantInvalid, msg.CodeRevision, autogpt.CodeInvalidReply}, msg.CodeOf(err)) {
			c.lost(ctx, session)
		}
		return b, err
	}
	return b, c.h.chats.Await(ctx, session, opening)
}

// lost ends a sandbox whose folder the computer does not give back.
func (c *companion) lost(ctx context.Context, session string) {
	err := c.h.store.EndSandbox(ctx, session, "the computer did not give its folder back")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.h.log.Error("End of a sandbox could not be noted", "session", session, "err", err)
	}
	c.closeSession(session)
}

// setSession has nothing to note: the bindings in the store are what is open.
func (c *companion) setSession(string, bool) {}

// closeSession detaches a chat; nobody waits for the answer.
func (c *companion) closeSession(id string) {
	if !c.h.enter() {
		return
	}
	go func() {
		defer c.h.wg.Done()
		if err := c.detach(c.h.ctx, id); err != nil {
			c.h.log.Info("Session could not be closed now", "machine", c.m.ID, "session", id, "err", err)
		}
	}()
}

// detach ends a chat there, and then here: one that could not be ended there
// is tried again when the lists are compared.
func (c *companion) detach(ctx context.Context, id string) error {
	if err := c.h.chats.Detach(ctx, c.m.User, c.m.ID, id); err != nil {
		return err
	}
	c.mu.Lock()
	delete(c.waits, id)
	delete(c.views, id)
	c.mu.Unlock()
	return c.h.store.DeleteBinding(ctx, id)
}

func (c *companion) reconcile(ctx context.Context) {
	c.settling.Lock()
	defer c.settling.Unlock()
	bindings, err := c.h.store.Bindings(ctx, c.m.User, c.m.ID)
	var stale []string
	if err == nil {
		open := []string{}
		for _, b := range bindings {
			open = append(open, b.Session)
		}
		stale, err = c.h.store.Reconcile(ctx, c.m.ID, open)
	}
	if err != nil {
		c.h.log.Error("Sandboxes could not be compared", "machine", c.m.ID, "err", err)
		return
	}
	for _, id := range stale {
		c.mu.Lock()
		_, fresh := c.fresh[id]
		c.mu.Unlock()
		if !fresh {
			c.closeSession(id)
		}
	}
}

// plainCodes are those that both wires have.
var plainCodes = []wire.Code{wire.CodePathOutside, wire.CodePathChars, wire.CodePathNotFound, wire.CodePathExists, wire.CodePathNotEmpty,
	wire.CodeTooLarge, wire.CodeShellMissing, wire.CodeOverloaded, wire.CodeNotSupported, wire.CodeInternal,
	wire.CodeBounds, wire.CodeWindowStale, wire.CodeConcealed}

// fromMachine gives an error of the 1.1 face the shape that the other faces
// know.
func fromMachine(err error) *wire.Error {
	var d *msg.Detailed
	if !errors.As(err, &d) {
		switch e := asWire(err); e.Code {
		case autogpt.CodeTimeout, autogpt.CodeUnconfirmed:
			return wire.Wrap(err, wire.CodeLost, "%s", e.Message)
		case autogpt.CodeInvalidReply:
			return wire.Wrap(err, wire.CodeInternal, "%s", e.Message)
		default:
			return e
		}
	}
	said := strings.ToValidUTF8(d.Message[:min(len(d.Message), 1000)], "")
	if said == "" {
		said = "The computer refused, and did not say why."
	}
	switch d.Code {
	case msg.CodePathReserved:
		return wire.Errorf(wire.CodePathChars, "%s", said)
	case msg.CodePending: // somebody is still being asked there, and the same runs later
		return wire.Errorf(wire.CodeExpired, "%s", said)
	case msg.CodeNotGranted:
		return wire.Errorf(wire.CodeNotSupported, "The computer does not offer this: it is switched off in its program there (%s).", said)
	case msg.CodeGrantInvalid, msg.CodeNotAttached, msg.CodeRevision:
		return wire.Errorf(wire.CodeSessionNotOpen, "The computer does not give the folder back any more: %s", said)
	case msg.CodeUnavailable, msg.CodeReferenceInvalid:
		return wire.Errorf(wire.CodePathNotFound, "The computer's folder cannot be used now: %s", said)
	}
	if slices.Contains(plainCodes, d.Code) {
		return wire.Errorf(d.Code, "%s", said).With(bounded(d.Details))
	}
	return wire.Errorf(wire.CodeInternal, "%s", said)
}

// bounded is details that are not too large to be sent on.
func bounded(details map[string]any) map[string]any {
	if b, err := json.Marshal(details); err != nil || len(b) > wire.MaxDetails || len(details) == 0 {
		return nil
	}
	return details
}
