package ui

import (
	"strings"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

const (
	settingsWidth = 720
	labelWidth    = 168
	labelNarrow   = 540
)

// settingsWindow changes what can be set, each thing as soon as it is given,
// and takes the program off this computer. Its controls live as long as the
// window, so that what is typed is kept.
type settingsWindow struct {
	*page
	general *generalPart
	caps    *capabilitiesPart
	desktop *computerPart
	limits  *limitsPart
	hub     *hubPart
	check   *checkPart
	data    *dataPart
	remove  *removePage

	parts  *fyne.Container // what the window shows while nothing is removed
	shown  fyne.CanvasObject
	queue  []change // to be sent, one after the other: an answer names no field
	asking *change
	focus  fyne.Focusable
}

// change is new values of settings, from one field.
type change struct {
	of *setting
	to snapshot.Changes
}

func newSettingsWindow(u *UI) *settingsWindow {
	s := &settingsWindow{}
	s.page = newPage(u, snapshot.WindowSettings, "Settings", settingsWidth, 640, s.escape)
	s.general, s.caps, s.desktop, s.limits = newGeneralPart(s), newCapabilitiesPart(s), newComputerPart(s), newLimitsPart(s)
	s.hub, s.check, s.data, s.remove = newHubPart(s), newCheckPart(s), newDataPart(s), newRemovePage(s)
	gap := func() fyne.CanvasObject { return kit.Pad(24, 0, 20, 0, kit.Rule()) }
	leave := s.button("Remove from this computer…", kit.Danger, func() { s.remove.open() })
	s.parts = kit.Column(0, s.general.root, gap(), s.caps.root, s.desktop.root, gap(), s.limits.root, gap(), s.hub.root, gap(), s.check.root, gap(), s.data.root, gap(),
		s.heading("Remove", "Takes sign-in, keys, settings and start-up off this computer. You are asked first.", nil),
		kit.Pad(12, 0, 0, 0, kit.Row(0, leave, kit.Space())))
	return s
}

// escape takes a question back, or else closes the window.
func (s *settingsWindow) escape() {
	switch {
	case s.remove.escape():
	case s.hub.sure:
		s.hub.sure = false
	default:
		s.ui.hide(s.win)
		return
	}
	s.draw()
}

func (s *settingsWindow) rest() {
	s.win.Canvas().Unfocus() // what was typed is saved
	s.page.rest()
	s.check.asked, s.desktop.test.asked, s.hub.sure = false, false, false
}

func (s *settingsWindow) told(t desklink.Told) {
	switch t.Intent {
	case snapshot.Change:
		s.desktop.told(t)
		s.saved(t)
	case snapshot.TestScreens:
		s.desktop.told(t)
		s.tell(t)
	case snapshot.Remove:
		s.remove.told(t)
	case snapshot.SetCapability:
		s.caps.told(t)
		s.tell(t)
	case snapshot.SelfTest:
		s.check.told(t)
		s.tell(t)
	default:
		s.tell(t)
	}
	s.draw()
}

// change asks for new values; what the same field asked for before and was not
// sent yet is dropped.
func (s *settingsWindow) change(of *setting, to snapshot.Changes) {
	of.say("", true)
	for i := range s.queue {
		if s.queue[i].of == of {
			s.queue[i].to = to
			return
		}
	}
	s.queue = append(s.queue, change{of, to})
	s.next()
}

func (s *settingsWindow) next() {
	if s.asking != nil || len(s.queue) == 0 {
		return
	}
	c := s.queue[0]
	s.queue, s.asking = s.queue[1:], &c
	s.send(s, snapshot.Intent{Kind: snapshot.Change, Changes: &c.to})
}

// saved takes the answer to a change.
func (s *settingsWindow) saved(t desklink.Told) {
	if s.asking == nil {
		return
	}
	of := s.asking.of
	s.asking = nil
	if t.OK {
		of.say("✓ Saved", true)
	} else {
		of.say(t.Text, false)
	}
	s.next()
}

// draw brings everything up to date with the snapshot.
func (s *settingsWindow) draw() {
	snap := s.ui.snap
	changed := s.remove.stage < removing && s.top()
	now := fyne.CanvasObject(s.parts)
	if s.remove.stage != notRemoving {
		changed = s.remove.draw(snap) || changed
		now = s.remove.root
	} else {
		for _, draw := range []func(snapshot.Snapshot) bool{s.general.draw, s.caps.draw, s.desktop.draw, s.limits.draw, s.hub.draw, s.check.draw, s.data.draw} {
			changed = draw(snap) || changed
		}
	}
	if now != s.shown {
		s.shown, changed = now, true
		s.body.Objects = []fyne.CanvasObject{now}
		s.scroll.Offset = fyne.Position{}
		s.win.Canvas().Unfocus()
	}
	if changed {
		s.refresh()
		s.ui.settle(s.win, nil)
	}
	if s.focus != nil {
		s.attend(s.focus)
		s.focus = nil
	}
}

// setting is one thing that can be set: its name, its control, and below it
// what was wrong with the last value, or that it was saved.
type setting struct {
	of    *settingsWindow
	note  *kit.Flow
	stop  func()
	root  fyne.CanvasObject
	under *fyne.Container
	bad   bool // the last value was not taken
}

// savedFor is how long "Saved" stands.
const savedFor = 3 * time.Second

func newSetting(s *settingsWindow, label string, control fyne.CanvasObject) *setting {
	t := &setting{of: s, note: kit.NewFlow(400, kit.Small)}
	t.under = kit.Pad(4, 0, 0, 0, t.note)
	t.under.Hide()
	name := kit.NewFlow(labelWidth, kit.Body, kit.Plain(label, kit.Dim))
	t.root = kit.Aside(labelWidth, labelNarrow, name, kit.Column(0, control, t.under))
	return t
}

// say tells how saving went; "" takes it back.
func (t *setting) say(line string, ok bool) {
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
	ink := kit.OK
	t.bad = !ok
	if !ok {
		ink, line = kit.Risk, "▲ "+line
	}
	if line == "" {
		t.note.Set()
	} else {
		t.note.Set(kit.Remote(line, kit.Plain("", ink))...)
	}
	t.under.Hidden = line == ""
	t.of.refresh()
	if ok && line != "" {
		t.stop = t.of.ui.o.Clock.After(savedFor, func() {
			t.stop = nil
			t.say("", true)
		})
	}
}

// textSetting is one that is typed. It is saved by Enter, or when the keyboard
// goes elsewhere; Escape puts the old value back.
type textSetting struct {
	*setting
	field *kit.Field
	shown string // what the settings had when the field last held just that
	sent  string // what was asked for last
	// check reads what was typed; problem is one sentence.
	check func(typed string) (to snapshot.Changes, problem string)
}

func newTextSetting(s *settingsWindow, label, hint string, beside func(*kit.Field) fyne.CanvasObject, check func(string) (snapshot.Changes, string)) *textSetting {
	t := &textSetting{field: kit.NewField(hint), check: check}
	t.setting = newSetting(s, label, beside(t.field))
	t.field.OnSubmitted = func(string) { t.save() }
	t.field.OnLeave = t.save
	t.field.OnEscape = func() {
		if strings.TrimSpace(t.field.Text) == t.shown && !t.bad {
			s.escape()
			return
		}
		t.field.SetText(t.shown)
		t.sent = t.shown
		t.say("", true)
	}
	return t
}

// save asks for what was typed, if it is something else.
func (t *textSetting) save() {
	typed := strings.TrimSpace(t.field.Text)
	if !t.bad && (typed == t.shown || typed == t.sent) {
		return
	}
	t.sent = typed
	if typed == t.shown {
		t.say("", true)
		return
	}
	to, problem := t.check(typed)
	if problem != "" {
		t.say(problem, false)
		return
	}
	t.of.change(t.setting, to)
}

// set takes what holds, and leaves alone what is being typed.
func (t *textSetting) set(value string) {
	if value == t.shown {
		return
	}
	untouched := strings.TrimSpace(t.field.Text) == t.shown
	t.shown, t.sent = value, value
	if untouched {
		t.field.SetText(value)
	}
}
