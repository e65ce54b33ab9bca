package space_test

import (
	"fmt"
	"image"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"localpc/capabilities/computer/space"
)

// stackOf makes windows on a small plane, some of which are to be hidden.
func stackOf(r *rand.Rand) (s space.Stack, hidden map[uint64]bool) {
	hidden = map[uint64]bool{}
	for id := range uint64(1 + r.IntN(7)) {
		x, y := r.IntN(24)-4, r.IntN(24)-4
		w := space.Window{ID: id, Frame: image.Rect(x, y, x+r.IntN(14), y+r.IntN(14)), Seethrough: r.IntN(4) == 0, Minimized: r.IntN(6) == 0}
		hidden[id] = r.IntN(2) == 0
		s = append(s, w)
	}
	return s, hidden
}

// No pixel through which a hidden window may show is left, none is blacked out
// that certainly shows nothing of one, and no two rectangles overlap.
func TestVisibleLeavesNoPixel(t *testing.T) {
	r := random()
	for range 20_000 {
		s, hidden := stackOf(r)
		area := image.Rect(r.IntN(4), r.IntN(4), 12+r.IntN(8), 12+r.IntN(8))
		black := s.Visible(area, func(w space.Window) bool { return hidden[w.ID] })
		for y := -6; y < 40; y++ {
			for x := -6; x < 40; x++ {
				p := image.Pt(x, y)
				want := 0
				for _, w := range s {
					if w.Minimized || !p.In(w.Frame) {
						continue
					}
					if hidden[w.ID] {
						want = 1
						break
					}
					if !w.Seethrough {
						break // it covers what is below
					}
				}
				if !p.In(area) {
					want = 0
				}
				got := 0
				for _, b := range black {
					if p.In(b) {
						got++
					}
				}
				if got != want {
					t.Fatalf("%v is in %d rectangles, want %d\nstack %+v\nhidden %v\narea %v\nblack %v", p, got, want, s, hidden, area, black)
				}
			}
		}
	}
}

func TestUnder(t *testing.T) {
	s := space.Stack{
		{ID: 1, Frame: image.Rect(0, 0, 10, 10), Minimized: true},
		{ID: 2, Frame: image.Rect(5, 5, 15, 15)},
		{ID: 3, Frame: image.Rect(0, 0, 20, 20)},
	}
	for p, id := range map[image.Point]uint64{{X: 1, Y: 1}: 3, {X: 5, Y: 5}: 2, {X: 15, Y: 15}: 3} {
		if w, ok := s.Under(p); !ok || w.ID != id {
			t.Errorf("under %v is %d, want %d", p, w.ID, id)
		}
	}
	if w, ok := s.Under(image.Pt(20, 20)); ok {
		t.Errorf("under the desktop's own pixel is %d", w.ID)
	}
}

func TestSame(t *testing.T) {
	w := space.Window{ID: 1, PID: 2, Class: "a", Started: 3, Title: "old", Frame: image.Rect(0, 0, 1, 1)}
	moved := w
	moved.Title, moved.Frame, moved.Focused = "new", image.Rect(5, 5, 9, 9), true
	if !w.Same(moved) {
		t.Error("a window that moved is another one")
	}
	for _, change := range []func(*space.Window){
		func(w *space.Window) { w.ID++ }, func(w *space.Window) { w.PID++ }, func(w *space.Window) { w.Class = "b" }, func(w *space.Window) { w.Started++ },
	} {
		other := w
		if change(&other); w.Same(other) {
			t.Errorf("%+v is the same as %+v", other, w)
		}
	}
}

// TestBelong: what a window belongs to, by what it says itself, and where it says
// nothing by its process.
func TestBelong(t *testing.T) {
	s := space.Stack{
		{ID: 1, PID: 10, Popup: true},           // a menu that names nobody
		{ID: 2, PID: 10, Popup: true, Owner: 3}, // one that does
		{ID: 3, PID: 10, Owner: 4},              // a dialog
		{ID: 4, PID: 10},
		{ID: 5, PID: 10},
		{ID: 6, PID: 10, Minimized: true},
		{ID: 7, PID: 20, Owner: 99},              // of what is not listed
		{ID: 8, PID: 20, Popup: true},            // another program's
		{ID: 9, PID: 30, Owner: 10},              // two of each other
		{ID: 10, PID: 30, Owner: 9},              //
		{ID: 11, Popup: true},                    // of no known process
		{ID: 12, PID: 10, Popup: true, Owner: 1}, // a menu of the first menu
		{ID: 13, PID: 40},
		{ID: 14, PID: 40, Loose: true}, // one that may be a dialog
	}
	for i := range s {
		s[i].Title = fmt.Sprint(s[i].ID)
	}
	s.Belong(slices.Clone(s))
	for i, want := range map[int][]string{0: {"3", "4", "5"}, 1: {"3", "4"}, 2: {"4"}, 3: nil, 4: nil, 6: nil, 7: {"7"}, 10: nil, 11: {"1", "3", "4", "5"}, 12: nil, 13: {"13"}} {
		var got []string
		for _, w := range s[i].Of {
			got = append(got, w.Title)
			if w.Of != nil || w.ID != 0 {
				t.Errorf("window %d belongs to one with more than it is told by", s[i].ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("window %d belongs to %v, want %v", s[i].ID, got, want)
		}
	}
	if len(s[8].Of) == 0 || s[8].Of[0].Title != "10" {
		t.Errorf("of two that belong to each other: %+v", s[8].Of)
	}
}

// What a window belongs to is told once, and a long title by its ends: a program
// with a thousand windows of long titles has a thousand menus.
func TestBelongStaysSmall(t *testing.T) {
	long := strings.Repeat("ä", 3000) + " — Private Browsing"
	var s space.Stack
	for id := range uint64(200) {
		s = append(s, space.Window{ID: 1 + id, PID: 10, Class: "a", App: "b", Title: long}, space.Window{ID: 1001 + id, PID: 10, Popup: true})
	}
	s.Belong(slices.Clone(s))
	for _, w := range s {
		if !w.Popup {
			continue
		}
		if len(w.Of) != 1 || w.Of[0].Class != "a" || w.Of[0].App != "b" || len(w.Of[0].Title) > 520 ||
			!strings.HasPrefix(w.Of[0].Title, "ää") || !strings.HasSuffix(w.Of[0].Title, " — Private Browsing") || !utf8.ValidString(w.Of[0].Title) {
			t.Fatalf("window %d belongs to %d: %+v", w.ID, len(w.Of), w.Of)
		}
	}
}
