package kit

import (
	"unicode"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// Panel is a rounded ground behind o, pad away from it.
func Panel(fill, edge fyne.ThemeColorName, pad float32, o fyne.CanvasObject) *Ground {
	g := &Ground{ground: newBox(fill, edge, Radius), pad: pad, inner: o}
	g.ExtendBaseWidget(g)
	return g
}

// Ground is what Panel makes.
type Ground struct {
	widget.BaseWidget
	ground *box
	pad    float32
	inner  fyne.CanvasObject
}

// Square takes the rounded corners away, for a pane that fills its window's
// side.
func (g *Ground) Square() *Ground { g.ground.CornerRadius = 0; return g }

// CreateRenderer is Fyne's.
func (g *Ground) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      g,
		objects: []fyne.CanvasObject{g.ground.Rectangle, g.inner},
		layout: func(s fyne.Size) {
			g.ground.Resize(s)
			g.inner.Move(fyne.NewPos(g.pad, g.pad))
			g.inner.Resize(s.SubtractWidthHeight(2*g.pad, 2*g.pad))
		},
		min:     func() fyne.Size { return g.inner.MinSize().AddWidthHeight(2*g.pad, 2*g.pad) },
		refresh: g.ground.paint,
	}
}

// LeftLine is a thin line down the left side of what it is laid over.
func LeftLine() fyne.CanvasObject {
	r := &leftLine{line: newBox(Line, None, 0)}
	r.ExtendBaseWidget(r)
	return r
}

type leftLine struct {
	widget.BaseWidget
	line *box
}

// CreateRenderer is Fyne's.
func (r *leftLine) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      r,
		objects: []fyne.CanvasObject{r.line.Rectangle},
		layout:  func(s fyne.Size) { r.line.Resize(fyne.NewSize(1, s.Height)) },
		min:     func() fyne.Size { return fyne.NewSize(1, 1) },
		refresh: r.line.paint,
	}
}

// Rule is a thin line across.
func Rule() fyne.CanvasObject {
	r := &rule{newBox(Line, None, 0), widget.BaseWidget{}}
	r.ExtendBaseWidget(r)
	return r
}

type rule struct {
	line *box
	widget.BaseWidget
}

// CreateRenderer is Fyne's.
func (r *rule) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      r,
		objects: []fyne.CanvasObject{r.line.Rectangle},
		layout:  func(s fyne.Size) { r.line.Resize(s) },
		min:     func() fyne.Size { return fyne.NewSize(1, 1) },
		refresh: r.line.paint,
	}
}

// Tone is how a chip, a mark or a note is meant.
type Tone int

// Tones, each with a colour and, in chips, a shape of its own.
const (
	ToneQuiet Tone = iota
	ToneOK
	ToneWarn
	ToneRisk
)

// Ink is the tone's colour for text.
func (t Tone) Ink() fyne.ThemeColorName {
	return [...]fyne.ThemeColorName{Ink, OK, Warn, Risk}[t]
}

func (t Tone) ground() fyne.ThemeColorName {
	return [...]fyne.ThemeColorName{Win, Win, WarnBG, RiskBG}[t]
}

// Chip is a short word in a pill, with a shape in front of it, so that it is
// told by more than colour.
type Chip struct {
	widget.BaseWidget
	tone   Tone
	ground *box
	word   *label
}

// NewChip makes a chip; shape is one character, "" for none.
func NewChip(shape, text string, tone Tone) *Chip {
	c := &Chip{tone: tone, ground: newBox(None, Line, 11), word: newLabel("", Small, Ink, true)}
	c.ExtendBaseWidget(c)
	c.Set(shape, text, tone)
	return c
}

// Set changes it.
func (c *Chip) Set(shape, text string, tone Tone) {
	if shape != "" {
		text = shape + " " + text
	}
	if c.word.text == text && c.tone == tone {
		return
	}
	c.word.text, c.tone = text, tone
	c.Refresh()
}

// Text is what it says.
func (c *Chip) Text() string { return c.word.text }

// CreateRenderer is Fyne's.
func (c *Chip) CreateRenderer() fyne.WidgetRenderer {
	paint := func() {
		c.word.ink, c.ground.fill, c.ground.edge = c.tone.Ink(), c.tone.ground(), Line
		if c.tone >= ToneWarn {
			c.ground.edge = c.ground.fill
		}
		c.word.paint()
		c.ground.paint()
	}
	paint()
	place := func(s fyne.Size) {
		m := c.word.MinSize()
		c.ground.Resize(fyne.NewSize(m.Width+20, 22))
		c.ground.Move(fyne.NewPos(0, mid(s.Height, 22)))
		c.word.centre(c.ground.Position(), c.ground.Size())
	}
	return &drawn{
		of:      c,
		objects: []fyne.CanvasObject{c.ground.Rectangle, c.word.Container},
		layout:  place,
		min:     func() fyne.Size { return fyne.NewSize(c.word.MinSize().Width+20, 22) },
		refresh: func() { paint(); place(c.Size()) },
	}
}

// Initial is a square with the first letter of a name.
func Initial(name string) fyne.CanvasObject {
	letter := "?"
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			letter = string(unicode.ToUpper(r))
			break
		}
	}
	return Tile(letter, "", Edge)
}

// Tile is a square with a sign in it, or with an icon of the theme.
func Tile(sign string, icon fyne.ThemeIconName, edge fyne.ThemeColorName) fyne.CanvasObject {
	t := &tile{ground: newBox(Pane, edge, Round), sign: newLabel(sign, Lead, Ink, true)}
	if icon != "" {
		t.icon = canvas.NewImageFromResource(theme.Icon(icon))
		t.icon.FillMode = canvas.ImageFillContain
	}
	t.ExtendBaseWidget(t)
	return t
}

type tile struct {
	widget.BaseWidget
	ground *box
	sign   *label
	icon   *canvas.Image // nil: the sign
}

// CreateRenderer is Fyne's.
func (t *tile) CreateRenderer() fyne.WidgetRenderer {
	const side, icon = 36, 20
	objects := []fyne.CanvasObject{t.ground.Rectangle, t.sign.Container}
	if t.icon != nil {
		objects = []fyne.CanvasObject{t.ground.Rectangle, t.icon}
	}
	return &drawn{
		of:      t,
		objects: objects,
		layout: func(s fyne.Size) {
			p := fyne.NewPos(0, max(0, mid(s.Height, side)))
			t.ground.Move(p)
			t.ground.Resize(fyne.NewSquareSize(side))
			t.sign.centre(p, fyne.NewSquareSize(side))
			if t.icon != nil {
				t.icon.Move(p.AddXY((side-icon)/2, (side-icon)/2))
				t.icon.Resize(fyne.NewSquareSize(icon))
			}
		},
		min: func() fyne.Size { return fyne.NewSquareSize(side) },
		refresh: func() {
			t.ground.paint()
			t.sign.paint()
			if t.icon != nil {
				t.icon.Refresh()
			}
		},
	}
}

// Note is a loud line with a shape, on a ground of its own.
func Note(width float32, tone Tone, spans ...Span) fyne.CanvasObject {
	return Banner(tone, NewFlow(width-24-16-12, Body, spans...), nil)
}

// Banner is a loud line with a shape, words and buttons; nil ones are left out.
func Banner(tone Tone, words fyne.CanvasObject, buttons ...*Button) fyne.CanvasObject {
	fill, shape := tone.ground(), map[Tone]string{ToneWarn: "▲", ToneRisk: "◆"}[tone]
	if fill == Win {
		fill = Code
	}
	row := Row(12)
	if shape != "" {
		row.Add(Width(16, NewFlow(16, Title, Plain(shape, tone.Ink()))))
	}
	row.Add(Grow(words))
	for _, b := range buttons {
		if b != nil {
			row.Add(b)
		}
	}
	return Panel(fill, None, 12, row)
}

// Check is a box to tick with a line beside it.
type Check struct {
	widget.BaseWidget
	OnChange func(bool)
	Keys     *Keys

	on, focused bool
	off         bool
	square      *box
	tick        *canvas.Text
	ring        *box
	text        *Flow
}

// NewCheck makes an unticked box; its line is at most width wide.
func NewCheck(width float32, keys *Keys, change func(bool), spans ...Span) *Check {
	c := &Check{Keys: keys, OnChange: change, square: newBox(Win, Edge, 4), ring: newRing(4)}
	c.tick = canvas.NewText("✓", Color(On))
	c.tick.TextSize, c.tick.TextStyle = Small, style(drawable(Bold("✓", On))[0])
	c.text = NewLine(width-24, Body, 2, spans...)
	c.ExtendBaseWidget(c)
	return c
}

// On says whether it is ticked.
func (c *Check) On() bool { return c.on }

// Set ticks it, or not, without telling OnChange.
func (c *Check) Set(on bool) {
	if c.on != on {
		c.on = on
		c.Refresh()
	}
}

// Enable lets a person change it, or not.
func (c *Check) Enable(on bool) {
	if c.off == on {
		c.off = !on
		c.Refresh()
	}
}

// Disabled says that it can't be changed now.
func (c *Check) Disabled() bool { return c.off }

// Text is its line.
func (c *Check) Text() string { return c.text.Text() }

// Tapped ticks it, or takes the tick away.
func (c *Check) Tapped(*fyne.PointEvent) {
	if c.off {
		return
	}
	c.on = !c.on
	c.Refresh()
	if c.OnChange != nil {
		c.OnChange(c.on)
	}
}

// TypedRune hands characters on.
func (c *Check) TypedRune(r rune) {
	if r != ' ' {
		c.Keys.rune(r)
	}
}

// TypedKey ticks it on Space and Enter.
func (c *Check) TypedKey(e *fyne.KeyEvent) {
	switch {
	case isEnter(e.Name) && c.Keys.live():
		c.Tapped(nil)
	default:
		c.Keys.key(e)
	}
}

// FocusGained is Fyne's.
func (c *Check) FocusGained() { c.focused = true; c.Refresh(); reveal(c) }

// FocusLost is Fyne's.
func (c *Check) FocusLost() { c.focused = false; c.Refresh() }

// CreateRenderer is Fyne's.
func (c *Check) CreateRenderer() fyne.WidgetRenderer {
	paint := func() {
		c.square.fill, c.square.edge = Win, Edge
		c.tick.Color = Color(On)
		switch {
		case c.off:
			c.square.fill, c.square.edge, c.tick.Color = Pane, Line, Color(Dim)
		case c.on:
			c.square.fill, c.square.edge = Accent, Accent
		}
		c.square.paint()
		c.ring.paint()
		c.tick.Hidden, c.ring.Hidden = !c.on, !c.focused
	}
	paint()
	return &drawn{
		of:      c,
		objects: []fyne.CanvasObject{c.square.Rectangle, c.tick, c.ring.Rectangle, c.text},
		layout: func(s fyne.Size) {
			p, q := fyne.NewPos(0, 1), fyne.NewSquareSize(16)
			c.square.Move(p)
			c.square.Resize(q)
			c.ring.around(p, q)
			m := c.tick.MinSize()
			c.tick.Move(fyne.NewPos(mid(16, m.Width), 1+mid(16, m.Height)))
			c.text.Move(fyne.NewPos(24, 0))
			c.text.Resize(fyne.NewSize(s.Width-24, c.text.MinSize().Height))
		},
		min:     func() fyne.Size { return c.text.MinSize().AddWidthHeight(24, 0).Max(fyne.NewSize(0, 19)) },
		refresh: paint,
	}
}

// Here is the word of the window that one is in, among Quiet buttons that lead
// to the others.
func Here(word string) fyne.CanvasObject {
	h := &here{ground: newBox(Sel, None, Radius), word: newLabel(word, Body, Ink, true)}
	h.ExtendBaseWidget(h)
	return h
}

type here struct {
	widget.BaseWidget
	ground *box
	word   *label
}

// CreateRenderer is Fyne's.
func (h *here) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      h,
		objects: []fyne.CanvasObject{h.ground.Rectangle, h.word.Container},
		layout: func(s fyne.Size) {
			h.ground.Resize(s)
			h.word.centre(fyne.Position{}, s)
		},
		min:     func() fyne.Size { return fyne.NewSize(h.word.MinSize().Width+24, 31) },
		refresh: func() { h.ground.paint(); h.word.paint() },
	}
}
