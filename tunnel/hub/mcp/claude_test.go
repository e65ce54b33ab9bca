//go:build linux && amd64

package mcp_test

import (
	"context"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// Claude Code, as published, works on the computer through the hub: it lists,
// runs, reads and writes, sees the screen and clicks, is told of what the person declines, and gets what
// they allow late.
func TestClaudeCode(t *testing.T) {
	if err := install(); err != nil {
		t.Fatalf("npm ci: %v", err)
	}
	asked := make(chan struct{}, 8)
	r, screen := screenRig(t, func(_ context.Context, m wire.Message) error {
		switch p := m.Payload.(type) {
		case *wire.SessionOpen:
			asked <- struct{}{}
			time.Sleep(4 * time.Second) // the person reads the card
		case *wire.FileDelete:
			return wire.Errorf(wire.CodeDenied, "The person at this computer declined this: %s.", p.Path)
		}
		return nil
	})
	m := &tunneltest.Model{Steps: []tunneltest.Step{
		{Tool: "list_machines", Args: map[string]any{}},
		{Tool: "write_file", Args: map[string]any{"path": "notes/plan.md", "content": "one\ntwo\n"}},
		{Tool: "run_command", Args: map[string]any{"command": "cat notes/plan.md; echo $((40+2))"}},
		{Tool: "read_file", Args: map[string]any{"path": "notes/plan.md"}},
		{Tool: "delete_file", Args: map[string]any{"path": "notes/plan.md"}},
		{Tool: "local_pc_screenshot", Args: map[string]any{}},
		{Tool: "local_pc_click", Args: map[string]any{"coordinate": []int{728, 409}}},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd, out := tunneltest.ClaudeCode(ctx, t, npmDir+"/node_modules", m, r.URL, r.Key)
	if err := cmd.Run(); err != nil {
		t.Fatalf("Claude Code: %v\n%s", err, out)
	}
	gave := m.Gave()
	if !m.Offers("run_command") || len(gave) != len(m.Steps) {
		t.Fatalf("the model was given %q\n%s", gave, out)
	}
	// Text of a file is given as it is, so that the model can copy it.
	for i, want := range []string{"Mac-1", "notes/plan.md", "42", `"one\ntwo\n"`, "declined this", `"type":"image"`, "Clicked at (728, 409), in picture pic_1."} {
		if !strings.Contains(gave[i], want) {
			t.Errorf("%s gave the model %s, without %q", m.Steps[i].Tool, gave[i], want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(r.Dir, "notes/plan.md")); err != nil || string(b) != "one\ntwo\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if reached := screen.Reached(); len(reached) != 1 || *reached[0].At != image.Pt(-960, 539) {
		t.Errorf("what was done on the screen: %+v", reached)
	}
	if len(asked) != 1 {
		t.Errorf("the person was asked for a session %d times", len(asked))
	}
}
