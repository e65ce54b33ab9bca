package main

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"testing"

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
