package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"localpc/capabilities/shell/spawn"
	"localpc/tunnel/wire"
)

// tree is how a command with all its children is reached here: through the
// localpc-spawn above it.
type tree struct {
	cmd     *exec.Cmd
	control *net.UnixConn
	said    *os.File // what bubblewrap or localpc-spawn has to say
	proxied bool     // a listening socket was asked for
	tty     *os.File // its terminal, from when it has started

	writing sync.Mutex // orders to the control socket
	worker  int        // guarded by process.mu; the localpc-spawn above a command with full access
	message string     // guarded by process.mu; the first line of said
}

// until bounds how long the output is waited for.
func (o output) until(deadline time.Time) { _ = o.r.SetReadDeadline(deadline) }

// firstFile is the descriptor of launch.files[0] in the program.
const firstFile = 7

// startProcess returns when the command has been started, or could not be:
// then the error is for the client.
func startProcess(ctx context.Context, session string, l launch) (_ *process, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			for _, f := range opened {
				f.Close()
			}
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				opened = append(opened, r)
			}
		}
		return r, w
	}
	null := func() (f *os.File) {
		if err == nil {
			f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
		}
		return f
	}
	saidR, saidW := pipe()
	var outputs []output
	var stdin *os.File
	its := make([]*os.File, 3) // standard output, error and input
	if l.spec.Terminal != nil {
		its[0], its[1], its[2] = null(), null(), null()
	} else {
		for i, name := range []string{"stdout", "stderr"} {
			r, w := pipe()
			outputs, its[i] = append(outputs, newOutput(name, r)), w
		}
		if l.stdin {
			its[2], stdin = pipe()
		} else {
			its[2] = null()
		}
	}
	theirs := append([]*os.File{saidW}, its...)
	defer func() {
		for _, f := range theirs {
			if f != nil {
				f.Close()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirEnd := os.NewFile(uintptr(pair[1]), "control")
	theirs = append(theirs, theirEnd)
	ourEnd := os.NewFile(uintptr(pair[0]), "control")
	conn, err := net.FileConn(ourEnd)
	ourEnd.Close()
	if err != nil {
		return nil, err
	}
	control := conn.(*net.UnixConn)
	defer func() {
		if err != nil {
			control.Close()
		}
	}()

	cmd := exec.Command(l.args[0], l.args[1:]...)
	cmd.Env = []string{} // nothing of this program's own
	cmd.Dir = "/"
	cmd.Stderr = saidW
	cmd.ExtraFiles = slices.Concat([]*os.File{theirEnd}, its, l.files)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	// What the child holds must not be held here too: its end is an end of file.
	for i, f := range theirs {
		f.Close()
		theirs[i] = nil
	}
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeInternal, "This computer could not start its process starter, so nothing was run.")
	}
	p := &process{session: session, full: l.full, pid: cmd.Process.Pid, tree: tree{cmd: cmd, control: control, said: saidR, proxied: l.spec.Proxy}, outputs: outputs, stdin: stdin,
		name: string(l.spec.Argv[0]), terminal: l.spec.Terminal != nil,
		exited: make(chan spawn.Event, 1), gone: make(chan struct{})}
	started := make(chan spawn.Event, 1)
	go p.watch(started)
	// What is started reads this at once; when it has gone instead, writing
	// fails and watch knows.
	spec, err := json.Marshal(l.spec)
	if err == nil {
		_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, werr := control.Write(spec); werr == nil {
			_ = control.SetWriteDeadline(time.Time{})
		}
	}
	var first spawn.Event
	select {
	case first = <-started:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(20 * time.Second):
		err = errors.New("no answer from localpc-spawn")
	}
	if err == nil && first.Kind == spawn.Started {
		if !p.terminal {
			return p, nil
		}
		if p.tty != nil {
			p.outputs, p.stdin = []output{newOutput("pty", p.tty)}, p.tty
			return p, nil
		}
		first = spawn.Event{Kind: spawn.Failed, What: spawn.FailedTTY}
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if endErr := p.end(within); endErr != nil {
		return nil, endErr
	}
	if p.listener != nil {
		p.listener.Close()
	}
	if p.tty != nil {
		p.tty.Close()
	}
	if err == nil {
		err = p.failure(first)
	}
	return nil, err
}

// watch reads what is reported until everything has gone. It owns control.
func (p *process) watch(started chan<- spawn.Event) {
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		b := bufio.NewReader(io.LimitReader(p.said, 4096))
		line, _ := b.ReadString('\n')
		p.mu.Lock()
		p.message = strings.TrimSpace(line)
		p.mu.Unlock()
		_, _ = io.Copy(io.Discard, b)
		_, _ = io.Copy(io.Discard, p.said)
		p.said.Close()
	}()
	go func() {
		defer wg.Done()
		from := &withFiles{conn: p.control}
		defer from.close()
		in := json.NewDecoder(from)
		first, told := true, false
		for {
			var e spawn.Event
			if err := in.Decode(&e); err != nil {
				break
			}
			if first {
				first = false
				p.mu.Lock()
				p.worker = e.PID
				p.mu.Unlock()
				p.take(from)
				started <- e
				continue
			}
			p.mu.Lock()
			p.children = e.Running
			p.mu.Unlock()
			if e.Kind == spawn.Exited && !told {
				told = true
				p.exited <- e
			}
		}
		if first {
			started <- spawn.Event{Kind: spawn.Failed}
		}
		if !told {
			// It was killed itself, and took the command along.
			p.exited <- spawn.Event{Kind: spawn.Exited, Code: -1, Signal: syscall.SIGKILL.String()}
		}
	}()
	_ = p.cmd.Wait()
	// Should localpc-spawn live on without what was started here, this tells
	// it to end everything. Its last events can still be read.
	if raw, err := p.control.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
	stuck := time.AfterFunc(2*time.Second, p.killWorker)
	wg.Wait()
	stuck.Stop()
	p.control.Close()
	close(p.gone)
}

// withFiles reads the control socket, and keeps descriptors that come along: a
// listening socket and a terminal at most.
type withFiles struct {
	conn *net.UnixConn
	fds  []int
}

func (w *withFiles) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(2*4))
	n, oobn, _, _, err := w.conn.ReadMsgUnix(b, oob)
	n = max(n, 0) // less than none with an error
	if oobn <= 0 {
		return n, err
	}
	messages, perr := unix.ParseSocketControlMessage(oob[:oobn])
	if perr != nil {
		return n, err
	}
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m)
		w.fds = append(w.fds, fds...)
	}
	return n, err
}

// next is the next descriptor that came, nil for none.
func (w *withFiles) next(name string) *os.File {
	if len(w.fds) == 0 {
		return nil
	}
	fd := w.fds[0]
	w.fds = w.fds[1:]
	_ = unix.SetNonblock(fd, true) // so that waiting for it can be ended
	return os.NewFile(uintptr(fd), name)
}

func (w *withFiles) close() {
	for _, fd := range w.fds {
		unix.Close(fd)
	}
}

// take keeps what came with Started.
func (p *process) take(from *withFiles) {
	if p.proxied {
		if f := from.next("proxy"); f != nil {
			if l, err := net.FileListener(f); err == nil { // else nothing listens in there
				p.listener = l
			}
			f.Close()
		}
	}
	if p.terminal {
		p.tty = from.next("terminal")
	}
}

// killWorker ends a localpc-spawn that does not obey, because somebody has
// stopped it, and what is below it. Its control socket being open says that it
// is alive, so the number is still its own.
func (p *process) killWorker() {
	p.mu.Lock()
	worker := p.worker
	p.mu.Unlock()
	if worker > 1 { // 1 is how it knows itself in a container
		spawn.KillTree(worker)
		_ = syscall.Kill(worker, syscall.SIGKILL)
	}
}

// failure is the client's error for a command that was not started.
func (p *process) failure(e spawn.Event) error {
	errno := syscall.Errno(e.Errno)
	switch e.What {
	case spawn.FailedMount:
		return folderGone(errno)
	case spawn.FailedTTY:
		return wire.Wrap(errno, wire.CodeInternal, "This computer has no terminal left to give, so nothing was run.")
	case spawn.FailedDir:
		return wire.Wrap(errno, wire.CodeInvalid, "The working directory can't be entered where the command runs: %s.", errno.Error())
	case spawn.FailedProgram, spawn.FailedExec:
		switch errno {
		case syscall.ENOENT:
			return wire.Wrap(errno, wire.CodePathNotFound, "There is no program %s where the command runs.", p.name)
		case syscall.EACCES:
			return wire.Wrap(errno, wire.CodeForbidden, "%s is there, but it is not executable.", p.name)
		case syscall.E2BIG:
			return wire.Wrap(errno, wire.CodeInvalid, "The command and its environment are too long for this computer.")
		}
		return wire.Wrap(errno, wire.CodeInvalid, "%s could not be started: %s.", p.name, errno.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return wire.Wrap(errors.New("container: "+p.message), wire.CodeUnconfined, "The container could not be set up, so nothing was run; this computer's log says why.")
}

func (p *process) signal(sig syscall.Signal) {
	p.writing.Lock()
	defer p.writing.Unlock()
	b, err := json.Marshal(spawn.Order{Signal: int(sig)})
	if err != nil {
		panic(err)
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = p.control.Write(b)
}

// end kills everything and waits until it has gone, or ctx ends.
func (p *process) end(ctx context.Context) error {
	p.signal(syscall.SIGKILL)
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
	case <-patience.C:
	}
	// It does not obey: it may have been stopped by somebody.
	spawn.KillTree(p.pid)
	p.killWorker()
	_ = p.cmd.Process.Kill()
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return wire.Wrap(ctx.Err(), wire.CodeInternal, "A process could not be ended in time.")
	}
}
