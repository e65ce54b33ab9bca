//go:build unix

package e2b_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/e2b/process"
	"localpc/tunnel/wire"
)

// rpc is a client of process.Process that is no SDK: it can do what they don't.
type rpc struct {
	process.ProcessClient
	t *testing.T
	h http.Header
}

func newRPC(t *testing.T, s *sdk) *rpc {
	// As the SDKs, it takes streams as they are.
	plain := connect.WithAcceptCompression("gzip", nil, nil)
	return &rpc{process.NewProcessClient(client, s.URL+"/sbx", connect.WithProtoJSON(), plain), t, raw(t, s)}
}

// ctx is a call's context, with the headers that every call needs and more.
func (r *rpc) ctx(parent context.Context, headers ...string) context.Context {
	ctx, info := connect.NewClientContext(parent)
	for k := range r.h {
		info.RequestHeader().Set(k, r.h.Get(k))
	}
	for i := 0; i < len(headers); i += 2 {
		info.RequestHeader().Set(headers[i], headers[i+1])
	}
	return ctx
}

// events is either kind of stream of a process's events.
type events struct {
	receive func() bool
	event   func() *process.ProcessEvent
	err     func() error
	close   func() error
}

// begin starts a command line and waits until it runs.
func (r *rpc) begin(line string, set func(*process.StartRequest), headers ...string) (*events, uint32) {
	r.t.Helper()
	req := &process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-c", line}}}
	if set != nil {
		set(req)
	}
	s, err := r.Start(r.ctx(r.t.Context(), headers...), req)
	if err != nil {
		r.t.Fatal(err)
	}
	e := &events{s.Receive, func() *process.ProcessEvent { return s.Msg().GetEvent() }, s.Err, s.Close}
	return e, e.started(r.t)
}

// join follows a process.
func (r *rpc) join(ctx context.Context, pid uint32, headers ...string) *events {
	r.t.Helper()
	s, err := r.Connect(r.ctx(ctx, headers...), &process.ConnectRequest{Process: byPID(pid)})
	if err != nil {
		r.t.Fatal(err)
	}
	e := &events{s.Receive, func() *process.ProcessEvent { return s.Msg().GetEvent() }, s.Err, s.Close}
	if got := e.started(r.t); got != pid {
		r.t.Errorf("connected to process %d, asked for %d", got, pid)
	}
	return e
}

func byPID(pid uint32) *process.ProcessSelector {
	return &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: pid}}
}

func (e *events) started(t *testing.T) uint32 {
	t.Helper()
	if !e.receive() {
		t.Fatalf("no start: %v", e.err())
	}
	if e.event().GetStart() == nil {
		t.Fatalf("the first event is %v", e.event())
	}
	return e.event().GetStart().GetPid()
}

// outcome is what a stream told.
type outcome struct {
	bytes      int
	text       string // the last KiB of it
	keepalives int
	end        *process.ProcessEvent_EndEvent
	err        error
}

// rest reads a stream to its end, waiting for pace before each event.
func (e *events) rest(pace time.Duration) outcome {
	defer e.close()
	var o outcome
	for e.receive() {
		time.Sleep(pace)
		switch ev := e.event().GetEvent().(type) {
		case *process.ProcessEvent_Data:
			d := ev.Data
			for _, b := range [][]byte{d.GetStdout(), d.GetStderr(), d.GetPty()} {
				o.bytes += len(b)
				o.text += string(b)
				o.text = o.text[max(0, len(o.text)-1024):]
			}
		case *process.ProcessEvent_Keepalive:
			o.keepalives++
		case *process.ProcessEvent_End:
			o.end = ev.End
		}
	}
	o.err = e.err()
	return o
}

func (o outcome) failed(t *testing.T, what string, code connect.Code, part string) {
	t.Helper()
	if connect.CodeOf(o.err) != code || !strings.Contains(o.err.Error(), part) {
		t.Errorf("%s: ended with %v, want %s with %q", what, o.err, code, part)
	}
}

func (o outcome) ended(t *testing.T, what string, code int32) {
	t.Helper()
	if o.err != nil || o.end == nil || o.end.GetExitCode() != code {
		t.Errorf("%s: ended with %v, %v; want exit code %d", what, o.end, o.err, code)
	}
}

func (s *sdk) made(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s was not made within a minute", name)
		}
	}
}

// go on lets a command that reads a line go on.
func (r *rpc) goOn(pid uint32) {
	r.t.Helper()
	if err := r.put(pid, "\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rpc) put(pid uint32, text string) error {
	_, err := r.SendInput(r.ctx(r.t.Context()), &process.SendInputRequest{Process: byPID(pid),
		Input: &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte(text)}}})
	return err
}

func withStdin(r *process.StartRequest) { yes := true; r.Stdin = &yes }

// One of two clients of a process stops reading: it alone is let go.
func TestOneOfTwoNeverReads(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	const size = 48 << 20
	reads, pid := r.begin(fmt.Sprintf("read; head -c %d /dev/zero; exit 3", size), withStdin)
	stuck := r.join(t.Context(), pid)
	r.goOn(pid)
	o := reads.rest(0)
	o.ended(t, "the one that reads", 3)
	if o.bytes != size {
		t.Errorf("the one that reads got %d bytes of %d", o.bytes, size)
	}
	o = stuck.rest(0)
	o.failed(t, "the one that did not", connect.CodeAborted, "did not read the output in time")
	if o.bytes >= size || o.end != nil {
		t.Errorf("the one that did not read got %d bytes and %v", o.bytes, o.end)
	}
	r.join(t.Context(), pid).rest(0).ended(t, "one that comes late", 3)
}

// Two clients that read at their pace both get everything.
func TestTwoRead(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	const size = 24 << 20
	one, pid := r.begin(fmt.Sprintf("read; head -c %d /dev/zero", size), withStdin)
	two := r.join(t.Context(), pid)
	r.goOn(pid)
	got := make(chan outcome)
	go func() { got <- one.rest(0) }()
	a, b := two.rest(0), <-got
	a.ended(t, "the second", 0)
	b.ended(t, "the first", 0)
	if a.bytes != size || b.bytes != size {
		t.Errorf("got %d and %d bytes of %d", a.bytes, b.bytes, size)
	}
}

// The only client reads slowly: the process is held back, nothing is lost.
func TestSlowReaderHoldsBack(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	const size = 24 << 20
	e, _ := r.begin(fmt.Sprintf("head -c %d /dev/zero; touch done; exit 2", size), nil)
	time.Sleep(2 * time.Second)
	if _, err := os.Stat(filepath.Join(s.Dir, "done")); err == nil {
		t.Error("the command wrote on although nobody read")
	}
	o := e.rest(time.Millisecond)
	o.ended(t, "the command", 2)
	if o.bytes != size {
		t.Errorf("got %d bytes of %d", o.bytes, size)
	}
}

// With nobody following, output is dropped and the process goes on; whoever
// comes later hears what comes then, and the end.
func TestNobodyFollows(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	e, pid := r.begin("head -c 20000000 /dev/zero; touch done; read; echo later; exit 9", withStdin)
	_ = e.close()
	s.made(t, "done")
	e = r.join(t.Context(), pid)
	r.goOn(pid)
	o := e.rest(0)
	o.ended(t, "one that comes later", 9)
	if !strings.HasSuffix(o.text, "later\n") || o.bytes > 8<<20 { // some was still on its way
		t.Errorf("heard %d bytes and %q", o.bytes, o.text)
	}
	for range 2 {
		r.join(t.Context(), pid).rest(0).ended(t, "after the end", 9)
	}
}

// A client that does not read cannot keep a killed process from ending.
func TestKillWhileNobodyReads(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	e, pid := r.begin("while :; do head -c 65536 /dev/zero; echo >> rounds; done", nil)
	for before, same := int64(-1), 0; same < 8; time.Sleep(200 * time.Millisecond) { // until everything on the way is full
		now := int64(0)
		if info, err := os.Stat(filepath.Join(s.Dir, "rounds")); err == nil {
			now = info.Size()
		}
		if same++; now != before || now == 0 {
			before, same = now, 0
		}
	}
	if _, err := r.SendSignal(r.ctx(t.Context()), &process.SendSignalRequest{Process: byPID(pid), Signal: process.Signal_SIGNAL_SIGKILL}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is not listed", func() bool {
		l, err := r.List(r.ctx(t.Context()), &process.ListRequest{})
		return err == nil && len(l.GetProcesses()) == 0
	})
	o := e.rest(0)
	o.ended(t, "killed", -1)
	if o.end.GetError() != "signal: killed; a part of the output was left out because it was not read in time" {
		t.Errorf("ended with %v", o.end)
	}
}

func TestKeepalives(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	s := newSDK(t, func(ctx context.Context, m wire.Message) error {
		if m.Type == wire.TypeProcessStart {
			<-answer
		}
		return nil
	})
	r := newRPC(t, s)
	time.AfterFunc(2500*time.Millisecond, func() { close(answer) })
	// begin fails when a keepalive comes before the start.
	e, _ := r.begin("sleep 3.5", nil, "Keepalive-Ping-Interval", "1")
	o := e.rest(0)
	o.ended(t, "the command", 0)
	if o.keepalives < 2 || o.keepalives > 4 {
		t.Errorf("%d keepalives in 3.5 s, one a second was asked for", o.keepalives)
	}
}

// The time that a client names when it connects is its own, not the process's.
func TestConnectTime(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	e, pid := r.begin("read; exit 4", withStdin)
	r.join(t.Context(), pid, "Connect-Timeout-Ms", "700").rest(0).failed(t, "one with little time", connect.CodeDeadlineExceeded, "it runs on")
	r.goOn(pid)
	e.rest(0).ended(t, "the command", 4)
}

func TestTagsAndSignals(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	tag := "server"
	e, pid := r.begin("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.1; done", func(q *process.StartRequest) { q.Tag = &tag })
	byTag := &process.ProcessSelector{Selector: &process.ProcessSelector_Tag{Tag: tag}}
	l, err := r.List(r.ctx(t.Context()), &process.ListRequest{})
	if err != nil || len(l.GetProcesses()) != 1 || l.GetProcesses()[0].GetTag() != tag || l.GetProcesses()[0].GetPid() != pid {
		t.Errorf("listed %v, %v", l, err)
	}
	if !e.receive() || string(e.event().GetData().GetStdout()) != "ready\n" {
		t.Errorf("heard %v, %v", e.event(), e.err())
	}
	c, err := r.Connect(r.ctx(t.Context()), &process.ConnectRequest{Process: byTag})
	if err != nil {
		t.Fatal(err)
	}
	other := &events{c.Receive, func() *process.ProcessEvent { return c.Msg().GetEvent() }, c.Err, c.Close}
	if other.started(t) != pid {
		t.Error("another process has the tag")
	}
	if _, err := r.SendSignal(r.ctx(t.Context()), &process.SendSignalRequest{Process: byTag, Signal: process.Signal_SIGNAL_SIGTERM}); err != nil {
		t.Error(err)
	}
	for _, e := range []*events{e, other} {
		o := e.rest(0)
		o.ended(t, "asked to end", 5)
		if !strings.Contains(o.text, "bye\n") { // what it waits for is ended, too, and it may say so

			t.Errorf("heard %q", o.text)
		}
	}
	_, err = r.SendSignal(r.ctx(t.Context()), &process.SendSignalRequest{Process: byTag, Signal: process.Signal_SIGNAL_SIGTERM})
	outcome{err: err}.failed(t, "a signal after the end", connect.CodeNotFound, `"server"`)
	_, err = r.SendSignal(r.ctx(t.Context()), &process.SendSignalRequest{Process: byPID(pid)})
	outcome{err: err}.failed(t, "no signal", connect.CodeInvalidArgument, "SIGKILL or SIGTERM")
}

func TestStreamInput(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	e, pid := r.begin("wc -c; sleep 1; exit 6", withStdin)
	in, err := r.StreamInput(r.ctx(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	const piece, pieces = 700_000, 5
	send := func(m *process.StreamInputRequest) {
		t.Helper()
		if err := in.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Start{Start: &process.StreamInputRequest_StartEvent{Process: byPID(pid)}}})
	for range pieces {
		send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{Data: &process.StreamInputRequest_DataEvent{
			Input: &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: make([]byte, piece)}}}}})
		send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Keepalive{Keepalive: &process.StreamInputRequest_KeepAlive{}}})
	}
	if _, err := in.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second changes nothing
		if _, err := r.CloseStdin(r.ctx(t.Context()), &process.CloseStdinRequest{Process: byPID(pid)}); err != nil {
			t.Error(err)
		}
	}
	o := e.rest(0)
	o.ended(t, "the command", 6)
	if strings.TrimSpace(o.text) != fmt.Sprint(piece*pieces) {
		t.Errorf("it read %q bytes", o.text)
	}

	in, err = r.StreamInput(r.ctx(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{Data: &process.StreamInputRequest_DataEvent{}}})
	_, err = in.CloseAndReceive()
	outcome{err: err}.failed(t, "input for nothing", connect.CodeInvalidArgument, "first message")
}

// What cannot be sent is refused in words.
func TestInputRefused(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	plain, pid := r.begin("sleep 0.5", nil)
	outcome{err: r.put(pid, "x")}.failed(t, "to one that reads nothing", connect.CodeFailedPrecondition, "without standard input")
	if _, err := r.CloseStdin(r.ctx(t.Context()), &process.CloseStdinRequest{Process: byPID(pid)}); err != nil {
		t.Errorf("closing what is closed: %v", err)
	}
	plain.rest(0)
	outcome{err: r.put(pid, "x")}.failed(t, "to one that has ended", connect.CodeNotFound, fmt.Sprint(pid))

	cat, pid := r.begin("cat; sleep 1", withStdin)
	keys := &process.SendInputRequest{Process: byPID(pid), Input: &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte("x")}}}
	_, err := r.SendInput(r.ctx(t.Context()), keys)
	outcome{err: err}.failed(t, "keys to no terminal", connect.CodeFailedPrecondition, "no terminal")
	_, err = r.Update(r.ctx(t.Context()), &process.UpdateRequest{Process: byPID(pid), Pty: &process.PTY{Size: &process.PTY_Size{Cols: 1, Rows: 1}}})
	outcome{err: err}.failed(t, "a size for no terminal", connect.CodeFailedPrecondition, "no terminal")
	_, err = r.SendInput(r.ctx(t.Context()), &process.SendInputRequest{Process: byPID(pid)})
	outcome{err: err}.failed(t, "nothing", connect.CodeInvalidArgument, "no input")
	if _, err := r.CloseStdin(r.ctx(t.Context()), &process.CloseStdinRequest{Process: byPID(pid)}); err != nil {
		t.Error(err)
	}
	outcome{err: r.put(pid, "x")}.failed(t, "after it was closed", connect.CodeFailedPrecondition, "was closed")
	cat.rest(0).ended(t, "cat", 0)

	term, pid := r.begin("read x; exit 0", func(q *process.StartRequest) { q.Pty = &process.PTY{} })
	outcome{err: r.put(pid, "x")}.failed(t, "stdin of a terminal", connect.CodeFailedPrecondition, "terminal (pty)")
	_, err = r.CloseStdin(r.ctx(t.Context()), &process.CloseStdinRequest{Process: byPID(pid)})
	outcome{err: err}.failed(t, "closing a terminal", connect.CodeFailedPrecondition, "Ctrl+D")
	_, err = r.Update(r.ctx(t.Context()), &process.UpdateRequest{Process: byPID(pid), Pty: &process.PTY{Size: &process.PTY_Size{Cols: 70000, Rows: 1}}})
	outcome{err: err}.failed(t, "a size that none has", connect.CodeInvalidArgument, "cols and rows")
	keys.Process, keys.Input = byPID(pid), &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte("\n")}}
	if _, err = r.SendInput(r.ctx(t.Context()), keys); err != nil {
		t.Error(err)
	}
	term.rest(0).ended(t, "the terminal", 0)
}

// Input that a process does not read waits; a client that gives up leaves the
// next one its place.
func TestInputNotRead(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	r := newRPC(t, s)
	e, pid := r.begin("while [ ! -e go ]; do sleep 0.1; done; wc -c", withStdin)
	const piece = 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	sent := 0
	var err error
	for ; err == nil && sent < 64; sent++ {
		_, err = r.SendInput(r.ctx(ctx), &process.SendInputRequest{Process: byPID(pid),
			Input: &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: make([]byte, piece)}}})
	}
	if sent == 64 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("%d MiB were taken by a command that reads nothing: %v", sent, err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.CloseStdin(r.ctx(t.Context()), &process.CloseStdinRequest{Process: byPID(pid)}); err != nil {
		t.Fatal(err)
	}
	o := e.rest(0)
	o.ended(t, "the command", 0)
	var n int
	if _, err := fmt.Sscan(o.text, &n); err != nil || n != sent*piece && n != (sent-1)*piece {
		t.Errorf("it read %q bytes, %d MiB were sent", o.text, sent)
	}
}

// The end of a hub, and of the way to the computer, ends what runs, in words.
func TestProcessLost(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		end  func(*sdk) error
		code connect.Code
		says string
	}{
		"the hub stops":            {func(s *sdk) error { return s.Hub.Close() }, connect.CodeAborted, "The hub was stopped, and the command was ended with it."},
		"the computer is let go":   {func(s *sdk) error { return s.Hub.RevokeMachine(context.Background(), s.MachineID) }, connect.CodeAborted, "The computer was disconnected from the hub. The command was ended with it."},
		"the program is forbidden": {func(s *sdk) error { return forbid(s) }, connect.CodeUnavailable, "The sandbox was ended, and the command with it."},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSDK(t, nil)
			r := newRPC(t, s)
			e, _ := r.begin("sleep 60", nil)
			got := make(chan outcome, 1)
			go func() { got <- e.rest(0) }()
			if err := c.end(s); err != nil {
				t.Fatal(err)
			}
			select {
			case o := <-got:
				o.failed(t, what, c.code, c.says)
			case <-time.After(20 * time.Second):
				t.Error("the client was not told")
			}
			eventually(t, "the process has ended", func() bool { return s.Processes() == 0 })
		})
	}
}

// forbid revokes the keys of the hub, which ends their sandboxes.
func forbid(s *sdk) error {
	keys, err := s.Hub.Keys(context.Background())
	for _, k := range keys {
		err = errors.Join(err, s.Hub.RevokeKey(context.Background(), k.ID))
	}
	return err
}
