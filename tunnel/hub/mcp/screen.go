package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	// usualEdge and usualTiles bound a picture unless the client says otherwise:
	// what models take without making it smaller themselves, which would shift
	// what they aim at.
	usualEdge, usualTiles = 1568, 1568
	// usualBytes of a picture keep its result, as base64, below the megabyte that
	// some clients let through.
	usualBytes = 700_000
	// maxLooks are the conversations and computers whose last picture is known.
	maxLooks = 4096
	// lookFor is how long a picture is the last one of a client that does not say
	// which conversation a call belongs to: it may be another one's.
	lookFor = 5 * time.Minute
	// maxConversation is the most bytes of the name of one.
	maxConversation = 128
)

// PictureMeta is where the result of a picture has what a program needs of it, a
// Picture. It is not in the structured content: a client that prefers that would
// show its model no picture.
const PictureMeta = "localpc/picture"

// Picture is one that was sent, as its result tells of it.
type Picture struct {
	ID     string    `json:"id"`
	Width  int       `json:"width"`
	Height int       `json:"height"`
	Shows  wire.Rect `json:"shows"` // in device pixels
	// Monitor is the screen's index; -1: more than one.
	Monitor int      `json:"monitor"`
	Hidden  []string `json:"hidden,omitempty"`
	Note    string   `json:"note,omitempty"`
}

// In is the picture's pixel that shows the device pixel (x, y).
func (p Picture) In(x, y int) (at wire.Point, ok bool) {
	w, h := p.Shows[2]-p.Shows[0], p.Shows[3]-p.Shows[1]
	x, y = x-p.Shows[0], y-p.Shows[1]
	if x < 0 || y < 0 || x >= w || y >= h {
		return at, false
	}
	return wire.Point{(2*x + 1) * p.Width / (2 * w), (2*y + 1) * p.Height / (2 * h)}, true
}

// look is the last picture of a screen that a conversation got: what its
// coordinates count in.
type look struct {
	session string
	picture Picture
	at      time.Time
}

// conversation is what the client calls the one that a call belongs to: two chats
// of one program, with one key, aim at different pictures. "" for a client that
// has no sessions of the protocol: it shares the last picture of its key.
func conversation(req *sdk.CallToolRequest) string {
	if req.Extra == nil {
		return ""
	}
	name := req.Extra.Header.Get(conversationHeader)
	if len(name) > maxConversation {
		return ""
	}
	return name
}

// lookOf names whose last picture it is: within the session b.
type lookOf struct{ principal, machine, conversation string }

func lookBy(who Principal, req *sdk.CallToolRequest, b store.Sandbox) lookOf {
	return lookOf{who.ID, b.Machine, conversation(req)}
}

// lastLook is the last picture that was sent within the session b.
func (f *Face) lastLook(of lookOf, b store.Sandbox) (Picture, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.looks[of]
	old := of.conversation == "" && time.Since(l.at) > f.lookFor
	return l.picture, ok && l.session == b.ID && !old
}

func (f *Face) setLook(of lookOf, b store.Sandbox, p Picture) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if len(f.looks) >= maxLooks {
		oldest, when := lookOf{}, now
		for k, l := range f.looks {
			if l.at.Before(when) {
				oldest, when = k, l.at
			}
		}
		delete(f.looks, oldest)
	}
	f.looks[of] = look{b.ID, p, now}
}

// aimed is the picture that coordinates count in: the one that the call names,
// else the last one.
func (f *Face) aimed(of lookOf, b store.Sandbox, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	p, ok := f.lastLook(of, b)
	if !ok {
		return "", wire.Errorf(wire.CodeInvalid, "Coordinates are pixels of a picture of the screen, and none was taken here of late. Take one with local_pc_screenshot first.")
	}
	return p.ID, nil
}

func (f *Face) addScreenTools() {
	add(f, ScopeInput, looks, "local_pc_screenshot", "Take a picture of the screen",
		"Gives a picture of a screen of the computer, of a part of it, or of one window. Coordinates of the other local_pc tools are pixels of the last such picture, from its top left, unless they name another by its id. "+
			"The person allows it once a session; windows that they hide are black in it.", f.screenshot)
	add(f, ScopeInput, looks, "local_pc_zoom", "Look closer",
		"Gives a part of the last picture anew, from the screen's own pixels: small text can be read in it. Coordinates go on counting in the last picture of local_pc_screenshot.", f.zoom)
	add(f, ScopeInput, looks, "local_pc_cursor_position", "Where the pointer is",
		"Tells where the mouse pointer is, in pixels of the last picture.", f.cursorPosition)
	add(f, ScopeInput, looks, "local_pc_displays", "List screens",
		"Lists the screens of the computer: index for local_pc_screenshot, size, scale and place.", f.displays)
}

// bounded says how large a picture may be.
type bounded struct {
	MaxEdge  int    `json:"max_edge,omitempty" jsonschema:"most pixels of its longer side (default 1568, at most 8000)"`
	MaxTiles int    `json:"max_tiles,omitempty" jsonschema:"most tiles of 28 x 28 pixels that cover it (default 1568, with max_edge given alone none)"`
	Format   string `json:"format,omitempty" jsonschema:"jpeg (default) or png"`
	Quality  int    `json:"quality,omitempty" jsonschema:"of jpeg, 1 to 100 (default 75)"`
}

// limit puts the bounds into a request.
func (in bounded) limit(p *wire.Screenshot) {
	p.MaxEdge, p.MaxTiles, p.Format, p.Quality = in.MaxEdge, in.MaxTiles, in.Format, in.Quality
	if p.MaxEdge == 0 && p.MaxTiles == 0 {
		p.MaxTiles = usualTiles
	}
	if p.MaxEdge == 0 {
		p.MaxEdge = usualEdge
	}
	if in.Format != "png" {
		p.MaxBytes = usualBytes
	}
}

type screenshot struct {
	where
	Monitor  *int       `json:"monitor,omitempty" jsonschema:"index of the screen, from local_pc_displays (default: the first that the person shares); -1 is all of them in one picture"`
	WindowID string     `json:"window_id,omitempty" jsonschema:"only this window, from local_pc_list_windows"`
	Region   *wire.Rect `json:"region,omitempty" jsonschema:"only this part: left, top, right, bottom in the computer's own pixels of all screens, as local_pc_displays has them"`
	Cursor   bool       `json:"cursor,omitempty" jsonschema:"draw the mouse pointer into it"`
	bounded
}

func (f *Face) screenshot(ctx context.Context, req *sdk.CallToolRequest, who Principal, in screenshot) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in.where, "see the screen", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		ask := &wire.Screenshot{SessionID: b.ID, WindowID: in.WindowID, Region: in.Region, IncludeCursor: in.Cursor, WaitMS: f.patience()}
		in.limit(ask)
		if in.Monitor != nil {
			ask.Monitor = *in.Monitor
		} else if in.Region != nil && in.WindowID == "" {
			ask.Monitor = -1 // wherever it is
		}
		got, p, err := f.shoot(ctx, b, ask)
		if i, other := shared(err); in.Monitor == nil && other {
			ask.Monitor = i
			got, p, err = f.shoot(ctx, b, ask)
		}
		if err != nil {
			return nil, err
		}
		f.setLook(lookBy(who, req, b), b, p)
		return pictured(got, p, fmt.Sprintf("Coordinates count in its pixels: (0, 0) to (%d, %d).", p.Width-1, p.Height-1)), nil
	})
}

type zoom struct {
	where
	Region  wire.Rect `json:"region" jsonschema:"the part: left, top, right, bottom in pixels of the picture"`
	Picture string    `json:"picture,omitempty" jsonschema:"id of the picture that the region is of (default: the last one of local_pc_screenshot)"`
	Cursor  bool      `json:"cursor,omitempty" jsonschema:"draw the mouse pointer into it"`
	bounded
}

func (f *Face) zoom(ctx context.Context, req *sdk.CallToolRequest, who Principal, in zoom) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in.where, "look closer at the screen", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		of, err := f.aimed(lookBy(who, req, b), b, in.Picture)
		if err != nil {
			return nil, err
		}
		ask := &wire.Screenshot{SessionID: b.ID, Region: &in.Region, Picture: of, IncludeCursor: in.Cursor, WaitMS: f.patience()}
		in.limit(ask)
		got, p, err := f.shoot(ctx, b, ask)
		if err != nil {
			return nil, err
		}
		return pictured(got, p, "It is for looking only: coordinates still count in picture "+of+"."), nil
	})
}

// shared is the first screen that the person shares, where err says that they
// do not share the one that was asked for.
func shared(err error) (monitor int, ok bool) {
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != wire.CodeDenied {
		return 0, false
	}
	list, _ := e.Details["shared"].([]any)
	if len(list) == 0 {
		return 0, false
	}
	n, ok := list[0].(float64)
	return int(n), ok
}

func (f *Face) shoot(ctx context.Context, b store.Sandbox, ask *wire.Screenshot) (*wire.ScreenshotResponse, Picture, error) {
	got, err := unaryAs[*wire.ScreenshotResponse](ctx, f, b, wire.TypeScreenshot, ask)
	if err != nil {
		return nil, Picture{}, err
	}
	return got, Picture{ID: got.Picture, Width: got.Width, Height: got.Height, Shows: got.Shows, Monitor: got.Monitor, Hidden: got.Hidden, Note: got.Note}, nil
}

// pictured is the result of a picture.
func pictured(got *wire.ScreenshotResponse, p Picture, say string) *sdk.CallToolResult {
	var b strings.Builder
	of := fmt.Sprintf("screen %d", p.Monitor)
	if p.Monitor < 0 {
		of = "more than one screen"
	}
	fmt.Fprintf(&b, "Picture %s: %d × %d pixels, of %s. %s", p.ID, p.Width, p.Height, of, say)
	if len(p.Hidden) > 0 {
		fmt.Fprintf(&b, " Blacked out by the person's choice: windows of %s.", atRune(strings.Join(p.Hidden, ", "), 400))
	}
	if p.Note != "" {
		b.WriteString(" " + p.Note)
	}
	return &sdk.CallToolResult{Meta: sdk.Meta{PictureMeta: asMap(p)}, Content: []sdk.Content{&sdk.ImageContent{Data: got.Image, MIMEType: got.MIMEType}, text(b.String())}}
}

func (f *Face) cursorPosition(ctx context.Context, req *sdk.CallToolRequest, who Principal, in where) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in, "see where the pointer is", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		c, err := unaryAs[*wire.CursorResponse](ctx, f, b, wire.TypeCursor, &wire.ComputerQuery{SessionID: b.ID, WaitMS: f.patience()})
		if err != nil {
			return nil, err
		}
		structured := map[string]any{"device": wire.Point{c.X, c.Y}, "monitor": c.Monitor}
		p, known := f.lastLook(lookBy(who, req, b), b)
		if at, ok := p.In(c.X, c.Y); known && ok {
			structured["x"], structured["y"], structured["picture"] = at[0], at[1], p.ID
			return said(fmt.Sprintf("x=%d, y=%d in the last picture, %s.", at[0], at[1], p.ID), structured), nil
		}
		say := fmt.Sprintf("The pointer is on screen %d, at (%d, %d) of the computer's own pixels; ", c.Monitor, c.X, c.Y)
		if known {
			return said(say+"the last picture does not show that place.", structured), nil
		}
		return said(say+"no picture was taken yet, so there are no other coordinates.", structured), nil
	})
}

func (f *Face) displays(ctx context.Context, req *sdk.CallToolRequest, who Principal, in where) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in, "list the screens", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		d, err := unaryAs[*wire.DisplaysResponse](ctx, f, b, wire.TypeDisplays, &wire.ComputerQuery{SessionID: b.ID, WaitMS: f.patience()})
		if err != nil {
			return nil, err
		}
		var s strings.Builder
		for _, m := range d.Monitors {
			fmt.Fprintf(&s, "%d  %s: %d × %d pixels at (%d, %d), scale %g", m.Index, m.Name, m.PhysicalSize[0], m.PhysicalSize[1], m.Origin[0], m.Origin[1], m.Scale)
			if m.Primary {
				s.WriteString(", the main one")
			}
			s.WriteString("\n")
		}
		return said(s.String(), map[string]any{"monitors": d.Monitors}), nil
	})
}

// onScreen does what a call of the computer's screen, mouse or keyboard asks for
// in the program's session.
func (f *Face) onScreen(ctx context.Context, req *sdk.CallToolRequest, who Principal, in where, title string, use func(context.Context, store.Sandbox) (*sdk.CallToolResult, error)) *sdk.CallToolResult {
	return f.do(ctx, req, who, title, func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, in.Machine, func(_ store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) { return use(ctx, b) })
	})
}

// unaryAs is unary whose reply is a T.
func unaryAs[T wire.Payload](ctx context.Context, f *Face, b store.Sandbox, t wire.Type, p wire.Payload) (T, error) {
	reply, err := f.unary(ctx, b, t, p)
	got, ok := reply.(T)
	if err == nil && !ok {
		err = wire.Errorf(wire.CodeInternal, "The computer answered something else than was asked.")
	}
	return got, err
}

// asMap is v as JSON has it, for what takes nothing else.
func asMap(v any) map[string]any {
	m := map[string]any{}
	if data, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(data, &m) // it has just been an object
	}
	return m
}
