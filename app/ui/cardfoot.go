package ui

import (
	"fmt"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// foot is what always shows: the buttons, and above them what a session that
// keeps being denied is offered.
func (o *openCard) foot() fyne.CanvasObject {
	o.hint = kit.NewFlow(80, kit.Small).Right()
	o.on = kit.NewButton("Read on ↓", kit.Link, o.readOn).WithKeys(o.keys)
	o.deny = kit.NewButton("Deny", kit.Normal, func() { o.answer(false, consent.Choice{Scope: consent.Once}) }).WithKeys(o.keys)
	o.allow = kit.NewAllow(o.body.allowWord(), o.yes)

	no := kit.Row(8, o.deny)
	if words, c := o.longerDenial(); words != "" {
		no.Add(kit.NewButton(words, kit.Link, func() { o.answer(false, c) }).WithKeys(o.keys))
	}
	o.on.Hide() // until it is known that there is more to read
	o.yesRow = kit.Row(12, o.on)
	if o.card.Digits != "" {
		o.yesRow.Add(o.hint)
	}
	o.yesRow.Add(o.allow)
	foot := kit.Column(12)
	if o.robot == nil {
		o.robot = kit.NewFlow(o.width, kit.Small)
		o.robotBox = kit.Column(0, o.robot)
		o.robotBox.Hide()
	}
	foot.Add(o.robotBox)
	if o.endOffered() {
		words := fmt.Sprintf("This session was denied %d times in a row.", o.card.Denied)
		end := kit.NewButton("Deny and end this session", kit.Normal, func() {
			o.answer(false, consent.Choice{Scope: consent.Once, End: true})
		}).WithKeys(o.keys)
		foot.Add(kit.Banner(kit.ToneWarn, kit.NewFlow(o.width-24-28-12-end.MinSize().Width, kit.Body, kit.Plain(words, kit.Ink)), end))
	}
	o.footRow = kit.Facing(no, o.yesRow)
	foot.Add(o.footRow)
	return kit.Pad(8, cardPad, cardPad, cardPad, foot)
}

// longerDenial is the denial that holds for longer than this card, "" for none.
func (o *openCard) longerDenial() (string, consent.Choice) {
	r := o.card.Request
	switch {
	case r.Capability == consent.CapabilitySession:
		return "Not for the next 15 minutes", consent.Choice{Scope: consent.Minutes15}
	case r.Capability == consent.CapabilityFolders && r.Session != "":
		return "Deny until " + Name + " quits", consent.Choice{Scope: consent.Session}
	case r.Session != "":
		return "Deny for this session", consent.Choice{Scope: consent.Session}
	}
	return "", consent.Choice{}
}

// endOffered says that the session has been denied so often that it is offered
// to end it.
func (o *openCard) endOffered() bool {
	r := o.card.Request
	return o.card.Denied >= snapshot.DeniedOften && r.Session != "" &&
		r.Capability != consent.CapabilitySession && r.Capability != consent.CapabilityFolders
}

func (o *openCard) drawHint() {
	ink := kit.Ink
	if !o.armed {
		ink = kit.Dim
	}
	spans := []kit.Span{kit.Plain("or type ", kit.Dim)}
	for i, d := range o.card.Digits {
		word := string(d)
		if i > 0 {
			word = " " + word
		}
		if i < len(o.typed) && len(o.typed) < len(o.card.Digits) && o.typed == o.card.Digits[:len(o.typed)] {
			spans = append(spans, kit.Bold(word, kit.Accent))
			continue
		}
		spans = append(spans, kit.Bold(word, ink))
	}
	o.hint.Set(spans...)
	// Until everything was in sight, the way to that stands in place of the
	// digits.
	read := !o.drawn || o.whole()
	if o.hint.Visible() != read || o.on.Visible() == read {
		show(o.hint, read)
		show(o.on, !read)
		if c := o.of.win.Canvas(); read && c.Focused() == o.on {
			c.Unfocus() // Enter once too often must not deny
		}
	}
}

func show(o fyne.CanvasObject, on bool) {
	if on {
		o.Show()
	} else {
		o.Hide()
	}
}
