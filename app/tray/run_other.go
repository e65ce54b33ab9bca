//go:build !linux

package tray

import (
	"context"
	"sync"

	"fyne.io/systray"
)

// run belongs to the system's event loop until ctx ends.
func (t *Tray) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	t.opts.Host(true)
	ready, built := make(chan struct{}), make(chan struct{})
	parts.Go(func() {
		select {
		case <-ready:
			t.serve(ctx, func() { close(built) })
		case <-ctx.Done():
		}
	})
	parts.Go(func() {
		<-ctx.Done()
		systray.Quit()
	})
	systray.Run(func() {
		close(ready)
		<-built
	}, nil)
}

// HostPresent says whether this desktop shows tray icons: it always does.
func HostPresent(context.Context) bool { return true }
