package hub

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/google/uuid"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
)

// maxQueued bounds what one request may have arrived and not yet taken, in
// bytes of frames. Data frames are bound by credit long before; this is for
// the others.
const maxQueued = 32 << 20

// Stream is one request on its way, as the faces know it.
type Stream = wire.Stream

// stream is one request over localpc.v1: the frames of its reply, and the chunks of
// an upload. One goroutine at a time may call Recv, and one Send. Close must
// be called.
type stream struct {
	m       *machine
	id      string
	request wire.Type
	stop    func() bool // lets go of the context

	mu       sync.Mutex
	frames   []frame // arrived and not yet taken; guarded by mu
	queued   int     // bytes of frames; guarded by mu
	data     int     // bytes of their data; guarded by mu
	taken    int     // data bytes taken and not yet given back as credit; guarded by mu
	credit   int     // data bytes that may be sent; guarded by mu
	ended    error   // what Recv returns after the frames: io.EOF or a *wire.Error; guarded by mu
	received chan struct{}
	allowed  chan struct{}

	// The reply comes over the bulk socket from when over is set; it lives as long
	// as the request.
	over  context.Context    // guarded by mu
	leave context.CancelFunc // guarded by mu
	in    *bulk.In           // nil before the first is read; set under mu by the caller of Recv

	gauge bulk.Gauge // of the caller of Send
	out   *bulk.Out  // where the caller of Send goes on; nil before; set under mu
}

type frame struct {
	msg  wire.Message
	size int
}

func offline() *wire.Error {
	return wire.Errorf(wire.CodeOffline, "The computer is not connected to the hub. It has to be switched on, with Local PC Executor running.")
}

// Call sends a request whose reply is one frame, and waits for it.
func (h *Hub) Call(ctx context.Context, b store.Sandbox, t wire.Type, p wire.Payload) (wire.Message, error) {
	s, err := h.Do(ctx, b, t, p)
	if err != nil {
		return wire.Message{}, err
	}
	defer s.Close()
	return s.Recv()
}

func (m *machine) do(ctx context.Context, t wire.Type, p wire.Payload) (Stream, error) {
	if m.blind != nil && ofComputer(t) {
		return nil, m.blind
	}
	s, err := m.start(ctx, t, p)
	if err != nil {
		return nil, err // not a nil *stream
	}
	return s, nil
}

func (m *machine) start(ctx context.Context, t wire.Type, p wire.Payload) (*stream, error) {
	s := &stream{m: m, id: uuid.NewString(), request: t, credit: wire.InitialCredit,
		received: make(chan struct{}, 1), allowed: make(chan struct{}, 1)}
	m.mu.Lock()
	if m.gone != nil {
		m.mu.Unlock()
		return nil, offline()
	}
	m.streams[s.id] = s
	m.mu.Unlock()
	if err := m.write(wire.Message{Type: t, ID: s.id, Payload: p}); err != nil {
		m.forget(s.id)
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		s.cancel(wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The request was cancelled."))
	})
	s.mu.Lock()
	s.stop = stop
	ended := s.ended != nil
	s.mu.Unlock()
	if ended {
		stop()
	}
	return s, nil
}

// Recv gives the next frame of the reply; the last one is a terminal frame,
// and io.EOF follows. An ERROR of the machine, and the loss of the connection,
// are errors: a *wire.Error.
func (s *stream) Recv() (wire.Message, error) {
	for {
		s.mu.Lock()
		if len(s.frames) > 0 {
			f := s.frames[0]
			s.frames[0] = frame{}
			s.frames = s.frames[1:]
			s.queued -= f.size
			n := wire.DataLen(f.msg.Payload)
			s.data -= n
			s.taken += n
			give := 0
			// Given back in larger pieces: a sender stalls only when it has less
			// left than one chunk, and this is at most as much.
			if s.taken >= wire.InitialCredit/4 && s.ended == nil {
				give, s.taken = s.taken, 0
			}
			s.mu.Unlock()
			if give > 0 {
				_ = s.m.write(wire.Message{Type: wire.TypeCredit, ID: s.id, Payload: &wire.Credit{Bytes: give}})
			}
			if p, ok := f.msg.Payload.(*wire.ErrorPayload); ok {
				return wire.Message{}, wire.FromWire(p)
			}
			return f.msg, nil
		}
		ended, over := s.ended, s.over
		s.mu.Unlock()
		if ended != nil {
			return wire.Message{}, ended
		}
		if over != nil {
			return s.recvOver(over)
		}
		<-s.received
	}
}

// Send sends what follows the request when the machine has room for it.
// io.EOF means that the request has ended; Recv says how.
func (s *stream) Send(f wire.Follow) error {
	if handled, err := s.sendOver(f); handled {
		return err
	}
	n := wire.DataLen(f)
	for {
		s.mu.Lock()
		if s.ended != nil {
			s.mu.Unlock()
			return io.EOF
		}
		if s.credit >= n {
			s.credit -= n
			s.mu.Unlock()
			return s.m.write(wire.Message{Type: wire.FollowType(f), ID: s.id, Payload: f})
		}
		s.mu.Unlock()
		<-s.allowed
	}
}

// Close cancels the request unless its reply has come whole. It is safe to
// call more than once, and while Recv or Send wait.
func (s *stream) Close() {
	s.cancel(wire.Errorf(wire.CodeCancelled, "The request was cancelled."))
}

// take puts a frame from the machine in the queue.
func (s *stream) take(msg wire.Message, size int) {
	if c, ok := msg.Payload.(*wire.Credit); ok {
		s.mu.Lock()
		s.credit = min(s.credit+c.Bytes, 64<<20)
		s.mu.Unlock()
		wake(s.allowed)
		return
	}
	if msg.Type == wire.TypeBulk {
		s.goOver()
		return
	}
	s.mu.Lock()
	over := s.over != nil
	s.mu.Unlock()
	if p, failed := msg.Payload.(*wire.ErrorPayload); failed && over {
		// What the computer says when it can't go on over the bulk socket.
		if s.fail(wire.FromWire(p)) {
			s.m.forget(s.id)
		}
		return
	}
	if over || !wire.Replies(s.request, msg.Type) {
		s.cancel(wire.Errorf(wire.CodeInternal, "The computer answered something else than was asked."))
		return
	}
	n := wire.DataLen(msg.Payload)
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return
	}
	if s.data+s.taken+n > wire.InitialCredit || s.queued+size > maxQueued {
		s.mu.Unlock()
		s.cancel(wire.Errorf(wire.CodeInternal, "The computer sent more than it was asked for."))
		return
	}
	s.frames = append(s.frames, frame{msg, size})
	s.queued += size
	s.data += n
	s.mu.Unlock()
	if wire.Terminal(msg.Type) {
		s.finish()
	}
	wake(s.received)
}

// cancel ends the request here and tells the machine. What arrived and was not
// taken is dropped.
func (s *stream) cancel(err *wire.Error) {
	if !s.fail(err) {
		return
	}
	s.m.forget(s.id)
	_ = s.m.write(wire.Message{Type: wire.TypeCancel, ID: s.id, Payload: &wire.Empty{}})
}

// fail ends the request here, if it has not ended.
func (s *stream) fail(err *wire.Error) bool {
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return false
	}
	s.ended = err
	s.frames, s.queued, s.data = nil, 0, 0
	s.mu.Unlock()
	s.letGo()
	wake(s.received)
	wake(s.allowed)
	return true
}

// letGo frees what a request holds that has ended.
func (s *stream) letGo() {
	s.mu.Lock()
	stop, leave, in, out, failed := s.stop, s.leave, s.in, s.out, s.ended != io.EOF
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	if leave != nil {
		leave()
		s.m.bulk.Drop(s.id)
	}
	switch {
	case in != nil && failed:
		in.Reset()
	case in != nil:
		in.Close()
	}
	switch {
	case out != nil && failed:
		out.Reset()
	case out != nil:
		out.Close()
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// asWire gives any error the shape that faces know.
func asWire(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	return wire.Wrap(err, wire.CodeInternal, "Something went wrong in the hub; its log says what.")
}
