package ui

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// page is what the windows of settled things share: the way to the other
// windows and the banners above one column that scrolls.
type page struct {
	ui      *UI
	win     fyne.Window
	keys    *kit.Keys
	nav     *nav
	banners *banners
	loud    *fyne.Container // the banners
	body    *fyne.Container
	scroll  *container.Scroll
	root    *fyne.Container
	stop    func() // stops its clock
}

const pagePad = 24

// newPage makes a window of at most width, which escape leaves.
func newPage(u *UI, name, title string, width, height float32, escape func()) *page {
	p := &page{ui: u}
	p.keys = &kit.Keys{Key: func(e *fyne.KeyEvent) {
		switch e.Name {
		case fyne.KeyEscape:
			escape()
		case fyne.KeyPageDown, fyne.KeyPageUp:
			step := p.scroll.Size().Height - 48
			if e.Name == fyne.KeyPageUp {
				step = -step
			}
			limit := max(0, p.scroll.Content.MinSize().Height-p.scroll.Size().Height)
			p.scroll.ScrollToOffset(fyne.NewPos(0, min(max(0, p.scroll.Offset.Y+step), limit)))
		}
	}}
	p.win = u.window(title, fyne.NewSize(width, height))
	p.nav, p.banners = newNav(u, name, pagePad, p.keys), newBanners(u, width-2*pagePad)
	p.banners.keys = p.keys
	p.banners.changed = func() { p.refresh() }
	p.loud = p.banners.loud(p.win, 12, pagePad, 0)
	p.body = kit.Column(0)
	p.scroll = container.NewVScroll(kit.Pad(16, pagePad, pagePad, pagePad, kit.AtMost(width, p.body)))
	p.root = kit.Frame(kit.Column(0, p.nav.root, p.loud), p.scroll, nil)
	p.win.SetContent(kit.AtLeast(fyne.NewSize(480, 320), p.root))
	p.win.Canvas().SetOnTypedKey(func(e *fyne.KeyEvent) { p.keys.Key(e) })
	return p
}

func (p *page) window() fyne.Window { return p.win }

// top draws what is above the column.
func (p *page) top() (changed bool) {
	p.nav.draw(p.ui.snap)
	changed = p.banners.draw()
	p.loud.Hidden = len(p.banners.box.Objects) == 0
	return changed
}

// refresh lays everything out again.
func (p *page) refresh() {
	p.loud.Hidden = len(p.banners.box.Objects) == 0
	p.body.Refresh()
	p.scroll.Refresh()
	p.root.Refresh()
}

// rest stops the clocks: the window has been hidden.
func (p *page) rest() {
	p.banners.rest()
	p.clock(0, nil)
}

// clock calls f once after d, and not what was set before; nil stops it.
func (p *page) clock(d time.Duration, f func()) {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	if f != nil {
		p.stop = p.ui.o.Clock.After(d, func() {
			p.stop = nil
			f()
		})
	}
}

func (p *page) tell(t desklink.Told) {
	if t.OK && seen[t.Intent] {
		return
	}
	p.banners.tell(t)
	p.banners.redraw()
}

// attend gives the keyboard to a control that has just been made, and brings it
// in sight once it has its place: that is known when it has been drawn.
func (p *page) attend(to fyne.Focusable) {
	p.win.Canvas().Focus(to)
	p.ui.o.Clock.After(drawn, func() {
		if o, ok := to.(fyne.CanvasObject); ok && p.win.Canvas().Focused() == to {
			kit.Reveal(o)
		}
	})
}

// drawn is how long a window takes to be drawn, amply.
const drawn = 80 * time.Millisecond

// visit opens a page in the browser.
func (p *page) visit(address string) {
	if p.ui.visit(address) != nil {
		p.tell(desklink.Told{Text: "The browser could not be opened. Go there yourself: " + address})
	}
}

func (p *page) button(text string, kind kit.Kind, tap func()) *kit.Button {
	return kit.NewButton(text, kind, tap).WithKeys(p.keys)
}

// link is a word that does something, flush with the text around it.
func (p *page) link(text string, tap func()) (*kit.Button, fyne.CanvasObject) {
	b := p.button(text, kit.Link, tap)
	return b, kit.Pad(0, 0, 0, -2, kit.Row(0, b, kit.Space()))
}

// heading begins a part of the column, with a line that explains it and
// perhaps a button at its end.
func (p *page) heading(title, line string, button fyne.CanvasObject) fyne.CanvasObject {
	words := kit.Column(2, kit.NewFlow(400, kit.Lead, kit.Bold(title, kit.Ink)))
	if line != "" {
		words.Add(kit.NewFlow(500, kit.Body, kit.Plain(line, kit.Dim)))
	}
	if button == nil {
		return words
	}
	return kit.Row(16, kit.Grow(words), button)
}

// sure is a question in place: yes does it, no takes the question back. It has
// the keyboard on no.
func (p *page) sure(words []kit.Span, yes string, do func(), no string, back func()) (box fyne.CanvasObject, first *kit.Button) {
	really, stay := p.button(yes, kit.Danger, do), p.button(no, kit.Normal, back)
	col := kit.Column(12, kit.NewFlow(400, kit.Body, words...), kit.Row(8, kit.Space(), really, stay))
	return kit.Panel(kit.WarnBG, kit.None, 12, col), stay
}

// send asks for something whose answer belongs to this window.
func (p *page) send(w shown, i snapshot.Intent) { p.ui.ask(w, i) }

// chooser is a choice of one out of a few that takes effect by itself, a
// moment after it was made: arrow keys go over what is between.
type chooser struct {
	*kit.Segments
	ui       *UI
	values   []string
	now      string // what holds
	want     string // what was asked for; "" when it has been answered
	answered bool
	stop     func()
	send     func(value string)
}

// choosePause is how long a choice rests before it is sent.
const choosePause = 400 * time.Millisecond

func newChooser(u *UI, keys *kit.Keys, words, values []string, send func(string)) *chooser {
	c := &chooser{ui: u, values: values, send: send}
	c.Segments = kit.NewSegments(words, keys, c.choose)
	return c
}

func (c *chooser) choose(i int) {
	if c.stop != nil {
		c.stop()
	}
	c.want, c.answered = c.values[i], false
	c.stop = c.ui.o.Clock.After(choosePause, func() {
		c.stop = nil
		if c.want == c.now {
			c.want = ""
			return
		}
		c.send(c.want)
	})
}

// set takes what holds; the person's choice stands until it was answered.
func (c *chooser) set(value string) {
	c.now = value
	if c.answered || c.want == value && c.stop == nil {
		c.want, c.answered = "", false
	}
	if c.want == "" {
		c.show()
	}
}

// told takes the answer.
func (c *chooser) told(ok bool) {
	switch {
	case c.want == "" || c.stop != nil:
	case ok:
		c.answered = true // the next snapshot has it
	default:
		c.back()
	}
}

// back takes the choice back.
func (c *chooser) back() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	c.want, c.answered = "", false
	c.show()
}

func (c *chooser) show() {
	for i, v := range c.values {
		if v == c.now && i != c.Selected() {
			c.Select(i)
		}
	}
}
