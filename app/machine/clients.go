package machine

import (
	"context"
	"slices"
	"sync"

	"localpc/app/settings"
	"localpc/app/setup"
	"localpc/app/snapshot"
	"localpc/consent"
)

// clients are the programs on this computer that Connect a program lists. They
// are looked for when a person looks, and when this computer is paired. Safe
// for concurrent use.
type clients struct {
	m *Machine

	mu     sync.Mutex
	looked bool              // guarded by mu
	at     string            // the hub that list is for; guarded by mu
	list   []snapshot.Client // guarded by mu; never changed in place
	any    []string          // guarded by mu
	// called is the program, not known here, that got its key last; guarded by mu.
	called string
}

// goThrough is what programs go through to come here: "" for the hub inside, or
// the address of a hub of one's own.
func goThrough(kind, address string) (hub string, ok bool) {
	switch kind {
	case "this":
		return "", true
	case "own":
		return address, address != ""
	}
	return "", false
}

// shown are the programs as windows list them, for the hub that this computer
// is paired with.
func (c *clients) shown(kind, address string) (list []snapshot.Client, any []string, called string) {
	hub, ok := goThrough(kind, address)
	if !ok || c.m.o.Clients == nil {
		return nil, nil, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looked || c.at != hub {
		c.read(hub)
	}
	list = slices.Clone(c.list)
	for i := range list {
		// One whose key was taken away has to be connected again.
		list[i].Connected = list[i].Connected && (hub != "" || slices.ContainsFunc(c.m.lists.programKeys(), func(k Key) bool { return k.Name == list[i].Name }))
	}
	return list, c.any, c.called
}

// look looks anew, and tells.
func (c *clients) look() {
	c.mu.Lock()
	c.looked = false
	c.mu.Unlock()
	c.m.changed()
}

// read needs mu.
func (c *clients) read(hub string) {
	c.looked, c.at, c.list = true, hub, nil
	for _, p := range c.m.o.Clients.List(hub) {
		c.list = append(c.list, snapshot.Client{ID: p.ID, Name: p.Name, Found: p.Found, Connected: p.Connected, File: p.File, Lines: p.Lines,
			Problem: p.Problem, Next: p.Next, Around: p.Around, Off: p.Off, OffLines: p.OffLines})
	}
	c.any = nil
	if hub != "" || c.called != "" {
		c.any = c.m.o.Clients.Lines(c.called, hub, "")
	}
}

// call notes a program that is not known here, and has its key now.
func (c *clients) call(name string) {
	c.mu.Lock()
	c.called, c.looked = name, false
	c.mu.Unlock()
	c.m.changed()
}

// through is goThrough for the hub that this computer is paired with now.
func (c *clients) through() (hub string, err error) {
	at := c.m.link.state().hub
	hub, ok := goThrough(at.Kind, at.Address)
	if !ok || c.m.o.Clients == nil {
		return "", sentence("Pair this computer first, with itself or with a hub of your own. Then programs can be connected.")
	}
	return hub, nil
}

// connectClient writes a program's settings, and makes its key.
func (m *Machine) connectClient(ctx context.Context, id string) (snapshot.Reply, error) {
	hub, err := m.clients.through()
	if err != nil {
		return snapshot.Reply{}, err
	}
	if err := m.note(ctx, "program connected", id); err != nil {
		return snapshot.Reply{}, err
	}
	defer m.clients.look()
	p, err := m.o.Clients.Connect(id, hub)
	if err != nil {
		m.log.Warn("A program could not be connected", "program", id, "err", err)
		return snapshot.Reply{}, sentence(upper(err.Error()) + ".")
	}
	// The name of a program that was disconnected gets a key again only here.
	if hub == "" {
		if err := m.ownKey(ctx, p.Name); err != nil {
			return snapshot.Reply{}, err
		}
	}
	return say(p.Name + " is connected. " + p.Next), nil
}

// disconnectClient takes the entry out of a program's settings, and its key.
func (m *Machine) disconnectClient(ctx context.Context, id string) (snapshot.Reply, error) {
	if m.o.Clients == nil {
		return snapshot.Reply{}, sentence("No program can be connected here.")
	}
	defer m.clients.look()
	i := slices.IndexFunc(m.o.Clients.List(""), func(p setup.Client) bool { return p.ID == id })
	if i < 0 {
		return snapshot.Reply{}, sentence("There is no program " + consent.Visible(id, false) + " here.")
	}
	name := m.o.Clients.List("")[i].Name
	// Its key first: should the file not be writable, it still can do nothing.
	for _, k := range m.keysNow() {
		if k.Name == name {
			if _, err := m.disconnect(ctx, k.ID); err != nil {
				return snapshot.Reply{}, err
			}
		}
	}
	if err := m.o.Clients.Disconnect(id); err != nil {
		m.log.Warn("A program's settings could not be put back", "program", id, "err", err)
		return snapshot.Reply{}, sentence(upper(err.Error()) + ".")
	}
	if hub, err := m.clients.through(); err == nil && hub != "" {
		return say(name + " does not come here any more. Take its sign-in away on the hub's page too."), nil
	}
	return say(name + " is disconnected."), nil
}

// keysNow are the keys at the hub inside, asked for anew.
func (m *Machine) keysNow() []Key {
	if m.o.Settings.Get().Hub != settings.HubThis {
		return nil
	}
	m.lists.stale()
	return m.lists.programKeys()
}
