package kit

import (
	"image"
	"image/color"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// Picture shows a picture whole, within a place of a fixed size, which is there
// before the picture is. Words stand in for a picture, and a caption lies over
// its lower edge.
type Picture struct {
	widget.BaseWidget
	// OnTap, if set, hears of a click.
	OnTap func()

	room           fyne.Size
	fit            bool // no larger than the file's own pixels
	dim, on, hover bool
	has            bool
	ground, edge   *box
	img            *canvas.Image
	fade           *fyne.Animation
	words          *Flow
	band           *canvas.Rectangle
	caption        *Flow
	labels         []Label
	written        *fyne.Container // of labels
}

// captionInk is white in either theme: the band below it is dark.
const captionInk fyne.ThemeColorName = "lp-caption"

const (
	fadeFor = 220 * time.Millisecond
	dimmed  = 0.6
)

// NewPicture makes a place of w by h; words stand in it until there is a picture.
func NewPicture(w, h float32, words string) *Picture {
	p := &Picture{room: fyne.NewSize(w, h), ground: newBox(Code, Line, Radius), edge: newBox(None, None, Radius)}
	p.img = canvas.NewImageFromImage(nil)
	p.img.FillMode, p.img.CornerRadius, p.img.ScaleMode = canvas.ImageFillContain, Radius-2, canvas.ImageScaleSmooth
	p.img.Hide()
	p.words = NewLine(w-32, Small, 4, Plain(words, Dim)).Centre()
	p.band = canvas.NewRectangle(color.NRGBA{R: 0x10, G: 0x12, B: 0x16, A: 0xd0})
	p.band.BottomLeftCornerRadius, p.band.BottomRightCornerRadius = Radius-2, Radius-2
	p.band.Hide()
	p.caption = NewLine(w-24, Small, 2)
	p.written = container.NewWithoutLayout()
	p.ExtendBaseWidget(p)
	return p
}

// Whole has it no larger than the picture's own pixels are on the screen.
func (p *Picture) Whole() *Picture { p.fit = true; return p }

// Drawn is the size at which the picture is drawn.
func (p *Picture) Drawn() fyne.Size { return p.img.Size() }

// Has says whether there is a picture.
func (p *Picture) Has() bool { return p.has }

// Set fades a picture in, over the one before; nil takes it away.
func (p *Picture) Set(img image.Image) {
	first := !p.has
	p.has = img != nil
	p.img.Image = img
	if p.fade != nil {
		p.fade.Stop()
		p.fade = nil
	}
	p.img.Translucency = p.rest()
	p.Refresh()
	if first && p.has {
		p.img.Translucency = 1
		p.fade = fyne.NewAnimation(fadeFor, func(done float32) {
			p.img.Translucency = 1 - float64(done)*(1-p.rest())
			canvas.Refresh(p.img)
		})
		p.fade.Start()
	}
}

// Say puts words in place of a picture that there is not.
func (p *Picture) Say(words string) {
	if p.words.Text() != words {
		p.words.Set(Remote(words, Plain("", Dim))...)
		p.Refresh()
	}
}

// Caption lies over the picture's lower edge; "" for none.
func (p *Picture) Caption(words string) {
	if p.caption.Text() != words {
		p.caption.Set(Remote(words, Plain("", captionInk))...)
		p.Refresh()
	}
}

// Text is what is written in it.
func (p *Picture) Text() string {
	if p.has {
		return p.caption.Text()
	}
	return p.words.Text()
}

// Choose marks it as chosen, or fades it back as one that is not.
func (p *Picture) Choose(on bool) {
	p.on, p.dim = on, !on
	p.img.Translucency = p.rest()
	p.Refresh()
}

func (p *Picture) rest() float64 {
	if p.dim {
		return dimmed
	}
	return 0
}

// Tapped is Fyne's.
func (p *Picture) Tapped(*fyne.PointEvent) {
	if p.OnTap != nil {
		p.OnTap()
	}
}

// MouseIn is Fyne's.
func (p *Picture) MouseIn(*desktop.MouseEvent) { p.hover = true; p.Refresh() }

// MouseMoved is Fyne's.
func (p *Picture) MouseMoved(e *desktop.MouseEvent) {
	if !p.hover { // Unpoint came in between
		p.MouseIn(e)
	}
}

// MouseOut is Fyne's.
func (p *Picture) MouseOut() { p.hover = false; p.Refresh() }

// Cursor is Fyne's.
func (p *Picture) Cursor() desktop.Cursor {
	if p.OnTap != nil {
		return desktop.PointerCursor
	}
	return desktop.DefaultCursor
}

func (p *Picture) paint() {
	p.ground.paint()
	p.edge.edge, p.edge.StrokeWidth = Line, 1
	switch {
	case p.on:
		p.edge.edge, p.edge.StrokeWidth = Accent, 2
	case p.hover && p.OnTap != nil:
		p.edge.edge = Edge
	}
	p.edge.paint()
	p.img.Hidden, p.words.Hidden = !p.has, p.has
	p.caption.Hidden = !p.has || p.caption.Text() == ""
	p.band.Hidden = p.caption.Hidden
}

// place puts the picture into the middle, with its own proportions.
func (p *Picture) place(s fyne.Size) {
	p.ground.Resize(s)
	p.edge.Resize(s)
	in, k := fyne.NewSize(max(0, s.Width-4), max(0, s.Height-4)), float32(0)
	if p.has {
		b := p.img.Image.Bounds()
		k = min(in.Width/float32(max(1, b.Dx())), in.Height/float32(max(1, b.Dy())))
		if c := fyne.CurrentApp().Driver().CanvasForObject(p); p.fit && c != nil {
			k = min(k, 1/max(0.1, c.Scale()))
		}
		in = fyne.NewSize(float32(b.Dx())*k, float32(b.Dy())*k)
	}
	at := fyne.NewPos((s.Width-in.Width)/2, (s.Height-in.Height)/2)
	p.img.Move(at)
	p.img.Resize(in)
	p.placeLabels(at, k)
	m := p.words.MinSize()
	p.words.Resize(fyne.NewSize(s.Width-32, m.Height))
	p.words.Move(fyne.NewPos(16, max(0, mid(s.Height, m.Height))))
	h := p.caption.MinSize().Height + 8
	p.band.Resize(fyne.NewSize(max(0, s.Width-4), h))
	p.band.Move(fyne.NewPos(2, s.Height-h-2))
	p.caption.Resize(fyne.NewSize(max(0, s.Width-24), h-8))
	p.caption.Move(fyne.NewPos(12, s.Height-h+2))
}

// CreateRenderer is Fyne's.
func (p *Picture) CreateRenderer() fyne.WidgetRenderer {
	p.paint()
	return &drawn{
		of:      p,
		objects: []fyne.CanvasObject{p.ground.Rectangle, p.img, p.written, p.words, p.band, p.caption, p.edge.Rectangle},
		layout:  p.place,
		min:     func() fyne.Size { return p.room },
		refresh: func() { p.paint(); p.place(p.Size()) },
	}
}
