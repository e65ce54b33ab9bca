package autogpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
	"localpc/tunnel/wire/ws"
)

const (
	writeTimeout = 30 * time.Second
	// hearEvery bounds how often STATUS has the hub look at its books: a machine
	// may send it as fast as it likes.
	hearEvery = 5 * time.Second
)

// conn is one connection: a machine's control connection, or the data
// connection of one chat. Its reader is the goroutine of the HTTP request that
// became the WebSocket; beat is its only other one.
type conn struct {
	f       *Face
	conn    *websocket.Conn
	quiet   *ws.Patience
	access  store.Access
	session string // "" on a control connection
	machine string
	info    *Machine // of a control connection
	granted []string

	// writing holds one token: who has it may write. It is a channel so that
	// the end of a connection need not wait for a write that is stuck.
	writing chan struct{}

	mu       sync.Mutex
	calls    map[string]*Call // outstanding requests; guarded by mu
	room     chan struct{}    // closed and made anew when there may be room; guarded by mu
	limit    int              // of requests at once; guarded by mu
	capacity int              // as the machine told last, -1 when it never has; guarded by mu
	gone     *wire.Error      // why nothing is taken any more; guarded by mu
	code     int              // the close code that this end said; guarded by mu
	done     chan struct{}    // closed when gone
	// settled is closed when a control connection may be used; since is when.
	settled chan struct{}
	since   time.Time // guarded by f.mu
	began   time.Time // when the connection was asked for
	told    time.Time // when the hub last heard of STATUS; the reader's
}

func newConn(f *Face, c *websocket.Conn, a store.Access, session string) *conn {
	return &conn{f: f, conn: c, quiet: ws.NewPatience(c, f.o.Heartbeat+f.o.PongTimeout), access: a, session: session, writing: make(chan struct{}, 1), calls: map[string]*Call{},
		room: make(chan struct{}), limit: f.o.MaxConcurrent, capacity: -1, done: make(chan struct{}), settled: make(chan struct{})}
}

func (c *conn) control() bool { return c.session == "" }

// sayClose sends a close frame; the error says the same to the log.
func (c *conn) sayClose(code int, reason string) error {
	c.mu.Lock()
	if c.code == 0 {
		c.code = code
	}
	c.mu.Unlock()
	_ = c.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ws.Clip(reason)), time.Now().Add(time.Second))
	return &msg.CloseError{Code: code, Reason: reason}
}

// closeCode is how the connection ended.
func (c *conn) closeCode(err error) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ws.CloseCode(c.code, err)
}

// read takes frames until the connection ends. It blocks on nothing but the
// socket.
func (c *conn) read() error {
	c.conn.SetReadLimit(msg.MaxFrame)
	c.quiet.Begin()
	for {
		kind, r, err := c.conn.NextReader()
		var data []byte
		if err == nil {
			data, err = io.ReadAll(c.quiet.Reader(r))
		}
		switch {
		case errors.Is(err, websocket.ErrReadLimit):
			return c.breach(msg.RuleJSON, "more than 16 MiB")
		case ws.IsTimeout(err) && c.ended() == nil:
			return fmt.Errorf("nothing heard for %s", c.f.o.Heartbeat+c.f.o.PongTimeout)
		case err != nil:
			return err
		}
		c.quiet.Heard()
		if c.ended() != nil {
			continue // only the close frame counts now
		}
		if kind != websocket.TextMessage {
			return c.breach(msg.RuleJSON, "a binary frame")
		}
		if err := c.take(data); err != nil {
			return err
		}
	}
}

// breach drops the connection for what the machine did: a number of section
// 11 of the protocol.
func (c *conn) breach(rule int, what string) error {
	c.f.log.Warn("Connection dropped for a breach of the protocol", "user", c.access.User, "machine", c.machine, "session", c.session, "rule", rule, "breach", what)
	c.end(websocket.CloseInternalServerErr, fmt.Sprintf("rule %d: %s", rule, what), "")
	return fmt.Errorf("breach of rule %d: %s", rule, what)
}

// harmless is a breach that only a strict hub drops a connection for.
func (c *conn) harmless(rule int, what string) error {
	if c.f.o.Strict {
		return c.breach(rule, what)
	}
	c.f.log.Warn("Breach of the protocol", "user", c.access.User, "machine", c.machine, "session", c.session, "rule", rule, "breach", what)
	return nil
}

// take handles one frame. An error ends the connection.
func (c *conn) take(data []byte) error {
	m, err := msg.Decode(data, wire.ToHub)
	var frame *msg.FrameError
	if errors.As(err, &frame) {
		if frame.Rule != 0 {
			return c.breach(frame.Rule, frame.Error())
		}
		return c.unreadable(frame)
	}
	switch p := m.Payload.(type) {
	case *msg.Hello:
		return c.breach(msg.RuleType, "a second HELLO")
	case *msg.Status:
		c.status(p, data)
		if now := time.Now(); c.control() && now.Sub(c.told) >= hearEvery {
			c.told = now
			c.f.o.Hub.Heard(c.f.ctx, c.info)
		}
		return nil
	case *msg.Reserved:
		if m.Type == msg.TypeRecordingStep {
			c.f.log.Info("Step without a recording", "machine", c.machine, "session", c.session)
			return nil
		}
	}
	if n := m.PendingCapacity; n != nil {
		c.setCapacity(*n)
	} else if n := payloadCapacity(data); n != nil {
		c.setCapacity(*n)
	}
	return c.deliver(m.ID, m.Type, len(data), func(*Call) (msg.Message, error) { return m, nil })
}

// unreadable fails the request that a malformed reply belongs to.
func (c *conn) unreadable(e *msg.FrameError) error {
	c.f.log.Warn("Frame refused", "machine", c.machine, "session", c.session, "type", string(e.Type), "reason", e.Reason)
	if e.Type == msg.TypeStatus || e.Type == msg.TypeRecordingStep {
		return nil
	}
	if e.Type == msg.TypeHello {
		return c.breach(msg.RuleType, "a second HELLO")
	}
	return c.deliver(e.ID, e.Type, 0, func(*Call) (msg.Message, error) {
		return msg.Message{}, wire.Wrap(e, CodeInvalidReply, "The computer's answer could not be understood.")
	})
}

// status takes what the machine says of its load.
func (c *conn) status(s *msg.Status, data []byte) {
	n := payloadCapacity(data)
	if n == nil {
		n = new(max(0, s.MaxConcurrent-s.InFlight))
	}
	c.mu.Lock()
	c.limit = min(c.f.o.MaxConcurrent, s.MaxConcurrent)
	if s.InFlight+s.QueueDepth == 0 {
		// What nobody waits for any more is not being worked on either: its
		// answer will not come.
		for _, call := range c.calls {
			call.idle = call.idle || call.left
		}
	}
	c.mu.Unlock()
	c.setCapacity(*n)
}

// payloadCapacity is pending_capacity where older machines put it.
func payloadCapacity(data []byte) *int {
	if len(data) > 64<<10 || !strings.Contains(string(data), `"pending_capacity"`) {
		return nil
	}
	var v struct {
		Payload struct {
			N json.Number `json:"pending_capacity"`
		} `json:"payload"`
	}
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	n, err := v.Payload.N.Int64()
	if err != nil || n < 0 {
		return nil
	}
	return new(int(min(n, 1<<20)))
}

func (c *conn) setCapacity(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capacity = n
	c.wakeLocked()
}

func (c *conn) wakeLocked() {
	close(c.room)
	c.room = make(chan struct{})
}

func (c *conn) ended() *wire.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// beat pings, and ends the connection when its token expires.
func (c *conn) beat() {
	t := time.NewTicker(c.f.o.Heartbeat)
	defer t.Stop()
	expiry := time.NewTimer(time.Until(c.access.Expires))
	defer expiry.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-t.C:
			_ = c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(5*time.Second))
		case <-expiry.C:
			c.end(msg.CloseUnauthorized, "the access token has expired", "")
			return
		}
	}
}

// end ends every request now, says SESSION_REVOKED if there is a reason for
// it, closes, and lets the reader go within ws.Farewell. Only the first call
// counts.
func (c *conn) end(code int, why, revoked string) {
	cause := wire.Errorf(wire.CodeLost, "The connection to the computer was lost.")
	switch code {
	case websocket.CloseGoingAway:
		cause = wire.Errorf(wire.CodeLost, "The hub was stopped.")
	case msg.CloseReplaced:
		cause = wire.Errorf(wire.CodeLost, "A newer connection of the computer took over.")
	case msg.CloseRevoked:
		cause = wire.Errorf(wire.CodeLost, "The computer was disconnected from the hub.")
	case msg.CloseUnauthorized:
		cause = wire.Errorf(wire.CodeLost, "The computer's sign-in expired; it signs in again by itself.")
	}
	c.mu.Lock()
	if c.gone != nil {
		c.mu.Unlock()
		return
	}
	c.gone, c.code = cause, code
	close(c.done)
	calls := c.calls
	c.calls = map[string]*Call{}
	c.wakeLocked()
	c.mu.Unlock()
	c.quiet.End()
	// Who tries again when its call fails must not find this one.
	c.f.forget(c)
	for _, call := range calls {
		call.fail(cause)
	}
	if revoked != "" {
		p := &msg.Revoked{Reason: revoked}
		if revoked == msg.ReasonAnother {
			p.NewMachine = &c.machine
		}
		data, err := msg.Encode(msg.Message{Type: msg.TypeRevoked, ID: uuid.NewString(), Payload: p}, wire.ToMachine)
		t := time.NewTimer(time.Second)
		defer t.Stop()
		select {
		case c.writing <- struct{}{}:
			if err == nil {
				_ = c.put(data, time.Second)
			}
			<-c.writing
		case <-t.C: // a write is stuck; the close frame says it too
		}
	}
	_ = c.sayClose(code, why)
}

// write sends one frame.
func (c *conn) write(ctx context.Context, data []byte) error {
	select {
	case c.writing <- struct{}{}:
	case <-c.done:
		return c.ended()
	case <-ctx.Done():
		return wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The request was cancelled.")
	}
	defer func() { <-c.writing }()
	if gone := c.ended(); gone != nil {
		return gone
	}
	return c.put(data, writeTimeout)
}

// put writes; the caller holds writing.
func (c *conn) put(data []byte, within time.Duration) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(within))
	if err := c.conn.WriteMessage(websocket.TextMessage, data); err != nil {
		c.conn.Close() // the reader notices
		return wire.Wrap(err, wire.CodeLost, "The connection to the computer was lost.")
	}
	return nil
}
