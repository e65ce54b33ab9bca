//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPolicyFile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder, link := filepath.Join(dir, "work"), filepath.Join(dir, "link")
	for _, err := range []error{os.Mkdir(folder, 0o755), os.Symlink(folder, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	top := "folder = '" + folder + "'\nmode = 'look'\n"
	good := write("good.toml", top, 0o644)
	byLink := write("by-link.toml", "folder = '"+link+"'\n", 0o400)
	toGood := filepath.Join(dir, "to-good.toml")
	if err := os.Symlink(good, toGood); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{good, byLink, toGood} {
		r := runFlags{policy: name}
		if err := r.check(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := r.policyOf(); p.File == nil || p.Folder != folder || p.File.Folder != folder || r.folder != folder || p.Preset != "" || p.Words() == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	inside := write(filepath.Join(folder, "policy.toml"), top, 0o600)
	toInside := filepath.Join(dir, "to-inside.toml")
	if err := os.Symlink(inside, toInside); err != nil {
		t.Fatal(err)
	}
	// What leads out of the folder again could lead elsewhere tomorrow.
	around := filepath.Join(dir, "around.toml")
	for _, err := range []error{os.Symlink(good, filepath.Join(folder, "out.toml")), os.Symlink("work/out.toml", around), os.Symlink(dir, filepath.Join(folder, "up"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ what, name, want string }{
		{"a link in the session folder", filepath.Join(link, "out.toml"), "leads through there"},
		{"a link to a link in the session folder", around, "leads through there"},
		{"a name through the session folder", filepath.Join(folder, "up", "good.toml"), "leads through there"},
		{"a file that others may write", write("others.toml", top, 0o646), "others may write"},
		{"a file that its group may write", write("group.toml", top, 0o664), "others may write"},
		{"a pipe", pipe, "no ordinary file"},
		{"a directory", dir, "no ordinary file"},
		{"a file in the session folder", inside, "inside " + folder},
		{"a link to one there", toInside, "inside " + folder},
		{"a file with a mistake", write("bad.toml", top+"colour = 'red'\n", 0o600), "line 3: colour"},
		{"a folder that is not there", write("gone.toml", "folder = '"+dir+"/gone'\n", 0o600), "its folder can't be used"},
		{"a file that is too long", write("long.toml", top+strings.Repeat("#\n", maxPolicy), 0o600), "longer than"},
	} {
		r := runFlags{policy: c.name}
		if err := r.check(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	var wrong usageError
	for _, r := range []runFlags{{policy: filepath.Join(dir, "none.toml")}, {policy: "containd"}, {policy: good, folder: folder}} {
		if err := r.check(); !errors.As(err, &wrong) {
			t.Errorf("--policy %s --folder %q: %v", r.policy, r.folder, err)
		}
	}
}

func TestPolicyFileOfAnother(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	me := os.Geteuid()
	if err := ownedSafely(fi, me); err != nil {
		t.Errorf("one's own: %v", err)
	}
	if err := ownedSafely(fi, me+1); (err == nil) != (me == 0) {
		t.Errorf("one of user %d, for user %d: %v", me, me+1, err)
	}
}
