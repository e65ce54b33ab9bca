// Package all is the one list of what a build offers: every executor that
// steps 3 and 5 can reach.
package all

import (
	"context"
	"log/slog"
	"net"

	"localpc/capabilities"
	"localpc/capabilities/computer"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/files"
	"localpc/capabilities/network"
	"localpc/capabilities/shell"
)

// Options are what the executors need of the program around them.
type Options struct {
	// Spawn is the path of localpc-spawn.
	Spawn string
	// Journal is a directory for what must be rolled back at the next start.
	Journal string
	// Keep holds what requests replace and delete; nil: nothing is kept.
	Keep capabilities.Keep
	// Connect takes a contained command's connection through the seven steps;
	// nil: commands have no network.
	Connect capabilities.Connector
	// Proxy is this computer's own proxy; see network.Options.
	Proxy func(host string, port int) (name string, dial func(ctx context.Context) (net.Conn, error))
	// Hands touches the display; nil where there is none. Whoever made it closes
	// it, after the executors.
	Hands hands.Hands
	Log   *slog.Logger
}

// New makes every executor. Each must be closed. What a write of an earlier
// run left half done is rolled back first.
func New(o Options) ([]capabilities.Capability, *shell.Shell, error) {
	restored, err := files.Recover(o.Journal, o.Log)
	if err != nil {
		return nil, nil, err
	}
	if len(restored) > 0 {
		o.Log.Warn("Writes that were cut off were rolled back", "count", len(restored))
	}
	sh, err := shell.New(shell.Options{Spawn: o.Spawn, Connect: o.Connect, Keep: o.Keep, Log: o.Log})
	if err != nil {
		return nil, nil, err
	}
	list := []capabilities.Capability{files.New(files.Options{Journal: o.Journal, Keep: o.Keep, Log: o.Log}), sh,
		network.New(network.Options{Proxy: o.Proxy, Log: o.Log})}
	if o.Hands != nil {
		list = append(list, computer.New(computer.Options{Hands: o.Hands, Log: o.Log}))
	}
	return list, sh, nil
}
