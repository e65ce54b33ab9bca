package kept_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/store"
)

// Killed at any moment of an undoing, the next start leaves the folder as it was
// before or after it, and it can be undone again.
func TestKilledWhileUndoing(t *testing.T) {
	for _, where := range []string{"", otherDisk(t)} {
		r := newRigIn(t, t.TempDir(), where)
		dir := where
		if dir == "" {
			dir = filepath.Join(r.base, "versions")
		}
		for i := range 12 {
			r.put(fmt.Sprintf("d%d/f", i), fmt.Sprint("old", i))
			r.put(fmt.Sprintf("g%d", i), strings.Repeat("old", 20_000))
		}
		must(t, os.Link(r.at("g1"), r.at("h1")))
		old := r.tree()
		for i := range 12 {
			r.doing(r.write(fmt.Sprintf("d%d/f", i), "new"))
			r.doing(r.write(fmt.Sprintf("g%d", i), "new"))
			r.doing(r.write(fmt.Sprintf("n%d/m/f", i), "new"))
		}
		r.doing(r.move("d3", "e3"))
		r.doing(r.remove("d4"))
		changed := r.tree()
		all := r.k.OfSession(r.s.ID)
		for round := range 12 {
			r.e.Close()
			r.k.Close()
			must(t, r.store.Close())
			text, err := json.Marshal(all)
			must(t, err)
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "KEPT_CHILD="+r.base, "KEPT_DIR="+dir, "KEPT_REQUESTS="+string(text), fmt.Sprint("KEPT_ROUND=", round))
			out, err := c.StdoutPipe()
			must(t, err)
			must(t, c.Start())
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(round*round*7) * time.Millisecond)
			must(t, c.Process.Kill())
			_ = c.Wait()
			if c.ProcessState.ExitCode() == 3 {
				t.Fatal("the child failed by itself")
			}
			r.open(where)
			now := r.tree()
			if now != old && now != changed {
				t.Fatalf("round %d: killed, the folder is\n%s\n\nand not\n%s\n\nnor\n%s", round, now, old, changed)
			}
			if left, _ := filepath.Glob(r.at(".localpc-*")); len(left) > 0 {
				t.Fatalf("round %d: left %v", round, left)
			}
			last := r.last(round)
			if last != "" {
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
	r.put("f", "old")
	if _, err := n.Replaces(context.Background(), root, "f"); err != nil {
		t.Fatal(err)
	}
	r.put("g", "kept, and not replaced")
	if _, err := n.Replaces(context.Background(), root, "g"); err != nil {
		t.Fatal(err)
	}
	n.Makes(root, "never")
	r.e.Close()
	r.k.Close()
	must(t, r.store.Close())
	r.open("")
	if all := r.versions(); len(all) != 1 {
		t.Errorf("%d versions are kept", len(all))
	}
	r.undo("u", "cut")
	if r.text("d/x") != "x" || r.text("f") != "old" {
		t.Errorf("d/x is %q, f %q", r.text("d/x"), r.text("f"))
	}
}
