package autogpt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// What a chat was told in one folder is not told it again in another, nor when
// it was bound anew.
func TestKeptResultsAreOneBindings(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	who := newPerson()
	m, control, p := working(t, h, func(o *Options) {
		o.Handler = who.handle
		o.Timings.Asking, o.Timings.Running = inTime, inTime
	})
	ask := object{"command": "make"}
	p.ask("EXECUTE_COMMAND", "e1", ask)
	take(t, who.asked, "question")
	who.says(t, nil)
	refusedWith(t, p.next(), msg.CodePending)
	who.finishes(t)
	within(t, "the result's keeping", func() bool { return m.c.book.kept() == 1 })
	m.folders.set(func() { m.folders.root, m.folders.revision = "/home/ana/other", 2 })
	control.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant})
	p = take(t, h.data, "data connection")
	p.greet(nil)
	p.ask("EXECUTE_COMMAND", "e2", ask)
	take(t, who.asked, "question of the other folder")
	who.says(t, wire.Errorf(wire.CodeDenied, "Ana declined."))
	refusedWith(t, p.next(), msg.CodeNotGranted)
}

// Large requests are held in memory up to a bound for all connections, and no
// longer than they are needed: not while the person thinks.
func TestLargeRequestsAreBounded(t *testing.T) {
	t.Parallel()
	who := newPerson()
	held := func(m *machine) int {
		m.c.mu.Lock()
		defer m.c.mu.Unlock()
		return m.c.held
	}
	m, _, p := working(t, newHub(t), func(o *Options) {
		o.Timings.Asking, o.Timings.Running = inTime, inTime
		o.Handler = func(ctx context.Context, w wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
			for last := w.Type != wire.TypeFileWrite; !last; {
				c, err := tunnel.Chunk(ctx, x)
				if err != nil {
					return "", nil, err
				}
				last = c.Last
			}
			return who.handle(ctx, w, x)
		}
	})
	write := object{"path": root + "/a", "content": strings.Repeat("x", 1<<20)}
	p.ask("FILE_WRITE", "w1", write)
	take(t, who.asked, "question")
	if n := held(m); n < 1<<20 || n > 2<<20 {
		t.Errorf("%d bytes are counted while the request waits", n)
	}
	refusedWith(t, p.next(), msg.CodePending)
	within(t, "the request to be forgotten", func() bool { return held(m) == 0 })
	who.says(t, wire.Errorf(wire.CodeDenied, "Ana declined."))

	fill := func(n int) { m.c.mu.Lock(); m.c.held = n; m.c.mu.Unlock() }
	for _, free := range []int{1 << 19, 1<<20 + 1<<19} { // not even the frame; not what it brings
		fill(maxHeld - free)
		if e := p.fails("FILE_WRITE", object{"path": root + "/b", "content": write["content"]}, msg.CodeOverloaded); e.Details["max_concurrent"] != 4.0 {
			t.Errorf("details %v", e.Details)
		}
		within(t, "what was refused to be forgotten", func() bool { return held(m) == maxHeld-free })
	}
	p.call("PING", object{})
	p.ask("EXECUTE_COMMAND", "small", object{"command": "ls"}) // small ones go on
	fill(0)
	p.next()
	p.fails("FILE_WRITE", object{"path": root + "/b", "content": strings.Repeat("*", 1<<20), "encoding": "base64"}, msg.CodeInternal)
	within(t, "all to be forgotten", func() bool { return held(m) == 0 })
}

// A frame that takes long over a slow line is no silence.
func TestSlowFrame(t *testing.T) {
	_, control, p := working(t, newHub(t), func(o *Options) {
		o.Handler = (&script{answer: replies(&wire.FileStatResponse{})}).handle
		o.Timings.Heartbeat, o.Timings.PongTimeout = 150*time.Millisecond, 150*time.Millisecond
	})
	go func() { // it answers pings
		for {
			if _, _, err := control.ws.ReadMessage(); err != nil {
				return
			}
		}
	}()
	body, err := json.Marshal(object{"type": "FILE_WRITE", "id": "slow", "ts": 1.5, "payload": object{"path": root + "/a", "content": strings.Repeat("x", 60_000)}})
	if err != nil {
		t.Fatal(err)
	}
	head := binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(len(body))) // one whole text frame
	line := p.ws.NetConn()
	if _, err := line.Write(head); err != nil {
		t.Fatal(err)
	}
	for part := range 10 { // 1 s in all
		time.Sleep(100 * time.Millisecond)
		end := (part + 1) * len(body) / 10
		if _, err := line.Write(body[part*len(body)/10 : end]); err != nil {
			t.Fatalf("part %d: %v", part, err)
		}
	}
	p.waiting["slow"] = "FILE_WRITE"
	if f := p.next(); f.Type != "ACK" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
}

// A hub that asks about folders without end is slowed down, and can end a chat
// all the same.
func TestControlsPerMinute(t *testing.T) {
	m, control, _ := working(t, newHub(t), nil)
	for i := range controlsPerMinute - 1 { // the chat was restored before
		if f := control.call("DIRECTORY_LIST_REQUEST", object{}); f.Type != "DIRECTORY_LIST_RESPONSE" {
			t.Fatalf("%d: %s %s", i, f.Type, f.Payload)
		}
	}
	for kind, p := range map[string]object{"DIRECTORY_LIST_REQUEST": {}, "ATTACH_SESSION": {"session_id": "c", "browse_id": "b1", "directory_ref": "r1"},
		"ACTIVATE_SESSION": {"session_id": "c", "revision": 1}, "RESTORE_SESSION": {"session_id": "c", "root_grant": grant}} {
		control.fails(kind, p, msg.CodeOverloaded)
	}
	if f := control.call("DETACH_SESSION", object{"session_id": chat}); f.Type != "ACK" || m.c.live(chat) {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if now := time.Now(); m.c.controls.take(now) || !m.c.controls.take(now.Add(time.Minute)) {
		t.Error("the minute does not slide")
	}
}

// Output is cut between characters.
func TestOutputIsCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{"€", "ä", "😀", "a\u0301", "x"} {
		for budget := 40; budget < 60; budget++ {
			for _, stream := range []string{"stdout", "stderr"} {
				c, err := newCommand(place{chat, root}, &msg.Execute{Argv: []string{"x"}}, time.Second, budget)
				if err != nil {
					t.Fatal(err)
				}
				for _, piece := range []byte(strings.Repeat(text, 60)) {
					_ = c.send(wire.TypeProcessOutput, &wire.ProcessOutput{Stream: stream, Data: []byte{piece}})
				}
				_, p, _ := c.reply(&wire.ProcessExited{})
				r := p.(*msg.Result)
				if all := r.Stdout + r.Stderr; strings.ContainsRune(all, utf8.RuneError) || len(all) > budget || len(all) < budget-3 || !r.Truncated {
					t.Errorf("%d bytes of %s on %s: %q, %q", budget, text, stream, r.Stdout, r.Stderr)
				}
			}
		}
	}
	// What is no text at all stays, as far as it may.
	for _, b := range []string{"", "a", "\xff", "a\xff\xff", "\x80\x80\x80\x80\x80"} {
		if got := string(whole([]byte(b))); got != b {
			t.Errorf("%q became %q", b, got)
		}
	}
}

// Who waits for the person's leave to browse is not told that it was given.
func TestWordsWhileAPersonIsAsked(t *testing.T) {
	m, p := online(t, newHub(t), func(o *Options) { o.Timings.Control = 2 * time.Millisecond })
	m.folders.set(func() {
		m.folders.list = func(ctx context.Context, _ msg.DirectoryList) (msg.Directory, error) {
			<-ctx.Done()
			return msg.Directory{}, context.Cause(ctx)
		}
	})
	for range 100 {
		if e := p.fails("DIRECTORY_LIST_REQUEST", object{}, msg.CodePending); !strings.Contains(e.Message, "is asked") || e.Details["hint"] != e.Message {
			t.Fatalf("%+v", e)
		}
	}
}
