package machine

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg" // the format of the picture that is looked at
	_ "image/png"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

const (
	// testWithin bounds a screen test.
	testWithin = time.Minute
	// settledAfter is how long screens have to stay as they are before the test
	// runs again by itself.
	settledAfter = 3 * time.Second
	// drawnWithin is how long targets may take to be on the screen.
	drawnWithin = 3 * time.Second
	// hitWithin is how long a click may take to arrive.
	hitWithin = 2 * time.Second
	// edgeGap is how far a target's middle is from the edges, device pixels.
	edgeGap = 60
)

// testScreens begins the screen test in the background; the snapshot has what
// was found.
func (c *controls) testScreens() (snapshot.Reply, error) {
	if c.exec == nil {
		return snapshot.Reply{}, sentence("There is no display here to test.")
	}
	if !c.beginTest() {
		return say("The screen test is under way."), nil
	}
	if !c.m.background(c.runTest) {
		c.endTest(nil)
	}
	return say("Testing the screens: leave mouse and keyboard alone for a moment."), nil
}

func (c *controls) beginTest() bool {
	c.mu.Lock()
	begins := !c.testing
	c.testing = true
	c.mu.Unlock()
	c.m.changed()
	return begins
}

func (c *controls) endTest(t *snapshot.ScreenTest) {
	c.mu.Lock()
	c.testing = false
	if t != nil {
		c.test = t
	}
	c.mu.Unlock()
	c.m.changed()
}

// testAgain runs the test again when the screens have changed and then stay as
// they are, where there was one, nobody is in control, and no card is open.
func (c *controls) testAgain(ctx context.Context, change int) {
	c.mu.Lock()
	before := c.test
	c.mu.Unlock()
	if before == nil {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(settledAfter):
	}
	if !c.lastChange(change) {
		return // it runs after the last one
	}
	if now, _ := c.uses(); len(now) > 0 || c.m.asks.Waiting() > 0 || !c.beginTest() {
		return
	}
	c.runTest(ctx)
}

// runTest draws targets on every screen, finds them in a picture as a program
// gets it, clicks where it shows them, and compares where the clicks came.
func (c *controls) runTest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	t := &snapshot.ScreenTest{}
	checks, err := c.checkScreens(ctx)
	t.At, t.Screens = time.Now(), checks
	off := 0
	for _, check := range checks {
		if !check.OK {
			off++
		}
	}
	switch {
	case err != nil && wire.CodeOf(err) == wire.CodePerson:
		t.Text = "The test stopped since you used mouse or keyboard. Try it again, and leave them alone for a moment."
	case err != nil && wire.CodeOf(err) != "":
		t.Text = err.Error()
	case err != nil:
		c.m.log.Error("The screen test failed", "err", err)
		t.Text = "The test could not be done; this computer's log says why."
	case off > 0:
		t.Text = fmt.Sprintf("%d of %s off: pictures and clicks do not agree there.", off, screens(len(checks)))
		for _, check := range checks {
			if !check.OK {
				t.Text += " " + check.Name + ": " + check.Text + "."
			}
		}
	default:
		t.OK, t.Text = true, screens(len(checks))+" OK"
	}
	if rerr := c.m.o.Record.Happened(context.WithoutCancel(ctx), "screen test", t.Text); rerr != nil {
		c.m.log.Error("A screen test could not be recorded", "err", rerr)
	}
	c.find(context.WithoutCancel(ctx))
	c.endTest(t)
}

func screens(n int) string {
	if n == 1 {
		return "1 screen"
	}
	return fmt.Sprintf("%d screens", n)
}

// checkScreens tests one screen after the other.
func (c *controls) checkScreens(ctx context.Context) (checks []snapshot.Check, err error) {
	if err := c.apply(ctx); err != nil {
		return nil, err
	}
	l, err := c.hands.Layout(ctx)
	if err != nil {
		return nil, err
	}
	if len(l.Screens) == 0 {
		return nil, wire.Errorf(wire.CodeNotSupported, "No screen is connected to this computer, or all are switched off.")
	}
	defer func() {
		away, cancel := context.WithTimeout(context.WithoutCancel(ctx), handsWithin)
		defer cancel()
		if terr := c.hands.Target(away, nil); terr != nil && err == nil {
			err = terr
		}
	}()
	for i, sc := range l.Screens {
		check := snapshot.Check{Name: fmt.Sprintf("Screen %d, %d × %d", i+1, sc.Device.Dx(), sc.Device.Dy())}
		if check.Text, check.OK, err = c.checkScreen(ctx, l, sc); err != nil {
			return checks, err
		}
		checks = append(checks, check)
	}
	return checks, nil
}

// targetsOf are the middle of a screen, and four places near its corners.
func targetsOf(r image.Rectangle) []image.Point {
	gap := image.Pt(min(edgeGap, r.Dx()/4), min(edgeGap, r.Dy()/4))
	in := image.Rectangle{Min: r.Min.Add(gap), Max: r.Max.Sub(gap)}
	return []image.Point{r.Min.Add(r.Max).Div(2), in.Min, {X: in.Max.X, Y: in.Min.Y}, {X: in.Min.X, Y: in.Max.Y}, in.Max}
}

// checkScreen tests one screen, one target after the other; the text says what
// was found.
func (c *controls) checkScreen(ctx context.Context, l space.Layout, sc space.Screen) (text string, ok bool, err error) {
	if err := c.hands.Target(ctx, nil); err != nil {
		return "", false, err
	}
	before, err := c.shootScreen(ctx, sc)
	if err != nil {
		return "", false, err
	}
	was, _, err := image.Decode(bytes.NewReader(before.Data))
	if err != nil {
		return "", false, err
	}
	worst := 0
	for n, at := range targetsOf(sc.Device) {
		if err := c.hands.Target(ctx, []image.Point{at}); err != nil {
			return "", false, err
		}
		shot, found, err := c.findTarget(ctx, sc, was)
		if err != nil {
			return "", false, err
		}
		if !found {
			return fmt.Sprintf("target %d of 5 is not to be seen in the picture", n+1), false, nil
		}
		aim, err := shot.view.Device(shot.at)
		if err != nil {
			return "", false, err
		}
		err = c.hands.Act(ctx, hands.Action{Kind: hands.Click, At: &aim, Button: "left", Count: 1, Layout: l.Fingerprint(), Seen: time.Now(), Test: true})
		if err != nil {
			return "", false, err
		}
		hit, came, err := c.hit(ctx)
		if err != nil {
			return "", false, err
		}
		if !came {
			return fmt.Sprintf("the click on target %d of 5 did not arrive", n+1), false, nil
		}
		// The click came where it was aimed, to a pixel; and what it was aimed at
		// is the target, to a pixel of the picture.
		if d := hit.Sub(aim); abs(d.X) > 1 || abs(d.Y) > 1 {
			return fmt.Sprintf("the click on target %d of 5 came %d right and %d below of where it was aimed", n+1, d.X, d.Y), false, nil
		}
		pixel := (shot.view.Area.Dx() + shot.view.Size.X - 1) / shot.view.Size.X
		d := hit.Sub(at)
		if abs(d.X) > pixel || abs(d.Y) > pixel {
			return fmt.Sprintf("target %d of 5 is shown %d right and %d below of where it is", n+1, d.X, d.Y), false, nil
		}
		worst = max(worst, abs(d.X), abs(d.Y))
	}
	return fmt.Sprintf("5 of 5 targets hit, at most %d pixels off", worst), true, nil
}

func abs(n int) int { return max(n, -n) }

// hit waits for where the click came.
func (c *controls) hit(ctx context.Context) (image.Point, bool, error) {
	for end := time.Now().Add(hitWithin); ; {
		hits, err := c.hands.Hits(ctx)
		if err != nil {
			return image.Point{}, false, err
		}
		if len(hits) > 0 {
			return hits[len(hits)-1], true, nil
		}
		if time.Now().After(end) {
			return image.Point{}, false, nil
		}
		select {
		case <-ctx.Done():
			return image.Point{}, false, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// seenTarget is a target as a picture shows it.
type seenTarget struct {
	view space.View
	at   image.Point // the picture's pixel
}

// shootScreen takes a picture as a program would get it.
func (c *controls) shootScreen(ctx context.Context, sc space.Screen) (hands.Shot, error) {
	return c.hands.Shoot(ctx, hands.Ask{ID: consent.NewID(), Area: sc.Device, Limit: space.Usual, Format: hands.PNG, Test: true, Hide: termsOf(c.m.o.Settings.Get()).Hide})
}

// findTarget takes pictures until a target is in one: what has its colour, and
// had not before.
func (c *controls) findTarget(ctx context.Context, sc space.Screen, was image.Image) (seenTarget, bool, error) {
	for end := time.Now().Add(drawnWithin); ; {
		shot, err := c.shootScreen(ctx, sc)
		if err != nil {
			return seenTarget{}, false, err
		}
		img, _, err := image.Decode(bytes.NewReader(shot.Data))
		if err != nil {
			return seenTarget{}, false, err
		}
		if at, ok := middleOf(img, was); ok {
			return seenTarget{shot.View, at}, true, nil
		}
		if time.Now().After(end) {
			return seenTarget{}, false, nil
		}
		select {
		case <-ctx.Done():
			return seenTarget{}, false, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// middleOf is the middle of what has the colour of targets in img, and had not
// in was.
func middleOf(img, was image.Image) (image.Point, bool) {
	b := img.Bounds()
	if was.Bounds() != b {
		return image.Point{}, false
	}
	var found image.Rectangle
	n := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if isTarget(img, x, y) && !isTarget(was, x, y) {
				found = found.Union(image.Rect(x, y, x+1, y+1))
				n++
			}
		}
	}
	if n < 4 {
		return image.Point{}, false
	}
	return found.Min.Add(found.Max).Div(2).Sub(b.Min), true
}

// isTarget tells whether a pixel has the colour of targets, about.
func isTarget(img image.Image, x, y int) bool {
	r, g, b, _ := img.At(x, y).RGBA()
	want := hands.TargetColour
	near := func(v uint32, w uint8) bool { return abs(int(v>>8)-int(w)) < 48 }
	return near(r, want.R) && near(g, want.G) && near(b, want.B)
}
