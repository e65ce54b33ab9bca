//go:build linux

package apptest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// static programs are built without cgo, as they are shipped.
var static = []string{"localpc-spawn", "localpc-hub"}

// built names the packages that this test program has built.
var built sync.Map

// Install builds main packages of this module as they are shipped, each once
// in a test program, and puts them, by their last names, into one folder that
// is first in the desktop's PATH. It returns that folder.
func (d *Desktop) Install(packages ...string) string {
	d.t.Helper()
	root, err := exec.Command("go", "env", "GOMOD").Output()
	must(d.t, err)
	cache := filepath.Join(filepath.Dir(strings.TrimSpace(string(root))), "build", "test")
	must(d.t, os.MkdirAll(cache, 0o755))
	// Test programs of several packages run at once and share the folder.
	lock, err := os.OpenFile(filepath.Join(cache, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	must(d.t, err)
	defer lock.Close()
	must(d.t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))

	bin := d.path("bin")
	must(d.t, os.MkdirAll(bin, 0o755))
	for _, pkg := range packages {
		name := filepath.Base(pkg)
		if _, ok := built.Load(pkg); !ok {
			cmd := exec.Command("go", "build", "-tags", "gles", "-o", filepath.Join(cache, name), pkg)
			cmd.Env = os.Environ()
			if slices.Contains(static, name) {
				cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				d.t.Fatalf("build %s: %v\n%s", pkg, err, out)
			}
			built.Store(pkg, true)
		}
		must(d.t, copyFile(filepath.Join(cache, name), filepath.Join(bin, name)))
	}
	return bin
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
