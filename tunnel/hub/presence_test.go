package hub_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// The file through which commands tell a hub of changes is removed, as a
// tidy person does: what is revoked afterwards still ends within a second.
func TestRevokedAfterPokeFileIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	for range 2 {
		must(t, os.Remove(filepath.Join(dir, "hub.poke")))
		eventually(t, "the file is there again", func() bool {
			_, err := os.Stat(filepath.Join(dir, "hub.poke"))
			return err == nil
		})
	}
	s, err := store.OpenBeside(t.Context(), dir)
	must(t, err)
	defer s.Close()
	must(t, s.RevokeMachine(t.Context(), "", "m1"))
	must(t, s.Poke())
	began := time.Now()
	r.closed(wire.CloseRevoked)
	if d := time.Since(began); d > time.Second {
		t.Errorf("it was let go after %s", d)
	}
}

// What was revoked by a word that never came ends when the hub looks by itself.
func TestRevokedWithoutAPoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A slow computer is not a silent one.
	b := newBench(t, func(o *hub.Options) { o.Data, o.Heartbeat, o.PongTimeout = dir, beat, 4*time.Second })
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	s, err := store.OpenBeside(t.Context(), dir)
	must(t, err)
	defer s.Close()
	must(t, s.RevokeMachine(t.Context(), "", "m1"))
	r.closed(wire.CloseRevoked)
}
