package machine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/policy"
)

// Key is a program's key at the hub inside. Its ID is the principal's.
type Key struct {
	ID, Name          string
	Created, LastUsed time.Time
}

// keysEvery is how often the hub inside is asked anew for its keys, while
// anything is published at all: a command may have made one.
const keysEvery = 10 * time.Second

// listWithin bounds one reading of a list for a snapshot.
const listWithin = time.Second

// lists are what Permissions shows of what is stored. They are read when they
// may have changed, not each time that something is published. Safe for
// concurrent use.
type lists struct {
	m *Machine

	mu      sync.Mutex
	version uint64           // of the grants; guarded by mu
	grants  []consent.Stored // the newest first; guarded by mu
	known   bool             // grants and version are set; guarded by mu
	keys    []Key            // guarded by mu
	asked   time.Time        // when keys were; guarded by mu
}

// stale has the keys asked for anew.
func (l *lists) stale() {
	l.mu.Lock()
	l.asked = time.Time{}
	l.mu.Unlock()
	l.m.changed()
}

// stored are the grants that hold now, the newest first; ok is false where they
// could not be read.
func (l *lists) stored() (all []consent.Stored, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.m.o.Store.GrantsVersion(); !l.known || v != l.version {
		ctx, cancel := context.WithTimeout(l.m.ctx, listWithin)
		defer cancel()
		all, err := l.m.o.Store.Remembered(ctx, "", "")
		if err != nil {
			if l.m.ctx.Err() == nil {
				l.m.log.Error("The grants could not be read", "err", err)
			}
			return nil, false
		}
		slices.Reverse(all)
		l.grants, l.version, l.known = all, v, true
	}
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(l.grants), func(g consent.Stored) bool { return !policy.Live(g, now) }), true
}

// programKeys are the keys at the hub inside, where this computer is paired
// with that.
func (l *lists) programKeys() []Key {
	if l.m.o.Hub == nil || l.m.o.Settings.Get().Hub != settings.HubThis {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.asked) < keysEvery {
		return l.keys
	}
	ctx, cancel := context.WithTimeout(l.m.ctx, listWithin)
	defer cancel()
	keys, err := l.m.o.Hub.Keys(ctx)
	if err != nil {
		if l.m.ctx.Err() == nil {
			l.m.log.Warn("The hub inside does not tell its keys", "err", err)
		}
	} else {
		l.keys = keys
	}
	l.asked = time.Now()
	return l.keys
}

// shownGrants are the grants as Permissions lists them.
func (m *Machine) shownGrants() []snapshot.Grant {
	var out []snapshot.Grant
	home, _ := os.UserHomeDir() // without one, paths are whole
	stored, _ := m.lists.stored()
	for _, g := range stored {
		s := snapshot.Grant{ID: g.ID, Who: consent.Visible(g.Name, false), May: policy.RuleWords(policy.AtHome(g.Rule, home), g.Choice), Deny: g.Deny,
			Scope: scopeShown(g.Scope), Until: g.Expires, LastUsed: g.LastUsed}
		if g.Scope == consent.Session {
			s.Session = g.Session
		}
		out = append(out, s)
	}
	return out
}

func scopeShown(s consent.Scope) string {
	switch s {
	case consent.Command:
		return "this command"
	case consent.Session:
		return "this session"
	case consent.Minutes15:
		return "15 minutes"
	case consent.Always:
		return "always"
	}
	return "once"
}

// programs are what is connected: the keys of the hub inside, and whoever has a
// session or a grant from the hub that this computer is paired with.
func (m *Machine) programs() []snapshot.Program {
	var out []snapshot.Program
	at := func(id, name string) *snapshot.Program {
		for i := range out {
			if out[i].ID == id {
				return &out[i]
			}
		}
		out = append(out, snapshot.Program{ID: id, Name: consent.Visible(name, false)})
		return &out[len(out)-1]
	}
	for _, k := range m.lists.programKeys() {
		p := at(k.ID, k.Name)
		p.Since, p.LastSeen, p.CanDisconnect = k.Created, k.LastUsed, true
	}
	hub, _ := m.link.hub()
	for _, s := range m.sessions.list() {
		if s.who.hub == hub {
			p := at(s.who.principal.ID, s.who.principal.Name)
			p.Sessions++
			p.LastSeen = later(p.LastSeen, s.seen())
		}
	}
	stored, _ := m.lists.stored()
	for _, g := range stored {
		if g.Rule.Hub == hub && hub != "" && g.Rule.Principal != "" && g.Name != "" {
			p := at(g.Rule.Principal, g.Name)
			p.LastSeen = later(p.LastSeen, g.LastUsed)
		}
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// extents are how far each capability may go, the widest first.
var extents = []snapshot.Capability{
	{Name: consent.CapabilityFiles, Label: "Files", Extents: []snapshot.Extent{
		{Value: "ask", Label: "May be asked for"}, {Value: "read", Label: "Reading only"}, {Value: "off", Label: "Never"}}},
	{Name: consent.CapabilityShell, Label: "Commands", Extents: []snapshot.Extent{
		{Value: "ask", Label: "May be asked for"}, {Value: "contained", Label: "Inside their folder only"}, {Value: "off", Label: "Never"}}},
	{Name: consent.CapabilityNetwork, Label: "Network", Extents: []snapshot.Extent{
		{Value: "ask", Label: "May be asked for"}, {Value: "off", Label: "Never"}}},
	{Name: consent.CapabilityComputer, Label: "Screen, mouse and keyboard", Extents: []snapshot.Extent{
		{Value: "ask", Label: "May be asked for"}, {Value: policy.See, Label: "Looking only"}, {Value: "off", Label: "Never"}}},
}

// extentOf is where the settings keep a capability's extent.
func extentOf(c *settings.Capabilities, name string) *string {
	switch name {
	case consent.CapabilityFiles:
		return &c.Files
	case consent.CapabilityShell:
		return &c.Shell
	case consent.CapabilityNetwork:
		return &c.Network
	case consent.CapabilityComputer:
		return &c.Computer
	}
	return nil
}

// shownCapabilities are those of the executors that this build has.
func (m *Machine) shownCapabilities() []snapshot.Capability {
	set := m.o.Settings.Get().Capabilities
	var out []snapshot.Capability
	for _, c := range extents {
		if !slices.ContainsFunc(m.o.Executors, func(e capabilities.Capability) bool { return e.Name() == c.Name }) {
			continue
		}
		if c.Name == consent.CapabilityComputer && m.controls.exec == nil {
			continue
		}
		c.Extent = *extentOf(&set, c.Name)
		if c.Extent == "" {
			c.Extent = c.Extents[0].Value
		}
		out = append(out, c)
	}
	return out
}

// setCapability says how far a capability may go from now on. Commands that run
// go on; connections, and what is done at the screen, do not.
func (m *Machine) setCapability(ctx context.Context, name, extent string) (snapshot.Reply, error) {
	i := slices.IndexFunc(extents, func(c snapshot.Capability) bool { return c.Name == name })
	if i < 0 {
		return snapshot.Reply{}, sentence(fmt.Sprintf("This program has nothing called %q to switch.", consent.Visible(name, false)))
	}
	j := slices.IndexFunc(extents[i].Extents, func(e snapshot.Extent) bool { return e.Value == extent })
	if j < 0 {
		return snapshot.Reply{}, sentence(fmt.Sprintf("%s can't be set to %q.", extents[i].Label, consent.Visible(extent, false)))
	}
	// Nothing is widened that the record does not tell.
	if err := m.note(ctx, "capability set", name+": "+extent); err != nil {
		return snapshot.Reply{}, err
	}
	if err := m.save(func(s *settings.Settings) { *extentOf(&s.Capabilities, name) = extent }); err != nil {
		return snapshot.Reply{}, err
	}
	if name == consent.CapabilityNetwork && extent == policy.Off {
		m.cutAll(name, stoppedBy("Connections were switched off in Settings on this computer."))
	}
	if name == consent.CapabilityComputer && m.controls.exec != nil {
		m.background(m.rename) // HELLO says what may be asked for
	}
	if name == consent.CapabilityComputer && extent != extents[i].Extents[0].Value {
		cause := stoppedBy("Screen, mouse and keyboard were switched off in Settings on this computer.")
		m.cutAll(name, cause)
		m.controls.drop("", cause, false)
	}
	return say(extents[i].Label + ": " + strings.ToLower(extents[i].Extents[j].Label) + "."), nil
}

// note records what changes what is allowed, before it is done.
func (m *Machine) note(ctx context.Context, what, detail string) error {
	if err := m.o.Record.Happened(ctx, what, detail); err != nil {
		m.log.Error("A change of permissions could not be recorded", "err", err)
		return sentence("This computer could not write its record, so nothing was changed. Is the disk full?")
	}
	return nil
}

// save changes the settings.
func (m *Machine) save(fn func(*settings.Settings)) error {
	if err := m.o.Settings.Change(fn); err != nil {
		m.log.Error("The settings could not be saved", "err", err)
		return sentence("The settings could not be saved, so nothing was changed. Is the disk full?")
	}
	m.changed()
	return nil
}

// disconnect takes a program's key at the hub inside away, and with it its
// sessions, its questions and what it was allowed.
func (m *Machine) disconnect(ctx context.Context, id string) (snapshot.Reply, error) {
	hub, hubName := m.link.hub()
	i := slices.IndexFunc(m.programs(), func(p snapshot.Program) bool { return p.ID == id })
	if i < 0 {
		return snapshot.Reply{}, sentence("There is no such program; it may have been disconnected already.")
	}
	p := m.programs()[i]
	if hub != settings.HubThis || !p.CanDisconnect {
		return snapshot.Reply{}, sentence("This program is connected to " + consent.Visible(hubName, false) + ": disconnect it on the hub's own page.")
	}
	if err := m.note(ctx, "program disconnected", id+": "+p.Name); err != nil {
		return snapshot.Reply{}, err
	}
	if err := m.o.Hub.RevokeKey(ctx, id); err != nil {
		m.log.Error("A key could not be revoked", "err", err)
		return snapshot.Reply{}, sentence("The program's key could not be taken away; the log says why.")
	}
	m.lists.stale()
	const reason = "The person at this computer disconnected this program."
	for _, ask := range m.asks.of(hub, id) {
		m.flights.one(ask, stoppedBy(reason))
	}
	var failed bool
	var wg sync.WaitGroup
	for _, s := range m.sessions.list() {
		if s.who.hub == hub && s.who.principal.ID == id {
			wg.Go(func() { _ = m.sessions.end(ctx, s.ID, reason, "") }) // it says itself what could not be cleared
		}
	}
	wg.Wait()
	grants, err := m.o.Store.Remembered(ctx, hub, id)
	failed = err != nil
	for _, g := range grants {
		if _, err := m.o.Store.Revoke(ctx, g.ID); err != nil {
			failed = true
		}
	}
	m.changed()
	if failed {
		m.log.Error("The grants of a program could not be dropped", "err", err)
		return snapshot.Reply{}, sentence(p.Name + " is disconnected, but what it was allowed could not be dropped: revoke that in Permissions.")
	}
	return say(p.Name + " is disconnected."), nil
}

// of are the questions of one program that wait.
func (q *Asks) of(hub, principal string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []string
	for _, a := range q.queue {
		if a.r.Hub == hub && a.r.Principal.ID == principal {
			out = append(out, a.request)
		}
	}
	return out
}
