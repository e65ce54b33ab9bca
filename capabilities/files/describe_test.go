//go:build linux

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

// verdict is what the real policy says of a call.
func (r *rig) verdict(c capabilities.Call, m consent.Mode) (string, capabilities.Description) {
	r.Helper()
	d, err := r.describe(c)
	must(r, err)
	req := capabilitytest.Request(r.s, "files", d)
	req.Mode = m
	switch (policy.Policy{}).Decide(req, nil, time.Now()).Outcome {
	case consent.Allowed:
		return "allow", d
	case consent.Denied:
		return "deny", d
	}
	return "ask", d
}

// What runs without a question under each way to work, on real files.
func TestWhatIsAsked(t *testing.T) {
	r := newRig(t)
	r.put("theirs.txt", "x")
	r.put("project/theirs.txt", "x")
	r.put(".git/config", "x")
	r.put(".git/hooks/pre-commit", "x")
	_, err := r.write("mine.txt", "x")
	must(t, err)
	_, err = r.write("mine/a.txt", "x")
	must(t, err)
	_, err = r.write("mixed/a.txt", "x")
	must(t, err)
	r.put("mixed/theirs.txt", "x")
	_, err = r.write("/tmp/t.txt", "x")
	must(t, err)
	r.put("/tmp/by-a-command.txt", "x")
	for _, c := range []struct {
		name                     string
		call                     capabilities.Call
		look, work, ask, trusted string
	}{
		{"read", r.readCall("theirs.txt"), "allow", "allow", "ask", "allow"},
		{"stat", r.pathCall(wire.TypeFileStat, "theirs.txt"), "allow", "allow", "ask", "allow"},
		{"list", r.listCall("", 3), "allow", "allow", "ask", "allow"},
		{"create", r.writeCall("new/x.txt", "x"), "deny", "allow", "ask", "allow"},
		{"make a folder", r.pathCall(wire.TypeFileMkdir, "folder/of/ours"), "deny", "allow", "ask", "allow"},
		{"overwrite theirs", r.writeCall("theirs.txt", "y"), "deny", "ask", "ask", "allow"},
		{"overwrite mine", r.writeCall("mine.txt", "y"), "deny", "allow", "ask", "allow"},
		{"delete theirs", r.pathCall(wire.TypeFileDelete, "theirs.txt"), "deny", "ask", "ask", "allow"},
		{"delete mine", r.pathCall(wire.TypeFileDelete, "mine.txt"), "deny", "allow", "ask", "allow"},
		{"delete my folder", r.pathCall(wire.TypeFileDelete, "mine"), "deny", "allow", "ask", "allow"},
		{"delete my folder with theirs in it", r.pathCall(wire.TypeFileDelete, "mixed"), "deny", "ask", "ask", "allow"},
		{"delete nothing", r.pathCall(wire.TypeFileDelete, "nothing"), "allow", "allow", "ask", "allow"},
		{"move theirs", r.moveCall("theirs.txt", "elsewhere.txt"), "deny", "ask", "ask", "allow"},
		{"move mine", r.moveCall("mine.txt", "elsewhere.txt"), "deny", "allow", "ask", "allow"},
		{"move mine onto theirs", r.moveCall("mine.txt", "theirs.txt"), "deny", "ask", "ask", "allow"},
		{"change a hook", r.writeCall(".git/hooks/pre-commit", "y"), "deny", "ask", "ask", "ask"},
		{"make a start-up file", r.writeCall("sub/.envrc", "y"), "deny", "ask", "ask", "ask"},
		{"make a file in /tmp", r.writeCall("/tmp/u.txt", "y"), "deny", "allow", "ask", "allow"},
		{"change a command's file in /tmp", r.writeCall("/tmp/by-a-command.txt", "y"), "deny", "allow", "ask", "allow"},
		{"a start-up name in /tmp", r.writeCall("/tmp/.bashrc", "y"), "deny", "allow", "ask", "allow"},
	} {
		for m, want := range map[consent.Mode]string{consent.ModeLook: c.look, consent.ModeWork: c.work, consent.ModeAsk: c.ask, consent.ModeTrusted: c.trusted} {
			if got, d := r.verdict(c.call, m); got != want {
				t.Errorf("%s, mode %s: %s, want %s (%+v)", c.name, m, got, want, d.Effects)
			}
		}
	}
}

// What a session made is its own only while it is the same file.
func TestOwnFollowsTheFile(t *testing.T) {
	r := newRig(t)
	asks := func(c capabilities.Call) bool { v, _ := r.verdict(c, consent.ModeWork); return v == "ask" }
	_, err := r.write("d/a", "x")
	must(t, err)
	_, err = r.write("d/a", "again")
	must(t, err)
	if asks(r.writeCall("d/a", "y")) {
		t.Error("its own file, written twice, is asked about")
	}
	_, err = r.move("d", "e")
	must(t, err)
	_, err = r.move("e/a", "e/b")
	must(t, err)
	if asks(r.pathCall(wire.TypeFileDelete, "e")) || asks(r.writeCall("e/b", "y")) {
		t.Error("its own files are not known after a move")
	}
	// The person deletes it and makes another of that name; the file system
	// may give it the same number.
	must(t, os.Remove(r.at("e/b")))
	r.put("e/b", "the person's")
	if !asks(r.writeCall("e/b", "y")) || !asks(r.pathCall(wire.TypeFileDelete, "e")) {
		t.Error("a file of the person's passes for the session's")
	}
	// One that was replaced with the person's leave does not become its own.
	_, err = r.write("e/b", "y")
	must(t, err)
	if !asks(r.pathCall(wire.TypeFileDelete, "e/b")) {
		t.Error("a file that was not its own became so by being written")
	}
	must(t, r.delete("e/b"))
	_, err = r.write("e/b", "new")
	must(t, err)
	if asks(r.writeCall("e/b", "y")) {
		t.Error("a file it made where another had been is asked about")
	}
	if _, err := r.move("e/b", "theirs"); err != nil {
		t.Error(err)
	}
	r.put("theirs2", "x")
	if _, err := r.move("theirs2", "moved"); err != nil {
		t.Error(err)
	}
	if !asks(r.writeCall("moved", "y")) || asks(r.writeCall("theirs", "y")) {
		t.Error("a move must take along whose file it is")
	}
	must(t, r.delete("theirs"))
	r.put("theirs", "x")
	if !asks(r.pathCall(wire.TypeFileDelete, "theirs")) {
		t.Error("what was deleted is still known as its own")
	}
}

func TestCards(t *testing.T) {
	r := newRig(t)
	r.put("notes/plan.md", strings.Repeat("x", 12_345))
	for i := range 3 {
		r.put(fmt.Sprintf("old/sub/%d", i), strings.Repeat("x", 1000))
	}
	r.link("notes/plan.md", "short-cut")
	claude := func(c capabilities.Call) (consent.Request, capabilities.Description) {
		d, err := r.describe(c)
		must(t, err)
		return capabilitytest.Request(r.s, "files", d), d
	}
	q, d := claude(r.writeCall("/home/user/notes/plan.md", "Dear all,\n"))
	if q.Sentence != "Claude wants to replace notes/plan.md (10 bytes)" || q.Title != "Write notes/plan.md" {
		t.Errorf("%q, %q", q.Sentence, q.Title)
	}
	if q.Exact != "/home/user/notes/plan.md\n\nDear all,\n" || q.Effects[0].Text != "replaces 1 file of 12 KB; cannot be undone" || q.Effects[0].Bytes != 10 {
		t.Errorf("%q, %+v", q.Exact, q.Effects)
	}
	if q.Rule.Exact != "notes/plan.md" || d.Risk != consent.RiskNormal || len(d.Scopes) != 3 {
		t.Errorf("%+v, risk %d, scopes %v", q.Rule, d.Risk, d.Scopes)
	}
	q, _ = claude(r.writeCall("short-cut", "x"))
	if !strings.Contains(q.Exact, "which leads to notes/plan.md") || q.Rule.Exact != "notes/plan.md" {
		t.Errorf("%q, %+v", q.Exact, q.Rule)
	}
	q, _ = claude(r.pathCall(wire.TypeFileDelete, "old"))
	if q.Sentence != "Claude wants to delete old (3 files in 2 folders, 3.0 KB)" || q.Effects[0].Count != 5 || q.Effects[0].Bytes != 3000 || q.Risk != consent.RiskNormal {
		t.Errorf("%q, %+v", q.Sentence, q.Effects)
	}
	for _, s := range q.Scopes {
		if s == consent.Always {
			t.Error("always is offered for a delete that cannot be undone")
		}
	}
	q, _ = claude(r.pathCall(wire.TypeFileDelete, "short-cut"))
	if q.Effects[0].Count != 1 || q.Effects[0].Bytes != 0 {
		t.Errorf("the delete of a link: %+v", q.Effects)
	}
	q, _ = claude(r.writeCall("new/deep/er/f.bin", "\x00\x01"))
	if q.Sentence != "Claude wants to create new/deep/er/f.bin (2 bytes)" || !strings.Contains(q.Exact, "not text") || len(q.Details) != 1 || q.Details[0] != "Makes 3 folders above it." {
		t.Errorf("%q, %q, %q", q.Sentence, q.Exact, q.Details)
	}
	q, _ = claude(r.writeCall("100%s %d.txt", ""))
	if q.Sentence != "Claude wants to create 100%s %d.txt (0 bytes)" {
		t.Errorf("%q", q.Sentence)
	}
	// A name looks like nothing but a name.
	q, _ = claude(r.writeCall("safe.txt\n\nDear all,", "rm -rf"))
	if q.Exact != `safe.txt\n\nDear all,`+"\n\nrm -rf" {
		t.Errorf("%q", q.Exact)
	}
	for _, name := range []string{"a", "a → b"} {
		r.put(name, "x")
	}
	q, _ = claude(r.moveCall("a → b", "c"))
	if p, _ := claude(r.moveCall("a", "b → c")); p.Rule == q.Rule || q.Rule.Exact != `"a → b" → c` {
		t.Errorf("one rule for two moves: %q, %q", p.Rule.Exact, q.Rule.Exact)
	}
	if q, _ = claude(r.moveCall("a", "c")); q.Rule.Exact != "a → c" {
		t.Errorf("%q", q.Rule.Exact)
	}
	long := strings.Repeat("a", 100) + "/" + strings.Repeat("b", 50)
	q, _ = claude(r.writeCall(long, ""))
	if !strings.HasPrefix(q.Title, "Write …") || len(q.Title) > 80 || !strings.HasPrefix(q.Exact, long) {
		t.Errorf("%q, %q", q.Title, q.Exact)
	}
}

// The counting is bounded; what was not counted is said, and never own.
func TestVeryManyToDelete(t *testing.T) {
	r := newRig(t)
	must(t, os.Mkdir(r.at("many"), 0o755))
	for i := range maxCounted + 10 {
		f, err := os.Create(r.at(fmt.Sprintf("many/%d", i)))
		must(t, err)
		f.Close()
	}
	call := r.pathCall(wire.TypeFileDelete, "many")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		d, err := r.e.Describe(ctx, call)
		must(t, err)
		if e := d.Effects[0]; e.Own || !strings.HasPrefix(e.Text, "deletes more than ") {
			t.Errorf("%+v", e)
		}
	}
	// Cancelled in the middle: what was deleted until then is gone, and it
	// says so by its error.
	d, err := r.describe(call)
	must(t, err)
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		for {
			if n, err := os.ReadDir(r.at("many")); err != nil || len(n) < maxCounted-200 {
				stop(errors.New("the person stopped it"))
				return
			}
		}
	}()
	_, err = r.e.Run(ctx, call, capabilitytest.Grant(t, r.s, "files", d), &capabilitytest.Output{})
	if err == nil || err.Error() != "the person stopped it" {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(r.at("many")); err != nil || len(left) == 0 {
		t.Errorf("%d left, %v: it was not cancelled in the middle", len(left), err)
	}
	// A card that said "more than" holds for the rest, which can be counted now.
	d, err = r.e.Describe(ended, call)
	must(t, err)
	_, err = r.e.Run(t.Context(), call, capabilitytest.Grant(t, r.s, "files", d), &capabilitytest.Output{})
	must(t, err)
	if _, err := os.Lstat(r.at("many")); err == nil {
		t.Error("it is still there")
	}
}

func TestStartupNames(t *testing.T) {
	r := newRig(t)
	r.put(".git/config", "x")
	r.put(".git/hooks/sample", "x")
	r.put("githooks/pre-push", "x")
	r.put("env/real.sh", "x")
	r.put("scripts/commit.sh", "x")
	r.put("rc", "x")
	r.link("env/real.sh", ".envrc")
	r.link("../../scripts/commit.sh", ".git/hooks/pre-commit")
	r.link("githooks", ".husky")
	must(t, os.Link(r.at("rc"), r.at(".bashrc")))
	r.link(".git", "g")
	r.link("/home/user/.git/config", "conf")
	r.put("plain/Makefile", "x")
	r.put("bundle/.vscode/tasks.json", "x")
	r.put("bundle/x", "x")
	r.put("hidden/hooks/post-checkout", "x")
	flagged := func(c capabilities.Call) bool {
		t.Helper()
		d, err := r.describe(c)
		must(t, err)
		for _, e := range d.Effects {
			if e.Kind == consent.EffectStartup {
				if d.Risk != consent.RiskHigh {
					t.Errorf("%s is of risk %d", d.Title, d.Risk)
				}
				return true
			}
		}
		return false
	}
	for _, name := range []string{
		".git/config", ".git/hooks/new", ".git/hooks/deep/er", "sub/.git/hooks/x", ".git/modules/m/hooks/x", ".git/modules/m/config",
		// odysseus#5096, codex#9228: file systems that fold case.
		".GIT/hooks/pre-commit", ".Git/Config", ".ENVRC", ".hu\u017fky/x",
		".envrc", "a/b/.envrc", ".bashrc", ".profile", ".zshrc", "home/.zshenv", ".config/fish/conf.d/x.fish", ".config/autostart/x.desktop",
		".vscode/tasks.json", "a/.idea/workspace.xml", ".ssh/authorized_keys", ".husky/pre-commit", ".mcp.json",
		// Through links: of the name, above it, and from a start-up name to it.
		"g/hooks/x", "g/config", "conf", "env/real.sh", "scripts/commit.sh", "githooks/pre-push", "githooks/new", ".husky/new", "rc",
	} {
		if !flagged(r.writeCall(name, "x")) {
			t.Errorf("writing %s is not flagged", name)
		}
	}
	for _, name := range []string{
		"plain/Makefile", "package.json", ".gitignore", ".git/description", ".github/workflows/x.yml", "envrc", "x.envrc", ".envrc.md", "git/hooks/x",
		"hooks/pre-commit", ".vscode/extensions.json", "bashrc", ".gitx/hooks/a", "hidden/hooks/post-checkout", ".env", "env/other.sh", "config",
	} {
		if flagged(r.writeCall(name, "x")) {
			t.Errorf("writing %s is flagged", name)
		}
	}
	for _, c := range []struct {
		src, dst string
		want     bool
	}{
		{"bundle", "sub/bundle", true},
		{"hidden", ".git2", false},
		{"hidden", "sub/.git", true},
		{"hidden/hooks", ".git/modules/m/hooks", true},
		{"plain/Makefile", ".envrc", true},
		{"plain", "elsewhere", false},
		{"githooks", "elsewhere", true},
		{".bashrc", "elsewhere", true},
		{"g", "elsewhere", false},
	} {
		if got := flagged(r.moveCall(c.src, c.dst)); got != c.want {
			t.Errorf("moving %s to %s: flagged %v", c.src, c.dst, got)
		}
	}
	if !flagged(r.pathCall(wire.TypeFileDelete, ".git")) || !flagged(r.pathCall(wire.TypeFileDelete, "bundle")) || flagged(r.pathCall(wire.TypeFileDelete, "plain")) {
		t.Error("the delete of start-up names that are not the session's own must be flagged, and only that")
	}
	if !flagged(r.pathCall(wire.TypeFileMkdir, ".git/hooks/a/b")) || flagged(r.pathCall(wire.TypeFileMkdir, ".idea")) {
		t.Error("a folder inside a start-up folder must be flagged, and only that")
	}
	res, _, err := r.do(r.writeCall(".envrc", "y"))
	must(t, err)
	if r.text("env/real.sh") != "y" || len(res.Notes) != 1 || res.Notes[0] != "changed .envrc, which other programs run" {
		t.Errorf("%q", res.Notes)
	}
}

// What Describe saw and what Run finds differ: ask again.
func TestChangedSinceTheCard(t *testing.T) {
	r := newRig(t)
	r.put("dir/a", "x")
	r.put("f", "x")
	r.put("dst", "x")
	r.link("f", "l")
	for name, c := range map[string]struct {
		call   capabilities.Call
		change func()
	}{
		"delete: one more":        {r.pathCall(wire.TypeFileDelete, "dir"), func() { r.put("dir/b", "y") }},
		"delete: larger":          {r.pathCall(wire.TypeFileDelete, "dir"), func() { r.put("dir/a", "much more") }},
		"delete: replaced":        {r.pathCall(wire.TypeFileDelete, "dir"), func() { must(t, os.Rename(r.at("dir"), r.at("was"))); r.put("dir/a", "x") }},
		"delete: a hook appeared": {r.pathCall(wire.TypeFileDelete, "dir"), func() { r.put("dir/.envrc", "") }},
		"move: target appeared":   {r.moveCall("f", "fresh"), func() { r.put("fresh", "x") }},
		"move: target changed":    {r.moveCall("f", "dst"), func() { r.put("dst", "changed") }},
		"move: source replaced":   {r.moveCall("f", "there"), func() { r.put("f2", "x"); must(t, os.Rename(r.at("f2"), r.at("f"))) }},
		"write: link redirected":  {r.writeCall("l", "x"), func() { must(t, os.Remove(r.at("l"))); r.link("dst", "l") }},
		"read: replaced":          {r.readCall("dst"), func() { r.put("d2", "x"); must(t, os.Rename(r.at("d2"), r.at("dst"))) }},
		"read: much larger":       {r.readCall("dst"), func() { r.put("dst", strings.Repeat("x", 5000)) }},
		"list: replaced":          {r.listCall("dir", 1), func() { must(t, os.RemoveAll(r.at("dir"))); r.put("keep", ""); must(t, os.Mkdir(r.at("dir"), 0o755)) }},
		"mkdir: parent appeared":  {r.pathCall(wire.TypeFileMkdir, "p/q"), func() { must(t, os.MkdirAll(r.at("p"), 0o755)) }},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := r.describe(c.call)
			must(t, err)
			g := capabilitytest.Grant(t, r.s, "files", d)
			c.change()
			before := capabilitytest.Tree(t, r.s.Folder)
			if _, err := r.e.Run(t.Context(), c.call, g, &capabilitytest.Output{}); !errors.Is(err, consent.ErrChanged) {
				t.Errorf("%v", err)
			}
			if capabilitytest.Tree(t, r.s.Folder) != before {
				t.Error("something was done")
			}
		})
	}
	// A log that grows a little is the file that was shown.
	r.put("log", strings.Repeat("x", 100_000))
	d, err := r.describe(r.readCall("log"))
	must(t, err)
	r.put("log", strings.Repeat("x", 100_010))
	out := &capabilitytest.Output{}
	if _, err := r.e.Run(t.Context(), r.readCall("log"), capabilitytest.Grant(t, r.s, "files", d), out); err != nil || out.Bytes() != 100_010 {
		t.Errorf("%v, %d bytes", err, out.Bytes())
	}
}

// Moves between file systems: everything arrives, and only then the source goes.
func TestMoveAcross(t *testing.T) {
	r := newRig(t)
	across := func(src, dst string) error {
		t.Helper()
		j, err := openJail(r.s)
		must(t, err)
		defer j.close()
		o := &moveOp{request: request{e: r.e, j: j}, p: &wire.FileMove{SessionID: r.s.ID, Src: src, Dst: dst}}
		if _, err := o.look(t.Context()); err != nil {
			return err
		}
		from, err := o.src.base.open(o.src.dir())
		must(t, err)
		defer from.Close()
		to, err := o.dst.base.open(o.dst.dir())
		must(t, err)
		defer to.Close()
		return o.across(t.Context(), from, to)
	}
	_, err := r.write("/tmp/tree/mine", "M")
	must(t, err)
	r.put("/tmp/tree/sub/theirs", "T")
	must(t, os.Chmod(r.at("/tmp/tree/sub/theirs"), 0o751))
	must(t, os.Chmod(r.at("/tmp/tree/sub"), 0o750))
	then := time.Unix(1_600_000_000, 0)
	must(t, os.Chtimes(r.at("/tmp/tree/sub/theirs"), then, then))
	r.link("sub/theirs", "/tmp/tree/link")
	must(t, across("/tmp/tree", "/home/user/here"))
	if _, err := os.Lstat(r.at("/tmp/tree")); err == nil {
		t.Error("the source is still there")
	}
	fi, err := os.Stat(r.at("here/sub/theirs"))
	must(t, err)
	dir, err := os.Stat(r.at("here/sub"))
	must(t, err)
	target, _ := os.Readlink(r.at("here/link"))
	if r.text("here/mine") != "M" || r.text("here/sub/theirs") != "T" || fi.Mode() != 0o751 || dir.Mode().Perm() != 0o750 || !fi.ModTime().Equal(then) || target != "sub/theirs" {
		t.Errorf("%v, %v, %v, %q", fi.Mode(), dir.Mode(), fi.ModTime(), target)
	}
	if v, _ := r.verdict(r.writeCall("here/mine", "y"), consent.ModeWork); v != "allow" {
		t.Error("what the session made is not known as its own any more")
	}
	// From the folder to tmp and over an existing file.
	r.put("theirs", "T")
	r.put("/tmp/there", "old")
	must(t, across("theirs", "/tmp/there"))
	if r.text("/tmp/there") != "T" || r.text("theirs") != "" {
		t.Error("a file must take the place of a file")
	}
	// Something that cannot be copied: nothing has changed.
	r.put("odd/f", "x")
	must(t, syscall.Mkfifo(r.at("odd/pipe"), 0o600))
	before := capabilitytest.Tree(t, filepath.Dir(r.s.Folder))
	wantCode(t, across("odd", "/tmp/odd"), wire.CodePathKind)
	if after := capabilitytest.Tree(t, filepath.Dir(r.s.Folder)); after != before {
		t.Errorf("something was half done:\n%s\nwas\n%s", after, before)
	}
	r.noTemps()
	// The whole way, where this computer has two file systems at hand.
	shm, err := os.MkdirTemp("/dev/shm", "files-test")
	if err == nil {
		defer os.RemoveAll(shm)
		r.s.Tmp = shm
		r.put("/tmp/x/y", "over")
		e, err := r.move("/tmp/x", "/home/user/deep/er/x")
		must(t, err)
		if e.Path != "/home/user/deep/er/x" || r.text("deep/er/x/y") != "over" {
			t.Errorf("%+v", e)
		}
	}
}

// Each of the requests takes only the grant that is for it.
func TestEveryRequestNeedsItsGrant(t *testing.T) {
	r := newRig(t)
	r.put("f", "x")
	r.put("d/g", "x")
	calls := []capabilities.Call{r.readCall("f"), r.writeCall("f", "y"), r.pathCall(wire.TypeFileStat, "f"), r.listCall("d", 1),
		r.pathCall(wire.TypeFileMkdir, "new"), r.pathCall(wire.TypeFileDelete, "f"), r.moveCall("f", "h"), r.moveCall("f", "i"), r.writeCall("f", "z"), r.readCall("d/g"),
		r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Path: "d"}), r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Path: "d", Recursive: true}),
		r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Path: "d", Text: "x", Max: 1}), r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Path: "d", Name: "x", Max: 1})}
	before := capabilitytest.Tree(t, r.s.Folder)
	for i, c := range calls {
		grants := []consent.Grant{{}}
		for k, other := range calls {
			if k != i {
				d, err := r.describe(other)
				must(t, err)
				grants = append(grants, capabilitytest.Grant(t, r.s, "files", d))
			}
		}
		for k, g := range grants {
			out := &capabilitytest.Output{}
			if _, err := r.e.Run(t.Context(), c, g, out); !errors.Is(err, consent.ErrNoGrant) || len(out.Frames()) > 0 {
				t.Errorf("call %d with grant %d: %v, %d frames", i, k, err, len(out.Frames()))
			}
		}
	}
	if capabilitytest.Tree(t, r.s.Folder) != before {
		t.Error("something was done")
	}
}
