package files

import (
	"context"
	"errors"
	"os"
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/tunnel/wire"
)

func (r *rig) statWith(p wire.FileStat) (*wire.FileStatResponse, error) {
	p.SessionID = r.s.ID
	res, _, err := r.do(r.call(wire.TypeFileStat, &p))
	if err != nil {
		return nil, err
	}
	return res.Payload.(*wire.FileStatResponse), nil
}

func TestStatOfALinkAsAskedFor(t *testing.T) {
	r := newRig(t)
	r.put("dir/file", "12345")
	r.link("dir/file", "link")
	r.link("dir", "way")
	r.link("nowhere", "dangling")
	r.link("/etc/passwd", "out")

	asIs, err := r.statWith(wire.FileStat{Path: "link"})
	must(t, err)
	own, err := r.statWith(wire.FileStat{Path: "link", NoFollow: true})
	must(t, err)
	target, err := r.statWith(wire.FileStat{Path: "link", Follow: true})
	must(t, err)
	if e := asIs.Entry; e.Kind != "file" || e.Mode != 0o777 || e.LinkTarget != "dir/file" {
		t.Errorf("as it is: %+v", e)
	}
	if e := own.Entry; e.Kind != "other" || e.Mode != 0o777 || e.LinkTarget != "dir/file" || e.Path != "link" {
		t.Errorf("the link itself: %+v", e)
	}
	if e := target.Entry; e.Kind != "file" || e.Size != 5 || e.Mode != 0o644 || e.Path != "dir/file" || e.LinkTarget != "dir/file" {
		t.Errorf("what it leads to: %+v", e)
	}
	if e := target.Entry; e.CTime < e.MTime || e.UID == nil || *e.UID != os.Geteuid() || e.GID == nil {
		t.Errorf("owner and change: %+v", e)
	}
	// A link above the last component is resolved, in the form asked with.
	real := r.s.Folder
	for _, p := range []wire.FileStat{{Path: real + "/way/file", Follow: true}, {Path: real + "/way/file", NoFollow: true}} {
		if got, err := r.statWith(p); err != nil || got.Entry.Path != real+"/dir/file" || got.Entry.LinkTarget != "" {
			t.Errorf("%+v: %+v, %v", p, got.Entry, err)
		}
	}
	if got, err := r.statWith(wire.FileStat{Path: "dangling", Follow: true}); err != nil || got.Exists || got.Path != "nowhere" {
		t.Errorf("a link that leads nowhere: %+v, %v", got, err)
	}
	if got, err := r.statWith(wire.FileStat{Path: "dangling", NoFollow: true}); err != nil || !got.Exists || got.Entry.Kind != "other" {
		t.Errorf("the link itself: %+v, %v", got, err)
	}
	if got, err := r.statWith(wire.FileStat{Path: "dir/file/below", Follow: true}); err != nil || got.Exists {
		t.Errorf("below a file: %+v, %v", got, err)
	}
	_, err = r.statWith(wire.FileStat{Path: "out", Follow: true})
	wantCode(t, err, wire.CodePathOutside)
	if got, err := r.statWith(wire.FileStat{Path: "out", NoFollow: true}); err != nil || got.Entry.Kind != "other" {
		t.Errorf("a link that leads out, itself: %+v, %v", got, err)
	}
}

func TestDeleteOnlyWhatIsEmptyAndThere(t *testing.T) {
	r := newRig(t)
	del := func(path string, empty, there bool) error {
		_, _, err := r.do(r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: r.s.ID, Path: path, OnlyEmpty: empty, MustExist: there}))
		return err
	}
	r.put("full/file", "x")
	r.put("file", "x")
	must(t, os.Mkdir(r.at("bare"), 0o755))
	r.link("full", "link")
	wantCode(t, del("full", true, false), wire.CodePathNotEmpty)
	wantCode(t, del("none", false, true), wire.CodePathNotFound)
	wantCode(t, del("file/below", true, true), wire.CodePathNotFound)
	wantCode(t, del(".", true, true), wire.CodeInvalid)
	wantCode(t, del("~", false, true), wire.CodeInvalid)
	must(t, del("none", true, false))
	must(t, del("link", true, true)) // the link, not the folder behind it
	must(t, del("bare", true, true))
	must(t, del("file", true, true))
	if got := capabilitytest.Tree(t, r.s.Folder); r.text("full/file") != "x" || r.text("file") != "" {
		t.Errorf("left is\n%s", got)
	}
	must(t, del("full", false, true))
}

// between looks at a request, changes the disk, and runs it all the same.
func (r *rig) between(c capabilities.Call, change func()) error {
	r.Helper()
	o, err := r.e.open(c)
	must(r, err)
	defer o.close()
	_, err = o.look(context.Background())
	must(r, err)
	change()
	_, err = o.run(context.Background(), &capabilitytest.Output{})
	return err
}

func TestRefusalsHoldAtTheLastMoment(t *testing.T) {
	r := newRig(t)
	must(t, os.Mkdir(r.at("bare"), 0o755))
	r.put("file", "mine")
	del := func(path string) capabilities.Call {
		return r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: r.s.ID, Path: path, OnlyEmpty: true, MustExist: true})
	}
	wantCode(t, r.between(del("bare"), func() { r.put("bare/new", "x") }), wire.CodePathNotEmpty)
	if r.text("bare/new") != "x" {
		t.Error("what came into the folder was deleted")
	}
	// A folder with something in it has taken the file's place.
	wantCode(t, r.between(del("file"), func() { must(t, os.Remove(r.at("file"))); r.put("file/deep", "x") }), wire.CodePathNotEmpty)
	if r.text("file/deep") != "x" {
		t.Error("a folder was deleted in a file's place")
	}
	wantCode(t, r.between(del("file/deep"), func() { must(t, os.Remove(r.at("file/deep"))) }), wire.CodePathNotFound)

	r.put("src", "new")
	move := r.call(wire.TypeFileMove, &wire.FileMove{SessionID: r.s.ID, Src: "src", Dst: "dst", NoReplace: true})
	wantCode(t, r.between(move, func() { r.put("dst", "the person's") }), wire.CodePathExists)
	if r.text("dst") != "the person's" || r.text("src") != "new" {
		t.Errorf("src %q, dst %q", r.text("src"), r.text("dst"))
	}
	must(t, os.Mkdir(r.at("into"), 0o755))
	write := r.writeCall("into/file", "x")
	write.Payload.(*wire.FileWrite).NoParents = true
	wantCode(t, r.between(write, func() { must(t, os.Remove(r.at("into"))) }), wire.CodePathNotFound)
	if _, err := os.Stat(r.at("into")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder was made all the same: %v", err)
	}
}

func TestMoveWithoutReplacing(t *testing.T) {
	r := newRig(t)
	move := func(p wire.FileMove) error {
		p.SessionID = r.s.ID
		_, _, err := r.do(r.call(wire.TypeFileMove, &p))
		return err
	}
	r.put("a", "1")
	r.put("b", "2")
	must(t, os.Mkdir(r.at("bare"), 0o755))
	must(t, os.Mkdir(r.at("dir"), 0o755))
	r.link("nowhere", "dangling")
	for _, p := range []wire.FileMove{{Src: "a", Dst: "b"}, {Src: "a", Dst: "a"}, {Src: "a", Dst: "bare/../a"}, {Src: "dir", Dst: "bare"}, {Src: "a", Dst: "dangling"}} {
		p.NoReplace = true
		wantCode(t, move(p), wire.CodePathExists)
	}
	wantCode(t, move(wire.FileMove{Src: "a", Dst: "new/a", NoParents: true}), wire.CodePathNotFound)
	wantCode(t, move(wire.FileMove{Src: ".", Dst: "bare/x", NoReplace: true}), wire.CodeInvalid)
	wantCode(t, move(wire.FileMove{Src: "a", Dst: "~"}), wire.CodeInvalid)
	// Onto itself with leave to replace: done, and nothing changed.
	must(t, move(wire.FileMove{Src: "a", Dst: "bare/../a"}))
	if r.text("a") != "1" || r.text("b") != "2" {
		t.Errorf("a %q, b %q", r.text("a"), r.text("b"))
	}
	must(t, move(wire.FileMove{Src: "a", Dst: "c", NoReplace: true, NoParents: true}))
	if r.text("c") != "1" || r.text("a") != "" {
		t.Errorf("c %q, a %q", r.text("c"), r.text("a"))
	}
}

func TestWriteWithoutMakingFolders(t *testing.T) {
	r := newRig(t)
	c := r.writeCall("new/deep/file", "x")
	c.Payload.(*wire.FileWrite).NoParents = true
	_, _, err := r.do(c)
	wantCode(t, err, wire.CodePathNotFound)
	if left, err := os.ReadDir(r.s.Folder); err != nil || len(left) != 0 {
		t.Errorf("left is %v, %v", left, err)
	}
	c = r.writeCall("file", "x")
	c.Payload.(*wire.FileWrite).NoParents = true
	_, _, err = r.do(c)
	must(t, err)
}

// An option decides what runs, so a grant for one is none for the other.
func TestOptionsArePartOfTheDigest(t *testing.T) {
	r := newRig(t)
	r.put("a", "1")
	c := r.call(wire.TypeFileDelete, &wire.FileDelete{SessionID: r.s.ID, Path: "a", OnlyEmpty: true})
	d, err := r.describe(c)
	must(t, err)
	g := capabilitytest.Grant(t, r.s, "files", d)
	if _, err := r.e.Run(t.Context(), r.pathCall(wire.TypeFileDelete, "a"), g, &capabilitytest.Output{}); err == nil || r.text("a") != "1" {
		t.Errorf("ran under a grant for another request: %v", err)
	}
}
