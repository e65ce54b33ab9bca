package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// odd is a path that every format has to quote.
const odd = `/opt/it's 100% "my" $HOME \tools/локально`

func autostart(t *testing.T, display bool) (a Autostart, config string) {
	t.Helper()
	config = filepath.Join(t.TempDir(), "config")
	t.Setenv("XDG_CONFIG_HOME", config)
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	if !display {
		must(t, os.Mkdir(filepath.Join(run, "systemd"), 0o700))
	}
	return Autostart{Book: NewBook(t.TempDir()), Exe: "/usr/bin/true", Display: display}, config
}

func wantState(t *testing.T, a Autostart, want bool) {
	t.Helper()
	if on, problem := a.State(); on != want || problem != "" {
		t.Errorf("on is %v (%s), want %v", on, problem, want)
	}
}

func TestAutostartOfADesktop(t *testing.T) {
	a, config := autostart(t, true)
	entry := filepath.Join(config, "autostart", "localpc.desktop")
	wantState(t, a, false)
	must(t, a.Set(true))
	wantState(t, a, true)
	if out, err := exec.Command("desktop-file-validate", entry).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	// Switched off in the desktop's own settings, and on again here.
	text, err := os.ReadFile(entry)
	must(t, err)
	must(t, os.WriteFile(entry, append(text, "Hidden=true\n"...), 0o600))
	wantState(t, a, false)
	must(t, a.Set(true))
	wantState(t, a, true)
	must(t, a.Set(false))
	wantState(t, a, false)
	wantGone(t, config)
	must(t, a.Set(false))

	// One that the person wrote stays theirs.
	put(t, entry, "[Desktop Entry]\nExec=mine\n", 0o600)
	if err := a.Set(false); err == nil || !strings.Contains(err.Error(), entry) {
		t.Errorf("%v", err)
	}
	must(t, a.Set(true))
	must(t, os.WriteFile(entry, []byte("[Desktop Entry]\nExec=changed\n"), 0o600))
	left, err := a.Book.PutBack()
	if must(t, err); len(left) != 1 || left[0] != entry {
		t.Errorf("left: %v", left)
	}
	wantFile(t, entry, "[Desktop Entry]\nExec=changed\n")
}

func TestAutostartOfSystemd(t *testing.T) {
	a, config := autostart(t, false)
	must(t, a.Set(true))
	wantState(t, a, true)
	unit := filepath.Join(config, "systemd", "user", "localpc.service")
	if to, err := os.Readlink(filepath.Join(config, "systemd", "user", "default.target.wants", "localpc.service")); err != nil || to != unit {
		t.Errorf("it is not enabled: %q, %v", to, err)
	}
	must(t, a.Set(true))
	must(t, a.Set(false))
	wantState(t, a, false)
	wantGone(t, config)

	// One that was enabled with systemctl is on, and is not ours to end.
	packaged := filepath.Join(t.TempDir(), "localpc.service")
	put(t, packaged, "[Service]\nExecStart=/usr/bin/localpc\n", 0o644)
	wanted := filepath.Join(config, "systemd", "user", "default.target.wants", "localpc.service")
	must(t, os.MkdirAll(filepath.Dir(wanted), 0o755))
	must(t, os.Symlink(packaged, wanted))
	wantState(t, a, true)
	if err := a.Set(false); err == nil || !strings.Contains(err.Error(), "systemctl --user disable localpc") {
		t.Errorf("%v", err)
	}
	must(t, a.Set(true))
	wantGone(t, unit)
	must(t, os.Remove(wanted))

	// No unit can name a program like that.
	a.Exe = `/opt/"quoted"/localpc`
	if err := a.Set(true); err == nil || !strings.Contains(err.Error(), "quotes") {
		t.Errorf("%v", err)
	}
}

func TestAutostartNowhere(t *testing.T) {
	a, _ := autostart(t, true)
	a.Display = false
	if on, problem := a.State(); on || problem == "" {
		t.Errorf("%v, %q", on, problem)
	}
	if err := a.Set(true); err == nil || !strings.Contains(err.Error(), "neither a desktop") {
		t.Errorf("%v", err)
	}
}

// Two data directories of one person have an entry each.
func TestAutostartOfTwo(t *testing.T) {
	a, config := autostart(t, true)
	b := Autostart{Book: NewBook(t.TempDir()), Exe: a.Exe, Display: true, Data: "/srv/second"}
	must(t, a.Set(true))
	wantState(t, b, false)
	must(t, b.Set(true))
	must(t, a.Set(false))
	wantState(t, b, true)
	if all, _ := filepath.Glob(filepath.Join(config, "autostart", "*")); len(all) != 1 {
		t.Errorf("there are %v", all)
	}
}

// Whatever the paths are called, systemd and the desktop read them as they are.
func TestUnitAndEntryAreValid(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "100% $HOME tools", "локально")
	put(t, exe, "#!/bin/sh\n", 0o755)
	a := Autostart{Exe: exe, Data: dir + odd}
	unit := filepath.Join(dir, "test.service")
	put(t, unit, a.unit(), 0o600)
	cmd := exec.Command("systemd-analyze", "--user", "--recursive-errors=no", "verify", unit)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	entry := filepath.Join(dir, "test.desktop")
	put(t, entry, a.desktopEntry(), 0o600)
	if out, err := exec.Command("desktop-file-validate", entry).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// The entry runs what it says: as a desktop runs it, without a shell.
func TestEntryRuns(t *testing.T) {
	dir := t.TempDir()
	exe, out := filepath.Join(dir, "a $b \"c\"`d`"), filepath.Join(dir, "out")
	put(t, exe, "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" >'"+out+"'\n", 0o755)
	a := Autostart{Exe: exe, Data: odd}
	entry := filepath.Join(dir, "test.desktop")
	put(t, entry, a.desktopEntry(), 0o755)
	if b, err := exec.Command("gio", "launch", entry).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	want := exe + "\nrun\n--background\n--data\n" + odd + "\n"
	for range 200 {
		if b, _ := os.ReadFile(out); string(b) == want {
			return
		}
		exec.Command("sleep", "0.05").Run()
	}
	b, err := os.ReadFile(out)
	t.Errorf("it was run as\n%s (%v), want\n%s", b, err, want)
}
