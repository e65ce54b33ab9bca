// Package kit is the look of step 4 and step 7: the theme and the small
// widgets that cards and windows are made of. One spacing unit (8), one type
// scale (12, 13, 15, 20), one accent. Everything in it belongs to Fyne's
// goroutine.
package kit

import (
	"image/color"
	"os"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// Colours by use.
const (
	Win    fyne.ThemeColorName = "lp-win"    // a window's ground
	Pane   fyne.ThemeColorName = "lp-pane"   // fields, buttons, side panes
	Line   fyne.ThemeColorName = "lp-line"   // separators, which carry nothing
	Edge   fyne.ThemeColorName = "lp-edge"   // borders of controls
	Ink    fyne.ThemeColorName = "lp-ink"    // text
	Dim    fyne.ThemeColorName = "lp-dim"    // second text
	Accent fyne.ThemeColorName = "lp-accent" // the one accent
	On     fyne.ThemeColorName = "lp-on"     // text on the accent
	OK     fyne.ThemeColorName = "lp-ok"
	Warn   fyne.ThemeColorName = "lp-warn"
	WarnBG fyne.ThemeColorName = "lp-warn-bg"
	Risk   fyne.ThemeColorName = "lp-risk"
	RiskBG fyne.ThemeColorName = "lp-risk-bg"
	Code   fyne.ThemeColorName = "lp-code" // behind exact text
	Sel    fyne.ThemeColorName = "lp-sel"  // behind a chosen row
	None   fyne.ThemeColorName = "lp-none" // nothing drawn
)

// Sizes, in Fyne's units.
const (
	Unit   float32 = 8
	Small  float32 = 12
	Body   float32 = 13
	Lead   float32 = 15
	Title  float32 = 20
	Huge   float32 = 36 // a code that is compared or typed elsewhere
	Radius float32 = 8
	Round  float32 = 10
)

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

var light = map[fyne.ThemeColorName]color.NRGBA{
	Win: rgb(0xffffff), Pane: rgb(0xf5f6f8), Line: rgb(0xe1e4e9), Edge: rgb(0x868e9c),
	Ink: rgb(0x1b1e24), Dim: rgb(0x565e6b), Accent: rgb(0x2456d6), On: rgb(0xffffff),
	OK: rgb(0x1e7f4c), Warn: rgb(0x9a5b00), WarnBG: rgb(0xfff4e0), Risk: rgb(0xb3261e),
	RiskBG: rgb(0xfdecea), Code: rgb(0xf0f2f5), Sel: rgb(0xe5eafa), None: {}, captionInk: rgb(0xffffff),
}

var dark = map[fyne.ThemeColorName]color.NRGBA{
	Win: rgb(0x1c1f26), Pane: rgb(0x23272f), Line: rgb(0x333945), Edge: rgb(0x7b8494),
	Ink: rgb(0xeceff4), Dim: rgb(0xa9b2c0), Accent: rgb(0x7ea3ff), On: rgb(0x0d1220),
	OK: rgb(0x5fcf95), Warn: rgb(0xf0b35a), WarnBG: rgb(0x33291a), Risk: rgb(0xff8a80),
	RiskBG: rgb(0x3a2020), Code: rgb(0x14171c), Sel: rgb(0x283040), None: {}, captionInk: rgb(0xffffff),
}

// Theme is Local PC's look. It follows the system's variant; Force ("light",
// "dark", or "" for the system's) overrides it.
type Theme struct{ Force string }

// ThemeEnv is the environment variable that forces a variant.
const ThemeEnv = "LOCALPC_THEME"

// NewTheme is the theme as the environment wants it.
func NewTheme() *Theme { return &Theme{Force: os.Getenv(ThemeEnv)} }

var _ fyne.Theme = (*Theme)(nil)

func (t *Theme) palette(v fyne.ThemeVariant) map[fyne.ThemeColorName]color.NRGBA {
	switch {
	case t.Force == "dark":
		return dark
	case t.Force == "light":
		return light
	case v == theme.VariantDark:
		return dark
	}
	return light
}

// Color knows our names and translates Fyne's own, for its entries, scroll
// bars and dialogs.
func (t *Theme) Color(n fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	p := t.palette(v)
	if c, ok := p[n]; ok {
		return c
	}
	switch n {
	case theme.ColorNameBackground, theme.ColorNameOverlayBackground, theme.ColorNameMenuBackground:
		return p[Win]
	case theme.ColorNameButton, theme.ColorNameInputBackground, theme.ColorNameHeaderBackground, theme.ColorNameDisabledButton:
		return p[Pane]
	case theme.ColorNameForeground:
		return p[Ink]
	case theme.ColorNamePlaceHolder, theme.ColorNameDisabled:
		return p[Dim]
	case theme.ColorNamePrimary, theme.ColorNameFocus, theme.ColorNameHyperlink:
		return p[Accent]
	case theme.ColorNameForegroundOnPrimary:
		return p[On]
	case theme.ColorNameInputBorder, theme.ColorNameScrollBar:
		return p[Edge]
	case theme.ColorNameSeparator:
		return p[Line]
	case theme.ColorNameSelection:
		return p[Sel]
	case theme.ColorNameError:
		return p[Risk]
	case theme.ColorNameSuccess:
		return p[OK]
	case theme.ColorNameWarning:
		return p[Warn]
	case theme.ColorNameShadow, theme.ColorNameScrollBarBackground:
		return color.Transparent // flat: what scrolls has borders of its own
	case theme.ColorNameHover, theme.ColorNamePressed:
		c := p[Ink]
		c.A = 0x14
		return c
	}
	if p[Win] == dark[Win] {
		v = theme.VariantDark
	} else {
		v = theme.VariantLight
	}
	return theme.DefaultTheme().Color(n, v)
}

// Font is Fyne's bundled Noto Sans and DejaVu Sans Mono.
func (t *Theme) Font(s fyne.TextStyle) fyne.Resource {
	if s.Monospace {
		return monoFont()
	}
	return theme.DefaultTheme().Font(s)
}

// Icon is Fyne's.
func (t *Theme) Icon(n fyne.ThemeIconName) fyne.Resource { return theme.DefaultTheme().Icon(n) }

// Size sets the scale and keeps Fyne's proportions elsewhere.
func (t *Theme) Size(n fyne.ThemeSizeName) float32 {
	switch n {
	case theme.SizeNamePadding:
		return Unit / 2
	case theme.SizeNameInnerPadding:
		return Unit
	case theme.SizeNameText:
		return Body
	case theme.SizeNameCaptionText:
		return Small
	case theme.SizeNameSubHeadingText:
		return Lead
	case theme.SizeNameHeadingText:
		return Title
	case theme.SizeNameInputRadius, theme.SizeNameSelectionRadius:
		return Radius
	case theme.SizeNameScrollBar:
		return 10
	case theme.SizeNameScrollBarSmall:
		return 4
	}
	return theme.DefaultTheme().Size(n)
}

// Color is n as it is drawn now.
func Color(n fyne.ThemeColorName) color.Color {
	s := fyne.CurrentApp().Settings()
	return s.Theme().Color(n, s.ThemeVariant())
}
