package e2b

import (
	"context"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/e2b/process"
	"localpc/tunnel/wire"
)

// retained is how long the end of a process can still be asked for.
const retained = 30 * time.Second

// proc is one process that this face started. Its pump, one goroutine, takes
// what the machine sends and hands it to each client that follows; with none,
// output is dropped. It lives until retained after the end.
type proc struct {
	f    *Face
	info *process.ProcessInfo

	mu   sync.Mutex
	subs map[*subscriber]struct{} // guarded by mu

	// Set before ended is closed: how it ended.
	end   *process.ProcessEvent
	err   *connect.Error
	ended chan struct{}
}

type subscriber struct {
	events chan *process.ProcessEvent
	left   chan struct{} // closed when the client has gone
}

// start asks for a process and waits until it runs. Until then the end of ctx
// cancels it; after that it runs on without its client.
func (f *Face) start(ctx context.Context, c *call, req *wire.ProcessStart, info *process.ProcessInfo) (*proc, *subscriber, error) {
	life, cancel := context.WithCancelCause(f.ctx)
	detach := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	s, err := f.o.Backend.Do(life, c.sandbox, wire.TypeProcessStart, req)
	if err != nil {
		detach()
		cancel(nil)
		return nil, nil, err
	}
	msg, err := s.Recv()
	started, ok := msg.Payload.(*wire.ProcessStarted)
	if err == nil && !ok {
		err = wire.Errorf(wire.CodeInternal, "The computer did not say that the command has started.")
	}
	if err == nil && !detach() {
		err = wire.Errorf(wire.CodeCancelled, "The request was cancelled.")
	}
	if err != nil {
		detach()
		s.Close()
		cancel(nil)
		return nil, nil, err
	}
	info.Pid = uint32(started.PID)
	p := &proc{f: f, info: info, subs: map[*subscriber]struct{}{}, ended: make(chan struct{})}
	sub := p.subscribe()
	f.add(c.sandbox.ID, p)
	f.wg.Go(func() {
		defer cancel(nil)
		p.pump(s, c.timeout)
		f.retain(c.sandbox.ID, p)
	})
	return p, sub, nil
}

// pump runs until the machine has told of the end.
func (p *proc) pump(s Stream, limit time.Duration) {
	defer close(p.ended)
	defer s.Close()
	for {
		msg, err := s.Recv()
		if err != nil {
			p.err = rpcError(err)
			return
		}
		switch m := msg.Payload.(type) {
		case *wire.ProcessOutput:
			d := &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stdout{Stdout: m.Data}}
			if m.Stream == "stderr" {
				d.Output = &process.ProcessEvent_DataEvent_Stderr{Stderr: m.Data}
			}
			p.tell(&process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: d}})
		case *wire.ProcessExited:
			if m.TimedOut {
				p.err = connect.NewError(connect.CodeDeadlineExceeded, sentence(fmt.Sprintf("The command was stopped after its time limit of %g seconds.", limit.Seconds())))
				return
			}
			p.end = &process.ProcessEvent{Event: &process.ProcessEvent_End{End: endEvent(m)}}
			return
		default:
			p.err = connect.NewError(connect.CodeInternal, sentence("The computer told of the command in a way that is not understood."))
			return
		}
	}
}

func endEvent(m *wire.ProcessExited) *process.ProcessEvent_EndEvent {
	end := &process.ProcessEvent_EndEvent{ExitCode: int32(m.ExitCode), Exited: m.Signal == "", Status: fmt.Sprintf("exit status %d", m.ExitCode)}
	if m.Signal != "" {
		end.Status = "signal: " + m.Signal
	}
	note := ""
	if m.ExitCode != 0 {
		note = end.Status
	}
	if m.Truncated {
		if note != "" {
			note += "; "
		}
		note += "a part of the output was left out because it was not read in time"
	}
	if note != "" {
		end.Error = &note
	}
	return end
}

// tell hands an event to every client that follows, at the pace of the slowest.
func (p *proc) tell(e *process.ProcessEvent) {
	p.mu.Lock()
	subs := make([]*subscriber, 0, len(p.subs))
	for s := range p.subs {
		subs = append(subs, s)
	}
	p.mu.Unlock()
	for _, s := range subs {
		select {
		case s.events <- e:
		case <-s.left:
		case <-p.f.ctx.Done():
			return
		}
	}
}

func (p *proc) subscribe() *subscriber {
	s := &subscriber{events: make(chan *process.ProcessEvent), left: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs[s] = struct{}{}
	return s
}

func (p *proc) unsubscribe(s *subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, s)
	close(s.left)
}

func (p *proc) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (f *Face) add(sandbox string, p *proc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.procs[sandbox] == nil {
		f.procs[sandbox] = map[*proc]struct{}{}
	}
	f.procs[sandbox][p] = struct{}{}
}

// retain keeps an ended process for a while, then forgets it.
func (f *Face) retain(sandbox string, p *proc) {
	t := time.NewTimer(retained)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.procs[sandbox], p)
	if len(f.procs[sandbox]) == 0 {
		delete(f.procs, sandbox)
	}
}

func (f *Face) processesOf(sandbox string) []*proc {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*proc, 0, len(f.procs[sandbox]))
	for p := range f.procs[sandbox] {
		list = append(list, p)
	}
	return list
}

// find gives the process of a sandbox that is meant; a running one before one
// that has ended, since numbers are used again.
func (f *Face) find(sandbox string, sel *process.ProcessSelector) *proc {
	var found *proc
	for _, p := range f.processesOf(sandbox) {
		var match bool
		switch s := sel.GetSelector().(type) {
		case *process.ProcessSelector_Pid:
			match = p.info.Pid == s.Pid
		case *process.ProcessSelector_Tag:
			match = p.info.Tag != nil && *p.info.Tag == s.Tag
		}
		if match && (found == nil || found.hasEnded()) {
			found = p
		}
	}
	return found
}
