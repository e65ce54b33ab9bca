package ui

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/snapshot"
)

// wantChange takes the one change that was sent, and answers it.
func (s *stage) wantChange(want snapshot.Changes) {
	s.t.Helper()
	got := s.intents()
	if len(got) != 1 || got[0].Kind != snapshot.Change || !reflect.DeepEqual(*got[0].Changes, want) {
		s.t.Fatalf("sent %+v, want the change %+v", got, want)
	}
	s.told(snapshot.Change, true, "Saved.")
}

// computer changes what the settings say of the screen.
func (s *stage) computer(change func(*snapshot.Computer)) {
	s.snapshot(func(n *snapshot.Snapshot) {
		c := *n.Settings.Computer
		change(&c)
		n.Settings.Computer = &c
	})
}

// The person says what programs get to see, and who may answer.
func TestComputerSettings(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowSettings)
	p := s.u.settings.desktop
	on, off, own := true, false, "off"
	test.Tap(p.each.check)
	s.wantChange(snapshot.Changes{PerAction: &on})
	test.Tap(p.remote.check)
	s.wantChange(snapshot.Changes{Remote: &on})
	w.Canvas().Focus(p.clips.Segments)
	keyOn(w, fyne.KeyRight, fyne.KeyRight)
	s.clock.run(time.Second)
	s.wantChange(snapshot.Changes{Clipboard: &own})
	test.Tap(p.hide.usual)
	s.wantChange(snapshot.Changes{HideUsual: &off})

	p.hide.field.SetText("  Tax return ")
	p.hide.field.OnSubmitted("")
	list := []string{"Online banking", "=thunderbird", "Tax return"}
	s.wantChange(snapshot.Changes{Hide: &list})
	s.computer(func(c *snapshot.Computer) { c.Hide = list })
	if !has(w, "Tax return") || p.hide.field.Text != "" {
		t.Errorf("after adding, it says %q", texts(w))
	}
	for typed, line := range map[string]string{"": "Type a part", "online BANKING": "on the list already", strings.Repeat("x", 300): "too long"} {
		p.hide.field.SetText(typed)
		s.tap(w, "Add")
		if got := s.intents(); len(got) != 0 || !has(w, line) {
			t.Errorf("adding %.20q sent %+v and says %q", typed, got, texts(w))
		}
	}
	s.buttons(w, "Remove")[0].Tapped(nil)
	list = []string{"=thunderbird", "Tax return"}
	s.wantChange(snapshot.Changes{Hide: &list})
	if has(w, "keepassxc") {
		t.Error("the usual list is shown unasked")
	}
	s.tap(w, "Show which")
	if !has(w, "keepassxc · pinentry · (Private Browsing)") {
		t.Errorf("the usual list is %q", texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Settings.Computer = nil })
	if has(w, "Screen, mouse and keyboard") {
		t.Error("there is a section for a display that there is not")
	}
}

// The screen test runs once at a time and says how it went.
func TestScreenTest(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowSettings)
	s.tap(w, "Test the screens")
	s.wantIntent(snapshot.Intent{Kind: snapshot.TestScreens})
	b := s.button(w, "Test the screens")
	if !b.Disabled() || !has(w, "Testing…") {
		t.Fatalf("under way, it says %q", texts(w))
	}
	s.computer(func(c *snapshot.Computer) { c.Testing = true })
	s.told(snapshot.TestScreens, true, "3 screens OK")
	s.computer(func(c *snapshot.Computer) {
		c.Testing, c.Test = false, &snapshot.ScreenTest{OK: true, Text: "3 screens OK", Screens: []snapshot.Check{{Name: "Screen 1", OK: true, Text: "All marks were hit."}}}
	})
	if b.Disabled() || !has(w, "3 screens OK") || !has(w, "All marks were hit.") {
		t.Fatalf("at its end, it says %q", texts(w))
	}
	s.tap(w, "Test the screens")
	s.intents()
	s.told(snapshot.TestScreens, false, "A program is using the mouse: try again when it has ended.")
	if b.Disabled() || !has(w, "A program is using the mouse") {
		t.Errorf("refused, it says %q", texts(w))
	}
}
