package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
	"localpc/capabilities/files"
	"localpc/tunnel/wire"
)

// upload writes a file through the hub.
func (r *rig) upload(path string, size int) (wire.Message, error) {
	r.t.Helper()
	st, err := r.pair.Hub.Do(r.t.Context(), r.box(), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s1", Path: path})
	must(r.t, err)
	defer st.Close()
	piece := bytes.Repeat([]byte("0123456789abcdef"), wire.MaxChunk/16)
	for sent := 0; sent < size; sent += len(piece) {
		c := &wire.FileChunk{Data: piece[:min(len(piece), size-sent)]}
		c.Last = sent+len(c.Data) == size
		if st.Send(c) != nil {
			break // it was refused; Recv says why
		}
	}
	return st.Recv()
}

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
	if n := r.m.spooled.Load(); n != 0 {
		t.Errorf("%d bytes count as waiting", n)
	}
}

// Uploads leave room on the disk for everything else.
func TestAnUploadLeavesRoomOnTheDisk(t *testing.T) {
	r := newRig(t)
	spool := r.m.o.Paths.Spool()
	if err := unix.Mount("tmpfs", spool, "tmpfs", 0, "size=900m"); err != nil {
		if os.Geteuid() == 0 {
			t.Fatal(err)
		}
		return // only who may mount has a small disk
	}
	defer func() { must(t, unix.Unmount(spool, unix.MNT_DETACH)) }()
	r.open("s1", 0)
	_, err := r.upload("small", lookEach/2)
	if wire.CodeOf(err) == wire.CodeDiskFull {
		t.Errorf("a small one: %v", err)
	}
	_, err = r.upload("large", 3*lookEach)
	wantCode(t, err, wire.CodeDiskFull)
	if n := r.m.spooled.Load(); n != 0 {
		t.Errorf("%d bytes count as waiting", n)
	}
}
