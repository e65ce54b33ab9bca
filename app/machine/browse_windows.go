package machine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// enterable tells whether this program may list a folder: one in dir, or where
// dir is nil one of that path. Who may change what is in it stands in access
// lists, which the change itself is held against.
func enterable(dir *os.File, name string) error {
	if dir != nil {
		name = filepath.Join(dir.Name(), name)
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err = d.Readdirnames(1); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
