//go:build windows || darwin

package display

import (
	"context"
	"image"
	"sync"
	"time"

	"github.com/kbinani/screenshot"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// capture takes pictures by github.com/kbinani/screenshot. The mouse pointer is
// not in them.
type capture struct {
	screens func() (space.Layout, error)
	refused func() string // why the system shows nothing; "" where it does
	start   sync.Once
	done    chan struct{}
	gone    chan struct{}
}

func newCapture(screens func() (space.Layout, error), refused func() string) *capture {
	return &capture{screens: screens, refused: refused, done: make(chan struct{}), gone: make(chan struct{})}
}

func (c *capture) layout(context.Context) (space.Layout, error) { return c.screens() }

func (c *capture) grab(_ context.Context, area image.Rectangle, _ bool) (*raster, error) {
	if why := c.refused(); why != "" {
		return nil, wire.Errorf(wire.CodeBlank, "%s", why)
	}
	m, err := screenshot.CaptureRect(area)
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeBlank, "The system gave no picture of the screen: it may be locked, or show a question about permissions. Unlock it and try again.")
	}
	return &raster{pix: m.Pix, stride: m.Stride, rect: area, rgb: true}, nil
}

func (c *capture) blank(context.Context) string { return c.refused() }

// screensEvery is how often the screens are looked at.
const screensEvery = 2 * time.Second

func (c *capture) changed(fn func()) {
	c.start.Do(func() {
		go func() {
			defer close(c.gone)
			tick := time.NewTicker(screensEvery)
			defer tick.Stop()
			for {
				fn() // compares by itself
				select {
				case <-c.done:
					return
				case <-tick.C:
				}
			}
		}()
	})
}

func (c *capture) close() {
	close(c.done)
	watched := true
	c.start.Do(func() { watched = false })
	if watched {
		<-c.gone
	}
}
