package machine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/consent"
)

// programKeys keeps the keys of programs that "localpc mcp" speaks for: they take
// no address and no key themselves. Where nothing can be kept, a key lasts
// until this program ends. Safe for concurrent use.
type programKeys struct {
	m *Machine

	mu   sync.Mutex        // one is made at a time
	held map[string]string // the keys by name, as read or made; guarded by mu
}

// ProgramKey gives the address of the hub inside, and the key of a program
// there. Only one that the person connected has a key, and one that they
// disconnected gets no other until they connect it again. The error is one plain
// sentence.
func (m *Machine) ProgramKey(ctx context.Context, name string) (address, key string, err error) {
	return m.keys.key(ctx, name, false)
}

// NewProgramKey is ProgramKey for a program that the person connects now: it
// gets a key of its own in the place of an earlier one.
func (m *Machine) NewProgramKey(ctx context.Context, name string) (address, key string, err error) {
	return m.keys.key(ctx, name, true)
}

// ownKey is for a program that the person connects now: it gets a key, unless it
// has one that is good.
func (m *Machine) ownKey(ctx context.Context, name string) error {
	if m.hasKey(name) {
		if _, _, err := m.ProgramKey(ctx, name); err == nil {
			return nil
		}
	}
	_, _, err := m.NewProgramKey(ctx, name)
	return err
}

// hasKey tells whether the hub inside knows a key of that name.
func (m *Machine) hasKey(name string) bool {
	return slices.ContainsFunc(m.keysNow(), func(k Key) bool { return k.Name == name })
}

func (p *programKeys) key(ctx context.Context, name string, anew bool) (address, key string, err error) {
	m := p.m
	if err := keyName(name); err != nil {
		return "", "", err
	}
	if m.o.Hub == nil || m.o.Settings.Get().Hub != settings.HubThis {
		return "", "", sentence("Local PC Executor is not paired with this computer alone. Pair it so, or give the address of its hub with --hub.")
	}
	if address, err = m.o.Hub.Start(ctx); err != nil {
		m.log.Error("The hub inside could not start", "err", err)
		return "", "", sentence("The hub inside this program does not run; its log says why.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all, unread := p.read(ctx)
	if unread != nil {
		m.log.Warn("The keys of programs can't be read", "err", unread)
		all = p.held
	}
	if key = all[name]; key != "" && !anew {
		return address, key, nil
	}
	// A key that could not be kept is one of a program that was connected.
	if !anew && (unread == nil || !m.hasKey(name)) {
		return "", "", sentence(consent.Visible(name, false) + " is not connected to this computer. Its person has to connect it first: in Local PC Executor, under Connect a program, or with localpc connect --any and this name.")
	}
	if key, err = m.o.Hub.MakeKey(ctx, name); err != nil {
		m.log.Error("A key could not be made", "err", err)
		return "", "", sentence("The key could not be made; the log says why.")
	}
	if err := m.o.Record.Happened(ctx, "key made", name); err != nil {
		m.log.Error("A new key could not be recorded", "err", err)
	}
	m.lists.stale()
	m.changed()
	if all == nil {
		all = map[string]string{}
	}
	all[name] = key
	p.held = all
	if data, err := json.Marshal(all); err == nil {
		if err := m.o.Keychain.Set(ctx, login.ProgramKeys, string(data)); err != nil {
			m.log.Warn("The key of a program can't be kept", "err", err)
		}
	}
	return address, key, nil
}

// read gives the keys that are kept.
func (p *programKeys) read(ctx context.Context) (map[string]string, error) {
	data, err := p.m.o.Keychain.Get(ctx, login.ProgramKeys)
	if errors.Is(err, login.ErrMissing) {
		return p.held, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	if err := json.Unmarshal([]byte(data), &all); err != nil {
		return nil, err
	}
	return all, nil
}
