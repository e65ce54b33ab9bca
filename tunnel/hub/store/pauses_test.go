package store

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A sandbox stands still and goes on; at the end of its time it is to be paused
// if it was opened so, and its machine's clock never ends it before that.
func TestPausedSandboxes(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	now := time.Now().Truncate(time.Second)
	s.now, s.steady = func() time.Time { return now }, func() time.Time { return now }
	if _, err := s.Connected(ctx, Machine{ID: "m1", User: OwnerID, Name: "PC"}); err != nil {
		t.Fatal(err)
	}
	add := func(id string, ttl time.Duration, pauses bool) {
		b, err := s.AddSandbox(ctx, Sandbox{ID: id, User: OwnerID, Machine: "m1", Principal: OwnPrincipal, EndPauses: pauses, AutoResume: pauses}, ttl)
		if err != nil || b.Life != ttl || b.Paused {
			t.Fatalf("added %+v, %v", b, err)
		}
	}
	add("long", time.Hour, true)
	add("short", time.Minute, true)
	add("ends", 10*time.Second, false)
	next := func(want string, in time.Duration) {
		t.Helper()
		b, err := s.NextPause(ctx)
		if b.ID != want || err != nil && want != "" || want != "" && s.PauseIn(b) != in {
			t.Errorf("next to be paused: %q in %s, %v; want %q in %s", b.ID, s.PauseIn(b), err, want, in)
		}
		if want == "" && !errors.Is(err, ErrNotFound) {
			t.Errorf("nothing is to be paused: %v", err)
		}
	}
	next("short", 55*time.Second)
	if err := s.Pause(ctx, "short", 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(ctx, "short", 24*time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("paused twice: %v", err)
	}
	if err := s.SetEnd(ctx, "short", time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("the end of one that stands still: %v", err)
	}
	next("long", time.Hour-pauseLead)
	list := func(q Query) (ids []string) {
		q.Principal, q.Limit, q.Oldest = OwnPrincipal, 10, true
		all, err := s.Sandboxes(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range all {
			ids = append(ids, b.ID)
		}
		slices.Sort(ids)
		return ids
	}
	for what, pair := range map[string][2][]string{
		"running": {list(Query{}), {"ends", "long"}}, "paused": {list(Query{Paused: true, NotRunning: true}), {"short"}},
		"both": {list(Query{Paused: true}), {"ends", "long", "short"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	now = now.Add(2 * time.Hour)
	b, err := s.Sandbox(ctx, "short")
	if err != nil || !b.Paused || b.Ended || b.Life != time.Minute || !b.AutoResume || b.EndsAt.Sub(now).Round(time.Minute) != 22*time.Hour {
		t.Errorf("after two hours: %+v, %v", b, err)
	}
	if err := s.Resume(ctx, "short", b.Life); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(ctx, "short", b.Life); !errors.Is(err, ErrNotFound) {
		t.Errorf("resumed twice: %v", err)
	}
	if err := s.SetEnd(ctx, "short", 2*time.Second); err != nil {
		t.Fatal(err)
	}
	// A short time is not spent on pausing early.
	next("short", 1600*time.Millisecond)
	end := now.Add(2 * time.Second)
	if err := errors.Join(s.Pause(ctx, "short", time.Hour), s.Unpause(ctx, "short", end)); err != nil {
		t.Fatal(err)
	}
	if b, err = s.Sandbox(ctx, "short"); err != nil || b.Paused || b.EndsAt.Sub(end).Abs() > time.Millisecond || b.Life != 2*time.Second {
		t.Errorf("after a pause that was taken back: %+v, %v", b, err)
	}
	now = end
	next("", 0)
	if err := s.Pause(ctx, "short", time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("paused after its end: %v", err)
	}
}
