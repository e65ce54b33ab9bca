package kept

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that a command left behind puts a pipe, or another file, where a
// file is about to be compared: it is a change, and holds up nothing.
func TestSwappedWhileCompared(t *testing.T) {
	base := t.TempDir()
	name := filepath.Join(base, "a")
	if err := os.WriteFile(name, []byte("same"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := openDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.close()
	k := &Kept{dir: folder}
	b, err := k.newBundle()
	if err != nil {
		t.Fatal(err)
	}
	defer b.f.Close()
	n, err := folder.lstat("a")
	if err != nil {
		t.Fatal(err)
	}
	e := &entry{node: n}
	if steady, err := b.take(t.Context(), folder, "a", e); !steady || err != nil {
		t.Fatal(steady, err)
	}
	same := func(ctx context.Context) bool {
		t.Helper()
		told := make(chan bool, 1)
		go func() { told <- b.same(ctx, folder, "a", e) }()
		select {
		case yes := <-told:
			return yes
		case <-time.After(30 * time.Second):
			t.Fatal("it waits for ever")
			return false
		}
	}
	if !same(t.Context()) {
		t.Error("a file that is as it was counts as changed")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if same(over) {
		t.Error("it was compared after its time")
	}
	if err := os.Rename(name, name+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("same"), 0o600); err != nil {
		t.Fatal(err)
	}
	if same(t.Context()) {
		t.Error("another file counts as the same")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if same(t.Context()) {
		t.Error("a pipe counts as the same file")
	}
}
