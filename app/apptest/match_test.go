//go:build linux

package apptest

import (
	"image"
	"strings"
	"testing"
)

// page lays words out as they stand in the text: one line below the other,
// eight pixels a letter.
func page(text string) []Word {
	var words []Word
	for y, line := range strings.Split(text, "\n") {
		x := 0
		for _, w := range strings.Split(line, " ") {
			if w != "" {
				words = append(words, Word{w, image.Rect(x*8, y*20, (x+len(w))*8, y*20+12)})
			}
			x += len(w) + 1
		}
	}
	return words
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		text, want string
		at         image.Point
		found      bool
	}{
		{"Pause\nStop everything", "Stop everything", image.Pt(0, 20), true},
		{"Pause\nStop everything", "everything", image.Pt(40, 20), true},
		{"Pause\nSt0p everyth1ng", "Stop everything", image.Pt(0, 20), true},
		{"Pause\nStop everythnng", "Stop everything", image.Pt(0, 20), true},
		{"Unpair", "Pair", image.Point{}, false},
		{"Allowed", "Allow", image.Point{}, false},
		{"Deny for this session\nDeny", "Deny", image.Pt(0, 0), true},
		{"Stop\neverything", "Stop everything", image.Point{}, false},
		{"Stop everything", "Start everyone", image.Point{}, false},
		{"Stop", "", image.Point{}, false},
	} {
		r, ok := find(page(c.text), c.want)
		if ok != c.found || ok && r.Min != c.at {
			t.Errorf("%q in %q: %v %v", c.want, c.text, r, ok)
		}
	}
}

func TestContains(t *testing.T) {
	text := "Claude wants to delete    Other\n214 files in Pictures     words\nCannot be undone"
	if !contains(page(text), "Claude wants to delete 214 files in Pictures") {
		t.Error("a sentence that wraps in its column is not found")
	}
	if contains(page(text), "Claude wants to keep 214 files in Pictures") {
		t.Error("another sentence is found")
	}
	if contains(page(text), "214 files in Pictures Can be undone") {
		t.Error("the opposite is found")
	}
	if contains(page(text), "") {
		t.Error("nothing is found")
	}
}
