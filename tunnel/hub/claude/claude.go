// Package claude is step 1 for programs that give Claude a computer through
// Anthropic's API: it answers the blocks of both published computer tools (the
// tool of 2025-11-24, the toolset of 2026-08-01) with calls of the hub's MCP
// tools. An Adapter takes a model's content and gives the results to send back;
// Dial connects one to a hub; a Loop is the whole conversation, and an example.
//
// Nothing is allowed here, and nothing remembered as allowed: the computer asks
// its person, each action anew where they want that.
package claude

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // the sizes of pictures are read
	_ "image/png"
	"strings"
	"time"
)

// Shape is one of the two published tools.
type Shape string

const (
	// Toolset is computer_toolset_20260801: an action is a block's name.
	Toolset Shape = "computer_toolset_20260801"
	// Tool is computer_20251124: an action is a part of the input of "computer".
	Tool Shape = "computer_20251124"
)

// Beta is the value of the header anthropic-beta that the shape needs; "": none.
func (s Shape) Beta() string {
	if s == Tool {
		return "computer-use-2025-11-24"
	}
	return ""
}

// Skipped is what the API wants an action answered with that was not done because
// one before it failed.
const Skipped = "Not executed: an earlier computer action in this turn failed."

// The usual bounds of a picture: larger ones are refused by the API with the
// toolset, and made smaller there with the tool, so that coordinates are off.
const (
	UsualEdge  = 1568
	UsualTiles = 1568
	tileSide   = 28
)

// Reply is what a tool of the hub answered.
type Reply struct {
	Text   string
	Image  []byte // nil without
	MIME   string // of Image
	Failed bool
	// Structured is its structured content, Picture what it tells of a picture;
	// both JSON, or nil.
	Structured, Picture json.RawMessage
}

// Caller calls a tool of the hub. Its error is the connection's, not the tool's.
type Caller interface {
	Call(ctx context.Context, tool string, args map[string]any) (Reply, error)
}

// Options build an Adapter. Only Tools is needed.
type Options struct {
	Tools Caller
	Shape Shape // "" is Toolset
	// Machine is the computer, by its name or id; "" where only one is connected.
	Machine string
	// Monitor is the screen's index, -1 all of them in one picture; nil is the
	// first that the person shares.
	Monitor *int
	// MaxEdge and MaxTiles bound pictures; both 0 are the usual ones, one alone
	// leaves the other unbounded. Above 2000 a request may have 20 pictures only.
	MaxEdge, MaxTiles int
	// NoZoom does not let the model look closer.
	NoZoom bool
	// Show adds a picture to the last result of a turn that ends without one, taken
	// Settle after the action. It saves the model a turn.
	Show   bool
	Settle time.Duration
	// Waiting is told, while an action waits for the person, what for.
	Waiting func(say string)
}

// Adapter answers the actions of one conversation. It is for one goroutine at a
// time.
type Adapter struct {
	o      Options
	screen *picture // what the model saw last
}

// picture is one that was sent to the model.
type picture struct {
	ID     string `json:"id"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Shows  [4]int `json:"shows"` // device pixels
}

// in is the picture's pixel that shows the device pixel (x, y).
func (p *picture) in(x, y int) (px, py int, ok bool) {
	w, h := p.Shows[2]-p.Shows[0], p.Shows[3]-p.Shows[1]
	x, y = x-p.Shows[0], y-p.Shows[1]
	if x < 0 || y < 0 || x >= w || y >= h {
		return 0, 0, false
	}
	return (2*x + 1) * p.Width / (2 * w), (2*y + 1) * p.Height / (2 * h), true
}

// New makes an Adapter.
func New(o Options) *Adapter {
	if o.Shape == "" {
		o.Shape = Toolset
	}
	if o.MaxEdge == 0 && o.MaxTiles == 0 {
		o.MaxEdge, o.MaxTiles = UsualEdge, UsualTiles
	}
	if o.Waiting == nil {
		o.Waiting = func(string) {}
	}
	return &Adapter{o: o}
}

// Definition is what stands among the tools of a request. With Tool it has the
// size of the pictures, so the first call takes one, for which the person may be
// asked; later ones follow what was sent last.
func (a *Adapter) Definition(ctx context.Context) (map[string]any, error) {
	if a.o.Shape == Toolset {
		d := map[string]any{"type": string(Toolset)}
		if a.o.NoZoom {
			d["configs"] = map[string]any{"zoom": map[string]any{"enabled": false}}
		}
		return d, nil
	}
	size := a.screen
	if size == nil {
		_, shot, failed, err := a.look(ctx)
		if err != nil {
			return nil, err
		}
		if failed != "" {
			return nil, sentence(failed)
		}
		size = shot
	}
	d := map[string]any{"type": string(Tool), "name": computer, "display_width_px": size.Width, "display_height_px": size.Height}
	if !a.o.NoZoom {
		d["enable_zoom"] = true
	}
	return d, nil
}

// Result is a block of the next message: what became of one tool_use.
type Result struct {
	Type      string `json:"type"` // tool_result
	ToolUseID string `json:"tool_use_id"`
	// Toolset is repeated from the block, or missing as there.
	Toolset string `json:"toolset_name,omitempty"`
	IsError bool   `json:"is_error,omitempty"`
	// Content is a string, or a list of blocks.
	Content any `json:"content"`
}

func text(s string) map[string]any { return map[string]any{"type": "text", "text": s} }

func (b Block) result(content any, failed bool) Result {
	return Result{Type: "tool_result", ToolUseID: b.ID, Toolset: b.Toolset, IsError: failed, Content: content}
}

// Answer does what content asks for, the "content" of a message of the API, and
// gives one result for each of its computer actions, in their order; blocks of
// other kinds and tools are the caller's. Actions are done one after the other;
// when one fails, those after it are not done. The error is the connection's, or
// says that content is none.
func (a *Adapter) Answer(ctx context.Context, content json.RawMessage) ([]Result, error) {
	blocks, err := Parse(content)
	if err != nil {
		return nil, err
	}
	results := []Result{}
	// Every action of the turn was aimed before any of its pictures was seen.
	aimed, failed := a.screen, false
	for i, b := range blocks {
		if failed {
			results = append(results, b.result(Skipped, true))
			continue
		}
		out, err := a.do(ctx, b, aimed)
		if err != nil {
			return results, err
		}
		failed = out.failed
		if a.o.Show && !out.shows && !failed && i == len(blocks)-1 {
			if out.blocks, err = a.show(ctx, out.blocks); err != nil {
				return results, err
			}
		}
		results = append(results, b.result(out.blocks, failed))
	}
	return results, nil
}

// show adds a picture to what was said.
func (a *Adapter) show(ctx context.Context, said []map[string]any) ([]map[string]any, error) {
	select {
	case <-time.After(a.o.Settle):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	blocks, shot, failed, err := a.look(ctx)
	switch {
	case err != nil:
		return nil, err
	case failed != "": // the action was done all the same
		return append(said, text("There is no picture of what came of it: "+failed)), nil
	}
	a.screen = shot
	return append(said, blocks...), nil
}

// look takes a picture of the screen; failed is why there is none.
func (a *Adapter) look(ctx context.Context) (blocks []map[string]any, shot *picture, failed string, err error) {
	args := a.bounds(map[string]any{})
	if a.o.Monitor != nil {
		args["monitor"] = *a.o.Monitor
	}
	r, err := a.call(ctx, "local_pc_screenshot", args)
	if err != nil {
		return nil, nil, "", err
	}
	return a.pictured(r)
}

func (a *Adapter) bounds(args map[string]any) map[string]any {
	if a.o.MaxEdge > 0 {
		args["max_edge"] = a.o.MaxEdge
	}
	if a.o.MaxTiles > 0 {
		args["max_tiles"] = a.o.MaxTiles
	}
	return args
}

// pictured makes blocks of a picture. One that is larger than was asked for is
// not sent: the API would refuse the whole conversation, or shift what is aimed
// at.
func (a *Adapter) pictured(r Reply) (blocks []map[string]any, shot *picture, failed string, err error) {
	if r.Failed || r.Image == nil {
		return nil, nil, orElse(r.Text, "The computer gave no picture."), nil
	}
	var p picture
	size, _, err := image.DecodeConfig(bytes.NewReader(r.Image))
	if err != nil || json.Unmarshal(r.Picture, &p) != nil || p.ID == "" || size.Width != p.Width || size.Height != p.Height {
		return nil, nil, "The computer gave a picture that cannot be read.", nil
	}
	if !a.fits(p.Width, p.Height) {
		return nil, nil, fmt.Sprintf("The computer gave a picture of %d × %d pixels, which is larger than was asked for.", p.Width, p.Height), nil
	}
	blocks = []map[string]any{{"type": "image", "source": map[string]any{"type": "base64", "media_type": r.MIME, "data": base64.StdEncoding.EncodeToString(r.Image)}}}
	var told struct {
		Hidden []string `json:"hidden"`
		Note   string   `json:"note"`
	}
	_ = json.Unmarshal(r.Picture, &told) // it is JSON: it was read above
	if len(told.Hidden) > 0 {
		blocks = append(blocks, text("Blacked out by the person's choice: windows of "+strings.Join(told.Hidden, ", ")+"."))
	}
	if told.Note != "" {
		blocks = append(blocks, text(told.Note))
	}
	return blocks, &p, "", nil
}

func (a *Adapter) fits(w, h int) bool {
	tiles := func(n int) int { return (n + tileSide - 1) / tileSide }
	return (a.o.MaxEdge == 0 || max(w, h) <= a.o.MaxEdge) && (a.o.MaxTiles == 0 || tiles(w)*tiles(h) <= a.o.MaxTiles)
}

// call calls a tool of the hub on the computer, and waits as long as its person
// takes to answer.
func (a *Adapter) call(ctx context.Context, tool string, args map[string]any) (Reply, error) {
	if a.o.Machine != "" {
		args["machine"] = a.o.Machine
	}
	for {
		r, err := a.o.Tools.Call(ctx, tool, args)
		if err != nil {
			return Reply{}, fmt.Errorf("%s: %w", tool, err)
		}
		var s struct{ Status, ID, Waits string }
		if len(r.Structured) == 0 || json.Unmarshal(r.Structured, &s) != nil || s.Status != "pending" || s.ID == "" {
			return r, nil
		}
		a.o.Waiting(s.Waits)
		tool, args = "get_result", map[string]any{"id": s.ID}
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
