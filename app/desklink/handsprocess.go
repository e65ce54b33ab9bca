package desklink

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// handsProcess is one running process at the display. Its fields are guarded
// by Hands.mu where they change.
type handsProcess struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	queue   chan []byte
	pending map[uint64]chan reply
	leaving bool // told to end
	quit    chan struct{}
	ending  *time.Timer
	tail    tail
	ready   chan struct{} // closed once it has let go of what an earlier one held
	done    chan struct{} // closed when it has ended
	end     error         // why; set before done
	before  *handsProcess // what may still be leaving; nil: nothing
}

// push queues one message. errLate says that the process does not take any.
func (p *handsProcess) push(ctx context.Context, b []byte, late <-chan time.Time) error {
	select {
	case p.queue <- b:
		return nil
	case <-p.done:
		return p.end
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late:
		return errLate
	}
}

// need returns the running process, or starts it. Called with mu held.
func (h *Hands) need() (*handsProcess, error) {
	if h.closed {
		return nil, errClosed
	}
	return h.start()
}

// start is need, closed or not. Called with mu held.
func (h *Hands) start() (*handsProcess, error) {
	if h.p != nil && !h.p.leaving {
		return h.p, nil
	}
	cmd := h.o.Command()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, wire.Wrap(fmt.Errorf("start the part at the display: %w", err), wire.CodeInternal,
			"The part of this program that works the screen, mouse and keyboard could not be started: %v.", err)
	}
	p := &handsProcess{cmd: cmd, in: in, queue: make(chan []byte, 64), pending: map[uint64]chan reply{},
		quit: make(chan struct{}), ready: make(chan struct{}), done: make(chan struct{}), before: h.p}
	h.p = p
	h.wg.Go(func() { p.tail.keep(errs) })
	h.wg.Go(func() { h.write(p) })
	h.wg.Go(func() { h.read(p, out) })
	h.wg.Go(func() { h.prepare(p) })
	return p, nil
}

// prepare has a process let go of what an earlier one held, before it is asked
// for anything, and tells it who has control. One that can't let go is ended.
func (h *Hands) prepare(p *handsProcess) {
	defer close(p.ready)
	if b := p.before; b != nil { // the last that it lets go of must not be p's
		<-b.done
		<-b.ready
	}
	h.mu.Lock()
	p.before = nil
	dirty, control := h.dirty, h.control
	h.mu.Unlock()
	if dirty {
		if _, _, err := h.through(h.ctx, p, opRelease, nil, nil, 0); err != nil {
			h.o.Log.Error("What was held down could not be let go of", "err", err)
			_ = p.cmd.Process.Kill()
			return
		}
		h.mu.Lock()
		h.dirty = false
		h.mu.Unlock()
	}
	if control.On || control.StopKey || len(control.Own) > 0 {
		if _, _, err := h.through(h.ctx, p, opControl, control, nil, 0); err != nil {
			h.o.Log.Error("The frame on the screens could not be drawn", "err", err)
		}
	}
}

// rest starts the idle clock while nothing is asked for and nobody has control,
// and stops it otherwise. Called with mu held.
func (h *Hands) rest() {
	if h.idle != nil {
		h.idle.Stop()
		h.idle = nil
	}
	if h.open > 0 || h.control.On || h.closed {
		return
	}
	h.idle = time.AfterFunc(h.o.Idle, func() {
		h.mu.Lock()
		p, copied := h.p, h.copied
		if p == nil || h.open > 0 || h.control.On || h.closed {
			h.mu.Unlock()
			return
		}
		if !copied {
			h.leave(p)
			h.mu.Unlock()
			return
		}
		h.wg.Add(1)
		h.mu.Unlock()
		defer h.wg.Done()
		// What it put on the clipboard would go with it.
		ctx, cancel := context.WithTimeout(h.ctx, h.o.Stuck)
		defer cancel()
		c, err := h.ReadClipboard(ctx, wire.MaxClip)
		h.mu.Lock()
		h.copied = err == nil && c.Owned // its clock runs again either way
		h.mu.Unlock()
	})
}

// leave asks a process to end: its input ends. Called with mu held.
func (h *Hands) leave(p *handsProcess) {
	if !p.leaving {
		p.leaving = true
		close(p.quit)
		p.ending = time.AfterFunc(quitWithin, func() { _ = p.cmd.Process.Kill() })
	}
}

// write sends what is queued.
func (h *Hands) write(p *handsProcess) {
	defer p.in.Close()
	for {
		select {
		case b := <-p.queue:
			if _, err := p.in.Write(b); err != nil {
				_ = p.cmd.Process.Kill() // read notices its end
				return
			}
		case <-p.quit:
			return
		case <-p.done:
			return
		}
	}
}

// read takes answers and events until the process has ended, and starts a fresh
// one when that was not to be.
func (h *Hands) read(p *handsProcess, out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	var err error
	for {
		var a head
		var body []byte
		if a, body, err = readFrame(r); err != nil {
			break
		}
		h.mu.Lock()
		answered, fn := p.pending[a.ID], h.fn
		h.mu.Unlock()
		switch {
		case a.Event != nil && fn != nil:
			fn(*a.Event)
		case a.Event == nil && answered != nil:
			select {
			case answered <- reply{a, body}:
			default: // answered twice
			}
		}
	}
	h.mu.Lock()
	if !errors.Is(err, io.EOF) {
		_ = p.cmd.Process.Kill() // it says what is no message
	} else if p.ending == nil {
		p.ending = time.AfterFunc(quitWithin, func() { _ = p.cmd.Process.Kill() })
	}
	h.mu.Unlock()
	end := p.cmd.Wait()
	h.mu.Lock()
	lost := !p.leaving
	if p.end = end; end == nil {
		p.end = errors.New("the part at the display has ended")
	}
	if p.ending != nil {
		p.ending.Stop()
	}
	if h.p == p {
		h.p = nil
	}
	h.dirty = h.dirty || end != nil
	h.copied = false
	heal := !h.healing && (end != nil || lost && !h.closed)
	h.healing = h.healing || heal
	h.mu.Unlock()
	close(p.done)
	if lost || end != nil {
		h.o.Log.Warn("The part at the display ended by itself", "err", end, "said", p.tail.said())
	}
	if heal {
		h.heal()
	}
}

// healAgain is the least time between two healings: a process that can't live
// must not be started without end.
const healAgain = 3 * time.Second

// tries are the waits before a fresh process is tried.
var tries = []time.Duration{0, 200 * time.Millisecond, time.Second, 3 * time.Second}

// heal starts a fresh process, has it let go of what is held, and tells of it.
func (h *Hands) heal() {
	h.mu.Lock()
	again := healAgain - time.Since(h.healed)
	h.mu.Unlock()
	select {
	case <-time.After(again):
	case <-h.shut:
	}
	h.mu.Lock()
	h.healed = time.Now()
	h.mu.Unlock()
	for _, wait := range tries {
		time.Sleep(wait)
		h.mu.Lock()
		if h.closed && !h.dirty {
			h.mu.Unlock()
			break
		}
		p, err := h.start()
		h.mu.Unlock()
		if err != nil {
			h.o.Log.Error("The part at the display can't be started", "err", err)
			continue
		}
		select {
		case <-p.ready:
		case <-p.done:
		}
		h.mu.Lock()
		held := h.dirty
		h.mu.Unlock()
		if !held {
			break
		}
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	h.mu.Lock()
	h.healing = false
	fn, closed := h.fn, h.closed
	if closed && h.p != nil {
		h.leave(h.p)
	}
	h.rest()
	h.mu.Unlock()
	if fn != nil && !closed {
		fn(hands.Event{Lost: true, At: time.Now()})
	}
}

// tail keeps the end of what a process prints.
type tail struct {
	mu  sync.Mutex
	end []byte // guarded by mu
}

func (t *tail) keep(r io.Reader) {
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		t.mu.Lock()
		t.end = append(t.end, buf[:n]...)
		if over := len(t.end) - lastWords; over > 0 {
			t.end = t.end[over:]
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (t *tail) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}
