package display

import (
	"context"
	"image"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// notes is a mover that writes down what it does, and a watcher of nobody.
type notes struct {
	at   image.Point
	done []string
	busy atomic.Bool // the person is at work
}

func (n *notes) move(_ context.Context, p image.Point) error {
	n.done = append(n.done, "move "+p.String())
	return nil
}

func (n *notes) button(_ context.Context, name string, down bool, _ int) error {
	if down {
		n.done = append(n.done, name)
	}
	return nil
}

func (n *notes) scroll(_ context.Context, direction string, _ int) error {
	n.done = append(n.done, direction)
	return nil
}

func (*notes) press(context.Context, keysym, bool) error         { return nil }
func (*notes) text(context.Context, []textSym) error             { return nil }
func (n *notes) cursor(context.Context) (image.Point, error)     { return n.at, nil }
func (*notes) close() error                                      { return nil }
func (*notes) listen(func(hands.Event))                          {}
func (n *notes) after(time.Time) bool                            { return n.busy.Load() }
func (*notes) stopKey(context.Context, bool) (bound, why string) { return "", "" }
func (*notes) person() (ok bool, why string)                     { return true, "" }
func (*notes) screen(context.Context) (space.Layout, error) {
	return space.Layout{Screens: []space.Screen{{Device: image.Rect(0, 0, 100, 100), Points: image.Rect(0, 0, 100, 100), Scale: 1}}}, nil
}

// TestClickWhereItWasChecked: where a system doesn't say where the pointer is,
// it is put where it is thought to be, which is what was checked.
func TestClickWhereItWasChecked(t *testing.T) {
	for kind, did := range map[string]string{hands.Click: "left", hands.Press: "left", hands.Scroll: "up"} {
		n := &notes{at: image.Pt(30, 40)}
		d := newActor(around{layout: n.screen, stack: func(context.Context) (space.Stack, error) { return nil, nil }}, n, n)
		if err := d.Act(t.Context(), hands.Action{Kind: kind, Direction: "up", Amount: 1}); err != nil {
			t.Fatal(err)
		}
		if want := []string{"move (30,40)", did}; !slices.Equal(n.done, want) {
			t.Errorf("%s: %q, want %q", kind, n.done, want)
		}
	}
}

// TestLetGoForThePerson: when all is let go of since the person is at work, what
// is broken off by that says so.
func TestLetGoForThePerson(t *testing.T) {
	for busy, want := range map[bool]wire.Code{true: wire.CodePerson, false: wire.CodeStopped} {
		n := &notes{}
		d := newActor(around{layout: n.screen, stack: func(context.Context) (space.Stack, error) { return nil, nil }}, n, n)
		done := make(chan error, 1)
		go func() {
			done <- d.Act(t.Context(), hands.Action{Kind: hands.HoldKey, Chord: "a", Hold: time.Minute})
		}()
		for {
			d.cut.Lock()
			begun := d.off != nil
			if begun { // in the same moment, as the two come from two places
				n.busy.Store(busy)
				d.off(wire.Errorf(wire.CodeStopped, "let go of"))
			}
			d.cut.Unlock()
			if begun {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := <-done; wire.CodeOf(err) != want {
			t.Errorf("the person at work %v: %v", busy, err)
		}
	}
}

// TestClockSetBack: the person's hands are seen though the clock was set since.
func TestClockSetBack(t *testing.T) {
	var p person
	ahead := time.Now().Add(time.Hour) // by the clock as it was
	if p.after(ahead) {
		t.Error("somebody was at work who was not")
	}
	p.pressed(time.Now())
	if !p.after(ahead) {
		t.Error("the person's hands were not seen")
	}
	d := &desk{}
	taken := time.Now()
	d.took(taken)
	// == and not Equal: with what the clock that nobody sets said.
	if got := d.looked(taken.Round(0)); got != taken {
		t.Errorf("the time of a picture: %v, not %v", got, taken)
	}
	if other := taken.Round(0).Add(1); d.looked(other) != other {
		t.Error("a time that is no picture's was changed")
	}
}
