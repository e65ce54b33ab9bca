package ui

import (
	"fmt"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

const (
	mainSize  = 400
	mainWidth = mainSize - 2*cardPad
)

// mainWindow stands in for the tray where there is none.
type mainWindow struct {
	ui      *UI
	win     fyne.Window
	banners *banners
	key     string
	leaving bool // the person closed it: quit, or keep it?
}

func newMainWindow(u *UI) *mainWindow {
	m := &mainWindow{ui: u, win: u.window(Name, fyne.NewSize(mainSize, 300)), banners: newBanners(u, mainWidth)}
	m.banners.sessions = true
	m.banners.changed = func() { m.key = ""; m.draw() }
	// Hidden, nothing would bring it back: there is no tray.
	m.win.SetCloseIntercept(func() {
		m.leaving = true
		m.draw()
	})
	return m
}

func (m *mainWindow) window() fyne.Window { return m.win }

func (m *mainWindow) rest() { m.banners.rest() }

func (m *mainWindow) told(t desklink.Told) {
	m.banners.tell(t)
	m.draw()
}

func (m *mainWindow) draw() {
	s := m.ui.snap
	key := fmt.Sprint(s.State, s.Line, s.Machine, s.Waiting, pairLabel(s), s.Hub, s.Paused, s.Stopped != nil, m.leaving)
	changed := m.banners.draw()
	if key == m.key && !changed {
		return
	}
	m.key = key
	send := func(k snapshot.IntentKind) func() { return func() { m.ui.intent(snapshot.Intent{Kind: k}) } }
	keys := &kit.Keys{Key: func(e *fyne.KeyEvent) {
		if e.Name == fyne.KeyEscape && m.leaving {
			m.leaving = false
			m.draw()
		}
	}}
	button := func(text string, kind kit.Kind, tap func()) *kit.Button {
		return kit.NewButton(text, kind, tap).WithKeys(keys)
	}

	col := kit.Column(16)
	if len(m.banners.box.Objects) > 0 {
		col.Add(m.banners.box)
	}
	col.Add(stateLine(s, mainWidth))
	if s.Hub.Paired && farName(s.Hub) != "" {
		col.Add(kit.NewLine(mainWidth, kit.Small, 3, pairedWith(s.Hub, kit.Plain("", kit.Dim))...))
	}
	var first *kit.Button
	if s.Waiting > 0 {
		first = button(itoa(s.Waiting)+" waiting: show", kit.Primary, send(snapshot.ShowCard))
		col.Add(first)
	}
	if m.leaving {
		stay := button("Keep it running", kit.Normal, func() { m.leaving = false; m.draw() })
		words := kit.NewFlow(mainWidth, kit.Body, kit.Bold("Quit "+Name+"? ", kit.Ink), kit.Plain("Programs can't reach this computer then, and what they run here ends.", kit.Ink))
		col.Add(kit.Panel(kit.WarnBG, kit.None, 12, kit.Column(12, words, kit.Row(8, kit.Space(), button("Quit", kit.Danger, send(snapshot.Quit)), stay))))
		first = stay
	}
	door := func(word, window string) *kit.Button {
		return button(word, kit.Normal, func() { m.ui.show(window) })
	}
	pause := button("Pause", kit.Normal, send(snapshot.Pause))
	if s.Paused {
		pause = button("Resume", kit.Normal, send(snapshot.Resume))
	}
	stop := button("Stop everything", kit.Danger, send(snapshot.StopAll))
	col.Add(kit.Columns(8, door("Activity", snapshot.WindowActivity), door("Permissions", snapshot.WindowPermissions)))
	col.Add(kit.Columns(8, door("Settings", snapshot.WindowSettings), door(pairLabel(s), snapshot.WindowPair)))
	if s.Stopped == nil { // the banner has its Resume
		col.Add(kit.Columns(8, pause, stop))
	}
	if s.Hub.Paired {
		col.Add(kit.Columns(8, button("Unpair", kit.Normal, send(snapshot.Unpair)), button("Quit", kit.Normal, func() { m.leaving = true; m.draw() })))
	} else {
		col.Add(kit.Columns(8, button("Quit", kit.Normal, func() { m.leaving = true; m.draw() })))
	}
	body := kit.Pad(cardPad, cardPad, cardPad, cardPad, col)
	m.win.SetContent(container.NewVScroll(body))
	m.win.Resize(m.ui.fit(m.win, fyne.NewSize(mainSize, body.MinSize().Height)))
	if first != nil {
		m.win.Canvas().Focus(first)
	}
}

// pairLabel is where the Pair window leads now.
func pairLabel(s snapshot.Snapshot) string {
	switch {
	case s.Connect.SignIn != nil:
		return "Show the sign-in"
	case signInAgain(s):
		return "Sign in again"
	case !s.Hub.Paired:
		return "Pair…"
	case s.Hub.Kind == "autogpt":
		return "Use in AutoGPT"
	}
	return "Connect a program"
}

// stateLine is the state by shape and words, with the machine's name.
func stateLine(s snapshot.Snapshot, w float32) fyne.CanvasObject {
	shape, tone := stateMark(s.State)
	line := s.Line
	switch {
	case s.Connect.SignIn != nil && s.Waiting == 0:
		line = "Signing in…"
	case line == "":
		line = "Not connected"
	case s.Stopped != nil: // the banner beside it says the rest
		line = "Paused"
	}
	words := kit.Column(1, kit.NewLine(w-48, kit.Lead, 2, kit.Remote(line, kit.Bold("", kit.Ink))...))
	if s.Machine != "" {
		words.Add(kit.NewLine(w-48, kit.Small, 1, kit.Remote(s.Machine, kit.Plain("", kit.Dim))...))
	}
	return kit.Row(12, kit.Width(20, kit.NewFlow(24, kit.Title, kit.Plain(shape, tone.Ink()))), kit.Grow(words))
}
