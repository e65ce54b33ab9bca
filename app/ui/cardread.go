package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"localpc/app/ui/kit"
)

// reading keeps account of what a card has shown. Nothing in the card allows
// before the end of every text that is longer than its box was in sight, and
// where the screen is too small for the card the last that it has to say: what
// is harmful may stand last.
type reading struct {
	scroll *container.Scroll
	parts  []readPart
	// seen are the parts whose end was in sight, by key: they stay seen when
	// the card is drawn again, or becomes higher by a choice.
	seen map[string]bool
}

// readPart is a text that does not show whole at once.
type readPart struct {
	key  string
	at   fyne.CanvasObject
	done func() bool
	on   func() // shows the next part of it
}

// scrolls has the end of a box seen before the card allows.
func (o *openCard) scrolls(key string, e *kit.Exact) {
	o.read.parts = append(o.read.parts, readPart{key, e, e.AtEnd, e.Page})
	e.OnScroll(o.look)
}

// more has something opened before the card allows.
func (o *openCard) more(key string, at fyne.CanvasObject, open func()) {
	o.read.parts = append(o.read.parts, readPart{key, at, func() bool { return false }, open})
}

// readBody makes what scrolls of a card.
func (o *openCard) readBody(body fyne.CanvasObject) fyne.CanvasObject {
	scroll := container.NewVScroll(body)
	scroll.OnScrolled = func(fyne.Position) { o.look() }
	o.read.scroll = scroll
	return container.New(watched{func() { o.after(0, o.look) }}, scroll)
}

// look takes note of what is in sight now. It counts from when the card was
// drawn.
func (o *openCard) look() {
	if !o.drawn || o.gone {
		return
	}
	news := false
	see := func(key string) {
		if !o.read.seen[key] {
			o.read.seen[key], news = true, true
		}
	}
	all := true
	for _, p := range o.read.parts {
		if p.done() {
			see(p.key)
		}
		all = all && o.read.seen[p.key]
	}
	// What is opened makes the card longer: its end counts only after that.
	if key, last := o.body.last(); all && o.saw(last) {
		see(key)
	}
	if news {
		o.changed()
	}
}

// saw says that the card shows an object to its end, or has gone past it.
func (o *openCard) saw(last fyne.CanvasObject) bool {
	pos := o.of.ui.o.App.Driver().AbsolutePositionForObject
	s := o.read.scroll
	end := pos(last).Y + last.Size().Height - pos(s.Content).Y
	return s.Size().Height > 0 && last.Size().Height > 0 && s.Offset.Y+s.Size().Height >= end-1
}

// whole says that everything was in sight.
func (o *openCard) whole() bool {
	for _, p := range o.read.parts {
		if !o.read.seen[p.key] {
			return false
		}
	}
	key, _ := o.body.last()
	return o.read.seen[key]
}

// readOn shows the next part of what was not in sight yet.
func (o *openCard) readOn() {
	defer o.look()
	for _, p := range o.read.parts {
		if o.read.seen[p.key] {
			continue
		}
		if o.below(p.at) {
			o.page()
			return
		}
		kit.Reveal(p.at)
		p.on()
		return
	}
	o.page()
}

// below says that an object begins below what the card shows.
func (o *openCard) below(at fyne.CanvasObject) bool {
	pos := o.of.ui.o.App.Driver().AbsolutePositionForObject
	s := o.read.scroll
	return pos(at).Y+min(at.Size().Height, s.Size().Height) > pos(s).Y+s.Size().Height+1
}

// page scrolls the card on by what it shows, less a little.
func (o *openCard) page() {
	s := o.read.scroll
	limit := max(0, s.Content.MinSize().Height-s.Size().Height)
	s.ScrollToOffset(fyne.NewPos(0, min(limit, s.Offset.Y+max(24, s.Size().Height-24))))
}

// watched tells of each change of its object's size.
type watched struct{ changed func() }

func (w watched) MinSize(o []fyne.CanvasObject) fyne.Size { return o[0].MinSize() }

func (w watched) Layout(o []fyne.CanvasObject, s fyne.Size) {
	o[0].Resize(s)
	w.changed()
}
