//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// startHeadless runs localpc in a terminal (script gives it one) and without a
// display. The returned writer is that terminal's keyboard.
func startHeadless(t testing.TB, args ...string) (*program, io.Writer) {
	t.Helper()
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	line := strings.Join(append([]string{filepath.Join(bin, "localpc"), "run", "--data", p.data, "--embedded-hub", p.addr}, args...), " ")
	cmd := d.Command("script", "-qefc", line, "/dev/null")
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	p.p = d.StartCmd("localpc", cmd)
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(p.data, "localpc.log")); t.Failed() && err == nil {
			t.Logf("terminal:\n%s\nlog:\n%s", p.p.Output(), b)
		}
	})
	d.WaitOutput(p.p, 20*time.Second, "without a display")
	return p, in
}

var typeDigits = regexp.MustCompile(`Type  (\d\d)`)

// lastDigits are those of the newest card in the terminal, once it says text.
func (p *program) lastDigits(text string) string {
	p.t.Helper()
	var digits string
	if !p.d.Until(20*time.Second, func() bool {
		out := p.p.Output()
		at := strings.LastIndex(out, text)
		if at < 0 {
			return false
		}
		m := typeDigits.FindStringSubmatch(out[at:])
		if m == nil {
			return false
		}
		digits = m[1]
		return true
	}) {
		p.t.Fatalf("no card about %q in the terminal:\n%s", text, p.p.Output())
	}
	return digits
}

// Without a display everything is asked, and answered, in the terminal.
func TestHeadlessAsksInTheTerminal(t *testing.T) {
	t.Parallel()
	p, keyboard := startHeadless(t)
	say := func(line string) {
		if _, err := io.WriteString(keyboard, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	p.pair()
	s := newSDK(t, p.key("Research agent"))
	made := s.start("create", nil)
	digits := p.lastDigits("wants to work on this computer")
	say("yes") // not an answer: the card stays
	say(digits + " a")
	made.ok(20 * time.Second)

	run := s.start("run", map[string]any{"cmd": "echo from the terminal"})
	say(p.lastDigits("echo from the terminal"))
	if r := resultOf(t, run.ok(20*time.Second)); r.Stdout != "from the terminal\n" {
		t.Errorf("the command gave %+v", r)
	}
	run = s.start("run", map[string]any{"cmd": "echo second"})
	p.lastDigits("echo second")
	say("d")
	run.failed(20*time.Second, "declined")

	p.waitStatus(10*time.Second, "one session", func(s snapshot.Snapshot) bool { return len(s.Sessions) == 1 })
	p.must("quit")
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("quit ended with %d", code)
	}
}

// Without display and terminal, what a policy does not settle is refused at
// once, and the rest runs.
func TestContainedPolicyWithoutAnybody(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true, NoBus: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	folder := filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mine.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	cmd := d.Command(filepath.Join(bin, "localpc"), "run", "--data", p.data, "--embedded-hub", p.addr, "--policy", "contained", "--folder", folder)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
	p.p = d.StartCmd("localpc", cmd)
	d.WaitOutput(p.p, 20*time.Second, "refused")
	p.pair()
	s := newSDK(t, p.key("Research agent"))
	s.start("create", nil).ok(20 * time.Second)
	if r := resultOf(t, s.start("run", map[string]any{"cmd": "cat mine.txt"}).ok(20*time.Second)); r.Stdout != "mine" {
		t.Errorf("the command gave %+v", r)
	}
	began := time.Now()
	s.start("write", map[string]any{"path": ".envrc", "data": "theirs"}).failed(20*time.Second, "neither a display nor a terminal")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the refusal took %s", took)
	}
	if b, err := os.ReadFile(filepath.Join(folder, ".envrc")); err == nil {
		t.Errorf("the file is %q", b)
	}
	// What is overwritten is kept.
	s.start("write", map[string]any{"path": "mine.txt", "data": "theirs"}).ok(20 * time.Second)
	p.must("undo", "session", p.status().Sessions[0].ID)
	if b, err := os.ReadFile(filepath.Join(folder, "mine.txt")); err != nil || string(b) != "mine" {
		t.Errorf("undone, the file is %q, %v", b, err)
	}
}
