package files

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	capabilitytest.Run(t, capabilitytest.Suite{
		New: func(t testing.TB) capabilities.Capability { return New(Options{Journal: t.TempDir()}) },
		Small: func(t testing.TB, s *capabilities.Session) capabilities.Call {
			must(t, os.WriteFile(filepath.Join(s.Folder, "note.txt"), []byte("old"), 0o644))
			c := capabilitytest.NewCall(t, s, wire.TypeFileWrite, &wire.FileWrite{SessionID: s.ID, Path: "note.txt"})
			c.Upload = capabilitytest.NewUpload(t, []byte("new"))
			return c
		},
		Change: func(t testing.TB, s *capabilities.Session) {
			must(t, os.WriteFile(filepath.Join(s.Folder, "note.txt"), []byte("the person's"), 0o644))
		},
		Large: func(t testing.TB, s *capabilities.Session) capabilities.Call {
			f, err := os.Create(filepath.Join(s.Folder, "large"))
			must(t, err)
			must(t, f.Truncate(capabilitytest.LargeBytes+12345))
			must(t, f.Close())
			return capabilitytest.NewCall(t, s, wire.TypeFileRead, &wire.FileRead{SessionID: s.ID, Path: "large"})
		},
	})
}

// rig is a session and an executor for one test.
type rig struct {
	testing.TB
	e *Executor
	s *capabilities.Session
}

func newRig(t testing.TB) *rig { return newRigIn(t, t.TempDir()) }

func newRigIn(t testing.TB, base string) *rig {
	t.Helper()
	r := &rig{TB: t, s: capabilitytest.NewSessionIn(t, base, consent.ModeWork), e: New(Options{Journal: filepath.Join(base, "journal")})}
	t.Cleanup(func() { r.e.Close() })
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at is a path in the folder on disk, or in tmp for names under /tmp/.
func (r *rig) at(rel string) string {
	if rest, ok := strings.CutPrefix(rel, "/tmp/"); ok {
		return filepath.Join(r.s.Tmp, rest)
	}
	return filepath.Join(r.s.Folder, rel)
}

// put writes a file on disk, as the person does.
func (r *rig) put(rel, text string) {
	r.Helper()
	must(r, os.MkdirAll(filepath.Dir(r.at(rel)), 0o755))
	must(r, os.WriteFile(r.at(rel), []byte(text), 0o644))
}

func (r *rig) link(target, rel string) {
	r.Helper()
	must(r, os.MkdirAll(filepath.Dir(r.at(rel)), 0o755))
	must(r, os.Symlink(target, r.at(rel)))
}

// text is what a file on disk holds; "" when it is not there.
func (r *rig) text(rel string) string {
	data, err := os.ReadFile(r.at(rel))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Fatal(err)
	}
	return string(data)
}

func (r *rig) call(typ wire.Type, p wire.Payload) capabilities.Call {
	return capabilitytest.NewCall(r, r.s, typ, p)
}

func (r *rig) do(c capabilities.Call) (capabilities.Result, *capabilitytest.Output, error) {
	return capabilitytest.Do(context.Background(), r, r.e, c)
}

func (r *rig) describe(c capabilities.Call) (capabilities.Description, error) {
	return r.e.Describe(context.Background(), c)
}

func (r *rig) writeCall(path, text string) capabilities.Call {
	c := r.call(wire.TypeFileWrite, &wire.FileWrite{SessionID: r.s.ID, Path: path})
	c.Upload = capabilitytest.NewUpload(r, []byte(text))
	return c
}

func (r *rig) readCall(path string) capabilities.Call {
	return r.call(wire.TypeFileRead, &wire.FileRead{SessionID: r.s.ID, Path: path})
}

func (r *rig) pathCall(typ wire.Type, path string) capabilities.Call {
	switch typ {
	case wire.TypeFileStat:
		return r.call(typ, &wire.FileStat{SessionID: r.s.ID, Path: path})
	case wire.TypeFileDelete:
		return r.call(typ, &wire.FileDelete{SessionID: r.s.ID, Path: path})
	}
	return r.call(typ, &wire.FilePath{SessionID: r.s.ID, Path: path})
}

func (r *rig) listCall(path string, depth int) capabilities.Call {
	return r.call(wire.TypeFileList, &wire.FileList{SessionID: r.s.ID, Path: path, Depth: depth})
}

func (r *rig) moveCall(src, dst string) capabilities.Call {
	return r.call(wire.TypeFileMove, &wire.FileMove{SessionID: r.s.ID, Src: src, Dst: dst})
}

func (r *rig) write(path, text string) (wire.Entry, error) {
	res, _, err := r.do(r.writeCall(path, text))
	return entryOf(res), err
}

func (r *rig) read(path string) (string, error) {
	_, out, err := r.do(r.readCall(path))
	return string(out.Contents("")), err
}

func (r *rig) stat(path string) (*wire.Entry, error) {
	res, _, err := r.do(r.pathCall(wire.TypeFileStat, path))
	if err != nil {
		return nil, err
	}
	return res.Payload.(*wire.FileStatResponse).Entry, nil
}

func (r *rig) mkdir(path string) (wire.Entry, error) {
	res, _, err := r.do(r.pathCall(wire.TypeFileMkdir, path))
	return entryOf(res), err
}

func (r *rig) delete(path string) error {
	_, _, err := r.do(r.pathCall(wire.TypeFileDelete, path))
	return err
}

func (r *rig) move(src, dst string) (wire.Entry, error) {
	res, _, err := r.do(r.moveCall(src, dst))
	return entryOf(res), err
}

func (r *rig) list(path string, depth int) ([]wire.Entry, error) {
	_, out, err := r.do(r.listCall(path, depth))
	var all []wire.Entry
	for _, f := range out.Frames() {
		all = append(all, f.Payload.(*wire.FileListResponse).Entries...)
	}
	return all, err
}

func entryOf(res capabilities.Result) wire.Entry {
	if p, ok := res.Payload.(*wire.FileStatResponse); ok && p.Entry != nil {
		return *p.Entry
	}
	return wire.Entry{}
}

// wantCode wants err to have a code, and a sentence a person can read.
func wantCode(t testing.TB, err error, code wire.Code) {
	t.Helper()
	if wire.CodeOf(err) != code {
		t.Errorf("got %q (%v), want %s", wire.CodeOf(err), err, code)
		return
	}
	if msg := err.Error(); len(msg) < 10 || !strings.HasSuffix(msg, ".") || strings.Contains(msg, "openat") {
		t.Errorf("%q is not a sentence for people", msg)
	}
}

// noTemps wants no temporary file left below the folder or in the journal.
func (r *rig) noTemps() {
	r.Helper()
	if tree := capabilitytest.Tree(r, r.s.Folder); strings.Contains(tree, tempPrefix) {
		r.Errorf("a temporary file was left:\n%s", tree)
	}
	if left, _ := os.ReadDir(r.e.journal.dir); len(left) > 0 {
		r.Errorf("the journal still holds %v", left)
	}
}

func TestReadInPieces(t *testing.T) {
	r := newRig(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), (wire.MaxChunk*2+100)/16)
	r.put("big", string(data))
	_, out, err := r.do(r.readCall("big"))
	must(t, err)
	frames := out.Frames()
	first, ok := frames[0].Payload.(*wire.FileContents)
	if !ok || first.Size != int64(len(data)) || first.Length != int64(len(data)) || first.MTime == 0 {
		t.Errorf("the first frame is %+v", frames[0])
	}
	if len(frames) != 4 || out.Largest() != wire.MaxChunk || !bytes.Equal(out.Contents(""), data) {
		t.Errorf("%d frames, the largest %d bytes, right contents: %v", len(frames), out.Largest(), bytes.Equal(out.Contents(""), data))
	}
	for _, c := range []struct {
		offset, length, want int64
	}{{0, 0, 0}, {5, 10, 10}, {int64(len(data)) - 3, 10, 3}, {int64(len(data)) + 9, 10, 0}, {16, -1, int64(len(data)) - 16}} {
		p := &wire.FileRead{SessionID: r.s.ID, Path: "big", Offset: c.offset}
		if c.length >= 0 {
			p.Length = &c.length
		}
		_, out, err := r.do(r.call(wire.TypeFileRead, p))
		must(t, err)
		if got := out.Contents(""); int64(len(got)) != c.want || c.want > 0 && !bytes.Equal(got, data[c.offset:c.offset+c.want]) {
			t.Errorf("offset %d, length %d: %d bytes, want %d", c.offset, c.length, len(got), c.want)
		}
		if f := out.Frames()[0].Payload.(*wire.FileContents); f.Length != c.want {
			t.Errorf("offset %d: %d bytes were promised, want %d", c.offset, f.Length, c.want)
		}
	}
}

func TestReadOfAFileThatChanges(t *testing.T) {
	r := newRig(t)
	size := 3 * pieceSize
	r.put("f", strings.Repeat("x", size))
	// Longer while it is read: what was promised comes.
	call := r.readCall("f")
	d, err := r.describe(call)
	must(t, err)
	once := true
	out := &capabilitytest.Output{Hook: func(capabilitytest.Frame) error {
		if once {
			once = false
			f, err := os.OpenFile(r.at("f"), os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString("more")
			must(t, err)
			must(t, f.Close())
		}
		return nil
	}}
	_, err = r.e.Run(context.Background(), call, capabilitytest.Grant(t, r.s, "files", d), out)
	must(t, err)
	if n := len(out.Contents("")); n != size {
		t.Errorf("%d bytes came, %d were promised", n, size)
	}
	// Shorter: an error, never less than was promised as if it were all.
	d, err = r.describe(call)
	must(t, err)
	out = &capabilitytest.Output{Hook: func(f capabilitytest.Frame) error {
		if f.Type == wire.TypeFileChunk {
			must(t, os.Truncate(r.at("f"), 10))
		}
		return nil
	}}
	_, err = r.e.Run(context.Background(), call, capabilitytest.Grant(t, r.s, "files", d), out)
	wantCode(t, err, wire.CodeChanged)
}

func TestReadOfWhatIsNoFile(t *testing.T) {
	r := newRig(t)
	_, err := r.read("nothing")
	wantCode(t, err, wire.CodePathNotFound)
	_, err = r.read("")
	wantCode(t, err, wire.CodePathKind)
	r.put("f", "x")
	_, err = r.read("f/below")
	wantCode(t, err, wire.CodePathKind)
}

func TestStat(t *testing.T) {
	r := newRig(t)
	r.put("d/f.txt", "hello")
	must(t, os.Chmod(r.at("d/f.txt"), 0o640))
	e, err := r.stat("/home/user/d/f.txt")
	must(t, err)
	if e.Name != "f.txt" || e.Path != "/home/user/d/f.txt" || e.Kind != "file" || e.Size != 5 || e.Mode != 0o640 || e.MTime == 0 || e.Owner == "" || e.LinkTarget != "" {
		t.Errorf("%+v", e)
	}
	for _, name := range []string{"none", "none/below", "d/f.txt/below"} {
		if e, err := r.stat(name); err != nil || e != nil {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	for asked, name := range map[string]string{"/home/user": "user", "~": "~", "": ".", "/tmp": "tmp", r.s.Folder: "folder"} {
		if e, err := r.stat(asked); err != nil || e.Kind != "dir" || e.Name != name {
			t.Errorf("%q: %+v, %v", asked, e, err)
		}
	}
}

func TestList(t *testing.T) {
	r := newRig(t)
	r.put("b/two", "22")
	r.put("b/deep/three", "333")
	r.put("a", "1")
	r.link("b", "z")
	r.link("/etc", "out")
	r.link("gone", "dangling")
	r.link("loop", "loop")
	names := func(list []wire.Entry) string {
		var s []string
		for _, e := range list {
			s = append(s, e.Path+":"+e.Kind)
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct {
		path  string
		depth int
		want  string
	}{
		{"/home/user", 1, "/home/user/a:file /home/user/b:dir /home/user/dangling:other /home/user/loop:other /home/user/out:other /home/user/z:dir"},
		{"", 2, "a:file b:dir b/deep:dir b/two:file dangling:other loop:other out:other z:dir"},
		{"~/b", 9, "~/b/deep:dir ~/b/deep/three:file ~/b/two:file"},
		{"z", 1, "z/deep:dir z/two:file"},
	} {
		list, err := r.list(c.path, c.depth)
		must(t, err)
		if got := names(list); got != c.want {
			t.Errorf("list %q, depth %d:\n got %s\nwant %s", c.path, c.depth, got, c.want)
		}
	}
	list, err := r.list("/home/user", 1)
	must(t, err)
	for i, want := range []string{"", "", "gone", "loop", "/etc", "/home/user/b"} {
		if list[i].LinkTarget != want {
			t.Errorf("%s leads to %q, want %q", list[i].Path, list[i].LinkTarget, want)
		}
	}
	_, err = r.list("a", 1)
	wantCode(t, err, wire.CodePathKind)
	_, err = r.list("none", 1)
	wantCode(t, err, wire.CodePathNotFound)
}

func TestListOfVeryMany(t *testing.T) {
	r := newRig(t)
	const many = wire.MaxListEntries/2 + 17
	for i := range many {
		must(t, os.WriteFile(r.at(strings.Repeat("n", 200)+string(rune('a'+i%26))+itoa(i)), nil, 0o600))
	}
	_, out, err := r.do(r.listCall(".", 1))
	must(t, err)
	got := 0
	for _, f := range out.Frames() {
		p := f.Payload.(*wire.FileListResponse)
		got += len(p.Entries)
		if _, err := wire.Encode(wire.Message{Type: f.Type, ID: "x", Payload: p}); err != nil {
			t.Errorf("a reply that the wire does not take: %v", err)
		}
	}
	if got != many || len(out.Frames()) < 2 {
		t.Errorf("%d entries in %d replies, want %d", got, len(out.Frames()), many)
	}
}

func itoa(i int) string {
	return string([]byte{byte('0' + i/10000%10), byte('0' + i/1000%10), byte('0' + i/100%10), byte('0' + i/10%10), byte('0' + i%10)})
}

func TestMkdir(t *testing.T) {
	r := newRig(t)
	e, err := r.mkdir("/home/user/a/b/c")
	must(t, err)
	if e.Path != "/home/user/a/b/c" || e.Kind != "dir" {
		t.Errorf("%+v", e)
	}
	_, err = r.mkdir("a/b/c")
	wantCode(t, err, wire.CodePathExists)
	_, err = r.mkdir("")
	wantCode(t, err, wire.CodePathExists)
	r.put("f", "x")
	_, err = r.mkdir("f")
	wantCode(t, err, wire.CodePathKind)
	_, err = r.mkdir("f/g")
	wantCode(t, err, wire.CodePathKind)
}

func TestDelete(t *testing.T) {
	r := newRig(t)
	r.put("keep/me", "x")
	r.link("../keep", "d/link")
	r.put("d/deep/f", "x")
	must(t, os.Mkdir(r.at("d/empty"), 0o755))
	must(t, r.delete("/home/user/d"))
	if _, err := os.Lstat(r.at("d")); !os.IsNotExist(err) || r.text("keep/me") != "x" {
		t.Error("the folder must be gone, and what its link led to must not")
	}
	must(t, r.delete("d"))
	must(t, r.delete("never/was"))
	must(t, r.delete("keep/me/below"))
	for _, root := range []string{"", ".", "~", "/home/user", "/tmp", r.s.Folder, "keep/.."} {
		wantCode(t, r.delete(root), wire.CodeInvalid)
	}
	if r.text("keep/me") != "x" {
		t.Error("something else was deleted")
	}
}

func TestMove(t *testing.T) {
	r := newRig(t)
	r.put("a", "A")
	e, err := r.move("/home/user/a", "/home/user/new/b")
	must(t, err)
	if e.Path != "/home/user/new/b" || e.Kind != "file" || r.text("new/b") != "A" {
		t.Errorf("%+v", e)
	}
	r.put("c", "C")
	_, err = r.move("new/b", "c")
	must(t, err)
	if r.text("c") != "A" {
		t.Error("an existing file must be replaced")
	}
	_, err = r.move("c", "c")
	must(t, err)
	must(t, os.Link(r.at("c"), r.at("c2")))
	_, err = r.move("c", "c2")
	must(t, err)
	if _, err := os.Lstat(r.at("c")); err == nil || r.text("c2") != "A" {
		t.Error("a file must not stay at its old name when the new one is a second name of it")
	}
	r.put("full/f", "x")
	r.put("dir/g", "x")
	for _, c := range []struct {
		src, dst string
		code     wire.Code
	}{
		{"none", "x", wire.CodePathNotFound},
		{"c2", "full", wire.CodePathKind},
		{"dir", "c2", wire.CodePathKind},
		{"dir", "full", wire.CodePathNotEmpty},
		{"dir", "dir/below", wire.CodeInvalid},
		{"", "x", wire.CodeInvalid},
		{"c2", "/home/user", wire.CodeInvalid},
		{"c2", "c2/x", wire.CodePathKind},
	} {
		_, err := r.move(c.src, c.dst)
		if wire.CodeOf(err) != c.code {
			t.Errorf("move %q to %q: %v, want %s", c.src, c.dst, err, c.code)
		}
	}
	must(t, os.Mkdir(r.at("empty"), 0o755))
	_, err = r.move("dir", "empty")
	must(t, err)
	if r.text("empty/g") != "x" {
		t.Error("a folder must take the place of an empty one")
	}
	r.link("/etc/passwd", "l")
	_, err = r.move("l", "moved-link")
	must(t, err)
	if target, _ := os.Readlink(r.at("moved-link")); target != "/etc/passwd" {
		t.Error("a link moves as it is")
	}
}
