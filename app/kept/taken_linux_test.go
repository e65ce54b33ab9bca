package kept

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What is held is counted as it is copied, whatever the disk said of it before:
// more than there is room for is broken off, and leaves nothing.
func TestWhatIsCopiedIsBounded(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	const size = 3 << 20
	if err := os.WriteFile(from, bytes.Repeat([]byte{1}, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := &bundle{tried: true, most: 1 << 20} // on a disk that shares nothing
	if b.f, err = os.Create(to); err != nil {
		t.Fatal(err)
	}
	defer b.f.Close()
	_, _, err = b.add(t.Context(), f, 0, size, 0)
	if fi, statErr := b.f.Stat(); !errors.Is(err, errTooMuch) || statErr != nil || fi.Size() != 0 || b.end != 0 {
		t.Fatalf("%v; %d bytes are left, %v", err, fi.Size(), statErr)
	}
	b.wrote, b.most = 0, size
	if _, n, err := b.add(t.Context(), f, 0, size, 0); err != nil || n != size || b.wrote != size || b.end != size {
		t.Errorf("what fits: %d bytes, %d written, %v", n, b.wrote, err)
	}
}

// What a file takes where the file system says nothing of that, as some drives of
// other computers do: all that it has, but nothing for a hole.
func TestTakenWhereTheDiskDoesNotTell(t *testing.T) {
	folder := t.TempDir()
	d, err := openDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	const size = 2 << 20
	full, hole := filepath.Join(folder, "full"), filepath.Join(folder, "hole")
	if err := errors.Join(os.WriteFile(full, bytes.Repeat([]byte{1}, size), 0o600), os.WriteFile(hole, nil, 0o600), os.Truncate(hole, size)); err != nil {
		t.Fatal(err)
	}
	if got := d.content("full"); got != size {
		t.Errorf("a full file has %d bytes", got)
	}
	if got := d.content("hole"); got != 0 {
		t.Errorf("a hole has %d bytes", got)
	}
	if got := d.taken("hole"); got != 0 {
		t.Errorf("a hole takes %d bytes", got)
	}
}
