package spawn

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Cover is where a container that root has started has the computer's own
// /proc, below an empty directory for every command: the kernel gives a new
// /proc only where a whole one is to be seen, and the container's own has parts
// covered then.
const Cover = "/.proc"

// keeper is process 1 of a container that is entered once: each command starts
// in namespaces of its own for processes and mounts, and has a control socket of
// its own. It holds the rights that takes, in the container's user namespace
// only; commands have none, and can neither see nor signal it.
type keeper struct {
	covered []mount // what the /proc of each command has covered

	starting atomic.Int32 // commands that may run and are not among commands yet
	mu       sync.Mutex
	// commands are the Numbers of those that run, by their namespaces; guarded by
	// mu.
	commands map[namespace]int64
}

// keep takes what commands need, four descriptors each (control, standard
// output, error and input), until nobody gives any more.
func keep(network string, covered []string) int {
	if !confine() {
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	k := &keeper{covered: []mount{newMount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")}, commands: map[namespace]int64{}}
	for _, name := range covered {
		at := path.Join("/proc", name)
		fi, err := os.Lstat(at)
		if err != nil {
			continue
		}
		from := at
		if !fi.IsDir() {
			from = os.DevNull
		}
		k.covered = append(k.covered, newMount(from, at, "", unix.MS_BIND, ""),
			newMount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
	}
	if _, err := os.Lstat(Cover); err == nil {
		k.covered = append(k.covered, newMount("tmpfs", Cover, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
	}
	// All waiting is the poller's: a thread that waits by itself costs a switch to
	// another one each time.
	from, err := polled(fdControl, "control")
	if err != nil {
		return 1
	}
	if network == Open {
		// Before the first command, so that none can take its place.
		door, err := listen()
		if err != nil {
			return complain("nothing can listen in the container")
		}
		at, err := polled(door, "door")
		if err != nil {
			return 1
		}
		go k.admit(at)
	}
	for {
		fds, err := receive(from)
		if err != nil || len(fds) == 0 {
			return 0 // the kernel ends the rest
		}
		if len(fds) != 4 {
			return 1
		}
		go k.run(fds[0], [3]int{fds[3], fds[1], fds[2]})
	}
}

// polled is a descriptor that is waited for by the poller.
func polled(fd int, name string) (syscall.RawConn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name).SyscallConn()
}

// receive waits for one message and returns its descriptors.
func receive(from syscall.RawConn) (fds []int, err error) {
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4*4))
	var n, oobn int
	perr := from.Read(func(fd uintptr) bool {
		for err = unix.EINTR; err == unix.EINTR; {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		}
		return err != unix.EAGAIN
	})
	if perr != nil || err != nil || n == 0 {
		return nil, errors.Join(perr, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return nil, err
	}
	return unix.ParseUnixRights(&messages[0])
}

// run starts one command, and stays with it until nothing of it is left.
func (k *keeper) run(control int, stdio [3]int) {
	_ = unix.SetNonblock(control, true)
	w := &worker{contained: true, fd: control, control: os.NewFile(uintptr(control), "control")}
	defer w.control.Close()
	closeStdio := sync.OnceFunc(func() {
		for _, fd := range stdio {
			unix.Close(fd)
		}
	})
	defer closeStdio()
	in := json.NewDecoder(w.control)
	var s Spec
	if err := in.Decode(&s); err != nil || len(s.Argv) == 0 {
		return
	}
	program, no := w.find(s)
	if no != nil {
		w.tell(*no)
		return
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		w.tell(*failed(FailedExec, err))
		return
	}
	_ = unix.SetNonblock(pipe[0], true)
	events := os.NewFile(uintptr(pipe[0]), "events")
	defer events.Close()
	closeEvents := sync.OnceFunc(func() { unix.Close(pipe[1]) })
	defer closeEvents()
	n := &nest{program: cstring(program), argv: cstrings(texts(s.Argv)), env: cstrings(texts(s.Env)), dir: cstring(string(s.Dir)),
		mounts: slices.Clip(k.covered), stdio: stdio, control: control, events: pipe[1]}
	for _, h := range s.Hold {
		if err := n.hold(h); err != nil {
			w.tell(*failed(FailedMount, err))
			return
		}
	}
	if s.Terminal != nil {
		n.atTerminal(*s.Terminal)
	}
	k.starting.Add(1)
	started := sync.OnceFunc(func() { k.starting.Add(-1) })
	defer started()
	defer n.end()
	pid, err := n.start()
	closeEvents()
	closeStdio()
	if err != nil {
		w.tell(*failed(FailedExec, err))
		return
	}
	w.nested = pid
	defer func() {
		var ws syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(w.nested, &ws, 0, nil); err != syscall.EINTR {
				return
			}
		}
	}()
	first, err := readRecord(events)
	if err != nil || first[0] != nestStarted {
		what := map[int32]string{nestFailedMount: FailedProc, nestFailedDir: FailedDir, nestFailedTTY: FailedTTY}[first[1]]
		if what == "" {
			what = FailedExec
		}
		w.tell(*failed(what, syscall.Errno(first[2])))
		_ = syscall.Kill(w.nested, syscall.SIGKILL)
		return
	}
	own := namespace(uint32(first[1]))
	k.know(own, s.Number)
	defer k.know(own, 0)
	started()
	w.limitTo(s)
	go w.obey(in)
	for told := false; ; {
		r, err := readRecord(events)
		if err != nil {
			if !told { // it was killed, and took the command along
				w.over(syscall.WaitStatus(syscall.SIGKILL), true)
			}
			return
		}
		switch r[0] {
		case nestExited:
			told = true
			w.over(syscall.WaitStatus(r[1]), r[2] == 0)
		case nestOther:
			w.tell(Event{Kind: Children, Running: w.left()})
		}
	}
}

func readRecord(r io.Reader) (rec [3]int32, err error) {
	var b [12]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return rec, err
	}
	for i := range rec {
		rec[i] = int32(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return rec, nil
}

// limitTo begins the time limit of a command.
func (w *worker) limitTo(s Spec) {
	w.grace = time.Duration(s.GraceMS) * time.Millisecond
	if s.LimitMS == 0 {
		return
	}
	w.limit.begin(time.Duration(s.LimitMS)*time.Millisecond, func() {
		w.mu.Lock()
		w.timedOut = true
		w.mu.Unlock()
		if w.grace > 0 {
			w.signal(syscall.SIGTERM)
			time.Sleep(w.grace)
		}
		w.signal(syscall.SIGKILL)
	})
}
