//go:build unix

package tunneltest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// child is a process that a Folder runs.
type child struct {
	session string
	cmd     *exec.Cmd
	stopped func() // why it is killed is that its session was closed
}

// signal ends the process with its group, which is the whole tree of what a
// test runs.
func (f *Folder) signal(p *wire.ProcessSignal) (wire.Type, wire.Payload, error) {
	f.mu.Lock()
	c := f.procs[p.PID]
	f.mu.Unlock()
	if c == nil || c.session != p.SessionID {
		return "", nil, wire.Errorf(wire.CodePathNotFound, "There is no such process.")
	}
	signal := syscall.SIGKILL
	if p.Signal == "SIGTERM" {
		signal = syscall.SIGTERM
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, signal)
	return wire.TypeAck, &wire.Empty{}, nil
}

// close ends a session and everything that it runs.
func (f *Folder) close(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, id)
	for _, c := range f.procs {
		if c.session == id {
			c.stopped()
		}
	}
}

// Processes is how many processes run.
func (f *Folder) Processes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.procs)
}

func (f *Folder) run(ctx context.Context, p *wire.ProcessStart, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.Command(p.Cmd, p.Args...)
	cmd.Dir = f.path(p.Cwd)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + f.Dir}
	session, _ := f.Session(p.SessionID)
	for _, env := range []map[string]string{session.Env, p.Env} {
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	s, err := start(cmd, p)
	if err != nil {
		return "", nil, wire.Wrap(err, wire.CodeInvalid, "The command cannot be started.")
	}
	defer s.close()
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	pid := cmd.Process.Pid
	f.mu.Lock()
	f.procs[pid] = &child{p.SessionID, cmd, cancel}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.procs, pid)
		f.mu.Unlock()
	}()
	stop := context.AfterFunc(ctx, kill)
	defer stop()
	sendErr := x.Send(ctx, wire.TypeProcessStarted, &wire.ProcessStarted{PID: pid})
	timedOut := make(chan struct{})
	if p.TimeoutMS > 0 {
		limit := time.AfterFunc(time.Duration(p.TimeoutMS)*time.Millisecond, func() { close(timedOut); kill() })
		defer limit.Stop()
	}
	ended, over := context.WithCancel(ctx)
	var input, output sync.WaitGroup
	if s.in != nil {
		input.Go(func() { s.feed(ended, x) })
	}
	var sending sync.Mutex // one at a time may send
	for name, r := range s.out {
		output.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := r.Read(buf)
				if n > 0 {
					sending.Lock()
					failed := x.Send(ctx, wire.TypeProcessOutput, &wire.ProcessOutput{Stream: name, Data: buf[:n]})
					sending.Unlock()
					if failed != nil {
						kill()
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	output.Wait()
	_ = cmd.Wait()
	over()
	s.close()
	input.Wait()
	if sendErr != nil || ctx.Err() != nil {
		return "", nil, wire.Errorf(wire.CodeStopped, "The command was stopped.")
	}
	exited := &wire.ProcessExited{ExitCode: cmd.ProcessState.ExitCode()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exited.Signal = ws.Signal().String()
	}
	select {
	case <-timedOut:
		exited.TimedOut = true
	default:
	}
	return wire.TypeProcessExited, exited, nil
}

// streams are what a process reads and writes.
type streams struct {
	in       io.WriteCloser // nil: nothing
	out      map[string]io.Reader
	terminal *os.File
}

func start(cmd *exec.Cmd, p *wire.ProcessStart) (*streams, error) {
	if p.PTY != nil {
		t, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(p.PTY.Cols), Rows: uint16(p.PTY.Rows)})
		if err != nil {
			return nil, err
		}
		return &streams{in: t, out: map[string]io.Reader{"pty": t}, terminal: t}, nil
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s := &streams{}
	if p.Stdin {
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		s.in = in
	}
	stdout, err1 := cmd.StdoutPipe()
	stderr, err2 := cmd.StderrPipe()
	s.out = map[string]io.Reader{"stdout": stdout, "stderr": stderr}
	return s, errors.Join(err1, err2, cmd.Start())
}

// feed writes what the hub sends until the end of it, or of ctx.
func (s *streams) feed(ctx context.Context, x tunnel.Exchange) {
	for {
		f, err := x.Next(ctx)
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *wire.ProcessInput:
			_, _ = s.in.Write(f.Data)
			if f.End {
				_ = s.in.Close()
			}
		case *wire.TerminalSize:
			_ = pty.Setsize(s.terminal, &pty.Winsize{Cols: uint16(f.Cols), Rows: uint16(f.Rows)})
		}
	}
}

func (s *streams) close() {
	if s.in != nil {
		_ = s.in.Close()
	}
}
