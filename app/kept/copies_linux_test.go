package kept_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/kept"
	"localpc/capabilities"
	"localpc/consent"
)

// again opens for writing what a process has open in another way.
func again(t testing.TB, f *os.File) *os.File {
	t.Helper()
	w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY, 0)
	must(t, err)
	return w
}

// What a card promised to be undone is whole when it is, whoever still has the
// file open or by another name: they write, and give it its old time.
func TestOldVersionsAreNobodysToWrite(t *testing.T) {
	outside := func(r *rig) string { return filepath.Join(r.base, "outside") }
	ways := map[string]func(t testing.TB, r *rig) (ruin func()){
		"open for writing": func(t testing.TB, r *rig) func() {
			f, err := os.OpenFile(r.at("d/a"), os.O_RDWR, 0)
			must(t, err)
			return func() {
				_, err := f.WriteAt([]byte("RUIN"), 0)
				must(t, errors.Join(err, f.Close()))
			}
		},
		"open for reading by a process": func(t testing.TB, r *rig) func() {
			f, err := os.Open(r.at("d/a"))
			must(t, err)
			return func() {
				w := again(t, f)
				_, err := w.WriteAt([]byte("RUIN"), 0)
				must(t, errors.Join(err, w.Close(), f.Close()))
			}
		},
		"another name": func(t testing.TB, r *rig) func() {
			must(t, os.Link(r.at("d/a"), outside(r)))
			return func() {
				fi, err := os.Stat(outside(r))
				must(t, err)
				w, err := os.OpenFile(outside(r), os.O_WRONLY, 0)
				must(t, err)
				_, err = w.WriteAt([]byte("RUIN"), 0)
				must(t, errors.Join(err, w.Close(), os.Chtimes(outside(r), fi.ModTime(), fi.ModTime())))
			}
		},
	}
	for name, way := range ways {
		for what, request := range map[string]func(r *rig) capabilities.Call{
			"delete":  func(r *rig) capabilities.Call { return r.remove("d/a") },
			"folder":  func(r *rig) capabilities.Call { return r.remove("d") },
			"replace": func(r *rig) capabilities.Call { return r.move("other", "d/a") },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				r := newRig(t)
				r.put("d/a", "old contents")
				r.put("other", "other")
				before := r.tree()
				ruin := way(t, r)
				id, said, err := r.do(request(r))
				must(t, err)
				if can, _ := r.k.State(id); !can || strings.Contains(said, "cannot be undone") {
					t.Fatalf("it can't be undone; it said %q", said)
				}
				ruin()
				r.undo("undo", id)
				if now := r.tree(); now != before || r.text("d/a") != "old contents" {
					t.Fatalf("undone, d/a is %q, and the folder\n%s\n\nand was\n%s", r.text("d/a"), now, before)
				}
				r.undo("again", "undo")
				if r.text("d/a") == "old contents" {
					t.Error("the undoing was not undone")
				}
				r.undo("third", "again")
				if now := r.tree(); now != before {
					t.Errorf("undone once more, the folder is\n%s\n\nand was\n%s", now, before)
				}
			})
		}
	}
}

// Files that are one come back as one, with nobody's ruin: what is undone of
// them later holds for both.
func TestSeveralNamesComeBackAsOne(t *testing.T) {
	for _, what := range []string{"b", "d"} {
		r := newRig(t)
		r.put("a", "old")
		must(t, os.Mkdir(r.at("d"), 0o755))
		must(t, os.Link(r.at("a"), r.at("b")))
		must(t, os.Link(r.at("a"), r.at("d/c")))
		first := r.doing(r.remove(what))
		second := r.doing(r.write("a", "new"))
		r.undo("undo", second, first)
		r.sameFile("a", "b")
		r.sameFile("a", "d/c")
		if r.text("a") != "old" {
			t.Errorf("a is %q", r.text("a"))
		}
		if left := r.versions(); len(left) != 1 {
			t.Errorf("left are %q", left) // what the undoing rewrote
		}
	}
}

// So they do when one command deletes one name and writes through another.
func TestSeveralNamesOfACommandComeBackAsOne(t *testing.T) {
	for _, line := range []string{"rm b; echo z > a", "echo n > a; rm d/c", "rm a; echo z > b", "rm a b; echo z > d/c", "sed -i s/o/n/ a", "mv a e; rm b"} {
		r := newRig(t)
		r.put("a", "old")
		must(t, os.Mkdir(r.at("d"), 0o755))
		must(t, os.Link(r.at("a"), r.at("b")))
		must(t, os.Link(r.at("a"), r.at("d/c")))
		before := r.tree()
		request, _ := r.command(line)
		r.undo("undo", request)
		r.sameFile("a", "b")
		r.sameFile("a", "d/c")
		if now := r.tree(); now != before {
			t.Errorf("%q: the folder is\n%s\nand was\n%s", line, now, before)
		}
	}
}

// An undoing that is given up leaves the old versions as good as they were.
func TestGivenUpUndoingRuinsNothing(t *testing.T) {
	r := newRig(t)
	r.put("a", "a")
	r.put("b", "b")
	first, second := r.doing(r.remove("a")), r.doing(r.remove("b"))
	r.put("a", "newer")
	var newer *kept.Newer
	if _, err := r.k.Undo(t.Context(), "u", []string{second, first}, false); !errors.As(err, &newer) {
		t.Fatalf("it was not given up: %v", err)
	}
	r.undo("v", second)
	if r.text("b") != "b" || r.text("a") != "newer" {
		t.Errorf("b is %q, a %q", r.text("b"), r.text("a"))
	}
}

// A file with holes takes as much room kept as it does in its folder, and has
// them when it is back.
func TestHolesStay(t *testing.T) {
	r := newRig(t)
	const size = 64<<20 + 1
	f, err := os.Create(r.at("image"))
	must(t, err)
	_, err = f.WriteAt([]byte("begin"), 0)
	must(t, err)
	_, err = f.WriteAt([]byte("middle"), 20<<20+4093)
	must(t, errors.Join(err, f.Truncate(size), f.Close()))
	before, err := os.ReadFile(r.at("image"))
	must(t, err)
	request, _, err := r.do(r.remove("image"))
	must(t, err)
	if n := room(t, r.dir); n > 1<<20 {
		t.Errorf("kept, it takes %d bytes", n)
	}
	_, err = r.k.Undo(t.Context(), "u", []string{request}, false)
	must(t, err)
	if after, err := os.ReadFile(r.at("image")); err != nil || !bytes.Equal(after, before) {
		t.Errorf("it came back as %d bytes, %v", len(after), err)
	}
	if n := room(t, r.at("image")); n > 1<<20 {
		t.Errorf("back, it takes %d bytes", n)
	}
}

// A file that is large by its holes only does not keep a folder from being held.
func TestHolesAreNotTooMuch(t *testing.T) {
	r := newRig(t)
	r.put("a", "a")
	const size = 260 << 20
	f, err := os.Create(r.at("image"))
	must(t, err)
	_, err = f.WriteAt([]byte("middle"), 200<<20)
	must(t, errors.Join(err, f.Truncate(size), f.Close()))
	if ok, but := r.k.WouldSnapshot(t.Context(), r.s); !ok || but != "" {
		t.Fatalf("would be held: %v, but %q", ok, but)
	}
	request := consent.NewID()
	snap, err := r.k.Snapshot(t.Context(), r.s, request)
	for end := time.Now().Add(time.Minute); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end); { // a slow computer reads them in more than one try
		snap, err = r.k.Snapshot(t.Context(), r.s, request)
	}
	must(t, err)
	r.sh("echo b >a; truncate -s 3 image")
	if notes := snap.End(t.Context()); len(notes) > 0 {
		t.Errorf("it said %q", notes)
	}
	if n := room(t, r.dir); n > 2<<20 {
		t.Errorf("held, it takes %d bytes", n)
	}
	_, err = r.k.Undo(t.Context(), "u", []string{request}, false)
	must(t, err)
	got := make([]byte, 6)
	f, err = os.Open(r.at("image"))
	must(t, err)
	defer f.Close()
	_, err = f.ReadAt(got, 200<<20)
	must(t, err)
	if fi, err := f.Stat(); err != nil || fi.Size() != size || string(got) != "middle" || r.text("a") != "a" {
		t.Errorf("undone, a is %q, and the file of %v bytes has %q: %v", r.text("a"), fi.Size(), got, err)
	}
	if n := room(t, r.at("image")); n > 1<<20 {
		t.Errorf("back, it takes %d bytes", n)
	}
}

// room is what a file, or all in a folder, takes on the disk.
func room(t *testing.T, path string) (n int64) {
	t.Helper()
	must(t, filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		err = syscall.Lstat(p, &st)
		n += st.Blocks * 512
		return err
	}))
	return n
}
