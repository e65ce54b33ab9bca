//go:build linux

package shell_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// parent of a process, 0 when it has gone.
func parent(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	f := strings.Fields(rest)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// boxOf is the keeper of the container that a command is in.
func boxOf(t *testing.T, r *running) int {
	t.Helper()
	k := parent(r.pid)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", k))
	if err != nil || !strings.Contains(string(b), "\x00keep") {
		t.Fatalf("the command's process 1, %d, is not below a keeper: %q, %v", r.pid, b, err)
	}
	return k
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// Commands of a session start in one container. They share its network; none of
// them sees, signals or attaches to another, and none has the rights of who
// starts them.
func TestCommandsInOneContainerAreApart(t *testing.T) {
	s := newShell(t)
	if !s.Keeps() {
		t.Fatal("containers are not entered once here")
	}
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	p := bash(ses, "exec 9> held; python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",4321)); s.listen(); u=socket.socket(socket.AF_UNIX); u.bind(\"\\0abstract\"); u.listen(); open(\"up\",\"w\"); time.sleep(600)' & sleep 600")
	p.Env = map[string]string{"WORD": "the-other-s-secret"}
	other := begin(t.Context(), t, s, ses, contained, p)
	keeper := boxOf(t, other)
	eventually(t, "the other is up", func() bool { _, err := os.Stat(filepath.Join(ses.Folder, "up")); return err == nil })
	for what, text := range map[string]string{
		"network":         "exec 3<>/dev/tcp/127.0.0.1/4321",
		"abstract socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0abstract\")'",
	} {
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode != 0 {
			t.Errorf("a command does not share its session's %s: %s", what, r.err)
		}
	}
	second := begin(t.Context(), t, s, ses, contained, at(ses, 80, 24, "sleep", "600"))
	if k := boxOf(t, second); k != keeper {
		t.Errorf("the second command is in another container (%d, %d)", k, keeper)
	}
	inside := func(pid int) string { // its numbers in the namespaces that it is in
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for _, l := range strings.Split(string(b), "\n") {
			if rest, ok := strings.CutPrefix(l, "NSpid:"); ok {
				return strings.TrimSpace(rest)
			}
		}
		return ""
	}
	numbers := strings.Fields(inside(other.pid))
	numbers = append(numbers, strings.Fields(inside(keeper))...)
	if len(numbers) < 5 || numbers[2] != "1" {
		t.Fatalf("the command's process 1 has the numbers %q", numbers)
	}
	for what, text := range map[string]string{
		"seeing the others":        "ps ax -o pid= -o args= | grep -E 'sleep 600|python3 -c|bwrap|init' | grep -v grep",
		"their environment":        "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep the-other",
		"more processes in /proc":  "test $(ls /proc | grep -c '^[0-9]') -gt 6",
		"signals by their numbers": "for n in " + strings.Join(numbers, " ") + " $(seq 300 20 600); do [ $n -gt 1 ] && kill -0 $n 2>/dev/null && exit 0; done; exit 1",
		"signals to all":           "trap '' TERM; kill -TERM -1; kill -KILL -1; exit 1",
		"raw network":              "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' || python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 6)'",
		"the network's settings":   "ip link set lo down || ip addr add 192.0.2.1/32 dev lo || test -w /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/net/ipv4/ip_forward",
		"process 1's memory":       "cat /proc/1/environ || cat /proc/1/maps || readlink /proc/1/fd/3 || readlink /proc/1/ns/pid || dd if=/proc/1/mem of=/dev/null bs=1 count=1",
		"rights":                   "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status || grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/1/status",
		"privileges by programs":   "! grep -q 'NoNewPrivs:.1' /proc/self/status",
		"a namespace":              "unshare -p true || unshare -m true || unshare -Ur true || unshare -n true || nsenter -t 1 -m true",
		"mounts":                   "umount /proc || mount -t proc proc /proc || mount -o remount,rw /usr || mount -t tmpfs none /tmp",
		"the covered /proc":        "ls -A /.proc 2>/dev/null | grep -q .",
		"the computer's settings":  "test -w /proc/sys/kernel/core_pattern || test -w /proc/sysrq-trigger",
		"the keeper's socket":      "ls -l /proc/self/fd | grep -q socket",
		"a terminal of another":    "ls /dev/pts | grep -q '[0-9]'",
	} {
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode == 0 {
			t.Errorf("%s: %s", what, r.out)
		}
	}
	// Nor is anything of another left open in one.
	if got := sh(t, s, ses, contained, "ls /proc/self/fd | wc -l"); got != "4\n" { // 0, 1, 2, and the list's own
		t.Errorf("open: %s", sh(t, s, ses, contained, "ls -l /proc/self/fd"))
	}
	if got := sh(t, s, ses, contained, "echo $$; ps ax -o comm= | sort | tr '\\n' ' '; readlink /proc/self | tr -d 0-9; ip -o addr 2>/dev/null | grep -c ' lo ' || true; cat /proc/self/cgroup | wc -l"); !strings.HasPrefix(got, "2\n") {
		t.Errorf("inside: %s", got)
	}
	for _, r := range []*running{other, second} {
		if !alive(r.pid) {
			t.Error("a command was ended by another one")
		}
	}
}

// A terminal, and each command where containers are not entered once, has a
// container of its own, which has nothing of the computer's /proc either.
func TestContainersOfTheirOwnHaveNoOtherProc(t *testing.T) {
	s, ses := newShell(t), capabilitytest.NewSession(t, consent.ModeWork)
	for what, text := range map[string]string{
		"the computer's /proc":    "ls -A /.proc 2>/dev/null | grep -q .",
		"the computer's settings": "find / -name core_pattern -writable 2>/dev/null | grep -q . || find / -maxdepth 2 -name sysrq-trigger -writable 2>/dev/null | grep -q .",
	} {
		p := bash(ses, text)
		p.PTY = &wire.TerminalSize{Cols: 80, Rows: 24}
		if r := do(t, s, ses, contained, p); r.exit.ExitCode == 0 {
			t.Errorf("at a terminal, %s: %s", what, r.pty)
		}
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode == 0 {
			t.Errorf("in one container, %s: %s", what, r.out)
		}
	}
	s.OneEach()
	for _, text := range []string{"ls -A /.proc 2>/dev/null | grep -q .", "test -w /.proc/sys/kernel/core_pattern"} {
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode == 0 {
			t.Errorf("in a container of its own, %s: %s", text, r.out)
		}
	}
}

// A container is kept while it is as it has to be, and for as long as it is
// used; then it goes, with all that is in it.
func TestAContainerEnds(t *testing.T) {
	defer shell.EmptyFor(700 * time.Millisecond)()
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	start := func(ses *capabilities.Session) *running {
		return begin(t.Context(), t, s, ses, contained, bash(ses, "sleep 600"))
	}
	end := func(r *running) {
		t.Helper()
		call := capabilitytest.NewCall(t, ses, wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: ses.ID, PID: r.pid, Signal: "SIGKILL"})
		if _, _, err := capabilitytest.Do(t.Context(), t, s, call); err != nil {
			t.Error(err)
		}
	}
	a := start(ses)
	first := boxOf(t, a)
	// The mode changes: what runs goes on where it is.
	look := *ses
	look.Mode = consent.ModeLook
	b := start(&look)
	if boxOf(t, b) == first {
		t.Error("a session that only looks shares a container with one that works")
	}
	if r := do(t, s, &look, contained, bash(&look, "touch no")); r.exit.ExitCode == 0 {
		t.Error("a session that only looks wrote in its folder")
	}
	if !alive(first) || !alive(a.pid) {
		t.Error("a change of the mode ended a command")
	}
	end(a)
	eventually(t, "the old container ends with its last command", func() bool { return !alive(first) })
	end(b)
	c := start(ses)
	second := boxOf(t, c)
	// New hooks are held as they are, in the same container: what a command serves
	// there is still reached.
	sh(t, s, ses, contained, "git init -q .")
	d := start(ses)
	if boxOf(t, d) != second {
		t.Error("a new repository has its commands in another container")
	}
	if r := do(t, s, ses, contained, bash(ses, "touch .git/hooks/x || mv .git gone || mv .git/hooks .git/gone")); r.exit.ExitCode == 0 {
		t.Error("a hook was made")
	}
	sh(t, s, ses, contained, "git config user.name me && rm -rf .git/objects/pack && git config user.name")
	end(c)
	time.Sleep(time.Second)
	if !alive(second) {
		t.Error("a container ended while a command ran in it")
	}
	end(d)
	eventually(t, "an empty container ends after a while", func() bool { return !alive(second) })
	// Another one opens, and ends with the session.
	e := start(ses)
	fourth := boxOf(t, e)
	if err := s.EndSession(context.Background(), ses.ID); err != nil || alive(fourth) {
		t.Errorf("%v; the container outlived its session: %v", err, alive(fourth))
	}
	// The folder's place is taken by another one.
	f := start(ses)
	fifth := boxOf(t, f)
	if err := os.Rename(ses.Folder, ses.Folder+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ses.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := s.Describe(t.Context(), capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "ls")))
	if wire.CodeOf(err) != wire.CodeChanged {
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil || alive(fifth) {
		t.Errorf("%v; the container outlived the program: %v", err, alive(fifth))
	}
}

// Whoever of those above a command is killed or stopped, nothing of it runs on.
func TestKillingTheKeeperLeavesNothing(t *testing.T) {
	for what, harm := range map[string]func(t *testing.T, r *running){
		"process 1":      func(t *testing.T, r *running) { _ = syscall.Kill(r.pid, syscall.SIGKILL) },
		"keeper":         func(t *testing.T, r *running) { _ = syscall.Kill(boxOf(t, r), syscall.SIGKILL) },
		"bubblewrap":     func(t *testing.T, r *running) { _ = syscall.Kill(parent(boxOf(t, r)), syscall.SIGKILL) },
		"keeper stopped": func(t *testing.T, r *running) { _ = syscall.Kill(boxOf(t, r), syscall.SIGSTOP) },
		"keeper stopped, then process 1": func(t *testing.T, r *running) {
			_ = syscall.Kill(boxOf(t, r), syscall.SIGSTOP)
			_ = syscall.Kill(r.pid, syscall.SIGKILL)
		},
		"keeper stopped, then bubblewrap": func(t *testing.T, r *running) {
			_ = syscall.Kill(boxOf(t, r), syscall.SIGSTOP)
			_ = syscall.Kill(parent(boxOf(t, r)), syscall.SIGKILL)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			n := uniqueSleep()
			r := begin(context.Background(), t, s, ses, contained, bash(ses, escapers(n)+"sleep "+n))
			eventually(t, "all sleep", func() bool { return sleeping(n) == 7 })
			harm(t, r)
			if !strings.HasPrefix(what, "keeper stopped") || strings.HasSuffix(what, "bubblewrap") {
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				if exit := r.res.Payload.(*wire.ProcessExited); exit.ExitCode != -1 || exit.Signal != "killed" {
					t.Errorf("%+v", exit)
				}
			}
			if err := s.EndSession(context.Background(), ses.ID); err != nil {
				t.Error(err)
			}
			eventually(t, "nothing runs on", func() bool { return sleeping(n) == 0 })
			// And the next command runs again.
			if got := sh(t, s, ses, contained, "echo again"); got != "again\n" {
				t.Errorf("%q", got)
			}
		})
	}
}

// Commands that come at once each have their own output, exit code and end.
func TestManyAtOnceInOneContainer(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	done := make(chan string, 100)
	for i := range 100 {
		go func() {
			r := do(t, s, ses, contained, bash(ses, fmt.Sprintf("echo %d; echo err%d >&2; exit %d", i, i, i)))
			if r.out != fmt.Sprintln(i) || r.err != fmt.Sprintf("err%d\n", i) || r.exit.ExitCode != i || r.exit.Running != 0 {
				done <- fmt.Sprintf("%d: %q, %q, %+v", i, r.out, r.err, r.exit)
				return
			}
			done <- ""
		}()
	}
	for range 100 {
		if bad := <-done; bad != "" {
			t.Error(bad)
		}
	}
}
