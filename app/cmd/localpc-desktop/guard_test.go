//go:build linux

package main_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/app/snapshot"
)

// wished says whether an intent of a kind was sent.
func (d *desk) wished(kind snapshot.IntentKind) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range d.sent {
		if u.Intent != nil && u.Intent.Kind == kind {
			return true
		}
	}
	return false
}

// Clicks and keys that a program makes do nothing on a card, and the card says
// so; the person's own count, before and after, and with "Remote" a program's
// too.
func TestProgramsDoNotAnswerCards(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	show := func(id string) (x, y int) {
		t.Helper()
		c := command(id)
		c.Request.Deadline = time.Now().Add(10 * time.Minute)
		d.send(desklink.Down{Card: &c})
		d.shown(id)
		time.Sleep(time.Second)
		w := d.WaitWindow(soon, cardTitle)
		return w.Rect.Max.X - 24 - 30, w.Rect.Max.Y - 24 - 17
	}
	card := d.Window(cardTitle)
	x, y := show("program")
	w, _ := d.FindWindow(cardTitle)
	win := strconv.FormatUint(uint64(w.ID), 10)
	d.Type("47") // the person's, but for no window
	d.Forge("key", "--delay", "60", "--window", win, "4", "7")
	time.Sleep(time.Second)
	if n := d.answers(); n != 0 {
		t.Fatal("keys that were sent after the person had typed elsewhere gave an answer")
	}
	click := []string{"mousemove", strconv.Itoa(x), strconv.Itoa(y), "sleep", "0.2", "click", "1"}
	d.Forge(click...)
	card.WaitSentence(soon, "A program tried to click here; use your own mouse.")
	d.Screenshot("program-clicked")
	d.send(desklink.Down{Raise: &desklink.RaiseCard{}}) // the keyboard is on the card
	if !d.Until(soon, func() bool { return strings.Contains(d.Focused(), cardTitle) }) {
		t.Fatalf("%q has the keyboard", d.Focused())
	}
	d.Forge("type", "--delay", "60", "47")
	card.WaitSentence(soon, "A program tried to type here; use your own keyboard.")
	d.Forge("key", "--delay", "60", "--window", win, "4", "7") // only sent to the window
	d.Forge("click", "--window", win, "1")
	d.Forge("key", "Escape")
	time.Sleep(time.Second)
	if n := d.answers(); n != 0 {
		t.Fatalf("a program gave %d answers", n)
	}
	d.Type("47")
	if a := d.answer("program"); !a.Allow {
		t.Errorf("the person's digits gave %+v", a)
	}

	show("person")
	d.clickAllow()
	if a := d.answer("person"); !a.Allow {
		t.Errorf("the person's click gave %+v", a)
	}

	d.snapshot(func(s *snapshot.Snapshot) { s.Settings.Computer = &snapshot.Computer{Remote: true} })
	show("remote")
	d.Forge(click...)
	if a := d.answer("remote"); !a.Allow {
		t.Errorf("with software that may answer, its click gave %+v", a)
	}
}

// A program changes nothing in Settings and resumes nothing on the strip, but
// may stop: that is never held up.
func TestProgramsDoNotChangeSettings(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	d.snapshot(func(s *snapshot.Snapshot) {
		s.Capabilities = []snapshot.Capability{{Name: "shell", Label: "Commands", Extent: "off",
			Extents: []snapshot.Extent{{Value: "ask", Label: "May be asked for"}, {Value: "off", Label: "Never"}}}}
	})
	w := d.open(snapshot.WindowSettings, "Settings")
	at := w.WaitText(soon, "May be asked for")
	middle := at.Min.Add(at.Size().Div(2))
	d.Forge("mousemove", strconv.Itoa(middle.X), strconv.Itoa(middle.Y), "sleep", "0.2", "click", "1")
	w.WaitSentence(soon, "A program tried to click here")
	d.Screenshot("program-settings")
	time.Sleep(time.Second)
	if d.wished(snapshot.SetCapability) {
		t.Fatal("a program has changed what may be asked for")
	}
	w.ClickText("May be asked for")
	d.until("the change", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.SetCapability })

	d.send(desklink.Down{Show: &desklink.Show{Window: snapshot.WindowActivity}})
	d.snapshot(func(s *snapshot.Snapshot) {
		s.Paused = true
		s.Control = &snapshot.Control{Session: "s", Who: "Claude", Sees: true, Colour: "#d9480f"}
	})
	strip := d.Window(stripTitle)
	at = strip.WaitText(soon, "Resume")
	middle = at.Min.Add(at.Size().Div(2))
	d.Forge("mousemove", strconv.Itoa(middle.X), strconv.Itoa(middle.Y), "sleep", "0.2", "click", "1")
	time.Sleep(time.Second)
	if d.wished(snapshot.Resume) {
		t.Error("a program has resumed")
	}
	at = strip.WaitText(soon, "Stop")
	middle = at.Min.Add(at.Size().Div(2))
	d.Forge("mousemove", strconv.Itoa(middle.X), strconv.Itoa(middle.Y), "sleep", "0.2", "click", "1")
	d.until("Stop", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.StopAll })
	time.Sleep(time.Second)
	strip.ClickText("Resume")
	d.until("Resume", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.Resume })
}
