package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestResults(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	add := func(id, principal string) {
		t.Helper()
		if err := s.AddResult(ctx, Result{ID: id, User: OwnerID, Principal: principal, Title: "Run " + id}); err != nil {
			t.Fatal(err)
		}
	}
	add("a", "k1")
	if r, err := s.Result(ctx, "k1", "a"); err != nil || !r.Done.IsZero() || r.Title != "Run a" {
		t.Errorf("before it came: %+v, %v", r, err)
	}
	if err := s.FinishResult(ctx, "a", []byte(`{"ok":1}`)); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Result(ctx, "k1", "a"); err != nil || r.Done.IsZero() || string(r.Data) != `{"ok":1}` {
		t.Errorf("after it came: %+v, %v", r, err)
	}
	if _, err := s.Result(ctx, "k2", "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("another program may read it: %v", err)
	}
	if err := s.FinishResult(ctx, "a", []byte(`{}`)); !errors.Is(err, ErrNotFound) {
		t.Errorf("it came twice: %v", err)
	}
	if err := s.AddResult(ctx, Result{ID: "n", User: "nobody", Principal: "k1"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("added for nobody: %v", err)
	}

	// What a hub that was stopped did not bring is not waited for.
	add("b", "k1")
	if err := s.AbandonResults(ctx, []byte(`{"lost":1}`)); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Result(ctx, "k1", "b"); err != nil || string(r.Data) != `{"lost":1}` {
		t.Errorf("abandoned: %+v, %v", r, err)
	}
	if r, err := s.Result(ctx, "k1", "a"); err != nil || string(r.Data) != `{"ok":1}` {
		t.Errorf("one that had come: %+v, %v", r, err)
	}

	now := s.steady()
	s.steady = func() time.Time { return now.Add(resultFor + time.Minute) }
	if _, err := s.Result(ctx, "k1", "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an hour later: %v", err)
	}
	add("c", "k1")
	if list, err := s.Results(ctx, "k1"); err != nil || len(list) != 1 || list[0].ID != "c" {
		t.Errorf("an hour later there are %+v, %v", list, err)
	}
}

func TestResultsAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	kept := func() int {
		list, err := s.Results(ctx, "k1")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for i := range maxResults + 10 {
		id := fmt.Sprintf("r%03d", i)
		if err := s.AddResult(ctx, Result{ID: id, User: OwnerID, Principal: "k1"}); err != nil {
			t.Fatal(err)
		}
		if err := s.FinishResult(ctx, id, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if n := kept(); n != maxResults {
		t.Errorf("%d are kept, not %d", n, maxResults)
	}
	for i := range 4 {
		id := fmt.Sprintf("large%d", i)
		if err := s.AddResult(ctx, Result{ID: id, User: OwnerID, Principal: "k1"}); err != nil {
			t.Fatal(err)
		}
		if err := s.FinishResult(ctx, id, bytes.Repeat([]byte("x"), maxResultBytes/2+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Result(ctx, "k1", "large3"); err != nil {
		t.Errorf("the newest: %v", err)
	}
	if _, err := s.Result(ctx, "k1", "large2"); !errors.Is(err, ErrNotFound) {
		t.Errorf("more than fits is kept: %v", err)
	}
	if n := kept(); n != 1 {
		t.Errorf("%d are kept beside what fills the room", n)
	}
}
