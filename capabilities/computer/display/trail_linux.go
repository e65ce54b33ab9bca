package display

import (
	"image"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/space"
)

// trailFades is how long a window may still be seen where it was: a compositor
// paints later than windows move, and what lay below draws itself anew when it
// gets to it.
const trailFades = 500 * time.Millisecond

// trailKept is how long a place is remembered after it faded, for a look that
// began before.
const trailKept = 30 * time.Second

// trailPlaces is how many places of one window are kept apart.
const trailPlaces = 32

// trail is where windows were until just now. Between two looks at the windows
// one may have been at any number of places; the server tells of each.
type trail struct {
	mu    sync.Mutex
	known map[xproto.Window]space.Window // children of the root window as last seen
	was   []trace
	// changed is when one was last shown, moved, enlarged or restacked: what is
	// below shows through it until it has painted itself.
	changed map[xproto.Window]time.Time
}

type trace struct {
	window space.Window // its Frame is the place
	until  time.Time
}

func newTrail() *trail {
	return &trail{known: map[xproto.Window]space.Window{}, changed: map[xproto.Window]time.Time{}}
}

// at says that top is shown as w.
func (t *trail) at(top xproto.Window, w space.Window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.known[top]; ok && before.Frame != w.Frame {
		t.fade(before)
	}
	t.known[top] = w
}

// all is the windows as they were last seen, in no order.
func (t *trail) all() space.Stack {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.AppendSeq(space.Stack{}, maps.Values(t.known))
}

func (t *trail) moved(top xproto.Window, to image.Rectangle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed[top] = time.Now()
	w, ok := t.known[top]
	if !ok {
		return
	}
	t.fade(w)
	if w.Frame == to { // restacked: where it was above others, it still shows
		return
	}
	w.Frame = to
	t.known[top] = w
	t.fade(w) // it may have gone on before the next look
}

// came says that top is shown, and whether it is known.
func (t *trail) came(top xproto.Window) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed[top] = time.Now()
	w, ok := t.known[top]
	if ok {
		t.fade(w)
	}
	return ok
}

// left says that top is shown no more.
func (t *trail) left(top xproto.Window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w, ok := t.known[top]; ok {
		t.fade(w)
	}
}

// forget says that top is no child of the root window any more.
func (t *trail) forget(top xproto.Window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, top)
	delete(t.changed, top)
}

// fade remembers w where it is; the caller has the lock.
func (t *trail) fade(w space.Window) {
	now := time.Now()
	t.was = slices.DeleteFunc(t.was, func(o trace) bool {
		return now.After(o.until.Add(trailKept)) || o.window.ID == w.ID && o.window.Frame == w.Frame
	})
	t.was = append(t.was, trace{w, now.Add(trailFades)})
	var of []int // its places, the oldest first
	for i, o := range t.was {
		if o.window.ID == w.ID {
			of = append(of, i)
		}
	}
	if len(of) > trailPlaces { // one that moves on and on: the two oldest count as one
		first, second := of[0], of[1]
		t.was[second].window.Frame = t.was[second].window.Frame.Union(t.was[first].window.Frame)
		t.was = slices.Delete(t.was, first, first+1)
	}
}

// old is the windows at the places where they were, as far as they may have
// shown there since.
func (t *trail) old(since time.Time) space.Stack {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out space.Stack
	for _, w := range t.was {
		if since.Before(w.until) {
			out = append(out, w.window)
		}
	}
	return out
}

// unpainted marks those of s that may not have painted themselves since.
func (t *trail) unpainted(s space.Stack, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := map[uint64]bool{}
	for top, at := range t.changed {
		if since.Before(at.Add(trailFades)) {
			fresh[t.known[top].ID] = true
		}
	}
	for i := range s {
		s[i].Seethrough = s[i].Seethrough || fresh[s[i].ID]
	}
}
