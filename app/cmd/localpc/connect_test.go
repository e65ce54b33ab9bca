//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/app/apptest"
	"localpc/tunnel/tunneltest"
)

// npmModules is where make npm puts programs for tests.
const npmModules = "../../../tunnel/hub/mcp/testdata/npm/node_modules"

// Without a display: a person connects Claude Code with one command, what its
// settings say then works, and with another command it is all as before.
func TestConnectAProgramFromATerminal(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	folder := filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	settings := filepath.Join(d.Home, ".claude.json")
	const before = "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"docs\": {\"command\": \"docs\"}\n  }\n}\n"
	if err := os.WriteFile(settings, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Give(settings)
	run := d.Command(filepath.Join(bin, "localpc"), "run", "--data", p.data, "--embedded-hub", p.addr, "--policy", "contained", "--folder", folder)
	run.Env = slices.DeleteFunc(run.Env, func(e string) bool {
		return strings.HasPrefix(e, "DISPLAY=") || strings.HasPrefix(e, "CLAUDE_CONFIG_DIR=")
	})
	p.p = d.StartCmd("localpc", run)
	d.WaitOutput(p.p, 30*time.Second, "refused")

	connect := func(args ...string) (string, error) {
		out, err := d.Command(filepath.Join(bin, "localpc"), append([]string{"connect", "--data", p.data}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := connect(); err == nil || !strings.Contains(out, "pair this computer first") {
		t.Errorf("before it is paired: %v, %s", err, out)
	}
	p.pair()
	if out, err := connect(); err != nil || !strings.Contains(out, "claude-code") || !strings.Contains(out, "Any other MCP client: localpc connect --any") {
		t.Errorf("the list: %v, %s", err, out)
	}
	if out, err := connect("claude-code", "--print"); err != nil || !strings.Contains(out, `"--program"`) || !strings.Contains(out, `"deny"`) {
		t.Errorf("what would be written: %v, %s", err, out)
	}
	if now, _ := os.ReadFile(settings); string(now) != before {
		t.Fatalf("--print wrote\n%s", now)
	}
	if out, err := connect("Claude Code"); err != nil || !strings.Contains(out, "Claude Code is connected.") || !strings.Contains(out, settings) {
		t.Fatalf("connect: %v, %s", err, out)
	}
	var now struct {
		Servers map[string]struct {
			Type, Command string
			Args          []string
		} `json:"mcpServers"`
	}
	data, err := os.ReadFile(settings)
	if err == nil {
		err = json.Unmarshal(data, &now)
	}
	ours := now.Servers["localpc"]
	if err != nil || ours.Type != "stdio" || now.Servers["docs"].Command != "docs" || !strings.Contains(string(data), `"numStartups": 7`) || strings.Contains(string(data), "e2b_") {
		t.Fatalf("its settings are, %v:\n%s", err, data)
	}
	// Claude Code itself takes what stands there, and finds the tools.
	health := exec.Command(tunneltest.ClaudeProgram(t, npmModules), "mcp", "list")
	home := t.TempDir() // a copy: it writes much more there
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	health.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "TMPDIR=" + home}
	if out, err := health.CombinedOutput(); err != nil || !regexp.MustCompile(`localpc: .*Connected\s*\n`).Match(out) {
		t.Errorf("Claude Code says, %v:\n%s", err, out)
	}
	cmd := d.Command(ours.Command, ours.Args...)
	cmd.Stderr = os.Stderr
	s, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "claude-code", Version: "1"}, nil).Connect(t.Context(), &mcpsdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, failed := toolText(t, s, "run_command", map[string]any{"command": "echo here"}); failed || !strings.HasPrefix(text, "here") {
		t.Errorf("a command through what the settings say: %q", text)
	}
	if out, err := connect("claude-code", "--off"); err != nil || !strings.Contains(out, "disconnected") {
		t.Errorf("off: %v, %s", err, out)
	}
	if text, failed := toolText(t, s, "run_command", map[string]any{"command": "echo still"}); !failed {
		t.Errorf("a program that was disconnected still runs: %q", text)
	}
	_ = s.Close()
	if now, _ := os.ReadFile(settings); string(now) != before {
		t.Errorf("afterwards its settings are\n%s", now)
	}
	// A program that is not known here gets its lines, and loses its key, by name.
	if out, err := connect("--any", "Night shift"); err != nil || !strings.Contains(out, `"Night shift"`) {
		t.Errorf("any: %v, %s", err, out)
	}
	if out, err := connect(); err != nil || !strings.Contains(out, "Others that are connected: Night shift\n") {
		t.Errorf("the list: %v, %s", err, out)
	}
	// A name that is not there was forgotten: nothing is listed in its place.
	for _, none := range []string{"", "  "} {
		if out, err := connect("--any", none); err == nil || !strings.Contains(out, "Give the program a name") {
			t.Errorf("any, %q: %v, %s", none, err, out)
		}
	}
	// Of two that differ in their letters' size only, that one goes which is named.
	if out, err := connect("--any", "NIGHT SHIFT"); err != nil {
		t.Errorf("any, in capitals: %v, %s", err, out)
	}
	if out, err := connect("--any", "night shift", "--off"); err == nil || !strings.Contains(out, "letter by letter") {
		t.Errorf("any, off, of two: %v, %s", err, out)
	}
	if out, err := connect("--any", "NIGHT SHIFT", "--off"); err != nil {
		t.Errorf("any, off, in capitals: %v, %s", err, out)
	}
	if out, err := connect(); err != nil || !strings.Contains(out, "Others that are connected: Night shift\n") {
		t.Errorf("the list without the other: %v, %s", err, out)
	}
	// A key for the same name goes with it.
	p.key("Night shift")
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if out, err := connect(); err == nil && strings.Contains(out, "Night shift, Night shift\n") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the list with a key: %v, %s", err, out)
		}
	}
	if out, err := connect("--any", "night shift", "--off"); err != nil || !strings.Contains(out, "disconnected") {
		t.Errorf("any, off: %v, %s", err, out)
	}
	if out, err := connect(); err != nil || strings.Contains(out, "Night shift") {
		t.Errorf("the list afterwards: %v, %s", err, out)
	}
	if out, err := connect("--any", "Night shift", "--off"); err == nil || !strings.Contains(out, "no program called") {
		t.Errorf("any, off again: %v, %s", err, out)
	}
	p.quit()
}
