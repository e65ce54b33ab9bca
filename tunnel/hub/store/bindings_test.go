package store

import (
	"errors"
	"maps"
	"testing"
)

func TestBindings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	ann, bob := people(t, s)
	if _, err := s.Connected(ctx, Machine{ID: "m1", User: ann, Name: "Workshop"}); err != nil {
		t.Fatal(err)
	}
	b := Binding{Session: "i1", User: ann, Machine: "m1", Root: "/home/ann/task", Fingerprint: "f", Revision: 1, Grant: "v1.x.y", Env: map[string]string{"A": "1"}}
	if err := s.SetBinding(ctx, b); err != nil {
		t.Fatal(err)
	}
	b.Revision, b.Grant = 2, "v1.z.y"
	if err := s.SetBinding(ctx, b); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir) // as after a restart
	got, err := s.Binding(ctx, "i1")
	if err != nil || got.Revision != 2 || got.Grant != "v1.z.y" || got.Root != b.Root || got.User != ann || !maps.Equal(got.Env, b.Env) {
		t.Errorf("kept: %+v, %v", got, err)
	}
	if list, err := s.Bindings(ctx, ann, "m1"); err != nil || len(list) != 1 || list[0].Session != "i1" {
		t.Errorf("Ann's on m1: %+v, %v", list, err)
	}
	if list, err := s.Bindings(ctx, bob, "m1"); err != nil || len(list) != 0 {
		t.Errorf("Bob's on m1: %+v, %v", list, err)
	}
	for range 2 {
		if err := s.DeleteBinding(ctx, "i1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Binding(ctx, "i1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted one: %v", err)
	}
}

func TestFolder(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	ann, bob := people(t, s)
	if _, err := s.Connected(ctx, Machine{ID: "m1", User: ann, Name: "Workshop"}); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Folder(ctx, ann, "m1"); f != "" || err != nil {
		t.Errorf("before it was set: %q, %v", f, err)
	}
	if err := s.SetFolder(ctx, bob, "m1", "/home/ann"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Bob sets Ann's: %v", err)
	}
	for _, folder := range []string{"/home/ann/a", "/home/ann/b"} {
		if err := s.SetFolder(ctx, ann, "m1", folder); err != nil {
			t.Fatal(err)
		}
		if f, _ := s.Folder(ctx, ann, "m1"); f != folder {
			t.Errorf("set %q, got %q", folder, f)
		}
	}
	if f, _ := s.Folder(ctx, bob, "m1"); f != "" {
		t.Errorf("Bob gets Ann's: %q", f)
	}
	if err := s.SetFolder(ctx, ann, "m1", ""); err != nil {
		t.Fatal(err)
	}
	if f, _ := s.Folder(ctx, ann, "m1"); f != "" {
		t.Errorf("forgotten: %q", f)
	}
}
