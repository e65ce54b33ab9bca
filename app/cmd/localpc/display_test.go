package main

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"testing"

	"localpc/app/snapshot"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
)

// screens is a display that says what works there.
type screens struct {
	hands.Hands
	a   hands.Abilities
	err error
}

func (s *screens) Abilities(context.Context) (hands.Abilities, error) { return s.a, s.err }
func (s *screens) Layout(context.Context) (space.Layout, error) {
	return space.Layout{Screens: []space.Screen{{Device: image.Rect(-800, 0, 0, 600)}, {Device: image.Rect(0, 0, 1920, 1080), Primary: true}}}, nil
}

// What the platform is told of the display stays the same, whatever becomes of
// the display; one that did not answer yet is asked again.
func TestDisplayIsToldOnce(t *testing.T) {
	s := &screens{err: errors.New("the process did not start")}
	tell := displayOf(s, slog.New(slog.DiscardHandler))
	if d := tell(); d.Pictures || d.Input || d.Width != 0 {
		t.Errorf("before it answered: %+v", d)
	}
	s.err, s.a = nil, hands.Abilities{Pictures: true, Input: true, Windows: true}
	want := tell()
	if !want.Pictures || !want.Input || !want.Windows || want.Clipboard || want.Width != 1920 || want.Height != 1080 {
		t.Errorf("%+v", want)
	}
	s.a = hands.Abilities{}
	if d := tell(); d != want {
		t.Errorf("later: %+v", d)
	}
}

// "localpc doctor" has a line for each thing that a desktop may not give, with
// the sentence that says why, and the key that stops everything as it is bound.
func TestDoctorTellsWhatTheDisplayLacks(t *testing.T) {
	s := &screens{}
	lines := func() map[string]snapshot.Check {
		t.Helper()
		out := map[string]snapshot.Check{}
		for _, c := range (selfTest{hands: s}).atDisplay(t.Context()) {
			out[c.Name] = c
		}
		return out
	}
	names := map[string]string{"pictures": hands.AbilityPictures, "input": hands.AbilityInput, "windows": hands.AbilityWindows,
		"clipboard": hands.AbilityClipboard, "your hands": hands.AbilityPerson, "frame": hands.AbilityFrame}
	s.a = hands.Abilities{Why: map[string]string{}, StopKeyProblem: "The desktop gives no key."}
	for _, ability := range names {
		s.a.Why[ability] = "No " + ability + " here: do this."
	}
	got := lines()
	for name, ability := range names {
		if c := got[name]; c.OK || c.Text != s.a.Why[ability] {
			t.Errorf("%s, missing: %+v", name, c)
		}
	}
	if c := got["stop key"]; c.OK || c.Text != s.a.StopKeyProblem {
		t.Errorf("no stop key: %+v", c)
	}
	s.a = hands.Abilities{Pictures: true, Input: true, Windows: true, Clipboard: true, Person: true, Frame: true, StopKey: "Ctrl+Alt+Esc"}
	got = lines()
	for name := range names {
		if !got[name].OK {
			t.Errorf("%s, there: %+v", name, got[name])
		}
	}
	if c := got["stop key"]; !c.OK || c.Text != "Ctrl+Alt+Esc stops everything" {
		t.Errorf("the stop key: %+v", c)
	}
}
