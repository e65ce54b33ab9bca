package tunneltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// Model stands for the model behind Claude Code: it calls one tool after the
// other, fetches what comes of a call that is pending, and then says that it is
// done.
type Model struct {
	Steps []Step

	mu    sync.Mutex
	tools map[string]bool // that it was offered; guarded by mu
	gave  []string        // what the tools gave; guarded by mu
}

// Step is one call of a tool of ours.
type Step struct {
	Tool string
	Args map[string]any
}

// Gave is what the tools gave so far, Answered what they gave in the end: without
// that a call is pending. Offers tells whether Claude Code offered a tool.
func (m *Model) Gave() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.gave)
}

func (m *Model) Answered() []string { return answered(m.Gave()) }

func answered(gave []string) []string { return slices.DeleteFunc(gave, pendingCall.MatchString) }

func (m *Model) Offers(tool string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tools[claudesName+tool]
}

// claudesName is what Claude Code puts before the names of our tools.
const claudesName = "mcp__localpc__"

// pendingCall is what a call gives whose person has not answered yet.
var pendingCall = regexp.MustCompile(`\\"id\\":\\"(r[0-9a-f]+)\\".*\\"status\\":\\"pending\\"`)

// next is what the model calls after gave; nil: it is done.
func (m *Model) next(gave []string) *Step {
	done := len(answered(slices.Clone(gave)))
	if done == len(m.Steps) {
		return nil
	}
	if done < len(gave) {
		if id := pendingCall.FindStringSubmatch(gave[len(gave)-1]); id != nil {
			return &Step{"get_result", map[string]any{"id": id[1]}}
		}
	}
	return &m.Steps[done]
}

func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" || json.NewDecoder(r.Body).Decode(&in) != nil {
		http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"not here"}}`, http.StatusNotFound)
		return
	}
	var gave []string
	for _, msg := range in.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(msg.Content, &parts) // or it is plain text
		for _, p := range parts {
			if p.Type == "tool_result" {
				gave = append(gave, string(p.Content))
			}
		}
	}
	m.mu.Lock()
	if m.tools == nil {
		m.tools = map[string]bool{}
	}
	for _, tool := range in.Tools {
		m.tools[tool.Name] = true
	}
	m.gave = gave
	m.mu.Unlock()
	block, delta, reason := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "All done."}, "end_turn"
	if s := m.next(gave); s != nil && len(in.Tools) > 0 {
		args, _ := json.Marshal(s.Args)
		block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(gave)), "name": claudesName + s.Tool, "input": map[string]any{}}
		delta, reason = map[string]any{"type": "input_json_delta", "partial_json": string(args)}, "tool_use"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, v map[string]any) {
		v = maps.Clone(v)
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

// ClaudeProgram is where npm, whose modules these are, has Claude Code.
func ClaudeProgram(t *testing.T, modules string) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(modules, "@anthropic-ai", "claude-code-linux-x64", "claude"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("make npm brings Claude Code: %v", err)
	}
	return program
}

// Claude serves the model until the test ends, and gives what Claude Code is
// started with to work with it and our tools.
func (m *Model) Claude(t *testing.T) (args, env []string) {
	api := httptest.NewServer(m)
	t.Cleanup(api.Close)
	return []string{"-p", "Do the work.", "--allowedTools", "mcp__localpc", "--model", "claude-test"},
		[]string{"ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=sk-ant-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false"}
}

// ClaudeCode is Claude Code about to work with model and the tools at the hub's
// address, in a home of its own; the key names it there. What it says goes to
// out.
func ClaudeCode(ctx context.Context, t *testing.T, modules string, model *Model, hub, key string) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	home := t.TempDir()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"localpc": map[string]any{"type": "http", "url": hub + "/mcp", "headers": map[string]string{"Authorization": "Bearer " + key}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	args, env := model.Claude(t)
	cmd = exec.CommandContext(ctx, ClaudeProgram(t, modules), append(args, "--mcp-config", file, "--strict-mcp-config", "--output-format", "json")...)
	cmd.Dir, cmd.Env = home, append(env, "HOME="+home, "PATH="+os.Getenv("PATH"), "TMPDIR="+home)
	out = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}
