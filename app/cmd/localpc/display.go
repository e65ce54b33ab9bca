package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"localpc/app/machine"
	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire/autogpt"
)

// displayWithin is how long the display has to say what works there: a platform
// waits for HELLO meanwhile.
const displayWithin = 5 * time.Second

// displayOf is what AutoGPT's platform is told of the display. What works there
// is looked up once: the person's consent at the platform is tied to it. Where
// the display did not answer, there is nothing to tell yet.
func displayOf(h hands.Hands, log *slog.Logger) func() machine.Display {
	var mu sync.Mutex
	var known *machine.Display
	return func() machine.Display {
		mu.Lock()
		defer mu.Unlock()
		if known != nil {
			return *known
		}
		ctx, cancel := context.WithTimeout(context.Background(), displayWithin)
		defer cancel()
		a, err := h.Abilities(ctx)
		if err != nil {
			log.Warn("What works at the display is not known", "err", err)
			return machine.Display{}
		}
		d := machine.Display{Does: autogpt.Does{Pictures: a.Pictures, Input: a.Input, Windows: a.Windows, Clipboard: a.Clipboard}}
		if l, err := h.Layout(ctx); err == nil {
			for _, s := range l.Screens {
				if s.Primary || d.Width == 0 {
					d.Width, d.Height = s.Device.Dx(), s.Device.Dy()
				}
			}
		}
		known = &d
		return d
	}
}
