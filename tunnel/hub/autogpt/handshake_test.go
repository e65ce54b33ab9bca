//go:build unix

package autogpt_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/store"
	msg "localpc/tunnel/wire/autogpt"
)

func TestUpgradeIsDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	good := r.token("s1")
	r.bind(chat, "/task")
	r.books.set(func(b *books) {
		other := b.bindings[chat]
		other.User = "bob"
		b.bindings["bobs"] = other
		b.access["dead"] = store.Access{SignIn: "dead", User: user, Client: msg.ClientID, Scopes: []string{msg.Scope}, Expires: time.Now().Add(time.Hour)}
		b.revoked["dead"] = true
	})
	for _, c := range []struct {
		name, session, token string
		status               int
	}{
		{"no header", "", "", 401},
		{"unknown token", "", "agpt_xt_0", 401},
		{"revoked", "", "dead", 401},
		{"expired", "", r.token("s2", func(a *store.Access) { a.Expires = time.Now().Add(-time.Second) }), 401},
		{"without expiry", "", r.token("s3", func(a *store.Access) { a.Expires = time.Time{} }), 401},
		{"another client", "", r.token("s4", func(a *store.Access) { a.Client = "localpc" }), 401},
		{"without the scope", "", r.token("s5", func(a *store.Access) { a.Scopes = []string{"machine"} }), 401},
		{"no user", "", r.token("s6", func(a *store.Access) { a.User = "" }), 401},
		{"the token is looked at before the chat", "unknown", "agpt_xt_0", 401},
		{"unknown chat", "unknown", good, 403},
		{"another's chat", "bobs", good, 403},
	} {
		_, resp, err := r.dial(c.session, c.token)
		if err == nil || resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v %v", c.name, resp, err)
			continue
		}
		var body struct{ Detail *string }
		if json.NewDecoder(resp.Body).Decode(&body) != nil || body.Detail == nil {
			t.Errorf("%s: the body has no detail", c.name)
		}
	}
	r.books.set(func(b *books) { b.broken = errors.New("the disk is gone") })
	if _, resp, _ := r.dial("", good); resp == nil || resp.StatusCode != 503 {
		t.Errorf("a failure: %v", resp)
	}
	r.books.set(func(b *books) { b.broken = nil })
	// The scheme is compared without case, and the id is decoded.
	header := http.Header{"Authorization": {"bEaReR " + good}}
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(r.url, "http")+msg.Path+"/"+strings.ReplaceAll(chat, "-", "%2D"), header)
	noError(t, "another spelling", err)
	ws.Close()
}

func TestHello(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.HelloTimeout = 500 * time.Millisecond })
	r.bind(chat, "/task")
	with := func(root any, change map[string]any) func(w *raw) {
		return func(w *raw) {
			h := hello(root)
			for k, v := range change {
				h[k] = v
				if v == "absent" {
					delete(h, k)
				}
			}
			w.send("HELLO", "h1", h)
		}
	}
	text := func(s string) func(w *raw) { return func(w *raw) { w.text(s) } }
	for i, c := range []struct {
		name string
		data bool
		do   func(w *raw)
		code int
	}{
		{"says nothing", false, func(*raw) {}, 4408},
		{"over 64 KiB", false, text(strings.Repeat(" ", 65537)), 4400},
		{"over 64 KiB, and not JSON", true, text(strings.Repeat("x", 65537)), 4400},
		{"not JSON", false, text("hello"), 4500},
		{"not an object", false, text("[]"), 4400},
		{"another type", false, func(w *raw) { w.send("STATUS", "h1", map[string]any{"in_flight": 0, "max_concurrent": 4}) }, 4400},
		{"an unknown type", false, func(w *raw) { w.send("GREETING", "h1", map[string]any{}) }, 4400},
		{"no id", false, func(w *raw) { w.send("HELLO", "", hello(nil)) }, 4400},
		{"id is a number", false, text(`{"type":"HELLO","id":5,"payload":{}}`), 4400},
		{"payload is a list", false, func(w *raw) { w.send("HELLO", "h1", []int{}) }, 4400},
		{"binary", false, func(w *raw) { _ = w.ws.WriteMessage(websocket.BinaryMessage, []byte("{}")) }, 4400},
		{"no machine", false, with(nil, map[string]any{"machine_id": "absent"}), 4400},
		{"machine with a blank", false, with(nil, map[string]any{"machine_id": "a b"}), 4400},
		{"unsafe name", false, with(nil, map[string]any{"display_name": "<b>"}), 4400},
		{"unknown platform", false, with(nil, map[string]any{"platform": "beos"}), 4400},
		{"unknown arch", false, with(nil, map[string]any{"arch": "mips"}), 4400},
		{"version is no version", false, with(nil, map[string]any{"protocol_version": "one"}), 4400},
		{"a list of numbers", false, with(nil, map[string]any{"capabilities": []int{1}}), 4400},
		{"a root on control", false, with("/task", nil), 4400},
		{"no root on data", true, with(nil, nil), 4400},
		{"a relative root", true, with("work", nil), 4400},
		{"another major", false, with(nil, map[string]any{"protocol_version": "2.0"}), 4426},
		{"another major before another machine", true, with("/task", map[string]any{"protocol_version": "2.0", "machine_id": "other"}), 4426},
		{"another machine", true, with("/task", map[string]any{"machine_id": "other"}), 4403},
		{"another root", true, with("/task/", nil), 4403},
		{"minor 0 on control", false, with(nil, map[string]any{"protocol_version": "1.0"}), 4426},
		{"no version on control", false, with(nil, map[string]any{"protocol_version": "absent"}), 4426},
		{"no browsing on control", false, with(nil, map[string]any{"capabilities": []string{"files"}}), 4426},
	} {
		session := ""
		if c.data {
			session = chat
		}
		w := r.raw(session, r.token("hello"+string(rune('a'+i))))
		t.Log(c.name)
		c.do(w)
		w.closed(c.code)
	}
	// A chat may speak 1.0, what is not known is ignored, null counts as missing.
	w := r.raw(chat, r.token("old"))
	with("/task", map[string]any{"protocol_version": "1.0", "screen_resolution": "wide", "local_llm_models": nil, "colour": "red", "computer_use_features": []string{"telepathy"}})(w)
	ack := w.next()["payload"].(map[string]any)
	if ack["protocol_version"] != "1.0" || ack["session_id"] != chat {
		t.Errorf("a chat that speaks 1.0: %v", ack)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.Grants = []string{"files", "shell", "directory_browse", "hardware_usb"} })
	r.bind(chat, "/task")
	w := r.raw("", r.token("s1"))
	h := hello(nil)
	h["capabilities"] = []string{"shell", "hardware_usb", "files", "shell", "computer_use", "directory_browse", "teleport"}
	w.send("HELLO", "h1", h)
	ack := w.next()["payload"].(map[string]any)
	if got := describe(ack["granted_capabilities"]); got != "[shell files directory_browse]" {
		t.Errorf("granted on control: %s", got)
	}
	if ack["session_id"] != nil || ack["connection_id"] == nil || ack["connection_id"] == "" {
		t.Errorf("control: %v", ack)
	}
	w.ws.Close()
	eventually(t, "control is gone", func() bool { return len(r.Machines(user)) == 0 })
	h["allowed_root"] = "/task"
	d := r.raw(chat, r.token("s2"))
	d.send("HELLO", "h1", h)
	ack = d.next()["payload"].(map[string]any)
	if got := describe(ack["granted_capabilities"]); got != "[shell files]" {
		t.Errorf("granted on data: %s", got)
	}
	if _, there := ack["connection_id"]; there {
		t.Errorf("data: %v", ack)
	}
}

// The sign-in stays with the machine that came with it first.
func TestSignInIsOneMachines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.token("s1")
	r.join("", token, nil)
	w := r.raw("", token)
	h := hello(nil)
	h["machine_id"] = "other"
	w.send("HELLO", "h1", h)
	w.closed(4403)
}

func TestTwins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.token("s1")
	r.bind(chat, "/task")
	first, a := r.join("", token, nil)
	second, b := r.join("", token, nil)
	before, _ := first.closed(msg.CloseReplaced)
	if len(before) != 1 || before[0]["type"] != "SESSION_REVOKED" || before[0]["payload"].(map[string]any)["reason"] != "another_shim_connected" {
		t.Errorf("the first was told %v", before)
	}
	if a["connection_id"] == b["connection_id"] {
		t.Error("both connections have one id")
	}
	eventually(t, "the second has the place", func() bool {
		list := r.Machines(user)
		return len(list) == 1 && list[0].Connection == b["connection_id"]
	})
	if list := r.Machines("bob"); len(list) != 0 {
		t.Errorf("another user's machines: %+v", list)
	}
	// Of a chat's two connections the newer stays too, but the wrong one is
	// refused before it can take its place.
	d1, _ := r.join(chat, token, "/task")
	wrong := r.raw(chat, token)
	wrong.send("HELLO", "h1", hello("/elsewhere"))
	wrong.closed(4403)
	d2, _ := r.join(chat, token, "/task")
	before, _ = d1.closed(msg.CloseReplaced)
	if len(before) != 1 || before[0]["type"] != "SESSION_REVOKED" {
		t.Errorf("the chat's first was told %v", before)
	}
	// A new control connection ends the machine's chats: the machine does too.
	r.join("", token, nil)
	d2.closed(websocket.CloseNormalClosure)
	second.closed(msg.CloseReplaced)
	eventually(t, "those that lost have left", func() bool {
		left := 0
		r.books.set(func(b *books) { left = len(b.left) })
		return left == 2
	})
	if list := r.Machines(user); len(list) != 1 || list[0].Connection == b["connection_id"] {
		t.Errorf("the newest is not there alone: %+v", list)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(r *rig){
		"sign-in": func(r *rig) { r.RevokeSignIn("s1") },
		"machine": func(r *rig) { r.Machines(user)[0].Revoked() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.bind(chat, "/task")
			r.token("s1")
			token := r.token("s1")
			control, _ := r.join("", token, nil)
			data, _ := r.join(chat, token, "/task")
			r.books.set(func(b *books) {
				b.bindings["bobs"] = store.Binding{Session: "bobs", User: "bob", Machine: machine, Root: "/task"}
			})
			bob, _ := r.join("bobs", r.token("s9", func(a *store.Access) { a.User = "bob" }), "/task")
			ended := make(chan error, 1)
			go func() {
				_, err := r.Do(t.Context(), chat, msg.TypeFileStat, &msg.FileStat{Path: "/task/a", FollowSymlinks: true})
				ended <- err
			}()
			data.next()
			began := time.Now()
			revoke(r)
			for _, w := range []*raw{control, data} {
				before, _ := w.closed(msg.CloseRevoked)
				if len(before) != 1 || before[0]["type"] != "SESSION_REVOKED" || before[0]["payload"].(map[string]any)["reason"] != "user_revoked" {
					t.Errorf("told %v", before)
				}
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %s", took)
			}
			bob.send("STATUS", "x", map[string]any{"in_flight": 0, "max_concurrent": 4})
			if !r.Connected("bobs") {
				t.Error("another user's connection was ended")
			}
			r.Face.Close()
			if err := <-ended; err == nil {
				t.Error("a request under way was answered")
			}
		})
	}
}

// A revocation that comes between the check of the token and the place in the
// list is not missed.
func TestRevokedWhileGreeting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.raw("", r.token("s1"))
	r.books.set(func(b *books) { b.revoked["s1"] = true })
	w.send("HELLO", "h1", hello(nil))
	before, _ := w.closed(msg.CloseRevoked)
	if n := len(before); n < 2 || before[0]["type"] != "HELLO_ACK" || before[n-1]["type"] != "SESSION_REVOKED" {
		t.Errorf("told %v", before)
	}
}

// Each end of a connection is counted, by the code that either end said.
func TestEndsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bind(chat, "/task")
	token := r.token("s1")
	count := func(code int) {
		t.Helper()
		select {
		case got := <-r.codes:
			if got != code {
				t.Errorf("%d is counted, not %d", got, code)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%d is not counted", code)
		}
	}
	r.raw("", token).text("[]")
	count(msg.CloseBadHello)
	w, _ := r.join("", token, nil)
	w.ws.Close()
	count(websocket.CloseAbnormalClosure)
	w, _ = r.join("", token, nil)
	_ = w.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""), time.Now().Add(time.Second))
	count(websocket.CloseGoingAway)
	w, _ = r.join(chat, token, "/task")
	w.text("{")
	count(websocket.CloseInternalServerErr)
	r.join("", token, nil)
	r.RevokeSignIn("s1")
	count(msg.CloseRevoked)
	r.join("", r.token("s2"), nil)
	r.Face.Close()
	count(websocket.CloseGoingAway)
}

// A sign-in that cannot be checked is not one that was revoked: the machine is
// sent off to come back, and is not told to stay away.
func TestSignInCannotBeChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.books.set(func(b *books) { b.unsure = errors.New("the disk is gone") })
	w := r.raw("", r.token("s1"))
	w.send("HELLO", "h1", hello(nil))
	before, reason := w.closed(msg.CloseInternal)
	for _, m := range before {
		if m["type"] == "SESSION_REVOKED" {
			t.Errorf("told %v", m)
		}
	}
	if reason != "the hub could not check the sign-in" {
		t.Errorf("closed because of %q", reason)
	}
	// The hub is stopped in that very moment, and so fails at everything.
	ended := make(chan struct{})
	r.books.set(func(b *books) {
		b.asked = func() {
			b.asked, b.unsure = nil, context.Canceled
			go func() { r.Face.Close(); close(ended) }()
			time.Sleep(100 * time.Millisecond)
		}
	})
	w = r.raw("", r.token("s2"))
	w.send("HELLO", "h1", hello(nil))
	before, _ = w.closed(websocket.CloseGoingAway)
	for _, m := range before {
		if m["type"] == "SESSION_REVOKED" {
			t.Errorf("told %v", m)
		}
	}
	<-ended
}

func TestTokenExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bind(chat, "/task")
	token := r.token("s1", func(a *store.Access) { a.Expires = time.Now().Add(3 * time.Second) })
	control, _ := r.join("", token, nil)
	data, _ := r.join(chat, token, "/task")
	control.closed(4401)
	data.closed(4401)
}

// setClock is a moment as it was read before somebody set the computer's clock
// forward by d: wall clocks say another time of it, and the steady one does not.
func setClock(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	was := at
	// The seconds of a time with a steady reading stand from bit 30 on.
	*(*uint64)(unsafe.Pointer(&at)) -= uint64(int64(d/time.Second)) << 30
	if at.Sub(was) != 0 || was.Round(0).Sub(at.Round(0)) != d {
		t.Fatalf("%s and %s do not differ by the wall clock alone", was, at)
	}
	return at
}

// A clock that is set forward or back neither shuts anybody out nor lets a
// connection outlive its token.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.bind(chat, "/task")
			ends := setClock(t, time.Now().Add(3*time.Second), d)
			token := r.token("s1", func(a *store.Access) { a.Expires = ends })
			control, _ := r.join("", token, nil)
			data, _ := r.join(chat, token, "/task")
			control.closed(4401)
			data.closed(4401)
			if late := time.Since(ends); late < 0 || late > 5*time.Second {
				t.Errorf("they ended %s after their token", late)
			}
			if _, resp, _ := r.dial("", token); resp == nil || resp.StatusCode != 401 {
				t.Errorf("the token that has ended: %v", resp)
			}
		})
	}
}

func TestCloseSendsMachinesOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, _ := r.join("", r.token("s1"), nil)
	done := make(chan struct{})
	go func() { r.Face.Close(); close(done) }()
	before, _ := w.closed(websocket.CloseGoingAway)
	if len(before) != 0 {
		t.Errorf("told %v: a machine that was revoked would not come back", before)
	}
	<-done
	if _, resp, _ := r.dial("", r.token("s2")); resp == nil || resp.StatusCode != 503 {
		t.Errorf("after the end: %v", resp)
	}
}

// A data connection that came before the machine has read its HELLO_ACK is of
// its earlier life, and is sent off: the machine has ended it, or is about to.
func TestOlderDataConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bind(chat, "/task")
	token := r.token("s1")
	begun := r.raw(chat, token) // and says HELLO later
	control := r.raw("", token)
	control.send("HELLO", "h1", hello(nil))
	control.next()
	ping := control.next()
	between := r.raw(chat, token)
	between.send("HELLO", "h2", hello("/task"))
	between.closed(websocket.CloseNormalClosure)
	control.send("PONG", id(ping), map[string]any{})
	var asked sync.WaitGroup
	asked.Go(func() { _ = r.Detach(context.Background(), user, machine, "none") })
	control.send("ACK", id(control.next()), map[string]any{"ok": true})
	asked.Wait()
	begun.send("HELLO", "h3", hello("/task"))
	begun.closed(websocket.CloseNormalClosure)
	r.join(chat, token, "/task")
	eventually(t, "the newest is taken", func() bool { return r.Connected(chat) })
}

// A machine that is silent, and answers no ping, is gone.
func TestSilence(t *testing.T) {
	t.Parallel()
	var reading sync.WaitGroup
	t.Cleanup(reading.Wait) // after newRig's, which ends what is read
	r := newRig(t, func(o *autogpt.Options) { o.Heartbeat, o.PongTimeout = 100*time.Millisecond, 900*time.Millisecond })
	silent, _ := r.join("", r.token("s1"), nil)
	silent.ws.SetPingHandler(func(string) error { return nil })
	reading.Go(func() { _, _, _ = silent.ws.ReadMessage() })
	eventually(t, "it is gone", func() bool { return len(r.Machines(user)) == 0 })
	// One that answers them stays.
	live, _ := r.join("", r.token("s2", func(*store.Access) {}), nil)
	reading.Go(func() { _, _, _ = live.ws.ReadMessage() })
	time.Sleep(2 * time.Second)
	if len(r.Machines(user)) != 1 {
		t.Error("a machine that answers pings is gone")
	}
}
