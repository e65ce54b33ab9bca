//go:build linux && amd64

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// claudeCode is Claude Code as npm has it.
const claudeCode = "../../../tunnel/hub/mcp/testdata/npm/node_modules/@anthropic-ai/claude-code-linux-x64/claude"

// model stands for the model behind Claude Code: it calls one tool after the
// other, fetches what comes of a call that is pending, and then says that it is
// done.
type model struct {
	steps []modelStep

	mu   sync.Mutex
	gave []string // what the tools gave; guarded by mu
}

type modelStep struct {
	tool string
	args map[string]any
}

// pendingCall is what a call gives whose person has not answered yet.
var pendingCall = regexp.MustCompile(`\\"id\\":\\"(r[0-9a-f]+)\\".*\\"status\\":\\"pending\\"`)

// answered are what the calls gave in the end.
func answered(gave []string) []string {
	return slices.DeleteFunc(slices.Clone(gave), pendingCall.MatchString)
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Tools    []json.RawMessage
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
	m.gave = gave
	m.mu.Unlock()
	block, delta, reason := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "All done."}, "end_turn"
	if done := len(answered(gave)); len(in.Tools) > 0 && done < len(m.steps) {
		s := m.steps[done]
		if done < len(gave) {
			if id := pendingCall.FindStringSubmatch(gave[len(gave)-1]); id != nil {
				s = modelStep{"get_result", map[string]any{"id": id[1]}}
			}
		}
		args, _ := json.Marshal(s.args)
		block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(gave)), "name": "mcp__localpc__" + s.tool, "input": map[string]any{}}
		delta, reason = map[string]any{"type": "input_json_delta", "partial_json": string(args)}, "tool_use"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	for _, v := range []map[string]any{
		{"type": "message_start", "message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage},
		{"type": "message_stop"},
	} {
		data, _ := json.Marshal(v)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", v["type"], data)
	}
}

// Claude Code, as published, lists, runs, writes, reads and deletes on this
// computer, and each of it is a card that its person answers.
func TestClaudeCodeAsksThePerson(t *testing.T) {
	t.Parallel()
	program, err := filepath.Abs(claudeCode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("make npm brings Claude Code: %v", err)
	}
	p, keyboard := startHeadless(t)
	p.pair()
	key := strings.TrimPrefix(p.key("Claude Code")[0], "E2B_API_KEY=")
	m := &model{steps: []modelStep{
		{"list_machines", map[string]any{}},
		{"run_command", map[string]any{"command": "echo $((40+2))"}},
		{"write_file", map[string]any{"path": "plan.md", "content": "one\ntwo\n"}},
		{"read_file", map[string]any{"path": "plan.md"}},
		{"delete_file", map[string]any{"path": "plan.md"}},
	}}
	api := httptest.NewServer(m)
	defer api.Close()
	home := t.TempDir()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"localpc": map[string]any{"type": "http", "url": "http://" + p.addr + "/mcp", "headers": map[string]string{"Authorization": "Bearer " + key}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-p", "Do the work.", "--mcp-config", file, "--strict-mcp-config", "--allowedTools", "mcp__localpc", "--model", "claude-test", "--output-format", "json")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=sk-ant-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false", "TMPDIR=" + home}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// A card comes when Claude Code has started and asked its model.
	say := func(about, answer string) {
		t.Helper()
		if !p.d.Until(90*time.Second, func() bool { return strings.Contains(p.p.Output(), about) }) {
			t.Fatalf("no card about %q; Claude Code says\n%s", about, out.String())
		}
		if digits := p.lastDigits(about); answer != "d" {
			answer = digits + answer
		}
		if _, err := io.WriteString(keyboard, answer+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say("wants to work on this computer", " a")
	say("echo $((40+2))", "")
	say("wants to create plan.md", "")
	say("wants to read plan.md", "")
	say("wants to delete plan.md", "d")
	if err := <-ended; err != nil {
		t.Fatalf("Claude Code: %v\n%s", err, out.String())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.gave) != len(m.steps) {
		t.Fatalf("the model was given %q\n%s", m.gave, out.String())
	}
	for i, want := range []string{"connected", "42", "plan.md", `"one\ntwo\n"`, "declined"} {
		if !strings.Contains(m.gave[i], want) {
			t.Errorf("%s gave the model %s, without %q", m.steps[i].tool, m.gave[i], want)
		}
	}
	s := p.status()
	if len(s.Sessions) != 1 || s.Sessions[0].Principal != "Claude Code" {
		t.Fatalf("the sessions are %+v", s.Sessions)
	}
	if b, err := os.ReadFile(filepath.Join(s.Sessions[0].Folder, "plan.md")); err != nil || string(b) != "one\ntwo\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}
