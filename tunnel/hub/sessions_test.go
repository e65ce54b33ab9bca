//go:build unix

package hub_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// opening asks for a session and lets the machine answer it.
func (b *bench) opening(t *testing.T, r *raw, ttl int) store.Sandbox {
	t.Helper()
	type result struct {
		b   store.Sandbox
		err error
	}
	done := make(chan result, 1)
	go func() {
		box, err := b.Open(context.Background(), wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "Test program", TTLSeconds: ttl, WaitMS: 5000}, store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal, Template: "base"})
		done <- result{box, err}
	}()
	m := r.until(wire.TypeSessionOpen)
	r.send(wire.TypeSessionOpened, m.ID, &wire.SessionOpened{Folder: "/home/ann/Photos", Mode: "work", TTLSeconds: ttl})
	res := <-done
	if res.err != nil {
		t.Fatal(res.err)
	}
	return res.b
}

func (b *bench) state(t *testing.T, dir, id string) (running bool) {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	box, err := s.Sandbox(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return !box.Ended
}

func TestSessionsAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	token := b.token(t, "m1")
	r := b.join(t, token, hello("m1"))
	one, two, three := b.opening(t, r, 600), b.opening(t, r, 600), b.opening(t, r, 600)
	if one.Folder != "/home/ann/Photos" || one.Mode != "work" || one.Machine != "m1" {
		t.Errorf("opened %+v", one)
	}

	// The machine ends one itself.
	r.send(wire.TypeSessionEnded, "", &wire.SessionEnded{SessionID: one.ID, Reason: "Ann ended it."})
	eventually(t, "the sandbox is ended", func() bool { return !b.state(t, dir, one.ID) })

	// One is ended while the machine is away; another was lost there.
	r.ws.Close()
	eventually(t, "the machine is offline", func() bool { return !b.machines(t)[0].Online })
	if err := b.End(t.Context(), two, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.End(t.Context(), two, "test"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("ended twice: %v", err)
	}
	r = b.join(t, token, hello("m1", two.ID, "unknown-session"))
	closed := map[string]bool{}
	for range 2 {
		m := r.until(wire.TypeSessionClose)
		closed[m.Payload.(*wire.SessionRef).SessionID] = true
		r.send(wire.TypeAck, m.ID, &wire.Empty{})
	}
	if !closed[two.ID] || !closed["unknown-session"] {
		t.Errorf("closed on the machine: %v", closed)
	}
	eventually(t, "the sandbox that the machine lost is ended", func() bool { return !b.state(t, dir, three.ID) })

	// A session that the machine does not know any more.
	four := b.opening(t, r, 600)
	done := make(chan error, 1)
	go func() { done <- b.SetTTL(context.Background(), four, time.Hour) }()
	m := r.until(wire.TypeSessionTTL)
	r.send(wire.TypeError, m.ID, &wire.ErrorPayload{Code: wire.CodeSessionNotOpen, Message: "The session is not open."})
	if err := <-done; wire.CodeOf(err) != wire.CodeSessionNotOpen {
		t.Errorf("SetTTL: %v", err)
	}
	if b.state(t, dir, four.ID) {
		t.Error("a session that is not open there still runs here")
	}

	// One that is past its time has ended, whatever the machine says.
	five := b.opening(t, r, 1)
	eventually(t, "its time is over", func() bool { return !b.state(t, dir, five.ID) })
	r.send(wire.TypeStatus, "", &wire.Status{MaxConcurrent: 1})
	if m := r.until(wire.TypeSessionClose); m.Payload.(*wire.SessionRef).SessionID != five.ID {
		t.Errorf("closed %+v", m.Payload)
	}
}

// A machine's word about its state, at the moment when a session opens, does
// not end the sandbox of that session.
func TestStatusWhileOpening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	ids := map[string]bool{}
	for range 60 {
		opened := make(chan store.Sandbox, 1)
		go func() {
			box, err := b.Open(context.Background(), wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "Test program", TTLSeconds: 600, WaitMS: 20_000}, store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal, Template: "base"})
			if err != nil {
				t.Error(err)
			}
			opened <- box
		}()
		m := r.until(wire.TypeSessionOpen)
		r.send(wire.TypeSessionOpened, m.ID, &wire.SessionOpened{Folder: "/home/ann/Photos", Mode: "work", TTLSeconds: 600})
		for range 3 {
			r.send(wire.TypeStatus, "", &wire.Status{MaxConcurrent: 1})
		}
		ids[(<-opened).ID] = true
	}
	b.works(t, r, "m1") // and every word before has been heard
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	running, err := s.Running(t.Context())
	if err != nil || len(ids) != 60 || len(running) != 60 {
		t.Errorf("%d sandboxes were opened, %d run, %v", len(ids), len(running), err)
	}
}

func TestMachineThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Open(ctx, wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "Test program", WaitMS: 5000}, store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal})
		done <- err
	}()
	m := r.until(wire.TypeSessionOpen)
	cancel()
	if err := <-done; wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("Open: %v", err)
	}
	// It may have been opened at the last moment, so it is closed too.
	// Two goroutines say so, in either order.
	for cancelled, closed := false, false; !cancelled || !closed; {
		switch c := r.read(); c.Type {
		case wire.TypeCancel:
			if cancelled = true; c.ID != m.ID {
				t.Errorf("cancelled %s", c.ID)
			}
		case wire.TypeSessionClose:
			if closed = true; c.Payload.(*wire.SessionRef).SessionID != m.Payload.(*wire.SessionOpen).SessionID {
				t.Errorf("closed %+v", c.Payload)
			}
		}
	}
}

// A machine that says nothing at all does not keep its client for ever.
func TestMachineThatNeverAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	began := time.Now()
	_, err := b.Open(t.Context(), wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "Test program", WaitMS: 10}, store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal})
	if wire.CodeOf(err) != wire.CodeUndelivered || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("Open: %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	r.until(wire.TypeSessionClose)
}

// Of two machines the one that connected last is asked; a sandbox stays with
// its machine.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.Open(t.Context(), wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "x", WaitMS: 100}, store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal}); wire.CodeOf(err) != wire.CodeOffline || !strings.Contains(err.Error(), "No computer") {
		t.Errorf("with no machine: %v", err)
	}
	r1 := b.join(t, b.token(t, "m1"), hello("m1"))
	old := b.opening(t, r1, 600)
	r2 := b.join(t, b.token(t, "m2"), hello("m2"))
	if box := b.opening(t, r2, 600); box.Machine != "m2" {
		t.Errorf("opened on %s", box.Machine)
	}
	b.works(t, r1, old.Machine)
	r2.ws.Close()
	eventually(t, "the second is offline", func() bool { return !b.machines(t)[1].Online })
	if box := b.opening(t, r1, 600); box.Machine != "m1" {
		t.Errorf("opened on %s", box.Machine)
	}
}

func TestPractice(t *testing.T) {
	t.Parallel()
	var opened wire.SessionOpen
	answers, stopped := map[wire.Type]error{}, 0
	f := &tunneltest.Folder{Dir: t.TempDir()}
	f.Ask = func(_ context.Context, m wire.Message) error {
		if o, ok := m.Payload.(*wire.SessionOpen); ok {
			opened = *o
		}
		if p, ok := m.Payload.(*wire.ProcessStart); ok && strings.Contains(p.Args[len(p.Args)-1], "stop me") {
			stopped++
			return wire.Errorf(wire.CodeStopped, "Ann stopped this.") // which is what it is there for
		}
		return answers[m.Type]
	}
	p := tunneltest.New(t, f.Handle)
	for kind, text := range map[wire.Type]string{wire.TypeSessionOpen: "Ann declined the session.", wire.TypeFileWrite: "Ann declined the file.", wire.TypeProcessStart: "Ann declined the command."} {
		answers[kind] = wire.Errorf(wire.CodeDenied, "%s", text)
		if err := p.Hub.Practice(t.Context(), p.MachineID); err == nil || err.Error() != text {
			t.Errorf("%s: %v", text, err)
		}
		delete(answers, kind)
		if open := f.Sessions(); len(open) != 0 {
			t.Errorf("%s: still open: %v", text, open)
		}
	}
	if err := p.Hub.Practice(t.Context(), p.MachineID); err != nil || stopped != 1 {
		t.Fatalf("stopped %d times: %v", stopped, err)
	}
	if opened.PrincipalName != "Practice" || opened.PrincipalID == "" || opened.WaitMS == 0 {
		t.Errorf("asked as %+v", opened)
	}
	files, err := filepath.Glob(filepath.Join(f.Dir, "practice", "*", "*"))
	if err != nil || len(files) != 3 {
		t.Errorf("practice files: %v, %v", files, err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || len(data) == 0 {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
	if open := f.Sessions(); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
	if err := p.Hub.Practice(t.Context(), "another"); wire.CodeOf(err) != wire.CodeOffline {
		t.Errorf("on a machine that is not there: %v", err)
	}
}

// The machine's own word that a session has ended reaches the hub through the
// client.
func TestNotifySessionEnded(t *testing.T) {
	t.Parallel()
	f := &tunneltest.Folder{Dir: t.TempDir()}
	dir := t.TempDir()
	p := tunneltest.New(t, f.Handle, func(h *hub.Options, _ *tunnel.Options) { h.Data = dir })
	box, err := p.Hub.Open(t.Context(), wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "x", TTLSeconds: 60, WaitMS: 5000}, store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal})
	if err != nil {
		t.Fatal(err)
	}
	f.Forget(box.ID)
	if err := p.Client.Notify(wire.TypeSessionEnded, &wire.SessionEnded{SessionID: box.ID, Reason: "Ann ended it."}); err != nil {
		t.Fatal(err)
	}
	b := &bench{Hub: p.Hub}
	eventually(t, "the sandbox is ended", func() bool { return !b.state(t, dir, box.ID) })
}

// Closing the hub ends what is going on; machines are told that it goes, which
// lets them come back.
func TestHubCloses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	r.closed(websocket.CloseGoingAway)
	r.ws.Close()
	if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("its request ended with %v", err)
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Close does not return")
	}
	if _, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); wire.CodeOf(err) != wire.CodeOffline {
		t.Errorf("after Close: %v", err)
	}
	if _, err := b.MakeKey(within(t, time.Second), "x"); err == nil {
		t.Error("a closed hub made a key")
	}
}
