package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/control"
	"localpc/app/snapshot"
	"localpc/consent"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// machine is a fake of the running machine behind the socket.
func machine() control.Handler {
	return control.Handler{
		Snapshot: func() snapshot.Snapshot { return snapshot.Snapshot{Machine: "Anna's PC"} },
		Intend: func(_ context.Context, in snapshot.Intent) (snapshot.Reply, error) {
			if in.Kind == snapshot.Quit {
				return snapshot.Reply{}, errors.New("Not now.")
			}
			return snapshot.Reply{Text: string(in.Kind) + " " + in.Text}, nil
		},
		Head: func() (consent.Request, snapshot.CardInfo, bool) {
			return consent.Request{}, snapshot.CardInfo{}, false
		},
		Join:   func(string) (func(), bool) { return func() {}, true },
		Answer: func(string, consent.Answer) error { return nil },
	}
}

func listen(t *testing.T, h control.Handler) (*control.Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control.sock")
	s, err := control.Listen(path, h, quiet)
	must(t, err)
	t.Cleanup(s.Close)
	return s, path
}

func dial(t *testing.T, path string) *control.Client {
	t.Helper()
	c, err := control.Dial(path)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSocketIsPrivate(t *testing.T) {
	_, path := listen(t, machine())
	fi, err := os.Stat(path)
	must(t, err)
	if fi.Mode().Perm() != 0o600 || fi.Mode().Type() != os.ModeSocket {
		t.Errorf("mode %v", fi.Mode())
	}
}

func TestALeftoverGivesWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	l, err := net.Listen("unix", path)
	must(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := control.Dial(path); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("nobody listens: %v", err)
	}
	s, err := control.Listen(path, machine(), quiet)
	must(t, err)
	defer s.Close()
	if _, err := dial(t, path).Do(control.Request{Op: control.OpStatus}); err != nil {
		t.Error(err)
	}
	if _, err := control.Dial(filepath.Join(t.TempDir(), "none")); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("no socket: %v", err)
	}
}

func TestRequests(t *testing.T) {
	h := machine()
	r := consent.Request{ID: "r1", Title: "Run ls", Exact: "a\x1b"}
	shown, answered := "", ""
	open := true
	h.Head = func() (consent.Request, snapshot.CardInfo, bool) {
		return r, snapshot.CardInfo{Folders: []string{"/project"}}, open
	}
	left := make(chan struct{})
	h.Join = func(id string) (func(), bool) { shown = id; return func() { close(left) }, true }
	h.Answer = func(id string, a consent.Answer) error {
		if id != "r1" {
			return errors.New("this question is not open any more")
		}
		answered = fmt.Sprint(id, a.Allow, a.Choice.Contain)
		return nil
	}
	_, path := listen(t, h)
	c := dial(t, path)
	resp, err := c.Do(control.Request{Op: control.OpStatus})
	if err != nil || resp.Snapshot == nil || resp.Snapshot.Machine != "Anna's PC" {
		t.Errorf("status: %+v, %v", resp, err)
	}
	if reply, err := c.Intend(snapshot.Intent{Kind: snapshot.Find, Text: "a && <b>"}); err != nil || reply.Text != "find a && <b>" {
		t.Errorf("intent: %+v, %v", reply, err)
	}
	if _, err := c.Intend(snapshot.Intent{Kind: snapshot.Quit}); err == nil || err.Error() != "Not now." {
		t.Errorf("an intent that fails: %v", err)
	}
	resp, err = c.Do(control.Request{Op: control.OpCard})
	if err != nil || resp.Card == nil || resp.Card.Request.Exact != r.Exact || shown != "r1" {
		t.Errorf("card: %+v, %v, shown %q", resp.Card, err, shown)
	}
	select {
	case <-left:
		t.Error("a connection that is still there has left its card")
	default:
	}
	defer func() { c.Close(); <-left }()
	yes := consent.Answer{Allow: true, Choice: consent.Choice{Contain: consent.Contained}}
	if _, err := c.Do(control.Request{Op: control.OpAnswer, ID: "r0", Answer: &yes}); err == nil {
		t.Error("an answer to no question is taken")
	}
	if _, err := c.Do(control.Request{Op: control.OpAnswer, ID: "r1", Answer: &yes}); err != nil || answered != "r1truecontained" {
		t.Errorf("answer: %v, %q", err, answered)
	}
	open, shown = false, ""
	if resp, err := c.Do(control.Request{Op: control.OpCard}); err != nil || resp.Card != nil || shown != "" {
		t.Errorf("no card is open: %+v, %v", resp, err)
	}
	for _, bad := range []control.Request{{}, {Op: "become-root"}, {Op: control.OpIntent}, {Op: control.OpAnswer, ID: "r1"}} {
		if _, err := c.Do(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if _, err := c.Do(control.Request{Op: control.OpStatus}); err != nil {
		t.Errorf("after bad requests: %v", err)
	}
}

// Lines that are no request get one clear answer each, and the connection
// lives on; one that is too long ends its own connection and no other.
func TestBadLines(t *testing.T) {
	_, path := listen(t, machine())
	c, err := net.Dial("unix", path)
	must(t, err)
	defer c.Close()
	back := bufio.NewScanner(c)
	back.Buffer(nil, 1<<20)
	for _, line := range []string{"", "{", "null", "[]", `{"op":3}`, `{"op":"status"`, "\xff\xfe\x00", `"status"`, `{"op":"intent","intent":7}`, strings.Repeat("[", 100_000)} {
		_, err := c.Write([]byte(line + "\n"))
		must(t, err)
		var resp control.Response
		if !back.Scan() || json.Unmarshal(back.Bytes(), &resp) != nil || resp.Error == "" || resp.Snapshot != nil {
			t.Fatalf("%.20q: %q, %v", line, back.Bytes(), back.Err())
		}
	}
	other := dial(t, path)
	go c.Write([]byte(strings.Repeat("x", 9<<20) + "\n"))
	var resp control.Response
	if !back.Scan() || json.Unmarshal(back.Bytes(), &resp) != nil || !strings.Contains(resp.Error, "too long") {
		t.Errorf("a line too long: %q", back.Bytes())
	}
	if back.Scan() {
		t.Errorf("its connection goes on: %q", back.Bytes())
	}
	if _, err := other.Do(control.Request{Op: control.OpStatus}); err != nil {
		t.Errorf("another connection: %v", err)
	}
	if _, err := dial(t, path).Do(control.Request{Op: control.OpStatus}); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

func TestManyClients(t *testing.T) {
	_, path := listen(t, machine())
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			c, err := control.Dial(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for n := range 20 {
				want := fmt.Sprint(i, "-", n)
				if reply, err := c.Intend(snapshot.Intent{Kind: snapshot.Find, Text: want}); err != nil || reply.Text != "find "+want {
					t.Errorf("%q, %v, want %q", reply.Text, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// Close ends connections that wait, and requests that are under way, and
// returns when nothing of them is left.
func TestClose(t *testing.T) {
	h := machine()
	began := make(chan struct{})
	ended := false
	h.Intend = func(ctx context.Context, _ snapshot.Intent) (snapshot.Reply, error) {
		close(began)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		ended = true
		return snapshot.Reply{}, ctx.Err()
	}
	s, path := listen(t, h)
	idle, busy := dial(t, path), dial(t, path)
	failed := make(chan error, 1)
	go func() { _, err := busy.Intend(snapshot.Intent{Kind: snapshot.StopAll}); failed <- err }()
	<-began
	s.Close()
	if !ended {
		t.Error("Close did not wait for a request under way")
	}
	if err := <-failed; err == nil {
		t.Error("the request that was cut off says that it worked")
	}
	if _, err := idle.Do(control.Request{Op: control.OpStatus}); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("a connection that waited: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	s.Close() // twice does no harm
}

// Who asks for the end hears that it comes, however soon it does.
func TestQuitIsAnswered(t *testing.T) {
	for range 20 {
		h := machine()
		closed, server := make(chan struct{}), make(chan *control.Server, 1)
		h.Intend = func(context.Context, snapshot.Intent) (snapshot.Reply, error) {
			go func() { defer close(closed); (<-server).Close() }()
			time.Sleep(2 * time.Millisecond)
			return snapshot.Reply{Text: "Quitting."}, nil
		}
		s, path := listen(t, h)
		server <- s
		r, err := dial(t, path).Intend(snapshot.Intent{Kind: snapshot.Quit})
		if err != nil || r.Text != "Quitting." {
			t.Errorf("%+v, %v", r, err)
		}
		<-closed
	}
}

func TestProgramGetsItsKey(t *testing.T) {
	h := machine()
	h.Program = func(_ context.Context, name string) (string, string, error) {
		if name != "Claude Desktop" {
			return "", "", errors.New("Not that one.")
		}
		return "http://127.0.0.1:4417", "e2b_1", nil
	}
	_, path := listen(t, h)
	c := dial(t, path)
	r, err := c.Do(control.Request{Op: control.OpProgram, ID: "Claude Desktop"})
	if err != nil || r.Hub == nil || *r.Hub != (control.Hub{Address: "http://127.0.0.1:4417", Key: "e2b_1"}) {
		t.Errorf("%+v, %v", r.Hub, err)
	}
	if _, err := c.Do(control.Request{Op: control.OpProgram, ID: "x"}); err == nil || err.Error() != "Not that one." {
		t.Errorf("a refusal came as %v", err)
	}
}
