package desklink

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenChild takes the link of this process: it sets the real standard input
// and output aside (close-on-exec, at 3 or above), then makes descriptor 0
// /dev/null and descriptor 1 standard error, so that what libraries print
// never gets among the messages. Call it first, once; it returns ErrByHand
// when localpc did not start the process.
func OpenChild() (*Child, error) {
	in, out, err := OpenLink()
	if err != nil {
		return nil, err
	}
	return NewChild(in, out), nil
}

// OpenLink is OpenChild for the process at the display, whose messages are
// others.
func OpenLink() (in, out *os.File, err error) {
	for fd := 0; fd < 2; fd++ {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, nil, ErrByHand
		}
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFIFO && kind != unix.S_IFSOCK {
			return nil, nil, ErrByHand
		}
	}
	if in, err = aside(0, "link in"); err != nil {
		return nil, nil, err
	}
	if out, err = aside(1, "link out"); err != nil {
		return nil, nil, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	defer unix.Close(null)
	if err := unix.Dup3(null, 0, 0); err != nil {
		return nil, nil, fmt.Errorf("replace standard input: %w", err)
	}
	if err := unix.Dup3(2, 1, 0); err != nil {
		return nil, nil, fmt.Errorf("point standard output at standard error: %w", err)
	}
	return in, out, nil
}

// aside moves a descriptor up. It is made non-blocking so that closing it ends
// a read that waits.
func aside(fd int, name string) (*os.File, error) {
	up, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("set descriptor %d aside: %w", fd, err)
	}
	if err := unix.SetNonblock(up, true); err != nil {
		return nil, fmt.Errorf("set descriptor %d aside: %w", fd, err)
	}
	return os.NewFile(uintptr(up), name), nil
}
