package control_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/control"

	"go.uber.org/goleak"
)

// TestMain is also the child processes that some tests start.
func TestMain(m *testing.M) {
	if path := os.Getenv("CONTROL_TEST_LOCK"); path != "" {
		holdLock(path)
	}
	if path := os.Getenv("CONTROL_TEST_DIAL"); path != "" {
		dialAndAsk(path)
	}
	goleak.VerifyTestMain(m)
}

// holdLock is a child that takes the lock, says how that went, and stays.
func holdLock(path string) {
	_, err := control.Lock(path)
	fmt.Println(err)
	time.Sleep(time.Minute)
	os.Exit(0)
}

// dialAndAsk is a child that asks for the status.
func dialAndAsk(path string) {
	c, err := control.Dial(path)
	if err == nil {
		_, err = c.Do(control.Request{Op: control.OpStatus})
	}
	fmt.Println(err)
	os.Exit(0)
}

func child(t *testing.T, env string, uid int) (cmd *exec.Cmd, says string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if uid != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return cmd, strings.TrimSpace(line)
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := control.Lock(path)
	must(t, err)
	if _, err := control.Lock(path); !errors.Is(err, control.ErrRunning) {
		t.Errorf("a second one here: %v", err)
	}
	if _, says := child(t, "CONTROL_TEST_LOCK="+path, os.Getuid()); says != control.ErrRunning.Error() {
		t.Errorf("another process: %s", says)
	}
	release()
	holder, says := child(t, "CONTROL_TEST_LOCK="+path, os.Getuid())
	if says != "<nil>" {
		t.Fatalf("after it was released: %s", says)
	}
	if _, err := control.Lock(path); !errors.Is(err, control.ErrRunning) {
		t.Errorf("while another process has it: %v", err)
	}
	must(t, holder.Process.Kill())
	holder.Wait()
	release, err = control.Lock(path)
	if err != nil {
		t.Fatalf("after the other was killed: %v", err)
	}
	release()
	if _, err := control.Lock(filepath.Join(t.TempDir(), "none", "lock")); err == nil || errors.Is(err, control.ErrRunning) {
		t.Errorf("a lock that can't be made: %v", err)
	}
}

// Another user is turned away by who they are, not only by the file's mode;
// the person's own processes are let in.
func TestOtherUsers(t *testing.T) {
	_, path := listen(t, machine())
	if _, says := child(t, "CONTROL_TEST_DIAL="+path, os.Getuid()); says != "<nil>" {
		t.Errorf("the person's own process: %s", says)
	}
	if os.Getuid() != 0 {
		return // only root can be somebody else for a moment
	}
	must(t, os.Chmod(path, 0o666))
	exe, err := os.Executable()
	must(t, err)
	for _, file := range []string{path, exe} {
		for dir := filepath.Dir(file); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			must(t, os.Chmod(dir, 0o755))
		}
	}
	if _, says := child(t, "CONTROL_TEST_DIAL="+path, 65534); !strings.Contains(says, control.ErrNotRunning.Error()) {
		t.Errorf("another user: %s", says)
	}
	must(t, os.Chmod(path, 0o600))
	if _, says := child(t, "CONTROL_TEST_DIAL="+path, 65534); !strings.Contains(says, "permission denied") {
		t.Errorf("another user, with the file as it is: %s", says)
	}
}
