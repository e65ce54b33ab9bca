package spawn

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"path"
	"runtime"
	"sync"
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
// in namespaces of its own for processes, mounts and the network, and has a
// control socket of its own. It holds the rights that takes, in the container's
// user namespace only; commands have none, and can neither see nor signal it.
type keeper struct {
	covered []mount // what the /proc of each command has covered
}

// keep takes what commands need, four descriptors each (control, standard
// output, error and input), until nobody gives any more.
func keep(covered []string) int {
	if !confine() {
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	k := &keeper{covered: []mount{newMount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)}}
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
		k.covered = append(k.covered, newMount(from, at, "", unix.MS_BIND),
			newMount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC))
	}
	if _, err := os.Lstat(Cover); err == nil {
		k.covered = append(k.covered, newMount("tmpfs", Cover, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC))
	}
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(fdControl, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return 0 // the kernel ends the rest
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 {
			return 1
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 4 {
			return 1
		}
		go k.run(fds[0], [3]int{fds[3], fds[1], fds[2]})
	}
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
	events := os.NewFile(uintptr(pipe[0]), "events")
	defer events.Close()
	n := &nest{program: cstring(program), argv: cstrings(texts(s.Argv)), env: cstrings(texts(s.Env)), dir: cstring(string(s.Dir)),
		mounts: k.covered, stdio: stdio, control: control, events: pipe[1]}
	handed, what, err := n.startApart(s.Proxy)
	unix.Close(pipe[1])
	closeStdio()
	if err != nil {
		w.tell(*failed(what, err))
		return
	}
	defer func() {
		var ws syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(w.nested, &ws, 0, nil); err != syscall.EINTR {
				return
			}
		}
	}()
	w.nested = n.pid
	first, err := readRecord(events)
	if err != nil || first[0] != nestStarted {
		what := map[int32]string{nestFailedMount: FailedProc, nestFailedDir: FailedDir}[first[1]]
		if what == "" {
			what = FailedExec
		}
		for _, fd := range handed {
			unix.Close(fd)
		}
		w.tell(*failed(what, syscall.Errno(first[2])))
		_ = syscall.Kill(w.nested, syscall.SIGKILL)
		return
	}
	w.tell(Event{Kind: Started, PID: w.nested}, handed...)
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

// startApart forks on a thread of its own, which has a network of its own then,
// with nothing in it but itself. handed are descriptors for localpc.
func (n *nest) startApart(proxy bool) (handed []int, what string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		what = FailedProxy
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		if err = loopback(); err != nil {
			return
		}
		if proxy {
			var fd int
			if fd, err = listen(); err != nil {
				return
			}
			handed = append(handed, fd)
		}
		what = FailedExec
		n.pid, err = n.start()
	}()
	<-done
	return handed, what, err
}

// loopback switches the loopback of a new network on.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
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
