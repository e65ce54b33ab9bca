package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"localpc/app/kept"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// typeUndo is a person's wish to have something put back. It is made on this
// computer only: no frame of the tunnel has it.
const typeUndo wire.Type = "UNDO"

// capUndo is the capability of putting back.
const capUndo = "undo"

// undoing is its payload. It takes the seven steps like all others.
type undoing struct {
	Requests []string // the newest first
	Anyway   bool     // what was done since is overwritten, and kept
	// title is what of, in a few words; newer is set by the run where somebody
	// has worked since, and nothing was done.
	title string
	newer *kept.Newer
}

// Validate implements wire.Payload.
func (u *undoing) Validate() error {
	if len(u.Requests) == 0 {
		return wire.Errorf(wire.CodeInvalid, "There is nothing to undo.")
	}
	return nil
}

// Kept is what holds old versions; nil holds none.
type Kept interface {
	// State tells whether what a request changed can be undone, or was.
	State(request string) (can, undone bool)
	// OfSession are the requests of a session that can be undone, the newest
	// first; SessionOf is the session of a request.
	OfSession(session string) []string
	SessionOf(request string) string
	// Folder is the folder that they changed.
	Folder(requests []string) string
	// Ask is what the person has to agree to first; "" for nothing.
	Ask(ctx context.Context, requests []string) (question string, err error)
	// Undo puts back; id is the undoing's own request. The error is a
	// *kept.Newer where somebody has worked since.
	Undo(ctx context.Context, id string, requests []string, anyway bool) (n int, err error)
	// Leave lets go of what is held of a folder in which nobody works any more.
	Leave(folder string)
	Tidy(ctx context.Context)
	Bytes() int64
}

var _ Kept = (*kept.Kept)(nil)

// undos is the capability that puts back.
type undos struct{ m *Machine }

func (undos) Name() string                             { return capUndo }
func (undos) Types() []wire.Type                       { return []wire.Type{typeUndo} }
func (undos) Running(string) int                       { return 0 }
func (undos) EndSession(context.Context, string) error { return nil }
func (undos) Close() error                             { return nil }

// who asks is the person.
func (u undos) who(p *undoing) asker {
	hub, name := u.m.link.hub()
	return asker{hub: hub, hubName: name, principal: consent.Principal{ID: "you", Name: "You"}, folder: u.m.o.Kept.Folder(p.Requests)}
}

// Describe says what would be put back.
func (u undos) Describe(_ context.Context, c capabilities.Call) (capabilities.Description, error) {
	p := c.Payload.(*undoing)
	var lines []string
	for _, id := range p.Requests {
		lines = append(lines, u.m.journal.title(id))
	}
	return capabilities.Description{Action: "undo", Title: "Undo: " + p.title, Sentence: "%s asked to undo: " + p.title, Exact: strings.Join(lines, "\n"),
		Payload: []any{p.Requests, p.Anyway}, Risk: consent.RiskNormal, Effects: []consent.Effect{{Kind: consent.EffectOverwrite, Text: "puts back what was there before; can be undone"}}}, nil
}

// Run puts back all of it, or nothing.
func (u undos) Run(ctx context.Context, c capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
	p := c.Payload.(*undoing)
	d, err := u.Describe(ctx, c)
	if err != nil {
		return capabilities.Result{}, err
	}
	if err := g.Check(consent.DigestOf(d.Payload), d.Fingerprint); err != nil {
		return capabilities.Result{}, err
	}
	n, err := u.m.o.Kept.Undo(ctx, g.Request(), p.Requests, p.Anyway)
	switch {
	case errors.As(err, &p.newer):
		return capabilities.Result{}, wire.Wrap(err, wire.CodeChanged, "Nothing was undone: somebody has worked there since.")
	case err != nil && ctx.Err() != nil:
		return capabilities.Result{}, err
	case err != nil:
		u.m.log.Error("An undoing failed", "err", err)
		return capabilities.Result{}, wire.Wrap(err, wire.CodeInternal, "%s", string(notUndone(err)))
	}
	words := fmt.Sprintf("%d changes taken back", n)
	if n == 1 {
		words = "1 change taken back"
	}
	return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: words}, nil
}

// notUndone says why an undoing was not done.
func notUndone(err error) sentence {
	switch {
	case errors.Is(err, kept.ErrNothing):
		return "Nothing of this is kept any more, so it can't be undone."
	case errors.Is(err, kept.ErrFolder):
		return "The folder is not there any more, or another one has taken its place, so nothing was undone."
	case kept.Full(err):
		return "The disk is full, so nothing was undone. Free some space, then try again."
	case errors.Is(err, syscall.EROFS):
		return "The disk that the folder is on can only be read, so nothing was undone. Make it writable, then try again."
	case errors.Is(err, fs.ErrPermission):
		return "You may not change something in that folder, so nothing was undone. Allow yourself to write there, then try again."
	}
	return "It could not be undone; all is as it was before, and this computer's log says why."
}

// undo does the intents Undo and UndoSession: it asks where newer work would be
// overwritten, and puts back.
func (m *Machine) undo(ctx context.Context, in snapshot.Intent) (snapshot.Reply, error) {
	if m.o.Kept == nil {
		return snapshot.Reply{}, sentence("This computer keeps no old versions, so nothing can be undone.")
	}
	u := &undoing{Requests: []string{in.Entry}, Anyway: in.Way == "anyway", title: m.journal.title(in.Entry)}
	if in.Kind == snapshot.UndoSession {
		session := in.Entry
		if of := m.o.Kept.SessionOf(session); of != "" {
			session = of // an entry of it was named
		}
		u.Requests = m.o.Kept.OfSession(session)
		u.title = fmt.Sprintf("%d requests of a session", len(u.Requests))
		if len(u.Requests) == 1 {
			u.title = m.journal.title(u.Requests[0])
		}
	} else if can, undone := m.o.Kept.State(in.Entry); undone {
		return snapshot.Reply{}, sentence("This was undone already.")
	} else if !can {
		return snapshot.Reply{}, notUndone(kept.ErrNothing)
	}
	if len(u.Requests) == 0 {
		return snapshot.Reply{}, notUndone(kept.ErrNothing)
	}
	ctx = context.WithoutCancel(ctx) // whoever stops waiting: it is Stop that stops it
	if !u.Anyway {
		question, err := m.o.Kept.Ask(ctx, u.Requests)
		if err != nil {
			m.log.Error("It could not be looked whether something can be undone", "err", err)
			return snapshot.Reply{}, notUndone(err)
		}
		if question != "" {
			return snapshot.Reply{Question: question}, nil
		}
	}
	_, _, err := m.dispatch(ctx, wire.Message{Type: typeUndo, Payload: u}, here{})
	switch {
	case u.newer != nil:
		return snapshot.Reply{Question: u.newer.Question}, nil
	case err != nil:
		return snapshot.Reply{}, sentence(err.Error())
	}
	return say("Undone: " + u.title + "."), nil
}

// byYou allows what the person asked for in Activity.
func byYou(r consent.Request) (consent.Verdict, bool) {
	if r.Capability != capUndo {
		return consent.Verdict{}, false
	}
	return consent.Verdict{Outcome: consent.Allowed, By: "you", Reason: "asked for in Activity", Choice: consent.Choice{Scope: consent.Once}}, true
}

// undoable says of an entry whether it can be undone, or was.
func (m *Machine) undoable(e *snapshot.Entry) {
	if m.o.Kept != nil {
		e.CanUndo, e.Undone = m.o.Kept.State(e.ID)
	}
}

// undoableIn counts the requests of a session that can be undone.
func (m *Machine) undoableIn(session string) int {
	if m.o.Kept == nil {
		return 0
	}
	return len(m.o.Kept.OfSession(session))
}

// leave lets go of what is held of a folder once no session works in it.
func (m *Machine) leave(folder string) {
	if m.o.Kept == nil {
		return
	}
	for _, s := range m.sessions.list() {
		if s.Folder == folder {
			return
		}
	}
	m.o.Kept.Leave(folder)
}
