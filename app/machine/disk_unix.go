//go:build linux || darwin

package machine

import "golang.org/x/sys/unix"

// freeDisk is how much a person's programs can still write where a folder is.
func freeDisk(folder string) (free, total int64, known bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, 0, false
	}
	size := int64(st.Bsize)
	return int64(st.Bavail) * size, int64(st.Blocks) * size, true
}
