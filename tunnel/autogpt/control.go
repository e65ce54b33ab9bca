package autogpt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// Folders lets a hub look for a folder and bind chats to it. The errors are a
// *wire.Error, or a *msg.Detailed where there are details, with a code of the
// protocol. Calls may take as long as a person does; ctx ends with the
// connection. Safe for concurrent use.
type Folders interface {
	// Reset is a new control connection: every reference of a browse dies.
	Reset()
	List(context.Context, msg.DirectoryList) (msg.Directory, error)
	// Attach is not called for a chat that is live.
	Attach(context.Context, msg.Attach) (msg.Binding, error)
	Activate(context.Context, msg.Activate) (msg.Binding, error)
	Restore(context.Context, msg.Restore) (msg.Binding, error)
	Detach(ctx context.Context, session string) error
}

// answer works on one request and returns its reply. One about the computer
// begins when ahead is closed; nil: at once.
func (s *socket) answer(ctx context.Context, m msg.Message, ahead <-chan struct{}) (msg.Type, wire.Payload, error) {
	if msg.Control(m.Type) != s.ch.control {
		if s.ch.control {
			return "", nil, wire.Errorf(msg.CodeNotSupported, "The control connection takes no requests about files, commands or the screen.")
		}
		return "", nil, s.notGranted(msg.Browse)
	}
	if s.ch.control {
		return s.control(ctx, m)
	}
	return s.data(ctx, m, ahead)
}

func (s *socket) notGranted(capability string) error {
	granted := append([]string{}, s.granted...)
	return &msg.Detailed{Code: msg.CodeNotGranted, Details: map[string]any{"required_capability": capability, "granted_capabilities": granted},
		Message: fmt.Sprintf("This needs %s, which was not granted to this connection.", capability)}
}

// control answers a request about folders and chats, or says in time that the
// person is still being asked.
func (s *socket) control(ctx context.Context, m msg.Message) (msg.Type, wire.Payload, error) {
	if m.Type == msg.TypeDetach {
		// Ending something is never asked, and never waits.
		return s.detach(ctx, m.Payload.(*msg.Detach).SessionID)
	}
	t := s.c.book.join(s.ch, m)
	if t == nil {
		if !s.c.controls.take(time.Now()) {
			return "", nil, &msg.Detailed{Code: msg.CodeOverloaded, Details: map[string]any{"max_concurrent": s.max},
				Message: fmt.Sprintf("This computer takes at most %d requests about folders and chats in a minute; try again in a moment.", controlsPerMinute)}
		}
		t = newTask()
		s.run(t, func() (msg.Type, wire.Payload, error) { return s.bind(ctx, m) })
	}
	limit := s.c.o.Timings.Control
	kind, p, err := s.await(ctx, t, m, msg.Browse, limit, limit)
	return kind, p, toWire(err, msg.Browse)
}

// bind does what a control request asks.
func (s *socket) bind(ctx context.Context, m msg.Message) (msg.Type, wire.Payload, error) {
	switch p := m.Payload.(type) {
	case *msg.DirectoryList:
		d, err := s.c.o.Folders.List(ctx, *p)
		return msg.TypeDirectory, &d, err
	case *msg.Attach:
		if s.c.settle(ctx, p.SessionID); s.c.live(p.SessionID) {
			return "", nil, wire.Errorf(msg.CodeAlreadyActive, "This chat already works in a folder of this computer. Detach it first.")
		}
		b, err := s.c.o.Folders.Attach(ctx, *p)
		if err == nil && !msg.RootFits(b.AllowedRoot) {
			_ = s.c.o.Folders.Detach(ctx, p.SessionID)
			err = wire.Errorf(msg.CodeUnavailable, "The name of this folder has characters that the hub does not take, or is too long.")
		}
		return msg.TypeAttached, &b, err
	case *msg.Activate:
		b, err := s.begin(ctx, p.SessionID, func() (msg.Binding, error) { return s.c.o.Folders.Activate(ctx, *p) })
		return msg.TypeActivated, b.Activated(), err
	case *msg.Restore:
		b, err := s.begin(ctx, p.SessionID, func() (msg.Binding, error) { return s.c.o.Folders.Restore(ctx, *p) })
		return msg.TypeRestored, &b, err
	}
	return "", nil, wire.Errorf(msg.CodeNotSupported, "This computer does not take requests of this kind.")
}

// begin makes a chat live as get says.
func (s *socket) begin(ctx context.Context, session string, get func() (msg.Binding, error)) (msg.Binding, error) {
	for {
		s.c.settle(ctx, session)
		if err := s.c.room(session); err != nil {
			return msg.Binding{}, err
		}
		b, err := get()
		if err != nil {
			return b, err
		}
		if err := s.c.start(ctx, b); !errors.Is(err, errEnding) {
			return b, err
		}
	}
}

func (s *socket) detach(ctx context.Context, session string) (msg.Type, wire.Payload, error) {
	s.c.End(session)
	s.c.book.drop(session)
	if err := s.c.o.Folders.Detach(ctx, session); err != nil {
		return "", nil, toWire(err, msg.Browse)
	}
	return msg.TypeAck, &msg.Ack{OK: true}, nil
}
