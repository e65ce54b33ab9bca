//go:build linux

package portal_test

import (
	"context"
	"errors"
	"image"
	"slices"
	"testing"
	"time"

	"localpc/capabilities/computer/display/portal"
	"localpc/capabilities/computer/display/waytest"
)

// The protocol of mouse, keyboard and the global key, with a stand-in for a
// desktop that has them.
func TestProtocolOfRemoteDesktop(t *testing.T) {
	desktop := waytest.NewStandIn(t)
	ctx, p := open(t)
	s, err := p.Share(ctx, true, "earlier")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"SelectDevices types=3 persist=2 token=earlier", "SelectSources types=1 persist=<nil> token=<nil>"}; !slices.Equal(desktop.Calls(), want) {
		t.Errorf("it was not asked for %q", want)
	}
	if s.Token != "token-1" || s.Devices != portal.Keyboard|portal.Pointer || len(s.Streams) != 2 ||
		s.Streams[1] != (portal.Stream{Node: 42, Position: image.Pt(-800, 0), Size: image.Pt(800, 600), Placed: true}) {
		t.Fatalf("the session is %+v", s)
	}
	for _, err := range []error{
		s.MoveTo(ctx, 42, 12.25, 7), s.Button(ctx, portal.Right, true), s.Button(ctx, portal.Right, false),
		s.Scroll(ctx, portal.Horizontal, -2), s.Key(ctx, 0x1004e16, true), s.Key(ctx, 0x1004e16, false),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"move 42 12.25 7.00", "button 0x111 1", "button 0x111 0", "axis 1 -2", "key 0x1004e16 1", "key 0x1004e16 0"}
	if got := desktop.Calls(); !slices.Equal(got, want) {
		t.Errorf("the desktop heard %q", got)
	}
	desktop.End()
	select {
	case <-s.Ended():
	case <-time.After(waytest.Limit):
		t.Fatal("the end of the session was not heard")
	}
	if err := s.Button(ctx, portal.Left, true); !errors.Is(err, portal.ErrEnded) {
		t.Errorf("a click after the end: %v", err)
	}
}

// No is no, and a question that nobody answers goes when its time is over.
func TestProtocolOfDialogs(t *testing.T) {
	desktop := waytest.NewStandIn(t)
	ctx, p := open(t)
	desktop.Say(1)
	if _, err := p.Share(ctx, false, ""); !errors.Is(err, portal.ErrDeclined) {
		t.Errorf("declined: %v", err)
	}
	desktop.Say(3)
	desktop.Calls()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := p.Share(short, false, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("not answered: %v", err)
	}
	for end := time.Now().Add(waytest.Limit); !slices.Contains(desktop.Calls(), "Close"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the question stays open")
		}
	}
}

func TestProtocolOfTheStopKey(t *testing.T) {
	desktop := waytest.NewStandIn(t)
	ctx, p := open(t)
	pressed := make(chan struct{}, 1)
	k, err := p.Bind(ctx, "stop", "Stop everything", "CTRL+ALT+Escape", func() { pressed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	if k.Trigger != "Ctrl+Alt+Esc" || !slices.Contains(desktop.Calls(), "bind stop CTRL+ALT+Escape") {
		t.Errorf("the key is %q", k.Trigger)
	}
	desktop.Press()
	select {
	case <-pressed:
	case <-time.After(waytest.Limit):
		t.Fatal("the key was not heard")
	}
	k.Close()
}
