package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// swap exchanges what is at two names, again and again, until it is stopped.
func swap(a, b string) (stop func() int64) {
	var n atomic.Int64
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			// Where one of them is just gone, it comes back, or the test ends.
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				n.Add(1)
			}
		}
	}()
	return func() int64 { close(quit); <-done; return n.Load() }
}

// A folder is swapped for a pipe while requests run: none waits for a writer.
func TestSwappedForAPipe(t *testing.T) {
	r := newRig(t)
	r.put("d/sub/f", "x")
	must(t, unix.Mkfifo(r.at("pipe"), 0o600))
	stop := swap(r.at("d"), r.at("pipe"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 2000 {
			_, _ = r.list("d", 3)
			_, _ = r.write("d/new/f", "x")
			_, _ = r.describe(r.pathCall(wire.TypeFileDelete, "d"))
			_, _ = r.describe(r.moveCall("d", fmt.Sprint("to", i)))
			_ = r.delete("d/new")
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("a request waits for a pipe")
	}
	if n := stop(); n < 100 {
		t.Errorf("swapped %d times only", n)
	}
}

// everruns/bashkit#980: a folder is swapped for a link while reads, writes,
// lists and deletes run; nothing outside is ever read, written or removed.
func TestSwappedFolder(t *testing.T) {
	r := newRig(t)
	outside := filepath.Join(filepath.Dir(r.s.Folder), "outside")
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("SECRET"), 0o644))
	must(t, os.Mkdir(filepath.Join(outside, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "sub/g"), []byte("SECRET"), 0o644))
	before := capabilitytest.Tree(t, outside)
	for name, target := range map[string]string{"absolute": outside, "relative": "../outside"} {
		t.Run(name, func(t *testing.T) {
			dir := "d-" + name
			r.put(dir+"/f", "inside")
			r.link(target, "l-"+name)
			stop := swap(r.at(dir), r.at("l-"+name))
			reads, writes := 0, 0
			for i := range 1500 {
				if got, err := r.read(dir + "/f"); strings.Contains(got, "SECRET") {
					t.Fatalf("read %q, %v", got, err)
				} else if err == nil {
					reads++
				}
				if _, err := r.write(dir+"/f", "inside"); err == nil {
					writes++
				}
				switch i % 5 {
				case 0:
					_, _ = r.write(dir+"/new/deep/x", "x")
				case 1:
					if found, err := r.search(wire.FileSearch{Path: dir, Text: "SECRET"}); err == nil && len(found.Hits) > 0 {
						t.Fatalf("a search found what is outside: %q", hits(found))
					}
					list, _ := r.list(dir, 3)
					for _, e := range list {
						if e.Name == "g" {
							t.Fatal("a list showed what is outside")
						}
					}
				case 2:
					_ = r.delete(dir + "/sub")
					_ = r.delete(dir + "/new")
				case 3:
					_, _ = r.mkdir(dir + "/made")
					_, _ = r.move(dir+"/f", dir+"/moved")
				case 4:
					_, _ = r.move(dir+"/moved", dir+"/f")
				}
			}
			n := stop()
			if after := capabilitytest.Tree(t, outside); after != before {
				t.Fatalf("outside was changed:\n%s\nwas\n%s", after, before)
			}
			if n < 100 || reads == 0 || writes == 0 {
				t.Errorf("%d swaps, %d reads, %d writes: the race was not run", n, reads, writes)
			}
		})
	}
}

// The same with a folder that is watched: nothing that happens outside is told.
func TestSwappedWhileWatched(t *testing.T) {
	r := newRig(t)
	outside := filepath.Join(filepath.Dir(r.s.Folder), "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "sub"), 0o755))
	r.put("top/d/sub/f", "inside")
	r.link(outside, "top/l")
	v := r.watch(wire.FileWatch{Path: "top", Recursive: true})
	stop := swap(r.at("top/d"), r.at("top/l"))
	for i := range 500 {
		must(t, os.WriteFile(filepath.Join(outside, fmt.Sprintf("SECRET%d", i)), nil, 0o644))
		must(t, os.WriteFile(filepath.Join(outside, "sub", fmt.Sprintf("SECRET%d", i)), nil, 0o644))
		time.Sleep(200 * time.Microsecond)
	}
	n := stop()
	r.put("top/end", "x")
	v.wait("the end, or that more has changed than can be told", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.overflow > 0 || slices.ContainsFunc(v.changes, func(c wire.FileChange) bool { return c.Name == "end" })
	})
	for _, op := range v.ops() {
		if strings.Contains(op, "SECRET") {
			t.Fatalf("told: %s", op)
		}
	}
	if n < 100 {
		t.Errorf("swapped %d times only", n)
	}
}

// A whole tree is deleted while a folder in it is swapped for a link to
// another folder inside: what the link leads to stays.
func TestSwappedWhileDeleting(t *testing.T) {
	r := newRig(t)
	r.put("precious/f", "keep")
	for range 200 {
		r.put("tree/a/1", "x")
		must(t, os.RemoveAll(r.at("side")))
		r.link("../precious", "side")
		stop := swap(r.at("tree/a"), r.at("side"))
		_ = r.delete("tree")
		stop()
		if r.text("precious/f") != "keep" {
			t.Fatal("what a link leads to was deleted")
		}
		must(t, os.RemoveAll(r.at("tree")))
	}
}

// A folder is swapped for a link to a guarded folder inside. A card, or a rule,
// that let the plain name through must not reach the guarded one.
func TestSwappedForAGuardedFolder(t *testing.T) {
	r := newRig(t)
	r.put(".git/hooks/sub/theirs", "x")
	for plain, link := range map[string]string{"d": ".git/hooks", "e/f": "../.git/hooks"} {
		r.put(plain+"/sub/a", "x")
		r.link(link, "side")
		stop := swap(r.at(plain), r.at("side"))
		before := capabilitytest.Tree(t, r.at(".git"))
		worked := 0
		for i := range 1500 {
			var err error
			switch i % 6 {
			case 0:
				err = r.runIfPlain(r.writeCall(plain+"/planted", "x"))
			case 1:
				err = r.runIfPlain(r.writeCall(plain+"/sub/planted", "x"))
			case 2:
				err = r.runIfPlain(r.pathCall(wire.TypeFileDelete, plain+"/sub/theirs"))
			case 3:
				err = r.runIfPlain(r.moveCall(plain+"/planted", plain+"/sub/planted2"))
			case 4:
				err = r.runIfPlain(r.pathCall(wire.TypeFileMkdir, plain+"/made/deep"))
			case 5:
				err = r.runIfPlain(r.pathCall(wire.TypeFileDelete, plain+"/made"))
			}
			if err == nil {
				worked++
			}
		}
		n := stop()
		if after := capabilitytest.Tree(t, r.at(".git")); after != before {
			t.Fatalf("the guarded folder was changed:\n%s\nwas\n%s", after, before)
		}
		if n < 100 || worked == 0 {
			t.Errorf("%d swaps, %d requests worked: the race was not run", n, worked)
		}
		must(t, os.RemoveAll(r.at("side")))
		must(t, os.RemoveAll(r.at(plain)))
	}
}

// runIfPlain runs a call whose description does not speak of start-up names,
// as a session that may work in the folder does without a question.
func (r *rig) runIfPlain(c capabilities.Call) error {
	d, err := r.describe(c)
	if err != nil {
		return err
	}
	for _, e := range d.Effects {
		if e.Kind == consent.EffectStartup {
			return errors.New("it would be asked about")
		}
	}
	_, err = r.e.Run(context.Background(), c, capabilitytest.Grant(r, r.s, "files", d), &capabilitytest.Output{})
	return err
}
