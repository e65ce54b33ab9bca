package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

const (
	maxRepeat = 100
	maxScroll = 1000
	// maxToolSeconds and maxSeconds bound hold_key and wait with Tool and Toolset.
	maxToolSeconds, maxSeconds = 100, 300
)

// outcome is what became of one action.
type outcome struct {
	blocks []map[string]any
	failed bool
	shows  bool // blocks have a picture
}

// wrong is an action that cannot be done as it was asked for.
func wrong(say string) outcome {
	return outcome{blocks: []map[string]any{text(say)}, failed: true}
}

const lookFirst = "Take a screenshot first, and aim at what it shows."

// do does one action; seen is the picture that it was aimed at, nil without one.
func (a *Adapter) do(ctx context.Context, b Block, seen *picture) (outcome, error) {
	if b.err != nil {
		return wrong(b.err.Error()), nil
	}
	switch b.Action {
	case "screenshot":
		blocks, shot, failed, err := a.look(ctx)
		return a.saw(blocks, shot, failed, err, true)
	case "zoom":
		return a.zoom(ctx, b, seen)
	case "cursor_position":
		return a.cursor(ctx, seen)
	}
	tool, args, aims, err := call(b)
	if err != nil {
		return wrong(err.Error()), nil
	}
	if aims && seen == nil {
		return wrong(lookFirst), nil
	}
	if seen != nil && takesPicture(tool) {
		args["picture"] = seen.ID
	}
	r, err := a.call(ctx, tool, args)
	if err != nil {
		return outcome{}, err
	}
	return outcome{blocks: []map[string]any{text(orElse(r.Text, "Done."))}, failed: r.Failed}, nil
}

// saw is the outcome of taking a picture; screen: the model's coordinates count
// in it from now on.
func (a *Adapter) saw(blocks []map[string]any, shot *picture, failed string, err error, screen bool) (outcome, error) {
	switch {
	case err != nil:
		return outcome{}, err
	case failed != "":
		return wrong(failed), nil
	}
	if screen {
		a.screen = shot
	}
	return outcome{blocks: blocks, shows: true}, nil
}

// zoom shows a part of what the model saw, from the screen's own pixels.
func (a *Adapter) zoom(ctx context.Context, b Block, seen *picture) (outcome, error) {
	var r [4]int
	switch {
	case a.o.NoZoom:
		return wrong("Zoom is switched off."), nil
	case seen == nil:
		return wrong(lookFirst), nil
	case b.input.Region == nil:
		return wrong("zoom needs region: left, top, right, bottom."), nil
	}
	if err := whole("region", *b.input.Region, r[:]); err != nil {
		return wrong(err.Error()), nil
	}
	if r[0] < 0 || r[1] < 0 || r[2] > seen.Width || r[3] > seen.Height || r[2] <= r[0] || r[3] <= r[1] {
		return wrong(fmt.Sprintf("region must be left, top, right, bottom within the screenshot, which is %d × %d.", seen.Width, seen.Height)), nil
	}
	reply, err := a.call(ctx, "local_pc_zoom", a.bounds(map[string]any{"region": r, "picture": seen.ID}))
	if err != nil {
		return outcome{}, err
	}
	blocks, shot, failed, err := a.pictured(reply)
	return a.saw(blocks, shot, failed, err, false)
}

func (a *Adapter) cursor(ctx context.Context, seen *picture) (outcome, error) {
	if seen == nil {
		return wrong(lookFirst), nil
	}
	r, err := a.call(ctx, "local_pc_cursor_position", map[string]any{})
	if err != nil {
		return outcome{}, err
	}
	var at struct{ Device *[2]int }
	if r.Failed || json.Unmarshal(r.Structured, &at) != nil || at.Device == nil {
		return wrong(orElse(r.Text, "The computer did not say where the pointer is.")), nil
	}
	x, y, ok := seen.in(at.Device[0], at.Device[1])
	if !ok {
		return outcome{blocks: []map[string]any{text("The pointer is outside of the screenshot.")}}, nil
	}
	return outcome{blocks: []map[string]any{text(fmt.Sprintf("X=%d,Y=%d", x, y))}}, nil
}

// takesPicture tells whether a tool can be told which picture its coordinates
// are of.
func takesPicture(tool string) bool {
	return slices.Contains([]string{"local_pc_click", "local_pc_mouse_move", "local_pc_mouse_down", "local_pc_mouse_up", "local_pc_drag", "local_pc_scroll"}, tool)
}

// clicks are the actions that click: button, and how often.
var clicks = map[string]struct {
	button string
	times  int
}{
	"left_click": {"left", 1}, "right_click": {"right", 1}, "middle_click": {"middle", 1}, "double_click": {"left", 2}, "triple_click": {"left", 3},
}

// call is the tool of the hub that does a block's action, and its arguments.
// aims: its coordinates count in a picture.
func call(b Block) (tool string, args map[string]any, aims bool, err error) {
	in := b.input
	at, err := point("coordinate", in.Coordinate)
	if err != nil {
		return "", nil, false, err
	}
	args = map[string]any{}
	if at != nil {
		args["coordinate"] = *at
	}
	aims = at != nil
	if c, ok := clicks[b.Action]; ok {
		args["button"], args["clicks"] = c.button, c.times
		return "local_pc_click", args, aims, hold(args, in.Text)
	}
	switch b.Action {
	case "mouse_move":
		if at == nil {
			return "", nil, false, sentence("mouse_move needs coordinate.")
		}
		return "local_pc_mouse_move", args, true, nil
	case "left_mouse_down":
		return "local_pc_mouse_down", args, aims, nil
	case "left_mouse_up":
		return "local_pc_mouse_up", args, aims, nil
	case "left_click_drag":
		from, err := point("start_coordinate", in.StartCoordinate)
		if err == nil && (from == nil || at == nil) {
			err = sentence("left_click_drag needs start_coordinate and coordinate.")
		}
		if err != nil {
			return "", nil, false, err
		}
		args = map[string]any{"path": [][2]int{*from, *at}}
		return "local_pc_drag", args, true, hold(args, in.Text)
	case "scroll":
		return scroll(args, aims, in)
	case "type":
		if in.Text == nil || *in.Text == "" {
			return "", nil, false, sentence("type needs text.")
		}
		return "local_pc_type", map[string]any{"text": *in.Text}, false, nil
	case "key", "hold_key":
		return press(b)
	case "wait":
		d, err := seconds(b)
		return "local_pc_wait", map[string]any{"duration_s": d}, false, err
	}
	return "", nil, false, sayf("There is no action %.40q.", b.Action)
}

// hold puts the modifiers into args.
func hold(args map[string]any, s *string) error {
	keys, err := modifiers(s)
	if len(keys) > 0 {
		args["modifiers"] = keys
	}
	return err
}

func scroll(args map[string]any, aims bool, in input) (string, map[string]any, bool, error) {
	switch {
	case !slices.Contains([]string{"up", "down", "left", "right"}, in.ScrollDirection):
		return "", nil, false, sentence("scroll needs scroll_direction: up, down, left or right.")
	case in.ScrollAmount == nil || !(*in.ScrollAmount >= 0 && *in.ScrollAmount <= maxScroll):
		return "", nil, false, sayf("scroll needs scroll_amount, in clicks of the wheel: 0 to %d.", maxScroll)
	}
	args["direction"], args["amount"] = in.ScrollDirection, int(math.Round(*in.ScrollAmount))
	return "local_pc_scroll", args, aims, hold(args, in.Text)
}

func press(b Block) (string, map[string]any, bool, error) {
	in := b.input
	if in.Text == nil || *in.Text == "" {
		return "", nil, false, sayf("%s needs text, such as Return or ctrl+s.", b.Action)
	}
	args := map[string]any{"key": *in.Text}
	if b.Action == "hold_key" {
		d, err := seconds(b)
		args["duration_s"] = d
		return "local_pc_hold_key", args, false, err
	}
	if in.Repeat != nil {
		if n := *in.Repeat; !(n >= 1 && n <= maxRepeat) || n != math.Trunc(n) {
			return "", nil, false, sayf("repeat must be 1 to %d.", maxRepeat)
		}
		args["repeat"] = int(*in.Repeat)
	}
	return "local_pc_key", args, false, nil
}

func seconds(b Block) (float64, error) {
	most := float64(maxSeconds)
	if b.Toolset == "" {
		most = maxToolSeconds
	}
	if d := b.input.Duration; d != nil && *d >= 0 && *d <= most {
		return *d, nil
	}
	return 0, sayf("%s needs duration, in seconds: 0 to %g.", b.Action, most)
}
