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

// Start runs a program. Where the client does not say whether it is to read,
// it does not: what is typed to a program on a person's computer is not judged,
// so it is only offered where it was asked for.
func (p processes) Start(ctx context.Context, r *process.StartRequest, out *connect.ServerStream[process.StartResponse]) error {
	c := callOf(ctx)
	if err := rpcUser(ctx); err != nil {
		return err
	}
	config := r.GetProcess()
	if err := noScreen(config); err != nil {
		return err
	}
	req := &wire.ProcessStart{
		SessionID: c.sandbox.ID, Cmd: config.GetCmd(), Args: config.GetArgs(), Env: config.GetEnvs(), Cwd: config.GetCwd(),
		TimeoutMS: int(c.timeout.Milliseconds()),
	}
	if r.GetPty() != nil {
		size, err := sizeOf(r.GetPty())
		if err != nil {
			return err
		}
		req.PTY = size
	} else {
		req.Stdin = r.GetStdin()
	}
	// The client learns at once that the call has arrived. It takes any event
	// before the start for a fault, so it hears nothing else while the person
	// is asked.
	if err := out.Send(nil); err != nil {
		return err
	}
	var proc *proc
	var sub *subscriber
	err := p.f.inLine(ctx, c, forCommands, func() (err error) {
		req.WaitMS = p.f.wait(c)
		proc, sub, err = p.f.start(ctx, c, req, &process.ProcessInfo{Config: config, Tag: r.Tag})
		return err
	})
	if err != nil {
		return rpcError(err)
	}
	return proc.follow(ctx, sub, func(e *process.ProcessEvent) error { return out.Send(&process.StartResponse{Event: e}) })
}

// Connect follows a process that another call started. The time that its
// client names is how long it wants to, and nothing of the process's.
func (p processes) Connect(ctx context.Context, r *process.ConnectRequest, out *connect.ServerStream[process.ConnectResponse]) error {
	c := callOf(ctx)
	proc, err := p.f.named(c, r.GetProcess())
	if err != nil {
		return err
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout,
			connect.NewError(connect.CodeDeadlineExceeded, sentence("The time for following the command is over; it runs on.")))
		defer cancel()
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

func (p processes) SendInput(ctx context.Context, r *process.SendInputRequest) (*process.SendInputResponse, error) {
	proc, err := p.f.running(callOf(ctx), r.GetProcess())
	if err == nil {
		err = proc.write(ctx, r.GetInput())
	}
	if err != nil {
		return nil, err
	}
	return &process.SendInputResponse{}, nil
}

func (p processes) StreamInput(ctx context.Context, in *connect.ClientStream[process.StreamInputRequest]) (*process.StreamInputResponse, error) {
	var proc *proc
	for in.Receive() {
		var err error
		switch e := in.Msg().GetEvent().(type) {
		case *process.StreamInputRequest_Start:
			proc, err = p.f.running(callOf(ctx), e.Start.GetProcess())
		case *process.StreamInputRequest_Data:
			if proc == nil {
				err = connect.NewError(connect.CodeInvalidArgument, sentence("The first message has to name the process."))
				break
			}
			err = proc.write(ctx, e.Data.GetInput())
		}
		if err != nil {
			return nil, err
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return &process.StreamInputResponse{}, nil
}

func (p processes) CloseStdin(ctx context.Context, r *process.CloseStdinRequest) (*process.CloseStdinResponse, error) {
	proc, err := p.f.running(callOf(ctx), r.GetProcess())
	if err == nil {
		err = proc.closeStdin(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &process.CloseStdinResponse{}, nil
}

func (p processes) Update(ctx context.Context, r *process.UpdateRequest) (*process.UpdateResponse, error) {
	proc, err := p.f.running(callOf(ctx), r.GetProcess())
	if err == nil && r.GetPty() != nil {
		err = proc.resize(ctx, r.GetPty())
	}
	if err != nil {
		return nil, err
	}
	return &process.UpdateResponse{}, nil
}

func (p processes) SendSignal(ctx context.Context, r *process.SendSignalRequest) (*process.SendSignalResponse, error) {
	c := callOf(ctx)
	signal := map[process.Signal]string{process.Signal_SIGNAL_SIGKILL: "SIGKILL", process.Signal_SIGNAL_SIGTERM: "SIGTERM"}[r.GetSignal()]
	if signal == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, sentence("The signal must be SIGKILL or SIGTERM."))
	}
	proc, err := p.f.running(c, r.GetProcess())
	if err != nil {
		return nil, err
	}
	s, err := p.f.o.Backend.Do(ctx, c.sandbox, wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: c.sandbox.ID, PID: int(proc.info.Pid), Signal: signal})
	if err != nil {
		return nil, rpcError(err)
	}
	defer s.Close()
	if _, err := s.Recv(); err != nil {
		return nil, rpcError(err)
	}
	if signal == "SIGKILL" {
		proc.hasten()
	}
	return &process.SendSignalResponse{}, nil
}

// named is the process that a call names, one that ended a moment ago as well.
func (f *Face) named(c *call, s *process.ProcessSelector) (*proc, error) {
	if p := f.find(c.sandbox.ID, s); p != nil {
		return p, nil
	}
	return nil, noProcess(s)
}

// running is the process that a call names, if it has not ended.
func (f *Face) running(c *call, s *process.ProcessSelector) (*proc, error) {
	p, err := f.named(c, s)
	if err == nil && p.hasEnded() {
		return nil, noProcess(s)
	}
	return p, err
}

func noProcess(s *process.ProcessSelector) error {
	if tag := s.GetTag(); tag != "" {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("no process with the tag %q runs in this sandbox", tag))
	}
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("no process %d runs in this sandbox", s.GetPid()))
}

// interval is how often an idle stream says that it lives.
func interval(ctx context.Context) time.Duration {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		if n, err := strconv.Atoi(info.RequestHeader().Get("Keepalive-Ping-Interval")); err == nil && n > 0 && n <= 3600 {
			return time.Duration(n) * time.Second
		}
	}
	return keepalive
}
