package hub

import (
	"context"
	"io"
	"slices"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// job is a localpc.v1 request that is done in the words of wire 1.1. One
// goroutine does it, and ends with done.
type job struct {
	ctx    context.Context
	cancel context.CancelFunc
	c      *companion
	b      store.Binding
	out    chan wire.Message // frames of the reply
	in     chan wire.FileChunk
	done   chan struct{}
	err    error // io.EOF or a *wire.Error; set before done is closed
}

// do translates. A request without a meaning in 1.1 is refused in words.
func (c *companion) do(ctx context.Context, t wire.Type, p wire.Payload) (Stream, error) {
	if err := p.Validate(); err != nil {
		return nil, wire.Wrap(err, wire.CodeInvalid, "The request is not valid: %s.", err)
	}
	if t == wire.TypeSessionPause || t == wire.TypeSessionResume { // they name a session, as its end does
		return nil, wire.Errorf(wire.CodeNotSupported, "A session cannot be paused on a computer that is connected with AutoGPT's program.")
	}
	if !c.h.enter() {
		return nil, offline()
	}
	j := &job{c: c, out: make(chan wire.Message), in: make(chan wire.FileChunk), done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(ctx)
	stop := context.AfterFunc(c.h.ctx, j.cancel)
	c.busy.Add(1)
	go func() {
		defer c.h.wg.Done()
		defer c.busy.Add(-1)
		defer close(j.done)
		defer j.cancel()
		defer stop()
		j.err = io.EOF
		if err := j.run(t, p); err != nil {
			j.err = fromMachine(err)
		}
	}()
	return j, nil
}

// Recv gives the next frame of the reply.
func (j *job) Recv() (wire.Message, error) {
	select {
	case m := <-j.out:
		return m, nil
	case <-j.done:
		return wire.Message{}, j.err
	}
}

// Send takes the next chunk of an upload. This protocol has nothing else that
// follows a request: what would need it is refused before.
func (j *job) Send(f wire.Follow) error {
	c, ok := f.(*wire.FileChunk)
	if !ok {
		return wire.Errorf(wire.CodeNotSupported, "This computer's program takes no input for a command that runs.")
	}
	piece := wire.FileChunk{Data: slices.Clone(c.Data), Last: c.Last} // it waits here while the caller reads on
	select {
	case j.in <- piece:
		return nil
	case <-j.done:
		return io.EOF
	}
}

// Close lets go of the request. What the computer has been asked it still does.
func (j *job) Close() { j.cancel() }

func (j *job) send(t wire.Type, p wire.Payload) error {
	select {
	case j.out <- wire.Message{Type: t, Payload: p}:
		return nil
	case <-j.ctx.Done():
		return wire.Wrap(context.Cause(j.ctx), wire.CodeCancelled, "The request was cancelled.")
	}
}

func (j *job) run(t wire.Type, p wire.Payload) error {
	switch p := p.(type) {
	case *wire.SessionTTL:
		// The hub keeps the time of these sessions.
		if _, err := j.c.h.store.Binding(j.ctx, p.SessionID); err != nil {
			return wire.Wrap(err, wire.CodeSessionNotOpen, "The session is not open on the computer any more.")
		}
		return j.send(wire.TypeAck, &wire.Empty{})
	case *wire.SessionRef:
		if err := j.c.detach(j.ctx, p.SessionID); err != nil {
			return err
		}
		return j.send(wire.TypeAck, &wire.Empty{})
	case *wire.ProcessStart:
		return j.bound(p.SessionID, func() error { return j.execute(p) })
	case *wire.ProcessSignal:
		return wire.Errorf(wire.CodeNotSupported, "A command on this computer cannot be stopped from here; it ends by its time limit.")
	case *wire.FileRead:
		return j.bound(p.SessionID, func() error { return j.read(p) })
	case *wire.FileWrite:
		return j.bound(p.SessionID, func() error { return j.write(p) })
	case *wire.FileList:
		return j.bound(p.SessionID, func() error { return j.list(p) })
	case *wire.FileMove:
		return j.bound(p.SessionID, func() error { return j.move(p) })
	case *wire.FileStat:
		return j.bound(p.SessionID, func() error { return j.look(p) })
	case *wire.FileDelete:
		return j.bound(p.SessionID, func() error { return j.remove(p) })
	case *wire.FilePath: // FILE_MKDIR
		return j.bound(p.SessionID, func() error { return j.mkdir(p.Path) })
	case *wire.Screenshot:
		return j.bound(p.SessionID, func() error { return j.shoot(p) })
	case *wire.InputAction:
		return j.bound(p.SessionID, func() error { return j.input(p) })
	case *wire.ComputerQuery:
		if t == wire.TypeCursor {
			return j.bound(p.SessionID, func() error { return j.cursor(p) })
		}
		return j.bound(p.SessionID, j.displays)
	case *wire.Windows:
		return j.bound(p.SessionID, func() error { return j.windows(p) })
	case *wire.WindowFocus:
		return j.bound(p.SessionID, func() error { return j.focus(p) })
	case *wire.Apps:
		return j.bound(p.SessionID, func() error { return j.apps(p) })
	case *wire.AppLaunch:
		return j.bound(p.SessionID, func() error { return j.launch(p) })
	case *wire.ClipRead:
		return j.bound(p.SessionID, func() error { return j.readClipboard(p) })
	case *wire.ClipWrite:
		return j.bound(p.SessionID, func() error { return j.writeClipboard(p) })
	case *wire.Permissions:
		return j.bound(p.SessionID, func() error { return j.permissions(p) })
	}
	return wire.Errorf(wire.CodeNotSupported, "This cannot be done on a computer that is connected with AutoGPT's program.")
}

// bound does it with the session's data connection open.
func (j *job) bound(session string, do func() error) error {
	b, err := j.c.ensure(j.ctx, session)
	if err != nil {
		return err
	}
	j.b = b
	return do()
}
