package mcp

import (
	"context"
	"fmt"
	"math"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

func (f *Face) addInputTools() {
	add(f, ScopeInput, anything, "local_pc_click", "Click",
		"Clicks with the mouse, at a place in the last picture or where the pointer is. The person allows mouse and keyboard once a session, or each time. "+
			"It is refused when the screen has changed there since the picture, or when the person is at work themselves: take a new picture then.", f.click)
	add(f, ScopeInput, anything, "local_pc_mouse_move", "Move the mouse",
		"Moves the mouse pointer to a place in the last picture, without a click.", f.mouseMove)
	add(f, ScopeInput, anything, "local_pc_mouse_down", "Press a mouse button",
		"Presses a mouse button and holds it, at a place in the last picture or where the pointer is. Release it with local_pc_mouse_up.", f.mouseDown)
	add(f, ScopeInput, anything, "local_pc_mouse_up", "Release a mouse button",
		"Releases a mouse button that local_pc_mouse_down holds, at a place in the last picture or where the pointer is.", f.mouseUp)
	add(f, ScopeInput, anything, "local_pc_drag", "Drag",
		"Presses a mouse button at the first place, moves through all, and releases it at the last; places are in the last picture.", f.drag)
	add(f, ScopeInput, anything, "local_pc_scroll", "Scroll",
		"Turns the mouse wheel, at a place in the last picture or where the pointer is.", f.scroll)
	add(f, ScopeInput, anything, "local_pc_type", "Type",
		"Types text as it is, whatever the keyboard's layout, where the keyboard writes now. Keys and shortcuts are for local_pc_key.", f.typeText)
	add(f, ScopeInput, anything, "local_pc_key", "Press keys",
		"Presses a key or a combination, such as Return, ctrl+s, alt+Tab, F5.", f.key)
	add(f, ScopeInput, anything, "local_pc_hold_key", "Hold a key",
		"Holds a key or a combination down for a time, up to 300 seconds.", f.holdKey)
	// It changes nothing, but comes between what does: a client that runs what only
	// looks side by side must keep it in its place.
	add(f, ScopeInput, adds, "local_pc_wait", "Wait",
		"Waits for a time, up to 300 seconds, so that a program on the computer can get on.", f.wait)
}

// aim is part of the arguments of what can be aimed at a place.
type aim struct {
	where
	Coordinate *wire.Point `json:"coordinate,omitempty" jsonschema:"x and y in pixels of the picture (default: where the pointer is)"`
	Picture    string      `json:"picture,omitempty" jsonschema:"id of the picture that the coordinates are of (default: the last one of local_pc_screenshot; the answer says which)"`
}

// act does one action. aimed: it has coordinates, which need a picture. Without
// any the computer itself compares with the last one that it sent.
func (f *Face) act(ctx context.Context, req *sdk.CallToolRequest, who Principal, in where, picture, title string, a wire.InputAction, aimed bool, done string) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in, title, func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		a.SessionID, a.Picture, a.WaitMS = b.ID, picture, f.patience()
		if aimed {
			id, err := f.aimed(lookBy(who, req, b), b, picture)
			if err != nil {
				return nil, err
			}
			if a.Picture = id; picture == "" {
				done = strings.TrimSuffix(done, ".") + ", in picture " + id + "."
			}
		}
		if _, err := f.unary(ctx, b, wire.TypeInput, &a); err != nil {
			return nil, err
		}
		return completed(done), nil
	})
}

// completed is the result of what gives nothing but that it was done.
func completed(say string) *sdk.CallToolResult {
	return said(say, map[string]any{"status": "done", "say": say})
}

func (f *Face) at(ctx context.Context, req *sdk.CallToolRequest, who Principal, in aim, title string, a wire.InputAction, done string) *sdk.CallToolResult {
	if a.Coordinate = in.Coordinate; a.Coordinate != nil {
		place := fmt.Sprintf(" at (%d, %d)", a.Coordinate[0], a.Coordinate[1])
		title, done = title+place, done+place
	}
	return f.act(ctx, req, who, in.where, in.Picture, title, a, a.Coordinate != nil, done+".")
}

type click struct {
	aim
	Button    string   `json:"button,omitempty" jsonschema:"left (default), right or middle"`
	Clicks    int      `json:"clicks,omitempty" jsonschema:"1 (default), 2 or 3 with the left button"`
	Modifiers []string `json:"modifiers,omitempty" jsonschema:"keys held meanwhile: shift, ctrl, alt, super"`
}

func (f *Face) click(ctx context.Context, req *sdk.CallToolRequest, who Principal, in click) *sdk.CallToolResult {
	kinds := map[string][]string{"left": {wire.ActLeftClick, wire.ActDoubleClick, wire.ActTripleClick}, "right": {wire.ActRightClick}, "middle": {wire.ActMiddleClick}}
	if in.Button == "" {
		in.Button = "left"
	}
	kind := kinds[in.Button]
	switch {
	case kind == nil:
		return refusal(wire.Errorf(wire.CodeInvalid, "button must be left, right or middle, not %q.", in.Button))
	case in.Clicks < 0 || in.Clicks > len(kind):
		return refusal(wire.Errorf(wire.CodeInvalid, "clicks must be 1 to %d with the %s button.", len(kind), in.Button))
	}
	action := kind[max(in.Clicks, 1)-1]
	return f.at(ctx, req, who, in.aim, strings.ReplaceAll(action, "_", " "), wire.InputAction{Action: action, Modifiers: in.Modifiers}, "Clicked")
}

type moved struct {
	where
	Coordinate wire.Point `json:"coordinate" jsonschema:"x and y in pixels of the picture"`
	Picture    string     `json:"picture,omitempty" jsonschema:"id of the picture that the coordinates are of (default: the last one of local_pc_screenshot; the answer says which)"`
}

func (f *Face) mouseMove(ctx context.Context, req *sdk.CallToolRequest, who Principal, in moved) *sdk.CallToolResult {
	return f.at(ctx, req, who, aim{in.where, &in.Coordinate, in.Picture}, "move the mouse", wire.InputAction{Action: wire.ActMouseMove}, "The pointer is")
}

type button struct {
	aim
	Button string `json:"button,omitempty" jsonschema:"left (default), middle or right"`
}

func (f *Face) mouseDown(ctx context.Context, req *sdk.CallToolRequest, who Principal, in button) *sdk.CallToolResult {
	return f.at(ctx, req, who, in.aim, "press a mouse button", wire.InputAction{Action: wire.ActMouseDown, Button: in.Button}, "The button is held")
}

func (f *Face) mouseUp(ctx context.Context, req *sdk.CallToolRequest, who Principal, in button) *sdk.CallToolResult {
	return f.at(ctx, req, who, in.aim, "release a mouse button", wire.InputAction{Action: wire.ActMouseUp, Button: in.Button}, "Released")
}

type drag struct {
	where
	Path      []wire.Point `json:"path" jsonschema:"two places or more, x and y each, in pixels of the picture"`
	Picture   string       `json:"picture,omitempty" jsonschema:"id of the picture that the coordinates are of (default: the last one of local_pc_screenshot; the answer says which)"`
	Button    string       `json:"button,omitempty" jsonschema:"left (default), middle or right"`
	Modifiers []string     `json:"modifiers,omitempty" jsonschema:"keys held meanwhile: shift, ctrl, alt, super"`
}

func (f *Face) drag(ctx context.Context, req *sdk.CallToolRequest, who Principal, in drag) *sdk.CallToolResult {
	if len(in.Path) < 2 {
		return refusal(wire.Errorf(wire.CodeInvalid, "path must have two places or more."))
	}
	from, to := in.Path[0], in.Path[len(in.Path)-1]
	way := fmt.Sprintf("from (%d, %d) to (%d, %d)", from[0], from[1], to[0], to[1])
	return f.act(ctx, req, who, in.where, in.Picture, "drag "+way, wire.InputAction{Action: wire.ActDrag, Path: in.Path, Button: in.Button, Modifiers: in.Modifiers}, true, "Dragged "+way+".")
}

type scroll struct {
	aim
	Direction string   `json:"direction" jsonschema:"up, down, left or right"`
	Amount    *int     `json:"amount,omitempty" jsonschema:"steps of the wheel (default 3)"`
	Modifiers []string `json:"modifiers,omitempty" jsonschema:"keys held meanwhile: shift, ctrl, alt, super"`
}

func (f *Face) scroll(ctx context.Context, req *sdk.CallToolRequest, who Principal, in scroll) *sdk.CallToolResult {
	return f.at(ctx, req, who, in.aim, "scroll "+short(in.Direction), wire.InputAction{Action: wire.ActScroll, ScrollDirection: in.Direction, ScrollAmount: in.Amount, Modifiers: in.Modifiers}, "Scrolled")
}

type typed struct {
	where
	Text string `json:"text" jsonschema:"what to type; a new line is Return, a tab is Tab"`
	// It is heeded where the person has allowed writing to the clipboard for the
	// whole session; else the text is typed.
	Paste bool `json:"paste,omitempty" jsonschema:"put a long text in by the clipboard instead, which is put back afterwards"`
}

func (f *Face) typeText(ctx context.Context, req *sdk.CallToolRequest, who Principal, in typed) *sdk.CallToolResult {
	switch {
	case in.Text == "":
		return refusal(wire.Errorf(wire.CodeInvalid, "There is nothing to type: text is empty."))
	case len(in.Text) > wire.MaxTyped:
		return refusal(wire.Errorf(wire.CodeTooLarge, "The text has %d bytes; at most %d can be typed at once.", len(in.Text), wire.MaxTyped))
	}
	n := len([]rune(in.Text))
	return f.act(ctx, req, who, in.where, "", fmt.Sprintf("type %d characters", n), wire.InputAction{Action: wire.ActType, Text: in.Text, Paste: in.Paste, PreserveClipboard: in.Paste}, false, fmt.Sprintf("Typed %d characters.", n))
}

type pressed struct {
	where
	Key    string `json:"key" jsonschema:"names joined by +, the last pressed last"`
	Repeat int    `json:"repeat,omitempty" jsonschema:"how many times, 1 (default) to 100"`
}

func (f *Face) key(ctx context.Context, req *sdk.CallToolRequest, who Principal, in pressed) *sdk.CallToolResult {
	return f.act(ctx, req, who, in.where, "", "press "+short(in.Key), wire.InputAction{Action: wire.ActKey, Key: in.Key, Repeat: in.Repeat}, false, "Pressed "+short(in.Key)+".")
}

type held struct {
	where
	Key      string  `json:"key" jsonschema:"names joined by +, the last pressed last"`
	Duration float64 `json:"duration_s" jsonschema:"seconds, at most 300"`
}

func (f *Face) holdKey(ctx context.Context, req *sdk.CallToolRequest, who Principal, in held) *sdk.CallToolResult {
	ms, err := millis(in.Duration)
	if err != nil {
		return refusal(err)
	}
	return f.act(ctx, req, who, in.where, "", fmt.Sprintf("hold %s for %g s", short(in.Key), in.Duration), wire.InputAction{Action: wire.ActHoldKey, Key: in.Key, DurationMS: ms}, false, fmt.Sprintf("Held %s for %g s.", short(in.Key), in.Duration))
}

type waited struct {
	where
	Duration float64 `json:"duration_s" jsonschema:"seconds, at most 300"`
}

func (f *Face) wait(ctx context.Context, req *sdk.CallToolRequest, who Principal, in waited) *sdk.CallToolResult {
	ms, err := millis(in.Duration)
	if err != nil {
		return refusal(err)
	}
	return f.act(ctx, req, who, in.where, "", fmt.Sprintf("wait %g s", in.Duration), wire.InputAction{Action: wire.ActWait, DurationMS: ms}, false, fmt.Sprintf("Waited %g s.", in.Duration))
}

// millis takes a time that a client gave in seconds.
func millis(seconds float64) (int, error) {
	if !(seconds >= 0 && seconds <= wire.MaxHoldMS/1000) {
		return 0, wire.Errorf(wire.CodeInvalid, "The time must be 0 to %d seconds.", wire.MaxHoldMS/1000)
	}
	return int(math.Round(seconds * 1000)), nil
}
