//go:build linux

package main

import (
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
)

// A clean Debian installs the package, pairs, runs a card, and removes it:
// nothing is left but what the person chose to keep.
func TestPackageOnACleanDebian(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("a Debian of its own takes root to make")
	}
	deb := makePackage(t)
	d := apptest.New(t, apptest.Options{Ordinary: true})
	// What the package stands on is there before, since it may leave things of
	// its own; a computer with a screen can draw.
	clean := newDebian(t, d, append(dependencies(t, deb), "libgl1-mesa-dri")...)
	before := clean.files()
	home := filesBelow(t, d.Home)
	clean.apt("install", deb)
	for _, name := range []string{"usr/bin/localpc", "usr/share/applications/localpc.desktop", "usr/lib/systemd/user/localpc.service"} {
		if _, err := os.Stat(filepath.Join(clean.root, name)); err != nil {
			t.Errorf("the package brings no %s", name)
		}
	}
	clean.licences()

	// As people have it: without naming where anything is kept.
	p := &program{t: t, d: d, bin: clean.bin, data: filepath.Join(d.Home, ".local/share/localpc"), addr: freeAddress(t)}
	p.p = d.Start(filepath.Join(p.bin, "localpc"), "--embedded-hub", p.addr)
	d.WaitOutput(p.p, 20*time.Second, "running")
	d.WaitTrayIcon(20 * time.Second)
	p.pairByMouse()
	p.must("autostart", "on")
	if out, err := d.Run(20*time.Second, "desktop-file-validate", filepath.Join(d.Home, ".config/autostart/localpc.desktop")); err != nil {
		t.Errorf("the entry for the log-in is not valid: %s", out)
	}
	s := newSDK(t, p.key("Research agent"))
	made := s.start("create", nil)
	p.allowSession("Research agent", "Ask me each time")
	made.ok(20 * time.Second)
	run := s.start("run", map[string]any{"cmd": "cat /etc/os-release; pwd"})
	card := p.card("cat /etc/os-release; pwd")
	d.Screenshot("clean-debian")
	p.press(card, "Allow")
	if r := resultOf(t, run.ok(20*time.Second)); !strings.Contains(r.Stdout, "Debian") || !strings.HasSuffix(r.Stdout, "/home/user\n") {
		t.Errorf("the command gave %+v", r)
	}
	folder := p.status().Sessions[0].Folder

	// Removed by the person, who keeps the record, and then by the system.
	out, err := d.Run(60*time.Second, filepath.Join(p.bin, "localpc"), "remove", "--keep", "--yes")
	if err != nil {
		t.Fatalf("remove: %v\n%s", err, out)
	}
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("the removed program ended with %d", code)
	}
	if out, err := d.Run(20*time.Second, "secret-tool", "search", "--all", "service", "localpc"); err == nil && strings.Contains(out, "localpc") {
		t.Errorf("the keychain keeps %s", out)
	}
	clean.apt("purge", "localpc")
	if left := more(clean.files(), before); len(left) > 0 {
		t.Errorf("the system keeps %q", left)
	}
	for _, left := range more(filesBelow(t, d.Home), home) {
		in := filepath.Join(d.Home, left)
		switch {
		case strings.HasPrefix(in, folder) || strings.HasPrefix(folder, in): // the person's work
		case in == p.data || in == filepath.Join(p.data, "machine.db") || strings.HasPrefix(in, filepath.Join(p.data, "outputs")) || strings.HasPrefix(in, filepath.Join(p.data, "versions")): // kept by choice
		case strings.Contains(left, "dconf") || strings.Contains(left, "keyrings") || strings.Contains(left, "mesa_shader_cache") || strings.Contains(left, "xfce4") || strings.Contains(left, ".cache"):
			// Other programs' own, of the desktop and the system.
		default:
			t.Errorf("the home keeps %s", left)
		}
	}
	// What was kept can still be read.
	if _, err := os.Stat(filepath.Join(p.data, "machine.db")); err != nil {
		t.Errorf("the record was to be kept: %v", err)
	}
}

// makePackage makes the .deb as it is shipped.
func makePackage(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", root, "package").CombinedOutput(); err != nil {
		t.Fatalf("make package: %v\n%s", err, out)
	}
	all, err := filepath.Glob(filepath.Join(root, "build", "*.deb"))
	if err != nil || len(all) != 1 {
		t.Fatalf("make package made %q", all)
	}
	return all[0]
}

// dependencies are the packages that a package wants.
func dependencies(t *testing.T, deb string) []string {
	t.Helper()
	out, err := exec.Command("dpkg-deb", "-f", deb, "Depends").Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for dep := range strings.SplitSeq(string(out), ",") {
		names = append(names, strings.Fields(dep)[0])
	}
	return names
}

// debian is a Debian in a folder, with nothing in it but its base.
type debian struct {
	t    testing.TB
	root string
	bin  string // programs here that run those of the same name there
}

func newDebian(t testing.TB, d *apptest.Desktop, packages ...string) *debian {
	t.Helper()
	c := &debian{t: t, root: filepath.Join(d.Dir, "debian"), bin: filepath.Join(d.Dir, "bin")}
	// The same mirror and release that this system uses.
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(COMPONENT)").Output()
	source := strings.Fields(string(out))
	if err != nil || len(source) < 3 {
		t.Fatalf("where this system's packages come from is not known: %v", err)
	}
	if out, err := exec.Command("debootstrap", "--variant=minbase", source[1], c.root, source[0]).CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, out)
	}
	if b, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		if err := os.WriteFile(filepath.Join(c.root, "etc/resolv.conf"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.apt("install", packages...)
	if err := os.MkdirAll(c.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localpc", "localpc-hub"} {
		script := fmt.Sprintf("#!/bin/sh\nPATH=/usr/bin:/bin exec %s --die-with-parent --bind '%s' / --dev-bind /dev /dev --bind /proc /proc --bind '%s' '%s' --bind /tmp/.X11-unix /tmp/.X11-unix --chdir '%s' -- /usr/bin/%s \"$@\"\n",
			"/usr/bin/bwrap", c.root, d.Dir, d.Dir, d.Home, name)
		if err := os.WriteFile(filepath.Join(c.bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// apt runs apt-get in it, with a package file of this system's if one is named.
func (c *debian) apt(verb string, packages ...string) {
	c.t.Helper()
	for i, p := range packages {
		if filepath.IsAbs(p) {
			b, err := os.ReadFile(p)
			if err == nil {
				err = os.WriteFile(filepath.Join(c.root, "tmp.deb"), b, 0o644)
			}
			if err != nil {
				c.t.Fatal(err)
			}
			packages[i] = "/tmp.deb"
			defer os.Remove(filepath.Join(c.root, "tmp.deb"))
		}
	}
	line := "mount --rbind /proc proc && mount --rbind /dev dev && exec chroot . apt-get " + verb + " -y -qq --no-install-recommends " + strings.Join(packages, " ")
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", line)
	cmd.Dir = c.root
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LANG=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("apt-get %s: %v\n%s", verb, err, out)
	}
}

// licences checks that the package passes on the licence of everything that is
// built into its programs.
func (c *debian) licences() {
	c.t.Helper()
	f, err := os.Open(filepath.Join(c.root, "usr/share/doc/localpc/licences.txt.gz"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range []string{"localpc", "localpc-desktop", "localpc-hub", "localpc-spawn"} {
		info, err := buildinfo.ReadFile(filepath.Join(c.root, "usr/lib/localpc", name))
		if err != nil || len(info.Deps) == 0 {
			c.t.Fatalf("%s does not tell what it is built of: %v", name, err)
		}
		for _, m := range info.Deps {
			if !strings.Contains(string(text), fmt.Sprintf("==== %s %s: ", m.Path, m.Version)) {
				c.t.Errorf("the licence of %s, which is in %s, is not passed on", m.Path, name)
			}
		}
	}
}

// Where the licences can't be listed in whole, making the package fails.
func TestLicencesAreAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, text := range map[string]string{"LICENSE": "free", "module/LICENSE": "free too"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(listed, built string) (string, error) {
		t.Helper()
		tool := fmt.Sprintf("#!/bin/sh\ncase $1 in version) echo \"dep example.com/a v1.0.0\"; exit %s;; env) echo '%s';; list) echo 'example.com/a v1.0.0 %[2]s/module'; exit %[3]s;; esac\n", built, dir, listed)
		program := filepath.Join(dir, "tool-"+listed+built)
		if err := os.WriteFile(program, []byte(tool), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("../../../packaging/licences", "a")
		cmd.Env = append(os.Environ(), "GO="+program)
		out, err := cmd.Output()
		return string(out), err
	}
	if out, err := run("0", "0"); err != nil || !strings.Contains(out, "==== example.com/a v1.0.0: LICENSE\nfree too") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run("1", "0"); err == nil {
		t.Errorf("with a list that broke off it passes:\n%s", out)
	}
	if out, err := run("0", "1"); err == nil {
		t.Errorf("with a program that can't be read it passes:\n%s", out)
	}
}

// files are its paths, without the package system's own notes.
func (c *debian) files() []string {
	c.t.Helper()
	return slices.DeleteFunc(filesBelow(c.t, c.root), func(f string) bool {
		for _, own := range []string{"var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "var/lib/systemd", "etc/ld.so.cache", "run", "dev", "proc", "tmp", "etc/.pwd.lock"} {
			if f == own || strings.HasPrefix(f, own+"/") {
				return true
			}
		}
		return false
	})
}

func filesBelow(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != root {
			out = append(out, strings.TrimPrefix(path, root+"/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// more is what after has that before had not.
func more(after, before []string) []string {
	had := map[string]bool{}
	for _, f := range before {
		had[f] = true
	}
	return slices.DeleteFunc(after, func(f string) bool { return had[f] })
}
