package kept_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// child works for ever, and is killed: KEPT_DO tells at what.
func child() {
	base, ctx := os.Getenv("KEPT_CHILD"), context.Background()
	st, err := store.Open(ctx, filepath.Join(base, "data"))
	var k *kept.Kept
	if err == nil {
		k, err = kept.Open(ctx, kept.Options{Dir: os.Getenv("KEPT_DIR"), Store: st, Limit: func() int64 { return 1 << 30 }})
	}
	s := &capabilities.Session{ID: os.Getenv("KEPT_SESSION"), Folder: os.Getenv("KEPT_FOLDER")}
	if err == nil {
		s.FolderID, err = capabilities.FolderID(s.Folder)
	}
	var all []string
	if err == nil {
		err = json.Unmarshal([]byte(os.Getenv("KEPT_REQUESTS")), &all)
	}
	fmt.Println("begins")
	for n := 0; err == nil; n++ {
		id := fmt.Sprintf("%s-%d", os.Getenv("KEPT_ROUND"), n)
		switch os.Getenv("KEPT_DO") {
		case "undo":
			_, err = k.Undo(ctx, id, all, false)
			all = []string{id}
		case "requests":
			err = childRequest(ctx, k, s, id, n)
		case "commands":
			var w capabilities.Snapshot
			if w, err = k.Snapshot(ctx, s, id); err == nil {
				err = errors.Join(os.RemoveAll(filepath.Join(s.Folder, "d0")), os.MkdirAll(filepath.Join(s.Folder, "d0"), 0o755),
					os.WriteFile(filepath.Join(s.Folder, "d0", "f"), []byte(id), 0o644), os.WriteFile(filepath.Join(s.Folder, "g0"), []byte(id), 0o644))
				w.End(ctx)
			}
		}
	}
	fmt.Println(err)
	os.Exit(3)
}

// childRequest replaces a file, deletes a folder, makes one, and moves it over
// another, as file requests do.
func childRequest(ctx context.Context, k *kept.Kept, s *capabilities.Session, id string, n int) error {
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	notes := k.Begin(s, id)
	defer notes.End()
	file, dir := fmt.Sprint("g", n%3), fmt.Sprint("d", n%3)
	in, err := root.OpenRoot(".")
	if err != nil {
		return err
	}
	defer in.Close()
	new := filepath.Join(filepath.Dir(s.Folder), "new")
	if err := os.WriteFile(new, []byte(id), 0o644); err != nil {
		return err
	}
	c, err := notes.Replaces(ctx, in, file)
	if err != nil {
		return err
	}
	if err := os.Rename(new, filepath.Join(s.Folder, file)); err != nil {
		return err
	}
	c.Done()
	if c, _, err = notes.Takes(ctx, in, dir); err != nil {
		return err
	}
	if err := root.RemoveAll(dir); err != nil {
		return err
	}
	c.Done()
	c = notes.Makes(in, dir)
	if err := root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	c.Done()
	if c, err = notes.Replaces(ctx, in, "over"); err != nil {
		return err
	}
	moves := notes.Moves(file, "over")
	if err := root.Rename(file, "over"); err != nil {
		return err
	}
	c.Done()
	moves.Done()
	c = notes.Makes(in, file)
	if err := root.WriteFile(file, []byte(id), 0o644); err != nil {
		return err
	}
	c.Done()
	return nil
}

// rig is a session whose file requests are kept.
type rig struct {
	testing.TB
	base  string
	dir   string // of old versions
	store *store.Store
	k     *kept.Kept
	e     *files.Executor
	s     *capabilities.Session
	limit atomic.Int64
	now   atomic.Int64 // nanoseconds after it began: no test depends on how long it takes
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
	if r.dir = versions; versions == "" {
		r.dir = filepath.Join(base, "versions")
	}
	r.open()
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

func (r *rig) open() {
	r.Helper()
	var err error
	r.store, err = store.Open(context.Background(), filepath.Join(r.base, "data"))
	must(r, err)
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	r.k, err = kept.Open(context.Background(), kept.Options{Dir: r.dir, Store: r.store, Limit: r.limit.Load, Log: log,
		Now: func() time.Time { return began.Add(time.Duration(r.now.Add(1))) }})
	must(r, err)
	r.e = files.New(files.Options{Journal: filepath.Join(r.base, "journal"), Keep: r.k, Log: log})
}

var began = time.Now()

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
