package machine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"localpc/app/login"
	"localpc/app/settings"
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

func TestProgramKeyIsMadeOnce(t *testing.T) {
	hub, keychain := &countingHub{}, &oneItemKeychain{items: map[string]string{}}
	m := newMachine(t)
	m.o.Hub, m.o.Keychain = hub, keychain
	if _, _, err := m.ProgramKey(t.Context(), "Claude Desktop"); err == nil || !strings.Contains(err.Error(), "--hub") {
		t.Errorf("while it is paired with nothing: %v", err)
	}
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Hub = settings.HubThis }))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			address, key, err := m.ProgramKey(t.Context(), "Claude Desktop")
			if err != nil || key != "e2b_1" || address != "http://127.0.0.1:4417" {
				t.Errorf("%s, %s, %v", address, key, err)
			}
		})
	}
	wg.Wait()
	if _, key, err := m.ProgramKey(t.Context(), "Cursor"); err != nil || key != "e2b_2" {
		t.Errorf("another program's: %s, %v", key, err)
	}
	m.keys.held = nil // as after a restart
	if _, key, err := m.ProgramKey(t.Context(), "Claude Desktop"); err != nil || key != "e2b_1" {
		t.Errorf("after a restart: %s, %v", key, err)
	}
	if _, key, err := m.NewProgramKey(t.Context(), "Claude Desktop"); err != nil || key != "e2b_3" {
		t.Errorf("connected anew: %s, %v", key, err)
	}
	if _, key, err := m.ProgramKey(t.Context(), "Claude Desktop"); err != nil || key != "e2b_3" {
		t.Errorf("after that: %s, %v", key, err)
	}
	if _, _, err := m.ProgramKey(t.Context(), "a\nb"); err == nil {
		t.Error("a name of two lines was taken")
	}

	// Without a keychain it lasts as long as the program.
	keychain.locked = true
	if _, key, err := m.ProgramKey(t.Context(), "Zed"); err != nil || key != "e2b_4" {
		t.Errorf("without a keychain: %s, %v", key, err)
	}
	if _, key, err := m.ProgramKey(t.Context(), "Zed"); err != nil || key != "e2b_4" {
		t.Errorf("without a keychain, again: %s, %v", key, err)
	}
	if len(hub.made) != 4 {
		t.Errorf("%d keys were made", len(hub.made))
	}
}
