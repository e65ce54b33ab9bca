package shell

import (
	"golang.org/x/sys/unix"

	"localpc/tunnel/wire"
)

// resize tells the programs at the terminal of its new size.
func (p *process) resize(size wire.TerminalSize) {
	p.onTerminal(func(fd int) {
		_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(size.Cols), Row: uint16(size.Rows)})
	})
}

// endOfFile types what ends the input. In a line that has begun it only sends
// off what there is of it, so that it takes two.
func (p *process) endOfFile(whole bool) {
	typed := []byte{4} // Ctrl-D
	p.onTerminal(func(fd int) {
		how, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return
		}
		if c := how.Cc[unix.VEOF]; c != 0 {
			typed[0] = c
		}
		if how.Lflag&unix.ICANON != 0 && !whole {
			typed = append(typed, typed[0])
		}
	})
	_, _ = p.stdin.Write(typed)
}

// onTerminal reaches the terminal without making waiting for it endless, as
// os.File.Fd would.
func (p *process) onTerminal(do func(fd int)) {
	if raw, err := p.stdin.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}
