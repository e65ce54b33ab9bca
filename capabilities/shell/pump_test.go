//go:build linux

package shell

import (
	"testing"
	"time"
)

// A command that was silent for long has left nothing out, however long its
// last word takes.
func TestSilenceIsNoStall(t *testing.T) {
	p := newPump(20 * time.Second)
	p.moved = time.Now().Add(-time.Hour)
	sent := make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() { close(sent) })
	p.finish(sent, func() { t.Error("its reader was given up") })
	if p.truncated {
		t.Error("output was left out")
	}
}
