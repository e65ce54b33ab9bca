package ui

import (
	"fmt"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// banners are the loud lines at the top of a window: what is wrong, that
// everything was stopped, warnings, and the answer to what was just asked for.
type banners struct {
	ui    *UI
	width float32
	box   *fyne.Container
	// within is the intent whose place the window is: it offers no button
	// that leads here.
	within snapshot.IntentKind
	said   *desklink.Told
	key    string
	quiet  func() // stops the timer of said
	// changed is called when a line goes away by itself or by a click.
	changed func()
}

func newBanners(u *UI, width float32) *banners {
	return &banners{ui: u, width: width, box: kit.Column(8)}
}

// tell shows an answer for a while.
func (b *banners) tell(t desklink.Told) {
	if t.Text == "" {
		return
	}
	if b.quiet != nil {
		b.quiet()
	}
	b.said = &t
	b.quiet = b.ui.o.Clock.After(12*time.Second, func() {
		b.said = nil
		b.redraw()
	})
}

func (b *banners) redraw() {
	b.draw()
	if b.changed != nil {
		b.changed()
	}
}

// draw makes the lines again if they are others than before; the window's
// layout has to be refreshed then.
func (b *banners) draw() (changed bool) {
	s := b.ui.snap
	key := fmt.Sprint(s.Problem, s.Fix, s.FixLabel, s.Warnings, s.Stopped, b.said)
	if key == b.key {
		return false
	}
	b.key = key
	b.box.Objects = nil
	if s.Stopped != nil {
		words := kit.Column(4, kit.NewFlow(b.width-140, kit.Title, kit.Bold("Everything stopped", kit.Ink)),
			kit.NewFlow(b.width-140, kit.Body, kit.Plain(stoppedWords(*s.Stopped), kit.Dim)))
		resume := kit.NewButton("Resume", kit.Primary, func() { b.ui.intent(snapshot.Intent{Kind: snapshot.Resume}) })
		b.add(kit.ToneQuiet, words, resume)
	}
	if s.Problem != "" {
		var fix *kit.Button
		if s.Fix != "" && s.Fix != b.within {
			label := s.FixLabel
			if label == "" {
				label = "Mend it"
			}
			fix = kit.NewButton(label, kit.Primary, func() { b.ui.fix(s.Fix) })
		}
		b.add(kit.ToneWarn, kit.NewFlow(b.width-180, kit.Body, kit.Remote(s.Problem, kit.Bold("", kit.Ink))...), fix)
	}
	for _, w := range s.Warnings {
		b.add(kit.ToneWarn, kit.NewFlow(b.width-60, kit.Body, kit.Remote(w, kit.Plain("", kit.Ink))...), nil)
	}
	if b.said != nil {
		tone := kit.ToneQuiet
		if !b.said.OK {
			tone = kit.ToneRisk
		}
		hide := kit.NewButton("Dismiss", kit.Link, func() { b.said = nil; b.redraw() })
		b.add(tone, kit.NewFlow(b.width-140, kit.Body, kit.Remote(b.said.Text, kit.Plain("", kit.Ink))...), hide)
	}
	b.box.Refresh()
	return true
}

func (b *banners) add(tone kit.Tone, words fyne.CanvasObject, button *kit.Button) {
	b.box.Add(kit.Banner(tone, words, button))
}

// fix carries out what mends a problem: some of it is a window.
func (u *UI) fix(k snapshot.IntentKind) {
	if k == snapshot.Pair {
		u.show(snapshot.WindowPair)
		return
	}
	u.intent(snapshot.Intent{Kind: k})
}
