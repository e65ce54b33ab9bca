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

// again is when a watch that could not be made anew is tried again.
const again = 5 * time.Second

// Pokes calls look after each Poke, by whichever process, until ctx ends.
// Several at once are one. The error is that of the start; afterwards the
// watch goes on, or log says why it does not. A file that somebody removed is
// made again.
func (s *Store) Pokes(ctx context.Context, log *slog.Logger, look func()) (wait func(), err error) {
	path := filepath.Join(s.dir, pokeName)
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch for changes: %w", err)
	}
	// The file and not its directory, in which the database writes.
	watch := func() error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("watch for changes: %w", err)
		}
		f.Close()
		if err := w.Add(path); err != nil {
			return fmt.Errorf("watch for changes: %w", err)
		}
		return nil
	}
	if err := watch(); err != nil {
		w.Close()
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.Close()
		var due <-chan time.Time
		lost := false // the file is perhaps not the one that is watched
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				// Its links are counted when one is taken away, too.
				lost = lost || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) || e.Has(fsnotify.Chmod)
				if due == nil {
					due = time.After(settle)
				}
			case <-due:
				due = nil
				if lost {
					if err := watch(); err != nil {
						log.Warn("Changes by other processes may be noticed late", "err", err)
						due = time.After(again)
					}
					lost = due != nil
				}
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
