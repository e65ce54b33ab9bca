package kept_test

import (
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
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/files"
	"localpc/consent"
)

// What is larger than all that is kept is said to be gone for good, and is.
func TestLargerThanTheLimit(t *testing.T) {
	r := newRig(t)
	r.put("large", strings.Repeat("x", 5000))
	r.put("small", "small")
	r.limit.Store(4000)
	request, said, err := r.do(r.write("large", "new"))
	must(t, err)
	if !strings.Contains(said, "cannot be undone") {
		t.Errorf("the card said %q", said)
	}
	if can, _ := r.k.State(request); can {
		t.Error("it can be undone all the same")
	}
	request, said, err = r.do(r.remove("small"))
	must(t, err)
	if !strings.Contains(said, "can be undone") {
		t.Errorf("the card said %q", said)
	}
	r.undo("u", request)
	if r.text("small") != "small" {
		t.Error("what fits was not kept")
	}
	r.put("grown", strings.Repeat("x", 5000)) // after it was promised
	had := len(r.versions())
	root, err := os.OpenRoot(r.s.Folder)
	must(t, err)
	defer root.Close()
	if _, err := r.k.Begin(r.s, "grown").Replaces(t.Context(), root, "grown"); err == nil || len(r.versions()) != had {
		t.Errorf("it was kept: %v, %d versions", err, len(r.versions()))
	}
}

func TestOldestGoFirst(t *testing.T) {
	r := newRig(t)
	r.limit.Store(10_000)
	var requests []string
	for _, name := range []string{"a", "b", "c", "d"} {
		r.put(name, strings.Repeat(name, 3000))
		requests = append(requests, r.doing(r.remove(name)))
	}
	for i, want := range []bool{false, true, true, true} {
		if can, _ := r.k.State(requests[i]); can != want {
			t.Errorf("number %d can be undone: %v", i, can)
		}
	}
	if n := len(r.versions()); n != 3 || r.k.Bytes() != 9000 {
		t.Errorf("%d versions of %d bytes are kept", n, r.k.Bytes())
	}
	r.limit.Store(0)
	r.k.Tidy(t.Context())
	if n := len(r.versions()); n != 0 || r.k.Bytes() != 0 {
		t.Errorf("without any room %d versions of %d bytes are kept", n, r.k.Bytes())
	}
	if _, said, err := r.do(r.remove("x")); err != nil || strings.Contains(said, "can be undone") {
		t.Errorf("the card said %q, %v", said, err)
	}
}

func TestAWeek(t *testing.T) {
	r := newRig(t)
	r.put("a", "a")
	old := r.doing(r.remove("a"))
	r.now.Store(int64(3 * 24 * time.Hour))
	r.put("b", "b")
	young := r.doing(r.remove("b"))
	r.now.Store(int64(7*24*time.Hour + time.Minute))
	r.k.Tidy(t.Context())
	if can, _ := r.k.State(old); can || len(r.versions()) != 1 {
		t.Errorf("after a week it can be undone: %v; %d versions", can, len(r.versions()))
	}
	if can, _ := r.k.State(young); !can {
		t.Error("after four days it can't be undone")
	}
	if _, err := r.k.Ask(t.Context(), []string{old}); !errors.Is(err, kept.ErrNothing) {
		t.Errorf("undoing it says %v", err)
	}
}

// A clock that is set back takes nothing away.
func TestClockSetBack(t *testing.T) {
	r := newRig(t)
	r.put("a", "a")
	old := r.doing(r.remove("a"))
	r.e.Close()
	r.k.Close()
	must(t, r.store.Close())
	r.now.Store(-int64(48 * time.Hour))
	r.open()
	if can, _ := r.k.State(old); !can {
		t.Fatal("what was kept can't be undone any more")
	}
	r.undo("back", old)
	if r.text("a") != "a" {
		t.Errorf("undone, it holds %q", r.text("a"))
	}
}

// Somebody's newer work is asked about, and never lost.
func TestNewerWork(t *testing.T) {
	write := func(r *rig) capabilities.Call { return r.write("a", "new") }
	remove := func(r *rig) capabilities.Call { return r.remove("a") }
	move := func(r *rig) capabilities.Call { return r.move("a", "b") }
	folder := func(r *rig) capabilities.Call { return r.mkdir("made") }
	for name, c := range map[string]struct {
		do   func(r *rig) capabilities.Call
		edit func(r *rig)
		of   string // what it asks about
	}{
		"changed":        {write, func(r *rig) { r.put("a", "mine") }, "a"},
		"replaced":       {write, func(r *rig) { must(r, os.Remove(r.at("a"))); r.put("a", "mine") }, "a"},
		"a folder":       {write, func(r *rig) { must(r, os.Remove(r.at("a"))); r.put("a/in", "mine") }, "a"},
		"mode":           {write, func(r *rig) { must(r, os.Chmod(r.at("a"), 0o600)) }, "a"},
		"gone":           {write, func(r *rig) { must(r, os.Remove(r.at("a"))) }, "a"},
		"made again":     {remove, func(r *rig) { r.put("a", "mine") }, "a"},
		"where it was":   {move, func(r *rig) { r.put("a", "mine") }, "a"},
		"moved, changed": {move, func(r *rig) { r.put("b", "mine") }, "b"},
		"in a folder":    {folder, func(r *rig) { r.put("made/in", "mine") }, "made"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.put("a", "old")
			before := r.tree()
			request := r.doing(c.do(r))
			c.edit(r)
			mine := r.tree()
			q, err := r.k.Ask(t.Context(), []string{request})
			if err != nil || !strings.Contains(q, c.of+" changed after this") {
				t.Fatalf("it asks %q, %v", q, err)
			}
			var newer *kept.Newer
			if _, err := r.k.Undo(t.Context(), "no", []string{request}, false); !errors.As(err, &newer) {
				t.Fatalf("without a yes: %v", err)
			}
			if r.tree() != mine {
				t.Fatalf("without a yes the folder is\n%s", r.tree())
			}
			_, err = r.k.Undo(t.Context(), "yes", []string{request}, true)
			must(t, err)
			if now := r.tree(); now != before && name != "moved, changed" {
				t.Errorf("undone, it is\n%s\nand was\n%s", now, before)
			}
			r.undo("back", "yes")
			if r.tree() != mine {
				t.Errorf("with that undone, the folder is\n%s", r.tree())
			}
		})
	}
}

// Of a session of which one part was worked on since, nothing is undone without
// a yes, also where that shows only on the way.
func TestAllOrNothing(t *testing.T) {
	r := newRig(t)
	r.put("a", "a0")
	r.put("b", "b0")
	r.doing(r.write("b", "b1"))
	r.doing(r.write("a", "a1"))
	r.put("a", "a-person")
	r.doing(r.write("a", "a2"))
	before := r.tree()
	all := r.k.OfSession(r.s.ID)
	q, err := r.k.Ask(t.Context(), all)
	must(t, err)
	var newer *kept.Newer
	_, err = r.k.Undo(t.Context(), "u", all, false)
	if q == "" && !errors.As(err, &newer) {
		t.Fatalf("undoing said %v", err)
	}
	if now := r.tree(); now != before {
		t.Fatalf("the folder is\n%s\nand was\n%s", now, before)
	}
	_, err = r.k.Undo(t.Context(), "v", all, true)
	must(t, err)
	if r.text("a") != "a0" || r.text("b") != "b0" {
		t.Errorf("a is %q, b %q", r.text("a"), r.text("b"))
	}
}

// A full disk never breaks a request: its card says that nothing is kept.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		if os.Geteuid() != 0 {
			t.Logf("no disk of its own without root: %v", err)
			return
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	r := newRigIn(t, t.TempDir(), filepath.Join(disk, "versions"))
	r.put("a", strings.Repeat("x", 100_000))
	call := r.write("a", "new")
	d, err := r.e.Describe(t.Context(), call)
	must(t, err)
	if !strings.Contains(d.Effects[0].Text, "can be undone") {
		t.Fatalf("the card said %q", d.Effects[0].Text)
	}
	_, err = r.e.Run(t.Context(), call, capabilitytest.Grant(t, r.s, "files", d), &capabilitytest.Output{})
	if !errors.Is(err, consent.ErrChanged) || len(r.text("a")) != 100_000 {
		t.Fatalf("what was promised and can't be: %v", err)
	}
	request, said, err := r.do(call)
	must(t, err)
	if can, _ := r.k.State(request); !strings.Contains(said, "cannot be undone") || r.text("a") != "new" || can {
		t.Errorf("asked again, the card said %q; can be undone: %v", said, can)
	}
}

// An undoing that fails in the middle leaves nothing half done.
func TestUndoThatFails(t *testing.T) {
	r := newRig(t)
	r.put("d/a", "a")
	r.put("d/b", "b")
	r.put("c", "c")
	first := r.doing(r.remove("c"))
	second := r.doing(r.write("d/b", "b1"))
	third := r.doing(r.write("d/a", "a1"))
	after := r.tree()
	for _, v := range r.versions() {
		if b, _ := os.ReadFile(filepath.Join(r.base, "versions", v)); strings.HasPrefix(string(b), "b[") {
			must(t, os.Remove(filepath.Join(r.base, "versions", v)))
		}
	}
	if _, err := r.k.Undo(context.Background(), "u", []string{third, second, first}, false); err == nil {
		t.Fatal("an old version that is not there was put back")
	}
	if now := r.tree(); now != after {
		t.Errorf("the folder is\n%s\nand was\n%s", now, after)
	}
	r.undo("v", third)
	r.undo("w", first)
	if r.text("d/a") != "a" || r.text("c") != "c" {
		t.Error("the others can't be undone any more")
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, keeps := range []bool{true, false} {
		b.Run(map[bool]string{true: "kept", false: "not kept"}[keeps], func(b *testing.B) {
			r := newRig(b)
			if !keeps {
				r.e = files.New(files.Options{Journal: filepath.Join(r.base, "journal")})
			}
			call := r.write("a", "text")
			for b.Loop() {
				r.doing(call)
			}
		})
	}
}

// Commands and undoings at the same time, with the oldest let go of all the time,
// do not wait for each other.
func TestAllAtOnce(t *testing.T) {
	r := newRig(t)
	r.limit.Store(3000)
	r.put("a", "a")
	long := r.hold("long")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 40 {
			snap, err := r.k.Snapshot(context.Background(), r.s, fmt.Sprint("command", i))
			if err == nil {
				err = os.WriteFile(r.at("a"), []byte(strings.Repeat("a", 2000+i)), 0o600)
				snap.End(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	undone := 0
	for i := 0; ; i++ {
		select {
		case <-done:
			if long.End(t.Context()); undone == 0 {
				t.Error("nothing was undone meanwhile")
			}
			return
		case <-time.After(time.Millisecond):
		}
		stuck := time.AfterFunc(2*time.Minute, func() { panic("they wait for each other") })
		id := fmt.Sprint("write", i)
		n := r.k.Begin(r.s, id)
		root, err := os.OpenRoot(r.s.Folder)
		must(t, err)
		c := n.Makes(root, id)
		r.put(id, strings.Repeat("x", 2000))
		c.Done()
		n.End()
		root.Close()
		if _, err := r.k.Undo(t.Context(), "u"+id, []string{id}, true); err == nil {
			undone++
		}
		stuck.Stop()
	}
}
