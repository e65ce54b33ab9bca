package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// grace is how long a machine may take beyond the person's time to say how a
// question ended.
const grace = 8 * time.Second

// Open asks for a session on the machine of b's user that connected last, or
// on b.Machine if that is set (an id, or a name as its person reads it), and
// notes the sandbox once the person has agreed. o's session id is filled in,
// and b is what is noted beside it. The error is a *wire.Error.
func (h *Hub) Open(ctx context.Context, o wire.SessionOpen, b store.Sandbox) (store.Sandbox, error) {
	if b.Machine != "" {
		return h.openNamed(ctx, o, b)
	}
	m := h.newest(b.User)
	if m == nil {
		return store.Sandbox{}, wire.Errorf(wire.CodeOffline, "No computer is connected to this hub. It has to be switched on, with Local PC Executor running.")
	}
	return h.openOn(ctx, m, o, b)
}

// openNamed opens on the connected machine of b's user with the id or name
// b.Machine. Two of one name are not guessed between.
func (h *Hub) openNamed(ctx context.Context, o wire.SessionOpen, b store.Sandbox) (store.Sandbox, error) {
	list, err := h.store.Machines(ctx, b.User)
	if err != nil {
		return store.Sandbox{}, asWire(err)
	}
	var found []computer
	for _, known := range list {
		m := h.lookup(b.User, known.ID)
		switch {
		case known.ID == b.Machine && m != nil:
			return h.openOn(ctx, m, o, b)
		case m != nil && strings.EqualFold(known.Name, b.Machine):
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return store.Sandbox{}, wire.Errorf(wire.CodeOffline, "No computer of that name is connected to this hub. It has to be switched on, with Local PC Executor running.")
	case 1:
		return h.openOn(ctx, found[0], o, b)
	}
	return store.Sandbox{}, wire.Errorf(wire.CodeInvalid, "There are %d connected computers of that name; give the id of one instead.", len(found))
}

func (h *Hub) openOn(ctx context.Context, m computer, o wire.SessionOpen, b store.Sandbox) (store.Sandbox, error) {
	id := make([]byte, 10)
	rand.Read(id)
	// E2B's host names join a port and an id with a dash, so ids have none.
	o.SessionID = "i" + hex.EncodeToString(id)
	ctx, shutOut := context.WithCancelCause(ctx)
	defer shutOut(nil)
	defer h.asks(o.SessionID, question{m.proven().user, b.Principal, shutOut})()
	// A program's work goes on when it has left: it may be shut out by now.
	if live, err := h.store.PrincipalLive(ctx, m.proven().user, b.Principal); err == nil && !live {
		return store.Sandbox{}, revoked(store.ErrRevoked)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(o.WaitMS)*time.Millisecond+grace,
		errors.New("the computer did not say how the question ended"))
	defer cancel()
	done := h.measure(wire.TypeSessionOpen)
	opened, err := m.open(ctx, o)
	done(outcome(err))
	if err != nil {
		if ctx.Err() != nil {
			// It may have been opened at the last moment.
			m.closeSession(o.SessionID)
			switch {
			case errors.Is(context.Cause(ctx), store.ErrRevoked):
				err = revoked(context.Cause(ctx))
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				err = wire.Wrap(err, wire.CodeUndelivered, "The computer did not answer in time, so nothing was opened.")
			}
		}
		return store.Sandbox{}, err
	}
	b.ID, b.User, b.Machine, b.Folder, b.Mode = o.SessionID, m.proven().user, m.machineID(), opened.Folder, opened.Mode
	if b, err = m.note(ctx, b, time.Duration(opened.TTLSeconds)*time.Second); err != nil {
		m.closeSession(o.SessionID)
		if cause := context.Cause(ctx); errors.Is(cause, store.ErrRevoked) {
			err = cause
		}
		if errors.Is(err, store.ErrRevoked) {
			h.log.Info("A program was shut out before its session was open", "session", o.SessionID)
			return store.Sandbox{}, revoked(err)
		}
		h.log.Error("Sandbox could not be noted", "err", err)
		return store.Sandbox{}, asWire(err)
	}
	return b, nil
}

// revoked is what a program hears that was shut out while it asked.
func revoked(cause error) error {
	return wire.Wrap(cause, wire.CodeForbidden, "This program was shut out: its key was revoked, or its person disconnected it. Nothing was opened.")
}

// question is for a session, and waits for its person.
type question struct {
	user, principal string
	shutOut         context.CancelCauseFunc
}

// asks notes a question until done is called, so that a revocation finds it.
func (h *Hub) asks(session string, q question) (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.openings[session] = q
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.openings, session)
	}
}

// recheckOpenings ends the questions of those who were shut out.
func (h *Hub) recheckOpenings() {
	h.mu.Lock()
	asked := slices.Collect(maps.Values(h.openings))
	h.mu.Unlock()
	for _, q := range asked {
		live, err := h.store.PrincipalLive(h.ctx, q.user, q.principal)
		switch {
		case err != nil && h.ctx.Err() == nil:
			h.log.Error("A program's question could not be checked", "err", err)
		case err == nil && !live:
			q.shutOut(store.ErrRevoked)
		}
	}
}

// note keeps the sandbox of a session that has just been opened.
func (m *machine) note(ctx context.Context, b store.Sandbox, ttl time.Duration) (store.Sandbox, error) {
	m.settling.Lock()
	defer m.settling.Unlock()
	b, err := m.h.store.AddSandbox(ctx, b, ttl)
	if err == nil {
		m.setSession(b.ID, true)
	}
	return b, err
}

func (m *machine) open(ctx context.Context, o wire.SessionOpen) (*wire.SessionOpened, error) {
	s, err := m.start(ctx, wire.TypeSessionOpen, &o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	msg, err := s.Recv()
	if err != nil {
		return nil, err
	}
	return msg.Payload.(*wire.SessionOpened), nil
}

// closeSession ends a session on the machine; nobody waits for the answer.
func (m *machine) closeSession(id string) {
	m.setSession(id, false)
	if _, err := m.start(m.h.ctx, wire.TypeSessionClose, &wire.SessionRef{SessionID: id}); err != nil {
		m.h.log.Info("Session could not be closed now", "machine", m.id, "session", id, "err", err)
	}
}

// newest is the user's machine that connected last, or nil.
func (h *Hub) newest(user string) computer {
	h.mu.Lock()
	defer h.mu.Unlock()
	var newest computer
	for _, m := range h.machines {
		if m.proven().user != user {
			continue
		}
		if newest == nil || m.joined().After(newest.joined()) {
			newest = m
		}
	}
	return newest
}

// lookup is the user's connected machine with that id, or nil.
func (h *Hub) lookup(user, id string) computer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.machines[id]; m != nil && m.proven().user == user {
		return m
	}
	return nil
}

// SetTTL moves the end of a sandbox, there and here. The error is a
// *wire.Error.
func (h *Hub) SetTTL(ctx context.Context, b store.Sandbox, ttl time.Duration) error {
	if _, err := h.Call(ctx, b, wire.TypeSessionTTL, &wire.SessionTTL{SessionID: b.ID, TTLSeconds: int(ttl / time.Second)}); err != nil {
		h.gone(ctx, b, err)
		return err
	}
	if err := h.store.SetEnd(ctx, b.ID, ttl); err != nil && !errors.Is(err, store.ErrNotFound) {
		return asWire(err)
	}
	return nil
}

// gone notes that the machine has no such session any more, if err says so.
func (h *Hub) gone(ctx context.Context, b store.Sandbox, err error) {
	if wire.CodeOf(err) != wire.CodeSessionNotOpen {
		return
	}
	if m := h.lookup(b.User, b.Machine); m != nil {
		m.setSession(b.ID, false)
	}
	if err := h.store.EndSandbox(ctx, b.ID, err.Error()); err != nil && !errors.Is(err, store.ErrNotFound) {
		h.log.Error("End of a sandbox could not be noted", "session", b.ID, "err", err)
	}
}

// End ends a sandbox, there and here. A machine that is not connected learns
// of it when it connects. store.ErrNotFound when it was not running.
func (h *Hub) End(ctx context.Context, b store.Sandbox, reason string) error {
	if err := h.store.EndSandbox(ctx, b.ID, reason); err != nil {
		return err
	}
	m := h.lookup(b.User, b.Machine)
	if m == nil {
		return nil
	}
	m.setSession(b.ID, false)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := h.Call(ctx, b, wire.TypeSessionClose, &wire.SessionRef{SessionID: b.ID}); err != nil && wire.CodeOf(err) != wire.CodeSessionNotOpen {
		h.log.Info("Session could not be closed now", "machine", b.Machine, "session", b.ID, "err", err)
	}
	return nil
}

// sessionEnded notes that a session ended on the machine's side.
func (h *Hub) sessionEnded(ctx context.Context, machine string, p *wire.SessionEnded) {
	b, err := h.store.Sandbox(ctx, p.SessionID)
	if err == nil && b.Machine == machine {
		err = h.store.EndSandbox(ctx, b.ID, p.Reason)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		h.log.Error("End of a sandbox could not be noted", "session", p.SessionID, "err", err)
	}
}

// backend is what the faces see of a hub.
type backend struct{ *Hub }

func (b backend) Online(s store.Sandbox) bool { return b.lookup(s.User, s.Machine) != nil }
