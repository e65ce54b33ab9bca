//go:build linux && amd64

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/wire"
)

const claude = npmDir + "/node_modules/@anthropic-ai/claude-code-linux-x64/claude"

// model stands for the model behind Claude Code: it calls one tool after the
// other, and says at last what the last one gave.
type model struct {
	t     *testing.T
	steps []step

	mu    sync.Mutex
	tools map[string]bool // that it was offered; guarded by mu
	gave  []string        // what the tools gave; guarded by mu
}

type step struct {
	tool string
	args map[string]any
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"not here"}}`, http.StatusNotFound)
		return
	}
	var in struct {
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		m.t.Errorf("a request to the model: %v", err)
	}
	var gave []string
	for _, msg := range in.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		if json.Unmarshal(msg.Content, &parts) != nil {
			continue // plain text
		}
		for _, p := range parts {
			if p.Type == "tool_result" {
				gave = append(gave, string(p.Content))
			}
		}
	}
	m.mu.Lock()
	for _, tool := range in.Tools {
		m.tools[tool.Name] = true
	}
	m.gave = gave
	m.mu.Unlock()
	block := map[string]any{"type": "text", "text": "All done."}
	delta := map[string]any{"type": "text_delta", "text": "All done."}
	reason := "end_turn"
	if len(in.Tools) > 0 && len(gave) < len(m.steps) {
		s := m.steps[len(gave)]
		args, _ := json.Marshal(s.args)
		block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(gave)), "name": "mcp__localpc__" + s.tool, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(args)}
		reason = "tool_use"
	} else {
		block["text"] = ""
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, v map[string]any) {
		v["type"] = kind
		data, _ := json.Marshal(v)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	send("message_start", map[string]any{"message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}})
	send("content_block_start", map[string]any{"index": 0, "content_block": block})
	send("content_block_delta", map[string]any{"index": 0, "delta": delta})
	send("content_block_stop", map[string]any{"index": 0})
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	send("message_stop", map[string]any{})
}

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
	m := &model{t: t, tools: map[string]bool{}, steps: []step{
		{"list_machines", map[string]any{}},
		{"write_file", map[string]any{"path": "notes/plan.md", "content": "one\ntwo\n"}},
		{"run_command", map[string]any{"command": "cat notes/plan.md; echo $((40+2))"}},
		{"read_file", map[string]any{"path": "notes/plan.md"}},
		{"delete_file", map[string]any{"path": "notes/plan.md"}},
		{"local_pc_screenshot", map[string]any{}},
		{"local_pc_click", map[string]any{"coordinate": []int{728, 409}}},
	}}
	api := httptest.NewServer(m)
	defer api.Close()
	home := t.TempDir()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"localpc": map[string]any{"type": "http", "url": r.URL + "/mcp", "headers": map[string]string{"Authorization": "Bearer " + r.Key}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(claude)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-p", "Do the work.", "--mcp-config", file, "--strict-mcp-config", "--allowedTools", "mcp__localpc", "--model", "claude-test", "--output-format", "json")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=sk-ant-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false", "TMPDIR=" + home}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("Claude Code: %v\n%s", err, out.String())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.tools["mcp__localpc__run_command"] || len(m.gave) != len(m.steps) {
		t.Fatalf("the model was offered %v, and given %q\n%s", m.tools, m.gave, out.String())
	}
	// Text of a file is given as it is, so that the model can copy it.
	for i, want := range []string{"Mac-1", "notes/plan.md", "42", `"one\ntwo\n"`, "declined this", `"type":"image"`, "Clicked at (728, 409)."} {
		if !strings.Contains(m.gave[i], want) {
			t.Errorf("%s gave the model %s, without %q", m.steps[i].tool, m.gave[i], want)
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
