//go:build unix

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/jpeg"
	"reflect"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/capabilities/computer/space"
	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/mcp"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// screenRig is a rig whose machine has a screen of 1920 × 1080 left of zero.
func screenRig(t *testing.T, ask func(context.Context, wire.Message) error, options ...tunneltest.Option) (*rig, *tunneltest.Screen) {
	t.Helper()
	screen := &tunneltest.Screen{Size: image.Pt(1920, 1080), Origin: image.Pt(-1920, 0),
		Fit: func(size image.Point, edge, tiles int) image.Point {
			return space.Limit{Edge: edge, Tiles: tiles}.Fit(size)
		}}
	folder := &tunneltest.Folder{Dir: t.TempDir(), Ask: ask}
	handle := func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if reply, p, err, ok := screen.Handle(ctx, m); ok {
			if ask != nil {
				if err := ask(ctx, m); err != nil {
					return "", nil, err
				}
			}
			return reply, p, err
		}
		return folder.Handle(ctx, m, x)
	}
	return &rig{tunneltest.New(t, handle, append(options, tunneltest.WithScreen)...), folder}, screen
}

// picture is the picture of a result, with what is told of it.
func (r result) picture() (image.Image, mcp.Picture) {
	r.t.Helper()
	if len(r.content) == 0 {
		r.t.Fatalf("%s gave no picture: %q", r.what, r.text)
	}
	content, ok := r.content[0].(*sdk.ImageContent)
	if !ok || content.MIMEType != "image/jpeg" {
		r.t.Fatalf("%s gave %+v first, not a picture", r.what, r.content[0])
	}
	img, err := jpeg.Decode(bytes.NewReader(content.Data))
	if err != nil {
		r.t.Fatal(err)
	}
	var p mcp.Picture
	data, _ := json.Marshal(r.meta[mcp.PictureMeta])
	if err := json.Unmarshal(data, &p); err != nil || p.Width != img.Bounds().Dx() || p.Height != img.Bounds().Dy() {
		r.t.Fatalf("%s told %s of a picture of %v, %v", r.what, data, img.Bounds(), err)
	}
	return img, p
}

// A program looks, aims in the pixels that it was shown, looks closer, and aims
// in the first picture still.
func TestLookingAndAiming(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			t.Parallel()
			r, screen := screenRig(t, nil)
			s := r.client(t, r.Key, protocol)
			call(t, s, "local_pc_click", args{"coordinate": []int{1, 1}}).fails("local_pc_screenshot first")
			call(t, s, "local_pc_cursor_position", nil).ok("no picture was taken")
			if n := len(screen.Reached()); n != 0 {
				t.Fatalf("%d actions were done without a picture", n)
			}
			shot := call(t, s, "local_pc_screenshot", nil).ok("1456 × 819", "KeePassXC", "(1455, 818)")
			if _, p := shot.picture(); p.Width != 1456 || p.Shows != (wire.Rect{-1920, 0, 0, 1080}) || !slices.Equal(p.Hidden, []string{"KeePassXC"}) {
				t.Errorf("the picture is %+v", p)
			}
			if shot.all != nil {
				t.Errorf("a picture has structured content, which some clients show their model in its place: %v", shot.all)
			}
			call(t, s, "local_pc_click", args{"coordinate": []int{728, 409}, "modifiers": []string{"ctrl", "shift"}}).ok("Clicked at (728, 409), in picture pic_1.")
			zoomed := call(t, s, "local_pc_zoom", args{"region": []int{0, 0, 364, 204}}).ok("looking only", "count in picture pic_1.")
			if _, p := zoomed.picture(); p.Shows != (wire.Rect{-1920, 0, -1440, 269}) || p.Width != 480 {
				t.Errorf("looking closer shows %+v", p)
			}
			call(t, s, "local_pc_click", args{"coordinate": []int{728, 0}, "button": "right"}).ok()
			call(t, s, "local_pc_cursor_position", nil).ok("x=728, y=0")
			call(t, s, "local_pc_click", args{"clicks": 3}).ok("Clicked.")
			reached := screen.Reached()
			want := []struct {
				action string
				at     *image.Point
			}{{wire.ActLeftClick, &image.Point{X: -960, Y: 539}}, {wire.ActRightClick, &image.Point{X: -960}}, {wire.ActTripleClick, nil}}
			if len(reached) != len(want) {
				t.Fatalf("what was done: %+v", reached)
			}
			for i, w := range want {
				if got := reached[i]; got.Action.Action != w.action || !reflect.DeepEqual(got.At, w.at) || (got.Action.Picture == "pic_1") != (w.at != nil) {
					t.Errorf("action %d was %+v", i, got)
				}
			}
			if m := reached[0].Action.Modifiers; !slices.Equal(m, []string{"ctrl", "shift"}) {
				t.Errorf("it was clicked with %v", m)
			}
			// An earlier picture can be named.
			call(t, s, "local_pc_screenshot", args{"max_edge": 800}).ok("800 × 450")
			call(t, s, "local_pc_click", args{"coordinate": []int{1455, 818}}).fails("not on the screen", "pixels of the last picture")
			call(t, s, "local_pc_click", args{"coordinate": []int{1455, 818}, "picture": "pic_1"}).ok()
		})
	}
}

func TestEveryAction(t *testing.T) {
	r, screen := screenRig(t, nil)
	s := r.client(t, r.Key, "")
	call(t, s, "local_pc_screenshot", nil).ok()
	amount := 5
	none := 0
	for _, c := range []struct {
		tool string
		args args
		want wire.InputAction
	}{
		{"local_pc_click", args{"button": "middle"}, wire.InputAction{Action: wire.ActMiddleClick}},
		{"local_pc_click", args{"clicks": 2, "coordinate": []int{1, 2}}, wire.InputAction{Action: wire.ActDoubleClick, Coordinate: &wire.Point{1, 2}}},
		{"local_pc_mouse_move", args{"coordinate": []int{3, 4}}, wire.InputAction{Action: wire.ActMouseMove, Coordinate: &wire.Point{3, 4}}},
		{"local_pc_mouse_down", args{"button": "right"}, wire.InputAction{Action: wire.ActMouseDown, Button: "right"}},
		{"local_pc_mouse_up", args{"coordinate": []int{3, 4}}, wire.InputAction{Action: wire.ActMouseUp, Coordinate: &wire.Point{3, 4}}},
		{"local_pc_drag", args{"path": [][]int{{1, 1}, {5, 5}, {9, 1}}, "modifiers": []string{"alt"}}, wire.InputAction{Action: wire.ActDrag, Path: []wire.Point{{1, 1}, {5, 5}, {9, 1}}, Modifiers: []string{"alt"}}},
		{"local_pc_scroll", args{"direction": "left", "amount": 5, "coordinate": []int{3, 4}}, wire.InputAction{Action: wire.ActScroll, ScrollDirection: "left", ScrollAmount: &amount, Coordinate: &wire.Point{3, 4}}},
		{"local_pc_scroll", args{"direction": "down", "amount": 0}, wire.InputAction{Action: wire.ActScroll, ScrollDirection: "down", ScrollAmount: &none}},
		{"local_pc_type", args{"text": "Grüße, 世界 👋\n"}, wire.InputAction{Action: wire.ActType, Text: "Grüße, 世界 👋\n"}},
		{"local_pc_type", args{"text": "long", "paste": true}, wire.InputAction{Action: wire.ActType, Text: "long", Paste: true, PreserveClipboard: true}},
		{"local_pc_key", args{"key": "ctrl+s", "repeat": 3}, wire.InputAction{Action: wire.ActKey, Key: "ctrl+s", Repeat: 3}},
		{"local_pc_hold_key", args{"key": "shift", "duration_s": 1.5}, wire.InputAction{Action: wire.ActHoldKey, Key: "shift", DurationMS: 1500}},
		{"local_pc_wait", args{"duration_s": 0.25}, wire.InputAction{Action: wire.ActWait, DurationMS: 250}},
	} {
		call(t, s, c.tool, c.args).ok()
		all := screen.Reached()
		got := all[len(all)-1].Action
		c.want.SessionID, c.want.WaitMS = got.SessionID, int((10 * time.Minute).Milliseconds())
		if c.want.Coordinate != nil || c.want.Path != nil {
			c.want.Picture = "pic_1"
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %v did %+v, not %+v", c.tool, c.args, got, c.want)
		}
	}
	n := len(screen.Reached())
	for tool, bad := range map[string]args{
		"local_pc_click":    {"button": "fourth"},
		"local_pc_drag":     {"path": [][]int{{1, 1}}},
		"local_pc_type":     {"text": ""},
		"local_pc_hold_key": {"key": "a", "duration_s": 301},
		"local_pc_wait":     {"duration_s": -1},
		"local_pc_scroll":   {"direction": "sideways"},
		"local_pc_key":      {"key": "a", "repeat": 101},
	} {
		call(t, s, tool, bad).fails()
	}
	call(t, s, "local_pc_click", args{"button": "right", "clicks": 2}).fails("1 to 1")
	if got := len(screen.Reached()); got != n {
		t.Errorf("%d actions that are none were done", got-n)
	}
}

func TestWindowsProgramsClipboard(t *testing.T) {
	r, screen := screenRig(t, nil)
	s := r.client(t, r.Key, "")
	call(t, s, "local_pc_displays", nil).ok("0  DP-1: 1920 × 1080 pixels at (-1920, 0), scale 1, the main one")
	call(t, s, "local_pc_list_windows", nil).ok(`win_1  Editor: "notes.txt", has the keyboard`)
	call(t, s, "local_pc_screenshot", args{"window_id": "win_1"}).ok()
	windows := call(t, s, "local_pc_list_windows", nil).ok("(0, 0) to (1455, 818) in the last picture")
	if rows, _ := windows.all["windows"].([]any); len(rows) != 1 || !reflect.DeepEqual(rows[0].(map[string]any)["in_picture"], []any{0., 0., 1455., 818.}) {
		t.Errorf("windows are told as %v", windows.all)
	}
	call(t, s, "local_pc_focus_window", args{"window_id": "win_1"}).ok()
	call(t, s, "local_pc_focus_window", args{"window_id": "win_2"}).fails("not there any more", "local_pc_list_windows")
	call(t, s, "local_pc_list_apps", nil).ok("Editor (process 7, 1 windows), in front")
	call(t, s, "local_pc_launch_app", args{"executable_path": "xcalc", "args": []string{"-rpn"}}).ok("Started xcalc (process 8)")
	call(t, s, "local_pc_launch_app", nil).fails("executable_path")
	call(t, s, "local_pc_clipboard_read", nil).ok("[the clipboard has no text]")
	call(t, s, "local_pc_clipboard_write", args{"text": "äöü"}).ok("6 bytes")
	call(t, s, "local_pc_clipboard_read", nil).ok("äöü")
	call(t, s, "local_pc_permissions_check", nil).ok("accessibility: granted\ninput_monitoring: granted\nscreen_recording: granted")
	var focus *wire.WindowFocus
	for _, m := range screen.Asked() {
		if p, ok := m.Payload.(*wire.WindowFocus); ok && focus == nil {
			focus = p
		}
	}
	if focus == nil || !focus.Raise {
		t.Errorf("a window was gone to with %+v", focus)
	}
}

// What the computer refuses is said with what to do about it.
func TestRefusalsOfTheScreenAreSaid(t *testing.T) {
	r, screen := screenRig(t, nil)
	s := r.client(t, r.Key, "")
	call(t, s, "local_pc_screenshot", nil).ok()
	screen.Change()
	call(t, s, "local_pc_click", args{"coordinate": []int{1, 1}}).fails("has changed", "local_pc_screenshot")
	call(t, s, "local_pc_screenshot", nil).ok()
	call(t, s, "local_pc_click", args{"coordinate": []int{1, 1}}).ok()
	out := call(t, s, "local_pc_click", args{"coordinate": []int{5000, 1}}).fails("not on the screen")
	if d, _ := out.all["details"].(map[string]any); d["requested_coordinate"] == nil {
		t.Errorf("out of bounds tells %v", out.all)
	}
	for code, hint := range map[wire.Code]string{wire.CodePerson: "Wait a little", wire.CodeOwnWindow: "Only the person", wire.CodeBlank: "Tell the person", wire.CodeConcealed: "Ask the person"} {
		screen.Fail = func(wire.Message) error { return wire.Errorf(code, "It says why.") }
		if got := call(t, s, "local_pc_type", args{"text": "x"}).fails("It says why.", hint); got.str("code") != string(code) {
			t.Errorf("%s came as %v", code, got.all)
		}
	}
}

// The last picture is of a session: another program's, or an earlier session's,
// is none.
func TestPicturesAreOfOneSession(t *testing.T) {
	r, _ := screenRig(t, nil)
	s := r.client(t, r.Key, "")
	call(t, s, "local_pc_screenshot", nil).ok()
	key, err := r.Hub.MakeKey(t.Context(), "Another program")
	if err != nil {
		t.Fatal(err)
	}
	o := r.client(t, key, "")
	call(t, o, "local_pc_click", args{"coordinate": []int{1, 1}}).fails("local_pc_screenshot first")
	// The same program over another connection goes on.
	call(t, r.client(t, r.Key, ""), "local_pc_click", args{"coordinate": []int{1, 1}}).ok()
	for _, id := range r.Sessions() {
		r.Forget(id)
	}
	call(t, s, "list_directory", nil).ok() // opens another session
	call(t, s, "local_pc_click", args{"coordinate": []int{1, 1}}).fails("local_pc_screenshot first")
}

// Two chats of one program have one key. What one of them aims at counts in its
// own picture, where the protocol tells the two apart; where it does not, the
// answer says which picture it counted in, and a place can name its own.
func TestTwoChatsWithOneKey(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", ""} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			t.Parallel()
			r, screen := screenRig(t, nil)
			one, two := r.client(t, r.Key, protocol), r.client(t, r.Key, protocol)
			call(t, one, "local_pc_screenshot", nil).ok("pic_1", "1456 × 819")
			if protocol != "" {
				call(t, two, "local_pc_click", args{"coordinate": []int{1, 1}}).fails("local_pc_screenshot first")
			}
			call(t, two, "local_pc_screenshot", args{"max_edge": 800}).ok("pic_2", "800 × 450")
			ones := "pic_1"
			if protocol == "" {
				ones = "pic_2"
			}
			call(t, one, "local_pc_click", args{"coordinate": []int{728, 409}}).ok("Clicked at (728, 409), in picture " + ones + ".")
			call(t, two, "local_pc_click", args{"coordinate": []int{400, 225}}).ok("in picture pic_2.")
			call(t, one, "local_pc_drag", args{"path": [][]int{{1, 1}, {5, 5}}}).ok("in picture " + ones + ".")
			call(t, one, "local_pc_cursor_position", nil).ok(ones)
			call(t, one, "local_pc_zoom", args{"region": []int{0, 0, 9, 9}}).ok("count in picture " + ones + ".")
			call(t, one, "local_pc_click", args{"coordinate": []int{728, 409}, "picture": "pic_1"}).ok("Clicked at (728, 409).")
			want := []string{ones, "pic_2", ones, "pic_1"}
			for i, a := range screen.Reached() {
				if a.Action.Picture != want[i] {
					t.Errorf("action %d counted in %s, not %s", i, a.Action.Picture, want[i])
				}
			}
		})
	}
}

// The person shares another screen than the first: that is the one which is
// shown, unless the program names one.
func TestThePersonSharesAnotherScreen(t *testing.T) {
	r, screen := screenRig(t, nil)
	s := r.client(t, r.Key, "")
	screen.Fail = func(m wire.Message) error {
		if p, ok := m.Payload.(*wire.Screenshot); ok && p.Monitor != 2 {
			return wire.Errorf(wire.CodeDenied, "The person does not share this screen.").With(map[string]any{"shared": []int{2}})
		}
		return nil
	}
	if _, p := call(t, s, "local_pc_screenshot", nil).ok().picture(); p.Monitor != 2 {
		t.Errorf("the picture is of screen %d", p.Monitor)
	}
	call(t, s, "local_pc_screenshot", args{"monitor": 0}).fails("does not share")
	call(t, s, "local_pc_screenshot", args{"region": []int{-1920, 0, -1900, 10}}).ok()
	if n := len(screen.Asked()); n != 5 {
		t.Errorf("the screen was asked %d times", n)
	}
}

// While the person is asked whether the screen may be seen, the call is pending;
// its picture is fetched afterwards, and what comes next counts in it.
func TestAPendingPictureIsHadLater(t *testing.T) {
	p := newPerson(func(m wire.Message) bool { return m.Type == wire.TypeScreenshot })
	r, screen := screenRig(t, p.ask, hold(time.Second))
	s := r.client(t, r.Key, "")
	pending := call(t, s, "local_pc_screenshot", nil).ok(`"status":"pending"`, "see the screen")
	p.waitAsked(t)
	call(t, s, "local_pc_click", args{"coordinate": []int{1, 1}}).fails("local_pc_screenshot first")
	p.answers <- nil
	got := call(t, s, "get_result", args{"id": pending.str("id")}).ok("1456 × 819")
	if _, pic := got.picture(); pic.ID != "pic_1" {
		t.Errorf("the picture is %+v", pic)
	}
	call(t, s, "local_pc_click", args{"coordinate": []int{1, 1}}).ok()
	// It is kept, with its picture.
	call(t, s, "get_result", args{"id": pending.str("id")}).ok("1456 × 819").picture()
	if n := len(screen.Reached()); n != 1 {
		t.Errorf("%d actions were done", n)
	}
}

func TestWithoutAScreen(t *testing.T) {
	old := func(_ *hub.Options, o *tunnel.Options) {
		hello := o.Hello
		o.Hello = func() wire.Hello {
			h := hello()
			h.Protocol, h.Capabilities = "1.2", append(h.Capabilities, "computer")
			return h
		}
	}
	for say, options := range map[string][]tunneltest.Option{"has no screen": nil, "too old": {old}} {
		r := newRig(t, func(_ context.Context, m wire.Message) error {
			if m.Type == wire.TypeScreenshot {
				t.Error("the computer was asked for a picture")
			}
			return nil
		}, options...)
		s := r.client(t, r.Key, "")
		if got := call(t, s, "local_pc_screenshot", nil).fails(say); got.str("code") != string(wire.CodeNotSupported) {
			t.Errorf("%v", got.all)
		}
	}
}
