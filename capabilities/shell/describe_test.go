//go:build linux

package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

func describe(t *testing.T, s *shell.Shell, ses *capabilities.Session, p *wire.ProcessStart) capabilities.Description {
	t.Helper()
	d, err := s.Describe(context.Background(), capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestShownIsWhatRuns(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	text := "echo 'a  b'\ttab; # \u202e hidden\necho second >> x"
	if d := describe(t, s, ses, bash(ses, text)); d.Exact != text || strings.ContainsAny(d.Title, "\n\t\u202e") {
		t.Errorf("exact %q, title %q", d.Exact, d.Title)
	}
	for _, argv := range [][]string{{"ls", "-la"}, {"printf", "%s|", "a b", "it's", "", "$HOME", "`id`", "x\ny", "*", "~", "#", "ä"}, {"bash", "script.sh", "x y"}} {
		d := describe(t, s, ses, &wire.ProcessStart{SessionID: ses.ID, Cmd: argv[0], Args: argv[1:]})
		// Read by a shell, the text gives the same arguments.
		got := sh(t, s, ses, contained, "f() { printf '%s\\0' \"$@\"; }; f "+d.Exact)
		if got != strings.Join(argv, "\x00")+"\x00" {
			t.Errorf("%q is shown as %s, which reads as %q", argv, d.Exact, got)
		}
	}
	r := do(t, s, ses, contained, &wire.ProcessStart{SessionID: ses.ID, Cmd: "printf", Args: []string{"%s|", "a b", "$HOME", "*"}})
	if r.out != "a b|$HOME|*|" {
		t.Errorf("arguments arrive as %q", r.out)
	}
	// Only the system's bash is left out of what is shown: a rule for its text
	// must not cover another program of that name.
	for _, cmd := range []string{"./bash", "/home/user/bash", ses.Folder + "/bash", "sub/bash", "/usr/bin/../bin/bash"} {
		p := &wire.ProcessStart{SessionID: ses.ID, Cmd: cmd, Args: []string{"-l", "-c", "echo hi"}}
		if d := describe(t, s, ses, p); d.Exact != cmd+" -l -c 'echo hi'" || d.Rule.Exact != d.Exact {
			t.Errorf("%s is shown as %q, its rule is %q", cmd, d.Exact, d.Rule.Exact)
		}
	}
	if err := os.WriteFile(filepath.Join(ses.Folder, "bash"), []byte("#!/bin/sh\necho mine: \"$@\""), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := do(t, s, ses, contained, &wire.ProcessStart{SessionID: ses.ID, Cmd: "./bash", Args: []string{"-c", "echo hi"}}); r.out != "mine: -c echo hi\n" {
		t.Errorf("./bash ran as %q", r.out)
	}
	// openclaw#23276: the rule is the whole text, not the shell.
	if d := describe(t, s, ses, bash(ses, "npm test")); d.Rule.Exact != "npm test" || !slices.ContainsFunc(d.Details, func(l string) bool { return strings.Contains(l, "package.json") }) {
		t.Errorf("rule %+v, details %q", d.Rule, d.Details)
	}
}

// verdict is what the policy says of a request in "Work in this folder".
func verdict(ses *capabilities.Session, d capabilities.Description) consent.Outcome {
	return policy.Policy{}.Decide(capabilitytest.Request(ses, "shell", d), nil, time.Now()).Outcome
}

func TestVariablesThatChangeWhatRunsAreAsked(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	if got := verdict(ses, describe(t, s, ses, bash(ses, "make"))); got != consent.Allowed {
		t.Fatalf("a contained command is %q, not allowed", got)
	}
	for _, k := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "PATH", "PYTHONSTARTUP", "PYTHONPATH", "NODE_OPTIONS", "GIT_SSH_COMMAND",
		"GIT_CONFIG_COUNT", "GIT_EXTERNAL_DIFF", "npm_config_script_shell", "BASH_FUNC_ls%%", "PERL5OPT", "RUBYOPT", "IFS", "PS4", "HOME", "PAGER", "RUSTC_WRAPPER", "GOFLAGS"} {
		p := bash(ses, "make")
		p.Env = map[string]string{k: "x y"}
		d := describe(t, s, ses, p)
		if got := verdict(ses, d); got != "" || d.Rule.Env != k+"='x y'" && k != "BASH_FUNC_ls%%" || !slices.Contains(d.Details, "With "+d.Rule.Env) {
			t.Errorf("%s: %q, rule %q, details %q", k, got, d.Rule.Env, d.Details)
		}
		// The session's own variables count the same.
		other := *ses
		other.Env = p.Env
		if got := verdict(&other, describe(t, s, &other, bash(ses, "make"))); got != "" {
			t.Errorf("%s of the session: %q", k, got)
		}
	}
	for _, k := range []string{"DEBUG", "CI", "LANG", "NO_COLOR", "GIT_AUTHOR_NAME", "PORT"} {
		p := bash(ses, "env")
		p.Env = map[string]string{k: "v 1"}
		if got := verdict(ses, describe(t, s, ses, p)); got != consent.Allowed {
			t.Errorf("%s: %q", k, got)
		}
		for name, choice := range modes {
			if r := do(t, s, ses, choice, p); !strings.Contains(r.out, k+"=v 1\n") {
				t.Errorf("%s: %s did not arrive", name, k)
			}
		}
	}
}

// Which display a contained command draws on is its own affair: it reaches those
// of its session only. What stands beside that is asked about as ever.
func TestADisplayInAContainerIsNotAsked(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	ses.Env = map[string]string{"DISPLAY": ":0"}
	for text, want := range map[string]consent.Outcome{
		"xdotool click 1":                                 consent.Allowed,
		"DISPLAY=:7 xdotool click 1":                      consent.Allowed,
		"export DISPLAY=:7; xdotool click 1":              consent.Allowed,
		"env DISPLAY=:7 xdotool click 1":                  consent.Allowed,
		"DISPLAY=:7 LD_PRELOAD=./x xdotool":               "",
		"export DISPLAY=:7; unset DISPLAY; ssh a.example": "",
	} {
		if d := describe(t, s, ses, bash(ses, text)); verdict(ses, d) != want || strings.Contains(text, "LD_PRELOAD") != slices.ContainsFunc(d.Effects, func(e consent.Effect) bool { return e.Kind == consent.EffectEnv }) {
			t.Errorf("%s: %q, %+v", text, verdict(ses, d), d.Effects)
		}
	}
	if r := do(t, s, ses, contained, bash(ses, "echo $DISPLAY")); r.out != ":0\n" {
		t.Errorf("it arrives as %q", r.out)
	}
	// With full access, which the card offers too, it may be the person's: said
	// where it stands in the text, and where the session has it.
	for text, env := range map[string]string{"DISPLAY=:0 xdotool click 1": "", "xdotool click 1": ":0", "ls": ""} {
		ses.Env = map[string]string{"DISPLAY": env}
		if env == "" {
			ses.Env = nil
		}
		d := describe(t, s, ses, bash(ses, text))
		if said := slices.Contains(d.Details, "With full access, DISPLAY may be your own screen"); said != (text != "ls") || !d.FullOffered {
			t.Errorf("%s: the card says %q", text, d.Details)
		}
	}
}

func TestAScriptThatChangesIsAskedAgain(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ses.Folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ses.Folder, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"./run.sh", "bash run.sh", "cd /; sh /home/user/run.sh x", "X=1 ./sub/../run.sh|cat", "sh " + ses.Folder + "/run.sh", "sh ~/run.sh", "sh<run.sh"} {
		write("run.sh", "echo one", 0o755)
		call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, text))
		d, err := s.Describe(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		g := capabilitytest.GrantWith(t, ses, "shell", d, contained)
		write("run.sh", "echo two", 0o755)
		if _, err := s.Run(context.Background(), call, g, &capabilitytest.Output{}); !errors.Is(err, consent.ErrChanged) {
			t.Errorf("%s: %v, want ErrChanged", text, err)
		}
	}
	// Data that a command names may change.
	write("data.txt", "one", 0o644)
	before := describe(t, s, ses, bash(ses, "cat data.txt"))
	write("data.txt", "two", 0o644)
	if describe(t, s, ses, bash(ses, "cat data.txt")).Fingerprint != before.Fingerprint {
		t.Error("data counts as a script")
	}
}

func TestWorkingDirectories(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	if err := os.MkdirAll(filepath.Join(ses.Folder, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cwd, within, real string }{
		{"", "/home/user", ses.Folder},
		{"~", "/home/user", ses.Folder},
		{"/home/user", "/home/user", ses.Folder},
		{"a/b", "/home/user/a/b", ses.Folder + "/a/b"},
		{"~/a", "/home/user/a", ses.Folder + "/a"},
		{"/home/user/a/b/", "/home/user/a/b", ses.Folder + "/a/b"},
		{ses.Folder + "/a", "/home/user/a", ses.Folder + "/a"},
		{"/usr/lib", "/usr/lib", "/usr/lib"},
		{"/tmp", "/tmp", "/tmp"},
	} {
		p := bash(ses, "pwd -P")
		p.Cwd = c.cwd
		if r := do(t, s, ses, contained, p); r.out != c.within+"\n" {
			t.Errorf("%q contained: %s", c.cwd, r.out)
		}
		if r := do(t, s, ses, full, p); r.out != c.real+"\n" {
			t.Errorf("%q with full access: %s", c.cwd, r.out)
		}
	}
	for _, cwd := range []string{"gone", "/home/user/gone", "/home/user/x\nInjected: y"} {
		p := bash(ses, "pwd")
		p.Cwd = cwd
		if _, err := s.Describe(context.Background(), capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p)); wire.CodeOf(err) != wire.CodeInvalid {
			t.Errorf("%q: %v", cwd, err)
		}
	}
	// What is outside of the folder is neither confirmed nor denied before the
	// person has agreed, by .. or by a link.
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(ses.Folder, "there")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside+"/none", filepath.Join(ses.Folder, "nowhere")); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 30) + outside[1:]
	for _, cwd := range []string{"there", "nowhere", "there/none", up, up + "/none"} {
		p := bash(ses, "pwd")
		p.Cwd = cwd
		if _, err := s.Describe(context.Background(), capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p)); err != nil {
			t.Errorf("%q: %v", cwd, err)
		}
	}
	p := bash(ses, "pwd")
	p.Cwd = "/root/nowhere"
	for _, choice := range modes {
		if _, _, err := capabilitytest.DoWith(context.Background(), t, s, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p), choice); wire.CodeOf(err) != wire.CodeInvalid {
			t.Errorf("%v", err)
		}
	}
}

func TestWhatCannotStart(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	if err := os.WriteFile(filepath.Join(ses.Folder, "text"), []byte("hello"), 0o755); err != nil {
		t.Fatal(err)
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = strings.Repeat("x", 120<<10)
	}
	for cmd, want := range map[string]wire.Code{"no-such-program": wire.CodePathNotFound, "./gone": wire.CodePathNotFound, "./text": wire.CodeInvalid, "/etc": wire.CodeInvalid} {
		for name, choice := range modes {
			p := &wire.ProcessStart{SessionID: ses.ID, Cmd: cmd}
			_, out, err := capabilitytest.DoWith(context.Background(), t, s, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p), choice)
			if wire.CodeOf(err) != want || len(out.Frames()) != 0 || !strings.Contains(err.Error(), cmd) {
				t.Errorf("%s %s: %v (%s)", name, cmd, err, wire.CodeOf(err))
			}
		}
	}
	// 120 KB are a command, as on E2B.
	if r := do(t, s, ses, contained, bash(ses, "echo "+strings.Repeat("x", 120<<10)+" | wc -c")); r.out != "122881\n" {
		t.Errorf("a long command: %q", r.out)
	}
}

func TestAnotherFolderInItsPlace(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "touch x"))
	d, err := s.Describe(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	g := capabilitytest.GrantWith(t, ses, "shell", d, contained)
	if err := os.Rename(ses.Folder, ses.Folder+".old"); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for _, put := range []func() error{
		func() error { return nil },
		func() error { return os.Mkdir(ses.Folder, 0o755) },
		func() error { _ = os.Remove(ses.Folder); return os.Symlink(elsewhere, ses.Folder) },
		func() error { _ = os.Remove(ses.Folder); return os.Symlink(ses.Folder+".old", ses.Folder) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(context.Background(), call, g, &capabilitytest.Output{}); wire.CodeOf(err) != wire.CodeChanged {
			t.Errorf("%v", err)
		}
	}
	if left, _ := os.ReadDir(elsewhere); len(left) != 0 {
		t.Error("the command ran in another folder")
	}
}
