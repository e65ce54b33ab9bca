package tunnel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// tokens gives "token-1", then "token-2", each when the one before was refused
// or is renewed.
type tokens struct {
	mu       sync.Mutex
	n        int
	rejected []string
	fails    error // what Rejected says
	renewed  chan struct{}
}

func (k *tokens) options(o *tunnel.Options) {
	k.n, k.renewed = 1, make(chan struct{})
	o.Token = func(context.Context) (string, error) { return k.now(), nil }
	o.Rejected = func(_ context.Context, token string) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.rejected = append(k.rejected, token)
		if k.fails == nil {
			k.n++
		}
		return k.fails
	}
	o.Fresh = func(ctx context.Context, token string) (string, error) {
		select {
		case <-k.renewed:
			k.mu.Lock()
			k.n++
			k.mu.Unlock()
			return k.now(), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (k *tokens) now() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("token-%d", k.n)
}

func (k *tokens) refused() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.rejected, " ")
}

// dials counts them, and answers each with a status; 0 takes it.
type dials struct {
	mu     sync.Mutex
	bearer []string
}

func (d *dials) before(status func(n int) int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		d.mu.Lock()
		d.bearer = append(d.bearer, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		n := len(d.bearer)
		d.mu.Unlock()
		if s := status(n); s != 0 {
			w.WriteHeader(s)
			return false
		}
		return true
	}
}

func (d *dials) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.bearer, " ")
}

// ends waits for Run's end, and a while longer for dials that must not come.
func (n *near) ends(t *testing.T, want error) {
	t.Helper()
	select {
	case err := <-n.done:
		if !errors.Is(err, want) {
			t.Errorf("ended with %v, want %v", err, want)
		}
		n.done <- err
	case <-time.After(10 * time.Second):
		t.Fatal("it dials again and again")
	}
	time.Sleep(300 * time.Millisecond)
}

// LanternOps/breeze#401, punkpeye/mcp-remote#338: a hub that says 401 for ever
// hears two dials and one renewal.
func TestNoStorm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second   int
		fails    error
		want     error
		dials    string
		sentence string
	}{
		"401 for ever":         {401, nil, tunnel.ErrUnauthorized, "token-1 token-2", "Sign in again"},
		"403 with the new one": {403, nil, tunnel.ErrForbidden, "token-1 token-2", "refuses"},
		"no other token":       {401, fmt.Errorf("%w: the hub revoked it", tunnel.ErrUnauthorized), tunnel.ErrUnauthorized, "token-1", "Sign in again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, d, k := newFar(t), &dials{}, &tokens{fails: c.fails}
			f.before = d.before(func(n int) int {
				if n == 1 {
					return 401
				}
				return c.second
			})
			n := f.machine(t, echo, k.options)
			n.ends(t, c.want)
			if d.all() != c.dials || k.refused() != "token-1" {
				t.Errorf("dials with %q, renewals after %q", d.all(), k.refused())
			}
			if s := n.until(t, tunnel.Offline); !strings.Contains(s.Reason, c.sentence) || !s.Retry.IsZero() {
				t.Errorf("it says %+v", s)
			}
		})
	}
	t.Run("accepted and ended, for ever", func(t *testing.T) {
		t.Parallel()
		f, d, k := newFar(t), &dials{}, &tokens{}
		f.before = d.before(func(int) int { return 0 })
		n := f.machine(t, echo, k.options)
		for range 2 {
			c := f.accept()
			_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(wire.CloseUnauthorized, "expired"), time.Now().Add(time.Second))
		}
		n.ends(t, tunnel.ErrUnauthorized)
		if d.all() != "token-1 token-2" {
			t.Errorf("dials with %q", d.all())
		}
	})
}

// A token that ended is renewed once, and the connection made again at once.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	f, d, k := newFar(t), &dials{}, &tokens{}
	f.before = d.before(func(n int) int {
		if n == 2 {
			return 401 // the hub's clock is a little ahead
		}
		return 0
	})
	n := f.machine(t, echo, k.options, func(o *tunnel.Options) { o.BackoffBase, o.BackoffMax = time.Hour, time.Hour })
	c := f.accept()
	n.until(t, tunnel.Online)
	c.works()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(wire.CloseUnauthorized, "expired"), time.Now().Add(time.Second))
	n.ends(t, tunnel.ErrUnauthorized) // the renewed one is refused as well
	if d.all() != "token-1 token-2" {
		t.Errorf("dials with %q", d.all())
	}

	f, d, k = newFar(t), &dials{}, &tokens{}
	f.before = d.before(func(int) int { return 0 })
	n = f.machine(t, echo, k.options, func(o *tunnel.Options) { o.BackoffBase, o.BackoffMax = time.Hour, time.Hour })
	c = f.accept()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(wire.CloseUnauthorized, "expired"), time.Now().Add(time.Second))
	c = f.accept()
	n.until(t, tunnel.Online)
	c.works()
	if d.all() != "token-1 token-2" || k.refused() != "token-1" {
		t.Errorf("dials with %q, renewals after %q", d.all(), k.refused())
	}
}

// Where the renewal can't be had now, it is tried again later, not at once.
func TestRenewalLater(t *testing.T) {
	t.Parallel()
	f, d, k := newFar(t), &dials{}, &tokens{fails: wire.Errorf(wire.CodeInternal, "The keychain is locked.")}
	f.before = d.before(func(int) int { return 401 })
	n := f.machine(t, echo, k.options, func(o *tunnel.Options) { o.BackoffBase, o.BackoffMax = time.Hour, time.Hour })
	if s := n.until(t, tunnel.Offline); s.Reason != "The keychain is locked." || s.Retry.IsZero() {
		t.Errorf("it says %+v", s)
	}
	time.Sleep(200 * time.Millisecond)
	if d.all() != "token-1" {
		t.Errorf("dials with %q", d.all())
	}
}

// What runs is not disturbed by the end of the token it began with.
func TestRenewedInMidSession(t *testing.T) {
	t.Parallel()
	f, k := newFar(t), &tokens{}
	running, release := make(chan struct{}), make(chan struct{})
	n := f.machine(t, func(ctx context.Context, _ wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		close(running)
		select {
		case <-release:
			return wire.TypeAck, &wire.Empty{}, nil
		case <-ctx.Done():
			return "", nil, context.Cause(ctx)
		}
	}, k.options)
	c := f.accept()
	n.until(t, tunnel.Online)
	id := c.send(wire.TypeFileDelete, "", &wire.FilePath{SessionID: "s", Path: "p"})
	<-running
	for i := 2; i <= 3; i++ {
		k.renewed <- struct{}{}
		m := c.read()
		if a, ok := m.Payload.(*wire.Authorize); !ok || a.Token != fmt.Sprintf("token-%d", i) {
			t.Fatalf("the hub heard %s %+v", m.Type, m.Payload)
		}
	}
	close(release)
	if m := c.read(); m.ID != id || m.Type != wire.TypeAck {
		t.Errorf("the command ended with %s %+v", m.Type, m.Payload)
	}
	// The hub ends the connection over the newest one.
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(wire.CloseUnauthorized, "expired"), time.Now().Add(time.Second))
	f.accept()
	n.until(t, tunnel.Online)
	if k.refused() != "token-3" {
		t.Errorf("renewals after %q", k.refused())
	}
}

// What stands before a hub may turn everybody away for a while: an unattended
// computer comes back by itself then, with the token it has.
func TestTurnedAwayForAWhile(t *testing.T) {
	t.Parallel()
	f, d, k := newFar(t), &dials{}, &tokens{}
	f.before = d.before(func(n int) int {
		if n <= 2 {
			return 403
		}
		return 0
	})
	n := f.machine(t, echo, k.options)
	if s := n.until(t, tunnel.Offline); !strings.Contains(s.Reason, "turns this computer away") || s.Retry.IsZero() {
		t.Errorf("it says %+v", s)
	}
	f.accept()
	n.until(t, tunnel.Online)
	if d.all() != "token-1 token-1 token-1" || k.refused() != "" {
		t.Errorf("dials with %q, renewals after %q", d.all(), k.refused())
	}
}
