package e2b

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/e2b/process"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// retained is how long the end of a process can still be asked for.
const retained = 30 * time.Second

// proc is one process that this face started. Its pump, one goroutine, takes
// what the machine sends and hands it to each client that follows; with none,
// output is dropped. Where it reads, a second one brings it its input. It
// lives until retained after the end.
type proc struct {
	f       *Face
	sandbox string
	info    *process.ProcessInfo

	terminal bool        // what it reads is a terminal's
	input    chan input  // nil when it reads nothing
	closed   atomic.Bool // its standard input was

	mu     sync.Mutex
	subs   map[*subscriber]struct{} // guarded by mu
	killed bool                     // guarded by mu
	// room has a value after something changed that tell may wait for.
	room chan struct{}

	// Set before ended is closed: how it ended.
	end   *process.ProcessEvent
	err   *connect.Error
	ended chan struct{}
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
	p := &proc{f: f, sandbox: c.sandbox.ID, info: info, terminal: req.PTY != nil,
		subs: map[*subscriber]struct{}{}, room: make(chan struct{}, 1), ended: make(chan struct{})}
	if req.PTY != nil || req.Stdin {
		p.input = make(chan input)
		f.wg.Go(func() { p.feed(s) })
	}
	sub := p.subscribe()
	f.add(p)
	f.wg.Go(func() {
		defer cancel(nil)
		p.pump(s, c.timeout)
		f.retain(p)
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
			p.err = p.lost(err)
			return
		}
		switch m := msg.Payload.(type) {
		case *wire.ProcessOutput:
			p.tell(dataEvent(m), len(m.Data)+perEvent)
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

// lost says why nothing more is known of a process that had started.
func (p *proc) lost(err error) *connect.Error {
	if p.f.ctx.Err() != nil {
		return stopped()
	}
	if wire.CodeOf(err) == wire.CodeLost {
		return connect.NewError(connect.CodeAborted, sentence(err.Error()+" The command was ended with it."))
	}
	// The SDKs know the end of a sandbox by its code.
	b, e := p.f.o.Store.Sandbox(p.f.ctx, p.sandbox)
	if e == nil && b.Ended || errors.Is(e, store.ErrNotFound) {
		return connect.NewError(connect.CodeUnavailable, sentence("The sandbox was ended, and the command with it."))
	}
	return rpcError(err)
}

// stopped is what clients hear when the hub is being stopped.
func stopped() *connect.Error {
	return connect.NewError(connect.CodeAborted, sentence("The hub was stopped, and the command was ended with it."))
}

func dataEvent(m *wire.ProcessOutput) *process.ProcessEvent {
	d := &process.ProcessEvent_DataEvent{}
	switch m.Stream {
	case "stderr":
		d.Output = &process.ProcessEvent_DataEvent_Stderr{Stderr: m.Data}
	case "pty":
		d.Output = &process.ProcessEvent_DataEvent_Pty{Pty: m.Data}
	default:
		d.Output = &process.ProcessEvent_DataEvent_Stdout{Stdout: m.Data}
	}
	return &process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: d}}
}

func endEvent(m *wire.ProcessExited) *process.ProcessEvent_EndEvent {
	end := &process.ProcessEvent_EndEvent{ExitCode: int32(m.ExitCode), Exited: m.Signal == "", Status: fmt.Sprintf("exit status %d", m.ExitCode)}
	if m.Signal != "" {
		end.Status = "signal: " + m.Signal
	}
	if m.ExitCode != 0 {
		end.Error = &end.Status
	}
	if m.Truncated {
		leftOut(end)
	}
	return end
}

// leftOut adds to an end that not all output came.
func leftOut(end *process.ProcessEvent_EndEvent) {
	note := "a part of the output was left out because it was not read in time"
	if end.Error != nil {
		note = *end.Error + "; " + note
	}
	end.Error = &note
}

func (p *proc) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (f *Face) add(p *proc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.procs[p.sandbox] == nil {
		f.procs[p.sandbox] = map[*proc]struct{}{}
	}
	f.procs[p.sandbox][p] = struct{}{}
}

// retain keeps an ended process for a while, then forgets it.
func (f *Face) retain(p *proc) {
	t := time.NewTimer(retained)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.procs[p.sandbox], p)
	if len(f.procs[p.sandbox]) == 0 {
		delete(f.procs, p.sandbox)
	}
}

// processesOf gives the processes of a sandbox, in order of their numbers.
func (f *Face) processesOf(sandbox string) []*proc {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*proc, 0, len(f.procs[sandbox]))
	for p := range f.procs[sandbox] {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *proc) int { return cmp.Compare(a.info.Pid, b.info.Pid) })
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
