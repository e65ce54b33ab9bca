package look

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
)

// Opened without blocking, and never through a link that has taken a folder's
// place meanwhile.
const (
	readFlags   = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW
	folderFlags = readFlags | unix.O_DIRECTORY
	handleFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW
)

// lstatIn says what name is in dir; "" is dir itself.
func lstatIn(dir *os.File, name string) (node, error) {
	var st unix.Statx_t
	for {
		err := unix.Statx(int(dir.Fd()), name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return node{}, &fs.PathError{Op: "statx", Path: name, Err: err}
		}
	}
	n := node{
		id:    capabilities.StatxID(&st),
		size:  int64(st.Size),
		mtime: st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec),
		mode:  fs.FileMode(st.Mode & 0o777),
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
	default:
		n.mode |= fs.ModeDevice
	}
	return n, nil
}
