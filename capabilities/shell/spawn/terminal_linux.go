package spawn

import "golang.org/x/sys/unix"

// terminal is a pseudo-terminal: what is written to one end is read at the
// other. Made with bare system calls, as sockets are: libraries for it bring
// os/exec along, which makes each start of a command dearer.
type terminal struct {
	ours int // for localpc
	its  int // for the command
}

// newTerminal makes one where this process is: in a container it is of the
// container's own devices.
func newTerminal(size Size) (t terminal, err error) {
	t.ours, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return terminal{}, err
	}
	defer func() {
		if err != nil {
			unix.Close(t.ours)
		}
	}()
	if err := unix.IoctlSetPointerInt(t.ours, unix.TIOCSPTLCK, 0); err != nil {
		return terminal{}, err
	}
	if err := unix.IoctlSetWinsize(t.ours, unix.TIOCSWINSZ, &unix.Winsize{Col: size.Cols, Row: size.Rows}); err != nil {
		return terminal{}, err
	}
	how, err := unix.IoctlGetTermios(t.ours, unix.TCGETS)
	if err != nil {
		return terminal{}, err
	}
	how.Iflag |= unix.IUTF8 // a letter is erased as a whole
	if err := unix.IoctlSetTermios(t.ours, unix.TCSETS, how); err != nil {
		return terminal{}, err
	}
	// By the descriptor: a name could lead elsewhere.
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(t.ours), unix.TIOCGPTPEER, uintptr(unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC))
	if errno != 0 {
		return terminal{}, errno
	}
	t.its = int(fd)
	return t, nil
}
