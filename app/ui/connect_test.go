package ui

import (
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/snapshot"
)

// programs pairs with a hub, and puts programs on this computer.
func (s *stage) programs(kind string) {
	s.t.Helper()
	s.pairedWith(snapshot.Hub{Kind: kind, Name: "Home", Address: "https://hub.example"})
	lines := func(name string) []string {
		return []string{"{", `  "mcpServers": {`, `    "localpc": {`, `      "command": "/usr/bin/localpc",`, `      "args": ["mcp", "--program", "` + name + `"]`, "    }", "  }", "}"}
	}
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Connect.Any = lines("My program")
		n.Connect.Clients = []snapshot.Client{
			{ID: "claude-code", Name: "Claude Code", Found: true, Connected: true, File: "/home/anna/.claude.json", Lines: lines("Claude Code"),
				Next: "Start Claude Code anew. Its command /mcp lists localpc.", Around: "Its own tools Bash, Edit and Write change this computer without asking here.",
				Off: "To switch them off, put this into ~/.claude/settings.json.", OffLines: []string{`{"permissions": {"deny": ["Bash", "Edit", "Write"]}}`}},
			{ID: "cursor", Name: "Cursor", Found: true, File: "/home/anna/.cursor/mcp.json", Lines: lines("Cursor"),
				Next: "Switch localpc on.", Around: "Its own terminal works on this computer without asking here."},
			{ID: "vscode", Name: "VS Code", Found: true, File: "/home/anna/.config/Code/User/mcp.json", Lines: lines("VS Code"),
				Problem: "The file is not whole JSON, so it is left as it is. Put the lines there by hand.", Around: "Its agent's own terminal never asks here."},
			{ID: "codex", Name: "Codex", Lines: lines("Codex")},
		}
	})
}

// By the keyboard alone: from the list to a program's page, connected, and back.
func TestAProgramIsConnectedByKeyboard(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowPair)
	s.programs("this")
	c := w.Canvas()
	press := func(name fyne.KeyName) { c.Focused().TypedKey(&fyne.KeyEvent{Name: name}) }
	for range 30 {
		if b, ok := c.Focused().(interface{ Text() string }); ok && b.Text() == "Connect…" {
			break
		}
		c.FocusNext()
	}
	press(fyne.KeySpace)
	if !has(w, "This is put into /home/anna/.cursor/mcp.json") {
		t.Fatalf("Space on Connect… leads to %q", texts(w))
	}
	press(fyne.KeySpace) // the first control there is Connect
	s.wantIntent(snapshot.Intent{Kind: snapshot.ConnectClient, Text: "cursor"})
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Clients[1].Connected = true })
	if !has(w, "Connected") || !has(w, "Switch localpc on.") {
		t.Errorf("then it says %q", texts(w))
	}
	press(fyne.KeySpace) // the first one is Back now: a second press must not disconnect
	if !has(w, "Another MCP client") {
		t.Errorf("after a second press it says %q", texts(w))
	}
}

func TestAProgramIsDisconnected(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowPair)
	s.programs("this")
	s.tap(w, "Disconnect…")
	s.tap(w, "Disconnect")
	s.wantIntent(snapshot.Intent{Kind: snapshot.DisconnectClient, Text: "claude-code"})
	s.tap(w, "Copy this")
	if got := s.u.o.App.Clipboard().Content(); !strings.Contains(got, `"deny"`) {
		t.Errorf("copied: %q", got)
	}
	s.tap(w, "Back")
	s.u.pair.showClient("claude-code")
	w.Canvas().Focused().TypedKey(&fyne.KeyEvent{Name: fyne.KeyEscape})
	if !s.u.open[w] || !has(w, "Another MCP client") {
		t.Error("Escape on a program's page does not lead back to the list")
	}
}

// A program that is not known here is called what its person calls it.
func TestAnotherProgramHasAName(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowPair)
	s.programs("this")
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Any = nil })
	s.tap(w, "Show the lines…")
	if has(w, "Copy the lines") || s.u.pair.called.Text != snapshot.AnyProgram {
		t.Errorf("before it has a name: %q, %q", s.u.pair.called.Text, texts(w))
	}
	s.tap(w, "Show its lines")
	s.wantIntent(snapshot.Intent{Kind: snapshot.MakeKey, Text: snapshot.AnyProgram, Way: "bridge"})
	s.u.pair.called.SetText(" Ann's helper ")
	s.tap(w, "Show its lines")
	s.wantIntent(snapshot.Intent{Kind: snapshot.MakeKey, Text: "Ann's helper", Way: "bridge"})
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Connect.AnyName, n.Connect.Any = "Ann's helper", []string{`"args": ["mcp", "--program", "Ann's helper"]`}
	})
	s.tap(w, "Copy the lines")
	if got := s.u.o.App.Clipboard().Content(); !strings.Contains(got, "Ann's helper") {
		t.Errorf("copied: %q", got)
	}
	// A hub of one's own asks who it is.
	s.programs("own")
	if has(w, "Show its lines") || !has(w, "Copy the lines") {
		t.Errorf("for a hub of one's own: %q", texts(w))
	}
}

// What is typed takes the place of the name that is offered, and goes on where it
// was when the page is drawn anew.
func TestAnotherProgramIsNamedByTyping(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowPair)
	s.programs("this")
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Any = nil })
	s.tap(w, "Show the lines…")
	again := func(name string) {
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Connect.Clients = append(n.Connect.Clients, snapshot.Client{ID: name, Name: name})
		})
	}
	again("One")
	test.Type(s.u.pair.called, "Night")
	again("Two")
	test.Type(s.u.pair.called, " shift")
	s.tap(w, "Show its lines")
	s.wantIntent(snapshot.Intent{Kind: snapshot.MakeKey, Text: "Night shift", Way: "bridge"})
	test.Type(s.u.pair.name, "Mi")
	again("Three")
	test.Type(s.u.pair.name, "ne")
	s.tap(w, "Make a key")
	s.wantIntent(snapshot.Intent{Kind: snapshot.MakeKey, Text: "Mine", Way: "mcp"})
}

// A key for a client that takes an address is asked for as such, and is not
// shown on another page.
func TestAKeyForAnAddress(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowPair)
	s.programs("this")
	s.tap(w, "Show the lines…")
	s.u.pair.name.SetText("Mine")
	s.tap(w, "Make a key")
	s.wantIntent(snapshot.Intent{Kind: snapshot.MakeKey, Text: "Mine", Way: "mcp"})
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Name, n.Connect.Lines = "Mine", []string{"{}"} })
	s.tap(w, "Back")
	s.wantIntent(snapshot.Intent{Kind: snapshot.ForgetKey})
}

// The tab of the window says what the ways to it say.
func TestTheTabIsCalledByWhatIsThere(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowPair)
	if got := s.u.pair.nav.word; got != "Pair" {
		t.Errorf("before pairing it is called %q", got)
	}
	s.programs("this")
	if got := s.u.pair.nav.word; got != "Connect a program" || !has(w, "Connect a program") {
		t.Errorf("after pairing it is called %q", got)
	}
}
