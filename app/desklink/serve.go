package desklink

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"sync"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// maxAtOnce is how many requests the process at the display works on at once;
// what lets go and what ends control is let in beyond it.
const maxAtOnce = 64

// endWithin is how long requests that were ended may take to come back before
// the process leaves without them.
const endWithin = 2 * time.Second

// ServeHands answers what localpc asks over in and out with what h does, until
// in ends or ctx does. Everything that is held down is let go of then, at once,
// and h is closed. The error says what was wrong with the link; an end is none.
func ServeHands(ctx context.Context, in io.ReadCloser, out io.WriteCloser, h hands.Hands) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &handsServer{ctx: ctx, h: h, out: &frameWriter{w: out}, running: map[uint64]context.CancelFunc{}}
	h.Listen(func(e hands.Event) { _ = s.out.send(head{Event: &e}, nil) })
	unblock := context.AfterFunc(ctx, func() { in.Close() })
	err := s.read(in)
	unblock()
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	let, done := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer done()
	err = errors.Join(err, h.Release(let), out.Close(), in.Close())
	gone := make(chan error, 1)
	go func() { s.wg.Wait(); gone <- h.Close() }()
	select {
	case bad := <-gone:
		return errors.Join(err, bad)
	case <-let.Done():
		return errors.Join(err, errors.New("what went on at the display did not end"))
	}
}

type handsServer struct {
	ctx context.Context
	h   hands.Hands
	out *frameWriter
	wg  sync.WaitGroup

	mu      sync.Mutex
	running map[uint64]context.CancelFunc // guarded by mu
}

func (s *handsServer) read(in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		q, body, err := readFrame(r)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		if q.Op == opCancel {
			if end := s.running[q.ID]; end != nil {
				end()
			}
			s.mu.Unlock()
			continue
		}
		if len(s.running) >= maxAtOnce && q.Op != opRelease && q.Op != opControl {
			s.mu.Unlock()
			s.answer(q.ID, nil, nil, wire.Errorf(wire.CodeOverloaded, "Too much is asked of the screen at once; try again in a moment."))
			continue
		}
		ctx, end := context.WithCancel(s.ctx)
		s.running[q.ID] = end
		s.mu.Unlock()
		s.wg.Go(func() {
			v, file, err := s.do(ctx, q, body)
			s.mu.Lock()
			delete(s.running, q.ID)
			s.mu.Unlock()
			end()
			s.answer(q.ID, v, file, err)
		})
	}
}

// answer sends what a request gave. One that can't be sent ends with its link.
func (s *handsServer) answer(id uint64, v any, body []byte, err error) {
	a := head{ID: id}
	if err == nil && v != nil {
		a.Args, err = json.Marshal(v)
	}
	if err != nil {
		a, body = failed(id, err), nil
	}
	if err := s.out.send(a, body); errors.Is(err, errTooMuch) {
		_ = s.out.send(failed(id, wire.Wrap(err, wire.CodeTooLarge, "What was asked for is too large.")), nil)
	}
}

func failed(id uint64, err error) head {
	if wire.CodeOf(err) != "" {
		return head{ID: id, Error: wire.ToWire(err)}
	}
	return head{ID: id, Plain: err.Error()}
}

// do is one request: what it gave, and the bytes that follow.
func (s *handsServer) do(ctx context.Context, q head, body []byte) (v any, file []byte, err error) {
	switch q.Op {
	case opAbilities:
		v, err = s.h.Abilities(ctx)
	case opLayout:
		v, err = s.h.Layout(ctx)
	case opShoot:
		a, err := arg[hands.Ask](q)
		if err != nil {
			return nil, nil, err
		}
		shot, err := s.h.Shoot(ctx, a)
		return shotHead{shot, shot.Stack != nil}, shot.Data, err
	case opAct:
		a, err := arg[hands.Action](q)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, s.h.Act(ctx, a)
	case opCursor:
		v, err = s.h.Cursor(ctx)
	case opWindows:
		v, err = s.h.Windows(ctx)
	case opFocus:
		f, err := arg[focus](q)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, s.h.Focus(ctx, f.Window, f.Raise, f.Seen)
	case opRead:
		max, err := arg[int](q)
		if err != nil {
			return nil, nil, err
		}
		c, err := s.h.ReadClipboard(ctx, max)
		return c.Owned, []byte(c.Text), err
	case opWrite:
		err = s.h.WriteClipboard(ctx, string(body))
	case opControl:
		c, err := arg[hands.Control](q)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, s.h.Control(ctx, c)
	case opRelease:
		err = s.h.Release(ctx)
	case opTarget:
		points, err := arg[[]image.Point](q)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, s.h.Target(ctx, points)
	case opHits:
		v, err = s.h.Hits(ctx)
	default:
		err = fmt.Errorf("the display was asked for %q, which it does not know", q.Op)
	}
	return v, nil, err
}

// focus is what Focus is asked with.
type focus struct {
	Window space.Window `json:"window"`
	Raise  bool         `json:"raise"`
	Seen   time.Time    `json:"seen"`
}

func arg[T any](q head) (v T, err error) {
	if err := json.Unmarshal(q.Args, &v); err != nil {
		return v, fmt.Errorf("what %s was asked with can't be read: %w", q.Op, err)
	}
	return v, nil
}
