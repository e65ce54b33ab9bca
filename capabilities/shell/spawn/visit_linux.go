package spawn

import (
	"encoding/binary"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// namespace is one of processes, as the kernel numbers it while it is there.
type namespace uint32

// know notes the Number of the command in a namespace; 0 forgets it.
func (k *keeper) know(of namespace, number int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if number == 0 {
		delete(k.commands, of)
		return
	}
	k.commands[of] = number
}

// admit hands each connection to the proxy on, with whose it is, until the
// container ends. While nobody takes them it waits, and the kernel keeps some.
func (k *keeper) admit(door syscall.RawConn) {
	for {
		fd, err := accept(door)
		switch err {
		case nil:
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			time.Sleep(50 * time.Millisecond)
			continue
		case unix.ECONNABORTED:
			continue
		default:
			return
		}
		visit := binary.NativeEndian.AppendUint64(nil, uint64(k.whose(fd)))
		for {
			// The other direction of this socket is read by keep, which has its poller.
			err = unix.Sendmsg(fdControl, visit, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
			if err != unix.EAGAIN && err != unix.EINTR && err != unix.ETOOMANYREFS {
				break
			}
			poll := []unix.PollFd{{Fd: fdControl, Events: unix.POLLOUT}}
			_, _ = unix.Poll(poll, 50)
		}
		unix.Close(fd)
		if err != nil {
			return
		}
	}
}

// accept waits for a connection.
func accept(door syscall.RawConn) (got int, err error) {
	perr := door.Read(func(fd uintptr) bool {
		for err = unix.EINTR; err == unix.EINTR; {
			got, _, err = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		}
		return err != unix.EAGAIN
	})
	if err == nil {
		err = perr
	}
	return got, err
}

// whose is the Number of the command whose process is at the other end of a
// connection; 0 where that is not certain.
//
// The kernel says which socket is there, and it stays that one: a connection
// that is open at both ends has its pair of addresses to itself. Nobody but its
// holder can put a socket among a process's open files, and a process stays in
// its namespace, so that a command can't have another one appear here; what a
// command does for others of its own will (it may as well pass on what it is
// sent) nothing could tell.
func (k *keeper) whose(fd int) int64 {
	far, err := unix.Getpeername(fd)
	if err != nil {
		return 0
	}
	near, err := unix.Getsockname(fd)
	if err != nil {
		return 0
	}
	from, ok1 := far.(*unix.SockaddrInet4)
	to, ok2 := near.(*unix.SockaddrInet4)
	if !ok1 || !ok2 {
		return 0
	}
	inode := socketOf(from, to)
	// Had this end been closed meanwhile, it could be another connection's.
	if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err != nil || inode == 0 ||
		info.State != tcpEstablished && info.State != tcpCloseWait {
		return 0
	}
	of, ok := holder(inode)
	if !ok {
		return 0
	}
	// A command may be quicker than what this process hears of its start.
	for end := time.Now().Add(200 * time.Millisecond); ; time.Sleep(time.Millisecond) {
		starting := k.starting.Load() > 0
		k.mu.Lock()
		number := k.commands[of]
		k.mu.Unlock()
		if number != 0 || !starting || time.Now().After(end) {
			return number
		}
	}
}

// States of a connection, from the kernel's tcp_states.h.
const (
	tcpEstablished = 1
	tcpFinWait1    = 4
	tcpFinWait2    = 5
	tcpCloseWait   = 8
	tcpClosing     = 11
)

// socketOf is the inode of the socket in this network that is connected from
// one address to the other; 0 for none that a process still has.
func socketOf(from, to *unix.SockaddrInet4) uint32 {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	// struct nlmsghdr, and struct inet_diag_req_v2 of linux/inet_diag.h.
	const size = unix.SizeofNlMsghdr + 56
	q := make([]byte, size)
	binary.NativeEndian.PutUint32(q[0:], size)
	binary.NativeEndian.PutUint16(q[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(q[6:], unix.NLM_F_REQUEST)
	r := q[unix.SizeofNlMsghdr:]
	r[0], r[1] = unix.AF_INET, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(r[4:], ^uint32(0)) // in any state
	id := r[8:]
	binary.BigEndian.PutUint16(id[0:], uint16(from.Port))
	binary.BigEndian.PutUint16(id[2:], uint16(to.Port))
	copy(id[4:], from.Addr[:])
	copy(id[20:], to.Addr[:])
	binary.NativeEndian.PutUint64(id[40:], ^uint64(0)) // no cookie
	if err := unix.Sendto(fd, q, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0
	}
	// struct nlmsghdr, and struct inet_diag_msg.
	a := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, a, unix.MSG_DONTWAIT)
	if err != nil || n < unix.SizeofNlMsghdr+72 || binary.NativeEndian.Uint16(a[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return 0
	}
	m := a[unix.SizeofNlMsghdr:n]
	switch m[1] {
	case tcpEstablished, tcpFinWait1, tcpFinWait2, tcpCloseWait, tcpClosing:
	default:
		return 0 // one that only begins, or listens
	}
	if binary.BigEndian.Uint16(m[4:]) != uint16(from.Port) || binary.BigEndian.Uint16(m[6:]) != uint16(to.Port) {
		return 0
	}
	return binary.NativeEndian.Uint32(m[68:])
}

// maxLooks is how many open files are looked at to find a socket. That many are
// no command's ordinary life.
const maxLooks = 200_000

// holder finds the namespace of the processes that have the socket open. It is
// not ok where there is none, or several.
func holder(inode uint32) (of namespace, ok bool) {
	want := "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]"
	looks := maxLooks
	for _, pid := range numbers("/proc") {
		// The descriptor stays this process's, should its number be given to another.
		proc, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		has := holds(proc, want, &looks)
		var st unix.Stat_t
		if has {
			err = unix.Fstatat(proc, "ns/pid", &st, 0)
		}
		unix.Close(proc)
		switch {
		case has && err != nil, looks <= 0:
			return 0, false
		case !has:
		case ok && of != namespace(st.Ino):
			return 0, false
		default:
			of, ok = namespace(st.Ino), true
		}
	}
	return of, ok
}

// holds tells whether a process has what want names open.
func holds(proc int, want string, looks *int) bool {
	fd, err := unix.Openat(proc, "fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // it hides them: then nothing it has is found
	}
	dir := os.NewFile(uintptr(fd), "fd")
	defer dir.Close()
	var link [64]byte
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			*looks--
			n, err := unix.Readlinkat(fd, name, link[:])
			if err == nil && n == len(want) && string(link[:n]) == want {
				return true
			}
		}
		if err != nil || *looks <= 0 {
			return false
		}
	}
}

// numbers are the entries of a directory of /proc that are numbers.
func numbers(dir string) (out []int) {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}
