package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// Cols places cells side by side in a table whose rows are as high as their
// text. widths says what the cells take of a width: 0 takes what is left, and
// Below stands below the growing cell, and Out is left out. Each cell's first line stands in the middle of line, the height of the
// row's first line.
func Cols(line float32, widths func(w float32) []float32, cells ...fyne.CanvasObject) *fyne.Container {
	return container.New(&cols{line: line, widths: widths}, cells...)
}

type cols struct {
	line   float32
	widths func(float32) []float32
	width  float32 // when it was last laid out
}

// Widths of cells that are not in the row.
const (
	Below float32 = -1
	Out   float32 = -2
)

// ColGap parts the cells of Cols.
const ColGap = 16

const belowGap = 2

// firstLine is the height of the first line of o.
func firstLine(o fyne.CanvasObject) float32 {
	switch v := o.(type) {
	case *Flow:
		return v.lineHeight()
	case *fyne.Container:
		if _, stacked := v.Layout.(column); stacked && len(v.Objects) > 0 {
			return firstLine(v.Objects[0])
		}
	}
	return o.MinSize().Height
}

// tall makes o w wide and returns how high it is then.
func tall(o fyne.CanvasObject, w float32) float32 {
	if f, ok := o.(*Flow); ok {
		f.within(w)
		return f.height
	}
	o.Resize(fyne.NewSize(w, o.MinSize().Height)) // what wraps knows its height only then
	h := o.MinSize().Height
	o.Resize(fyne.NewSize(w, h))
	return h
}

// place puts the cells where they belong and returns the height.
func (c *cols) place(objects []fyne.CanvasObject, width float32) float32 {
	widths := c.widths(width)
	left, grows := width, 0
	for i, o := range objects {
		if out := widths[i] == Out; out == o.Visible() {
			if out {
				o.Hide()
			} else {
				o.Show()
			}
		}
		switch w := widths[i]; {
		case w > 0:
			left -= w + ColGap
		case w == 0:
			grows++
			left -= ColGap
		}
	}
	left += ColGap
	x, height := float32(0), float32(0)
	main, mainX, mainW := float32(0), float32(0), width // the bottom, place and width of the growing cell
	for i, o := range objects {
		w := widths[i]
		if w < 0 {
			continue
		}
		if w == 0 {
			w = max(40, left/float32(grows))
		}
		y := max(0, mid(c.line, firstLine(o)))
		bottom := y + tall(o, w)
		o.Move(fyne.NewPos(x, y))
		if widths[i] == 0 && grows > 0 {
			main, mainX, mainW, grows = bottom, x, w, 0
		}
		height = max(height, bottom, c.line)
		x += w + ColGap
	}
	for i, o := range objects {
		if widths[i] != Below {
			continue
		}
		main += belowGap
		o.Move(fyne.NewPos(mainX, main))
		main += tall(o, mainW)
		height = max(height, main)
	}
	return height
}

func (c *cols) MinSize(objects []fyne.CanvasObject) fyne.Size {
	w := c.width
	if w == 0 {
		w = 600
	}
	return fyne.NewSize(40, c.place(objects, w))
}

func (c *cols) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	c.width = size.Width
	c.place(objects, size.Width)
}

// Aside puts label, which is w wide, to the left of o, or above it where the
// whole is narrower than narrow.
func Aside(w, narrow float32, label, o fyne.CanvasObject) *fyne.Container {
	return container.New(&aside{w: w, narrow: narrow}, label, o)
}

type aside struct{ w, narrow, width float32 }

func (a *aside) place(o []fyne.CanvasObject, width float32) float32 {
	o[0].Move(fyne.Position{})
	if width < a.narrow {
		y := tall(o[0], width) + 4
		o[1].Move(fyne.NewPos(0, y))
		return y + tall(o[1], width)
	}
	h := tall(o[1], width-a.w-ColGap)
	o[1].Move(fyne.NewPos(a.w+ColGap, 0))
	l := tall(o[0], a.w)
	o[0].Move(fyne.NewPos(0, max(0, mid(firstLine(o[1]), firstLine(o[0])))))
	return max(h, l)
}

func (a *aside) MinSize(o []fyne.CanvasObject) fyne.Size {
	w := a.width
	if w == 0 {
		w = a.narrow
	}
	return fyne.NewSize(40, a.place(o, w))
}

func (a *aside) Layout(o []fyne.CanvasObject, size fyne.Size) {
	a.width = size.Width
	a.place(o, size.Width)
}

// AtMost keeps o w wide at most, in the middle, from the top.
func AtMost(w float32, o fyne.CanvasObject) *fyne.Container { return container.New(atMost{w}, o) }

type atMost struct{ w float32 }

func (a atMost) MinSize(o []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(40, o[0].MinSize().Height)
}

func (a atMost) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := min(a.w, size.Width)
	o[0].Move(fyne.NewPos(mid(size.Width, w), 0))
	o[0].Resize(fyne.NewSize(w, size.Height))
}

// Trail puts o right behind a choice, which takes the words that there is room
// for.
func Trail(gap float32, choice *Segments, o fyne.CanvasObject) *fyne.Container {
	return container.New(trail{gap, choice}, choice, o)
}

type trail struct {
	gap    float32
	choice *Segments
}

func (t trail) MinSize(o []fyne.CanvasObject) fyne.Size {
	a, b := o[0].MinSize(), o[1].MinSize()
	return fyne.NewSize(a.Width+t.gap+b.Width, max(a.Height, b.Height))
}

func (t trail) Layout(o []fyne.CanvasObject, size fyne.Size) {
	a, b := o[0].MinSize(), o[1].MinSize()
	if !o[1].Visible() {
		b = fyne.Size{}
	}
	room := size.Width
	if b.Width > 0 {
		room -= t.gap + b.Width
	}
	w := a.Width // of the short words
	if long := t.choice.whole(t.choice.long); long <= room {
		w = long
	}
	o[0].Move(fyne.NewPos(0, mid(size.Height, a.Height)))
	o[0].Resize(fyne.NewSize(w, a.Height))
	o[1].Move(fyne.NewPos(w+t.gap, mid(size.Height, b.Height)))
	o[1].Resize(b)
}

// Capped lets o scroll where it is higher than limit says.
func Capped(limit func() float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(capped{limit, o}, container.NewVScroll(AtMost(10_000, o)))
}

type capped struct {
	limit func() float32
	inner fyne.CanvasObject
}

func (c capped) MinSize([]fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(40, min(c.inner.MinSize().Height, max(64, c.limit())))
}

func (capped) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Move(fyne.Position{})
	o[0].Resize(size)
}
