//go:build !linux

package files

import (
	"context"

	"localpc/tunnel/wire"
)

type watcher struct{}

// newWatcher: watching is offered on Linux only so far.
func newWatcher(place, bool, *departures) (*watcher, error) {
	return nil, wire.Errorf(wire.CodeNotSupported, "This kind of computer cannot watch folders yet. List the folder again to see what has changed.")
}

func (*watcher) next(context.Context) ([]change, bool, error) { return nil, false, errGone }
func (*watcher) close()                                       {}
