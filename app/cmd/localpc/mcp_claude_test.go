//go:build linux && amd64

package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
)

// Claude Code starts what localpc connect wrote into its settings, and its
// person answers with the mouse: each card's answer reaches it, one that takes
// longer than a call may, too.
func TestClaudeCodeAsksByCards(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{})
	p.pair()
	p.must("connect", "claude-code")
	m := &model{steps: []modelStep{
		{"write_file", map[string]any{"path": "plan.txt", "content": "one\n"}},
		{"read_file", map[string]any{"path": "plan.txt"}},
		{"run_command", map[string]any{"command": "echo refused"}},
		{"run_command", map[string]any{"command": "echo late"}},
	}}
	api := httptest.NewServer(m)
	defer api.Close()
	program, err := filepath.Abs(claudeCode)
	if err != nil {
		t.Fatal(err)
	}
	cmd := p.d.Command(program, "-p", "Do the work.", "--allowedTools", "mcp__localpc", "--model", "claude-test")
	cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+api.URL, "ANTHROPIC_API_KEY=sk-ant-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false", "TMPDIR="+p.d.Home)
	claude := p.d.StartCmd("claude", cmd)

	p.d.WaitWindow(2*time.Minute, cardTitle)
	c := p.card("Claude Code")
	c.ClickText("Ask", "me", "each", "time")
	p.press(c, "Start")
	p.press(p.card("plan.txt"), "Allow")
	p.press(p.card("wants to read plan.txt"), "Allow")
	p.press(p.card("echo refused"), "Deny")
	late := p.card("echo late")
	if !p.d.Until(3*time.Minute, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		n := len(m.gave)
		return n > 3 && pendingCall.MatchString(m.gave[n-1])
	}) {
		t.Fatalf("the program was not told that its call is pending: %q", m.gave)
	}
	p.press(late, "Allow")
	if code := claude.ExitCode(2 * time.Minute); code != 0 {
		t.Errorf("Claude Code ended with %d:\n%s", code, claude.Output())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	got := answered(m.gave)
	if len(got) != len(m.steps) || len(m.gave) == len(got) {
		t.Fatalf("its calls gave %q\n%s", m.gave, claude.Output())
	}
	for i, want := range []string{"plan.txt", "one", "declined", "late"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("%s gave %s, without %q", m.steps[i].tool, got[i], want)
		}
	}
	folder := p.status().Sessions[0].Folder
	if b, err := os.ReadFile(filepath.Join(folder, "plan.txt")); err != nil || string(b) != "one\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}
