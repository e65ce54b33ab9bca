package computer

import (
	"context"
	"image"
	"strings"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// focus gives a window the keyboard: that is part of mouse and keyboard.
func (c *Computer) focus(ctx context.Context, s *session, p *wire.WindowFocus) (job, error) {
	can, err := c.able(ctx, hands.AbilityInput)
	if err != nil {
		return job{}, err
	}
	if _, err := c.able(ctx, hands.AbilityWindows); err != nil {
		return job{}, err
	}
	l, err := c.layout(ctx)
	if err != nil {
		return job{}, err
	}
	w, err := c.window(ctx, s, p.WindowID)
	if err != nil {
		return job{}, err
	}
	does := "give the keyboard to the window " + c.titled(w)
	if p.Raise {
		does = "bring the window " + c.titled(w) + " to the front"
	}
	d := c.acts(words{title: strings.ToUpper(does[:1]) + does[1:], does: does, exact: does}, l, can)
	d.Payload = []any{"focus", p.WindowID, p.Raise}
	return job{d: d, marks: []image.Point{middleOf(w.Frame)}, run: func(ctx context.Context, g consent.Grant) (capabilities.Result, error) {
		ctx, done, err := c.takeHands(ctx, s, g, false)
		if err != nil {
			return capabilities.Result{}, err
		}
		defer done()
		if err := c.o.Hands.Focus(ctx, w, p.Raise, s.seen()); err != nil {
			if wire.CodeOf(err) == wire.CodeWindowStale {
				err = errOldWindow(p.WindowID)
			}
			return capabilities.Result{}, err
		}
		return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "done"}, nil
	}}, nil
}
