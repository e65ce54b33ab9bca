// Package tray is step 7 in the panel: the icon, its menu and the
// notifications. It draws snapshots and sends intents, and decides nothing.
package tray

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fyne.io/systray"

	"localpc/app/snapshot"
)

// drawEvery is the least time between two drawings, so that a burst of quick
// requests does not make the icon flicker.
const drawEvery = 100 * time.Millisecond

// Options of a Tray.
type Options struct {
	// Intent is called for each click, at times from several goroutines at
	// once. It may take its time, but must return soon after Run's context has
	// ended, and must not wait for Run: Run waits for it. Required.
	Intent func(snapshot.Intent)
	// Host is called with whether anything on this desktop shows tray icons:
	// once when that is known, and again when it changes. An absence is told
	// only after it has lasted for Grace, so that a panel that restarts does
	// not count. While it is absent, a window has to stand in for the icon.
	// Calls come one after the other. Optional.
	Host func(present bool)
	// Grace is 3 s when 0.
	Grace time.Duration
	Log   *slog.Logger // nil: the default one
}

// Tray is the icon in the panel. There can be one in a process, once.
type Tray struct {
	opts Options
	wake chan struct{} // holds one: there is something to draw

	mu   sync.Mutex
	want view // what is to be drawn
	seen view // what is drawn, and so what a click means
}

// New makes a tray that shows nothing until Run.
func New(opts Options) *Tray {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Grace == 0 {
		opts.Grace = 3 * time.Second
	}
	if opts.Host == nil {
		opts.Host = func(bool) {}
	}
	first := look(snapshot.Snapshot{State: snapshot.Offline, Line: "Starting"})
	return &Tray{opts: opts, wake: make(chan struct{}, 1), want: first}
}

// Update has the tray show s. It returns at once and may be called from any
// goroutine, before Run too.
func (t *Tray) Update(s snapshot.Snapshot) {
	v := look(s)
	t.mu.Lock()
	changed := v != t.want
	t.want = v
	t.mu.Unlock()
	if !changed {
		return // nothing that the tray shows: nothing is woken
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// again has everything drawn once more.
func (t *Tray) again() {
	t.mu.Lock()
	t.seen = view{}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// redraw has one entry drawn once more.
func (t *Tray) redraw(slot int) {
	t.mu.Lock()
	t.seen.entries[slot].label = ""
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run shows the tray until ctx ends. Where there is no desktop it tells Host
// so and does nothing else: a missing or dying session bus never ends or
// blocks the program. On macOS it has to be called on the main goroutine.
func (t *Tray) Run(ctx context.Context) { t.run(ctx) }

// serve builds the menu, then draws and takes clicks until ctx ends. ready is
// called when the menu is whole.
func (t *Tray) serve(ctx context.Context, ready func()) {
	items, ok := t.build()
	ready()
	if !ok {
		return
	}
	var clicks sync.WaitGroup
	defer clicks.Wait()
	for slot, item := range items {
		clicks.Go(func() { t.clicks(ctx, slot, item) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		if !t.draw(items) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(drawEvery):
		}
	}
}

// build makes the menu: every entry that there can be, hidden or not, because
// an entry that is hidden and shown again keeps its place and an open menu
// stays open.
func (t *Tray) build() (items [slots]*systray.MenuItem, ok bool) {
	for slot := range items {
		switch slot {
		case slotPause, slotCapabilities, slotActivity, slotConnect:
			systray.AddSeparator()
		}
		switch {
		case slot < slotMeaning:
			items[slot] = systray.AddMenuItem("", "")
		case slot == slotMeaning:
			items[slot] = items[slotCapabilities].AddSubMenuItem("", "")
		default:
			items[slot] = items[slotCapabilities].AddSubMenuItemCheckbox("", "", false)
		}
	}
	return items, t.draw(items)
}

// draw shows what has changed since the last time. It is false when the
// desktop has gone: the systray package panics when its bus is closed.
func (t *Tray) draw(items [slots]*systray.MenuItem) (ok bool) {
	defer func() {
		if err := recover(); err != nil {
			t.opts.Log.Warn("The tray icon is gone", "err", err)
			ok = false
		}
	}()
	t.mu.Lock()
	want, seen := t.want, t.seen
	t.seen = want
	t.mu.Unlock()
	if want.icon != seen.icon {
		setIcon(want.icon)
	}
	if want.tip != seen.tip {
		systray.SetTooltip(want.tip)
	}
	for slot, item := range items {
		now, was := want.entries[slot], seen.entries[slot]
		if now.label != was.label {
			item.SetTitle(mnemonicFree(now.label))
		}
		if (slot == slotState || slot == slotMeaning) && seen.icon == "" {
			item.Disable() // it is text, not an entry
		}
		if now.ticked != was.ticked || now.label != was.label && slot >= slotFirst {
			tick(item, now.ticked) // with redraw, whatever the tick was before
		}
		switch {
		case now.shown && !was.shown && seen.icon != "":
			item.Show()
		case !now.shown && (was.shown || seen.icon == ""):
			item.Hide()
		}
	}
	return true
}

func tick(item *systray.MenuItem, on bool) {
	if on {
		item.Check()
	} else {
		item.Uncheck()
	}
}

// clicks sends the intent of one entry for each click on it.
func (t *Tray) clicks(ctx context.Context, slot int, item *systray.MenuItem) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-item.ClickedCh:
			if !open {
				return
			}
		}
		t.mu.Lock()
		e := t.seen.entries[slot]
		t.mu.Unlock()
		if e.shown && e.intent.Kind != "" {
			t.opts.Intent(e.intent)
		}
		if slot >= slotFirst {
			t.redraw(slot) // the panel has moved the tick by itself
		}
	}
}
