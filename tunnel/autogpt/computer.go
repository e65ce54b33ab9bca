package autogpt

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// picturesPerMinute is the protocol's.
const picturesPerMinute = 10

// longestHold bounds hold_key and wait, in milliseconds; pasteFrom is how many
// characters a text must have to be pasted.
const (
	longestHold = 5000
	pasteFrom   = 200
)

// inLine tells whether a request is about the computer, so done one at a time.
// The check of permissions never asks anybody and touches nothing: it waits for
// none.
func inLine(t msg.Type) bool {
	return msg.CapabilityOf(t) == msg.ComputerUse && t != msg.TypePermissions
}

// desktop makes the job of a request about the computer.
func (s *socket) desktop(m msg.Message) (job, error) {
	at := place{session: msg.SessionKey(s.ch.session), root: s.ch.root}
	lacks := func(what string) error { return unsupported(m, "%s is needed.", what) }
	switch p := m.Payload.(type) {
	case *msg.Screenshot:
		if p.Region != nil && p.WindowID != nil {
			return nil, unsupported(m, "A picture is of a region or of a window, not of both.")
		}
		if p.Region != nil && (p.Region[2] <= p.Region[0] || p.Region[3] <= p.Region[1]) {
			return nil, unsupported(m, "The region is left, top, right and bottom, with right and bottom the larger.")
		}
		if p.WindowID != nil && !s.listed(*p.WindowID) {
			return nil, windowStale(*p.WindowID)
		}
		return &shotJob{place: at, p: p, most: int(min(s.fileSize, msg.MaxBase64))}, nil
	case *msg.Input:
		return newInput(at, m, p)
	case *msg.Empty:
		if m.Type == msg.TypeCursor {
			return &cursorJob{place: at}, nil
		}
		return &displaysJob{place: at}, nil
	case *msg.Windows:
		return &windowsJob{place: at, p: p, s: s}, nil
	case *msg.WindowFocus:
		if !s.listed(p.WindowID) {
			return nil, windowStale(p.WindowID)
		}
		return &plainJob{ask: wire.TypeWindowFocus, p: &wire.WindowFocus{SessionID: at.session, WindowID: p.WindowID, Raise: p.Raise}}, nil
	case *msg.Apps:
		return &appsJob{place: at, p: p}, nil
	case *msg.AppLaunch:
		if value(p.BundleID) == "" && value(p.ExecutablePath) == "" {
			return nil, lacks("A path of a program, or a bundle id on a Mac,")
		}
		return &plainJob{ask: wire.TypeAppLaunch, p: &wire.AppLaunch{SessionID: at.session, BundleID: value(p.BundleID), ExecutablePath: value(p.ExecutablePath), Args: p.Args, Activate: p.Activate}}, nil
	case *msg.ClipboardRead:
		if p.Format != "text" {
			return nil, unsupported(m, "Only text is read from the clipboard.")
		}
		return &clipJob{place: at, most: int(min(s.fileSize, msg.MaxText))}, nil
	case *msg.ClipboardWrite:
		if p.Format != "text" {
			return nil, unsupported(m, "Only text is put on the clipboard.")
		}
		if most := min(s.fileSize, wire.MaxClip); int64(len(p.Content)) > most {
			return nil, wire.Errorf(msg.CodeTooLarge, "The text is larger than the %d bytes that are put on the clipboard at most.", most)
		}
		return &plainJob{ask: wire.TypeClipWrite, p: &wire.ClipWrite{SessionID: at.session, Format: "text", Content: p.Content}}, nil
	case *msg.Permissions:
		return newPermissions(at, p), nil
	}
	return nil, unsupported(m, "This computer does not offer this.")
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// plainJob is a request whose answer says nothing.
type plainJob struct {
	ack
	ask wire.Type
	p   wire.Payload
}

func (j *plainJob) request() (wire.Type, wire.Payload) { return j.ask, j.p }

// answered is the payload of a handler's last frame.
func answered[T wire.Payload](p wire.Payload) (T, error) {
	r, ok := p.(T)
	if !ok {
		return r, wire.Errorf(msg.CodeInternal, "The computer's answer is not understood here.")
	}
	return r, nil
}

// shotJob is SCREENSHOT_REQUEST.
type shotJob struct {
	silent
	place
	p    *msg.Screenshot
	most int
	// first: of the first monitor, whichever was asked for.
	first bool
}

// again tells whether to ask once more: a monitor that is not there is the
// first one, in this protocol.
func (j *shotJob) again(err error) bool {
	if wire.CodeOf(err) != wire.CodeInvalid || j.first || j.p.Monitor <= 0 || j.p.WindowID != nil {
		return false
	}
	j.first = true
	return true
}

func (j *shotJob) request() (wire.Type, wire.Payload) {
	r := &wire.Screenshot{SessionID: j.session, Monitor: j.p.Monitor, Format: j.p.Format, Quality: min(max(j.p.Quality, 1), 100), WindowID: value(j.p.WindowID),
		IncludeCursor: j.p.IncludeCursor, MaxBytes: j.most, Exact: true}
	if r.Monitor < -1 || j.first {
		r.Monitor = 0
	}
	r.Monitor = min(r.Monitor, 63)
	if j.p.Region != nil {
		region := wire.Rect(*j.p.Region)
		for i := range region {
			region[i] = inPlane(region[i])
		}
		r.Region = &region
	}
	return wire.TypeScreenshot, r
}

func (j *shotJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	r, err := answered[*wire.ScreenshotResponse](p)
	if err != nil {
		return "", nil, err
	}
	// Coordinates of this protocol are the screens' own pixels.
	if r.Width != r.Shows[2]-r.Shows[0] || r.Height != r.Shows[3]-r.Shows[1] {
		return "", nil, wire.Errorf(msg.CodeTooLarge, "The picture is larger than %d pixels on a side. Ask for one monitor, or for a region.", 8000)
	}
	out := &msg.ScreenshotImage{Image: base64.StdEncoding.EncodeToString(r.Image), MIMEType: r.MIMEType, Width: r.Width, Height: r.Height,
		Monitor: r.Monitor, Region: j.p.Region, DisplayScale: r.DisplayScale, Meta: msg.ScreenshotMeta{Origin: msg.Pair{r.Shows[0], r.Shows[1]}, DisplayID: max(r.Monitor, 0)}}
	switch {
	case j.p.WindowID != nil:
		out.LogicalSize = &msg.Pair{r.Width, r.Height}
	case r.LogicalSize != nil:
		out.LogicalSize = new(msg.Pair(*r.LogicalSize))
	}
	return msg.TypeScreenshotImage, out, nil
}

// inPlane keeps a coordinate among those that a message of localpc.v1 holds;
// one that was not is outside of every screen either way.
func inPlane(n int) int { return min(max(n, -1<<20), 1<<20) }

// inputJob is INPUT_ACTION.
type inputJob struct {
	ack
	a wire.InputAction
}

func (j *inputJob) request() (wire.Type, wire.Payload) { return wire.TypeInput, &j.a }

func newInput(at place, m msg.Message, p *msg.Input) (*inputJob, error) {
	j := &inputJob{a: wire.InputAction{SessionID: at.session, Action: p.Action}}
	a := &j.a
	lacks := func(what string) error { return unsupported(m, "The action %s needs a %s.", p.Action, what) }
	if p.Coordinate != nil {
		a.Coordinate = &wire.Point{inPlane(p.Coordinate[0]), inPlane(p.Coordinate[1])}
	}
	clicks := slices.Contains([]string{wire.ActLeftClick, wire.ActRightClick, wire.ActMiddleClick, wire.ActDoubleClick, wire.ActTripleClick}, p.Action)
	switch {
	case clicks, p.Action == wire.ActScroll:
		a.Modifiers = p.Modifiers
	case p.Action == wire.ActMouseDown, p.Action == wire.ActMouseUp, p.Action == wire.ActDrag:
		if a.Button = value(p.Button); a.Button == "" {
			a.Button = "left"
		}
	}
	switch p.Action {
	case wire.ActType:
		a.Coordinate, a.Text = nil, value(p.Text)
		if a.Text == "" {
			return nil, lacks("text")
		}
		if len(a.Text) > wire.MaxTyped {
			return nil, wire.Errorf(msg.CodeTooLarge, "At most %d bytes are typed at once. Send the text in parts.", wire.MaxTyped)
		}
		a.Paste, a.PreserveClipboard = p.Paste && utf8.RuneCountInString(a.Text) >= pasteFrom, p.PreserveClipboard
	case wire.ActKey, wire.ActHoldKey:
		a.Coordinate, a.Key = nil, chord(value(p.Key))
		if a.Key == "" {
			return nil, lacks("key")
		}
		if p.Action == wire.ActHoldKey {
			a.DurationMS = held(p.DurationMS)
		}
	case wire.ActWait:
		a.Coordinate, a.DurationMS = nil, held(p.DurationMS)
	case wire.ActScroll:
		scroll(a, p)
	case wire.ActDrag:
		if a.Coordinate = nil; len(p.Path) == 0 {
			return nil, lacks("path")
		}
		a.Path = path2(p.Path)
	default:
		if p.Coordinate == nil {
			return nil, lacks("coordinate")
		}
	}
	return j, nil
}

// chord is the keys of a chord, trimmed and in lower case; "+" itself is a key
// where nothing else stands.
func chord(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if s == "" || s == "+" {
		return s
	}
	rest, plus := strings.CutSuffix(s, "++")
	if plus {
		s = rest
	}
	keys := strings.Split(s, "+")
	for i, k := range keys {
		if keys[i] = strings.TrimSpace(k); keys[i] == "meta" {
			keys[i] = "super"
		}
	}
	if plus {
		keys = append(keys, "plus")
	}
	return strings.Join(keys, "+")
}

func held(ms *int) int {
	if ms == nil {
		return 0
	}
	return min(max(*ms, 0), longestHold)
}

// scroll takes the newer fields before those of older hubs.
func scroll(a *wire.InputAction, p *msg.Input) {
	amount := 3
	for _, n := range []*int{p.Clicks, p.ScrollAmount} {
		if n != nil {
			amount = min(max(*n, 0), 1000)
		}
	}
	a.ScrollAmount, a.ScrollDirection = &amount, "down"
	for _, d := range []*string{p.Direction, p.ScrollDirection} {
		if d != nil {
			a.ScrollDirection = *d
		}
	}
}

// path2 is a path of two points at least, thinned where it has too many.
func path2(path []msg.Pair) []wire.Point {
	var out []wire.Point
	most := min(len(path), wire.MaxDragPoints)
	for i := range most {
		p := path[i*(len(path)-1)/max(most-1, 1)]
		out = append(out, wire.Point{inPlane(p[0]), inPlane(p[1])})
	}
	if len(out) == 1 {
		out = append(out, out[0])
	}
	return out
}

// cursorJob is CURSOR_POSITION_REQUEST.
type cursorJob struct {
	silent
	place
}

func (j *cursorJob) request() (wire.Type, wire.Payload) {
	return wire.TypeCursor, &wire.ComputerQuery{SessionID: j.session}
}

func (j *cursorJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	r, err := answered[*wire.CursorResponse](p)
	if err != nil {
		return "", nil, err
	}
	return msg.TypeCursorPosition, &msg.CursorPosition{X: r.X, Y: r.Y, Monitor: r.Monitor}, nil
}

// displaysJob is DISPLAY_INFO_REQUEST.
type displaysJob struct {
	silent
	place
}

func (j *displaysJob) request() (wire.Type, wire.Payload) {
	return wire.TypeDisplays, &wire.ComputerQuery{SessionID: j.session}
}

func (j *displaysJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	r, err := answered[*wire.DisplaysResponse](p)
	if err != nil {
		return "", nil, err
	}
	out := &msg.DisplayInfo{}
	for _, m := range r.Monitors {
		out.Monitors = append(out.Monitors, msg.Monitor{Index: m.Index, Primary: m.Primary, PhysicalSize: msg.Pair(m.PhysicalSize),
			LogicalSize: msg.Pair(m.LogicalSize), Scale: m.Scale, Origin: msg.Pair(m.Origin)})
	}
	return msg.TypeDisplayInfo, out, nil
}

// windowsJob is WINDOW_LIST_REQUEST.
type windowsJob struct {
	silent
	place
	p *msg.Windows
	s *socket
}

func (j *windowsJob) request() (wire.Type, wire.Payload) {
	return wire.TypeWindows, &wire.Windows{SessionID: j.session, AppBundleID: value(j.p.AppBundleID), IncludeMinimized: j.p.IncludeMinimized, IncludeOffscreen: j.p.IncludeOffscreen}
}

func (j *windowsJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	r, err := answered[*wire.WindowsResponse](p)
	if err != nil {
		return "", nil, err
	}
	out, ids := &msg.WindowList{Truncated: r.Truncated}, map[string]bool{}
	for _, w := range r.Windows {
		ids[w.WindowID] = true
		out.Windows = append(out.Windows, msg.Window{ID: w.WindowID, PID: w.PID, AppName: orNull(w.AppName), AppBundleID: orNull(w.AppBundleID), Title: orNull(w.Title),
			Bounds: msg.Rect(w.Bounds), Monitor: w.Monitor, IsFocused: w.IsFocused, IsMinimized: w.IsMinimized, IsFullscreen: w.IsFullscreen})
	}
	j.s.mu.Lock()
	j.s.windows = ids
	j.s.mu.Unlock()
	return msg.TypeWindowList, out, nil
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// listed tells whether a window's id is one of the last list that this
// connection was given: a HELLO voids all before it.
func (s *socket) listed(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.windows[id]
}

// appsJob is APP_LIST_REQUEST.
type appsJob struct {
	silent
	place
	p *msg.Apps
}

func (j *appsJob) request() (wire.Type, wire.Payload) {
	return wire.TypeApps, &wire.Apps{SessionID: j.session, IncludeBackground: j.p.IncludeBackground}
}

func (j *appsJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	r, err := answered[*wire.AppsResponse](p)
	if err != nil {
		return "", nil, err
	}
	out := &msg.AppList{}
	for _, a := range r.Apps {
		out.Apps = append(out.Apps, msg.App{PID: a.PID, Name: a.Name, BundleID: orNull(a.BundleID), ExecutablePath: orNull(a.ExecutablePath), IsFrontmost: a.IsFrontmost, WindowCount: a.WindowCount})
	}
	return msg.TypeAppList, out, nil
}

// clipJob is CLIPBOARD_READ.
type clipJob struct {
	silent
	place
	most int
}

func (j *clipJob) request() (wire.Type, wire.Payload) {
	return wire.TypeClipRead, &wire.ClipRead{SessionID: j.session, Format: "text"}
}

func (j *clipJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	r, err := answered[*wire.ClipReadResponse](p)
	if err != nil {
		return "", nil, err
	}
	if len(r.Content) > j.most {
		return "", nil, wire.Errorf(msg.CodeTooLarge, "The clipboard has more than the %d bytes that can be sent.", j.most)
	}
	content := text([]byte(r.Content))
	return msg.TypeClipboardContent, &msg.ClipboardContent{Format: "text", Content: content, Size: len(content)}, nil
}

// permissionsJob is PERMISSIONS_CHECK_REQUEST.
type permissionsJob struct {
	silent
	place
	names, known []string
}

func newPermissions(at place, p *msg.Permissions) *permissionsJob {
	j := &permissionsJob{place: at, names: p.Permissions}
	for _, name := range p.Permissions {
		if slices.Contains(msg.KnownPermissions, name) && !slices.Contains(j.known, name) {
			j.known = append(j.known, name)
		}
	}
	return j
}

func (j *permissionsJob) request() (wire.Type, wire.Payload) {
	return wire.TypePermissions, &wire.Permissions{SessionID: j.session, Permissions: j.known}
}

func (j *permissionsJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	r, err := answered[*wire.PermissionsResponse](p)
	if err != nil {
		return "", nil, err
	}
	out := &msg.PermissionStates{Permissions: msg.Map{}}
	for _, name := range j.names {
		out.Permissions[name] = "not_applicable"
		if is := r.Permissions[name]; slices.Contains(j.known, name) && is != "" {
			out.Permissions[name] = is
		}
	}
	return msg.TypePermissionStates, out, nil
}

// stand gives a request about the computer its place behind the one that came
// before: when it may begin, and what lets the next one. They begin in the order
// in which they came; one that was answered with PERMISSION_PENDING lets the
// next begin.
func (c *Client) stand() (ahead <-chan struct{}, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead, behind := c.line, make(chan struct{})
	c.line = behind
	return ahead, func() { close(behind) }
}
