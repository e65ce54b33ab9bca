//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// opened pairs, connects a program, and opens a session that asks for
// everything.
func opened(t testing.TB, p *program) *sdk {
	t.Helper()
	p.pair()
	s := newSDK(t, p.key("Research agent"))
	made := s.start("create", map[string]any{"timeoutMs": 3600_000})
	p.allowSession("Research agent", "Ask me each time")
	made.ok(20 * time.Second)
	return s
}

func (p *program) desktopPID() int {
	p.t.Helper()
	for _, f := range p.d.Processes() {
		if words := strings.Fields(f.Command); len(words) == 1 && strings.HasSuffix(words[0], "/localpc-desktop") {
			return f.PID
		}
	}
	p.t.Fatal("localpc-desktop does not run")
	return 0
}

// What is typed while a card opens, and Enter and Space in it, approve
// nothing; a crash of the window is undelivered, and the next card works.
//
// anthropics/claude-code#37955.
func TestACardIsAnsweredOnPurposeOnly(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{})
	s := opened(t, p)
	folder := p.status().Sessions[0].Folder
	ran := func(name string) bool { _, err := os.Stat(filepath.Join(folder, name)); return err == nil }

	// A person types in another window when the card comes.
	p.d.Start("xterm", "-title", "typing", "-e", "cat")
	p.d.WaitWindow(20*time.Second, "typing")
	focus := p.d.Focused()
	run := s.start("run", map[string]any{"cmd": "touch typed"})
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		p.d.Type("y 1 a")
		p.d.Key("Return")
		p.d.Key("space")
	}
	card := p.card("touch typed")
	if now := p.d.Focused(); now != focus {
		t.Errorf("the card took the keyboard: %q has it now, %q had it", now, focus)
	}
	// Given the keyboard by a click on its text, Enter and Space still do not allow.
	r, _ := card.Rect()
	p.d.Click(r.Min.X+40, r.Min.Y+20)
	time.Sleep(time.Second)
	for range 3 {
		p.d.Key("space")
		p.d.Key("Return")
	}
	time.Sleep(500 * time.Millisecond)
	if ran("typed") {
		t.Fatal("keys approved a command")
	}
	select {
	case <-run.done:
		run.failed(time.Second, "declined") // Enter on Deny, which has the focus, is a no
	default:
		p.press(card, "Deny")
		run.failed(20*time.Second, "declined")
	}
	p.noCard()

	// The two digits on the card allow by keyboard. Its clock goes on by itself.
	run = s.start("run", map[string]any{"cmd": "touch digits"})
	card = p.card("touch digits")
	card.WaitText(10*time.Second, "Closes", "in", "0:46")
	r, _ = card.Rect()
	p.d.Click(r.Min.X+40, r.Min.Y+20)
	time.Sleep(900 * time.Millisecond)
	p.d.Type(p.digitsOn(card))
	run.ok(20 * time.Second)
	if !ran("digits") {
		t.Error("the digits did not allow the command")
	}
	p.noCard()

	// A card whose request has ended is gone: its program dies while it asks.
	s2 := newSDK(t, s.env)
	s2.start("create", nil)
	p.card("Research agent")
	s2.kill()
	p.noCard()

	// The window crashes with a card open: undelivered; the next one works.
	run = s.start("run", map[string]any{"cmd": "touch crashed"})
	p.card("touch crashed")
	if err := syscall.Kill(p.desktopPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	run.failed(20*time.Second, "could not be shown")
	run = s.start("run", map[string]any{"cmd": "touch next"})
	p.press(p.card("touch next"), "Allow")
	run.ok(20 * time.Second)
	if ran("crashed") || !ran("next") {
		t.Errorf("crashed ran: %v, next ran: %v", ran("crashed"), ran("next"))
	}
}

// digitsOn reads the two digits that allow by keyboard: "or type 4 7".
func (p *program) digitsOn(card *apptest.Area) string {
	p.t.Helper()
	var digits string
	if !p.d.Until(10*time.Second, func() bool {
		r, err := foot(card)
		if err != nil {
			return false
		}
		digits = ""
		after := false
		for _, w := range p.d.In(r).Closely() {
			if strings.EqualFold(w.Text, "type") {
				after = true
				continue
			}
			if after && strings.Trim(w.Text, "0123456789") == "" {
				digits += w.Text
			}
		}
		return len(digits) == 2
	}) {
		p.t.Fatalf("no digits on the card: %q", card.Text())
	}
	return digits
}

// Stop everything ends commands of both kinds with all their children, says
// so when it is true, and nothing runs until the person resumes.
func TestStopEverything(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{})
	s := opened(t, p)
	marker := "31" + strconv.Itoa(os.Getpid())
	run := s.start("run", map[string]any{"cmd": "(setsid sleep " + marker + " &) ; sleep " + marker, "timeoutMs": 0})
	p.press(p.card("setsid sleep"), "Allow")
	p.noCard()
	if !p.d.Until(10*time.Second, func() bool { return len(sleepers(marker)) >= 2 }) {
		t.Fatalf("the command does not run: %v", sleepers(marker))
	}
	p.d.ClickTray("Stop", "everything")
	run.failed(20*time.Second, "stopped")
	p.waitStatus(20*time.Second, "stopped", func(s snapshot.Snapshot) bool { return s.Stopped != nil })
	if left := sleepers(marker); len(left) > 0 {
		t.Errorf("%v still run after \"Everything stopped\"", left)
	}
	s.start("run", map[string]any{"cmd": "echo no"}).failed(20*time.Second, "paused")
	p.must("resume")
	again := s.start("run", map[string]any{"cmd": "echo yes"})
	p.press(p.card("echo yes"), "Allow")
	again.ok(20 * time.Second)
}

// sleepers are the processes "sleep MARKER" of the whole machine.
func sleepers(marker string) []string {
	var out []string
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range dirs {
		b, err := os.ReadFile(f)
		if err == nil && string(b) == "sleep\x00"+marker+"\x00" {
			out = append(out, filepath.Base(filepath.Dir(f)))
		}
	}
	return out
}

// Where nothing shows tray icons, a small window takes their place, and goes
// on working when a panel comes.
func TestNoTrayHost(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{NoTray: true})
	p.d.WaitWindow(30*time.Second, "Local PC")
	// It opens behind the one that the person is at: Pair is still whole.
	p.d.WaitText(10*time.Second, "For", "programs", "that", "run", "on", "it")
	p.d.ClickText("Not", "now")
	p.d.WaitText(10*time.Second, "Stop", "everything")
	p.d.Screenshot("no-tray")
	p.d.StartTray()
	p.d.WaitTrayIcon(20 * time.Second)
	// A second start raises a window instead of a second copy.
	out, err := p.d.Run(30*time.Second, filepath.Join(p.bin, "localpc"), "run", "--data", p.data)
	if err != nil || !strings.Contains(out, "running already") && !strings.Contains(out, "runs already") {
		t.Errorf("a second start gave %q, %v", out, err)
	}
	p.d.WaitWindow(20*time.Second, "Pair") // it was not paired yet
	p.must("quit")
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("quit ended with %d", code)
	}
	if left := p.d.Leftovers(); len(left) > 0 {
		for _, f := range left {
			if strings.Contains(f.Command, "localpc") {
				t.Errorf("%s is left", f)
			}
		}
	}
}
