package machine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
)

// oneItemKeychain keeps items in memory; locked, it keeps none.
type oneItemKeychain struct {
	Keychain
	mu     sync.Mutex
	items  map[string]string
	locked bool
}

func (k *oneItemKeychain) Get(_ context.Context, item string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locked {
		return "", login.ErrNoKeychain
	}
	if v, ok := k.items[item]; ok {
		return v, nil
	}
	return "", login.ErrMissing
}

func (k *oneItemKeychain) Set(_ context.Context, item, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locked {
		return login.ErrNoKeychain
	}
	k.items[item] = value
	return nil
}

// countingHub makes keys.
type countingHub struct {
	EmbeddedHub
	mu   sync.Mutex
	made []string
}

func (h *countingHub) Start(context.Context) (string, error) { return "http://127.0.0.1:4417", nil }

func (h *countingHub) MakeKey(_ context.Context, name string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made = append(h.made, name)
	return fmt.Sprintf("e2b_%d", len(h.made)), nil
}

func (h *countingHub) Keys(context.Context) (out []Key, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, name := range h.made {
		out = append(out, Key{ID: fmt.Sprint(i + 1), Name: name})
	}
	return out, nil
}

// Only a person makes a key: whoever else comes, with any name, gets none.
func TestOnlyAPersonMakesAKey(t *testing.T) {
	m, hub := newMachine(t), &countingHub{}
	keychain := &oneItemKeychain{Keychain: m.o.Keychain, items: map[string]string{}}
	m.o.Hub, m.o.Keychain = hub, keychain
	if _, _, err := m.ProgramKey(t.Context(), "Claude Desktop"); err == nil || !strings.Contains(err.Error(), "--hub") {
		t.Errorf("while it is paired with nothing: %v", err)
	}
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Hub = settings.HubThis }))
	for i := range 50 {
		name := fmt.Sprint("Program ", i)
		if _, key, err := m.ProgramKey(t.Context(), name); err == nil || key != "" || !strings.Contains(err.Error(), name+" is not connected") || !strings.Contains(err.Error(), "localpc connect") {
			t.Fatalf("a program that nobody connected gets %q, %v", key, err)
		}
	}
	if len(hub.made) != 0 {
		t.Fatalf("keys were made: %q", hub.made)
	}
	connect := func(name string) {
		t.Helper()
		_, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.MakeKey, Text: name, Way: "bridge"})
		must(t, err)
	}
	gets := func(name, want string) {
		t.Helper()
		if address, key, err := m.ProgramKey(t.Context(), name); err != nil || key != want || address != "http://127.0.0.1:4417" {
			t.Errorf("%s gets %s, %s, %v; want %s", name, address, key, err, want)
		}
	}
	connect("Claude Desktop")
	connect("Claude Desktop") // shown once more
	gets("Claude Desktop", "e2b_1")
	connect("Cursor")
	gets("Cursor", "e2b_2")
	m.keys.held = nil // as after a restart
	gets("Claude Desktop", "e2b_1")
	if lines := m.Snapshot().Connect.Lines; len(lines) != 0 {
		t.Errorf("it is shown as %q", lines)
	}
	if _, key, err := m.NewProgramKey(t.Context(), "Claude Desktop"); err != nil || key != "e2b_3" {
		t.Errorf("connected anew: %s, %v", key, err)
	}
	gets("Claude Desktop", "e2b_3")
	if _, _, err := m.ProgramKey(t.Context(), "a\nb"); err == nil {
		t.Error("a name of two lines was taken")
	}
	if got := happened(t, m, "key made"); len(got) != 3 {
		t.Errorf("the record has %q", got)
	}

	// The keychain lost it: the person connects it again.
	keychain.items = map[string]string{}
	m.keys.held = nil
	if _, _, err := m.ProgramKey(t.Context(), "Cursor"); err == nil {
		t.Error("a key came from nowhere")
	}
	connect("Cursor")
	gets("Cursor", "e2b_4")

	// Without a keychain it lasts as long as the program; one that was connected
	// stays so.
	keychain.locked, m.keys.held = true, nil
	gets("Claude Desktop", "e2b_5")
	gets("Claude Desktop", "e2b_5")
	if _, _, err := m.ProgramKey(t.Context(), "Zed"); err == nil || len(hub.made) != 5 {
		t.Errorf("without a keychain: %v, %q", err, hub.made)
	}
}
