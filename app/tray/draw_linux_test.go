package tray

import (
	"fmt"
	"testing"

	"localpc/app/snapshot"
)

// The tick of a capability is the one of the last snapshot, however a click's
// new state and the drawing that the click asks for fall together.
func TestTheTickIsTrueInAnyOrder(t *testing.T) {
	state := func(network string) snapshot.Snapshot {
		return snapshot.Snapshot{State: snapshot.Online, Capabilities: capabilities("ask", "ask", network)}
	}
	const slot = slotFirst + 2
	tr := New(Options{})
	items, ok := tr.build()
	if !ok {
		t.Fatal("no menu")
	}
	for _, from := range []string{"ask", "off"} {
		to := map[string]string{"ask": "off", "off": "ask"}[from]
		steps := map[string]func(){
			"update": func() { tr.Update(state(to)) },
			"redraw": func() { tr.redraw(slot) },
			"draw":   func() { tr.draw(items) },
		}
		for _, order := range [][]string{
			{"update", "redraw"}, {"redraw", "update"},
			{"update", "draw", "redraw"}, {"redraw", "draw", "update"},
		} {
			t.Run(fmt.Sprint(from, order), func(t *testing.T) {
				tr.Update(state(from))
				tr.draw(items)
				for _, step := range order {
					steps[step]()
				}
				tr.draw(items)
				if got, want := items[slot].Checked(), to != off; got != want {
					t.Errorf("ticked is %v, want %v", got, want)
				}
			})
		}
	}
}
