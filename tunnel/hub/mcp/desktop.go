package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

func (f *Face) addDesktopTools() {
	add(f, ScopeInput, looks, "local_pc_list_windows", "List windows",
		"Lists the windows on the screen, the topmost first, with ids for local_pc_focus_window and local_pc_screenshot. An id is good until the next list.", f.listWindows)
	add(f, ScopeInput, anything, "local_pc_focus_window", "Go to a window",
		"Gives a window the keyboard, and brings it to the front.", f.focusWindow)
	add(f, ScopeInput, looks, "local_pc_list_apps", "List programs that run",
		"Lists the programs that run on the computer and have a window.", f.listApps)
	add(f, ScopeInput, anything, "local_pc_launch_app", "Start a program",
		"Starts a program with a window, by the name or path of its file (bundle_id on macOS), never through a shell.", f.launchApp)
	add(f, ScopeInput, looks, "local_pc_clipboard_read", "Read the clipboard",
		"Reads the text that is on the clipboard: what you put there yourself a moment ago. What the person has copied can be read only where they let you ask for it, each time.", f.clipboardRead)
	add(f, ScopeInput, destroys, "local_pc_clipboard_write", "Write to the clipboard",
		"Puts text on the clipboard, in place of what is there.", f.clipboardWrite)
	add(f, ScopeInput, looks, "local_pc_permissions_check", "Check permissions",
		"Tells whether the computer's system lets pictures be taken, and mouse and keyboard be used. Nobody is asked.", f.permissionsCheck)
}

// shownWindow is a window, and where the last picture shows it.
type shownWindow struct {
	wire.Window
	InPicture *wire.Rect `json:"in_picture,omitempty"`
}

// rect is what the picture shows of r, from its first pixel to its last; nil is
// nothing.
func (p Picture) rect(r wire.Rect) *wire.Rect {
	from, ok := p.In(max(r[0], p.Shows[0]), max(r[1], p.Shows[1]))
	to, also := p.In(min(r[2], p.Shows[2])-1, min(r[3], p.Shows[3])-1)
	if !ok || !also {
		return nil
	}
	return &wire.Rect{from[0], from[1], to[0], to[1]}
}

type listWindows struct {
	where
	Minimized bool   `json:"include_minimized,omitempty" jsonschema:"those too that are minimised"`
	Offscreen bool   `json:"include_offscreen,omitempty" jsonschema:"those too that no screen shows"`
	App       string `json:"app_bundle_id,omitempty" jsonschema:"only those of this program (macOS)"`
}

func (f *Face) listWindows(ctx context.Context, req *sdk.CallToolRequest, who Principal, in listWindows) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in.where, "list the windows", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		got, err := unaryAs[*wire.WindowsResponse](ctx, f, b, wire.TypeWindows, &wire.Windows{SessionID: b.ID, AppBundleID: in.App, IncludeMinimized: in.Minimized, IncludeOffscreen: in.Offscreen, WaitMS: f.patience()})
		if err != nil {
			return nil, err
		}
		p, _ := f.lastLook(lookBy(who, req, b), b)
		var s strings.Builder
		rows := []shownWindow{}
		for _, w := range got.Windows {
			if s.Len() > maxList {
				got.Truncated = true
				break
			}
			row := shownWindow{Window: w, InPicture: p.rect(w.Bounds)}
			rows = append(rows, row)
			fmt.Fprintf(&s, "%s  %s: %q", w.WindowID, w.AppName, w.Title)
			if in := row.InPicture; in != nil {
				fmt.Fprintf(&s, ", (%d, %d) to (%d, %d) in the last picture", in[0], in[1], in[2], in[3])
			}
			for _, state := range []struct {
				is  bool
				say string
			}{{w.IsFocused, "has the keyboard"}, {w.IsMinimized, "minimised"}, {w.IsFullscreen, "full screen"}} {
				if state.is {
					s.WriteString(", " + state.say)
				}
			}
			s.WriteString("\n")
		}
		if len(rows) == 0 {
			s.WriteString("There are no windows.")
		}
		if got.Truncated {
			s.WriteString("[there are more]")
		}
		return said(s.String(), map[string]any{"windows": rows, "truncated": got.Truncated}), nil
	})
}

type focusWindow struct {
	where
	WindowID string `json:"window_id" jsonschema:"from local_pc_list_windows"`
	Behind   bool   `json:"keep_behind,omitempty" jsonschema:"leave it where it is, behind others"`
}

func (f *Face) focusWindow(ctx context.Context, req *sdk.CallToolRequest, who Principal, in focusWindow) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in.where, "go to a window", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		if _, err := f.unary(ctx, b, wire.TypeWindowFocus, &wire.WindowFocus{SessionID: b.ID, WindowID: in.WindowID, Raise: !in.Behind, WaitMS: f.patience()}); err != nil {
			return nil, err
		}
		return completed("The window has the keyboard. Take a new picture before you click."), nil
	})
}

type listApps struct {
	where
	Background bool `json:"include_background,omitempty" jsonschema:"those too that have no window"`
}

func (f *Face) listApps(ctx context.Context, req *sdk.CallToolRequest, who Principal, in listApps) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in.where, "list the programs that run", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		got, err := unaryAs[*wire.AppsResponse](ctx, f, b, wire.TypeApps, &wire.Apps{SessionID: b.ID, IncludeBackground: in.Background, WaitMS: f.patience()})
		if err != nil {
			return nil, err
		}
		var s strings.Builder
		rows := []wire.App{}
		for _, a := range got.Apps {
			if s.Len() > maxList {
				s.WriteString("[there are more]")
				break
			}
			rows = append(rows, a)
			fmt.Fprintf(&s, "%s (process %d, %d windows)", a.Name, a.PID, a.WindowCount)
			if a.IsFrontmost {
				s.WriteString(", in front")
			}
			s.WriteString("\n")
		}
		if len(rows) == 0 {
			s.WriteString("No program with a window runs.")
		}
		return said(s.String(), map[string]any{"apps": rows}), nil
	})
}

type launchApp struct {
	where
	Path     string   `json:"executable_path,omitempty" jsonschema:"name or path of the program's file"`
	BundleID string   `json:"bundle_id,omitempty" jsonschema:"of the program, on macOS"`
	Args     []string `json:"args,omitempty" jsonschema:"its arguments"`
}

func (f *Face) launchApp(ctx context.Context, req *sdk.CallToolRequest, who Principal, in launchApp) *sdk.CallToolResult {
	what := short(in.Path + in.BundleID)
	return f.onScreen(ctx, req, who, in.where, "start "+what, func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		got, err := unaryAs[*wire.AppLaunched](ctx, f, b, wire.TypeAppLaunch, &wire.AppLaunch{SessionID: b.ID, BundleID: in.BundleID, ExecutablePath: in.Path, Args: in.Args, Activate: true, WaitMS: f.patience()})
		if err != nil {
			return nil, err
		}
		which := fmt.Sprintf("%s (process %d)", what, got.PID)
		if got.PID == 0 { // not every computer's program tells
			which = what
		}
		return completed(fmt.Sprintf("Started %s. Its window may take a moment; take a picture.", which)), nil
	})
}

func (f *Face) clipboardRead(ctx context.Context, req *sdk.CallToolRequest, who Principal, in where) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in, "read the clipboard", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		got, err := unaryAs[*wire.ClipReadResponse](ctx, f, b, wire.TypeClipRead, &wire.ClipRead{SessionID: b.ID, Format: "text", WaitMS: f.patience()})
		if err != nil {
			return nil, err
		}
		s, cut := middle(toText(got.Content), maxText)
		content := []sdk.Content{text(s)}
		switch {
		case got.Content == "":
			content = []sdk.Content{text("[the clipboard has no text]")}
		case cut > 0:
			content = append(content, text(fmt.Sprintf("[the clipboard has %s; its middle is left out]", inBytes(int64(len(got.Content))))))
		}
		return &sdk.CallToolResult{Content: content}, nil
	})
}

type clipboardWrite struct {
	where
	Text string `json:"text" jsonschema:"what the clipboard has afterwards"`
}

func (f *Face) clipboardWrite(ctx context.Context, req *sdk.CallToolRequest, who Principal, in clipboardWrite) *sdk.CallToolResult {
	return f.onScreen(ctx, req, who, in.where, "write to the clipboard", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		if _, err := f.unary(ctx, b, wire.TypeClipWrite, &wire.ClipWrite{SessionID: b.ID, Format: "text", Content: in.Text, WaitMS: f.patience()}); err != nil {
			return nil, err
		}
		return completed(fmt.Sprintf("The clipboard has these %s now.", inBytes(int64(len(in.Text))))), nil
	})
}

type permissionsCheck struct {
	where
	Permissions []string `json:"permissions,omitempty" jsonschema:"screen_recording, accessibility, input_monitoring (default: all three)"`
}

func (f *Face) permissionsCheck(ctx context.Context, req *sdk.CallToolRequest, who Principal, in permissionsCheck) *sdk.CallToolResult {
	if len(in.Permissions) == 0 {
		in.Permissions = []string{"screen_recording", "accessibility", "input_monitoring"}
	}
	return f.onScreen(ctx, req, who, in.where, "check permissions", func(ctx context.Context, b store.Sandbox) (*sdk.CallToolResult, error) {
		got, err := unaryAs[*wire.PermissionsResponse](ctx, f, b, wire.TypePermissions, &wire.Permissions{SessionID: b.ID, Permissions: in.Permissions, WaitMS: f.patience()})
		if err != nil {
			return nil, err
		}
		var lines []string
		for name, is := range got.Permissions {
			lines = append(lines, name+": "+strings.ReplaceAll(is, "_", " "))
		}
		slices.Sort(lines)
		return said(strings.Join(lines, "\n"), map[string]any{"permissions": got.Permissions}), nil
	})
}
