//go:build unix

package autogpt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// pair is a chat's data connection, by hand.
func (r *rig) pair() *raw {
	r.t.Helper()
	r.bind(chat, "/task")
	w, _ := r.join(chat, r.token("s1"), "/task")
	eventually(r.t, "the chat is connected", func() bool { return r.Connected(chat) })
	return w
}

type outcome struct {
	m   msg.Message
	err error
}

// ask sends a request in the background.
func (r *rig) ask(t msg.Type, p wire.Payload) chan outcome {
	c := make(chan outcome, 1)
	go func() {
		m, err := r.Do(context.Background(), chat, t, p)
		c <- outcome{m, err}
	}()
	return c
}

func (r *rig) stat() chan outcome {
	return r.ask(msg.TypeFileStat, &msg.FileStat{Path: "/task/a", FollowSymlinks: true})
}

// taken sends a frame that is no reply, and waits until the hub has taken it:
// what comes behind it, the reply to a request that waits for no room, is there.
func (r *rig) taken(w *raw, frame string) {
	r.t.Helper()
	call, err := r.Stream(r.t.Context(), chat, msg.TypeLLM, &msg.LLM{Model: "m", Messages: msg.List[msg.LLMMessage]{}, MaxTokens: 5, TopP: 1})
	noError(r.t, "a completion", err)
	defer call.Close()
	at := id(w.next())
	w.text(frame)
	w.send("LOCAL_LLM_COMPLETION_RESPONSE", at, map[string]any{"content": "x", "finish_reason": "stop", "tokens": map[string]any{}, "duration_seconds": 1})
	if _, err := call.Recv(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

var absent = map[string]any{"exists": false}

func id(m map[string]any) string { return m["id"].(string) }

// Every breach of section 11 of the protocol drops the connection, and its
// request ends.
func TestStrict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		rule int
		do   func(w *raw, id string)
	}{
		{"not JSON", 1, func(w *raw, _ string) { w.text("{") }},
		{"not an object", 1, func(w *raw, _ string) { w.text("[1]") }},
		{"binary", 1, func(w *raw, id string) {
			_ = w.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"FILE_STAT_RESPONSE","id":"`+id+`","payload":{"exists":false}}`))
		}},
		{"a request of the hub's", 2, func(w *raw, id string) { w.send("FILE_STAT", id, map[string]any{"path": "/"}) }},
		{"an unknown type", 2, func(w *raw, id string) { w.send("FILE_STATE", id, absent) }},
		{"no type", 2, func(w *raw, id string) { w.text(`{"id":"` + id + `","payload":{}}`) }},
		{"PING", 2, func(w *raw, id string) { w.send("PING", id, map[string]any{}) }},
		{"a second HELLO", 2, func(w *raw, _ string) { w.send("HELLO", "h2", hello("/task")) }},
		{"a second HELLO that is wrong", 2, func(w *raw, _ string) { w.send("HELLO", "h2", map[string]any{}) }},
		{"HELLO_ACK", 2, func(w *raw, id string) { w.send("HELLO_ACK", id, map[string]any{"granted_capabilities": []string{}}) }},
		{"no id", 3, func(w *raw, _ string) { w.text(`{"type":"FILE_STAT_RESPONSE","payload":{"exists":false}}`) }},
		{"an empty id", 3, func(w *raw, _ string) { w.send("FILE_STAT_RESPONSE", "", absent) }},
		{"an id that is a number", 3, func(w *raw, _ string) { w.text(`{"type":"FILE_STAT_RESPONSE","id":7,"payload":{}}`) }},
		{"no payload", 3, func(w *raw, id string) { w.text(`{"type":"FILE_STAT_RESPONSE","id":"` + id + `"}`) }},
		{"a payload that is a list", 3, func(w *raw, id string) { w.send("FILE_STAT_RESPONSE", id, []int{}) }},
		{"an id that nobody asked with", 4, func(w *raw, _ string) { w.send("FILE_STAT_RESPONSE", "other", absent) }},
		{"an uncorrelated ERROR", 4, func(w *raw, _ string) { w.send("ERROR", "other", map[string]any{"code": "X", "message": ""}) }},
		{"an uncorrelated ACK", 4, func(w *raw, _ string) { w.send("ACK", "other", map[string]any{"ok": true}) }},
		{"an uncorrelated PONG", 4, func(w *raw, _ string) { w.send("PONG", "other", map[string]any{}) }},
		{"a second reply", 4, func(w *raw, id string) {
			w.send("FILE_STAT_RESPONSE", id, absent)
			w.send("FILE_STAT_RESPONSE", id, absent)
		}},
		{"an ERROR after the reply", 4, func(w *raw, id string) {
			w.send("FILE_STAT_RESPONSE", id, absent)
			w.send("ERROR", id, map[string]any{"code": "X", "message": ""})
		}},
		{"another reply", 5, func(w *raw, id string) { w.send("ACK", id, map[string]any{"ok": true}) }},
		{"a chunk for what is no stream", 5, func(w *raw, id string) { w.send("LOCAL_LLM_COMPLETION_CHUNK", id, map[string]any{"delta": "x"}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			w := r.pair()
			result := r.stat()
			c.do(w, id(w.next()))
			_, reason := w.closed(websocket.CloseInternalServerErr)
			if want := fmt.Sprintf("rule %d: ", c.rule); !strings.HasPrefix(reason, want) {
				t.Errorf("closed because of %q, not %q", reason, want)
			}
			if !strings.Contains(r.log.String(), fmt.Sprintf("rule=%d breach=", c.rule)) {
				t.Error("the log does not name the breach")
			}
			r.Face.Close()
			<-result
		})
	}
}

// A frame over 16 MiB is dropped with the connection.
func TestTooLargeFrame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.pair()
	_ = w.ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"ACK","id":"a","payload":{"x":"`+strings.Repeat("x", msg.MaxFrame)+`"}}`))
	eventually(t, "the connection is dropped", func() bool { return !r.Connected(chat) })
	if !strings.Contains(r.log.String(), "rule=1 breach=") {
		t.Error("the log does not name the breach")
	}
}

// What section 11 does not check is let through, and a malformed reply fails
// its own request alone.
func TestStrictIsNoStricter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.pair()
	for _, frame := range []string{
		`{"type":"FILE_STAT_RESPONSE","id":"ID","payload":{"exists":false}}`,
		`{"type":"FILE_STAT_RESPONSE","id":"ID","ts":"now","version":9,"pending_capacity":"many","colour":1,"payload":{"exists":false,"taste":[],"is_file":null}}`,
		`{"type":"ERROR","id":"ID","payload":{"code":"SOMETHING_NEW","message":"m","details":{"a":1}}}`,
		`{"type":"FILE_STAT_RESPONSE","id":"ID","payload":{"exists":"perhaps"}}`,
		`{"type":"FILE_STAT_RESPONSE","id":"ID","payload":{}}`,
	} {
		result := r.stat()
		w.text(strings.Replace(frame, "ID", id(w.next()), 1))
		got := <-result
		switch {
		case strings.Contains(frame, "perhaps"), strings.Contains(frame, `"payload":{}`):
			if wire.CodeOf(got.err) != autogpt.CodeInvalidReply {
				t.Errorf("%s: %v", frame, got.err)
			}
		case strings.Contains(frame, "ERROR"):
			var d *msg.Detailed
			if !errors.As(got.err, &d) || d.Code != "SOMETHING_NEW" || d.Details["a"] != 1.0 {
				t.Errorf("%s: %v", frame, got.err)
			}
		case got.err != nil:
			t.Errorf("%s: %v", frame, got.err)
		}
		w.send("STATUS", "s", map[string]any{"in_flight": 0, "max_concurrent": 4})
		w.send("RECORDING_STEP", "r", map[string]any{"recording_id": "x", "step": map[string]any{}})
		w.text(`{"type":"STATUS","id":"s","payload":{"in_flight":"none"}}`)
	}
}

// In production harmless breaches are noted and the connection lives.
func TestProductionOnlyLogs(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.Strict = false })
	w := r.pair()
	w.send("ACK", "other", map[string]any{"ok": true})
	result := r.stat()
	first := id(w.next())
	w.send("ACK", first, map[string]any{"ok": true})
	if got := <-result; wire.CodeOf(got.err) != autogpt.CodeInvalidReply {
		t.Errorf("another reply: %v", got.err)
	}
	result = r.stat()
	w.send("FILE_STAT_RESPONSE", id(w.next()), absent)
	if got := <-result; got.err != nil {
		t.Errorf("after that: %v", got.err)
	}
	for _, rule := range []string{"rule=4", "rule=5"} {
		if !strings.Contains(r.log.String(), rule) {
			t.Errorf("%s is not in the log", rule)
		}
	}
	w.text("{")
	w.closed(websocket.CloseInternalServerErr)
}

// A reply after the wait is harmless while it is remembered, and a breach
// after that.
func TestLateReply(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.DataWait, o.LateFor = time.Second, 5*time.Second })
	w := r.pair()
	first, second := r.stat(), r.stat()
	a, b := id(w.next()), id(w.next())
	for _, result := range []chan outcome{first, second} {
		if got := <-result; wire.CodeOf(got.err) != autogpt.CodeTimeout {
			t.Fatalf("without a reply: %v", got.err)
		}
	}
	w.send("FILE_STAT_RESPONSE", a, absent)
	result := r.stat()
	w.send("FILE_STAT_RESPONSE", id(w.next()), absent)
	if got := <-result; got.err != nil {
		t.Fatalf("after a late reply: %v", got.err)
	}
	time.Sleep(4500 * time.Millisecond) // the second was sent a second before
	w.send("FILE_STAT_RESPONSE", b, absent)
	_, reason := w.closed(websocket.CloseInternalServerErr)
	if !strings.HasPrefix(reason, "rule 4") {
		t.Errorf("closed because of %q", reason)
	}
}

// A wrong reply after the wait is a breach all the same.
func TestLateWrongReply(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.DataWait = 50 * time.Millisecond })
	w := r.pair()
	result := r.stat()
	late := id(w.next())
	<-result
	w.send("COMMAND_RESULT", late, map[string]any{"stdout": "", "stderr": "", "exit_code": 0, "timed_out": false, "duration_seconds": 0})
	if _, reason := w.closed(websocket.CloseInternalServerErr); !strings.HasPrefix(reason, "rule 5") {
		t.Errorf("closed because of %q", reason)
	}
}

// The machine never has more requests at once than it takes, those included
// that nobody waits for any more.
func TestNoMoreThanTheMachineTakes(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) {
		o.MaxConcurrent, o.DataWait, o.Hold = 2, 2*time.Second, 3*time.Second
	})
	w := r.pair()
	a, b := r.stat(), r.stat()
	ia := id(w.next())
	w.next()
	<-a
	<-b
	// Both are late and still with the machine: there is no room.
	c := r.stat()
	if got := <-c; wire.CodeOf(got.err) != wire.CodeOverloaded {
		t.Errorf("a third: %v", got.err)
	}
	// A late answer makes room for one.
	c = r.stat()
	w.send("FILE_STAT_RESPONSE", ia, absent)
	w.send("FILE_STAT_RESPONSE", id(w.next()), absent)
	if got := <-c; got.err != nil {
		t.Errorf("after the late answer: %v", got.err)
	}
	// So does its word that it works on nothing: the other answer won't come.
	w.send("STATUS", "s", map[string]any{"in_flight": 0, "max_concurrent": 2})
	c, d := r.stat(), r.stat()
	for range 2 {
		w.send("FILE_STAT_RESPONSE", id(w.next()), absent)
	}
	for _, result := range []chan outcome{c, d} {
		if got := <-result; got.err != nil {
			t.Errorf("after STATUS: %v", got.err)
		}
	}
	// Its own limit counts when it is the lower one.
	r.taken(w, `{"type":"STATUS","id":"s","ts":1,"payload":{"in_flight":0,"max_concurrent":1}}`)
	c, d = r.stat(), r.stat()
	w.next()
	_ = w.ws.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	if _, _, err := w.ws.ReadMessage(); err == nil {
		t.Error("two were sent at once")
	}
	r.Face.Close()
	<-c
	<-d
}

func TestPendingCapacity(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.Hold = 2 * time.Second })
	w := r.pair()
	status := func(payload, envelope string) {
		r.taken(w, `{"type":"STATUS","id":"s","ts":1`+envelope+`,"payload":{`+payload+`}}`)
	}
	held := func(what string, want bool) {
		t.Helper()
		result := r.stat()
		if want {
			if got := <-result; wire.CodeOf(got.err) != wire.CodeOverloaded {
				t.Errorf("%s: %v", what, got.err)
			}
			return
		}
		w.send("FILE_STAT_RESPONSE", id(w.next()), absent)
		if got := <-result; got.err != nil {
			t.Errorf("%s: %v", what, got.err)
		}
	}
	held("nothing was said", false)
	status(`"in_flight":4,"max_concurrent":4`, ``)
	held("full by its count", true)
	status(`"in_flight":1,"max_concurrent":4`, `,"pending_capacity":0`)
	held("the count wins over the envelope", false)
	status(`"in_flight":0,"max_concurrent":4,"pending_capacity":0`, `,"pending_capacity":3`)
	held("the payload's own wins over all", true)
	for _, odd := range []string{`-1`, `1.5`, `"2"`, `null`} {
		status(`"in_flight":1,"max_concurrent":4,"pending_capacity":`+odd, ``)
		held("odd: "+odd, false)
	}
	// It is let go when there is room again.
	status(`"in_flight":4,"max_concurrent":4`, ``)
	result := r.stat()
	time.Sleep(100 * time.Millisecond) // it is held by now; if not, it need not be let go
	status(`"in_flight":3,"max_concurrent":4`, ``)
	w.send("FILE_STAT_RESPONSE", id(w.next()), absent)
	if got := <-result; got.err != nil {
		t.Errorf("room came: %v", got.err)
	}
	// A completion does not wait for that.
	status(`"in_flight":4,"max_concurrent":4`, ``)
	call, err := r.Stream(t.Context(), chat, msg.TypeLLM, &msg.LLM{Model: "m", Messages: msg.List[msg.LLMMessage]{{Role: "user", Content: "hi"}}, MaxTokens: 5, TopP: 1, Stream: true})
	noError(t, "a completion", err)
	call.Close()
}

// Replies that nobody takes end the connection, in either mode.
func TestBacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.Strict = false })
	w := r.pair()
	call, err := r.Stream(t.Context(), chat, msg.TypeLLM, &msg.LLM{Model: "m", Messages: msg.List[msg.LLMMessage]{}, MaxTokens: 5, TopP: 1, Stream: true})
	noError(t, "a completion", err)
	defer call.Close()
	at := id(w.next())
	for range 129 {
		w.send("LOCAL_LLM_COMPLETION_CHUNK", at, map[string]any{"delta": "x", "finish_reason": nil})
	}
	if _, reason := w.closed(websocket.CloseInternalServerErr); !strings.HasPrefix(reason, "rule 6") {
		t.Errorf("closed because of %q", reason)
	}
}

func TestStreamOfChunks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.pair()
	call, err := r.Stream(t.Context(), chat, msg.TypeLLM, &msg.LLM{Model: "m", Messages: msg.List[msg.LLMMessage]{}, MaxTokens: 5, TopP: 1, Stream: true})
	noError(t, "a completion", err)
	defer call.Close()
	at := id(w.next())
	for range 300 { // more than the backlog, as they are taken
		w.send("LOCAL_LLM_COMPLETION_CHUNK", at, map[string]any{"delta": "x", "finish_reason": nil})
		if m, err := call.Recv(t.Context()); err != nil || m.Type != msg.TypeLLMChunk {
			t.Fatalf("%v %v", m, err)
		}
	}
	w.send("LOCAL_LLM_COMPLETION_RESPONSE", at, map[string]any{"content": "x", "finish_reason": "stop", "tokens": map[string]any{}, "duration_seconds": 1})
	if m, err := call.Recv(t.Context()); err != nil || m.Type != msg.TypeLLMResponse {
		t.Fatalf("%v %v", m, err)
	}
	if _, err := call.Recv(t.Context()); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	w.send("LOCAL_LLM_COMPLETION_CHUNK", at, map[string]any{"delta": "x", "finish_reason": nil})
	if _, reason := w.closed(websocket.CloseInternalServerErr); !strings.HasPrefix(reason, "rule 4") {
		t.Errorf("a chunk after the end: %q", reason)
	}
}

// A request that changes nothing is sent once more, with a new id, on the next
// connection; another is reported as unconfirmed.
func TestRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.pair()
	read := r.stat()
	write := r.ask(msg.TypeFileWrite, &msg.FileWrite{Path: "/task/a", Encoding: msg.UTF8})
	first := map[string]bool{}
	for range 2 {
		first[id(w.next())] = true
	}
	_ = w.ws.Close()
	if got := <-write; wire.CodeOf(got.err) != autogpt.CodeUnconfirmed {
		t.Errorf("a write: %v", got.err)
	}
	w = r.pair()
	again := w.next()
	if again["type"] != "FILE_STAT" || first[id(again)] {
		t.Errorf("sent again: %v", again)
	}
	// The second loss is the end of it.
	_ = w.ws.Close()
	if got := <-read; wire.CodeOf(got.err) != wire.CodeLost {
		t.Errorf("after the second loss: %v", got.err)
	}
	// Without a connection in time it is lost too.
	quick := newRig(t, func(o *autogpt.Options) { o.Reconnect = 100 * time.Millisecond })
	w = quick.pair()
	read = quick.stat()
	w.next()
	_ = w.ws.Close()
	if got := <-read; wire.CodeOf(got.err) != wire.CodeLost {
		t.Errorf("nothing came back: %v", got.err)
	}
	if _, err := quick.Do(t.Context(), chat, msg.TypeFileStat, &msg.FileStat{Path: "/"}); wire.CodeOf(err) != wire.CodeOffline {
		t.Errorf("without a connection: %v", err)
	}
}

// Which requests are sent again is the protocol's list, no more.
func TestHarmless(t *testing.T) {
	t.Parallel()
	want := map[msg.Type]bool{}
	for _, k := range []msg.Type{msg.TypeFileRead, msg.TypeFileStat, msg.TypeFileList, msg.TypeCursor, msg.TypeDisplays, msg.TypeWindows, msg.TypeApps,
		msg.TypeClipboardRead, msg.TypePermissions, msg.TypeScreenshot, msg.TypeRecordingFetch} {
		want[k] = true
	}
	for _, k := range []msg.Type{msg.TypeFileRead, msg.TypeFileStat, msg.TypeFileList, msg.TypeCursor, msg.TypeDisplays, msg.TypeWindows, msg.TypeApps,
		msg.TypeClipboardRead, msg.TypePermissions, msg.TypeScreenshot, msg.TypeRecordingFetch, msg.TypeExecute, msg.TypeFileWrite, msg.TypeFileDelete,
		msg.TypeFileMove, msg.TypeInput, msg.TypeWindowFocus, msg.TypeAppLaunch, msg.TypeClipboardWrite, msg.TypeLLM, msg.TypeDirectoryList, msg.TypeAttach} {
		if msg.Harmless(k) != want[k] {
			t.Errorf("%s is sent again: %v", k, msg.Harmless(k))
		}
	}
}

// A machine that answers nothing on its control connection is waited for as
// long as the protocol says, and 5 s less for DETACH.
func TestControlWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.ControlWait, o.ForDetach = 400*time.Millisecond, 100*time.Millisecond })
	r.token("s1")
	w, _ := r.join("", r.token("s1"), nil)
	for _, c := range []struct {
		do   func() error
		wait time.Duration
	}{
		{func() error {
			_, err := r.Browse(t.Context(), user, machine, msg.DirectoryList{})
			return err
		}, 400 * time.Millisecond},
		{func() error { return r.Detach(t.Context(), user, machine, chat) }, 100 * time.Millisecond},
	} {
		began := time.Now()
		if err := c.do(); wire.CodeOf(err) != autogpt.CodeTimeout {
			t.Errorf("no answer: %v", err)
		}
		if took := time.Since(began); took < c.wait || took > c.wait+2*time.Second {
			t.Errorf("waited %s, not %s", took, c.wait)
		}
		w.next()
	}
	if _, err := r.Browse(t.Context(), "bob", machine, msg.DirectoryList{}); wire.CodeOf(err) != wire.CodeOffline {
		t.Errorf("another user's: %v", err)
	}
}

// A machine that says it restored or activated something else is not believed.
func TestBindingsAreCompared(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, _ := r.join("", r.token("s1"), nil)
	good := map[string]any{"session_id": chat, "allowed_root": "/task", "fingerprint": strings.Repeat("0a", 32), "revision": 3, "root_grant": "v1.a.b"}
	b := msg.Binding{SessionID: chat, AllowedRoot: "/task", Fingerprint: strings.Repeat("0a", 32), Revision: 3, RootGrant: "v1.a.b"}
	for field, other := range map[string]any{"": nil, "session_id": "other", "allowed_root": "/elsewhere", "fingerprint": strings.Repeat("0b", 32), "revision": 4, "root_grant": "v1.a.c"} {
		reply := map[string]any{}
		for k, v := range good {
			reply[k] = v
		}
		if field != "" {
			reply[field] = other
		}
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { err = r.Restore(t.Context(), user, machine, b) })
		m := w.next()
		w.send("SESSION_RESTORED", id(m), reply)
		wg.Wait()
		if field == "" && err != nil || field != "" && wire.CodeOf(err) != autogpt.CodeInvalidReply {
			t.Errorf("another %q: %v", field, err)
		}
	}
}

// The token ends in mid-command: the request ends with it, and the machine
// comes back with a new one.
func TestExpiryInMidCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bind(chat, "/task")
	token := r.token("s1", func(a *store.Access) { a.Expires = time.Now().Add(3 * time.Second) })
	w, _ := r.join(chat, token, "/task")
	eventually(t, "the chat is connected", func() bool { return r.Connected(chat) })
	result := r.ask(msg.TypeExecute, &msg.Execute{Command: new("sleep 9"), Shell: "auto"})
	w.next()
	w.closed(4401)
	if got := <-result; wire.CodeOf(got.err) != autogpt.CodeUnconfirmed {
		t.Errorf("the command: %v", got.err)
	}
	if _, resp, _ := r.dial(chat, token); resp == nil || resp.StatusCode != 401 {
		t.Errorf("the old token: %v", resp)
	}
	r.pair()
}
