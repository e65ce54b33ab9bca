package display

// #include "input_linux.h"
import "C"

import (
	"context"
	"image"
	"time"

	"localpc/capabilities/computer/hands"
)

// How long a button stays down, what lies between two clicks of a double click,
// and between two steps of a drag or of the wheel: programs that look at the
// mouse once a frame are to see each.
const (
	clickTime = 8 * time.Millisecond
	clickGap  = 30 * time.Millisecond
	stepTime  = 6 * time.Millisecond
)

func (x *x11Input) mouse(ctx context.Context, a hands.Action) (err error) {
	if a.At != nil {
		x.move(a.At.X, a.At.Y)
	}
	button := x.physical(buttons[a.Button])
	switch a.Kind {
	case hands.Move:
		return x.done()
	case hands.Press:
		x.button(button, true)
		return x.done()
	case hands.Unpress:
		x.button(button, false)
		return x.done()
	}
	up, err := x.hold(ctx, a.Modifiers)
	if err != nil {
		return err
	}
	switch a.Kind {
	case hands.Click:
		for n := range a.Count {
			if n > 0 {
				if err := x.pause(ctx, a, clickGap); err != nil {
					return err
				}
			}
			if err := x.tap(ctx, a, button); err != nil {
				return err
			}
		}
	case hands.Scroll:
		wheel := x.physical(wheel[a.Direction])
		at, checked := points(a), time.Now()
		if len(at) == 0 {
			p, err := x.cursor()
			if err != nil {
				return err
			}
			at = []image.Point{p}
		}
		for range a.Amount {
			if err := x.still(ctx, a, at, &checked); err != nil {
				return err
			}
			x.button(wheel, true)
			x.button(wheel, false)
			if err := x.pause(ctx, a, stepTime); err != nil {
				return err
			}
		}
	case hands.Drag:
		if err := x.drag(ctx, a, button); err != nil {
			return err
		}
	}
	up()
	return x.done()
}

func (x *x11Input) move(px, py int) {
	_ = x.act.do(func(d *C.Display) { C.lx_move(d, C.int(px), C.int(py)) }) // done notices
}

func (x *x11Input) tap(ctx context.Context, a hands.Action, button int) error {
	x.button(button, true)
	err := x.pause(ctx, a, clickTime)
	x.button(button, false)
	return err
}

func (x *x11Input) drag(ctx context.Context, a hands.Action, button int) error {
	path := thin(a.Path)
	x.move(path[0].X, path[0].Y)
	if err := x.pause(ctx, a, stepTime); err != nil {
		return err
	}
	x.button(button, true)
	own, checked := a, time.Now()
	own.Aim = nil // what is dragged may be what was aimed at
	for i, p := range path[1:] {
		if err := x.pause(ctx, a, stepTime); err != nil {
			return err
		}
		if err := x.still(ctx, own, path[i+1:], &checked); err != nil {
			return err
		}
		x.move(p.X, p.Y)
	}
	if err := x.pause(ctx, a, 2*stepTime); err != nil {
		return err
	}
	x.button(button, false)
	return nil
}

// physical is the button that arrives as n: the person may have swapped them.
func (x *x11Input) physical(n int) int {
	var to [256]C.uchar
	count := 0
	_ = x.act.do(func(d *C.Display) { count = int(C.lx_buttons(d, &to[0])) }) // gone: done notices
	for i := range count {
		if int(to[i]) == n {
			return i + 1
		}
	}
	return n
}

// hold presses modifiers in their order; up releases them in reverse.
func (x *x11Input) hold(ctx context.Context, names []string) (up func(), err error) {
	if len(names) == 0 {
		return func() {}, nil
	}
	m, _, err := x.keyboard()
	if err != nil {
		return nil, err
	}
	var codes []byte
	for _, name := range names {
		s, ok := m.find(modifiers[name], anyGroup)
		if !ok {
			return nil, errNoKey(name)
		}
		codes = append(codes, s.code)
	}
	for _, code := range codes {
		x.key(code, true)
	}
	return func() {
		for i := range codes {
			x.key(codes[len(codes)-1-i], false)
		}
	}, ctx.Err()
}
