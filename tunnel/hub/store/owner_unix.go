//go:build unix

package store

import (
	"os"
	"syscall"
)

// likeDir gives a file the owner of the directory that it is in, where root
// made it: a hub that runs as an account of its own has to read it.
func likeDir(path, dir string) error {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return os.Lchown(path, int(s.Uid), int(s.Gid))
	}
	return nil
}
