package capabilities

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FolderID reads the identity of what is at path, links followed, with its
// birth where the file system keeps one (statx(2)).
func FolderID(path string) (FileID, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return FileID{}, fmt.Errorf("statx %s: %w", path, err)
	}
	id := FileID{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, nil
}
