//go:build linux

package shell_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"localpc/app/kept"
	"localpc/app/store"
	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// keeper counts what a Keep is asked for.
type keeper struct {
	*kept.Kept
	held   int
	broken bool
	late   bool // it can't be told in time whether the folder would be held
	limit  *atomic.Int64
}

func (k *keeper) Snapshot(ctx context.Context, s *capabilities.Session, request string) (capabilities.Snapshot, error) {
	k.held++
	if k.broken {
		return nil, errors.New("the disk is full")
	}
	return k.Kept.Snapshot(ctx, s, request)
}

func (k *keeper) WouldSnapshot(ctx context.Context, s *capabilities.Session) (bool, string) {
	if k.late || k.broken && k.held > 0 {
		return false, ""
	}
	return k.Kept.WouldSnapshot(ctx, s)
}

func newKeeper(t *testing.T) (*keeper, *shell.Shell, *capabilities.Session) {
	t.Helper()
	st, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	limit := &atomic.Int64{}
	limit.Store(1 << 30)
	k, err := kept.Open(t.Context(), kept.Options{Dir: filepath.Join(t.TempDir(), "versions"), Store: st, Limit: limit.Load})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	ke := &keeper{Kept: k, limit: limit}
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	if ses.FolderID, err = capabilities.FolderID(ses.Folder); err != nil {
		t.Fatal(err)
	}
	return ke, newShell(t, func(o *shell.Options) { o.Keep = ke }), ses
}

// run runs a command and returns its request and what its card said.
func (k *keeper) run(t *testing.T, s *shell.Shell, ses *capabilities.Session, choice consent.Choice, text string) (request, said string) {
	t.Helper()
	call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, text))
	for range 3 {
		d, err := s.Describe(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range d.Effects {
			said += e.Text + "\n"
		}
		g := capabilitytest.GrantWith(t, ses, "shell", d, choice)
		_, err = s.Run(t.Context(), call, g, &capabilitytest.Output{})
		if errors.Is(err, consent.ErrChanged) {
			said += "asked again\n"
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return g.Request(), said
	}
	t.Fatalf("%s never ran: %s", text, said)
	return "", ""
}

func TestCommandCanBeUndone(t *testing.T) {
	k, s, ses := newKeeper(t)
	for rel, text := range map[string]string{"a.txt": "a", "d/b.txt": "b", "keep": "keep"} {
		write(t, ses, rel, text)
	}
	before := capabilitytest.Tree(t, ses.Folder)
	for _, choice := range []consent.Choice{contained, full} {
		for _, text := range []string{"rm -r d a.txt", "echo new >a.txt", "sed -i s/a/b/ a.txt && mkdir -p n/m && touch n/m/x", "mv a.txt d/", "python3 -c 'open(\"a.txt\",\"w\")' || perl -e 'open(F, \">a.txt\")'"} {
			request, said := k.run(t, s, ses, choice, text)
			if strings.Contains(said, "cannot be undone") || strings.HasPrefix(text, "rm") && !strings.Contains(said, "; can be undone") {
				t.Errorf("%s: its card said %q", text, said)
			}
			if capabilitytest.Tree(t, ses.Folder) == before {
				t.Fatalf("%s changed nothing", text)
			}
			if _, err := k.Undo(t.Context(), consent.NewID(), []string{request}, false); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if now := capabilitytest.Tree(t, ses.Folder); now != before {
				t.Fatalf("%s undone, the folder is\n%s\nand was\n%s", text, now, before)
			}
		}
	}
}

// What is outside the folder, or goes with the session, is not promised.
func TestOnlyTheFolderIsPromised(t *testing.T) {
	k, s, ses := newKeeper(t)
	write(t, ses, "a", "a")
	k.run(t, s, ses, contained, "echo x >/tmp/x")
	for _, text := range []string{"rm -f /tmp/x a", "rm -f /etc/none/x a"} {
		d, err := s.Describe(t.Context(), capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, text)))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range d.Effects {
			if e.Kind == consent.EffectDelete && !strings.Contains(e.Text, "cannot be undone") {
				t.Errorf("%s: the card said %q", text, e.Text)
			}
		}
	}
}

// Plain commands are not slowed: nothing is looked at for them.
func TestReadingIsNotHeld(t *testing.T) {
	k, s, ses := newKeeper(t)
	write(t, ses, "a", "a")
	for _, text := range []string{"true", "ls", "cat a", "echo hello", "grep -r a . | wc -l", "pwd; date"} {
		if k.run(t, s, ses, contained, text); k.held != 0 {
			t.Errorf("%s: the folder was held", text)
			k.held = 0
		}
	}
}

// What was promised and can't be is asked about again, and then runs.
func TestPromiseThatFails(t *testing.T) {
	k, s, ses := newKeeper(t)
	k.broken = true
	write(t, ses, "a", "a")
	_, said := k.run(t, s, ses, contained, "rm a")
	if !strings.Contains(said, "can be undone\nasked again\n") || !strings.Contains(said, "cannot be undone") {
		t.Errorf("the cards said %q", said)
	}
	if _, err := os.Stat(filepath.Join(ses.Folder, "a")); err == nil {
		t.Error("it did not run")
	}
	if _, said := k.run(t, s, ses, contained, "touch b"); strings.Contains(said, "asked again") {
		t.Error("what promised nothing was asked again")
	}
}

// write makes a file in the session's folder, as the person does.
// What was allowed though it could not be undone is not asked again since it can
// be, or since it can't be held after all.
func TestAllowedWithoutUndo(t *testing.T) {
	for name, broken := range map[string]bool{"held": false, "not held": true} {
		k, s, ses := newKeeper(t)
		write(t, ses, "a.txt", "old")
		k.late = true
		call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "rm a.txt"))
		d, err := s.Describe(t.Context(), call)
		if err != nil || verdict(ses, d) != "" {
			t.Fatalf("%+v, %v", d.Effects, err)
		}
		k.late, k.broken = false, broken
		g := capabilitytest.GrantWith(t, ses, "shell", d, contained)
		if _, err := s.Run(t.Context(), call, g, &capabilitytest.Output{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if can, _ := k.State(g.Request()); can == broken {
			t.Errorf("%s: it can be undone: %v", name, can)
		}
	}
}

func text(t *testing.T, ses *capabilities.Session, rel string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(ses.Folder, rel))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, ses *capabilities.Session, rel, text string) {
	t.Helper()
	p := filepath.Join(ses.Folder, rel)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// What a command does to what was there runs without a question where the folder
// is held before it, and is asked about where it can't be.
func TestWhatIsHeldIsNotAsked(t *testing.T) {
	_, s, ses := newKeeper(t)
	for _, rel := range []string{"a.txt", "b.txt", "locked.txt", "d/1", "d/2"} {
		write(t, ses, rel, "old")
	}
	for i := range 12 {
		write(t, ses, fmt.Sprintf("many/%d.txt", i), "old")
	}
	if err := syscall.Mkfifo(filepath.Join(ses.Folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := func(line string) (quiet, all bool) {
		t.Helper()
		d := describe(t, s, ses, bash(ses, line))
		all = true
		for _, e := range d.Effects {
			if e.Kind == consent.EffectOverwrite || e.Kind == consent.EffectDelete || e.Kind == consent.EffectMove {
				all = all && e.Kept
			}
		}
		return verdict(ses, d) == consent.Allowed, all
	}
	for line, want := range map[string]bool{
		"echo new >a.txt": true, "echo more >>a.txt": true, "sed -i s/o/n/ a.txt b.txt": true, "cp a.txt b.txt": true, "truncate -s 0 a.txt": true,
		"sed -i s/o/n/ many/*.txt": true, "rm a.txt": true, "rm -r d": true, "mv a.txt d/": true, "mv a.txt b.txt": true, "rm many/[0-7].txt": true,
		"rm -r d a.txt && mv b.txt d.txt": true, "sed -i s/o/n/ a.txt && make": true,
		"rm -r many": false, "mv many other": false, "rm many/*.txt": false, "rm many/[0-7].txt && mv d/1 d/2 a.txt many/": false,
		"rm pipe": false, "mv a.txt pipe": false, "echo x >/etc/hosts": false, "rm a.txt /etc/hosts": false, "chmod 600 a.txt": false,
		"rm \"$X\"": false, "echo x >.envrc": false, "echo x >$(cat a.txt)": false,
	} {
		quiet, all := kept(line)
		if quiet != want || quiet && !all {
			t.Errorf("%s: runs without a question: %v, all of it kept: %v", line, quiet, all)
		}
	}
	// A file that can't be read can't be held.
	if err := os.Chmod(filepath.Join(ses.Folder, "locked.txt"), 0o200); err != nil {
		t.Fatal(err)
	}
	if quiet, _ := kept("mv a.txt locked.txt"); quiet != (os.Geteuid() == 0) {
		t.Errorf("a file that may not be read is replaced without a question: %v", quiet)
	}
}

// More than is kept at most is asked about, and so is what turns out not to be
// held when it is to run.
func TestWhatCantBeHeldIsAsked(t *testing.T) {
	k, s, ses := newKeeper(t)
	write(t, ses, "a.txt", strings.Repeat("x", 5000))
	write(t, ses, "b.txt", "old")
	k.limit.Store(4000)
	for line, want := range map[string]consent.Outcome{"echo new >a.txt": "", "rm a.txt": "", "mv b.txt a.txt": "", "echo new >b.txt": consent.Allowed, "rm b.txt": consent.Allowed} {
		d := describe(t, s, ses, bash(ses, line))
		if got := verdict(ses, d); got != want || strings.Contains(d.Effects[0].Text, "cannot be undone") != (want == "") {
			t.Errorf("%s: %q, %+v", line, got, d.Effects)
		}
	}
	call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "echo new >b.txt"))
	d, err := s.Describe(t.Context(), call)
	if err != nil || verdict(ses, d) != consent.Allowed {
		t.Fatalf("%+v, %v", d.Effects, err)
	}
	k.broken = true
	_, err = s.Run(t.Context(), call, capabilitytest.GrantWith(t, ses, "shell", d, contained), &capabilitytest.Output{})
	if !errors.Is(err, consent.ErrChanged) || text(t, ses, "b.txt") != "old" {
		t.Fatalf("what was promised and can't be: %v, it has %q", err, text(t, ses, "b.txt"))
	}
	if d = describe(t, s, ses, bash(ses, "echo new >b.txt")); verdict(ses, d) != "" || d.Effects[0].Kept {
		t.Errorf("then it is not asked: %+v", d.Effects)
	}
}
