package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/wire"
)

// kind is what a client may tell its person of a tool beforehand.
type kind int

const (
	looks    kind = iota // changes nothing
	adds                 // changes, but takes nothing away
	destroys             // may take away what is there
	anything             // may do whatever a command can
)

func (k kind) annotations(title string) *sdk.ToolAnnotations {
	destructive, open := k == destroys || k == anything, k == anything
	return &sdk.ToolAnnotations{Title: title, ReadOnlyHint: k == looks, DestructiveHint: &destructive, OpenWorldHint: &open}
}

// add registers a tool. Its input schema is that of In.
func add[In any](f *Face, scope string, k kind, name, title, description string, call func(context.Context, *sdk.CallToolRequest, Principal, In) *sdk.CallToolResult) {
	f.scope[name] = scope
	sdk.AddTool(f.server, &sdk.Tool{Name: name, Title: title, Description: description, Annotations: k.annotations(title)},
		func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
			who, ok := Principal{}, false
			if req.Extra != nil && req.Extra.TokenInfo != nil {
				who, ok = req.Extra.TokenInfo.Extra[principalKey].(Principal)
			}
			if !ok || !slices.Contains(who.Scopes, scope) {
				return refusal(wire.Errorf(wire.CodeDenied, "This program may not do that (%s).", scope)), nil, nil
			}
			return call(ctx, req, who, in), nil, nil
		})
}

func (f *Face) addTools() {
	add(f, ScopeRead, looks, "list_machines", "List computers",
		"Lists the computers that can be used, whether each is connected, and the folder of your session there if you have one.", f.listMachines)
	add(f, ScopeUse, anything, "run_command", "Run a command",
		"Runs a bash command line on the computer. Waits until it ends and gives its output and exit code; one that takes longer than the call can wait goes on, and you get a handle for read_output. "+
			"Use background for servers and other long work. Usually contained: it sees the session's folder, and no network until the person allows it.", f.runCommand)
	add(f, ScopeRead, looks, "read_output", "Read a command's output",
		"Reads what a command has printed since a place in its output, and whether it still runs.", f.readOutput)
	add(f, ScopeUse, anything, "send_input", "Send input to a command",
		"Writes to the standard input of a running command that was started with input.", f.sendInput)
	add(f, ScopeUse, destroys, "stop_command", "Stop a command",
		"Ends a running command and everything it started: first gently, after 5 seconds by force.", f.stopCommand)
	add(f, ScopeRead, looks, "list_commands", "List commands",
		"Lists your commands, those that run and those that ended in the last half hour, with their handles.", f.listCommands)
	add(f, ScopeRead, looks, "read_file", "Read a file",
		"Reads a text file, by default its first 2000 lines, or a picture (PNG, JPEG, GIF, WebP). Use offset and limit for other lines, and as=base64 for bytes.", f.readFile)
	add(f, ScopeUse, destroys, "write_file", "Write a file",
		"Writes a file whole, in place of one that is there. To change a part of a file use edit_file.", f.writeFile)
	add(f, ScopeUse, destroys, "edit_file", "Edit a file",
		"Replaces text in a file exactly. Encoding and line ends stay as they are. Fails when old_text is not there, or is there more than once and all is not set.", f.editFile)
	add(f, ScopeRead, looks, "list_directory", "List a folder",
		"Lists the files and folders in a folder, with sizes.", f.listDirectory)
	add(f, ScopeRead, looks, "search_files", "Search files",
		"Finds files by name (a glob), by text in them, or both, in a folder and all below it.", f.searchFiles)
	add(f, ScopeUse, adds, "make_directory", "Make a folder",
		"Makes a folder, and those above it. It is no error when it is there.", f.makeDirectory)
	add(f, ScopeUse, destroys, "move_file", "Move or rename",
		"Moves or renames a file or a folder.", f.moveFile)
	add(f, ScopeUse, destroys, "delete_file", "Delete",
		"Deletes a file, or a folder. The person may be asked first.", f.deleteFile)
	f.addScreenTools()
	f.addInputTools()
	f.addDesktopTools()
	add(f, ScopeRead, looks, "get_result", "Get the result of a pending call",
		"Gives what came of a call that answered with the status pending, waiting up to 45 seconds for it. Without an id it lists the calls of the last hour.", f.getResult)
}

type nothing struct{}

func (f *Face) listMachines(ctx context.Context, _ *sdk.CallToolRequest, who Principal, _ nothing) *sdk.CallToolResult {
	all, err := f.o.Store.Machines(ctx, who.User)
	if err != nil {
		return f.failed(ctx, err)
	}
	open, err := f.open(ctx, who)
	if err != nil {
		return f.failed(ctx, err)
	}
	var b strings.Builder
	rows := []map[string]any{}
	for _, m := range all {
		if !m.Paired {
			continue
		}
		row := map[string]any{"id": m.ID, "name": m.Name, "platform": m.Platform, "connected": m.Online}
		state := "not connected"
		if m.Online {
			state = "connected"
		} else if !m.LastSeen.IsZero() {
			row["last_seen"] = m.LastSeen.UTC().Format(time.RFC3339)
			state += ", last seen " + m.LastSeen.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "%s (%s, %s): %s", m.Name, m.ID, m.Platform, state)
		if s, ok := open[m.ID]; ok {
			row["folder"], row["session_ends"] = s.Folder, s.EndsAt.UTC().Format(time.RFC3339)
			fmt.Fprintf(&b, "; your session works in %s", s.Folder)
		}
		b.WriteString("\n")
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		b.WriteString("No computer is paired with this hub.")
	}
	return said(b.String(), map[string]any{"machines": rows})
}
