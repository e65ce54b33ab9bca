package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

const (
	pairSize  = 520
	pairWidth = pairSize - 2*cardPad
)

// pairWindow pairs this computer, then connects programs to it.
type pairWindow struct {
	ui      *UI
	win     fyne.Window
	banners *banners
	key     string // of what it was drawn from

	asked bool // Pair was clicked and nothing has come of it yet
	name  *kit.Field
}

func newPairWindow(u *UI) *pairWindow {
	p := &pairWindow{ui: u, win: u.window("Pair this computer", fyne.NewSize(pairSize, 400)), banners: newBanners(u, pairWidth)}
	p.banners.changed = func() { p.key = ""; p.draw() }
	p.win.SetCloseIntercept(p.leave)
	p.win.Canvas().SetOnTypedKey(func(e *fyne.KeyEvent) { p.keyed(e) })
	return p
}

func (p *pairWindow) keyed(e *fyne.KeyEvent) {
	if e.Name == fyne.KeyEscape {
		p.leave()
	}
}

func (p *pairWindow) keys() *kit.Keys { return &kit.Keys{Key: p.keyed} }

// opened begins anew.
func (p *pairWindow) opened() { p.asked, p.key = false, "" }

// leave hides the window; a key on it is not shown again.
func (p *pairWindow) leave() {
	if len(p.ui.snap.Connect.Lines) > 0 {
		p.ui.intent(snapshot.Intent{Kind: snapshot.ForgetKey})
	}
	p.ui.hide(p.win)
}

func (p *pairWindow) told(t desklink.Told) {
	p.asked = false
	if !t.OK {
		p.banners.tell(t)
	}
	p.draw()
}

// draw builds the page that fits the state, if it is another than the one that
// stands there.
func (p *pairWindow) draw() {
	s := p.ui.snap
	if s.Hub.Paired || s.Connect.PairError != "" {
		p.asked = false
	}
	page := "pair"
	if s.Hub.Paired {
		page = "connect"
	}
	c := s.Connect
	key := strings.Join(append([]string{page, c.Name, c.PairError, c.Practice, word(c.Practice == "running" && s.Waiting > 0), word(c.Pairing || p.asked)}, c.Lines...), "\x00")
	changed := p.banners.draw()
	if key == p.key && !changed {
		return
	}
	p.key = key
	if page == "connect" {
		p.win.SetTitle("Connect a program")
		p.connect(c)
	} else {
		p.win.SetTitle("Pair this computer")
		p.pair(c)
	}
}

func word(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func (p *pairWindow) pair(c snapshot.Connect) {
	busy := c.Pairing || p.asked
	keys := p.keys()
	option := kit.NewOptions(pairWidth, []kit.Option{{Sign: "⌂", Name: "This computer only",
		Line: "For programs that run here and use the E2B SDK"}}, 0, keys, nil)
	col := kit.Column(0, p.banners.box, p.spaced(), kit.NewFlow(pairWidth, kit.Title, kit.Bold("Who may ask for this computer?", kit.Ink)),
		kit.Pad(4, 0, 16, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain("Nothing is allowed yet. Each thing is asked for when it is needed.", kit.Dim))),
		option)
	if c.PairError != "" && !busy {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Note(pairWidth, kit.ToneRisk, kit.Remote(c.PairError, kit.Plain("", kit.Ink))...)))
	}
	later := kit.NewButton("Not now", kit.Normal, p.leave).WithKeys(keys)
	text := "Pair"
	switch {
	case busy:
		text = "Pairing…"
	case c.PairError != "":
		text = "Try again"
	}
	pair := kit.NewButton(text, kit.Primary, nil).WithKeys(keys)
	pair.Enable(!busy)
	pair.OnTap = func() {
		p.asked = true
		p.ui.intent(snapshot.Intent{Kind: snapshot.Pair})
		p.draw()
	}
	p.set(col, kit.Row(8, kit.Space(), later, pair))
	if !busy {
		p.win.Canvas().Focus(pair)
	}
}

// spaced is the gap below the banners when there are any.
func (p *pairWindow) spaced() fyne.CanvasObject {
	gap := float32(0)
	if len(p.banners.box.Objects) > 0 {
		gap = 16
	}
	return kit.Height(gap, kit.Space())
}

func (p *pairWindow) set(col *fyne.Container, buttons fyne.CanvasObject) {
	body := kit.Pad(cardPad, cardPad, 16, cardPad, col)
	foot := kit.Pad(8, cardPad, cardPad, cardPad, buttons)
	p.win.SetContent(kit.Frame(nil, container.NewVScroll(body), foot))
	before := p.win.Canvas().Size().Height
	size := p.ui.fit(p.win, fyne.NewSize(pairSize, body.MinSize().Height+foot.MinSize().Height))
	p.win.Resize(size)
	if size.Height > before+40 {
		p.win.CenterOnScreen() // or its buttons may end up below the screen
	}
}
