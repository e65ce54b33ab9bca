package machine

import (
	"io/fs"
	"syscall"
	"time"
)

// changedAt is when a file was last changed, by the clock that no program sets.
func changedAt(fi fs.FileInfo) time.Time {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(st.Ctim.Unix())
}
