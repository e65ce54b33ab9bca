package display

import (
	"context"
	"fmt"
	"image"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/shape"
	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/space"
)

const (
	frameWidth = 4
	// frameFades is how long what was taken away may still show: the windows
	// below draw themselves anew when they get to it.
	frameFades = 500 * time.Millisecond
	// frameRaises is the least time between two raises of the frame, so that it
	// does not fight with another window that wants to be on top.
	frameRaises = time.Second
)

// x11Frame is four narrow windows along the edges of each screen, which no
// click and no window manager knows of.
type x11Frame struct {
	*xconn
	mask  [3]uint32
	stop  chan struct{}
	ended chan struct{}

	mu     sync.Mutex
	drawn  []xproto.Window
	rects  []image.Rectangle
	colour string
	was    []fading
}

type fading struct {
	rect  image.Rectangle
	until time.Time
}

func newX11Frame(name string) (frame, error) {
	c, err := dialX11(name)
	if err != nil {
		return nil, err
	}
	f := &x11Frame{xconn: c, stop: make(chan struct{}), ended: make(chan struct{})}
	if _, ok := c.extension("SHAPE"); !ok {
		c.close()
		return nil, fmt.Errorf("this display has no windows that clicks go through")
	}
	for _, d := range c.screen.AllowedDepths {
		for _, v := range d.Visuals {
			if v.VisualId == c.screen.RootVisual {
				f.mask = [3]uint32{v.RedMask, v.GreenMask, v.BlueMask}
			}
		}
	}
	covered := make(chan struct{}, 1)
	c.heard = true
	go c.each(func(e xgb.Event) {
		if v, ok := e.(xproto.VisibilityNotifyEvent); ok && v.State != xproto.VisibilityUnobscured {
			select {
			case covered <- struct{}{}:
			default:
			}
		}
	})
	go f.keep(covered)
	return f, nil
}

// keep brings the frame back to the top when another window covers it.
func (f *x11Frame) keep(covered <-chan struct{}) {
	defer close(f.ended)
	for {
		select {
		case <-covered:
		case <-f.stop:
			return
		case <-f.gone:
			return
		}
		select {
		case <-time.After(frameRaises):
		case <-f.stop:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), frameRaises)
		f.do(ctx, func() error {
			if f.locked() {
				return nil
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, w := range f.drawn {
				xproto.ConfigureWindow(f.Conn, w, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
			}
			return nil
		})
		cancel()
	}
}

// locked: the topmost window covers everything and is no window manager's, as
// that of a screen lock, which is not to be drawn upon.
func (f *x11Frame) locked() bool {
	t, err := xproto.QueryTree(f.Conn, f.root).Reply()
	if err != nil {
		return true
	}
	for i := len(t.Children) - 1; i >= 0; i-- {
		a, err := xproto.GetWindowAttributes(f.Conn, t.Children[i]).Reply()
		if err != nil || a.MapState != xproto.MapStateViewable || a.Class != xproto.WindowClassInputOutput {
			continue
		}
		g, err := xproto.GetGeometry(f.Conn, xproto.Drawable(t.Children[i])).Reply()
		return err == nil && a.OverrideRedirect && g.X <= 0 && g.Y <= 0 && g.Width >= f.screen.WidthInPixels && g.Height >= f.screen.HeightInPixels
	}
	return false
}

func (f *x11Frame) show(ctx context.Context, colour string, screens []space.Screen) error {
	return f.do(ctx, func() error {
		var pixel uint32
		if colour != "" {
			var r, g, b uint8
			if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &r, &g, &b); err != nil {
				return fmt.Errorf("the colour %q: %w", colour, err)
			}
			pixel = under(r, f.mask[0]) | under(g, f.mask[1]) | under(b, f.mask[2])
		}
		var rects []image.Rectangle
		if colour != "" {
			for _, s := range screens {
				rects = append(rects, edges(s.Device)...)
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if slices.Equal(rects, f.rects) && colour == f.colour {
			return f.sync() // an error where the display is gone
		}
		before := f.drawn
		now := time.Now()
		f.was = left(f.was, now)
		for _, r := range f.rects {
			f.was = append(f.was, fading{r, now.Add(frameFades)})
		}
		// The new one first, so that there is one at every moment.
		f.drawn, f.rects, f.colour = nil, rects, colour
		for _, r := range rects {
			w, err := f.strip(r, pixel)
			if err != nil {
				f.drawn, f.colour = append(f.drawn, before...), "" // all to be drawn again
				return err
			}
			f.drawn = append(f.drawn, w)
		}
		for _, w := range before {
			xproto.DestroyWindow(f.Conn, w)
		}
		return f.sync()
	})
}

// sync waits until the server has done everything.
func (f *x11Frame) sync() error {
	_, err := xproto.GetInputFocus(f.Conn).Reply()
	return err
}

// under is the byte v in the bits of mask.
func under(v uint8, mask uint32) uint32 {
	if mask == 0 {
		return 0
	}
	zeros := bits.TrailingZeros32(mask)
	return uint32(uint64(v)*uint64(mask>>zeros)/255) << zeros
}

func edges(r image.Rectangle) []image.Rectangle {
	const w = frameWidth
	return []image.Rectangle{
		image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+w), image.Rect(r.Min.X, r.Max.Y-w, r.Max.X, r.Max.Y),
		image.Rect(r.Min.X, r.Min.Y+w, r.Min.X+w, r.Max.Y-w), image.Rect(r.Max.X-w, r.Min.Y+w, r.Max.X, r.Max.Y-w),
	}
}

func (f *x11Frame) strip(r image.Rectangle, pixel uint32) (xproto.Window, error) {
	w, err := xproto.NewWindowId(f.Conn)
	if err != nil {
		return 0, err
	}
	err = xproto.CreateWindowChecked(f.Conn, f.screen.RootDepth, w, f.root, int16(r.Min.X), int16(r.Min.Y), uint16(r.Dx()), uint16(r.Dy()), 0,
		xproto.WindowClassInputOutput, f.screen.RootVisual, xproto.CwBackPixel|xproto.CwOverrideRedirect|xproto.CwEventMask,
		[]uint32{pixel, 1, xproto.EventMaskVisibilityChange}).Check()
	if err != nil {
		return 0, err
	}
	const class = "localpc-frame\x00Localpc-frame\x00"
	xproto.ChangeProperty(f.Conn, xproto.PropModeReplace, w, xproto.AtomWmClass, xproto.AtomString, 8, uint32(len(class)), []byte(class))
	if err := shape.RectanglesChecked(f.Conn, shape.SoSet, shape.SkInput, xproto.ClipOrderingUnsorted, w, 0, 0, nil).Check(); err != nil {
		xproto.DestroyWindow(f.Conn, w)
		return 0, err
	}
	return w, xproto.MapWindowChecked(f.Conn, w).Check()
}

func (f *x11Frame) covers() []image.Rectangle {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := append([]image.Rectangle(nil), f.rects...)
	f.was = left(f.was, time.Now())
	for _, w := range f.was {
		out = append(out, w.rect)
	}
	return out
}

func left(was []fading, now time.Time) []fading {
	var out []fading
	for _, w := range was {
		if now.Before(w.until) {
			out = append(out, w)
		}
	}
	return out
}

func (f *x11Frame) close() {
	close(f.stop)
	f.xconn.close() // and with it its windows
	<-f.ended
	<-f.gone
}
