package autogpt

import (
	"context"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// desktop is a machine that has a display.
func desktop(t *testing.T, change func(o *Options)) (*script, *machine, *peer) {
	t.Helper()
	return scripted(t, func(o *Options) {
		o.Hello = func() msg.Hello {
			fine, coarse := msg.FeaturesOf(msg.Does{Pictures: true, Input: true, Windows: true, Clipboard: true})
			return msg.Hello{ShimVersion: "1.0.0", MachineID: "m-1", DisplayName: "Workshop", Platform: "linux", Arch: "x86_64", ScreenResolution: &msg.Resolution{1920, 1080},
				Capabilities: msg.List[string]{msg.Files, msg.ComputerUse, msg.Browse}, Features: fine, Coarse: coarse}
		}
		if change != nil {
			change(o)
		}
	})
}

func picture(shows wire.Rect) *wire.ScreenshotResponse {
	return &wire.ScreenshotResponse{Picture: "p1", Image: []byte("PNG"), MIMEType: "image/png", Width: shows[2] - shows[0], Height: shows[3] - shows[1], Monitor: 1,
		Shows: shows, DisplayScale: 1.5, LogicalSize: &wire.Point{1280, 720}}
}

// asks sends a request, which the handler must be asked for as want, and gives
// the reply.
func (s *script) asks(t *testing.T, p *peer, kind string, payload object, want wire.Payload) frame {
	t.Helper()
	s.mu.Lock()
	before := len(s.asked)
	s.mu.Unlock()
	f := p.call(kind, payload)
	s.mu.Lock()
	after := len(s.asked)
	s.mu.Unlock()
	if after != before+1 {
		t.Fatalf("%s %v: the handler was asked %d times; %s %s", kind, payload, after-before, f.Type, f.Payload)
	}
	if got := s.last(t); !reflect.DeepEqual(got, want) {
		t.Errorf("%s %v\nasked %+v\n want %+v", kind, payload, got, want)
	}
	return f
}

func TestScreenshotIsTranslated(t *testing.T) {
	t.Parallel()
	s, _, p := desktop(t, nil)
	s.set(replies(picture(wire.Rect{-1920, 10, 0, 1090})))
	f := s.asks(t, p, "SCREENSHOT_REQUEST", object{"format": "png", "include_cursor": false, "monitor": 1},
		&wire.Screenshot{SessionID: chat, Monitor: 1, Format: "png", Quality: 75, MaxBytes: msg.MaxFile, Exact: true})
	var r msg.ScreenshotImage
	f.into(t, &r)
	want := msg.ScreenshotImage{Image: base64.StdEncoding.EncodeToString([]byte("PNG")), MIMEType: "image/png", Width: 1920, Height: 1080, Monitor: 1, DisplayScale: 1.5,
		LogicalSize: &msg.Pair{1280, 720}, Meta: msg.ScreenshotMeta{Origin: msg.Pair{-1920, 10}, DisplayID: 1}}
	if f.Type != "SCREENSHOT_RESPONSE" || !reflect.DeepEqual(r, want) {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	// What lies outside is cut there, and told as it was asked.
	s.set(replies(picture(wire.Rect{0, 0, 20, 10})))
	f = s.asks(t, p, "SCREENSHOT_REQUEST", object{"region": []int{-5, -5, 20, 10}, "quality": 900, "monitor": -7},
		&wire.Screenshot{SessionID: chat, Region: &wire.Rect{-5, -5, 20, 10}, Format: "jpeg", Quality: 100, IncludeCursor: true, MaxBytes: msg.MaxFile, Exact: true})
	if f.into(t, &r); *r.Region != (msg.Rect{-5, -5, 20, 10}) || r.Meta.Origin != (msg.Pair{0, 0}) {
		t.Errorf("%s", f.Payload)
	}
	// A monitor that is not there is the first one.
	s.set(func(_ context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if n := m.Payload.(*wire.Screenshot).Monitor; n > 1 {
			return "", nil, wire.Errorf(wire.CodeInvalid, "There is no monitor %d.", n)
		}
		return "", picture(wire.Rect{0, 0, 20, 10}), nil
	})
	for _, n := range []int{2, 1 << 40} {
		if f := p.call("SCREENSHOT_REQUEST", object{"monitor": n}); f.Type != "SCREENSHOT_RESPONSE" || s.last(t).(*wire.Screenshot).Monitor != 0 {
			t.Errorf("monitor %d: %s %s", n, f.Type, f.Payload)
		}
	}
	s.asks(t, p, "SCREENSHOT_REQUEST", object{"monitor": -1}, &wire.Screenshot{SessionID: chat, Monitor: -1, Format: "jpeg", Quality: 75, IncludeCursor: true, MaxBytes: msg.MaxFile, Exact: true})

	// Coordinates are unscaled: a picture that had to be made smaller is none.
	small := picture(wire.Rect{0, 0, 16000, 1000})
	small.Width, small.Height = 8000, 500
	s.set(replies(small))
	p.fails("SCREENSHOT_REQUEST", object{"monitor": -1}, msg.CodeTooLarge)
	for _, bad := range []object{{"region": []int{0, 0, 9, 9}, "window_id": "win_1"}, {"region": []int{5, 5, 5, 9}}} {
		if e := p.fails("SCREENSHOT_REQUEST", bad, msg.CodeNotSupported); e.Details["feature"] != "screenshot.region" || e.Details["reason"] == "" {
			t.Errorf("%v: %+v", bad, e.Details)
		}
	}
	s.set(replies(wire.Errorf(wire.CodeBounds, "The region is outside of the screen.")))
	p.fails("SCREENSHOT_REQUEST", object{"region": []int{0, 0, 9, 9}}, msg.CodeNotSupported)
}

// The eleventh picture within a minute is refused before anything else is
// looked at.
func TestPicturesPerMinute(t *testing.T) {
	t.Parallel()
	s, _, p := desktop(t, nil)
	s.set(replies(picture(wire.Rect{0, 0, 2, 2})))
	for range picturesPerMinute {
		if f := p.call("SCREENSHOT_REQUEST", object{}); f.Type != "SCREENSHOT_RESPONSE" {
			t.Fatalf("%s %s", f.Type, f.Payload)
		}
	}
	p.fails("SCREENSHOT_REQUEST", object{"region": []int{0, 0, 9, 9}, "window_id": "win_1"}, msg.CodeOverloaded)
	p.call("CURSOR_POSITION_REQUEST", object{}) // is none of them
}

func TestInputIsTranslated(t *testing.T) {
	t.Parallel()
	s, _, p := desktop(t, nil)
	long := strings.Repeat("ä", pasteFrom)
	many := make([][]int, wire.MaxDragPoints+500)
	for i := range many {
		many[i] = []int{i, 2 * i}
	}
	for _, c := range []struct {
		in   object
		want wire.InputAction
	}{
		{object{"action": "left_click", "coordinate": []int{3, -4}, "modifiers": []string{"shift", "ctrl"}, "button": "right"}, wire.InputAction{Coordinate: &wire.Point{3, -4}, Modifiers: []string{"shift", "ctrl"}}},
		{object{"action": "triple_click", "coordinate": []int{1 << 40, 0}}, wire.InputAction{Coordinate: &wire.Point{1 << 20, 0}}},
		{object{"action": "mouse_move", "coordinate": []int{1, 2}, "modifiers": []string{"alt"}}, wire.InputAction{Coordinate: &wire.Point{1, 2}}},
		{object{"action": "mouse_down", "coordinate": []int{1, 2}}, wire.InputAction{Coordinate: &wire.Point{1, 2}, Button: "left"}},
		{object{"action": "mouse_up", "coordinate": []int{1, 2}, "button": "middle"}, wire.InputAction{Coordinate: &wire.Point{1, 2}, Button: "middle"}},
		{object{"action": "drag", "path": [][]int{{1, 2}, {3, 4}, {5, 6}}, "duration_ms": 70}, wire.InputAction{Path: []wire.Point{{1, 2}, {3, 4}, {5, 6}}, Button: "left"}},
		{object{"action": "drag", "path": [][]int{{1, 2}}, "button": "right"}, wire.InputAction{Path: []wire.Point{{1, 2}, {1, 2}}, Button: "right"}},
		{object{"action": "type", "text": "grüße ✓", "paste": true}, wire.InputAction{Text: "grüße ✓"}},
		{object{"action": "type", "text": long, "paste": true, "preserve_clipboard": true}, wire.InputAction{Text: long, Paste: true, PreserveClipboard: true}},
		{object{"action": "type", "text": long}, wire.InputAction{Text: long}},
		{object{"action": "key", "key": " Ctrl + Shift+T"}, wire.InputAction{Key: "ctrl+shift+t"}},
		{object{"action": "key", "key": "meta+space"}, wire.InputAction{Key: "super+space"}},
		{object{"action": "key", "key": "ctrl++"}, wire.InputAction{Key: "ctrl+plus"}},
		{object{"action": "hold_key", "key": "a", "duration_ms": 60000}, wire.InputAction{Key: "a", DurationMS: 5000}},
		{object{"action": "hold_key", "key": "a", "duration_ms": -3}, wire.InputAction{Key: "a"}},
		{object{"action": "wait", "duration_ms": 5001}, wire.InputAction{DurationMS: 5000}},
		{object{"action": "wait"}, wire.InputAction{}},
		{object{"action": "scroll"}, wire.InputAction{ScrollAmount: new(3), ScrollDirection: "down"}},
		{object{"action": "scroll", "direction": "up", "clicks": 5, "coordinate": []int{7, 8}}, wire.InputAction{ScrollAmount: new(5), ScrollDirection: "up", Coordinate: &wire.Point{7, 8}}},
		{object{"action": "scroll", "direction": "up", "clicks": 5, "scroll_direction": "left", "scroll_amount": 0, "modifiers": []string{"ctrl"}}, wire.InputAction{ScrollAmount: new(0), ScrollDirection: "left", Modifiers: []string{"ctrl"}}},
	} {
		c.want.SessionID, c.want.Action = chat, c.in["action"].(string)
		if f := s.asks(t, p, "INPUT_ACTION", c.in, &c.want); f.Type != "ACK" || string(f.Payload) != `{"ok":true}` {
			t.Errorf("%v: %s %s", c.in, f.Type, f.Payload)
		}
	}
	if f := p.call("INPUT_ACTION", object{"action": "drag", "path": many}); f.Type != "ACK" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if path := s.last(t).(*wire.InputAction).Path; len(path) != wire.MaxDragPoints || path[0] != (wire.Point{0, 0}) || path[len(path)-1] != (wire.Point{len(many) - 1, 2 * (len(many) - 1)}) {
		t.Errorf("a long path has %d points, from %v to %v", len(path), path[0], path[len(path)-1])
	}
	for feature, list := range map[string][]object{
		"input.click":         {{"action": "left_click"}, {"action": "double_click", "coordinate": nil}},
		"input.mouse.down_up": {{"action": "mouse_down"}, {"action": "mouse_up"}},
		"input":               {{"action": "mouse_move"}, {"action": "type"}, {"action": "key"}, {"action": "key", "key": "  "}},
		"input.key.hold":      {{"action": "hold_key", "duration_ms": 5}},
		"input.drag.path":     {{"action": "drag"}, {"action": "drag", "path": [][]int{}}},
	} {
		for _, in := range list {
			if e := p.fails("INPUT_ACTION", in, msg.CodeNotSupported); e.Details["feature"] != feature {
				t.Errorf("%v: %+v", in, e.Details)
			}
		}
	}
	p.fails("INPUT_ACTION", object{"action": "type", "text": strings.Repeat("x", wire.MaxTyped+1)}, msg.CodeTooLarge)
}

func TestComputerErrors(t *testing.T) {
	t.Parallel()
	s, _, p := desktop(t, nil)
	click := object{"action": "left_click", "coordinate": []int{1 << 30, 5}}
	displays := []any{object{"index": 0.0, "origin": []any{0.0, 0.0}, "size": []any{1920.0, 1080.0}}}
	for _, c := range []struct {
		err     *wire.Error
		code    wire.Code
		details object
	}{
		{wire.Errorf(wire.CodeBounds, "Outside of every screen.").With(map[string]any{"requested_coordinate": []int{1 << 20, 5}, "displays": displays}), msg.CodeOutOfBounds,
			object{"requested_coordinate": []any{float64(1 << 30), 5.0}, "displays": displays}},
		{wire.Errorf(wire.CodePerson, "Ann is using the computer."), msg.CodePending, object{"permission": "computer_use", "platform": "linux", "hint": "Ann is using the computer.", "reason": "person_active"}},
		{wire.Errorf(wire.CodeExpired, "Nobody answered."), msg.CodePending, object{"permission": "computer_use", "platform": "linux", "hint": "Nobody answered.", "reason": "expired"}},
		{wire.Errorf(wire.CodePaused, "A question is open."), msg.CodePending, object{"permission": "computer_use", "platform": "linux", "hint": "A question is open.", "reason": "paused"}},
		{wire.Errorf(wire.CodeNotSupported, "No mouse.").With(map[string]any{"feature": "input", "reason": "wayland"}), msg.CodeNotSupported, object{"feature": "input.click", "reason": "wayland"}},
		{wire.Errorf(wire.CodeDenied, "Ann said no."), msg.CodeNotGranted, object{"required_capability": "computer_use", "reason": "denied"}},
		{wire.Errorf(wire.CodePictureStale, "The screen changed."), msg.CodePending, object{"permission": "computer_use", "platform": "linux", "reason": "picture_stale", "hint": "Take a new picture, and aim at what it shows."}},
		{wire.Errorf(wire.CodeWindowStale, "It was closed."), msg.CodePending, object{"permission": "computer_use", "platform": "linux", "hint": "It was closed.", "reason": "window_stale"}},
		{wire.Errorf(wire.CodeOwnWindow, "That window is protected."), msg.CodeNotSupported, object{"feature": "input.click", "reason": "window_protected"}},
		{wire.Errorf(wire.CodeNotSupported, "There is no display."), msg.CodeNotSupported, object{"feature": "input.click", "reason": "There is no display."}},
		{wire.Errorf(wire.CodeInternal, "It broke."), msg.CodeInternal, object{}},
	} {
		s.set(replies(c.err))
		if e := p.fails("INPUT_ACTION", click, c.code); e.Message != c.err.Message || fmt.Sprint(e.Details) != fmt.Sprint(c.details) {
			t.Errorf("%s: %q %v, want %v", c.err.Code, e.Message, e.Details, c.details)
		}
	}
	s.set(replies(wire.Errorf(wire.CodeConcealed, "It was marked as a secret.").With(map[string]any{"reason": "writeback_only", "writeback_age_seconds": 31})))
	if e := p.fails("CLIPBOARD_READ", object{}, msg.CodeConcealed); e.Details["reason"] != "writeback_only" || e.Details["writeback_age_seconds"] != 31.0 {
		t.Errorf("%v", e.Details)
	}
	s.set(replies(wire.Errorf(wire.CodeBlank, "The picture is black.")))
	p.fails("SCREENSHOT_REQUEST", object{}, msg.CodeNotSupported)
}

func TestComputerQueriesAreTranslated(t *testing.T) {
	t.Parallel()
	s, _, p := desktop(t, nil)
	exactly := func(f frame, kind, payload string) {
		t.Helper()
		if f.Type != kind || string(f.Payload) != payload {
			t.Errorf("%s %s\nwant %s %s", f.Type, f.Payload, kind, payload)
		}
	}
	s.set(replies(&wire.CursorResponse{X: -5, Y: 6, Monitor: 1, Picture: "p1", InPicture: &wire.Point{1, 1}}))
	exactly(s.asks(t, p, "CURSOR_POSITION_REQUEST", object{}, &wire.ComputerQuery{SessionID: chat}), "CURSOR_POSITION_RESPONSE", `{"x":-5,"y":6,"monitor":1}`)
	s.set(replies(&wire.DisplaysResponse{Monitors: []wire.Monitor{{Index: 0, Name: "HDMI-1", Primary: true, PhysicalSize: wire.Point{3840, 2160}, LogicalSize: wire.Point{1920, 1080}, Scale: 2, Origin: wire.Point{-3840, 0}}}}))
	exactly(s.asks(t, p, "DISPLAY_INFO_REQUEST", object{}, &wire.ComputerQuery{SessionID: chat}), "DISPLAY_INFO_RESPONSE",
		`{"monitors":[{"index":0,"primary":true,"physical_size":[3840,2160],"logical_size":[1920,1080],"scale":2,"origin":[-3840,0]}]}`)
	s.set(replies(&wire.AppsResponse{Apps: []wire.App{{PID: 7, Name: "xterm", ExecutablePath: "/usr/bin/xterm", IsFrontmost: true, WindowCount: 2}}}))
	exactly(s.asks(t, p, "APP_LIST_REQUEST", object{"include_background": true}, &wire.Apps{SessionID: chat, IncludeBackground: true}), "APP_LIST_RESPONSE",
		`{"apps":[{"pid":7,"name":"xterm","bundle_id":null,"executable_path":"/usr/bin/xterm","is_frontmost":true,"window_count":2}]}`)
	s.set(replies(&wire.AppLaunched{PID: 9}))
	exactly(s.asks(t, p, "APP_LAUNCH", object{"executable_path": "/usr/bin/xterm", "args": []string{"-e", "a b"}}, &wire.AppLaunch{SessionID: chat, ExecutablePath: "/usr/bin/xterm", Args: []string{"-e", "a b"}, Activate: true}), "ACK", `{"ok":true}`)
	if e := p.fails("APP_LAUNCH", object{"args": []string{"x"}}, msg.CodeNotSupported); e.Details["feature"] != "app.launch" {
		t.Errorf("%v", e.Details)
	}

	s.set(replies(&wire.ClipReadResponse{Format: "text", Content: "grüße", SizeBytes: 7}))
	exactly(s.asks(t, p, "CLIPBOARD_READ", object{}, &wire.ClipRead{SessionID: chat, Format: "text"}), "CLIPBOARD_READ_RESPONSE", `{"format":"text","content":"grüße","size_bytes":7}`)
	exactly(s.asks(t, p, "CLIPBOARD_WRITE", object{"content": "x"}, &wire.ClipWrite{SessionID: chat, Format: "text", Content: "x"}), "ACK", `{"ok":true}`)
	for _, kind := range []string{"CLIPBOARD_READ", "CLIPBOARD_WRITE"} {
		p.fails(kind, object{"format": "image", "content": ""}, msg.CodeNotSupported)
	}
	p.fails("CLIPBOARD_WRITE", object{"content": strings.Repeat("x", wire.MaxClip+1)}, msg.CodeTooLarge)

	s.set(replies(&wire.PermissionsResponse{Permissions: map[string]string{"accessibility": "denied"}}))
	exactly(s.asks(t, p, "PERMISSIONS_CHECK_REQUEST", object{"permissions": []string{"accessibility", "telepathy", "accessibility"}}, &wire.Permissions{SessionID: chat, Permissions: []string{"accessibility"}}),
		"PERMISSIONS_CHECK_RESPONSE", `{"permissions":{"accessibility":"denied","telepathy":"not_applicable"}}`)
}

// A window's id is good for the list it came with, on the connection it came on.
func TestWindowIDs(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := &script{answer: replies()}
	_, control, p := working(t, h, func(o *Options) {
		o.Handler = s.handle
		o.Hello = func() msg.Hello {
			return msg.Hello{MachineID: "m", Platform: "linux", Arch: "arm64", Capabilities: msg.List[string]{msg.ComputerUse}}
		}
	})
	list := func(p *peer, ids ...string) {
		r := &wire.WindowsResponse{}
		for _, id := range ids {
			r.Windows = append(r.Windows, wire.Window{WindowID: id, PID: 4, Title: "notes", Bounds: wire.Rect{-1, 2, 3, 4}, IsFocused: true})
		}
		s.set(replies(r))
		f := s.asks(t, p, "WINDOW_LIST_REQUEST", object{"include_minimized": true}, &wire.Windows{SessionID: chat, IncludeMinimized: true})
		var got msg.WindowList
		if f.into(t, &got); len(got.Windows) != len(ids) || got.Windows[0].Bounds != (msg.Rect{-1, 2, 3, 4}) || got.Windows[0].AppName != nil || *got.Windows[0].Title != "notes" {
			t.Errorf("%s", f.Payload)
		}
		s.set(replies(&wire.Empty{}))
	}
	stale := func(p *peer, id string) {
		t.Helper()
		if e := p.fails("WINDOW_FOCUS", object{"window_id": id}, msg.CodeWindowStale); e.Details["window_id"] != id || e.Details["hint"] == "" {
			t.Errorf("%v", e.Details)
		}
		p.fails("SCREENSHOT_REQUEST", object{"window_id": id}, msg.CodeWindowStale)
	}
	list(p, "win_1", "win_2")
	if f := s.asks(t, p, "WINDOW_FOCUS", object{"window_id": "win_2"}, &wire.WindowFocus{SessionID: chat, WindowID: "win_2", Raise: true}); f.Type != "ACK" {
		t.Errorf("%s", f.Payload)
	}
	s.set(replies(picture(wire.Rect{0, 0, 4, 2})))
	var shot msg.ScreenshotImage
	if p.call("SCREENSHOT_REQUEST", object{"window_id": "win_1"}).into(t, &shot); *shot.LogicalSize != (msg.Pair{4, 2}) {
		t.Errorf("%+v", shot.LogicalSize)
	}
	list(p, "win_3")
	stale(p, "win_1")
	s.set(replies(wire.Errorf(wire.CodeWindowStale, "It was closed.")))
	if e := p.fails("WINDOW_FOCUS", object{"window_id": "win_3"}, msg.CodeWindowStale); e.Details["window_id"] != "win_3" {
		t.Errorf("%v", e.Details)
	}
	// The same chat, with a new HELLO.
	p.ws.Close()
	again := take(t, h.data, "data connection")
	again.greet(nil)
	stale(again, "win_3")
	list(again, "win_4")
	if f := again.call("WINDOW_FOCUS", object{"window_id": "win_4", "raise": false}); f.Type != "ACK" {
		t.Errorf("%s", f.Payload)
	}
	_ = control
}

// Requests about the computer are done one at a time, in the order in which
// they came; others are not held up, nor is the check of permissions.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	s, _, p := desktop(t, nil)
	var mu sync.Mutex
	busy, order := 0, ""
	hold := make(chan struct{})
	s.set(func(ctx context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if m.Type == wire.TypePermissions {
			return "", &wire.PermissionsResponse{}, nil
		}
		if m.Type != wire.TypeInput {
			return "", &wire.FileStatResponse{}, nil
		}
		mu.Lock()
		if busy++; busy > 1 {
			t.Error("two at once")
		}
		mu.Unlock()
		if a := m.Payload.(*wire.InputAction).Text; a == "1" {
			<-hold
		} else {
			time.Sleep(time.Millisecond)
		}
		mu.Lock()
		busy--
		order += m.Payload.(*wire.InputAction).Text
		mu.Unlock()
		return "", &wire.Empty{}, nil
	})
	for _, n := range []string{"1", "2", "3"} {
		p.ask("INPUT_ACTION", n, object{"action": "type", "text": n})
	}
	p.ask("PERMISSIONS_CHECK_REQUEST", "p", object{"permissions": []string{}})
	if f := p.next(); f.ID != "p" {
		t.Errorf("%s came first", f.ID)
	}
	p.ask("FILE_STAT", "f", object{"path": root})
	if f := p.next(); f.ID != "f" {
		t.Errorf("%s came first", f.ID)
	}
	close(hold)
	for range 3 {
		if f := p.next(); f.Type != "ACK" {
			t.Errorf("%s", f.Payload)
		}
	}
	if order != "123" {
		t.Errorf("done in the order %s", order)
	}
}

// What was allowed too late is asked for anew, and what the screen was then is
// no answer to a later request.
func TestPictureWhileThePersonIsAsked(t *testing.T) {
	t.Parallel()
	allowed, asked := make(chan struct{}, 4), make(chan struct{}, 4)
	taken := 0
	var mu sync.Mutex
	_, _, p := desktop(t, func(o *Options) {
		o.Timings.Asking, o.Timings.Running = 60*time.Millisecond, 10*time.Second
		o.Handler = func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
			asked <- struct{}{}
			select {
			case <-allowed:
			case <-ctx.Done():
				return "", nil, context.Cause(ctx)
			}
			if !x.Begin() {
				return "", nil, wire.Errorf(wire.CodePending, "Nobody waits.")
			}
			mu.Lock()
			taken++
			mu.Unlock()
			return "", picture(wire.Rect{0, 0, 2, 2}), nil
		}
	})
	e := p.fails("SCREENSHOT_REQUEST", object{}, msg.CodePending)
	if e.Details["permission"] != "computer_use" || e.Details["hint"] == "" {
		t.Errorf("%v", e.Details)
	}
	take(t, asked, "question")
	// One that comes meanwhile is not held up by it.
	e = p.fails("CURSOR_POSITION_REQUEST", object{}, msg.CodePending)
	take(t, asked, "question")
	allowed <- struct{}{}
	allowed <- struct{}{}
	time.Sleep(20 * time.Millisecond)
	allowed <- struct{}{}
	if f := p.call("SCREENSHOT_REQUEST", object{}); f.Type != "SCREENSHOT_RESPONSE" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	mu.Lock()
	defer mu.Unlock()
	if taken != 1 {
		t.Errorf("%d pictures were taken", taken)
	}
}
