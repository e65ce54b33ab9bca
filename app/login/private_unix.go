//go:build unix

package login

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// private refuses a file that is another user's, or that others can read.
func private(path string, fi fs.FileInfo) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Errorf("the passphrase in %s is not used: the file belongs to another user", path)
	}
	others := fs.FileMode(0o077)
	if st.Uid == 0 && credential(path) {
		others = 0o037
	}
	if fi.Mode().Perm()&others != 0 {
		return fmt.Errorf("the passphrase in %s is not used: others can read the file. Make it yours alone: chmod 600 %s", path, path)
	}
	return nil
}

// credential tells that a file is one that systemd passes to this service. It
// may belong to root and be opened to this user by an access list, which shows
// as a group's right to read.
func credential(path string) bool {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	return dir != "" && filepath.Dir(filepath.Clean(path)) == filepath.Clean(dir)
}
