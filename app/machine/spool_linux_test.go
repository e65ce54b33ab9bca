package machine

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
	"localpc/capabilities/files"
	"localpc/tunnel/wire"
)

// A large upload is in its place as a whole, and nothing is left of it elsewhere.
func TestALargeUploadIsMovedIntoItsPlace(t *testing.T) {
	r := newRig(t)
	e := files.New(files.Options{})
	t.Cleanup(func() { must(t, e.Close()) })
	r.m.registry = capabilities.NewRegistry(r.m.sessions, e)
	r.m.o.Executors = []capabilities.Capability{e}
	r.open("s1", 0)
	const size = 3<<20 + 5
	_, err := r.upload("large", size)
	must(t, err)
	fi, err := os.Stat(filepath.Join(r.folder, "large"))
	if err != nil || fi.Size() != size || fi.Mode().Perm()&0o400 == 0 {
		t.Errorf("%+v, %v", fi, err)
	}
	if left, err := os.ReadDir(r.m.o.Paths.Spool()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Uploads leave room on the disk for everything else.
func TestAnUploadLeavesRoomOnTheDisk(t *testing.T) {
	r := newRig(t)
	spool := r.m.o.Paths.Spool()
	if err := unix.Mount("tmpfs", spool, "tmpfs", 0, "size=64m"); err != nil {
		if os.Geteuid() == 0 {
			t.Fatal(err)
		}
		return // only who may mount has a small disk
	}
	defer func() { must(t, unix.Unmount(spool, unix.MNT_DETACH)) }()
	r.open("s1", 0)
	_, err := r.upload("small", lookEach)
	if wire.CodeOf(err) == wire.CodeDiskFull {
		t.Errorf("a small one: %v", err)
	}
	_, err = r.upload("large", 5*lookEach)
	wantCode(t, err, wire.CodeDiskFull)
}
