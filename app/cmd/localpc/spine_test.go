//go:build linux

package main

import (
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// The whole path on real parts, as a person and an agent go it: tray, Pair,
// key, SDK, cards by mouse, Activity.
func TestPairAskApproveRunShow(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{Width: 1280, Height: 800})
	d := p.d

	// The first start opens the Pair window; the tray menu raises it, too.
	d.WaitTrayIcon(20 * time.Second)
	d.ClickTray("Pair")
	pairing := d.Window("Pair")
	pairing.WaitText(20*time.Second, "This", "computer", "only")
	d.Screenshot("pair")
	connect := p.pairByMouse()
	d.Screenshot("connect")

	// The token is in the keychain and in no file.
	machine := p.status().Machine
	if machine == "" {
		t.Error("the computer has no name")
	}
	id := strings.TrimSpace(settingOf(t, p, "machine_id"))
	token, err := d.Run(20*time.Second, "secret-tool", "lookup", "service", "localpc", "username", "hub-token this@"+id)
	if err != nil || len(strings.TrimSpace(token)) < 20 {
		t.Fatalf("the token is not in the keychain: %q, %v", token, err)
	}
	noFileHolds(t, d.Home, strings.TrimSpace(token))

	// A key is made in the window, and shown once.
	connect.ClickText("Its", "name")
	d.Type("Research agent")
	connect.ClickText("Make", "a", "key")
	connect.WaitSentence(20*time.Second, "The key is shown only now")
	d.Screenshot("key")
	// The buttons are between the lines and the note below; each is looked for
	// in its own row, where reading is surest.
	above, note := connect.WaitText(10*time.Second, "only", "now"), connect.WaitText(10*time.Second, "You", "are", "asked")
	whole, _ := connect.Rect()
	buttons := d.In(image.Rect(whole.Min.X, above.Max.Y+90, whole.Max.X, note.Min.Y-4))
	buttons.ClickText("Copy")
	buttons.WaitText(10*time.Second, "Copied")
	copied, err := d.Run(10*time.Second, "xclip", "-o", "-selection", "clipboard")
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(strings.TrimSpace(copied), "\n")
	if len(env) != 3 || !strings.HasPrefix(env[0], "E2B_API_KEY=e2b_") {
		t.Fatalf("the copied lines are %q", copied)
	}
	buttons.ClickText("Done")
	noFileHolds(t, d.Home, strings.TrimPrefix(env[0], "E2B_API_KEY="))
	s := newSDK(t, env)

	// Creating a sandbox is one card: who, which folder, how.
	made := s.start("create", map[string]any{"timeoutMs": 600_000})
	card := p.card("Research agent")
	d.Screenshot("session-card")
	card.ClickText("Ask", "me", "each", "time")
	p.press(card, "Start")
	made.ok(20 * time.Second)
	p.noCard()

	// Each command is asked with its exact text. Two seconds later: allowed.
	asked := time.Now()
	run := s.start("run", map[string]any{"cmd": "echo hello-$((40+2)) && pwd"})
	card = p.card("echo hello-$((40+2))", "Exactly this runs")
	d.Screenshot("command-card")
	time.Sleep(max(0, 2*time.Second-time.Since(asked)))
	p.press(card, "Allow")
	if r := resultOf(t, run.ok(20*time.Second)); r.Stdout != "hello-42\n/home/user\n" || r.ExitCode != 0 {
		t.Errorf("the command gave %+v", r)
	}
	p.noCard()

	// Files are asked for too, and end up in the folder.
	write := s.start("write", map[string]any{"path": "notes/plan.md", "data": "one\ntwo\n"})
	p.press(p.card("plan.md"), "Allow")
	write.ok(20 * time.Second)
	p.noCard()
	folder := p.status().Sessions[0].Folder
	if b, err := os.ReadFile(filepath.Join(folder, "notes", "plan.md")); err != nil || string(b) != "one\ntwo\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	read := s.start("read", map[string]any{"path": "/home/user/notes/plan.md"})
	p.press(p.card("plan.md"), "Allow")
	if got := text(t, read.ok(20*time.Second)); got != "one\ntwo\n" {
		t.Errorf("read gave %q", got)
	}
	p.noCard()

	// Declined is told as declined.
	denied := s.start("run", map[string]any{"cmd": "touch forbidden"})
	p.press(p.card("touch forbidden"), "Deny")
	denied.failed(20*time.Second, "declined")
	if _, err := os.Stat(filepath.Join(folder, "forbidden")); err == nil {
		t.Error("a declined command ran")
	}

	// Forty seconds are not too late.
	asked = time.Now()
	late := s.start("run", map[string]any{"cmd": "echo late"})
	card = p.card("echo late")
	time.Sleep(time.Until(asked.Add(40 * time.Second)))
	p.press(card, "Allow")
	if r := resultOf(t, late.ok(20*time.Second)); r.Stdout != "late\n" {
		t.Errorf("the late command gave %+v", r)
	}
	p.noCard()

	// Nobody answers: expired, with the reason; then Allow next time in
	// Activity lets the same run once, and only once.
	never := s.start("run", map[string]any{"cmd": "echo never-answered"})
	p.card("echo never-answered")
	never.failed(65*time.Second, "Nobody answered")
	p.noCard()
	d.ClickTray("Activity")
	d.WaitWindow(20*time.Second, "Activity")
	activity := d.Window("Activity")
	p.choose([]string{"never-answered"}, "did", "not", "answer")
	d.Screenshot("activity-expired")
	p.detailButton("Allow", "next", "time")
	p.waitStatus(10*time.Second, "recorded", func(snapshot.Snapshot) bool {
		return strings.Contains(p.must("record", "tail"), "allowed next time")
	})
	again := s.start("run", map[string]any{"cmd": "echo never-answered"})
	if r := resultOf(t, again.ok(20*time.Second)); r.Stdout != "never-answered\n" {
		t.Errorf("the repeat gave %+v", r)
	}
	third := s.start("run", map[string]any{"cmd": "echo never-answered"})
	p.press(p.card("echo never-answered"), "Deny")
	third.failed(20*time.Second, "declined")

	// A running command is shown live, and stops when the person says so.
	long := s.start("run", map[string]any{"cmd": "echo begun; sleep 300", "timeoutMs": 0})
	p.press(p.card("sleep 300"), "Allow")
	p.waitStatus(20*time.Second, "working", func(s snapshot.Snapshot) bool { return s.State == snapshot.Working })
	p.noCard()
	p.choose([]string{"sleep", "300"}, "Output", "so", "far")
	activity.WaitSentence(20*time.Second, "Exactly this runs echo begun; sleep 300")
	d.Screenshot("activity-running")
	if out := long.streamed(); out != "begun\n" {
		t.Errorf("the program has been sent %q while its command runs", out)
	}
	p.detailButton("Stop", "this")
	long.failed(20*time.Second, "stopped")

	if out := p.must("record", "verify"); !strings.Contains(out, "whole") {
		t.Errorf("record verify says %q", out)
	}
	s.start("kill", nil).ok(20 * time.Second)
	p.waitStatus(10*time.Second, "closed", func(s snapshot.Snapshot) bool { return len(s.Sessions) == 0 })
}

// settingOf reads one line of the settings file.
func settingOf(t testing.TB, p *program, key string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.data, "settings.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key+" = "); ok {
			return strings.Trim(strings.TrimSpace(rest), `"`)
		}
	}
	t.Fatalf("the settings have no %s: %s", key, b)
	return ""
}

// noFileHolds looks for a secret in every file below a folder.
func noFileHolds(t testing.TB, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.Contains(path, "keyrings") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), secret) {
			t.Errorf("%s holds the token", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
