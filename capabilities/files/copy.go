package files

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path"

	"localpc/capabilities"
)

// across moves between file systems: a copy beside the new name, one rename,
// and then the delete of the source. Until the rename nothing has changed.
func (o *moveOp) across(ctx context.Context, from, to *os.Root) (err error) {
	temp, done, err := o.e.journal.temp(place{base: o.dst.base, rel: o.dst.dir()}.abs(), o.dst.exists())
	if err != nil {
		return err
	}
	defer done()
	c := &copier{o: o, made: map[string]capabilities.FileID{}}
	if err = c.one(ctx, from, o.src.name(), to, temp, "."); err == nil {
		err = o.place(to, temp, to)
	}
	if err != nil {
		var n removed
		_ = removeTree(context.WithoutCancel(ctx), to, temp, &n)
		return err
	}
	made := o.j.session.Made
	made.ForgetTree(o.dst.key())
	for rel, id := range c.made {
		made.Add(path.Join(o.dst.key(), rel), id)
	}
	made.ForgetTree(o.src.key())
	var n removed
	return removeTree(ctx, from, o.src.name(), &n)
}

// copier copies a tree: files, folders and links, with modes and times.
type copier struct {
	o    *moveOp
	made map[string]capabilities.FileID // of the copies of what the session made
}

// one copies name in from to as in to. rel is where it is below the source.
func (c *copier) one(ctx context.Context, from *os.Root, name string, to *os.Root, as, rel string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := lstatOf(from, name)
	if err != nil {
		return err
	}
	src := place{base: c.o.src.base, rel: path.Join(c.o.src.rel, rel)}
	switch {
	case n.mode&fs.ModeSymlink != 0:
		var target string
		if target, err = from.Readlink(name); err == nil {
			err = to.Symlink(target, as)
		}
	case n.mode.IsDir():
		err = c.dir(ctx, from, name, to, as, rel, n)
	case n.mode.IsRegular():
		err = c.file(ctx, from, name, to, as, n)
	default:
		err = notRegular(src.key(), n)
	}
	if err != nil {
		return err
	}
	if c.o.j.own(src, n) {
		if now, err := lstatOf(to, as); err == nil {
			c.made[rel] = now.id
		}
	}
	return nil
}

func (c *copier) dir(ctx context.Context, from *os.Root, name string, to *os.Root, as, rel string, n node) error {
	in, err := openReal(from, name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := to.Mkdir(as, 0o700); err != nil {
		return err
	}
	out, err := openFolder(to, as)
	if err != nil {
		return err
	}
	defer out.Close()
	err = eachEntry(in, ".", func(_ *os.File, child string) error {
		return c.one(ctx, in, child, out, child, path.Join(rel, child))
	})
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		_ = to.Lchown(as, n.uid, n.gid)
	}
	if err := to.Chmod(as, n.mode.Perm()|n.mode&(fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	return to.Chtimes(as, n.mtime, n.mtime)
}

func (c *copier) file(ctx context.Context, from *os.Root, name string, to *os.Root, as string, n node) error {
	in, err := from.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if now, err := lstatFile(in); err != nil {
		return err
	} else if !now.mode.IsRegular() {
		return notRegular(name, now)
	}
	out, err := to.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := copyPieces(ctx, out, in, math.MaxInt64); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		_ = out.Chown(n.uid, n.gid)
	}
	copyAttributes(in, out)
	if err := out.Chmod(n.mode.Perm() | n.mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return to.Chtimes(as, n.mtime, n.mtime)
}
