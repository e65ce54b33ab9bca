package computer

import (
	"context"
	"errors"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestPictureAndClick(t *testing.T) {
	r := newRig(t)
	pic := r.see(0)
	if pic.Width != 960 || pic.Height != 540 || pic.Shows != (wire.Rect{0, 0, 1920, 1080}) || pic.Monitor != 0 || pic.MIMEType != "image/jpeg" {
		t.Errorf("the picture is %+v", pic)
	}
	before := time.Now()
	if err := r.click(pic.Picture, 100, 75); err != nil {
		t.Fatal(err)
	}
	a := r.s.lastAct()
	if a.Kind != hands.Click || a.Button != "left" || a.Count != 1 || *a.At != image.Pt(201, 151) {
		t.Errorf("the click is %+v at %v", a, a.At)
	}
	if a.Layout != two().Fingerprint() || len(a.Aim) != 1 || a.Aim[0].Window == nil || a.Aim[0].Window.ID != 1 || a.Aim[0].Point != *a.At {
		t.Errorf("it is checked against %+v", a)
	}
	if a.Seen.IsZero() || a.Seen.After(before) {
		t.Errorf("the picture was seen %v", a.Seen)
	}
	// Where no window lies, it is the desktop that must still be there.
	if err := r.click(pic.Picture, 900, 500); err != nil {
		t.Fatal(err)
	}
	if a := r.s.lastAct(); len(a.Aim) != 1 || a.Aim[0].Window != nil {
		t.Errorf("the desktop: %+v", a.Aim)
	}
	// Device pixels are checked against the last picture.
	if err := r.click("", -700, 200); err != nil {
		t.Fatal(err)
	}
	if a := r.s.lastAct(); *a.At != image.Pt(-700, 200) || a.Layout == "" || a.Aim[0].Window.ID != 2 {
		t.Errorf("device pixels: %+v", a)
	}
}

func TestStalePictures(t *testing.T) {
	r := newRig(t)
	first := r.see(0)
	wantCode(t, r.click("nosuchpicture", 1, 1), wire.CodePictureStale)
	for range keptPictures {
		r.see(0)
	}
	wantCode(t, r.click(first.Picture, 1, 1), wire.CodePictureStale)
	last := r.see(0)
	r.s.set(func(s *screen) { s.layout.Screens = s.layout.Screens[:1:1] })
	wantCode(t, r.click(last.Picture, 1, 1), wire.CodePictureStale)
	wantCode(t, r.click("", 1, 1), wire.CodePictureStale)
	_, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Picture: last.Picture, Region: &wire.Rect{0, 0, 9, 9}}, r.session("DP-1"))
	wantCode(t, err, wire.CodePictureStale)
	if n := r.s.actions(); n != 0 {
		t.Errorf("%d clicks were made", n)
	}
	// Another session does not aim at this one's pictures.
	r.s.set(func(s *screen) { s.layout = two() })
	mine := r.see(0)
	r.ses = capabilitytest.NewSession(t, consent.ModeWork)
	wantCode(t, r.click(mine.Picture, 1, 1), wire.CodePictureStale)
}

func TestOutOfBounds(t *testing.T) {
	r := newRig(t)
	pic := r.see(0)
	wantCode(t, r.click(pic.Picture, 960, 10), wire.CodeBounds)
	wantCode(t, r.click(pic.Picture, -1, 10), wire.CodeBounds)
	err := r.click("", -100, 1050) // below the second screen, beside the first
	wantCode(t, err, wire.CodeBounds)
	var e *wire.Error
	if e = err.(*wire.Error); e.Details["requested_coordinate"] != (wire.Point{-100, 1050}) {
		t.Errorf("details %+v", e.Details)
	}
	if d := e.Details["displays"].([]map[string]any); len(d) != 2 || d[1]["origin"] != (wire.Point{-1280, 0}) || d[1]["size"] != (wire.Point{1280, 1024}) {
		t.Errorf("displays %+v", d)
	}
	_, err = r.do(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: wire.ActDrag, Path: []wire.Point{{0, 0}, {5000, 5}}}, r.session())
	wantCode(t, err, wire.CodeBounds)
	if n := r.s.actions(); n != 0 {
		t.Errorf("%d actions were made", n)
	}
}

func TestRegionsAndMonitors(t *testing.T) {
	r := newRig(t)
	shoot := func(p wire.Screenshot) (*wire.ScreenshotResponse, error) {
		p.SessionID = r.ses.ID
		res, err := r.do(wire.TypeScreenshot, &p, r.session("DP-1", "HDMI-1"))
		if err != nil {
			return nil, err
		}
		return res.Payload.(*wire.ScreenshotResponse), nil
	}
	all, err := shoot(wire.Screenshot{Monitor: -1})
	if err != nil || all.Shows != (wire.Rect{-1280, 0, 1920, 1080}) || all.Monitor != -1 {
		t.Errorf("all: %+v, %v", all, err)
	}
	part, err := shoot(wire.Screenshot{Monitor: 1, Region: &wire.Rect{-100, -50, 300, 60}})
	if err != nil || part.Shows != (wire.Rect{-100, 0, 0, 60}) || part.Monitor != 1 {
		t.Errorf("a region is cut to its monitor: %+v, %v", part, err)
	}
	_, err = shoot(wire.Screenshot{Monitor: 1, Region: &wire.Rect{10, 10, 20, 20}})
	wantCode(t, err, wire.CodeNotSupported)
	_, err = shoot(wire.Screenshot{Monitor: 2})
	wantCode(t, err, wire.CodeInvalid)
	if err == nil || !strings.Contains(err.Error(), "has 2") {
		t.Errorf("it says %v", err)
	}
	// A zoom is cut from the screen's own pixels, whatever the picture's size.
	small, err := shoot(wire.Screenshot{Monitor: 0, MaxEdge: 192})
	if err != nil {
		t.Fatal(err)
	}
	near, err := shoot(wire.Screenshot{Picture: small.Picture, Region: &wire.Rect{10, 10, 20, 20}})
	if err != nil || near.Shows != (wire.Rect{100, 100, 200, 200}) || near.Width != 100 {
		t.Errorf("a zoom: %+v, %v", near, err)
	}
	_, err = shoot(wire.Screenshot{Picture: small.Picture, Region: &wire.Rect{500, 500, 600, 600}})
	wantCode(t, err, wire.CodeNotSupported)
	if ask := r.s.lastAsk(); ask.MaxBytes != wire.MaxFramePicture || !slices.Equal(ask.Hide.Words, hands.Usual) {
		t.Errorf("asked %+v", ask)
	}
}

func TestOnlyTheScreensThatWereChosen(t *testing.T) {
	r := newRig(t)
	ask := &wire.Screenshot{SessionID: r.ses.ID, Monitor: -1}
	d := r.describe(wire.TypeScreenshot, ask)
	if len(d.Screens) != 2 || !d.Looks || !d.Screens[0].Chosen || d.Screens[1].Label != "Screen 2 of 2, 1280 × 1024, HDMI-1" || d.Action != "see" {
		t.Errorf("described %+v", d)
	}
	if d.Sentence != "%s is requesting screen access." || !strings.HasPrefix(d.Details[0], "Windows on your hide list are blacked out") {
		t.Errorf("%q, %q", d.Sentence, d.Details)
	}
	// One of the two was chosen: that is what "all" is from now on.
	res, err := r.do(wire.TypeScreenshot, ask, r.session("HDMI-1"))
	if err != nil || res.Payload.(*wire.ScreenshotResponse).Shows != (wire.Rect{-1280, 0, 0, 1024}) {
		t.Errorf("narrowed: %+v, %v", res.Payload, err)
	}
	only := consent.ScreensRule("HDMI-1")
	for _, covered := range []struct {
		typ wire.Type
		p   wire.Payload
	}{
		{wire.TypeScreenshot, ask},
		{wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 1}},
		{wire.TypeCursor, &wire.ComputerQuery{SessionID: r.ses.ID}},
		{wire.TypeDisplays, &wire.ComputerQuery{SessionID: r.ses.ID}},
		{wire.TypeWindows, &wire.Windows{SessionID: r.ses.ID}},
		{wire.TypeApps, &wire.Apps{SessionID: r.ses.ID}},
	} {
		if d := r.describe(covered.typ, covered.p); d.Rule.Exact != only {
			t.Errorf("%s %+v needs %q", covered.typ, covered.p, d.Rule.Exact)
		}
	}
	// The other one is asked for.
	if d := r.describe(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 0}); d.Rule.Exact != consent.ScreensRule("DP-1") {
		t.Errorf("the other screen needs %q", d.Rule.Exact)
	}
	_, err = r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 0}, r.session("HDMI-1"))
	wantCode(t, err, wire.CodeDenied)
	// Nor is it reached by mouse, and its windows are not listed.
	wantCode(t, r.click("", 10, 10), wire.CodeBounds)
	res, err = r.do(wire.TypeWindows, &wire.Windows{SessionID: r.ses.ID}, r.session("HDMI-1"))
	if err != nil {
		t.Fatal(err)
	}
	if w := res.Payload.(*wire.WindowsResponse).Windows; len(w) != 1 || w[0].PID != 102 || w[0].Title != "(hidden)" || w[0].Monitor != 1 {
		t.Errorf("listed %+v", w)
	}
	// A window that lies on both is black where it is not shared.
	r.s.set(func(s *screen) { s.stack[1].Frame = image.Rect(-200, 0, 200, 100) })
	res, _ = r.do(wire.TypeWindows, &wire.Windows{SessionID: r.ses.ID}, r.session("HDMI-1"))
	id := res.Payload.(*wire.WindowsResponse).Windows[0].WindowID
	res, err = r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, WindowID: id}, r.session("HDMI-1"))
	if ask := r.s.lastAsk(); err != nil || !slices.Equal(ask.Dark, []int{0}) || ask.Window == nil || res.Payload.(*wire.ScreenshotResponse).Note == "" {
		t.Errorf("across: %+v, %v", ask, err)
	}
	// What was allowed once is not what is remembered.
	r.c.Drop(r.ses.ID, errStopped(), true)
	if _, err = r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID}, consent.Choice{Scope: consent.Once, Screens: "DP-1"}); err != nil {
		t.Fatal(err)
	}
	if d := r.describe(wire.TypeScreenshot, ask); d.Rule.Exact != consent.ScreensRule(consent.JoinScreens([]string{"DP-1", "HDMI-1"})) {
		t.Errorf("after once all needs %q", d.Rule.Exact)
	}
}

func (r *rig) once(typ wire.Type, p wire.Payload, screens ...string) (capabilities.Result, error) {
	r.t.Helper()
	call := r.call(typ, p)
	d, err := r.c.Describe(r.t.Context(), call)
	if err != nil {
		return capabilities.Result{}, err
	}
	return r.c.Run(r.t.Context(), call, byYou(r.t, r.ses, d, consent.Choice{Scope: consent.Once, Screens: consent.JoinScreens(screens)}), nil)
}

// A screen that was allowed once is reached by what is aimed at that picture of
// it, within the picture, and by nothing else.
func TestAScreenThatWasAllowedOnce(t *testing.T) {
	r := newRig(t)
	res, err := r.once(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Region: &wire.Rect{0, 0, 400, 400}}, "DP-1")
	if err != nil {
		t.Fatal(err)
	}
	pic := res.Payload.(*wire.ScreenshotResponse).Picture
	if err := r.click(pic, 10, 10); err != nil {
		t.Errorf("in the picture: %v", err)
	}
	wantCode(t, r.click("", 500, 500), wire.CodeBounds)
	wantCode(t, r.click("", -100, 100), wire.CodeBounds)
	if res, err = r.once(wire.TypeWindows, &wire.Windows{SessionID: r.ses.ID}, "DP-1"); err != nil || len(res.Payload.(*wire.WindowsResponse).Windows) != 1 {
		t.Errorf("its windows: %+v, %v", res.Payload, err)
	}
	if _, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 1}, r.session("HDMI-1")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.click("", 10, 10), wire.CodeBounds)
	if err := r.click("", -100, 100); err != nil {
		t.Errorf("for the session: %v", err)
	}
}

// What was seen is taken away: that does not give more than there was before.
func TestSightTakenAwayWidensNothing(t *testing.T) {
	r := newRig(t)
	if _, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 1}, r.session("HDMI-1")); err != nil {
		t.Fatal(err)
	}
	r.c.Drop(r.ses.ID, errStopped(), true)
	wantCode(t, r.click("", 10, 10), wire.CodeBounds)
	wantCode(t, r.click("", -100, 100), wire.CodeBounds)
}

// Allowed without naming screens, as what it says is what is seen.
func TestAllowedAsDescribed(t *testing.T) {
	r := newRig(t)
	if _, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 0}, consent.Choice{}); err != nil {
		t.Fatal(err)
	}
	if err := r.click("", 10, 10); err != nil {
		t.Error(err)
	}
	wantCode(t, r.click("", -100, 100), wire.CodeBounds)
}

// A window may move to another screen between a look at it and its picture.
func TestAWindowThatMoves(t *testing.T) {
	r := newRig(t)
	r.see(0)
	w := r.windowsOn("DP-1")
	res, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, WindowID: w[0].WindowID}, r.session("DP-1"))
	if err != nil {
		t.Fatal(err)
	}
	if ask := r.s.lastAsk(); !slices.Equal(ask.Dark, []int{1}) {
		t.Errorf("dark are %v", ask.Dark)
	}
	if p := res.Payload.(*wire.ScreenshotResponse); p.Note != "" || len(res.Notes) != 0 {
		t.Errorf("it tells of a screen that it does not show: %q, %q", p.Note, res.Notes)
	}
	r.s.set(func(s *screen) { s.stack[0].Frame = image.Rect(-200, 0, 200, 100) })
	res, err = r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, WindowID: w[0].WindowID}, r.session("DP-1"))
	if err != nil || !strings.Contains(res.Payload.(*wire.ScreenshotResponse).Note, "Monitor 1") || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "Screen 2") {
		t.Errorf("across: %+v, %v", res, err)
	}
}

func (r *rig) windowsOn(screens ...string) []wire.Window {
	r.t.Helper()
	res, err := r.do(wire.TypeWindows, &wire.Windows{SessionID: r.ses.ID}, r.session(screens...))
	if err != nil {
		r.t.Fatal(err)
	}
	return res.Payload.(*wire.WindowsResponse).Windows
}

func TestProgramsOfOtherScreensAreNotListed(t *testing.T) {
	r := newRig(t)
	res, err := r.do(wire.TypeApps, &wire.Apps{SessionID: r.ses.ID}, r.session("DP-1"))
	if err != nil {
		t.Fatal(err)
	}
	if apps := res.Payload.(*wire.AppsResponse).Apps; len(apps) != 1 || apps[0].Name != "gedit" {
		t.Errorf("listed %+v", apps)
	}
	d := r.describe(wire.TypeApps, &wire.Apps{SessionID: r.ses.ID, IncludeBackground: true})
	if len(d.Effects) != 2 || d.Effects[1].Kind != consent.EffectRead || !strings.Contains(d.Sentence, "run unseen") {
		t.Errorf("unseen ones are described as %+v", d)
	}
}

func TestWhatDoesNotWorkHere(t *testing.T) {
	r := newRig(t)
	why := "Wayland keeps programs from this; log in with \"on Xorg\"."
	r.s.set(func(s *screen) {
		s.abilities = hands.Abilities{System: "wayland", Why: map[string]string{"pictures": why, "input": why, "windows": why, "clipboard": why}}
	})
	for typ, p := range map[wire.Type]wire.Payload{
		wire.TypeScreenshot: &wire.Screenshot{SessionID: r.ses.ID}, wire.TypeInput: &wire.InputAction{SessionID: r.ses.ID, Action: wire.ActLeftClick},
		wire.TypeWindows: &wire.Windows{SessionID: r.ses.ID}, wire.TypeClipWrite: &wire.ClipWrite{SessionID: r.ses.ID, Content: "a"},
		wire.TypeAppLaunch: &wire.AppLaunch{SessionID: r.ses.ID, ExecutablePath: "/bin/true"}, wire.TypeWindowFocus: &wire.WindowFocus{SessionID: r.ses.ID, WindowID: "win_1"},
	} {
		_, err := r.c.Describe(t.Context(), r.call(typ, p))
		wantCode(t, err, wire.CodeNotSupported)
		if err == nil || err.Error() != why {
			t.Errorf("%s says %v", typ, err)
		}
	}
	res, err := r.do(wire.TypePermissions, &wire.Permissions{SessionID: r.ses.ID, Permissions: []string{"screen_recording", "accessibility", "input_monitoring", "camera"}}, consent.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	got := res.Payload.(*wire.PermissionsResponse).Permissions
	if got["screen_recording"] != "denied" || got["accessibility"] != "denied" || got["input_monitoring"] != "unknown" || got["camera"] != "not_applicable" {
		t.Errorf("permissions %v", got)
	}
	// Pictures without windows: the card says that nothing is hidden.
	r.s.set(func(s *screen) { s.abilities.Pictures = true })
	if d := r.describe(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID}); !strings.Contains(d.Details[0], "none is blacked out") || !strings.Contains(d.Details[0], why) {
		t.Errorf("details %q", d.Details)
	}
}

// asFile lets the suite see pictures as it sees every executor's contents: each
// is a piece of the reply.
type asFile struct{ *rig }

func (a asFile) Name() string       { return a.c.Name() }
func (asFile) Types() []wire.Type   { return []wire.Type{wire.TypeFileRead} }
func (a asFile) Running(string) int { return 0 }
func (a asFile) Close() error       { return a.c.Close() }
func (a asFile) EndSession(ctx context.Context, id string) error {
	return a.c.EndSession(ctx, id)
}

func (a asFile) picture(c capabilities.Call) capabilities.Call {
	c.Type, c.Payload = wire.TypeScreenshot, &wire.Screenshot{SessionID: c.Session.ID}
	return c
}

func (a asFile) Describe(ctx context.Context, c capabilities.Call) (capabilities.Description, error) {
	return a.c.Describe(ctx, a.picture(c))
}

func (a asFile) Run(ctx context.Context, c capabilities.Call, g consent.Grant, out capabilities.Output) (capabilities.Result, error) {
	n := 1
	if c.Payload.(*wire.FileRead).Path == "many" {
		n = capabilitytest.LargeBytes/wire.MaxChunk + 1
	}
	ctx, leave, err := a.c.enter(ctx, c.Session.ID)
	if err != nil {
		return capabilities.Result{}, err
	}
	defer leave()
	var res capabilities.Result
	for range n {
		if res, err = a.c.Run(ctx, a.picture(c), g, out); err != nil {
			return res, err
		}
		if err := out.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: res.Output[:min(len(res.Output), wire.MaxChunk)]}); err != nil {
			return capabilities.Result{}, err
		}
	}
	return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: res.Outcome}, nil
}

func TestConformance(t *testing.T) {
	var last *rig
	read := func(path string) func(testing.TB, *capabilities.Session) capabilities.Call {
		return func(t testing.TB, s *capabilities.Session) capabilities.Call {
			if path == "many" {
				last.s.set(func(s *screen) { s.picture = make([]byte, wire.MaxChunk) })
			}
			return capabilitytest.NewCall(t, s, wire.TypeFileRead, &wire.FileRead{SessionID: s.ID, Path: path})
		}
	}
	capabilitytest.Run(t, capabilitytest.Suite{
		New: func(testing.TB) capabilities.Capability {
			last = newRig(t)
			return asFile{last}
		},
		Small: read("one"), Large: read("many"), Choice: consent.Choice{Scope: consent.Session, Screens: "DP-1"},
		Change: func(testing.TB, *capabilities.Session) {
			last.s.set(func(s *screen) { s.layout.Screens = s.layout.Screens[:1:1] })
		},
	})
}

// Nothing is done without a grant, whatever is asked for.
func TestNothingWithoutAGrant(t *testing.T) {
	r := newRig(t)
	id := r.windowsOn("DP-1", "HDMI-1")[0].WindowID
	dir := t.TempDir()
	touched := filepath.Join(dir, "touched")
	s := r.ses.ID
	if err := r.c.copies(t.Context(), r.c.session(s), "mine"); err != nil {
		t.Fatal(err)
	}
	payloads := map[wire.Type]wire.Payload{
		wire.TypeScreenshot: &wire.Screenshot{SessionID: s}, wire.TypeInput: &wire.InputAction{SessionID: s, Action: wire.ActLeftClick, Coordinate: &wire.Point{5, 5}},
		wire.TypeCursor: &wire.ComputerQuery{SessionID: s}, wire.TypeDisplays: &wire.ComputerQuery{SessionID: s},
		wire.TypeWindows: &wire.Windows{SessionID: s}, wire.TypeWindowFocus: &wire.WindowFocus{SessionID: s, WindowID: id}, wire.TypeApps: &wire.Apps{SessionID: s},
		wire.TypeAppLaunch: &wire.AppLaunch{SessionID: s, ExecutablePath: "touch", Args: []string{touched}},
		wire.TypeClipRead:  &wire.ClipRead{SessionID: s}, wire.TypeClipWrite: &wire.ClipWrite{SessionID: s, Content: "other"},
		wire.TypePermissions: &wire.Permissions{SessionID: s, Permissions: []string{"accessibility"}},
	}
	for _, typ := range r.c.Types() {
		p := payloads[typ]
		if p == nil {
			t.Errorf("%s is not looked at here", typ)
			continue
		}
		out := &capabilitytest.Output{}
		res, err := r.c.Run(t.Context(), r.call(typ, p), consent.Grant{}, out)
		if !errors.Is(err, consent.ErrNoGrant) || res.Payload != nil || len(out.Frames()) != 0 {
			t.Errorf("%s: %+v, %v", typ, res, err)
		}
	}
	r.s.set(func(s *screen) {
		if len(s.asks) != 0 || len(s.acts) != 0 || len(s.focused) != 0 || s.released != 0 || s.clip.Text != "mine" {
			t.Errorf("the display was touched: %d pictures, %d actions, %d focused, the clipboard has %q", len(s.asks), len(s.acts), len(s.focused), s.clip.Text)
		}
	})
	r.c.mu.Lock()
	n := len(r.c.children)
	r.c.mu.Unlock()
	if _, err := os.Stat(touched); err == nil || n != 0 {
		t.Error("a program was started")
	}
}
