package autogpt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// socket is one connection: a reader (the goroutine of serve), a beat, and a
// goroutine or two per request. serve waits for all of them.
type socket struct {
	c     *Client
	conn  *websocket.Conn
	ch    *channel
	token string
	began time.Time
	wg    sync.WaitGroup
	// cancel ends the tasks; set by serve before anything runs.
	cancel func(error)

	// What HELLO_ACK said, and this machine's own limits.
	granted  []string
	max      int // requests admitted at once
	fileSize int64
	timeout  time.Duration
	platform string // as HELLO said

	writeMu sync.Mutex  // one writer at a time (gorilla)
	silent  atomic.Bool // nothing more is said

	mu       sync.Mutex
	open     map[string]bool // ids of admitted requests; guarded by mu
	inFlight int             // tasks being handled; guarded by mu
	queued   int             // admitted, not started; guarded by mu
	heard    time.Time       // guarded by mu
	ended    error           // why this end closes it; guarded by mu
	windows  map[string]bool // ids of the last list of windows; guarded by mu
}

// writeTimeout is long: a reply may have 16 MiB.
const writeTimeout = time.Minute

func newSocket(c *Client, conn *websocket.Conn, ch *channel, token string) *socket {
	return &socket{c: c, conn: conn, ch: ch, token: token, began: time.Now(), heard: time.Now(), open: map[string]bool{}}
}

// greet sends HELLO and checks its answer, in the order of the protocol.
func (s *socket) greet(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(s.c.o.Timings.Goodbye))
		s.conn.Close()
	})
	defer stop()
	hello := s.c.o.Hello()
	hello.Protocol, hello.DisplayName = msg.Version, safe(hello.DisplayName)
	hello.Capabilities = slices.DeleteFunc(slices.Clone(hello.Capabilities), func(c string) bool { return c == msg.Browse })
	if s.ch.control {
		hello.Capabilities, hello.AllowedRoot = append(hello.Capabilities, msg.Browse), nil
	} else {
		hello.AllowedRoot = &s.ch.root
	}
	id := uuid.NewString()
	if err := s.write(msg.Message{Type: msg.TypeHello, ID: id, Payload: &hello}); err != nil {
		return fmt.Errorf("HELLO: %w", err)
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(s.c.o.Timings.Hello))
	_, r, err := s.conn.NextReader()
	if err != nil {
		return fmt.Errorf("wait for HELLO_ACK: %w", err)
	}
	data, err := wire.ReadFrame(r, msg.MaxFrame)
	if err != nil {
		return fmt.Errorf("wait for HELLO_ACK: %w", err)
	}
	m, err := msg.Decode(data, wire.ToMachine)
	if err != nil {
		return fmt.Errorf("HELLO_ACK: %w", err)
	}
	ack, ok := m.Payload.(*msg.HelloAck)
	if !ok {
		return fmt.Errorf("the hub's first frame was %s, not HELLO_ACK", m.Type)
	}
	if code, err := s.check(ack, m.ID == id, hello.Capabilities); err != nil {
		s.close(code, err.Error())
		s.drain()
		return err
	}
	s.granted, s.platform = ack.Granted, hello.Platform
	s.max = int(min(int64(s.c.o.MaxConcurrent), ack.MaxConcurrent))
	s.fileSize = min(s.c.o.MaxFileSize, ack.MaxFileSize)
	s.timeout = s.c.o.CommandTimeout
	if secs := int64(s.timeout / time.Second); ack.CommandTimeout < secs {
		s.timeout = time.Duration(ack.CommandTimeout) * time.Second
	}
	return nil
}

// check holds HELLO_ACK against HELLO; the code is what to close with.
func (s *socket) check(ack *msg.HelloAck, answers bool, advertised []string) (int, error) {
	session := ""
	if ack.SessionID != nil {
		session = *ack.SessionID
	}
	if !answers {
		return msg.CloseBadHello, fmt.Errorf("%w: HELLO_ACK has another id", ErrGreeting)
	}
	if session != s.ch.session {
		return msg.CloseForbidden, fmt.Errorf("%w: HELLO_ACK is for another session", ErrGreeting)
	}
	for _, g := range ack.Granted {
		if !slices.Contains(advertised, g) {
			return msg.CloseBadHello, fmt.Errorf("%w: a grant was not advertised", ErrGreeting)
		}
	}
	version, ok := msg.Negotiate(ack.Protocol)
	switch {
	case !ok:
		return msg.CloseVersion, fmt.Errorf("%w: major version differs", tunnel.ErrVersion)
	case s.ch.control && version != msg.Version:
		return msg.CloseVersion, fmt.Errorf("%w: control needs 1.1", tunnel.ErrVersion)
	case s.ch.control && !slices.Contains(ack.Granted, msg.Browse):
		return msg.CloseVersion, fmt.Errorf("%w: directory_browse not granted", tunnel.ErrVersion)
	case s.ch.control && (ack.ConnectionID == nil || *ack.ConnectionID == ""):
		return msg.CloseVersion, fmt.Errorf("%w: no connection_id", tunnel.ErrVersion)
	}
	return 0, nil
}

// serve reads until the connection ends; then every task is cancelled and
// waited for.
func (s *socket) serve(ctx context.Context) error {
	// What tasks see as the cause is always a *wire.Error, so their context
	// ends here and not with its parent.
	tasks, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cancel = func(err error) { cancel(wire.Wrap(err, wire.CodeLost, "The connection to the hub was lost.")) }
	stop := context.AfterFunc(ctx, func() { s.end(context.Cause(ctx), websocket.CloseNormalClosure, "") })
	defer stop()
	_ = s.alive("")
	s.conn.SetPongHandler(s.alive)
	ping := s.conn.PingHandler()
	s.conn.SetPingHandler(func(d string) error { _ = s.alive(""); return ping(d) })

	s.wg.Add(1)
	go s.beat(tasks)
	if s.ch.control && s.c.o.Fresh != nil {
		s.wg.Add(1)
		go s.renew(tasks)
	}
	err := s.read(tasks)
	if why := s.why(); why != nil {
		err = why
	}
	s.silent.Store(true)
	if isFinal(closed(err)) {
		s.ch.ending.Store(true)
	}
	s.cancel(err)
	s.conn.Close()
	s.wg.Wait()
	return err
}

// alive moves the moment at which silence ends the connection.
func (s *socket) alive(string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		t := s.c.o.Timings
		_ = s.conn.SetReadDeadline(time.Now().Add(t.Heartbeat + t.PongTimeout))
	}
	return nil
}

func (s *socket) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// end closes the connection from this end, for a reason: nothing more is said,
// tasks are cancelled, and the reader goes on until the close is answered.
func (s *socket) end(why error, code int, reason string) {
	if isFinal(why) {
		s.ch.ending.Store(true)
	}
	s.mu.Lock()
	if s.ended == nil {
		s.ended = why
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(s.c.o.Timings.Goodbye))
	s.mu.Unlock()
	s.silent.Store(true)
	s.cancel(why)
	s.close(code, reason)
}

// drain reads until the other end has answered a close: ended with unread
// frames, the connection would be reset, and the close lost.
func (s *socket) drain() {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.c.o.Timings.Goodbye))
	for {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

func (s *socket) read(ctx context.Context) error {
	for {
		_, r, err := s.conn.NextReader()
		var data []byte
		if err == nil {
			data, err = wire.ReadFrame(lively{r, s}, msg.MaxFrame)
		}
		var tooLong *wire.FrameError
		if errors.As(err, &tooLong) {
			s.c.o.Log.Warn("Frame dropped", "reason", tooLong.Reason)
			continue
		}
		if err != nil {
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				return fmt.Errorf("nothing heard for %s: %w", s.c.o.Timings.Heartbeat+s.c.o.Timings.PongTimeout, err)
			}
			return err
		}
		if s.why() != nil {
			continue // closing
		}
		_ = s.alive("")
		s.mu.Lock()
		s.heard = time.Now()
		s.mu.Unlock()
		m, err := msg.Decode(data, wire.ToMachine)
		if err != nil {
			s.reject(err)
			continue
		}
		switch p := m.Payload.(type) {
		case *msg.HelloAck:
			s.c.o.Log.Warn("Frame dropped", "type", m.Type, "reason", "second HELLO_ACK")
		case *msg.Revoked:
			why := tunnel.ErrRevoked
			if p.Reason == msg.ReasonAnother {
				why = tunnel.ErrReplaced
			}
			s.c.o.Log.Warn("Revoked by the hub", "reason", clip(p.Reason), "control", s.ch.control)
			s.end(why, msg.CloseRevoked, "")
		default:
			if m.Type == msg.TypePing {
				s.send(msg.Message{Type: msg.TypePong, ID: m.ID, Payload: &msg.Empty{}})
				continue
			}
			s.take(ctx, m, len(data))
		}
	}
}

// lively counts every piece of a long frame as a sign of life: over a slow line
// it takes longer than silence may last.
type lively struct {
	r io.Reader
	s *socket
}

func (l lively) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		_ = l.s.alive("")
	}
	return n, err
}

// safe leaves out of a name what a hub would refuse it for.
func safe(name string) string {
	name = strings.Map(func(r rune) rune {
		if !msg.SafeText(string(r)) {
			return -1
		}
		return r
	}, name)
	if r := []rune(name); len(r) > 128 {
		name = string(r[:128])
	}
	return name
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}

// reject answers a request whose payload cannot be read. Anything else that
// cannot be read is dropped: an answer to what is no request would make the hub
// drop the connection.
func (s *socket) reject(err error) {
	var fe *msg.FrameError
	if !errors.As(err, &fe) {
		return
	}
	s.c.o.Log.Warn("Frame refused", "type", fe.Type, "reason", fe.Reason)
	if fe.ID == "" || !msg.IsRequest(fe.Type) || !s.admit(fe.ID) {
		return
	}
	s.reply(fe.ID, "", nil, wire.Errorf(msg.CodeInternal, "This computer does not understand the request: %s.", fe.Reason))
}

// admit takes a request in, or answers it as one too many.
func (s *socket) admit(id string) bool {
	s.mu.Lock()
	if s.open[id] {
		s.mu.Unlock()
		s.c.o.Log.Warn("Frame dropped", "reason", "its id is in use")
		return false
	}
	if len(s.open) >= s.max {
		s.mu.Unlock()
		zero := 0
		s.send(msg.Message{Type: msg.TypeError, ID: id, PendingCapacity: &zero, Payload: msg.FromError(overloaded(s.max))})
		return false
	}
	s.open[id] = true
	s.mu.Unlock()
	s.c.count(1)
	return true
}

func overloaded(max int) error {
	return &msg.Detailed{Code: msg.CodeOverloaded, Details: map[string]any{"max_concurrent": max},
		Message: fmt.Sprintf("This computer already works on %d requests; try again in a moment.", max)}
}

// take admits a request of that many bytes and starts what answers it.
func (s *socket) take(ctx context.Context, m msg.Message, size int) {
	if !s.admit(m.ID) {
		return
	}
	release, ok := s.c.hold(size)
	if !ok {
		s.reply(m.ID, "", nil, s.tooMuch())
		return
	}
	var ahead <-chan struct{}
	leave := func() {}
	if !s.ch.control && inLine(m.Type) {
		ahead, leave = s.c.stand()
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer release()
		t, p, err := s.answer(ctx, m, ahead)
		leave()
		s.reply(m.ID, t, p, err)
	}()
}

// reply ends a request: its slot is free before the reply says so.
func (s *socket) reply(id string, t msg.Type, p wire.Payload, err error) {
	if err != nil {
		if msg.CodeOf(err) == "" {
			s.c.o.Log.Error("A request failed", "err", err)
		}
		t, p = msg.TypeError, msg.FromError(err)
	}
	s.mu.Lock()
	full := len(s.open) >= s.max
	delete(s.open, id)
	s.mu.Unlock()
	s.c.count(-1)
	free := s.capacity()
	s.send(msg.Message{Type: t, ID: id, PendingCapacity: &free, Payload: p})
	if full {
		s.status()
	}
}

// capacity is how many more requests are admitted.
func (s *socket) capacity() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.max-max(len(s.open), s.inFlight+s.queued))
}

// beat pings, sends STATUS, and ends a data connection on which nothing comes.
func (s *socket) beat(ctx context.Context) {
	defer s.wg.Done()
	t := s.c.o.Timings
	ping, status, idle := time.NewTicker(t.Heartbeat), time.NewTicker(t.Status), time.NewTicker(t.IdleCheck)
	defer ping.Stop()
	defer status.Stop()
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ping.C:
			if err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(5*time.Second)); err != nil {
				s.c.o.Log.Warn("Ping could not be sent", "err", err)
			}
		case <-status.C:
			s.status()
			s.c.book.purge()
		case <-idle.C:
			s.mu.Lock()
			quiet := !s.ch.control && len(s.open) == 0 && time.Since(s.heard) >= t.Idle
			s.mu.Unlock()
			if quiet {
				s.end(errIdle, websocket.CloseNormalClosure, "")
				return
			}
		}
	}
}

// renew waits for a new token, then for a moment in which nothing is under way,
// and ends the connection, which comes back with that token.
func (s *socket) renew(ctx context.Context) {
	defer s.wg.Done()
	for {
		if _, err := s.c.o.Fresh(ctx, s.token); err == nil {
			break
		} else if ctx.Err() != nil {
			return
		} else {
			s.c.o.Log.Warn("A token could not be renewed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.c.o.Timings.Status):
		}
	}
	for quiet := false; !quiet; quiet = s.c.quiet() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.c.o.Timings.BackoffBase):
		}
	}
	s.end(errRenewed, websocket.CloseNormalClosure, "")
}

func (s *socket) status() {
	s.mu.Lock()
	st := &msg.Status{InFlight: s.inFlight, MaxConcurrent: s.max, QueueDepth: s.queued, UptimeSeconds: time.Since(s.began).Round(time.Millisecond).Seconds()}
	s.mu.Unlock()
	st.AuditLogBytes = s.c.o.RecordBytes()
	free := s.capacity()
	s.send(msg.Message{Type: msg.TypeStatus, ID: uuid.NewString(), PendingCapacity: &free, Payload: st})
}

// send writes m; a reply that is too large, or that can't be written, is
// replaced by an error, so that the hub does not wait for it.
func (s *socket) send(m msg.Message) {
	err := s.write(m)
	if err == nil || errors.Is(err, errSocket) {
		return
	}
	s.c.o.Log.Warn("Frame could not be written", "type", m.Type, "err", err)
	if m.Type == msg.TypeStatus || m.Type == msg.TypeError || m.Type == msg.TypePong {
		return
	}
	e := msg.FromError(err)
	if errors.Is(err, msg.ErrTooLarge) {
		e = &msg.Error{Code: msg.CodeTooLarge, Message: "The answer is larger than the 16 MiB that one message may have. Ask for less at once."}
	}
	m.Type, m.Payload = msg.TypeError, e
	_ = s.write(m)
}

var errSocket = errors.New("the connection is gone")

func (s *socket) write(m msg.Message) error {
	data, err := msg.Encode(m, wire.ToHub)
	if err != nil {
		return err
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if s.silent.Load() {
		return errSocket
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := s.conn.WriteMessage(websocket.TextMessage, data); err != nil {
		s.silent.Store(true)
		s.conn.Close() // the reader notices
		return fmt.Errorf("%w: %w", errSocket, err)
	}
	return nil
}

// close says why, and nothing after it.
func (s *socket) close(code int, reason string) {
	s.silent.Store(true)
	if len(reason) > msg.MaxReason {
		reason = reason[:msg.MaxReason]
	}
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
}

// count keeps how many requests all connections have under way.
func (c *Client) count(n int) {
	c.mu.Lock()
	c.busy += n
	c.mu.Unlock()
}

func (c *Client) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy == 0
}
