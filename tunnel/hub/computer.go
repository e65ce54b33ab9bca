package hub

import (
	"context"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// computer is a connection of a computer, whichever profile it speaks: a
// machine (localpc.v1) or a companion (AutoGPT's wire 1.1). The registry holds
// the newest one of each. Errors are *wire.Error.
type computer interface {
	machineID() string
	// proven is what it connected with, so whose it is.
	proven() proof
	// offers are the capabilities that it said it has.
	offers() []string
	// joined is when the connection began.
	joined() time.Time
	// open asks for a session; ctx ends at the caller's patience.
	open(ctx context.Context, o wire.SessionOpen) (*wire.SessionOpened, error)
	// note keeps the sandbox of a session that has just been opened.
	note(ctx context.Context, b store.Sandbox, ttl time.Duration) (store.Sandbox, error)
	// do sends one localpc.v1 request; the end of ctx cancels it.
	do(ctx context.Context, t wire.Type, p wire.Payload) (Stream, error)
	// setSession notes that a session is open there, or not any more.
	setSession(id string, open bool)
	// closeSession ends a session there; nobody waits for the answer.
	closeSession(id string)
	// reconcile compares the sandboxes noted here with the sessions there.
	reconcile(ctx context.Context)
	// replaced ends the connection because a newer one took over, revoked
	// because its tokens ended.
	replaced()
	revoked()
	// drain ends the connection because the hub is being stopped, unless
	// requests are under way there.
	drain()
}

var _ computer = (*machine)(nil)
