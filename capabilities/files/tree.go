package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"localpc/consent"
	"localpc/tunnel/wire"
)

// maxCounted is how many names are looked at before "more than N" is said.
const maxCounted = 20_000

// tally is what was counted below a place, itself included.
type tally struct {
	files, dirs int // links and whatever is not a folder count as files
	bytes       int64
	// more: the counting ended early, by number or by time, or came to a
	// folder that cannot be read.
	more bool
	// own: the session made all of it. Never with more.
	own bool
	// startup are the names among them that other programs run, at most
	// maxStartup.
	startup []string
}

const maxStartup = 20

// words: "12 files and 3 folders, 3.4 MB".
func (t tally) words() string {
	s := count(t.files, "file", "files", t.more)
	if t.files == 0 && !t.more {
		s = count(t.dirs, "folder", "folders", false)
	} else if t.dirs > 1 {
		s += " in " + count(t.dirs, "folder", "folders", false)
	}
	if t.bytes > 0 {
		s += ", " + consent.Bytes(t.bytes)
	}
	return s
}

// much is what print gives for what was not counted to the end: how far the
// counting came differs each time.
const much = "more"

// print is the tally's part of a fingerprint.
func (t tally) print() string {
	if t.more {
		return much
	}
	return fmt.Sprintf("%d %d %d own=%v startup=%q", t.files, t.dirs, t.bytes, t.own, t.startup)
}

// counter counts a tree. moved, when set, is where the tree is about to be:
// names are looked at there too.
type counter struct {
	j     *jail
	moved *place
	t     tally
	seen  int
}

// count looks at p and all below it, until ctx ends.
func (j *jail) count(ctx context.Context, p place, moved *place) tally {
	c := &counter{j: j, moved: moved, t: tally{own: true}}
	c.one(ctx, p, moved, p.node)
	if c.t.more {
		c.t.own = false
	}
	return c.t
}

func (c *counter) one(ctx context.Context, p place, moved *place, n node) {
	if c.seen++; c.seen > maxCounted || ctx.Err() != nil {
		c.t.more = true
		return
	}
	c.t.own = c.t.own && c.j.own(p, n)
	if len(c.t.startup) < maxStartup {
		switch {
		case startup(p):
			c.t.startup = append(c.t.startup, p.key())
		case moved != nil && startup(*moved):
			c.t.startup = append(c.t.startup, moved.key())
		}
	}
	if !n.mode.IsDir() {
		c.t.files++
		if n.mode.IsRegular() {
			c.t.bytes += n.size
		}
		return
	}
	c.t.dirs++
	err := eachEntry(p.base.root, p.rel, func(dir *os.File, name string) error {
		n, err := lstatIn(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		var to *place
		if moved != nil {
			t := moved.child(name)
			to = &t
		}
		c.one(ctx, p.child(name), to, n)
		if c.t.more {
			return io.EOF
		}
		return nil
	})
	if err != nil {
		c.t.more = true
	}
}

// eachEntry calls f for the names in a directory, a few hundred in memory at a
// time, until f returns an error.
func eachEntry(root *os.Root, rel string, f func(dir *os.File, name string) error) error {
	// Without blocking: a pipe may have taken the folder's place.
	dir, err := root.OpenFile(rel, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if err := f(dir, name); err != nil {
				return err
			}
		}
		if err == io.EOF || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// empty tells whether the folder p has nothing in it; one that cannot be read
// counts as not empty.
func empty(p place) bool {
	return eachEntry(p.base.root, p.rel, func(*os.File, string) error { return fs.ErrExist }) == nil
}

// removed counts what removeTree has removed.
type removed struct{ files, dirs int }

// removeTree removes name in parent with all below it. It never follows a
// link, also not one that takes a folder's place meanwhile. When ctx ends, or
// something cannot be removed, the rest is left.
func removeTree(ctx context.Context, parent *os.Root, name string, n *removed) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fi, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		if err := parent.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		n.files++
		return nil
	}
	err = removeBelow(ctx, parent, name, n)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// One that cannot be read goes too when it is empty.
	if rerr := parent.Remove(name); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return rerr
	}
	n.dirs++
	return nil
}

// removeOne removes p in parent; the system refuses a folder that is not empty,
// also one that has taken a file's place meanwhile.
func removeOne(parent *os.Root, p place, n *removed) error {
	err := parent.Remove(p.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && p.isDir():
		n.dirs++
	case err == nil:
		n.files++
	}
	return err
}

func removeBelow(ctx context.Context, parent *os.Root, name string, n *removed) error {
	dir, err := openReal(parent, name)
	if errors.Is(err, consent.ErrChanged) {
		return wire.Errorf(wire.CodeChanged, "A folder was replaced while it was being deleted, so the rest was left.")
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	// Again from the start after each pass: removing names while reading a
	// directory may skip some.
	for {
		found := 0
		err := eachEntry(dir, ".", func(_ *os.File, name string) error {
			found++
			return removeTree(ctx, dir, name, n)
		})
		if err != nil || found == 0 {
			return err
		}
	}
}
