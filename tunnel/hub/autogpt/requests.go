package autogpt

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// Codes of errors that are the hub's own and never cross the wire.
const (
	// CodeTimeout: the machine did not answer in time. Whether it did what it
	// was asked is not known.
	CodeTimeout wire.Code = "MACHINE_REQUEST_TIMEOUT"
	// CodeUnconfirmed: the connection was lost; the same is not known.
	CodeUnconfirmed  wire.Code = "OP_UNCONFIRMED"
	CodeInvalidReply wire.Code = "INVALID_MACHINE_RESPONSE"
)

// Call is one request on its way. One goroutine may receive; Close must be
// called.
type Call struct {
	c    *conn
	id   string
	t    msg.Type
	sent time.Time

	// left: nobody waits any more, yet the answer may still come. idle: and it
	// takes no room at the machine. Both are guarded by c.mu.
	left, idle bool

	mu     sync.Mutex
	frames []frame // arrived and not taken; guarded by mu
	queued int     // bytes of frames; guarded by mu
	end    error   // what follows the frames; guarded by mu
	wake   chan struct{}
}

type frame struct {
	m    msg.Message
	size int
}

// gated tells whether a request waits for room that the machine said it has
// not; the others only keep to the most at once.
func gated(t msg.Type) bool { return !msg.Control(t) && t != msg.TypeLLM && t != msg.TypePing }

// start sends one request when the machine has room for it.
func (c *conn) start(ctx context.Context, t msg.Type, p wire.Payload) (*Call, error) {
	call := &Call{c: c, id: uuid.NewString(), t: t, wake: make(chan struct{}, 1)}
	data, err := msg.Encode(msg.Message{Type: t, ID: call.id, Payload: p}, wire.ToMachine)
	if err != nil {
		if errors.Is(err, msg.ErrTooLarge) {
			return nil, wire.Wrap(err, wire.CodeTooLarge, "The request is larger than the computer takes.")
		}
		return nil, wire.Wrap(err, wire.CodeInvalid, "The request is not valid.")
	}
	if err := c.admit(ctx, call); err != nil {
		return nil, err
	}
	if err := c.write(ctx, data); err != nil {
		c.mu.Lock()
		delete(c.calls, call.id)
		c.wakeLocked()
		c.mu.Unlock()
		return nil, err
	}
	return call, nil
}

// admit notes the call as outstanding, once there is room.
func (c *conn) admit(ctx context.Context, call *Call) error {
	hold := time.NewTimer(c.f.o.Hold)
	defer hold.Stop()
	for {
		c.mu.Lock()
		if c.gone != nil {
			defer c.mu.Unlock()
			return c.gone
		}
		busy := 0
		for id, o := range c.calls {
			switch {
			case o.left && time.Since(o.sent) > c.f.o.LateFor:
				delete(c.calls, id)
			case !o.idle && o.t != msg.TypePing:
				busy++
			}
		}
		fits := call.t == msg.TypePing || busy < c.limit && (c.capacity != 0 || !gated(call.t))
		if fits && len(c.calls) < c.f.o.Outstanding {
			call.sent = time.Now()
			c.calls[call.id] = call
			c.mu.Unlock()
			return nil
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.done:
		case <-hold.C:
			return wire.Errorf(wire.CodeOverloaded, "The computer is busy with other requests; try again in a moment.")
		case <-ctx.Done():
			return wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The request was cancelled.")
		}
	}
}

// deliver hands a frame to the call with its id. An error ends the connection.
func (c *conn) deliver(id string, t msg.Type, size int, read func(*Call) (msg.Message, error)) error {
	c.mu.Lock()
	call := c.calls[id]
	if call != nil && call.left && time.Since(call.sent) > c.f.o.LateFor {
		delete(c.calls, id)
		call = nil
	}
	if call == nil {
		c.mu.Unlock()
		return c.harmless(msg.RuleUnasked, "a "+string(t)+" for no outstanding request")
	}
	wrong := !msg.Replies(call.t, t)
	if wrong || msg.Terminal(t) {
		delete(c.calls, id)
		c.wakeLocked()
	}
	left := call.left
	c.mu.Unlock()
	if wrong {
		call.fail(wire.Errorf(CodeInvalidReply, "The computer answered something else than was asked."))
		return c.harmless(msg.RuleOther, "a "+string(t)+" in answer to "+string(call.t))
	}
	if left {
		return nil // late, and harmless
	}
	m, err := read(call)
	if err != nil {
		call.fail(err)
		return nil
	}
	if !call.push(m, size, c.f.o.BacklogFrames, c.f.o.BacklogBytes) {
		return c.breach(msg.RuleBacklog, "more than anybody reads")
	}
	return nil
}

// push queues a frame; false when there is too much.
func (call *Call) push(m msg.Message, size, frames, bytes int) bool {
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.end != nil {
		return true
	}
	if len(call.frames) >= frames || call.queued+size > bytes {
		return false
	}
	call.frames = append(call.frames, frame{m, size})
	call.queued += size
	if msg.Terminal(m.Type) {
		call.end = io.EOF
	}
	call.notify()
	return true
}

func (call *Call) notify() {
	select {
	case call.wake <- struct{}{}:
	default:
	}
}

// fail ends the call here with err, dropping what nobody has taken.
func (call *Call) fail(err error) {
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.end == nil {
		call.end, call.frames = err, nil
		call.notify()
	}
}

// Recv gives the next frame of the reply; io.EOF follows the terminal one. An
// ERROR of the machine is a *msg.Detailed, what the hub says a *wire.Error.
func (call *Call) Recv(ctx context.Context) (msg.Message, error) {
	for {
		call.mu.Lock()
		if len(call.frames) > 0 {
			f := call.frames[0]
			call.frames = call.frames[1:]
			call.queued -= f.size
			call.mu.Unlock()
			if p, ok := f.m.Payload.(*msg.Error); ok {
				return msg.Message{}, msg.ToError(p)
			}
			return f.m, nil
		}
		end := call.end
		call.mu.Unlock()
		if end != nil {
			return msg.Message{}, end
		}
		select {
		case <-call.wake:
		case <-ctx.Done():
			return msg.Message{}, wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The request was cancelled.")
		}
	}
}

// Close says that nobody waits any more. The protocol has no way to cancel: a
// late answer is taken for what it is.
func (call *Call) Close() {
	call.c.mu.Lock()
	call.left = true
	call.c.mu.Unlock()
	call.mu.Lock()
	defer call.mu.Unlock()
	call.frames, call.queued = nil, 0
	if call.end == nil {
		call.end = io.EOF
	}
}

// ask sends a request and waits for its one reply.
func (c *conn) ask(ctx context.Context, t msg.Type, p wire.Payload, wait time.Duration) (msg.Message, error) {
	call, err := c.start(ctx, t, p)
	if err != nil {
		return msg.Message{}, err
	}
	defer call.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errTimeout)
	defer cancel()
	m, err := call.Recv(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) && wire.CodeOf(err) == wire.CodeCancelled {
		return m, wire.Wrap(err, CodeTimeout, "The computer did not answer in time. It may still do what it was asked.")
	}
	return m, err
}

var errTimeout = errors.New("no reply in time")

// wait is how long the reply to a data request may take. A command may use
// its whole time, and needs some to be ended.
func (f *Face) wait(p wire.Payload) time.Duration {
	e, ok := p.(*msg.Execute)
	if !ok {
		return f.o.DataWait
	}
	limit := f.o.CommandTimeout
	if e.Timeout != nil {
		limit = min(limit, time.Duration(*e.Timeout)*time.Second)
	}
	return max(f.o.DataWait, limit+10*time.Second)
}

// Do sends a request of a chat and waits for its reply. When the connection is
// lost meanwhile, a request that changes nothing is sent once more on the next
// one; for others the error is CodeUnconfirmed. An ERROR of the machine is a
// *msg.Detailed; otherwise the error is a *wire.Error: wire.CodeOffline when
// the chat has no connection, wire.CodeOverloaded when the machine has no
// room, CodeTimeout, CodeInvalidReply.
func (f *Face) Do(ctx context.Context, session string, t msg.Type, p wire.Payload) (msg.Message, error) {
	c := f.chat(session)
	if c == nil {
		return msg.Message{}, offline()
	}
	m, err := c.ask(ctx, t, p, f.wait(p))
	if wire.CodeOf(err) != wire.CodeLost {
		return m, err
	}
	if !msg.Harmless(t) {
		return m, wire.Wrap(err, CodeUnconfirmed, "The connection to the computer was lost, and whether it did what it was asked is not known.")
	}
	if again := f.await(ctx, session, f.o.Reconnect); again == nil {
		if c := f.chat(session); c != nil {
			return c.ask(ctx, t, p, f.wait(p))
		}
	}
	return m, err
}

// Stream sends a request of a chat whose reply may have many frames. It has no
// time limit of its own.
func (f *Face) Stream(ctx context.Context, session string, t msg.Type, p wire.Payload) (*Call, error) {
	c := f.chat(session)
	if c == nil {
		return nil, offline()
	}
	return c.start(ctx, t, p)
}

// chat is the data connection of a session, or nil.
func (f *Face) chat(session string) *conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.chats[session]
}

// Connected tells whether a chat has its data connection.
func (f *Face) Connected(session string) bool { return f.chat(session) != nil }

// Await waits until a chat has its data connection; wire.CodeOffline when that
// takes longer than patience.
func (f *Face) Await(ctx context.Context, session string, patience time.Duration) error {
	return f.await(ctx, session, patience)
}

// arrival is a session's data connection that somebody waits for.
type arrival struct {
	come    chan struct{} // closed when it has come
	waiting int           // guarded by Face.mu
}

// arrival is that of a session, which the caller, who holds f.mu, waits for
// until done.
func (f *Face) arrival(session string) (a *arrival, done func()) {
	if a = f.arrivals[session]; a == nil {
		a = &arrival{come: make(chan struct{})}
		f.arrivals[session] = a
	}
	a.waiting++
	return a, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if a.waiting--; a.waiting == 0 && f.arrivals[session] == a {
			delete(f.arrivals, session)
		}
	}
}

func (f *Face) await(ctx context.Context, session string, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		f.mu.Lock()
		if f.chats[session] != nil {
			f.mu.Unlock()
			return nil
		}
		a, done := f.arrival(session)
		f.mu.Unlock()
		var err error
		select {
		case <-a.come:
		case <-timer.C:
			err = wire.Errorf(wire.CodeOffline, "The computer did not open the connection for this folder in time.")
		case <-ctx.Done():
			err = wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The request was cancelled.")
		case <-f.ctx.Done():
			err = wire.Errorf(wire.CodeLost, "The hub was stopped.")
		}
		done()
		if err != nil {
			return err
		}
	}
}

// arrived tells who waits for a chat's connection that it is there.
func (f *Face) arrived(c *conn) {
	if c.control() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.arrivals[c.session]; a != nil {
		close(a.come)
		delete(f.arrivals, c.session)
	}
}
