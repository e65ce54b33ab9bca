//go:build linux

package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/control"
	"localpc/app/snapshot"
)

// kept lists what is in the data directory, without the outputs' names.
func (p *program) kept() []string {
	p.t.Helper()
	var out []string
	err := filepath.WalkDir(p.data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(p.data, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return out
}

// secretsOf counts what the keychain has of this program.
func (p *program) secretsOf() int {
	p.t.Helper()
	out, err := p.d.Run(10*time.Second, "secret-tool", "search", "--all", "service", "localpc")
	if err != nil && !strings.Contains(err.Error(), "exit status 1") {
		p.t.Fatal(err)
	}
	return strings.Count(out, "label = ")
}

func (p *program) gone(path string) {
	p.t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		p.t.Errorf("%s is still there (%v)", path, err)
	}
}

// A program that is used, and starts by itself, is removed while it runs; the
// record is kept at first, and erased later.
func TestRemove(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{NoNotifications: true, Ordinary: true})
	p.pair()
	entry := filepath.Join(p.d.Home, ".config", "autostart")
	if out := p.must("autostart", "on"); !strings.Contains(out, "Saved") {
		t.Errorf("autostart on says %q", out)
	}
	p.waitStatus(10*time.Second, "autostart", func(s snapshot.Snapshot) bool { return s.Settings.Autostart })
	if out := p.must("autostart", "status"); !strings.HasPrefix(out, "On") {
		t.Errorf("autostart is %q", out)
	}
	if n := p.secretsOf(); n == 0 {
		t.Fatal("the keychain has nothing that could be removed")
	}
	if all, _ := filepath.Glob(filepath.Join(entry, "*.desktop")); len(all) != 1 {
		t.Errorf("autostart has %v", all)
	}
	for _, line := range [][]string{{"remove"}, {"remove", "--yes"}, {"remove", "--keep", "--erase", "--yes"}} {
		if _, err := p.cli(line...); err == nil || !strings.Contains(err.Error(), "exit status 2") {
			t.Errorf("%v: %v", line, err)
		}
	}
	out := p.must("remove", "--keep", "--yes")
	if !strings.Contains(out, "stays in "+p.data) {
		t.Errorf("it says\n%s", out)
	}
	if code := p.p.ExitCode(10 * time.Second); code != 0 {
		t.Errorf("the program ended with %d", code)
	}
	if n := p.secretsOf(); n != 0 {
		t.Errorf("the keychain still has %d items", n)
	}
	p.gone(entry)
	for _, name := range p.kept() {
		if !strings.HasPrefix(name, "machine.db") && !strings.HasPrefix(name, "outputs/") && !strings.HasPrefix(name, "versions/") {
			t.Errorf("%s was kept", name)
		}
	}
	if out, err := p.cli("record", "tail"); err != nil || !strings.Contains(out, "removed") {
		t.Errorf("the record that was kept: %v\n%s", err, out)
	}
	p.must("remove", "--erase", "--yes")
	p.gone(p.data)
	if _, err := p.cli("remove", "--erase", "--yes"); err == nil {
		t.Error("what is not there was removed again")
	}
}

// From the window it is the running program itself that removes everything,
// and ends.
func TestRemoveFromTheWindow(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{NoTray: true})
	p.pair()
	c, err := control.Dial(filepath.Join(p.data, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Intend(snapshot.Intent{Kind: snapshot.Remove, Text: "perhaps"}); err == nil {
		t.Error("it was removed without a choice")
	}
	if _, err := c.Intend(snapshot.Intent{Kind: snapshot.Remove, Text: "erase"}); err != nil {
		t.Fatal(err)
	}
	p.d.Screen().WaitSentence(30*time.Second, "Local PC Executor was removed")
	if code := p.p.ExitCode(30 * time.Second); code != 0 {
		t.Errorf("the program ended with %d:\n%s", code, p.p.Output())
	}
	p.gone(p.data)
	if n := p.secretsOf(); n != 0 {
		t.Errorf("the keychain still has %d items", n)
	}
	if left := p.d.Leftovers(); slices.ContainsFunc(left, func(f apptest.Found) bool { return strings.Contains(f.Command, "localpc") }) {
		t.Errorf("still running: %v", left)
	}
}

// The person who removes it in Settings reads how that went there: only when it
// is true, and for as long as they like.
func TestRemoveByMouse(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{NoTray: true})
	p.pair()
	p.d.CloseWindow(p.d.WaitWindow(20*time.Second, "Connect a program"))
	p.d.WaitWindow(20*time.Second, "Local PC")
	p.d.Window("Local PC").ClickText("Settings")
	w := p.d.WaitWindow(20*time.Second, "Settings")
	p.d.WaitText(20*time.Second, "General")
	at := p.d.Window("Settings")
	if !p.d.Until(30*time.Second, func() bool {
		p.d.Scroll(w.Rect.Min.X+w.Rect.Dx()/2, w.Rect.Min.Y+w.Rect.Dy()/2, 30)
		_, ok := at.FindText("Remove from this computer")
		return ok
	}) {
		t.Fatal("Settings has no way to remove it")
	}
	at.ClickText("Remove from this computer")
	at.WaitText(10*time.Second, "It takes away:")
	at.ClickText("Erase everything")
	if !p.d.Until(30*time.Second, func() bool {
		p.d.Scroll(w.Rect.Min.X+w.Rect.Dx()/2, w.Rect.Min.Y+w.Rect.Dy()/2, 30)
		_, ok := at.FindText("To confirm")
		return ok
	}) {
		t.Fatal("there is nothing to confirm")
	}
	field, _ := at.FindText("To confirm")
	p.d.Click(field.Min.X+40, field.Max.Y+20)
	p.d.Type("remove")
	p.d.Key("Return")
	at.WaitText(30*time.Second, "You can now uninstall")
	p.gone(p.data)
	if n := p.secretsOf(); n != 0 {
		t.Errorf("it is said to be removed, and the keychain has %d items", n)
	}
	time.Sleep(4 * time.Second) // somebody reads slowly
	p.d.Screenshot("removed")
	if _, ok := at.FindText("You can now uninstall"); !ok || !p.p.Running() {
		t.Error("the last word does not stay")
	}
	at.ClickText("Close")
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("the program ended with %d:\n%s", code, p.p.Output())
	}
	p.gone(p.data)
	if left := p.d.Leftovers(); slices.ContainsFunc(left, func(f apptest.Found) bool { return strings.Contains(f.Command, "localpc") }) {
		t.Errorf("still running: %v", left)
	}
}

// Where one step fails the others are done, it is named, and what it needs for
// another try stays.
func TestRemoveHalfDone(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{NoNotifications: true, NoTray: true})
	p.pair()
	p.must("quit")
	p.p.ExitCode(20 * time.Second)
	file := filepath.Join(p.data, "mine.txt")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := p.d.Command(filepath.Join(p.bin, "localpc"), "remove", "--erase", "--yes", "--data", p.data)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DBUS_SESSION_BUS_ADDRESS=") })
	half := p.d.StartCmd("remove", cmd)
	if code := half.ExitCode(30 * time.Second); code != 1 || !strings.Contains(half.Output(), "keychain of your desktop") {
		t.Errorf("it ended with %d:\n%s", code, half.Output())
	}
	p.gone(filepath.Join(p.data, "hub"))
	if got := p.kept(); !slices.Contains(got, "settings.toml") || slices.Contains(got, "control.sock") {
		t.Errorf("there are %v", got)
	}
	out := p.must("remove", "--erase", "--yes")
	if !strings.Contains(out, "Not this program's, so it stays: "+file) {
		t.Errorf("it says\n%s", out)
	}
	if got := p.kept(); len(got) != 1 || got[0] != "mine.txt" {
		t.Errorf("there are %v", got)
	}
	if n := p.secretsOf(); n != 0 {
		t.Errorf("the keychain still has %d items", n)
	}
}

// A second start shows what the first has to show, and from the background
// nothing.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{NoNotifications: true, NoTray: true}, "--background")
	p.pair()
	time.Sleep(time.Second)
	if _, ok := p.d.FindWindow("Activity"); ok {
		t.Error("a start in the background opened a window")
	}
	if out := p.must("run", "--background"); out != "" {
		t.Errorf("a second start in the background says %q", out)
	}
	p.must("run")
	p.d.WaitWindow(20*time.Second, "Activity")
	c, err := control.Dial(filepath.Join(p.data, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Intend(snapshot.Intent{Kind: snapshot.ShowWindow, Text: snapshot.WindowPair}); err != nil {
		t.Fatal(err)
	}
	p.d.WaitWindow(20*time.Second, "Connect")
	s := newSDK(t, p.key("Research agent"))
	made := s.start("create", nil)
	p.card("Research agent")
	if out := p.must("run"); !strings.Contains(out, "question") {
		t.Errorf("with a card that waits a second start says %q", out)
	}
	p.press(p.card("Research agent"), "Deny")
	made.failed(20*time.Second, "declined")

	// fyne-io/fyne#3092, #3059, #3869, #4671: closing windows ends nothing, they
	// stay closed whatever comes, and Quit quits.
	windows := []string{"Activity", "Connect"}
	gone := func() bool {
		return !slices.ContainsFunc(windows, func(w string) bool { _, there := p.d.FindWindow(w); return there })
	}
	for _, w := range windows {
		p.d.CloseWindow(p.d.WaitWindow(20*time.Second, w))
	}
	if !p.d.Until(20*time.Second, gone) {
		t.Fatal("windows that were closed are still there")
	}
	made = newSDK(t, p.key("Another agent")).start("create", nil)
	p.press(p.card("Another agent"), "Deny")
	made.failed(20*time.Second, "declined")
	p.noCard()
	if time.Sleep(time.Second); !gone() || !p.status().Hub.Online {
		t.Errorf("all windows closed: %v, connected: %v", gone(), p.status().Hub.Online)
	}
	p.must("quit")
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("quit ended with %d", code)
	}
}

// pairByCode pairs with a hub of one's own, without a display.
func (p *program) pairByCode(hub *ownHub) {
	p.t.Helper()
	pairing := p.d.Start(filepath.Join(p.bin, "localpc"), "pair", hub.address, "--code", "--data", p.data)
	p.d.WaitOutput(pairing, 20*time.Second, "type this code")
	hub.open("/pair").fill("Code", p.status().Connect.SignIn.UserCode).click("Go on").sees("I started this on that computer")
	hub.tick("I started this on that computer").click("Yes, connect this computer").sees("connected")
	p.d.WaitOutput(pairing, 20*time.Second, "Paired")
}

// The hub learns that the sign-in is over, also when this program does not run;
// a hub that is away does not keep it here.
func TestRemoveGivesTheSignInBack(t *testing.T) {
	t.Parallel()
	p := headless(t, apptest.Options{})
	hub := startHub(t, p.d, p.bin)
	pairAndQuit := func() {
		p.begin("running")
		p.pairByCode(hub)
		p.must("quit")
		p.p.ExitCode(20 * time.Second)
	}
	pairAndQuit()
	kept, err := p.d.Run(20*time.Second, "secret-tool", "lookup", "service", "localpc", "username", "hub-token "+hub.address+"@"+strings.TrimSpace(settingOf(t, p, "machine_id")))
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(kept, "lpa_")
	token, _, _ = strings.Cut(token, `"`)
	refused := func() bool {
		r, err := http.NewRequest(http.MethodGet, hub.address+"/ws/local-executor", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer lpa_"+token)
		r.Header.Set("Sec-WebSocket-Protocol", "localpc.v1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusUnauthorized
	}
	if refused() {
		t.Fatal("the hub does not take the sign-in in the first place")
	}
	if out := p.must("remove", "--erase", "--yes"); strings.Contains(out, "could not be told") {
		t.Errorf("it says\n%s", out)
	}
	if !refused() {
		t.Error("the hub still takes the sign-in")
	}
	pairAndQuit()
	hub.p.Stop(20 * time.Second)
	if out := p.must("remove", "--erase", "--yes"); !strings.Contains(out, "The hub "+hub.address+" could not be told: take this computer away on its page too.") {
		t.Errorf("it says\n%s", out)
	}
	p.gone(p.data)
	if n := p.secretsOf(); n != 0 {
		t.Errorf("the keychain still has %d items", n)
	}
}
