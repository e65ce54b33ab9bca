package autogpt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// maxLive chats have a data connection at once.
const maxLive = 8

// runtime is one chat's data connection, kept until it is stopped, has been
// idle, or ends in a way that no reconnect can mend.
type runtime struct {
	binding msg.Binding
	ch      *channel
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

var (
	errStopped = errors.New("the chat was stopped here")
	errEnding  = errors.New("the chat's connection is just ending")
)

// live tells whether a chat has a runtime.
func (c *Client) live(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runtimes[session] != nil
}

// room tells whether a chat can be live too, before anything is asked.
func (c *Client) room(session string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roomFor(session)
}

// roomFor is room for callers that hold mu.
func (c *Client) roomFor(session string) error {
	if c.runtimes[session] == nil && len(c.runtimes) >= maxLive {
		return wire.Errorf(msg.CodeInternal, "This computer already works for %d chats, which is the most at once. Detach one of them first.", maxLive)
	}
	return nil
}

// settle waits for a connection that is ending by itself, so that its end is
// not mistaken for that of the next one.
func (c *Client) settle(ctx context.Context, session string) {
	c.mu.Lock()
	r := c.runtimes[session]
	c.mu.Unlock()
	if r == nil || !r.ch.ending.Load() {
		return
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// start makes a chat live in the folder it is bound to. One that is live there
// already goes on; one that is live elsewhere is started anew. errEnding: one
// that was live has just ended.
func (c *Client) start(ctx context.Context, b msg.Binding) error {
	if !msg.RootFits(b.AllowedRoot) {
		return wire.Errorf(msg.CodeGrantInvalid, "The name of this chat's folder has characters that the hub does not take, or is too long. Choose another folder.")
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx) // the control connection went: so do all runtimes
		}
		c.mu.Lock()
		old := c.runtimes[b.SessionID]
		if old == nil {
			break
		}
		c.mu.Unlock()
		switch {
		case old.ch.ending.Load():
			return errEnding
		case old.binding.AllowedRoot == b.AllowedRoot && old.binding.Fingerprint == b.Fingerprint && old.binding.Revision == b.Revision:
			return nil
		}
		c.stop(old)
	}
	defer c.mu.Unlock()
	if err := c.roomFor(b.SessionID); err != nil {
		return err
	}
	// The connection of a chat outlives the request that started it, and ends
	// with Run.
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	ch := &channel{session: b.SessionID, root: b.AllowedRoot, bound: fmt.Sprintf("%s %d", b.Fingerprint, b.Revision)}
	r := &runtime{binding: b, ch: ch, cancel: cancel, done: make(chan struct{})}
	c.runtimes[b.SessionID] = r
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		defer close(r.done)
		defer cancel(nil)
		err := c.keep(own, c.url+"/"+url.PathEscape(b.SessionID), ch, func(tunnel.State) {})
		c.o.Log.Info("Chat's connection ended", "err", err)
		ch.ending.Store(true)
		if !errors.Is(err, errStopped) {
			c.o.OnStopped(b.SessionID)
		}
		c.mu.Lock()
		delete(c.runtimes, b.SessionID)
		c.mu.Unlock()
	}()
	return nil
}

// stop ends a runtime and waits for it.
func (c *Client) stop(r *runtime) {
	r.cancel(errStopped)
	<-r.done
}

// End stops a chat's data connection, and returns when it has ended. The
// binding stays. It is for the person's end of a chat too; safe for concurrent
// use.
func (c *Client) End(session string) {
	c.mu.Lock()
	r := c.runtimes[session]
	c.mu.Unlock()
	if r != nil {
		c.stop(r)
	}
}

// stopAll ends all runtimes. What takes its time to end goes on ending after
// some seconds; Run waits for it.
func (c *Client) stopAll(ctx context.Context) {
	c.mu.Lock()
	all := make([]*runtime, 0, len(c.runtimes))
	for _, r := range c.runtimes {
		all = append(all, r)
	}
	c.mu.Unlock()
	for _, r := range all {
		r.cancel(fmt.Errorf("%w: the control connection is a new one", errStopped))
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	for _, r := range all {
		select {
		case <-r.done:
		case <-ctx.Done():
			return
		}
	}
}
