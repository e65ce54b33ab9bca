package kept_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/kept"
	"localpc/app/store"
	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/files"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv("KEPT_CHILD") != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// rig is a session whose file requests are kept.
type rig struct {
	testing.TB
	base  string
	store *store.Store
	k     *kept.Kept
	e     *files.Executor
	s     *capabilities.Session
	limit atomic.Int64
	now   atomic.Int64 // nanoseconds later than it is
	busy  atomic.Bool  // a session has processes
	log   bytes.Buffer
}

func newRig(t testing.TB) *rig { return newRigIn(t, t.TempDir(), "") }

// newRigIn keeps old versions in versions, "" for beside the folder.
func newRigIn(t testing.TB, base, versions string) *rig {
	t.Helper()
	r := &rig{TB: t, base: base, s: capabilitytest.NewSessionIn(t, base, consent.ModeWork)}
	var err error
	r.s.FolderID, err = capabilities.FolderID(r.s.Folder)
	must(t, err)
	r.limit.Store(1 << 30)
	r.open(versions)
	t.Cleanup(func() {
		r.e.Close()
		r.k.Close()
		r.store.Close()
		_ = exec.Command("chmod", "-R", "u+rwX", base).Run() // what tests have locked goes, too
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

func (r *rig) open(versions string) {
	r.Helper()
	if versions == "" {
		versions = filepath.Join(r.base, "versions")
	}
	var err error
	r.store, err = store.Open(context.Background(), filepath.Join(r.base, "data"))
	must(r, err)
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	r.k, err = kept.Open(context.Background(), kept.Options{Dir: versions, Store: r.store, Limit: r.limit.Load, Busy: r.busy.Load, Log: log,
		Now: func() time.Time { return time.Now().Add(time.Duration(r.now.Load())) }})
	must(r, err)
	r.e = files.New(files.Options{Journal: filepath.Join(r.base, "journal"), Keep: r.k, Log: log})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) at(rel string) string { return filepath.Join(r.s.Folder, rel) }

// put writes a file as the person does.
func (r *rig) put(rel, text string) {
	r.Helper()
	must(r, os.MkdirAll(filepath.Dir(r.at(rel)), 0o755))
	must(r, os.WriteFile(r.at(rel), []byte(text), 0o644))
}

func (r *rig) text(rel string) string {
	b, err := os.ReadFile(r.at(rel))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Fatal(err)
	}
	return string(b)
}

func (r *rig) tree() string { return capabilitytest.Tree(r, r.s.Folder) }

// do runs a file request, and returns its id and what its card said.
func (r *rig) do(c capabilities.Call) (request, effects string, err error) {
	r.Helper()
	d, err := r.e.Describe(context.Background(), c)
	if err != nil {
		return "", "", err
	}
	for _, e := range d.Effects {
		effects += e.Text + "\n"
	}
	g := capabilitytest.Grant(r, r.s, "files", d)
	_, err = r.e.Run(context.Background(), c, g, &capabilitytest.Output{})
	return g.Request(), effects, err
}

func (r *rig) call(typ wire.Type, p wire.Payload) capabilities.Call {
	return capabilitytest.NewCall(r, r.s, typ, p)
}

func (r *rig) write(rel, text string) capabilities.Call {
	c := r.call(wire.TypeFileWrite, &wire.FileWrite{SessionID: r.s.ID, Path: rel})
	c.Upload = capabilitytest.NewUpload(r, []byte(text))
	return c
}

func (r *rig) remove(rel string) capabilities.Call {
	return r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: r.s.ID, Path: rel})
}

func (r *rig) move(src, dst string) capabilities.Call {
	return r.call(wire.TypeFileMove, &wire.FileMove{SessionID: r.s.ID, Src: src, Dst: dst})
}

func (r *rig) mkdir(rel string) capabilities.Call {
	return r.call(wire.TypeFileMkdir, &wire.FilePath{SessionID: r.s.ID, Path: rel})
}

func (r *rig) doing(c capabilities.Call) (request string) {
	r.Helper()
	request, _, err := r.do(c)
	must(r, err)
	return request
}

func (r *rig) undo(id string, requests ...string) {
	r.Helper()
	q, err := r.k.Ask(context.Background(), requests)
	must(r, err)
	if q != "" {
		r.Fatalf("undoing asks: %s", q)
	}
	_, err = r.k.Undo(context.Background(), id, requests, false)
	must(r, err)
}

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
				r.put("other.txt", "other")
				must(t, os.Symlink("notes/plan.md", r.at("link")))
				must(t, os.Link(r.at("other.txt"), r.at("hard.txt")))
				before := r.tree()
				call := what(r)
				request, said, err := r.do(call)
				if name == "folder" && where != "" && os.Geteuid() != 0 {
					if err == nil {
						t.Error("a folder that may not be written to was deleted")
					}
					continue // it can't be moved away, and is copied
				}
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
					r.sameFile("hard.txt", "other.txt", where == "" || name == "hard")
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

func (r *rig) sameFile(a, b string, want bool) {
	r.Helper()
	x, err := os.Stat(r.at(a))
	must(r, err)
	y, err := os.Stat(r.at(b))
	must(r, err)
	if want && !os.SameFile(x, y) {
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
	for round := range 24 {
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
				// From another disk the names of one file come back as files
				// of their own; see Takes.
				if where == "" {
					_ = os.Link(r.at(random(2)), r.at(rel))
				}
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

// Where nothing can be kept requests go on, and say that they can't be undone.
func TestOff(t *testing.T) {
	r := newRig(t)
	off := kept.Off()
	defer off.Close()
	r.e = files.New(files.Options{Journal: filepath.Join(r.base, "journal"), Keep: off})
	r.put("a", "a")
	for _, c := range []capabilities.Call{r.write("a", "b"), r.move("a", "b"), r.mkdir("d"), r.remove("b")} {
		request, said, err := r.do(c)
		if can, _ := off.State(request); err != nil || can || strings.Contains(said, "; can be undone") {
			t.Errorf("%s: %v; it said %q", c.Type, err, said)
		}
	}
	if ok, _ := off.WouldSnapshot(t.Context(), r.s); ok {
		t.Error("the folder would be held")
	}
	if _, err := off.Snapshot(t.Context(), r.s, "r"); err == nil {
		t.Error("the folder was held")
	}
	off.Tidy(t.Context())
	if _, err := off.Ask(t.Context(), []string{"r"}); !errors.Is(err, kept.ErrNothing) {
		t.Errorf("undoing says %v", err)
	}
}
