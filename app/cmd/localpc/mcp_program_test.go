//go:build linux

package main

import (
	"context"
	"io"
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

// connect does what a person does for a program that is not known here.
func (p *program) connect(name string) {
	p.t.Helper()
	out, err := p.d.Command(filepath.Join(p.bin, "localpc"), "connect", "--data", p.data, "--any", name).CombinedOutput()
	if err != nil || !strings.Contains(string(out), name+" is connected.") || !strings.Contains(string(out), `"--program"`) {
		p.t.Fatalf("localpc connect --any %s: %v\n%s", name, err, out)
	}
}

// A program like Claude Desktop starts localpc mcp, before Local PC Executor
// runs. It works once that runs and the person has connected it, in their
// folder, with a key of its own, and goes with its standard input.
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
	// That it runs is not enough: a program that nobody connected has no way in.
	if text, failed := toolText(t, s, "run_command", map[string]any{"command": "echo in"}); !failed || !strings.Contains(text, "Claude Desktop is not connected") {
		t.Errorf("a program that nobody connected is told %q", text)
	}
	if got := p.status().Programs; len(got) != 0 {
		t.Errorf("there are programs: %+v", got)
	}
	p.connect("Claude Desktop")
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
	// Without a desktop there is no screen, and nobody to be asked about one.
	for _, tool := range []string{"local_pc_screenshot", "local_pc_list_windows"} {
		if text, failed := toolText(t, s, tool, nil); !failed || !strings.Contains(text, "no screen") {
			t.Errorf("without a desktop %s gave %q", tool, text)
		}
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
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if out = call("read_output", map[string]any{"handle": handle, "since": 0, "wait_s": 1}); strings.Contains(out, "exit code 0") {
			break
		}
	}
	if !strings.HasPrefix(out, "typed\nover\n") {
		t.Errorf("the command that reads gave %q", out)
	}

	// What a command leaves behind, or what does not go gently, ends with it.
	for seconds, line := range map[string]string{"70611": `sleep 70611 >/dev/null 2>&1 &`, "70612": `(trap "" TERM; exec sleep 70612) & exec sleep 70613`} {
		res, err := s.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": line, "background": true}})
		if err != nil {
			t.Fatal(err)
		}
		handle, _ := res.StructuredContent.(map[string]any)["handle"].(string)
		for deadline := time.Now().Add(time.Minute); sleeping(seconds) == 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		}
		if sleeping(seconds) == 0 {
			t.Errorf("%s began nothing", line)
		}
		if text := call("stop_command", map[string]any{"handle": handle}); strings.Contains(text, "still run") || sleeping(seconds) > 0 {
			t.Errorf("%s was stopped, and %d processes of it run: %q", line, sleeping(seconds), text)
		}
	}

	// It is one session of a program of that name.
	p.waitStatus(20*time.Second, "one session", func(s snapshot.Snapshot) bool {
		return len(s.Sessions) == 1 && s.Sessions[0].Principal == "Claude Desktop"
	})
	if err := s.Close(); err != nil {
		t.Errorf("localpc mcp ended with %v", err)
	}
	if state := cmd.ProcessState; state == nil || !state.Exited() {
		t.Errorf("localpc mcp has not ended: %v", state)
	}
}

// sleeping is how many processes sleep for so long.
func sleeping(seconds string) (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range dirs {
		if b, err := os.ReadFile(f); err == nil && string(b) == "sleep\x00"+seconds+"\x00" {
			n++
		}
	}
	return n
}

// A model's call waits for the person, who answers in the terminal here: one
// card for the session, one for each command, and no is told as no.
func TestMCPAsksThePerson(t *testing.T) {
	t.Parallel()
	p, keyboard := startHeadless(t)
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(keyboard, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	p.pair()
	p.connect("Claude Desktop")
	heard := make(chan string, 256)
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "claude-ai", Version: "1"}, &mcpsdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcpsdk.ProgressNotificationClientRequest) { heard <- n.Params.Message }})
	cmd := p.d.Command(filepath.Join(p.bin, "localpc"), "mcp", "--data", p.data, "--program", "Claude Desktop")
	s, err := client.Connect(t.Context(), &mcpsdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	type answer struct {
		text   string
		failed bool
	}
	start := func(tool string, args map[string]any) chan answer {
		params := &mcpsdk.CallToolParams{Name: tool, Arguments: args}
		params.SetProgressToken(tool)
		done := make(chan answer, 1)
		go func() {
			res, err := s.CallTool(context.Background(), params)
			if err != nil {
				done <- answer{err.Error(), true}
				return
			}
			text := ""
			for _, c := range res.Content {
				if part, ok := c.(*mcpsdk.TextContent); ok {
					text += part.Text
				}
			}
			done <- answer{text, res.IsError}
		}()
		return done
	}
	get := func(done chan answer) answer {
		t.Helper()
		select {
		case a := <-done:
			return a
		case <-time.After(50 * time.Second):
			t.Fatal("a call was not answered")
			return answer{}
		}
	}

	run := start("run_command", map[string]any{"command": "echo first of all"})
	digits := p.lastDigits("wants to work on this computer")
	if out := p.p.Output(); !strings.Contains(out, "Claude Desktop") {
		t.Errorf("the card does not say who asks:\n%s", out)
	}
	select {
	case message := <-heard:
		if !strings.HasPrefix(message, "Waiting for the person at ") || !strings.Contains(message, "to allow") {
			t.Errorf("the client heard %q", message)
		}
	case <-time.After(20 * time.Second):
		t.Error("the client heard nothing while the person was asked")
	}
	say(digits + " a")
	say(p.lastDigits("echo first of all"))
	if a := get(run); a.failed || !strings.HasPrefix(a.text, "first of all\n") {
		t.Errorf("the command gave %+v", a)
	}
	write := start("write_file", map[string]any{"path": "notes.txt", "content": "x"})
	p.lastDigits("notes.txt")
	say("d")
	if a := get(write); !a.failed || !strings.Contains(a.text, "declined") || !strings.Contains(a.text, "Do not try") {
		t.Errorf("a declined write was told as %+v", a)
	}
	if folder := p.status().Sessions[0].Folder; folder != "" {
		if _, err := os.Stat(filepath.Join(folder, "notes.txt")); err == nil {
			t.Error("a declined file was written")
		}
	}

	// Allowed, it is written, read and listed.
	write = start("write_file", map[string]any{"path": "allowed.txt", "content": "line one\nline two\n"})
	say(p.lastDigits("allowed.txt"))
	if a := get(write); a.failed {
		t.Errorf("an allowed write was told as %+v", a)
	}
	read := start("read_file", map[string]any{"path": "allowed.txt"})
	say(p.lastDigits("wants to read allowed.txt"))
	if a := get(read); a.failed || !strings.Contains(a.text, "line one") || !strings.Contains(a.text, "line two") {
		t.Errorf("an allowed read gave %+v", a)
	}
	list := start("list_directory", map[string]any{"path": "."})
	say(p.lastDigits("wants to see what is in"))
	if a := get(list); a.failed || !strings.Contains(a.text, "allowed.txt") || strings.Contains(a.text, "notes.txt") {
		t.Errorf("an allowed list gave %+v", a)
	}
}
