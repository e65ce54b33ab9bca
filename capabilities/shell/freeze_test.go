//go:build linux

package shell_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// While a card is open nothing with full access moves, whenever it was
// started, and contained commands go on; afterwards everything does.
func TestFreeze(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	size := func(name string) int64 {
		fi, err := os.Stat(filepath.Join(ses.Folder, name))
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	moves := func(name string) bool {
		was := size(name)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if size(name) > was {
				return true
			}
		}
		return false
	}
	still := func(name string) bool {
		time.Sleep(300 * time.Millisecond)
		was := size(name)
		time.Sleep(700 * time.Millisecond)
		return size(name) == was
	}
	loop := func(name string) string {
		return "(setsid sh -c 'while :; do echo x >> " + name + "; sleep 0.02; done' &); while :; do echo y >> " + name + "; sleep 0.02; done"
	}
	first := begin(ctx, t, s, ses, full, bash(ses, loop("full")))
	inside := begin(ctx, t, s, ses, contained, bash(ses, loop("contained")))
	if !moves("full") || !moves("contained") {
		t.Fatal("the commands do not run")
	}
	s.Freeze(true)
	s.Freeze(true)
	if !still("full") {
		t.Error("a command with full access goes on while a card is open")
	}
	if !moves("contained") {
		t.Error("a contained command stands still")
	}
	second := begin(ctx, t, s, ses, full, bash(ses, loop("second")))
	if !still("second") {
		t.Error("a command that was started meanwhile goes on")
	}
	s.Freeze(false)
	if !moves("full") || !moves("second") {
		t.Error("the commands do not go on when the card has gone")
	}
	// What stands still can be ended.
	s.Freeze(true)
	if !still("full") {
		t.Error("a second card holds nothing")
	}
	// But its session can't have it go on by asking it to end.
	s.Freeze(false)
	third := begin(ctx, t, s, ses, full, bash(ses, "trap '' TERM; "+loop("third")))
	if !moves("third") {
		t.Fatal("the third command does not run")
	}
	s.Freeze(true)
	if !still("third") {
		t.Error("a third card holds nothing")
	}
	signal := &wire.ProcessSignal{SessionID: ses.ID, PID: third.pid, Signal: "SIGTERM"}
	if _, _, err := capabilitytest.Do(ctx, t, s, capabilitytest.NewCall(t, ses, wire.TypeProcessSignal, signal)); err != nil {
		t.Fatal(err)
	}
	if !still("third") {
		t.Error("a command goes on while a card is open, because it was asked to end")
	}
	cancel()
	for _, r := range []*running{first, second, third, inside} {
		select {
		case <-r.done:
		case <-time.After(5 * time.Second):
			t.Error("a command that stands still does not end")
		}
	}
}

// While its session is paused nothing of it moves, contained or not, whenever it
// was started; its time limit stands still; all of it can be ended. Other
// sessions go on.
func TestPauseSession(t *testing.T) {
	s := newShell(t)
	ses, other := capabilitytest.NewSession(t, consent.ModeWork), capabilitytest.NewSession(t, consent.ModeWork)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	size := func(folder, name string) int64 {
		fi, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	moves := func(what, folder, name string) {
		t.Helper()
		was := size(folder, name)
		eventually(t, what, func() bool { return size(folder, name) > was })
	}
	still := func(what, name string) {
		t.Helper()
		time.Sleep(300 * time.Millisecond)
		was := size(ses.Folder, name)
		time.Sleep(500 * time.Millisecond)
		if size(ses.Folder, name) != was {
			t.Errorf("not still: %s", what)
		}
	}
	loop := func(name string) string {
		return "(setsid sh -c 'while :; do echo x >> " + name + "; sleep 0.02; done' &); while :; do echo y >> " + name + "; sleep 0.02; done"
	}
	all := map[string]*running{}
	for name, choice := range modes {
		all[name] = begin(ctx, t, s, ses, choice, bash(ses, loop("'"+name+"'")))
		limited := bash(ses, loop("'limited, "+name+"'"))
		limited.TimeoutMS = 4000
		all["limited, "+name] = begin(ctx, t, s, ses, choice, limited)
	}
	begin(ctx, t, s, other, contained, bash(other, loop("other")))
	for name := range all {
		moves(name+" runs", ses.Folder, name)
	}
	s.PauseSession(ses.ID, true)
	s.Freeze(true) // a card, meanwhile
	s.Freeze(false)
	for name := range modes {
		all["late, "+name] = begin(ctx, t, s, ses, modes[name], bash(ses, loop("'late, "+name+"'")))
	}
	time.Sleep(4 * time.Second)
	for name := range all {
		still(name, name)
	}
	moves("another session", other.Folder, "other")
	s.PauseSession(ses.ID, false)
	for name := range all {
		moves(name+" goes on", ses.Folder, name)
	}
	for name := range modes {
		if err := all["limited, "+name].wait(t); err != nil || !all["limited, "+name].res.Payload.(*wire.ProcessExited).TimedOut {
			t.Errorf("%s: the time limit did not go on: %v", name, err)
		}
	}
	// What stands still can be asked to end, and killed.
	s.PauseSession(ses.ID, true)
	for name, sig := range map[string]string{"contained": "SIGTERM", "full access": "SIGTERM", "late, contained": "SIGKILL", "late, full access": "SIGKILL"} {
		call := capabilitytest.NewCall(t, ses, wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: ses.ID, PID: all[name].pid, Signal: sig})
		if _, _, err := capabilitytest.Do(ctx, t, s, call); err != nil {
			t.Errorf("%s, %s: %v", name, sig, err)
		}
		if err := all[name].wait(t); err != nil {
			t.Errorf("%s, %s: %v", name, sig, err)
		}
	}
	// One that does not obey is held again, and ends with the session.
	s.PauseSession(ses.ID, false)
	deaf := begin(ctx, t, s, ses, contained, bash(ses, "trap '' TERM; "+loop("deaf")))
	moves("one that does not obey", ses.Folder, "deaf")
	s.PauseSession(ses.ID, true)
	call := capabilitytest.NewCall(t, ses, wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: ses.ID, PID: deaf.pid, Signal: "SIGTERM"})
	if _, _, err := capabilitytest.Do(ctx, t, s, call); err != nil {
		t.Error(err)
	}
	time.Sleep(2500 * time.Millisecond)
	still("one that does not obey", "deaf")
	if err := s.EndSession(ctx, ses.ID); err != nil {
		t.Error(err)
	}
	if err := deaf.wait(t); wire.CodeOf(err) != wire.CodeStopped {
		t.Errorf("%v", err)
	}
}
