package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/wire"
)

// maxText is how much text one result has, in bytes: what a model can take at
// once, and clients let through. maxList is that of a list, whose structured
// form is longer; some clients show their model that instead of the text.
const maxText, maxList = 40 << 10, 16 << 10

const wrong = "Something went wrong in the hub; its log says what."

// sentence is an error whose text is for people.
type sentence string

func (s sentence) Error() string { return string(s) }

func stopped() *wire.Error {
	return wire.Errorf(wire.CodeStopped, "The hub was stopped.")
}

// hints are what a model is told beside the machine's own sentence.
var hints = map[wire.Code]string{
	wire.CodeDenied:      "Do not try to reach the same in another way; ask the person what they would rather have.",
	wire.CodeExpired:     "Tell the person what you wanted to do, and call the tool again when they are there.",
	wire.CodeUndelivered: "Tell the person what you wanted to do, and call the tool again when they are there.",
	wire.CodePaused:      "Tell the person; only they can let it go on.",
	wire.CodeOffline:     "Tell the person.",

	wire.CodeBounds:       "Coordinates are pixels of the last picture, from its top left.",
	wire.CodePictureStale: "Take a new picture with local_pc_screenshot, and aim at what that shows.",
	wire.CodeWindowStale:  "List the windows anew with local_pc_list_windows.",
	wire.CodePerson:       "Wait a little, then take a new picture with local_pc_screenshot before you go on; if it happens again, ask the person whether you may.",
	wire.CodeOwnWindow:    "Only the person uses that window. Leave it alone, and go on elsewhere or wait for them.",
	wire.CodeBlank:        "Tell the person.",
	wire.CodeConcealed:    "Ask the person for what you need of it.",
}

// refusal is an error as a model gets to see it: the sentence for its person,
// and what to do about it.
func refusal(err error) *sdk.CallToolResult {
	var e *wire.Error
	if !errors.As(err, &e) {
		e = wire.Errorf(wire.CodeInternal, wrong)
	}
	say := e.Message
	if hint := hints[e.Code]; hint != "" {
		say += " " + hint
	}
	structured := map[string]any{"status": "failed", "code": string(e.Code), "say": say}
	if len(e.Details) > 0 {
		structured["details"] = e.Details
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{text(say)}, StructuredContent: structured}
}

// failed is refusal for errors that may be the hub's own, which go to its log.
func (f *Face) failed(ctx context.Context, err error) *sdk.CallToolResult {
	if wire.CodeOf(err) == "" && ctx.Err() == nil {
		f.o.Log.Error("A call failed", "err", err)
	}
	if f.ctx.Err() != nil {
		err = stopped()
	}
	return refusal(err)
}

func text(s string) *sdk.TextContent { return &sdk.TextContent{Text: s} }

// said is a result of one sentence, with what a program would read of it.
func said(say string, structured map[string]any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{text(say)}, StructuredContent: structured}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// encodeResult and decodeResult are how results are kept.
func encodeResult(r *sdk.CallToolResult) ([]byte, error) { return json.Marshal(r) }

func decodeResult(data []byte) (*sdk.CallToolResult, error) {
	r := &sdk.CallToolResult{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("kept result: %w", err)
	}
	return r, nil
}

// middle shortens s to about max bytes by leaving out its middle; cut is how
// many bytes are missing.
func middle(s string, max int) (short string, cut int) {
	if len(s) <= max {
		return s, 0
	}
	head, tail := atRune(s, max/4), s[len(s)-max*3/4:]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	cut = len(s) - len(head) - len(tail)
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, cut, tail), cut
}

// atRune is the beginning of s, at most max bytes, not cut within a character.
func atRune(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// short is a text for a title.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if t := atRune(s, 80); t != s {
		return t + "…"
	}
	return s
}

// inBytes says a size as people do.
func inBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	value, i := float64(n)/unit, 0
	for ; value >= unit && i < 3; i++ {
		value /= unit
	}
	return fmt.Sprintf("%.1f %s", value, []string{"KB", "MB", "GB", "TB"}[i])
}
