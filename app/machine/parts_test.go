package machine

import (
	"context"
	"crypto/ed25519"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/app/store"
	"localpc/consent/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
func openMachine(t *testing.T, paths settings.Paths) *Machine {
	t.Helper()
	must(t, paths.Make())
	set, err := settings.Load(paths)
	must(t, err)
	st, err := store.Open(context.Background(), paths.Data)
	must(t, err)
	t.Cleanup(func() { st.Close() })
	l, err := record.Open(context.Background(), record.Options{Rows: st, Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Kept: true})
	must(t, err)
	m, err := New(Options{Paths: paths, Settings: set, Store: st, Record: l, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Hooks: Hooks{Publish: func(snapshot.Snapshot) {}}})
	must(t, err)
	return m
}
