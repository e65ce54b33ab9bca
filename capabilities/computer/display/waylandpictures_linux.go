package display

import (
	"context"
	"errors"
	"image"
	"sync"
	"time"

	"golang.org/x/image/draw"

	"localpc/capabilities/computer/display/portal"
	"localpc/capabilities/computer/display/wl"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// waylandPictures takes pictures by the first of its sources that gives one.
type waylandPictures struct {
	*wayland
	sources []source
	start   sync.Once
	done    chan struct{} // closed by close
	gone    chan struct{} // closed when the watch has ended
}

// source draws what the screens show of area into m. Its error is
// portal.ErrMissing or wl.ErrMissing where another source is to be tried.
type source struct {
	name string
	draw func(ctx context.Context, m *image.RGBA, l space.Layout, c *wl.Conn, outs []wl.Output, pointer bool) error
}

// sources are the ways to a picture, the quickest first; without any the error
// says what to do.
func (w *wayland) sources(direct bool) ([]source, error) {
	var out []source
	if direct && w.conn.Offers(wl.Screencopy) {
		out = append(out, source{"screencopy", w.fromCompositor})
	}
	if w.portal != nil && w.portal.Version(portal.ScreenCast) > 0 && portal.Frames() == nil {
		out = append(out, source{"screencast", w.fromCast})
	}
	if w.portal != nil && w.portal.Version(portal.Screenshot) > 0 {
		out = append(out, source{"screenshot", w.fromPortal})
	}
	if len(out) == 0 {
		return nil, w.said(portal.ErrMissing, wire.CodeNotSupported, "pictures of the screen")
	}
	return out, nil
}

func (p *waylandPictures) layout(ctx context.Context) (space.Layout, error) {
	_, outs, err := p.outputs(ctx)
	if err != nil {
		return space.Layout{}, err
	}
	return plane(outs), nil
}

func (p *waylandPictures) grab(ctx context.Context, area image.Rectangle, pointer bool) (*raster, error) {
	c, outs, err := p.outputs(ctx)
	if err != nil {
		return nil, err
	}
	m := image.NewRGBA(area)
	for _, s := range p.sources {
		if err = s.draw(ctx, m, plane(outs), c, outs, pointer); err == nil {
			return &raster{pix: m.Pix, stride: m.Stride, rect: area, rgb: true}, nil
		}
		if ctx.Err() != nil || errors.Is(err, portal.ErrDeclined) {
			break // asking again in another way would not be taking no for an answer
		}
		p.log.Info("No picture this way", "source", s.name, "err", err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if said := p.said(err, wire.CodeBlank, "pictures of the screen"); wire.CodeOf(said) != "" {
		return nil, said
	}
	return nil, wire.Wrap(err, wire.CodeBlank, "%s gave no picture of the screen. Unlock it if it is locked; else log in again, or log in with an X11 session.", p.desktop())
}

// place draws img, which shows the device pixels to, into m.
func place(m *image.RGBA, to image.Rectangle, img image.Image) {
	if img.Bounds().Size() == to.Size() {
		draw.Draw(m, to, img, img.Bounds().Min, draw.Src)
		return
	}
	draw.ApproxBiLinear.Scale(m, to, img, img.Bounds(), draw.Src, nil)
}

func (w *wayland) fromCompositor(ctx context.Context, m *image.RGBA, l space.Layout, c *wl.Conn, outs []wl.Output, pointer bool) error {
	for i, o := range outs {
		to := l.Screens[i].Device
		if to.Intersect(m.Rect).Empty() {
			continue
		}
		img, err := c.Picture(ctx, o, pointer)
		if err != nil {
			return err
		}
		place(m, to, img)
	}
	return nil
}

// fromCast takes frames of the screens that the desktop shares. A screen that
// the person did not share stays black.
func (w *wayland) fromCast(ctx context.Context, m *image.RGBA, l space.Layout, _ *wl.Conn, _ []wl.Output, _ bool) error {
	s, err := w.share(ctx, false)
	if err != nil {
		return err
	}
	if len(s.Streams) == 0 {
		return portal.ErrMissing
	}
	for i, screen := range l.Screens {
		if screen.Device.Intersect(m.Rect).Empty() {
			continue
		}
		stream, ok := streamOf(s.Streams, screen, i)
		if !ok {
			continue
		}
		img, err := s.Frame(ctx, stream)
		if err != nil {
			return err
		}
		place(m, screen.Device, img)
	}
	return nil
}

// streamOf is the stream that shows a screen: by its place, or, where the
// desktop does not tell that, by its number.
func streamOf(streams []portal.Stream, screen space.Screen, n int) (portal.Stream, bool) {
	for _, s := range streams {
		if s.Placed && s.Position == screen.Points.Min {
			return s, true
		}
	}
	if n < len(streams) && !streams[n].Placed {
		return streams[n], true
	}
	return portal.Stream{}, false
}

// fromPortal has the desktop take one picture of everything.
func (w *wayland) fromPortal(ctx context.Context, m *image.RGBA, l space.Layout, _ *wl.Conn, _ []wl.Output, _ bool) error {
	if w.portal == nil {
		return w.portalErr
	}
	img, err := w.portal.Picture(ctx)
	if err != nil {
		return err
	}
	place(m, l.Bounds(), img)
	return nil
}

func (p *waylandPictures) blank(context.Context) string {
	return "Everything on this screen is black: it may be locked or switched off. Unlock it and try again. If it stays so, " + p.desktop() +
		" shows other programs nothing: log in with an X11 session."
}

// watchEvery is how often the screens are looked at; the compositor tells
// nobody who does not ask.
const watchEvery = 2 * time.Second

// changed watches the screens until close.
func (p *waylandPictures) changed(fn func()) {
	p.start.Do(func() { go p.watch(fn) })
}

func (p *waylandPictures) watch(fn func()) {
	defer close(p.gone)
	fn() // it notes what the screens are now
	last := ""
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), watchEvery)
		l, err := p.layout(ctx)
		cancel()
		if err == nil && l.Fingerprint() != last {
			last = l.Fingerprint()
			fn()
		}
	}
}

func (p *waylandPictures) close() {
	close(p.done)
	p.wayland.close()
	watched := true
	p.start.Do(func() { watched = false })
	if watched {
		<-p.gone
	}
}
