package ui

import (
	"image/color"
	"strconv"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// stripTitle is the strip's name, which nobody sees: it has no title bar.
const stripTitle = Name + " — in use"

// stripAgain is how often the strip is put above what has come over it.
const stripAgain = time.Second

// dragEvery is how often a strip that is dragged is put under the pointer.
const dragEvery = 16 * time.Millisecond

// stripWindow says who sees the screen, or has mouse and keyboard, and stops
// that. It stands at the top of the first screen, above all windows, for as long
// as the snapshot has a Control, and never takes the keyboard. It can be dragged
// elsewhere, and made small; nothing ends by that.
type stripWindow struct {
	ui      *UI
	win     fyne.Window // nil until it was needed
	on      bool
	small   bool
	moved   bool // the person has put it elsewhere
	bar     *canvas.Rectangle
	grip    *grip
	words   *kit.Flow
	key     *kit.Flow
	robot   bool // the last press was not the person's, or they could not see where it goes
	pause   *kit.Button
	stop    *kit.Button
	fold    *kit.Button
	said    string
	refresh func() // stops the next raise
	// wide and act are how wide its words and its first button are at least, so
	// that a button does not move away from the hand that reaches for it.
	wide, act float32
}

// draw brings it up to date with the snapshot.
func (s *stripWindow) draw(snap snapshot.Snapshot) {
	c := snap.Control
	switch {
	case c == nil && s.on:
		s.hide()
		return
	case c == nil:
		return
	}
	if s.win == nil {
		s.make()
	}
	s.bar.FillColor = parseColour(c.Colour)
	key, act := "", "Pause"
	if snap.Paused {
		act = "Resume"
	}
	if c.StopKey != "" {
		key = c.StopKey + " stops it"
	}
	if said := s.controlWords() + "\x00" + key + act + c.Colour; said != s.said {
		s.said = said
		s.key.Set(kit.Remote(key, kit.Plain("", kit.Dim))...)
		s.pause.SetText(act)
		s.fit()
	}
	if !s.on {
		s.show()
	}
}

// make makes the window, hidden.
func (s *stripWindow) make() {
	if d, ok := s.ui.o.App.Driver().(desktop.Driver); ok {
		s.win = d.CreateSplashWindow() // without a title bar
		s.win.SetTitle(stripTitle)
	} else {
		s.win = s.ui.o.App.NewWindow(stripTitle)
	}
	s.win.SetPadded(false)
	s.win.SetCloseIntercept(func() { s.collapse(true) })
	s.bar = canvas.NewRectangle(color.Transparent)
	s.words, s.key = kit.NewLine(480, kit.Body, 1), kit.NewLine(300, kit.Small, 1)
	send := func(i snapshot.Intent) func() { return func() { s.ui.intent(i) } }
	s.pause = kit.NewButton("Pause", kit.Normal, func() {
		kind := snapshot.Pause
		if s.ui.snap.Paused {
			kind = snapshot.Resume
		}
		if kind == snapshot.Resume && s.robot { // stopping is never held up
			return
		}
		s.ui.intent(snapshot.Intent{Kind: kind})
	}).Slim()
	s.stop = kit.NewButton("Stop", kit.Danger, send(snapshot.Intent{Kind: snapshot.StopAll, Text: snapshot.WindowActivity})).Slim()
	s.fold = kit.NewButton("–", kit.Quiet, func() { s.collapse(!s.small) }).Slim()
	row := kit.Row(12, container.New(atLeast{&s.wide}, s.words), s.key, kit.Row(8, container.New(atLeast{&s.act}, s.pause), s.stop), s.fold)
	s.grip = newGrip(s)
	body := container.NewStack(s.grip, kit.Panel(kit.None, kit.Edge, 0, kit.Pad(7, 8, 7, 20, row)).Square(), container.New(leftBar{}, s.bar))
	s.win.SetContent(container.New(bare{s}, body))
}

// bare readies the window in the one moment between its making and its showing,
// as thin does for cards.
type bare struct{ of *stripWindow }

func (b bare) MinSize(o []fyne.CanvasObject) fyne.Size {
	if s := b.of.ui.o.Screen; s != nil && !b.of.on {
		s.Bare(b.of.win)
	}
	return o[0].MinSize()
}

func (bare) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Move(fyne.Position{})
	o[0].Resize(size)
}

// atLeast gives its object a width that does not become less.
type atLeast struct{ width *float32 }

func (l atLeast) MinSize(o []fyne.CanvasObject) fyne.Size {
	if !o[0].Visible() {
		return fyne.Size{}
	}
	size := o[0].MinSize()
	return fyne.NewSize(max(size.Width, *l.width), size.Height)
}

func (atLeast) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Move(fyne.Position{})
	o[0].Resize(size)
}

// leftBar keeps its object a narrow bar at the left.
type leftBar struct{}

func (leftBar) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(8, 1) }

func (leftBar) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Move(fyne.Position{})
	o[0].Resize(fyne.NewSize(8, size.Height))
}

func (s *stripWindow) show() {
	s.moved = false
	if sc := s.ui.o.Screen; sc != nil {
		sc.ShowBare(s.win)
	} else {
		s.win.Show()
	}
	if sc := s.ui.o.Screen; sc != nil {
		sc.Guard(s.win, func(p Press) bool {
			s.robot = (!p.Mine || p.Through) && !s.ui.remote()
			return true
		})
	}
	s.on = true
	s.ui.open[s.win] = true
	s.fit()
	s.ui.count()
	s.above(3)
}

func (s *stripWindow) hide() {
	s.on = false
	s.refresh()
	s.grip.leave() // the toolkit tells of no end of a drag then
	delete(s.ui.open, s.win)
	s.win.Hide()
	kit.Unpoint(s.win.Content())
	s.ui.count()
}

// above keeps the strip above what comes over it, and at its place, also when
// the screens have changed. For the first few times it is fitted anew: the scale
// may be known only then.
func (s *stripWindow) above(fits int) {
	if sc := s.ui.o.Screen; sc != nil {
		if s.moved && !sc.OnScreen(s.win) {
			s.moved = false
		}
		if fits > 0 {
			s.fit()
		} else {
			s.place(s.win.Content().MinSize(), true)
		}
		sc.Raise(s.win)
	}
	s.refresh = s.ui.o.Clock.After(stripAgain, func() { s.above(fits - 1) })
}

// collapse makes it a small pill, or whole again.
func (s *stripWindow) collapse(small bool) {
	s.small = small
	s.fit()
}

// fit gives the window the size of its words, at the top middle of the first
// screen unless the person has put it elsewhere.
func (s *stripWindow) fit() {
	s.key.Hidden = s.small || s.key.Text() == ""
	s.pause.Hidden = s.small
	word := "–"
	if s.small {
		word = "+"
	}
	s.fold.SetText(word)
	said := s.controlWords()
	s.wide, s.act = 0, 0
	if !s.small {
		for _, may := range append(controlSays(s.who()), said) {
			s.words.Set(kit.Remote(may, kit.Bold("", kit.Ink))...)
			s.wide = max(s.wide, s.words.MinSize().Width)
		}
		for _, may := range []string{"Pause", "Resume"} {
			s.act = max(s.act, kit.NewButton(may, kit.Normal, nil).Slim().MinSize().Width)
		}
	}
	s.words.Set(kit.Remote(said, kit.Bold("", kit.Ink))...)
	s.win.Content().Refresh()
	size := s.win.Content().MinSize()
	s.win.Resize(size)
	s.place(size, false)
}

// place puts it at the top middle, again where it was there before, unless the
// person has put it elsewhere.
func (s *stripWindow) place(size fyne.Size, again bool) {
	if sc := s.ui.o.Screen; sc != nil && s.on && !s.moved {
		sc.PlaceTop(s.win, size, again)
	}
}

// who is who has control, for a person.
func (s *stripWindow) who() string {
	if who := visible(s.ui.snap.Control.Who); who != "" {
		return who
	}
	return "A program"
}

// controlSays are the lines of a strip that is not small: paused, taken over,
// in use, seen.
func controlSays(who string) []string {
	return []string{"Paused; " + who + " waits", "You took over; " + who + " waits", who + " is using your mouse and keyboard", who + " sees your screen"}
}

// controlWords say who does what now.
func (s *stripWindow) controlWords() string {
	snap := s.ui.snap
	who := s.who()
	says := controlSays(who)
	switch {
	case s.small:
		return who
	case snap.Paused:
		return says[0]
	case snap.Control.Person:
		return says[1]
	case snap.Control.Acts:
		return says[2]
	}
	return says[3]
}

// parseColour reads "#rrggbb"; what is none is the accent.
func parseColour(s string) color.Color {
	if len(s) == 7 && s[0] == '#' {
		if v, err := strconv.ParseUint(s[1:], 16, 32); err == nil {
			return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
		}
	}
	return kit.Color(kit.Accent)
}

// grip is what the strip is dragged by: all of it that is no button.
type grip struct {
	widget.BaseWidget
	of     *stripWindow
	at     fyne.Position // of the pointer within the window, where the drag began
	stop   func()
	ground *canvas.Rectangle
}

func newGrip(s *stripWindow) *grip {
	g := &grip{of: s, ground: canvas.NewRectangle(kit.Color(kit.Win))}
	g.ExtendBaseWidget(g)
	return g
}

// MouseDown is Fyne's: a drag begins where the button went down.
func (g *grip) MouseDown(e *desktop.MouseEvent) { g.at = e.AbsolutePosition }

// MouseUp is Fyne's.
func (g *grip) MouseUp(*desktop.MouseEvent) {}

// Dragged is Fyne's. The window follows the pointer, which then is where it was
// within the window: the toolkit does not tell of that, so it is looked at again.
func (g *grip) Dragged(*fyne.DragEvent) {
	if g.of.ui.o.Screen != nil && g.stop == nil && g.of.on {
		g.follow()
	}
}

func (g *grip) follow() {
	g.of.moved = true
	g.of.ui.o.Screen.Drag(g.of.win, g.at)
	g.stop = g.of.ui.o.Clock.After(dragEvery, g.follow)
}

// DragEnd is Fyne's.
func (g *grip) DragEnd() {
	if g.leave() {
		g.of.ui.o.Screen.Drag(g.of.win, g.at)
	}
}

// leave ends a drag where the window is; false: there was none.
func (g *grip) leave() bool {
	if g.stop == nil {
		return false
	}
	g.stop()
	g.stop = nil
	return true
}

// CreateRenderer is Fyne's.
func (g *grip) CreateRenderer() fyne.WidgetRenderer {
	return widget.NewSimpleRenderer(g.ground)
}
