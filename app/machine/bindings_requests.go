package machine

import (
	"context"
	"errors"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// chatWait is how long a card stays for a hub that speaks wire 1.1. Such a hub
// waits for 10 s or 30 s; the tunnel tells it then that the person is still
// being asked.
const chatWait = 10 * time.Minute

// List implements the control connection's DIRECTORY_LIST_REQUEST.
func (c *chats) List(ctx context.Context, p autogpt.DirectoryList) (autogpt.Directory, error) {
	reply, err := c.request(ctx, autogpt.TypeDirectoryList, &p)
	if err != nil {
		return autogpt.Directory{}, err
	}
	return *reply.(*autogpt.Directory), nil
}

// Attach implements ATTACH_SESSION.
func (c *chats) Attach(ctx context.Context, p autogpt.Attach) (autogpt.Binding, error) {
	return c.binding(ctx, autogpt.TypeAttach, &p)
}

// Activate implements ACTIVATE_SESSION. After it the chat's data connection is
// to be opened, and Handler takes what comes there.
func (c *chats) Activate(ctx context.Context, p autogpt.Activate) (autogpt.Binding, error) {
	return c.binding(ctx, autogpt.TypeActivate, &p)
}

// Restore implements RESTORE_SESSION, with Activate's effect.
func (c *chats) Restore(ctx context.Context, p autogpt.Restore) (autogpt.Binding, error) {
	return c.binding(ctx, autogpt.TypeRestore, &p)
}

// Detach implements DETACH_SESSION. Of a chat that is not bound nothing is
// recorded: a hub may name as many as it likes.
func (c *chats) Detach(ctx context.Context, chat string) error {
	c.mu.Lock()
	b := c.get(chat)
	c.mu.Unlock()
	if b == nil {
		return nil
	}
	_, err := c.request(ctx, autogpt.TypeDetach, &autogpt.Detach{SessionID: chat})
	return err
}

func (c *chats) binding(ctx context.Context, t autogpt.Type, p wire.Payload) (autogpt.Binding, error) {
	reply, err := c.request(ctx, t, p)
	if err != nil {
		return autogpt.Binding{}, err
	}
	return *reply.(*autogpt.Binding), nil
}

// request takes one request of the control connection through the seven steps.
// ctx ends with that connection, and with it the card.
func (c *chats) request(ctx context.Context, t autogpt.Type, p wire.Payload) (wire.Payload, error) {
	_, reply, err := c.m.dispatch(ctx, wire.Message{Type: wire.Type(t), ID: consent.NewID(), Payload: p}, oneFrame{})
	return reply, err
}

// oneFrame is the exchange of a request that is one frame each way. Whether
// its client still waits is the tunnel's business: what it asks for changes
// nothing that a late answer could spoil.
type oneFrame struct{}

var errOneFrame = errors.New("a request of one frame each way")

func (oneFrame) Begin() bool                                         { return true }
func (oneFrame) Send(context.Context, wire.Type, wire.Payload) error { return errOneFrame }
func (oneFrame) Next(context.Context) (wire.Follow, error)           { return nil, errOneFrame }

// opening is the one card of a chat's session, for all requests that wait.
type opening struct {
	cancel  context.CancelCauseFunc
	waiting int           // guarded by chats.mu
	done    chan struct{} // closed when err is set
	err     error
}

// Handler is the tunnel.Handler of chats. SessionID in msg is the chat's id, or
// its autogpt.SessionKey. A chat's first request raises the card of its
// session; then it takes the seven steps like any other.
func (c *chats) Handler(ctx context.Context, msg wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	e := c.m.registry.Lookup(msg.Type)
	if e == capabilities.Capability(c) || e == capabilities.Capability(c.m.sessions) {
		return "", nil, wire.Errorf(wire.CodeNotSupported, "Chats do not ask for %s.", msg.Type)
	}
	c.mu.Lock()
	b := c.get(sessionOf(msg.Payload))
	var runtime context.Context
	if b != nil {
		runtime, b.used = b.ctx, time.Now()
	}
	c.mu.Unlock()
	if runtime == nil {
		return "", nil, wire.Errorf(wire.CodeSessionNotOpen, "This chat is not connected to a folder of this computer.")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(runtime, func() { cancel(context.Cause(runtime)) })()
	if err := c.open(ctx, runtime, b); err != nil {
		return "", nil, err
	}
	address(msg.Payload, b.session, chatWait)
	return c.m.dispatch(ctx, msg, x)
}

// open waits until the chat's session is open. The card is one for all who
// wait, and is withdrawn when nobody waits any more.
func (c *chats) open(ctx, runtime context.Context, b *binding) error {
	for {
		c.mu.Lock()
		settling := c.settling[b.session]
		s, err := c.m.sessions.get(b.session)
		switch {
		case settling != nil:
		case b.declined != nil:
			defer c.mu.Unlock()
			return b.declined
		case err != nil && b.opening != nil && b.opening.waiting >= maxOfSession:
			defer c.mu.Unlock()
			return wire.Errorf(wire.CodeOverloaded, "%d requests of this chat wait for the person already; try again in a moment.", maxOfSession)
		case err != nil:
			return c.wait(ctx, c.opening(runtime, b), b)
		case s.ending():
			settling = s.over
		default:
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		// What the chat had before is still being ended.
		select {
		case <-settling:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// opening is the open card of a chat's session, counted as one more that waits
// for it, or a new one. Called with mu held.
func (c *chats) opening(runtime context.Context, b *binding) *opening {
	if b.opening == nil {
		b.opening = c.ask(runtime, b)
	}
	b.opening.waiting++
	return b.opening
}

// wait waits for an opening. Called with mu held, which it releases.
func (c *chats) wait(ctx context.Context, o *opening, b *binding) error {
	c.mu.Unlock()
	var err error
	select {
	case <-o.done:
		err = o.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.waiting--; o.waiting == 0 && b.opening == o {
		b.opening = nil
		o.cancel(err)
	}
	return err
}

// ask asks for the session of a chat, in its folder and no other. Called with
// mu held.
func (c *chats) ask(runtime context.Context, b *binding) *opening {
	ctx, cancel := context.WithCancelCause(runtime)
	o := &opening{cancel: cancel, done: make(chan struct{})}
	_, hub := c.m.link.hub()
	who := platform(hub)
	ok := c.m.background(func(context.Context) {
		defer cancel(nil)
		_, _, err := c.m.dispatch(ctx, wire.Message{Type: wire.TypeSessionOpen, ID: consent.NewID(), Payload: &wire.SessionOpen{
			SessionID: b.session, PrincipalID: who.ID, PrincipalName: who.Name, Title: "Chat " + shortened(b.chat),
			Folder: b.root, FolderOnly: true, WaitMS: int(chatWait.Milliseconds())}}, oneFrame{})
		c.mu.Lock()
		if b.opening == o {
			b.opening = nil
		}
		if wire.CodeOf(err) == wire.CodeDenied && b.ctx == runtime {
			b.declined = err
		}
		c.mu.Unlock()
		o.err = err
		close(o.done)
	})
	if !ok {
		cancel(nil)
		o.err = stoppedBy("This computer's program was closed.")
		close(o.done)
	}
	return o
}

// shortened is enough of a chat's id to tell it from others.
func shortened(chat string) string {
	if len(chat) <= 12 {
		return chat
	}
	return chat[:8] + "…"
}
