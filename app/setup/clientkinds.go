package setup

import "path/filepath"

// kind is one program that is known here.
type kind struct {
	id, name string
	// command is its program's name in PATH; "" for none. signs are files or
	// folders that say that it is here.
	command string
	signs   func(c Clients) []string
	file    func(c Clients) string
	format  format
	// entry is what is put into its file; nil when it can't reach that hub by a
	// file, and noHub says how then.
	entry func(c Clients, hub string) entry
	noHub string

	next, nextOfHub string
	around, off     string
	offLines        []string
}

// config is where programs of that system keep their settings.
func (c Clients) config(name string) string {
	switch c.System {
	case "windows":
		if dir := c.Env("APPDATA"); dir != "" {
			return filepath.Join(dir, name)
		}
		return filepath.Join(c.Home, "AppData", "Roaming", name)
	case "darwin":
		return filepath.Join(c.Home, "Library", "Application Support", name)
	}
	if dir := c.Env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, name)
	}
	return filepath.Join(c.Home, ".config", name)
}

// or is a folder that an environment variable names, or one in the home.
func (c Clients) or(variable, usual string) string {
	if dir := c.Env(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(c.Home, usual)
}

func in(dir func(c Clients) string) func(c Clients) []string {
	return func(c Clients) []string { return []string{dir(c)} }
}

// reach is an entry that starts the bridge, or for a hub of one's own names its
// address.
func reach(name, typeField, stdio, address, http string) func(c Clients, hub string) entry {
	return func(c Clients, hub string) entry {
		var e entry
		kind := stdio
		if hub != "" {
			kind = http
		}
		if typeField != "" {
			e = append(e, field{typeField, kind})
		}
		if hub != "" {
			return append(e, field{address, hub + "/mcp"})
		}
		cmd, args := c.command(name)
		return append(e, field{"command", cmd}, field{"args", args})
	}
}

func claudeDir(c Clients) string { return c.config("Claude") }
func cursorDir(c Clients) string { return filepath.Join(c.Home, ".cursor") }
func codeDir(c Clients) string   { return c.config("Code") }
func codexDir(c Clients) string  { return c.or("CODEX_HOME", ".codex") }
func geminiDir(c Clients) string { return filepath.Join(c.Home, ".gemini") }

// known are the programs, in the order of the list that people see. What is
// said of a program's own tools is its maker's documentation.
var known = []kind{
	{id: "claude-desktop", name: "Claude Desktop",
		signs:  in(claudeDir),
		file:   func(c Clients) string { return filepath.Join(claudeDir(c), "claude_desktop_config.json") },
		format: jsonFormat{"mcpServers"},
		entry: func(c Clients, hub string) entry {
			if hub != "" {
				return nil
			}
			return reach("Claude Desktop", "", "", "", "")(c, "")
		},
		noHub:  "Claude Desktop reaches a hub by its own settings: add this address under Settings, Connectors, Add custom connector.",
		next:   "Quit Claude Desktop and open it again. Closing its window is not enough.",
		around: "Claude Desktop has no tools of its own that work on this computer. Extensions that you add to it may."},
	{id: "claude-code", name: "Claude Code", command: "claude",
		signs: func(c Clients) []string {
			return []string{filepath.Join(c.or("CLAUDE_CONFIG_DIR", ""), ".claude.json"), c.or("CLAUDE_CONFIG_DIR", ".claude")}
		},
		file:   func(c Clients) string { return filepath.Join(c.or("CLAUDE_CONFIG_DIR", ""), ".claude.json") },
		format: jsonFormat{"mcpServers"},
		entry:  reach("Claude Code", "type", "stdio", "url", "http"),
		next:   "Start Claude Code anew. Its command /mcp lists localpc.", nextOfHub: "Start Claude Code anew, type /mcp, choose localpc and sign in at the hub.",
		around:   "Its own tools Bash, Edit, Write and NotebookEdit change this computer without asking here, and Read, Glob and Grep read it.",
		off:      "To switch them off, put this into ~/.claude/settings.json, or start it with --disallowedTools and these names.",
		offLines: []string{`{"permissions": {"deny": ["Bash", "Edit", "Write", "NotebookEdit", "Read", "Glob", "Grep"]}}`}},
	{id: "cursor", name: "Cursor", command: "cursor",
		signs:  in(cursorDir),
		file:   func(c Clients) string { return filepath.Join(cursorDir(c), "mcp.json") },
		format: jsonFormat{"mcpServers"},
		entry:  reach("Cursor", "", "", "url", ""),
		next:   "In Cursor, open Cursor Settings, Tools & MCP, and switch localpc on.", nextOfHub: "In Cursor, open Cursor Settings, Tools & MCP, switch localpc on, press Connect beside it and sign in at the hub.",
		around: "Its own terminal and its edits work on this computer without asking here. Cursor can't switch them off altogether.",
		off:    "To have its terminal ask, choose Allowlist under Cursor Settings, Agents, Approvals & Execution, with an empty list and without the sandbox. Its Ask mode changes nothing."},
	{id: "vscode", name: "VS Code", command: "code",
		signs:  in(codeDir),
		file:   func(c Clients) string { return filepath.Join(codeDir(c), "User", "mcp.json") },
		format: jsonFormat{"servers"},
		entry:  reach("VS Code", "type", "stdio", "url", "http"),
		next:   "In VS Code, run the command MCP: List Servers, choose localpc, and start it.", nextOfHub: "In VS Code, run the command MCP: List Servers, choose localpc, start it and sign in at the hub.",
		around: "Its agent's own terminal and edits work on this computer without asking here.",
		off:    "To switch them off, open Configure Tools at the chat's input, and untick execute and edit."},
	{id: "codex", name: "Codex", command: "codex",
		signs:  in(codexDir),
		file:   func(c Clients) string { return filepath.Join(codexDir(c), "config.toml") },
		format: tomlFormat{},
		entry:  reach("Codex", "", "", "url", ""),
		next:   "Start Codex anew. Its command /mcp lists localpc.", nextOfHub: "Sign in at the hub with: codex mcp login localpc. Then start Codex anew.",
		around:   "Its own shell and patches work on this computer without asking here.",
		off:      "To switch its shell off and let it change nothing, put this into ~/.codex/config.toml.",
		offLines: []string{`sandbox_mode = "read-only"`, `[features]`, `shell_tool = false`}},
	{id: "gemini-cli", name: "Gemini CLI", command: "gemini",
		signs:  in(geminiDir),
		file:   func(c Clients) string { return filepath.Join(geminiDir(c), "settings.json") },
		format: jsonFormat{"mcpServers"},
		entry:  reach("Gemini CLI", "", "", "httpUrl", ""),
		next:   "Start Gemini CLI anew. Its command /mcp lists localpc.", nextOfHub: "Start Gemini CLI anew, and sign in at the hub with: /mcp auth localpc.",
		around:   "Its own tools run commands and write files on this computer without asking here.",
		off:      "To switch them off, put this into ~/.gemini/settings.json.",
		offLines: []string{`{"tools": {"exclude": ["run_shell_command", "write_file", "replace"]}}`}},
}
