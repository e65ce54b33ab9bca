// Package e2b is step 1 for programs that use an E2B SDK, unmodified: the
// control API (create, connect, kill, list, …), and what the SDK asks of a
// sandbox (processes, directories, files). A sandbox is a session on a
// person's own computer. What does not make sense there is refused with a
// sentence, never silently done otherwise.
package e2b

//go:generate sh generate.sh

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// envdVersion tells the SDKs what they may ask for.
const envdVersion = "0.6.13"

// Backend is what the face needs of the hub. Errors are *wire.Error, except
// where store.ErrNotFound is named.
type Backend interface {
	// Do sends one request to a sandbox's machine; the end of ctx cancels it there.
	Do(ctx context.Context, b store.Sandbox, t wire.Type, p wire.Payload) (Stream, error)
	// Open asks for a session the person of b's user: on b.Machine (an id or a
	// name), or the machine that connected last.
	Open(ctx context.Context, o wire.SessionOpen, b store.Sandbox) (store.Sandbox, error)
	// SetTTL moves a session's end to ttl from now.
	SetTTL(ctx context.Context, b store.Sandbox, ttl time.Duration) error
	// End ends a session; store.ErrNotFound when it was not running.
	End(ctx context.Context, b store.Sandbox, reason string) error
	// Online tells whether a sandbox's machine is connected.
	Online(b store.Sandbox) bool
}

// Stream is one request on its way.
type Stream = wire.Stream

// Options build a Face; all are needed.
type Options struct {
	Backend Backend
	Store   *store.Store
	// Wait is how long a person may take, counted from the arrival of a call.
	Wait time.Duration
	Log  *slog.Logger
}

// Face serves E2B clients.
type Face struct {
	o      Options
	ctx    context.Context // processes outlive the call that started them, not the face
	cancel context.CancelFunc
	wg     sync.WaitGroup // one for each process

	turns    turns         // of what pauses and resumes a sandbox, by its id
	ends     chan struct{} // wakes pauseAtEnd
	callers  callers       // with signatures
	watchers watchers
	declined denials

	mu    sync.Mutex
	procs map[string]map[*proc]struct{} // by sandbox; guarded by mu
	sizes map[string]size               // by machine; guarded by mu
	lines map[string]*line              // by sandbox and kind, where one stands in line; guarded by mu
}

// New makes a face that ends with ctx or Close.
func New(ctx context.Context, o Options) *Face {
	f := &Face{o: o, callers: newCallers(time.Now), ends: make(chan struct{}, 1), procs: map[string]map[*proc]struct{}{}, lines: map[string]*line{}, sizes: map[string]size{}}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.wg.Go(f.pauseAtEnd)
	return f
}

// Close lets go of every process and waits.
func (f *Face) Close() {
	f.cancel()
	f.wg.Wait()
}

// Authenticate finds the key that a call came with, in X-API-KEY or as a
// bearer token. store.ErrNotFound when there is none that is good.
func Authenticate(s *store.Store, r *http.Request) (store.Key, error) {
	secret := r.Header.Get("X-API-KEY")
	if secret == "" {
		secret, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	return s.FindKey(r.Context(), secret)
}

// accessToken is what opens one sandbox, and signs its file addresses.
func (f *Face) accessToken(sandbox string) string {
	mac := hmac.New(sha256.New, f.o.Store.Secret())
	mac.Write([]byte("sandbox access\x00" + sandbox))
	return hex.EncodeToString(mac.Sum(nil))
}

// least is the shortest wait that is sent: 0 would mean "as long as you like".
const least = time.Millisecond

// wait is how long the person has for a call: until 5 s before its client
// gives up, where that is known, and Wait at most, counted from its arrival.
func (f *Face) wait(c *call) int {
	wait := f.o.Wait
	if c.timeout > 0 {
		wait = min(wait, c.timeout-5*time.Second)
	}
	wait -= time.Since(c.arrived)
	return int(max(wait, least).Milliseconds())
}
