package display

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities/computer/hands"
)

func TestMain(m *testing.M) {
	if how := os.Getenv("DISPLAY_TEST_FLING"); how != "" {
		switch how {
		case "types":
			typesOn()
		case "family":
			family()
		}
		fling(how)
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what takes milliseconds on a computer
// that has nothing else to do.
const patience = 40 * time.Second

// startX starts an X server that the test has alone, and returns its name.
func startX(t testing.TB, program string, args ...string) string {
	t.Helper()
	name, _ := runX(t, program, args...)
	return name
}

func runX(t testing.TB, program string, args ...string) (string, *exec.Cmd) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append(args, "-displayfd", "3", "-nolisten", "tcp", "-noreset")...)
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(r).ReadString('\n')
		io.Copy(io.Discard, r)
		r.Close()
		line <- strings.TrimSpace(s)
	}()
	select {
	case n := <-line:
		if n == "" {
			t.Fatalf("%s did not start", program)
		}
		return ":" + n, cmd
	case <-time.After(patience):
		t.Fatalf("%s said no display number", program)
	}
	return "", nil
}

// xvfb starts a server with one screen of this size.
func xvfb(t testing.TB, size string, args ...string) string {
	t.Helper()
	name := startX(t, "Xvfb", append([]string{"-screen", "0", size + "x24"}, args...)...)
	t.Setenv("DISPLAY", name)
	t.Setenv("XDG_SESSION_TYPE", "x11")
	t.Setenv("WAYLAND_DISPLAY", "")
	return name
}

func openAt(t testing.TB, name string) hands.Hands {
	t.Helper()
	env := map[string]string{"DISPLAY": name}
	h, err := Open(context.Background(), Options{Env: func(k string) string { return env[k] }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start runs a program on the display until the test ends.
func start(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "DISPLAY="+name)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// run runs a program on the display and returns what it prints.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "DISPLAY="+name)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// eventually waits until ok is true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func contains(all, part string) bool { return strings.Contains(all, part) }

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func rootOf(t testing.TB, name string) uint32 {
	t.Helper()
	c, err := dialX11(name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	return uint32(c.root)
}
