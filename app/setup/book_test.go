package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string, perm os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), perm))
}

func wantFile(t *testing.T, path, text string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("%s has %q, %v; want %q", path, b, err, text)
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}

// Whatever was there before is there again, byte for byte, and what was not is
// not; folders that were made for it go as far as nobody else uses them.
func TestPutBack(t *testing.T) {
	home, b := t.TempDir(), NewBook(t.TempDir())
	config, made, used := filepath.Join(home, "config.json"), filepath.Join(home, "a", "b", "new"), filepath.Join(home, "c", "d", "new")
	put(t, config, "{\"mine\": true}\n", 0o640)
	must(t, b.Write(config, "test", []byte("one"), 0o600))
	must(t, b.Write(config, "test", []byte("two"), 0o600)) // the first time counts
	must(t, b.Write(made, "test", []byte("x"), 0o600))
	must(t, b.Write(used, "test", []byte("x"), 0o600))
	must(t, b.Link(filepath.Join(home, "link"), "test", config))
	put(t, filepath.Join(home, "c", "theirs"), "x", 0o600)
	wantFile(t, config, "two")
	all, err := b.List()
	if must(t, err); len(all) != 4 {
		t.Errorf("the book has %+v", all)
	}
	if fi, err := os.Stat(filepath.Join(b.data, BookFile)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the book is %v, %v", fi, err)
	}
	left, err := b.PutBack()
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	wantFile(t, config, "{\"mine\": true}\n")
	if fi, _ := os.Stat(config); fi.Mode().Perm() != 0o640 {
		t.Errorf("its permissions are %v", fi.Mode())
	}
	wantGone(t, filepath.Join(home, "a"))
	wantGone(t, filepath.Join(home, "c", "d"))
	wantGone(t, filepath.Join(home, "link"))
	wantFile(t, filepath.Join(home, "c", "theirs"), "x")
	wantGone(t, filepath.Join(b.data, BookFile))
}

// What somebody changed since is theirs now: left, and named.
func TestPutBackLeavesWhatWasChanged(t *testing.T) {
	home, b := t.TempDir(), NewBook(t.TempDir())
	changed, gone, before := filepath.Join(home, "changed"), filepath.Join(home, "gone"), filepath.Join(home, "before")
	link := filepath.Join(home, "link")
	put(t, changed, "old", 0o600)
	put(t, before, "old", 0o600)
	for _, p := range []string{changed, gone, before} {
		must(t, b.Write(p, "test", []byte("ours"), 0o600))
	}
	must(t, b.Link(link, "test", changed))
	must(t, os.Remove(link))
	must(t, os.Symlink(before, link))
	put(t, changed, "theirs", 0o600)
	must(t, os.Remove(gone))
	put(t, before, "old", 0o600) // put back by hand
	left, err := b.PutBack()
	if must(t, err); strings.Join(left, " ") != link+" "+changed {
		t.Errorf("left: %v", left)
	}
	wantFile(t, changed, "theirs")
	wantFile(t, before, "old")
	wantGone(t, gone)
	if to, _ := os.Readlink(link); to != before {
		t.Errorf("the link leads to %q", to)
	}
	if all, err := b.List(); err != nil || len(all) != 0 {
		t.Errorf("the book has %v, %v", all, err)
	}
}

// One that fails is named, stays in the book, and does not stop the others.
func TestPutBackGoesOn(t *testing.T) {
	home, b := t.TempDir(), NewBook(t.TempDir())
	first, stuck := filepath.Join(home, "first"), filepath.Join(home, "stuck")
	must(t, b.Write(first, "test", []byte("x"), 0o600))
	must(t, b.Write(stuck, "test", []byte("x"), 0o600))
	must(t, os.Remove(stuck))
	must(t, os.Mkdir(stuck, 0o700)) // can't be read as a file
	if _, err := b.PutBack(); err == nil || !strings.Contains(err.Error(), stuck) || strings.Contains(err.Error(), first) {
		t.Errorf("%v", err)
	}
	wantGone(t, first)
	must(t, os.Remove(stuck))
	put(t, stuck, "x", 0o600)
	left, err := b.PutBack()
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	wantGone(t, stuck)
}

// A file that could not be put back is not touched in the first place; nor is
// anything that can't be written down.
func TestWriteRefuses(t *testing.T) {
	home, b := t.TempDir(), NewBook(t.TempDir())
	binary := filepath.Join(home, "binary")
	put(t, binary, "\xff\x00", 0o600)
	if err := b.Write(binary, "test", []byte("x"), 0o600); err == nil {
		t.Error("what is no text was replaced")
	}
	wantFile(t, binary, "\xff\x00")
	dir := filepath.Join(home, "dir")
	must(t, os.Mkdir(dir, 0o700))
	if err := b.Write(dir, "test", []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	lost := NewBook(filepath.Join(home, "nowhere"))
	if err := lost.Write(filepath.Join(home, "new"), "test", []byte("x"), 0o600); err == nil {
		t.Error("it was changed without being written down")
	}
	wantGone(t, filepath.Join(home, "new"))
	// Of a link, what it leads to is what is written.
	real, link := filepath.Join(home, "real"), filepath.Join(home, "link")
	put(t, real, "old", 0o600)
	must(t, os.Symlink(real, link))
	must(t, b.Write(link, "test", []byte("x"), 0o600))
	wantFile(t, real, "x")
	_, err := b.PutBack()
	must(t, err)
	wantFile(t, link, "old")
	if fi, _ := os.Lstat(link); fi.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}
