package e2b

import (
	"strings"
	"testing"

	"localpc/tunnel/wire"
)

// What is kept for a client that takes nothing is bounded by its size, too:
// names, and what entries say, may be long.
func TestAWatchKeepsNoMoreThanItsSize(t *testing.T) {
	w := &watch{more: make(chan struct{}, 1)}
	long := strings.Repeat("n", 4000)
	tell := func() bool {
		return w.add(&wire.FileChanges{Changes: []wire.FileChange{{Op: "write", Name: long, Entry: &wire.Entry{Name: long, Path: "/" + long, Kind: "file"}}}})
	}
	for range 3 { // a client that takes what came goes on for ever
		for range maxChangesSize / (4 * len(long)) {
			if !tell() {
				t.Fatal("it ended too soon")
			}
		}
		if changes, ended := w.take(); ended != nil || len(changes) == 0 {
			t.Fatalf("%d changes, %v", len(changes), ended)
		}
	}
	n := 0
	for tell() {
		if n++; n > maxChangesSize/len(long) {
			t.Fatal("it keeps more than its size")
		}
	}
	if changes, ended := w.take(); ended == nil || len(changes) != n {
		t.Errorf("%d changes of %d, %v", len(changes), n, ended)
	}
}
