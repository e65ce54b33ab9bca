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
	cancel()
	for _, r := range []*running{first, second, inside} {
		select {
		case <-r.done:
		case <-time.After(5 * time.Second):
			t.Error("a command that stands still does not end")
		}
	}
}
