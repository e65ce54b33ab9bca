package ui

import (
	"fmt"
	"image"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"

	"localpc/app/desklink"
	"localpc/app/ui/kit"
	"localpc/consent"
)

const (
	cardTitle = Name + " — asks for permission"
	cardWidth = 520
	cardPad   = 24
)

// cardWindow is the one window for cards. It is made hidden and used again for
// each card. It keeps these promises: it does not take the keyboard, nothing
// in it allows before it was on the screen for the arming time, Enter and
// Space never allow, nothing in it allows before all of it was in sight, and
// after its card has gone it sends nothing.
type cardWindow struct {
	ui  *UI
	win fyne.Window
	now *openCard
	// mapped says that the window was shown and not hidden again.
	mapped bool
	turn   int // of the looks that came
}

// openCard is the card on the screen, from show to its answer or its end.
type openCard struct {
	of     *cardWindow
	card   desklink.Card
	keys   *kit.Keys
	body   cardBody
	width  float32           // of the contents
	want   func() float32    // the height that shows everything
	cut    fyne.CanvasObject // a line above the buttons where the body scrolls
	seen   time.Time         // when it was there first
	drawn  bool
	armed  bool
	gone   bool
	typed  string
	timers []func()

	read   reading
	looks  map[string]look // by screen
	closes *kit.Flow
	hint   *kit.Flow
	robot  *kit.Flow   // what a program tried to do
	on     *kit.Button // reads on
	allow  *kit.Allow
	deny   *kit.Button
	// footRow has the buttons that deny, and in yesRow the hint, or on, and
	// allow.
	footRow, yesRow *fyne.Container
	robotBox        *fyne.Container
}

// cardBody is what differs between kinds of cards.
type cardBody interface {
	// content is drawn between the header and the buttons.
	content() fyne.CanvasObject
	// choice is what is chosen now; ok is false while something is missing.
	choice() (c consent.Choice, ok bool)
	allowWord() string
	// last is the object that ends what has to be seen before anything allows,
	// and a name for that; another choice may have more to say.
	last() (key string, o fyne.CanvasObject)
}

func newCardWindow(u *UI) *cardWindow {
	w := &cardWindow{ui: u, win: u.o.App.NewWindow(cardTitle)}
	w.win.SetPadded(false)
	w.win.CenterOnScreen()
	w.win.SetCloseIntercept(func() {
		if w.now != nil {
			w.now.answer(false, consent.Choice{Scope: consent.Once})
		}
	})
	w.win.Canvas().SetOnTypedRune(func(r rune) {
		if w.now != nil {
			w.now.rune(r)
		}
	})
	w.win.Canvas().SetOnTypedKey(func(e *fyne.KeyEvent) {
		if w.now != nil {
			w.now.key(e)
		}
	})
	return w
}

// show puts a card on the screen in place of whatever was there. The open card
// once more, with fewer on it, is brought up to date and stays what it is.
func (w *cardWindow) show(c desklink.Card) {
	if c.Update && (w.now == nil || w.now.card.Request.ID != c.Request.ID) {
		return // it was answered at this moment
	}
	fresh := w.now == nil
	if w.now != nil {
		if fewer(w.now.card, c) {
			w.now.update(c)
			return
		}
		w.now.end()
	}
	o := &openCard{of: w, card: c}
	o.read.seen = map[string]bool{}
	o.keys = &kit.Keys{Rune: o.rune, Key: o.key, Live: func() bool { return o.armed && !o.gone }}
	w.now = o
	o.begin()
	switch {
	case !fresh: // it is there already
	case w.ui.o.Screen != nil:
		w.ui.o.Screen.ShowCalm(w.win)
	default:
		w.win.Show()
	}
	w.ui.guard(w.win, w.refused)
	w.mapped = true
	if o.width != w.width() { // the scale is known now
		o.begin()
	}
	o.refit()
	o.tick()
}

// refused says on the card that something was not heard.
func (w *cardWindow) refused(line string) {
	if o := w.now; o != nil && !o.gone {
		o.robot.Set(kit.Bold("▲ ", kit.Warn), kit.Plain(line, kit.Ink))
		o.robotBox.Show()
		o.grown()
	}
}

// width is that of a card's contents.
func (w *cardWindow) width() float32 {
	return w.ui.fit(w.win, fyne.NewSize(cardWidth, 1)).Width - 2*cardPad
}

// begin draws a card that nobody has seen yet.
func (o *openCard) begin() {
	o.width = o.of.width()
	if o.card.Request.Capability == consent.CapabilitySession {
		o.body = newSessionBody(o)
	} else {
		o.body = newActionBody(o)
	}
	o.build()
}

// close takes a card off the screen, if it is still this one.
func (w *cardWindow) close(id string) {
	if w.now != nil && w.now.card.Request.ID == id {
		w.now.end()
		w.now, w.mapped = nil, false
		w.win.Hide()
	}
}

func (w *cardWindow) raise() {
	if w.now != nil {
		w.win.Show()
		w.win.RequestFocus()
	}
}

// waiting brings "1 more waiting" up to date; n counts the open card.
func (w *cardWindow) waiting(n int) {
	if w.now != nil && n > 0 && w.now.card.Waiting != n-1 {
		w.now.card.Waiting = n - 1
		w.now.countdown()
	}
}

// build draws the card: a body that scrolls where the screen is too small,
// and the buttons, which always show.
func (o *openCard) build() {
	o.closes = kit.NewFlow(124, kit.Small).Right()
	o.countdown()
	o.read.parts = nil
	body := kit.Pad(cardPad, cardPad, 16, cardPad, kit.Column(0, o.header(), o.body.content()))
	foot := o.foot()
	o.set(o.readBody(body), foot, func() float32 { return body.MinSize().Height + foot.MinSize().Height })
	o.changed()
	o.of.win.Canvas().Focus(o.deny)
}

// update draws the open card with what has changed about it. What the person
// chose, read and typed stays.
func (o *openCard) update(c desklink.Card) {
	c.Digits = o.card.Digits
	o.card = c
	w, y, deny := o.of.win, o.read.scroll.Offset, o.deny
	focus := w.Canvas().Focused()
	o.build()
	o.read.scroll.ScrollToOffset(y)
	o.look()
	// The keyboard stays where it was, and goes nowhere else by itself.
	if at, ok := focus.(fyne.CanvasObject); ok && kit.Holds(w.Content(), at) {
		w.Canvas().Focus(focus)
	} else if focus != deny {
		w.Canvas().Unfocus()
	}
	if o.drawn {
		o.of.ui.o.Send(desklink.Up{Shown: &desklink.CardRef{ID: c.Request.ID}})
	}
}

// set makes the window show main with foot below, want high if there is room.
func (o *openCard) set(main, foot fyne.CanvasObject, want func() float32) {
	o.want = want
	o.cut = kit.Rule()
	o.of.win.SetContent(container.New(fitting{o}, kit.Frame(o.beacon(), main, kit.Column(0, o.cut, foot))))
	o.refit()
}

// fitting lets a window become as narrow as its card: text that was laid out
// wider, before the scale was known, would keep it wide.
type fitting struct{ o *openCard }

func (f fitting) MinSize(objects []fyne.CanvasObject) fyne.Size {
	m := objects[0].MinSize()
	return fyne.NewSize(min(m.Width, f.o.width+2*cardPad), m.Height)
}

func (f fitting) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	objects[0].Move(fyne.Position{})
	objects[0].Resize(size)
}

// tooBig says that the window is larger than the screen has room for. It can be
// while the toolkit learns the scale and the window manager maps the window:
// sizes asked for at that time may be taken for another scale, or be lost.
func (o *openCard) tooBig() bool {
	if o.of.ui.o.Screen == nil {
		return false
	}
	size, room := o.of.win.Canvas().Size(), o.of.ui.o.Screen.Room(o.of.win)
	return size.Width > room.Width+1 || size.Height > room.Height+1
}

// refit gives the window the height that its contents want now.
func (o *openCard) refit() {
	want := fyne.NewSize(cardWidth, o.want())
	size := o.of.ui.fit(o.of.win, want)
	if size.Height < want.Height {
		o.cut.Show()
	} else {
		o.cut.Hide()
	}
	o.of.win.Resize(size)
}

// beacon is nothing to see. Its picture is asked for when the card is painted,
// which is how the card knows that it has been drawn.
func (o *openCard) beacon() fyne.CanvasObject {
	r := canvas.NewRaster(func(w, h int) image.Image {
		if !o.drawn {
			o.after(0, o.painted)
		}
		return image.NewNRGBA(image.Rect(0, 0, w, h))
	})
	r.SetMinSize(fyne.NewSize(1, 1))
	return container.New(thin{o.of}, r)
}

// thin gives its object a unit of height that it does not take from others.
// The toolkit measures the contents after it has made the window and before it
// maps it: the one moment to set what a window manager reads then.
type thin struct{ of *cardWindow }

func (t thin) MinSize([]fyne.CanvasObject) fyne.Size {
	if s := t.of.ui.o.Screen; s != nil && !t.of.mapped {
		s.Calm(t.of.win)
	}
	return fyne.Size{}
}

func (thin) Layout(o []fyne.CanvasObject, s fyne.Size) {
	o[0].Resize(fyne.NewSize(max(1, s.Width), 1))
}

// painted says so once the window is really there, and begins to arm.
func (o *openCard) painted() {
	if o.drawn || o.gone {
		return
	}
	if s := o.of.ui.o.Screen; s != nil && !s.Visible(o.of.win) {
		o.after(50*time.Millisecond, o.painted)
		return
	}
	if o.seen.IsZero() {
		o.seen = time.Now()
	}
	if o.tooBig() && time.Since(o.seen) < 2*time.Second { // some window managers have their own mind
		if o.width != o.of.width() {
			o.begin()
		}
		o.refit()
		o.after(50*time.Millisecond, o.painted)
		return
	}
	o.drawn = true
	o.settle(looksAgain)
	o.look()
	o.of.ui.o.Send(desklink.Up{Shown: &desklink.CardRef{ID: o.card.Request.ID}})
	o.after(time.Duration(o.card.ArmMS)*time.Millisecond, func() {
		o.armed, o.typed = true, ""
		o.changed()
	})
}

// looksAgain is how often it is looked again whether a card is on the screen.
const looksAgain = 10

// settle brings a card that was painted onto the screen, and looks again some
// times: the toolkit may learn the scale only now, and makes the window larger.
func (o *openCard) settle(more int) {
	if o.tooBig() {
		if !o.armed && o.width != o.of.width() {
			o.begin()
		}
		o.refit()
	}
	if more > 0 {
		o.after(sizeAgain, func() { o.settle(more - 1) })
	}
}

// changed brings the buttons up to date with what is chosen and armed.
func (o *openCard) changed() {
	o.allow.SetText(o.body.allowWord())
	o.allow.Arm(o.ready())
	o.drawHint()
	o.footRow.Refresh() // its words may need another width
}

// grown draws the card again after a choice has made it higher or lower.
func (o *openCard) grown() {
	o.changed()
	o.refit()
	o.read.scroll.Refresh() // lays it out at once: what is in sight is known now
	o.look()
}

// ready says that the person can allow now.
func (o *openCard) ready() bool {
	_, ok := o.body.choice()
	return ok && o.armed && !o.gone && o.whole()
}

// yes allows, if everything that has to be chosen is.
func (o *openCard) yes() {
	if c, _ := o.body.choice(); o.ready() {
		o.answer(true, c)
	}
}

// rune takes what is typed: the two digits of the card allow.
func (o *openCard) rune(r rune) {
	if !o.armed || o.gone || o.card.Digits == "" {
		return
	}
	if r < '0' || r > '9' || !o.whole() {
		o.typed = ""
		o.drawHint()
		return
	}
	o.typed += string(r)
	if n := len(o.typed) - len(o.card.Digits); n > 0 {
		o.typed = o.typed[n:]
	}
	if o.typed == o.card.Digits {
		o.typed = ""
		o.yes()
		return
	}
	o.drawHint()
}

// key takes the keys that no control has used.
func (o *openCard) key(e *fyne.KeyEvent) {
	if e.Name == fyne.KeyEscape && o.armed {
		o.answer(false, consent.Choice{Scope: consent.Once})
	}
}

// answer sends the answer, once, and takes the card off the screen.
func (o *openCard) answer(allow bool, c consent.Choice) {
	if o.gone {
		return
	}
	o.of.ui.o.Send(desklink.Up{Answer: &desklink.CardAnswer{ID: o.card.Request.ID, Answer: consent.Answer{Allow: allow, Choice: c, Via: "card"}}})
	o.of.close(o.card.Request.ID)
}

// end makes the card deaf; whoever calls it takes it off the screen.
func (o *openCard) end() {
	o.gone, o.armed = true, false
	for _, stop := range o.timers {
		stop()
	}
	o.timers = nil
}

// after runs f later, unless the card has gone.
func (o *openCard) after(d time.Duration, f func()) {
	o.timers = append(o.timers, o.of.ui.o.Clock.After(d, func() {
		if !o.gone {
			f()
		}
	}))
}

// tick redraws the countdown each second.
func (o *openCard) tick() {
	o.countdown()
	if !o.card.Request.Deadline.IsZero() {
		o.after(time.Second, o.tick)
	}
}

func (o *openCard) countdown() {
	lines := ""
	if d := o.card.Request.Deadline; !d.IsZero() {
		left := max(0, int(d.Sub(o.of.ui.o.Clock.Now()).Seconds()+0.999))
		lines = fmt.Sprintf("Closes in %d:%02d\nnothing will run", left/60, left%60)
	}
	spans := []kit.Span{kit.Plain(lines, kit.Dim)}
	if n := o.card.Waiting; n > 0 {
		spans = append(spans, kit.Bold(fmt.Sprintf("\n%d more waiting", n), kit.Dim))
	}
	o.closes.Set(spans...)
}
