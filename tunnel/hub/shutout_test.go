//go:build unix

package hub_test

import (
	"errors"
	"testing"
	"time"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// Who is shut out while its person is asked: the question goes, and what was
// agreed to at that moment is closed again.
func TestShutOutWhileThePersonIsAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	ask := func(name string) (id string, asked wire.Message, done chan error) {
		t.Helper()
		if _, err := b.MakeKey(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		keys, err := b.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if k.Name == name {
				id = k.ID
			}
		}
		done = make(chan error, 1)
		go func() {
			_, err := b.Open(t.Context(), wire.SessionOpen{PrincipalID: id, PrincipalName: "Agent", TTLSeconds: 600, WaitMS: 60_000}, store.Sandbox{User: store.OwnerID, Principal: id, Template: "base"})
			done <- err
		}()
		return id, r.until(wire.TypeSessionOpen), done
	}
	refused := func(asked wire.Message, done chan error) {
		t.Helper()
		select {
		case err := <-done:
			if wire.CodeOf(err) != wire.CodeForbidden || !errors.Is(err, store.ErrRevoked) {
				t.Errorf("Open: %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("it still waits for the person")
		}
		if c := r.until(wire.TypeSessionClose); c.Payload.(*wire.SessionRef).SessionID != asked.Payload.(*wire.SessionOpen).SessionID {
			t.Errorf("closed %+v", c.Payload)
		}
	}

	id, asked, done := ask("one")
	other, waits, answer := ask("other")
	if err := b.RevokeKey(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if c := r.until(wire.TypeCancel); c.ID != asked.ID {
		t.Errorf("cancelled %s", c.ID)
	}
	refused(asked, done)

	// Another's question stays; it is shut out by another process, and before the
	// hub hears of that its person says yes.
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.RevokeKey(t.Context(), store.OwnerID, other); err != nil {
		t.Fatal(err)
	}
	r.send(wire.TypeSessionOpened, waits.ID, &wire.SessionOpened{Folder: "/home/ann/Photos", Mode: "work", TTLSeconds: 600})
	refused(waits, answer)
	if running, err := s.Running(t.Context()); err != nil || len(running) != 0 {
		t.Errorf("%+v run, %v", running, err)
	}
}
