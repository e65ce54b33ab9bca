//go:build !linux

package shell

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"localpc/capabilities/shell/spawn"
	"localpc/tunnel/wire"
)

// tree is how a command with all its children is reached here: see
// tree_unix.go and tree_windows.go.
type tree struct {
	group group
	ended chan struct{} // closed when the command itself has
}

// firstFile is the descriptor of launch.files[0] in the program; none is handed
// over here.
const firstFile = 3

// startProcess starts the command of l itself: with full access, and in a
// group that ends as a whole. The error is for the client.
func startProcess(ctx context.Context, session string, l launch) (_ *process, err error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if l.spec.Terminal != nil {
		return nil, wire.Errorf(wire.CodeNotSupported, "Terminals can't be opened on this kind of computer yet. Run the command without one.")
	}
	argv := make([]string, len(l.spec.Argv))
	for i, a := range l.spec.Argv {
		argv[i] = string(a)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		outW.Close()
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = string(l.spec.Dir)
	for _, e := range l.spec.Env {
		cmd.Env = append(cmd.Env, string(e))
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	var inR, inW *os.File // nil: it reads nothing
	if l.stdin {
		if inR, inW, err = os.Pipe(); err != nil {
			for _, f := range []*os.File{outR, outW, errR, errW} {
				f.Close()
			}
			return nil, err
		}
		cmd.Stdin = inR
	}
	p := &process{session: session, full: l.full, name: argv[0], outputs: []output{newOutput("stdout", outR), newOutput("stderr", errR)}, stdin: inW,
		exited: make(chan spawn.Event, 1), gone: make(chan struct{}), tree: tree{ended: make(chan struct{})}}
	p.group, err = startGroup(cmd)
	outW.Close()
	errW.Close()
	if inR != nil {
		inR.Close()
	}
	if err != nil {
		p.closeFiles()
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
			return nil, wire.Wrap(err, wire.CodePathNotFound, "There is no program %s where the command runs.", p.name)
		case errors.Is(err, fs.ErrPermission):
			return nil, wire.Wrap(err, wire.CodeForbidden, "%s is there, but it is not executable.", p.name)
		}
		return nil, wire.Wrap(err, wire.CodeInvalid, "%s could not be started.", p.name)
	}
	p.pid = cmd.Process.Pid
	go p.watch(cmd, l.spec)
	return p, nil
}

// watch waits for the command, and then for what it left behind.
func (p *process) watch(cmd *exec.Cmd, spec spawn.Spec) {
	var mu sync.Mutex
	timedOut := false
	if spec.LimitMS > 0 {
		grace := time.Duration(spec.GraceMS) * time.Millisecond
		limit := time.AfterFunc(time.Duration(spec.LimitMS)*time.Millisecond, func() {
			mu.Lock()
			timedOut = true
			mu.Unlock()
			if grace > 0 {
				p.group.signal(syscall.SIGTERM)
				select {
				case <-p.ended:
				case <-time.After(grace):
				}
			}
			p.group.signal(syscall.SIGKILL)
		})
		defer limit.Stop()
	}
	_ = cmd.Wait()
	close(p.ended)
	mu.Lock()
	e := spawn.Event{Kind: spawn.Exited, Code: cmd.ProcessState.ExitCode(), TimedOut: timedOut, Running: p.group.left()}
	mu.Unlock()
	if e.Code < 0 {
		e.Signal = syscall.SIGKILL.String()
	}
	p.mu.Lock()
	p.children = e.Running
	p.mu.Unlock()
	p.exited <- e
	for wait := 50 * time.Millisecond; p.group.left() > 0; wait = min(2*wait, time.Second) {
		time.Sleep(wait)
		p.mu.Lock()
		p.children = p.group.left()
		p.mu.Unlock()
	}
	p.group.close()
	close(p.gone)
}

func (p *process) signal(sig syscall.Signal) { p.group.signal(sig) }

// end kills everything and waits until it has gone, or ctx ends.
func (p *process) end(ctx context.Context) error {
	p.group.signal(syscall.SIGKILL)
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return wire.Errorf(wire.CodeInternal, "A command could not be ended in time.")
	}
}

// until bounds how long the output is waited for. A pipe without deadlines is
// closed then.
func (o output) until(deadline time.Time) {
	if err := o.r.SetReadDeadline(deadline); err != nil {
		time.AfterFunc(time.Until(deadline), func() { o.r.Close() })
	}
}

// There are no terminals here.
func (p *process) resize(wire.TerminalSize) {}
func (p *process) endOfFile(bool)           {}
