//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// What commands changed is put back through the whole program: one entry, and
// then its session; newer work only with a yes.
func TestUndoThroughTheProgram(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{})
	folder := workFolder(t, d, map[string]string{"letter.txt": "dear"})
	p := startIn(t, d, "--folder", folder)
	s := p.lend(folder)
	at := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(folder, name))
		return string(b)
	}
	list := func() (out []snapshot.Entry) {
		t.Helper()
		if err := json.Unmarshal([]byte(p.must("undo", "--json")), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if _, err := p.cli("undo", "session"); err == nil || !strings.Contains(err.Error(), "session ENTRY") {
		t.Errorf("the session of nothing: %v", err)
	}
	s.works("echo one >a.txt")
	s.works("echo two >a.txt && mkdir -p made/deep && echo x >made/deep/x")
	s.works("ls; cat a.txt")
	can := list()
	if len(can) != 2 || can[0].What != "Replace a.txt" {
		t.Fatalf("what can be undone: %+v", can)
	}
	if out := p.must("undo", can[0].ID); !strings.Contains(out, "Undone: ") || at("a.txt") != "one\n" {
		t.Errorf("undone (%q), a.txt has %q", out, at("a.txt"))
	}
	if _, err := os.Stat(filepath.Join(folder, "made")); err == nil {
		t.Error("what it made is there still")
	}
	s.works("echo three >b.txt")
	if err := os.WriteFile(filepath.Join(folder, "b.txt"), []byte("the person's"), 0o644); err != nil {
		t.Fatal(err)
	}
	can = list()
	out, err := p.cli("undo", "session", can[0].ID)
	if err == nil || !strings.Contains(err.Error(), "b.txt changed after this") || at("b.txt") != "the person's" || at("a.txt") != "one\n" {
		t.Errorf("newer work: %q, %v; b.txt has %q", out, err, at("b.txt"))
	}
	p.must("undo", "session", can[0].ID, "--anyway")
	if left, _ := os.ReadDir(folder); len(left) != 1 || at("letter.txt") != "dear" {
		t.Errorf("the session is not undone: %v", left)
	}
	p.must("undo", list()[0].ID)
	if at("b.txt") != "the person's" || at("a.txt") != "one\n" {
		t.Errorf("with that undone, b.txt has %q, a.txt %q", at("b.txt"), at("a.txt"))
	}
}
