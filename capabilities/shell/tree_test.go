//go:build linux

package shell_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

var sleeps atomic.Int64

// uniqueSleep is a number of seconds that no other process sleeps.
func uniqueSleep() string {
	return fmt.Sprintf("7777%d.%d", os.Getpid(), sleeps.Add(1))
}

// sleeping counts the living processes that have arg among their arguments.
func sleeping(arg string) int {
	n := 0
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err == nil && strings.HasPrefix(string(b), "sleep\x00") && strings.Contains(string(b), arg) {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after 20 s: %s", what)
		}
	}
}

// escapers starts sleeps that try to outlive their parent, six of them.
func escapers(arg string) string {
	return strings.ReplaceAll(`exec >/dev/null 2>&1
		sleep N &
		setsid sleep N &
		(setsid sleep N &) &
		nohup sleep N &
		bash -c "trap '' TERM HUP INT; sleep N & disown; wait" &
		(trap '' TERM; exec setsid sleep N) &
		until [ $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -c '^N$') -ge 6 ]; do sleep 0.02; done
		`, "N", arg)
}

var modes = map[string]consent.Choice{"contained": contained, "full access": full}

func TestChildrenLiveUntilTheirSessionEnds(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			n := uniqueSleep()
			r := do(t, s, ses, choice, bash(ses, escapers(n)+"exit 3"))
			if r.exit.ExitCode != 3 || r.exit.Running < 6 || s.Running(ses.ID) < 6 {
				t.Errorf("exit code %d, %d running, %d in the session; want 3 and at least 6", r.exit.ExitCode, r.exit.Running, s.Running(ses.ID))
			}
			if got := sleeping(n); got != 6 {
				t.Errorf("%d children live on, want 6", got)
			}
			if err := s.EndSession(context.Background(), ses.ID); err != nil {
				t.Fatal(err)
			}
			if got := sleeping(n); got != 0 || s.Running(ses.ID) != 0 {
				t.Errorf("%d children outlived their session, Running says %d", got, s.Running(ses.ID))
			}
		})
	}
}

// alpamon#353: a child that is left behind does not delay the exit code.
func TestExitIsToldAtOnceWhenNobodyHoldsTheOutput(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			r := do(t, s, ses, choice, bash(ses, "sleep "+uniqueSleep()+" >/dev/null 2>&1 & echo out; exit 3"))
			if r.exit.ExitCode != 3 || r.out != "out\n" || r.exit.Running != 1 || r.took > time.Second {
				t.Errorf("%+v, %q after %v", r.exit, r.out, r.took)
			}
			// And when one does, for two seconds at most, with the output whole.
			n := uniqueSleep()
			r = do(t, s, ses, choice, bash(ses, "sleep "+n+" & head -c 60000 /dev/zero; exit 4"))
			if r.exit.ExitCode != 4 || len(r.out) != 60000 || r.exit.Running != 1 || r.took < 1900*time.Millisecond || r.took > 3500*time.Millisecond {
				t.Errorf("%+v, %d bytes after %v", r.exit, len(r.out), r.took)
			}
			if sleeping(n) != 1 {
				t.Error("the child was ended")
			}
			// One that goes on writing is not held up, and its output goes nowhere.
			if r := do(t, s, ses, choice, bash(ses, "(while :; do echo more || exit; sleep 0.01; done; touch ended) & (head -c 300000 /dev/zero; touch wrote) & sleep 0.1")); r.took > 3500*time.Millisecond {
				t.Errorf("a child that goes on writing held the exit up for %v", r.took)
			}
			eventually(t, "a child that writes comes to its end", func() bool {
				_, err := os.Stat(filepath.Join(ses.Folder, "wrote"))
				return err == nil
			})
			if _, err := os.Stat(filepath.Join(ses.Folder, "ended")); err == nil {
				t.Error("a child's output was closed")
			}
		})
	}
}

// With a grace, what is at its limit is asked first, and has that long.
func TestTimeLimitAsksFirst(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			n := uniqueSleep()
			for text, want := range map[string]struct {
				out, signal string
				code        int
				least, most time.Duration
			}{
				"trap 'echo bye; exit 7' TERM; sleep " + n + " & wait": {"bye\n", "", 7, 300 * time.Millisecond, 5 * time.Second},
				"sleep " + n + "; true":                                {"", "terminated", -1, 300 * time.Millisecond, 5 * time.Second},
				"trap '' TERM; sleep " + n + "; true":                  {"", "killed", -1, 1200 * time.Millisecond, 5 * time.Second},
				// Its child does not obey.
				"(trap '' TERM; sleep " + n + "; true) & exec sleep " + n: {"", "terminated", -1, 1200 * time.Millisecond, 5 * time.Second},
			} {
				p := bash(ses, text)
				p.TimeoutMS, p.GraceMS = 300, 1000
				r := do(t, s, ses, choice, p)
				if !r.exit.TimedOut || r.exit.ExitCode != want.code || r.exit.Signal != want.signal || r.out != want.out || r.exit.Running != 0 || r.took < want.least || r.took > want.most {
					t.Errorf("%s: %+v, %q after %v", text, r.exit, r.out, r.took)
				}
				if got := sleeping(n); got != 0 {
					t.Errorf("%s: %d still run", text, got)
				}
			}
		})
	}
}

// golang/go#23019, tuios#141: a time limit ends everything, whatever the shell.
func TestTimeLimitEndsTheTree(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			n := uniqueSleep()
			for _, p := range []*wire.ProcessStart{
				{SessionID: ses.ID, Cmd: "sh", Args: []string{"-c", "sleep " + n + "; true"}},
				bash(ses, "trap '' TERM INT HUP; sleep "+n+"; true"),
				bash(ses, escapers(n)+"sleep "+n),
			} {
				p.TimeoutMS = 700
				r := do(t, s, ses, choice, p)
				if !r.exit.TimedOut || r.exit.ExitCode != -1 || r.exit.Signal != "killed" || r.took < 650*time.Millisecond || r.took > 2*time.Second {
					t.Errorf("%q: %+v after %v", p.Args, r.exit, r.took)
				}
				if got := sleeping(n); got != 0 {
					t.Errorf("%q: %d still run", p.Args, got)
				}
			}
			// It ends with the command: what that leaves behind may go on.
			p := bash(ses, "sleep "+n+" >/dev/null 2>&1 &")
			p.TimeoutMS = 300
			if r := do(t, s, ses, choice, p); r.exit.TimedOut || r.exit.ExitCode != 0 {
				t.Errorf("%+v", r.exit)
			}
			time.Sleep(500 * time.Millisecond)
			if sleeping(n) != 1 {
				t.Error("the limit of an ended command ended its child")
			}
		})
	}
}

// running is a command under way.
type running struct {
	pid  int
	done chan error
	res  capabilities.Result
	out  *capabilitytest.Output
}

func begin(ctx context.Context, t *testing.T, s *shell.Shell, ses *capabilities.Session, choice consent.Choice, p *wire.ProcessStart) *running {
	t.Helper()
	return beginCall(ctx, t, s, choice, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p))
}

func beginCall(ctx context.Context, t *testing.T, s *shell.Shell, choice consent.Choice, call capabilities.Call) *running {
	t.Helper()
	started := make(chan int, 1)
	r := &running{done: make(chan error, 1), out: &capabilitytest.Output{Hook: func(f capabilitytest.Frame) error {
		if st, ok := f.Payload.(*wire.ProcessStarted); ok {
			started <- st.PID
		}
		return nil
	}}}
	d, err := s.Describe(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	g := capabilitytest.GrantWith(t, call.Session, "shell", d, choice)
	go func() {
		res, err := s.Run(ctx, call, g, r.out)
		r.res = res
		r.done <- err
	}()
	select {
	case r.pid = <-started:
	case err := <-r.done:
		t.Fatalf("ended before it started: %v", err)
	case <-time.After(10 * time.Second):
		t.Fatal("not started after 10 s")
	}
	return r
}

func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("not back after 30 s")
		return nil
	}
}

func TestSignals(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			signal := func(in *capabilities.Session, pid int, sig string) error {
				p := &wire.ProcessSignal{SessionID: in.ID, PID: pid, Signal: sig}
				_, _, err := capabilitytest.Do(context.Background(), t, s, capabilitytest.NewCall(t, in, wire.TypeProcessSignal, p))
				return err
			}
			r := begin(context.Background(), t, s, ses, choice, bash(ses, "trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.02; done"))
			eventually(t, "it is ready", func() bool { return r.out.Bytes() > 0 })
			other := capabilitytest.NewSession(t, consent.ModeWork)
			if err := signal(other, r.pid, "SIGKILL"); wire.CodeOf(err) != wire.CodePathNotFound {
				t.Errorf("another session's signal: %v", err)
			}
			if err := signal(ses, os.Getpid(), "SIGKILL"); wire.CodeOf(err) != wire.CodePathNotFound {
				t.Errorf("a signal to a process that is not the session's: %v", err)
			}
			if err := signal(ses, r.pid, "SIGTERM"); err != nil {
				t.Fatal(err)
			}
			if err := r.wait(t); err != nil {
				t.Fatal(err)
			}
			if exit := r.res.Payload.(*wire.ProcessExited); exit.ExitCode != 7 || string(r.out.Contents("stdout")) != "ready\ngot\n" {
				t.Errorf("SIGTERM: %+v, %q", exit, r.out.Contents("stdout"))
			}

			n := uniqueSleep()
			r = begin(context.Background(), t, s, ses, choice, bash(ses, escapers(n)+"sleep "+n))
			eventually(t, "all sleep", func() bool { return sleeping(n) == 7 })
			if err := signal(ses, r.pid, "SIGKILL"); err != nil {
				t.Fatal(err)
			}
			if got := sleeping(n); got != 0 {
				t.Errorf("%d outlived SIGKILL", got)
			}
			if err := r.wait(t); err != nil {
				t.Fatal(err)
			}
			if exit := r.res.Payload.(*wire.ProcessExited); exit.ExitCode != -1 || exit.Signal != "killed" {
				t.Errorf("SIGKILL: %+v", exit)
			}
		})
	}
}

func TestCancelEndsEverything(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			n := uniqueSleep()
			ctx, cancel := context.WithCancel(context.Background())
			r := begin(ctx, t, s, ses, choice, bash(ses, escapers(n)+"sleep "+n))
			eventually(t, "all sleep", func() bool { return sleeping(n) == 7 })
			cancelled := time.Now()
			cancel()
			if err := r.wait(t); wire.CodeOf(err) != wire.CodeCancelled {
				t.Errorf("cancelled: %v", err)
			}
			if took := time.Since(cancelled); took > 5*time.Second || sleeping(n) != 0 {
				t.Errorf("back after %v with %d running", took, sleeping(n))
			}
		})
	}
}

// children of pid that are localpc-spawn.
func starters(t *testing.T, pid int) []int {
	t.Helper()
	var out []int
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		i := strings.LastIndexByte(string(b), ')')
		fields := strings.Fields(string(b[i+1:]))
		if fields[1] == strconv.Itoa(pid) {
			own, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			out = append(out, own)
		}
	}
	return out
}

// Whoever of the three is killed, the container's or the guard's parent or the
// one that runs the command, nothing runs on.
func TestKillingTheStarterLeavesNothing(t *testing.T) {
	for name, choice := range modes {
		for _, which := range []string{"outer", "inner", "inner stopped, then outer"} {
			t.Run(name+", "+which, func(t *testing.T) {
				t.Parallel()
				s := newShell(t)
				s.OneEach()
				ses := capabilitytest.NewSession(t, consent.ModeWork)
				n := uniqueSleep()
				r := begin(context.Background(), t, s, ses, choice, bash(ses, escapers(n)+"sleep "+n))
				eventually(t, "all sleep", func() bool { return sleeping(n) == 7 })
				inner := starters(t, r.pid)
				if len(inner) != 1 {
					t.Fatalf("%d children of %d", len(inner), r.pid)
				}
				victim := r.pid
				if which == "inner" {
					victim = inner[0]
				}
				if which == "inner stopped, then outer" {
					if err := syscall.Kill(inner[0], syscall.SIGSTOP); err != nil {
						t.Fatal(err)
					}
				}
				if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				if exit := r.res.Payload.(*wire.ProcessExited); exit.ExitCode != -1 || exit.Signal != "killed" {
					t.Errorf("%+v", exit)
				}
				if err := s.EndSession(context.Background(), ses.ID); err != nil {
					t.Fatal(err)
				}
				eventually(t, "nothing runs on", func() bool { return sleeping(n) == 0 })
			})
		}
	}
}

// helperProcess is the program that the next test kills.
func helperProcess() int {
	s, err := shell.New(shell.Options{Spawn: spawnPath, Home: os.TempDir(), LoginPath: systemPath})
	if err != nil {
		return 1
	}
	choice := modes[os.Getenv("SHELL_TEST_HELPER")]
	t := &testing.B{}
	ses := capabilitytest.NewSessionIn(t, os.Getenv("SHELL_TEST_BASE"), consent.ModeWork)
	call := capabilities.Call{Type: wire.TypeProcessStart, Session: ses, Payload: bash(ses, escapers(os.Getenv("SHELL_TEST_SLEEP"))+"sleep "+os.Getenv("SHELL_TEST_SLEEP"))}
	d, err := s.Describe(context.Background(), call)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("running")
	_, err = s.Run(context.Background(), call, capabilitytest.GrantWith(t, ses, "shell", d, choice), &capabilitytest.Output{})
	fmt.Println(err)
	return 1
}

func TestKillingTheProgramLeavesNothing(t *testing.T) {
	for name := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			n := uniqueSleep()
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "SHELL_TEST_HELPER="+name, "SHELL_TEST_SPAWN="+spawnPath, "SHELL_TEST_SLEEP="+n, "SHELL_TEST_BASE="+t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, _ := bufio.NewReader(out).ReadString('\n'); line != "running\n" {
				t.Fatalf("the helper says %q", line)
			}
			eventually(t, "all sleep", func() bool { return sleeping(n) == 7 })
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			eventually(t, "nothing runs on", func() bool { return sleeping(n) == 0 })
		})
	}
}

// A container has room for any build and is no fork bomb of the whole
// computer's size; full access is as the person has it.
func TestProcessLimit(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	if got := sh(t, s, ses, contained, "ulimit -u; ulimit -Hu"); got != "8192\n8192\n" {
		t.Errorf("contained: %q", got)
	}
	if got := sh(t, s, ses, full, "ulimit -u"); got == "8192\n" {
		t.Errorf("full access: %q", got)
	}
}
