//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
)

// lent runs localpc at a machine that nobody sits at, with one folder lent
// beforehand: what would be asked is refused at once, so what works here works
// without a card after the session's own.
func lent(t *testing.T) (p *program, folder string) {
	t.Helper()
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true, NoBus: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p = &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	folder = filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	cmd := d.Command(filepath.Join(bin, "localpc"), "run", "--data", p.data, "--embedded-hub", p.addr, "--policy", "contained", "--folder", folder)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
	p.p = d.StartCmd("localpc", cmd)
	d.WaitOutput(p.p, 60*time.Second, "refused")
	p.pair()
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(p.data, "localpc.log")); t.Failed() && err == nil {
			t.Logf("log:\n%s", b)
		}
	})
	return p, folder
}

// script runs a program of testdata with one version of the E2B SDK and reads
// the JSON that it prints into v.
func script(t *testing.T, name, version string, env []string, v any, args ...string) {
	t.Helper()
	dir, err := filepath.Abs(sdkDir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("testdata", name), dir, version}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s with %s: %v\n%s%s", name, version, err, stdout.Bytes(), stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
		t.Fatalf("%s with %s printed %q: %v", name, version, stdout.Bytes(), err)
	}
}

// AutoGPT as it is: the calls of its shell and file tools work through the
// published SDK, in the folder and the session's own /tmp, with no card after
// the first; a volume is refused in words and not taken for granted.
func TestAutoGPTAsItIs(t *testing.T) {
	t.Parallel()
	p, folder := lent(t)
	for _, version := range []string{"e2b", "e2b-2.15"} {
		type run struct {
			Code     int
			Out, Err string
		}
		var got struct {
			Template                     []string
			Volume, Mounted, Profiles    string
			Login                        []string
			Found                        []any
			Stamped                      string
			Running                      bool
			Wrote, Tmp, TmpAgain, TmpDir string
			Scratch, Edited, Missing     string
			Glob                         []string
			Grep, GrepE                  string
			Bash, Fails, Again           run
			Gone, Slow                   string
			List, KilledFork             bool
			Big, Paused                  bool
			State, Woken, Back           string
			Ended                        bool
		}
		script(t, "autogpt.mjs", version, p.key("AutoGPT "+version), &got)
		is := func(what string, ok bool, v any) {
			t.Helper()
			if !ok {
				t.Errorf("%s, %s: %+v", version, what, v)
			}
		}
		is("the template", slices.Equal(got.Template, []string{"ready"}), got.Template)
		if version == "e2b" {
			is("a volume", strings.Contains(got.Volume, "Volumes are not offered"), got.Volume)
			is("a box with a volume", strings.Contains(got.Mounted, "Leave the volume mounts out"), got.Mounted)
		}
		is("what runs before commands", len(got.Login) == 7 && !slices.ContainsFunc(append(got.Login, got.Profiles), func(s string) bool { return !strings.Contains(s, "NotFoundError") }), append(got.Login, got.Profiles))
		is("found again", len(got.Found) == 1 && got.Found[0] == "running" && got.Stamped == "none" && got.Running, got.Found)
		is("written", got.Wrote == "/home/user/project/src/hello world.py" && got.Tmp == "/tmp/scratch.txt" && got.TmpAgain == got.Tmp && got.TmpDir == "/tmp/deep/er/x.txt", got)
		is("in /tmp", got.Scratch == "over\ndeep\n", got.Scratch)
		is("edited", got.Edited == "def hallo():\n    return \"héllo\"\n", got.Edited)
		is("what is not there", strings.Contains(got.Missing, "NotFoundError"), got.Missing)
		is("find", slices.Equal(got.Glob, []string{"/home/user/project/src/hello world.py"}), got.Glob)
		is("grep", got.Grep == "" && got.GrepE == "/home/user/project/src/hello world.py:2:    return \"héllo\"\n", got.Grep+got.GrepE)
		is("a command", got.Bash.Code == 0 && got.Bash.Out == "/home/user\n/home/user\nAnn42\n" && got.Bash.Err == "oops\n", got.Bash)
		is("one that fails", got.Fails.Code == 3 && got.Fails.Out == "out\n", got.Fails)
		is("one that is come back to", got.Again.Code == 5 && got.Again.Out == "last\n", got.Again)
		is("one that is not there", strings.Contains(got.Gone, "NotFoundError"), got.Gone)
		is("one that takes too long", got.Slow == "TimeoutError", got.Slow)
		is("one that is killed", got.List && got.KilledFork, got)
		is("a long result", got.Big, got.Big)
		is("paused and woken", got.Paused && got.State == "paused" && got.Woken == "# Notes\n" && got.Back == "over\n" && got.Ended, got)
		data, err := os.ReadFile(filepath.Join(folder, "project", "src", "hello world.py"))
		is("the person's file", err == nil && strings.Contains(string(data), "def hallo"), err)
		for _, name := range []string{"project", "notes.md", "0a1b2c3d4e5f-result.json"} {
			if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
