//go:build linux && amd64

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/tunnel/tunneltest"
)

// Claude Code, as published, lists, runs, writes, reads and deletes on this
// computer, and each of it is a card that its person answers.
func TestClaudeCodeAsksThePerson(t *testing.T) {
	t.Parallel()
	p, keyboard := startHeadless(t)
	p.pair()
	key := strings.TrimPrefix(p.key("Claude Code")[0], "E2B_API_KEY=")
	m := &tunneltest.Model{Steps: []tunneltest.Step{
		{Tool: "list_machines", Args: map[string]any{}},
		{Tool: "run_command", Args: map[string]any{"command": "echo $((40+2))"}},
		{Tool: "write_file", Args: map[string]any{"path": "plan.md", "content": "one\ntwo\n"}},
		{Tool: "read_file", Args: map[string]any{"path": "plan.md"}},
		{Tool: "delete_file", Args: map[string]any{"path": "plan.md"}},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd, out := tunneltest.ClaudeCode(ctx, t, npmModules, m, "http://"+p.addr, key)
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
	gave := m.Gave()
	if len(gave) != len(m.Steps) {
		t.Fatalf("the model was given %q\n%s", gave, out)
	}
	for i, want := range []string{"connected", "42", "plan.md", `"one\ntwo\n"`, "declined"} {
		if !strings.Contains(gave[i], want) {
			t.Errorf("%s gave the model %s, without %q", m.Steps[i].Tool, gave[i], want)
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
