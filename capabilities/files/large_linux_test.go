package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/tunnel/wire"
)

// tenGiB of zeros take no room on the disk.
const tenGiB = 10 << 30

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A file of any size is read and written with flat memory. An upload is moved
// into its place: its bytes are not written twice, nor read again when nobody
// has touched it since it was hashed.
func TestTenGiB(t *testing.T) {
	r := newRig(t)
	const size = 256 << 20 // is looked at
	path := filepath.Join(filepath.Dir(r.s.Folder), "spool")
	before, peak := heap(), int64(0)
	for _, c := range []struct {
		size  int64
		known bool
	}{{size, false}, {tenGiB, true}} {
		f, err := os.Create(path)
		must(t, err)
		must(t, f.Truncate(c.size))
		sum := sha256.New()
		_, err = io.CopyN(sum, f, size)
		must(t, err)
		must(t, f.Close())
		write := r.call(wire.TypeFileWrite, &wire.FileWrite{SessionID: r.s.ID, Path: "large"})
		write.Upload = &capabilities.Upload{Path: path, Size: c.size, SHA256: hex.EncodeToString(sum.Sum(nil)), Head: make([]byte, 4096)}
		if c.known {
			fi, err := os.Stat(path)
			must(t, err)
			write.Upload.Changed = changedAt(fi)
		}
		res, _, err := r.do(write)
		must(t, err)
		peak = max(peak, heap())
		if e := entryOf(res); e.Size != c.size || res.Received != c.size {
			t.Errorf("%+v", e)
		}
		fi, err := os.Stat(r.at("large"))
		must(t, err)
		if used := fi.Sys().(*syscall.Stat_t).Blocks * 512; used > 1<<20 {
			t.Errorf("%d bytes were written", used)
		}
	}
	// The end of it.
	read := r.call(wire.TypeFileRead, &wire.FileRead{SessionID: r.s.ID, Path: "large", Offset: tenGiB - size})
	d, err := r.describe(read)
	must(t, err)
	pieces := 0
	out := &capabilitytest.Output{Discard: true, Hook: func(f capabilitytest.Frame) error {
		if pieces++; pieces%128 == 0 {
			peak = max(peak, heap())
		}
		if p, ok := f.Payload.(*wire.FileContents); ok && (p.Size != tenGiB || p.Length != size) {
			t.Errorf("%+v", p)
		}
		return nil
	}}
	if _, err := r.e.Run(t.Context(), read, capabilitytest.Grant(t, r.s, "files", d), out); err != nil || out.Bytes() != size || out.Largest() != wire.MaxChunk {
		t.Errorf("%d bytes, pieces of %d, %v", out.Bytes(), out.Largest(), err)
	}
	if grown := (peak - before) >> 20; grown > 12 {
		t.Errorf("the heap grew by %d MiB", grown)
	}
	must(t, r.delete("large"))
	r.noTemps()
}

// An upload that is moved into its place is a file like all others there: its
// mode, its group and its access lists are those of a file that is made there.
func TestLargeUploadsAreMovedIntoPlace(t *testing.T) {
	r := newRig(t)
	big := strings.Repeat("x", adoptFrom)
	inode := func(path string) uint64 {
		fi, err := os.Stat(path)
		must(t, err)
		return fi.Sys().(*syscall.Stat_t).Ino
	}
	put := func(name string, same bool) fs.FileInfo {
		t.Helper()
		c := r.writeCall(name, big)
		spool := inode(c.Upload.Path)
		_, _, err := r.do(c)
		must(t, err)
		fi, err := os.Stat(r.at(name))
		must(t, err)
		if r.text(name) != big || (fi.Sys().(*syscall.Stat_t).Ino == spool) != same {
			t.Errorf("%s: moved is %v, want %v", name, !same, same)
		}
		if _, err := os.Stat(c.Upload.Path); errors.Is(err, os.ErrNotExist) != same {
			t.Errorf("%s: the spool: %v", name, err)
		}
		return fi
	}
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	if fi := put("fresh", true); fi.Mode() != 0o640 {
		t.Errorf("mode %v", fi.Mode())
	}
	must(t, os.Chmod(r.at("fresh"), 0o755))
	if fi := put("fresh", true); fi.Mode() != 0o755 {
		t.Errorf("mode %v, replaced", fi.Mode())
	}
	must(t, os.Mkdir(r.at("shared"), 0o777))
	if os.Geteuid() == 0 {
		must(t, os.Chown(r.at("shared"), -1, 4321))
	}
	must(t, os.Chmod(r.at("shared"), 0o777|os.ModeSetgid))
	dir, err := os.Stat(r.at("shared"))
	must(t, err)
	if fi := put("shared/f", true); fi.Sys().(*syscall.Stat_t).Gid != dir.Sys().(*syscall.Stat_t).Gid {
		t.Errorf("the group is %d", fi.Sys().(*syscall.Stat_t).Gid)
	}
	// With several names it is written in place, on another disk it is copied.
	r.put("linked", "old")
	must(t, os.Link(r.at("linked"), r.at("linked2")))
	put("linked", false)
	shm, err := os.MkdirTemp("/dev/shm", "files-test")
	must(t, err)
	defer os.RemoveAll(shm)
	r.s.Tmp = shm
	put("/tmp/f", false)
	r.noTemps()
}

// What changed since it was shown is asked about again, with the same upload.
func TestLargeUploadIsNotLostWhenAskedAgain(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"there", "new"} {
		c := r.writeCall(name, strings.Repeat("x", adoptFrom))
		r.put("there", "old")
		o, err := r.e.open(c)
		must(t, err)
		_, err = o.look(t.Context())
		must(t, err)
		w := o.(*writeOp)
		spool, err := os.Open(c.Upload.Path)
		must(t, err)
		parent, err := w.place.base.open(w.place.dir())
		must(t, err)
		r.put(name, "saved in between")
		if err := w.beside(t.Context(), parent, spool); err == nil {
			t.Errorf("%s was replaced all the same", name)
		}
		parent.Close()
		spool.Close()
		o.close()
		if fi, err := os.Stat(c.Upload.Path); err != nil || fi.Mode() != 0o600 || r.text(name) != "saved in between" {
			t.Fatalf("%s: the upload: %v, %v", name, fi, err)
		}
		if _, _, err := r.do(c); err != nil || len(r.text(name)) != adoptFrom {
			t.Errorf("%s: asked again: %v", name, err)
		}
	}
	// Bytes that are not those that were shown are not taken.
	for _, known := range []bool{false, true} {
		c := r.writeCall("there", strings.Repeat("x", adoptFrom))
		if known {
			fi, err := os.Stat(c.Upload.Path)
			must(t, err)
			c.Upload.Changed = changedAt(fi)
		}
		time.Sleep(20 * time.Millisecond) // a file system's clock is no finer than that
		f, err := os.OpenFile(c.Upload.Path, os.O_WRONLY, 0)
		must(t, err)
		_, err = f.Write([]byte("y"))
		must(t, err)
		must(t, f.Close())
		must(t, os.Chtimes(c.Upload.Path, time.Time{}, time.Unix(1, 0)))
		if _, _, err := r.do(c); err == nil || strings.Contains(r.text("there"), "y") {
			t.Errorf("%v", err)
		}
	}
	r.noTemps()
}

// A write in place waits for the one before it, and can be cancelled meanwhile,
// as well as while the old contents are copied.
func TestWriteInPlaceCanBeCancelled(t *testing.T) {
	r := newRig(t)
	r.put("a", "old")
	must(t, os.Link(r.at("a"), r.at("b")))
	run := func(path string) (cancel func(), done chan error) {
		call := r.writeCall(path, "new")
		d, err := r.describe(call)
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done = make(chan error, 1)
		go func() {
			_, err := r.e.Run(ctx, call, capabilitytest.Grant(t, r.s, "files", d), &capabilitytest.Output{})
			done <- err
		}()
		return stop, done
	}
	r.e.journal.inPlace <- struct{}{}
	cancel, done := run("a")
	time.Sleep(50 * time.Millisecond)
	cancel()
	select {
	case err := <-done:
		if err == nil || r.text("b") != "old" {
			t.Errorf("%v, %q", err, r.text("b"))
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	<-r.e.journal.inPlace

	must(t, os.Truncate(r.at("a"), 4<<30)) // takes seconds to copy
	cancel, done = run("a")
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if list, _ := os.ReadDir(r.e.journal.dir); len(list) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the old contents are not copied")
		}
	}
	cancel()
	select {
	case err := <-done:
		if fi, serr := os.Stat(r.at("b")); err == nil || serr != nil || fi.Size() != 4<<30 {
			t.Errorf("%v, %v", err, fi)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if left, _ := os.ReadDir(r.e.journal.dir); len(left) > 0 {
		t.Errorf("the journal still holds %v", left)
	}
}

// 100,000 names come in order, in several replies, and none is lost.
func TestListOfVeryManyFiles(t *testing.T) {
	r := newRig(t)
	const many = 100_000
	must(t, os.Mkdir(r.at("many"), 0o755))
	dir, err := os.Open(r.at("many"))
	must(t, err)
	defer dir.Close()
	for i := range many {
		fd, err := unix.Openat(int(dir.Fd()), fmt.Sprintf("%06d", i*7919%many), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		must(t, err)
		must(t, unix.Close(fd))
	}
	_, out, err := r.do(r.listCall("many", 1))
	must(t, err)
	next := 0
	for _, f := range out.Frames() {
		for _, e := range f.Payload.(*wire.FileListResponse).Entries {
			if e.Name != fmt.Sprintf("%06d", next) {
				t.Fatalf("entry %d is %q", next, e.Name)
			}
			next++
		}
	}
	if next != many || len(out.Frames()) < 5 {
		t.Errorf("%d entries in %d replies", next, len(out.Frames()))
	}
}

// Names that are not UTF-8 are listed as what they are, and every request takes
// them as they were listed.
func TestNamesThatAreNotUTF8(t *testing.T) {
	r := newRig(t)
	r.put("d\xff/caf\xe9 \\x.txt", "latin\n")
	r.put("d\xff/é\xc3", "cut\n")
	r.put("plain/\\xe9", "literal")
	list, err := r.list("", 3)
	must(t, err)
	var paths []string
	for _, e := range list {
		paths = append(paths, e.Path)
		if e.Name != filepath.Base(e.Path) {
			t.Errorf("%+v", e)
		}
	}
	if want := []string{`d\xff`, `d\xff/caf\xe9 \x.txt`, `d\xff/é\xc3`, "plain", `plain/\xe9`}; !slices.Equal(paths, want) {
		t.Errorf("listed %q, want %q", paths, want)
	}
	for path, text := range map[string]string{`d\xff/caf\xe9 \x.txt`: "latin\n", `/home/user/d\xff/é\xc3`: "cut\n", `plain/\xe9`: "literal"} {
		if got, err := r.read(path); got != text {
			t.Errorf("%q: %q, %v", path, got, err)
		}
		if e, err := r.stat(path); err != nil || e == nil || e.Path != path {
			t.Errorf("%q: %+v, %v", path, e, err)
		}
	}
	found, err := r.search(wire.FileSearch{Text: "latin"})
	must(t, err)
	if got := hits(found); !slices.Equal(got, []string{`d\xff/caf\xe9 \x.txt:1:latin`}) {
		t.Errorf("found %q", got)
	}
	v := r.watch(wire.FileWatch{Path: "", Recursive: true, Entries: true})
	e, err := r.write(`d\xff/é\xc3`, "new")
	if err != nil || e.Path != `d\xff/é\xc3` || r.text("d\xff/é\xc3") != "new" {
		t.Errorf("%+v, %v", e, err)
	}
	v.until(`write d\xff/é\xc3`)
	d, err := r.describe(r.pathCall(wire.TypeFileDelete, `d\xff/é\xc3`))
	must(t, err)
	if d.Exact != `d\xff/é\xc3` || d.Rule.Exact != `d\xff/é\xc3` {
		t.Errorf("the card says %q, the rule %q", d.Exact, d.Rule.Exact)
	}
	if e, err = r.move(`d\xff/é\xc3`, `d\xff/better`); err != nil || r.text("d\xff/better") != "new" {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = r.mkdir(`d\xff/new`); err != nil || e.Path != `d\xff/new` {
		t.Errorf("%+v, %v", e, err)
	}
	must(t, r.delete(`d\xff`))
	if _, err := os.Lstat(r.at("d\xff")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	// What is nowhere is made as it is written.
	if _, err = r.write(`caf\xe9`, "x"); err != nil || r.text(`caf\xe9`) != "x" {
		t.Errorf("%v", err)
	}
	// Two that would be written alike: the one whose name it is is meant, and
	// nothing seems to lead to the other.
	r.put("caf\xe9", "raw")
	list, err = r.list("", 1)
	must(t, err)
	if got := []string{list[0].Name, list[1].Name}; !slices.Contains(got, `caf\xe9`) || !slices.Contains(got, "caf\ufffd") {
		t.Errorf("listed %q", got)
	}
	must(t, r.delete(`caf\xe9`))
	if r.text("caf\xe9") != "raw" {
		t.Error("another file was deleted")
	}
	if got, err := r.read(`caf\xe9`); got != "raw" {
		t.Errorf("now it is meant: %q, %v", got, err)
	}
	// As long as the disk takes it, in bytes.
	long := strings.Repeat("\xe9", 255)
	r.put(long, "long")
	if got, err := r.read(strings.Repeat(`\xe9`, 255)); got != "long" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = r.write(strings.Repeat(`\xe9`, 256), "x")
	wantCode(t, err, wire.CodePathChars)
	_, err = r.write(strings.Repeat(`\xe9`, 200), "x") // as it is written it is too long
	wantCode(t, err, wire.CodePathChars)
}

func changedAt(fi fs.FileInfo) time.Time {
	st := fi.Sys().(*syscall.Stat_t)
	return time.Unix(st.Ctim.Unix())
}

func TestEscapedNames(t *testing.T) {
	for raw, form := range map[string]string{"a": "a", "\xff": `\xff`, "é\xc3x": `é\xc3x`, `\xe9`: `\xe9`, `\x` + "\xe9": `\x\xe9`, "\ufffd": "\ufffd"} {
		if got := escaped(raw); got != form {
			t.Errorf("%q is written %q, want %q", raw, got, form)
		}
		if back, ok := unescaped(form); raw != form && (!ok || back != raw) || raw == form && raw != `\xe9` && ok {
			t.Errorf("%q leads to %q, %v", form, back, ok)
		}
	}
	// A form that escaped makes of nothing is a name like all others.
	for _, form := range []string{"", `\`, `\x`, `\xe`, `\xzz`, `\x41`, `\xE9`, `\xc3\xa9`, `\u00e9`} {
		if raw, ok := unescaped(form); ok {
			t.Errorf("%q leads to %q", form, raw)
		}
	}
}
