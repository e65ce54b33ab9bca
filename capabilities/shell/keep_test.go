//go:build linux

package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
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
}

func (k *keeper) Snapshot(ctx context.Context, s *capabilities.Session, request string) (capabilities.Snapshot, error) {
	k.held++
	if k.broken {
		return nil, errors.New("the disk is full")
	}
	return k.Kept.Snapshot(ctx, s, request)
}

func (k *keeper) WouldSnapshot(ctx context.Context, s *capabilities.Session) (bool, string) {
	if k.broken && k.held > 0 {
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
	k, err := kept.Open(t.Context(), kept.Options{Dir: filepath.Join(t.TempDir(), "versions"), Store: st, Limit: func() int64 { return 1 << 30 }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	ke := &keeper{Kept: k}
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
func write(t *testing.T, ses *capabilities.Session, rel, text string) {
	t.Helper()
	p := filepath.Join(ses.Folder, rel)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}
