package machine

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/app/store"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(spawnDir)
		os.Exit(code)
	}))
}

// spawnDir is where a test has built localpc-spawn; "" where none has.
var spawnDir string

// newMachine puts a machine together on a home, a data directory, a store and
// a record of its own. It is not run.
func newMachine(t *testing.T) *Machine {
	t.Helper()
	// Short: a control socket's path has little room.
	dir, err := os.MkdirTemp("", "m")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	home := filepath.Join(dir, "home", "anna")
	must(t, os.MkdirAll(home, 0o755))
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
	must(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	return openMachine(t, settings.Paths{Data: filepath.Join(home, ".local", "share", "localpc")})
}

// openMachine is newMachine after a restart.
func openMachine(t *testing.T, paths settings.Paths, change ...func(*Options)) *Machine {
	t.Helper()
	must(t, paths.Make())
	set, err := settings.Load(paths)
	must(t, err)
	st, err := store.Open(context.Background(), paths.Data)
	must(t, err)
	t.Cleanup(func() { st.Close() })
	l, err := record.Open(context.Background(), record.Options{Rows: st, Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Kept: true})
	must(t, err)
	o := Options{Paths: paths, Settings: set, Store: st, Record: l, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Hooks: Hooks{Publish: func(snapshot.Snapshot) {}}}
	for _, fn := range change {
		fn(&o)
	}
	m, err := New(o)
	must(t, err)
	return m
}

// probe is an executor of the test's own, at the edge where the real ones
// stand: it says what it is told to and runs what it is told to.
type probe struct {
	mu       sync.Mutex
	describe func(capabilities.Call) capabilities.Description
	run      func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error)
	ended    []string // sessions
	frozen   []bool
	paused   []bool
}

func (p *probe) PauseSession(_ string, on bool) {
	p.mu.Lock()
	p.paused = append(p.paused, on)
	p.mu.Unlock()
}

func (p *probe) Freeze(on bool) {
	p.mu.Lock()
	p.frozen = append(p.frozen, on)
	p.mu.Unlock()
}

func (p *probe) Name() string       { return "shell" }
func (p *probe) Types() []wire.Type { return []wire.Type{wire.TypeProcessStart, wire.TypeFileWrite} }
func (p *probe) Running(string) int { return 0 }
func (p *probe) Close() error       { return nil }
func (p *probe) EndSession(_ context.Context, s string) error {
	p.mu.Lock()
	p.ended = append(p.ended, s)
	p.mu.Unlock()
	return nil
}

func (p *probe) Describe(_ context.Context, c capabilities.Call) (capabilities.Description, error) {
	if p.describe != nil {
		return p.describe(c), nil
	}
	return capabilities.Description{Action: "do", Title: "Do it", Sentence: "%s wants to do it.", Exact: "it", Payload: "it",
		Effects: []consent.Effect{{Kind: consent.EffectOverwrite, Text: "replaces a file"}}, Risk: consent.RiskNormal}, nil
}

func (p *probe) Run(ctx context.Context, c capabilities.Call, g consent.Grant, out capabilities.Output) (capabilities.Result, error) {
	if p.run != nil {
		return p.run(ctx, c, g, out)
	}
	if err := g.Check(consent.DigestOf("it"), ""); err != nil {
		return capabilities.Result{}, err
	}
	return exited(), nil
}

func exited() capabilities.Result {
	return capabilities.Result{Type: wire.TypeProcessExited, Payload: &wire.ProcessExited{}, Outcome: "exit code 0"}
}

// person is a surface that answers each card as told, in place of a screen.
type person struct {
	m      *Machine
	mu     sync.Mutex
	answer func(consent.Request) (consent.Answer, bool) // false: not at all
	cards  []consent.Request
}

func (p *person) Present(r consent.Request, _ snapshot.CardInfo) (bool, error) {
	p.mu.Lock()
	p.cards = append(p.cards, r)
	a, now := p.answer(r)
	p.mu.Unlock()
	if now {
		go func() { _ = p.m.asks.Answer(r.ID, a) }() // the queue holds its lock while it presents
	}
	return true, nil
}

func (p *person) Update(consent.Request, snapshot.CardInfo) {}
func (p *person) Withdraw(string)                           {}

func (p *person) seen() []consent.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]consent.Request(nil), p.cards...)
}

func wantCode(t *testing.T, err error, code wire.Code) {
	t.Helper()
	if wire.CodeOf(err) != code {
		t.Errorf("%v (%s), want %s", err, wire.CodeOf(err), code)
	}
}

func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: nothing within 20 s", what)
		panic("unreachable")
	}
}

// decisionOf is the newest decision that the record has of a request.
func decisionOf(t *testing.T, m *Machine, id string) (d record.Decision, ok bool) {
	t.Helper()
	entries, err := m.o.Store.EntriesByRef(t.Context(), id)
	must(t, err)
	for _, e := range entries {
		if e.Kind == record.KindDecision {
			must(t, json.Unmarshal(e.Body, &d))
			ok = true
		}
	}
	return d, ok
}
