//go:build unix

package computer

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// start starts p detached: in a session of its own, with nothing of this
// program's open. It goes on when this program has ended.
func start(p program, env []string) (pid int, err error) {
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = env
	if home, err := os.UserHomeDir(); err == nil {
		cmd.Dir = home
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	// Its end is of no interest, but what is left of it is taken away: reap.
	pid = cmd.Process.Pid // Release forgets it
	return pid, cmd.Process.Release()
}

// reap takes away what is left of programs that have ended.
func (c *Computer) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.children = slices.DeleteFunc(c.children, func(pid int) bool {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		return got == pid || err != nil && !errors.Is(err, syscall.EINTR)
	})
}
