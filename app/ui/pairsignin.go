package ui

import (
	"fmt"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// signInPage shows a sign-in that is under way.
type signInPage struct {
	of   *pairWindow
	left *kit.Flow
	tick func() // stops the countdown
}

// rest ends the countdown.
func (g *signInPage) rest() {
	if g.tick != nil {
		g.tick()
		g.tick = nil
	}
}

// draw builds the page of a stage; s is nil while one sign-in makes way for
// another.
func (g *signInPage) draw(s *snapshot.SigningIn) {
	p := g.of
	keys := p.keys()
	end := kit.NewButton("Cancel", kit.Normal, func() { p.cancel(nil) }).WithKeys(keys)
	if p.ending {
		end.SetText("Cancelling…")
		end.Enable(false)
	}
	g.left = kit.NewFlow(200, kit.Small)
	var first fyne.Focusable = end
	var col *fyne.Container
	switch {
	case s == nil || p.ending:
		end.Hidden = p.then != nil
		col = p.head([]kit.Span{kit.Bold("One moment", kit.Ink)}, "The sign-in is being ended.")
		if p.then != nil {
			col = p.head([]kit.Span{kit.Bold("One moment", kit.Ink)}, "Another way to sign in is being prepared.")
		}
	case s.Stage == snapshot.SignInBrowser:
		col, first = g.browser(*s, keys)
	case s.Stage == snapshot.SignInCode:
		col, first = g.code(*s, keys)
	case s.Stage == snapshot.SignInFinishing:
		col = p.head([]kit.Span{kit.Bold("Almost done", kit.Ink)}, "You have agreed. This computer fetches its sign-in and keeps it.")
	default:
		col = p.head(append([]kit.Span{kit.Bold("Signing in to ", kit.Ink)}, siteOf(*s, kit.Bold("", kit.Ink))...), "Asking how to sign in there.")
	}
	p.set(pageSignIn+word(s != nil && s.Stage == snapshot.SignInCode), col, kit.Row(8, kit.Grow(g.left), end), first)
	if s != nil && !s.Until.IsZero() && !p.ending {
		g.count(s.Until)
	}
}

// count says how much time is left, each second.
func (g *signInPage) count(until time.Time) {
	left := max(0, int(until.Sub(g.of.ui.o.Clock.Now()).Seconds()+0.999))
	g.left.Set(kit.Plain(fmt.Sprintf("%d:%02d left", left/60, left%60), kit.Dim))
	if left > 0 {
		g.tick = g.of.ui.o.Clock.After(time.Second, func() { g.count(until) })
	}
}

// siteOf is whose page the person is sent to.
func siteOf(s snapshot.SigningIn, style kit.Span) []kit.Span {
	at := host(s.Hub)
	if s.URL != "" {
		at = host(s.URL)
	}
	if s.Kind == "autogpt" && (at == "" || at == "autogpt") {
		at = "AutoGPT"
	}
	return kit.Remote(at, style)
}

// browser is the page beside which the hub's stands in the browser.
func (g *signInPage) browser(s snapshot.SigningIn, keys *kit.Keys) (*fyne.Container, fyne.Focusable) {
	p := g.of
	col := p.head([]kit.Span{kit.Bold("Go on in your browser", kit.Ink)}, "")
	words := append([]kit.Span{kit.Plain("Your browser shows a page of ", kit.Ink)}, siteOf(s, kit.Bold("", kit.Ink))...)
	if s.Match != "" {
		words = append(words, kit.Plain(". Check that it shows ", kit.Ink), kit.Bold(s.Match, kit.Ink), kit.Plain(", and agree there.", kit.Ink))
		col.Add(kit.Pad(8, 0, 16, 0, kit.NewFlow(pairWidth, kit.Body, words...)))
		col.Add(large(s.Match))
		col.Add(kit.Pad(8, 0, 0, 0, kit.NewFlow(pairWidth, kit.Small, kit.Plain("If it shows another number, it is not about this computer: do not agree there, and cancel here.", kit.Dim))))
	} else {
		words = append(words, kit.Plain(". Sign in there, and agree that this computer may be used.", kit.Ink))
		col.Add(kit.Pad(8, 0, 0, 0, kit.NewFlow(pairWidth, kit.Body, words...)))
	}
	note := kit.NewFlow(80, kit.Small)
	open := kit.NewButton("Open the page again", kit.Normal, func() { p.visit(s.URL) }).WithKeys(keys)
	col.Add(kit.Pad(16, 0, 0, 0, kit.Row(8, open, p.copier("Copy the address", kit.Normal, s.URL, note, keys), note)))
	if s.Kind == "own" {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Row(0, g.other("Use a code instead", s, "code", keys), kit.Space())))
	}
	return col, open
}

// code is for a browser on another device.
func (g *signInPage) code(s snapshot.SigningIn, keys *kit.Keys) (*fyne.Container, fyne.Focusable) {
	p := g.of
	col := p.head([]kit.Span{kit.Bold("Sign in on another device", kit.Ink)}, "A phone will do, or another computer.")
	step := func(n, words string, spans []kit.Span, size float32, text, label string) *kit.Button {
		note := kit.NewFlow(80, kit.Small)
		b := p.copier(label, kit.Normal, text, note, keys)
		col.Add(kit.Pad(16, 0, 6, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain(n+" ", kit.Dim), kit.Plain(words, kit.Ink))))
		col.Add(kit.Panel(kit.Code, kit.Line, 12, kit.NewFlow(pairWidth-24, size, spans...)))
		col.Add(kit.Pad(8, 0, 0, 0, kit.Row(8, b, note)))
		return b
	}
	first := step("1", "Open this page", kit.Remote(s.URL, kit.Bold("", kit.Ink)), kit.Lead, s.URL, "Copy the address")
	step("2", "Type this code there", kit.Remote(s.UserCode, kit.Span{Ink: kit.Ink, Mono: true}), kit.Huge, s.UserCode, "Copy the code")
	col.Add(kit.Pad(16, 0, 0, 0, kit.NewFlow(pairWidth, kit.Small, kit.Plain("The page then names this computer. Agree only if it is this one.", kit.Dim))))
	if s.Kind == "own" {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Row(0, g.other("Use the browser here instead", s, "", keys), kit.Space())))
	}
	return col, first
}

// other goes over to another way to sign in at the same hub.
func (g *signInPage) other(label string, s snapshot.SigningIn, way string, keys *kit.Keys) *kit.Button {
	return kit.NewButton(label, kit.Link, func() {
		g.of.cancel(&snapshot.Intent{Kind: snapshot.Pair, Text: s.Hub, Way: way})
	}).WithKeys(keys)
}

// large is a number that is compared with another screen's.
func large(text string) fyne.CanvasObject {
	return kit.Panel(kit.Code, kit.Line, 12, kit.NewFlow(pairWidth-24, kit.Huge, kit.Remote(text, kit.Span{Ink: kit.Ink, Mono: true})...).Centre())
}
