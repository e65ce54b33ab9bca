package ui

import (
	"bytes"
	"errors"
	"image"
	_ "image/jpeg" // what a look may be
	_ "image/png"
	"log/slog"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/ui/kit"
	"localpc/consent"
)

// look is the newest picture of one screen, or of where an action goes.
type look struct {
	img  image.Image // nil: there is none
	note string
	// labels name the windows that it does not show.
	labels []kit.Label
	turn   int // which came when
}

const (
	// mostPixels bounds a picture that is drawn: four screens of 8K.
	mostPixels = 4 * 7680 * 4320
	// mostLook bounds a look, which is 480 pixels wide or high at most.
	mostLook = 1 << 20
)

var errTooLarge = errors.New("the picture has too many pixels")

// decode reads a picture's file, of so many pixels at most.
func decode(data []byte, most int) (image.Image, error) {
	head, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if head.Width <= 0 || head.Height <= 0 || head.Width > most/head.Height {
		return nil, errTooLarge
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	return img, err
}

// look takes a picture for the open card. It is read off Fyne's goroutine, and
// one that was overtaken by a newer one is dropped.
func (w *cardWindow) look(l consent.Look) {
	o := w.now
	if o == nil || o.card.Request.ID != l.Request {
		return
	}
	w.turn++
	turn := w.turn
	w.ui.o.Background(func() func() {
		got := look{note: l.Note, turn: turn}
		if len(l.Data) > 0 {
			img, err := decode(l.Data, mostLook)
			if err != nil {
				slog.Warn("A picture for a card can't be read", "err", err)
				got.note = "The picture could not be read."
			}
			got.img, got.labels = img, labels(l.Covers)
		}
		return func() {
			if o.gone || o.looks[l.Screen].turn > turn {
				return
			}
			if o.looks == nil {
				o.looks = map[string]look{}
			}
			o.looks[l.Screen] = got
			if b, ok := o.body.(*actionBody); ok && b.screens != nil {
				b.screens.look(l.Screen, got)
			}
		}
	})
}

// screensPart is what would be seen, as it is now, and where there is a choice
// which screens of it. Its places have their size before the pictures come.
type screensPart struct {
	o       *openCard
	changed func()
	thumbs  []thumb
	only    *kit.Picture // of an action, or of all that is seen
	told    *kit.Flow    // what it gets to see
	missing *kit.Flow    // how many are chosen
}

// thumb is one screen that may be chosen.
type thumb struct {
	name  string
	pic   *kit.Picture // nil: no pictures are shown
	check *kit.Check
}

const (
	thumbGap = 12
	waiting  = "The picture comes in a moment."
)

// newScreensPart makes the places for a card that is o.width wide.
func newScreensPart(o *openCard, changed func()) *screensPart {
	r := o.card.Request
	p := &screensPart{o: o, changed: changed, told: kit.NewFlow(o.width, kit.Body), missing: kit.NewFlow(o.width, kit.Small)}
	w := o.width
	if len(r.Screens) == 0 {
		p.only = kit.NewPicture(w, tall(w), waiting)
	}
	if n := len(r.Screens); n > 1 {
		across := float32(min(n, 2))
		w = (w - thumbGap*(across-1)) / across
	}
	for _, s := range r.Screens {
		t := thumb{name: s.Name}
		label := s.Label
		if label == "" {
			label = s.Name
		}
		t.check = kit.NewCheck(w, o.keys, func(bool) { p.changed() }, kit.Remote(label, kit.Plain("", kit.Ink))...)
		// One screen is chosen by allowing it.
		t.check.Set(s.Chosen || len(r.Screens) == 1)
		if r.Looks {
			t.pic = kit.NewPicture(w, tall(w), waiting)
			t.pic.OnTap = func() { t.check.Tapped(nil) }
			t.pic.Choose(t.check.On())
		}
		p.thumbs = append(p.thumbs, t)
	}
	for screen, l := range o.looks {
		p.look(screen, l)
	}
	return p
}

// tall is how high a picture's place is: that of a wide screen, and no higher
// than leaves room for the rest of a card.
func tall(w float32) float32 { return min(w*9/16, 266) }

// add draws it below what col holds.
func (p *screensPart) add(col *fyne.Container, w float32) {
	if len(p.thumbs) == 0 {
		col.Add(kit.Pad(16, 0, 0, 0, p.only))
		return
	}
	col.Add(kit.Pad(4, 0, 0, 0, p.told))
	if words, open, _ := curtainWords(p.o.card.Request); open {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Note(w, kit.ToneWarn, kit.Remote(words, kit.Plain("", kit.Ink))...)))
	}
	grid := kit.Wrap(w, thumbGap)
	for _, t := range p.thumbs {
		if t.pic == nil {
			grid.Add(kit.Width(w, t.check))
			continue
		}
		grid.Add(kit.Column(6, t.pic, t.check))
	}
	col.Add(kit.Pad(16, 0, 0, 0, grid))
	if len(p.thumbs) > 1 {
		col.Add(kit.Pad(8, 0, 0, 0, p.missing))
	}
}

// look shows a picture in its place.
func (p *screensPart) look(screen string, l look) {
	pic := p.only
	for _, t := range p.thumbs {
		if t.name == screen {
			pic = t.pic
		}
	}
	if pic == nil {
		return
	}
	switch {
	case l.img != nil:
		pic.Caption(l.note)
	case l.note != "":
		pic.Say(l.note)
	default:
		pic.Say("There is no picture of this.")
	}
	pic.Labels(l.labels)
	pic.Set(l.img)
}

// labels say what the parts are that a picture does not show.
func labels(covers []consent.Cover) (out []kit.Label) {
	for _, c := range covers {
		l := kit.Label{Area: image.Rect(c.Min[0], c.Min[1], c.Max[0], c.Max[1]), Words: []string{Name + " – never shown", "Never shown"}}
		if !c.Own {
			l.Words = []string{"Hidden: " + c.Name, "Hidden"}
			if c.Name == "" {
				l.Words = l.Words[1:]
			}
		}
		out = append(out, l)
	}
	return out
}

// seeFor says how long it sees.
var seeFor = map[consent.Scope]string{consent.Once: "It gets one picture of what you see.", consent.Session: "It sees what you see until the session ends.",
	consent.Minutes15: "It sees what you see for the next 15 minutes.", consent.Always: "It may always see what you see, in this folder's sessions."}

// ownWords explain the grey in a picture on a card.
const ownWords = "What is grey here is " + Name + " itself, which is never in a picture."

// blackedOut is in what a request says of the windows that are not shown.
const blackedOut = "blacked out"

// curtainWords are what is said of the windows that are not shown, and the other
// details. Where windows can't be told apart the request says so itself, and
// that is said loudly.
func curtainWords(r consent.Request) (words string, open bool, rest []string) {
	for _, d := range r.Details {
		if words == "" && strings.Contains(d, blackedOut) {
			words, open = d, strings.Contains(d, "none is "+blackedOut)
			continue
		}
		rest = append(rest, d)
	}
	return words, open, rest
}

// draw brings what depends on the choices up to date.
func (p *screensPart) draw(s consent.Scope) {
	words := seeFor[s]
	more, open, _ := curtainWords(p.o.card.Request)
	if more != "" && !open {
		words = strings.TrimSpace(words + " " + consent.Visible(more, false))
	}
	if p.o.card.Request.Looks && words != "" && !open { // where windows can't be told apart, this card can't either
		words += " " + ownWords
	}
	p.told.Set(kit.Plain(words, kit.Dim))
	n := 0
	for _, t := range p.thumbs {
		if t.check.On() {
			n++
		}
		if t.pic != nil {
			t.pic.Choose(t.check.On())
		}
	}
	if n == 0 {
		p.missing.Set(kit.Bold("▲ ", kit.Warn), kit.Plain("Choose at least one screen to allow it, or deny.", kit.Warn))
		return
	}
	p.missing.Set(kit.Plain(itoa(n)+" of "+count(len(p.thumbs), "screen", "screens")+" chosen. The others stay unseen.", kit.Dim))
	if n == len(p.thumbs) {
		p.missing.Set(kit.Plain("All screens are chosen.", kit.Dim))
	}
}

// chosen are the screens that may be seen; ok is false while there is none.
func (p *screensPart) chosen() (screens string, ok bool) {
	if len(p.thumbs) == 0 {
		return "", true
	}
	var names []string
	for _, t := range p.thumbs {
		if t.check.On() {
			names = append(names, t.name)
		}
	}
	return consent.JoinScreens(names), len(names) > 0
}
