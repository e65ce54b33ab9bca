//go:build !unix

package computer

import (
	"os"
	"os/exec"
)

// start starts p; it goes on when this program has ended.
func start(p program, env []string) (pid int, err error) {
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = env
	if home, err := os.UserHomeDir(); err == nil {
		cmd.Dir = home
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid // Release forgets it
	return pid, cmd.Process.Release()
}

// reap has nothing to do here: the system keeps nothing of what has ended.
func (c *Computer) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.children = nil
}
