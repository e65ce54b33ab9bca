package ui

import (
	"fmt"
	"slices"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// banners are the loud lines at the top of a window: what is wrong, that
// everything was stopped, a session to be ended, warnings, and the answer to
// what was just asked for.
type banners struct {
	ui    *UI
	width float32
	box   *fyne.Container
	// within is the intent whose place the window is: it offers no button
	// that leads here.
	within snapshot.IntentKind
	// sessions says that open sessions have their lines here, too.
	sessions bool
	said     *desklink.Told
	// undo is the question before newer work is overwritten; again sends its
	// wish once more, and undoAll one for a session. Activity has them.
	undo    undoing
	again   func(snapshot.Intent)
	undoAll func(session string)
	key     string
	quiet   func() // stops the timer of said
	// counts are the lines that count down, each with its end.
	counts []countdown
	tick   func() // stops the timer of counts
	// keys get what the buttons do not use; may be nil.
	keys *kit.Keys
	// stay leaves things as they are, while there is a question.
	stay *kit.Button
	// changed is called when a line goes away by itself or by a click.
	changed func()
}

type countdown struct {
	until time.Time
	line  *kit.Flow
	words func() []kit.Span
}

func newBanners(u *UI, width float32) *banners {
	return &banners{ui: u, width: width, box: kit.Column(8)}
}

// tell shows an answer for a while.
func (b *banners) tell(t desklink.Told) {
	if t.Text == "" {
		return
	}
	if b.quiet != nil {
		b.quiet()
	}
	b.said = &t
	b.quiet = b.ui.o.Clock.After(12*time.Second, func() {
		b.said = nil
		b.redraw()
	})
}

// loud is the place of the lines above what a window shows: together they take
// no more than a part of it, and scroll beyond that.
func (b *banners) loud(w fyne.Window, top, side, bottom float32) *fyne.Container {
	limit := func() float32 { return w.Canvas().Size().Height * 0.36 }
	return kit.Pad(top, side, bottom, side, kit.Capped(limit, b.box))
}

func (b *banners) redraw() {
	b.draw()
	if b.changed != nil {
		b.changed()
	}
}

// denied are the sessions to be offered an end, trusted those that may do more
// for now.
func (b *banners) denied() (out []snapshot.Session) {
	for _, s := range b.ui.snap.Sessions {
		if b.sessions && s.Denied >= snapshot.DeniedOften && s.Denied > b.ui.kept[s.ID] {
			out = append(out, s)
		}
	}
	return out
}

func (b *banners) trusted() (out []snapshot.Session) {
	for _, s := range b.ui.snap.Sessions {
		if b.sessions && s.TrustedUntil.After(b.ui.o.Clock.Now()) {
			out = append(out, s)
		}
	}
	return out
}

// draw makes the lines again if they are others than before; the window's
// layout has to be refreshed then.
func (b *banners) draw() (changed bool) {
	s := b.ui.snap
	key := fmt.Sprint(s.Problem, s.Fix, s.FixLabel)
	for _, w := range append(append([]string{}, s.Standing...), s.Warnings...) {
		key += "\x00" + w
	}
	key += fmt.Sprint(s.Stopped, b.said, b.undo)
	if session, ok := toUndo(s); ok && s.Stopped != nil {
		key += "\x00undo " + session
	}
	for _, d := range b.denied() {
		key += fmt.Sprintf("\x00denied %q %q %d", d.ID, d.Principal, d.Denied)
	}
	for _, d := range b.trusted() {
		key += fmt.Sprintf("\x00trusted %q %q %q %d", d.ID, d.Principal, d.Folder, d.TrustedUntil.UnixNano())
	}
	if key == b.key {
		b.count()
		return false
	}
	b.key, b.counts = key, nil
	b.box.Objects, b.stay = nil, nil
	b.state(s)
	if b.undo.question != "" {
		b.ask()
	}
	for _, d := range b.denied() {
		b.offerEnd(d)
	}
	for _, d := range b.trusted() {
		b.trust(d)
	}
	for _, w := range s.Standing {
		b.add(kit.ToneWarn, 60, kit.Remote(w, kit.Plain("", kit.Ink)))
	}
	for _, w := range s.Warnings {
		hide := kit.NewButton("Dismiss", kit.Link, func() { b.ui.intent(snapshot.Intent{Kind: snapshot.Dismiss, Text: w}) })
		b.add(kit.ToneWarn, 140, kit.Remote(w, kit.Plain("", kit.Ink)), hide)
	}
	if b.said != nil {
		tone := kit.ToneQuiet
		if !b.said.OK {
			tone = kit.ToneRisk
		}
		hide := kit.NewButton("Dismiss", kit.Link, func() { b.said = nil; b.redraw() })
		b.add(tone, 140, kit.Remote(b.said.Text, kit.Plain("", kit.Ink)), hide)
	}
	b.box.Refresh()
	b.count()
	return true
}

// state are the lines about the whole computer.
func (b *banners) state(s snapshot.Snapshot) {
	if s.Stopped != nil {
		words := kit.Column(4, kit.NewFlow(b.width-140, kit.Title, kit.Bold("Everything stopped", kit.Ink)),
			kit.NewFlow(b.width-140, kit.Body, kit.Plain(stoppedWords(*s.Stopped), kit.Dim)))
		resume := kit.NewButton("Resume", kit.Primary, func() { b.ui.intent(snapshot.Intent{Kind: snapshot.Resume}) })
		buttons := []*kit.Button{resume}
		if session, ok := toUndo(s); ok && b.undoAll != nil {
			buttons = []*kit.Button{kit.NewButton("Undo this session", kit.Normal, func() { b.undoAll(session) }), resume}
		}
		for _, button := range buttons {
			button.WithKeys(b.keys)
		}
		b.box.Add(kit.Banner(kit.ToneQuiet, words, buttons...))
	}
	if s.Problem == "" {
		return
	}
	var fix *kit.Button
	if s.Fix != "" && s.Fix != b.within {
		label := s.FixLabel
		if label == "" {
			label = "Mend it"
		}
		fix = kit.NewButton(label, kit.Primary, func() { b.ui.fix(s.Fix) })
	}
	b.add(kit.ToneWarn, 180, kit.Remote(s.Problem, kit.Bold("", kit.Ink)), fix)
}

// offerEnd is the line of a session whose questions keep being denied.
func (b *banners) offerEnd(s snapshot.Session) {
	words := append(kit.Remote(s.Principal, kit.Bold("", kit.Ink)), kit.Bold(fmt.Sprintf(" was denied %d times in a row.", s.Denied), kit.Ink),
		kit.Plain(" Ending its session ends what it runs, too.", kit.Ink))
	end := kit.NewButton("End session", kit.Danger, func() { b.ui.intent(snapshot.Intent{Kind: snapshot.EndSession, Entry: s.ID}) }).Slim()
	keep := kit.NewButton("Keep", kit.Normal, func() { b.ui.kept[s.ID] = s.Denied; b.ui.redraw() }).Slim()
	b.add(kit.ToneWarn, 280, words, end, keep)
}

// trust is the line of a session that is trusted for now.
func (b *banners) trust(s snapshot.Session) {
	words := func() []kit.Span {
		out := append(kit.Remote(s.Principal, kit.Bold("", kit.Ink)), kit.Bold(" is trusted: "+leftWord(s.TrustedUntil, b.ui.o.Clock.Now())+".", kit.Ink),
			kit.Plain(" It changes and deletes in ", kit.Ink))
		return append(append(out, kit.Remote(shortPath(s.Folder), kit.Plain("", kit.Ink))...), kit.Plain(" without asking.", kit.Ink))
	}
	end := kit.NewButton("End now", kit.Normal, func() {
		b.ui.intent(snapshot.Intent{Kind: snapshot.SetMode, Entry: s.ID, Text: string(consent.ModeWork)})
	}).Slim()
	line := b.add(kit.ToneWarn, 180, words(), end)
	b.counts = append(b.counts, countdown{s.TrustedUntil, line, words})
}

// count goes on counting down, each second, while a line does.
func (b *banners) count() {
	b.rest()
	if len(b.counts) == 0 {
		return
	}
	b.tick = b.ui.o.Clock.After(time.Second, func() {
		b.tick = nil
		for _, c := range b.counts {
			if !c.until.After(b.ui.o.Clock.Now()) {
				b.redraw()
				return
			}
			c.line.Set(c.words()...)
		}
		b.count()
	})
}

// rest stops counting: the window has been hidden.
func (b *banners) rest() {
	if b.tick != nil {
		b.tick()
		b.tick = nil
	}
}

// add puts a line in; beside is what its button takes of the width. In a
// narrow window buttons stand below the words.
func (b *banners) add(tone kit.Tone, beside float32, spans []kit.Span, buttons ...*kit.Button) *kit.Flow {
	buttons = slices.DeleteFunc(buttons, func(o *kit.Button) bool { return o == nil })
	for _, button := range buttons {
		if button.Keys == nil {
			button.WithKeys(b.keys)
		}
	}
	if b.width >= 600 || len(buttons) < 2 && beside <= 140 {
		words := kit.NewFlow(b.width-beside, kit.Body, spans...)
		b.box.Add(kit.Banner(tone, words, buttons...))
		return words
	}
	words := kit.NewFlow(b.width-60, kit.Body, spans...)
	if len(buttons) == 0 {
		b.box.Add(kit.Banner(tone, words))
		return words
	}
	row := kit.Row(8, kit.Space())
	for _, button := range buttons {
		row.Add(button)
	}
	b.box.Add(kit.Banner(tone, kit.Column(12, words, row)))
	return words
}

// fix carries out what mends a problem: some of it is a window.
func (u *UI) fix(k snapshot.IntentKind) {
	if k == snapshot.Pair {
		u.show(snapshot.WindowPair)
		return
	}
	u.intent(snapshot.Intent{Kind: k})
}
