package files

import (
	"maps"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func (r *rig) metaCall(path, text string, meta map[string]string) capabilities.Call {
	c := r.writeCall(path, text)
	c.Payload.(*wire.FileWrite).Metadata = meta
	must(r, c.Payload.Validate())
	return c
}

// meta is a file's metadata on the disk.
func (r *rig) meta(path string) map[string]string {
	f, err := os.Open(r.at(path))
	must(r, err)
	defer f.Close()
	return fileMetadata(f)
}

func TestMetadata(t *testing.T) {
	r := newRig(t)
	first := map[string]string{"author": "a person", "x-kind": "note é 🦊", "empty": ""}
	for _, c := range []struct {
		name, text string
		before     func(name string)
	}{
		{name: "new/f", text: "x"},
		{name: "large", text: strings.Repeat("x", adoptFrom+7)},
		{name: "replaced", text: "new", before: func(name string) { r.put(name, "old") }},
		{name: "replaced large", text: strings.Repeat("x", adoptFrom), before: func(name string) { r.put(name, "old") }},
		{name: "linked", text: "new", before: func(name string) { r.put(name, "old"); must(t, os.Link(r.at(name), r.at(name+"2"))) }},
		{name: "/tmp/f", text: "x"},
	} {
		if c.before != nil {
			c.before(c.name)
			must(t, unix.Setxattr(r.at(c.name), "user.other", []byte("stays"), 0))
			must(t, unix.Setxattr(r.at(c.name), "user.e2b.old", []byte("goes"), 0))
		}
		res, _, err := r.do(r.metaCall(c.name, c.text, first))
		must(t, err)
		if got := entryOf(res).Metadata; !maps.Equal(got, first) {
			t.Errorf("%s: the reply to the write says %q", c.name, got)
		}
		if got := r.meta(c.name); !maps.Equal(got, first) || r.text(c.name) != c.text {
			t.Errorf("%s has %q", c.name, got)
		}
		if e, err := r.stat(c.name); err != nil || !maps.Equal(e.Metadata, first) {
			t.Errorf("stat of %s: %+v, %v", c.name, e, err)
		}
		if c.before != nil {
			value := make([]byte, 16)
			if n, err := unix.Getxattr(r.at(c.name), "user.other", value); err != nil || string(value[:n]) != "stays" {
				t.Errorf("%s: another attribute was lost: %v", c.name, err)
			}
		}
		// Replacing drops the old, without saying so as well as with other ones.
		for _, next := range []map[string]string{{"author": "another"}, nil} {
			res, _, err := r.do(r.metaCall(c.name, "again", next))
			must(t, err)
			if got := r.meta(c.name); len(got) != len(next) || got["author"] != next["author"] || !maps.Equal(entryOf(res).Metadata, next) {
				t.Errorf("%s: after another write with %q: %q", c.name, next, got)
			}
		}
	}
	// It goes along with a move, between file systems as well, and is listed.
	_, _, err := r.do(r.metaCall("a", "x", first))
	must(t, err)
	e, err := r.move("a", "list/b")
	must(t, err)
	if !maps.Equal(e.Metadata, first) {
		t.Errorf("after a move: %q", e.Metadata)
	}
	list, err := r.list("list", 1)
	must(t, err)
	if len(list) != 1 || !maps.Equal(list[0].Metadata, first) {
		t.Errorf("listed: %+v", list)
	}
	r.noTemps()
}

// A grant for one write is none for one with other metadata, and its card shows
// all of it.
func TestMetadataIsShown(t *testing.T) {
	r := newRig(t)
	d, err := r.describe(r.metaCall("f", "text", map[string]string{"b": "two\nlines", "a": "one"}))
	must(t, err)
	if !strings.HasPrefix(d.Exact, "f\nwith metadata\n  a: one\n  b: two\\nlines\n\ntext") {
		t.Errorf("%q", d.Exact)
	}
	plain, err := r.describe(r.writeCall("f", "text"))
	must(t, err)
	other, err := r.describe(r.metaCall("f", "text", map[string]string{"b": "two\nlines", "a": "1"}))
	must(t, err)
	if consent.DigestOf(d.Payload) == consent.DigestOf(plain.Payload) || consent.DigestOf(d.Payload) == consent.DigestOf(other.Payload) {
		t.Error("other metadata, and the same digest")
	}
	if strings.Contains(plain.Exact, "metadata") {
		t.Errorf("%q", plain.Exact)
	}
}

// What other programs keep under these names is told as far as the wire takes
// it.
func TestMetadataOfOthers(t *testing.T) {
	r := newRig(t)
	r.put("f", "x")
	for name, value := range map[string]string{"good": "yes", "BAD": "case", "sp ace": "x", "binary": "\xff\xfe", "nul": "a\x00b"} {
		must(t, unix.Setxattr(r.at("f"), metaPrefix+name, []byte(value), 0))
	}
	e, err := r.stat("f")
	must(t, err)
	if !maps.Equal(e.Metadata, map[string]string{"good": "yes"}) {
		t.Errorf("%q", e.Metadata)
	}
	// They go as well when the file is replaced.
	_, err = r.write("f", "new")
	must(t, err)
	if got := r.meta("f"); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

// A disk that keeps no metadata, or not so much, says so; nothing is written.
func TestMetadataThatDoesNotFit(t *testing.T) {
	r := newRig(t)
	r.put("f", "old")
	big := map[string]string{"a": strings.Repeat("x", 15<<10)}
	_, _, err := r.do(r.metaCall("f", "new", big))
	if err != nil { // ext4; other file systems have the room
		wantCode(t, err, wire.CodeTooLarge)
		if r.text("f") != "old" {
			t.Error("it was written all the same")
		}
	} else if !maps.Equal(r.meta("f"), big) {
		t.Errorf("%d bytes kept", len(r.meta("f")["a"]))
	}
	r.noTemps()

	wantCode(t, metadataError(unix.ENOTSUP), wire.CodeNotSupported)
	wantCode(t, metadataError(unix.ENOSPC), wire.CodeTooLarge)
	if os.Geteuid() != 0 {
		return // who may mount has a disk without attributes
	}
	disk := t.TempDir()
	must(t, unix.Mount("ramfs", disk, "ramfs", 0, ""))
	defer func() { must(t, unix.Unmount(disk, unix.MNT_DETACH)) }()
	r = newRigIn(t, disk)
	r.put("f", "old")
	_, _, err = r.do(r.metaCall("f", "new", map[string]string{"a": "x"}))
	wantCode(t, err, wire.CodeNotSupported)
	if r.text("f") != "old" {
		t.Error("it was written all the same")
	}
	_, err = r.write("f", "new")
	must(t, err)
	if r.text("f") != "new" {
		t.Error("a write without metadata must work")
	}
	r.noTemps()
}
