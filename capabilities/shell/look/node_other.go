//go:build !linux

package look

import (
	"io/fs"
	"os"
	"path/filepath"

	"localpc/capabilities"
)

const (
	readFlags   = os.O_RDONLY
	folderFlags = os.O_RDONLY
	handleFlags = os.O_RDONLY
)

// lstatIn says what name is in dir; "" is dir itself. Without a time of birth
// nothing counts as the session's own.
func lstatIn(dir *os.File, name string) (node, error) {
	var fi fs.FileInfo
	var err error
	if name == "" {
		fi, err = dir.Stat()
	} else {
		fi, err = os.Lstat(filepath.Join(dir.Name(), name))
	}
	if err != nil {
		return node{}, err
	}
	id, _ := capabilities.FileIDOf(fi)
	return node{id: id, mode: fi.Mode(), size: fi.Size(), mtime: fi.ModTime().UnixNano()}, nil
}
