package kept

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
)

// supported: this system tells files apart well enough to put them back.
const supported = true

// dir is an open folder to work in: names are of what is in it, or further below.
// It follows no links below itself.
type dir struct{ fd int }

func (d *dir) close() { _ = unix.Close(d.fd) }

func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func openat(at int, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// do calls f with the folder that rel is in, and its last part.
func (d *dir) do(rel string, f func(fd int, name string) error) error {
	at, name := d, rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		var err error
		if at, err = d.at(rel[:i]); err != nil {
			return err
		}
		defer at.close()
		name = rel[i+1:]
	}
	return retry(func() error { return f(at.fd, name) })
}

const folderFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW

// openDir opens the folder at a canonical absolute path, link-free all along.
func openDir(abs string) (*dir, error) {
	fd, err := openat(unix.AT_FDCWD, "/", folderFlags, 0)
	if err != nil {
		return nil, err
	}
	top := &dir{fd}
	defer top.close()
	return top.at(strings.Trim(abs, "/"))
}

// at opens the folder at rel, "." for the same.
func (d *dir) at(rel string) (*dir, error) {
	at := d.fd
	for c := range strings.SplitSeq(rel, "/") {
		fd, err := openat(at, c, folderFlags, 0)
		if at != d.fd {
			_ = unix.Close(at)
		}
		if err != nil {
			return nil, err
		}
		at = fd
	}
	return &dir{at}, nil
}

func dirOf(root *os.Root) (*dir, error) {
	f, err := root.OpenFile(".", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return (&dir{int(f.Fd())}).at(".")
}

// open opens a file or folder that is none of the things that block, and says
// what it is.
func (d *dir) open(name string, flags int, mode uint32) (*os.File, node, error) {
	var fd int
	err := d.do(name, func(at int, name string) (err error) {
		fd, err = openat(at, name, flags|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, mode)
		return err
	})
	if err != nil {
		return nil, node{}, err
	}
	n, err := statx(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		_ = unix.Close(fd)
		return nil, node{}, err
	}
	return os.NewFile(uintptr(fd), name), n, nil
}

func (d *dir) names() ([]string, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func (d *dir) lstat(name string) (n node, err error) {
	if !strings.Contains(name, "/") { // as most are that are looked at in thousands
		return statx(d.fd, name, unix.AT_SYMLINK_NOFOLLOW)
	}
	err = d.do(name, func(fd int, name string) (err error) {
		n, err = statx(fd, name, unix.AT_SYMLINK_NOFOLLOW)
		return err
	})
	return n, err
}

func statx(fd int, name string, flags int) (node, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return node{}, &os.PathError{Op: "statx", Path: name, Err: err}
	}
	n := node{
		ID:    capabilities.StatxID(&st),
		Kind:  kindOther,
		Mode:  uint32(st.Mode) & 0o7777,
		Size:  int64(st.Size),
		MTime: st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec),
		CTime: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec),
		Links: st.Nlink,
		UID:   int(st.Uid),
		GID:   int(st.Gid),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.Kind = kindFile
	case unix.S_IFDIR:
		n.Kind = kindDir
	case unix.S_IFLNK:
		n.Kind = kindLink
	case unix.S_IFIFO:
		n.Kind = kindPipe
	}
	return n, nil
}

// taken is how many bytes of the disk a file takes. Some file systems say that
// none takes any: there it is content.
func (d *dir) taken(name string) int64 {
	var st unix.Stat_t
	if unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return 0
	}
	if st.Blocks > 0 || st.Size == 0 {
		return int64(st.Blocks) * 512
	}
	return d.content(name)
}

// content is the size of a file that has anything in it, and 0 of one that is a
// hole.
func (d *dir) content(name string) int64 {
	f, n, err := d.open(name, os.O_RDONLY, 0)
	if err != nil {
		return 0 // nor can it be held
	}
	defer f.Close()
	if from, to := nextPart(f, 0, n.Size); from == to {
		return 0 // one hole
	}
	return n.Size
}

// rename moves a to b, in the same folder or in another.
func (d *dir) rename(a, b string, flags uint) error {
	return d.do(a, func(from int, a string) error {
		return d.do(b, func(to int, b string) error { return unix.Renameat2(from, a, to, b, flags) })
	})
}

// unsupported: the file system has no such flag.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS)
}

// swap puts what is at tmp at name, at once; what was there is at tmp then. A
// file system that can't do that does it in two moments.
func (d *dir) swap(tmp, name string) error {
	err := d.rename(tmp, name, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) {
		return d.renameNew(tmp, name)
	}
	if unsupported(err) {
		if err = d.rename(tmp, name, 0); err != nil {
			if err = d.removeTree(name); err == nil {
				err = d.rename(tmp, name, 0)
			}
		}
	}
	return err
}

// renameNew moves a name to one that must not exist yet (fs.ErrExist).
func (d *dir) renameNew(a, b string) error {
	err := d.rename(a, b, unix.RENAME_NOREPLACE)
	if unsupported(err) { // the moment between is accepted
		if _, err := d.lstat(b); !errors.Is(err, os.ErrNotExist) {
			return unix.EEXIST
		}
		err = d.rename(a, b, 0)
	}
	return err
}

// Full tells whether something failed since a disk is full.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func (d *dir) link(a, b string) error {
	return d.do(a, func(from int, a string) error {
		return d.do(b, func(to int, b string) error { return unix.Linkat(from, a, to, b, 0) })
	})
}

func (d *dir) mkdir(name string, mode uint32) error {
	return d.do(name, func(fd int, name string) error { return unix.Mkdirat(fd, name, mode) })
}

func (d *dir) symlink(to, name string) error {
	return d.do(name, func(fd int, name string) error { return unix.Symlinkat(to, fd, name) })
}

func (d *dir) mkfifo(name string) error {
	return d.do(name, func(fd int, name string) error { return unix.Mkfifoat(fd, name, 0o600) })
}

func (d *dir) readlink(name string) ([]byte, error) {
	buf, n := make([]byte, unix.PathMax), 0
	err := d.do(name, func(fd int, name string) (err error) {
		n, err = unix.Readlinkat(fd, name, buf)
		return err
	})
	return buf[:max(n, 0)], err
}

// removeTree removes a name with all below it, also what may not be written to.
// It follows no links.
func (d *dir) removeTree(name string) error {
	return d.do(name, func(fd int, name string) error {
		if err := unix.Unlinkat(fd, name, 0); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		at := &dir{fd}
		_ = walk(context.Background(), at, name, "", func(d *dir, name, _ string, n node) error {
			if n.Kind == kindDir && n.Mode&0o700 != 0o700 {
				_ = d.chmod(name, n.Mode|0o700)
			}
			return nil
		})
		root, err := os.OpenRoot(fdPath(fd))
		if err != nil {
			return err
		}
		defer root.Close()
		return root.RemoveAll(name)
	})
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// chmod changes the mode of a file or folder, never of what a link leads to.
func (d *dir) chmod(name string, mode uint32) error {
	return d.do(name, func(at int, name string) error {
		fd, err := openat(at, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if n, err := statx(fd, "", unix.AT_EMPTY_PATH); err != nil || n.Kind == kindLink {
			return err
		}
		return unix.Chmod(fdPath(fd), mode)
	})
}

// own gives what is at name n's owner, where this program may.
func (d *dir) own(name string, n node) {
	if os.Geteuid() == 0 {
		_ = d.do(name, func(fd int, name string) error {
			return unix.Fchownat(fd, name, n.UID, n.GID, unix.AT_SYMLINK_NOFOLLOW)
		})
	}
}

// dress gives what is at name n's mode and time.
func (d *dir) dress(name string, n node) error {
	if n.Kind != kindLink {
		if err := d.chmod(name, n.Mode); err != nil {
			return err
		}
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(n.MTime)}
	return d.do(name, func(fd int, name string) error { return unix.UtimesNanoAt(fd, name, times, unix.AT_SYMLINK_NOFOLLOW) })
}

// clone has length bytes of from, or all to its end for 0, shared by to, where
// the file system can.
func clone(to *os.File, at int64, from *os.File, fromAt, length int64) bool {
	return unix.IoctlFileCloneRange(int(to.Fd()), &unix.FileCloneRange{Src_fd: int64(from.Fd()), Src_offset: uint64(fromAt), Src_length: uint64(length), Dest_offset: uint64(at)}) == nil
}

// nextPart is the first part of f from at on that is no hole; end and end where
// there is none.
func nextPart(f *os.File, at, end int64) (from, to int64) {
	from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) || err == nil && from >= end {
		return end, end
	}
	if err != nil {
		return at, end // the file system can't tell
	}
	if to, err = unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE); err != nil {
		to = end
	}
	return from, min(to, end)
}

// punch frees the room of a part of f, where the file system can.
func punch(f *os.File, at, size int64) {
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, size)
}

// attributes are the extended attributes of a file, access lists among them.
func attributes(f *os.File) map[string][]byte {
	fd := int(f.Fd())
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return nil
	}
	names := make([]byte, size+256)
	if size, err = unix.Flistxattr(fd, names); err != nil {
		return nil
	}
	out, value := map[string][]byte{}, make([]byte, 64<<10)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:size]), "\x00"), "\x00") {
		if n, err := unix.Fgetxattr(fd, name, value); err == nil {
			out[name] = []byte(string(value[:n]))
		}
	}
	return out
}

// setAttributes gives a file those and no others, as far as the system lets it.
func setAttributes(f *os.File, want map[string][]byte) {
	fd := int(f.Fd())
	for name := range attributes(f) {
		if _, stays := want[name]; !stays {
			_ = unix.Fremovexattr(fd, name)
		}
	}
	for name, value := range want {
		_ = unix.Fsetxattr(fd, name, value, 0)
	}
}

// room is how many bytes are free where d is.
func (d *dir) room() int64 {
	var st unix.Statfs_t
	if retry(func() error { return unix.Fstatfs(d.fd, &st) }) != nil {
		return 0
	}
	return int64(st.Bavail) * st.Bsize
}
