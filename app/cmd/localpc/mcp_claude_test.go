//go:build linux && amd64

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/tunnel/tunneltest"
)

// Claude Code starts what localpc connect wrote into its settings, and its
// person answers with the mouse: each card's answer reaches it, one that takes
// longer than a call may, too.
func TestClaudeCodeAsksByCards(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{})
	p.pair()
	p.must("connect", "claude-code")
	m := &tunneltest.Model{Steps: []tunneltest.Step{
		{Tool: "write_file", Args: map[string]any{"path": "plan.txt", "content": "one\n"}},
		{Tool: "read_file", Args: map[string]any{"path": "plan.txt"}},
		{Tool: "run_command", Args: map[string]any{"command": "echo refused"}},
		{Tool: "run_command", Args: map[string]any{"command": "echo late"}},
	}}
	args, env := m.Claude(t)
	cmd := p.d.Command(tunneltest.ClaudeProgram(t, npmModules), args...)
	cmd.Env = append(append(cmd.Env, env...), "TMPDIR="+p.d.Home)
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
		return len(m.Gave()) > 3 && len(m.Answered()) == 3
	}) {
		t.Fatalf("the program was not told that its call is pending: %q", m.Gave())
	}
	p.press(late, "Allow")
	if code := claude.ExitCode(2 * time.Minute); code != 0 {
		t.Errorf("Claude Code ended with %d:\n%s", code, claude.Output())
	}
	got := m.Answered()
	if len(got) != len(m.Steps) || len(m.Gave()) == len(got) {
		t.Fatalf("its calls gave %q\n%s", m.Gave(), claude.Output())
	}
	for i, want := range []string{"plan.txt", "one", "declined", "late"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("%s gave %s, without %q", m.Steps[i].Tool, got[i], want)
		}
	}
	folder := p.status().Sessions[0].Folder
	if b, err := os.ReadFile(filepath.Join(folder, "plan.txt")); err != nil || string(b) != "one\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}
