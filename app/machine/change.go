package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
)

// Autostart has the system start this program at log-in.
type Autostart interface {
	// State tells whether it does, and in a sentence why it can't be made to;
	// "" when it can.
	State() (on bool, problem string)
	// Set changes that; the error is one plain sentence.
	Set(on bool) error
}

// maxName is how long a computer's name may be, in characters.
const maxName = 60

// rateLabels are what Settings calls what is counted, in its order.
var rateLabels = []struct{ capability, label string }{
	{consent.CapabilitySession, "New sessions of one program"},
	{consent.CapabilityFiles, "File requests"},
	{consent.CapabilityShell, "Commands"},
	{consent.CapabilityNetwork, "Connections"},
	{consent.CapabilityComputer, "Screen, mouse and keyboard"},
}

func rateIn(r *settings.Rates, capability string) *int {
	switch capability {
	case consent.CapabilitySession:
		return &r.Session
	case consent.CapabilityFiles:
		return &r.Files
	case consent.CapabilityShell:
		return &r.Shell
	case consent.CapabilityNetwork:
		return &r.Network
	case consent.CapabilityComputer:
		return &r.Computer
	}
	return nil
}

// shownSettings are the settings as the window shows them.
func (m *Machine) shownSettings(set settings.Settings) snapshot.Settings {
	s := snapshot.Settings{Name: set.Name, Folder: set.Folder, Data: m.o.Paths.Data, Version: m.o.Version}
	s.KeepGB, s.KeepUsual = set.KeepGB, settings.UsualKeepGB
	if m.o.Kept != nil {
		s.KeptBytes = m.o.Kept.Bytes()
	}
	usual := settings.UsualRates
	for _, r := range rateLabels {
		if r.capability == consent.CapabilityComputer && m.controls.exec == nil {
			continue
		}
		shown := snapshot.Rate{Capability: r.capability, Label: r.label, PerMinute: *rateIn(&set.Rates, r.capability), Usual: *rateIn(&usual, r.capability)}
		if shown.PerMinute == 0 {
			shown.PerMinute = shown.Usual
		}
		s.Rates = append(s.Rates, shown)
	}
	s.Computer = m.controls.settings(set)
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Autostart, s.AutostartProblem = m.starts.on, m.starts.problem
	s.Checks, s.Checking = m.checks, m.checking
	return s
}

// starts is the state of autostart as it was last looked up: at the start, when
// it was changed, and by each self-test.
type starts struct {
	on      bool
	problem string
}

func (m *Machine) lookAtAutostart() {
	st := starts{problem: "This build can't be made to start by itself."}
	if m.o.Autostart != nil {
		st.on, st.problem = m.o.Autostart.State()
	}
	m.mu.Lock()
	m.starts = st
	m.mu.Unlock()
	m.changed()
}

// change changes settings: all that are set, or none where one is not fit.
func (m *Machine) change(ctx context.Context, c *snapshot.Changes) (snapshot.Reply, error) {
	if c == nil {
		return snapshot.Reply{}, sentence("Nothing was to be changed.")
	}
	before := m.o.Settings.Get()
	name, folder := before.Name, before.Folder
	if c.Name != nil {
		if name = strings.TrimSpace(*c.Name); name == "" || utf8.RuneCountInString(name) > maxName {
			return snapshot.Reply{}, sentence(fmt.Sprintf("Give this computer a name of 1 to %d characters.", maxName))
		}
		if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return snapshot.Reply{}, sentence("The name has characters that can't be seen; leave them out.")
		}
	}
	if c.Folder != nil {
		if folder = *c.Folder; folder != "" {
			real, err := m.sessions.lendable(folder)
			if err != nil {
				return snapshot.Reply{}, sentence(err.Error())
			}
			folder = real
		}
	}
	for _, capability := range slices.Sorted(maps.Keys(c.Rates)) {
		if n := c.Rates[capability]; rateIn(&before.Rates, capability) == nil {
			return snapshot.Reply{}, sentence(fmt.Sprintf("There is no rate called %q.", consent.Visible(capability, false)))
		} else if n < 0 || n > settings.MaxRate {
			return snapshot.Reply{}, sentence(fmt.Sprintf("A rate is a number from 1 to %d a minute.", settings.MaxRate))
		}
	}
	if c.KeepGB != nil && (*c.KeepGB < -1 || *c.KeepGB > settings.MaxKeepGB) {
		return snapshot.Reply{}, sentence(fmt.Sprintf("Old versions may take from 1 to %d GB.", settings.MaxKeepGB))
	}
	if err := checkComputer(c); err != nil {
		return snapshot.Reply{}, err
	}
	if changesComputer(c) {
		if err := m.note(ctx, "screen, mouse and keyboard set", computerWords(c)); err != nil {
			return snapshot.Reply{}, err
		}
	}
	if len(c.Rates) > 0 {
		if err := m.note(ctx, "rates set", fmt.Sprint(c.Rates)); err != nil {
			return snapshot.Reply{}, err
		}
	}
	if c.Autostart != nil {
		if m.o.Autostart == nil {
			return snapshot.Reply{}, sentence("This build can't be made to start by itself.")
		}
		err := m.o.Autostart.Set(*c.Autostart)
		m.lookAtAutostart()
		if err != nil {
			m.log.Error("Autostart could not be changed", "err", err)
			return snapshot.Reply{}, sentence(upper(err.Error()) + ".")
		}
	}
	if c.Name != nil || c.Folder != nil || len(c.Rates) > 0 || c.KeepGB != nil || changesComputer(c) {
		err := m.save(func(s *settings.Settings) {
			s.Name, s.Folder = name, folder
			if c.KeepGB != nil {
				s.KeepGB = *c.KeepGB
			}
			for capability, n := range c.Rates {
				*rateIn(&s.Rates, capability) = n
			}
			setComputer(&s.Computer, c)
		})
		if err != nil {
			return snapshot.Reply{}, err
		}
	}
	if name != before.Name {
		m.background(m.rename)
	}
	if c.KeepGB != nil && m.o.Kept != nil {
		m.background(m.o.Kept.Tidy)
	}
	return say("Saved."), nil
}

// upper begins a sentence.
func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return strings.TrimSuffix(string(unicode.ToUpper(r))+s[n:], ".")
}

// renameEvery is how often it is looked whether a new name can be told.
const renameEvery = 2 * time.Second

// rename tells the hub this computer's new name, and what may be asked for: by
// connecting again, once
// nothing is under way that this would cut off.
func (m *Machine) rename(ctx context.Context) {
	for m.flights.in("") > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renameEvery):
		}
	}
	m.link.ops.Lock()
	defer m.link.ops.Unlock()
	if hub := m.o.Settings.Get().Hub; hub != "" && ctx.Err() == nil && m.link.state().hub.Online {
		m.link.begin(hub)
	}
}

// selfTestWithin bounds a self-test.
const selfTestWithin = 30 * time.Second

// selfTest looks in the background at what works here; the snapshot has what was
// found.
func (m *Machine) selfTest() (snapshot.Reply, error) {
	if m.o.SelfTest == nil {
		return snapshot.Reply{}, sentence("This build has no self-test.")
	}
	m.mu.Lock()
	running := m.checking
	m.checking = true
	m.mu.Unlock()
	if running {
		return say("The self-test is under way."), nil
	}
	m.changed()
	done := func(checks []snapshot.Check) {
		m.mu.Lock()
		m.checking, m.checks = false, checks
		m.mu.Unlock()
		m.lookAtAutostart()
	}
	began := m.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, selfTestWithin)
		defer cancel()
		done(m.o.SelfTest(ctx))
	})
	if !began {
		done(nil)
	}
	return say("Looking at what works here."), nil
}

// remove begins to take this program off the computer: what needs it running is
// done at once, the rest by the hook after its end.
func (m *Machine) remove(ctx context.Context, choice, way string) (snapshot.Reply, error) {
	if choice != "keep" && choice != "erase" {
		return snapshot.Reply{}, sentence("Say whether to keep the record of what was done here, or to erase it.")
	}
	if m.o.Hooks.Remove == nil || m.o.Hooks.Quit == nil {
		return snapshot.Reply{}, sentence("This build can't remove itself.")
	}
	if err := m.o.Record.Happened(ctx, "removed", choice); err != nil {
		m.log.Error("The removal could not be recorded", "err", err)
	}
	// From here on it is carried through, whoever stops waiting.
	ctx = context.WithoutCancel(ctx)
	words := "Local PC Executor is being removed from this computer."
	if m.o.Settings.Get().Hub == "" {
		m.flights.stop("", stoppedBy("This program is being removed from its computer."))
		m.sessions.endAll(ctx, "This program is being removed from its computer.")
	} else if reply, err := m.unpair(ctx); err != nil {
		m.log.Error("Unpairing before the removal failed", "err", err)
		words += " It could not be unpaired first: take this computer away on its hub's page too."
	} else if reply.Text != "Unpaired." {
		words += " " + reply.Text
	}
	if way == "quit" {
		m.o.Hooks.Quit()
	} else {
		m.o.Hooks.Remove(choice == "keep")
	}
	return say(words), nil
}
