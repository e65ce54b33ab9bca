//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// ownedSafely refuses a file that others than root and the user me could have
// written.
func ownedSafely(fi fs.FileInfo, me int) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New("its owner is not known")
	case int(st.Uid) != me && st.Uid != 0:
		return errors.New("it belongs to another user; it must be yours, or root's")
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (%v); take that away with chmod go-w", fi.Mode().Perm())
	}
	return nil
}
