package display

import (
	"context"
	"image"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/capabilities/computer/display/waytest"
	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// memory is a Kept.
type memory struct{ sync.Map }

func (m *memory) Load(name string) string {
	v, _ := m.Map.Load(name)
	s, _ := v.(string)
	return s
}

func (m *memory) Save(name, value string) error { m.Store(name, value); return nil }

// Through the RemoteDesktop portal (a stand-in of it, on a real compositor's
// screens) points go to the stream of their screen, in its points; the system
// is asked once, and with what it gave the time before; the stop key is what
// the desktop bound; and no is an error that says what to do.
func TestWaylandRemoteDesktop(t *testing.T) {
	waytest.Start(t, waytest.Options{Outputs: []string{
		"resolution 1024x700 position 0,0 scale 1", "resolution 1200x900 position -800,0 scale 1.5"}})
	desktop := waytest.NewStandIn(t)
	kept := &memory{}
	_ = kept.Save(keptInput, "earlier")
	ctx, plain := openHere(t, true)
	_ = plain.Close()
	o := Options{Kept: kept}.filled()
	p, err := openWaylandAs(ctx, o, false)
	if err != nil {
		t.Fatal(err)
	}
	h := compose(o, p)
	t.Cleanup(func() { _ = h.Close() })
	events := make(chan hands.Event, 8)
	h.Listen(func(e hands.Event) { events <- e })
	if err := h.Control(ctx, hands.Control{On: true, StopKey: true}); err != nil {
		t.Fatal(err)
	}
	if a, err := h.Abilities(ctx); err != nil || !a.Input || a.StopKey != "Ctrl+Alt+Esc" || a.Person {
		t.Errorf("abilities are %+v, %v", a, err)
	}
	desktop.Calls()
	at := image.Pt(-600, 300) // half way along the left screen's 1200 pixels
	if err := h.Act(ctx, hands.Action{Kind: hands.Click, At: &at, Modifiers: []string{"shift"}}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WAYLAND_DISPLAY", "gone") // what the keyboard can type is not known: it is tried
	if err := h.Act(ctx, hands.Action{Kind: hands.Type, Text: "é😀"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"SelectDevices types=3 persist=2 token=earlier", "SelectSources types=1 persist=<nil> token=<nil>",
		"move 42 400.17 200.17", "key 0xffe1 1", "button 0x110 1", "button 0x110 0", "key 0xffe1 0",
		"key 0xe9 1", "key 0xe9 0", "key 0x101f600 1", "key 0x101f600 0"}
	if got := desktop.Calls(); !slices.Equal(got, want) {
		t.Errorf("the desktop heard\n%q, want\n%q", got, want)
	}
	if got := kept.Load(keptInput); got != "token-1" {
		t.Errorf("kept is %q", got)
	}
	desktop.Press()
	for stopped := false; !stopped; {
		select {
		case e := <-events:
			stopped = e.Stop
		case <-time.After(waytest.Limit):
			t.Fatal("the stop key was not heard")
		}
	}
	desktop.End()
	desktop.Say(1)
	err = nil
	for end := time.Now().Add(waytest.Limit); err == nil && time.Now().Before(end); {
		err = h.Act(ctx, hands.Action{Kind: hands.Click})
	}
	if wire.CodeOf(err) != wire.CodeNotSupported {
		t.Errorf("after a no: %v", err)
	}
	desktop.Calls()
	for range 3 {
		_ = h.Act(ctx, hands.Action{Kind: hands.Click}) // fails, as before
	}
	if got := desktop.Calls(); len(got) > 0 {
		t.Errorf("right after a no the system is asked again: %q", got)
	}
}

// Where the system's question is answered with half a yes, the other half is
// refused with what is missing, the half works, and it is asked again the next
// time: what was answered so is not kept.
func TestWaylandHalfAYes(t *testing.T) {
	waytest.Start(t, waytest.Options{Outputs: []string{"resolution 1024x700 position 0,0 scale 1"}})
	desktop := waytest.NewStandIn(t)
	at := image.Pt(10, 10)
	click, text := hands.Action{Kind: hands.Click, At: &at}, hands.Action{Kind: hands.Type, Text: "a"}
	for _, c := range []struct {
		devices  uint32
		fit, not hands.Action
		says     string
	}{
		{2, click, text, "the mouse may be used, but not the keyboard"},
		{1, text, click, "the keyboard may be used, but not the mouse"},
		{0, hands.Action{}, click, "not mouse and keyboard"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), waytest.Limit)
		defer cancel()
		desktop.Give(c.devices)
		kept := &memory{}
		_ = kept.Save(keptInput, "earlier")
		o := Options{Kept: kept}.filled()
		p, err := openWaylandAs(ctx, o, false)
		if err != nil {
			t.Fatal(err)
		}
		h := compose(o, p)
		t.Cleanup(func() { _ = h.Close() })
		for range 2 {
			if err := h.Act(ctx, c.fit); c.fit.Kind != "" && err != nil {
				t.Errorf("of devices %d: %v", c.devices, err)
			}
			if err := h.Act(ctx, c.not); wire.CodeOf(err) != wire.CodeNotSupported || c.devices > 0 && !strings.Contains(err.Error(), c.says) {
				t.Errorf("of devices %d: %v", c.devices, err)
			}
		}
		if got := kept.Load(keptInput); got != "" {
			t.Errorf("of devices %d is kept %q", c.devices, got)
		}
		if c.devices == 0 {
			continue // it is not asked again before half a minute is over
		}
		desktop.Give(3)
		desktop.End()
		var late error
		for end := time.Now().Add(waytest.Limit); time.Now().Before(end); { // its end is told beside the calls
			if late = h.Act(ctx, c.not); late == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if got := kept.Load(keptInput); late != nil || got == "" {
			t.Errorf("asked again after devices %d: %v, kept is %q", c.devices, late, got)
		}
	}
}
