//go:build unix

package hub_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"localpc/tunnel/hub/autogpt/companiontest"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// sofa is a companion's computer with two screens, one of them left of the
// other, and what its program was asked.
type sofa struct {
	*shop
	b store.Sandbox

	mu    sync.Mutex
	asked []string // requests about the computer: type and payload
}

func newSofa(t *testing.T, change ...func(*companiontest.Options)) *sofa {
	t.Helper()
	s := &sofa{}
	s.shop = newShop(t, append([]func(*companiontest.Options){func(o *companiontest.Options) {
		o.Desktop, o.PicturesPerMinute = true, 1000
		o.Screens = []companiontest.Screen{{W: 2000, H: 1000, Scale: 1}, {X: -800, Y: 100, W: 800, H: 600, Scale: 2}}
		o.Saw = func(session string, fromHub bool, data []byte) {
			var f struct {
				Type    string
				Payload json.RawMessage
			}
			if json.Unmarshal(data, &f) != nil || session == "" || !fromHub || f.Type == "HELLO_ACK" {
				return
			}
			s.mu.Lock()
			s.asked = append(s.asked, f.Type+" "+string(f.Payload))
			s.mu.Unlock()
		}
	}}, change...)...)
	s.b, _ = s.open()
	return s
}

// since gives what the program was asked since the last call.
func (s *sofa) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

// got sends a request and gives its one answer.
func got[T wire.Payload](s *sofa, t wire.Type, p wire.Payload) T {
	s.t.Helper()
	list, err := s.all(s.b, t, p)
	if err != nil || len(list) != 1 {
		s.t.Fatalf("%s %+v: %d answers, %v", t, p, len(list), err)
	}
	out, ok := list[0].Payload.(T)
	if !ok {
		s.t.Fatalf("%s was answered with %s", t, list[0].Type)
	}
	return out
}

func (s *sofa) fails(t wire.Type, p wire.Payload, code wire.Code, words string) *wire.Error {
	s.t.Helper()
	_, err := s.all(s.b, t, p)
	if wire.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		s.t.Fatalf("%s %+v: %v (%s), want %s with %q", t, p, err, wire.CodeOf(err), code, words)
	}
	return err.(*wire.Error)
}

// shot takes a picture, and holds what it shows against the screens: each of
// its pixels is the colour of the place that it stands for.
func (s *sofa) shot(p wire.Screenshot, shows wire.Rect, size wire.Point, mime string, tolerance int) *wire.ScreenshotResponse {
	s.t.Helper()
	p.SessionID = s.b.ID
	r := got[*wire.ScreenshotResponse](s, wire.TypeScreenshot, &p)
	if r.Shows != shows || (wire.Point{r.Width, r.Height}) != size || r.MIMEType != mime || r.Picture == "" {
		s.t.Fatalf("%+v: shows %v in %d × %d, %s, want %v in %v", p, r.Shows, r.Width, r.Height, r.MIMEType, shows, size)
	}
	img, _, err := image.Decode(bytes.NewReader(r.Image))
	if err != nil || img.Bounds().Size() != image.Pt(size[0], size[1]) {
		s.t.Fatalf("the picture has %v: %v", img.Bounds(), err)
	}
	for _, at := range []image.Point{{}, {size[0] - 1, size[1] - 1}, {size[0] / 2, size[1] / 2}, {size[0] / 3, size[1] - 1}, {size[0] / 4, size[1] / 3}} {
		x := shows[0] + (2*at.X+1)*(shows[2]-shows[0])/(2*size[0])
		y := shows[1] + (2*at.Y+1)*(shows[3]-shows[1])/(2*size[1])
		want := companiontest.Colour(x, y, 0)
		switch {
		case x < 0 && (y < 100 || y >= 700):
			want.R, want.G = 0, 0 // no screen
		case x < 0:
			want = companiontest.Colour(x, y, 1)
		}
		if r, g, b, _ := img.At(at.X, at.Y).RGBA(); off(r, want.R) > tolerance || off(g, want.G) > tolerance || off(b, want.B) > tolerance {
			s.t.Errorf("%+v: at %v, which is (%d, %d), it is %d %d %d, want %v", p, at, x, y, r>>8, g>>8, b>>8, want)
		}
	}
	return r
}

func off(got uint32, want uint8) int { return max(int(got>>8)-int(want), int(want)-int(got>>8)) }

func TestCompanionPictures(t *testing.T) {
	t.Parallel()
	s := newSofa(t)
	// As it is: passed on as it came.
	r := s.shot(wire.Screenshot{IncludeCursor: true, Quality: 60}, wire.Rect{0, 0, 2000, 1000}, wire.Point{2000, 1000}, "image/jpeg", 6)
	if r.Monitor != 0 || r.DisplayScale != 1 || *r.LogicalSize != (wire.Point{2000, 1000}) {
		t.Errorf("%+v", r)
	}
	if asked := s.since(); !slices.Contains(asked, `SCREENSHOT_REQUEST {"monitor":0,"quality":60,"format":"jpeg","include_cursor":true}`) {
		t.Errorf("asked %q", asked)
	}
	r = s.shot(wire.Screenshot{Monitor: 1, Format: "png"}, wire.Rect{-800, 100, 0, 700}, wire.Point{800, 600}, "image/png", 0)
	if r.Monitor != 1 || r.DisplayScale != 2 || *r.LogicalSize != (wire.Point{400, 300}) {
		t.Errorf("%+v", r)
	}
	// Smaller: the computer sends all of it, without loss.
	s.since()
	s.shot(wire.Screenshot{MaxEdge: 1000}, wire.Rect{0, 0, 2000, 1000}, wire.Point{1000, 500}, "image/jpeg", 6)
	if asked := s.since(); !slices.Contains(asked, `SCREENSHOT_REQUEST {"monitor":0,"quality":75,"format":"png","include_cursor":false}`) {
		t.Errorf("asked %q", asked)
	}
	s.shot(wire.Screenshot{MaxTiles: 100, Format: "png"}, wire.Rect{0, 0, 2000, 1000}, wire.Point{392, 196}, "image/png", 2)
	// Cut to the monitor; all monitors in one.
	s.shot(wire.Screenshot{Region: &wire.Rect{-50, 900, 100, 1200}}, wire.Rect{0, 900, 100, 1000}, wire.Point{100, 100}, "image/jpeg", 6)
	whole := s.shot(wire.Screenshot{Monitor: -1, Format: "png"}, wire.Rect{-800, 0, 2000, 1000}, wire.Point{2800, 1000}, "image/png", 0)
	if whole.Monitor != -1 {
		t.Errorf("it is of monitor %d", whole.Monitor)
	}
	s.shot(wire.Screenshot{Monitor: -1, Region: &wire.Rect{-300, 200, 500, 300}, MaxEdge: 400}, wire.Rect{-300, 200, 500, 300}, wire.Point{400, 50}, "image/jpeg", 12)
	// Of a picture that was made smaller: its pixels, at the screens' own.
	small := s.shot(wire.Screenshot{Monitor: -1, MaxEdge: 700}, wire.Rect{-800, 0, 2000, 1000}, wire.Point{700, 250}, "image/jpeg", 12)
	s.shot(wire.Screenshot{Picture: small.Picture, Region: &wire.Rect{300, 50, 400, 100}, Format: "png"}, wire.Rect{400, 200, 800, 400}, wire.Point{400, 200}, "image/png", 0)
	// In so many bytes.
	if r := s.shot(wire.Screenshot{MaxBytes: 9000}, wire.Rect{0, 0, 2000, 1000}, s.sizeIn(9000), "image/jpeg", 12); len(r.Image) > 9000 {
		t.Errorf("%d bytes", len(r.Image))
	}
	s.fails(wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, MaxBytes: 900, Exact: true}, wire.CodeTooLarge, "900 bytes")

	s.fails(wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, Region: &wire.Rect{5000, 0, 6000, 10}}, wire.CodeBounds, "outside")
	s.fails(wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, Monitor: 2}, wire.CodeInvalid, "no monitor 2")
	s.fails(wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, Picture: "pic_gone", Region: &wire.Rect{0, 0, 9, 9}}, wire.CodePictureStale, "too old")
	e := s.fails(wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, WindowID: "win_0"}, wire.CodeWindowStale, "not there")
	if e.Details["window_id"] != "win_0" {
		t.Errorf("details: %v", e.Details)
	}
	w := got[*wire.WindowsResponse](s, wire.TypeWindows, &wire.Windows{SessionID: s.b.ID})
	s.shot(wire.Screenshot{WindowID: w.Windows[0].WindowID}, wire.Rect{0, 0, 640, 480}, wire.Point{640, 480}, "image/jpeg", 6)
	s.dropsNothing()
}

// A picture is what it is said to be, and no larger than what it is of.
func TestCompanionPicturesThatAreNone(t *testing.T) {
	t.Parallel()
	var change func(map[string]any)
	s := newSofa(t, func(o *companiontest.Options) {
		o.Screens = append(o.Screens, companiontest.Screen{X: 2000, W: 8000, H: 8000, Scale: 1})
		o.Picture = func(p map[string]any) { change(p) }
	})
	ask := wire.Screenshot{SessionID: s.b.ID}
	ask.Monitor = 1
	for _, change = range []func(map[string]any){
		func(p map[string]any) { p["mime_type"] = "image/png" },
		func(p map[string]any) { // of a few bytes and a million pixels, where the screen has half of that
			var b bytes.Buffer
			_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 1000, 1000)))
			p["image_base64"], p["mime_type"], p["width"], p["height"] = base64.StdEncoding.EncodeToString(b.Bytes()), "image/png", 1000, 1000
		},
	} {
		s.fails(wire.TypeScreenshot, &ask, wire.CodeInternal, "could not be understood")
	}
	change = func(map[string]any) {}
	s.shot(ask, wire.Rect{-800, 100, 0, 700}, wire.Point{800, 600}, "image/jpeg", 6)
	// A screen that is larger than any is only seen in parts.
	ask.Monitor = 2
	s.fails(wire.TypeScreenshot, &ask, wire.CodeTooLarge, "region")
}

// sizeIn is what a picture of the first screen is made to fit into so many
// bytes.
func (s *sofa) sizeIn(bytes int) wire.Point {
	s.t.Helper()
	r := got[*wire.ScreenshotResponse](s, wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, MaxBytes: bytes})
	if r.Width >= 2000 {
		s.t.Fatalf("it is still %d wide", r.Width)
	}
	return wire.Point{r.Width, r.Height}
}

// act does an action and gives what the companion was asked besides the screens.
func (s *sofa) act(a wire.InputAction) []string {
	s.t.Helper()
	a.SessionID = s.b.ID
	s.since()
	if list, err := s.all(s.b, wire.TypeInput, &a); err != nil || len(list) != 1 || list[0].Type != wire.TypeAck {
		s.t.Fatalf("%+v: %+v, %v", a, list, err)
	}
	return slices.DeleteFunc(s.since(), func(q string) bool { return strings.HasPrefix(q, "DISPLAY_INFO_REQUEST") })
}

func TestCompanionInput(t *testing.T) {
	t.Parallel()
	s := newSofa(t)
	all := got[*wire.ScreenshotResponse](s, wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, Monitor: -1, MaxEdge: 700})
	left := got[*wire.ScreenshotResponse](s, wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, Monitor: 1, MaxEdge: 400})
	tail := `,"paste":false,"preserve_clipboard":false}`
	for _, c := range []struct {
		a    wire.InputAction
		want []string
	}{
		{wire.InputAction{Action: "left_click", Picture: all.Picture, Coordinate: &wire.Point{0, 30}}, []string{`INPUT_ACTION {"action":"left_click","coordinate":[-798,122]` + tail}},
		{wire.InputAction{Action: "double_click", Picture: left.Picture, Coordinate: &wire.Point{399, 299}, Modifiers: []string{"ctrl", "shift"}}, []string{`INPUT_ACTION {"action":"double_click","coordinate":[-1,699],"modifiers":["ctrl","shift"]` + tail}},
		{wire.InputAction{Action: "right_click", Coordinate: &wire.Point{7, 8}}, []string{`INPUT_ACTION {"action":"right_click","coordinate":[7,8]` + tail}},
		{wire.InputAction{Action: "middle_click"}, []string{`CURSOR_POSITION_REQUEST {}`, `INPUT_ACTION {"action":"middle_click","coordinate":[10,20]` + tail}},
		{wire.InputAction{Action: "mouse_down"}, []string{`CURSOR_POSITION_REQUEST {}`, `INPUT_ACTION {"action":"mouse_down","coordinate":[10,20],"button":"left"` + tail}},
		{wire.InputAction{Action: "drag", Picture: all.Picture, Path: []wire.Point{{200, 0}, {201, 1}}, Button: "right"}, []string{`INPUT_ACTION {"action":"drag","button":"right","path":[[2,2],[6,6]]` + tail}},
		{wire.InputAction{Action: "type", Text: "grüße ✓", Paste: true}, []string{`INPUT_ACTION {"action":"type","text":"grüße ✓","paste":true,"preserve_clipboard":false}`}},
		{wire.InputAction{Action: "key", Key: "Control_L+Return", Repeat: 2}, slices.Repeat([]string{`INPUT_ACTION {"action":"key","key":"ctrl+enter"` + tail}, 2)},
		{wire.InputAction{Action: "key", Key: "A"}, []string{`INPUT_ACTION {"action":"key","key":"shift+a"` + tail}},
		{wire.InputAction{Action: "hold_key", Key: "Page_Down", DurationMS: 5}, []string{`INPUT_ACTION {"action":"hold_key","key":"pagedown","duration_ms":5` + tail}},
		{wire.InputAction{Action: "scroll", Picture: all.Picture, Coordinate: &wire.Point{300, 100}, ScrollDirection: "left", ScrollAmount: new(0)}, []string{`INPUT_ACTION {"action":"scroll","coordinate":[402,402],"scroll_amount":0,"scroll_direction":"left"` + tail}},
		{wire.InputAction{Action: "scroll"}, []string{`INPUT_ACTION {"action":"scroll","scroll_amount":3,"scroll_direction":"down"` + tail}},
		{wire.InputAction{Action: "wait", DurationMS: 1}, nil},
	} {
		if asked := s.act(c.a); !reflect.DeepEqual(asked, c.want) {
			t.Errorf("%+v\nasked %q\n want %q", c.a, asked, c.want)
		}
	}
	// A long text is typed in parts, none of which takes too long.
	long := strings.Repeat("äöü", 400)
	var typed strings.Builder
	asked := s.act(wire.InputAction{Action: "type", Text: long})
	for _, q := range asked {
		var in struct{ Text string }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(q, "INPUT_ACTION ")), &in); err != nil {
			t.Fatal(err)
		}
		typed.WriteString(in.Text)
	}
	if len(asked) != 3 || typed.String() != long {
		t.Errorf("typed in %d parts: %q", len(asked), typed.String())
	}

	aim := func(a wire.InputAction) *wire.InputAction { a.SessionID = s.b.ID; return &a }
	// Where no screen is, though the picture has the place.
	e := s.fails(wire.TypeInput, aim(wire.InputAction{Action: "left_click", Picture: all.Picture, Coordinate: &wire.Point{5, 5}}), wire.CodeBounds, "outside")
	if d := fmt.Sprint(e.Details); d != "map[displays:[map[index:0 origin:[0 0] size:[2000 1000]] map[index:1 origin:[-800 100] size:[800 600]]] requested_coordinate:[-778 22]]" {
		t.Errorf("details: %s", d)
	}
	s.since()
	s.fails(wire.TypeInput, aim(wire.InputAction{Action: "left_click", Picture: all.Picture, Coordinate: &wire.Point{700, 5}}), wire.CodeBounds, "700 × 250")
	s.fails(wire.TypeInput, aim(wire.InputAction{Action: "left_click", Picture: "pic_gone", Coordinate: &wire.Point{7, 5}}), wire.CodePictureStale, "Take a new one")
	s.fails(wire.TypeInput, aim(wire.InputAction{Action: "drag", Path: []wire.Point{{1, 1}, {2, 2}}, Modifiers: []string{"alt"}}), wire.CodeNotSupported, "holds no keys")
	s.fails(wire.TypeInput, aim(wire.InputAction{Action: "hold_key", Key: "a", DurationMS: 6000}), wire.CodeNotSupported, "5 seconds")
	for _, q := range s.since() {
		if strings.HasPrefix(q, "INPUT_ACTION") {
			t.Errorf("it was asked %s", q)
		}
	}
	c := got[*wire.CursorResponse](s, wire.TypeCursor, &wire.ComputerQuery{SessionID: s.b.ID})
	if *c != (wire.CursorResponse{X: 10, Y: 20}) { // the last picture is of the other screen
		t.Errorf("%+v", c)
	}
	last := got[*wire.ScreenshotResponse](s, wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, MaxEdge: 500})
	if c = got[*wire.CursorResponse](s, wire.TypeCursor, &wire.ComputerQuery{SessionID: s.b.ID}); c.Picture != last.Picture || *c.InPicture != (wire.Point{2, 5}) {
		t.Errorf("%+v", c)
	}
	s.dropsNothing()
}

// When the screens have changed, what was aimed at an older picture is not done.
func TestCompanionScreensChange(t *testing.T) {
	t.Parallel()
	s := newSofa(t)
	r := got[*wire.ScreenshotResponse](s, wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID})
	screens := slices.Clone(s.o.Screens)
	screens[1].X = -900
	s.c.SetScreens(screens)
	s.fails(wire.TypeInput, &wire.InputAction{SessionID: s.b.ID, Action: "left_click", Picture: r.Picture, Coordinate: &wire.Point{1, 1}}, wire.CodePictureStale, "screens have changed")
	s.fails(wire.TypeScreenshot, &wire.Screenshot{SessionID: s.b.ID, Picture: r.Picture, Region: &wire.Rect{0, 0, 9, 9}}, wire.CodePictureStale, "screens have changed")
}

func TestCompanionDesktop(t *testing.T) {
	t.Parallel()
	s := newSofa(t)
	d := got[*wire.DisplaysResponse](s, wire.TypeDisplays, &wire.ComputerQuery{SessionID: s.b.ID})
	if want := (wire.Monitor{Index: 1, PhysicalSize: wire.Point{800, 600}, LogicalSize: wire.Point{400, 300}, Scale: 2, Origin: wire.Point{-800, 100}}); len(d.Monitors) != 2 || d.Monitors[1] != want || !d.Monitors[0].Primary {
		t.Errorf("%+v", d)
	}
	w := got[*wire.WindowsResponse](s, wire.TypeWindows, &wire.Windows{SessionID: s.b.ID, AppBundleID: "org.example", IncludeOffscreen: true})
	if len(w.Windows) != 1 || w.Windows[0].Title != "notes" || w.Windows[0].Bounds != (wire.Rect{0, 0, 640, 480}) {
		t.Fatalf("%+v", w)
	}
	got[*wire.Empty](s, wire.TypeWindowFocus, &wire.WindowFocus{SessionID: s.b.ID, WindowID: w.Windows[0].WindowID})
	s.fails(wire.TypeWindowFocus, &wire.WindowFocus{SessionID: s.b.ID, WindowID: "win_0"}, wire.CodeWindowStale, "")
	if a := got[*wire.AppsResponse](s, wire.TypeApps, &wire.Apps{SessionID: s.b.ID, IncludeBackground: true}); len(a.Apps) != 1 || a.Apps[0].ExecutablePath != "/usr/bin/editor" {
		t.Errorf("%+v", a)
	}
	got[*wire.AppLaunched](s, wire.TypeAppLaunch, &wire.AppLaunch{SessionID: s.b.ID, ExecutablePath: "/usr/bin/editor", Args: []string{"a b"}})
	s.fails(wire.TypeAppLaunch, &wire.AppLaunch{SessionID: s.b.ID, BundleID: "org.example"}, wire.CodeNotSupported, "")
	if c := got[*wire.ClipReadResponse](s, wire.TypeClipRead, &wire.ClipRead{SessionID: s.b.ID}); *c != (wire.ClipReadResponse{Format: "text", Content: "copied", SizeBytes: 6}) {
		t.Errorf("%+v", c)
	}
	s.fails(wire.TypeClipRead, &wire.ClipRead{SessionID: s.b.ID, Format: "image"}, wire.CodeNotSupported, "")
	got[*wire.Empty](s, wire.TypeClipWrite, &wire.ClipWrite{SessionID: s.b.ID, Content: "x"})
	p := got[*wire.PermissionsResponse](s, wire.TypePermissions, &wire.Permissions{SessionID: s.b.ID, Permissions: []string{"accessibility", "other"}})
	if !reflect.DeepEqual(p.Permissions, map[string]string{"accessibility": "granted", "other": "not_applicable"}) {
		t.Errorf("%+v", p)
	}
	s.dropsNothing()
}

// What the computer's program does not offer is not asked for, and said.
func TestCompanionWithoutFeatures(t *testing.T) {
	t.Parallel()
	id := func(s *sofa) string { return s.b.ID }
	none := newSofa(t, func(o *companiontest.Options) { o.Desktop = false })
	none.since()
	none.fails(wire.TypeScreenshot, &wire.Screenshot{SessionID: id(none)}, wire.CodeNotSupported, "does not offer")
	none.fails(wire.TypeInput, &wire.InputAction{SessionID: id(none), Action: "type", Text: "x"}, wire.CodeNotSupported, "does not offer its screen, mouse and keyboard")

	some := newSofa(t, func(o *companiontest.Options) {
		o.Hello = func(_ string, p map[string]any) {
			p["computer_use_features"] = []string{"screenshot.capture", "display.info", "input.click"}
			p["computer_use_features_coarse"] = []string{"permissions"}
		}
	})
	r := got[*wire.ScreenshotResponse](some, wire.TypeScreenshot, &wire.Screenshot{SessionID: id(some)})
	some.since()
	some.act(wire.InputAction{Action: "left_click", Picture: r.Picture, Coordinate: &wire.Point{3, 4}})
	for words, p := range map[string]wire.Payload{
		"part of the screen": &wire.Screenshot{SessionID: id(some), Region: &wire.Rect{0, 0, 9, 9}}, "of a window": &wire.Screenshot{SessionID: id(some), WindowID: "win_0"},
		"typing": &wire.InputAction{SessionID: id(some), Action: "type", Text: "x"}, "pressing keys": &wire.InputAction{SessionID: id(some), Action: "key", Key: "a"},
		"holding a key": &wire.InputAction{SessionID: id(some), Action: "hold_key", Key: "a"}, "dragging": &wire.InputAction{SessionID: id(some), Action: "drag", Path: []wire.Point{{1, 1}, {2, 2}}},
		"holding keys while": &wire.InputAction{SessionID: id(some), Action: "left_click", Coordinate: &wire.Point{1, 1}, Modifiers: []string{"alt"}},
		"scrolling":          &wire.InputAction{SessionID: id(some), Action: "scroll"}, "mouse button": &wire.InputAction{SessionID: id(some), Action: "mouse_down"},
		"list of windows": &wire.Windows{SessionID: id(some)}, "list of programs": &wire.Apps{SessionID: id(some)},
		"to the front": &wire.WindowFocus{SessionID: id(some), WindowID: "win_0"}, "starting a program": &wire.AppLaunch{SessionID: id(some), ExecutablePath: "x"},
		"the clipboard": &wire.ClipRead{SessionID: id(some)},
	} {
		some.fails(typeOf(p), p, wire.CodeNotSupported, words)
	}
	if asked := some.since(); slices.ContainsFunc(asked, func(q string) bool { return !strings.HasPrefix(q, "DISPLAY_INFO") }) {
		t.Errorf("it was asked %q", asked)
	}
	some.dropsNothing()
}

func typeOf(p wire.Payload) wire.Type {
	switch p.(type) {
	case *wire.Screenshot:
		return wire.TypeScreenshot
	case *wire.Windows:
		return wire.TypeWindows
	case *wire.Apps:
		return wire.TypeApps
	case *wire.WindowFocus:
		return wire.TypeWindowFocus
	case *wire.AppLaunch:
		return wire.TypeAppLaunch
	case *wire.ClipRead:
		return wire.TypeClipRead
	}
	return wire.TypeInput
}
