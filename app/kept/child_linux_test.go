package kept_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/kept"
	"localpc/app/store"
)

// killable is a folder in which a lot has been done, how it was before, and what
// was asked for.
func killable(t *testing.T, where string) (r *rig, old string, all []string) {
	r = newRigIn(t, t.TempDir(), where)
	for i := range 12 {
		r.put(fmt.Sprintf("d%d/f", i), fmt.Sprint("old", i))
		r.put(fmt.Sprintf("g%d", i), strings.Repeat("old", 20_000))
	}
	r.put("over", "over")
	must(t, os.Link(r.at("g1"), r.at("h1")))
	old = r.tree()
	for i := range 12 {
		r.doing(r.write(fmt.Sprintf("d%d/f", i), "new"))
		r.doing(r.write(fmt.Sprintf("g%d", i), "new"))
		r.doing(r.write(fmt.Sprintf("n%d/m/f", i), "new"))
	}
	r.doing(r.move("d3", "e3"))
	r.doing(r.move("g3", "over"))
	r.doing(r.remove("d4"))
	return r, old, r.k.OfSession(r.s.ID)
}

// killed has a child at work for a while, and killed.
func (r *rig) killed(do string, all []string, round int, after time.Duration) {
	r.Helper()
	r.e.Close()
	r.k.Close()
	must(r, r.store.Close())
	text, err := json.Marshal(all)
	must(r, err)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "KEPT_CHILD="+r.base, "KEPT_DIR="+r.dir, "KEPT_DO="+do, "KEPT_FOLDER="+r.s.Folder, "KEPT_SESSION="+r.s.ID,
		"KEPT_REQUESTS="+string(text), fmt.Sprint("KEPT_ROUND=", round))
	out, err := c.StdoutPipe()
	must(r, err)
	must(r, c.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		r.Fatal(err)
	}
	time.Sleep(after)
	must(r, c.Process.Kill())
	_ = c.Wait()
	if c.ProcessState.ExitCode() == 3 {
		r.Fatal("the child failed by itself")
	}
}

// noOrphans: all that is kept is known, and all that is known is kept.
func (r *rig) noOrphans() {
	r.Helper()
	known, err := r.store.KeptObjects(context.Background())
	must(r, err)
	for _, name := range r.versions() {
		if !known[name] {
			r.Errorf("%s is kept, and nothing knows it", name)
		}
		delete(known, name)
	}
	if len(known) > 0 {
		r.Errorf("%d old versions are known, and not there", len(known))
	}
	left, err := filepath.Glob(r.at(".localpc-*"))
	must(r, err)
	below, err := filepath.Glob(r.at("*/.localpc-*"))
	if must(r, err); len(left)+len(below) > 0 {
		r.Errorf("left are %v", append(left, below...))
	}
}

// Killed at any moment of an undoing, the next start leaves the folder as it was
// before or after it, and it can be undone again.
func TestKilledWhileUndoing(t *testing.T) {
	for _, where := range []string{"", otherDisk(t)} {
		r, old, all := killable(t, where)
		changed := r.tree()
		for round := range 12 {
			r.killed("undo", all, round, time.Duration(round*round*7)*time.Millisecond)
			r.open()
			now := r.tree()
			if now != old && now != changed {
				t.Fatalf("round %d: killed, the folder is\n%s\n\nand not\n%s\n\nnor\n%s", round, now, old, changed)
			}
			r.noOrphans()
			if last := r.last(round); last != "" {
				all = []string{last}
			}
			for _, a := range all {
				if can, _ := r.k.State(a); !can {
					t.Fatalf("round %d: %s can't be undone any more", round, a)
				}
			}
		}
	}
}

// last is the undoing that counts: the newest of a round's.
func (r *rig) last(round int) string {
	all, err := r.store.Kepts(context.Background())
	must(r, err)
	for i := len(all) - 1; i >= 0; i-- {
		if strings.HasPrefix(all[i].Request, fmt.Sprint(round, "-")) && all[i].State == store.KeptWhole {
			return all[i].Request
		}
	}
	return ""
}

// What a person did after a kill, before the next start, is theirs.
func TestWorkAfterAKill(t *testing.T) {
	for round := range 6 {
		r, old, all := killable(t, "")
		changed := r.tree()
		r.killed("undo", all, round, time.Duration(20+round*round*20)*time.Millisecond)
		r.put("g5", "the person's own")
		r.open()
		if r.text("g5") != "the person's own" {
			t.Fatalf("round %d: it was overwritten", round)
		}
		but := func(tree string) []string {
			return slices.DeleteFunc(strings.Split(tree, "\n"), func(line string) bool { return strings.Contains(line, " g5 ") })
		}
		if now := but(r.tree()); !slices.Equal(now, but(old)) && !slices.Equal(now, but(changed)) {
			t.Fatalf("round %d: the rest is\n%s", round, r.tree())
		}
		r.noOrphans()
	}
}

// Killed at any moment of requests, the next start knows what they changed: all
// of it can be undone. Of commands nothing is left behind.
func TestKilledWhileKeeping(t *testing.T) {
	r, _, _ := killable(t, "")
	before, had := r.tree(), r.k.OfSession(r.s.ID)
	for round := range 10 {
		r.killed("requests", nil, round, time.Duration(round*round*3)*time.Millisecond)
		r.open()
		r.noOrphans()
		all := slices.DeleteFunc(r.k.OfSession(r.s.ID), func(id string) bool { return slices.Contains(had, id) })
		if len(all) > 0 {
			r.undo(fmt.Sprint("undo", round), all...)
		}
		if now := r.tree(); now != before {
			t.Fatalf("round %d: undone, the folder is\n%s\n\nand was\n%s", round, now, before)
		}
		r.noOrphans()
	}
	for round := range 5 {
		r.killed("commands", nil, 100+round, time.Duration(20+round*round*10)*time.Millisecond)
		r.open()
		r.noOrphans()
	}
}

// Killed in the middle of a request, the next start knows which of its changes
// were made.
func TestKilledWhileDeleting(t *testing.T) {
	r := newRig(t)
	r.put("d/x", "x")
	n := r.k.Begin(r.s, "cut")
	root, err := os.OpenRoot(r.s.Folder)
	must(t, err)
	defer root.Close()
	if _, _, err := n.Takes(context.Background(), root, "d"); err != nil {
		t.Fatal(err)
	}
	must(t, os.RemoveAll(r.at("d")))
	for _, name := range []string{"f", "g"} {
		r.put(name, "kept, and not replaced")
		if _, err := n.Replaces(context.Background(), root, name); err != nil {
			t.Fatal(err)
		}
	}
	n.Makes(root, "never")
	r.e.Close()
	r.k.Close()
	must(t, r.store.Close())
	r.open()
	if all := r.versions(); len(all) != 1 {
		t.Errorf("%d versions are kept", len(all))
	}
	r.undo("u", "cut")
	if r.text("d/x") != "x" || r.text("f") != "kept, and not replaced" {
		t.Errorf("d/x is %q, f %q", r.text("d/x"), r.text("f"))
	}
}

// A request that was cut off in a folder that never comes back is kept as long as
// all others, and no longer.
func TestCutOffInAFolderThatIsGone(t *testing.T) {
	r := newRig(t)
	r.put("a", "a")
	root, err := os.OpenRoot(r.s.Folder)
	must(t, err)
	defer root.Close()
	_, err = r.k.Begin(r.s, "cut").Replaces(t.Context(), root, "a")
	must(t, err)
	must(t, os.Rename(r.s.Folder, r.s.Folder+"2"))
	for i, after := range []time.Duration{time.Hour, kept.For + 2*time.Hour} {
		r.e.Close()
		r.k.Close()
		must(t, r.store.Close())
		r.now.Store(int64(after))
		r.open()
		if n := len(r.versions()); n != 1-i {
			t.Errorf("after %v %d versions are kept", after, n)
		}
	}
}

// Notes that an older build wrote in another way go, with what it kept.
func TestNotesOfAnOlderBuild(t *testing.T) {
	r := newRig(t)
	must(t, r.store.KeepSteps(t.Context(), store.Kept{Request: "old", Folder: r.s.Folder, FolderID: "{}", About: "{}", State: store.KeptWhole}, store.KeptStep{Object: "old", Body: "{}"}))
	must(t, os.MkdirAll(filepath.Join(r.dir, "old", "in"), 0o700))
	must(t, os.Chmod(filepath.Join(r.dir, "old"), 0o500))
	r.e.Close()
	r.k.Close()
	must(t, r.store.Close())
	r.open()
	if can, _ := r.k.State("old"); can || len(r.versions()) > 0 {
		t.Errorf("it can be undone: %v; %q are kept", can, r.versions())
	}
}
