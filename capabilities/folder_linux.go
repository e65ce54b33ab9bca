package capabilities

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// FolderID reads the identity of the directory at path, which is canonical,
// with its birth where the file system keeps one (statx(2)). It goes down one
// component at a time and follows no link: a program that works in a folder
// may put one in the place of a folder below it at any moment.
func FolderID(path string) (FileID, error) {
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return FileID{}, fmt.Errorf("open /: %w", err)
	}
	defer func() { unix.Close(at) }()
	for c := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		next, err := unix.Openat(at, c, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return FileID{}, fmt.Errorf("open %s in %s: %w", c, path, err)
		}
		unix.Close(at)
		at = next
	}
	var st unix.Statx_t
	if err := unix.Statx(at, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return FileID{}, fmt.Errorf("statx %s: %w", path, err)
	}
	return StatxID(&st), nil
}

// StatxID is the identity in what statx(2) said, asked for STATX_BTIME too.
func StatxID(st *unix.Statx_t) FileID {
	id := FileID{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id
}
