package kit

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/test"
)

// Symbols are drawn with a font that the program brings along: a system without
// any other shows replacement characters for what is left to it.
func TestSymbolsNeedNoFontOfTheSystem(t *testing.T) {
	themed(t)
	const signs = "◆ ● ▲ ■ ✓ ◌ ○ ▸ ▾ ★ ↑ ↓"
	for name, o := range map[string]fyne.CanvasObject{
		"a paragraph": NewFlow(400, Body, Bold("Saved "+signs+" here", OK)),
		"a button":    NewButton("Read on "+signs, Link, nil),
		"an unarmed":  NewAllow(signs, nil),
		"a chip":      NewChip("◆", "Deletes files "+signs, ToneRisk),
		"a choice":    NewSegments([]string{signs, "Once"}, nil, nil),
		"a tick":      NewCheck(200, nil, nil, Plain(signs, Ink)),
		"a banner":    Banner(ToneWarn, NewFlow(200, Body, Plain(signs, Ink))),
		"a cell":      filled(NewCells(Body, 16, 0), []Span{Plain("★", Dim)}, []Span{Plain(signs, Ink)}),
	} {
		w := test.NewWindow(o)
		if c, ok := o.(*Check); ok {
			c.Tapped(nil)
		}
		n := 0
		written(w.Canvas().Content(), func(text *canvas.Text) {
			for _, r := range text.Text {
				if n++; !Drawn(r, text.TextStyle) {
					t.Errorf("%s draws %q with a font that lacks it", name, r)
				}
			}
		})
		if n == 0 {
			t.Errorf("%s draws nothing", name)
		}
		w.Close()
	}
}

func filled(c *Cells, cells ...[]Span) *Cells {
	c.Set(false, cells...)
	return c
}

// What is cut by font is the same text, and letters of the text's own font stay
// in it.
func TestDrawable(t *testing.T) {
	themed(t)
	for in, want := range map[string][]string{
		"":             {""},
		"plain, é · …": {"plain, é · …"},
		"● Done":       {"●", " Done"},
		"a ↓":          {"a ", "↓"},
		"▲▲ 世 ✓":       {"▲▲", " 世 ", "✓"},
	} {
		var got []string
		for i, s := range drawable(Plain(in, Ink)) {
			got = append(got, s.Text)
			if odd := borrowed([]rune(in + " ")[0]) == (i%2 == 1); s.Mono == odd && in != "" {
				t.Errorf("%q: piece %d has the wrong font", in, i)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q is cut into %q, want %q", in, got, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q is cut into %q, want %q", in, got, want)
			}
		}
	}
}

// A label of several fonts is as wide as its parts.
func TestLabelIsAsWideAsItIsDrawn(t *testing.T) {
	themed(t)
	for _, words := range []string{"Read on ↓", "● Copied", "Deny"} {
		l := newLabel(words, Body, Ink, true)
		m := l.MinSize()
		l.centre(fyne.Position{}, m)
		last := l.Objects[len(l.Objects)-1]
		if end := last.Position().X + last.Size().Width; end > m.Width+0.5 || end < m.Width-0.5 {
			t.Errorf("%q ends at %v of %v", words, end, m.Width)
		}
	}
}

// written visits all that is written in o.
func written(o fyne.CanvasObject, visit func(*canvas.Text)) {
	if o == nil || !o.Visible() {
		return
	}
	switch v := o.(type) {
	case *canvas.Text:
		visit(v)
	case *fyne.Container:
		for _, inner := range v.Objects {
			written(inner, visit)
		}
	case fyne.Widget:
		for _, inner := range test.WidgetRenderer(v).Objects() {
			written(inner, visit)
		}
	}
}
