package desklink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"os/exec"
	"sync"
	"time"
	"unicode/utf8"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// HandsOptions build a Hands. Command is needed.
type HandsOptions struct {
	// Command makes the command that starts the process at the display. Its
	// standard input, output and error are the Hands'.
	Command func() *exec.Cmd
	// Idle is how long the process stays without a request and without control;
	// 0 means 3 minutes.
	Idle time.Duration
	// Stuck is how long a request may take beyond what it takes by its nature,
	// and Grace how long one that was ended may take to come back: then the
	// process is killed, and a fresh one lets go of what it held. 0 means 20 and
	// 2 seconds.
	Stuck, Grace time.Duration
	// Asked is how much longer a picture or an action may take: the person may be
	// reading the system's own question about it. 0 means 40 seconds.
	Asked time.Duration
	Log   *slog.Logger
}

// Hands is localpc's side of the link to the process that touches the display,
// and a hands.Hands. It starts the process when it is asked for something, lets
// it go when it has been idle, and starts a fresh one when it ends by itself,
// which lets go of what was held before anything else. Safe for concurrent use.
type Hands struct {
	o      HandsOptions
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	p       *handsProcess     // guarded by mu; nil: none runs
	last    uint64            // id of the last request; guarded by mu
	fn      func(hands.Event) // guarded by mu
	control hands.Control     // as it was set last; guarded by mu
	dirty   bool              // something may be held down still; guarded by mu
	healing bool              // a fresh one is being started; guarded by mu
	copied  bool              // it may have the clipboard; guarded by mu
	open    int               // requests; guarded by mu
	idle    *time.Timer       // guarded by mu
	healed  time.Time         // when healing began last; guarded by mu
	closed  bool              // guarded by mu
	shut    chan struct{}     // closed with closed
}

var _ hands.Hands = (*Hands)(nil)

// NewHands makes a Hands; nothing is started yet.
func NewHands(o HandsOptions) *Hands {
	if o.Idle == 0 {
		o.Idle = 3 * time.Minute
	}
	if o.Stuck == 0 {
		o.Stuck = 20 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.Asked == 0 {
		o.Asked = 40 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	h := &Hands{o: o, shut: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// errHandsLost is what a request is told whose process ended, or was ended.
func errHandsLost(cause error) error {
	return wire.Wrap(cause, wire.CodeInternal, "The part of this program that works the screen, mouse and keyboard ended in the middle of this. Keys and buttons that it held are let go of, and it is started again: take a new picture, then go on.")
}

// ask is one request and its answer.
func (h *Hands) ask(ctx context.Context, op string, args any, body []byte, takes time.Duration) (head, []byte, error) {
	h.mu.Lock()
	p, err := h.need()
	if err != nil {
		h.mu.Unlock()
		return head{}, nil, err
	}
	h.open++
	h.rest()
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.open--
		h.rest()
		h.mu.Unlock()
	}()
	select {
	case <-p.ready:
	case <-p.done:
		return head{}, nil, errHandsLost(p.end)
	case <-ctx.Done():
		return head{}, nil, context.Cause(ctx)
	}
	return h.through(ctx, p, op, args, body, takes)
}

// through is ask of one process, ready or not.
func (h *Hands) through(ctx context.Context, p *handsProcess, op string, args any, body []byte, takes time.Duration) (head, []byte, error) {
	if err := context.Cause(ctx); err != nil {
		return head{}, nil, err
	}
	q := head{Op: op}
	if args != nil {
		var err error
		if q.Args, err = json.Marshal(args); err != nil {
			return head{}, nil, fmt.Errorf("encode a request to the display: %w", err)
		}
	}
	h.mu.Lock()
	h.last++
	q.ID = h.last
	answered := make(chan reply, 1)
	p.pending[q.ID] = answered
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(p.pending, q.ID)
		h.mu.Unlock()
	}()
	b, err := frame(q, body)
	if err != nil {
		return head{}, nil, err
	}
	late := time.NewTimer(h.o.Stuck + takes)
	defer late.Stop()
	if err := p.push(ctx, b, late.C); err != nil {
		return head{}, nil, h.given(ctx, p, err)
	}
	ended := ctx.Done()
	for {
		select {
		case r := <-answered:
			return answerOf(ctx, r)
		case <-p.done:
			select {
			case r := <-answered: // it was its last word
				return answerOf(ctx, r)
			default:
			}
			return head{}, nil, errHandsLost(p.end)
		case <-ended:
			// It has to come back with nothing held down.
			ended = nil
			late.Reset(h.o.Grace)
			if b, err := frame(head{ID: q.ID, Op: opCancel}, nil); err != nil || p.push(context.Background(), b, late.C) != nil {
				return head{}, nil, h.given(ctx, p, errLate)
			}
		case <-late.C:
			return head{}, nil, h.given(ctx, p, errLate)
		}
	}
}

var errLate = errors.New("it did not answer in time")

// given ends a process that hangs, and says what became of a request.
func (h *Hands) given(ctx context.Context, p *handsProcess, err error) error {
	if errors.Is(err, errLate) {
		h.o.Log.Error("The part at the display hangs, and was ended")
		_ = p.cmd.Process.Kill()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errHandsLost(err)
}

type reply struct {
	head head
	body []byte
}

func answerOf(ctx context.Context, r reply) (head, []byte, error) {
	switch {
	case r.head.Error != nil:
		return r.head, nil, wire.FromWire(r.head.Error)
	case r.head.Plain != "" && ctx.Err() != nil:
		return r.head, nil, context.Cause(ctx)
	case r.head.Plain != "":
		return r.head, nil, errors.New(r.head.Plain)
	}
	return r.head, r.body, nil
}

// give is ask for what gives a T.
func give[T any](ctx context.Context, h *Hands, op string, args any) (v T, err error) {
	a, _, err := h.ask(ctx, op, args, nil, 0)
	if err != nil {
		return v, err
	}
	return v, decode(a, &v)
}

func decode(a head, v any) error {
	if err := json.Unmarshal(a.Args, v); err != nil {
		return fmt.Errorf("the display answered what can't be read: %w", err)
	}
	return nil
}

// Abilities is hands.Hands'.
func (h *Hands) Abilities(ctx context.Context) (hands.Abilities, error) {
	return give[hands.Abilities](ctx, h, opAbilities, nil)
}

// Layout is hands.Hands'.
func (h *Hands) Layout(ctx context.Context) (space.Layout, error) {
	return give[space.Layout](ctx, h, opLayout, nil)
}

// Shoot is hands.Hands'.
func (h *Hands) Shoot(ctx context.Context, a hands.Ask) (hands.Shot, error) {
	takes := h.o.Asked
	if until, ok := ctx.Deadline(); ok && a.Card {
		takes = max(takes, time.Until(until)) // the person may read the system's question as long as the card is there
	}
	r, file, err := h.ask(ctx, opShoot, a, nil, takes)
	if err != nil {
		return hands.Shot{}, err
	}
	var s shotHead
	if err := decode(r, &s); err != nil {
		return hands.Shot{}, err
	}
	if s.Listed && s.Stack == nil {
		s.Stack = space.Stack{}
	}
	s.Data = file
	return s.Shot, nil
}

// Act is hands.Hands'.
func (h *Hands) Act(ctx context.Context, a hands.Action) error {
	steps := utf8.RuneCountInString(a.Text) + len(a.Path) + a.Repeat + a.Amount + a.Count
	_, _, err := h.ask(ctx, opAct, a, nil, h.o.Asked+a.Hold+time.Duration(steps)*200*time.Millisecond)
	if err == nil { // it works, and may hold something: that is not to wait
		h.mu.Lock()
		h.healed = time.Time{}
		h.mu.Unlock()
	}
	return err
}

// Cursor is hands.Hands'.
func (h *Hands) Cursor(ctx context.Context) (image.Point, error) {
	return give[image.Point](ctx, h, opCursor, nil)
}

// Windows is hands.Hands'.
func (h *Hands) Windows(ctx context.Context) (space.Stack, error) {
	return give[space.Stack](ctx, h, opWindows, nil)
}

// Focus is hands.Hands'.
func (h *Hands) Focus(ctx context.Context, w space.Window, raise bool, seen time.Time) error {
	_, _, err := h.ask(ctx, opFocus, focus{w, raise, seen}, nil, 0)
	return err
}

// ReadClipboard is hands.Hands'.
func (h *Hands) ReadClipboard(ctx context.Context, max int) (hands.Clip, error) {
	r, text, err := h.ask(ctx, opRead, max, nil, 0)
	if err != nil {
		return hands.Clip{}, err
	}
	c := hands.Clip{Text: string(text)}
	return c, decode(r, &c.Owned)
}

// WriteClipboard is hands.Hands'. The process stays as long as it has the
// clipboard.
func (h *Hands) WriteClipboard(ctx context.Context, text string) error {
	_, _, err := h.ask(ctx, opWrite, nil, []byte(text), 0)
	if err == nil {
		h.mu.Lock()
		h.copied = true
		h.mu.Unlock()
	}
	return err
}

// Control is hands.Hands'. A fresh process is told the same. Where none runs,
// none is started to be told that there is no control.
func (h *Hands) Control(ctx context.Context, c hands.Control) error {
	h.mu.Lock()
	h.control = c
	none := h.p == nil && !h.dirty && !c.On && !c.StopKey
	h.rest()
	h.mu.Unlock()
	if none {
		return nil
	}
	_, _, err := h.ask(ctx, opControl, c, nil, 0)
	return err
}

// Release is hands.Hands'.
func (h *Hands) Release(ctx context.Context) error {
	h.mu.Lock()
	none := h.p == nil && !h.dirty
	h.mu.Unlock()
	if none {
		return nil
	}
	_, _, err := h.ask(ctx, opRelease, nil, nil, 0)
	return err
}

// Target is hands.Hands'.
func (h *Hands) Target(ctx context.Context, points []image.Point) error {
	_, _, err := h.ask(ctx, opTarget, append([]image.Point{}, points...), nil, 0)
	return err
}

// Hits is hands.Hands'.
func (h *Hands) Hits(ctx context.Context) ([]image.Point, error) {
	return give[[]image.Point](ctx, h, opHits, nil)
}

// Listen is hands.Hands'.
func (h *Hands) Listen(fn func(hands.Event)) {
	h.mu.Lock()
	h.fn = fn
	h.mu.Unlock()
}

// PID is the running process's, 0 when there is none.
func (h *Hands) PID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.p == nil {
		return 0
	}
	return h.p.cmd.Process.Pid
}

// Close ends the process, which lets go of everything, and waits for it.
func (h *Hands) Close() error {
	h.mu.Lock()
	if !h.closed {
		close(h.shut)
	}
	h.closed = true
	h.control = hands.Control{}
	h.rest()
	if h.p != nil {
		h.leave(h.p)
	}
	h.mu.Unlock()
	h.wg.Wait()
	h.cancel()
	return nil
}
