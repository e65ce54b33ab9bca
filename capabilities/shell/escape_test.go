//go:build linux

package shell_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
)

// background starts a program that ends with the test, and returns what it
// first writes to its standard output.
func background(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make(chan string, 1)
	go func() {
		l, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(l)
	}()
	select {
	case l := <-line:
		return l
	case <-time.After(15 * time.Second):
		t.Fatalf("%s does not start", name)
		return ""
	}
}

// TestNothingOutsideIsReached tries each way out twice: with full access it
// must work, so that the attempt itself is right, and contained it must fail.
func TestNothingOutsideIsReached(t *testing.T) {
	home := t.TempDir()
	secret := filepath.Join(home, "secret.txt")
	if err := os.WriteFile(secret, []byte("the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	display := background(t, nil, "Xvfb", "-displayfd", "1", "-screen", "0", "64x64x24", "-nolisten", "tcp", "-ac")
	run := t.TempDir()
	bus := "unix:path=" + filepath.Join(run, "bus")
	background(t, nil, "dbus-daemon", "--session", "--nofork", "--print-address=1", "--address="+bus)
	abstract := fmt.Sprintf("unix:abstract=/tmp/shelltest-%d", os.Getpid())
	background(t, nil, "dbus-daemon", "--session", "--nofork", "--print-address=1", "--address="+abstract)
	keychain(t, home, run, bus)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	key := fmt.Sprintf("shelltest-%d", os.Getpid())
	id, err := unix.AddKey("user", key, []byte("kernel secret"), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		t.Fatalf("the kernel keeps no keys: %v", err)
	}
	defer func() { _, _ = unix.KeyctlInt(unix.KEYCTL_REVOKE, id, 0, 0, 0) }()

	connect := func(address string) string {
		return `/usr/bin/python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect("` + address + `")'`
	}
	attempts := map[string]string{
		"display, by a client":         "xdpyinfo -display :" + display + " >/dev/null",
		"display, socket file":         connect("/tmp/.X11-unix/X" + display),
		"display, abstract socket":     connect(`\0/tmp/.X11-unix/X` + display),
		"session bus":                  "dbus-send --bus=" + bus + " --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames",
		"session bus, abstract":        "dbus-send --bus=" + abstract + " --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames",
		"keychain":                     "DBUS_SESSION_BUS_ADDRESS=" + bus + " secret-tool lookup shell test | grep -q 'keychain secret'",
		"kernel keyring":               keyctl(key),
		"a file of the home":           "cat " + secret,
		"the home's list":              "ls " + home,
		"a file by another root":       "cat /proc/$PPID/root" + secret,
		"a process outside, signalled": "kill -0 " + fmt.Sprint(sleeper.Process.Pid),
		"a process outside, looked at": "grep -q sleep /proc/" + fmt.Sprint(sleeper.Process.Pid) + "/comm",
		"network to this computer":     fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", port),
		"the machine's identity":       "grep -q . /etc/machine-id",
		"a disk":                       "ls /dev/vd* /dev/sd* /dev/nvme* /dev/mem 2>/dev/null | grep -q .",
		"system programs, written":     "p=/usr/local/bin/shelltest-$$; touch $p && rm $p",
	}
	if os.Geteuid() == 0 {
		attempts["accounts, as root"] = "grep -q root /etc/shadow"
		attempts["a kernel setting, as root"] = "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern"
	} else {
		delete(attempts, "system programs, written")
		delete(attempts, "a file by another root")
	}
	if sh(t, newShell(t), capabilitytest.NewSession(t, consent.ModeWork), full, "ls /dev/vd* /dev/sd* /dev/nvme* /dev/mem 2>/dev/null; true") == "" {
		delete(attempts, "a disk")
	}
	if _, err := os.Stat("/etc/machine-id"); err != nil {
		delete(attempts, "the machine's identity") // a computer that was never started
	}
	s := newShell(t, func(o *shell.Options) { o.Home = home })
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for name, text := range attempts {
		if r := do(t, s, ses, full, bash(ses, text)); r.exit.ExitCode != 0 {
			t.Errorf("%s: the attempt fails even with full access (%s): %s%s", name, r.res.Outcome, r.out, r.err)
		}
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode == 0 {
			t.Errorf("%s was reached from inside: %s", name, r.out)
		}
	}
}

// keychain starts a real one on bus, unlocked, with a secret in it.
func keychain(t *testing.T, home, run, bus string) {
	t.Helper()
	env := []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + run, "XDG_DATA_HOME=" + home, "DBUS_SESSION_BUS_ADDRESS=" + bus}
	cmd := exec.Command("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader("password")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		store := exec.Command("secret-tool", "store", "--collection=session", "--label=shelltest", "shell", "test")
		store.Env = append(os.Environ(), env...)
		store.Stdin = strings.NewReader("keychain secret")
		out, err := store.CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the keychain takes no secret: %v: %s", err, out)
		}
	}
}

// keyctl reads a key of the session's keyring: keyctl(SEARCH), keyctl(READ).
func keyctl(name string) string {
	return `/usr/bin/python3 -c '
import ctypes, platform, sys
c = ctypes.CDLL(None, use_errno=True)
n = {"x86_64": 250, "aarch64": 219}[platform.machine()]
k = c.syscall(n, 10, -3, b"user", b"` + name + `", 0)
if k < 0: sys.exit(1)
b = ctypes.create_string_buffer(64)
sys.exit(0 if c.syscall(n, 11, k, b, 64) > 0 else 1)'`
}

func TestTheStarterIsOutOfReach(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for _, text := range []string{"cat /proc/1/environ", "cat /proc/1/maps", "readlink /proc/1/fd/0", "ls /proc/1/root/", "dd if=/proc/1/mem of=/dev/null count=1 bs=1", "ls /proc/1/cwd/", "cat /proc/1/fd/3 </dev/null"} {
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode == 0 {
			t.Errorf("%s worked: %s", text, r.out)
		}
		mine := strings.ReplaceAll(text, "/proc/1/", "/proc/self/")
		if r := do(t, s, ses, contained, bash(ses, mine)); r.exit.ExitCode != 0 && !strings.Contains(text, "mem") && !strings.Contains(text, "fd/3") {
			t.Errorf("%s does not work: %s", mine, r.err)
		}
	}
	// PTRACE_SEIZE of itself's child works, of process 1 it does not.
	trace := func(pid string) string {
		return `/usr/bin/python3 -c '
import ctypes, os, sys, time
pid = ` + pid + `
if pid == 0:
    pid = os.fork()
    if pid == 0:
        time.sleep(2); os._exit(0)
c = ctypes.CDLL(None, use_errno=True)
sys.exit(0 if c.ptrace(0x4206, ctypes.c_long(pid), None, None) == 0 else 1)'`
	}
	if r := do(t, s, ses, contained, bash(ses, trace("0"))); r.exit.ExitCode != 0 {
		t.Errorf("a command can't trace its own child: %s", r.err)
	}
	if r := do(t, s, ses, contained, bash(ses, trace("1"))); r.exit.ExitCode == 0 {
		t.Error("a command attached to localpc-spawn")
	}
	if r := do(t, s, ses, contained, bash(ses, "kill -9 1; kill -TERM 1; kill -INT 1; kill -STOP 1; sleep 0.1; echo alive")); r.out != "alive\n" {
		t.Errorf("signals to localpc-spawn: %q, %s", r.out, r.res.Outcome)
	}
}

func TestContainerHasNoRights(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	got := sh(t, s, ses, contained, `id -u; grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs)' /proc/self/status | tr -d '\t'; ls -A /run /home; ls -d /root /mnt /srv /sys 2>/dev/null; env | grep -cE 'DISPLAY|DBUS|XDG_RUNTIME'`+"; true")
	want := "1000\nCapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:0000000000000000\nCapBnd:0000000000000000\nCapAmb:0000000000000000\nNoNewPrivs:1\n/home:\nuser\n\n/run:\n0\n"
	if got != want {
		t.Errorf("inside:\n%s\nwant\n%s", got, want)
	}
	for _, text := range []string{
		"mount -o remount,rw /usr",
		"mount -t tmpfs none /tmp",
		"umount /usr",
		"unshare -Urm sh -c 'mount -o remount,bind,rw /usr && touch /usr/shelltest'",
		"unshare -Urm sh -c 'umount /usr && ls /usr/bin'",
		"unshare -Urm sh -c 'mount --bind /home/user /usr && umount /etc/passwd'",
		"unshare -Urmpf --mount-proc sh -c 'grep -q . /proc/sys/vm/nr_hugepages && echo 0 > /proc/sys/kernel/sysrq'",
		"unshare -Ur mknod /home/user/disk b 8 0",
		"unshare -Ur chroot /proc/1/root /bin/true",
		"unshare -Ur sh -c 'cat /proc/1/environ'",
		"sudo -n true",
		"su -c true </dev/null",
		"chroot / /bin/true",
		"ping -c1 -W1 192.0.2.1",
	} {
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode == 0 {
			t.Errorf("%s worked: %s", text, r.out)
		}
	}
}

func TestGitHooksStayAsTheyAre(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	sh(t, s, ses, full, "git init -q . && echo '#!/bin/sh' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit")
	hooks := filepath.Join(ses.Folder, ".git/hooks")
	before := capabilitytest.Tree(t, hooks)
	sh(t, s, ses, contained, `
		echo evil > .git/hooks/pre-commit
		echo evil > .git/hooks/post-checkout
		rm -rf .git/hooks
		mv .git/hooks .git/gone
		mv .git gone
		chmod 777 .git/hooks
		ln -f /usr/bin/true .git/hooks/pre-push
		unshare -Urm sh -c 'umount .git/hooks; echo evil > .git/hooks/pre-commit'
		mkdir -p new/.git/hooks; true`)
	if after := capabilitytest.Tree(t, hooks); after != before {
		t.Errorf("hooks changed:\n%s\nwere\n%s", after, before)
	}
	// Git itself goes on working.
	sh(t, s, ses, contained, `rm -rf .git/hooks/x; git config user.email a@b.c; git config user.name A; echo 1 > f; git add f; git commit -qm one --no-verify; git checkout -qb other; git mv f g; git commit -qam two --no-verify; git log --oneline | wc -l`)
	// A planted link does not lead the mount of the hooks elsewhere.
	sh(t, s, ses, full, "rm -rf .git && mkdir .git && ln -s /etc .git/hooks")
	if r := do(t, s, ses, contained, bash(ses, "cat .git/hooks/shadow")); r.exit.ExitCode == 0 {
		t.Errorf("a link at .git/hooks led outside: %s", r.out)
	}
}

func TestStartupFilesDoNotRun(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("BASH_ENV", filepath.Join(home, ".bashrc"))
	t.Setenv("ENV", filepath.Join(home, ".bashrc"))
	s := newShell(t, func(o *shell.Options) { o.Home = home })
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for _, dir := range []string{home, ses.Folder} {
		for _, n := range []string{".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_logout"} {
			if err := os.WriteFile(filepath.Join(dir, n), []byte("echo PLANTED\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, choice := range map[string]consent.Choice{"contained": contained, "full": full} {
		for _, args := range [][]string{{"-l", "-c", "echo ran"}, {"-c", "echo ran"}, {"-lc", "echo ran"}, {"--login", "-c", "echo ran"}, {"-i", "-c", "echo ran"}} {
			p := bash(ses, "")
			p.Args = args
			if r := do(t, s, ses, choice, p); r.out != "ran\n" {
				t.Errorf("%s, bash %q: %q", name, args, r.out)
			}
		}
		if got := sh(t, s, ses, choice, "bash -c 'echo inner'"); got != "inner\n" {
			t.Errorf("%s: BASH_ENV of this program was passed on: %q", name, got)
		}
	}
}

// NousResearch/hermes-agent#77164, devswha/gajae-code-app#121: this program's
// secrets are in no command's environment, and in no /proc/PID/environ.
func TestNothingOfThisProgramIsInAnEnvironment(t *testing.T) {
	t.Setenv("LOCALPC_TOKEN", "token-of-this-program")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "token-of-this-program")
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for name, choice := range map[string]consent.Choice{"contained": contained, "full": full} {
		got := sh(t, s, ses, choice, `p=$$; while [ "$p" -gt 1 ] 2>/dev/null; do
			n=$(cut -d' ' -f2 /proc/$p/stat 2>/dev/null); case "$n" in *.test*|*shelltest*) break;; esac
			tr '\0' '\n' < /proc/$p/environ 2>/dev/null; p=$(awk '/^PPid/{print $2}' /proc/$p/status); done; env`)
		if strings.Contains(got, "token-of-this-program") || !strings.Contains(got, "HOME=") {
			t.Errorf("%s: a secret of this program's environment is visible, or nothing is:\n%s", name, got)
		}
	}
}
