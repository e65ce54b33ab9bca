package autogpt

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// Machines that lose their hub at the same moment come back spread out over the
// first window, as those of the other profile do, and dial once in each of the
// next.
func TestJitter(t *testing.T) {
	t.Parallel()
	const machines, parts = 300, 5
	const base = 10 * time.Second
	firsts := make(chan time.Duration, machines)
	var group sync.WaitGroup
	limit := make(chan struct{}, 50)
	for range machines {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c, err := New(Options{URL: "http://127.0.0.1:1", Token: func(context.Context) (string, error) { return "", nil }, Hello: func() msg.Hello { return msg.Hello{} },
				Folders: newFolders(), Handler: func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
					return wire.TypeAck, &wire.Empty{}, nil
				},
				Network: &tunnel.Network{}, Timings: Timings{BackoffBase: base}, Log: slog.New(slog.DiscardHandler),
				OnState: func(s tunnel.State) {
					if s.Phase == tunnel.Offline && !s.Retry.IsZero() {
						firsts <- time.Until(s.Retry)
						cancel()
					}
				}})
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	close(firsts)
	var counts [parts]int
	for w := range firsts {
		if w > base {
			t.Fatalf("the first wait is %s", w)
		}
		counts[min(max(int(w*parts/base), 0), parts-1)]++
	}
	for i, n := range counts {
		if n == 0 || n > 2*machines/parts {
			t.Errorf("%d of %d come back in part %d of the time: %v", n, machines, i, counts)
		}
	}
}

// A hub that is away for long is dialled in windows that grow, once in each; one
// that ends a connection in peace is dialled within the first window again.
func TestWindows(t *testing.T) {
	t.Parallel()
	const base, refused = 100 * time.Millisecond, 8
	h := newHub(t)
	h.refuse = func(*http.Request) int {
		if h.dials.Load() <= refused {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	began := time.Now()
	m := runMachine(t, h, func(o *Options) { o.Timings.BackoffBase, o.Timings.BackoffMax = base, time.Minute })
	p := take(t, h.control, "control connection")
	// The first dial is at once. The last falls into the last window.
	var before, window time.Duration = 0, base
	for range refused - 1 {
		before += window
		window = window * 14 / 10
	}
	if took := time.Since(began); took < before || took > before+window+3*time.Second {
		t.Errorf("the last dial came after %s, not %s to %s", took, before, before+window)
	}
	p.greet(nil)
	p.call("PING", object{})
	m.waitState(tunnel.Online)
	p.close(websocket.CloseGoingAway)
	if wait := time.Until(m.waitState(tunnel.Offline).Retry); wait > base {
		t.Errorf("after a close in peace it waits for %s", wait)
	}
	take(t, h.control, "next connection").greet(nil)
}
