// Package tunneltest joins a hub and a machine over the real protocol on
// loopback, for tests of steps 1, 2 and 6: a client's call goes the whole way
// to a handler of the test's own, and back.
package tunneltest

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
)

// Pair is a hub and one machine that is connected to it. Both end with the test.
type Pair struct {
	Hub *hub.Hub
	// URL of the hub, without a slash at the end.
	URL string
	// Key is the secret of a key named "Test program".
	Key       string
	MachineID string
	Token     string // the machine's
	// Client is the machine's end.
	Client *tunnel.Client
	// States tells of each change of the machine's connection; old ones are
	// dropped when nobody reads.
	States chan tunnel.State
}

// Option changes how a Pair is made.
type Option func(*hub.Options, *tunnel.Options)

// OverTLS is New with the hub behind a certificate for 127.0.0.1. The machine's
// Network has to trust it.
func OverTLS(t testing.TB, cert tls.Certificate, h tunnel.Handler, options ...Option) *Pair {
	t.Helper()
	return pair(t, &cert, h, options)
}

// Bulk says whether the two ends have a second socket for data; without it
// everything goes over the first, as with a hub or a proxy that takes none.
func Bulk(on bool) Option {
	return func(h *hub.Options, _ *tunnel.Options) { h.NoBulk = !on }
}

// New starts a hub and a machine whose requests h handles, and waits until
// they are joined.
func New(t testing.TB, h tunnel.Handler, options ...Option) *Pair {
	t.Helper()
	return pair(t, nil, h, options)
}

func pair(t testing.TB, cert *tls.Certificate, h tunnel.Handler, options []Option) *Pair {
	t.Helper()
	ho := hub.Options{Data: t.TempDir(), Name: "Test hub", Log: Log(t)}
	p := &Pair{MachineID: "machine-1", States: make(chan tunnel.State, 64)}
	to := tunnel.Options{
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: p.MachineID, DisplayName: "Mac-1", Platform: "linux", Arch: "amd64",
				Capabilities: []string{"files", "shell"}, Sessions: []string{}}
		},
		Status: func() wire.Status { return wire.Status{} }, Handler: h,
		BackoffBase: 10 * time.Millisecond, BackoffMax: 100 * time.Millisecond, Log: Log(t),
		OnState: func(s tunnel.State) {
			select {
			case p.States <- s:
			default:
			}
		},
	}
	for _, o := range options {
		o(&ho, &to)
	}
	p.Hub, p.URL = ServeTLS(t, ho, cert)
	ctx := t.Context()
	var err error
	if p.Token, err = p.Hub.MachineToken(ctx, p.MachineID, "Mac-1"); err != nil {
		t.Fatal(err)
	}
	if p.Key, err = p.Hub.MakeKey(ctx, "Test program"); err != nil {
		t.Fatal(err)
	}
	if to.URL == "" {
		to.URL = p.URL
	}
	to.Token = func(context.Context) (string, error) { return p.Token, nil }
	p.Client = Run(t, to)
	p.WaitFor(t, tunnel.Online)
	return p
}

// Serve starts a hub on loopback that ends with the test, and returns its URL.
func Serve(t testing.TB, o hub.Options) (*hub.Hub, string) { return ServeTLS(t, o, nil) }

// ServeTLS is Serve behind a certificate for 127.0.0.1; nil is plain.
func ServeTLS(t testing.TB, o hub.Options, cert *tls.Certificate) (*hub.Hub, string) {
	t.Helper()
	h, err := hub.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if cert != nil {
		url = "https://" + l.Addr().String()
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*cert}})
	}
	srv := h.Server()
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		// What is still being answered ends by itself, now that the hub has.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close()
		}
		wg.Wait()
	})
	return h, url
}

// Run runs a machine's end until the test ends.
func Run(t testing.TB, o tunnel.Options) *tunnel.Client {
	t.Helper()
	c, err := tunnel.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return c
}

// WaitFor reads States until one of that phase comes, and returns it.
func (p *Pair) WaitFor(t testing.TB, phase tunnel.Phase) tunnel.State {
	t.Helper()
	timeout := time.After(15 * time.Second)
	for {
		select {
		case s := <-p.States:
			if s.Phase == phase {
				return s
			}
		case <-timeout:
			t.Fatalf("the machine did not become %s", phase)
		}
	}
}

// Log writes to the test's log.
func Log(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{t, &sync.Mutex{}}, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type logWriter struct {
	t  testing.TB
	mu *sync.Mutex
}

func (w logWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t.Log(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}
