//go:build linux

package shell_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// resisting are trees that do not let themselves be stopped, or found. They do
// nothing but system calls, which makes them as quick as any.
var resisting = []string{
	"eight that wake all",
	"one that is always another",
	"one whose first thread has ended",
}

// resist is the first process of one. As long as anything of it runs, the file
// f grows. Should it get away, it ends by itself some minutes later.
//
//go:norace
func resist(how string) int {
	runtime.LockOSThread()
	fd, err := syscall.Open("f", syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND, 0o644)
	if err != nil {
		return 1
	}
	x := []byte("x")
	fork := func() uintptr {
		pid, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		return pid
	}
	write := func() { syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&x[0])), 1) }
	switch how {
	case "eight that wake all":
		_ = syscall.Setpgid(0, 0)
		group := -syscall.Getpid()
		for range 3 {
			fork()
		}
		for range 500_000 {
			for range 100 {
				syscall.RawSyscall(syscall.SYS_KILL, uintptr(group), uintptr(syscall.SIGCONT), 0)
			}
			write()
		}
	case "one that is always another":
		for i := range 1_000_000 {
			if fork() != 0 {
				syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
			}
			if i%20 == 0 {
				write()
			}
		}
	case "one whose first thread has ended":
		go func() {
			time.Sleep(300 * time.Millisecond)
			for range 100_000 {
				time.Sleep(time.Millisecond)
				write()
			}
			os.Exit(1)
		}()
		if syscall.Gettid() != syscall.Getpid() {
			return 1
		}
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	return 1
}

// resists starts one, and returns it and the size of its file.
func resists(t *testing.T, s *shell.Shell, ses *capabilities.Session, choice consent.Choice, how string) (func() int64, *running) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	to, err := os.OpenFile(filepath.Join(ses.Folder, "resist"), os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, self)
	to.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := bash(ses, "(./resist) >/dev/null & sleep 600")
	p.Env = map[string]string{"SHELL_TEST_RESIST": how, "SHELL_TEST_SPAWN": spawnPath}
	r := begin(t.Context(), t, s, ses, choice, p)
	size := func() int64 {
		fi, err := os.Stat(filepath.Join(ses.Folder, "f"))
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	eventually(t, "it runs", func() bool { return size() > 20 })
	return size, r
}

// What does not let itself be stopped is ended: while a card is open nothing
// runs that could answer it, whatever it does. The end can't be outrun either.
func TestNothingOutrunsAStop(t *testing.T) {
	s := newShell(t)
	for _, name := range resisting {
		for how, choice := range modes {
			t.Run(name+", "+how, func(t *testing.T) {
				ses := capabilitytest.NewSession(t, consent.ModeWork)
				size, r := resists(t, s, ses, choice, name)
				if choice == full {
					s.Freeze(true)
					defer s.Freeze(false)
				} else {
					s.PauseSession(ses.ID, true)
				}
				was, since := size(), time.Now()
				eventually(t, "it stands still", func() bool {
					if now := size(); now != was {
						was, since = now, time.Now()
					}
					return time.Since(since) > 1500*time.Millisecond
				})
				if err := s.EndSession(context.Background(), ses.ID); err != nil {
					t.Error(err)
				}
				if err := r.wait(t); wire.CodeOf(err) != wire.CodeStopped {
					t.Error(err)
				}
			})
			t.Run(name+", "+how+", ended", func(t *testing.T) {
				ses := capabilitytest.NewSession(t, consent.ModeWork)
				size, r := resists(t, s, ses, choice, name)
				if err := s.EndSession(context.Background(), ses.ID); err != nil {
					t.Error(err)
				}
				_ = r.wait(t)
				was := size()
				time.Sleep(500 * time.Millisecond)
				if size() != was {
					t.Error("it runs on after its session's end")
				}
			})
		}
	}
}

// Nor does it help to be woken from elsewhere, all the time.
func TestWhatIsWokenIsEnded(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	r := begin(t.Context(), t, s, ses, full, bash(ses, "echo $$ > pid; while :; do echo x >> f; done"))
	var pid int
	eventually(t, "it runs", func() bool {
		b, _ := os.ReadFile(filepath.Join(ses.Folder, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 0
	})
	stop := make(chan struct{})
	var waking sync.WaitGroup
	for range 2 {
		waking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = syscall.Kill(pid, syscall.SIGCONT)
				}
			}
		})
	}
	defer waking.Wait()
	defer close(stop)
	s.Freeze(true)
	defer s.Freeze(false)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if exit := r.res.Payload.(*wire.ProcessExited); exit.Signal != "killed" {
		t.Errorf("%+v", exit)
	}
}
