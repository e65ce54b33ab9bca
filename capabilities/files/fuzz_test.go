//go:build linux

package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// FuzzResolve holds the walk against a real tree: with any name, and any two
// links in the folder, it never gives a place outside, what it gives has no
// link left in it, and what the system itself finds inside it finds too.
func FuzzResolve(f *testing.F) {
	for _, seed := range [][3]string{
		{"d/f", "d", "f"}, {"d/one/f", "../d", "one/../.."}, {"one", "/etc/passwd", ".."}, {"../folder/d/f", "../../..", "/"},
		{"/home/user/d/one", "/home/user/d/f", "/tmp/x"}, {"~/../x", "two/x", "one"}, {"one/two/f", "d", "."}, {"d/two/d/f", "", "../one/.."},
		{"d/f/..", "d/", "//home//user"}, {"missing/../one/../f", "d/..", "/proc/self/root"}, {"/proc/self/cwd", "/proc/self/fd/3", "/dev/fd"},
		{"./././d//f", "d/f/", "..//..//folder//d"}, {"one/../../folder/f", "FOLDER", "FOLDER/d/f"}, {"FOLDER/d/two", "FOLDER/../folder/d", "../one/f"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, name, one, two string) {
		if len(name) > wire.MaxPath || !utf8.ValidString(name) {
			return
		}
		base := elsewhere(t)
		s := capabilitytest.NewSessionIn(t, base, consent.ModeWork)
		must(t, os.Mkdir(filepath.Join(s.Folder, "d"), 0o755))
		must(t, os.WriteFile(filepath.Join(s.Folder, "d/f"), nil, 0o644))
		must(t, os.WriteFile(filepath.Join(s.Folder, "f"), nil, 0o644))
		real := func(p string) string { return strings.ReplaceAll(p, "FOLDER", s.Folder) }
		name, one, two = real(name), real(one), real(two)
		_ = os.Symlink(one, filepath.Join(s.Folder, "one")) // some texts cannot be links
		_ = os.Symlink(two, filepath.Join(s.Folder, "d/two"))
		j, err := openJail(s)
		must(t, err)
		defer j.close()
		for _, follow := range []bool{true, false} {
			_, p, err := j.at(name, follow)
			if err != nil {
				if wire.CodeOf(err) == "" {
					t.Errorf("%q: an error without a code: %v", name, err)
				}
				if follow {
					if where, ok := inside(s.Folder, name, one+two); ok {
						t.Errorf("%q (links %q, %q): the system finds %s, the walk says %v", name, one, two, where, err)
					}
				}
				continue
			}
			abs := p.abs()
			if abs != p.base.real && !strings.HasPrefix(abs, p.base.real+"/") || strings.Contains("/"+p.rel+"/", "/../") {
				t.Fatalf("%q leads to %s, outside %s", name, abs, p.base.real)
			}
			there := abs
			for range p.missing {
				there = filepath.Dir(there)
			}
			if p.missing == 0 && !follow {
				there = filepath.Dir(there)
				if p.isRoot() {
					continue
				}
			}
			got, err := filepath.EvalSymlinks(there)
			if err != nil || got != there {
				t.Fatalf("%q leads to %s, which is really %s (%v)", name, there, got, err)
			}
			if where, ok := inside(s.Folder, name, one+two); ok && follow && where != abs {
				t.Errorf("%q (links %q, %q): the system finds %s, the walk %s", name, one, two, where, abs)
			}
		}
	})
}

// inside is where the system finds a name, when that is in the folder; names
// and links with a meaning of their own here are left out.
func inside(folder, name, links string) (string, bool) {
	if strings.HasPrefix(name, "/") && !strings.HasPrefix(name, folder+"/") || strings.HasPrefix(name, "~") ||
		strings.Contains(name+links, "/home") || strings.Contains(name+links, "tmp/") && !strings.Contains(name+links, folder) {
		return "", false
	}
	if !strings.HasPrefix(name, "/") {
		name = folder + "/" + name
	}
	fi, err := os.Stat(name)
	if err != nil {
		return "", false
	}
	where, err := filepath.EvalSymlinks(name)
	if err != nil || where != folder && !strings.HasPrefix(where, folder+"/") {
		return "", false
	}
	if now, err := os.Stat(where); err != nil || !os.SameFile(fi, now) {
		return "", false
	}
	return where, true
}
