//go:build linux

package files

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// secret is a file outside the folder that nobody may come to.
func (r *rig) secret() string {
	p := filepath.Join(filepath.Dir(r.s.Folder), "secret.txt")
	must(r, os.WriteFile(p, []byte("SECRET"), 0o644))
	return p
}

// beside /tmp, which is the session's own by name: a directory for a rig whose
// surroundings have names of their own.
func elsewhere(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "files-test")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestNames(t *testing.T) {
	r := newRigIn(t, elsewhere(t))
	r.put("d/f", "here")
	must(t, os.WriteFile(filepath.Join(r.s.Tmp, "f"), []byte("tmp"), 0o644))
	outer := filepath.Join(elsewhere(t), "alias")
	must(t, os.Symlink(filepath.Dir(r.s.Folder), outer))
	for _, c := range []struct{ asked, text, path string }{
		{"d/f", "here", "d/f"},
		{"./d//f", "here", "d/f"},
		{"d/../d/f", "here", "d/f"},
		{"~/d/f", "here", "~/d/f"},
		{"/home/user/d/f", "here", "/home/user/d/f"},
		{"/home/user/./d/../d/f", "here", "/home/user/d/f"},
		{"//home/user/d/f/", "here", "/home/user/d/f"},
		{"/etc/../home/user/d/f", "here", "/home/user/d/f"},
		{r.s.Folder + "/d/f", "here", r.s.Folder + "/d/f"},
		{outer + "/folder/d/f", "here", outer + "/folder/d/f"},
		{"../folder/d/f", "here", "d/f"},
		{"/tmp/f", "tmp", "/tmp/f"},
		{"/tmp/./f", "tmp", "/tmp/f"},
	} {
		got, err := r.read(c.asked)
		if err != nil || got != c.text {
			t.Errorf("read %q: %q, %v", c.asked, got, err)
			continue
		}
		e, err := r.stat(c.asked)
		if err != nil || e == nil || e.Path != c.path {
			t.Errorf("stat %q: %+v, %v; want the path %q", c.asked, e, err, c.path)
		}
	}
	// The alias wins over a real user of that name, and "~x" is nobody's home.
	if _, err := r.read("~root/.profile"); wire.CodeOf(err) != wire.CodePathNotFound {
		t.Errorf("~root: %v", err)
	}
	r.put("~root/x", "plain")
	if got, err := r.read("~root/x"); got != "plain" {
		t.Errorf("a name that begins with ~: %q, %v", got, err)
	}
}

func TestOutsideIsRefused(t *testing.T) {
	r := newRigIn(t, elsewhere(t))
	secret := r.secret()
	sibling := r.s.Folder + "-secrets"
	must(t, os.Mkdir(sibling, 0o755))
	must(t, os.WriteFile(sibling+"/x", []byte("SECRET"), 0o644))
	r.put("d/f", "x")
	// modelcontextprotocol/servers#1845: a link to a file outside.
	r.link(secret, "file-link")
	r.link("../secret.txt", "relative-link")
	// wonderwhy-er/DesktopCommanderMCP#420: a linked folder outside, and a leaf
	// that is not there yet.
	r.link(filepath.Dir(secret), "dir-link")
	r.link("dir-link", "chain")
	r.link("/", "root-link")
	r.link("/proc/self/root", "proc-link")
	r.link("/home/user/../../etc", "alias-link")
	r.link("/tmp/../etc/passwd", "tmp-link")
	r.link("/tmp/of-the-computer/x", "computer-tmp-link")
	for _, name := range []string{
		secret, "../secret.txt", "d/../../secret.txt", "/home/user/../secret.txt", "~/../secret.txt", "/tmp/../secret.txt",
		// docker/docker-agent#1077: whole components, not prefixes.
		sibling + "/x", "../folder-secrets/x", "/home/username/x", "/tmpx", "/home/userx/d/f",
		"/", "/etc/passwd", "/home", "//etc//passwd", "/home/user/../../etc/passwd",
		"file-link", "relative-link", "dir-link/secret.txt", "dir-link/new.txt", "chain/new.txt", "root-link/etc/passwd",
		"dir-link/new/deeper/still.txt",
		"/proc/self/root/etc/passwd", "/proc/self/fd/0", "/proc/self/cwd/x", "/dev/null", "/dev/fd/0", "proc-link/etc/passwd",
		"alias-link/passwd", "tmp-link", "computer-tmp-link", "/mnt/c/x", "/sys/kernel/x",
		"file-link/../x/../../../etc/passwd", "missing/../../secret.txt", "missing/../../../etc/passwd",
	} {
		before := capabilitytest.Tree(t, filepath.Dir(r.s.Folder))
		for what, do := range map[string]func() error{
			"read":  func() error { _, err := r.read(name); return err },
			"write": func() error { _, err := r.write(name, "x"); return err },
			"list":  func() error { _, err := r.list(name+"/.", 1); return err },
			"search": func() error {
				_, err := r.search(wire.FileSearch{Path: name + "/.", Text: "SECRET"})
				return err
			},
			"watch": func() error {
				_, err := r.describe(r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Path: name + "/.", Recursive: true}))
				return err
			},
			"mkdir": func() error { _, err := r.mkdir(name + "/."); return err },
			"move":  func() error { _, err := r.move("d/f", name+"/moved"); return err },
		} {
			if err := do(); wire.CodeOf(err) != wire.CodePathOutside {
				t.Errorf("%s %q: %v, want %s", what, name, err, wire.CodePathOutside)
			}
		}
		if after := capabilitytest.Tree(t, filepath.Dir(r.s.Folder)); after != before {
			t.Fatalf("%q changed something:\n%s\nwas\n%s", name, after, before)
		}
	}
	// A search goes through no link, so it finds nothing of what they lead to.
	found, err := r.search(wire.FileSearch{Text: "SECRET"})
	if err != nil || len(found.Hits) > 0 || found.More {
		t.Errorf("%+v, %v", found, err)
	}
	// SkillfulAgents/SuperAgent#209: who reads addresses decodes them once;
	// here "%2e%2e" is a name like another.
	_, err = r.read("%2e%2e/secret.txt")
	wantCode(t, err, wire.CodePathNotFound)
	_, err = r.write("%2e%2e/ok.txt", "x")
	must(t, err)
	if r.text("%2e%2e/ok.txt") != "x" {
		t.Error("a name with per cent signs was changed")
	}
	// What a link outside is may be seen and removed; not what it leads to.
	e, err := r.stat("file-link")
	if err != nil || e.Kind != "other" || e.LinkTarget != secret {
		t.Errorf("%+v, %v", e, err)
	}
	must(t, r.delete("file-link"))
	must(t, r.delete("dir-link"))
	if data, err := os.ReadFile(secret); err != nil || string(data) != "SECRET" {
		t.Error("the file outside was harmed")
	}
}

// modelcontextprotocol/servers#734: links that stay inside keep working.
func TestLinksInside(t *testing.T) {
	r := newRigIn(t, elsewhere(t))
	r.put("real/deep/f", "in")
	must(t, os.WriteFile(filepath.Join(r.s.Tmp, "t"), []byte("tmp"), 0o644))
	outer := filepath.Join(elsewhere(t), "other-name")
	must(t, os.Symlink(r.s.Folder, outer))
	r.link("real", "rel")
	r.link("../real/deep", "x/up")
	r.link(r.s.Folder+"/real", "abs")
	r.link("/home/user/real/deep", "alias")
	r.link("../folder/real", "out-and-in")
	r.link(outer+"/real", "by-other-name")
	r.link("alias/f", "two")
	r.link("/tmp/t", "to-tmp")
	must(t, os.Symlink("/home/user/real", filepath.Join(r.s.Tmp, "back")))
	for name, want := range map[string]string{
		"rel/deep/f": "in", "x/up/f": "in", "abs/deep/f": "in", "alias/f": "in", "out-and-in/deep/f": "in",
		"by-other-name/deep/f": "in", "two": "in", "abs/../x/up/f": "in", "rel/deep/../../x/up/f": "in",
		"to-tmp": "tmp", "/tmp/back/deep/f": "in",
	} {
		if got, err := r.read(name); err != nil || got != want {
			t.Errorf("read %q: %q, %v", name, got, err)
		}
	}
	// A write goes through the link, which stays.
	for _, name := range []string{"two", "alias/f", "abs/deep/f"} {
		_, err := r.write(name, "written by "+name)
		must(t, err)
		if got := r.text("real/deep/f"); got != "written by "+name {
			t.Errorf("%s: the file holds %q", name, got)
		}
	}
	if target, _ := os.Readlink(r.at("two")); target != "alias/f" {
		t.Error("the link was replaced")
	}
	// One that leads nowhere yet makes what it leads to, inside.
	r.link("/home/user/later/new.txt", "dangling")
	e, err := r.write("dangling", "made")
	must(t, err)
	if r.text("later/new.txt") != "made" || e.Path != "dangling" || e.LinkTarget != "later/new.txt" {
		t.Errorf("%q, %+v", r.text("later/new.txt"), e)
	}
}

func TestLinksInCircles(t *testing.T) {
	r := newRig(t)
	r.link("b", "a")
	r.link("a", "b")
	r.link("self/x", "self")
	r.link("/home/user/abs", "abs")
	for _, name := range []string{"a", "b", "self", "self/y", "abs", "a/x/y"} {
		_, err := r.read(name)
		wantCode(t, err, wire.CodePathKind)
		_, err = r.write(name, "x")
		wantCode(t, err, wire.CodePathKind)
	}
	if e, err := r.stat("a"); err != nil || e.Kind != "other" {
		t.Errorf("%+v, %v", e, err)
	}
	must(t, r.delete("a"))
	// As many links as Linux takes still work, also with long ways.
	r.put("l0", "end")
	for i := 1; i <= maxLinks; i++ {
		r.link("l"+itoa2(i-1), "l"+itoa2(i))
	}
	if got, err := r.read("l" + itoa2(maxLinks)); got != "end" {
		t.Errorf("%d links: %q, %v", maxLinks, got, err)
	}
	// A name that grows with each link is bounded too.
	r.link(strings.Repeat("grow/", 100)+"x", "grow")
	if _, err := r.read("grow"); wire.CodeOf(err) != wire.CodePathKind && wire.CodeOf(err) != wire.CodePathChars {
		t.Errorf("a growing link: %v", err)
	}
}

func itoa2(i int) string { return strings.TrimLeft(itoa(i)[:4], "0") + itoa(i)[4:] }

func TestOddNames(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{
		"line\nbreak", "tab\there", "right\u202eto left", "zero\u200bwidth", "ünï", "emoji 🦊", "back\\slash", "%s%d%!", "-rf", " ", "a\u0301", "quote\"'`$(x)",
		"CON", "nul.txt", "a:b", "C:\\x", "\\\\?\\C:\\x", "x::$DATA", "ends with dot.", strings.Repeat("n", 255), "\x01\x1b[31m",
	} {
		e, err := r.write(name, "of "+name)
		if err != nil || e.Name != name {
			t.Errorf("%q: %+v, %v", name, e, err)
			continue
		}
		if got, err := r.read("/home/user/" + name); err != nil || got != "of "+name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
		d, err := r.describe(r.pathCall(wire.TypeFileDelete, name))
		must(t, err)
		if strings.ContainsAny(d.Title+d.Sentence, "\n\t\x1b\u202e\u200b") {
			t.Errorf("a title with a character that nobody sees: %q", d.Title)
		}
		must(t, r.delete(name))
	}
	for _, name := range []string{strings.Repeat("n", 256), strings.Repeat("é", 150), "d/" + strings.Repeat("x", 300) + "/y", strings.Repeat("d/", 300) + "x"} {
		_, err := r.write(name, "x")
		wantCode(t, err, wire.CodePathChars)
		_, err = r.read(name)
		wantCode(t, err, wire.CodePathChars)
	}
	// The wire refuses a NUL; so does this end, for whoever calls it else.
	c := r.readCall("x")
	c.Payload = &wire.FileRead{SessionID: r.s.ID, Path: "a\x00b"}
	_, err := r.describe(c)
	wantCode(t, err, wire.CodePathChars)
	// A name that is not UTF-8 is listed as well as it can be.
	must(t, os.WriteFile(r.at("caf\xe9"), nil, 0o600))
	list, err := r.list(".", 1)
	must(t, err)
	if len(list) != 1 || list[0].Name != `caf\xe9` {
		t.Errorf("%+v", list)
	}
}

func TestPipesSocketsDevices(t *testing.T) {
	r := newRig(t)
	must(t, syscall.Mkfifo(r.at("pipe"), 0o666))
	// Made in a short directory and moved: the name of a socket is short.
	short, err := os.MkdirTemp("/tmp", "s")
	must(t, err)
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	must(t, err)
	defer l.Close()
	must(t, os.Rename(filepath.Join(short, "s"), r.at("socket")))
	names := []string{"pipe", "socket"}
	if os.Geteuid() == 0 {
		if err := syscall.Mknod(r.at("null"), syscall.S_IFCHR|0o666, 1<<8|3); err == nil {
			names = append(names, "null")
		}
	}
	r.link("pipe", "to-pipe")
	if found, err := r.search(wire.FileSearch{Text: "x"}); err != nil || len(found.Hits) > 0 || found.More {
		t.Errorf("a search among pipes and devices: %+v, %v", found, err)
	}
	for _, name := range append(names, "to-pipe") {
		begin := time.Now()
		_, err := r.read(name)
		wantCode(t, err, wire.CodePathKind)
		_, err = r.write(name, "x")
		wantCode(t, err, wire.CodePathKind)
		_, err = r.list(name, 1)
		wantCode(t, err, wire.CodePathKind)
		e, err := r.stat(name)
		if err != nil || e.Kind != "other" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
	// Put in a file's place after the walk: the open does not block, and says no.
	r.put("f", "x")
	j, err := openJail(r.s)
	must(t, err)
	defer j.close()
	_, p, err := j.at("f", true)
	must(t, err)
	must(t, os.Rename(r.at("pipe"), r.at("f")))
	o := &readOp{request: request{e: r.e, j: j}, p: &wire.FileRead{Path: "f"}}
	if _, err := o.look(t.Context()); wire.CodeOf(err) != wire.CodePathKind {
		t.Errorf("%v", err)
	}
	if f, err := p.base.root.OpenFile(p.rel, os.O_RDONLY|openFlags, 0); err == nil {
		n, err := lstatFile(f)
		if err != nil || n.mode.IsRegular() {
			t.Errorf("the open pipe passes for a file: %v, %v", n.mode, err)
		}
		f.Close()
	}
	for _, name := range names[1:] {
		must(t, r.delete(name))
	}
}

func TestFolderGone(t *testing.T) {
	r := newRig(t)
	r.put("f", "x")
	away := r.s.Folder + "-moved"
	must(t, os.Rename(r.s.Folder, away))
	all := func(what string) {
		t.Helper()
		for _, c := range []capabilities.Call{r.readCall("f"), r.writeCall("f", "y"), r.pathCall(wire.TypeFileStat, "f"), r.listCall("", 1),
			r.pathCall(wire.TypeFileMkdir, "d"), r.pathCall(wire.TypeFileDelete, "f"), r.moveCall("f", "g"), r.readCall("/tmp/x"),
			r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID}), r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Text: "x", Max: 1})} {
			_, _, err := r.do(c)
			if wire.CodeOf(err) != wire.CodeChanged || !strings.Contains(err.Error(), "not there any more") {
				t.Errorf("%s, %s: %v", what, c.Type, err)
			}
		}
	}
	all("vanished")
	must(t, os.Mkdir(r.s.Folder, 0o755))
	must(t, os.WriteFile(r.at("f"), []byte("another's"), 0o644))
	all("replaced")
	if r.text("f") != "another's" {
		t.Error("the folder that took its place was touched")
	}
	must(t, os.RemoveAll(r.s.Folder))
	must(t, os.Symlink("/etc", r.s.Folder))
	all("replaced by a link")
	must(t, os.Remove(r.s.Folder))
	must(t, syscall.Mkfifo(r.s.Folder, 0o644))
	all("replaced by a pipe")
	must(t, os.Remove(r.s.Folder))
	must(t, os.Symlink(away, r.s.Folder))
	if got, err := r.read("f"); got != "x" {
		t.Errorf("the same folder through a link: %q, %v", got, err)
	}
}

// The tmp of one session is not that of another, nor the computer's.
func TestTmpIsTheSessionsOwn(t *testing.T) {
	r := newRig(t)
	other := &rig{TB: t, s: capabilitytest.NewSession(t, consent.ModeWork), e: r.e}
	_, err := r.write("/tmp/only/mine.txt", "x")
	must(t, err)
	if _, err := other.read("/tmp/only/mine.txt"); wire.CodeOf(err) != wire.CodePathNotFound {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat("/tmp/only"); err == nil {
		t.Error("it is in the computer's own /tmp")
	}
	e, err := r.move("/tmp/only/mine.txt", "/home/user/kept.txt")
	must(t, err)
	if e.Path != "/home/user/kept.txt" || r.text("kept.txt") != "x" {
		t.Errorf("%+v", e)
	}
	e, err = r.move("/home/user/kept.txt", "/tmp/again.txt")
	must(t, err)
	if e.Path != "/tmp/again.txt" {
		t.Errorf("%+v", e)
	}
}
