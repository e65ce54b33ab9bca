//go:build unix

package machine

import (
	"os"

	"golang.org/x/sys/unix"
)

// enterable tells whether this program may read, change and enter a folder: one
// in dir, or where dir is nil one of that path.
func enterable(dir *os.File, name string) error {
	at := unix.AT_FDCWD
	if dir != nil {
		at = int(dir.Fd())
	}
	return unix.Faccessat(at, name, unix.R_OK|unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}
