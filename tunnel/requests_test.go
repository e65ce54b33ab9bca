package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

func TestOddFrames(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	n := f.machine(t, echo)
	c := f.accept()
	n.until(t, tunnel.Online)
	frame := func(kind wire.Type, id, payload string) []byte {
		return fmt.Appendf(nil, `{"type":%q,"id":%q,"payload":%s}`, kind, id, payload)
	}
	// Without an id to answer, or with nothing left to end: dropped.
	for name, data := range map[string][]byte{
		"not JSON":         []byte("%%"),
		"empty":            {},
		"no id":            []byte(`{"type":"FILE_STAT","payload":{}}`),
		"oversized":        frame(wire.TypeFileStat, "a", `{"path":"`+strings.Repeat("x", 5<<20)+`"}`),
		"second HELLO_ACK": frame(wire.TypeHelloAck, "a", `{"protocol_version":"1.0","connection_id":"c","hub_name":"x"}`),
		"late CANCEL":      frame(wire.TypeCancel, "gone", `{}`),
		"late CREDIT":      frame(wire.TypeCredit, "gone", `{"bytes":1}`),
		"late FILE_CHUNK":  frame(wire.TypeFileChunk, "gone", `{"data":"eA==","last":true}`),
	} {
		t.Log(name)
		c.sendBytes(data)
		c.works()
	}
	_ = c.ws.WriteMessage(websocket.BinaryMessage, []byte("x"))
	c.works()
	// With one: answered.
	for name, c2 := range map[string]struct {
		data []byte
		text string
	}{
		"unknown type":       {frame("REBOOT", "a1", "{}"), "unknown type"},
		"from the other end": {frame(wire.TypeStatus, "a1", "{}"), "does not take"},
		"invalid":            {frame(wire.TypeFileStat, "a1", `{"session_id":"s","path":"a\u0000b"}`), "NUL"},
		"payload missing":    {frame(wire.TypeFileStat, "a1", `null`), "must be an object"},
	} {
		t.Log(name)
		c.sendBytes(c2.data)
		c.fails("a1", wire.CodeInvalid, c2.text)
		c.works()
	}
	if id := c.send(wire.TypeFileDelete, "", &wire.FileDelete{SessionID: "s", Path: "p"}); c.read().ID != id {
		t.Error("a good request was not answered")
	}
}

// A request whose id is in use is dropped: the first one goes on.
func TestDuplicateID(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	calls := make(chan string, 4)
	release := make(chan struct{})
	n := f.machine(t, func(_ context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		calls <- m.Payload.(*wire.FileDelete).Path
		<-release
		return wire.TypeAck, &wire.Empty{}, nil
	})
	c := f.accept()
	n.until(t, tunnel.Online)
	c.send(wire.TypeFileDelete, "d1", &wire.FileDelete{SessionID: "s", Path: "first"})
	if p := <-calls; p != "first" {
		t.Fatal(p)
	}
	c.send(wire.TypeFileDelete, "d1", &wire.FileDelete{SessionID: "s", Path: "second"})
	c.works()
	close(release)
	if m := c.read(); m.ID != "d1" || m.Type != wire.TypeAck {
		t.Errorf("answered with %+v", m)
	}
	c.works()
	if len(calls) != 0 {
		t.Errorf("%s ran too", <-calls)
	}
}

// A process counts until it begins, however long it goes on then.
func TestProcessesThatBeganTakeNoPlace(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	release := make(chan struct{})
	defer close(release)
	n := f.machine(t, func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		p, ok := m.Payload.(*wire.ProcessStart)
		if !ok {
			return wire.TypeAck, &wire.Empty{}, nil
		}
		if p.Cmd == "serve" {
			x.Begin()
			if err := x.Send(ctx, wire.TypeProcessStarted, &wire.ProcessStarted{PID: 7}); err != nil {
				return "", nil, err
			}
		}
		<-release
		return wire.TypeProcessExited, &wire.ProcessExited{}, nil
	}, func(o *tunnel.Options) { o.MaxConcurrent = 3 })
	c := f.accept()
	n.until(t, tunnel.Online)
	start := func(cmd string) string {
		return c.send(wire.TypeProcessStart, "", &wire.ProcessStart{SessionID: "s", Cmd: cmd})
	}
	for range 5 {
		id := start("serve")
		if m := c.read(); m.ID != id || m.Type != wire.TypeProcessStarted {
			t.Fatalf("a process that begins: %+v", m)
		}
	}
	start("still asked about")
	id := c.send(wire.TypeFileDelete, "", &wire.FileDelete{SessionID: "s", Path: "p"})
	if m := c.read(); m.ID != id || m.Type != wire.TypeAck {
		t.Fatalf("beside 5 that began: %+v", m)
	}
	start("still asked about")
	start("still asked about")
	c.fails(c.send(wire.TypeFileDelete, "", &wire.FileDelete{SessionID: "s", Path: "p"}), wire.CodeOverloaded, "3 requests")
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	release := make(chan struct{})
	n := f.machine(t, func(_ context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if m.Type == wire.TypeFileStat {
			<-release
			return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
		}
		return wire.TypeAck, &wire.Empty{}, nil
	}, func(o *tunnel.Options) { o.MaxConcurrent = 2 })
	c := f.accept()
	n.until(t, tunnel.Online)
	for range 2 {
		c.send(wire.TypeFileStat, "", &wire.FileStat{SessionID: "s", Path: "p"})
	}
	c.works()
	m := c.fails(c.send(wire.TypeFileDelete, "", &wire.FileDelete{SessionID: "s", Path: "p"}), wire.CodeOverloaded, "2 requests")
	if m.PendingCapacity == nil || *m.PendingCapacity != 0 {
		t.Errorf("capacity %v", m.PendingCapacity)
	}
	// What ends something is never refused for load.
	if id := c.send(wire.TypeSessionClose, "", &wire.SessionRef{SessionID: "s"}); c.read().ID != id {
		t.Error("SESSION_CLOSE was not answered")
	}
	close(release)
	answers, status := 0, false
	for answers < 2 || !status {
		switch m := c.read(); p := m.Payload.(type) {
		case *wire.FileStatResponse:
			answers++
		case *wire.Status:
			// Sent since a slot at full load became free.
			status = true
			if p.MaxConcurrent != 2 || p.InFlight > 1 || p.Waiting != 3 {
				t.Errorf("status %+v", p)
			}
		}
	}
}

func TestExchange(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	chunk := bytes.Repeat([]byte("x"), wire.MaxChunk)
	ended := make(chan error, 4)
	n := f.machine(t, func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		switch m.Type {
		case wire.TypeFileRead: // sends without end
			for {
				if err := x.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: chunk}); err != nil {
					ended <- err
					return "", nil, err
				}
			}
		case wire.TypeFileWrite: // takes to the last chunk
			total := 0
			for {
				ch, err := tunnel.Chunk(ctx, x)
				if err != nil {
					ended <- err
					return "", nil, err
				}
				total += len(ch.Data)
				if ch.Last {
					return wire.TypeFileStatResponse, &wire.FileStatResponse{Exists: true, Entry: &wire.Entry{Name: "p", Path: "p", Kind: "file", Size: int64(total)}}, nil
				}
			}
		}
		<-ctx.Done() // takes nothing
		ended <- context.Cause(ctx)
		return "", nil, context.Cause(ctx)
	})
	c := f.accept()
	n.until(t, tunnel.Online)

	// Down: no more than the credit, and on with new credit.
	read := c.send(wire.TypeFileRead, "", &wire.FileRead{SessionID: "s", Path: "p"})
	for range 4 {
		if m := c.read(); m.ID != read || m.Type != wire.TypeFileChunk {
			t.Fatalf("got %+v", m)
		}
	}
	c.works() // and nothing before the PONG
	c.send(wire.TypeCredit, read, &wire.Credit{Bytes: wire.MaxChunk})
	if m := c.read(); m.ID != read || m.Type != wire.TypeFileChunk {
		t.Fatalf("after credit: %+v", m)
	}
	c.works()
	c.send(wire.TypeCancel, read, &wire.Empty{})
	c.fails(read, wire.CodeCancelled, "cancelled")
	if err := <-ended; wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("Send ended with %v", err)
	}

	// Up: credit for each chunk that was taken.
	write := c.send(wire.TypeFileWrite, "", &wire.FileWrite{SessionID: "s", Path: "p"})
	for range 8 {
		c.send(wire.TypeFileChunk, write, &wire.FileChunk{Data: chunk})
		if m := c.read(); m.ID != write || m.Payload.(*wire.Credit).Bytes != len(chunk) {
			t.Fatalf("after a chunk: %+v", m)
		}
	}
	c.send(wire.TypeFileChunk, write, &wire.FileChunk{Data: []byte("end"), Last: true})
	if m := c.read(); m.Payload.(*wire.FileStatResponse).Entry.Size != int64(8*len(chunk)+3) {
		t.Errorf("uploaded %+v", m.Payload)
	}
	write = c.send(wire.TypeFileWrite, "", &wire.FileWrite{SessionID: "s", Path: "p"})
	c.send(wire.TypeCancel, write, &wire.Empty{})
	c.fails(write, wire.CodeCancelled, "cancelled")
	if err := <-ended; wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("Chunk ended with %v", err)
	}

	// Empty chunks, and what comes after the last one, are not kept.
	write = c.send(wire.TypeFileWrite, "", &wire.FileWrite{SessionID: "s", Path: "p"})
	c.send(wire.TypeFileChunk, write, &wire.FileChunk{Data: []byte{}})
	c.send(wire.TypeFileChunk, write, &wire.FileChunk{Data: []byte("end"), Last: true})
	c.send(wire.TypeFileChunk, write, &wire.FileChunk{Data: chunk})
	if m := c.read(); m.Payload.(*wire.FileStatResponse).Entry.Size != 3 {
		t.Errorf("uploaded %+v", m.Payload)
	}

	// A hub that sends beyond its credit loses that request only.
	stat := c.send(wire.TypeFileStat, "", &wire.FileStat{SessionID: "s", Path: "p"})
	for range 6 {
		c.send(wire.TypeFileChunk, stat, &wire.FileChunk{Data: chunk})
	}
	c.fails(stat, wire.CodeInvalid, "more than it was asked")
	<-ended
	c.works()
}

// An answer that may not be sent becomes an error that can.
func TestUnsendableAnswer(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	n := f.machine(t, func(_ context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if m.Type == wire.TypeFileStat {
			return wire.TypeFileStatResponse, &wire.FileStatResponse{Exists: true}, nil
		}
		return "", nil, errors.New("open /home/ann/secret: no such file")
	})
	c := f.accept()
	n.until(t, tunnel.Online)
	c.fails(c.send(wire.TypeFileStat, "", &wire.FileStat{SessionID: "s", Path: "p"}), wire.CodeInternal, "its log says what")
	m := c.fails(c.send(wire.TypeFileDelete, "", &wire.FileDelete{SessionID: "s", Path: "p"}), wire.CodeInternal, "its log says what")
	if strings.Contains(m.Payload.(*wire.ErrorPayload).Message, "secret") {
		t.Error("the cause crossed the tunnel")
	}
	c.works()
}
