package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// How far a removal is.
const (
	notRemoving = iota
	asksRemoval // the page is open
	removing
	removed
)

// removeWord is typed to confirm.
const removeWord = "remove"

// removePage takes the program off this computer: it says what goes, asks what
// is kept, and wants a word to be typed, so that nobody does it by accident.
type removePage struct {
	of      *settingsWindow
	stage   int
	failed  string
	said    string // what the program said as it began
	last    desklink.Removed
	options *kit.Options
	field   *kit.Field
	remove  *kit.Button
	back    *kit.Button
	key     string
	root    *fyne.Container
}

func newRemovePage(s *settingsWindow) *removePage {
	r := &removePage{of: s, root: kit.Column(0)}
	r.options = kit.NewOptions(settingsWidth-2*pagePad, []kit.Option{
		{Icon: theme.IconNameDocument, Name: "Keep the record", Line: "What was asked, answered and done, with outputs and kept versions, stays on this computer"},
		{Icon: theme.IconNameDelete, Name: "Erase everything", Line: "The record, outputs and kept versions go, too. They can't be brought back"},
	}, 0, s.keys, func(int) {})
	r.field = kit.NewField(removeWord)
	r.field.OnEscape = s.escape
	r.field.OnChanged = func(string) { r.enable() }
	r.field.OnSubmitted = func(string) { r.submit() }
	r.remove = s.button("Remove from this computer", kit.Danger, r.submit)
	r.back = s.button("Back", kit.Normal, s.escape)
	return r
}

// end shows the last word, until the person closes the window.
func (r *removePage) end(word desklink.Removed) {
	if r.stage >= removing {
		r.stage, r.last = removed, word
		r.of.draw()
	}
}

// open shows the page, with nothing chosen or typed.
func (r *removePage) open() {
	r.stage, r.failed, r.key = asksRemoval, "", ""
	r.options.Select(0)
	r.field.SetText("")
	r.enable()
	r.of.focus = r.options
	r.of.draw()
}

// escape leaves the page, where that is still possible.
func (r *removePage) escape() bool {
	if r.stage == asksRemoval {
		r.stage = notRemoving
		return true
	}
	return r.stage == removing
}

func (r *removePage) enable() {
	r.remove.Enable(strings.EqualFold(strings.TrimSpace(r.field.Text), removeWord))
}

func (r *removePage) submit() {
	if r.stage != asksRemoval || r.remove.Disabled() {
		return
	}
	r.stage, r.failed = removing, ""
	text := "keep"
	if r.options.Selected() == 1 {
		text = "erase"
	}
	r.of.send(r.of, snapshot.Intent{Kind: snapshot.Remove, Text: text})
	r.of.draw()
}

func (r *removePage) told(t desklink.Told) {
	switch {
	case t.OK: // the program ends now, and then it is removed: the other windows have no use any more
		r.said = t.Text
		for _, w := range r.of.ui.windows() {
			if w.window() != r.of.win {
				r.of.ui.hide(w.window())
			}
		}
	case r.stage == removing:
		r.stage, r.failed = asksRemoval, t.Text
		r.field.SetText("")
		r.enable()
	}
}

// afterFirst is what a text says after its first sentence.
func afterFirst(s string) string {
	_, more, _ := strings.Cut(s, ". ")
	return more
}

func (r *removePage) draw(s snapshot.Snapshot) (changed bool) {
	key := itoa(r.stage) + r.failed + "\x00" + r.said + "\x00" + s.Settings.Data
	if key == r.key {
		return false
	}
	r.key = key
	if show(r.of.nav.root, r.stage < removing); r.stage >= removing {
		r.of.banners.box.Objects = nil // nothing else can be done any more
	}
	r.root.Objects = nil
	add := func(above float32, o fyne.CanvasObject) { r.root.Add(kit.Pad(above, 0, 0, 0, o)) }
	title := func(t string) { r.root.Add(kit.NewFlow(600, kit.Title, kit.Bold(t, kit.Ink))) }
	line := func(above float32, t string) { add(above, kit.NewFlow(600, kit.Body, kit.Plain(t, kit.Dim))) }
	switch r.stage {
	case removing:
		title("Removing…")
		line(4, "What runs is ended, the hub is told, and sign-in, keys, start-up and settings are taken away.")
		if more := afterFirst(r.said); more != "" {
			add(8, kit.NewFlow(600, kit.Body, kit.Remote(more, kit.Plain("", kit.Ink))...))
		}
		add(16, kit.Row(0, kit.NewChip("◌", "This takes a few seconds", kit.ToneQuiet), kit.Space()))
		return true
	case removed:
		if r.last.Problem == "" {
			title("Removed.")
			line(4, "Nothing of "+Name+" runs on this computer any more. You can now uninstall the package.")
		} else {
			title("Not everything could be removed")
			line(4, "This is left. Mend it, start "+Name+" again, and remove it once more.")
			add(12, kit.Note(600, kit.ToneRisk, kit.Remote(strings.ReplaceAll(r.last.Problem, "\n", "; "), kit.Plain("", kit.Ink))...))
		}
		for _, note := range append([]string{afterFirst(r.said)}, r.last.Notes...) {
			if note != "" {
				add(8, kit.NewFlow(600, kit.Body, kit.Remote(note, kit.Plain("", kit.Ink))...))
			}
		}
		done := r.of.button("Close", kit.Primary, func() { r.of.ui.hide(r.of.win) })
		add(20, kit.Row(0, done, kit.Space()))
		r.of.focus = done
		return true
	}
	title("Remove " + Name + " from this computer")
	line(4, "This ends what programs run here, and can't be undone. It takes away:")
	for _, what := range []string{
		"the pairing, your sign-in and all keys, also from the keychain: connected programs no longer reach this computer",
		"every remembered permission and all settings",
		"starting at log-in, and the background service",
		"what was added to other programs' settings for it: they are put back",
	} {
		add(6, kit.Cols(19, func(float32) []float32 { return []float32{8, 0} }, kit.NewFlow(8, kit.Body, kit.Plain("•", kit.Dim)), kit.NewFlow(560, kit.Body, kit.Plain(what, kit.Ink))))
	}
	line(12, "Your own files stay, and so does what programs made in your folders.")
	add(20, r.options)
	if s.Settings.Data != "" {
		add(8, kit.NewLine(600, kit.Small, 3, append([]kit.Span{kit.Plain("The record is in ", kit.Dim)}, kit.Remote(s.Settings.Data, kit.Plain("", kit.Dim))...)...))
	}
	add(20, kit.Column(4, kit.NewFlow(600, kit.Small, kit.Plain("To confirm, type the word "+removeWord, kit.Dim)), kit.Row(0, kit.Width(240, r.field), kit.Space())))
	if r.failed != "" {
		add(12, kit.Note(600, kit.ToneRisk, kit.Remote(r.failed, kit.Plain("", kit.Ink))...))
	}
	add(20, kit.Row(8, r.back, kit.Space(), r.remove))
	if r.failed != "" {
		r.of.focus = r.field
	}
	return true
}
