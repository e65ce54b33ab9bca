package kit

import (
	"image"
	"strings"

	"fyne.io/fyne/v2"
)

// Label is words over a part of a picture, in pixels of its file. The parts
// that bear labels are dark, so the words are white in either theme.
type Label struct {
	Area image.Rectangle
	// Words are tried in turn: the first that has room is drawn, or none is.
	Words []string
}

// labelEdge is what stays free on each side of a label.
const labelEdge = 5

// Labels writes over parts of the picture.
func (p *Picture) Labels(labels []Label) {
	p.labels = labels
	p.Refresh()
}

// placeLabels puts the labels where the picture's pixels lie: it is drawn at at,
// k units a pixel.
func (p *Picture) placeLabels(at fyne.Position, k float32) {
	var out []fyne.CanvasObject
	for _, l := range p.labels {
		b := l.Area
		if p.img.Image == nil {
			break
		}
		b = b.Intersect(p.img.Image.Bounds())
		room := fyne.NewSize(float32(b.Dx())*k-2*labelEdge, float32(b.Dy())*k-2*labelEdge)
		for _, words := range l.Words {
			f := fitting(words, room)
			if f == nil {
				continue
			}
			h := f.MinSize().Height
			f.Resize(fyne.NewSize(room.Width, h))
			f.Move(at.Add(fyne.NewPos(float32(b.Min.X)*k+labelEdge, float32(b.Min.Y)*k+labelEdge+(room.Height-h)/2)))
			out = append(out, f)
			break
		}
	}
	p.written.Objects = out
	p.written.Refresh()
}

// fitting is words within room, nil where they do not fit on two lines without a
// broken word.
func fitting(words string, room fyne.Size) *Flow {
	if room.Width < 8 || room.Height < 8 {
		return nil
	}
	for _, word := range strings.Fields(words) {
		if NewFlow(4096, Small, Remote(word, Plain("", captionInk))...).Widest() > room.Width {
			return nil
		}
	}
	f := NewFlow(room.Width, Small, Remote(words, Plain("", captionInk))...).Centre()
	if h := f.MinSize().Height; h > room.Height || h > 2.5*f.lineHeight() {
		return nil
	}
	return f
}

// LabelTexts are the labels that are drawn.
func (p *Picture) LabelTexts() []string {
	var out []string
	for _, o := range p.written.Objects {
		out = append(out, o.(*Flow).Text())
	}
	return out
}
