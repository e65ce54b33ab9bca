package control

import (
	"errors"
	"fmt"
	"os"
)

// ErrRunning means that another copy works on the same data.
var ErrRunning = errors.New("another copy is running")

// Lock takes the lock of a data directory, or returns ErrRunning. The lock
// goes with the process, however it ends.
func Lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
