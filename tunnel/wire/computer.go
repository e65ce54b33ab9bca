package wire

import (
	"errors"
	"fmt"
	"slices"
)

// The computer: its screens, mouse and keyboard, windows and clipboard. The
// names and fields are those of wire 1.1 (section 5) with what it lacks: a
// session, how long the person has, and the picture that is aimed at.
const (
	TypeScreenshot          Type = "SCREENSHOT_REQUEST" // H to M -> SCREENSHOT_RESPONSE
	TypeScreenshotResponse  Type = "SCREENSHOT_RESPONSE"
	TypeInput               Type = "INPUT_ACTION"            // H to M -> ACK
	TypeCursor              Type = "CURSOR_POSITION_REQUEST" // H to M -> CURSOR_POSITION_RESPONSE
	TypeCursorResponse      Type = "CURSOR_POSITION_RESPONSE"
	TypeDisplays            Type = "DISPLAY_INFO_REQUEST" // H to M -> DISPLAY_INFO_RESPONSE
	TypeDisplaysResponse    Type = "DISPLAY_INFO_RESPONSE"
	TypeWindows             Type = "WINDOW_LIST_REQUEST" // H to M -> WINDOW_LIST_RESPONSE
	TypeWindowsResponse     Type = "WINDOW_LIST_RESPONSE"
	TypeWindowFocus         Type = "WINDOW_FOCUS"     // H to M -> ACK
	TypeApps                Type = "APP_LIST_REQUEST" // H to M -> APP_LIST_RESPONSE
	TypeAppsResponse        Type = "APP_LIST_RESPONSE"
	TypeAppLaunch           Type = "APP_LAUNCH" // H to M -> APP_LAUNCHED
	TypeAppLaunched         Type = "APP_LAUNCHED"
	TypeClipRead            Type = "CLIPBOARD_READ" // H to M -> CLIPBOARD_READ_RESPONSE
	TypeClipReadResponse    Type = "CLIPBOARD_READ_RESPONSE"
	TypeClipWrite           Type = "CLIPBOARD_WRITE"           // H to M -> ACK
	TypePermissions         Type = "PERMISSIONS_CHECK_REQUEST" // H to M -> PERMISSIONS_CHECK_RESPONSE
	TypePermissionsResponse Type = "PERMISSIONS_CHECK_RESPONSE"
)

// Limits of the computer.
const (
	// MaxPicture is the most bytes of one picture, as wire 1.1 has it.
	MaxPicture = 12_533_760
	// MaxFramePicture is the most bytes of one that fits into a frame of this
	// profile (base64 makes them 4/3); it is what a request without max_bytes gets.
	MaxFramePicture = 2_900_000
	MaxTyped        = 64 << 10 // bytes of text in one INPUT_ACTION
	MaxDragPoints   = 10_000
	MaxClip         = 2_785_280 // bytes of a clipboard's text
	MaxWindows      = 1000      // in one list
	MaxMonitors     = 64
	MaxHoldMS       = 300_000 // of hold_key and wait
)

// The actions of an INPUT_ACTION.
const (
	ActLeftClick   = "left_click"
	ActRightClick  = "right_click"
	ActMiddleClick = "middle_click"
	ActDoubleClick = "double_click"
	ActTripleClick = "triple_click"
	ActMouseMove   = "mouse_move"
	ActMouseDown   = "mouse_down"
	ActMouseUp     = "mouse_up"
	ActDrag        = "drag"
	ActType        = "type"
	ActKey         = "key"
	ActHoldKey     = "hold_key"
	ActScroll      = "scroll"
	ActWait        = "wait"
)

var actions = []string{ActLeftClick, ActRightClick, ActMiddleClick, ActDoubleClick, ActTripleClick, ActMouseMove,
	ActMouseDown, ActMouseUp, ActDrag, ActType, ActKey, ActHoldKey, ActScroll, ActWait}

// Point is x and y.
type Point [2]int

// Rect is left, top, right, bottom; half open.
type Rect [4]int

// Screenshot asks for a picture of the screen.
type Screenshot struct {
	SessionID string `json:"session_id"`
	// Monitor is an index of DISPLAY_INFO_RESPONSE; -1 is all in one picture.
	Monitor int `json:"monitor"`
	// Region is in the pixels of Picture, or, where that is "", in device pixels
	// of all screens; cut to the monitor. With Picture the monitor is ignored.
	Region *Rect `json:"region,omitempty"`
	// Picture is the id of an earlier one: Region of it is taken anew, from the
	// screens' own pixels (zoom).
	Picture       string `json:"picture,omitempty"`
	WindowID      string `json:"window_id,omitempty"` // excludes Region
	Format        string `json:"format,omitempty"`    // jpeg, png; "" is jpeg
	Quality       int    `json:"quality,omitempty"`   // of jpeg, 1 to 100; 0 is 75
	IncludeCursor bool   `json:"include_cursor"`
	// MaxEdge bounds the longer side in pixels, MaxTiles how many tiles of 28 ×
	// 28 pixels cover it; 0 does not. The picture is made smaller to fit.
	MaxEdge  int `json:"max_edge,omitempty"`
	MaxTiles int `json:"max_tiles,omitempty"`
	// MaxBytes of the file; 0 is MaxFramePicture. Where it does not fit, its
	// quality and size go down; with Exact it is FILE_TOO_LARGE.
	MaxBytes int  `json:"max_bytes,omitempty"`
	Exact    bool `json:"exact,omitempty"`
	WaitMS   int  `json:"wait_ms"`
}

// ScreenshotResponse is a picture. What is aimed at it names Picture, and counts
// in its pixels.
type ScreenshotResponse struct {
	Picture  string `json:"picture"` // its id
	Image    []byte `json:"image_base64"`
	MIMEType string `json:"mime_type"` // image/jpeg, image/png
	Width    int    `json:"width"`     // of the picture
	Height   int    `json:"height"`
	Monitor  int    `json:"monitor"` // -1: more than one
	// Shows is what it shows of the screens, in device pixels.
	Shows Rect `json:"shows"`
	// DisplayScale and LogicalSize are the screen's, of the first one it shows.
	DisplayScale float64 `json:"display_scale"`
	LogicalSize  *Point  `json:"logical_size,omitempty"`
	// Hidden names the programs whose windows are blacked out in it.
	Hidden []string `json:"hidden,omitempty"`
	// Note is a sentence on what is not as asked: a screen that is not shared.
	Note string `json:"note,omitempty"`
}

// InputAction moves the mouse, or types.
type InputAction struct {
	SessionID string `json:"session_id"`
	Action    string `json:"action"`
	// Picture is what the coordinates count in the pixels of, and what is checked:
	// where the screens, or the window under the target, have changed since, it
	// is PICTURE_STALE. Where it is "", they are device pixels of all screens, and
	// the last picture of the session is what is checked.
	Picture    string  `json:"picture,omitempty"`
	Coordinate *Point  `json:"coordinate,omitempty"` // nil: where the pointer is
	Path       []Point `json:"path,omitempty"`       // drag: two points or more
	Text       string  `json:"text,omitempty"`       // type
	Key        string  `json:"key,omitempty"`        // key, hold_key: names joined by "+"
	Repeat     int     `json:"repeat,omitempty"`     // key; 0 is once, at most 100
	Button     string  `json:"button,omitempty"`     // left, middle, right: mouse_down, mouse_up, drag
	// Modifiers of clicks, drags and scrolling: shift, ctrl, alt, super.
	Modifiers []string `json:"modifiers,omitempty"`
	// ScrollAmount in steps of the wheel; nil is 3. ScrollDirection: up, down,
	// left, right; "" is down.
	ScrollAmount    *int   `json:"scroll_amount,omitempty"`
	ScrollDirection string `json:"scroll_direction,omitempty"`
	DurationMS      int    `json:"duration_ms,omitempty"` // hold_key, wait
	// Paste types a long text through the clipboard, where the person has allowed
	// writing to it for the whole session, and else as it is; PreserveClipboard
	// puts back what was there.
	Paste             bool `json:"paste,omitempty"`
	PreserveClipboard bool `json:"preserve_clipboard,omitempty"`
	WaitMS            int  `json:"wait_ms"`
}

// ComputerQuery is the payload of requests without further fields: CURSOR_
// POSITION_REQUEST, DISPLAY_INFO_REQUEST.
type ComputerQuery struct {
	SessionID string `json:"session_id"`
	WaitMS    int    `json:"wait_ms"`
}

// CursorResponse is where the pointer is, in device pixels, and in those of the
// session's last picture where that shows it.
type CursorResponse struct {
	X         int    `json:"x"`
	Y         int    `json:"y"`
	Monitor   int    `json:"monitor"`
	Picture   string `json:"picture,omitempty"`
	InPicture *Point `json:"in_picture,omitempty"`
}

// DisplaysResponse lists the screens.
type DisplaysResponse struct {
	Monitors []Monitor `json:"monitors"`
}

// Monitor is one screen.
type Monitor struct {
	Index        int     `json:"index"`
	Name         string  `json:"name"`
	Primary      bool    `json:"primary"`
	PhysicalSize Point   `json:"physical_size"` // device pixels
	LogicalSize  Point   `json:"logical_size"`  // points
	Scale        float64 `json:"scale"`
	Origin       Point   `json:"origin"` // device pixels; may be negative
}

// Windows asks for the list of windows.
type Windows struct {
	SessionID        string `json:"session_id"`
	AppBundleID      string `json:"app_bundle_id,omitempty"`
	IncludeMinimized bool   `json:"include_minimized,omitempty"`
	IncludeOffscreen bool   `json:"include_offscreen,omitempty"`
	WaitMS           int    `json:"wait_ms"`
}

// WindowsResponse lists windows, the topmost first.
type WindowsResponse struct {
	Windows   []Window `json:"windows"`
	Truncated bool     `json:"truncated"`
}

// Window is one window. Its id is good until the next list, and never used
// again for another one.
type Window struct {
	WindowID     string `json:"window_id"` // win_…
	PID          int    `json:"pid"`
	AppName      string `json:"app_name,omitempty"`
	AppBundleID  string `json:"app_bundle_id,omitempty"` // macOS
	Title        string `json:"title,omitempty"`
	Bounds       Rect   `json:"bounds"` // device pixels
	Monitor      int    `json:"monitor"`
	IsFocused    bool   `json:"is_focused"`
	IsMinimized  bool   `json:"is_minimized"`
	IsFullscreen bool   `json:"is_fullscreen"`
}

// WindowFocus gives a window the keyboard, and with Raise brings it to the front.
type WindowFocus struct {
	SessionID string `json:"session_id"`
	WindowID  string `json:"window_id"`
	Raise     bool   `json:"raise"`
	WaitMS    int    `json:"wait_ms"`
}

// Apps asks for the programs that run; those without a window with
// IncludeBackground only.
type Apps struct {
	SessionID         string `json:"session_id"`
	IncludeBackground bool   `json:"include_background,omitempty"`
	WaitMS            int    `json:"wait_ms"`
}

// AppsResponse lists programs that run.
type AppsResponse struct {
	Apps []App `json:"apps"`
}

// App is one program that runs.
type App struct {
	PID            int    `json:"pid"`
	Name           string `json:"name"`
	BundleID       string `json:"bundle_id,omitempty"`
	ExecutablePath string `json:"executable_path,omitempty"`
	IsFrontmost    bool   `json:"is_frontmost"`
	WindowCount    int    `json:"window_count"`
}

// AppLaunch starts a program, never through a shell: on macOS by BundleID,
// elsewhere by the path or the name of its file.
type AppLaunch struct {
	SessionID      string   `json:"session_id"`
	BundleID       string   `json:"bundle_id,omitempty"`
	ExecutablePath string   `json:"executable_path,omitempty"`
	Args           []string `json:"args,omitempty"`
	// Activate is not heeded: where a new window comes up is up to the desktop.
	Activate bool `json:"activate"`
	WaitMS   int  `json:"wait_ms"`
}

// AppLaunched names the process.
type AppLaunched struct {
	PID int `json:"pid"`
}

// ClipRead asks for what the clipboard has, ClipWrite puts text there.
type ClipRead struct {
	SessionID string `json:"session_id"`
	Format    string `json:"format,omitempty"` // text, image; "" is text
	WaitMS    int    `json:"wait_ms"`
}

// ClipReadResponse is the clipboard's text.
type ClipReadResponse struct {
	Format    string `json:"format"`
	Content   string `json:"content"`
	SizeBytes int    `json:"size_bytes"`
}

// ClipWrite puts text on the clipboard.
type ClipWrite struct {
	SessionID string `json:"session_id"`
	Format    string `json:"format,omitempty"`
	Content   string `json:"content"`
	WaitMS    int    `json:"wait_ms"`
}

// Permissions asks whether the system lets this program see and act.
type Permissions struct {
	SessionID   string   `json:"session_id"`
	Permissions []string `json:"permissions"`
	WaitMS      int      `json:"wait_ms"`
}

// PermissionsResponse has for each name granted, denied, unknown or
// not_applicable.
type PermissionsResponse struct {
	Permissions map[string]string `json:"permissions"`
}

func init() {
	ask := func(t Type, make func() Payload, reply Type) {
		kinds[t] = kind{dir: ToMachine, make: make, replies: []Type{reply}}
	}
	answer := func(t Type, make func() Payload) { kinds[t] = kind{dir: ToHub, make: make, terminal: true} }
	query := func() Payload { return new(ComputerQuery) }
	ask(TypeScreenshot, func() Payload { return new(Screenshot) }, TypeScreenshotResponse)
	ask(TypeInput, func() Payload { return new(InputAction) }, TypeAck)
	ask(TypeCursor, query, TypeCursorResponse)
	ask(TypeDisplays, query, TypeDisplaysResponse)
	ask(TypeWindows, func() Payload { return new(Windows) }, TypeWindowsResponse)
	ask(TypeWindowFocus, func() Payload { return new(WindowFocus) }, TypeAck)
	ask(TypeApps, func() Payload { return new(Apps) }, TypeAppsResponse)
	ask(TypeAppLaunch, func() Payload { return new(AppLaunch) }, TypeAppLaunched)
	ask(TypeClipRead, func() Payload { return new(ClipRead) }, TypeClipReadResponse)
	ask(TypeClipWrite, func() Payload { return new(ClipWrite) }, TypeAck)
	ask(TypePermissions, func() Payload { return new(Permissions) }, TypePermissionsResponse)
	answer(TypeScreenshotResponse, func() Payload { return new(ScreenshotResponse) })
	answer(TypeCursorResponse, func() Payload { return new(CursorResponse) })
	answer(TypeDisplaysResponse, func() Payload { return new(DisplaysResponse) })
	answer(TypeWindowsResponse, func() Payload { return new(WindowsResponse) })
	answer(TypeAppsResponse, func() Payload { return new(AppsResponse) })
	answer(TypeAppLaunched, func() Payload { return new(AppLaunched) })
	answer(TypeClipReadResponse, func() Payload { return new(ClipReadResponse) })
	answer(TypePermissionsResponse, func() Payload { return new(PermissionsResponse) })
}

func oneOf(field, s string, of ...string) error {
	if slices.Contains(of, s) {
		return nil
	}
	return fmt.Errorf("%s must be one of %q", field, of)
}

func within(field string, n, lo, hi int) error {
	if n < lo || n > hi {
		return fmt.Errorf("%s must be %d to %d", field, lo, hi)
	}
	return nil
}

func checkPoint(field string, p *Point) error {
	if p == nil {
		return nil
	}
	return errors.Join(within(field, p[0], -1<<20, 1<<20), within(field, p[1], -1<<20, 1<<20))
}

func checkRect(field string, r *Rect) error {
	if r == nil {
		return nil
	}
	if err := errors.Join(checkPoint(field, &Point{r[0], r[1]}), checkPoint(field, &Point{r[2], r[3]})); err != nil {
		return err
	}
	if r[2] <= r[0] || r[3] <= r[1] {
		return fmt.Errorf("%s must be left, top, right, bottom, with right and bottom the larger", field)
	}
	return nil
}

func optionalID(field, s string) error {
	if s == "" {
		return nil
	}
	return checkID(field, s)
}

func (s *Screenshot) Validate() error {
	if s.WindowID != "" && (s.Region != nil || s.Picture != "") {
		return errors.New("window_id excludes region and picture")
	}
	if s.Picture != "" && s.Region == nil {
		return errors.New("picture needs a region of it")
	}
	return errors.Join(checkID("session_id", s.SessionID), within("monitor", s.Monitor, -1, MaxMonitors-1), checkRect("region", s.Region),
		optionalID("picture", s.Picture), optionalID("window_id", s.WindowID), oneOf("format", s.Format, "", "jpeg", "png"),
		within("quality", s.Quality, 0, 100), within("max_edge", s.MaxEdge, 0, 8000), within("max_tiles", s.MaxTiles, 0, 1<<20),
		within("max_bytes", s.MaxBytes, 0, MaxPicture), checkWait(s.WaitMS))
}

func (s *ScreenshotResponse) Validate() error {
	if len(s.Image) == 0 || len(s.Image) > MaxPicture {
		return fmt.Errorf("image_base64 must be 1 to %d bytes", MaxPicture)
	}
	if len(s.Hidden) > MaxWindows {
		return errors.New("hidden has too many names")
	}
	for _, name := range s.Hidden {
		if err := checkText("hidden", name, MaxText); err != nil {
			return err
		}
	}
	return errors.Join(checkID("picture", s.Picture), oneOf("mime_type", s.MIMEType, "image/jpeg", "image/png"),
		within("width", s.Width, 1, 8000), within("height", s.Height, 1, 8000), checkRect("shows", &s.Shows), checkText("note", s.Note, MaxText))
}

func (a *InputAction) Validate() error {
	if len(a.Path) > MaxDragPoints {
		return fmt.Errorf("path has %d points, at most %d are allowed", len(a.Path), MaxDragPoints)
	}
	for i := range a.Path {
		if err := checkPoint("path", &a.Path[i]); err != nil {
			return err
		}
	}
	if len(a.Modifiers) > 4 {
		return errors.New("modifiers has more than 4 keys")
	}
	for _, m := range a.Modifiers {
		if err := oneOf("modifiers", m, "shift", "ctrl", "alt", "super"); err != nil {
			return err
		}
	}
	var lacks error
	switch {
	case a.Action == ActMouseMove && a.Coordinate == nil:
		lacks = errors.New("coordinate must not be empty")
	case a.Action == ActDrag && len(a.Path) < 2:
		lacks = errors.New("path must have two points or more")
	case a.Action == ActType && a.Text == "":
		lacks = errors.New("text must not be empty")
	case (a.Action == ActKey || a.Action == ActHoldKey) && a.Key == "":
		lacks = errors.New("key must not be empty")
	}
	amount := 3
	if a.ScrollAmount != nil {
		amount = *a.ScrollAmount
	}
	return errors.Join(checkID("session_id", a.SessionID), oneOf("action", a.Action, actions...), lacks, optionalID("picture", a.Picture),
		checkPoint("coordinate", a.Coordinate), checkText("text", a.Text, MaxTyped), checkText("key", a.Key, 256),
		within("repeat", a.Repeat, 0, 100), oneOf("button", a.Button, "", "left", "middle", "right"), within("scroll_amount", amount, 0, 1000),
		oneOf("scroll_direction", a.ScrollDirection, "", "up", "down", "left", "right"), within("duration_ms", a.DurationMS, 0, MaxHoldMS), checkWait(a.WaitMS))
}

func (q *ComputerQuery) Validate() error {
	return errors.Join(checkID("session_id", q.SessionID), checkWait(q.WaitMS))
}

func (c *CursorResponse) Validate() error {
	return errors.Join(checkPoint("x and y", &Point{c.X, c.Y}), optionalID("picture", c.Picture), checkPoint("in_picture", c.InPicture))
}

func (d *DisplaysResponse) Validate() error {
	if len(d.Monitors) > MaxMonitors {
		return fmt.Errorf("monitors has more than %d", MaxMonitors)
	}
	for _, m := range d.Monitors {
		if err := errors.Join(checkText("name", m.Name, MaxText), checkPoint("origin", &m.Origin), checkPoint("physical_size", &m.PhysicalSize), checkPoint("logical_size", &m.LogicalSize)); err != nil {
			return err
		}
		if !(m.Scale > 0 && m.Scale < 100) {
			return errors.New("scale must be more than 0 and less than 100")
		}
	}
	return nil
}

func (w *Windows) Validate() error {
	return errors.Join(checkID("session_id", w.SessionID), checkText("app_bundle_id", w.AppBundleID, MaxText), checkWait(w.WaitMS))
}

func (w *WindowsResponse) Validate() error {
	if len(w.Windows) > MaxWindows {
		return fmt.Errorf("windows has more than %d", MaxWindows)
	}
	for _, w := range w.Windows {
		if err := errors.Join(checkID("window_id", w.WindowID), checkText("title", w.Title, 4*MaxText), checkText("app_name", w.AppName, MaxText),
			checkText("app_bundle_id", w.AppBundleID, MaxText), checkPoint("bounds", &Point{w.Bounds[0], w.Bounds[1]}), checkPoint("bounds", &Point{w.Bounds[2], w.Bounds[3]})); err != nil {
			return err
		}
	}
	return nil
}

func (w *WindowFocus) Validate() error {
	return errors.Join(checkID("session_id", w.SessionID), checkID("window_id", w.WindowID), checkWait(w.WaitMS))
}

func (a *Apps) Validate() error {
	return errors.Join(checkID("session_id", a.SessionID), checkWait(a.WaitMS))
}

func (a *AppsResponse) Validate() error {
	if len(a.Apps) > MaxListEntries {
		return fmt.Errorf("apps has more than %d", MaxListEntries)
	}
	for _, a := range a.Apps {
		if err := errors.Join(checkText("name", a.Name, MaxText), checkText("bundle_id", a.BundleID, MaxText), checkText("executable_path", a.ExecutablePath, MaxPath)); err != nil {
			return err
		}
	}
	return nil
}

func (a *AppLaunch) Validate() error {
	if a.BundleID == "" && a.ExecutablePath == "" {
		return errors.New("executable_path, or bundle_id on macOS, is needed")
	}
	if len(a.Args) > MaxArgs {
		return fmt.Errorf("args has more than %d", MaxArgs)
	}
	total := 0
	for _, arg := range a.Args {
		if total += len(arg); total > MaxArgBytes {
			return fmt.Errorf("args have more than %d bytes together", MaxArgBytes)
		}
		if err := checkText("args", arg, MaxCommand); err != nil {
			return err
		}
	}
	return errors.Join(checkID("session_id", a.SessionID), checkText("bundle_id", a.BundleID, MaxText), checkText("executable_path", a.ExecutablePath, MaxPath), checkWait(a.WaitMS))
}

func (a *AppLaunched) Validate() error { return within("pid", a.PID, 0, 1<<31-1) }

func (c *ClipRead) Validate() error {
	return errors.Join(checkID("session_id", c.SessionID), oneOf("format", c.Format, "", "text", "image"), checkWait(c.WaitMS))
}

func (c *ClipReadResponse) Validate() error {
	return errors.Join(oneOf("format", c.Format, "text"), checkText("content", c.Content, MaxClip))
}

func (c *ClipWrite) Validate() error {
	return errors.Join(checkID("session_id", c.SessionID), oneOf("format", c.Format, "", "text", "image"), checkText("content", c.Content, MaxClip), checkWait(c.WaitMS))
}

func (p *Permissions) Validate() error {
	if len(p.Permissions) > 64 {
		return errors.New("permissions has more than 64 names")
	}
	for _, name := range p.Permissions {
		if err := checkText("permissions", name, 128); err != nil {
			return err
		}
	}
	return errors.Join(checkID("session_id", p.SessionID), checkWait(p.WaitMS))
}

func (p *PermissionsResponse) Validate() error {
	if len(p.Permissions) > 64 {
		return errors.New("permissions has more than 64 names")
	}
	for name, is := range p.Permissions {
		if err := errors.Join(checkText("permissions", name, 128), oneOf("permissions", is, "granted", "denied", "unknown", "not_applicable")); err != nil {
			return err
		}
	}
	return nil
}
