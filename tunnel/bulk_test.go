package tunnel_test

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
)

// farLane is the hub's end of second sockets, by hand.
type farLane struct {
	f     *far
	hall  *bulk.Hall
	dials chan string // the ids that they came with
	wg    sync.WaitGroup

	mu     sync.Mutex
	answer int             // a status to refuse with; 0 takes it; guarded by mu
	next   string          // guarded by mu
	conn   *websocket.Conn // guarded by mu
}

// withLane has a far hub take second sockets.
func withLane(t *testing.T, f *far) *farLane {
	l := &farLane{f: f, hall: bulk.NewHall(), dials: make(chan string, 100), next: "c2"}
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != wire.BulkPath {
			return true
		}
		if auth := r.Header.Get("Authorization"); auth != "Bearer token-1" {
			t.Errorf("the second socket comes with %q", auth)
		}
		l.dials <- r.Header.Get(wire.BulkHeader)
		l.mu.Lock()
		answer, next := l.answer, l.next
		l.mu.Unlock()
		if answer != 0 {
			w.WriteHeader(answer)
			return false
		}
		up := websocket.Upgrader{Subprotocols: []string{wire.Subprotocol}, WriteBufferSize: bulk.WriteBuffer, WriteBufferPool: bulk.Buffers}
		ws, err := up.Upgrade(w, r, http.Header{wire.BulkHeader: {next}})
		if err != nil {
			t.Error(err)
			return false
		}
		l.mu.Lock()
		l.conn = ws
		l.mu.Unlock()
		l.wg.Go(func() { _ = l.hall.Serve(ws, false, time.Minute, nil) })
		return false
	}
	t.Cleanup(func() { l.hall.Close(); l.wg.Wait() })
	return l
}

func (l *farLane) set(answer int, next string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer, l.next = answer, next
}

func (l *farLane) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn.Close()
}

// accept takes the machine's connection and offers it a second socket.
func (l *farLane) accept() *conn {
	c := l.f.next()
	m := c.read()
	c.send(wire.TypeHelloAck, m.ID, &wire.HelloAck{Protocol: wire.Version, ConnectionID: "c1", HubName: "Far hub", Bulk: true})
	return c
}

// asks has the machine do something, which is what a second socket comes for.
func (c *conn) asks() {
	c.t.Helper()
	if id := c.send(wire.TypeFileDelete, "", &wire.FileDelete{SessionID: "s", Path: "p"}); c.read().ID != id {
		c.t.Fatal("the machine does nothing")
	}
}

func (l *farLane) dialled(id string) {
	l.f.t.Helper()
	select {
	case got := <-l.dials:
		if got != id {
			l.f.t.Errorf("the second socket came with %q, not %q", got, id)
		}
	case <-time.After(20 * time.Second):
		l.f.t.Fatal("no second socket was dialled")
	}
}

// both waits until both ends have it.
func (l *farLane) both(n *near) {
	l.f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !l.hall.Joined() || !n.BulkJoined(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.f.t.Fatal("the second socket was not joined")
		}
	}
}

// The second socket comes with the connection's id, comes again with the next
// one when it is lost, is tried again while it is refused, and given up when
// the hub takes none of this connection any more; the first lives on.
func TestBulkComesAgain(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	l := withLane(t, f)
	l.set(503, "")
	n := f.machine(t, echo)
	c := l.accept()
	c.works()
	select {
	case <-l.dials:
		t.Error("it came before anything was asked")
	case <-time.After(300 * time.Millisecond):
	}
	c.asks()
	l.dialled("c1")
	l.dialled("c1")
	l.set(0, "c2")
	l.both(n)
	for len(l.dials) > 0 {
		l.dialled("c1") // while it was refused
	}
	c.works()
	l.set(0, "c3")
	l.lose()
	l.dialled("c2")
	l.both(n)
	c.works()
	l.set(409, "")
	l.lose()
	l.dialled("c3")
	select {
	case id := <-l.dials:
		t.Errorf("it came again with %q", id)
	case <-time.After(time.Second):
	}
	c.works()
	// A new connection begins anew.
	l.set(0, "c9")
	c.ws.Close()
	c = l.accept()
	c.asks()
	l.dialled("c1")
	l.both(n)
	c.works()
}

// A hub that offers none is asked for none.
func TestBulkNotOffered(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	l := withLane(t, f)
	n := f.machine(t, echo)
	c := f.accept()
	n.until(t, tunnel.Online)
	c.asks()
	select {
	case <-l.dials:
		t.Error("it dialled a second socket")
	case <-time.After(300 * time.Millisecond):
	}
}

// What goes over the second socket, and what a hub may get wrong there: the
// request that it gets it wrong in ends, and nothing else.
func TestBulkExchange(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	l := withLane(t, f)
	chunk := bytes.Repeat([]byte("x"), wire.MaxChunk)
	ended := make(chan error, 16)
	took := make(chan string, 16) // files of which something came
	n := f.machine(t, func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		switch q := m.Payload.(type) {
		case *wire.FileRead: // ends well, or does not end
			for i := 0; q.Path == "endless" || i < 3; i++ {
				if err := x.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: chunk}); err != nil {
					ended <- err
					return "", nil, err
				}
			}
			return wire.TypeAck, &wire.Empty{}, nil
		case *wire.FileWrite:
			total := 0
			for {
				ch, err := tunnel.Chunk(ctx, x)
				if err != nil {
					ended <- err
					return "", nil, err
				}
				if q.Path == "lost" {
					took <- q.Path
				}
				if total += len(ch.Data); ch.Last {
					return wire.TypeFileStatResponse, &wire.FileStatResponse{Exists: true, Entry: &wire.Entry{Name: "p", Path: "p", Kind: "file", Size: int64(total)}}, nil
				}
			}
		case *wire.ProcessStart: // counts its input, and is as large as its terminal at last
			total := 0
			for {
				follow, err := x.Next(ctx)
				if err != nil {
					ended <- err
					return "", nil, err
				}
				switch p := follow.(type) {
				case *wire.ProcessInput:
					total += len(p.Data)
				case *wire.TerminalSize:
					if p.Cols == 99 {
						return wire.TypeProcessExited, &wire.ProcessExited{ExitCode: total / 1024}, nil
					}
				}
			}
		}
		return wire.TypeAck, &wire.Empty{}, nil
	})
	c := l.accept()
	n.until(t, tunnel.Online)
	c.asks()
	l.both(n)
	over := func(id string, all ...wire.Message) *bulk.Out {
		t.Helper()
		out, err := l.hall.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			m.ID = id
			if err := out.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	piece := func(data []byte, last bool) wire.Message {
		return wire.Message{Type: wire.TypeFileChunk, Payload: &wire.FileChunk{Data: data, Last: last}}
	}
	input := func(data []byte, end bool) wire.Message {
		return wire.Message{Type: wire.TypeProcessInput, Payload: &wire.ProcessInput{Data: data, End: end}}
	}
	size := func(cols int) wire.Message {
		return wire.Message{Type: wire.TypeProcessResize, Payload: &wire.TerminalSize{Cols: cols, Rows: 9}}
	}

	// Down: BULK, the rest over the stream, the answer too.
	id := c.send(wire.TypeFileRead, "", &wire.FileRead{SessionID: "s", Path: "p"})
	if m := c.read(); m.Type != wire.TypeBulk || m.ID != id {
		t.Fatalf("instead of BULK: %+v", m)
	}
	in, err := l.hall.Take(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []wire.Type{wire.TypeFileChunk, wire.TypeFileChunk, wire.TypeFileChunk, wire.TypeAck} {
		if m, err := in.Next(t.Context(), wire.ToHub); err != nil || m.Type != want {
			t.Fatalf("instead of %s: %+v, %v", want, m, err)
		}
	}
	c.works()

	// CANCEL over the control socket ends one that nobody reads, and is answered.
	id = c.send(wire.TypeFileRead, "", &wire.FileRead{SessionID: "s", Path: "endless"})
	if m := c.read(); m.Type != wire.TypeBulk {
		t.Fatalf("instead of BULK: %+v", m)
	}
	time.Sleep(100 * time.Millisecond) // its window fills
	c.send(wire.TypeCancel, id, &wire.Empty{})
	c.fails(id, wire.CodeCancelled, "cancelled")
	if err := <-ended; wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("Send ended with %v", err)
	}
	c.works()

	// Up: what came before BULK, then the stream.
	id = c.send(wire.TypeFileWrite, "", &wire.FileWrite{SessionID: "s", Path: "p"})
	over(id, piece(chunk, false), piece([]byte{}, false), piece(chunk[:5], true), piece(chunk, false))
	c.send(wire.TypeFileChunk, id, &wire.FileChunk{Data: chunk[:1]})
	if m := c.read(); m.Type != wire.TypeCredit {
		t.Fatalf("instead of CREDIT: %+v", m)
	}
	c.send(wire.TypeBulk, id, &wire.Empty{})
	if m := c.read(); m.ID != id || m.Payload.(*wire.FileStatResponse).Entry.Size != int64(len(chunk)+6) {
		t.Fatalf("uploaded %+v", m.Payload)
	}

	// Input, its end, and a terminal's sizes after it.
	id = c.send(wire.TypeProcessStart, "", &wire.ProcessStart{SessionID: "s", Cmd: "x", Stdin: true})
	c.send(wire.TypeBulk, id, &wire.Empty{})
	over(id, input(chunk[:2048], false), size(80), input(chunk[:1024], true), input(chunk, false), size(99))
	if m := c.read(); m.ID != id || m.Payload.(*wire.ProcessExited).ExitCode != 3 {
		t.Fatalf("it read %+v KiB", m.Payload)
	}

	for name, wrong := range map[string]struct {
		do   func(id string)
		code wire.Code
		text string
	}{
		"input for a file": {func(id string) { over(id, input(chunk, false)) }, wire.CodeInvalid, "more than it was asked"},
		"another request": {func(id string) {
			over(id, wire.Message{Type: wire.TypeFileStat, Payload: &wire.FileStat{SessionID: "s", Path: "p"}})
		}, wire.CodeInvalid, "more than it was asked"},
		"both ways at once": {func(id string) { c.send(wire.TypeFileChunk, id, &wire.FileChunk{Data: chunk}) }, wire.CodeInvalid, "more than it was asked"},
		"an end too early":  {func(id string) { over(id, piece(chunk, false)).Close() }, wire.CodeLost, "lost"},
		"a stream let go":   {func(id string) { over(id, piece(chunk, false)).Reset() }, wire.CodeLost, "lost"},
	} {
		t.Log(name)
		id := c.send(wire.TypeFileWrite, "", &wire.FileWrite{SessionID: "s", Path: "p"})
		c.send(wire.TypeBulk, id, &wire.Empty{})
		wrong.do(id)
		c.fails(id, wrong.code, wrong.text)
		<-ended
		c.works()
	}

	// Of requests that are not, or not any more, nothing is kept.
	over("nobodys", piece(chunk, true))
	c.send(wire.TypeBulk, "nobodys", &wire.Empty{})
	c.send(wire.TypeBulk, "nobodys-too", &wire.Empty{})
	c.works()

	// A stream that does not come is not waited for once the request is cancelled.
	id = c.send(wire.TypeFileWrite, "", &wire.FileWrite{SessionID: "s", Path: "p"})
	c.send(wire.TypeBulk, id, &wire.Empty{})
	c.send(wire.TypeCancel, id, &wire.Empty{})
	c.fails(id, wire.CodeCancelled, "cancelled")
	<-ended

	// The second socket is lost in the middle of both.
	down := c.send(wire.TypeFileRead, "", &wire.FileRead{SessionID: "s", Path: "endless"})
	if m := c.read(); m.Type != wire.TypeBulk {
		t.Fatalf("instead of BULK: %+v", m)
	}
	up := c.send(wire.TypeFileWrite, "", &wire.FileWrite{SessionID: "s", Path: "lost"})
	c.send(wire.TypeBulk, up, &wire.Empty{})
	over(up, piece(chunk, false))
	<-took
	l.lose()
	for range 2 {
		m := c.read()
		if p, ok := m.Payload.(*wire.ErrorPayload); !ok || p.Code != wire.CodeLost || m.ID != down && m.ID != up {
			t.Errorf("after the loss: %s %+v", m.Type, m.Payload)
		}
		<-ended
	}
	c.works()
	l.both(n)
}
