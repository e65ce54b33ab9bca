package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
)

// socket is one connection: a reader (the goroutine of serve), a pinger, and a
// goroutine per request. serve waits for all of them.
type socket struct {
	c     *Client
	conn  *websocket.Conn
	began time.Time
	bulk  *bulk.Hall
	lane  string        // the id that the hub takes a bulk socket with; "" where it takes none
	asked chan struct{} // has one in it after the first request
	wg    sync.WaitGroup

	writeMu sync.Mutex // one writer at a time (gorilla)

	mu     sync.Mutex
	open   map[string]*request // guarded by mu
	active int                 // admitted requests; guarded by mu
	bearer string              // the token that the hub has last; guarded by mu
}

type request struct {
	x        *exchange
	asked    wire.Type
	cancel   context.CancelCauseFunc
	admitted bool
}

const writeTimeout = 10 * time.Second

func newSocket(c *Client, conn *websocket.Conn, token string) *socket {
	return &socket{c: c, conn: conn, began: time.Now(), bulk: bulk.NewHall(), asked: make(chan struct{}, 1), open: map[string]*request{}, bearer: token}
}

func (s *socket) token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bearer
}

// greet sends HELLO and waits for its answer.
func (s *socket) greet(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	hello := s.c.o.Hello()
	id := uuid.NewString()
	if err := s.write(wire.Message{Type: wire.TypeHello, ID: id, Payload: &hello}); err != nil {
		return err
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(wire.HelloTimeout))
	_, r, err := s.conn.NextReader()
	if err != nil {
		return fmt.Errorf("wait for HELLO_ACK: %w", err)
	}
	data, err := wire.ReadFrame(r, wire.MaxHello)
	if err != nil {
		return fmt.Errorf("wait for HELLO_ACK: %w", err)
	}
	m, err := wire.Decode(data, wire.ToMachine)
	if err != nil {
		return fmt.Errorf("HELLO_ACK: %w", err)
	}
	ack, ok := m.Payload.(*wire.HelloAck)
	if !ok || m.ID != id {
		s.close(wire.CloseBadHello, "expected HELLO_ACK")
		return fmt.Errorf("the hub's first frame was %s, not the answer to HELLO", m.Type)
	}
	if wire.Major(ack.Protocol) != wire.Major(wire.Version) {
		s.close(wire.CloseVersion, "major version differs")
		return fmt.Errorf("%w: hub %s, here %s", ErrVersion, ack.Protocol, wire.Version)
	}
	if ack.Bulk {
		s.lane = ack.ConnectionID
	}
	s.c.o.OnState(State{Phase: Online, HubName: ack.HubName, Account: ack.Account})
	return nil
}

// serve reads until the connection ends; then every request is cancelled and
// waited for.
func (s *socket) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.close(websocket.CloseNormalClosure, "")
		s.conn.Close()
	})
	defer stop()
	// What requests see as the cause is always a *wire.Error, so their context
	// ends here and not with its parent.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	alive := func(string) error {
		return s.conn.SetReadDeadline(time.Now().Add(s.c.o.Heartbeat + s.c.o.PongTimeout))
	}
	_ = alive("")
	s.conn.SetPongHandler(alive)
	ping := s.conn.PingHandler()
	s.conn.SetPingHandler(func(d string) error { _ = alive(""); return ping(d) })

	s.wg.Add(1)
	go s.beat(ctx)
	if s.c.o.Fresh != nil {
		s.wg.Add(1)
		go s.renew(ctx)
	}
	if s.lane != "" {
		s.wg.Add(1)
		go s.carry(ctx, s.lane)
	}
	err := s.read(ctx, alive)
	lost := wire.Wrap(err, wire.CodeLost, "The connection to the hub was lost.")
	cancel(lost)
	s.mu.Lock()
	for _, r := range s.open {
		r.cancel(lost)
		r.x.end(lost)
	}
	s.mu.Unlock()
	s.conn.Close()
	s.bulk.Close()
	s.wg.Wait()
	return err
}

func (s *socket) read(ctx context.Context, alive func(string) error) error {
	for {
		kind, r, err := s.conn.NextReader()
		var data []byte
		if err == nil {
			data, err = wire.ReadFrame(r, wire.MaxFrame)
		}
		var frame *wire.FrameError
		if errors.As(err, &frame) {
			s.c.o.Log.Warn("Frame dropped", "reason", frame.Reason)
			continue
		}
		if err != nil {
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				return fmt.Errorf("nothing heard for %s: %w", s.c.o.Heartbeat+s.c.o.PongTimeout, err)
			}
			return err
		}
		_ = alive("")
		if kind != websocket.TextMessage {
			s.c.o.Log.Warn("Frame dropped", "reason", "binary frame")
			continue
		}
		m, err := wire.Decode(data, wire.ToMachine)
		if err != nil {
			s.reject(err)
			continue
		}
		s.dispatch(ctx, m)
	}
}

// reject answers a frame that cannot be read, when it names a request that is
// not already running.
func (s *socket) reject(err error) {
	var fe *wire.FrameError
	if !errors.As(err, &fe) {
		return
	}
	s.c.o.Log.Warn("Frame refused", "type", fe.Type, "reason", fe.Reason)
	s.mu.Lock()
	_, running := s.open[fe.ID]
	s.mu.Unlock()
	if fe.ID == "" || running {
		return
	}
	_ = s.write(wire.Message{Type: wire.TypeError, ID: fe.ID, Payload: &wire.ErrorPayload{Code: wire.CodeInvalid, Message: "This computer does not understand the request: " + fe.Reason + "."}})
}

func (s *socket) dispatch(ctx context.Context, m wire.Message) {
	switch m.Type {
	case wire.TypePing:
		_ = s.write(wire.Message{Type: wire.TypePong, ID: m.ID, Payload: &wire.Empty{}})
		return
	case wire.TypeHelloAck:
		s.c.o.Log.Warn("Frame dropped", "type", m.Type, "reason", "second HELLO_ACK")
		return
	case wire.TypeCancel, wire.TypeCredit, wire.TypeBulk, wire.TypeFileChunk, wire.TypeProcessInput, wire.TypeProcessResize:
		s.mu.Lock()
		r := s.open[m.ID]
		s.mu.Unlock()
		if r == nil {
			// Late: its request has ended.
			if m.Type == wire.TypeBulk {
				s.bulk.Drop(m.ID)
			}
			return
		}
		switch p := m.Payload.(type) {
		case *wire.Credit:
			r.x.addCredit(p.Bytes)
		case wire.Follow:
			if !wire.Follows(r.asked, m.Type) || !r.x.add(p) {
				err := wire.Errorf(wire.CodeInvalid, "The hub sent more than it was asked for.")
				r.x.end(err)
				r.cancel(err)
			}
		case *wire.Empty:
			if m.Type == wire.TypeBulk {
				r.x.goOver()
				return
			}
			err := wire.Errorf(wire.CodeCancelled, "The request was cancelled.")
			r.cancel(err)
			r.x.end(err)
		}
		return
	}

	ctx, cancel := context.WithCancelCause(ctx)
	r := &request{x: newExchange(s, m.ID, m.Type, cancel), asked: m.Type, cancel: cancel, admitted: admitted(m.Type)}
	s.mu.Lock()
	if _, dup := s.open[m.ID]; dup {
		s.mu.Unlock()
		cancel(nil)
		s.c.o.Log.Warn("Frame dropped", "type", m.Type, "reason", "its id is in use")
		return
	}
	if r.admitted && s.active >= s.c.o.MaxConcurrent {
		s.mu.Unlock()
		cancel(nil)
		zero := 0
		_ = s.write(wire.Message{Type: wire.TypeError, ID: m.ID, PendingCapacity: &zero, Payload: &wire.ErrorPayload{
			Code: wire.CodeOverloaded, Message: fmt.Sprintf("This computer already works on %d requests; try again in a moment.", s.c.o.MaxConcurrent)}})
		return
	}
	s.open[m.ID] = r
	if r.admitted {
		s.active++
	}
	s.mu.Unlock()
	select {
	case s.asked <- struct{}{}:
	default:
	}

	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer cancel(nil)
		t, p, err := s.c.o.Handler(ctx, m, r.x)
		if err != nil {
			t, p = wire.TypeError, wire.ToWire(err)
		}
		s.mu.Lock()
		freed := r.admitted && s.active == s.c.o.MaxConcurrent
		if r.admitted {
			s.active--
		}
		free := s.c.o.MaxConcurrent - s.active
		s.mu.Unlock()
		r.x.end(errors.New("the request has ended"))
		// Until it is sent, which may wait for its reader, CANCEL still finds it.
		err = r.x.reply(ctx, wire.Message{Type: t, ID: m.ID, PendingCapacity: &free, Payload: p})
		s.mu.Lock()
		delete(s.open, m.ID)
		s.mu.Unlock()
		if err != nil {
			s.c.o.Log.Warn("Reply could not be sent", "type", t, "err", err)
			// The other end must not wait for a reply that never comes.
			if _, isError := p.(*wire.ErrorPayload); !isError {
				_ = s.write(wire.Message{Type: wire.TypeError, ID: m.ID, Payload: wire.ToWire(err)})
			}
		}
		if freed {
			s.status()
		}
	}()
}

// begun frees the place of a process that starts now: it may go on for as long
// as it likes, and the machine bounds how many there are.
func (s *socket) begun(id string) {
	s.mu.Lock()
	r := s.open[id]
	freed := false
	if r != nil && r.admitted && r.asked == wire.TypeProcessStart {
		freed = s.active == s.c.o.MaxConcurrent
		r.admitted = false
		s.active--
	}
	s.mu.Unlock()
	if freed {
		s.status()
	}
}

// admitted tells whether a request counts against MaxConcurrent. What ends or
// pauses work never waits for it.
func admitted(t wire.Type) bool {
	switch t {
	case wire.TypeSessionClose, wire.TypeSessionPause, wire.TypeSessionResume, wire.TypeProcessSignal,
		wire.TypeFileWatch: // which only waits; the machine bounds them
		return false
	}
	return true
}

// renew gives the hub each token that was renewed, before the one it has ends,
// so that what runs is not disturbed.
func (s *socket) renew(ctx context.Context) {
	defer s.wg.Done()
	for {
		token, err := s.c.o.Fresh(ctx, s.token())
		if err != nil {
			if ctx.Err() == nil {
				s.c.o.Log.Warn("The sign-in could not be renewed", "err", err)
			}
			return // the hub closes the connection when it has to
		}
		if err := s.write(wire.Message{Type: wire.TypeAuthorize, ID: uuid.NewString(), Payload: &wire.Authorize{Token: token}}); err != nil {
			return
		}
		s.mu.Lock()
		s.bearer = token
		s.mu.Unlock()
	}
}

// beat pings, and sends STATUS at 30 s intervals.
func (s *socket) beat(ctx context.Context) {
	defer s.wg.Done()
	ping, status := time.NewTicker(s.c.o.Heartbeat), time.NewTicker(30*time.Second)
	defer ping.Stop()
	defer status.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ping.C:
			if err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(5*time.Second)); err != nil {
				s.c.o.Log.Warn("Ping could not be sent", "err", err)
			}
			s.bulk.Ping()
		case <-status.C:
			s.status()
		}
	}
}

func (s *socket) status() {
	st := s.c.o.Status()
	s.mu.Lock()
	st.InFlight = s.active
	s.mu.Unlock()
	st.MaxConcurrent = s.c.o.MaxConcurrent
	st.UptimeSeconds = time.Since(s.began).Seconds()
	_ = s.write(wire.Message{Type: wire.TypeStatus, ID: uuid.NewString(), Payload: &st})
}

func (s *socket) write(m wire.Message) error {
	data, err := wire.Encode(m)
	if err != nil {
		return err
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := s.conn.WriteMessage(websocket.TextMessage, data); err != nil {
		s.conn.Close() // the reader notices
		return err
	}
	return nil
}

func (s *socket) close(code int, reason string) {
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
}
