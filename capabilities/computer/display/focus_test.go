package display

import (
	"testing"
	"time"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// atWork is a person who was at work at a time.
type atWork struct {
	input
	at time.Time
}

func (w atWork) Busy(t time.Time) bool { return w.at.After(t) }

func TestTheKeyboardStaysWithAPersonAtWork(t *testing.T) {
	now := time.Now()
	d := &desk{input: atWork{at: now}}
	if err := d.Focus(t.Context(), space.Window{ID: 1}, true, now.Add(-time.Second)); wire.CodeOf(err) != wire.CodePerson {
		t.Errorf("the person was at work since: %v", err)
	}
	if err := d.Focus(t.Context(), space.Window{ID: 1}, true, now); wire.CodeOf(err) == wire.CodePerson {
		t.Errorf("the person has rested since: %v", err)
	}
}
