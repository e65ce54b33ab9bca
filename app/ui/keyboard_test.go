package ui

import (
	"image/color"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// focused says whether what has the keyboard is in sight.
func (s *stage) focused(w fyne.Window) bool {
	o, ok := w.Canvas().Focused().(fyne.CanvasObject)
	return ok && kit.Holds(w.Content(), o)
}

// A button that goes away when it was pressed by a key does not take the
// keyboard along: the list has it then, and arrows go on from there.
func TestKeyboardStaysInSight(t *testing.T) {
	s := newStage(t)
	s.undoable()
	w := s.window(snapshot.WindowActivity)
	a := s.u.activity
	w.Canvas().Focus(a.rows)
	keyOn(w, fyne.KeyDown)
	keyOn(w, fyne.KeyDown)
	w.Canvas().Focus(a.pane.undo)
	keyOn(w, fyne.KeyReturn)
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Entries[1].CanUndo, n.Entries[1].Undone = false, true
	})
	if w.Canvas().Focused() != a.rows {
		t.Fatalf("after Undo %T has the keyboard", w.Canvas().Focused())
	}
	keyOn(w, fyne.KeyDown)
	if a.chosen != "e2" {
		t.Errorf("the arrow went to %q", a.chosen)
	}

	w.Canvas().Focus(a.pane.exact.text.Rows())
	keyOn(w, fyne.KeyEscape) // closes the detail
	if !s.focused(w) {
		t.Errorf("after Escape %T has the keyboard, which is not in sight", w.Canvas().Focused())
	}

	w.Canvas().Focus(s.button(w, "Pause"))
	keyOn(w, fyne.KeyReturn)
	s.snapshot(func(n *snapshot.Snapshot) { n.Paused = true })
	if b, ok := w.Canvas().Focused().(*kit.Button); !ok || b.Text() != "Resume" || !s.focused(w) {
		t.Errorf("after Pause %T has the keyboard", w.Canvas().Focused())
	}
	keyOn(w, fyne.KeyEscape)
	if s.u.open[w] {
		t.Error("Escape on a button in the head does not leave the window")
	}
}

// The question of an Undo has the keyboard, on the answer that changes nothing.
func TestUndoQuestionHasTheKeyboard(t *testing.T) {
	s := newStage(t)
	s.undoable()
	w := s.window(snapshot.WindowActivity)
	a := s.u.activity
	a.choose("e3")
	w.Canvas().Focus(a.pane.undo)
	for _, key := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyEscape} {
		keyOn(w, fyne.KeyReturn)
		s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Undo, OK: true, Question: "Undo it all the same?"}})
		if b, ok := w.Canvas().Focused().(*kit.Button); !ok || b.Text() != "Leave it" {
			t.Fatalf("%T has the keyboard", w.Canvas().Focused())
		}
		s.snapshot(func(n *snapshot.Snapshot) { n.Warnings = append(n.Warnings, "Something else.") }) // draws it anew
		if b, ok := w.Canvas().Focused().(*kit.Button); !ok || b.Text() != "Leave it" || !s.focused(w) {
			t.Fatalf("drawn anew, %T has the keyboard", w.Canvas().Focused())
		}
		s.intents()
		keyOn(w, key)
		if got := s.intents(); len(got) != 0 || has(w, "Undo it all the same?") || !s.focused(w) {
			t.Errorf("%s sent %+v; %T has the keyboard", key, got, w.Canvas().Focused())
		}
		w.Canvas().Focus(a.pane.undo)
	}
}

// The mark of the mouse goes when the window does, or another comes before it:
// the toolkit tells nobody.
func TestNoMarkOfTheMouseIsLeft(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowActivity)
	ground := func() color.Color {
		return test.WidgetRenderer(s.button(w, "Permissions")).Objects()[0].(*canvas.Rectangle).FillColor
	}
	plain := ground()
	over := func() {
		s.button(w, "Permissions").MouseIn(nil)
		if ground() == plain {
			t.Fatal("the mouse leaves no mark at all")
		}
	}
	over()
	s.tap(w, "Permissions")
	if ground() != plain {
		t.Error("a window came before it, and the mark stayed")
	}
	s.button(w, "Permissions").MouseMoved(nil)
	if ground() == plain {
		t.Error("the mouse is back and leaves no mark")
	}
	over()
	s.u.hide(w)
	s.u.show(snapshot.WindowActivity)
	if ground() != plain {
		t.Error("the window was hidden, and the mark stayed")
	}
}
