package autogpt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// job is one data request translated: what the handler is asked, and how its
// answer is told.
type job interface {
	// request is the message for the handler; its SessionID is the chat.
	request() (wire.Type, wire.Payload)
	// send takes a frame before the last. An error ends the request.
	send(t wire.Type, p wire.Payload) error
	// reply makes the answer of the handler's last frame.
	reply(p wire.Payload) (msg.Type, wire.Payload, error)
}

// uploader is a job that brings a body along. It gives it away, with what is to
// be called once it has been read.
type uploader interface{ body() ([]byte, func()) }

// data answers a request of a chat, or says in time that the person is still
// being asked, or that it still runs.
func (s *socket) data(ctx context.Context, m msg.Message, ahead <-chan struct{}) (msg.Type, wire.Payload, error) {
	need := msg.CapabilityOf(m.Type)
	if !slices.Contains(s.granted, need) {
		return "", nil, s.notGranted(need)
	}
	t := s.c.book.join(s.ch, m)
	if t == nil {
		j, err := s.translate(m)
		if err != nil {
			return "", nil, err
		}
		t = newTask()
		t.looks = need == msg.ComputerUse && msg.Harmless(m.Type)
		s.run(t, func() (msg.Type, wire.Payload, error) { return s.handle(ctx, t, j, m, ahead) })
	}
	kind, p, err := s.await(ctx, t, m, need, s.c.o.Timings.Asking, s.c.o.Timings.Running)
	if need == msg.ComputerUse {
		return kind, p, s.toDesktop(err, m)
	}
	return kind, p, toWire(err, need)
}

// translate makes the job of a request.
func (s *socket) translate(m msg.Message) (job, error) {
	at := place{session: msg.SessionKey(s.ch.session), root: s.ch.root}
	switch p := m.Payload.(type) {
	case *msg.Execute:
		if !s.c.commands.take(time.Now()) {
			return nil, &msg.Detailed{Code: msg.CodeOverloaded, Message: fmt.Sprintf("This computer runs at most %d commands in a minute; try again in a moment.", commandsPerMinute),
				Details: map[string]any{"max_concurrent": s.max}}
		}
		return newCommand(at, p, min(s.timeout, msg.CommandLimit), int(min(s.fileSize, msg.MaxText)))
	case *msg.FileRead:
		return newRead(at, p, s.fileSize)
	case *msg.FileWrite:
		free, ok := s.c.hold(len(p.Content))
		if !ok {
			return nil, s.tooMuch()
		}
		j, err := newWrite(at, p, s.fileSize)
		if err != nil {
			free()
			return nil, err
		}
		j.free = free
		return j, nil
	case *msg.FileStat:
		return &statJob{place: at, p: p}, nil
	case *msg.FileList:
		return newList(at, p)
	case *msg.FileDelete:
		return &deleteJob{place: at, p: p}, nil
	case *msg.FileMove:
		return &moveJob{place: at, p: p}, nil
	case *msg.Screenshot:
		if !s.c.pictures.take(time.Now()) {
			return nil, &msg.Detailed{Code: msg.CodeOverloaded, Message: fmt.Sprintf("This computer takes at most %d pictures in a minute; try again in a moment.", picturesPerMinute),
				Details: map[string]any{"max_concurrent": s.max}}
		}
	}
	if msg.CapabilityOf(m.Type) == msg.ComputerUse {
		return s.desktop(m)
	}
	return nil, &msg.Detailed{Code: msg.CodeNotSupported, Message: "This computer does not offer this.",
		Details: map[string]any{"feature": strings.ToLower(string(m.Type))}}
}

// run works on t, on a goroutine of its own.
func (s *socket) run(t *task, do func() (msg.Type, wire.Payload, error)) {
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		t.t, t.p, t.err = do()
		s.c.book.ended(t)
	}()
}

// await waits for a task's result: until asking while it has not begun, until
// running when it has. Then it answers PERMISSION_PENDING, and notes the task
// for the repeat.
func (s *socket) await(ctx context.Context, t *task, m msg.Message, permission string, asking, running time.Duration) (msg.Type, wire.Payload, error) {
	late, later := time.NewTimer(asking), time.NewTimer(running)
	defer late.Stop()
	defer later.Stop()
	for {
		hint := "The person is asked on the computer. Send the same request again when they have allowed it; it is then not asked a second time."
		begun := false
		select {
		case <-t.done:
			return t.t, t.p, t.err
		case <-ctx.Done():
			return "", nil, context.Cause(ctx)
		case <-late.C:
		case <-later.C:
			if begun = t.runs(); begun {
				hint = "It was allowed, and runs. Send the same request again for its result; it does not run a second time."
			}
		}
		if !t.leave(!begun) {
			continue
		}
		if !begun {
			t.yield() // a card needs no place
		}
		s.c.book.add(s.ch, m, t)
		return "", nil, &msg.Detailed{Code: msg.CodePending, Message: hint, Details: map[string]any{"permission": permission, "hint": hint}}
	}
}

// handle has the handler do a job, when it is its turn.
func (s *socket) handle(ctx context.Context, t *task, j job, m msg.Message, ahead <-chan struct{}) (msg.Type, wire.Payload, error) {
	x := &exchange{task: t, job: j, free: func() {}}
	if u, ok := j.(uploader); ok {
		x.rest, x.free = u.body()
		defer x.free()
	}
	kind, p := j.request()
	if err := p.Validate(); err != nil {
		if msg.CapabilityOf(m.Type) == msg.ComputerUse {
			return "", nil, unsupported(m, "This computer does not take the request: %s.", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		return "", nil, unfit(p, err)
	}
	if ahead != nil {
		select {
		case <-ahead:
		case <-ctx.Done():
			return "", nil, context.Cause(ctx)
		}
	}
	if err := s.turn(ctx); err != nil {
		return "", nil, err
	}
	t.holds(s.done)
	defer t.yield()
	_, last, err := s.c.o.Handler(ctx, wire.Message{Type: kind, ID: uuid.NewString(), Payload: p}, x)
	if r, ok := j.(*shotJob); ok && r.again(err) {
		kind, p = j.request()
		_, last, err = s.c.o.Handler(ctx, wire.Message{Type: kind, ID: uuid.NewString(), Payload: p}, x)
	}
	if l, ok := j.(*listJob); ok && l.more && errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		return "", nil, err
	}
	return j.reply(last)
}

// turn waits for one of the places that all chats share.
func (s *socket) turn(ctx context.Context) error {
	s.move(1, 0)
	defer s.move(-1, 0)
	full := time.NewTimer(s.c.o.Timings.Asking - s.c.o.Timings.Asking/8)
	defer full.Stop()
	select {
	case s.c.work <- struct{}{}:
		s.move(0, 1)
		return nil
	case <-full.C:
		return overloaded(s.c.o.MaxConcurrent)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *socket) done() {
	<-s.c.work
	s.move(0, -1)
}

func (s *socket) move(queued, inFlight int) {
	s.mu.Lock()
	s.queued += queued
	s.inFlight += inFlight
	s.mu.Unlock()
}

// exchange is the handler's side of a job.
type exchange struct {
	task *task
	job  job
	rest []byte
	free func() // the body is needed no more
	last bool
}

var _ tunnel.Exchange = (*exchange)(nil)

func (x *exchange) Begin() bool { return x.task.begin() }

func (x *exchange) Send(ctx context.Context, t wire.Type, p wire.Payload) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return x.job.send(t, p)
}

func (x *exchange) Next(ctx context.Context) (wire.Follow, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if x.last {
		return nil, wire.Errorf(wire.CodeInvalid, "The file has no more.")
	}
	n := min(len(x.rest), wire.MaxChunk)
	c := &wire.FileChunk{Data: x.rest[:n], Last: n == len(x.rest)}
	if x.rest, x.last = x.rest[n:], c.Last; x.last {
		x.rest = nil
		x.free()
	}
	return c, nil
}

// commandsPerMinute is the protocol's. controlsPerMinute is more than it takes
// to look through a computer's folders, and bounds the record, which holds each
// of them though nobody has allowed anything.
const (
	commandsPerMinute = 60
	controlsPerMinute = 600
)

// rate bounds requests in a sliding minute.
type rate struct {
	most int

	mu   sync.Mutex
	last []time.Time // guarded by mu
}

func (r *rate) take(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.last) > 0 && now.Sub(r.last[0]) >= time.Minute {
		r.last = r.last[1:]
	}
	if len(r.last) >= r.most {
		return false
	}
	r.last = append(r.last, now)
	return true
}

// seconds is d with three decimals.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
