package e2b

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"localpc/tunnel/hub/e2b/process"
)

// waiting is how much output waits for one client, in bytes, and perEvent what
// each piece of it takes beside its data: a program may print one character at a
// time. What is more holds the process back.
const (
	waiting  = 1 << 20
	perEvent = 256
)

// patience is how long one client may keep the others of a process waiting
// before it is let go.
const patience = 2 * time.Second

// subscriber is one client that follows a process.
type subscriber struct {
	// wake has a value after something came that the client has not been told.
	wake chan struct{}

	// All of these are guarded by the process's mu.
	queue []queued
	bytes int // of queue
	// held is how long the others had nothing to read because of this one, since
	// it last had read everything.
	held time.Duration
	cut  bool  // some output was left out
	err  error // why it is told nothing more
}

type queued struct {
	event *process.ProcessEvent
	bytes int
}

func (p *proc) subscribe() *subscriber {
	s := &subscriber{wake: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs[s] = struct{}{}
	wake(p.room)
	return s
}

func (p *proc) unsubscribe(s *subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, s)
	wake(p.room)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tell hands output to every client that follows. One that reads slowly holds
// the process back, as a pipe would; but where others wait for it, only for
// patience: then it is told no more, and they go on. What a killed process
// still had to say is left out for those that do not take it.
func (p *proc) tell(e *process.ProcessEvent, n int) {
	for {
		p.mu.Lock()
		full, hungry := p.crowded(n)
		if len(full) == 0 || p.killed {
			for s := range p.subs {
				if s.bytes > 0 && s.bytes+n > waiting {
					s.cut = true
					continue
				}
				s.queue = append(s.queue, queued{e, n})
				s.bytes += n
				wake(s.wake)
			}
			p.mu.Unlock()
			return
		}
		left := patience
		for _, s := range full {
			left = min(left, patience-s.held)
		}
		p.mu.Unlock()

		began := time.Now()
		timer := time.NewTimer(max(left, time.Millisecond))
		late := timer.C
		if !hungry {
			late = nil
		}
		select {
		case <-p.room:
		case <-late:
		case <-p.f.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
		if hungry {
			p.hold(full, time.Since(began))
		}
	}
}

// crowded gives the clients that have no room for n bytes, and tells whether
// another one has nothing to read. Called with mu.
func (p *proc) crowded(n int) (full []*subscriber, hungry bool) {
	for s := range p.subs {
		switch {
		case s.bytes > 0 && s.bytes+n > waiting:
			full = append(full, s)
		case s.bytes == 0:
			hungry = true
		}
	}
	return full, hungry
}

// hold counts for how long the others had to wait for subs, and lets go of
// those that it has been too long for.
func (p *proc) hold(subs []*subscriber, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range subs {
		if s.held += d; s.held < patience || s.bytes == 0 {
			continue
		}
		s.err = connect.NewError(connect.CodeAborted, sentence("This connection did not read the output in time while others follow the command, so it was let go. The command goes on: connect to it again."))
		s.queue, s.bytes = nil, 0
		delete(p.subs, s)
		wake(s.wake)
	}
}

// next gives what the client s is to be told now: nothing yet, an event, or
// why there is nothing more. last tells that the event is the last.
func (p *proc) next(s *subscriber) (e *process.ProcessEvent, last bool, err error) {
	ended := p.hasEnded() // before looking at the queue: nothing comes into it after that
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, false, s.err
	case len(s.queue) > 0:
		q := s.queue[0]
		s.queue[0] = queued{}
		s.queue = s.queue[1:]
		if s.bytes -= q.bytes; s.bytes == 0 {
			s.held = 0
		}
		wake(p.room)
		return q.event, false, nil
	case !ended:
		return nil, false, nil
	case p.err != nil:
		return nil, false, p.err
	case s.cut:
		end := proto.CloneOf(p.end)
		leftOut(end.GetEnd())
		return end, true, nil
	}
	return p.end, true, nil
}

// hasten lets nobody hold up the end of a process that was killed.
func (p *proc) hasten() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	wake(p.room)
}

// follow tells a client of the start and then of everything until the end. A
// client that leaves does not end the process.
func (p *proc) follow(ctx context.Context, s *subscriber, send func(*process.ProcessEvent) error) error {
	defer p.unsubscribe(s)
	start := &process.ProcessEvent{Event: &process.ProcessEvent_Start{Start: &process.ProcessEvent_StartEvent{Pid: p.info.Pid}}}
	if err := send(start); err != nil {
		return err
	}
	every := interval(ctx)
	idle := time.NewTicker(every)
	defer idle.Stop()
	var held runes
	for {
		e, last, err := p.next(s)
		var tell []*process.ProcessEvent
		switch {
		case last || err != nil:
			tell = held.rest()
		case e != nil:
			e = held.whole(e)
		}
		if e != nil {
			tell = append(tell, e)
		}
		for _, e := range tell {
			if err := send(e); err != nil {
				return err
			}
		}
		if last || err != nil {
			return err
		}
		if len(tell) > 0 {
			idle.Reset(every)
			continue
		}
		if err := p.await(ctx, s, idle.C, &held, send); err != nil {
			return err
		}
	}
}

// await waits until there may be something to tell, and meanwhile says that the
// stream lives.
func (p *proc) await(ctx context.Context, s *subscriber, idle <-chan time.Time, held *runes, send func(*process.ProcessEvent) error) error {
	var late <-chan time.Time
	if held.waits() {
		late = time.After(heldBack)
	}
	select {
	case <-s.wake:
	case <-p.ended:
	case <-late:
		for _, e := range held.rest() {
			if err := send(e); err != nil {
				return err
			}
		}
	case <-idle:
		return send(&process.ProcessEvent{Event: &process.ProcessEvent_Keepalive{Keepalive: &process.ProcessEvent_KeepAlive{}}})
	case <-ctx.Done():
		if p.f.ctx.Err() != nil {
			return stopped()
		}
		return context.Cause(ctx)
	}
	return nil
}
