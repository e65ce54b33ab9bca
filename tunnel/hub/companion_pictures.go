package hub

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

const (
	// maxSide is the longest side of a picture that is sent on, maxPixels the
	// most that one may have, whatever screens the computer says it has: somewhat
	// more than a screen of 8K.
	maxSide   = 8000
	maxPixels = 40_000_000
	// drawnAtOnce are worked on in the whole hub: a small file can be a picture
	// that takes much memory.
	drawnAtOnce = 2
	// usualQuality is of a JPEG where none is asked for, fineQuality of one that
	// is only on its way to be made smaller.
	usualQuality, fineQuality = 75, 92
)

// taken is one picture as the computer sent it.
type taken struct {
	*msg.ScreenshotImage
	raw  []byte
	size image.Point
}

func (t *taken) area() image.Rectangle {
	at := image.Pt(t.Meta.Origin[0], t.Meta.Origin[1])
	return image.Rectangle{Min: at, Max: at.Add(t.size)}
}

// take asks for one picture, and looks whether it is one, of so many pixels at
// most.
func (j *job) take(p *msg.Screenshot, pixels int) (*taken, error) {
	r, err := ask[*msg.ScreenshotImage](j, msg.TypeScreenshot, p)
	if msg.CodeOf(err) == msg.CodeTooLarge && p.Format == "png" {
		smaller := *p
		smaller.Format, smaller.Quality = "jpeg", fineQuality
		r, err = ask[*msg.ScreenshotImage](j, msg.TypeScreenshot, &smaller)
	}
	if err != nil {
		return nil, err
	}
	t := &taken{ScreenshotImage: r}
	var c image.Config
	kind := ""
	if t.raw, err = base64.StdEncoding.DecodeString(r.Image); err == nil {
		c, kind, err = image.DecodeConfig(bytes.NewReader(t.raw))
	}
	if err != nil || "image/"+kind != r.MIMEType || c.Width != r.Width || c.Height != r.Height || c.Width < 1 || c.Height < 1 || c.Width > min(pixels, maxPixels)/c.Height {
		return nil, wire.Errorf(autogpt.CodeInvalidReply, "The computer's picture could not be understood.")
	}
	t.size = image.Pt(c.Width, c.Height)
	return t, nil
}

// draw waits until a picture may be worked on; done ends it.
func (j *job) draw() (done func(), err error) {
	select {
	case j.c.h.drawing <- struct{}{}:
		return func() { <-j.c.h.drawing }, nil
	case <-j.ctx.Done():
		return nil, j.cancelled()
	}
}

func (j *job) cancelled() error {
	return wire.Wrap(context.Cause(j.ctx), wire.CodeCancelled, "The request was cancelled.")
}

func (t *taken) decode() (image.Image, error) {
	img, _, err := image.Decode(bytes.NewReader(t.raw))
	if err != nil {
		return nil, wire.Errorf(autogpt.CodeInvalidReply, "The computer's picture could not be understood.")
	}
	return img, nil
}

// shoot takes a picture and sends it on in the size that is asked for.
func (j *job) shoot(p *wire.Screenshot) error {
	var t *taken
	var l space.Layout
	var err error
	if p.WindowID != "" {
		if err := j.offered("pictures of a window", "screenshot", "screenshot.window"); err != nil {
			return err
		}
		if _, l, err = j.screens(); err != nil {
			return err
		}
		t, err = j.take(&msg.Screenshot{Quality: j.quality(p), WindowID: &p.WindowID, Format: format(p, false), IncludeCursor: p.IncludeCursor}, pixels(l.Bounds()))
	} else {
		t, l, err = j.part(p)
	}
	if err != nil {
		return err
	}
	out := &wire.ScreenshotResponse{Picture: newPicture(), Monitor: max(t.Monitor, -1), DisplayScale: t.DisplayScale}
	if out.Image, out.MIMEType, t.size, err = j.fitted(t, p); err != nil {
		return err
	}
	area := image.Rectangle{Min: image.Pt(t.Meta.Origin[0], t.Meta.Origin[1])}
	area.Max = area.Min.Add(image.Pt(t.Width, t.Height))
	out.Width, out.Height = t.size.X, t.size.Y
	out.Shows = wire.Rect{area.Min.X, area.Min.Y, area.Max.X, area.Max.Y}
	if t.LogicalSize != nil {
		out.LogicalSize = new(wire.Point(*t.LogicalSize))
	}
	j.c.shown(p.SessionID, space.View{ID: out.Picture, Layout: l.Fingerprint(), Area: area, Size: t.size})
	return j.send(wire.TypeScreenshotResponse, out)
}

func pixels(area image.Rectangle) int { return area.Dx() * area.Dy() }

func (j *job) quality(p *wire.Screenshot) int {
	if p.Quality == 0 {
		return usualQuality
	}
	return p.Quality
}

// format is what to ask the computer for: a JPEG only where it is sent on as it
// is, as one that is made again is worse.
func format(p *wire.Screenshot, changes bool) string {
	if p.Format == "png" || changes {
		return "png"
	}
	return "jpeg"
}

// part takes a picture of a part of the screens, or of all of them: of each
// screen that it touches, put together.
func (j *job) part(p *wire.Screenshot) (*taken, space.Layout, error) {
	_, l, err := j.screens()
	if err != nil {
		return nil, l, err
	}
	area, screens := l.Bounds(), l.Screens
	switch {
	case p.Picture != "":
		v, ok := j.c.view(p.SessionID, p.Picture)
		if !ok || v.Layout != l.Fingerprint() {
			return nil, l, wire.Errorf(wire.CodePictureStale, "The picture of which a part was asked for is too old, or the screens have changed since. Take a new one.")
		}
		area = v.DeviceArea(rectangle(*p.Region))
	case p.Monitor >= 0:
		screens = nil
		for _, s := range l.Screens {
			if s.Index == p.Monitor {
				screens, area = append(screens, s), s.Device
			}
		}
		if screens == nil {
			return nil, l, wire.Errorf(wire.CodeInvalid, "The computer has no monitor %d.", p.Monitor)
		}
		fallthrough
	default:
		if p.Region != nil {
			area = area.Intersect(rectangle(*p.Region))
		}
	}
	var parts []space.Screen
	for _, s := range screens {
		if s.Device.Overlaps(area) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return nil, l, wire.Errorf(wire.CodeBounds, "The region is outside of the screens.")
	}
	if pixels(area) > maxPixels {
		return nil, l, wire.Errorf(wire.CodeTooLarge, "The picture would be too large. Ask for one monitor, or for a region.")
	}
	changes := len(parts) > 1 || limit(p).Fit(area.Size()) != area.Size()
	var all []*taken
	for _, s := range parts {
		q := &msg.Screenshot{Monitor: s.Index, Quality: j.quality(p), Format: format(p, changes), IncludeCursor: p.IncludeCursor}
		words, fine := "pictures of the screen", "screenshot.capture"
		cut := area.Intersect(s.Device)
		if cut != s.Device {
			q.Region = &msg.Rect{cut.Min.X, cut.Min.Y, cut.Max.X, cut.Max.Y}
			words, fine = "pictures of a part of the screen", "screenshot.region"
		}
		if err := j.offered(words, "screenshot", fine); err != nil {
			return nil, l, err
		}
		one, err := j.take(q, pixels(cut))
		if err != nil {
			return nil, l, err
		}
		all = append(all, one)
	}
	if len(all) == 1 {
		return all[0], l, nil
	}
	done, err := j.draw()
	if err != nil {
		return nil, l, err
	}
	defer done()
	t, err := together(all, area)
	return t, l, err
}

func rectangle(r wire.Rect) image.Rectangle { return image.Rect(r[0], r[1], r[2], r[3]) }

// together puts pictures of several screens into one of area; where there is no
// screen it is black.
func together(all []*taken, area image.Rectangle) (*taken, error) {
	whole := image.NewRGBA(area)
	draw.Draw(whole, area, image.NewUniform(color.Black), image.Point{}, draw.Src)
	for _, one := range all {
		img, err := one.decode()
		if err != nil {
			return nil, err
		}
		draw.Draw(whole, one.area(), img, img.Bounds().Min, draw.Src)
	}
	var b bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := fast.Encode(&b, whole); err != nil {
		return nil, err
	}
	first := *all[0].ScreenshotImage
	first.MIMEType, first.Monitor, first.Width, first.Height = "image/png", -1, area.Dx(), area.Dy()
	first.Meta.Origin = msg.Pair{area.Min.X, area.Min.Y}
	return &taken{ScreenshotImage: &first, raw: b.Bytes(), size: area.Size()}, nil
}

func limit(p *wire.Screenshot) space.Limit {
	l := space.Limit{Edge: maxSide, Tiles: p.MaxTiles}
	if p.MaxEdge > 0 {
		l.Edge = min(l.Edge, p.MaxEdge)
	}
	return l
}

// fitted is a picture in the size, the bytes and the format that are asked for.
func (j *job) fitted(t *taken, p *wire.Screenshot) (data []byte, mime string, size image.Point, err error) {
	mime, most := "image/jpeg", p.MaxBytes
	if p.Format == "png" {
		mime = "image/png"
	}
	if most == 0 {
		most = wire.MaxFramePicture
	}
	size = limit(p).Fit(t.size)
	if size == t.size && t.MIMEType == mime && len(t.raw) <= most {
		return t.raw, mime, size, nil
	}
	done, err := j.draw()
	if err != nil {
		return nil, "", size, err
	}
	defer done()
	img, err := t.decode()
	if err != nil {
		return nil, "", size, err
	}
	quality := usualQuality
	if p.Quality > 0 {
		quality = p.Quality
	}
	for {
		if j.ctx.Err() != nil {
			return nil, "", size, j.cancelled()
		}
		made := img
		if size != t.size {
			smaller := image.NewRGBA(image.Rectangle{Max: size})
			draw.BiLinear.Scale(smaller, smaller.Bounds(), img, img.Bounds(), draw.Src, nil)
			made = smaller
		}
		var b bytes.Buffer
		if mime == "image/png" {
			err = png.Encode(&b, made)
		} else {
			err = jpeg.Encode(&b, made, &jpeg.Options{Quality: quality})
		}
		switch {
		case err != nil:
			return nil, "", size, err
		case b.Len() <= most:
			return b.Bytes(), mime, size, nil
		case p.Exact || size.X < 16 || size.Y < 16:
			return nil, "", size, wire.Errorf(wire.CodeTooLarge, "The picture has more than the %d bytes that were asked for.", most)
		case mime == "image/jpeg" && quality > 40:
			quality -= 15
		default:
			size = image.Pt(max(size.X*4/5, 1), max(size.Y*4/5, 1))
		}
	}
}
