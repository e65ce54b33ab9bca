package hub_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/bulk"
)

// lane dials the second socket of a machine, by hand. resp tells why there is
// none.
func lane(t *testing.T, url, token, id string) (*websocket.Conn, *http.Response) {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{wire.Subprotocol}, HandshakeTimeout: 5 * time.Second}
	ws, resp, err := d.Dial("ws"+strings.TrimPrefix(url, "http")+wire.BulkPath, http.Header{"Authorization": {"Bearer " + token}, wire.BulkHeader: {id}})
	if err != nil {
		if resp == nil {
			t.Fatal(err)
		}
		return nil, resp
	}
	t.Cleanup(func() { ws.Close() })
	return ws, resp
}

// serveLane is the machine's end of one; gone is closed when it has ended.
func serveLane(t *testing.T, ws *websocket.Conn) (h *bulk.Hall, gone chan struct{}) {
	t.Helper()
	h, gone = bulk.NewHall(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { defer close(gone); _ = h.Serve(ws, true, time.Minute, nil) })
	t.Cleanup(func() { h.Close(); wg.Wait() })
	eventually(t, "the second socket is there", h.Joined)
	return h, gone
}

// joinLane connects and gives the id that a second socket comes with.
func (b *bench) joinLane(t *testing.T, token, machine string) (*raw, string) {
	t.Helper()
	r := mustDial(t, b.url, token)
	r.send(wire.TypeHello, "", hello(machine))
	ack := r.read().Payload.(*wire.HelloAck)
	if !ack.Bulk {
		t.Fatal("the hub offers no second socket")
	}
	return r, ack.ConnectionID
}

// A second socket needs the token of the connection, the connection's id, each
// once, and the connection to be the machine's current one.
func TestBulkDoor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token, other := b.token(t, "m1"), b.token(t, "m2")
	r, id := b.joinLane(t, token, "m1")
	_, otherID := b.joinLane(t, other, "m2")
	refused := func(name, token, id string, status int) {
		t.Helper()
		if ws, resp := lane(t, b.url, token, id); ws != nil || resp.StatusCode != status {
			t.Errorf("%s: %+v", name, resp)
		}
	}
	refused("no token", "", id, 401)
	refused("an unknown token", "lpm_0", id, 401)
	refused("no id", token, "", 409)
	refused("another's id", token, otherID, 409)
	refused("another's token", other, id, 409)
	if resp, err := http.Get(b.url + wire.BulkPath); err != nil || resp.StatusCode != 401 {
		t.Errorf("without a WebSocket: %v %+v", err, resp)
	} else {
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	}

	// Until it was heard the id is good: the answer may have been lost.
	unheard, _ := lane(t, b.url, token, id)
	ws, resp := lane(t, b.url, token, id)
	if unheard == nil || ws == nil {
		t.Fatalf("it was refused: %+v", resp)
	}
	next := resp.Header.Get(wire.BulkHeader)
	_, gone := serveLane(t, ws)
	eventually(t, "the id is spent", func() bool {
		again, resp := lane(t, b.url, token, id)
		if again != nil {
			again.Close()
		}
		return again == nil && resp.StatusCode == 409
	})
	_ = gone
	ws, resp = lane(t, b.url, token, next)
	if ws == nil {
		t.Fatalf("with the next id it was refused: %+v", resp)
	}
	next = resp.Header.Get(wire.BulkHeader)
	_, gone = serveLane(t, ws)
	b.works(t, r, "m1")

	// It ends with the connection, and the id with it.
	r2, id2 := b.joinLane(t, token, "m1")
	r.closed(wire.CloseReplaced)
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the second socket outlives its connection")
	}
	refused("after its connection", token, next, 409)
	ws, _ = lane(t, b.url, token, id2)
	if ws == nil {
		t.Fatal("the newer connection has no second socket")
	}
	_, gone = serveLane(t, ws)
	if err := b.RevokeMachine(t.Context(), "m1"); err != nil {
		t.Fatal(err)
	}
	r2.closed(wire.CloseRevoked)
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the second socket outlives its token")
	}
	refused("after the revocation", token, id2, 401)
}

// A hub that takes none says so, and takes none.
func TestNoBulk(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *hub.Options) { o.NoBulk = true })
	token := b.token(t, "m1")
	r := mustDial(t, b.url, token)
	r.send(wire.TypeHello, "", hello("m1"))
	ack := r.read().Payload.(*wire.HelloAck)
	if ack.Bulk {
		t.Error("it offers one")
	}
	if ws, resp := lane(t, b.url, token, ack.ConnectionID); ws != nil || resp.StatusCode != 409 {
		t.Errorf("it takes one: %+v", resp)
	}
}

// A machine that breaks the rules of the second socket loses the request that
// it breaks them in, and nothing else.
func TestBulkBreaches(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := b.token(t, "m1")
	r, id := b.joinLane(t, token, "m1")
	ws, _ := lane(t, b.url, token, id)
	h, _ := serveLane(t, ws)
	begin := func(kind wire.Type, p wire.Payload) (hub.Stream, string) {
		t.Helper()
		s, err := b.Do(t.Context(), on("m1"), kind, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s, r.until(kind).ID
	}
	read := func() (hub.Stream, string) {
		return begin(wire.TypeFileRead, &wire.FileRead{SessionID: "s", Path: "p"})
	}
	over := func(id string, all ...wire.Message) *bulk.Out {
		t.Helper()
		out, err := h.Open(t.Context(), id)
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
	mark := func(id string) { r.send(wire.TypeBulk, id, &wire.Empty{}) }
	chunk := wire.Message{Type: wire.TypeFileChunk, Payload: &wire.FileChunk{Data: []byte("x")}}
	ack := wire.Message{Type: wire.TypeAck, Payload: &wire.Empty{}}
	fails := func(name string, s hub.Stream, code wire.Code) {
		t.Helper()
		var err error
		for err == nil {
			_, err = s.Recv()
		}
		if wire.CodeOf(err) != code {
			t.Errorf("%s: the request ended with %v", name, err)
		}
	}

	s, id := read()
	r.send(wire.TypeFileContents, id, &wire.FileContents{Size: 1, Length: 1})
	mark(id)
	mark(id) // a second one says nothing new
	over(id, chunk, ack)
	for _, want := range []wire.Type{wire.TypeFileContents, wire.TypeFileChunk, wire.TypeAck} {
		if m, err := s.Recv(); err != nil || m.Type != want {
			t.Fatalf("instead of %s: %+v %v", want, m, err)
		}
	}

	s, id = read()
	over(id, wire.Message{Type: wire.TypeProcessExited, Payload: &wire.ProcessExited{}})
	mark(id)
	fails("something else", s, wire.CodeInternal)

	s, id = read()
	over(id, wire.Message{Type: wire.TypeCredit, Payload: &wire.Credit{Bytes: 1}})
	mark(id)
	fails("credit", s, wire.CodeInternal)

	s, id = read()
	mark(id)
	r.send(wire.TypeFileChunk, id, &wire.FileChunk{Data: []byte("x")})
	fails("both ways at once", s, wire.CodeInternal)

	s, id = read()
	mark(id)
	r.send(wire.TypeError, id, &wire.ErrorPayload{Code: wire.CodeDiskFull, Message: "It could not go on."})
	fails("an error beside it", s, wire.CodeDiskFull)

	s, id = read()
	out := over(id, chunk)
	mark(id)
	if _, err := s.Recv(); err != nil {
		t.Error(err)
	}
	out.Close()
	fails("an end without an answer", s, wire.CodeLost)

	// A stream without its BULK, and one of no request, are nobody's.
	s, id = read()
	over(id, ack)
	over("nobodys", ack)
	mark("nobodys")
	r.send(wire.TypeAck, id, &wire.Empty{})
	if m, err := s.Recv(); err != nil || m.Type != wire.TypeAck {
		t.Errorf("an answer beside a stream without BULK: %+v %v", m, err)
	}

	// Whoever waits for a stream that does not come is let go with the request.
	s, id = read()
	mark(id)
	ended := make(chan error, 1)
	go func() { _, err := s.Recv(); ended <- err }()
	time.Sleep(50 * time.Millisecond)
	s.Close()
	if err := <-ended; wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("a request that was closed: %v", err)
	}

	// What a machine lets go of is not sent on, and its answer says why.
	s, id = begin(wire.TypeFileWrite, &wire.FileWrite{SessionID: "s", Path: "p"})
	sent := make(chan error, 1)
	go func() {
		for {
			if err := s.Send(&wire.FileChunk{Data: make([]byte, wire.MaxChunk)}); err != nil {
				sent <- err
				return
			}
		}
	}()
	if m := r.until(wire.TypeBulk); m.ID != id {
		t.Fatalf("BULK of %s, not %s", m.ID, id)
	}
	in, err := h.Take(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := in.Next(t.Context(), wire.ToMachine); err != nil || m.Type != wire.TypeFileChunk {
		t.Errorf("of the upload came %+v %v", m, err)
	}
	in.Reset()
	if err := <-sent; err == nil || err.Error() != "EOF" {
		t.Errorf("Send ended with %v", err)
	}
	r.send(wire.TypeError, id, &wire.ErrorPayload{Code: wire.CodeDiskFull, Message: "The disk is full."})
	fails("an upload that was let go", s, wire.CodeDiskFull)
	b.works(t, r, "m1")
}
