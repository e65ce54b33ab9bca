package autogpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

func TestControlRequests(t *testing.T) {
	h := newHub(t)
	m, p := online(t, h, nil)
	f := p.call("DIRECTORY_LIST_REQUEST", object{})
	var d msg.Directory
	if f.into(t, &d); f.Type != "DIRECTORY_LIST_RESPONSE" || d.BrowseID != "b1" || len(d.Entries) != 1 || *f.Capacity != 4 {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	f = p.call("ATTACH_SESSION", object{"session_id": chat, "browse_id": "b1", "directory_ref": "r1", "expected_connection_id": "other"})
	var b msg.Binding
	if f.into(t, &b); f.Type != "SESSION_ATTACHED" || b.AllowedRoot != root || b.RootGrant != grant || b.Revision != 1 {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if len(h.data) != 0 {
		t.Error("attaching started something")
	}
	p.fails("ACTIVATE_SESSION", object{"session_id": chat, "revision": 2}, msg.CodeRevision)
	f = p.call("ACTIVATE_SESSION", object{"session_id": chat, "revision": 1})
	if f.Type != "SESSION_ACTIVATED" || strings.Contains(string(f.Payload), "root_grant") {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	data := take(t, h.data, "data connection")
	data.greet(nil)
	// Again it does nothing, and the live chat can't be attached.
	if f = p.call("ACTIVATE_SESSION", object{"session_id": chat, "revision": 1}); f.Type != "SESSION_ACTIVATED" || len(h.data) != 0 {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	p.fails("ATTACH_SESSION", object{"session_id": chat, "browse_id": "b1", "directory_ref": "r1"}, msg.CodeAlreadyActive)
	p.fails("RESTORE_SESSION", object{"session_id": chat, "root_grant": "forged"}, msg.CodeGrantInvalid)
	if f = p.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant}); f.Type != "SESSION_RESTORED" || len(h.data) != 0 {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if f = p.call("DETACH_SESSION", object{"session_id": chat}); f.Type != "ACK" || string(f.Payload) != `{"ok":true}` {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if code := data.closes(); code != 1000 {
		t.Errorf("the chat's connection closed with %d", code)
	}
	if f = p.call("DETACH_SESSION", object{"session_id": "unknown"}); f.Type != "ACK" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if !slices.Equal(m.folders.detached, []string{chat, "unknown"}) || m.c.live(chat) {
		t.Errorf("detached: %v", m.folders.detached)
	}
}

func TestRequestsOfTheOtherConnection(t *testing.T) {
	h := newHub(t)
	_, control, data := working(t, h, nil)
	control.fails("FILE_READ", object{"path": "/a"}, msg.CodeNotSupported)
	control.fails("EXECUTE_COMMAND", object{"command": "ls"}, msg.CodeNotSupported)
	e := data.fails("DIRECTORY_LIST_REQUEST", object{}, msg.CodeNotGranted)
	if e.Details["required_capability"] != "directory_browse" || fmt.Sprint(e.Details["granted_capabilities"]) != "[files shell]" {
		t.Errorf("details %v", e.Details)
	}
}

func TestRestoreElsewhere(t *testing.T) {
	h := newHub(t)
	m, control, data := working(t, h, nil)
	m.folders.set(func() { m.folders.root, m.folders.revision = "/home/ana/other", 2 })
	control.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant})
	if code := data.closes(); code != 1000 {
		t.Errorf("the earlier connection closed with %d", code)
	}
	next := take(t, h.data, "data connection")
	next.greet(nil)
	var hello msg.Hello
	if next.hello.into(t, &hello); *hello.AllowedRoot != "/home/ana/other" {
		t.Errorf("the chat works in %s", *hello.AllowedRoot)
	}
}

func TestEightChats(t *testing.T) {
	h := newHub(t)
	_, p := online(t, h, nil)
	for i := range maxLive {
		p.call("RESTORE_SESSION", object{"session_id": fmt.Sprint("chat", i), "root_grant": grant})
	}
	p.fails("RESTORE_SESSION", object{"session_id": "one-more", "root_grant": grant}, msg.CodeInternal)
	p.fails("ACTIVATE_SESSION", object{"session_id": "one-more", "revision": 1}, msg.CodeInternal)
	p.call("DETACH_SESSION", object{"session_id": "chat3"})
	if f := p.call("RESTORE_SESSION", object{"session_id": "one-more", "root_grant": grant}); f.Type != "SESSION_RESTORED" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
}

func TestFolderThatHelloCannotName(t *testing.T) {
	h := newHub(t)
	m, p := online(t, h, nil)
	m.folders.set(func() { m.folders.root = "/home/ana/a<b" })
	p.fails("ATTACH_SESSION", object{"session_id": chat, "browse_id": "b1", "directory_ref": "r1"}, msg.CodeUnavailable)
	if !slices.Equal(m.folders.detached, []string{chat}) {
		t.Error("the binding was kept")
	}
	p.fails("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant}, msg.CodeGrantInvalid)
}

func TestSessionIDIsEncoded(t *testing.T) {
	h := newHub(t)
	_, p := online(t, h, nil)
	p.call("RESTORE_SESSION", object{"session_id": "a.b_c:d-e", "root_grant": grant})
	if d := take(t, h.data, "data connection"); d.session != "a.b_c:d-e" {
		t.Errorf("dialled for %q", d.session)
	}
}

func TestReconnectEndsChats(t *testing.T) {
	h := newHub(t)
	ended := make(chan error, 1)
	m, control, data := working(t, h, func(o *Options) {
		o.Handler = func(ctx context.Context, _ wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return "", nil, context.Cause(ctx)
		}
	})
	data.ask("FILE_DELETE", "d1", object{"path": root + "/a"})
	data.call("PING", object{})
	control.ws.Close() // without a close frame
	next := take(t, h.control, "next connection")
	next.greet(nil)
	if code := data.closes(); code != 1000 {
		t.Errorf("the chat's connection closed with %d", code)
	}
	if err := take(t, ended, "end of the request"); wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("the request ended with %v", err)
	}
	if m.folders.resets != 2 || len(h.data) != 0 {
		t.Errorf("%d resets, %d new chats", m.folders.resets, len(h.data))
	}
}

func TestIdleChat(t *testing.T) {
	h := newHub(t)
	stopped := make(chan string, 1)
	_, control, data := working(t, h, func(o *Options) {
		o.Timings.Idle, o.Timings.IdleCheck = 300*time.Millisecond, 10*time.Millisecond
		o.OnStopped = func(session string) { stopped <- session }
	})
	began := time.Now()
	for range 4 {
		time.Sleep(100 * time.Millisecond)
		data.call("PING", object{})
	}
	if code := data.closes(); code != 1000 || time.Since(began) < 600*time.Millisecond {
		t.Errorf("closed with %d after %s", code, time.Since(began))
	}
	if s := take(t, stopped, "word of the end"); s != chat {
		t.Errorf("stopped %q", s)
	}
	control.call("ACTIVATE_SESSION", object{"session_id": chat, "revision": 1})
	take(t, h.data, "next data connection")
}

// A chat that is activated at the moment its idle connection ends gets a new
// one, and is not taken for the old one's end.
func TestActivateWhileEnding(t *testing.T) {
	h := newHub(t)
	release := make(chan struct{})
	var order []string
	m, control, data := working(t, h, func(o *Options) {
		o.OnStopped = func(string) { <-release; order = append(order, "stopped") }
	})
	data.close(4427)
	within(t, "the end is noticed", func() bool {
		m.c.mu.Lock()
		defer m.c.mu.Unlock()
		return m.c.runtimes[chat].ch.ending.Load()
	})
	control.ask("ACTIVATE_SESSION", "a1", object{"session_id": chat, "revision": 1})
	control.call("PING", object{})
	if len(h.data) != 0 {
		t.Fatal("it started before the end was told")
	}
	close(release)
	if f := control.next(); f.Type != "SESSION_ACTIVATED" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	take(t, h.data, "next data connection")
	if len(order) != 1 {
		t.Errorf("%v", order)
	}
}

func TestControlWaits(t *testing.T) {
	h := newHub(t)
	answer := make(chan error)
	m, p := online(t, h, func(o *Options) { o.Timings.Control = 50 * time.Millisecond })
	var asked atomic.Int32
	m.folders.set(func() {
		list := m.folders.list
		m.folders.list = func(ctx context.Context, d msg.DirectoryList) (msg.Directory, error) {
			asked.Add(1)
			select {
			case err := <-answer:
				if err != nil {
					return msg.Directory{}, err
				}
				return list(ctx, d)
			case <-ctx.Done():
				return msg.Directory{}, context.Cause(ctx)
			}
		}
	})
	e := p.fails("DIRECTORY_LIST_REQUEST", object{}, msg.CodePending)
	if e.Details["permission"] != "directory_browse" || e.Details["hint"] == "" {
		t.Errorf("details %v", e.Details)
	}
	// The repeat waits with the first, and asks nobody again.
	p.ask("DIRECTORY_LIST_REQUEST", "again", object{"browse_id": nil})
	p.call("PING", object{})
	answer <- nil
	if f := p.next(); f.Type != "DIRECTORY_LIST_RESPONSE" || asked.Load() != 1 {
		t.Errorf("%s %s after %d questions", f.Type, f.Payload, asked.Load())
	}
	// A no that comes late is told to the repeat, once.
	p.fails("DIRECTORY_LIST_REQUEST", object{}, msg.CodePending)
	answer <- wire.Errorf(wire.CodeDenied, "Ana declined.")
	within(t, "the result's keeping", func() bool { return m.c.book.kept() == 1 })
	if e := p.fails("DIRECTORY_LIST_REQUEST", object{}, msg.CodeNotGranted); e.Message != "Ana declined." || e.Details["reason"] != "denied" || asked.Load() != 2 {
		t.Errorf("%+v after %d questions", e, asked.Load())
	}
	p.fails("DIRECTORY_LIST_REQUEST", object{}, msg.CodePending)
	if asked.Load() != 3 {
		t.Errorf("%d questions", asked.Load())
	}
}

// kept counts the results that wait for their repeat.
func (b *book) kept() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, p := range b.pages {
		if !p.until.IsZero() {
			n++
		}
	}
	return n
}

// waiting counts the frames that noted tasks will answer.
func (b *book) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, p := range b.pages {
		p.task.mu.Lock()
		n += p.task.waiting
		p.task.mu.Unlock()
	}
	return n
}

func TestControlErrors(t *testing.T) {
	h := newHub(t)
	m, p := online(t, h, nil)
	for _, c := range []struct {
		err  error
		code wire.Code
	}{
		{wire.Errorf(msg.CodeReferenceInvalid, "It has expired."), msg.CodeReferenceInvalid},
		{wire.Errorf(wire.CodeDenied, "Ana declined."), msg.CodeNotGranted},
		{wire.Errorf(wire.CodeUndelivered, "Nobody could be asked."), msg.CodePending},
		{wire.Errorf(wire.CodePaused, "Ana paused this computer."), msg.CodeNotGranted},
		{errors.New("secret"), msg.CodeInternal},
	} {
		m.folders.set(func() { m.folders.attach = func(context.Context) error { return c.err } })
		e := p.fails("ATTACH_SESSION", object{"session_id": chat, "browse_id": "b1", "directory_ref": "r1"}, c.code)
		if strings.Contains(e.Message, "secret") {
			t.Errorf("%+v", e)
		}
	}
}

// Frames that a machine does not understand end nothing.
func TestOddFrames(t *testing.T) {
	h := newHub(t)
	_, control, data := working(t, h, nil)
	for _, p := range []*peer{control, data} {
		for _, text := range []string{"garbage", "[]", "{}", `{"type":"REBOOT","id":"x","ts":1,"payload":{}}`, `{"type":"ERROR","id":"x","ts":1,"payload":{"code":"X","message":"m"}}`,
			`{"type":"ACK","id":"x","ts":1,"payload":{}}`, `{"type":"HELLO_ACK","id":"x","ts":1,"payload":{"granted_capabilities":[]}}`,
			`{"type":"PING","ts":1,"payload":{}}`, `{"type":"PONG","id":"x","ts":1,"payload":{}}`} {
			if err := p.ws.WriteMessage(1, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.ws.WriteMessage(2, []byte(`{"type":"PING","id":"binary","payload":{}}`)); err != nil {
			t.Fatal(err)
		}
		p.waiting["binary"] = "PING"
		if f := p.next(); f.Type != "PONG" || f.ID != "binary" {
			t.Errorf("%+v", f)
		}
	}
	// A request that can be answered is.
	data.fails("FILE_READ", object{"path": 7}, msg.CodeInternal)
	control.fails("DIRECTORY_LIST_REQUEST", object{"cursor": "c"}, msg.CodeInternal)
}

// A relay that sends garbage ends nothing either, and is not answered with
// anything that a strict hub would drop the connection for.
func TestGarbage(t *testing.T) {
	h := newHub(t)
	_, control, data := working(t, h, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	frames := []string{`{"type":"FILE_READ","id":"%s","ts":1,"payload":{"path":"/a","length":5}}`, `{"type":"EXECUTE_COMMAND","id":"%s","ts":1,"payload":{"command":"ls","env":{"A":"b"}}}`,
		`{"type":"DIRECTORY_LIST_REQUEST","id":"%s","ts":1,"payload":{}}`, `{"type":"INPUT_ACTION","id":"%s","ts":1,"payload":{"action":"drag","path":[[1,2],[3,4]]}}`}
	for i := range 400 {
		id := fmt.Sprint("g", i)
		frame := []byte(fmt.Sprintf(frames[rnd.IntN(len(frames))], id))
		for range 1 + rnd.IntN(3) {
			frame[rnd.IntN(len(frame))] = byte(rnd.IntN(256))
		}
		frame = frame[:len(frame)-rnd.IntN(2)*rnd.IntN(len(frame))]
		for _, p := range []*peer{control, data} {
			// What is still a request has an answer; its id may have changed.
			var f struct {
				Type msg.Type `json:"type"`
				ID   string   `json:"id"`
			}
			if json.Unmarshal(frame, &f) == nil && msg.IsRequest(f.Type) && f.ID != "" {
				p.waiting[f.ID] = string(f.Type)
			}
			if err := p.ws.WriteMessage(1+rnd.IntN(2), frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range []*peer{control, data} {
		p.ask("PING", "last", object{})
		for p.next().ID != "last" {
		}
	}
}
