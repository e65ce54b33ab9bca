package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// computer names the toolset, and the tool.
const computer = "computer"

// Block is one tool_use of a computer action.
type Block struct {
	ID      string
	Toolset string // toolset_name; "" with Tool
	Action  string
	input   input
	err     error // what is wrong with its input, as the model is told it
}

// input has every parameter of every action.
type input struct {
	Action          string   `json:"action"`
	Coordinate      *numbers `json:"coordinate"`
	StartCoordinate *numbers `json:"start_coordinate"`
	Region          *numbers `json:"region"`
	Text            *string  `json:"text"`
	Repeat          *float64 `json:"repeat"`
	Duration        *float64 `json:"duration"`
	ScrollDirection string   `json:"scroll_direction"`
	ScrollAmount    *float64 `json:"scroll_amount"`
}

// sentence is an error that a model reads as it is.
type sentence string

func (s sentence) Error() string { return string(s) }

func sayf(format string, args ...any) error { return sentence(fmt.Sprintf(format, args...)) }

// numbers are coordinates: whole ones, to which models keep mostly.
type numbers []float64

// Parse finds the computer actions in the "content" of a message. The error says
// that it is none; what is wrong with one action is told when that is answered.
func Parse(content json.RawMessage) ([]Block, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("content is no list of blocks: %w", err)
	}
	var blocks []Block
	for _, raw := range list {
		var head struct {
			Type    string          `json:"type"`
			ID      string          `json:"id"`
			Name    string          `json:"name"`
			Toolset string          `json:"toolset_name"`
			Input   json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return nil, fmt.Errorf("content has a block that is none: %w", err)
		}
		if head.Type != "tool_use" || head.Toolset != computer && (head.Toolset != "" || head.Name != computer) {
			continue
		}
		b := Block{ID: head.ID, Toolset: head.Toolset, Action: head.Name}
		if len(head.Input) > 0 {
			if err := json.Unmarshal(head.Input, &b.input); err != nil {
				b.err = sayf("The input of this action cannot be read: %s.", reason(err))
			}
		}
		if b.Toolset == "" {
			b.Action = b.input.Action
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func reason(err error) string {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) && te.Field != "" {
		return te.Field + " has another type"
	}
	return "it is not an object of the tool's shape"
}

// point is n as a place in a picture; nil without one.
func point(name string, n *numbers) (*[2]int, error) {
	if n == nil {
		return nil, nil
	}
	var p [2]int
	if err := whole(name, *n, p[:]); err != nil {
		return nil, err
	}
	return &p, nil
}

func whole(name string, from []float64, to []int) error {
	if len(from) != len(to) {
		return sayf("%s must be %d numbers.", name, len(to))
	}
	for i, v := range from {
		if !(math.Abs(v) <= 1<<20) {
			return sayf("%s is far outside of every screen.", name)
		}
		to[i] = int(math.Round(v))
	}
	return nil
}

// modifiers reads keys that are held during an action: "ctrl+shift".
func modifiers(s *string) ([]string, error) {
	if s == nil || strings.TrimSpace(*s) == "" {
		return nil, nil
	}
	names := map[string]string{"shift": "shift", "ctrl": "ctrl", "control": "ctrl", "alt": "alt", "option": "alt",
		"super": "super", "cmd": "super", "command": "super", "meta": "super", "win": "super"}
	var out []string
	for part := range strings.SplitSeq(*s, "+") {
		name, ok := names[strings.ToLower(strings.TrimSpace(part))]
		if !ok {
			return nil, sayf("text names keys that are held here: shift, ctrl, alt and super, joined by +. %.40q is none.", part)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}
