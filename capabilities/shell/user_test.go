//go:build linux

package shell_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAsAnOrdinaryUser runs the other tests as one, when root runs these,
// but for those to which the user makes no difference.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("SHELL_TEST_USER") != "" {
			t.Fatal("this test started itself")
		}
		return // they run as one already
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	tmp, err := os.MkdirTemp("", "shelltest-user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	// Where Go builds is for its user only.
	tests := filepath.Join(tmp, "tests")
	if err := copyFile(tests, self); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tests, "-test.skip=TestAsAnOrdinaryUser|TestFlood|TestOutputIsTheSameBytes|TestWhatACommandMade|TestNothingOutrunsAStop|TestWhatIsWokenIsEnded", "-test.timeout=400s", "-test.v")
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + systemPath, "HOME=" + tmp, "TMPDIR=" + tmp, "SHELL_TEST_SPAWN=" + spawnPath, "SHELL_TEST_USER=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestNothingOutsideIsReached") {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

func copyFile(dst, src string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
