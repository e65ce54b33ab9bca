package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
	"localpc/tunnel/wire/ws"
)

const (
	writeTimeout = 30 * time.Second
	// scopeMachine is what a sign-in needs to connect a computer.
	scopeMachine = "machine"
)

// machine is one connection of a computer. Its reader is the goroutine of the
// HTTP request that became the WebSocket; beat is its only other one.
type machine struct {
	h     *Hub
	conn  *websocket.Conn
	id    string // the machine's
	epoch int64
	since time.Time
	until expiry // of the reader's goroutine
	quiet *ws.Patience
	bulk  *bulk.Hall // of its second socket
	has   []string
	blind error           // why its screen can't be asked for
	told  wire.RecordHead // what it said last of its record; of the reader's goroutine

	writeMu sync.Mutex // one writer at a time (gorilla)
	// settling is held while a session and its sandbox are noted, and while the
	// two lists are compared. It is taken before mu.
	settling sync.Mutex

	mu       sync.Mutex
	streams  map[string]*stream  // guarded by mu
	sessions map[string]struct{} // open there, as far as is known; guarded by mu
	gone     error               // why nothing is taken any more; guarded by mu
	code     int                 // the close code that this end said; guarded by mu
	proof    proof               // guarded by mu
	lane     string              // the id that the next bulk socket comes with; guarded by mu
}

var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second,
	Subprotocols:     []string{wire.Subprotocol},
	// The doors have looked at Origin already.
	CheckOrigin: func(*http.Request) bool { return true },
}

// serveMachine takes a computer's connection and keeps it until it ends.
func (h *Hub) serveMachine(w http.ResponseWriter, r *http.Request) {
	secret, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	proof, err := h.prove(r.Context(), secret)
	if err == nil && !proof.may(scopeMachine) {
		err = store.ErrNotFound
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	if !slices.Contains(websocket.Subprotocols(r), wire.Subprotocol) {
		writeError(w, http.StatusBadRequest, "This address is for computers that connect with the "+wire.Subprotocol+" protocol.")
		return
	}
	if !h.enter() {
		writeError(w, http.StatusServiceUnavailable, "The hub is being stopped.")
		return
	}
	defer h.wg.Done()
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		h.log.Warn("Machine could not be accepted", "machine", proof.machine, "err", err)
		return
	}
	defer conn.Close()
	m := &machine{h: h, conn: conn, quiet: ws.NewPatience(conn, h.o.Heartbeat+h.o.PongTimeout), id: proof.machine, proof: proof, since: time.Now(),
		bulk: bulk.NewHall(), streams: map[string]*stream{}, sessions: map[string]struct{}{}}
	defer m.bulk.Close()
	stop := context.AfterFunc(h.ctx, func() {
		m.end(websocket.CloseGoingAway, wire.Errorf(wire.CodeLost, "The hub was stopped."))
	})
	defer stop()
	hello, helloID, err := m.greet()
	if err != nil {
		h.log.Warn("Machine refused", "machine", m.id, "err", err)
		h.o.Meter.Closed(m.closeCode(err))
		return
	}
	err = m.serve(hello, helloID)
	h.o.Meter.Closed(m.closeCode(err))
	if err != nil {
		h.log.Info("Machine disconnected", "machine", m.id, "err", err)
	}
}

// greet waits for HELLO and checks it. It returns the frame's id too, which
// the answer repeats.
func (m *machine) greet() (*wire.Hello, string, error) {
	_ = m.conn.SetReadDeadline(time.Now().Add(m.h.o.HelloTimeout))
	kind, r, err := m.conn.NextReader()
	var data []byte
	if err == nil {
		data, err = wire.ReadFrame(r, wire.MaxHello)
	}
	var frame *wire.FrameError
	switch {
	case errors.As(err, &frame):
		m.sayClose(wire.CloseBadHello, "HELLO is too large")
		return nil, "", err
	case ws.IsTimeout(err):
		m.sayClose(wire.CloseHelloTimeout, "no HELLO")
		return nil, "", errors.New("no HELLO in time")
	case err != nil:
		return nil, "", err
	case kind != websocket.TextMessage:
		m.sayClose(wire.CloseBadHello, "expected HELLO")
		return nil, "", errors.New("the first frame was binary")
	}
	msg, err := wire.Decode(data, wire.ToHub)
	if err != nil {
		m.sayClose(wire.CloseBadHello, ws.Clip(err.Error()))
		return nil, "", err
	}
	hello, ok := msg.Payload.(*wire.Hello)
	if !ok {
		m.sayClose(wire.CloseBadHello, "expected HELLO")
		return nil, "", fmt.Errorf("the first frame was %s", msg.Type)
	}
	if wire.Major(hello.Protocol) != wire.Major(wire.Version) {
		m.sayClose(wire.CloseVersion, "this hub speaks version "+wire.Version)
		return nil, "", fmt.Errorf("machine speaks version %s", hello.Protocol)
	}
	if m.id == "" {
		proof := m.proven()
		err := m.h.bind(m.h.ctx, &proof, hello.MachineID)
		switch {
		case errors.Is(err, store.ErrTaken):
			m.sayClose(wire.CloseForbidden, "the computer belongs to another person of this hub")
			return nil, "", err
		case errors.Is(err, store.ErrNotFound) && proof.signIn != "":
			m.sayClose(wire.CloseUnauthorized, "the sign-in has ended, or belongs to another computer")
			return nil, "", err
		case errors.Is(err, store.ErrNotFound):
			m.sayClose(wire.CloseUnauthorized, "the pairing line was used already")
			return nil, "", err
		case err != nil:
			m.sayClose(m.failed("the hub could not note the computer"))
			return nil, "", err
		}
		m.id = hello.MachineID
		m.setProof(proof)
	}
	if hello.MachineID != m.id {
		m.sayClose(wire.CloseForbidden, "the token belongs to another computer")
		return nil, "", errors.New("the token belongs to another machine")
	}
	return hello, msg.ID, nil
}

// failed is how to close for a failure of the hub's own, so that the machine
// comes back: while the hub is being stopped everything fails.
func (m *machine) failed(reason string) (int, string) {
	if m.h.ctx.Err() != nil {
		return websocket.CloseGoingAway, "The hub was stopped."
	}
	return wire.CloseInternal, reason
}

// serve makes the connection the machine's only one and reads until it ends.
func (m *machine) serve(hello *wire.Hello, helloID string) error {
	ctx := m.h.ctx
	m.has, m.blind = hello.Capabilities, lacksComputer(hello)
	for _, id := range hello.Sessions {
		m.setSession(id, true)
	}
	// The answer to HELLO is the first frame, yet who reads it finds the machine
	// enrolled: requests wait for the writer until then.
	m.writeMu.Lock()
	old, err := m.h.enroll(ctx, m, hello)
	if err != nil {
		m.writeMu.Unlock()
		code, why := m.failed("The hub could not note the connection.")
		m.end(code, wire.Errorf(wire.CodeLost, "%s", why))
		return err
	}
	defer m.h.dismiss(m)
	account, err := m.h.store.Account(ctx, m.proven().user)
	var ack []byte
	if err == nil {
		ack, err = encode(wire.Message{Type: wire.TypeHelloAck, ID: helloID, Payload: &wire.HelloAck{
			Protocol: wire.Version, ConnectionID: m.newLane(), HubName: m.h.o.Name, Account: account, Bulk: !m.h.o.NoBulk}})
	}
	if err == nil {
		err = m.writeLocked(ack)
	}
	m.writeMu.Unlock()
	if err != nil {
		code, why := m.failed("The hub could not answer the computer.")
		m.end(code, wire.Wrap(err, wire.CodeLost, "%s", why))
		return err
	}
	if old != nil {
		old.replaced()
	}
	m.until.set(m.proven(), m.expired)
	defer m.until.stop()
	m.h.log.Info("Machine connected", "machine", m.id, "epoch", m.epoch)
	m.head(ctx, hello.Record)
	m.reconcile(ctx)

	beating := make(chan struct{})
	done := make(chan struct{})
	go func() { defer close(beating); m.beat(done) }()
	err = m.read(ctx)
	close(done)
	m.end(websocket.CloseNormalClosure, wire.Wrap(err, wire.CodeLost, "The connection to the computer was lost."))
	<-beating
	return err
}

// read takes frames until the connection ends. It blocks on nothing but the
// socket: a slow reader of one stream holds up no other.
func (m *machine) read(ctx context.Context) error {
	m.quiet.Begin()
	for {
		kind, r, err := m.conn.NextReader()
		var data []byte
		if err == nil {
			data, err = wire.ReadFrame(m.quiet.Reader(r), wire.MaxFrame)
		}
		var frame *wire.FrameError
		if errors.As(err, &frame) {
			m.h.log.Warn("Frame dropped", "machine", m.id, "reason", frame.Reason)
			continue
		}
		if ws.IsTimeout(err) && !m.ended() {
			return fmt.Errorf("nothing heard for %s", m.h.o.Heartbeat+m.h.o.PongTimeout)
		}
		if err != nil {
			return err
		}
		m.quiet.Heard()
		if m.ended() {
			continue // only the close frame counts now
		}
		if kind != websocket.TextMessage {
			m.h.log.Warn("Frame dropped", "machine", m.id, "reason", "binary frame")
			continue
		}
		msg, err := wire.Decode(data, wire.ToHub)
		if err != nil {
			m.unreadable(err)
			continue
		}
		m.dispatch(ctx, msg, len(data))
	}
}

// unreadable ends the request that a frame without sense belongs to: its
// answer will not come.
func (m *machine) unreadable(err error) {
	var frame *wire.FrameError
	if !errors.As(err, &frame) {
		return
	}
	m.h.log.Warn("Frame refused", "machine", m.id, "type", frame.Type, "reason", frame.Reason)
	if s := m.stream(frame.ID); s != nil {
		s.cancel(wire.Wrap(err, wire.CodeInternal, "The computer's answer could not be understood."))
	}
}

func (m *machine) dispatch(ctx context.Context, msg wire.Message, size int) {
	switch p := msg.Payload.(type) {
	case *wire.Hello:
		m.h.log.Warn("Frame dropped", "machine", m.id, "type", msg.Type, "reason", "second HELLO")
	case *wire.Status:
		m.head(ctx, p.Record)
		m.h.saw(m)
	case *wire.Authorize:
		m.authorize(ctx, p.Token)
	case *wire.SessionEnded:
		m.setSession(p.SessionID, false)
		m.h.sessionEnded(ctx, m.id, p)
	default:
		if s := m.stream(msg.ID); s != nil {
			s.take(msg, size)
		} else if msg.Type == wire.TypeBulk {
			m.bulk.Drop(msg.ID)
		}
		// Else it is late: its request has ended.
	}
}

func (m *machine) machineID() string { return m.id }

func (m *machine) proven() proof {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proof
}

func (m *machine) setProof(p proof) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proof = p
}

func (m *machine) offers() []string { return m.has }

func (m *machine) joined() time.Time { return m.since }

func (m *machine) replaced() {
	m.end(wire.CloseReplaced, wire.Errorf(wire.CodeLost, "A newer connection of the computer took over."))
}

// drain lets the machine go at once when nothing is under way there.
func (m *machine) drain() {
	m.mu.Lock()
	busy := len(m.streams) > 0
	m.mu.Unlock()
	if !busy {
		m.end(websocket.CloseGoingAway, wire.Errorf(wire.CodeLost, "The hub was stopped."))
	}
}

// authorize takes a newer token of the same sign-in, and puts off the end.
func (m *machine) authorize(ctx context.Context, token string) {
	p, err := m.h.prove(ctx, token)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		m.h.log.Error("Token could not be checked", "machine", m.id, "err", err)
		m.end(wire.CloseInternal, wire.Errorf(wire.CodeLost, "The hub could not check the computer's sign-in."))
	case err != nil || !p.same(m.proven()) || p.machine != m.id:
		m.end(wire.CloseUnauthorized, wire.Errorf(wire.CodeLost, "The computer came with another sign-in."))
	default:
		m.setProof(p)
		m.until.set(p, m.expired)
	}
}

func (m *machine) expired() {
	m.end(wire.CloseUnauthorized, wire.Errorf(wire.CodeLost, "The computer's sign-in was not renewed in time."))
}

func (m *machine) revoked() {
	m.end(wire.CloseRevoked, wire.Errorf(wire.CodeLost, "The computer was disconnected from the hub."))
}

// reconcile marks the sandboxes that are not open there any more as ended, and
// closes the sessions there that must not be open.
func (m *machine) reconcile(ctx context.Context) {
	m.settling.Lock()
	defer m.settling.Unlock()
	m.mu.Lock()
	open := make([]string, 0, len(m.sessions))
	for id := range m.sessions {
		open = append(open, id)
	}
	m.mu.Unlock()
	stale, err := m.h.store.Reconcile(ctx, m.id, open)
	if err != nil {
		m.h.log.Error("Sandboxes could not be compared", "machine", m.id, "err", err)
		return
	}
	for _, id := range stale {
		m.closeSession(id)
	}
}

// head keeps what the machine says of its record.
func (m *machine) head(ctx context.Context, head *wire.RecordHead) {
	if head == nil || *head == m.told {
		return
	}
	m.told = *head
	follows, err := m.h.store.RecordHead(ctx, m.id, head.Seq, head.Hash)
	if err != nil {
		m.told = wire.RecordHead{}
		m.h.log.Error("Record head could not be kept", "machine", m.id, "err", err)
	} else if !follows {
		m.h.log.Warn("Record does not follow what the machine told before", "machine", m.id, "seq", head.Seq)
	}
}

func (m *machine) setSession(id string, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if open {
		m.sessions[id] = struct{}{}
	} else {
		delete(m.sessions, id)
	}
}

func (m *machine) stream(id string) *stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.streams[id]
}

func (m *machine) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.streams, id)
}

func (m *machine) ended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone != nil
}

// beat pings until done.
func (m *machine) beat(done <-chan struct{}) {
	t := time.NewTicker(m.h.o.Heartbeat)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
			_ = m.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(5*time.Second))
		}
	}
}

// end ends every request now, says why, and lets the reader go within
// ws.Farewell. Only the first call counts.
func (m *machine) end(code int, cause *wire.Error) {
	m.mu.Lock()
	if m.gone != nil {
		m.mu.Unlock()
		return
	}
	m.gone, m.code = cause, code
	streams := m.streams
	m.streams = map[string]*stream{}
	m.mu.Unlock()
	m.quiet.End()
	m.bulk.Close()
	for _, s := range streams {
		s.fail(cause)
	}
	m.sayClose(code, cause.Message)
}

// closeCode is how the connection ended.
func (m *machine) closeCode(err error) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return ws.CloseCode(m.code, err)
}

func (m *machine) sayClose(code int, reason string) {
	m.mu.Lock()
	if m.code == 0 {
		m.code = code
	}
	m.mu.Unlock()
	_ = m.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ws.Clip(reason)), time.Now().Add(time.Second))
}

// write sends one frame. Its error is a *wire.Error.
func (m *machine) write(msg wire.Message) error {
	data, err := encode(msg)
	if err != nil {
		return err
	}
	m.writeMu.Lock()
	defer m.writeMu.Unlock()
	return m.writeLocked(data)
}

func encode(msg wire.Message) ([]byte, error) {
	data, err := wire.Encode(msg)
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeInvalid, "The request is not valid: %s.", reason(err))
	}
	return data, nil
}

func (m *machine) writeLocked(data []byte) error {
	_ = m.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := m.conn.WriteMessage(websocket.TextMessage, data); err != nil {
		m.conn.Close() // the reader notices
		return wire.Wrap(err, wire.CodeLost, "The connection to the computer was lost.")
	}
	return nil
}

// reason is the cause of an encoding error without the words about encoding.
func reason(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// enroll notes the connection as the machine's newest. It returns the one that
// it takes over from, or nil.
func (h *Hub) enroll(ctx context.Context, m *machine, hello *wire.Hello) (computer, error) {
	// Epochs and the registry rise in the same order.
	h.enrolling.Lock()
	defer h.enrolling.Unlock()
	// HELLO may come long after the token was checked. One that has ended since
	// takes no other connection's place. A revocation that comes from here on
	// finds the machine, or is found here.
	h.arrive(m)
	defer h.arrive(nil)
	if err := h.stillGood(ctx, m); err != nil {
		return nil, err
	}
	epoch, err := h.store.Connected(ctx, store.Machine{ID: m.id, User: m.proven().user, Name: hello.DisplayName, Platform: hello.Platform, Arch: hello.Arch, Software: hello.Software})
	if err != nil {
		return nil, err
	}
	m.epoch = epoch
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.machines[m.id]
	h.machines[m.id] = m
	return old, nil
}

func (h *Hub) arrive(m *machine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arriving = m
}

// stillGood ends a connection whose token has ended since it was checked; the
// error says so.
func (h *Hub) stillGood(ctx context.Context, m *machine) error {
	p := m.proven()
	live, err := h.live(ctx, p)
	switch {
	case err != nil:
		return err
	case !live:
		m.revoked()
		return errors.New("the token was revoked before HELLO")
	case !p.expires.IsZero() && !time.Now().Before(p.expires):
		m.expired()
		return errors.New("the token expired before HELLO")
	}
	return nil
}

// dismiss takes a connection that has ended out of the registry.
func (h *Hub) dismiss(m *machine) {
	h.mu.Lock()
	if h.machines[m.id] == m {
		delete(h.machines, m.id)
	}
	h.mu.Unlock()
	// The hub's own end must not keep this from being noted.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), 5*time.Second)
	defer cancel()
	if err := h.store.Disconnected(ctx, m.id, m.epoch); err != nil {
		h.log.Error("Disconnection could not be noted", "machine", m.id, "err", err)
	}
}
