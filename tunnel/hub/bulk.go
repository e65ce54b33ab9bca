package hub

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
)

var bulkUpgrader = websocket.Upgrader{
	HandshakeTimeout: upgrader.HandshakeTimeout,
	Subprotocols:     upgrader.Subprotocols,
	CheckOrigin:      upgrader.CheckOrigin,
	WriteBufferSize:  bulk.WriteBuffer,
	WriteBufferPool:  bulk.Buffers,
}

// serveBulk takes the second socket of a computer's connection and keeps it
// until it ends, or the connection does.
func (h *Hub) serveBulk(w http.ResponseWriter, r *http.Request) {
	secret, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	proof, err := h.prove(r.Context(), secret)
	if err == nil && (!proof.may(scopeMachine) || proof.machine == "") {
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
	id := r.Header.Get(wire.BulkHeader)
	m := h.laneOf(proof, id)
	if m == nil {
		writeError(w, http.StatusConflict, "This is not the computer's connection of now, or a second socket was joined to it already.")
		return
	}
	if !h.enter() {
		writeError(w, http.StatusServiceUnavailable, "The hub is being stopped.")
		return
	}
	defer h.wg.Done()
	// The next socket, should this one be lost, comes with another id.
	next := uuid.NewString()
	conn, err := bulkUpgrader.Upgrade(w, r, http.Header{wire.BulkHeader: {next}})
	if err != nil {
		h.log.Warn("Bulk socket could not be accepted", "machine", m.id, "err", err)
		return
	}
	err = m.bulk.Serve(conn, false, h.o.Heartbeat+h.o.PongTimeout, func() { m.laneJoined(id, next) })
	h.log.Debug("Bulk socket ended", "machine", m.id, "err", err)
}

// laneOf is the connection that a bulk socket may join: the newest one of its
// computer, by the same sign-in, with its id of now.
func (h *Hub) laneOf(p proof, id string) *machine {
	h.mu.Lock()
	m, _ := h.machines[p.machine].(*machine)
	h.mu.Unlock()
	if m == nil || !p.same(m.proven()) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone != nil || h.o.NoBulk || m.lane == "" || subtle.ConstantTimeCompare([]byte(m.lane), []byte(id)) != 1 {
		return nil
	}
	return m
}

// newLane makes the id that the first bulk socket comes with.
func (m *machine) newLane() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lane = uuid.NewString()
	return m.lane
}

// laneJoined spends an id: the computer was heard, so it knows the next one.
func (m *machine) laneJoined(id, next string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lane == id {
		m.lane = next
	}
}

// goOver has Recv read on from the bulk socket.
func (s *stream) goOver() {
	s.mu.Lock()
	if s.over == nil && s.ended == nil {
		s.over, s.leave = context.WithCancel(context.Background())
	}
	s.mu.Unlock()
	wake(s.received)
}

// recvOver is Recv once the reply comes over the bulk socket.
func (s *stream) recvOver(over context.Context) (wire.Message, error) {
	in, err := s.entered(over)
	var msg wire.Message
	if err == nil {
		msg, err = in.Next(over, wire.ToHub)
	}
	var frame *wire.FrameError
	switch {
	case errors.As(err, &frame):
		s.m.h.log.Warn("Frame refused", "machine", s.m.id, "type", frame.Type, "reason", frame.Reason)
		s.cancel(wire.Wrap(err, wire.CodeInternal, "The computer's answer could not be understood."))
	case err != nil:
		s.cancel(wire.Wrap(err, wire.CodeLost, "The connection to the computer was lost in the middle of a transfer."))
	case msg.Type == wire.TypeCredit || !wire.Replies(s.request, msg.Type):
		s.cancel(wire.Errorf(wire.CodeInternal, "The computer answered something else than was asked."))
	case wire.Terminal(msg.Type):
		s.finish()
		if p, ok := msg.Payload.(*wire.ErrorPayload); ok {
			return wire.Message{}, wire.FromWire(p)
		}
		return msg, nil
	default:
		return msg, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Message{}, s.ended
}

// entered is the stream that the rest of the reply comes over.
func (s *stream) entered(over context.Context) (*bulk.In, error) {
	if s.in != nil {
		return s.in, nil
	}
	in, err := s.m.bulk.Take(over, s.id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		in.Reset()
		return nil, s.ended
	}
	in.Reuse = s.request == wire.TypeFileRead
	s.in = in
	return in, nil
}

// finish notes that the reply has come whole.
func (s *stream) finish() {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = io.EOF
	}
	s.mu.Unlock()
	s.m.forget(s.id)
	s.letGo()
	wake(s.allowed)
}

// sendOver sends what follows the request over the bulk socket where that is
// begun, or is to begin with it; handled is false where it is not.
func (s *stream) sendOver(f wire.Follow) (handled bool, err error) {
	if s.out == nil {
		if !s.gauge.Due(f) {
			return false, nil
		}
		out, err := s.m.bulk.Open(s.m.h.ctx, s.id)
		if err != nil {
			return false, nil // without it
		}
		s.mu.Lock()
		ended := s.ended
		if ended == nil {
			s.out = out
		}
		s.mu.Unlock()
		if ended != nil {
			out.Reset()
			return true, io.EOF
		}
		if err := s.m.write(wire.Message{Type: wire.TypeBulk, ID: s.id, Payload: &wire.Empty{}}); err != nil {
			return true, err
		}
	}
	err = s.out.Send(context.Background(), wire.Message{Type: wire.FollowType(f), ID: s.id, Payload: f})
	switch {
	case errors.Is(err, bulk.ErrReset):
		return true, io.EOF // the computer wants no more; its answer says why
	case errors.Is(err, bulk.ErrLost):
		s.cancel(wire.Wrap(err, wire.CodeLost, "The connection to the computer was lost in the middle of a transfer."))
		return true, io.EOF
	case err != nil:
		return true, wire.Wrap(err, wire.CodeInvalid, "The request is not valid: %s.", reason(err))
	}
	return true, nil
}
