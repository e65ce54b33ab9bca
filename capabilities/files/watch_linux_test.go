package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/tunnel/wire"
)

// patience is for what comes in a moment, on a machine that is busy.
const patience = 30 * time.Second

// viewer is a watch under way.
type viewer struct {
	t      testing.TB
	cancel context.CancelCauseFunc
	done   chan struct{}
	res    capabilities.Result // after done
	err    error

	mu       sync.Mutex
	changes  []wire.FileChange // guarded by mu
	overflow int               // guarded by mu
	stall    chan struct{}     // guarded by mu: replies wait for it
}

func (r *rig) watch(p wire.FileWatch) *viewer {
	r.Helper()
	p.SessionID = r.s.ID
	call := r.call(wire.TypeFileWatch, &p)
	d, err := r.describe(call)
	must(r, err)
	v := &viewer{t: r.TB, done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.Background())
	v.cancel = cancel
	begun := make(chan struct{})
	out := &capabilitytest.Output{Hook: func(f capabilitytest.Frame) error {
		switch p := f.Payload.(type) {
		case *wire.Empty:
			close(begun)
		case *wire.FileChanges:
			v.mu.Lock()
			stall := v.stall
			v.mu.Unlock()
			if stall != nil {
				<-stall
			}
			v.mu.Lock()
			v.changes = append(v.changes, p.Changes...)
			if p.Overflow {
				v.overflow++
			}
			v.mu.Unlock()
		}
		return nil
	}}
	grant := capabilitytest.Grant(r, r.s, "files", d)
	go func() {
		defer close(v.done)
		v.res, v.err = r.e.Run(ctx, call, grant, out)
	}()
	r.Cleanup(func() { cancel(nil); <-v.done })
	select {
	case <-begun:
	case <-v.done:
		r.Fatalf("the watch ended at once: %v", v.err)
	case <-time.After(patience):
		r.Fatal("the watch did not begin")
	}
	return v
}

// ops are the changes so far, as "op name".
func (v *viewer) ops() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []string
	for _, c := range v.changes {
		all = append(all, c.Op+" "+c.Name)
	}
	return all
}

// until waits for a change.
func (v *viewer) until(op string) {
	v.t.Helper()
	v.wait(op, func() bool { return slices.Contains(v.ops(), op) })
}

func (v *viewer) wait(what string, ok func() bool) {
	v.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			v.t.Fatalf("waited for %q in vain; seen: %q", what, tail(v.ops()))
		}
	}
}

func tail(all []string) []string { return all[max(0, len(all)-50):] }

// over waits for the end of the watch.
func (v *viewer) over() (capabilities.Result, error) {
	v.t.Helper()
	select {
	case <-v.done:
	case <-time.After(patience):
		v.t.Fatal("the watch does not end")
	}
	return v.res, v.err
}

// mark makes a file, and waits until it was told: all that was before it was
// told, too.
func (r *rig) mark(v *viewer, dir, name string) []string {
	r.Helper()
	r.put(filepath.Join(dir, name), "")
	v.until("create " + name)
	return slices.DeleteFunc(v.ops(), func(op string) bool { return op == "create "+name })
}

func wantOps(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told\n%q, want\n%q", got, want)
	}
}

func TestWatch(t *testing.T) {
	r := newRig(t)
	r.put("d/old", "x")
	r.put("d/sub/deep", "x")
	v := r.watch(wire.FileWatch{Path: "/home/user/d"})
	r.put("d/new file", "text")
	must(t, os.Chmod(r.at("d/old"), 0o600))
	must(t, os.Rename(r.at("d/old"), r.at("d/renamed")))
	must(t, os.Remove(r.at("d/renamed")))
	must(t, os.Mkdir(r.at("d/made"), 0o755))
	r.put("d/sub/deep", "changed") // not told: it is further down
	r.put("d/made/deep", "x")
	r.put("beside", "x")
	wantOps(t, r.mark(v, "d", "end"), "create new file", "write new file", "chmod old", "rename old", "create renamed", "remove renamed", "create made")
	for _, c := range v.changes {
		if c.Entry != nil {
			t.Errorf("%s has an entry, and none was asked for", c.Name)
		}
	}
}

// One write is told as such, not as what it takes on the disk.
func TestWatchOfOwnWrites(t *testing.T) {
	r := newRig(t)
	r.put("d/there", "old")
	v := r.watch(wire.FileWatch{Path: "d"})
	_, err := r.write("d/new", "text")
	must(t, err)
	_, err = r.write("d/there", "text")
	must(t, err)
	_, err = r.write("d/large", strings.Repeat("x", adoptFrom))
	must(t, err)
	_, err = r.move("d/new", "d/other")
	must(t, err)
	must(t, r.delete("d/other"))
	_, err = r.mkdir("d/folder")
	must(t, err)
	wantOps(t, r.mark(v, "d", "end"), "create new", "chmod new", "write new", "chmod there", "write there",
		"create large", "chmod large", "write large", "rename new", "create other", "remove other", "create folder")
	// What only looks like one of our temporary names is told.
	r.put("d/.localpc-notes.tmp", "x")
	v.until("create .localpc-notes.tmp")
}

// What is deleted by moving it away, so that it can be undone, is told as
// deleted.
func TestWatchOfADeleteThatIsKept(t *testing.T) {
	r := newRig(t)
	away := filepath.Join(filepath.Dir(r.s.Folder), "away")
	must(t, os.Mkdir(away, 0o700))
	r.e = New(Options{Journal: r.e.o.Journal, Keep: mover{folder: r.s.Folder, away: away}})
	r.put("d/f", "x")
	r.put("d/g", "x")
	v := r.watch(wire.FileWatch{Path: ".", Recursive: true})
	must(t, r.delete("d/f"))
	must(t, os.Rename(r.at("d/g"), filepath.Join(away, "g"))) // the person
	must(t, r.delete("d"))
	wantOps(t, r.mark(v, ".", "end"), "remove d/f", "rename d/g", "remove d")
	if got := capabilitytest.Tree(t, away); !strings.Contains(got, "kept0") || !strings.Contains(got, "kept2") {
		t.Errorf("it was not moved away:\n%s", got)
	}
}

// mover keeps what is deleted by moving it away.
type mover struct {
	capabilities.Keep
	capabilities.Notes
	folder, away string
}

func (mover) Would(*capabilities.Session, int64) bool                  { return true }
func (m mover) Begin(*capabilities.Session, string) capabilities.Notes { return m }
func (mover) End()                                                     {}
func (m mover) Takes(_ context.Context, _ *os.Root, rel string) (capabilities.Change, bool, error) {
	n, err := os.ReadDir(m.away)
	if err != nil {
		return nil, false, err
	}
	err = os.Rename(filepath.Join(m.folder, rel), filepath.Join(m.away, "kept"+strconv.Itoa(len(n))))
	return unnoted{}, err == nil, err
}

// notify-rs/notify#531: an editor that saves by rename is seen every time.
func TestWatchOfAnEditorThatRenames(t *testing.T) {
	r := newRig(t)
	r.put("notes.txt", "0")
	v := r.watch(wire.FileWatch{Path: ".", Recursive: true})
	for i := range 20 {
		r.put("notes.txt.swp", strconv.Itoa(i))
		must(t, os.Rename(r.at("notes.txt.swp"), r.at("notes.txt")))
		v.wait("one more save", func() bool {
			n := 0
			for _, op := range v.ops() {
				if op == "create notes.txt" {
					n++
				}
			}
			return n == i+1
		})
	}
}

// Nothing is lost between the making of a folder and its watch.
func TestWatchFollowsNewFolders(t *testing.T) {
	r := newRig(t)
	r.put("old/deep/f", "x")
	v := r.watch(wire.FileWatch{Path: "", Recursive: true})
	var want []string
	for i := range 50 {
		dir := fmt.Sprintf("n%d/a/b", i)
		for _, name := range []string{fmt.Sprintf("n%d/one", i), dir + "/two", dir + "/empty"} {
			text := "x"
			if strings.HasSuffix(name, "empty") {
				text = ""
			} else {
				want = append(want, "write "+name)
			}
			r.put(name, text)
			want = append(want, "create "+name)
		}
		want = append(want, "create "+dir)
	}
	for _, op := range want {
		v.until(op)
	}
	r.put("old/deep/f", "changed")
	v.until("write old/deep/f")
	for _, op := range want {
		if n := len(slices.DeleteFunc(v.ops(), func(o string) bool { return o != op })); strings.HasPrefix(op, "create") && n != 1 {
			t.Errorf("%q was told %d times", op, n)
		}
	}
	// A folder that is renamed is known by its new name, with all in it, and one
	// that comes from elsewhere is looked through.
	must(t, os.Rename(r.at("old"), r.at("new")))
	v.until("create new")
	r.put("new/deep/f", "again")
	v.until("write new/deep/f")
	away := filepath.Join(filepath.Dir(r.s.Folder), "away")
	must(t, os.MkdirAll(filepath.Join(away, "in"), 0o755))
	must(t, os.WriteFile(filepath.Join(away, "in/f"), []byte("x"), 0o644))
	must(t, os.Rename(away, r.at("came")))
	v.until("create came/in/f")
	r.put("came/in/g", "x")
	v.until("write came/in/g")
}

// What is moved out is told no more, whatever happens to it there.
func TestWatchStaysInside(t *testing.T) {
	r := newRig(t)
	outside := filepath.Join(filepath.Dir(r.s.Folder), "outside")
	must(t, os.MkdirAll(outside, 0o755))
	r.put("d/sub/f", "x")
	r.link(outside, "d/out")
	r.link("../../outside", "d/out2")
	v := r.watch(wire.FileWatch{Path: "d", Recursive: true, Entries: true})
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("SECRET"), 0o644))
	must(t, os.Rename(r.at("d/sub"), filepath.Join(outside, "sub")))
	v.until("rename sub")
	for i := range 20 {
		must(t, os.WriteFile(filepath.Join(outside, "sub", "secret"+strconv.Itoa(i)), []byte("SECRET"), 0o644))
		time.Sleep(5 * time.Millisecond)
	}
	r.link(outside, "d/out3")
	wantOps(t, r.mark(v, "d", "end"), "rename sub", "create out3")
	for _, c := range v.changes {
		if c.Entry != nil && c.Entry.LinkTarget != "" && (c.Entry.Kind != "other" || c.Entry.LinkTarget != outside) {
			t.Errorf("a link that leads out: %+v", c.Entry)
		}
	}
	_, err := r.describe(r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Path: "d/out"}))
	wantCode(t, err, wire.CodePathOutside)
	_, err = r.describe(r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Path: "none"}))
	wantCode(t, err, wire.CodePathNotFound)
	_, err = r.describe(r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Path: "d/end"}))
	wantCode(t, err, wire.CodePathKind)
}

func TestWatchEnds(t *testing.T) {
	r := newRig(t)
	for _, dir := range []string{"deleted", "moved", "swapped/in", "cancelled", "ended", "folder"} {
		must(t, os.MkdirAll(r.at(dir), 0o755))
	}
	ack := func(v *viewer, words string) {
		t.Helper()
		res, err := v.over()
		if err != nil || res.Type != wire.TypeAck || !strings.Contains(res.Outcome, words) {
			t.Errorf("%+v, %v; want %q", res, err, words)
		}
	}
	v := r.watch(wire.FileWatch{Path: "deleted"})
	r.put("deleted/f", "")
	v.until("create f") // what comes and goes before anybody looked may be told as nothing
	must(t, os.RemoveAll(r.at("deleted")))
	ack(v, "the folder has gone; 2 changes told")
	wantOps(t, v.ops(), "create f", "remove f")

	v = r.watch(wire.FileWatch{Path: "moved", Recursive: true})
	must(t, os.Rename(r.at("moved"), r.at("moved away")))
	ack(v, "gone")

	// A folder above it: what happens there from then on is not told.
	v = r.watch(wire.FileWatch{Path: "swapped/in", Recursive: true})
	must(t, os.Rename(r.at("swapped"), filepath.Join(filepath.Dir(r.s.Folder), "swapped")))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(r.s.Folder), "swapped/in/secret"), nil, 0o644))
	ack(v, "gone")
	wantOps(t, v.ops())

	v = r.watch(wire.FileWatch{Path: "cancelled"})
	r.put("cancelled/f", "")
	v.until("create f")
	v.cancel(wire.Errorf(wire.CodeCancelled, "The request was cancelled."))
	ack(v, "ended by its program; 1 change told")

	v = r.watch(wire.FileWatch{Path: "ended"})
	must(t, r.e.EndSession(t.Context(), r.s.ID))
	_, err := v.over()
	wantCode(t, err, wire.CodeStopped)

	v = r.watch(wire.FileWatch{Path: "folder"})
	must(t, os.Rename(r.s.Folder, r.s.Folder+"-2"))
	must(t, os.WriteFile(r.s.Folder+"-2/folder/secret", nil, 0o644))
	_, err = v.over()
	wantCode(t, err, wire.CodeChanged)
	wantOps(t, v.ops())
	// And another has taken its place.
	must(t, os.Rename(r.s.Folder+"-2", r.s.Folder))
	v = r.watch(wire.FileWatch{Path: "folder"})
	must(t, os.Rename(r.s.Folder, r.s.Folder+"-2"))
	must(t, os.MkdirAll(r.at("folder"), 0o755))
	must(t, os.WriteFile(r.s.Folder+"-2/folder/secret2", nil, 0o644))
	_, err = v.over()
	wantCode(t, err, wire.CodeChanged)
	wantOps(t, v.ops())
}

func TestWatchWithEntries(t *testing.T) {
	r := newRig(t)
	must(t, os.Mkdir(r.at("d"), 0o755))
	v := r.watch(wire.FileWatch{Path: "~/d", Recursive: true, Entries: true})
	res, _, err := r.do(r.metaCall("d/sub/f", "12345", map[string]string{"kind": "note"}))
	must(t, err)
	v.until("write sub/f")
	must(t, r.delete("d/sub/f"))
	v.until("remove sub/f")
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := false
	for _, c := range v.changes {
		switch {
		case c.Op == "remove" && c.Entry != nil:
			t.Errorf("%s %s has %+v", c.Op, c.Name, c.Entry)
		case c.Entry != nil && c.Name == "sub/f":
			seen = true
			if want := entryOf(res); c.Entry.Path != "~/d/sub/f" || c.Entry.Size != want.Size || c.Entry.Mode != want.Mode || c.Entry.Metadata["kind"] != "note" {
				t.Errorf("%+v", c.Entry)
			}
		}
	}
	if !seen {
		t.Errorf("no entry came: %+v", v.changes)
	}
}

// The session's own /tmp is watched as the folder is.
func TestWatchOfTmp(t *testing.T) {
	r := newRig(t)
	v := r.watch(wire.FileWatch{Path: "/tmp", Recursive: true})
	r.put("/tmp/a/b", "x")
	_, err := r.write("/tmp/c", "x")
	must(t, err)
	for _, op := range []string{"create a", "create a/b", "write a/b", "create c"} {
		v.until(op)
	}
}

// fsnotify#343: when more changes than can be told, this is told, and what is
// made meanwhile is watched all the same.
func TestWatchOverflow(t *testing.T) {
	r := newRig(t)
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	queue, err := strconv.Atoi(strings.TrimSpace(string(data)))
	must(t, err)
	must(t, os.MkdirAll(r.at("gone/deep"), 0o755))
	must(t, os.MkdirAll(r.at("left/deep"), 0o755))
	outside := filepath.Join(filepath.Dir(r.s.Folder), "outside")
	v := r.watch(wire.FileWatch{Path: ".", Recursive: true})
	stall := make(chan struct{})
	v.mu.Lock()
	v.stall = stall
	v.mu.Unlock()
	for i := range queue/2 + 2000 {
		must(t, os.WriteFile(r.at("f"+strconv.Itoa(i)), []byte("x"), 0o600))
	}
	r.put("late/deep/f", "x") // its events are lost
	must(t, os.RemoveAll(r.at("gone")))
	must(t, os.Rename(r.at("left"), outside))
	close(stall)
	v.wait("overflow", func() bool { v.mu.Lock(); defer v.mu.Unlock(); return v.overflow == 1 })
	r.put("late/deep/g", "x")
	v.until("write late/deep/g")
	r.put("late/more/h", "x")
	v.until("create late/more/h")
	// What was moved out meanwhile is not told any more.
	must(t, os.WriteFile(filepath.Join(outside, "deep", "SECRET"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(outside, "SECRET"), nil, 0o644))
	for _, op := range r.mark(v, ".", "end") {
		if strings.Contains(op, "SECRET") {
			t.Errorf("told: %s", op)
		}
	}
}

// fswatch#232: no watches left is said in words that help.
func TestWatchWithoutWatchesLeft(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		must(t, os.MkdirAll(r.at("d"+strconv.Itoa(i)), 0o777))
	}
	out := r.inNamespace(roleWatch)
	for _, want := range []string{"max_user_watches=", "(", "raise the limit: sudo sysctl"} {
		if !strings.Contains(out, want) || !strings.Contains(out, "result recursive "+string(wire.CodeOverloaded)) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !strings.Contains(out, "result instances "+string(wire.CodeOverloaded)) || !strings.Contains(out, "max_user_instances=") {
		t.Errorf("no instance left:\n%s", out)
	}
	if !strings.Contains(out, "result later "+string(wire.CodeOverloaded)) {
		t.Errorf("no watch left for a folder that was made later:\n%s", out)
	}
}

// inNamespace runs a role as root of a user namespace of its own, in which
// limits can be set that hold for nobody else.
func (r *rig) inNamespace(role string) string {
	r.Helper()
	cmd := child(r.TB.(*testing.T), role, filepath.Dir(r.s.Folder))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// watchLimits is the role roleWatch.
func watchLimits(t *testing.T, r *rig) {
	limit := func(name, n string) {
		must(t, os.WriteFile("/proc/sys/user/max_inotify_"+name, []byte(n), 0))
	}
	try := func(what, path string, recursive bool) {
		c := r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Path: path, Recursive: recursive})
		_, _, err := r.do(c)
		fmt.Println("result", what, wire.CodeOf(err), err)
	}
	limit("watches", "10")
	try("recursive", ".", true)
	v := r.watch(wire.FileWatch{Path: "d0", Recursive: true})
	for i := range 20 {
		must(t, os.MkdirAll(r.at(fmt.Sprintf("d0/%d", i)), 0o755))
	}
	_, err := v.over()
	fmt.Println("result later", wire.CodeOf(err), err)
	limit("instances", "0")
	try("instances", "d1", false)
}

// A name that was found when its folder was new, and whose event comes as well,
// is told once; from then on it is a name like others.
func TestWatchTellsOnceWhatItFound(t *testing.T) {
	r := newRig(t)
	j, err := openJail(r.s)
	must(t, err)
	defer j.close()
	_, p, err := j.at("", true)
	must(t, err)
	w, err := newWatcher(p, true, &departures{})
	must(t, err)
	defer w.close()
	must(t, os.Mkdir(r.at("n"), 0o755))
	d, known, err := w.add(w.top, "n")
	if err != nil || known || d == nil {
		t.Fatal(d, known, err)
	}
	r.put("n/f", "")
	r.put("n/sub/g", "")
	must(t, w.scan(d, true))
	ops := func() (all []string) {
		changes, _, err := w.next(t.Context())
		must(t, err)
		for _, c := range changes {
			all = append(all, c.op+" "+c.rel)
		}
		return all
	}
	got := ops()
	slices.Sort(got)
	wantOps(t, got, "create n", "create n/f", "create n/sub", "create n/sub/g")
	must(t, os.Remove(r.at("n/f")))
	r.put("n/f", "")
	wantOps(t, ops(), "remove n/f", "create n/f")
}

func TestIsTemp(t *testing.T) {
	j := &journal{}
	for _, over := range []bool{true, false} {
		name, _, err := j.temp("/x", over)
		must(t, err)
		if o, is := isTemp(name); !is || o != over {
			t.Errorf("%s: %v, %v", name, o, is)
		}
	}
	for _, name := range []string{"", "x", tempPrefix, tempPrefix + tempNew, ".localpc-notes.tmp", tempPrefix + strings.Repeat("A", 26), tempPrefix + strings.Repeat("a", 26) + tempNew} {
		if _, is := isTemp(name); is {
			t.Errorf("%q passes for a temporary name", name)
		}
	}
}
