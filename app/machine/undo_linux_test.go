package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/kept"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/capabilities/files"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

// keeping is a machine whose file requests are kept, with one open session.
func keeping(t *testing.T) (m *Machine, folder string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	folder = filepath.Join(home, "project")
	must(t, os.Mkdir(folder, 0o755))
	m = openMachine(t, settings.Paths{Data: filepath.Join(home, "d")}, func(o *Options) {
		k, err := kept.Open(t.Context(), kept.Options{Dir: o.Paths.Versions(), Store: o.Store, Log: o.Log,
			Limit: func() int64 { return o.Settings.Get().KeepBytes() }})
		must(t, err)
		t.Cleanup(k.Close)
		o.Kept = k
		o.Executors = []capabilities.Capability{files.New(files.Options{Journal: filepath.Join(o.Paths.Data, "journal"), Keep: k, Log: o.Log})}
		o.Policy = policy.Policy{Preset: policy.PresetFull, Folder: folder}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	before, _ := m.o.Record.Head()
	go func() { defer close(done); _ = m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	// It begins by clearing what an earlier run left, and then says so.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if now, _ := m.o.Record.Head(); now > before {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the machine does not start")
		}
	}
	send(t, m, wire.TypeSessionOpen, &wire.SessionOpen{SessionID: "s1", PrincipalID: "p1", PrincipalName: "Claude", Folder: folder})
	return m, folder
}

func send(t *testing.T, m *Machine, typ wire.Type, p wire.Payload) {
	t.Helper()
	must(t, p.Validate())
	if _, _, err := m.dispatch(t.Context(), wire.Message{Type: typ, Payload: p}, here{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, m *Machine, name string) {
	t.Helper()
	send(t, m, wire.TypeFileDelete, &wire.FileDelete{SessionID: "s1", Path: name})
}

func (m *Machine) entry(t *testing.T, what string) snapshot.Entry {
	t.Helper()
	for _, e := range m.Snapshot().Entries {
		if e.What == what {
			return e
		}
	}
	t.Fatalf("the log has no %q", what)
	panic("unreachable")
}

func TestUndoIsARecordedRequest(t *testing.T) {
	m, folder := keeping(t)
	must(t, os.WriteFile(filepath.Join(folder, "a"), []byte("mine"), 0o600))
	remove(t, m, "a")
	e := m.entry(t, "Delete a")
	if !e.CanUndo || m.Snapshot().Sessions[0].CanUndo != 1 {
		t.Fatalf("it can't be undone: %+v", e)
	}
	reply, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Undo, Entry: e.ID})
	if err != nil || reply.Text != "Undone: Delete a." || reply.Question != "" {
		t.Fatalf("%+v, %v", reply, err)
	}
	if b, _ := os.ReadFile(filepath.Join(folder, "a")); string(b) != "mine" {
		t.Errorf("it has %q", b)
	}
	if e := m.entry(t, "Delete a"); !e.Undone || e.CanUndo {
		t.Errorf("undone, the entry says %+v", e)
	}
	u := m.entry(t, "Undo: Delete a")
	if u.Who != "You" || u.Outcome != snapshot.Done || u.Result != "1 change taken back" || !u.CanUndo {
		t.Errorf("the undoing's entry says %+v", u)
	}
	if d, ok := decisionOf(t, m, u.ID); !ok || d.Decision.By != "you" || d.Decision.Outcome != consent.Allowed {
		t.Errorf("the record says %+v, %v", d, ok)
	}
	if n := m.Snapshot().Sessions[0].CanUndo; n != 0 {
		t.Errorf("%d requests of the session can be undone", n)
	}
	if _, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Undo, Entry: e.ID}); err == nil || !strings.Contains(err.Error(), "undone already") {
		t.Errorf("once more: %v", err)
	}
	if _, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Undo, Entry: u.ID}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "a")); err == nil {
		t.Error("the undoing was not undone")
	}
}

func TestUndoOfASessionAsks(t *testing.T) {
	m, folder := keeping(t)
	for _, name := range []string{"a", "b"} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte("mine"), 0o600))
		remove(t, m, name)
	}
	must(t, os.WriteFile(filepath.Join(folder, "a"), []byte("newer"), 0o600))
	before := len(m.Snapshot().Entries)
	undo := snapshot.Intent{Kind: snapshot.UndoSession, Entry: m.entry(t, "Delete b").ID}
	reply, err := m.Intend(t.Context(), undo)
	if err != nil || !strings.Contains(reply.Question, "a changed after this") {
		t.Fatalf("%+v, %v", reply, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "b")); err == nil || len(m.Snapshot().Entries) != before {
		t.Error("something was done before a yes")
	}
	undo.Entry, undo.Way = "s1", "anyway"
	reply, err = m.Intend(t.Context(), undo)
	if err != nil || reply.Text != "Undone: 2 requests of a session." {
		t.Fatalf("%+v, %v", reply, err)
	}
	for _, name := range []string{"a", "b"} {
		if b, _ := os.ReadFile(filepath.Join(folder, name)); string(b) != "mine" {
			t.Errorf("%s has %q", name, b)
		}
	}
	d, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.GetDetail, Entry: m.entry(t, "Undo: 2 requests of a session").ID})
	must(t, err)
	if d.Detail.Exact != "Delete b\nDelete a" || !d.Detail.Entry.CanUndo {
		t.Errorf("its detail says %+v", d.Detail)
	}
}

// In a folder that can't be written to, the person learns why nothing was undone.
func TestUndoWhereNothingMayBeWritten(t *testing.T) {
	m, folder := keeping(t)
	must(t, os.WriteFile(filepath.Join(folder, "a"), []byte("mine"), 0o600))
	remove(t, m, "a")
	say := "You may not change something in that folder"
	if os.Geteuid() == 0 { // who may change everything, but on a disk that can only be read
		say = "can only be read"
		must(t, syscall.Mount(folder, folder, "", syscall.MS_BIND, ""))
		t.Cleanup(func() { must(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
		must(t, syscall.Mount("", folder, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	} else {
		must(t, os.Chmod(folder, 0o500))
		t.Cleanup(func() { must(t, os.Chmod(folder, 0o755)) })
	}
	undo := snapshot.Intent{Kind: snapshot.Undo, Entry: m.entry(t, "Delete a").ID}
	if _, err := m.Intend(t.Context(), undo); err == nil || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), "nothing was undone") {
		t.Errorf("%v", err)
	}
	for err, say := range map[error]string{&os.PathError{Op: "open", Path: "a", Err: syscall.EACCES}: "You may not change", fmt.Errorf("a: %w", syscall.EROFS): "can only be read", os.ErrClosed: "log says why"} {
		if got := string(notUndone(err)); !strings.Contains(got, say) {
			t.Errorf("%v is told as %q", err, got)
		}
	}
}

// Undo goes on in a pause, and with the session closed: it is the person's.
func TestUndoInAPause(t *testing.T) {
	m, folder := keeping(t)
	must(t, os.WriteFile(filepath.Join(folder, "a"), []byte("mine"), 0o600))
	remove(t, m, "a")
	if _, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.StopAll}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.EndSession, Entry: "s1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.UndoSession, Entry: "s1"}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(folder, "a")); string(b) != "mine" {
		t.Errorf("it has %q", b)
	}
}

func TestHowMuchIsKept(t *testing.T) {
	m, folder := keeping(t)
	must(t, os.WriteFile(filepath.Join(folder, "a"), []byte("mine"), 0o600))
	remove(t, m, "a")
	if s := m.Snapshot().Settings; s.KeepGB != 2 || s.KeptBytes != 4 {
		t.Errorf("%d GB, %d bytes", s.KeepGB, s.KeptBytes)
	}
	for gb, ok := range map[int]bool{-2: false, 10_001: false, 5: true, -1: true} {
		if _, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{KeepGB: &gb}}); (err == nil) != ok {
			t.Errorf("%d GB: %v", gb, err)
		}
	}
	none := -1
	_, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{KeepGB: &none}})
	must(t, err)
	for range 100 {
		if m.Snapshot().Settings.KeptBytes == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("what was kept stays")
}
