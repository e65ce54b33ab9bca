package spawn

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// guard starts a worker and waits for it. Should somebody kill the worker, its
// descendants become the guard's, which ends them; should somebody kill the
// guard, the worker is told by a signal and ends them.
func guard() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1
	}
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	worker, err := syscall.ForkExec(self, []string{"localpc-spawn", RoleWorker}, &syscall.ProcAttr{
		Dir:   "/",
		Files: []uintptr{0, 1, 2, fdControl, fdStdout, fdStderr, fdStdin},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM},
	})
	if err != nil {
		return 1
	}
	for _, fd := range []int{fdControl, fdStdout, fdStderr, fdStdin} {
		unix.Close(fd)
	}
	go func() {
		<-signals
		KillTree(os.Getpid(), 0)
		os.Exit(0)
	}()
	for over := false; ; {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0
		case pid == worker || over:
			over = true
			// What is left now has rights that can't be reached from here.
			if KillTree(os.Getpid(), 0) > 0 {
				return 0
			}
		}
	}
}
