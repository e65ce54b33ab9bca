package tray

import (
	"context"
	"sync"
	"time"

	"fyne.io/systray"
)

// name is what panels remember the icon by.
const name = "Local PC"

// run keeps a bus connection of its own beside the one of the systray package:
// that one is shared within the process and can't be made to give up.
func (t *Tray) run(ctx context.Context) {
	bus, err := connectBus(ctx)
	if err != nil {
		t.opts.Log.Info("There is no session bus, so no tray icon", "err", err)
		t.opts.Host(false)
		<-ctx.Done()
		return
	}
	defer bus.Close()
	alive, cancel := context.WithCancel(ctx) // ends with the bus too
	var parts sync.WaitGroup
	parts.Go(func() {
		defer cancel()
		t.watchHost(ctx, bus)
	})
	t.show(alive)
	parts.Wait()
	<-ctx.Done()
}

// show has systray draw until ctx ends. The bus answered a moment ago; should
// it have stopped to, start hangs, and is left behind.
func (t *Tray) show(ctx context.Context) {
	systray.SetTitle(name)
	t.mu.Lock()
	setIcon(t.want.icon)
	t.mu.Unlock()
	ready, built := make(chan struct{}), make(chan struct{})
	start, end := systray.RunWithExternalLoop(func() {
		close(ready)
		select {
		case <-built:
		case <-ctx.Done():
		}
	}, nil)
	started := make(chan struct{})
	go func() {
		defer close(started)
		start()
		// What was set while systray was connecting may have been lost: it
		// reads the icon before it takes new ones.
		t.again()
	}()
	select {
	case <-ready:
		t.serve(ctx, func() { close(built) })
	case <-ctx.Done():
	}
	<-ctx.Done()
	select {
	case <-started:
	case <-time.After(busLimit):
		return
	}
	defer func() { _ = recover() }() // end has no connection to close when start got none
	end()
}
