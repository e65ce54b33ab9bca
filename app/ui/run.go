package ui

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"

	"localpc/app/desklink"
	"localpc/assets"
)

// Run draws what comes down the link until it ends, or Quit. It has to be
// called on the main goroutine.
func Run(link *desklink.Child) {
	a := app.NewWithID("local.localpc.desktop")
	a.SetIcon(fyne.NewStaticResource("app.png", assets.App()))
	box := newOutbox(link)
	var u *UI
	var screen Screen
	var reader sync.WaitGroup
	var over atomic.Bool
	a.Lifecycle().SetOnStarted(func() {
		screen = newScreen()
		u = New(Options{App: a, Clock: wall{}, Screen: screen, Send: box.put, Open: a.OpenURL, Background: background})
		box.put(desklink.Up{Ready: &desklink.Ready{PID: os.Getpid()}})
		reader.Go(func() {
			receive(link, func(d desklink.Down) { fyne.Do(func() { u.Handle(d) }) })
			if !over.Load() { // the window system may be gone
				fyne.Do(a.Quit)
			}
		})
	})
	a.Run()
	over.Store(true)
	box.close()
	link.Close()
	reader.Wait()
	if c, ok := screen.(io.Closer); ok {
		c.Close()
	}
}

// receive hands every message on until the link ends.
func receive(link *desklink.Child, handle func(desklink.Down)) {
	for {
		d, err := link.Receive()
		var bad *desklink.BadLine
		switch {
		case errors.As(err, &bad):
			slog.Warn("A message from localpc was unreadable", "err", bad.Cause)
		case err != nil:
			return
		default:
			handle(d)
		}
	}
}

// outbox sends in order without ever making the windows wait.
type outbox struct {
	mu    sync.Mutex // guards queue and shut
	queue []desklink.Up
	shut  bool
	more  chan struct{}
	done  chan struct{}
}

func newOutbox(link *desklink.Child) *outbox {
	b := &outbox{more: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run(link)
	return b
}

func (b *outbox) put(m desklink.Up) {
	b.mu.Lock()
	b.queue = append(b.queue, m)
	b.mu.Unlock()
	b.wake()
}

func (b *outbox) wake() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *outbox) run(link *desklink.Child) {
	defer close(b.done)
	for range b.more {
		for {
			b.mu.Lock()
			if len(b.queue) == 0 {
				shut := b.shut
				b.mu.Unlock()
				if shut {
					return
				}
				break
			}
			m := b.queue[0]
			b.queue = b.queue[1:]
			b.mu.Unlock()
			if err := link.Send(m); err != nil {
				slog.Warn("A message to localpc was lost", "err", err)
			}
		}
	}
}

// close sends what is left, for a second at most.
func (b *outbox) close() {
	b.mu.Lock()
	b.shut = true
	b.mu.Unlock()
	b.wake()
	select {
	case <-b.done:
	case <-time.After(time.Second):
	}
}

// wall is the real clock.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func (wall) After(d time.Duration, f func()) func() {
	stopped := false // Fyne's goroutine only
	t := time.AfterFunc(d, func() {
		fyne.Do(func() {
			if !stopped {
				f()
			}
		})
	})
	return func() { stopped = true; t.Stop() }
}

func background(work func() func()) {
	go func() {
		then := work()
		fyne.Do(then)
	}()
}
