//go:build !linux

package capabilities

import (
	"fmt"
	"os"
)

// FolderID reads the identity of the directory at path, which is canonical.
func FolderID(path string) (FileID, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return FileID{}, err
	}
	id, ok := FileIDOf(fi)
	if !ok {
		return FileID{}, fmt.Errorf("this system gives %s no identity", path)
	}
	return id, nil
}
