package ui

import (
	"fmt"
	"slices"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// computerPart is the screen, the mouse and the keyboard. It is there where the
// computer has them.
type computerPart struct {
	of       *settingsWindow
	each     *settingCheck
	clip     *setting
	clips    *chooser
	hide     *hidePart
	stopKey  *kit.Flow
	remote   *settingCheck
	test     *screenTest
	problems *fyne.Container
	key      string
	root     *fyne.Container
}

// The values of snapshot.Computer.Clipboard, in words.
var (
	clipValues = []string{"own", "all", "off"}
	clipWords  = []string{"What it put there itself", "All, asked each time", "Never"}
	clipShort  = []string{"Its own", "All, asked", "Never"}
)

func newComputerPart(s *settingsWindow) *computerPart {
	c := &computerPart{of: s, stopKey: kit.NewFlow(400, kit.Body), problems: kit.Column(8)}
	c.each = newSettingCheck(s, "Each action", "Ask me before every click and every text", "With a picture of where it goes. Otherwise you are asked once a session.",
		func(on bool) snapshot.Changes { return snapshot.Changes{PerAction: &on} })
	c.clips = newChooser(s.ui, s.keys, clipWords, clipValues, func(v string) { s.change(c.clip, snapshot.Changes{Clipboard: &v}) })
	c.clips.Short(clipShort)
	c.clip = newSetting(s, "Reads of the clipboard", c.clips.Segments)
	c.hide = newHidePart(s)
	c.remote = newSettingCheck(s, "Answers to cards", "Let other software answer for me",
		"Only for remote control, or where software moves the mouse for you: any program on this computer can answer cards then.",
		func(on bool) snapshot.Changes { return snapshot.Changes{Remote: &on} })
	c.test = newScreenTest(s)
	c.root = kit.Column(12, kit.Pad(12, 0, 8, 0, kit.Rule()), s.heading("Screen, mouse and keyboard", "What programs get to see, and how you keep the upper hand. Your own hands always come first.", nil),
		c.problems, c.each.root, c.clip.root, c.hide.root,
		newSetting(s, "Stops everything", c.stopKey).root,
		c.remote.root, c.test.root)
	return c
}

func (c *computerPart) draw(s snapshot.Snapshot) (changed bool) {
	now := s.Settings.Computer
	if c.root.Hidden != (now == nil) {
		c.root.Hidden, changed = now == nil, true
	}
	if now == nil {
		return changed
	}
	c.each.set(now.PerAction)
	c.remote.set(now.Remote)
	c.clips.set(now.Clipboard)
	changed = c.hide.draw(now) || changed
	changed = c.test.draw(now) || changed
	if key := fmt.Sprintf("%q %q %q", now.Problems, now.StopKey, now.StopKeyProblem); key != c.key {
		c.key, changed = key, true
		c.problems.Objects = nil
		for _, p := range now.Problems {
			c.problems.Add(kit.Note(settingsWidth-2*pagePad, kit.ToneWarn, kit.Remote(p, kit.Plain("", kit.Ink))...))
		}
		c.problems.Hidden = len(now.Problems) == 0
		switch {
		case now.StopKeyProblem != "":
			c.stopKey.Set(append([]kit.Span{kit.Bold("▲ ", kit.Warn)}, kit.Remote(now.StopKeyProblem, kit.Plain("", kit.Ink))...)...)
		case now.StopKey != "":
			c.stopKey.Set(append(kit.Remote(now.StopKey, kit.Bold("", kit.Ink)), kit.Plain(", whichever program you are in", kit.Ink))...)
		default:
			c.stopKey.Set(kit.Plain("The tray and the strip at the top of the screen. The key is bound once a program uses mouse or keyboard.", kit.Ink))
		}
	}
	return changed
}

func (c *computerPart) told(t desklink.Told) {
	switch t.Intent {
	case snapshot.TestScreens:
		c.test.asked = false
	case snapshot.Change:
		if c.of.asking != nil && c.of.asking.of == c.clip {
			c.clips.told(t.OK)
		}
	}
}

// settingCheck is a setting that is on or off, with a line that explains it.
type settingCheck struct {
	*setting
	check *kit.Check
}

func newSettingCheck(s *settingsWindow, label, words, line string, to func(on bool) snapshot.Changes) *settingCheck {
	c := &settingCheck{}
	c.check = kit.NewCheck(400, s.keys, func(on bool) { s.change(c.setting, to(on)) }, kit.Plain(words, kit.Ink))
	col := kit.Column(4, c.check)
	if line != "" {
		col.Add(kit.Pad(0, 0, 0, 24, kit.NewFlow(400, kit.Small, kit.Plain(line, kit.Dim))))
	}
	c.setting = newSetting(s, label, col)
	return c
}

// set takes what holds, unless a change is on its way.
func (c *settingCheck) set(on bool) {
	if c.of.asking == nil || c.of.asking.of != c.setting {
		c.check.Set(on)
	}
}

// hidePart is the list of windows that are black in every picture.
type hidePart struct {
	*setting
	words []string
	list  *fyne.Container
	field *kit.Field
	usual *kit.Check
	which *kit.Button // shows the usual ones
	all   *kit.Flow
	whole bool
	key   string
}

// Bounds of the person's own list.
const (
	mostHidden  = 100
	longestWord = 200
)

func newHidePart(s *settingsWindow) *hidePart {
	h := &hidePart{list: kit.Column(4), field: kit.NewField("Part of a window's title, or a program"), all: kit.NewFlow(400, kit.Small)}
	add := s.button("Add", kit.Normal, func() { h.add() }).Slim()
	h.field.OnSubmitted = func(string) { h.add() }
	h.field.OnEscape = func() {
		if h.field.Text == "" {
			s.escape()
			return
		}
		h.field.SetText("")
		h.say("", true)
	}
	h.usual = kit.NewCheck(400, s.keys, func(on bool) { s.change(h.setting, snapshot.Changes{HideUsual: &on}) },
		kit.Plain("Password managers, keychain prompts, private browsing", kit.Ink))
	which, line := s.link("Show which", func() { h.whole = !h.whole; h.key = ""; s.draw() })
	h.which = which
	h.all.Hide()
	h.setting = newSetting(s, "Blacked out in pictures", kit.Column(6, h.usual, kit.Pad(0, 0, 0, 24, kit.Column(4, line, h.all)), h.list, kit.Row(8, kit.Grow(h.field), add)))
	return h
}

func (h *hidePart) add() {
	word := strings.TrimSpace(h.field.Text)
	switch {
	case word == "":
		h.say("Type a part of the window's title, or the program's name.", false)
		return
	case len(word) > longestWord:
		h.say("That is too long: a part of the title is enough.", false)
		return
	case len(h.words) >= mostHidden:
		h.say(fmt.Sprintf("The list holds %d words at most: take one off first.", mostHidden), false)
		return
	case slices.ContainsFunc(h.words, func(w string) bool { return strings.EqualFold(w, word) }):
		h.say("That is on the list already.", false)
		return
	}
	h.field.SetText("")
	h.put(append(slices.Clone(h.words), word))
}

func (h *hidePart) put(words []string) { h.of.change(h.setting, snapshot.Changes{Hide: &words}) }

func (h *hidePart) draw(c *snapshot.Computer) (changed bool) {
	if h.of.asking == nil || h.of.asking.of != h.setting {
		h.usual.Set(c.HideUsual)
	}
	key := fmt.Sprintf("%q %q %v", c.Hide, c.Usual, h.whole)
	if key == h.key {
		return false
	}
	h.key, h.words = key, c.Hide
	h.list.Objects = nil
	for i, w := range c.Hide {
		off := h.of.button("Remove", kit.Link, func() { h.put(slices.Delete(slices.Clone(h.words), i, i+1)) })
		h.list.Add(kit.Row(8, kit.Grow(kit.NewLine(300, kit.Body, 2, hiddenWord(w)...)), off))
	}
	h.list.Hidden = len(c.Hide) == 0
	h.which.SetText("Show which")
	if h.whole {
		h.which.SetText("Show fewer")
	}
	var names []string
	for _, u := range c.Usual {
		names = append(names, strings.TrimPrefix(u, "="))
	}
	h.all.Set(kit.Remote(strings.Join(names, " · "), kit.Plain("", kit.Dim))...)
	h.all.Hidden = !h.whole
	return true
}

// hiddenWord is a word of the list as a person reads it; "=" before it means a
// program's whole name.
func hiddenWord(w string) []kit.Span {
	name, program := strings.CutPrefix(w, "=")
	out := kit.Remote(name, kit.Plain("", kit.Ink))
	if program {
		out = append(out, kit.Plain(" · the program", kit.Dim))
	}
	return out
}

// screenTest clicks on every screen and says whether it hit.
type screenTest struct {
	*setting
	run   *kit.Button
	asked bool
	state *kit.Chip
	list  *fyne.Container
	key   string
}

func newScreenTest(s *settingsWindow) *screenTest {
	t := &screenTest{state: kit.NewChip("", "", kit.ToneQuiet), list: kit.Column(6)}
	t.run = s.button("Test the screens", kit.Normal, func() {
		t.asked = true
		s.send(s, snapshot.Intent{Kind: snapshot.TestScreens})
		s.draw()
	}).Slim()
	t.setting = newSetting(s, "Screen test", kit.Column(8, kit.Row(12, t.run, t.state, kit.Space()),
		kit.NewFlow(400, kit.Small, kit.Plain("Draws a mark on each screen and clicks it as a program would. It moves your mouse for a moment.", kit.Dim)), t.list))
	return t
}

func (t *screenTest) draw(c *snapshot.Computer) (changed bool) {
	t.asked = t.asked && !c.Testing
	busy := c.Testing || t.asked
	key := fmt.Sprintf("%+v %v", c.Test, busy)
	if c.Test != nil {
		key += fmt.Sprintf("%+v", *c.Test)
	}
	if key == t.key {
		return false
	}
	t.key = key
	t.run.Enable(!busy)
	t.list.Objects = nil
	t.state.Hidden = false
	switch {
	case busy:
		t.state.Set("◌", "Testing…", kit.ToneQuiet)
	case c.Test == nil:
		t.state.Hidden = true
	case c.Test.OK:
		t.state.Set("✓", visible(c.Test.Text), kit.ToneOK)
	default:
		t.state.Set("▲", "Something is off", kit.ToneWarn)
		t.list.Add(kit.NewFlow(400, kit.Body, kit.Remote(c.Test.Text, kit.Plain("", kit.Ink))...))
	}
	if c.Test != nil && !busy {
		for _, k := range c.Test.Screens {
			t.list.Add(checkLine(k))
		}
	}
	t.list.Hidden = len(t.list.Objects) == 0
	return true
}

// checkLine is one thing that was checked, with what helps where it failed.
func checkLine(k snapshot.Check) fyne.CanvasObject {
	sign := kit.Bold("✓", kit.OK)
	if !k.OK {
		sign = kit.Bold("▲", kit.Warn)
	}
	words := kit.Column(1, kit.NewLine(500, kit.Body, 2, kit.Remote(k.Name, kit.Bold("", kit.Ink))...),
		kit.NewLine(500, kit.Body, 4, kit.Remote(k.Text, kit.Plain("", kit.Dim))...))
	if k.Remedy != "" {
		words.Add(kit.NewLine(500, kit.Body, 6, append([]kit.Span{kit.Plain("What helps: ", kit.Ink)}, kit.Remote(k.Remedy, kit.Plain("", kit.Ink))...)...))
	}
	return kit.Cols(19, func(float32) []float32 { return []float32{16, 0} }, kit.NewFlow(16, kit.Body, sign), words)
}
