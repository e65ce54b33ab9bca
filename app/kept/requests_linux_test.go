package kept_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
)

func TestEachIsUndoneAndThatToo(t *testing.T) {
	for name, what := range map[string]func(r *rig) capabilities.Call{
		"overwrite": func(r *rig) capabilities.Call { return r.write("notes/plan.md", "new") },
		"create":    func(r *rig) capabilities.Call { return r.write("a/b/c.txt", "new") },
		"delete":    func(r *rig) capabilities.Call { return r.remove("notes/plan.md") },
		"folder":    func(r *rig) capabilities.Call { return r.remove("notes") },
		"link":      func(r *rig) capabilities.Call { return r.remove("link") },
		"move":      func(r *rig) capabilities.Call { return r.move("notes", "old/notes") },
		"over":      func(r *rig) capabilities.Call { return r.move("other.txt", "notes/plan.md") },
		"out":       func(r *rig) capabilities.Call { return r.move("notes", "/tmp/notes") },
		"mkdir":     func(r *rig) capabilities.Call { return r.mkdir("x/y") },
		"hard":      func(r *rig) capabilities.Call { return r.write("hard.txt", "through both names") },
		"hard gone": func(r *rig) capabilities.Call { return r.remove("hard.txt") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, where := range []string{"", otherDisk(t)} {
				r := newRigIn(t, t.TempDir(), where)
				r.put("notes/plan.md", "old")
				r.put("notes/deep/er/x", "x")
				must(t, os.Chmod(r.at("notes/plan.md"), 0o600))
				must(t, os.Chmod(r.at("notes/deep"), 0o500))
				r.put("notes/\xff\n\"", "not UTF-8")
				r.put("notes/\xff", "not UTF-8 either")
				must(t, syscall.Mkfifo(r.at("notes/pipe"), 0o640))
				r.put("other.txt", "other")
				must(t, os.Symlink("notes/plan.md", r.at("link")))
				must(t, os.Link(r.at("other.txt"), r.at("hard.txt")))
				before := r.tree()
				call := what(r)
				request, said, err := r.do(call)
				must(t, err)
				after := r.tree()
				if after == before {
					t.Fatal("the request changed nothing")
				}
				if strings.Contains(said, "cannot be undone") {
					t.Errorf("its card said %q", said)
				}
				if can, undone := r.k.State(request); !can || undone {
					t.Fatal("it can't be undone")
				}
				r.undo("undo", request)
				if now := r.tree(); now != before {
					t.Fatalf("undone, the folder is\n%s\nand was\n%s", now, before)
				}
				if name == "hard" || name == "hard gone" {
					r.sameFile("hard.txt", "other.txt")
				}
				if can, undone := r.k.State(request); can || !undone {
					t.Fatal("it does not count as undone")
				}
				r.undo("again", "undo")
				if now := r.tree(); now != after {
					t.Fatalf("with the undoing undone, the folder is\n%s\nand was\n%s", now, after)
				}
				r.undo("third", "again")
				if now := r.tree(); now != before {
					t.Fatalf("undone once more, the folder is\n%s\nand was\n%s", now, before)
				}
			}
		})
	}
}

func (r *rig) sameFile(a, b string) {
	r.Helper()
	x, err := os.Stat(r.at(a))
	must(r, err)
	y, err := os.Stat(r.at(b))
	must(r, err)
	if !os.SameFile(x, y) {
		r.Errorf("%s and %s are not one file any more", a, b)
	}
}

// otherDisk is a directory on another file system than the tests' own.
func otherDisk(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "kept")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "versions")
}

// Random requests, and then the whole session undone, leave everything as it
// was: contents, modes, links and times.
func TestSessionUndone(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range 16 {
		rnd := rand.New(rand.NewPCG(seed, uint64(round)))
		where := ""
		if round%4 == 3 {
			where = otherDisk(t)
		}
		r := newRigIn(t, t.TempDir(), where)
		random := func(parts int) string {
			var p []string
			for range 1 + rnd.IntN(parts) {
				p = append(p, string("abcd"[rnd.IntN(4)]))
			}
			return strings.Join(p, "/")
		}
		for range 12 {
			rel := random(3)
			if os.MkdirAll(filepath.Dir(r.at(rel)), 0o755) != nil {
				continue
			}
			switch rnd.IntN(4) {
			case 0:
				_ = os.Mkdir(r.at(rel), 0o750)
			case 1:
				_ = os.Symlink(random(2), r.at(rel))
			case 2:
				_ = os.Link(r.at(random(2)), r.at(rel))
			default:
				if _, err := os.Lstat(r.at(rel)); err != nil {
					must(t, os.WriteFile(r.at(rel), []byte(rel), 0o600+os.FileMode(rnd.IntN(0o177))))
				}
			}
		}
		before, times := r.tree(), fileTimes(t, r.s.Folder)
		var did []string
		for i := range 30 {
			var c capabilities.Call
			rel, to := random(3), random(3)
			switch rnd.IntN(5) {
			case 0:
				c = r.remove(rel)
			case 1:
				c = r.move(rel, to)
			case 2:
				c = r.mkdir(rel)
			default:
				c = r.write(rel, strings.Repeat(fmt.Sprint(i, " "), 1+rnd.IntN(50)))
			}
			if _, _, err := r.do(c); err == nil {
				did = append(did, fmt.Sprintf("%s %+v", c.Type, c.Payload))
			}
		}
		all := r.k.OfSession(r.s.ID)
		if len(all) == 0 {
			continue
		}
		after := r.tree()
		q, err := r.k.Ask(context.Background(), all)
		if err != nil || q != "" {
			t.Fatalf("round %d: asks %q, %v after\n%s", round, q, err, strings.Join(did, "\n"))
		}
		if _, err := r.k.Undo(context.Background(), "undo", all, false); err != nil {
			t.Fatalf("round %d: %v after\n%s", round, err, strings.Join(did, "\n"))
		}
		if now := r.tree(); now != before {
			t.Fatalf("round %d: the folder is\n%s\n\nand was\n%s\n\nafter\n%s", round, now, before, strings.Join(did, "\n"))
		}
		for rel, was := range times {
			if now := fileTimes(t, r.s.Folder)[rel]; now != was {
				t.Errorf("round %d: %s is of %d, and was of %d", round, rel, now, was)
			}
		}
		r.undo("redo", "undo")
		if now := r.tree(); now != after {
			t.Fatalf("round %d: done again, the folder is\n%s\n\nand was\n%s\n\nafter\n%s", round, now, after, strings.Join(did, "\n"))
		}
		if t.Failed() {
			return
		}
	}
}

func fileTimes(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			out[path] = fi.ModTime().UnixNano()
		}
		return err
	}))
	return out
}
