package store_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisk is a directory on a disk of 4 MiB where this may be mounted, and
// otherwise one whose files may not grow. fill leaves no room, free makes room.
func smallDisk(t *testing.T) (dir string, fill, free func()) {
	t.Helper()
	dir = t.TempDir()
	if mount := dir; syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=4m") == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(mount, 0); err != nil {
				t.Error(err)
			}
		})
		ballast := filepath.Join(mount, "ballast")
		return filepath.Join(mount, "data"), func() {
			f, err := os.Create(ballast)
			must(t, err)
			defer f.Close()
			for {
				if _, err := f.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, func() { must(t, os.Remove(ballast)) }
	}
	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	set := func(n uint64) {
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: old.Max}))
	}
	t.Cleanup(func() { set(old.Cur) })
	return dir, func() { set(4096) }, func() { set(old.Cur) }
}
