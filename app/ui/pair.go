package ui

import (
	"fmt"
	"net/url"
	"slices"
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

// pairWindow pairs this computer, shows a sign-in that is under way, and says
// what is next.
type pairWindow struct {
	ui      *UI
	win     fyne.Window
	banners *banners
	nav     *nav
	key     string // of what it was drawn from
	page    string

	asked  bool             // Pair was clicked and nothing has come of it yet
	ending bool             // the sign-in under way was cancelled here
	hush   bool             // its end is not told as a failure
	over   bool             // localpc says that it has ended
	then   *snapshot.Intent // what is asked for then
	failed string           // what the last Pair was answered with
	sure   bool             // Unpair was clicked: really?
	client string           // the program whose page is shown; "" for the list

	choose *choosePage
	signIn *signInPage
	name   *kit.Field
	called *kit.Field // of a program that is not known here
}

func newPairWindow(u *UI) *pairWindow {
	p := &pairWindow{ui: u, win: u.window("Pair this computer", fyne.NewSize(pairSize, 400)), banners: newBanners(u, pairWidth)}
	p.banners.within = snapshot.Pair
	p.nav = newNav(u, snapshot.WindowPair, cardPad, p.keys())
	p.banners.changed = func() { p.key = ""; p.draw() }
	p.choose, p.signIn = newChoosePage(p), &signInPage{of: p}
	p.win.SetCloseIntercept(p.leave)
	p.win.Canvas().SetOnTypedKey(func(e *fyne.KeyEvent) { p.keyed(e) })
	return p
}

func (p *pairWindow) keyed(e *fyne.KeyEvent) {
	switch {
	case e.Name != fyne.KeyEscape:
	case p.client != "":
		p.showClient("")
	default:
		p.leave()
	}
}

func (p *pairWindow) keys() *kit.Keys { return &kit.Keys{Key: p.keyed} }

// opened begins anew.
func (p *pairWindow) opened() {
	p.asked, p.sure, p.client, p.key, p.page = false, false, "", "", ""
	if len(p.ui.snap.Connect.Clients) > 0 {
		p.ui.ask(p, snapshot.Intent{Kind: snapshot.LookForClients}) // one may have been installed since
	}
}

// leave hides the window; a key on it is not shown again, and a sign-in goes
// on.
func (p *pairWindow) leave() {
	if len(p.ui.snap.Connect.Lines) > 0 {
		p.ui.intent(snapshot.Intent{Kind: snapshot.ForgetKey})
	}
	p.signIn.rest()
	p.ui.hide(p.win)
}

func (p *pairWindow) told(t desklink.Told) {
	switch {
	case t.Intent == snapshot.CancelPair:
		p.over = true
	case t.Intent == snapshot.Pair && p.hush:
		p.hush = false
	case t.Intent == snapshot.Pair:
		p.asked, p.failed = false, ""
		if !t.OK {
			p.failed = t.Text
		}
	case !t.OK || t.Intent == snapshot.Unpair: // the hub may not know of that
		p.banners.tell(t)
	}
	p.draw()
}

// ask sends a Pair.
func (p *pairWindow) ask(in snapshot.Intent) {
	p.asked, p.ending, p.hush, p.failed = true, false, false, ""
	p.ui.intent(in)
	p.draw()
}

// cancel ends the sign-in under way, to ask for then, if not nil, after it.
func (p *pairWindow) cancel(then *snapshot.Intent) {
	p.ending, p.hush, p.over, p.then = true, true, false, then
	p.ui.intent(snapshot.Intent{Kind: snapshot.CancelPair})
	p.draw()
}

// problem is why the last attempt failed.
func (p *pairWindow) problem() string {
	switch {
	case p.asked || p.ui.snap.Connect.Pairing:
		return ""
	case p.failed != "":
		return p.failed
	}
	return p.ui.snap.Connect.PairError
}

// draw builds the page that fits the state, if it is another than the one that
// stands there.
func (p *pairWindow) draw() {
	s := p.ui.snap
	c := s.Connect
	if c.SignIn == nil && !c.Pairing {
		p.ending = false
		if next := p.then; next != nil && (p.over || s.Hub.Paired) {
			p.then = nil
			if !s.Hub.Paired || signInAgain(s) {
				p.ask(*next)
				return
			}
		}
	}
	if c.SignIn != nil || s.Hub.Paired && !signInAgain(s) || c.PairError != "" {
		p.asked = false
	}
	if c.SignIn != nil {
		p.failed = ""
		p.choose.remember(*c.SignIn)
	}
	p.nav.draw(s)
	page := p.fitting()
	parts := []string{page, c.Name, p.problem(), c.Practice, word(c.Practice == "running" && s.Waiting > 0), word(c.Pairing || p.asked),
		word(p.ending), word(p.sure), fmt.Sprint(s.Hub, s.State, s.Line), p.choose.state(),
		p.client, fmt.Sprint(c.Clients), fmt.Sprint(c.AnyName, c.Any)}
	if c.SignIn != nil {
		parts = append(parts, fmt.Sprintf("%q", *c.SignIn))
	}
	key := strings.Join(append(parts, c.Lines...), "\x00")
	changed := p.banners.draw()
	if key == p.key && !changed {
		return
	}
	p.key = key
	p.signIn.rest()
	switch page {
	case pageClient:
		p.win.SetTitle("Connect a program")
		p.clientPage(c)
	case pageConnect:
		p.win.SetTitle("Connect a program")
		p.connect(c)
	case pagePaired:
		p.win.SetTitle("Paired")
		p.paired(s)
	case pageSignIn:
		p.win.SetTitle("Sign in")
		p.signIn.draw(c.SignIn)
	case pageAgain:
		p.win.SetTitle("Sign in again")
		p.choose.drawAgain(s)
	default:
		p.win.SetTitle("Pair this computer")
		p.choose.draw()
	}
}

// Pages of the window.
const (
	pageChoose  = "choose"
	pageSignIn  = "sign-in"
	pageAgain   = "again"
	pageConnect = "connect"
	pageClient  = "client"
	pagePaired  = "paired"
)

func (p *pairWindow) fitting() string {
	s := p.ui.snap
	switch {
	case s.Connect.SignIn != nil || p.then != nil:
		return pageSignIn
	case !s.Hub.Paired:
		return pageChoose
	case signInAgain(s):
		return pageAgain
	case p.client != "" && len(s.Connect.Clients) > 0:
		return pageClient
	case s.Hub.Kind == "own" || s.Hub.Kind == "autogpt":
		return pagePaired
	}
	return pageConnect
}

// signInAgain says that a hub has to be signed in at anew.
func signInAgain(s snapshot.Snapshot) bool {
	return s.Hub.Paired && (s.State == snapshot.SignIn || s.Fix == snapshot.Pair)
}

func word(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// spaced is the gap below the banners when there are any.
func (p *pairWindow) spaced() fyne.CanvasObject {
	gap := float32(0)
	if len(p.banners.box.Objects) > 0 {
		gap = 16
	}
	return kit.Height(gap, kit.Space())
}

// head begins a page: banners, a title, and a line below it if not "".
func (p *pairWindow) head(title []kit.Span, line string) *fyne.Container {
	col := kit.Column(0, p.banners.box, p.spaced(), kit.NewLine(pairWidth, kit.Title, 3, title...))
	if line != "" {
		col.Add(kit.Pad(4, 0, 0, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain(line, kit.Dim))))
	}
	return col
}

// set makes the window show a page with its buttons. The keyboard stays where
// it was if that is one of kept, and goes to first otherwise.
func (p *pairWindow) set(page string, col *fyne.Container, buttons fyne.CanvasObject, first fyne.Focusable, kept ...fyne.Focusable) {
	body := kit.Pad(cardPad, cardPad, 16, cardPad, col)
	foot := kit.Pad(8, cardPad, cardPad, cardPad, buttons)
	c := p.win.Canvas()
	focused, same := c.Focused(), page == p.page
	p.page = page
	c.Unfocus() // a control that is put into another content does not notice
	p.win.SetContent(kit.Frame(p.nav.root, container.NewVScroll(body), foot))
	before := c.Size().Height
	size := p.ui.fit(p.win, fyne.NewSize(pairSize, p.nav.root.MinSize().Height+body.MinSize().Height+foot.MinSize().Height))
	p.win.Resize(size)
	if more := size.Height - before; more > 100 || more > 40 && !same {
		p.win.CenterOnScreen() // or its buttons may end up below the screen
	}
	switch {
	case same && focused != nil && slices.Contains(kept, focused):
		c.Focus(focused)
	case first != nil:
		c.Focus(first)
	}
}

// host is where an address leads, as a person reads it.
func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

func (p *pairWindow) window() fyne.Window { return p.win }

func (p *pairWindow) rest() { p.banners.rest() }

// visit opens a page in the browser. An address may come from a hub: nothing
// but the web is opened.
func (p *pairWindow) visit(address string) {
	if p.ui.visit(address) != nil {
		p.banners.tell(desklink.Told{Text: "The browser could not be opened. Copy the address, and open it yourself."})
		p.draw()
	}
}

// visit opens a page in the browser, if it is one.
func (u *UI) visit(address string) error {
	to, err := url.Parse(address)
	if err != nil {
		return err
	}
	if to.Scheme != "https" && to.Scheme != "http" || to.Host == "" {
		return fmt.Errorf("no web address")
	}
	return u.o.Open(to)
}

// copier is a button that copies text, and says so in note.
func (p *pairWindow) copier(label string, kind kit.Kind, text string, note *kit.Flow, keys *kit.Keys) *kit.Button {
	return kit.NewButton(label, kind, func() {
		p.ui.o.App.Clipboard().SetContent(text)
		note.Set(kit.Plain("● Copied", kit.OK))
	}).WithKeys(keys)
}
