package autogpt

import "errors"

// Screenshot takes a picture. Coordinates, here and below, are display-global
// unscaled pixels from the top left.
type Screenshot struct {
	Monitor       int     `json:"monitor"` // index of DISPLAY_INFO
	Quality       int     `json:"quality"` // JPEG, 1..100
	Region        *Rect   `json:"region,omitempty"`
	WindowID      *string `json:"window_id,omitempty"` // excludes Region
	Format        string  `json:"format"`              // jpeg, png
	IncludeCursor bool    `json:"include_cursor"`
}

func (s *Screenshot) Validate() error { return checkOne("format", s.Format, "jpeg", "png") }

// ScreenshotImage is a picture.
type ScreenshotImage struct {
	Image        string         `json:"image_base64" need:"yes"`
	MIMEType     string         `json:"mime_type"`
	Width        int            `json:"width" need:"yes"`
	Height       int            `json:"height" need:"yes"`
	Monitor      int            `json:"monitor"`
	Region       *Rect          `json:"region"` // as it was asked
	DisplayScale float64        `json:"display_scale"`
	LogicalSize  *Pair          `json:"logical_size"`
	Meta         ScreenshotMeta `json:"meta"`
}

// ScreenshotMeta says where the picture lies.
type ScreenshotMeta struct {
	Origin    Pair `json:"origin"` // of the picture's top left
	DisplayID int  `json:"display_id"`
}

func (*ScreenshotImage) Validate() error { return nil }

// Input is one action of mouse or keyboard.
type Input struct {
	Action            string   `json:"action" need:"yes"`
	Coordinate        *Pair    `json:"coordinate,omitempty"`
	Text              *string  `json:"text,omitempty"`
	Key               *string  `json:"key,omitempty"`
	Direction         *string  `json:"direction,omitempty"` // up, down (legacy)
	Clicks            *int     `json:"clicks,omitempty"`    // scroll (legacy)
	Button            *string  `json:"button,omitempty"`
	Modifiers         []string `json:"modifiers,omitempty"`
	ScrollAmount      *int     `json:"scroll_amount,omitempty"`
	ScrollDirection   *string  `json:"scroll_direction,omitempty"`
	DurationMS        *int     `json:"duration_ms,omitempty"`
	Path              []Pair   `json:"path,omitempty"`
	Paste             bool     `json:"paste"`
	PreserveClipboard bool     `json:"preserve_clipboard"`
}

var actions = []string{"left_click", "right_click", "middle_click", "double_click", "triple_click",
	"mouse_move", "mouse_down", "mouse_up", "drag", "type", "key", "hold_key", "scroll", "wait"}

func (i *Input) Validate() error {
	for _, m := range i.Modifiers {
		if err := checkOne("modifiers", m, "shift", "ctrl", "alt", "super"); err != nil {
			return err
		}
	}
	return errors.Join(checkOne("action", i.Action, actions...), checkIf("direction", i.Direction, "up", "down"),
		checkIf("button", i.Button, "left", "middle", "right"), checkIf("scroll_direction", i.ScrollDirection, "up", "down", "left", "right"))
}

func checkIf(field string, s *string, of ...string) error {
	if s == nil {
		return nil
	}
	return checkOne(field, *s, of...)
}

// CursorPosition is where the pointer is.
type CursorPosition struct {
	X       int `json:"x" need:"yes"`
	Y       int `json:"y" need:"yes"`
	Monitor int `json:"monitor"`
}

func (*CursorPosition) Validate() error { return nil }

// DisplayInfo lists the screens.
type DisplayInfo struct {
	Monitors List[Monitor] `json:"monitors" need:"yes"`
}

// Monitor is one screen.
type Monitor struct {
	Index        int     `json:"index"`
	Primary      bool    `json:"primary"`
	PhysicalSize Pair    `json:"physical_size"`
	LogicalSize  Pair    `json:"logical_size"`
	Scale        float64 `json:"scale"`
	Origin       Pair    `json:"origin"`
}

func (*DisplayInfo) Validate() error { return nil }

// Windows asks for the windows.
type Windows struct {
	AppBundleID      *string `json:"app_bundle_id,omitempty"`
	IncludeMinimized bool    `json:"include_minimized"`
	IncludeOffscreen bool    `json:"include_offscreen"`
}

func (*Windows) Validate() error { return nil }

// WindowList lists windows. Their ids are void after the next HELLO.
type WindowList struct {
	Windows   List[Window] `json:"windows" need:"yes"`
	Truncated bool         `json:"truncated"`
}

// Window is one window.
type Window struct {
	ID           string  `json:"window_id"` // win_<uuid>
	PID          int     `json:"pid"`
	AppName      *string `json:"app_name"`
	AppBundleID  *string `json:"app_bundle_id"`
	Title        *string `json:"title"`
	Bounds       Rect    `json:"bounds"`
	Monitor      int     `json:"monitor"`
	IsFocused    bool    `json:"is_focused"`
	IsMinimized  bool    `json:"is_minimized"`
	IsFullscreen bool    `json:"is_fullscreen"`
}

func (*WindowList) Validate() error { return nil }

// WindowFocus brings a window to the front.
type WindowFocus struct {
	WindowID string `json:"window_id" need:"yes"`
	Raise    bool   `json:"raise"`
}

func (*WindowFocus) Validate() error { return nil }

// Apps asks for the running programs.
type Apps struct {
	IncludeBackground bool `json:"include_background"`
}

func (*Apps) Validate() error { return nil }

// AppList lists running programs.
type AppList struct {
	Apps List[App] `json:"apps" need:"yes"`
}

// App is one running program.
type App struct {
	PID            int     `json:"pid"`
	Name           string  `json:"name"`
	BundleID       *string `json:"bundle_id"`
	ExecutablePath *string `json:"executable_path"`
	IsFrontmost    bool    `json:"is_frontmost"`
	WindowCount    int     `json:"window_count"`
}

func (*AppList) Validate() error { return nil }

// AppLaunch starts a program, without a shell. One of the first two is needed.
type AppLaunch struct {
	BundleID       *string      `json:"bundle_id,omitempty"`
	ExecutablePath *string      `json:"executable_path,omitempty"`
	Args           List[string] `json:"args"`
	Activate       bool         `json:"activate"`
}

func (*AppLaunch) Validate() error { return nil }

// ClipboardRead reads the clipboard.
type ClipboardRead struct {
	Format string `json:"format"` // text, image
}

func (c *ClipboardRead) Validate() error { return checkOne("format", c.Format, "text", "image") }

// ClipboardContent is what the clipboard has.
type ClipboardContent struct {
	Format  string `json:"format"`
	Content string `json:"content" need:"yes"`
	Size    int    `json:"size_bytes" need:"yes"` // of Content in UTF-8
}

func (*ClipboardContent) Validate() error { return nil }

// ClipboardWrite sets the clipboard.
type ClipboardWrite struct {
	Format  string `json:"format"`
	Content string `json:"content" need:"yes"`
}

func (c *ClipboardWrite) Validate() error { return checkOne("format", c.Format, "text", "image") }

// Permissions asks what the operating system lets this program do. It never
// prompts.
type Permissions struct {
	Permissions List[string] `json:"permissions" need:"yes"`
}

func (*Permissions) Validate() error { return nil }

// PermissionStates has granted, denied, unknown or not_applicable by name.
type PermissionStates struct {
	Permissions Map `json:"permissions" need:"yes"`
}

func (*PermissionStates) Validate() error { return nil }

// LLM asks a local model.
type LLM struct {
	Model       string           `json:"model" need:"yes"`
	Messages    List[LLMMessage] `json:"messages" need:"yes"`
	MaxTokens   int              `json:"max_tokens"`
	Temperature float64          `json:"temperature"`
	TopP        float64          `json:"top_p"`
	Stream      bool             `json:"stream"`
}

// LLMMessage is one turn.
type LLMMessage struct {
	Role    string `json:"role" need:"yes"` // system, user, assistant
	Content string `json:"content" need:"yes"`
}

func (l *LLM) Validate() error {
	for _, m := range l.Messages {
		if err := checkOne("role", m.Role, "system", "user", "assistant"); err != nil {
			return err
		}
	}
	return nil
}

// LLMChunk is a piece of the answer; the last has only FinishReason.
type LLMChunk struct {
	Delta        string  `json:"delta" need:"yes"`
	FinishReason *string `json:"finish_reason"` // stop, length, content_filter
}

func (c *LLMChunk) Validate() error {
	return checkIf("finish_reason", c.FinishReason, "stop", "length", "content_filter")
}

// LLMResponse is the whole answer.
type LLMResponse struct {
	Content      string    `json:"content" need:"yes"`
	FinishReason *string   `json:"finish_reason"`
	Tokens       LLMTokens `json:"tokens"`
	Duration     float64   `json:"duration_seconds" need:"yes"`
}

// LLMTokens counts tokens where the model tells.
type LLMTokens struct {
	Prompt     *int `json:"prompt"`
	Completion *int `json:"completion"`
	Total      *int `json:"total"`
}

func (r *LLMResponse) Validate() error {
	return checkIf("finish_reason", r.FinishReason, "stop", "length", "content_filter")
}
