//go:build linux

package shell_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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

// resisting are trees that do not let themselves be stopped, or found. Each
// writes to the file NAME as long as anything of it runs.
var resisting = map[string]string{
	"two that wake each other": `
def wake(other):
    while True:
        os.kill(other, signal.SIGCONT)
        os.kill(other, signal.SIGCONT)
        write()
me = os.getpid()
child = os.fork()
wake(child if child else me)`,
	"eight that wake all": `
for _ in range(3): os.fork()
os.setsid() if os.getpid() != os.getpgid(0) else None
me = os.getpid()
open("NAME.pids", "a").write("%d\n" % me)
while True:
    for pid in open("NAME.pids").read().split():
        try: os.kill(int(pid), signal.SIGCONT)
        except OSError: pass
    write()`,
	"one whose first thread has ended": `
def go():
    while True:
        write()
        time.sleep(0.001)
threading.Thread(target=go).start()
ctypes.CDLL(None).pthread_exit(None)`,
	"one that is always another": `
while True:
    if os.fork(): os._exit(0)
    write()`,
}

func resist(name, file string) string {
	return "exec python3 -c '\nimport os, signal, threading, time, ctypes\ndef write():\n    f = os.open(\"" + file + "\", os.O_WRONLY|os.O_CREAT|os.O_APPEND); os.write(f, b\"x\"); os.close(f)\n" +
		strings.ReplaceAll(resisting[name], "NAME", file) + "'"
}

// What does not let itself be stopped is ended: while a card is open nothing
// runs that could answer it, whatever it does.
func TestFreezeCantBeOutrun(t *testing.T) {
	s := newShell(t)
	for name := range resisting {
		for how, choice := range modes {
			t.Run(name+", "+how, func(t *testing.T) {
				ses := capabilitytest.NewSession(t, consent.ModeWork)
				file := filepath.Join(ses.Folder, "f")
				size := func() int64 {
					fi, err := os.Stat(file)
					if err != nil {
						return 0
					}
					return fi.Size()
				}
				inside := "f"
				if choice == full {
					inside = file
				}
				p := bash(ses, resist(name, inside))
				if name == "one that is always another" {
					p = bash(ses, "("+resist(name, inside)+") & sleep 600")
				}
				r := begin(t.Context(), t, s, ses, choice, p)
				eventually(t, "it runs", func() bool { return size() > 20 })
				if choice == full {
					s.Freeze(true)
					defer s.Freeze(false)
				} else {
					s.PauseSession(ses.ID, true)
				}
				was, since := size(), time.Now()
				eventually(t, "it stands still", func() bool {
					if now := size(); now != was {
						was, since = now, time.Now()
					}
					return time.Since(since) > 2*time.Second
				})
				if err := s.EndSession(context.Background(), ses.ID); err != nil {
					t.Error(err)
				}
				_ = r.wait(t)
				s.Freeze(false)
				was = size()
				time.Sleep(300 * time.Millisecond)
				if size() != was {
					t.Error("it runs on after its session's end")
				}
			})
		}
	}
}

// Nor can the end.
func TestTheEndCantBeOutrun(t *testing.T) {
	s := newShell(t)
	for name := range resisting {
		for how, choice := range modes {
			t.Run(name+", "+how, func(t *testing.T) {
				ses := capabilitytest.NewSession(t, consent.ModeWork)
				file := filepath.Join(ses.Folder, "f")
				size := func() int64 {
					fi, err := os.Stat(file)
					if err != nil {
						return 0
					}
					return fi.Size()
				}
				r := begin(t.Context(), t, s, ses, choice, bash(ses, resist(name, "f")))
				eventually(t, "it runs", func() bool { return size() > 20 })
				if err := s.EndSession(context.Background(), ses.ID); err != nil {
					t.Error(err)
				}
				_ = r.wait(t)
				was := size()
				time.Sleep(300 * time.Millisecond)
				if size() != was {
					t.Error("it runs on after its session's end")
				}
			})
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
