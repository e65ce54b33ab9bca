package autogpt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

func TestCapabilities(t *testing.T) {
	h := newHub(t)
	s := &script{answer: replies()}
	_, control := online(t, h, func(o *Options) {
		o.Handler = s.handle
		o.Hello = func() msg.Hello {
			return msg.Hello{MachineID: "m", Platform: "linux", Arch: "arm64", DisplayName: "a<b>\u202e" + strings.Repeat("ü", 200), Capabilities: msg.List[string]{msg.Files, msg.Shell, msg.LocalLLM}}
		}
	})
	control.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant})
	p := take(t, h.data, "data connection")
	p.greet(object{"granted_capabilities": []string{"files", "local_llm"}})
	e := p.fails("EXECUTE_COMMAND", object{"command": "ls"}, msg.CodeNotGranted)
	if e.Details["required_capability"] != "shell" || fmt.Sprint(e.Details["granted_capabilities"]) != "[files local_llm]" {
		t.Errorf("details %v", e.Details)
	}
	p.fails("SCREENSHOT_REQUEST", object{}, msg.CodeNotGranted)
	p.fails("START_RECORDING", object{"mode": "demonstration"}, msg.CodeNotGranted)
	if e := p.fails("LOCAL_LLM_COMPLETION", object{"model": "m", "messages": []any{}}, msg.CodeNotSupported); e.Details["feature"] != "local_llm_completion" {
		t.Errorf("details %v", e.Details)
	}
	if len(s.asked) != 0 {
		t.Errorf("the handler was asked: %v", s.asked)
	}
}

func TestAdmission(t *testing.T) {
	hold := make(chan struct{})
	s, _, p := scripted(t, nil)
	s.set(func(ctx context.Context, _ wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		<-hold
		return wire.TypeAck, &wire.Empty{}, nil
	})
	for i := range 4 {
		p.ask("FILE_DELETE", fmt.Sprint("d", i), object{"path": root + "/a"})
	}
	p.ask("FILE_DELETE", "one-more", object{"path": root + "/a"})
	f := p.next()
	if e := refusedWith(t, f, msg.CodeOverloaded); e.Details["max_concurrent"] != 4.0 || f.Capacity == nil || *f.Capacity != 0 || f.ID != "one-more" {
		t.Errorf("%+v, capacity %v", e, f.Capacity)
	}
	p.call("PING", object{}) // passes by
	// An id that is in use is not taken twice.
	p.send("FILE_DELETE", "d1", object{"path": root + "/b"})
	p.call("PING", object{})
	close(hold)
	var capacities []int
	for range 4 {
		f := p.next()
		if f.Type != "ACK" {
			t.Errorf("%s %s", f.Type, f.Payload)
		}
		capacities = append(capacities, *f.Capacity)
	}
	if slices.Max(capacities) != 4 || slices.Min(capacities) < 1 {
		t.Errorf("capacities %v", capacities)
	}
	within(t, "STATUS after the reply that freed a slot at full load", func() bool {
		p.call("PING", object{})
		return len(p.status) > 0
	})
	var st msg.Status
	if p.status[0].into(t, &st); st.MaxConcurrent != 4 || p.status[0].Capacity == nil {
		t.Errorf("%s", p.status[0].Payload)
	}
}

func TestChatsShareTheWork(t *testing.T) {
	h := newHub(t)
	hold, running := make(chan struct{}), make(chan string, 8)
	_, control := online(t, h, func(o *Options) {
		o.MaxConcurrent = 2
		o.Timings.Status = 50 * time.Millisecond
		o.RecordBytes = func() int64 { return 4096 }
		o.Handler = func(ctx context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
			running <- m.Payload.(*wire.FileDelete).SessionID
			<-hold
			return wire.TypeAck, &wire.Empty{}, nil
		}
	})
	var chats []*peer
	for i := range 2 {
		control.call("RESTORE_SESSION", object{"session_id": fmt.Sprint("chat", i), "root_grant": grant})
		p := take(t, h.data, "data connection")
		p.greet(object{"max_concurrent": 8})
		chats = append(chats, p)
	}
	for i, p := range chats {
		for j := range 2 {
			p.ask("FILE_DELETE", fmt.Sprint("d", i, j), object{"path": fmt.Sprint(root, "/", j)})
		}
		p.call("PING", object{})
		if i == 0 {
			take(t, running, "first")
			take(t, running, "second")
		}
	}
	// The second chat's requests are admitted and wait.
	within(t, "STATUS of the waiting chat", func() bool {
		chats[1].call("PING", object{})
		for _, f := range chats[1].status {
			var st msg.Status
			if f.into(t, &st); st == (msg.Status{InFlight: 0, MaxConcurrent: 2, QueueDepth: 2, AuditLogBytes: 4096, UptimeSeconds: st.UptimeSeconds}) && st.UptimeSeconds > 0 && *f.Capacity == 0 {
				return true
			}
		}
		return false
	})
	if len(running) != 0 {
		t.Error("more run than may")
	}
	close(hold)
	for _, p := range chats {
		p.next()
		p.next()
	}
}

func TestCommandsPerMinute(t *testing.T) {
	r := rate{most: commandsPerMinute}
	now := time.Now()
	for i := range commandsPerMinute {
		if !r.take(now.Add(time.Duration(i) * time.Second / 2)) {
			t.Fatalf("the %dth was refused", i)
		}
	}
	if r.take(now.Add(59 * time.Second)) {
		t.Error("one too many")
	}
	if !r.take(now.Add(60 * time.Second)) {
		t.Error("the first is a minute old")
	}
	s, m, p := scripted(t, nil)
	s.set(replies(&wire.ProcessExited{}))
	for m.c.commands.take(time.Now()) {
	}
	p.fails("EXECUTE_COMMAND", object{}, msg.CodeOverloaded) // before the command is looked at
	if f := p.call("FILE_DELETE", object{"path": root + "/a"}); f.Type != "ACK" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
}

func TestDisconnectCancels(t *testing.T) {
	h := newHub(t)
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	_, _, p := working(t, h, func(o *Options) {
		o.Handler = func(ctx context.Context, _ wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
			x.Begin()
			begun <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return wire.TypeAck, &wire.Empty{}, nil
		}
	})
	p.ask("FILE_DELETE", "d1", object{"path": root + "/a"})
	take(t, begun, "begin of the request")
	p.call("PING", object{})
	p.ws.Close()
	if err := take(t, ended, "end of the request"); wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("ended with %v", err)
	}
	next := take(t, h.data, "next connection")
	next.greet(nil)
	next.call("PING", object{}) // and no late reply before it
}
