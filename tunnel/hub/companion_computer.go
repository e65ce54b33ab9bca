package hub

import (
	"image"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// 1.1 knows no pictures: its coordinates are the screens' own pixels, and its
// pictures are not made smaller. So the pictures that were sent on are kept
// here, as far as what is aimed at them needs it.

// maxViews of a session are kept; what is aimed at an older one is stale.
const maxViews = 32

// typedAtOnce is how many characters are typed by one request: at 20 ms each
// the answer comes well before it is given up.
const typedAtOnce = 500

// longestHold is how long 1.1 holds a key at most.
const longestHold = 5 * time.Second

func (c *companion) shown(session string, v space.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append(c.views[session], v)
	c.views[session] = list[max(0, len(list)-maxViews):]
}

// view is a picture that the session was sent; "" is the last one.
func (c *companion) view(session, id string) (space.View, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range slices.Backward(c.views[session]) {
		if id == "" || v.ID == id {
			return v, true
		}
	}
	return space.View{}, false
}

// offered tells that the computer's program has a feature, or says in words
// that it has not.
func (j *job) offered(words, group string, fine ...string) error {
	switch m := j.c.m; {
	case !slices.Contains(m.Granted, msg.ComputerUse):
		return wire.Errorf(wire.CodeNotSupported, "The computer's program does not offer its screen, mouse and keyboard: they are switched off in it, or it has no screen that it can use.")
	case !m.Hello.Advertises(group, fine...):
		return wire.Errorf(wire.CodeNotSupported, "The computer's program does not offer %s.", words)
	}
	return nil
}

// screens are the computer's screens now.
func (j *job) screens() (*msg.DisplayInfo, space.Layout, error) {
	d, err := ask[*msg.DisplayInfo](j, msg.TypeDisplays, &msg.Empty{})
	if err != nil {
		return nil, space.Layout{}, err
	}
	var l space.Layout
	for _, m := range d.Monitors {
		at := image.Pt(m.Origin[0], m.Origin[1])
		l.Screens = append(l.Screens, space.Screen{Index: m.Index, Primary: m.Primary, Scale: m.Scale,
			Device: image.Rectangle{Min: at, Max: at.Add(image.Pt(m.PhysicalSize[0], m.PhysicalSize[1]))}})
	}
	return d, l, nil
}

// aimed maps points of a picture to device pixels; without a picture they are
// such already.
func (j *job) aimed(session, picture string, points ...*wire.Point) error {
	if picture == "" {
		return nil
	}
	stale := wire.Errorf(wire.CodePictureStale, "The picture that this was aimed at is too old, or the screens have changed since. Take a new one.")
	v, ok := j.c.view(session, picture)
	if !ok {
		return stale
	}
	_, l, err := j.screens()
	if err != nil {
		return err
	}
	if l.Fingerprint() != v.Layout {
		return stale
	}
	for _, p := range points {
		at, err := v.Device(image.Pt(p[0], p[1]))
		if err != nil {
			return wire.Errorf(wire.CodeBounds, "%s.", sentence(err)).With(map[string]any{"requested_coordinate": p, "picture_size": wire.Point{v.Size.X, v.Size.Y}})
		}
		*p = wire.Point{at.X, at.Y}
	}
	return nil
}

func sentence(err error) string {
	r := []rune(err.Error())
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// input does one action of mouse or keyboard.
func (j *job) input(p *wire.InputAction) error {
	a := *p
	if a.Coordinate != nil {
		a.Coordinate = new(*p.Coordinate)
	}
	a.Path = slices.Clone(p.Path)
	in, err := j.action(&a)
	if err != nil {
		return err
	}
	points := []*wire.Point{}
	if a.Coordinate != nil {
		points = append(points, a.Coordinate)
	}
	for i := range a.Path {
		points = append(points, &a.Path[i])
	}
	if len(points) > 0 {
		if err := j.aimed(a.SessionID, a.Picture, points...); err != nil {
			return err
		}
	}
	if a.Coordinate != nil {
		in.Coordinate = new(msg.Pair(*a.Coordinate))
	} else if needsPlace(a.Action) {
		// Where the pointer is: 1.1 has no word for it.
		at, err := ask[*msg.CursorPosition](j, msg.TypeCursor, &msg.Empty{})
		if err != nil {
			return err
		}
		in.Coordinate = &msg.Pair{at.X, at.Y}
	}
	for _, at := range a.Path {
		in.Path = append(in.Path, msg.Pair(at))
	}
	if err := j.act(&a, in); err != nil {
		return err
	}
	return j.send(wire.TypeAck, &wire.Empty{})
}

func needsPlace(action string) bool {
	return strings.HasSuffix(action, "_click") || strings.HasPrefix(action, "mouse_")
}

// action is the request for an action, without places; an error where the
// computer's program does not do it.
func (j *job) action(a *wire.InputAction) (*msg.Input, error) {
	in := &msg.Input{Action: a.Action}
	switch a.Action {
	case wire.ActDrag:
		if len(a.Modifiers) > 0 {
			return nil, wire.Errorf(wire.CodeNotSupported, "The computer's program holds no keys while it drags. Hold them yourself, with mouse_down and mouse_up.")
		}
		in.Button = orLeft(a.Button)
		return in, j.offered("dragging", "input", "input.drag.path")
	case wire.ActMouseDown, wire.ActMouseUp:
		in.Button = orLeft(a.Button)
		return in, j.offered("holding a mouse button", "input", "input.mouse.down_up")
	case wire.ActMouseMove:
		return in, j.offered("moving the mouse", "input", "input.click")
	case wire.ActType:
		return in, j.offered("typing", "input")
	case wire.ActKey, wire.ActHoldKey:
		in.Key = new(keyName(a.Key))
		if a.Action == wire.ActKey {
			return in, j.offered("pressing keys", "input")
		}
		if hold := time.Duration(a.DurationMS) * time.Millisecond; hold > longestHold {
			return nil, wire.Errorf(wire.CodeNotSupported, "The computer's program holds a key for %g seconds at most.", longestHold.Seconds())
		}
		in.DurationMS = &a.DurationMS
		return in, j.offered("holding a key", "input", "input.key.hold")
	case wire.ActScroll:
		amount := 3
		if a.ScrollAmount != nil {
			amount = *a.ScrollAmount
		}
		in.ScrollAmount, in.ScrollDirection = &amount, new("down")
		if a.ScrollDirection != "" {
			in.ScrollDirection = &a.ScrollDirection
		}
		in.Modifiers = a.Modifiers
		return in, j.offered("scrolling", "input", "input.scroll.amount")
	case wire.ActWait:
		return in, j.offered("waiting", "input", "input.wait", "screenshot.capture")
	}
	if in.Modifiers = a.Modifiers; len(a.Modifiers) > 0 {
		if err := j.offered("holding keys while it clicks", "input", "input.click.modifiers"); err != nil {
			return nil, err
		}
	}
	return in, j.offered("clicking", "input", "input.click")
}

func orLeft(button string) *string {
	if button == "" {
		button = "left"
	}
	return &button
}

// act sends the request, in parts where it takes long.
func (j *job) act(a *wire.InputAction, in *msg.Input) error {
	one := func() error {
		_, err := ask[*msg.Ack](j, msg.TypeInput, in)
		return err
	}
	switch a.Action {
	case wire.ActWait: // here: it is the same, and may be longer
		select {
		case <-time.After(time.Duration(a.DurationMS) * time.Millisecond):
			return nil
		case <-j.ctx.Done():
			return j.cancelled()
		}
	case wire.ActType:
		in.Paste, in.PreserveClipboard = a.Paste, a.PreserveClipboard
		for part := range slices.Chunk([]rune(a.Text), typedAtOnce) {
			in.Text = new(string(part))
			if err := one(); err != nil {
				return err
			}
		}
		return nil
	case wire.ActKey:
		for range max(a.Repeat, 1) {
			if err := one(); err != nil {
				return err
			}
		}
		return nil
	}
	return one()
}

// keyNames are what 1.1 calls the keys that others call so, in lower case.
var keyNames = map[string]string{"return": "enter", "kp_enter": "enter", "escape": "esc", "page_up": "pageup", "prior": "pageup", "page_down": "pagedown", "next": "pagedown",
	"control": "ctrl", "control_l": "ctrl", "control_r": "ctrl", "shift_l": "shift", "shift_r": "shift", "alt_l": "alt", "alt_r": "alt", "option": "alt",
	"super_l": "super", "super_r": "super", "meta": "super", "meta_l": "super", "meta_r": "super", "cmd": "super", "command": "super", "win": "super", "del": "delete"}

// keyName is a chord in the names of 1.1.
func keyName(chord string) string {
	if r := []rune(chord); len(r) == 1 && unicode.IsUpper(r[0]) {
		return "shift+" + string(unicode.ToLower(r[0]))
	}
	keys := strings.Split(chord, "+")
	for i, k := range keys {
		if keys[i] = strings.ToLower(strings.TrimSpace(k)); keyNames[keys[i]] != "" {
			keys[i] = keyNames[keys[i]]
		}
	}
	return strings.Join(keys, "+")
}

// cursor is where the pointer is, in the last picture too.
func (j *job) cursor(p *wire.ComputerQuery) error {
	if err := j.offered("where the mouse pointer is", "input", "cursor.position"); err != nil {
		return err
	}
	at, err := ask[*msg.CursorPosition](j, msg.TypeCursor, &msg.Empty{})
	if err != nil {
		return err
	}
	out := &wire.CursorResponse{X: at.X, Y: at.Y, Monitor: at.Monitor}
	if v, ok := j.c.view(p.SessionID, ""); ok {
		if in, ok := v.Picture(image.Pt(at.X, at.Y)); ok {
			out.Picture, out.InPicture = v.ID, &wire.Point{in.X, in.Y}
		}
	}
	return j.send(wire.TypeCursorResponse, out)
}

func (j *job) displays() error {
	if err := j.offered("what screens it has", "screenshot", "display.info"); err != nil {
		return err
	}
	d, _, err := j.screens()
	if err != nil {
		return err
	}
	out := &wire.DisplaysResponse{Monitors: []wire.Monitor{}}
	for _, m := range d.Monitors {
		out.Monitors = append(out.Monitors, wire.Monitor{Index: m.Index, Primary: m.Primary, PhysicalSize: wire.Point(m.PhysicalSize), LogicalSize: wire.Point(m.LogicalSize), Scale: m.Scale, Origin: wire.Point(m.Origin)})
	}
	return j.send(wire.TypeDisplaysResponse, out)
}

func (j *job) windows(p *wire.Windows) error {
	if err := j.offered("a list of windows", "windows", "window.list"); err != nil {
		return err
	}
	r, err := ask[*msg.WindowList](j, msg.TypeWindows, &msg.Windows{AppBundleID: optional(p.AppBundleID), IncludeMinimized: p.IncludeMinimized, IncludeOffscreen: p.IncludeOffscreen})
	if err != nil {
		return err
	}
	out := &wire.WindowsResponse{Windows: []wire.Window{}, Truncated: r.Truncated || len(r.Windows) > wire.MaxWindows}
	for _, w := range r.Windows[:min(len(r.Windows), wire.MaxWindows)] {
		out.Windows = append(out.Windows, wire.Window{WindowID: w.ID, PID: w.PID, AppName: short(value(w.AppName)), AppBundleID: short(value(w.AppBundleID)), Title: short(value(w.Title)),
			Bounds: wire.Rect(w.Bounds), Monitor: w.Monitor, IsFocused: w.IsFocused, IsMinimized: w.IsMinimized, IsFullscreen: w.IsFullscreen})
	}
	return j.send(wire.TypeWindowsResponse, out)
}

// short is a name that is no longer than a message holds.
func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), wire.MaxText)], "") }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (j *job) apps(p *wire.Apps) error {
	if err := j.offered("a list of programs", "apps", "app.list"); err != nil {
		return err
	}
	r, err := ask[*msg.AppList](j, msg.TypeApps, &msg.Apps{IncludeBackground: p.IncludeBackground})
	if err != nil {
		return err
	}
	out := &wire.AppsResponse{Apps: []wire.App{}}
	for _, a := range r.Apps[:min(len(r.Apps), wire.MaxListEntries)] {
		out.Apps = append(out.Apps, wire.App{PID: a.PID, Name: short(a.Name), BundleID: short(value(a.BundleID)), ExecutablePath: value(a.ExecutablePath), IsFrontmost: a.IsFrontmost, WindowCount: a.WindowCount})
	}
	return j.send(wire.TypeAppsResponse, out)
}

// told sends a request whose answer says nothing, and the answer to it.
func (j *job) told(t msg.Type, p wire.Payload, reply wire.Type, answer wire.Payload) error {
	if _, err := ask[*msg.Ack](j, t, p); err != nil {
		return err
	}
	return j.send(reply, answer)
}

func (j *job) focus(p *wire.WindowFocus) error {
	if err := j.offered("bringing a window to the front", "windows", "window.focus"); err != nil {
		return err
	}
	return j.told(msg.TypeWindowFocus, &msg.WindowFocus{WindowID: p.WindowID, Raise: p.Raise}, wire.TypeAck, &wire.Empty{})
}

func (j *job) launch(p *wire.AppLaunch) error {
	if err := j.offered("starting a program", "apps", "app.launch"); err != nil {
		return err
	}
	// 1.1 does not tell the process.
	return j.told(msg.TypeAppLaunch, &msg.AppLaunch{BundleID: optional(p.BundleID), ExecutablePath: optional(p.ExecutablePath), Args: p.Args, Activate: p.Activate}, wire.TypeAppLaunched, &wire.AppLaunched{})
}

func (j *job) readClipboard(p *wire.ClipRead) error {
	if err := j.offered("the clipboard", "clipboard", "clipboard.read"); err != nil {
		return err
	}
	r, err := ask[*msg.ClipboardContent](j, msg.TypeClipboardRead, &msg.ClipboardRead{Format: orText(p.Format)})
	if err != nil {
		return err
	}
	if len(r.Content) > wire.MaxClip {
		return wire.Errorf(wire.CodeTooLarge, "The clipboard has more than the %d bytes that can be sent.", wire.MaxClip)
	}
	return j.send(wire.TypeClipReadResponse, &wire.ClipReadResponse{Format: "text", Content: r.Content, SizeBytes: len(r.Content)})
}

func (j *job) writeClipboard(p *wire.ClipWrite) error {
	if err := j.offered("the clipboard", "clipboard", "clipboard.write"); err != nil {
		return err
	}
	return j.told(msg.TypeClipboardWrite, &msg.ClipboardWrite{Format: orText(p.Format), Content: p.Content}, wire.TypeAck, &wire.Empty{})
}

func orText(format string) string {
	if format == "" {
		return "text"
	}
	return format
}

func (j *job) permissions(p *wire.Permissions) error {
	if err := j.offered("a check of permissions", "permissions", "permissions.check"); err != nil {
		return err
	}
	r, err := ask[*msg.PermissionStates](j, msg.TypePermissions, &msg.Permissions{Permissions: p.Permissions})
	if err != nil {
		return err
	}
	out := &wire.PermissionsResponse{Permissions: map[string]string{}}
	for _, name := range p.Permissions {
		out.Permissions[name] = "unknown"
		if is := r.Permissions[name]; slices.Contains([]string{"granted", "denied", "not_applicable"}, is) {
			out.Permissions[name] = is
		}
	}
	return j.send(wire.TypePermissionsResponse, out)
}

// newPicture names a picture that is sent on.
func newPicture() string { return "pic_" + uuid.NewString() }
