package machine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localpc/app/settings"
	"localpc/app/setup"
	"localpc/app/snapshot"
)

// mintHub makes keys that it lists, and takes them away.
type mintHub struct {
	keyHub
	made int
}

func (h *mintHub) Start(context.Context) (string, error) { return "http://127.0.0.1:4417", nil }

func (h *mintHub) MakeKey(_ context.Context, name string) (string, error) {
	h.made++
	id := string(rune('a' + h.made))
	h.keys = append(h.keys, Key{ID: id, Name: name})
	return "e2b_" + id, nil
}

// connecting is a machine in a home of its own, paired with itself.
func connecting(t *testing.T) (*Machine, *mintHub, string) {
	t.Helper()
	m, hub, home := newMachine(t), &mintHub{}, t.TempDir()
	m.o.Hub, m.o.Keychain = hub, &oneItemKeychain{Keychain: m.o.Keychain, items: map[string]string{}}
	m.o.Clients = &setup.Clients{Book: setup.NewBook(t.TempDir()), Exe: "/opt/localpc", Home: home, System: "linux", Env: func(string) string { return "" }}
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Hub = settings.HubThis }))
	m.link.set(func(v *linkState) { v.id, v.hub = settings.HubThis, snapshot.Hub{Paired: true, Kind: settings.HubThis} })
	return m, hub, home
}

func shownClient(t *testing.T, m *Machine, id string) snapshot.Client {
	t.Helper()
	all := m.Snapshot().Connect.Clients
	i := slices.IndexFunc(all, func(c snapshot.Client) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("%s is not among %+v", id, all)
	}
	return all[i]
}

// A person connects a program by a click: its settings lead here, it has a key
// named after it, and all of that goes again.
func TestAProgramIsConnectedAndDisconnected(t *testing.T) {
	m, hub, home := connecting(t)
	file := filepath.Join(home, ".cursor", "mcp.json")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	if c := shownClient(t, m, "cursor"); !c.Found || c.Connected || c.File != file || c.Problem != "" {
		t.Fatalf("before, it is shown as %+v", c)
	}
	for range 2 { // a second click changes nothing
		reply, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.ConnectClient, Text: "cursor"})
		if must(t, err); !strings.HasPrefix(reply.Text, "Cursor is connected.") {
			t.Errorf("it says %q", reply.Text)
		}
	}
	if len(hub.keys) != 1 || hub.keys[0].Name != "Cursor" {
		t.Errorf("its keys: %+v", hub.keys)
	}
	if c := shownClient(t, m, "cursor"); !c.Connected {
		t.Errorf("it is shown as %+v", c)
	}
	data, err := os.ReadFile(file)
	must(t, err)
	if strings.Contains(string(data), "e2b_") || !json.Valid(data) {
		t.Errorf("its settings:\n%s", data)
	}
	if _, key, err := m.ProgramKey(t.Context(), "Cursor"); err != nil || key != "e2b_b" {
		t.Errorf("the bridge gets %s, %v", key, err)
	}
	_, err = m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.DisconnectClient, Text: "cursor"})
	must(t, err)
	if _, err := os.Stat(file); len(hub.keys) != 0 || !os.IsNotExist(err) || shownClient(t, m, "cursor").Connected {
		t.Errorf("after it was disconnected: keys %+v, file %v", hub.keys, err)
	}
	_, err = m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.ConnectClient, Text: "cursor"})
	must(t, err)
	_, err = m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Disconnect, Text: hub.keys[0].ID}) // in Permissions
	if must(t, err); shownClient(t, m, "cursor").Connected {
		t.Error("without a key it is shown as connected")
	}
	// Connected again, it gets another key: the one before is dead.
	_, err = m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.ConnectClient, Text: "cursor"})
	must(t, err)
	if _, key, err := m.ProgramKey(t.Context(), "Cursor"); err != nil || key != "e2b_d" {
		t.Errorf("the bridge gets %s, %v then", key, err)
	}
	if got := happened(t, m, "program connected"); len(got) != 4 {
		t.Errorf("the record has %q", got)
	}
}

func TestWhatCantBeConnectedSaysWhy(t *testing.T) {
	m, hub, home := connecting(t)
	must(t, os.MkdirAll(filepath.Join(home, ".cursor"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".cursor", "mcp.json"), []byte("{"), 0o600))
	refused(t, m, snapshot.Intent{Kind: snapshot.ConnectClient, Text: "cursor"}, "left as it is")
	if len(hub.keys) != 0 {
		t.Errorf("it has a key all the same: %+v", hub.keys)
	}
	refused(t, m, snapshot.Intent{Kind: snapshot.ConnectClient, Text: "nothing"}, "There is no program")
	m.link.set(func(v *linkState) { v.hub = snapshot.Hub{Paired: true, Kind: settings.HubAutoGPT} })
	refused(t, m, snapshot.Intent{Kind: snapshot.ConnectClient, Text: "cursor"}, "Pair this computer first")
	if got := m.Snapshot().Connect; len(got.Clients) != 0 || len(got.Any) != 0 {
		t.Errorf("AutoGPT's pages list %+v", got.Clients)
	}
	m.link.set(func(v *linkState) {
		v.hub = snapshot.Hub{Paired: true, Kind: "own", Address: "https://hub.example"}
	})
	if c := shownClient(t, m, "vscode"); !strings.Contains(strings.Join(c.Lines, ""), "https://hub.example/mcp") {
		t.Errorf("for a hub of one's own: %+v", c)
	}
}

func TestLinesForAnMCPClient(t *testing.T) {
	m, _, _ := connecting(t)
	_, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.MakeKey, Text: "Mine", Way: "mcp"})
	must(t, err)
	lines := strings.Join(m.Snapshot().Connect.Lines, "\n")
	if !strings.Contains(lines, `"http://127.0.0.1:4417/mcp"`) || !strings.Contains(lines, `"Bearer e2b_b"`) {
		t.Errorf("the lines are\n%s", lines)
	}
	// One that starts the bridge is called what its person calls it, and has its
	// key before its lines are shown.
	if c := m.Snapshot().Connect; len(c.Any) != 0 || c.AnyName != "" {
		t.Errorf("before it has a key: %q for %q", c.Any, c.AnyName)
	}
	for _, name := range []string{snapshot.AnyProgram, "Ann's helper"} {
		_, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.MakeKey, Text: name, Way: "bridge"})
		must(t, err)
		if c := m.Snapshot().Connect; !strings.Contains(strings.Join(c.Any, " "), "--program") || !strings.Contains(strings.Join(c.Any, " "), name) || c.AnyName != name {
			t.Errorf("then: %q for %q", c.Any, c.AnyName)
		}
	}
}
