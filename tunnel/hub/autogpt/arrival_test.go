package autogpt

import (
	"context"
	"fmt"
	"testing"
	"time"

	"localpc/tunnel/wire"
)

// Whoever waits for a connection that does not come leaves nothing behind, and
// takes nothing from who waits on.
func TestAwaitLeavesNothing(t *testing.T) {
	t.Parallel()
	f := New(t.Context(), Options{})
	defer f.Close()
	for i := range 100 {
		if err := f.Await(t.Context(), fmt.Sprintf("chat %d", i), time.Microsecond); wire.CodeOf(err) != wire.CodeOffline {
			t.Fatalf("nothing came: %v", err)
		}
	}
	waits := make(chan error, 1)
	go func() { waits <- f.Await(t.Context(), "chat", 20*time.Second) }()
	left := func(n int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			f.mu.Lock()
			got := len(f.arrivals)
			f.mu.Unlock()
			if got == n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d sessions are waited for, not %d", got, n)
			}
		}
	}
	left(1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Await(gone, "chat", time.Second); wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("cancelled: %v", err)
	}
	left(1)
	c := &conn{f: f, session: "chat"}
	f.mu.Lock()
	f.chats["chat"] = c
	f.mu.Unlock()
	f.arrived(c)
	if err := <-waits; err != nil {
		t.Errorf("it came: %v", err)
	}
	left(0)
}
