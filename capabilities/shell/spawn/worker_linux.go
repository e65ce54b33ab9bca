package spawn

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Main is localpc-spawn. It must be called on the main thread, locked to it:
// the kernel ends a process "with its parent" when the parent's thread ends.
func Main(args []string) int {
	role := ""
	if len(args) == 1 || len(args) == 3 && args[0] == RoleConnect || len(args) > 1 && args[0] == RoleKeep {
		role = args[0]
	}
	// Nobody of the same user may read this process or attach to it. What a
	// command starts for itself is not hidden from whose.
	if role != RoleConnect {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return 1
		}
	}
	if err := unix.CloseRange(fdControl, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 1
	}
	switch role {
	case RoleGuard:
		return guard()
	case RoleConnect:
		if len(args) == 3 {
			return connect(args[1], args[2])
		}
	case RoleKeep:
		if len(args) > 1 {
			return keep(args[1], args[2:])
		}
	case RoleInit, RoleWorker:
		w := &worker{contained: role == RoleInit, fd: fdControl, control: os.NewFile(fdControl, "control")}
		return w.run()
	}
	os.Stderr.WriteString("localpc-spawn is started by localpc; it does nothing on its own.\n")
	return 2
}

// maxProcesses bounds the processes and threads of a container.
const maxProcesses = 8192

type worker struct {
	contained bool
	nested    int // process 1 of its namespace, where that is not this one
	fd        int // of control
	control   *os.File

	grace time.Duration // from SIGTERM to SIGKILL at the limit
	limit limit

	mu       sync.Mutex // guards what follows, and writing to control
	timedOut bool
}

// confine is the beginning of a container's process 1.
func confine() bool {
	// Whoever started the container holds it; when that one goes, so does
	// everything here. Keys that the person's session holds stay outside.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return false
	}
	// More than any build needs, and not the whole computer. As root it does
	// not bind (fork(2)); from Linux 5.14 on only this container counts.
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: maxProcesses, Max: maxProcesses}); err != nil {
		return false
	}
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	return err == nil || err == unix.ENOSYS || err == unix.EPERM
}

func (w *worker) run() int {
	if w.contained {
		if !confine() {
			return 1
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1
	}
	// Handled, not ignored: an ignored signal would stay so in the command.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)

	in := json.NewDecoder(w.control)
	var s Spec
	if err := in.Decode(&s); err != nil || len(s.Argv) == 0 {
		return 1
	}
	var handed []int
	if s.Proxy && w.contained {
		fd, err := listen()
		if err != nil {
			w.tell(*failed(FailedProxy, err))
			return 0
		}
		handed = append(handed, fd)
	}
	var at *terminal
	if s.Terminal != nil {
		t, err := newTerminal(*s.Terminal)
		if err != nil {
			w.tell(*failed(FailedTTY, err))
			return 0
		}
		at, handed = &t, append(handed, t.ours)
	}
	leader, failed := w.start(s, at)
	if failed != nil {
		w.tell(*failed)
		return 0
	}
	w.tell(Event{Kind: Started, PID: os.Getpid()}, handed...)
	go w.obey(in)
	if !w.contained {
		go func() {
			for sig := range signals {
				if sig != syscall.SIGPIPE {
					w.endAll()
				}
			}
		}()
	}
	w.limitTo(s)
	return w.reap(leader)
}

// start returns the pid of the command, or why there is none. It runs at the
// terminal, where there is one.
func (w *worker) start(s Spec, at *terminal) (int, *Event) {
	program, no := w.find(s)
	if no != nil {
		return 0, no
	}
	if err := os.Chdir(string(s.Dir)); err != nil {
		return 0, failed(FailedDir, err)
	}
	// A session of its own: no terminal to wait for, but the one it is given.
	files, sys := []uintptr{fdStdin, fdStdout, fdStderr}, &syscall.SysProcAttr{Setsid: true}
	if at != nil {
		its := uintptr(at.its)
		files, sys.Setctty = []uintptr{its, its, its}, true
		defer unix.Close(at.its)
	}
	pid, err := syscall.ForkExec(program, texts(s.Argv), &syscall.ProcAttr{Env: texts(s.Env), Files: files, Sys: sys})
	if err != nil {
		return 0, failed(FailedExec, err)
	}
	// From here on only the command and its children hold its input and output.
	for _, fd := range []int{fdStdin, fdStdout, fdStderr} {
		unix.Close(fd)
	}
	return pid, nil
}

// find makes sure of what is mounted and of the working directory, and finds the
// program.
func (w *worker) find(s Spec) (program string, no *Event) {
	for _, c := range s.Checks {
		var st unix.Stat_t
		if err := unix.Lstat(c.Path, &st); err != nil || st.Dev != c.Dev || st.Ino != c.Ino {
			return "", failed(FailedMount, err)
		}
	}
	dir := string(s.Dir)
	if fi, err := os.Stat(dir); err != nil {
		return "", failed(FailedDir, err)
	} else if !fi.IsDir() {
		return "", failed(FailedDir, syscall.ENOTDIR)
	}
	program, err := lookUp(string(s.Argv[0]), texts(s.Env), dir)
	if err != nil {
		return "", failed(FailedProgram, err)
	}
	return program, nil
}

// root is the process that all of the command's are below.
func (w *worker) root() int {
	if w.nested > 0 {
		return w.nested
	}
	return os.Getpid()
}

// left counts what is left of the command.
func (w *worker) left() int { return len(descendants(w.root())) }

// settle waits for the rest of a tree that was ended with its command, 2 s at
// most once it was killed, and returns how many are left: that the limit has ended the whole tree
// is told when it is true.
func (w *worker) settle() int {
	for end := time.Now().Add(w.grace + 2*time.Second); ; time.Sleep(2 * time.Millisecond) {
		for w.nested == 0 {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
		if left := w.left(); left == 0 || time.Now().After(end) {
			return left
		}
	}
}

// reap waits for the command, tells of its end, and then for what it left.
func (w *worker) reap(leader int) int {
	over := false
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0
		case pid == leader:
			over = true
			w.over(ws, false)
		case over:
			w.tell(Event{Kind: Children, Running: w.left()})
		}
	}
}

// over tells that the command has ended; alone: nothing of it is left.
func (w *worker) over(ws syscall.WaitStatus, alone bool) {
	w.limit.end()
	e := Event{Kind: Exited, Code: ws.ExitStatus()}
	if ws.Signaled() {
		e.Code, e.Signal = -1, ws.Signal().String()
	}
	w.mu.Lock()
	e.TimedOut = w.timedOut
	w.mu.Unlock()
	switch {
	case alone:
	case e.TimedOut:
		e.Running = w.settle()
	default:
		e.Running = w.left()
	}
	w.tell(e)
}

// obey carries out orders until the control socket ends, which ends all.
func (w *worker) obey(in *json.Decoder) {
	for {
		var o Order
		if err := in.Decode(&o); err != nil {
			w.endAll()
			return
		}
		sig := syscall.Signal(o.Signal)
		w.signal(sig)
		switch sig {
		case syscall.SIGSTOP:
			w.limit.hold()
		case syscall.SIGCONT:
			w.limit.goOn()
		}
	}
}

func (w *worker) signal(sig syscall.Signal) {
	switch {
	case sig != syscall.SIGTERM && sig != syscall.SIGKILL && sig != syscall.SIGSTOP && sig != syscall.SIGCONT:
	case w.nested > 0 && sig == syscall.SIGKILL:
		_ = syscall.Kill(w.nested, sig) // the kernel ends the rest
	case w.nested > 0 && sig == syscall.SIGSTOP:
		StopTree(w.nested)
	case w.nested > 0:
		SignalTree(w.nested, sig)
	case w.contained && sig == syscall.SIGSTOP:
		StopTree(os.Getpid())
	case w.contained:
		// All but this process, which is 1 in here; what is just being started
		// too.
		_ = syscall.Kill(-1, sig)
	case sig == syscall.SIGKILL:
		KillTree(os.Getpid(), 0)
	case sig == syscall.SIGSTOP:
		StopTree(os.Getpid())
	default:
		SignalTree(os.Getpid(), sig)
	}
}

func (w *worker) endAll() {
	w.signal(syscall.SIGKILL)
	if w.nested == 0 {
		os.Exit(0)
	}
}

// tell reports e, and hands over descriptors, which are closed here.
func (w *worker) tell(e Event, fds ...int) {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// When nobody listens any more, obey sees it too.
	b = append(b, '\n')
	if len(fds) > 0 {
		n, err := unix.SendmsgN(w.fd, b, unix.UnixRights(fds...), nil, 0)
		for _, fd := range fds {
			unix.Close(fd)
		}
		if err != nil {
			return
		}
		b = b[n:]
	}
	_, _ = w.control.Write(b)
}

func failed(what string, err error) *Event {
	var errno syscall.Errno
	errors.As(err, &errno)
	return &Event{Kind: Failed, What: what, Errno: int(errno)}
}

func texts(bs [][]byte) []string {
	out := make([]string, len(bs))
	for i, b := range bs {
		out[i] = string(b)
	}
	return out
}

// lookUp finds a program as a shell would that is in dir, in the PATH of env.
func lookUp(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if path.IsAbs(name) {
			return name, executable(name)
		}
		return name, executable(dir + "/" + name)
	}
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	for _, dir := range strings.Split(search, ":") {
		if !strings.HasPrefix(dir, "/") {
			continue // never from the working directory
		}
		if p := path.Join(dir, name); executable(p) == nil {
			return p, nil
		}
	}
	return "", syscall.ENOENT
}

func executable(p string) error {
	fi, err := os.Stat(p)
	switch {
	case err != nil:
		return err
	case fi.IsDir():
		return syscall.EISDIR
	}
	return unix.Access(p, unix.X_OK)
}
