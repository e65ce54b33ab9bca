//go:build linux

package shell_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Where bubblewrap is missing or may not work, the person is told, commands
// are asked for, and nothing that was to be contained runs otherwise.
func TestWithoutContainment(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for bwrap, want := range map[string]string{filepath.Join(t.TempDir(), "gone"): "apt install bubblewrap", broken: "No permissions to create new namespace"} {
		s, err := shell.New(shell.Options{Spawn: spawnPath, Bwrap: bwrap, Home: t.TempDir(), LoginPath: systemPath})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if why := s.Probe(context.Background()); !strings.Contains(why, want) {
			t.Errorf("probe says %q, want %q in it", why, want)
		}
		ses := capabilitytest.NewSession(t, consent.ModeWork)
		d := describe(t, s, ses, bash(ses, "echo ran > ran"))
		if d.Containable || !d.FullOffered || d.Risk != consent.RiskHigh || verdict(ses, d) != "" || !strings.Contains(strings.Join(d.Details, "\n"), want) {
			t.Errorf("described as %+v, verdict %q", d, verdict(ses, d))
		}
		// Here a display may be the person's.
		if d := describe(t, s, ses, bash(ses, "DISPLAY=:0 xdotool click 1")); !slices.ContainsFunc(d.Effects, func(e consent.Effect) bool { return e.Kind == consent.EffectEnv && strings.Contains(e.Text, "DISPLAY") }) {
			t.Errorf("a display without containment: %+v", d.Effects)
		}
		call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "echo ran > ran"))
		for _, choice := range []consent.Choice{{}, contained} {
			if _, _, err := capabilitytest.DoWith(context.Background(), t, s, call, choice); wire.CodeOf(err) != wire.CodeUnconfined {
				t.Errorf("with choice %+v: %v", choice, err)
			}
		}
		if _, err := os.Stat(filepath.Join(ses.Folder, "ran")); err == nil {
			t.Error("the command ran uncontained")
		}
		if got := sh(t, s, ses, full, "echo ran > ran; cat ran"); got != "ran\n" {
			t.Errorf("with full access: %q", got)
		}
		look := capabilitytest.NewSession(t, consent.ModeLook)
		if _, err := s.Describe(context.Background(), capabilitytest.NewCall(t, look, wire.TypeProcessStart, bash(look, "ls"))); wire.CodeOf(err) != wire.CodeUnconfined {
			t.Errorf("in a session that may only look: %v", err)
		}
	}
}

// A container that can't be set up after all runs nothing, and says so.
func TestContainerThatFails(t *testing.T) {
	dir := t.TempDir()
	fails := filepath.Join(dir, "bwrap")
	if err := os.WriteFile(fails, []byte("#!/bin/sh\ncase \"$*\" in */usr/bin/true) exit 0;; esac\necho 'bwrap: broken' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newShell(t, func(o *shell.Options) { o.Bwrap = fails })
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	_, out, err := capabilitytest.DoWith(context.Background(), t, s, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "echo hi")), contained)
	if wire.CodeOf(err) != wire.CodeUnconfined || len(out.Frames()) != 0 {
		t.Errorf("%v, %d frames", err, len(out.Frames()))
	}
}

// The PATH of the log-in comes from the person's own start-up files, which run
// once, whatever they print, and are given up on when they hang.
func TestPathOfTheLogin(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SHELL", "/bin/bash")
	t.Setenv("PATH", "/from/this/program:"+systemPath)
	profile := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, ".bash_profile"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := func() string {
		t.Helper()
		s := newShell(t, func(o *shell.Options) { o.LoginPath = "" })
		ses := capabilitytest.NewSession(t, consent.ModeWork)
		sh(t, s, ses, full, "true")
		return sh(t, s, ses, full, "echo $PATH")
	}
	profile("echo hello; echo once >> ~/count; case $- in *i*) export PATH=$PATH:/my/own;; esac; sleep 3 &\n")
	if got := path(); !strings.HasSuffix(got, ":/my/own\n") || strings.Contains(got, "/from/this") {
		t.Errorf("PATH is %s", got)
	}
	if b, _ := os.ReadFile(filepath.Join(home, "count")); string(b) != "once\n" {
		t.Errorf("start-up files ran: %q", b)
	}
	profile("sleep 100\n")
	if got := path(); got != "/from/this/program:"+systemPath+"\n" {
		t.Errorf("PATH is %s", got)
	}
}
