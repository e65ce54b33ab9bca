//go:build cgo && (windows || darwin)

package display

import (
	"context"
	"image"
	"time"

	"localpc/capabilities/computer/display/robot"
	"localpc/tunnel/wire"
)

// robotMover is the mover of Windows and macOS: robotgo, and beside it what the
// system itself does better (own).
type robotMover struct{ own ownMover }

// ownMover is what robotgo does not do right on a system.
type ownMover interface {
	place(p image.Point) error
	at() (image.Point, error)
	wheel(direction string, steps int) error
	char(r rune) error
	// clicked counts clicks where programs are told of double ones; done is true
	// where it pressed, or let go, itself.
	clicked(name string, down bool, nth int) (done bool, err error)
}

func (m *robotMover) move(_ context.Context, p image.Point) error { return m.own.place(p) }

func (m *robotMover) button(_ context.Context, name string, down bool, nth int) error {
	if done, err := m.own.clicked(name, down, nth); done {
		return err
	}
	return robot.Button(name, down)
}

func (m *robotMover) scroll(_ context.Context, direction string, steps int) error {
	return m.own.wheel(direction, steps)
}

func (m *robotMover) press(_ context.Context, sym keysym, down bool) error {
	if err := robot.Key(sym, down); err != nil {
		return wire.Wrap(err, wire.CodeInvalid, "This computer has no key for that.")
	}
	return nil
}

func (m *robotMover) text(ctx context.Context, syms []textSym) error {
	for _, s := range syms {
		var err error
		switch s.any[0] {
		case symReturn, symTab, symBackSpace: // as keys: programs wait for those
			if err = robot.Key(s.any[0], true); err == nil {
				err = robot.Key(s.any[0], false)
			}
		default:
			err = m.own.char(s.r)
		}
		if err != nil {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (m *robotMover) cursor(context.Context) (image.Point, error) { return m.own.at() }

func (m *robotMover) close() error { return nil }
