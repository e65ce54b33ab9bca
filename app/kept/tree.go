package kept

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"localpc/capabilities"
)

// errOdd: a socket or a device can't be kept.
var errOdd = errors.New("this is a socket or a device")

// copier copies files, folders and links with modes, times and attributes;
// names of one file stay names of one.
type copier struct {
	seen map[[2]uint64]copied // files with several names
	n    int64                // bytes
	// shared: contents were shared by the file system, and cost nothing.
	shared bool
	whole  bool // it is known that nothing can be
}

type copied struct {
	at   *dir // an own handle
	name string
}

func newCopier() *copier { return &copier{seen: map[[2]uint64]copied{}, shared: true} }

func (c *copier) close() {
	for _, s := range c.seen {
		s.at.close()
	}
}

// copyTree copies name in from to as in to, which must not be there. When it
// fails nothing is left.
func copyTree(ctx context.Context, from *dir, name string, to *dir, as string) (bytes int64, err error) {
	c := newCopier()
	defer c.close()
	if err := c.one(ctx, from, name, to, as); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			_ = removeTree(to, as)
		}
		return 0, err
	}
	return c.n, nil
}

func (c *copier) one(ctx context.Context, from *dir, name string, to *dir, as string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := from.lstat(name)
	if err != nil {
		return err
	}
	key := [2]uint64{n.id.Dev, n.id.Ino}
	if n.kind == kindFile && n.links > 1 {
		if s, ok := c.seen[key]; ok {
			return hardLink(s.at, s.name, to, as)
		}
	}
	switch n.kind {
	case kindFile:
		err = c.file(ctx, from, name, to, as, n)
	case kindDir:
		return c.dir(ctx, from, name, to, as, n)
	case kindLink:
		var target string
		if target, err = from.readlink(name); err == nil {
			err = to.symlink(target, as)
		}
	default:
		if !from.isFifo(name) {
			return fmt.Errorf("%s: %w", name, errOdd)
		}
		if err = to.mkfifo(as); err == nil {
			err = to.chmod(as, n.mode)
		}
	}
	if err != nil {
		return err
	}
	if n.kind != kindFile {
		own(to, as, n)
		return to.setTime(as, n.mtime)
	}
	if n.links > 1 {
		if at, err := to.at("."); err == nil {
			c.seen[key] = copied{at, as}
		}
	}
	return nil
}

// own gives a copy its owner, where this program may.
func own(d *dir, name string, n node) {
	if os.Geteuid() == 0 {
		_ = d.chown(name, n.uid, n.gid)
	}
}

func (c *copier) dir(ctx context.Context, from *dir, name string, to *dir, as string, n node) error {
	in, err := from.sub(name)
	if err != nil {
		return err
	}
	defer in.close()
	if err := to.mkdir(as, 0o700); err != nil {
		return err
	}
	out, err := to.sub(as)
	if err != nil {
		return err
	}
	defer out.close()
	names, err := in.names()
	if err != nil {
		return err
	}
	for _, child := range names {
		err := c.one(ctx, in, child, out, child)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	own(to, as, n)
	copyAttributes(in.f, out.f)
	if err := to.chmod(as, n.mode); err != nil {
		return err
	}
	return to.setTime(as, n.mtime)
}

func copyContents(ctx context.Context, in io.Reader, out io.Writer) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := io.CopyN(out, in, 16<<20); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// removeTree removes a name with all below it, also what may not be written to.
// It follows no links.
func removeTree(d *dir, name string) error {
	n, err := d.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if n.kind != kindDir {
		return d.unlink(name)
	}
	if n.mode&0o700 != 0o700 {
		_ = d.chmod(name, n.mode|0o700)
	}
	in, err := d.sub(name)
	if err != nil {
		return err
	}
	defer in.close()
	names, err := in.names()
	if err != nil {
		return err
	}
	var failed error
	for _, child := range names {
		if err := removeTree(in, child); err != nil {
			failed = err
		}
	}
	if err := d.rmdir(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(failed, err)
	}
	return nil
}

// sizeOf is how many bytes the files below a name have; several names of one
// file count once.
func sizeOf(ctx context.Context, d *dir, name string) (int64, error) {
	seen := map[capabilities.FileID]bool{}
	var total int64
	var walk func(d *dir, name string) error
	walk = func(d *dir, name string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := d.lstat(name)
		if err != nil {
			return err
		}
		switch {
		case n.kind == kindFile && !(n.links > 1 && seen[n.id]):
			total += n.size
			if n.links > 1 {
				seen[n.id] = true
			}
		case n.kind == kindDir:
			in, err := d.sub(name)
			if err != nil {
				return err
			}
			defer in.close()
			names, err := in.names()
			if err != nil {
				return err
			}
			for _, child := range names {
				if err := walk(in, child); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		return nil
	}
	return total, walk(d, name)
}
