package display

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
)

// failing is a display whose parts stop answering after some calls, as they do
// when their caller gives up or the display goes away.
type failing struct {
	left  int // calls that are answered
	taken int // pictures whose memory is not given back
}

var errFailing = errors.New("the display went away")

func (f *failing) call() error {
	if f.left--; f.left < 0 {
		return errFailing
	}
	return nil
}

func (f *failing) layout(context.Context) (space.Layout, error) {
	r := image.Rect(0, 0, 64, 48)
	return space.Layout{Screens: []space.Screen{{Name: "one", Device: r, Points: r, Scale: 1, Primary: true}}}, f.call()
}

func (f *failing) grab(_ context.Context, area image.Rectangle, _ bool) (*raster, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	f.taken++
	pix := make([]byte, 4*area.Dx()*area.Dy())
	for i := range pix {
		pix[i] = 200
	}
	return &raster{pix: pix, stride: 4 * area.Dx(), rect: area, free: func() { f.taken-- }}, nil
}

func (f *failing) list(context.Context, time.Time) (stack, over space.Stack, err error) {
	return nil, nil, f.call()
}

func (*failing) blank(context.Context) string                    { return "" }
func (*failing) changed(func())                                  {}
func (*failing) focus(context.Context, space.Window, bool) error { return nil }
func (*failing) close()                                          {}

// Wherever a picture is broken off, that is an error and nothing worse, and no
// memory is kept.
func TestAPictureBrokenOff(t *testing.T) {
	for _, card := range []bool{false, true} {
		for left := 0; ; left++ {
			f := &failing{left: left}
			d := compose(Options{Log: slog.New(slog.DiscardHandler)}, &parts{system: "test", pictures: f, windows: f})
			_, err := d.Shoot(t.Context(), hands.Ask{ID: "a", Area: image.Rect(0, 0, 64, 48), Format: hands.PNG, Card: card})
			if f.taken != 0 {
				t.Errorf("after %d calls: %d pictures are not given back", left, f.taken)
			}
			if err == nil {
				if left < 5 {
					t.Errorf("a picture takes %d calls only", left)
				}
				break
			}
			if !errors.Is(err, errFailing) || left > 20 {
				t.Fatalf("after %d calls: %v", left, err)
			}
		}
	}
}

// A black window is named where it has a whole screen of those that the picture
// is of, whatever of ours lies above it.
func TestFilled(t *testing.T) {
	left, right := image.Rect(0, 0, 100, 80), image.Rect(100, 0, 250, 90)
	film := space.Window{ID: 1, Frame: left}
	for name, c := range map[string]struct {
		area  image.Rectangle
		stack space.Stack
		want  bool
	}{
		"a film":                 {left, space.Stack{film}, true},
		"in both screens":        {image.Rect(0, 0, 250, 90), space.Stack{film}, true},
		"beside the picture":     {right, space.Stack{film}, false},
		"below our strip":        {left, space.Stack{{ID: 2, Frame: image.Rect(20, 0, 60, 9), Ours: true}, film}, true},
		"below our whole window": {left, space.Stack{{ID: 2, Frame: left, Ours: true}, film}, true},
		"below a menu":           {left, space.Stack{{ID: 2, Frame: image.Rect(20, 0, 60, 9), Popup: true}, film}, true},
		"below a locker":         {left, space.Stack{{ID: 2, Frame: image.Rect(0, 0, 250, 90), Popup: true}, film}, false},
		"minimised":              {left, space.Stack{{ID: 1, Frame: left, Minimized: true}}, false},
		"nothing":                {left, nil, false},
	} {
		m := moment{area: c.area, stack: c.stack, layout: space.Layout{Screens: []space.Screen{{Device: left}, {Index: 1, Device: right}}}}
		if got := m.filled(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
