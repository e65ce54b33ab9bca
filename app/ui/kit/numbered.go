package kit

import (
	"strconv"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
)

// Indent is how far what stands behind a number is moved in.
const Indent float32 = 28

// Numbered puts a dim number to the left of o, level with its first line.
func Numbered(n int, o fyne.CanvasObject) fyne.CanvasObject {
	b := &numbered{number: NewFlow(Indent, Body, Plain(strconv.Itoa(n), Dim)), inner: o}
	b.ExtendBaseWidget(b)
	return b
}

type numbered struct {
	widget.BaseWidget
	number *Flow
	inner  fyne.CanvasObject
}

// Resize tells what is inside the width first: what wraps knows its height only
// then.
func (b *numbered) Resize(s fyne.Size) {
	b.inner.Resize(fyne.NewSize(max(0, s.Width-Indent), s.Height))
	b.BaseWidget.Resize(s)
}

// CreateRenderer is Fyne's.
func (b *numbered) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      b,
		objects: []fyne.CanvasObject{b.number, b.inner},
		layout: func(s fyne.Size) {
			b.number.Resize(fyne.NewSize(Indent, b.number.MinSize().Height))
			b.inner.Move(fyne.NewPos(Indent, 0))
			b.inner.Resize(fyne.NewSize(max(0, s.Width-Indent), s.Height))
		},
		min:     func() fyne.Size { return b.inner.MinSize().AddWidthHeight(Indent, 0) },
		refresh: func() {},
	}
}
