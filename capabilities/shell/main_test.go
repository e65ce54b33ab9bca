//go:build linux

package shell_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// spawnPath is localpc-spawn, built for this run where every user can reach it.
var spawnPath string

// The main goroutine keeps the main thread, for resist.
func init() {
	if os.Getenv("SHELL_TEST_RESIST") != "" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if spawnPath = os.Getenv("SHELL_TEST_SPAWN"); spawnPath == "" {
		dir, err := os.MkdirTemp("", "shelltest")
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		spawnPath = filepath.Join(dir, "localpc-spawn")
		build := exec.Command("go", "build", "-tags", "gles", "-o", spawnPath, "localpc/app/cmd/localpc-spawn")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "localpc-spawn was not built: %v\n%s", err, out)
			return 1
		}
	}
	if os.Getenv("SHELL_TEST_RESIST") != "" {
		return resist(os.Getenv("SHELL_TEST_RESIST"))
	}
	if os.Getenv("SHELL_TEST_HELPER") != "" {
		return helperProcess()
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// newShell makes a Shell whose person has an empty home.
func newShell(t testing.TB, change ...func(*shell.Options)) *shell.Shell {
	t.Helper()
	o := shell.Options{Spawn: spawnPath, Home: t.TempDir(), LoginPath: systemPath}
	for _, c := range change {
		c(&o)
	}
	s, err := shell.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if why := s.Probe(context.Background()); why != "" {
		t.Fatalf("these tests need containment: %s", why)
	}
	return s
}

var (
	contained = consent.Choice{Contain: consent.Contained}
	full      = consent.Choice{Contain: consent.FullAccess}
)

// bash is a command as the E2B SDK sends it.
func bash(ses *capabilities.Session, text string) *wire.ProcessStart {
	return &wire.ProcessStart{SessionID: ses.ID, Cmd: "/bin/bash", Args: []string{"-l", "-c", text}}
}

// ran is how a command went.
type ran struct {
	out, err string
	pty      []byte
	exit     *wire.ProcessExited
	res      capabilities.Result
	took     time.Duration
}

// do runs p, which must work.
func do(t testing.TB, s *shell.Shell, ses *capabilities.Session, choice consent.Choice, p *wire.ProcessStart) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	begin := time.Now()
	res, out, err := capabilitytest.DoWith(ctx, t, s, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p), choice)
	if err != nil {
		t.Fatalf("%s %q: %v", p.Cmd, p.Args, err)
	}
	return ran{string(out.Contents("stdout")), string(out.Contents("stderr")), out.Contents("pty"), res.Payload.(*wire.ProcessExited), res, time.Since(begin)}
}

// sh runs text and returns its output; it must end with code 0.
func sh(t testing.TB, s *shell.Shell, ses *capabilities.Session, choice consent.Choice, text string) string {
	t.Helper()
	r := do(t, s, ses, choice, bash(ses, text))
	if r.exit.ExitCode != 0 {
		t.Fatalf("%s: %s\n%s%s", text, r.res.Outcome, r.out, r.err)
	}
	return r.out
}
