package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/shell/spawn"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func (s *Shell) runCommand(ctx context.Context, c capabilities.Call, g consent.Grant, out capabilities.Output) (capabilities.Result, error) {
	sess, p := c.Session, c.Payload.(*wire.ProcessStart)
	pl, err := s.plan(ctx, sess, p)
	if err != nil {
		return capabilities.Result{}, err
	}
	if err := pl.check(g, consent.DigestOf(pl.payload(p))); err != nil {
		return capabilities.Result{}, err
	}
	contained := g.Choice().Contain != consent.FullAccess
	if contained && pl.noContain != "" {
		return capabilities.Result{}, wire.Errorf(wire.CodeUnconfined, "The command was to run contained, and that is not possible here. %s", pl.noContain)
	}
	if !contained && sess.Mode == consent.ModeLook {
		return capabilities.Result{}, wire.Errorf(wire.CodeDenied, "This session may only look, so its commands do not run with full access.")
	}

	held, err := s.hold(ctx, pl, g.Request())
	if err != nil {
		return capabilities.Result{}, ended(ctx, err)
	}
	var notes []string
	letGo := func() {
		if held != nil {
			notes, held = held.End(context.WithoutCancel(ctx)), nil
		}
	}
	defer letGo()
	var before *listing
	if contained && sess.Mode != consent.ModeLook {
		before = s.list(ctx, sess)
	}
	proc, err := s.launch(ctx, pl, contained, g.Request())
	if err != nil {
		if e := new(wire.Error); errors.As(err, &e) {
			if cause := errors.Unwrap(e); cause != nil && (e.Code == wire.CodeUnconfined || e.Code == wire.CodeInternal) {
				s.o.Log.Warn("A command was not started", "err", cause)
			}
			return capabilities.Result{}, err
		}
		return capabilities.Result{}, ended(ctx, err)
	}
	if err := s.add(proc); err != nil {
		_ = proc.end(context.WithoutCancel(ctx))
		s.leaveBox(proc)
		proc.closeProxy()
		proc.closeFiles()
		return capabilities.Result{}, err
	}
	res, err := s.follow(ctx, proc, c.Input, out)
	if err == nil && proc.proxy != nil {
		res.Notes = append(res.Notes, proc.proxy.notes()...)
	}
	if before != nil {
		res.Notes = append(res.Notes, s.learn(context.WithoutCancel(ctx), sess, before)...)
	}
	letGo()
	res.Notes = append(res.Notes, notes...)
	return res, err
}

// launch starts the command where the person chose; request is its id.
func (s *Shell) launch(ctx context.Context, pl *plan, contained bool, request string) (*process, error) {
	l := launch{spec: spawn.Spec{LimitMS: pl.limit.Milliseconds(), GraceMS: pl.grace.Milliseconds()}}
	for _, a := range pl.argv {
		l.spec.Argv = append(l.spec.Argv, []byte(a))
	}
	terminal := map[string]string{}
	if t := pl.terminal; t != nil {
		l.spec.Terminal = &spawn.Size{Cols: uint16(t.Cols), Rows: uint16(t.Rows)}
		terminal["TERM"] = "xterm-256color" // as the request's environment has it, else this
	}
	l.stdin = pl.stdin && pl.terminal == nil
	loginPath := s.login.get(ctx)
	if !contained {
		l.args, l.full = []string{s.o.Spawn, spawn.RoleGuard}, true
		l.spec.Dir = []byte(pl.real)
		l.spec.Env = envBytes(terminal, personEnv(s.o.Home, loginPath), pl.env)
		return startProcess(ctx, pl.session.ID, l)
	}
	c, err := s.newContainer(pl, loginPath)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if s.keeps {
		if l.box, err = s.enter(pl.session.ID, c); err != nil {
			return nil, err
		}
	} else {
		var args []string
		args, l.files, err = c.start(firstFile)
		defer func() {
			for _, f := range l.files {
				f.Close()
			}
		}()
		if err != nil {
			return nil, err
		}
		l.args = append(append([]string{s.o.Bwrap}, args...), "--", spawnInside, spawn.RoleInit)
		l.spec.Proxy = s.o.Connect != nil
	}
	if s.o.Connect != nil {
		l.proxy = s.newProxy(capabilities.Connect{SessionID: pl.session.ID, Command: request, Program: programOf(pl), Line: clip(pl.exact, 300)})
	}
	l.spec.Dir = []byte(pl.within)
	l.spec.Env = envBytes(terminal, c.env, pl.env)
	l.spec.Checks, l.spec.Hold = c.checks, c.hold
	p, err := startProcess(ctx, pl.session.ID, l)
	if err != nil && l.box != nil {
		s.leave(pl.session.ID, l.box)
	}
	return p, err
}

// follow streams a command's output until it has ended, and feeds it. When ctx
// ends first, or the reply has gone, it ends the command with all its children.
func (s *Shell) follow(ctx context.Context, proc *process, in capabilities.Input, out capabilities.Output) (capabilities.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	proc.followedBy(stop)
	defer proc.followedBy(nil)
	sendCtx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	p := newPump(s.o.Stall)
	for _, o := range proc.outputs {
		go p.read(o)
	}
	sent := make(chan struct{})
	sendErr := out.Send(ctx, wire.TypeProcessStarted, &wire.ProcessStarted{PID: proc.pid})
	go func() {
		defer close(sent)
		if sendErr == nil {
			p.send(sendCtx, out)
		}
	}()
	fed := proc.feed(ctx, in)
	defer fed()

	var exit spawn.Event
	err := sendErr
	if err == nil {
		select {
		case exit = <-proc.exited:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-sent: // only when the reply has gone
			err = p.gone()
		}
	}
	if err != nil {
		stopErr := proc.end(context.WithoutCancel(ctx))
		p.fail(err)
		proc.drain(time.Second)
		for _, o := range proc.outputs {
			<-o.told
		}
		<-sent
		if stopErr != nil {
			s.o.Log.Error("A cancelled command could not be ended", "err", stopErr)
		}
		return capabilities.Result{}, ended(ctx, err)
	}
	fed()
	proc.drain(s.o.Drain)
	for _, o := range proc.outputs {
		select {
		case <-o.told:
		case <-ctx.Done():
			// The command has ended; only its output is still on its way.
			p.fail(context.Cause(ctx))
			<-o.told
		}
	}
	p.finish(sent, giveUp)
	if ctx.Err() != nil {
		_ = proc.end(context.WithoutCancel(ctx))
		return capabilities.Result{}, ended(ctx, context.Cause(ctx))
	}
	return p.result(exit, proc.left()), nil
}

// ended is the error of a request whose context ended.
func ended(ctx context.Context, err error) error {
	if e := new(wire.Error); errors.As(err, &e) {
		return e
	}
	if ctx.Err() != nil {
		if e := new(wire.Error); errors.As(context.Cause(ctx), &e) {
			return e
		}
		return wire.Wrap(err, wire.CodeCancelled, "The request was cancelled; the command and its children were ended.")
	}
	return err
}

func (p *pump) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
}

func (p *pump) gone() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pump) result(exit spawn.Event, running int) capabilities.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := capabilities.Result{
		Type: wire.TypeProcessExited,
		Payload: &wire.ProcessExited{ExitCode: exit.Code, Signal: exit.Signal, TimedOut: exit.TimedOut,
			Truncated: p.truncated, Running: running},
		Outcome: fmt.Sprintf("exit code %d", exit.Code),
		Failed:  exit.Code != 0,
		Sent:    p.sent,
		Output:  p.kept.Bytes(),
	}
	switch {
	case exit.TimedOut:
		r.Outcome = "ended at its time limit"
	case exit.Signal != "":
		r.Outcome = "ended by a signal (" + exit.Signal + ")"
	}
	if p.truncated {
		r.Notes = append(r.Notes, "left out output that its reader did not take")
	}
	if running == 1 {
		r.Notes = append(r.Notes, "left a process running")
	} else if running > 1 {
		r.Notes = append(r.Notes, fmt.Sprintf("left %d processes running", running))
	}
	return r
}
