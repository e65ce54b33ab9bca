package ui

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// Ways to pair, in the order in which they are offered.
const (
	wayThis = iota
	wayOwn
	wayAutoGPT
)

// choosePage offers the ways to pair. Its controls live as long as the window,
// so that what was typed is kept.
type choosePage struct {
	of       *pairWindow
	options  *kit.Options
	address  *kit.Field
	advanced *advanced
	pair     *kit.Button
	later    *kit.Button
	unpair   *kit.Button
	again    bool // it asks to sign in once more at the hub of old
	seeded   bool // the address of the hub of old has been put in
}

func newChoosePage(p *pairWindow) *choosePage {
	c := &choosePage{of: p}
	keys := &kit.Keys{Key: func(e *fyne.KeyEvent) {
		if e.Name == fyne.KeyReturn || e.Name == fyne.KeyEnter {
			c.submit()
			return
		}
		p.keyed(e)
	}}
	c.options = kit.NewOptions(pairWidth, []kit.Option{
		{Icon: theme.IconNameComputer, Name: "This computer only", Line: "For programs that run on it"},
		{Icon: theme.IconNameStorage, Name: "My own hub", Line: "A server of yours, or of your company: you have its address"},
		{Icon: theme.IconNameLogin, Name: "AutoGPT", Line: "Sign in with your browser"},
	}, wayThis, keys, func(int) { p.failed = ""; p.draw() })
	c.options.OnTap = func(i int) {
		if i == wayOwn {
			p.win.Canvas().Focus(c.address)
		}
	}
	c.address = kit.NewField("https://hub.example")
	c.address.OnEscape = p.leave
	c.address.OnChanged = func(string) { c.enable() }
	c.address.OnSubmitted = func(string) { c.submit() }
	c.advanced = newAdvanced(p, c.submit)
	c.pair = kit.NewButton("Pair", kit.Primary, c.submit).WithKeys(p.keys())
	c.later = kit.NewButton("Not now", kit.Normal, p.leave).WithKeys(p.keys())
	c.unpair = kit.NewButton("Unpair", kit.Normal, func() { p.ui.intent(snapshot.Intent{Kind: snapshot.Unpair}) }).WithKeys(p.keys())
	return c
}

// remember keeps what a sign-in is about, for a window that was not the one to
// ask for it.
func (c *choosePage) remember(s snapshot.SigningIn) {
	switch {
	case s.Kind == "autogpt":
		c.options.Select(wayAutoGPT)
	case s.Kind == "own":
		c.options.Select(wayOwn)
		if strings.TrimSpace(c.address.Text) == "" {
			c.address.SetText(s.Hub)
		}
	}
}

// state is what the page shows beside the snapshot.
func (c *choosePage) state() string {
	return fmt.Sprint(c.options.Selected(), c.advanced.open, c.of.ui.snap.Connect.AutoGPT)
}

func (c *choosePage) busy() bool { return c.of.asked || c.of.ui.snap.Connect.Pairing }

// enable lets Pair be pressed when what it needs is there.
func (c *choosePage) enable() {
	c.pair.Enable(!c.busy() && (c.way() != wayOwn || strings.TrimSpace(c.address.Text) != ""))
}

// way is the chosen one; once paired, that of the hub of old.
func (c *choosePage) way() int {
	if !c.again {
		return c.options.Selected()
	}
	return map[string]int{"own": wayOwn, "autogpt": wayAutoGPT}[c.of.ui.snap.Hub.Kind]
}

// submit pairs.
func (c *choosePage) submit() {
	c.enable()
	if c.pair.Disabled() {
		return
	}
	in := snapshot.Intent{Kind: snapshot.Pair}
	switch c.way() {
	case wayOwn:
		in.Text = strings.TrimSpace(c.address.Text)
	case wayAutoGPT:
		in.Text, in.AutoGPT = "autogpt", c.advanced.changed()
	}
	c.of.ask(in)
}

func (c *choosePage) draw() {
	c.again, c.seeded = false, false
	col := c.of.head([]kit.Span{kit.Bold("Who may ask for this computer?", kit.Ink)}, "Nothing is allowed yet. Each thing is asked for when it is needed.")
	col.Add(kit.Pad(16, 0, 0, 0, c.options))
	c.more(col)
	var first fyne.Focusable = c.options
	if c.way() == wayOwn && (c.of.problem() != "") {
		first = c.address
	}
	c.word("Pair", "Pairing…")
	c.of.set(pageChoose, col, kit.Row(8, kit.Space(), c.later, c.pair), first, c.kept()...)
}

// drawAgain asks for a sign-in at the hub that this computer is paired with.
func (c *choosePage) drawAgain(s snapshot.Snapshot) {
	c.again = true
	if !c.seeded && s.Hub.Kind == "own" {
		c.address.SetText(s.Hub.Address)
		c.seeded = true
	}
	line := "The hub does not let this computer in any more. Nothing can be asked until you sign in again."
	if s.Hub.Kind == "this" || s.Hub.Kind == "" {
		line = "The hub inside this program does not let it in any more. Nothing can be asked until it is paired again."
	}
	if s.Problem != "" { // the banner says it
		line = ""
	}
	title := []kit.Span{kit.Bold("Sign in again", kit.Ink)}
	if s.Hub.Kind == "this" || s.Hub.Kind == "" {
		title[0].Text = "Pair again"
	}
	col := c.of.head(title, line)
	c.more(col)
	if c.way() == wayThis {
		c.word("Pair again", "Pairing…")
	} else {
		c.word("Sign in", "Signing in…")
	}
	var first fyne.Focusable = c.pair
	if c.pair.Disabled() {
		first = c.later
	}
	c.of.set(pageAgain, col, kit.Row(8, c.unpair, kit.Space(), c.later, c.pair), first, c.kept()...)
}

// word puts the right one on the button.
func (c *choosePage) word(ready, busy string) {
	text := ready
	switch {
	case c.busy():
		text = busy
	case c.of.problem() != "":
		text = "Try again"
	}
	c.pair.SetText(text)
	c.enable()
}

// more is what the chosen way needs to know, and why it failed.
func (c *choosePage) more(col *fyne.Container) {
	if c.way() == wayOwn {
		col.Add(kit.Pad(16, 0, 0, 0, labelled("Address of the hub", c.address)))
	}
	if e := c.of.problem(); e != "" {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Note(pairWidth, kit.ToneRisk, kit.Remote(e, kit.Plain("", kit.Ink))...)))
	}
	if c.way() == wayAutoGPT {
		col.Add(kit.Pad(12, 0, 0, 0, c.advanced.draw()))
	}
}

// kept are the controls that stay when the page is built again.
func (c *choosePage) kept() []fyne.Focusable {
	kept := []fyne.Focusable{c.later, c.pair}
	if c.again {
		kept = append(kept, c.unpair)
	} else {
		kept = append(kept, c.options)
	}
	switch c.way() {
	case wayOwn:
		kept = append(kept, c.address)
	case wayAutoGPT:
		kept = append(kept, c.advanced.kept()...)
	}
	return kept
}

// labelled is a field with its name above.
func labelled(name string, field fyne.CanvasObject) fyne.CanvasObject {
	return kit.Column(4, kit.NewFlow(pairWidth, kit.Small, kit.Plain(name, kit.Dim)), field)
}
