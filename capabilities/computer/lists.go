package computer

import (
	"context"
	"fmt"
	"image"
	"slices"
	"strings"

	"github.com/google/uuid"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// hiddenTitle stands for the title of a window behind the curtain.
const hiddenTitle = "(hidden)"

// anySight is what lists are covered by: any screen that the session sees.
func (c *Computer) anySight(ctx context.Context, title string) (sight, error) {
	l, err := c.layout(ctx)
	return sight{layout: l, needs: names(l), some: true, title: title}, err
}

// list is a job that tells something about the screens; reach tells run which of
// them it may be about.
func (c *Computer) list(ctx context.Context, s *session, title string, payload any, run func(ctx context.Context, l space.Layout, reach func(string) bool) (wire.Type, wire.Payload, string, error)) (job, error) {
	v, err := c.anySight(ctx, title)
	if err != nil {
		return job{}, err
	}
	a, err := c.o.Hands.Abilities(ctx)
	if err != nil {
		return job{}, err
	}
	return job{d: c.sees(s, a, v, title, []any{title, payload}), run: func(ctx context.Context, g consent.Grant) (capabilities.Result, error) {
		allowed := s.share(g, v.needs)
		ctx, done, err := c.touch(ctx, s, useOf(g, false), defaultWait)
		if err != nil {
			return capabilities.Result{}, err
		}
		defer done()
		t, p, outcome, err := run(ctx, v.layout, func(name string) bool { return s.reaches(name) || slices.Contains(allowed, name) })
		return capabilities.Result{Type: t, Payload: p, Outcome: outcome}, err
	}}, nil
}

// cursor tells where the pointer is.
func (c *Computer) cursor(ctx context.Context, s *session) (job, error) {
	if _, err := c.able(ctx, hands.AbilityInput); err != nil {
		return job{}, err
	}
	return c.list(ctx, s, "See where the mouse pointer is", nil, func(ctx context.Context, l space.Layout, _ func(string) bool) (wire.Type, wire.Payload, string, error) {
		at, err := c.o.Hands.Cursor(ctx)
		if err != nil {
			return "", nil, "", err
		}
		r := &wire.CursorResponse{X: at.X, Y: at.Y}
		if sc, ok := l.At(at); ok {
			r.Monitor = sc.Index
		}
		if p, ok := s.picture(""); ok && p.view.Layout == l.Fingerprint() {
			if in, ok := p.view.Picture(at); ok {
				r.Picture, r.InPicture = p.view.ID, &wire.Point{in.X, in.Y}
			}
		}
		return wire.TypeCursorResponse, r, fmt.Sprintf("at %d, %d", at.X, at.Y), nil
	})
}

// displays lists the screens.
func (c *Computer) displays(ctx context.Context, s *session) (job, error) {
	if _, err := c.able(ctx, hands.AbilityPictures); err != nil {
		return job{}, err
	}
	return c.list(ctx, s, "List the screens", nil, func(_ context.Context, l space.Layout, _ func(string) bool) (wire.Type, wire.Payload, string, error) {
		r := &wire.DisplaysResponse{Monitors: []wire.Monitor{}}
		for i, sc := range l.Screens[:min(len(l.Screens), wire.MaxMonitors)] {
			r.Monitors = append(r.Monitors, wire.Monitor{Index: i, Name: told(names(l)[i], wire.MaxText), Primary: sc.Primary, Scale: scaleOf(sc),
				PhysicalSize: wire.Point{sc.Device.Dx(), sc.Device.Dy()}, LogicalSize: wire.Point{sc.Points.Dx(), sc.Points.Dy()}, Origin: wire.Point{sc.Device.Min.X, sc.Device.Min.Y}})
		}
		return wire.TypeDisplaysResponse, r, counted(len(r.Monitors), "screen"), nil
	})
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// windows lists them, and voids the ids of the list before.
func (c *Computer) windows(ctx context.Context, s *session, p *wire.Windows) (job, error) {
	if _, err := c.able(ctx, hands.AbilityWindows); err != nil {
		return job{}, err
	}
	payload := *p
	payload.SessionID, payload.WaitMS = "", 0
	return c.list(ctx, s, "List windows", payload, func(ctx context.Context, l space.Layout, reach func(string) bool) (wire.Type, wire.Payload, string, error) {
		stack, err := c.o.Hands.Windows(ctx)
		if err != nil {
			return "", nil, "", err
		}
		hide := c.terms().Hide
		r := &wire.WindowsResponse{Windows: []wire.Window{}}
		listed := map[string]space.Window{}
		for _, w := range stack {
			on := touching(l, w.Frame)
			switch {
			case w.Ours, w.Popup,
				w.Minimized && !p.IncludeMinimized,
				len(on) == 0 && !w.Minimized && !p.IncludeOffscreen,
				len(on) > 0 && !slices.ContainsFunc(on, reach),
				p.AppBundleID != "" && p.AppBundleID != w.Class:
				continue
			}
			if len(r.Windows) == wire.MaxWindows {
				r.Truncated = true
				break
			}
			id := "win_" + uuid.NewString()
			listed[id] = w
			item := wire.Window{WindowID: id, PID: w.PID, AppName: told(w.App, wire.MaxText), Title: told(w.Title, wire.MaxText), Bounds: boundsOf(w.Frame),
				IsFocused: w.Focused, IsMinimized: w.Minimized, IsFullscreen: w.Full}
			if hide.Hides(w) {
				item.Title = hiddenTitle
			}
			if sc, ok := l.At(middleOf(w.Frame)); ok {
				item.Monitor = sc.Index
			}
			r.Windows = append(r.Windows, item)
		}
		c.mu.Lock()
		s.listed = listed
		c.mu.Unlock()
		return wire.TypeWindowsResponse, r, counted(len(r.Windows), "window"), nil
	})
}

func middleOf(r image.Rectangle) image.Point { return r.Min.Add(r.Max).Div(2) }

// boundsOf keeps a frame within what the wire takes.
func boundsOf(r image.Rectangle) wire.Rect {
	const far = 1 << 20
	return wireRect(r.Intersect(image.Rect(-far, -far, far, far)))
}

// window finds one by the id of the newest list, as it is now.
func (c *Computer) window(ctx context.Context, s *session, id string) (space.Window, error) {
	c.mu.Lock()
	was, ok := s.listed[id]
	c.mu.Unlock()
	if !ok {
		return space.Window{}, errOldWindow(id)
	}
	stack, err := c.o.Hands.Windows(ctx)
	if err != nil {
		return space.Window{}, err
	}
	for _, w := range stack {
		if w.Same(was) {
			return w, nil
		}
	}
	return space.Window{}, errOldWindow(id)
}

func errOldWindow(id string) error {
	return wire.Errorf(wire.CodeWindowStale, "This window is not the one that was listed any more, or the list is old; list the windows again.").
		With(map[string]any{"window_id": id, "hint": "List the windows again and use the new id."})
}

// titled is a window for a person.
func (c *Computer) titled(w space.Window) string {
	title := w.Title
	if c.terms().Hide.Hides(w) {
		title = hiddenTitle
	}
	if title == "" || title == w.App {
		return w.App
	}
	return fmt.Sprintf("%q of %s", clipped(title, 80), w.App)
}

// permissions tells what the system lets this program do. It asks nobody.
func (c *Computer) permissions(ctx context.Context, p *wire.Permissions) (job, error) {
	payload := []any{"permissions", p.Permissions}
	d := capabilities.Description{Action: actCheck, Title: "Check what the display allows", Sentence: "%s wants to know whether pictures and input work here.",
		Exact: "permissions check", Effects: []consent.Effect{{Kind: consent.EffectRead, Text: "learns whether pictures and input work"}}, Risk: consent.RiskLow, Payload: payload}
	return job{d: d, run: func(ctx context.Context, _ consent.Grant) (capabilities.Result, error) {
		a, err := c.o.Hands.Abilities(ctx)
		if err != nil {
			return capabilities.Result{}, err
		}
		is := func(ok bool, else_ string) string {
			if ok {
				return "granted"
			}
			return else_
		}
		r := &wire.PermissionsResponse{Permissions: map[string]string{}}
		for _, name := range p.Permissions {
			switch name {
			case "screen_recording":
				r.Permissions[name] = is(a.Pictures, "denied")
			case "accessibility":
				r.Permissions[name] = is(a.Input, "denied")
			case "input_monitoring":
				r.Permissions[name] = is(a.Person, "unknown")
			default:
				r.Permissions[name] = "not_applicable"
			}
		}
		return capabilities.Result{Type: wire.TypePermissionsResponse, Payload: r, Outcome: "told"}, nil
	}}, nil
}

// told is what another program calls itself, as a message may have it.
func told(s string, n int) string {
	return clipped(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", " "), "\uFFFD"), n)
}

// clipped cuts s to n bytes at a whole character.
func clipped(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
