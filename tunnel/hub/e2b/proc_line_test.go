package e2b

import (
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// Whoever waited in line for nothing learns what the computer said: how many are
// under way, and what to do about it. So does one whose turn never came.
func TestWaitedInLineForNothing(t *testing.T) {
	f := &Face{o: Options{Wait: 300 * time.Millisecond}, lines: map[string]*line{}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := &call{sandbox: store.Sandbox{ID: "i1"}, arrived: time.Now()}
			err := f.inLine(t.Context(), c, forCommands, func() error {
				return wire.Errorf(wire.CodeOverloaded, "This session already has 64 commands under way; end one of them first.")
			})
			if wire.CodeOf(err) != wire.CodeOverloaded || !strings.Contains(err.Error(), "64 commands") || !strings.Contains(err.Error(), "end one of them") {
				t.Errorf("it is told: %v", err)
			}
		})
	}
	wg.Wait()
	if len(f.lines) != 0 {
		t.Errorf("%d lines are left", len(f.lines))
	}
}
