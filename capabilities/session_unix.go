//go:build unix

package capabilities

import (
	"io/fs"
	"syscall"
)

// FileIDOf reads the identity from a stat, without the birth; ok is false
// where the system gives none, which counts as "not the same".
func FileIDOf(fi fs.FileInfo) (id FileID, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}, false
	}
	return FileID{Dev: uint64(st.Dev), Ino: uint64(st.Ino)}, true
}
