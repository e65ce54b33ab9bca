package store

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pokeName is the file that a command touches when it has changed something
// that a running hub must know of at once.
const pokeName = "hub.poke"

// Poke tells the hub that runs on this data, if one does, to look again. It
// costs the hub nothing until then.
func (s *Store) Poke() error {
	// Never made here: a hub that runs has made it, and another needs none.
	f, err := os.OpenFile(filepath.Join(s.dir, pokeName), os.O_WRONLY|os.O_TRUNC, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tell the hub: %w", err)
	}
	_, err = fmt.Fprintln(f, time.Now().UnixNano())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("tell the hub: %w", err)
	}
	return nil
}

// settle is how long pokes are gathered.
const settle = 20 * time.Millisecond

// Pokes calls look after each Poke, by whichever process, until ctx ends.
// Several at once are one. The error is that of the start; afterwards the
// watch goes on, or log says why it does not.
func (s *Store) Pokes(ctx context.Context, log *slog.Logger, look func()) (wait func(), err error) {
	path := filepath.Join(s.dir, pokeName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("watch for changes: %w", err)
	}
	f.Close()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch for changes: %w", err)
	}
	// The file and not its directory, in which the database writes.
	if err := w.Add(path); err != nil {
		w.Close()
		return nil, fmt.Errorf("watch for changes: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.Close()
		var due <-chan time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-w.Events:
				if !ok {
					return
				}
				if due == nil {
					due = time.After(settle)
				}
			case <-due:
				due = nil
				look()
			case err, ok := <-w.Errors:
				if !ok {
					return
				}
				log.Warn("Changes by other processes may be noticed late", "err", err)
			}
		}
	}()
	return func() { <-done }, nil
}
