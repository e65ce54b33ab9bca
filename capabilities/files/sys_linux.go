package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
)

// openFlags: a pipe or a device that was put in a file's place must neither
// block nor become a controlling terminal.
const openFlags = unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY

// handle opens a directory as a place to work in. It needs no right to list it.
func handle(root *os.Root, dir string) (*os.File, error) {
	return root.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// openFolder opens the folder name in dir to work in. Unlike Root.OpenRoot it
// waits for no writer when a pipe has taken the folder's place.
func openFolder(dir *os.Root, name string) (*os.Root, error) {
	f, err := handle(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
}

// lstat says what is at rel.
func (b *base) lstat(rel string) (node, error) {
	dir, err := handle(b.root, path.Dir(rel))
	if err != nil {
		return node{}, err
	}
	defer dir.Close()
	if rel == "." {
		return lstatFile(dir)
	}
	return lstatIn(dir, path.Base(rel))
}

// lstatIn says what name is in dir.
func lstatIn(dir *os.File, name string) (node, error) {
	return statx(dir, name, unix.AT_SYMLINK_NOFOLLOW)
}

// lstatFile says what f is.
func lstatFile(f *os.File) (node, error) { return statx(f, "", unix.AT_EMPTY_PATH) }

func statx(f *os.File, name string, flags int) (node, error) {
	var st unix.Statx_t
	err := retry(func() error {
		return unix.Statx(int(f.Fd()), name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	})
	if err != nil {
		return node{}, &fs.PathError{Op: "statx", Path: name, Err: err}
	}
	n := node{
		id:    capabilities.StatxID(&st),
		size:  int64(st.Size),
		mtime: time.Unix(st.Mtime.Sec, int64(st.Mtime.Nsec)),
		ctime: time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)),
		links: uint64(st.Nlink),
		uid:   int(st.Uid),
		gid:   int(st.Gid),
		mode:  fs.FileMode(st.Mode & 0o777),
	}
	for bit, value := range map[uint16]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if st.Mode&bit != 0 {
			n.mode |= value
		}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		n.mode |= fs.ModeDir
	case unix.S_IFLNK:
		n.mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		n.mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		n.mode |= fs.ModeSocket
	case unix.S_IFCHR:
		n.mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		n.mode |= fs.ModeDevice
	default:
		n.mode |= fs.ModeIrregular
	}
	return n, nil
}

// writable asks the system whether this process may write what is at name in
// dir, without opening it.
func writable(dir *os.File, name string) error {
	return retry(func() error {
		return unix.Faccessat(int(dir.Fd()), name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
	})
}

// rename moves a name between two directories, replacing what is there.
func rename(from *os.Root, old string, to *os.Root, name string) error {
	return renameWith(from, old, to, name, 0)
}

// renameNew moves a name to one that must not exist yet (fs.ErrExist).
func renameNew(from *os.Root, old string, to *os.Root, name string) error {
	err := renameWith(from, old, to, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// A file system without this flag; the moment between is accepted.
		if _, err := to.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return fs.ErrExist
		}
		return rename(from, old, to, name)
	}
	return err
}

func renameWith(from *os.Root, old string, to *os.Root, name string, flags uint) error {
	a, err := handle(from, ".")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := handle(to, ".")
	if err != nil {
		return err
	}
	defer b.Close()
	return retry(func() error { return unix.Renameat2(int(a.Fd()), old, int(b.Fd()), name, flags) })
}

// copyAttributes copies the extended attributes, access lists among them, as
// far as the system lets it. It tells whether it has copied all of them.
func copyAttributes(from, to *os.File) (all bool) {
	names := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(from.Fd()), names)
	if err != nil {
		return errors.Is(err, unix.ENOTSUP)
	}
	all = true
	value, there := make([]byte, 64<<10), make([]byte, 64<<10)
	for start, i := 0, 0; i < n; i++ {
		if names[i] != 0 {
			continue
		}
		name := string(names[start:i])
		start = i + 1
		if name == "security.capability" {
			continue // the system takes it from a file that is written to
		}
		size, err := unix.Fgetxattr(int(from.Fd()), name, value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, value[:size], 0)
		}
		if err != nil {
			// What it has already need not be set.
			got, gerr := unix.Fgetxattr(int(to.Fd()), name, there)
			all = all && gerr == nil && string(there[:got]) == string(value[:size])
		}
	}
	return all
}

// sameDisk tells whether a name of one can be given to the other.
func sameDisk(a, b *os.File) bool {
	n, err := lstatFile(a)
	if err != nil {
		return false
	}
	o, err := lstatFile(b)
	return err == nil && n.id.Dev == o.id.Dev
}

// adopt lets the file that is open as spool, at path, take the place of the
// empty f, at temp in parent, with the owner, the attributes and the mode that
// f has. False where that cannot be; f is then as it was.
func adopt(parent *os.Root, temp string, f, spool *os.File, path string) bool {
	n, err := lstatFile(f)
	if err != nil {
		return false
	}
	now, err := lstatFile(spool)
	if err != nil {
		return false
	}
	if now.uid != n.uid || now.gid != n.gid {
		if spool.Chown(n.uid, n.gid) != nil {
			return false
		}
	}
	if !copyAttributes(f, spool) || spool.Chmod(plainMode(n.mode)) != nil {
		return false
	}
	dir, err := handle(parent, ".")
	if err != nil {
		return false
	}
	defer dir.Close()
	return retry(func() error { return unix.Renameat(unix.AT_FDCWD, path, int(dir.Fd()), temp) }) == nil
}

// giveBack undoes adopt.
func giveBack(parent *os.Root, temp string, spool *os.File, path string) {
	_ = spool.Chmod(0o600)
	if dir, err := handle(parent, "."); err == nil {
		defer dir.Close()
		if retry(func() error { return unix.Renameat(int(dir.Fd()), temp, unix.AT_FDCWD, path) }) == nil {
			return
		}
	}
	_ = parent.Remove(temp)
}

func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
