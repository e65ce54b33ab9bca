//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// A program like Claude Desktop starts localpc mcp, before Local PC Executor
// runs. It works once that runs, in the person's folder, with a key of its own,
// and goes with its standard input.
func TestMCPOverStandardInput(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	folder := filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "plan.md"), []byte("one\r\ntwo\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	d.Give(filepath.Join(folder, "plan.md"))

	changed := make(chan struct{}, 8)
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "claude-ai", Version: "1"}, &mcpsdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcpsdk.ToolListChangedRequest) { changed <- struct{}{} }})
	cmd := d.Command(filepath.Join(bin, "localpc"), "mcp", "--data", p.data, "--program", "Claude Desktop")
	cmd.Stderr = os.Stderr
	s, err := client.Connect(t.Context(), &mcpsdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(tool string, args map[string]any) string {
		t.Helper()
		text, failed := toolText(t, s, tool, args)
		if failed {
			t.Errorf("%s failed: %s", tool, text)
		}
		return text
	}
	if text, failed := toolText(t, s, "list_machines", nil); !failed || text != notRunning {
		t.Errorf("while it does not run a call says %q", text)
	}

	run := d.Command(filepath.Join(bin, "localpc"), "run", "--data", p.data, "--embedded-hub", p.addr, "--policy", "contained", "--folder", folder)
	run.Env = slices.DeleteFunc(run.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
	p.p = d.StartCmd("localpc", run)
	d.WaitOutput(p.p, 30*time.Second, "refused")
	p.pair()
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		t.Error("the program was not told that there are tools now")
	}
	if list, err := s.ListTools(t.Context(), nil); err != nil || len(list.Tools) < 10 {
		t.Fatalf("the tools are %v, %v", list, err)
	}
	if text := call("run_command", map[string]any{"command": "pwd; ls; echo made > made.txt"}); text != "/home/user\nplan.md\n[exit code 0]" {
		t.Errorf("a command gave %q", text)
	}
	if text := call("read_file", map[string]any{"path": "made.txt"}); text != "made\n" {
		t.Errorf("the file reads %q", text)
	}
	call("write_file", map[string]any{"path": "sub/new.md", "content": "α\nβ\n"})
	call("edit_file", map[string]any{"path": "sub/new.md", "old_text": "β", "new_text": "γ"})
	if b, err := os.ReadFile(filepath.Join(folder, "sub", "new.md")); err != nil || string(b) != "α\nγ\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if text := call("search_files", map[string]any{"name": "**/*.md", "text": "γ"}); !strings.Contains(text, "sub/new.md:2: γ") {
		t.Errorf("the search found %q", text)
	}
	if text := call("list_directory", map[string]any{"depth": 2}); !strings.Contains(text, "sub/new.md") || !strings.Contains(text, "plan.md") {
		t.Errorf("the folder lists %q", text)
	}
	call("move_file", map[string]any{"from": "sub/new.md", "to": "sub/renamed.md"})
	if text, failed := toolText(t, s, "read_file", map[string]any{"path": "../../etc/passwd"}); !failed {
		t.Errorf("a file outside was read: %q", text)
	}
	// A command that reads what it is sent.
	res, err := s.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": "cat; echo over", "background": true, "input": true}})
	if err != nil {
		t.Fatal(err)
	}
	handle, _ := res.StructuredContent.(map[string]any)["handle"].(string)
	call("send_input", map[string]any{"handle": handle, "text": "typed\n", "end": true})
	out := ""
	for range 60 {
		if out = call("read_output", map[string]any{"handle": handle, "since": 0, "wait_s": 1}); strings.Contains(out, "exit code 0") {
			break
		}
	}
	if !strings.HasPrefix(out, "typed\nover\n") {
		t.Errorf("the command that reads gave %q", out)
	}

	// It is one session of a program of that name.
	p.waitStatus(20*time.Second, "one session", func(s snapshot.Snapshot) bool { return len(s.Sessions) == 1 && s.Sessions[0].Principal == "Claude Desktop" })
	if err := s.Close(); err != nil {
		t.Errorf("localpc mcp ended with %v", err)
	}
	if state := cmd.ProcessState; state == nil || !state.Exited() {
		t.Errorf("localpc mcp has not ended: %v", state)
	}
}
