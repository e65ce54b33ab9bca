package kit

import (
	"image/color"
	"math"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// luminance is that of WCAG 2.
func luminance(c color.NRGBA) float64 {
	lin := func(v uint8) float64 {
		f := float64(v) / 255
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(c.R) + 0.7152*lin(c.G) + 0.0722*lin(c.B)
}

func contrast(a, b color.NRGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrast(t *testing.T) {
	type pair struct{ ink, ground fyne.ThemeColorName }
	var text []pair
	for _, ground := range []fyne.ThemeColorName{Win, Pane, Code, Sel} {
		for _, ink := range []fyne.ThemeColorName{Ink, Dim} {
			text = append(text, pair{ink, ground})
		}
	}
	for _, ink := range []fyne.ThemeColorName{Accent, OK, Warn, Risk} {
		text = append(text, pair{ink, Win})
	}
	text = append(text, pair{Risk, Code}, pair{Risk, Pane}, pair{On, Accent}, pair{Warn, WarnBG}, pair{Ink, WarnBG}, pair{Risk, RiskBG}, pair{Ink, RiskBG})
	controls := []pair{{Edge, Win}, {Edge, Pane}, {Accent, Win}, {Accent, Pane}}
	for name, p := range map[string]map[fyne.ThemeColorName]color.NRGBA{"light": light, "dark": dark} {
		for _, c := range text {
			if got := contrast(p[c.ink], p[c.ground]); got < 4.5 {
				t.Errorf("%s: text %s on %s has a contrast of %.2f", name, c.ink, c.ground, got)
			}
		}
		for _, c := range controls {
			if got := contrast(p[c.ink], p[c.ground]); got < 3 {
				t.Errorf("%s: control %s on %s has a contrast of %.2f", name, c.ink, c.ground, got)
			}
		}
	}
}

func TestForcedTheme(t *testing.T) {
	for _, c := range []struct {
		force string
		v     fyne.ThemeVariant
		want  color.NRGBA
	}{{"", theme.VariantLight, light[Win]}, {"", theme.VariantDark, dark[Win]}, {"light", theme.VariantDark, light[Win]}, {"dark", theme.VariantLight, dark[Win]}} {
		th := &Theme{Force: c.force}
		for _, n := range []fyne.ThemeColorName{Win, theme.ColorNameBackground} {
			if got := th.Color(n, c.v); got != c.want {
				t.Errorf("force %q on variant %d: %s is %v, want %v", c.force, c.v, n, got, c.want)
			}
		}
	}
}
