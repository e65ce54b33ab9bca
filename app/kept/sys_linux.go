package kept

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
)

// supported: this system tells files apart well enough to put them back.
const supported = true

// dir is an open folder to work in. It follows no links below itself.
type dir struct{ f *os.File }

func (d *dir) close()  { d.f.Close() }
func (d *dir) fd() int { return int(d.f.Fd()) }

func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func openat(at int, name string, flags int, mode uint32) (*os.File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

const folderFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW

// openDir opens the folder at a canonical absolute path, link-free all along.
func openDir(abs string) (*dir, error) {
	f, err := openat(unix.AT_FDCWD, "/", folderFlags, 0)
	if err != nil {
		return nil, err
	}
	d := &dir{f}
	return d.down(strings.Trim(abs, "/"))
}

// down opens the folder at rel, and closes d.
func (d *dir) down(rel string) (*dir, error) {
	for c := range strings.SplitSeq(rel, "/") {
		if c == "" || c == "." {
			continue
		}
		next, err := d.sub(c)
		d.close()
		if err != nil {
			return nil, err
		}
		d = next
	}
	return d, nil
}

// at opens the folder at rel; d stays open.
func (d *dir) at(rel string) (*dir, error) {
	same, err := d.sub(".")
	if err != nil {
		return nil, err
	}
	return same.down(rel)
}

func dirOf(root *os.Root) (*dir, error) {
	f, err := root.OpenFile(".", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &dir{f}, nil
}

func (d *dir) sub(name string) (*dir, error) {
	f, err := openat(d.fd(), name, folderFlags, 0)
	if err != nil {
		return nil, err
	}
	return &dir{f}, nil
}

// open opens a file that is none of the things that block.
func (d *dir) open(name string, flags int, mode uint32) (*os.File, error) {
	return openat(d.fd(), name, flags|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, mode)
}

func (d *dir) names() ([]string, error) {
	f, err := openat(d.fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func (d *dir) lstat(name string) (node, error) { return statx(d.fd(), name, unix.AT_SYMLINK_NOFOLLOW) }

func lstatFile(f *os.File) (node, error) { return statx(int(f.Fd()), "", unix.AT_EMPTY_PATH) }

func statx(fd int, name string, flags int) (node, error) {
	var st unix.Statx_t
	err := retry(func() error {
		return unix.Statx(fd, name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	})
	if err != nil {
		return node{}, &os.PathError{Op: "statx", Path: name, Err: err}
	}
	n := node{
		id:    capabilities.FileID{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino},
		kind:  kindOther,
		mode:  uint32(st.Mode) & 0o7777,
		size:  int64(st.Size),
		mtime: st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec),
		ctime: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec),
		links: st.Nlink,
		uid:   int(st.Uid),
		gid:   int(st.Gid),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		n.id.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.kind = kindFile
	case unix.S_IFDIR:
		n.kind = kindDir
	case unix.S_IFLNK:
		n.kind = kindLink
	}
	return n, nil
}

// renameNew moves a name to one that must not exist yet (fs.ErrExist). A folder
// that may not be written to is moved all the same, where it may be changed.
func renameNew(from *dir, a string, to *dir, b string) error {
	move := func() error {
		err := retry(func() error { return unix.Renameat2(from.fd(), a, to.fd(), b, unix.RENAME_NOREPLACE) })
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			// A file system without this flag; the moment between is accepted.
			if _, err := to.lstat(b); !errors.Is(err, os.ErrNotExist) {
				return unix.EEXIST
			}
			err = retry(func() error { return unix.Renameat2(from.fd(), a, to.fd(), b, 0) })
		}
		return err
	}
	err := move()
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	n, serr := from.lstat(a)
	if serr != nil || n.kind != kindDir || n.mode&0o200 != 0 || from.chmod(a, n.mode|0o200) != nil {
		return err
	}
	if err = move(); err != nil {
		_ = from.chmod(a, n.mode)
		return err
	}
	return to.chmod(b, n.mode)
}

// Full tells whether something failed since a disk is full.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func crossDevice(err error) bool { return errors.Is(err, unix.EXDEV) }

// beingWritten tells whether somebody has a file open for writing: the system
// gives a lease on it only where nobody has. Who may not read it can't copy it
// either.
func beingWritten(d *dir, name string) bool {
	fd, err := openRaw(d, name, unix.O_RDONLY, 0)
	if err != nil {
		return !errors.Is(err, os.ErrPermission)
	}
	defer unix.Close(fd)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return true
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err != nil
}

func hardLink(from *dir, a string, to *dir, b string) error {
	return retry(func() error { return unix.Linkat(from.fd(), a, to.fd(), b, 0) })
}

func (d *dir) mkdir(name string, mode uint32) error {
	return retry(func() error { return unix.Mkdirat(d.fd(), name, mode) })
}

func (d *dir) symlink(target, name string) error {
	return retry(func() error { return unix.Symlinkat(target, d.fd(), name) })
}

func (d *dir) mkfifo(name string) error {
	return retry(func() error { return unix.Mknodat(d.fd(), name, unix.S_IFIFO|0o600, 0) })
}

func (d *dir) isFifo(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

func (d *dir) readlink(name string) (string, error) {
	buf := make([]byte, 4096)
	var n int
	err := retry(func() (err error) {
		n, err = unix.Readlinkat(d.fd(), name, buf)
		return err
	})
	return string(buf[:max(n, 0)]), err
}

func (d *dir) unlink(name string) error {
	return retry(func() error { return unix.Unlinkat(d.fd(), name, 0) })
}

func (d *dir) rmdir(name string) error {
	return retry(func() error { return unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR) })
}

// chmod changes the mode of a file or folder, never of what a link leads to.
func (d *dir) chmod(name string, mode uint32) error {
	f, err := openat(d.fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if n, err := lstatFile(f); err != nil || n.kind == kindLink {
		return err
	}
	return retry(func() error { return unix.Chmod(procPath(f), mode) })
}

func procPath(f *os.File) string { return fdPath(int(f.Fd())) }

func fdPath(fd int) string { return "/proc/self/fd/" + itoa(fd) }

func (d *dir) chown(name string, uid, gid int) error {
	return retry(func() error { return unix.Fchownat(d.fd(), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW) })
}

func (d *dir) setTime(name string, mtime int64) error {
	t := unix.NsecToTimespec(mtime)
	return retry(func() error {
		return unix.UtimesNanoAt(d.fd(), name, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, t}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// clone has to share in's contents, where the file system can.
func clone(in, out *os.File) bool {
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
}

// file copies one file: shared where the file system can, in pieces else, so
// that a large one can be given up. It is one of thousands, so it does without
// os.File.
func (c *copier) file(ctx context.Context, from *dir, name string, to *dir, as string, n node) error {
	in, err := openRaw(from, name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := openRaw(to, as, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	if n.size > 0 && (c.whole || unix.IoctlFileClone(out, in) != nil) {
		c.shared, c.whole = false, true
		if err := copyRaw(ctx, in, out); err != nil {
			return &os.PathError{Op: "copy", Path: name, Err: err}
		}
	}
	if os.Geteuid() == 0 && (n.uid != 0 || n.gid != 0) {
		_ = unix.Fchown(out, n.uid, n.gid)
	}
	if size, err := unix.Flistxattr(in, nil); err == nil && size > 0 {
		likeAttributes(fdPath(in), fdPath(out))
	}
	c.n += n.size
	if err := retry(func() error { return unix.Fchmod(out, n.mode) }); err != nil {
		return err
	}
	return to.setTime(as, n.mtime)
}

func openRaw(d *dir, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(d.fd(), name, flags|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// copyRaw has the kernel copy, where it can.
func copyRaw(ctx context.Context, in, out int) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var n int
		err := retry(func() (err error) {
			n, err = unix.CopyFileRange(in, nil, out, nil, 16<<20, 0)
			return err
		})
		switch {
		case errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EIO):
			return copyByHand(ctx, in, out)
		case err != nil || n == 0:
			return err
		}
	}
}

func copyByHand(ctx context.Context, in, out int) error {
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var n int
		err := retry(func() (err error) {
			n, err = unix.Read(in, buf)
			return err
		})
		if err != nil || n <= 0 {
			return err
		}
		for p := buf[:n]; len(p) > 0; {
			var m int
			if err := retry(func() (err error) {
				m, err = unix.Write(out, p)
				return err
			}); err != nil {
				return err
			}
			p = p[m:]
		}
	}
}

// readSmall reads a file that fits into buf; plain is false for one that has
// attributes.
func readSmall(d *dir, name string, buf []byte) (n int, plain bool, err error) {
	fd, err := openRaw(d, name, unix.O_RDONLY, 0)
	if err != nil {
		return 0, false, err
	}
	defer unix.Close(fd)
	if size, err := unix.Flistxattr(fd, nil); err == nil && size > 0 {
		return 0, false, nil
	}
	for n < len(buf) {
		var m int
		err := retry(func() (err error) {
			m, err = unix.Read(fd, buf[n:])
			return err
		})
		if err != nil {
			return 0, false, &os.PathError{Op: "read", Path: name, Err: err}
		}
		if m == 0 {
			return n, true, nil
		}
		n += m
	}
	return n, false, nil // larger meanwhile
}

// attributesOf are the extended attributes of a file that is open as f, access
// lists among them.
func attributesOf(f *os.File) map[string]string { return attributesAt(procPath(f)) }

func attributesAt(path string) map[string]string {
	size, err := unix.Listxattr(path, nil)
	if err != nil || size == 0 {
		return nil
	}
	names := make([]byte, size+256)
	if size, err = unix.Listxattr(path, names); err != nil {
		return nil
	}
	out, value := map[string]string{}, make([]byte, 64<<10)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:size]), "\x00"), "\x00") {
		if n, err := unix.Getxattr(path, name, value); err == nil {
			out[name] = string(value[:n])
		}
	}
	return out
}

// copyAttributes gives to what from has, as far as the system lets it.
func copyAttributes(from, to *os.File) { likeAttributes(procPath(from), procPath(to)) }

func likeAttributes(from, to string) {
	want := attributesAt(from)
	for name := range attributesAt(to) {
		if _, stays := want[name]; !stays {
			_ = unix.Removexattr(to, name)
		}
	}
	for name, value := range want {
		_ = unix.Setxattr(to, name, []byte(value), 0)
	}
}

// room is how many bytes are free where d is.
func (d *dir) room() int64 {
	var st unix.Statfs_t
	if retry(func() error { return unix.Fstatfs(d.fd(), &st) }) != nil {
		return 0
	}
	return int64(st.Bavail) * st.Bsize
}
