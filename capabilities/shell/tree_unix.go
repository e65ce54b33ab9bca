//go:build unix && !linux

package shell

import (
	"os/exec"
	"syscall"
)

// group is a process group: the command leads it, and its children are in it
// as long as they do not leave it.
type group struct{ pgid int }

func startGroup(cmd *exec.Cmd) (group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return group{}, err
	}
	return group{cmd.Process.Pid}, nil
}

func (g group) signal(sig syscall.Signal) { _ = syscall.Kill(-g.pgid, sig) }

// left is 1 while anything of the group lives.
func (g group) left() int {
	if syscall.Kill(-g.pgid, 0) == nil {
		return 1
	}
	return 0
}

func (g group) close() {}
