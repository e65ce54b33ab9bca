package e2b

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/e2b/process"
	"localpc/tunnel/wire"
)

// processes serves process.Process.
type processes struct{ f *Face }

var _ process.ProcessHandler = processes{}

// keepalive is how often an idle stream says that it lives, unless the client
// names its own interval.
const keepalive = 90 * time.Second

func (p processes) Start(ctx context.Context, r *process.StartRequest, out *connect.ServerStream[process.StartResponse]) error {
	c := callOf(ctx)
	if err := rpcUser(ctx); err != nil {
		return err
	}
	if r.GetPty() != nil {
		return connect.NewError(connect.CodeUnimplemented, sentence("Terminals are not offered by this hub yet."))
	}
	if r.GetStdin() {
		return connect.NewError(connect.CodeUnimplemented, sentence("Commands that read input are not offered by this hub yet; leave stdin out."))
	}
	// The client learns at once that the call has arrived. It takes any event
	// before the start for a fault, so it hears nothing else while the person
	// is asked.
	if err := out.Send(nil); err != nil {
		return err
	}
	config := r.GetProcess()
	proc, sub, err := p.f.start(ctx, c, &wire.ProcessStart{
		SessionID: c.sandbox.ID, Cmd: config.GetCmd(), Args: config.GetArgs(), Env: config.GetEnvs(), Cwd: config.GetCwd(),
		TimeoutMS: int(c.timeout.Milliseconds()), WaitMS: p.f.wait(c),
	}, &process.ProcessInfo{Config: config, Tag: r.Tag})
	if err != nil {
		return rpcError(err)
	}
	return proc.follow(ctx, sub, func(e *process.ProcessEvent) error { return out.Send(&process.StartResponse{Event: e}) })
}

func (p processes) Connect(ctx context.Context, r *process.ConnectRequest, out *connect.ServerStream[process.ConnectResponse]) error {
	proc := p.f.find(callOf(ctx).sandbox.ID, r.GetProcess())
	if proc == nil {
		return noProcess(r.GetProcess())
	}
	return proc.follow(ctx, proc.subscribe(), func(e *process.ProcessEvent) error { return out.Send(&process.ConnectResponse{Event: e}) })
}

func (p processes) List(ctx context.Context, _ *process.ListRequest) (*process.ListResponse, error) {
	out := &process.ListResponse{}
	for _, proc := range p.f.processesOf(callOf(ctx).sandbox.ID) {
		if !proc.hasEnded() {
			out.Processes = append(out.Processes, proc.info)
		}
	}
	return out, nil
}

func (p processes) SendSignal(ctx context.Context, r *process.SendSignalRequest) (*process.SendSignalResponse, error) {
	c := callOf(ctx)
	signal := map[process.Signal]string{process.Signal_SIGNAL_SIGKILL: "SIGKILL", process.Signal_SIGNAL_SIGTERM: "SIGTERM"}[r.GetSignal()]
	if signal == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, sentence("The signal must be SIGKILL or SIGTERM."))
	}
	proc := p.f.find(c.sandbox.ID, r.GetProcess())
	if proc == nil || proc.hasEnded() {
		return nil, noProcess(r.GetProcess())
	}
	s, err := p.f.o.Backend.Do(ctx, c.sandbox, wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: c.sandbox.ID, PID: int(proc.info.Pid), Signal: signal})
	if err != nil {
		return nil, rpcError(err)
	}
	defer s.Close()
	if _, err := s.Recv(); err != nil {
		return nil, rpcError(err)
	}
	return &process.SendSignalResponse{}, nil
}

func noProcess(s *process.ProcessSelector) error {
	if tag := s.GetTag(); tag != "" {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("no process with the tag %q runs in this sandbox", tag))
	}
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("no process %d runs in this sandbox", s.GetPid()))
}

// follow tells a client of the start and then of everything until the end. A
// client that leaves does not end the process.
func (p *proc) follow(ctx context.Context, s *subscriber, send func(*process.ProcessEvent) error) error {
	defer p.unsubscribe(s)
	start := &process.ProcessEvent{Event: &process.ProcessEvent_Start{Start: &process.ProcessEvent_StartEvent{Pid: p.info.Pid}}}
	if err := send(start); err != nil {
		return err
	}
	idle := time.NewTicker(interval(ctx))
	defer idle.Stop()
	for {
		select {
		case e := <-s.events:
			if err := send(e); err != nil {
				return err
			}
		case <-p.ended:
			// What was sent before the end was taken: the pump waits for that.
			if p.err != nil {
				return p.err
			}
			return send(p.end)
		case <-idle.C:
			if err := send(&process.ProcessEvent{Event: &process.ProcessEvent_Keepalive{Keepalive: &process.ProcessEvent_KeepAlive{}}}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func interval(ctx context.Context) time.Duration {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		if n, err := strconv.Atoi(info.RequestHeader().Get("Keepalive-Ping-Interval")); err == nil && n > 0 && n <= 3600 {
			return time.Duration(n) * time.Second
		}
	}
	return keepalive
}
