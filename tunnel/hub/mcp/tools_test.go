//go:build unix

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

type args = map[string]any

func TestToolsSayWhatTheyDo(t *testing.T) {
	r := newRig(t, nil)
	s := r.client(t, r.Key, "")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Title == "" || len(tool.Description) < 30 || tool.InputSchema == nil || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil || tool.Annotations.OpenWorldHint == nil {
			t.Errorf("%s says too little of itself: %+v", tool.Name, tool)
		}
		a := tool.Annotations
		if looks := slices.Contains([]string{"list_machines", "read_output", "list_commands", "read_file", "list_directory", "search_files", "get_result",
			"local_pc_screenshot", "local_pc_zoom", "local_pc_cursor_position", "local_pc_displays", "local_pc_list_windows", "local_pc_list_apps", "local_pc_clipboard_read", "local_pc_permissions_check"}, tool.Name); a.ReadOnlyHint != looks || looks && *a.DestructiveHint {
			t.Errorf("%s: read only %v, destructive %v", tool.Name, a.ReadOnlyHint, *a.DestructiveHint)
		}
		if *a.OpenWorldHint != slices.Contains([]string{"run_command", "send_input", "local_pc_click", "local_pc_mouse_move", "local_pc_mouse_down", "local_pc_mouse_up", "local_pc_drag",
			"local_pc_scroll", "local_pc_type", "local_pc_key", "local_pc_hold_key", "local_pc_focus_window", "local_pc_launch_app"}, tool.Name) {
			t.Errorf("%s: open world %v", tool.Name, *a.OpenWorldHint)
		}
	}
	slices.Sort(names)
	want := []string{"delete_file", "edit_file", "get_result", "list_commands", "list_directory", "list_machines",
		"local_pc_click", "local_pc_clipboard_read", "local_pc_clipboard_write", "local_pc_cursor_position", "local_pc_displays", "local_pc_drag", "local_pc_focus_window", "local_pc_hold_key",
		"local_pc_key", "local_pc_launch_app", "local_pc_list_apps", "local_pc_list_windows", "local_pc_mouse_down", "local_pc_mouse_move", "local_pc_mouse_up", "local_pc_permissions_check",
		"local_pc_screenshot", "local_pc_scroll", "local_pc_type", "local_pc_wait", "local_pc_zoom", "make_directory", "move_file",
		"read_file", "read_output", "run_command", "search_files", "send_input", "stop_command", "write_file"}
	if !slices.Equal(names, want) {
		t.Errorf("the tools are %v", names)
	}
	if s.InitializeResult().Instructions == "" {
		t.Error("there are no instructions")
	}
}

// A client of each protocol version does ordinary work.
func TestWork(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25", "2025-03-26"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			s := r.client(t, r.Key, protocol)
			call(t, s, "list_machines", nil).ok("Mac-1", "machine-1", "connected")
			call(t, s, "write_file", args{"path": "notes/plan.md", "content": "one\ntwo\nthree\n"}).ok("14 bytes", "notes/plan.md")
			call(t, s, "read_file", args{"path": "notes/plan.md"}).ok("one\ntwo\nthree\n")
			got := call(t, s, "read_file", args{"path": "notes/plan.md", "offset": 2, "limit": 1})
			if got.ok("offset=3"); len(got.content) != 2 || got.content[0].(*sdk.TextContent).Text != "two\n" {
				t.Errorf("a part of a file: %q", got.text)
			}
			call(t, s, "edit_file", args{"path": "notes/plan.md", "old_text": "two", "new_text": "2"}).ok("line 2")
			if b, _ := os.ReadFile(filepath.Join(r.Dir, "notes/plan.md")); string(b) != "one\n2\nthree\n" {
				t.Errorf("edited to %q", b)
			}
			call(t, s, "edit_file", args{"path": "notes/plan.md", "old_text": "no such", "new_text": "x"}).fails("was not changed", "does not occur")
			run := call(t, s, "run_command", args{"command": "cat notes/plan.md; echo err >&2; exit 3", "env": args{"A": "b"}}).ok("one\n2\nthree\n", "err\n", "[exit code 3]")
			if run.num("exit_code") != 3 || run.str("status") != "exited" {
				t.Errorf("a command: %v", run.all)
			}
			call(t, s, "run_command", args{"command": "echo $A; pwd", "cwd": "notes", "env": args{"A": "b c"}}).ok("b c\n", "/notes\n")
			call(t, s, "make_directory", args{"path": "sub/deep"}).ok("sub/deep")
			call(t, s, "move_file", args{"from": "notes/plan.md", "to": "sub/plan.md"}).ok("sub/plan.md")
			call(t, s, "list_directory", args{"depth": 2}).ok("notes/\n", "sub/deep/\n", "sub/plan.md  (12 bytes)")
			call(t, s, "delete_file", args{"path": "sub", "recursive": true}).ok("Deleted sub.")
			call(t, s, "read_file", args{"path": "sub/plan.md"}).fails("nothing at sub/plan.md")
			call(t, s, "list_machines", nil).ok("your session works in " + r.Dir)
			if n := len(r.Sessions()); n != 1 {
				t.Errorf("%d sessions were opened for one program", n)
			}
		})
	}
}

func TestReadingFiles(t *testing.T) {
	r := newRig(t, nil)
	s := r.client(t, r.Key, "")
	put := func(name, data string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 100)
	put("a.png", png)
	got := call(t, s, "read_file", args{"path": "a.png"}).ok()
	if img, ok := got.content[0].(*sdk.ImageContent); !ok || img.MIMEType != "image/png" || string(img.Data) != png {
		t.Errorf("a picture came as %+v", got.content[0])
	}
	put("raw", "\x00\x01\x02\x03")
	call(t, s, "read_file", args{"path": "raw"}).fails("not text", "base64")
	if got := call(t, s, "read_file", args{"path": "raw", "as": "base64", "offset": 1, "limit": 2}).ok("AQI=", "offset=3"); got.str("base64") != "AQI=" {
		t.Errorf("bytes came as %v", got.all)
	}
	put("utf16", "\xff\xfeh\x00i\x00\n\x00")
	call(t, s, "read_file", args{"path": "utf16"}).ok("hi\n")
	put("latin1", "caf\xe9\n")
	call(t, s, "read_file", args{"path": "latin1"}).ok("caf\uFFFD\n", "not UTF-8")
	put("empty", "")
	call(t, s, "read_file", args{"path": "empty"}).ok("empty")
	put("long", strings.Repeat("line of text\n", 50_000))
	long := call(t, s, "read_file", args{"path": "long"}).ok("lines 1 to 2000", "offset=2001")
	if n := len(long.content[0].(*sdk.TextContent).Text); n != 2000*13 {
		t.Errorf("%d bytes of a long file came", n)
	}
	call(t, s, "read_file", args{"path": "long", "offset": 49_999}).ok("line of text\nline of text\n")
	call(t, s, "read_file", args{"path": "long", "offset": 60_000}).ok("fewer than 60000 lines")
	put("wide", strings.Repeat("é", 100_000)+"\nnext\n")
	wide := call(t, s, "read_file", args{"path": "wide"}).ok("…\nnext\n", "are cut")
	if len(wide.text) > 10_000 || strings.Contains(wide.text, "\uFFFD") {
		t.Errorf("a wide line came as %d bytes", len(wide.text))
	}
	call(t, s, "write_file", args{"path": "b64", "content": "AAH/", "encoding": "base64"}).ok("3 bytes")
	if b, _ := os.ReadFile(filepath.Join(r.Dir, "b64")); string(b) != "\x00\x01\xff" {
		t.Errorf("base64 was written as %q", b)
	}
	call(t, s, "write_file", args{"path": "b64", "content": "!", "encoding": "base64"}).fails("not valid base64")
	call(t, s, "write_file", args{"path": "none", "content": ""}).ok("0 bytes")
	big := strings.Repeat("0123456789abcdef", 1<<16)
	call(t, s, "write_file", args{"path": "big", "content": big}).ok("1.0 MB")
	if b, _ := os.ReadFile(filepath.Join(r.Dir, "big")); string(b) != big {
		t.Errorf("a file of %d bytes was written as %d", len(big), len(b))
	}
}

func TestCommands(t *testing.T) {
	r := newRig(t, nil)
	s := r.client(t, r.Key, "")
	// One that prints much is cut in the middle; the rest can be had.
	much := call(t, s, "run_command", args{"command": "seq 1 60000"}).ok("1\n2\n3\n", "59999\n60000\n", "left out", "read_output")
	if len(much.text) > 60_000 {
		t.Errorf("%d bytes of output came at once", len(much.text))
	}
	rest := call(t, s, "read_output", args{"handle": much.str("handle"), "since": 1000}).ok("there is more")
	if !strings.HasPrefix(strings.TrimLeft(rest.text, "0123456789"), "\n") || !strings.Contains(rest.text, "5000\n") {
		t.Errorf("the rest of the output: %.60q", rest.text)
	}

	bg := call(t, s, "run_command", args{"command": "echo first; sleep 300", "background": true}).ok("read_output")
	h := bg.str("handle")
	first := call(t, s, "read_output", args{"handle": h, "since": 0, "wait_s": 20}).ok("first\n", "still running")
	if first.str("status") != "running" || first.num("next") != 6 {
		t.Errorf("the first output: %v", first.all)
	}
	if got := call(t, s, "read_output", args{"handle": h, "since": 6}).ok(); got.str("output") != "" {
		t.Errorf("output came twice: %v", got.all)
	}
	call(t, s, "list_commands", nil).ok(h, "still running", "echo first; sleep 300", much.str("handle"))
	call(t, s, "stop_command", args{"handle": h}).ok("signal")
	call(t, s, "list_commands", nil).ok(h + "  ended by a signal")

	other, err := r.Hub.MakeKey(t.Context(), "Another program")
	if err != nil {
		t.Fatal(err)
	}
	o := r.client(t, other, "")
	call(t, o, "read_output", args{"handle": h}).fails("no command with the handle")
	call(t, o, "list_commands", nil).ok("No commands.")

	call(t, s, "run_command", args{"command": "sleep 60", "timeout_s": 1}).ok("time limit")
	call(t, s, "run_command", args{"command": " "}).fails("empty")
	call(t, s, "send_input", args{"handle": h, "text": "x"}).fails("without input")
	// Unknown arguments are told, not dropped.
	call(t, s, "run_command", args{"command": "true", "sudo": true}).fails("sudo")
}

// A foreground command that takes longer than a call can goes on.
func TestLongCommandGoesOn(t *testing.T) {
	r := newRig(t, nil, hold(3*time.Second))
	s := r.client(t, r.Key, "")
	call(t, s, "list_directory", nil).ok()
	long := call(t, s, "run_command", args{"command": "echo begun; sleep 6; echo over; exit 4"}).ok("begun\n", "Still running")
	got, all := long, ""
	for range 20 {
		got = call(t, s, "read_output", args{"handle": long.str("handle"), "since": got.num("next"), "wait_s": 3}).ok()
		if all += got.str("output"); got.str("status") == "exited" {
			break
		}
	}
	got.has("exit code 4")
	if all != "over\n" {
		t.Errorf("the rest of the output is %q", all)
	}
}

func TestCharactersAreWhole(t *testing.T) {
	r := newRig(t, nil)
	s := r.client(t, r.Key, "")
	run := call(t, s, "run_command", args{"command": `printf 'a\xe2'; sleep 1; printf '\x82\xacb'; sleep 300`, "background": true}).ok()
	h := run.str("handle")
	var all string
	var since int64
	for range 50 {
		got := call(t, s, "read_output", args{"handle": h, "since": since, "wait_s": 1}).ok()
		all, since = all+got.str("output"), got.num("next")
		if strings.HasSuffix(all, "b") {
			break
		}
	}
	if all != "a€b" {
		t.Errorf("the output is %q", all)
	}
	call(t, s, "stop_command", args{"handle": h}).ok()
}

func TestRefusalsAreSaid(t *testing.T) {
	r := newRig(t, func(_ context.Context, m wire.Message) error {
		switch p := m.Payload.(type) {
		case *wire.ProcessStart:
			switch p.Args[2] {
			case "denied":
				return wire.Errorf(wire.CodeDenied, "The person at this computer declined this.")
			case "expired":
				return wire.Errorf(wire.CodeExpired, "Nobody answered in time.")
			case "paused":
				return wire.Errorf(wire.CodePaused, "The person at this computer paused it.")
			}
		}
		return nil
	})
	s := r.client(t, r.Key, "")
	for command, want := range map[string][]string{
		"denied": {"declined this.", "Do not try", "DENIED"}, "expired": {"Nobody answered", "EXPIRED"}, "paused": {"paused it.", "PAUSED"}} {
		got := call(t, s, "run_command", args{"command": command}).fails(want[:len(want)-1]...)
		if got.str("code") != want[len(want)-1] || got.str("status") != "failed" {
			t.Errorf("%s: %v", command, got.all)
		}
	}
	call(t, s, "list_directory", args{"machine": "Mac-2"}).fails(`no computer "Mac-2"`)
	call(t, s, "list_directory", args{"machine": "mac-1"}).ok()
	call(t, s, "list_directory", args{"machine": "machine-1"}).ok()
}

// A program that follows its command keeps its session, with which the command
// would end.
func TestFollowingACommandKeepsItsSession(t *testing.T) {
	r := newRig(t, nil)
	s := r.client(t, r.Key, "")
	handle := call(t, s, "run_command", args{"command": "cat", "background": true, "input": true}).ok("Started").str("handle")
	ends := func() time.Duration {
		t.Helper()
		list, _ := call(t, s, "list_machines", nil).ok().all["machines"].([]any)
		at, _ := list[0].(map[string]any)["session_ends"].(string)
		end, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatalf("the session ends at %q: %v", at, err)
		}
		return time.Until(end)
	}
	for tool, with := range map[string]args{"read_output": {"handle": handle}, "send_input": {"handle": handle, "text": "x\n"}} {
		b := store.Sandbox{ID: r.Sessions()[0], User: store.OwnerID, Machine: r.MachineID}
		if err := r.Hub.SetTTL(t.Context(), b, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		if left := ends(); left > 11*time.Minute {
			t.Fatalf("the session has %s left", left)
		}
		if call(t, s, tool, with).ok(); ends() < 50*time.Minute {
			t.Errorf("after %s the session has %s left", tool, ends())
		}
	}
	call(t, s, "stop_command", args{"handle": handle}).ok()
}
