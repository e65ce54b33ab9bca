//go:build linux

package portal

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// Shortcut is a key that the desktop gives to this program whatever has the
// keyboard.
type Shortcut struct {
	p    *Portal
	path dbus.ObjectPath
	// Trigger is the key as the desktop bound it, in its own words.
	Trigger string
}

// Bind asks the desktop for a key; it may show its own dialog, and may bind
// another key than is preferred. Pressed is called for each press; it returns
// at once. ErrMissing where the desktop has no such portal.
func (p *Portal) Bind(ctx context.Context, id, description, preferred string, pressed func()) (*Shortcut, error) {
	if p.Version(GlobalShortcuts) == 0 {
		return nil, ErrMissing
	}
	results, err := p.request(ctx, GlobalShortcuts+".CreateSession", map[string]any{"session_handle_token": newToken()})
	if err != nil {
		return nil, err
	}
	s := &Shortcut{p: p, path: sessionOf(results)}
	if !s.path.IsValid() {
		return nil, fmt.Errorf("%w: it named no session", ErrRefused)
	}
	p.mu.Lock()
	p.pressed[s.path] = pressed
	p.mu.Unlock()
	type shortcut struct {
		ID    string
		Props map[string]dbus.Variant
	}
	ask := []shortcut{{id, variants(map[string]any{"description": description, "preferred_trigger": preferred})}}
	results, err = p.request(ctx, GlobalShortcuts+".BindShortcuts", map[string]any{}, s.path, ask, "")
	if err != nil {
		s.Close()
		return nil, err
	}
	var bound []shortcut
	if v := results["shortcuts"]; v.Value() == nil || v.Store(&bound) != nil {
		s.Close()
		return nil, errors.New("the desktop did not say which key it bound")
	}
	for _, b := range bound {
		if b.ID == id {
			s.Trigger, _ = b.Props["trigger_description"].Value().(string)
		}
	}
	if s.Trigger == "" {
		s.Close()
		return nil, errors.New("the desktop bound no key")
	}
	return s, nil
}

// Close lets go of the key.
func (s *Shortcut) Close() {
	s.p.mu.Lock()
	delete(s.p.pressed, s.path)
	s.p.mu.Unlock()
	s.p.conn.Object(busName, s.path).Go(sessionIface+".Close", dbus.FlagNoReplyExpected, nil)
}
