package computer

import (
	"context"
	"fmt"
	"image"
	"slices"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// handsRule is the exact text of the one permission for mouse and keyboard.
const handsRule = "mouse and keyboard"

// input moves the mouse, or types.
func (c *Computer) input(ctx context.Context, s *session, p *wire.InputAction) (job, error) {
	payload := *p
	payload.SessionID, payload.WaitMS = "", 0
	if p.Action == wire.ActWait {
		return c.wait(p, payload), nil
	}
	can, err := c.able(ctx, hands.AbilityInput)
	if err != nil {
		return job{}, err
	}
	l, err := c.layout(ctx)
	if err != nil {
		return job{}, err
	}
	a, err := c.aim(s, l, p)
	if err != nil {
		return job{}, err
	}
	w := wordsOf(l, p, a)
	d := c.acts(w, l, can)
	d.Payload = []any{"input", payload}
	j := job{d: d, marks: a.Path, blind: !can.Windows}
	pointer := a.At == nil && pointed(a.Kind)
	var cant error // act where the pointer is now
	switch {
	case a.At != nil:
		j.marks = []image.Point{*a.At}
	case pointer:
		at, err := c.o.Hands.Cursor(ctx)
		if err != nil {
			return job{}, err
		}
		if cant = s.check(l, p, at, at, &a); cant != nil {
			if _, ok := s.showed(p); !ok {
				return job{}, cant
			}
		}
		j.marks, j.fleeting = []image.Point{at}, true
	case c.terms().PerAction && a.Kind != hands.Drag:
		j.d.Effects[0].Text, j.d.Looks = "does this once", false
		before, shown := s.showed(p)
		w := before.keyboard // its card is answered, and may have the keyboard
		if !shown && can.Windows {
			if w, err = c.focused(ctx); err != nil {
				return job{}, err
			}
		}
		if w != nil {
			j.d.Details, j.d.Looks = []string{"It goes to the window that has the keyboard: " + c.titled(*w) + "."}, true
			j.d.Effects[0].Text = "does this once, where the ring is in the picture"
			j.marks, j.fleeting, j.keyboard = []image.Point{middleOf(w.Frame)}, true, w
			// Another window is another question.
			j.d.Fingerprint += fmt.Sprintf(" keyboard %d %d %q %d", w.ID, w.PID, w.Class, w.Started)
		}
	}
	if len(a.Aim) == 0 && len(j.marks) > 0 && j.keyboard == nil && c.terms().PerAction {
		if w, ok := s.showed(p); ok {
			a.Aim = w.aim
		} else if can.Windows {
			stack, err := c.o.Hands.Windows(ctx)
			if err != nil {
				return job{}, err
			}
			a.Aim = aims(stack, j.marks)
		}
		j.aim = a.Aim
	}
	j.run = func(ctx context.Context, g consent.Grant) (capabilities.Result, error) {
		ctx, done, err := c.takeHands(ctx, s, g, !can.Windows)
		if err != nil {
			return capabilities.Result{}, err
		}
		defer done()
		a := a
		a.Keyboard = j.keyboard
		if w, ok := s.showed(p); ok && pointer && byPerson(g) {
			at := w.marks[0]
			// It is where it was when it was asked for, not where the hand left the
			// mouse that answered.
			a.Aim = nil
			if err := s.check(l, p, at, at, &a); err != nil {
				return capabilities.Result{}, err
			}
			a.At = &at
			if len(a.Aim) == 0 {
				a.Aim = w.aim
			}
		} else if cant != nil {
			return capabilities.Result{}, cant
		}
		a.Seen = s.seen()
		c.mu.Lock()
		// What has been pressed counts as held until it is let go: whether it came
		// to be pressed, or up again, is not known after an error.
		s.held = s.held || a.Kind == hands.Press
		pastes := s.pastes
		c.mu.Unlock()
		if p.Action == wire.ActType && p.Paste && pastes && len([]rune(p.Text)) >= pasteFrom && c.terms().Clipboard != hands.ClipOff {
			err = c.paste(ctx, s, p, a)
		} else {
			err = c.o.Hands.Act(ctx, a)
		}
		if ctx.Err() != nil {
			c.mu.Lock()
			c.letGo(func(other *session) bool { return other == s && s.held })
			c.mu.Unlock()
		}
		if err != nil {
			return capabilities.Result{}, c.explain(err, l, s, p)
		}
		return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: w.done, Received: int64(len(p.Text))}, nil
	}
	return j, nil
}

// acts describes what is done with mouse and keyboard: one permission for a
// session, or a question each time where the person has set it so.
func (c *Computer) acts(w words, l space.Layout, can hands.Abilities) capabilities.Description {
	d := capabilities.Description{
		Action: actAct, Title: w.title, Sentence: "%s wants to use mouse and keyboard.", Exact: w.exact,
		Details:     []string{"Your own hands come first: when you move the mouse or type, it stops at once.", "It can do with them whatever you could, in every window but those of Local PC Executor."},
		Effects:     []consent.Effect{{Kind: consent.EffectControl, Text: "moves the mouse, clicks and types"}},
		Risk:        consent.RiskNormal,
		Fingerprint: l.Fingerprint(),
		Rule:        capabilities.RuleParts{Exact: handsRule},
		Scopes:      []consent.Scope{consent.Session},
	}
	if !can.Person {
		d.Details[0] = can.Why[hands.AbilityPerson]
		if d.Details[0] == "" {
			d.Details[0] = "Your own mouse and keyboard do not pause it here. Use Pause, or Stop everything."
		}
	}
	d.Details = append(d.Details, unframed(can)...)
	if c.terms().PerAction {
		d.Sentence = "%s wants to " + w.does + "."
		d.Details, d.Effects[0].Text = nil, "does this once, where the ring is in the picture"
		d.Rule.Exact, d.Scopes, d.Looks = w.exact, nil, true
	}
	return d
}

// unframed says that nothing on the screens will show who is in control, where no
// frame can be drawn.
func unframed(a hands.Abilities) []string {
	if a.Frame {
		return nil
	}
	if why := a.Why[hands.AbilityFrame]; why != "" {
		return []string{why}
	}
	return nil
}

// pointed tells which kinds of actions go where the pointer is.
func pointed(kind string) bool {
	return kind == hands.Click || kind == hands.Press || kind == hands.Unpress || kind == hands.Scroll
}

// focused is the window that has the keyboard: a card could name no other that
// keys go to. One of this program's that is about to leave is waited for.
func (c *Computer) focused(ctx context.Context) (*space.Window, error) {
	for end := time.Now().Add(c.o.thaw); ; {
		stack, err := c.o.Hands.Windows(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(stack, func(w space.Window) bool { return w.Focused })
		switch late := time.Now().After(end); {
		case i >= 0 && !stack[i].Ours:
			return &stack[i], nil
		case late && c.asked():
			return nil, errCard()
		case late && i >= 0:
			return nil, wire.Errorf(wire.CodeOwnWindow, "A window of Local PC Executor has the keyboard, which only the person at this computer can use. Click another one first.")
		case late:
			return nil, wire.Errorf(wire.CodePictureStale, "No window has the keyboard; click one first.")
		}
		select {
		case <-time.After(lookOut):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// byPerson tells whether it was the person who allowed this very request: at its
// card, or in Activity after that had closed.
func byPerson(g consent.Grant) bool { return g.By() == "you" || g.By() == "allow-next" }

// takeHands takes the display for an action. The hand that has just allowed it
// comes to rest first.
func (c *Computer) takeHands(ctx context.Context, s *session, g consent.Grant, blind bool) (context.Context, func(), error) {
	if err := c.settled(ctx, g); err != nil {
		return nil, nil, err
	}
	if byPerson(g) {
		c.mu.Lock()
		s.answered = time.Now()
		c.mu.Unlock()
	}
	u := useOf(g, true)
	u.blind = blind
	return c.touch(ctx, s, u, c.o.thaw)
}

// settled waits a moment where a card was just answered for this: it leaves the
// screen, and the hand that answered it comes to rest.
func (c *Computer) settled(ctx context.Context, g consent.Grant) error {
	if !byPerson(g) {
		return nil
	}
	select {
	case <-time.After(c.o.settle):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// aim makes the action in device pixels, with what has to be still under them.
// The error says what can't be reached, and nothing is done.
func (c *Computer) aim(s *session, l space.Layout, p *wire.InputAction) (hands.Action, error) {
	a := actionOf(p)
	pic, known := s.picture(p.Picture)
	if p.Picture != "" && !known {
		return a, errOldPicture()
	}
	if known {
		if pic.view.Layout != l.Fingerprint() {
			return a, errScreensChanged()
		}
		a.Layout = pic.view.Layout
	}
	var points []image.Point
	if p.Coordinate != nil && p.Action != wire.ActDrag {
		points = []image.Point{{X: p.Coordinate[0], Y: p.Coordinate[1]}}
	}
	if p.Action == wire.ActDrag {
		for _, q := range p.Path {
			points = append(points, image.Pt(q[0], q[1]))
		}
	}
	for i, q := range points {
		if p.Picture != "" {
			d, err := pic.view.Device(q)
			if err != nil {
				return a, wire.Errorf(wire.CodeBounds, "The point %s.", err).With(map[string]any{"requested_coordinate": wire.Point{q.X, q.Y},
					"picture": map[string]any{"id": pic.view.ID, "size": wire.Point{pic.view.Size.X, pic.view.Size.Y}}, "displays": s.rectangles(l)})
			}
			points[i] = d
		}
		if err := s.check(l, p, q, points[i], &a); err != nil {
			return a, err
		}
	}
	if p.Action == wire.ActDrag {
		a.Path = points
	} else if len(points) > 0 {
		a.At = &points[0]
	}
	return a, nil
}

// check tells whether s reaches a device pixel, and adds to a what must still be
// under it; asked is the point as the client named it.
func (s *session) check(l space.Layout, p *wire.InputAction, asked, at image.Point, a *hands.Action) error {
	pic, known := s.picture(p.Picture)
	sc, ok := l.At(at)
	if !ok || !s.reaches(nameOf(l, sc)) && !(known && pic.shows(at, nameOf(l, sc))) {
		return s.outside(l, asked, ok)
	}
	if known && pic.stack != nil {
		a.Aim = append(a.Aim, aims(pic.stack, []image.Point{at})...)
	}
	return nil
}

// aims is what lies under each of points.
func aims(s space.Stack, points []image.Point) []hands.Aim {
	var out []hands.Aim
	for _, p := range points {
		aim := hands.Aim{Point: p}
		if w, ok := s.Under(p); ok {
			aim.Window = &w
		}
		out = append(out, aim)
	}
	return out
}

func nameOf(l space.Layout, sc space.Screen) string {
	for i, name := range names(l) {
		if l.Screens[i] == sc {
			return name
		}
	}
	return ""
}

// rectangles are the screens that the session reaches, as wire 1.1 has them in
// its details.
func (s *session) rectangles(l space.Layout) []map[string]any {
	out := []map[string]any{}
	for i, name := range names(l) {
		if r := l.Screens[i].Device; s.reaches(name) {
			out = append(out, map[string]any{"index": i, "origin": wire.Point{r.Min.X, r.Min.Y}, "size": wire.Point{r.Dx(), r.Dy()}})
		}
	}
	return out
}

func (s *session) outside(l space.Layout, asked image.Point, onScreen bool) error {
	e := wire.Errorf(wire.CodeBounds, "(%d, %d) is on no screen.", asked.X, asked.Y)
	if onScreen {
		e = wire.Errorf(wire.CodeBounds, "(%d, %d) is on a screen that the person does not share.", asked.X, asked.Y)
	}
	return e.With(map[string]any{"requested_coordinate": wire.Point{asked.X, asked.Y}, "displays": s.rectangles(l)})
}

// explain adds to an error of the hands what programs look for in it.
func (c *Computer) explain(err error, l space.Layout, s *session, p *wire.InputAction) error {
	if wire.CodeOf(err) != wire.CodeBounds {
		return err
	}
	details := map[string]any{"displays": s.rectangles(l)}
	if p.Coordinate != nil {
		details["requested_coordinate"] = *p.Coordinate
	}
	return wire.Wrap(err, wire.CodeBounds, "%s", err).With(details)
}

// clicks are the actions that click: with which button, how often.
var clicks = map[string]struct {
	button string
	count  int
}{wire.ActLeftClick: {"left", 1}, wire.ActRightClick: {"right", 1}, wire.ActMiddleClick: {"middle", 1}, wire.ActDoubleClick: {"left", 2}, wire.ActTripleClick: {"left", 3}}

// actionOf is what the hands are asked for, but for its points.
func actionOf(p *wire.InputAction) hands.Action {
	button := p.Button
	if button == "" {
		button = "left"
	}
	a := hands.Action{Modifiers: p.Modifiers}
	if k, ok := clicks[p.Action]; ok {
		a.Kind, a.Button, a.Count = hands.Click, k.button, k.count
		return a
	}
	switch p.Action {
	case wire.ActMouseMove:
		a.Kind = hands.Move
	case wire.ActMouseDown:
		a.Kind, a.Button = hands.Press, button
	case wire.ActMouseUp:
		a.Kind, a.Button = hands.Unpress, button
	case wire.ActDrag:
		a.Kind, a.Button = hands.Drag, button
	case wire.ActType:
		a.Kind, a.Text = hands.Type, p.Text
	case wire.ActKey:
		a.Kind, a.Chord, a.Repeat = hands.Key, p.Key, max(1, p.Repeat)
	case wire.ActHoldKey:
		a.Kind, a.Chord, a.Hold = hands.HoldKey, p.Key, time.Duration(p.DurationMS)*time.Millisecond
	case wire.ActScroll:
		a.Kind, a.Amount, a.Direction = hands.Scroll, 3, p.ScrollDirection
		if p.ScrollAmount != nil {
			a.Amount = *p.ScrollAmount
		}
		if a.Direction == "" {
			a.Direction = "down"
		}
	}
	return a
}

// wait sleeps: nothing is seen or done.
func (c *Computer) wait(p *wire.InputAction, payload any) job {
	for_ := time.Duration(p.DurationMS) * time.Millisecond
	d := capabilities.Description{Action: actWait, Title: "Wait", Sentence: "%s wants to wait.", Exact: "wait " + for_.String(),
		Effects: []consent.Effect{{Kind: consent.EffectOwn, Text: "waits", Own: true}}, Risk: consent.RiskLow, Payload: []any{"wait", payload}}
	return job{d: d, run: func(ctx context.Context, _ consent.Grant) (capabilities.Result, error) {
		select {
		case <-time.After(for_):
			return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "waited " + for_.String()}, nil
		case <-ctx.Done():
			return capabilities.Result{}, context.Cause(ctx)
		}
	}}
}
