// Package bulk is the second lane of a tunnel, for steps 1, 2 and 6: data in
// large amounts goes over a WebSocket of its own, with a stream for each
// request and direction, so that nothing else waits behind a transfer, and a
// reader that stops reading stops its own stream only. Both ends use it.
//
// A sender that has much to send of a request says so with BULK over the
// control socket, opens a stream, and sends all its later frames of that
// request there; the stream begins with the request's id. Sessions of the
// streams are yamux (github.com/libp2p/go-yamux): its windows start small and
// grow up to 8 MiB for a reader that is fast and far, so that a stalled one
// holds little.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/libp2p/go-yamux/v5"

	"localpc/tunnel/wire"
	"localpc/tunnel/wire/ws"
)

// Limits of one bulk socket. Sizes are bytes.
const (
	// MaxStreams are open at once in one direction; more are refused.
	MaxStreams = 256
	// maxParked streams may wait for the BULK of their request. So many may come
	// first when the control socket lags: the requests of a few sessions, which
	// all begin to send at once.
	maxParked = 64
	// maxMessage is what one stream puts into a WebSocket message. With the
	// header of a client's message it fills whole TLS records.
	maxMessage = 64<<10 - 8
	maxPiece   = maxMessage - 12 // without the multiplexer's own header
	// firstWindow is what a reader that takes nothing holds, maxWindow what one
	// that is far away and fast may have on its way, and maxGrown what all
	// streams of a socket may have together beyond their first window.
	firstWindow = 1 << 20
	maxWindow   = 8 << 20
	maxGrown    = 32 << 20
	// writeTimeout ends a socket that takes nothing for so long.
	writeTimeout = 30 * time.Second
	// nameTimeout is how long a new stream may take to say whose it is, and
	// meetTimeout how long it and its BULK may be apart: as long as the control
	// socket may say nothing without being lost.
	nameTimeout = 10 * time.Second
	meetTimeout = 30 * time.Second
)

// WriteBuffer is how large the write buffer of a bulk WebSocket has to be; it
// comes out of Buffers, and is held only while something is written.
const WriteBuffer = 64 << 10

// Buffers is for the WebSocket's Dialer or Upgrader.
var Buffers = &sync.Pool{}

// The ends of a stream, which errors of this package wrap.
var (
	ErrLost  = errors.New("the bulk socket was lost")
	ErrReset = errors.New("the other end let go of the stream")
)

// Hall is where the streams of one control connection's bulk sockets meet the
// requests that they belong to. There is one socket at a time; another one may
// follow it. Make it with NewHall; safe for concurrent use.
type Hall struct {
	ctx   context.Context // until Close
	close context.CancelFunc

	mu     sync.Mutex
	now    *session            // guarded by mu; nil without a socket
	parked map[string]*parked  // came before their BULK; guarded by mu
	wanted map[string]chan *In // whose BULK came first; guarded by mu
}

type parked struct {
	in   *In
	late *time.Timer
}

// NewHall makes one without a socket. Close must be called.
func NewHall() *Hall {
	h := &Hall{parked: map[string]*parked{}, wanted: map[string]chan *In{}}
	h.ctx, h.close = context.WithCancel(context.Background())
	return h
}

// Close ends the socket, if there is one, and takes no other; it does not wait.
func (h *Hall) Close() { h.close() }

// Joined tells whether there is a socket now.
func (h *Hall) Joined() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now != nil
}

// Serve has streams go over conn until it ends, which it does too when nothing
// is heard for so long; an earlier socket ends now. client is the end that
// dialled. heard, if not nil, is called once, when the other end was first
// heard. Serve waits for all that it began.
func (h *Hall) Serve(conn *websocket.Conn, client bool, silence time.Duration, heard func()) error {
	c := &carrier{ws: conn, quiet: ws.NewPatience(conn, silence), every: silence / 8, first: heard}
	c.quiet.Begin()
	config := &yamux.Config{AcceptBacklog: MaxStreams, PingBacklog: 8, MeasureRTTInterval: 24 * time.Hour, ConnectionWriteTimeout: writeTimeout,
		MaxIncomingStreams: MaxStreams, InitialStreamWindowSize: firstWindow, MaxStreamWindowSize: maxWindow, LogOutput: io.Discard, MaxMessageSize: maxMessage}
	begin := yamux.Server
	if client {
		begin = yamux.Client
	}
	var grown allowance
	mux, err := begin(c, config, func() (yamux.MemoryManager, error) { return &span{of: &grown}, nil })
	if err != nil {
		conn.Close()
		return err
	}
	s := &session{mux: mux, conn: c}
	stop := context.AfterFunc(h.ctx, func() { mux.Close() })
	defer stop()
	h.mu.Lock()
	old := h.now
	h.now = s
	h.mu.Unlock()
	if old != nil {
		old.mux.Close()
	}
	defer h.leave(s)
	for {
		st, err := mux.AcceptStream()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		s.later(func() { h.meet(s, st) })
	}
}

// leave ends a session and all that it began.
func (h *Hall) leave(s *session) {
	h.mu.Lock()
	if h.now == s {
		h.now = nil
	}
	h.mu.Unlock()
	s.mux.Close()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wg.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, p := range h.parked {
		if p.in.s == s {
			p.late.Stop()
			delete(h.parked, id)
		}
	}
}

// Ping shows the other end that the socket lives, unless it was just used. It
// waits a second at most.
func (h *Hall) Ping() {
	h.mu.Lock()
	s := h.now
	h.mu.Unlock()
	if s != nil && s.conn.idle() {
		_ = s.conn.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
	}
}

// Open begins a stream for what is still to be sent of a request. It costs
// nothing until something is sent. The error is ErrLost where there is no
// socket.
func (h *Hall) Open(ctx context.Context, id string) (*Out, error) {
	h.mu.Lock()
	s := h.now
	h.mu.Unlock()
	if s == nil {
		return nil, ErrLost
	}
	st, err := s.mux.OpenStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return &Out{s: s, st: st, id: id, left: append([]byte{byte(len(id))}, id...)}, nil
}

// meet reads whose stream it is, and hands it over or parks it.
func (h *Hall) meet(s *session, st *yamux.Stream) {
	_ = st.SetReadDeadline(time.Now().Add(nameTimeout))
	id, err := readName(st)
	if err != nil {
		_ = st.Reset()
		return
	}
	_ = st.SetReadDeadline(time.Time{})
	in := &In{s: s, st: st, id: id}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.wanted[id]; c != nil {
		delete(h.wanted, id)
		c <- in
		return
	}
	if h.parked[id] != nil || len(h.parked) >= maxParked {
		in.Reset()
		return
	}
	p := &parked{in: in}
	p.late = time.AfterFunc(meetTimeout, func() { h.drop(id, p) })
	h.parked[id] = p
}

func readName(r io.Reader) (string, error) {
	var head [1]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	name := make([]byte, head[0])
	if _, err := io.ReadFull(r, name); err != nil {
		return "", err
	}
	id := string(name)
	return id, (&wire.SessionRef{SessionID: id}).Validate() // ids have one shape
}

// Take waits for the stream of a request whose BULK came.
func (h *Hall) Take(ctx context.Context, id string) (*In, error) {
	h.mu.Lock()
	if p := h.parked[id]; p != nil {
		delete(h.parked, id)
		h.mu.Unlock()
		p.late.Stop()
		return p.in, nil
	}
	c := make(chan *In, 1)
	h.wanted[id] = c
	h.mu.Unlock()
	late := time.NewTimer(meetTimeout)
	defer late.Stop()
	var err error
	select {
	case in := <-c:
		return in, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-h.ctx.Done():
		err = ErrLost
	case <-late.C:
		err = fmt.Errorf("%w: a stream did not come", ErrLost)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wanted[id] == c {
		delete(h.wanted, id)
	}
	select {
	case in := <-c:
		in.Reset()
	default:
	}
	return nil, err
}

// Drop lets go of the stream of a request that has ended, if it came.
func (h *Hall) Drop(id string) {
	h.mu.Lock()
	p := h.parked[id]
	h.mu.Unlock()
	if p != nil {
		h.drop(id, p)
	}
}

func (h *Hall) drop(id string, p *parked) {
	h.mu.Lock()
	there := h.parked[id] == p
	if there {
		delete(h.parked, id)
	}
	h.mu.Unlock()
	if there {
		p.late.Stop()
		p.in.Reset()
	}
}

// session is one bulk socket.
type session struct {
	mux  *yamux.Session
	conn *carrier
	wg   sync.WaitGroup

	mu    sync.Mutex
	ended bool // guarded by mu: nothing is begun any more
}

// later does what may wait for the other end, without waiting for it.
func (s *session) later(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.wg.Go(do)
	}
}
