package spawn

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nest is a command that is started in namespaces of its own: processes, whose
// process 1 is a copy of this one that only waits, and mounts, for the /proc
// that goes with them. The copy is forked without starting a program, because
// starting one again costs more than all the rest; it does nothing but system
// calls, whose arguments all stand here before. What it may do here it gives
// away before the command is started.
type nest struct {
	program   *byte
	argv, env []*byte
	dir       *byte
	mounts    []mount
	stdio     [3]int
	control   int // Started is written to it, by process 1, which tells who that is: see withFiles
	events    int // records are written to it
	tty       *nestTerminal

	// unstarted is not 0 when the command could not be started. It is in memory
	// that the copies share.
	unstarted *int32
	shared    []byte

	record  [3]int32
	started []byte
	ns      *byte // the name of its namespace of processes
	own     unix.Statx_t
	head    unix.CapUserHeader
	none    [2]unix.CapUserData
}

// nestTerminal is the terminal that a nest makes where its command runs: it has
// terminals of its own, which no other command can open. What is done is as in
// newTerminal.
type nestTerminal struct {
	master   *byte
	unlocked int32
	size     unix.Winsize
	how      unix.Termios
	message  unix.Msghdr
	text     unix.Iovec
	rights   []byte // hands the end that is read and typed into over
}

// atTerminal has the command run at a terminal of that size.
func (n *nest) atTerminal(size Size) {
	t := &nestTerminal{master: cstring("/dev/pts/ptmx"), size: unix.Winsize{Col: size.Cols, Row: size.Rows}, rights: unix.UnixRights(0)}
	t.text = unix.Iovec{Base: cstring("\n")} // which is no event
	t.text.SetLen(1)
	t.message = unix.Msghdr{Iov: &t.text, Control: &t.rights[0]}
	t.message.SetIovlen(1)
	t.message.SetControllen(len(t.rights))
	n.tty = t
	n.mounts = append(n.mounts, newMount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0600"))
}

// What a record says: its first number. Two more follow.
const (
	nestStarted = 1 // its namespace of processes
	nestFailed  = 2 // one of the nestFailed… , errno
	nestExited  = 3 // the command: wait status, 1 when others are left
	nestOther   = 4 // another one has ended
)

const (
	nestFailedMount = 1
	nestFailedDir   = 2
	nestFailedExec  = 3
	nestFailedTTY   = 4
)

// mount is one call of mount(2).
type mount struct {
	source, target, kind, data *byte
	flags                      uintptr
}

func newMount(source, target, kind string, flags uintptr, data string) mount {
	m := mount{target: cstring(target), flags: flags}
	if source != "" {
		m.source = cstring(source)
	}
	if kind != "" {
		m.kind = cstring(kind)
	}
	if data != "" {
		m.data = cstring(data)
	}
	return m
}

// hold adds the mounts that hold a directory where it is.
func (n *nest) hold(h Held) error {
	n.mounts = append(n.mounts, newMount(h.Path, h.Path, "", unix.MS_BIND, ""))
	if !h.ReadOnly {
		return nil
	}
	// What the file system is mounted with already can't be taken away here.
	var at unix.Statfs_t
	if err := unix.Statfs(h.Path, &at); err != nil {
		return err
	}
	kept := uintptr(at.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC) // statfs(2) has the same numbers
	n.mounts = append(n.mounts, newMount("", h.Path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|kept, ""))
	return nil
}

func cstring(s string) *byte {
	p, err := syscall.BytePtrFromString(s)
	if err != nil {
		p, _ = syscall.BytePtrFromString("") // it has a zero byte: nothing is found by it
	}
	return p
}

func cstrings(all []string) []*byte {
	out := make([]*byte, 0, len(all)+1)
	for _, s := range all {
		out = append(out, cstring(s))
	}
	return append(out, nil)
}

// Those that package syscall's own fork calls.
//
//go:linkname runtimeBeforeFork syscall.runtime_BeforeFork
func runtimeBeforeFork()

//go:linkname runtimeAfterFork syscall.runtime_AfterFork
func runtimeAfterFork()

//go:linkname runtimeAfterForkInChild syscall.runtime_AfterForkInChild
func runtimeAfterForkInChild()

// start forks, and returns the pid of the copy as it is known here. end follows.
func (n *nest) start() (int, error) {
	var err error
	if n.shared, err = unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS); err != nil {
		return 0, err
	}
	n.unstarted = (*int32)(unsafe.Pointer(&n.shared[0]))
	n.started, n.ns = []byte(`{"kind":"`+Started+`"}`+"\n"), cstring("/proc/self/ns/pid")
	n.head = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	syscall.ForkLock.Lock()
	pid, errno := n.fork()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(n)
	if errno != 0 {
		return 0, errno
	}
	return pid, nil
}

// end frees what start took.
func (n *nest) end() {
	if n.shared != nil {
		_ = unix.Munmap(n.shared)
	}
}

// fork: in the copy nothing may be called but system calls that are assembly.
// There are no other threads in it, no memory can be had, and the stack must not
// grow.
//
//go:noinline
//go:norace
//go:nocheckptr
func (n *nest) fork() (int, syscall.Errno) {
	var (
		r1     uintptr
		errno  syscall.Errno
		status int32
		leader uintptr
		what   int32
		over   bool
		t      = n.tty
		open   = unix.AT_FDCWD
	)
	runtimeBeforeFork()
	r1, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, unix.CLONE_NEWPID|unix.CLONE_NEWNS|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || r1 != 0 {
		runtimeAfterFork()
		return int(r1), errno
	}
	// Process 1 of the new namespace. Signals are as they were at the start of a
	// program; those from inside do not reach it.
	runtimeAfterForkInChild()
	what = nestFailedMount
	for i := 0; i < len(n.mounts); i++ {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_MOUNT, uintptr(unsafe.Pointer(n.mounts[i].source)), uintptr(unsafe.Pointer(n.mounts[i].target)),
			uintptr(unsafe.Pointer(n.mounts[i].kind)), n.mounts[i].flags, uintptr(unsafe.Pointer(n.mounts[i].data)), 0)
		if errno != 0 {
			goto failed
		}
	}
	_, _, errno = syscall.RawSyscall6(unix.SYS_STATX, uintptr(open), uintptr(unsafe.Pointer(n.ns)), 0, unix.STATX_INO, uintptr(unsafe.Pointer(&n.own)), 0)
	if errno != 0 {
		goto failed
	}
	if t != nil {
		what = nestFailedTTY
		r1, _, errno = syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(open), uintptr(unsafe.Pointer(t.master)), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			goto failed
		}
		syscall.RawSyscall(syscall.SYS_IOCTL, r1, unix.TIOCSPTLCK, uintptr(unsafe.Pointer(&t.unlocked)))
		syscall.RawSyscall(syscall.SYS_IOCTL, r1, unix.TIOCSWINSZ, uintptr(unsafe.Pointer(&t.size)))
		syscall.RawSyscall(syscall.SYS_IOCTL, r1, unix.TCGETS, uintptr(unsafe.Pointer(&t.how)))
		t.how.Iflag |= unix.IUTF8
		syscall.RawSyscall(syscall.SYS_IOCTL, r1, unix.TCSETS, uintptr(unsafe.Pointer(&t.how)))
		leader, _, errno = syscall.RawSyscall(syscall.SYS_IOCTL, r1, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			goto failed
		}
		n.stdio = [3]int{int(leader), int(leader), int(leader)}
		*(*int32)(unsafe.Pointer(&t.rights[unix.SizeofCmsghdr])) = int32(r1)
		_, _, errno = syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(n.control), uintptr(unsafe.Pointer(&t.message)), 0)
		if errno != 0 {
			goto failed
		}
	}
	// The rights that were needed for that go, for good.
	what = nestFailedExec
	syscall.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	for i := uintptr(0); i <= unix.CAP_LAST_CAP; i++ {
		syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_CAPBSET_DROP, i, 0)
	}
	_, _, errno = syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&n.head)), uintptr(unsafe.Pointer(&n.none[0])), 0)
	if errno != 0 {
		goto failed
	}
	_, _, errno = syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0)
	if errno != 0 {
		goto failed
	}
	// With CLONE_VFORK it goes on here when the program has been started.
	leader, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, unix.CLONE_VFORK|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		goto failed
	}
	if leader == 0 {
		// The command. A session of its own: no terminal to wait for.
		syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		for i := 0; i < len(n.stdio); i++ {
			_, _, errno = syscall.RawSyscall(syscall.SYS_DUP3, uintptr(n.stdio[i]), uintptr(i), 0)
			if errno != 0 {
				goto failed
			}
		}
		if t != nil {
			syscall.RawSyscall(syscall.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
		}
		what = nestFailedDir
		_, _, errno = syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(unsafe.Pointer(n.dir)), 0, 0)
		if errno != 0 {
			goto failed
		}
		what = nestFailedExec
		_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(n.program)), uintptr(unsafe.Pointer(&n.argv[0])), uintptr(unsafe.Pointer(&n.env[0])))
		goto failed
	}
	if *n.unstarted != 0 {
		goto exit // why was told
	}
	syscall.RawSyscall(syscall.SYS_WRITE, uintptr(n.control), uintptr(unsafe.Pointer(unsafe.SliceData(n.started))), uintptr(len(n.started)))
	// Nothing of the command, or of another one, is held here.
	syscall.RawSyscall(syscall.SYS_DUP3, uintptr(n.events), fdControl, 0)
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdControl+1, ^uintptr(0), 0)
	n.record = [3]int32{nestStarted, int32(uint32(n.own.Ino)), 0}
	syscall.RawSyscall(syscall.SYS_WRITE, fdControl, uintptr(unsafe.Pointer(&n.record[0])), unsafe.Sizeof(n.record))
	for {
		r1, _, errno = syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0: // nobody is left
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		case r1 == leader:
			over = true
			n.record = [3]int32{nestExited, status, 1}
			// What has ended already is not left.
			for {
				r1, _, errno = syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), syscall.WNOHANG, 0, 0, 0)
				if errno == syscall.EINTR || errno == 0 && r1 != 0 {
					continue
				}
				break
			}
			if errno == syscall.ECHILD {
				n.record[2] = 0
			}
		case over:
			n.record = [3]int32{nestOther, 0, 0}
		default:
			continue
		}
		syscall.RawSyscall(syscall.SYS_WRITE, fdControl, uintptr(unsafe.Pointer(&n.record[0])), unsafe.Sizeof(n.record))
	}

failed:
	*n.unstarted = 1
	n.record = [3]int32{nestFailed, what, int32(errno)}
	syscall.RawSyscall(syscall.SYS_WRITE, uintptr(n.events), uintptr(unsafe.Pointer(&n.record[0])), unsafe.Sizeof(n.record))

exit:
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 127, 0, 0)
	}
}
