package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"localpc/app/settings"
	"localpc/app/setup"
	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/consent/record"
)

// Intend does what a person wants: from the tray, a window, or the control
// socket. It waits until it is done. The error is one plain sentence. It is
// called on the caller's goroutine, by many at once.
func (m *Machine) Intend(ctx context.Context, in snapshot.Intent) (snapshot.Reply, error) {
	h := m.o.Hooks
	switch in.Kind {
	case snapshot.Pair:
		return m.pair(ctx, in)
	case snapshot.CancelPair:
		m.link.now.stop()
		return snapshot.Reply{}, nil
	case snapshot.Unpair:
		return m.unpair(ctx)
	case snapshot.Reconnect:
		m.link.ops.Lock()
		defer m.link.ops.Unlock()
		m.link.begin(m.o.Settings.Get().Hub)
		return say("Connecting again."), nil
	case snapshot.Pause:
		m.controls.pauses()
		return say("Paused."), m.pause(ctx)
	case snapshot.Resume:
		if err := m.resume(ctx); err != nil {
			m.log.Error("Resuming could not be recorded", "err", err)
			return snapshot.Reply{}, sentence("This computer could not write its record, so it stays paused. Is the disk full?")
		}
		return say("Resumed."), nil
	case snapshot.StopAll:
		if err := m.stopEverything(ctx); err != nil {
			return snapshot.Reply{}, err
		}
		if in.Text != "" && h.ShowWindow != nil {
			_, _ = m.showWindow(in.Text)
		}
		return say("Everything stopped."), nil
	case snapshot.StopOne:
		if !m.flights.one(in.Entry, stoppedBy("The person at this computer stopped this.")) {
			return snapshot.Reply{}, sentence("This has ended already.")
		}
		return say("Stopped."), nil
	case snapshot.AllowNext:
		return m.allowNext(ctx, in.Entry)
	case snapshot.MakeKey:
		return m.makeKey(ctx, in.Text, in.Way)
	case snapshot.ForgetKey:
		m.setConnect(func(c *snapshot.Connect) { c.Name, c.Lines = "", nil })
		return snapshot.Reply{}, nil
	case snapshot.Practice:
		return m.practice()
	case snapshot.Export:
		return m.export(ctx, in.Text)
	case snapshot.GetDetail:
		d, err := m.journal.detail(ctx, in.Entry)
		return snapshot.Reply{Detail: d}, err
	case snapshot.Find:
		e, err := m.journal.find(ctx, in.Text, in.Filter)
		return snapshot.Reply{Entries: e}, err
	case snapshot.VerifyAgain:
		m.verify(ctx)
		m.mu.Lock()
		r := m.checked
		m.mu.Unlock()
		if !r.OK {
			return snapshot.Reply{}, sentence(r.Problem)
		}
		return say("The record is whole."), nil
	case snapshot.Dismiss:
		m.dismiss(in.Text)
		return snapshot.Reply{}, nil
	case snapshot.CheckSecrets:
		return m.checkSecrets(ctx)
	case snapshot.Revoke:
		return m.revoke(ctx, in.Text)
	case snapshot.ShowCard:
		if h.RaiseCard != nil {
			h.RaiseCard()
		}
		return snapshot.Reply{}, nil
	case snapshot.ShowWindow:
		return m.showWindow(in.Text)
	case snapshot.SetCapability:
		return m.setCapability(ctx, in.Text, in.Way)
	case snapshot.SetMode:
		if err := m.sessions.setMode(ctx, in.Entry, consent.Mode(in.Text)); err != nil {
			return snapshot.Reply{}, err
		}
		return say("Changed."), nil
	case snapshot.EndSession:
		if err := m.sessions.end(ctx, in.Entry, "The person at this computer ended this session.", ""); err != nil {
			return snapshot.Reply{}, err
		}
		return say("The session has ended."), nil
	case snapshot.ConnectClient:
		return m.connectClient(ctx, in.Text)
	case snapshot.DisconnectClient:
		return m.disconnectClient(ctx, in.Text)
	case snapshot.LookForClients:
		m.clients.look()
		return snapshot.Reply{}, nil
	case snapshot.Disconnect:
		return m.disconnect(ctx, in.Text)
	case snapshot.Change:
		return m.change(ctx, in.Changes)
	case snapshot.SelfTest:
		return m.selfTest()
	case snapshot.TestScreens:
		return m.controls.testScreens()
	case snapshot.Undo, snapshot.UndoSession:
		return m.undo(ctx, in)
	case snapshot.Remove:
		return m.remove(ctx, in.Text, in.Way)
	case snapshot.Quit:
		if h.Quit != nil {
			h.Quit()
		}
		return say("Quitting."), nil
	}
	return snapshot.Reply{}, sentence(fmt.Sprintf("This program does not know the wish %q.", in.Kind))
}

func say(s string) snapshot.Reply { return snapshot.Reply{Text: s} }

// revoke takes a permission away, all of them for "".
func (m *Machine) revoke(ctx context.Context, id string) (snapshot.Reply, error) {
	failed := func(err error) (snapshot.Reply, error) {
		m.log.Error("A grant could not be revoked", "err", err)
		return snapshot.Reply{}, sentence("The permission could not be revoked; the log says why.")
	}
	gone, err := m.o.Store.Remembered(ctx, "", "")
	if err != nil {
		return failed(err)
	}
	gone = slices.DeleteFunc(gone, func(g consent.Stored) bool { return id != "" && g.ID != id })
	n, err := m.o.Store.Revoke(ctx, id)
	if err != nil {
		return failed(err)
	}
	if n == 0 && id != "" {
		return snapshot.Reply{}, sentence("There is no such permission; localpc grants lists them.")
	}
	m.changed()
	m.cut(ctx, gone) // what was begun with the permission ends with it
	m.controls.revoked(gone)
	m.chats.browser.reset()
	if err := m.o.Record.Happened(ctx, "revoked", id); err != nil {
		m.log.Error("A revocation could not be recorded", "err", err)
	}
	return say(fmt.Sprintf("%d revoked.", n)), nil
}

// showWindow shows a window; for "" the card that waits, else the window that
// the person saw last.
func (m *Machine) showWindow(window string) (snapshot.Reply, error) {
	h := m.o.Hooks
	if h.ShowWindow == nil {
		return snapshot.Reply{}, sentence("There is no display to show a window on.")
	}
	if window == "" && m.asks.Waiting() > 0 && h.RaiseCard != nil {
		h.RaiseCard()
		return say("A question waits for you."), nil
	}
	m.mu.Lock()
	if window == "" {
		if window = m.window; window == "" && m.o.Settings.Get().Hub == "" {
			window = snapshot.WindowPair
		} else if window == "" {
			window = snapshot.WindowActivity
		}
	}
	m.window = window
	m.mu.Unlock()
	switch window { // the desktop has a list of its own for that
	case snapshot.WindowSettings:
		m.lookAtAutostart()
		m.background(m.controls.find)
	case snapshot.WindowPair:
		m.clients.look()
	}
	h.ShowWindow(window)
	return snapshot.Reply{}, nil
}

// allowNext lets the payload of an unanswered entry run once. A session opens
// asking for everything, in its first suggested folder.
func (m *Machine) allowNext(ctx context.Context, entry string) (snapshot.Reply, error) {
	r, err := m.journal.unanswered(entry)
	if err != nil {
		return snapshot.Reply{}, err
	}
	c := consent.Choice{Scope: consent.Once, Screens: chosenOf(r)}
	if r.Capability == consent.CapabilitySession {
		folders := m.sessions.suggestions(r)
		if len(folders) == 0 {
			return snapshot.Reply{}, sentence("There is no folder that could be lent. Start the program with --folder DIR.")
		}
		c = consent.Choice{Scope: consent.Session, Mode: consent.ModeAsk, Folder: folders[0]}
	} else if r.Containable {
		c.Contain = consent.Contained
	} else if r.Action == "run" {
		c.Contain = consent.FullAccess
	}
	if err := m.o.Record.Happened(ctx, "allowed next time", r.ID); err != nil {
		m.log.Error("Allow next time could not be recorded", "err", err)
		return snapshot.Reply{}, sentence("This computer could not write its record, so nothing was allowed. Is the disk full?")
	}
	m.gate.AllowNext(r, c)
	m.journal.allowedNext(entry)
	m.changed()
	return say("The same request runs once without asking within the next ten minutes."), nil
}

// keyName checks the name of a program that a key is made for. What it lets
// through the hub takes too.
func keyName(name string) error {
	if n := utf8.RuneCountInString(name); n > 60 || strings.TrimSpace(name) == "" {
		return sentence("Give the program a name of 1 to 60 characters.")
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return sentence("The program's name has characters that can't be seen; leave them out.")
	}
	return nil
}

func (m *Machine) makeKey(ctx context.Context, name, way string) (snapshot.Reply, error) {
	if err := keyName(name); err != nil {
		return snapshot.Reply{}, err
	}
	if m.o.Hub == nil || m.o.Settings.Get().Hub != settings.HubThis {
		return snapshot.Reply{}, sentence("Keys are made on the hub that this computer is paired with.")
	}
	if way == "bridge" {
		if err := m.ownKey(ctx, name); err != nil {
			return snapshot.Reply{}, err
		}
		m.clients.call(name)
		return say(consent.Visible(name, false) + " is connected."), nil
	}
	address, err := m.o.Hub.Start(ctx)
	if err != nil {
		m.log.Error("The hub inside could not start", "err", err)
		return snapshot.Reply{}, sentence("The hub inside this program does not run, so no key could be made.")
	}
	key, err := m.o.Hub.MakeKey(ctx, name)
	if err != nil {
		m.log.Error("A key could not be made", "err", err)
		return snapshot.Reply{}, sentence("The key could not be made; the log says why.")
	}
	if err := m.o.Record.Happened(ctx, "key made", name); err != nil {
		m.log.Error("A new key could not be recorded", "err", err)
	}
	m.lists.stale()
	m.setConnect(func(c *snapshot.Connect) {
		c.Name = name
		c.Lines = []string{"E2B_API_KEY=" + key, "E2B_API_URL=" + address + "/api", "E2B_SANDBOX_URL=" + address + "/sbx"}
		if way == "mcp" {
			c.Lines = setup.Clients{}.Lines(name, address, key)
		}
	})
	return say("The key is shown once. Copy the lines now."), nil
}

// practice plays the sample in the background; the snapshot says how it goes.
func (m *Machine) practice() (snapshot.Reply, error) {
	s := m.o.Settings.Get()
	if m.o.Hub == nil || s.Hub != settings.HubThis {
		return snapshot.Reply{}, sentence("The sample runs only when this computer is paired with itself.")
	}
	m.mu.Lock()
	running := m.connect.Practice == "running"
	m.connect.Practice = "running"
	m.mu.Unlock()
	if running {
		return snapshot.Reply{}, sentence("The sample runs already; look for its card.")
	}
	m.changed()
	m.background(func(ctx context.Context) {
		result := "done"
		if err := m.o.Hub.Practice(ctx, s.MachineID); err != nil {
			result = err.Error()
		}
		m.setConnect(func(c *snapshot.Connect) { c.Practice = result })
	})
	return say("The sample begins: answer its card."), nil
}

// export writes the record to a file, whole or not at all; an earlier export of
// that name is replaced.
func (m *Machine) export(ctx context.Context, path string) (snapshot.Reply, error) {
	if !filepath.IsAbs(path) {
		return snapshot.Reply{}, sentence("Choose where to save the export.")
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".localpc-export-*")
	if err == nil {
		defer os.Remove(tmp.Name())
		err = errors.Join(record.Export(ctx, m.o.Store, tmp), tmp.Close())
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		m.log.Error("The export could not be written", "err", err)
		return snapshot.Reply{}, sentence("The export could not be written there. Choose another folder.")
	}
	return say("Saved " + path + "."), nil
}

// sentence is an error that a person reads as it is.
type sentence string

func (s sentence) Error() string { return string(s) }
