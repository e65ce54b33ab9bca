package computer

import (
	"context"
	"fmt"
	"image"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// able wants an ability of this display; the error says why it is missing, and
// what helps.
func (c *Computer) able(ctx context.Context, what string) (hands.Abilities, error) {
	a, err := c.o.Hands.Abilities(ctx)
	if err != nil {
		return a, err
	}
	has := map[string]bool{hands.AbilityPictures: a.Pictures, hands.AbilityInput: a.Input, hands.AbilityWindows: a.Windows, hands.AbilityClipboard: a.Clipboard}
	if has[what] {
		return a, nil
	}
	why := a.Why[what]
	if why == "" {
		why = "This computer has no display that programs could use; start Local PC Executor in a desktop session."
	}
	return a, wire.Errorf(wire.CodeNotSupported, "%s", why).With(map[string]any{"feature": what, "reason": a.System})
}

// layout is the screens as they are now.
func (c *Computer) layout(ctx context.Context) (space.Layout, error) {
	l, err := c.o.Hands.Layout(ctx)
	if err == nil && len(l.Screens) == 0 {
		err = wire.Errorf(wire.CodeNotSupported, "No screen is connected to this computer, or all are switched off.")
	}
	return l, err
}

// sight is what a request would see.
type sight struct {
	layout space.Layout
	area   image.Rectangle
	window *space.Window
	// needs are the screens it is of; some: any of them is enough, and the area
	// is cut to those that are allowed.
	needs []string
	some  bool
	title string // "See screen 1"
}

// sees describes a look at the screens. Looking at several kinds of things is
// one permission, for the screens that were chosen.
func (c *Computer) sees(s *session, a hands.Abilities, v sight, exact string, payload any) capabilities.Description {
	choice := s.covering(v.needs, v.some)
	if choice == "" {
		choice = consent.JoinScreens(v.needs)
	}
	d := capabilities.Description{
		Action: actSee, Title: v.title, Sentence: "%s is requesting screen access.", Exact: exact,
		Details:     []string{"Windows on your hide list are blacked out; anything else on this screen is visible."},
		Effects:     []consent.Effect{{Kind: consent.EffectSee, Text: "sees what is on the screen"}},
		Risk:        consent.RiskNormal,
		Payload:     payload,
		Fingerprint: v.layout.Fingerprint(),
		Rule:        capabilities.RuleParts{Exact: consent.ScreensRule(choice)},
		Scopes:      []consent.Scope{consent.Session, consent.Minutes15},
		Looks:       true,
	}
	if !a.Windows {
		why := a.Why[hands.AbilityWindows]
		d.Details = []string{strings.TrimSpace("Windows can't be told apart on this display, so none is blacked out: everything on this screen is visible. " + why)}
	}
	d.Details = append(d.Details, unframed(a)...)
	chosen := consent.SplitScreens(choice)
	for i, name := range names(v.layout) {
		d.Screens = append(d.Screens, consent.Screen{Name: name, Label: label(v.layout, i), Chosen: slices.Contains(chosen, name)})
	}
	return d
}

// label is a screen for the person who chooses.
func label(l space.Layout, i int) string {
	sc := l.Screens[i]
	size := fmt.Sprintf("%d × %d", sc.Device.Dx(), sc.Device.Dy())
	if len(l.Screens) == 1 {
		return "Your screen, " + size
	}
	// Its name stands in the rule that is remembered.
	s := fmt.Sprintf("Screen %d of %d, %s, %s", i+1, len(l.Screens), size, names(l)[i])
	if sc.Primary {
		s += ", the main one"
	}
	return s
}

func number(i int) string { return strconv.Itoa(i + 1) }

// touching are the screens that r has a part of.
func touching(l space.Layout, r image.Rectangle) []string {
	var out []string
	for i, name := range names(l) {
		if r.Overlaps(l.Screens[i].Device) {
			out = append(out, name)
		}
	}
	return out
}

func rectOf(r wire.Rect) image.Rectangle { return image.Rect(r[0], r[1], r[2], r[3]) }

func wireRect(r image.Rectangle) wire.Rect { return wire.Rect{r.Min.X, r.Min.Y, r.Max.X, r.Max.Y} }

// sight finds out what a picture would be of.
func (c *Computer) sight(ctx context.Context, s *session, p *wire.Screenshot) (sight, error) {
	l, err := c.layout(ctx)
	if err != nil {
		return sight{}, err
	}
	v := sight{layout: l, title: "See screen " + number(p.Monitor)}
	switch {
	case p.WindowID != "":
		w, err := c.window(ctx, s, p.WindowID)
		if err != nil {
			return sight{}, err
		}
		v.window, v.area, v.some, v.title = &w, w.Frame, true, "See a window"
	case p.Picture != "":
		pic, ok := s.picture(p.Picture)
		if !ok {
			return sight{}, errOldPicture()
		}
		if pic.view.Layout != l.Fingerprint() {
			return sight{}, errScreensChanged()
		}
		if v.area = pic.view.DeviceArea(rectOf(*p.Region)); v.area.Empty() {
			return sight{}, wire.Errorf(wire.CodeNotSupported, "This region lies outside of the picture, which is %d × %d.", pic.view.Size.X, pic.view.Size.Y)
		}
		v.some, v.title = true, "Look closer"
	case p.Monitor == -1:
		v.area, v.some, v.title = l.Bounds(), true, "See all screens"
	case p.Monitor >= len(l.Screens):
		return sight{}, wire.Errorf(wire.CodeInvalid, "There is no monitor %d; this computer has %d, counted from 0.", p.Monitor, len(l.Screens))
	default:
		v.area, v.needs = l.Screens[p.Monitor].Device, []string{names(l)[p.Monitor]}
	}
	if p.Region != nil && p.Picture == "" {
		whole := v.area
		if v.area = v.area.Intersect(rectOf(*p.Region)); v.area.Empty() {
			return sight{}, wire.Errorf(wire.CodeNotSupported, "This region lies outside of the monitor, which has x from %d to %d and y from %d to %d.", whole.Min.X, whole.Max.X, whole.Min.Y, whole.Max.Y).
				With(map[string]any{"feature": "region", "monitor": wireRect(whole)})
		}
		v.title += ", a part"
	}
	if v.needs == nil {
		v.needs = touching(l, v.area)
	}
	if len(v.needs) == 0 {
		return sight{}, wire.Errorf(wire.CodeNotSupported, "What is asked for is not on any screen now.")
	}
	return v, nil
}

func errScreensChanged() error {
	return wire.Errorf(wire.CodePictureStale, "The screens of this computer have changed since that picture; take a new one.")
}

// screenshot is a picture.
func (c *Computer) screenshot(ctx context.Context, s *session, p *wire.Screenshot) (job, error) {
	a, err := c.able(ctx, hands.AbilityPictures)
	if err != nil {
		return job{}, err
	}
	v, err := c.sight(ctx, s, p)
	if err != nil {
		return job{}, err
	}
	payload := *p
	payload.SessionID, payload.WaitMS = "", 0
	exact := pictureWords(v)
	if v.window != nil {
		exact = "a picture of the window " + c.titled(*v.window)
	}
	return job{d: c.sees(s, a, v, exact, []any{"picture", payload}), blind: !a.Windows, run: func(ctx context.Context, g consent.Grant) (capabilities.Result, error) {
		u := useOf(g, false)
		u.blind = !a.Windows
		return c.shoot(ctx, s, v, p, g, u)
	}}, nil
}

// pictureWords say of what a picture is.
func pictureWords(v sight) string {
	var numbers []string
	var whole image.Rectangle
	for i, name := range names(v.layout) {
		if slices.Contains(v.needs, name) {
			numbers = append(numbers, number(i))
			whole = whole.Union(v.layout.Screens[i].Device)
		}
	}
	of := "your screen"
	switch n := len(numbers); {
	case n > 1 && n == len(v.layout.Screens):
		of = "all your screens"
	case n > 1:
		of = "screens " + strings.Join(numbers[:n-1], ", ") + " and " + numbers[n-1]
	case len(v.layout.Screens) > 1:
		of = "screen " + numbers[0]
	}
	if v.area == whole {
		return "a picture of " + of
	}
	from := v.area.Min.Sub(whole.Min)
	return fmt.Sprintf("a picture of a part of %s: %d × %d pixels, %d from its left edge and %d from its top", of, v.area.Dx(), v.area.Dy(), from.X, from.Y)
}

// narrow cuts what is seen to the screens that were allowed; dark are the
// others within it, and all others where a window may yet move to them.
func (v *sight) narrow(allowed []string) (dark []int, err error) {
	var seen image.Rectangle
	for i, name := range names(v.layout) {
		if slices.Contains(allowed, name) {
			seen = seen.Union(v.layout.Screens[i].Device.Intersect(v.area))
		} else {
			dark = append(dark, i)
		}
	}
	if seen.Empty() {
		var shared []string
		indexes := []int{}
		for i, name := range names(v.layout) {
			if slices.Contains(allowed, name) {
				shared, indexes = append(shared, strconv.Itoa(i)), append(indexes, i)
			}
		}
		return nil, wire.Errorf(wire.CodeDenied, "The person does not share this screen; shared: monitor %s.", strings.Join(shared, ", ")).
			With(map[string]any{"shared": indexes})
	}
	if v.window == nil {
		v.area = seen
		dark = slices.DeleteFunc(dark, func(i int) bool { return !v.layout.Screens[i].Device.Overlaps(seen) })
	}
	return dark, nil
}

// shoot takes the picture, and keeps how it lies on the screens.
func (c *Computer) shoot(ctx context.Context, s *session, v sight, p *wire.Screenshot, g consent.Grant, u use) (capabilities.Result, error) {
	allowed := s.share(g, v.needs)
	dark, err := v.narrow(allowed)
	if err != nil {
		return capabilities.Result{}, err
	}
	ask := hands.Ask{ID: uuid.NewString(), Area: v.area, Window: v.window, Dark: dark, Limit: space.Limit{Edge: p.MaxEdge, Tiles: p.MaxTiles},
		Format: p.Format, Quality: p.Quality, MaxBytes: p.MaxBytes, Exact: p.Exact, Cursor: p.IncludeCursor, Hide: c.terms().Hide}
	if ask.Format == "" {
		ask.Format = hands.JPEG
	}
	if ask.MaxBytes == 0 {
		ask.MaxBytes = wire.MaxFramePicture
	}
	if err := c.settled(ctx, g); err != nil {
		return capabilities.Result{}, err
	}
	ctx, done, err := c.touch(ctx, s, u, waitOf(p.WaitMS))
	if err != nil {
		return capabilities.Result{}, err
	}
	defer done()
	shot, err := c.o.Hands.Shoot(ctx, ask)
	if err == nil && u.blind && c.opened() > 0 {
		err = errOpened() // it may be in it
	}
	if err != nil {
		if p.WindowID != "" && wire.CodeOf(err) == wire.CodeWindowStale {
			return capabilities.Result{}, errOldWindow(p.WindowID)
		}
		return capabilities.Result{}, err
	}
	if shot.Layout.Fingerprint() != v.layout.Fingerprint() {
		return capabilities.Result{}, consent.ErrChanged
	}
	s.keep(picture{view: shot.View, stack: shot.Stack, at: shot.At, allowed: allowed})
	r := &wire.ScreenshotResponse{Picture: shot.View.ID, Image: shot.Data, MIMEType: "image/" + shot.Format, Width: shot.View.Size.X, Height: shot.View.Size.Y,
		Monitor: -1, Shows: wireRect(shot.View.Area), DisplayScale: 1}
	for _, name := range shot.Hidden[:min(len(shot.Hidden), wire.MaxWindows)] {
		r.Hidden = append(r.Hidden, told(name, wire.MaxText))
	}
	on := touching(shot.Layout, shot.View.Area)
	for i, name := range names(shot.Layout) {
		if len(on) > 0 && name == on[0] {
			sc := shot.Layout.Screens[i]
			r.DisplayScale, r.LogicalSize = scaleOf(sc), &wire.Point{sc.Points.Dx(), sc.Points.Dy()}
			if len(on) == 1 {
				r.Monitor = i
			}
		}
	}
	var notes []string
	for _, i := range dark {
		if shot.Layout.Screens[i].Device.Overlaps(shot.View.Area) {
			r.Note += fmt.Sprintf("Monitor %d is not shared by the person; it is black here. ", i)
			notes = append(notes, "Screen "+number(i)+" is not shared, so it is black.")
		}
	}
	r.Note = clipped(strings.TrimSpace(r.Note), wire.MaxText)
	res := capabilities.Result{Type: wire.TypeScreenshotResponse, Payload: r, Sent: int64(len(shot.Data)), Output: shot.Data,
		Outcome: fmt.Sprintf("%d × %d pixels, %s", r.Width, r.Height, consent.Bytes(int64(len(shot.Data))))}
	if len(shot.Hidden) > 0 {
		res.Notes = append(res.Notes, "Blacked out: "+strings.Join(shot.Hidden, ", "))
	}
	res.Notes = append(res.Notes, notes...)
	return res, nil
}

func scaleOf(sc space.Screen) float64 {
	if sc.Scale <= 0 {
		return 1
	}
	return sc.Scale
}
