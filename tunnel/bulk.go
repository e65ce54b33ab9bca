package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
)

// bulkMax is the longest of the windows in which a bulk socket that cannot be
// had is tried once: things go on without it.
const bulkMax = 10 * time.Minute

// errSpent is a hub that takes no bulk socket of this connection any more.
var errSpent = errors.New("the hub takes no bulk socket of this connection")

// carry keeps a bulk socket beside the connection that the hub knows by that
// id, from the first request on until ctx ends. A computer of which nothing is
// asked costs neither end a second connection.
func (s *socket) carry(ctx context.Context, id string) {
	defer s.wg.Done()
	select {
	case <-s.asked:
	case <-ctx.Done():
		return
	}
	for again := (Backoff{Base: s.c.o.BackoffBase, Max: max(bulkMax, s.c.o.BackoffMax)}); ; {
		began := time.Now()
		err := s.carryOnce(ctx, &id)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errSpent) {
			s.c.o.Log.Warn("Transfers go over the first connection", "err", err)
			return
		}
		again.Ended(time.Since(began), err)
		wait := again.Next()
		s.c.o.Log.Info("Bulk socket lost", "err", err, "retryIn", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// carryOnce is one bulk socket. Each id is good once; the hub gives the next
// one with its answer.
func (s *socket) carryOnce(ctx context.Context, id *string) error {
	header := http.Header{"Authorization": {"Bearer " + s.token()}, wire.BulkHeader: {*id}}
	conn, resp, err := s.c.o.Network.Dial(ctx, s.c.bulk, header, wire.Subprotocol)
	if err != nil {
		if resp == nil {
			return fmt.Errorf("dial: %w", err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096))
		resp.Body.Close()
		if resp.StatusCode == http.StatusConflict {
			return errSpent
		}
		return fmt.Errorf("dial: hub answered %s", resp.Status)
	}
	if next := resp.Header.Get(wire.BulkHeader); next != "" {
		*id = next
	}
	return s.bulk.Serve(conn, true, s.c.o.Heartbeat+s.c.o.PongTimeout, nil)
}

// Over the bulk socket: what is sent.

// sendOver sends a frame over the bulk socket where that is begun, or is to
// begin with it; handled is false where it is not. The caller's turn it is.
func (x *exchange) sendOver(ctx context.Context, m wire.Message) (handled bool, err error) {
	if x.out == nil {
		if !x.gauge.Due(m.Payload) {
			return false, nil
		}
		out, err := x.s.bulk.Open(ctx, x.id)
		if err != nil {
			return false, nil // without it
		}
		if err := x.s.write(wire.Message{Type: wire.TypeBulk, ID: x.id, Payload: &wire.Empty{}}); err != nil {
			out.Reset()
			return true, err
		}
		x.out = out
	}
	if err := x.out.Send(ctx, m); err != nil {
		return true, bulkError(err)
	}
	return true, nil
}

// bulkError gives the errors of streams the shape of those of requests.
func bulkError(err error) error {
	switch {
	case errors.Is(err, bulk.ErrReset):
		return wire.Wrap(err, wire.CodeCancelled, "The request was cancelled.")
	case errors.Is(err, bulk.ErrLost):
		return wire.Wrap(err, wire.CodeLost, "The connection to the hub for transfers was lost.")
	}
	return err
}

// reply sends the last frame of a request: where the others went, or as an
// error over the control socket where that is not possible any more.
func (x *exchange) reply(ctx context.Context, m wire.Message) error {
	var err error
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
		if x.out == nil {
			return x.s.write(m)
		}
		if err = x.out.Send(ctx, m); err == nil {
			x.out.Close()
			return nil
		}
		x.out.Reset()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if _, failed := m.Payload.(*wire.ErrorPayload); !failed {
		m.Type, m.Payload = wire.TypeError, wire.ToWire(bulkError(err))
	}
	return x.s.write(m)
}

// What comes.

// goOver has Next read on from the bulk socket.
func (x *exchange) goOver() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over == nil && x.ended == nil {
		x.over, x.leave = context.WithCancelCause(context.Background())
	}
	x.cond.Broadcast()
}

// nextOver is Next once what follows comes over the bulk socket.
func (x *exchange) nextOver(ctx context.Context) (wire.Follow, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(x.over, func() { cancel(context.Cause(x.over)) })
	defer stop()
	in, err := x.entered(ctx)
	if err != nil {
		return nil, x.broke(ctx, err)
	}
	for {
		m, err := in.Next(ctx, wire.ToMachine)
		if err == io.EOF && x.whole {
			<-ctx.Done() // nothing more comes until the request ends
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, x.broke(ctx, err)
		}
		f, ok := m.Payload.(wire.Follow)
		if !ok || !wire.Follows(x.asked, m.Type) {
			return nil, x.broke(ctx, wire.Errorf(wire.CodeInvalid, "The hub sent more than it was asked for."))
		}
		n := wire.DataLen(f)
		if _, size := f.(*wire.TerminalSize); !size && (x.whole || n == 0 && !last(f)) {
			continue // nothing that counts
		}
		x.mu.Lock()
		x.whole = x.whole || last(f)
		x.mu.Unlock()
		return f, nil
	}
}

// entered is the stream that the rest comes over.
func (x *exchange) entered(ctx context.Context) (*bulk.In, error) {
	if x.in != nil {
		return x.in, nil
	}
	in, err := x.s.bulk.Take(ctx, x.id)
	if err != nil {
		return nil, err
	}
	// An upload goes to the disk piece by piece.
	in.Reuse = x.asked == wire.TypeFileWrite
	x.mu.Lock()
	x.in = in
	ended := x.ended
	x.mu.Unlock()
	if ended != nil {
		in.Reset()
		return nil, ended
	}
	return in, nil
}

// broke is why nothing more follows; unless it is the end of the caller's ctx
// it ends the request.
func (x *exchange) broke(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var frame *wire.FrameError
	switch {
	case errors.As(err, &frame):
		err = wire.Wrap(err, wire.CodeInvalid, "This computer does not understand what followed the request: %s.", frame.Reason)
	case wire.CodeOf(err) == "":
		err = wire.Wrap(err, wire.CodeLost, "The connection to the hub for transfers was lost.")
	}
	x.cancel(err)
	x.end(err)
	return err
}
