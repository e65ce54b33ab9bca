//go:build unix

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// person answers questions when told to.
type person struct {
	asked   chan wire.Message
	answers chan error
	gone    chan struct{} // one token for each question that was taken back
	about   func(wire.Message) bool
}

func newPerson(about func(wire.Message) bool) *person {
	return &person{asked: make(chan wire.Message, 64), answers: make(chan error, 64), gone: make(chan struct{}, 64), about: about}
}

func (p *person) ask(ctx context.Context, m wire.Message) error {
	if !p.about(m) {
		return nil
	}
	p.asked <- m
	select {
	case err := <-p.answers:
		return err
	case <-ctx.Done():
		p.gone <- struct{}{}
		return context.Cause(ctx)
	}
}

func (p *person) waitAsked(t *testing.T) wire.Message {
	t.Helper()
	select {
	case m := <-p.asked:
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("the person was not asked")
		return wire.Message{}
	}
}

func (p *person) waitGone(t *testing.T) {
	t.Helper()
	select {
	case <-p.gone:
	case <-time.After(30 * time.Second):
		t.Fatal("the question was not taken back")
	}
}

func opens(m wire.Message) bool  { return m.Type == wire.TypeSessionOpen }
func writes(m wire.Message) bool { return m.Type == wire.TypeFileWrite }

// While the person is asked the client hears of it; the answer comes in the
// same call when it comes in time.
func TestProgressWhileThePersonDecides(t *testing.T) {
	p := newPerson(opens)
	r := newRig(t, p.ask)
	var mu sync.Mutex
	var heard []string
	s := r.client(t, r.Key, "", func(o *sdk.ClientOptions) {
		o.ProgressNotificationHandler = func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, n.Params.Message)
		}
	})
	params := &sdk.CallToolParams{Name: "write_file", Arguments: args{"path": "a.txt", "content": "x"}}
	params.SetProgressToken("p1")
	done := make(chan result, 1)
	go func() { done <- callWith(t, t.Context(), s, params) }()
	open := p.waitAsked(t).Payload.(*wire.SessionOpen)
	if open.PrincipalName != "Test program" || open.Agent != "test-agent 1.2" || open.WaitMS != int((10*time.Minute).Milliseconds()) || open.Folder != "" {
		t.Errorf("the session was asked for with %+v", open)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		n := len(heard)
		mu.Unlock()
		if n >= 2 {
			break
		}
	}
	p.answers <- nil
	(<-done).ok("a.txt")
	mu.Lock()
	defer mu.Unlock()
	if len(heard) < 2 || heard[0] != "Waiting for the person at Mac-1 to allow: work on this computer" {
		t.Errorf("the client heard %q", heard)
	}
}

// A call that waits long is answered with an id, runs when it is allowed, and
// its result is had by the id, by its program only.
func TestPendingIsHadLater(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			t.Parallel()
			p := newPerson(writes)
			r := newRig(t, p.ask, hold(time.Second))
			s := r.client(t, r.Key, protocol)
			pending := call(t, s, "write_file", args{"path": "a.txt", "content": "x"}).ok(`"status":"pending"`, "the person at Mac-1", "write a.txt", "get_result")
			id := pending.str("id")
			if pending.str("status") != "pending" || id == "" {
				t.Fatalf("the call answered %v", pending.all)
			}
			call(t, s, "get_result", args{"id": id, "wait_s": 0.2}).ok(`"status":"pending"`, id)
			call(t, s, "get_result", nil).ok(id + "  pending  write a.txt")
			p.waitAsked(t)
			p.answers <- nil
			call(t, s, "get_result", args{"id": id}).ok("Wrote 1 bytes to a.txt.")
			call(t, s, "get_result", args{"id": id}).ok("Wrote 1 bytes to a.txt.") // it is kept
			call(t, s, "get_result", nil).ok(id + "  done  write a.txt")
			if b, err := os.ReadFile(filepath.Join(r.Dir, "a.txt")); string(b) != "x" {
				t.Errorf("the file holds %q, %v", b, err)
			}
			other, err := r.Hub.MakeKey(t.Context(), "Another program")
			if err != nil {
				t.Fatal(err)
			}
			call(t, r.client(t, other, protocol), "get_result", args{"id": id}).fails("no call with the id")
			call(t, s, "get_result", args{"id": "r123"}).fails("no call with the id")

			declined := call(t, s, "write_file", args{"path": "b.txt", "content": "x"}).ok(`"status":"pending"`)
			p.waitAsked(t)
			p.answers <- wire.Errorf(wire.CodeDenied, "The person at this computer declined this.")
			call(t, s, "get_result", args{"id": declined.str("id")}).fails("declined this.")
		})
	}
}

// All that a program starts at once waits for one question.
func TestOneSessionForAll(t *testing.T) {
	p := newPerson(opens)
	r := newRig(t, p.ask)
	s := r.client(t, r.Key, "")
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { call(t, s, "run_command", args{"command": "echo hello"}).ok("hello") })
	}
	p.waitAsked(t)
	time.Sleep(300 * time.Millisecond)
	p.answers <- nil
	wg.Wait()
	if n := len(p.asked); n != 0 {
		t.Errorf("the person was asked %d times more", n)
	}

	// It ends, and a new one is asked for; declined is told, and nothing opened.
	for _, id := range r.Sessions() {
		r.Forget(id)
	}
	done := make(chan result, 1)
	go func() { done <- call(t, s, "run_command", args{"command": "echo again"}) }()
	p.waitAsked(t)
	p.answers <- wire.Errorf(wire.CodeDenied, "The person at this computer declined this.")
	(<-done).fails("declined this.", "Do not try")
	go func() { done <- call(t, s, "run_command", args{"command": "echo again"}) }()
	p.waitAsked(t)
	p.answers <- nil
	(<-done).ok("again")
}

// A client that cancels takes its question back, in each way that clients do.
func TestCancelledIsNotAsked(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			t.Parallel()
			p := newPerson(writes)
			r := newRig(t, p.ask)
			s := r.client(t, r.Key, protocol)
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "write_file", Arguments: args{"path": "a.txt", "content": "x"}})
				failed <- err
			}()
			p.waitAsked(t)
			cancel()
			if err := <-failed; err == nil {
				t.Error("a cancelled call succeeded")
			}
			p.waitGone(t)
			call(t, s, "list_directory", nil).ok("empty")
		})
	}
}

// A client of an older protocol that is gone has not cancelled: what came of
// its call is there when it comes back.
func TestResultOutlivesItsClient(t *testing.T) {
	p := newPerson(writes)
	r := newRig(t, p.ask)
	req, err := newPost(t, r, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"a.txt","content":"x"}}}`, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := httpClient().Do(req.WithContext(ctx)); err == nil {
			_ = resp.Body.Close()
		}
	}()
	p.waitAsked(t)
	cancel()
	<-gone
	time.Sleep(200 * time.Millisecond) // until the hub has noticed
	p.answers <- nil
	s := r.client(t, r.Key, "2025-11-25")
	var list result
	for range 100 {
		if list = call(t, s, "get_result", nil).ok(); strings.Contains(list.text, "done  write a.txt") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	id, _, _ := strings.Cut(list.text, " ")
	call(t, s, "get_result", args{"id": id}).ok("Wrote 1 bytes to a.txt.")
}

// A hub that was restarted says that what waited is lost.
func TestRestartIsSaid(t *testing.T) {
	p := newPerson(writes)
	data := t.TempDir()
	var h *hub.Hub
	folder := &tunneltest.Folder{Dir: t.TempDir(), Ask: p.ask}
	h, url := serveOnce(t, hub.Options{Data: data, Name: "Test hub", Wait: time.Second, Log: tunneltest.Log(t)})
	key, err := h.MakeKey(t.Context(), "Test program")
	if err != nil {
		t.Fatal(err)
	}
	token, err := h.MachineToken(t.Context(), "machine-1", "Mac-1")
	if err != nil {
		t.Fatal(err)
	}
	online := make(chan struct{}, 8)
	tunneltest.Run(t, tunnel.Options{URL: url.base, Token: func(context.Context) (string, error) { return token, nil }, Handler: folder.Handle, Log: tunneltest.Log(t),
		BackoffBase: 10 * time.Millisecond, BackoffMax: 100 * time.Millisecond, Status: func() wire.Status { return wire.Status{} },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "machine-1", DisplayName: "Mac-1", Platform: "linux", Arch: "amd64", Capabilities: []string{"files"}, Sessions: folder.Sessions()}
		},
		OnState: func(s tunnel.State) {
			if s.Phase == tunnel.Online {
				online <- struct{}{}
			}
		}})
	wait := func() {
		t.Helper()
		select {
		case <-online:
		case <-time.After(30 * time.Second):
			t.Fatal("the machine did not connect")
		}
	}
	wait()
	r := &rig{Pair: &tunneltest.Pair{URL: url.base, Key: key}, Folder: folder}
	pending := call(t, r.client(t, key, ""), "write_file", args{"path": "a.txt", "content": "x"}).ok(`"status":"pending"`)
	url.stop()
	_, url = serveOnce(t, hub.Options{Data: data, Name: "Test hub", Log: tunneltest.Log(t)}, url.addr)
	p.waitGone(t)
	wait()
	s := r.client(t, key, "")
	call(t, s, "get_result", args{"id": pending.str("id")}).fails("hub was restarted", "Call the tool again")
	call(t, s, "read_output", args{"handle": "c1"}).fails("hub was restarted")
	// Its session is still there, and used.
	call(t, s, "list_directory", nil).ok()
	if n := len(folder.Sessions()); n != 1 {
		t.Errorf("%d sessions are open", n)
	}
	url.stop()
}

// Two computers: the call says which, or there is only one with a session.
func TestTwoComputers(t *testing.T) {
	r := newRig(t, nil)
	second := &tunneltest.Folder{Dir: t.TempDir()}
	token, err := r.Hub.MachineToken(t.Context(), "machine-2", "Mac-2")
	if err != nil {
		t.Fatal(err)
	}
	online := make(chan struct{}, 8)
	tunneltest.Run(t, tunnel.Options{URL: r.URL, Token: func(context.Context) (string, error) { return token, nil }, Handler: second.Handle, Log: tunneltest.Log(t),
		Status: func() wire.Status { return wire.Status{} },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "machine-2", DisplayName: "Mac-2", Platform: "linux", Arch: "amd64", Capabilities: []string{"files"}, Sessions: []string{}}
		},
		OnState: func(s tunnel.State) {
			if s.Phase == tunnel.Online {
				online <- struct{}{}
			}
		}})
	select {
	case <-online:
	case <-time.After(30 * time.Second):
		t.Fatal("the second machine did not connect")
	}
	s := r.client(t, r.Key, "")
	call(t, s, "list_machines", nil).ok("Mac-1", "Mac-2")
	call(t, s, "list_directory", nil).fails("Mac-1", "Mac-2", "machine")
	call(t, s, "write_file", args{"machine": "Mac-2", "path": "here", "content": "x"}).ok()
	if _, err := os.Stat(filepath.Join(second.Dir, "here")); err != nil {
		t.Error(err)
	}
	call(t, s, "list_directory", nil).ok("here") // the only one with a session
	call(t, s, "list_directory", args{"machine": "machine-1"}).ok("empty")
	if !slices.Equal([]int{len(r.Sessions()), len(second.Sessions())}, []int{1, 1}) {
		t.Error("not one session on each computer")
	}
}
