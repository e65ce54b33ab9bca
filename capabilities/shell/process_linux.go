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

// ends are a command's pipes and its control socket, at both ends.
type ends struct {
	outputs []output
	stdin   *os.File // nil where it takes none
	control *net.UnixConn
	theirs  []*os.File // the control socket, standard output, error and input
}

// newEnds makes those that l needs. On an error nothing stays open.
func newEnds(l launch) (e *ends, err error) {
	e = &ends{}
	defer func() {
		if err != nil {
			e.close()
			e.handedOver()
		}
	}()
	var control *os.File
	if e.control, control, err = socketPair(); err != nil {
		return nil, err
	}
	e.theirs = append(e.theirs, control)
	for _, name := range []string{"stdout", "stderr"} {
		if l.spec.Terminal != nil {
			break
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		e.outputs, e.theirs = append(e.outputs, newOutput(name, r)), append(e.theirs, w)
	}
	if l.stdin {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		e.theirs, e.stdin = append(e.theirs, r), w
	}
	for len(e.theirs) < 4 {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		e.theirs = append(e.theirs, null)
	}
	return e, nil
}

// handedOver closes what the command holds: its end is an end of file.
func (e *ends) handedOver() {
	for _, f := range e.theirs {
		f.Close()
	}
	e.theirs = nil
}

// close closes what is ours.
func (e *ends) close() {
	if e.control != nil {
		e.control.Close()
	}
	for _, o := range e.outputs {
		o.r.Close()
	}
	if e.stdin != nil {
		e.stdin.Close()
	}
}

// waiting is how much a socket surely takes that nobody reads yet.
const waiting = 16 << 10

// startProcess returns when the command has been started, or could not be:
// then the error is for the client.
func startProcess(ctx context.Context, session string, l launch) (_ *process, err error) {
	e, err := newEnds(l)
	if err != nil {
		return nil, err
	}
	defer e.handedOver()
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	p := &process{session: session, full: l.full, box: l.box, tree: tree{control: e.control, proxied: l.spec.Proxy}, outputs: e.outputs, stdin: e.stdin,
		proxy: l.proxy, name: string(l.spec.Argv[0]), terminal: l.spec.Terminal != nil, exited: make(chan spawn.Event, 1), gone: make(chan struct{})}
	if p.proxy != nil {
		p.proxy.ask.Ended = p.gone
		if p.box != nil {
			p.number = p.box.expect(p.proxy)
			l.spec.Number = p.number
		}
		defer func() {
			if err != nil {
				p.closeProxy()
			}
		}()
	}
	spec, err := json.Marshal(l.spec)
	if err != nil {
		return nil, err
	}
	// Whoever gets the other end reads this at once; when it has gone instead,
	// writing fails and watch knows.
	tell := func() {
		_ = e.control.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, _ = e.control.Write(spec)
		_ = e.control.SetWriteDeadline(time.Time{})
	}
	early := len(spec) <= waiting
	switch {
	case l.box == nil:
		err, early = p.exec(l, e), false
	case early:
		tell()
		fallthrough
	default:
		err = p.giveTo(l.box, e)
	}
	e.handedOver()
	if err != nil {
		return nil, err
	}
	started := make(chan spawn.Event, 1)
	go p.watch(started)
	if !early {
		tell()
	}
	var first spawn.Event
	select {
	case first = <-started:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(20 * time.Second):
		err = errors.New("no answer from localpc-spawn")
	}
	if p.box != nil && first.Kind == spawn.Started && p.pid == 0 {
		first = spawn.Event{Kind: spawn.Failed}
	}
	if err == nil && first.Kind == spawn.Started {
		switch {
		case p.terminal && p.tty == nil:
			first = spawn.Event{Kind: spawn.Failed, What: spawn.FailedTTY}
		case p.proxied && p.listener == nil:
			first = spawn.Event{Kind: spawn.Failed, What: spawn.FailedProxy}
		default:
			if p.terminal {
				p.outputs, p.stdin = []output{newOutput("pty", p.tty)}, p.tty
			}
			if p.listener != nil {
				p.proxy.listenTo(p.listener)
			}
			return p, nil
		}
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

// exec starts a localpc-spawn of the command's own, in a container or not.
func (p *process) exec(l launch, e *ends) error {
	saidR, saidW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer saidW.Close()
	p.cmd, p.said = exec.Command(l.args[0], l.args[1:]...), saidR
	p.cmd.Env = []string{} // nothing of this program's own
	p.cmd.Dir = "/"
	p.cmd.Stderr = saidW
	p.cmd.ExtraFiles = slices.Concat(e.theirs, l.files)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.cmd.Start(); err != nil {
		saidR.Close()
		return wire.Wrap(err, wire.CodeInternal, "This computer could not start its process starter, so nothing was run.")
	}
	p.pid = p.cmd.Process.Pid
	return nil
}

// giveTo has the command start in b.
func (p *process) giveTo(b *box, e *ends) error {
	// Who writes to the control socket is told then: see withFiles.
	raw, err := e.control.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	if err = errors.Join(cerr, err); err != nil {
		return err
	}
	if err := b.give(e.theirs...); err != nil {
		return wire.Wrap(errors.New("container: "+b.why()), wire.CodeUnconfined, "The container could not be set up, so nothing was run; this computer's log says why.")
	}
	return nil
}

// watch reads what is reported until everything has gone. It owns control.
func (p *process) watch(started chan<- spawn.Event) {
	var wg sync.WaitGroup
	wg.Add(1)
	if p.said != nil {
		wg.Add(1)
	}
	go func() {
		if p.said == nil {
			return
		}
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
				if p.box != nil && e.Kind == spawn.Started {
					p.pid = from.pid
				}
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
	if p.box != nil {
		wg.Wait()
		p.control.Close()
		close(p.gone)
		return
	}
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
	// pid is who wrote first, where the socket tells: process 1 of the command's
	// namespace. Inside, that has other numbers.
	pid int
}

func (w *withFiles) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(2*4)+unix.CmsgSpace(unix.SizeofUcred))
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
		if cred, err := unix.ParseUnixCredentials(&m); err == nil {
			if w.pid == 0 {
				w.pid = int(cred.Pid)
			}
			continue
		}
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
	if p.box != nil {
		if p.pid > 1 {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // the kernel ends the rest
		}
		return
	}
	p.mu.Lock()
	worker := p.worker
	p.mu.Unlock()
	if worker > 1 { // 1 is how it knows itself in a container
		spawn.KillTree(worker, 2*time.Second)
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
	if p.box != nil {
		why := e.What
		if why == "" {
			why = p.box.why()
		}
		return wire.Wrap(errors.Join(errors.New("container: "+why), errno), wire.CodeUnconfined, "The container could not be set up, so nothing was run; this computer's log says why.")
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
	if p.pid > 1 {
		spawn.KillTree(p.pid, 2*time.Second)
	}
	p.killWorker()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
	} else {
		select {
		case <-p.gone:
			return nil
		case <-time.After(time.Second):
			// Its keeper does not obey either: nothing in there could be ended.
			_ = p.box.cmd.Process.Kill()
		}
	}
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return wire.Wrap(ctx.Err(), wire.CodeInternal, "A process could not be ended in time.")
	}
}
