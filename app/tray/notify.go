package tray

import (
	"context"
	"log/slog"
	"sync"
)

// NotifierOptions of a Notifier.
type NotifierOptions struct {
	// Show is called when the person clicks the notification; it opens the
	// card and never answers it. It must not call Close. Required.
	Show func()
	Log  *slog.Logger // nil: the default one
}

// Notifier shows one notification at a time: that something waits for the
// person. Where the desktop has no such service it does nothing.
type Notifier struct {
	opts   NotifierOptions
	wake   chan struct{} // holds one: want has changed
	cancel context.CancelFunc
	done   sync.WaitGroup
	once   sync.Once // for the one complaint

	mu   sync.Mutex
	want message
}

// message is what is shown; the zero value is nothing.
type message struct{ title, body string }

// NewNotifier makes a notifier, which sleeps until the first Show. It ends
// with Close.
func NewNotifier(opts NotifierOptions) *Notifier {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &Notifier{opts: opts, wake: make(chan struct{}, 1), cancel: cancel}
	n.done.Go(func() { n.run(ctx) })
	return n
}

// Show shows a notification in the place of the one before. It returns at
// once. Both texts are plain, and shown as they are; they say who wants what
// kind of thing, never the exact command: others may look at the screen.
func (n *Notifier) Show(title, body string) { n.set(message{plain(title, 80), plain(body, 200)}) }

// Hide withdraws the notification: its card is answered or gone.
func (n *Notifier) Hide() { n.set(message{}) }

// Close withdraws the notification and ends the notifier.
func (n *Notifier) Close() {
	n.cancel()
	n.done.Wait()
}

func (n *Notifier) set(m message) {
	n.mu.Lock()
	n.want = m
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// complain says once why there are no notifications.
func (n *Notifier) complain(err error) {
	n.once.Do(func() { n.opts.Log.Info("Notifications can't be shown", "err", err) })
}
