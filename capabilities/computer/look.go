package computer

import (
	"context"
	"errors"
	"image"
	"slices"
	"strings"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

const (
	lookEdge    = 480 // pixels of a picture on a card
	lookQuality = 70
	mostCovers  = 32 // windows that a picture on a card names as not shown
)

// Look takes the pictures for the card of r, which asks for call: one of each
// screen that may be chosen, or one of where an action would go, with that
// marked. What can't be pictured has a note that says why.
func (c *Computer) Look(ctx context.Context, call capabilities.Call, r consent.Request) []consent.Look {
	note := func(err error) string {
		if wire.CodeOf(err) != "" {
			return err.Error()
		}
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			c.o.Log.Error("A picture for a card could not be taken", "err", err)
		}
		return "There is no picture at the moment."
	}
	failed := func(err error) []consent.Look {
		none := consent.Look{Note: note(err)}
		if len(r.Screens) == 0 {
			return []consent.Look{none}
		}
		var out []consent.Look
		for _, s := range r.Screens {
			none.Screen = s.Name
			out = append(out, none)
		}
		return out
	}
	soon, cancel := context.WithTimeout(ctx, handsWithin)
	defer cancel()
	if err := c.begin(soon); err != nil {
		return failed(err)
	}
	l, err := c.layout(soon)
	if err != nil {
		return failed(err)
	}
	a, err := c.o.Hands.Abilities(soon)
	if err != nil {
		return failed(err)
	}
	until := time.Now().Add(handsWithin)
	if a.System == hands.Wayland && r.Deadline.After(until) {
		until = r.Deadline // the desktop may ask the person about it, who reads that as long as the card is there
	}
	ctx, end := context.WithDeadline(ctx, until)
	defer end()
	if len(r.Screens) == 0 {
		j, err := c.plan(soon, call)
		if err != nil {
			return failed(err)
		}
		if w, ok := c.session(call.Session.ID).showed(call.Payload); ok {
			j.marks = w.marks
		}
		look, err := c.marked(ctx, l, j.marks)
		if err != nil {
			return failed(err)
		}
		return []consent.Look{look}
	}
	var out []consent.Look
	for _, s := range r.Screens {
		i := slices.Index(names(l), s.Name)
		if i < 0 {
			out = append(out, consent.Look{Screen: s.Name, Note: "This screen is not connected any more."})
			continue
		}
		look, err := c.lookAtArea(ctx, l.Screens[i].Device, nil)
		if err != nil {
			look = consent.Look{Note: note(err)}
		}
		look.Screen = s.Name
		out = append(out, look)
	}
	return out
}

// marked is a picture of where an action goes: half a screen around its target,
// or the whole one where it has several.
func (c *Computer) marked(ctx context.Context, l space.Layout, marks []image.Point) (consent.Look, error) {
	if len(marks) == 0 {
		return c.lookAtArea(ctx, l.Bounds(), nil)
	}
	sc, ok := l.At(marks[0])
	if !ok {
		sc = l.Screens[0]
	}
	area := sc.Device
	if len(marks) == 1 && ok {
		half := image.Pt(area.Dx()/4, area.Dy()/4)
		area = image.Rectangle{Min: marks[0].Sub(half), Max: marks[0].Add(half)}
		var shift image.Point
		shift.X = max(0, sc.Device.Min.X-area.Min.X) + min(0, sc.Device.Max.X-area.Max.X)
		shift.Y = max(0, sc.Device.Min.Y-area.Min.Y) + min(0, sc.Device.Max.Y-area.Max.Y)
		area = area.Add(shift)
	}
	return c.lookAtArea(ctx, area, marks)
}

// lookAtArea is a small picture of an area, what is hidden blacked out.
func (c *Computer) lookAtArea(ctx context.Context, area image.Rectangle, marks []image.Point) (consent.Look, error) {
	shot, err := c.o.Hands.Shoot(ctx, hands.Ask{ID: "card", Area: area, Limit: space.Limit{Edge: lookEdge}, Format: hands.JPEG, Quality: lookQuality,
		Cursor: true, Hide: c.terms().Hide, Card: true, Mark: marks})
	if err != nil {
		return consent.Look{}, err
	}
	look := consent.Look{Data: shot.Data}
	// Where a click would land says it: a cover is only the largest piece of its
	// window.
	look.Under = slices.ContainsFunc(marks, func(at image.Point) bool { w, ok := shot.Stack.Under(at); return ok && w.Ours })
	for _, cover := range shot.Covers[:min(len(shot.Covers), mostCovers)] {
		from, ok := shot.View.Picture(cover.Area.Min)
		to, last := shot.View.Picture(cover.Area.Max.Sub(image.Pt(1, 1)))
		if ok && last {
			look.Covers = append(look.Covers, consent.Cover{Min: [2]int{from.X, from.Y}, Max: [2]int{to.X + 1, to.Y + 1}, Own: cover.Own, Name: cover.Name})
		}
	}
	switch {
	case look.Under:
		look.Note = "This program's window lies over the place: move it aside, and the picture shows what is there."
	case len(shot.Hidden) > 0:
		look.Note = "Blacked out: " + strings.Join(shot.Hidden, ", ")
	}
	return look, nil
}
