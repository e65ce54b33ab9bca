package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// desk is a home with programs in it.
func desk(t *testing.T, system string) Clients {
	t.Helper()
	home := t.TempDir()
	return Clients{Book: NewBook(t.TempDir()), Exe: "/opt/local pc/localpc", Home: home, System: system, Env: func(string) string { return "" }}
}

func (c Clients) one(t *testing.T, id string) Client { t.Helper(); return c.oneOf(t, id, "") }

func (c Clients) oneOf(t *testing.T, id, hub string) Client {
	t.Helper()
	k, err := named(id)
	if err != nil {
		t.Fatal(err)
	}
	return c.look(k, hub)
}

func lay(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const ourJSON = `"localpc": {
      "command": "/opt/local pc/localpc",
      "args": [
        "mcp",
        "--program",
        "Cursor"
      ]
    }`

// Each file keeps everything that is not ours, to the byte, with us and after.
func TestOursGoesInBesideTheOthers(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"empty object": {"{}", "{\n  \"mcpServers\": {\n    " + ourJSON + "\n  }\n}"},
		"others": {`{
  "mcpServers": {
    "b": {"command": "b", "unknown": 1.50},
    "a": {"command": "a"}
  },
  "z": [1,  2],
  "a": null
}
`, `{
  "mcpServers": {
    "b": {"command": "b", "unknown": 1.50},
    "a": {"command": "a"},
    ` + ourJSON + `
  },
  "z": [1,  2],
  "a": null
}
`},
		"no servers yet": {"{\n  \"theme\": \"dark\"\n}\n", "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    " + ourJSON + "\n  }\n}\n"},
		"comments": {`{
  // mine
  "mcpServers": {
    "a": {"command": "a"}, // the first
    /* off: "b" */
  },
}
`, `{
  // mine
  "mcpServers": {
    "a": {"command": "a"}, // the first
    /* off: "b" */
    ` + ourJSON + `,
  },
}
`},
		"a comment at the end": {`{
  "mcpServers": {
    "a": {"command": "a"} // the only one
  }
}
`, `{
  "mcpServers": {
    "a": {"command": "a"}, // the only one
    ` + ourJSON + `
  }
}
`},
		"one line": {`{"mcpServers":{"a":{"command":"a"}},"n":1}`, `{"mcpServers":{"a":{"command":"a"},"localpc":{"command":"/opt/local pc/localpc","args":["mcp","--program","Cursor"]}},"n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := desk(t, "linux")
			path := filepath.Join(d.Home, ".cursor", "mcp.json")
			lay(t, path, c.before)
			s, err := d.Connect("cursor", "")
			if err != nil || !s.Connected || !s.Found {
				t.Fatalf("connect: %v, %+v", err, s)
			}
			if got := text(t, path); got != c.after {
				t.Errorf("with us:\n%s\nwant:\n%s", got, c.after)
			}
			if fi, _ := os.Stat(path); fi.Mode().Perm() != 0o640 && runtime.GOOS != "windows" {
				t.Errorf("its permissions are %v now", fi.Mode().Perm())
			}
			before, _ := d.Book.List()
			if _, err := d.Connect("cursor", ""); err != nil || text(t, path) != c.after {
				t.Errorf("connected a second time: %v\n%s", err, text(t, path))
			}
			if after, _ := d.Book.List(); len(after) != 1 || after[0].Hash != before[0].Hash {
				t.Errorf("the book has %d entries", len(after))
			}
			if err := d.Disconnect("cursor"); err != nil || text(t, path) != c.before {
				t.Errorf("taken out: %v\n%s\nwant:\n%s", err, text(t, path), c.before)
			}
		})
	}
}

// A program rewrites its file all the time: what it wrote since stays.
func TestWhatTheProgramWroteSinceStays(t *testing.T) {
	d := desk(t, "linux")
	path := filepath.Join(d.Home, ".claude.json")
	lay(t, path, "{\n  \"numStartups\": 1\n}\n")
	if s, err := d.Connect("claude-code", ""); err != nil || !s.Connected {
		t.Fatal(err)
	}
	lay(t, path, strings.Replace(text(t, path), `"numStartups": 1`, `"numStartups": 2`, 1))
	d.Exe = "/elsewhere/localpc"
	if s, err := d.Connect("claude-code", ""); err != nil || !s.Connected || !strings.Contains(text(t, path), "/elsewhere/localpc") {
		t.Fatalf("connected again: %v\n%s", err, text(t, path))
	}
	if left, err := Undo(d.Book); err != nil || len(left) != 0 {
		t.Fatalf("undone: %v, left %v", err, left)
	}
	if got := text(t, path); !strings.Contains(got, `"numStartups": 2`) || strings.Contains(got, serverName) {
		t.Errorf("after removal:\n%s", got)
	}
	lay(t, path, "{\n  \"mcpServers\": {},\n  \"numStartups\": 3\n}\n")
	if _, err := d.Connect("claude-code", ""); err != nil {
		t.Fatal(err)
	}
	lay(t, path, strings.Replace(text(t, path), `"numStartups": 3`, `"numStartups": 4`, 1))
	if err := d.Disconnect("claude-code"); err != nil || !strings.Contains(text(t, path), `"numStartups": 4`) || strings.Contains(text(t, path), serverName) {
		t.Errorf("disconnected: %v\n%s", err, text(t, path))
	}
}

func TestAFileThatWasMadeGoesAgain(t *testing.T) {
	d := desk(t, "darwin")
	path := filepath.Join(d.Home, "Library", "Application Support", "Claude", "claude_desktop_config.json")
	s, err := d.Connect("claude-desktop", "")
	if err != nil || s.File != path || !s.Connected {
		t.Fatalf("%v, %+v", err, s)
	}
	var all struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(text(t, path)), &all); err != nil {
		t.Fatal(err)
	}
	if got := all.Servers[serverName]; got.Command != d.Exe || strings.Join(got.Args, "|") != "mcp|--program|Claude Desktop" {
		t.Errorf("it would start %q %q", got.Command, got.Args)
	}
	if fi, _ := os.Stat(path); fi.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("others can read it: %v", fi.Mode().Perm())
	}
	if left, err := Undo(d.Book); err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
	if _, err := os.Stat(filepath.Join(d.Home, "Library")); !os.IsNotExist(err) {
		t.Errorf("the folders stay: %v", err)
	}
}

// What can't be changed safely is left alone, with the lines to put there.
// Whatever else is in a file, and however it begins, it is the same afterwards.
func TestAnyWholeFileIsTaken(t *testing.T) {
	for name, before := range map[string]string{
		"a mark before it": "\ufeff{\r\n  \"mcpServers\": {\"x\": {\"command\": \"y\"}}\r\n}\r\n",
		"a mark alone":     "\ufeff",
		"8 MB of history":  `{"history": ["` + strings.Repeat("long ago ", 1<<20) + `"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := desk(t, "linux")
			path := filepath.Join(d.Home, ".claude.json")
			lay(t, path, before)
			s, err := d.Connect("claude-code", "")
			if err != nil || !s.Connected || !d.one(t, "claude-code").Connected {
				t.Fatalf("connected: %+v, %v", s.Connected, err)
			}
			if got := text(t, path); strings.HasPrefix(before, "\ufeff") != strings.HasPrefix(got, "\ufeff") || strings.Count(got, "\ufeff") > 1 || !strings.Contains(got, serverName) {
				t.Errorf("it begins with %.60q", got)
			}
			if err := d.Disconnect("claude-code"); err != nil || text(t, path) != before {
				t.Errorf("afterwards: %v, %.80q", err, text(t, path))
			}
		})
	}
}

func TestWhatIsNotSafeIsLeftAlone(t *testing.T) {
	for name, before := range map[string]string{
		"not JSON":         `{"mcpServers": {`,
		"another's entry":  `{"mcpServers": {"localpc": {"command": "theirs"}}}`,
		"a list":           `{"mcpServers": []}`,
		"a name twice":     `{"mcpServers": {}, "mcpServers": {"a": {}}}`,
		"nothing we write": `[1]`,
	} {
		t.Run(name, func(t *testing.T) {
			d := desk(t, "linux")
			path := filepath.Join(d.Home, ".cursor", "mcp.json")
			lay(t, path, before)
			s := d.one(t, "cursor")
			if s.Connected || s.Problem == "" || !strings.Contains(strings.Join(s.Lines, "\n"), `"--program"`) {
				t.Errorf("shown as %+v", s)
			}
			if _, err := d.Connect("cursor", ""); err == nil || !strings.HasSuffix(err.Error(), ".") {
				t.Errorf("connect says %v", err)
			}
			if text(t, path) != before {
				t.Errorf("it is now\n%s", text(t, path))
			}
			if err := d.Disconnect("cursor"); err != nil || text(t, path) != before {
				t.Errorf("disconnect: %v\n%s", err, text(t, path))
			}
		})
	}
}

func TestCodex(t *testing.T) {
	for name, before := range map[string]string{
		"none":   "",
		"others": "model = \"gpt-5.4\" # mine\n\n[mcp_servers.docs]\ncommand = \"docs\"\n[mcp_servers.docs.env]\nA = \"1\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			d := desk(t, "linux")
			d.Data = `/data "x"`
			path := filepath.Join(d.Home, ".codex", "config.toml")
			if before != "" {
				lay(t, path, before)
			}
			if s, err := d.Connect("codex", ""); err != nil || !s.Connected {
				t.Fatalf("%v %+v", err, s)
			}
			var all struct {
				Servers map[string]struct {
					Command string
					Args    []string
				} `toml:"mcp_servers"`
			}
			got := text(t, path)
			if err := toml.Unmarshal([]byte(got), &all); err != nil || !strings.HasPrefix(got, before) {
				t.Fatalf("%v\n%s", err, got)
			}
			if e := all.Servers[serverName]; strings.Join(e.Args, "|") != `mcp|--program|Codex|--data|/data "x"` || e.Command != d.Exe {
				t.Errorf("it would start %+v", e)
			}
			// Codex adds something behind ours, and ours changes.
			lay(t, path, got+"\n[projects.\"/home\"]\ntrust_level = \"trusted\"\n")
			d.Exe = "/new/localpc"
			if s, err := d.Connect("codex", ""); err != nil || !s.Connected || strings.Count(text(t, path), "[mcp_servers.localpc]") != 1 {
				t.Errorf("again: %v\n%s", err, text(t, path))
			}
			if err := d.Disconnect("codex"); err != nil || strings.Contains(text(t, path), serverName) || !strings.Contains(text(t, path), "trust_level") || !strings.Contains(text(t, path), strings.TrimSpace(before)) {
				t.Errorf("taken out: %v\n%s", err, text(t, path))
			}
		})
	}
	d := desk(t, "linux")
	path := filepath.Join(d.Home, ".codex", "config.toml")
	lay(t, path, "mcp_servers = {docs = {command = \"docs\"}}\n")
	if _, err := d.Connect("codex", ""); err == nil || strings.Contains(text(t, path), serverName) {
		t.Errorf("a table that can't be added to: %v\n%s", err, text(t, path))
	}
}

func TestWhereTheFilesAre(t *testing.T) {
	env := map[string]string{"APPDATA": `/appdata`, "CLAUDE_CONFIG_DIR": "/claude", "CODEX_HOME": "/codex", "XDG_CONFIG_HOME": "/xdg"}
	for system, want := range map[string]map[string]string{
		"linux":   {"claude-desktop": "/xdg/Claude/claude_desktop_config.json", "claude-code": "/claude/.claude.json", "vscode": "/xdg/Code/User/mcp.json", "codex": "/codex/config.toml"},
		"darwin":  {"claude-desktop": "/h/Library/Application Support/Claude/claude_desktop_config.json", "cursor": "/h/.cursor/mcp.json", "vscode": "/h/Library/Application Support/Code/User/mcp.json"},
		"windows": {"claude-desktop": "/appdata/Claude/claude_desktop_config.json", "gemini-cli": "/h/.gemini/settings.json", "vscode": "/appdata/Code/User/mcp.json"},
	} {
		c := Clients{Book: NewBook(t.TempDir()), Exe: "/localpc", Home: "/h", System: system, Env: func(name string) string { return env[name] }}
		for id, path := range want {
			if got := filepath.ToSlash(c.one(t, id).File); got != path {
				t.Errorf("%s on %s is in %s, want %s", id, system, got, path)
			}
		}
	}
}

// A hub of one's own is reached by its address, where a program takes one; no
// key is in any file.
func TestAHubOfOnesOwn(t *testing.T) {
	d := desk(t, "linux")
	for _, s := range d.List("https://hub.example") {
		lines := strings.Join(s.Lines, "\n")
		if !strings.Contains(lines, "https://hub.example/mcp") || strings.Contains(lines, "--program") || strings.Contains(lines, "e2b_") {
			t.Errorf("%s: %s", s.Name, lines)
		}
		if s.ID == "claude-desktop" {
			if _, err := d.Connect(s.ID, "https://hub.example"); s.Problem == "" || err == nil {
				t.Errorf("%s can't sign in at an address in its file", s.Name)
			}
			continue
		}
		// An entry that goes to another hub is no connection to this one; it is
		// taken the place of.
		for _, before := range []string{"", "https://old.example"} {
			if c, err := d.Connect(s.ID, before); err != nil || !c.Connected {
				t.Errorf("%s: %v", s.Name, err)
			}
			if c := d.oneOf(t, s.ID, "https://hub.example"); c.Connected {
				t.Errorf("%s is connected to a hub that its settings do not name", s.Name)
			}
		}
		if c, err := d.Connect(s.ID, "https://hub.example"); err != nil || !c.Connected {
			t.Errorf("%s: %v", s.Name, err)
		}
		if c := d.one(t, s.ID); c.Connected {
			t.Errorf("%s is connected to the hub inside, too", s.Name)
		}
	}
	if _, err := Undo(d.Book); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(d.Home); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestFoundByItsCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("commands have other names there")
	}
	d := desk(t, runtime.GOOS)
	bin := t.TempDir()
	d.Env = func(name string) string { return map[string]string{"PATH": bin}[name] }
	if d.one(t, "gemini-cli").Found {
		t.Fatal("found though it is not there")
	}
	name := "gemini"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if !d.one(t, "gemini-cli").Found {
		t.Error("not found by its command")
	}
	// Where a person's own programs lie it is found without PATH.
	own := filepath.Join(d.Home, ".local", "bin")
	d.Env = func(string) string { return "" }
	if d.one(t, "gemini-cli").Found {
		t.Fatal("found though nothing leads to it")
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(bin, name), filepath.Join(own, name)); err != nil {
		t.Fatal(err)
	}
	if !d.one(t, "gemini-cli").Found {
		t.Error("not found in ~/.local/bin")
	}
}
