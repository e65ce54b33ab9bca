//go:build linux

package shell_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/capabilities/shell/judge"
	"localpc/consent"
)

// told are the effects of acts, as text.
func told(t *testing.T, s *shell.Shell, ses *capabilities.Session, acts ...judge.Act) string {
	t.Helper()
	var out []string
	for _, e := range s.LookAt(context.Background(), ses, acts...).Effects {
		out = append(out, string(e.Kind)+": "+e.Text)
	}
	return strings.Join(out, " | ")
}

func TestGitTellsWhatItWouldDo(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	sh(t, s, ses, contained, `git init -q . && git config user.name x && git config user.email x@y
		mkdir sub && echo one > a && echo two > b && echo three > sub/c && echo '*.log' > .gitignore && git add . && git commit -qm first
		echo changed > a; touch b; rm sub/c; echo new > new.txt; echo l > x.log; mkdir -p out/deep; echo 1 > out/deep/1; echo 2 > out/2; echo staged > staged; git add staged`)
	git := func(op judge.Op, argv ...string) judge.Act {
		return judge.Act{Op: op, Argv: append([]string{"git"}, argv...), Dir: "/home/user"}
	}
	for _, c := range []struct {
		act  judge.Act
		want string
	}{
		{git(judge.GitClean, "clean", "-fd"), "delete: deletes 3 files and 2 folders, 8 bytes; cannot be undone"},
		{git(judge.GitClean, "clean", "-f"), "delete: deletes new.txt (4 bytes); cannot be undone"},
		{git(judge.GitClean, "clean", "-fdx"), "delete: deletes 4 files and 2 folders, 10 bytes; cannot be undone"},
		{git(judge.GitClean, "clean", "-fd", "out"), "delete: deletes out with 2 files and 1 folder, 4 bytes; cannot be undone"},
		{git(judge.GitReset, "reset", "--hard"), "delete: deletes staged (7 bytes); cannot be undone | overwrite: replaces a (8 bytes); cannot be undone | create: makes sub/c"},
		{git(judge.GitRestore, "checkout", "--", "a", "b"), "overwrite: replaces a (8 bytes); cannot be undone"},
		{git(judge.GitRestore, "restore", "."), "overwrite: replaces a (8 bytes); cannot be undone | create: makes sub/c"},
		{git(judge.GitRestore, "checkout", "HEAD", "--", "staged", "b"), "overwrite: replaces nothing that is there now"},
		{git(judge.GitReset, "stash"), "move: puts aside the changes of a and staged; git stash pop brings them back | create: makes sub/c"},
		{git(judge.GitReset, "reset", "--hard", "none"), "unknown: can't be told beforehand: what git replaces"},
		{git(judge.GitClean, "-c", "core.fsmonitor=x", "clean", "-f"), "unknown: can't be told beforehand: what git removes"},
	} {
		if got := told(t, s, ses, c.act); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.act.Argv, got, c.want)
		}
	}
	// It does what was told.
	sh(t, s, ses, contained, "git clean -qfd && git reset -q --hard")
	if out := sh(t, s, ses, contained, "find . -path ./.git -prune -o -type f -print | sort | tr '\n' ' '; git status --porcelain"); out != "./.gitignore ./a ./b ./sub/c ./x.log " {
		t.Errorf("left: %s", out)
	}
}

// A repository's own settings run nothing while it is looked at.
func TestLookingRunsNothingOfARepository(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	mark := filepath.Join(ses.Folder, "ran")
	sh(t, s, ses, contained, `git init -q . && git config user.name x && git config user.email x@y && echo one > a && git add . && git commit -qm first
		cat > evil <<'E'
#!/bin/sh
echo "$0 $*" >> /home/user/ran; echo "$0" >> /tmp/ran; echo "$0" >> /var/cache/user/ran; sleep 30
E
		chmod +x evil
		echo '* filter=f diff=f' > .gitattributes
		git config filter.f.clean ./evil; git config filter.f.smudge ./evil; git config filter.f.process ./evil
		git config diff.f.command ./evil; git config diff.f.textconv ./evil; git config diff.external ./evil
		git config core.fsmonitor ./evil; git config core.pager ./evil; git config core.editor ./evil; git config core.sshCommand ./evil
		git config core.hooksPath .; cp evil post-index-change; cp evil fsmonitor-watchman; git config alias.clean '!./evil'
		git config core.gitProxy ./evil; git config credential.helper ./evil; git config gpg.program ./evil; git config core.askPass ./evil
		echo changed > a; touch b`)
	for _, m := range []string{mark, filepath.Join(ses.Tmp, "ran"), filepath.Join(ses.Cache, "ran")} {
		_ = os.Remove(m)
	}
	for _, a := range []judge.Act{{Op: judge.GitClean, Argv: []string{"git", "clean", "-fdx"}}, {Op: judge.GitReset, Argv: []string{"git", "reset", "--hard"}},
		{Op: judge.GitRestore, Argv: []string{"git", "checkout", "--", "."}}, {Op: judge.GitReset, Argv: []string{"git", "stash"}}} {
		a.Dir = "/home/user"
		if got := told(t, s, ses, a); strings.Contains(got, "unknown") {
			t.Errorf("%q: %s", a.Argv, got)
		}
	}
	for _, m := range []string{mark, filepath.Join(ses.Tmp, "ran"), filepath.Join(ses.Cache, "ran")} {
		if b, err := os.ReadFile(m); err == nil {
			t.Errorf("it ran: %s", b)
		}
	}
}
