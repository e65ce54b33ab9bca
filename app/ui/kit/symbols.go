package kit

import (
	"sync"
	"unicode"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"golang.org/x/image/font/sfnt"
)

// glyphs tells what the two bundled fonts can draw: for what they lack, the
// toolkit looks for a font of the system, and there may be none.
var glyphs = sync.OnceValue(func() (g struct{ text, mono *sfnt.Font }) {
	g.text, _ = sfnt.Parse(theme.DefaultTheme().Font(fyne.TextStyle{}).Content())
	g.mono, _ = sfnt.Parse(theme.DefaultTheme().Font(fyne.TextStyle{Monospace: true}).Content())
	return g
})

func draws(f *sfnt.Font, r rune) bool {
	if f == nil {
		return false
	}
	i, err := f.GlyphIndex(nil, r)
	return err == nil && i != 0
}

// borrowed says that a character is drawn with the monospaced font: it is a
// symbol that the other one lacks.
func borrowed(r rune) bool {
	return r >= 0x80 && unicode.IsSymbol(r) && !draws(glyphs().text, r) && draws(glyphs().mono, r)
}

// drawable cuts a span where the font changes.
func drawable(s Span) []Span {
	out := []Span{s}
	from := 0
	for i, r := range s.Text {
		if last := &out[len(out)-1]; !s.Mono && borrowed(r) != last.Mono {
			if i == from {
				last.Mono = !last.Mono
				continue
			}
			next := *last
			last.Text, next.Text, next.Mono = s.Text[from:i], s.Text[i:], !last.Mono
			out, from = append(out, next), i
		}
	}
	return out
}

func drawableAll(spans []Span) (out []Span) {
	for _, s := range spans {
		out = append(out, drawable(s)...)
	}
	return out
}

// Drawn says whether a bundled font draws a character in a style, for tests.
func Drawn(r rune, style fyne.TextStyle) bool {
	if style.Monospace {
		return draws(glyphs().mono, r)
	}
	return draws(glyphs().text, r)
}
