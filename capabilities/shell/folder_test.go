//go:build linux

package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestLookOnlyMountsReadOnly(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeLook)
	if err := os.WriteFile(filepath.Join(ses.Folder, "f"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	before := capabilitytest.Tree(t, ses.Folder)
	r := do(t, s, ses, contained, bash(ses, "cat f; echo y > f; touch g; rm f; mount -o remount,rw /home/user; echo z > /tmp/z && cat /tmp/z"))
	if r.out != "xz\n" || capabilitytest.Tree(t, ses.Folder) != before {
		t.Errorf("%q %q; folder now\n%s", r.out, r.err, capabilitytest.Tree(t, ses.Folder))
	}
	if d := describe(t, s, ses, bash(ses, "ls")); d.FullOffered {
		t.Error("full access is offered to a session that may only look")
	}
}

func made(t *testing.T, ses *capabilities.Session, key string) bool {
	t.Helper()
	p := filepath.Join(ses.Folder, key)
	if rest, ok := strings.CutPrefix(key, "/tmp/"); ok {
		p = filepath.Join(ses.Tmp, rest)
	}
	fi, err := os.Lstat(p)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := capabilities.FileIDOf(fi)
	return ses.Made.Has(key, id)
}

// many makes more files than a listing takes.
const many = `mkdir many; /usr/bin/python3 -c '
for i in range(20100): open(f"many/{i}", "w").close()'`

func TestWhatACommandMadeIsTheSessions(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for _, n := range []string{"theirs", "moved", "replaced", "linked"} {
		if err := os.WriteFile(filepath.Join(ses.Folder, n), []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, s, ses, contained, `mkdir -p d/e; echo 1 > new; echo 2 > d/e/f; ln -s /etc/passwd link; echo 3 > /tmp/t; echo more >> theirs
		mv moved d/moved; echo 4 > r; mv r replaced; ln linked hard`)
	for key, want := range map[string]bool{"new": true, "d": true, "d/e": true, "d/e/f": true, "link": true, "/tmp/t": true,
		"theirs": false, "d/moved": false, "replaced": false, "linked": false, "hard": false} {
		if got := made(t, ses, key); got != want {
			t.Errorf("%s: made by the session: %v, want %v", key, got, want)
		}
	}
	sh(t, s, ses, contained, "mv new newer; sed -i s/2/3/ d/e/f; rm -r link")
	if !made(t, ses, "newer") || !made(t, ses, "d/e/f") {
		t.Error("what the session made was lost by moving or rewriting it")
	}
	// A folder too large to look through: unsure, so nothing counts.
	sh(t, s, ses, contained, many)
	sh(t, s, ses, contained, "touch unsure")
	if made(t, ses, "unsure") {
		t.Error("something counts as made although the folder was not looked through")
	}
}

func TestChangedStartupFilesAreTold(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	notes := func(text string) string {
		t.Helper()
		r := do(t, s, ses, contained, bash(ses, text))
		if r.exit.ExitCode != 0 {
			t.Fatalf("%s: %s%s", text, r.out, r.err)
		}
		return strings.Join(r.res.Notes, "\n")
	}
	if got := notes("git init -q . && touch .envrc plain"); got != "changed .envrc, which other programs run\nchanged .git/config, which other programs run" && !strings.Contains(got, "more files") {
		t.Errorf("made: %q", got)
	}
	if got := notes("cat .git/config .envrc; touch other; git status -s"); got != "" {
		t.Errorf("read only: %q", got)
	}
	if got := notes("mkdir -p a/.claude b .git/modules/lib; echo '{}' > a/.claude/settings.json; echo 'gitdir: ../x' > b/.git; echo > .git/modules/lib/config"); got != "changed .git/modules/lib/config, which other programs run\nchanged a/.claude/settings.json, which other programs run\nchanged b/.git, which other programs run" {
		t.Errorf("names for other programs: %q", got)
	}
	if got := notes("git config core.pager x"); got != "changed .git/config, which other programs run" {
		t.Errorf("git config: %q", got)
	}
	if got := notes("cp -p .envrc o; echo x > .envrc; touch -r o .envrc; mkdir -p sub/.vscode; touch sub/.vscode/tasks.json"); got != "changed .envrc, which other programs run\nchanged sub/.vscode/tasks.json, which other programs run" {
		t.Errorf("with the old time put back: %q", got)
	}
	if got := notes(many + "; echo y > .envrc"); got != "changed .envrc, which other programs run" {
		t.Errorf("in a folder too large: %q", got)
	}
	// In the place of a folder that is looked into may be anything.
	if got := notes("mkfifo .husky; mkdir -p .config .local; ln -s /etc .config/autostart; ln -s ../.husky .local/bin"); got != "" {
		t.Errorf("a pipe and links: %q", got)
	}
	if got := notes("echo z >> .git/config; echo '#' > .bashrc"); got != "changed .bashrc, which other programs run\nchanged .git/config, which other programs run" {
		t.Errorf("in a folder too large, later: %q", got)
	}
}

func TestToolchainsOfTheHome(t *testing.T) {
	for _, base := range []string{"/tmp", mustHome(t)} {
		home, err := os.MkdirTemp(base, "shelltest")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(home)
		seen := home
		if strings.HasPrefix(home, "/tmp/") {
			seen = "/opt/home" // /tmp is the session's own
		}
		toolchainsOf(t, home, seen)
	}
}

func mustHome(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// toolchainsOf looks at a home that is called seen in a container.
func toolchainsOf(t *testing.T, home, seen string) {
	t.Helper()
	files := map[string]string{
		".local/bin/hello":                        "#!/bin/sh\necho hello from $0",
		".cargo/bin/tool":                         "#!/bin/sh\necho cargo",
		".cargo/credentials.toml":                 "token",
		".nvm/versions/node/v20.1.0/bin/fakenode": "#!/bin/sh\necho node",
		".ssh/id_ed25519":                         "key",
		".gitconfig": "[user]\n\tname = A B\n\temail = a@b.c\n\tsigningkey = K\n[credential]\n\thelper = store\n[url \"https://token@x/\"]\n\tinsteadOf = https://x/\n" +
			"[core]\n\tpager = evil\n\tautocrlf = input\n\tsshCommand = evil\n[alias]\n\tx = !evil\n[include]\n\tpath = secret\n[github]\n\ttoken = t0ken\n[color] ui = auto\n",
	}
	for n, text := range files {
		p := filepath.Join(home, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := newShell(t, func(o *shell.Options) {
		o.Home = home
		o.LoginPath = home + "/.nvm/versions/node/v20.1.0/bin:" + home + "/secret:" + systemPath
	})
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	got := sh(t, s, ses, contained, "hello; tool; fakenode; touch "+seen+"/.local/bin/x 2>/dev/null || echo read-only; ls -A "+seen+" "+seen+"/.cargo; echo $PATH")
	want := "hello from " + seen + "/.local/bin/hello\ncargo\nnode\nread-only\n" + seen + ":\n.cargo\n.local\n.nvm\n\n" + seen + "/.cargo:\nbin\n" +
		seen + "/.nvm/versions/node/v20.1.0/bin:" + seen + "/.cargo/bin:" + seen + "/.local/bin:" + systemPath + "\n"
	if got != want {
		t.Errorf("inside:\n%s\nwant\n%s", got, want)
	}
	if got := sh(t, s, ses, contained, "git config --global -l | sort"); got != "core.autocrlf=input\nsafe.directory=*\nuser.email=a@b.c\nuser.name=A B\n" {
		t.Errorf("git sees:\n%s", got)
	}
	// Caches are the session's own, not the folder's.
	sh(t, s, ses, contained, "mkdir -p $XDG_CACHE_HOME/x && touch $XDG_CACHE_HOME/x/y $CARGO_HOME.z")
	if _, err := os.Stat(filepath.Join(ses.Cache, "x/y")); err != nil {
		t.Error(err)
	}
	if got := capabilitytest.Tree(t, ses.Folder); strings.Contains(got, "\n") {
		t.Errorf("the folder got\n%s", got)
	}
}

func TestTheFoldersOwnNameWorksInside(t *testing.T) {
	base, err := os.MkdirTemp("/var/tmp", "shelltest")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	s := newShell(t)
	ses := capabilitytest.NewSessionIn(t, base, consent.ModeWork)
	// Below /var/tmp, which is another place inside, it can't be.
	if r := do(t, s, ses, contained, bash(ses, "ls "+ses.Folder)); r.exit.ExitCode == 0 {
		t.Error("a folder below /var/tmp has its own name inside")
	}
	base, err = os.MkdirTemp(mustHome(t), "shelltest")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	if strings.HasPrefix(base, "/tmp/") {
		return // an ordinary user's home of these tests
	}
	ses = capabilitytest.NewSessionIn(t, base, consent.ModeWork)
	if got := sh(t, s, ses, contained, "touch "+ses.Folder+"/x; ls /home/user; ls -A "+base); got != "x\nfolder\n" {
		t.Errorf("%q", got)
	}
}

// A working directory that has to be in the folder is, whatever links say.
func TestCwdInside(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for _, d := range []string{"dir/sub", "-odd"} {
		if err := os.MkdirAll(filepath.Join(ses.Folder, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"in": "dir/sub", "back": "../" + filepath.Base(ses.Folder) + "/dir", "abs": filepath.Join(ses.Folder, "dir"), "home": "/home/user/dir",
		"two": "in/..", "out": "/etc", "up": "..", "far": "in/../../..", "none": "/no/such", "dir/deep": "../../..", "round": "round"} {
		if err := os.Symlink(target, filepath.Join(ses.Folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(cwd string, choice consent.Choice) (ran, error) {
		p := bash(ses, "pwd -P")
		p.Cwd, p.CwdInside = cwd, true
		res, out, err := capabilitytest.DoWith(t.Context(), t, s, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p), choice)
		if err != nil {
			return ran{}, err
		}
		return ran{out: string(out.Contents("stdout")), res: res}, nil
	}
	for cwd, want := range map[string]string{"": "", ".": "", "dir": "/dir", "in": "/dir/sub", "two": "/dir", "in/../dir": "/dir", "-odd": "/-odd", ses.Folder: "", "~/in": "/dir/sub", "/home/user/dir": "/dir"} {
		for base, choice := range map[string]consent.Choice{"/home/user": contained, ses.Folder: full} {
			if r, err := run(cwd, choice); err != nil || strings.TrimSpace(r.out) != base+want {
				t.Errorf("%q: %q, %v", cwd, r.out, err)
			}
		}
	}
	for _, cwd := range []string{"back", "abs"} { // out and back in
		if r, err := run(cwd, full); err != nil || strings.TrimSpace(r.out) != ses.Folder+"/dir" {
			t.Errorf("%q: %q, %v", cwd, r.out, err)
		}
	}
	if r, err := run("home", contained); err != nil || strings.TrimSpace(r.out) != "/home/user/dir" {
		t.Errorf("a link of the container: %q, %v", r.out, err)
	}
	for _, cwd := range []string{"out", "up", "far", "none", "dir/deep", "round", "out/x", "none/x", "..", "/etc", "/tmp", "/", ses.Folder + "x", ses.Folder + "/../x", "~/..", "dir/../.."} {
		for _, choice := range []consent.Choice{contained, full} {
			if r, err := run(cwd, choice); wire.CodeOf(err) != wire.CodePathOutside {
				t.Errorf("%q: %q, %v", cwd, r.out, err)
			}
		}
	}
}
