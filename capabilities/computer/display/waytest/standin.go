//go:build linux

package waytest

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// StandIn plays the portals of a desktop that has all of them, on a session bus
// of its own: for the protocol of requests and answers only, since nobody can
// answer the dialog of a real one without a screen. It shows nothing and moves
// nothing, and notes what it is asked for.
type StandIn struct {
	conn *dbus.Conn

	mu    sync.Mutex // of what follows
	calls []string
	// Answer is the code that the next Start ends with; 3 does not answer.
	Answer   uint32
	devices  uint32 // that it gives with a yes
	tokens   int
	session  dbus.ObjectPath
	shortcut dbus.ObjectPath
}

const (
	standInName = "org.freedesktop.portal.Desktop"
	standInPath = dbus.ObjectPath("/org/freedesktop/portal/desktop")
	standInAPI  = "org.freedesktop.portal."
)

// NewStandIn starts a bus with it, and sets the test's environment to that.
func NewStandIn(t testing.TB) *StandIn {
	t.Helper()
	d := &Desktop{Dir: t.TempDir(), t: t}
	socket := filepath.Join(d.Dir, "bus")
	d.plain("dbus-daemon", "--session", "--nofork", "--address=unix:path="+socket)
	d.wait("the bus", func() bool { return listens(socket) })
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+socket)
	conn, err := dbus.Connect("unix:path=" + socket)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s := &StandIn{conn: conn, devices: 3}
	for _, name := range []string{"RemoteDesktop", "ScreenCast", "GlobalShortcuts"} {
		must(t, conn.ExportMethodTable(s.methods(name), standInPath, standInAPI+name))
	}
	must(t, conn.ExportMethodTable(map[string]any{"Get": s.get}, standInPath, "org.freedesktop.DBus.Properties"))
	reply, err := conn.RequestName(standInName, dbus.NameFlagDoNotQueue)
	must(t, err)
	if reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal("the bus has portals already")
	}
	return s
}

// Calls are what it was asked for since the last time.
func (s *StandIn) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.calls
	s.calls = nil
	return out
}

// Say sets how the next Start ends: 0 allowed, 1 declined, 3 never.
func (s *StandIn) Say(code uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Answer = code
}

// Give sets which devices a yes gives from now on: 1 keyboard, 2 mouse.
func (s *StandIn) Give(devices uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices = devices
}

// End ends the session of shared screens, as the desktop's own button does.
func (s *StandIn) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.Emit(s.session, standInAPI+"Session.Closed", map[string]dbus.Variant{})
}

// Press presses the key that was bound.
func (s *StandIn) Press() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.Emit(standInPath, standInAPI+"GlobalShortcuts.Activated", s.shortcut, "stop", uint64(1), map[string]dbus.Variant{})
}

func (s *StandIn) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *StandIn) get(iface, name string) (dbus.Variant, *dbus.Error) {
	switch {
	case name == "version" && iface == standInAPI+"RemoteDesktop":
		return dbus.MakeVariant(uint32(2)), nil
	case name == "version" && iface == standInAPI+"ScreenCast":
		return dbus.MakeVariant(uint32(5)), nil
	case name == "version" && iface == standInAPI+"GlobalShortcuts":
		return dbus.MakeVariant(uint32(1)), nil
	case name == "AvailableCursorModes":
		return dbus.MakeVariant(uint32(7)), nil
	}
	return dbus.Variant{}, dbus.MakeFailedError(fmt.Errorf("no %s", name))
}

type options = map[string]dbus.Variant

// answer ends a request with code, as a signal on its path.
func (s *StandIn) answer(sender dbus.Sender, o options, code uint32, results map[string]any) (dbus.ObjectPath, *dbus.Error) {
	token, _ := o["handle_token"].Value().(string)
	path := dbus.ObjectPath("/org/freedesktop/portal/desktop/request/" + strings.ReplaceAll(strings.TrimPrefix(string(sender), ":"), ".", "_") + "/" + token)
	out := map[string]dbus.Variant{}
	for k, v := range results {
		out[k] = dbus.MakeVariant(v)
	}
	if code != 3 {
		_ = s.conn.Emit(path, standInAPI+"Request.Response", code, out)
		return path, nil
	}
	_ = s.conn.ExportMethodTable(map[string]any{"Close": func() *dbus.Error { s.note("Close"); return nil }}, path, standInAPI+"Request")
	return path, nil
}

func (s *StandIn) newSession(sender dbus.Sender, o options, shortcut bool) (dbus.ObjectPath, *dbus.Error) {
	token, _ := o["session_handle_token"].Value().(string)
	path := dbus.ObjectPath("/org/freedesktop/portal/desktop/session/1_1/" + token)
	s.mu.Lock()
	if shortcut {
		s.shortcut = path
	} else {
		s.session = path
	}
	s.mu.Unlock()
	return s.answer(sender, o, 0, map[string]any{"session_handle": string(path)})
}

func (s *StandIn) methods(iface string) map[string]any {
	choose := func(what string) func(dbus.Sender, dbus.ObjectPath, options) (dbus.ObjectPath, *dbus.Error) {
		return func(sender dbus.Sender, _ dbus.ObjectPath, o options) (dbus.ObjectPath, *dbus.Error) {
			s.note("%s types=%v persist=%v token=%v", what, o["types"].Value(), o["persist_mode"].Value(), o["restore_token"].Value())
			return s.answer(sender, o, 0, nil)
		}
	}
	return map[string]any{
		"CreateSession": func(sender dbus.Sender, o options) (dbus.ObjectPath, *dbus.Error) {
			return s.newSession(sender, o, iface == "GlobalShortcuts")
		},
		"SelectDevices": choose("SelectDevices"),
		"SelectSources": choose("SelectSources"),
		"Start": func(sender dbus.Sender, _ dbus.ObjectPath, _ string, o options) (dbus.ObjectPath, *dbus.Error) {
			s.mu.Lock()
			code, devices := s.Answer, s.devices
			s.tokens++
			token := fmt.Sprintf("token-%d", s.tokens)
			s.mu.Unlock()
			type stream struct {
				Node  uint32
				Props map[string]dbus.Variant
			}
			type pair struct{ X, Y int32 }
			at := func(node uint32, x, y, w, h int32) stream {
				return stream{node, map[string]dbus.Variant{"position": dbus.MakeVariant(pair{x, y}), "size": dbus.MakeVariant(pair{w, h})}}
			}
			return s.answer(sender, o, code, map[string]any{"devices": devices, "restore_token": token,
				"streams": []stream{at(41, 0, 0, 1024, 700), at(42, -800, 0, 800, 600)}})
		},
		"NotifyPointerMotionAbsolute": func(_ dbus.ObjectPath, _ options, stream uint32, x, y float64) *dbus.Error {
			s.note("move %d %.2f %.2f", stream, x, y)
			return nil
		},
		"NotifyPointerButton": func(_ dbus.ObjectPath, _ options, button int32, state uint32) *dbus.Error {
			s.note("button %#x %d", button, state)
			return nil
		},
		"NotifyPointerAxisDiscrete": func(_ dbus.ObjectPath, _ options, axis uint32, steps int32) *dbus.Error {
			s.note("axis %d %d", axis, steps)
			return nil
		},
		"NotifyKeyboardKeysym": func(_ dbus.ObjectPath, _ options, sym int32, state uint32) *dbus.Error {
			s.note("key %#x %d", sym, state)
			return nil
		},
		"BindShortcuts": func(sender dbus.Sender, _ dbus.ObjectPath, asked []shortcut, _ string, o options) (dbus.ObjectPath, *dbus.Error) {
			for _, a := range asked {
				s.note("bind %s %v", a.ID, a.Props["preferred_trigger"].Value())
			}
			return s.answer(sender, o, 0, map[string]any{"shortcuts": []shortcut{{"stop", options{"trigger_description": dbus.MakeVariant("Ctrl+Alt+Esc")}}}})
		},
	}
}

type shortcut struct {
	ID    string
	Props options
}
