package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const lockName = "hub.lock"

// ErrRunning means that a hub runs on the data.
var ErrRunning = errors.New("a hub is running on this data")

// Lock keeps the data in dir for one hub, or for restoring it, until release.
// Commands that use the data beside a hub take no lock. The lock ends with the
// process, however that ends. ErrRunning when it is held, and stays so for the
// moment that a command may need it.
func Lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("hub data: %w", err)
	}
	l := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
	// A command that brings the data up to date has it for a moment.
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	held, err := l.TryLockContext(ctx, 30*time.Millisecond)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, ErrRunning
	case err != nil:
		return nil, fmt.Errorf("lock hub data: %w", err)
	case !held:
		return nil, ErrRunning
	}
	if err := likeDir(l.Path(), dir); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("lock hub data: %w", err)
	}
	return func() { _ = l.Close() }, nil
}
