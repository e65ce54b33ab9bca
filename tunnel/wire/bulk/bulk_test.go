package bulk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/libp2p/go-yamux/v5"
	"go.uber.org/goleak"

	"localpc/tunnel/wire"
	"localpc/tunnel/wire/ws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sockets is both ends of a WebSocket.
func sockets(t *testing.T) (near, far *websocket.Conn) {
	t.Helper()
	conns := make(chan *websocket.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{WriteBufferSize: WriteBuffer, WriteBufferPool: Buffers}
		if c, err := up.Upgrade(w, r, nil); err == nil {
			conns <- c
		}
	}))
	t.Cleanup(srv.Close)
	d := websocket.Dialer{WriteBufferSize: WriteBuffer, WriteBufferPool: Buffers}
	near, _, err := d.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	far = <-conns
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// serve has a hall take a socket; ended gives how it ended.
func serve(t *testing.T, h *Hall, conn *websocket.Conn, client bool, heard func()) (ended chan error) {
	t.Helper()
	ended = make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { ended <- h.Serve(conn, client, 30*time.Second, heard) })
	t.Cleanup(func() { h.Close(); wg.Wait() })
	return ended
}

// halls are both ends of a bulk socket.
func halls(t *testing.T) (machine, hub *Hall) {
	t.Helper()
	near, far := sockets(t)
	machine, hub = NewHall(), NewHall()
	serve(t, machine, near, true, nil)
	serve(t, hub, far, false, nil)
	until(t, "both have a socket", func() bool { return machine.Joined() && hub.Joined() })
	return machine, hub
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so in 20 s: %s", what)
		}
	}
}

func send(t *testing.T, o *Out, p wire.Payload, kind wire.Type) {
	t.Helper()
	if err := o.Send(t.Context(), wire.Message{Type: kind, ID: o.id, Payload: p}); err != nil {
		t.Fatalf("send %s: %v", kind, err)
	}
}

// Every kind of frame arrives as it was sent, whichever of the stream and its
// BULK comes first.
func TestFrames(t *testing.T) {
	t.Parallel()
	machine, hub := halls(t)
	big := bytes.Repeat([]byte{0, 1, 0xff, '\n'}, wire.MaxChunk/4)
	entries := make([]wire.Entry, 20000)
	for i := range entries {
		entries[i] = wire.Entry{Name: "n", Path: fmt.Sprintf("dir/%d", i), Kind: "file"}
	}
	toHub := []wire.Payload{&wire.FileContents{Size: 3, Length: 3}, &wire.FileChunk{Data: big}, &wire.FileChunk{Data: []byte{}}, &wire.FileChunk{Data: big[:1]},
		&wire.ProcessOutput{Stream: "stdout", Data: big[:maxPiece]}, &wire.ProcessOutput{Stream: "stderr", Data: []byte("e")}, &wire.ProcessOutput{Stream: "pty", Data: []byte("p")},
		&wire.FileListResponse{Entries: entries}, &wire.ProcessExited{ExitCode: 3}, &wire.ErrorPayload{Code: wire.CodeDiskFull, Message: "full"}}
	toMachine := []wire.Payload{&wire.FileChunk{Data: big}, &wire.FileChunk{Data: big[:7], Last: true}, &wire.ProcessInput{Data: []byte("in")},
		&wire.TerminalSize{Cols: 80, Rows: 24}, &wire.ProcessInput{Data: []byte{}, End: true}}
	types := map[string]wire.Type{"*wire.FileContents": wire.TypeFileContents, "*wire.FileChunk": wire.TypeFileChunk, "*wire.ProcessOutput": wire.TypeProcessOutput,
		"*wire.FileListResponse": wire.TypeFileListResponse, "*wire.ProcessExited": wire.TypeProcessExited, "*wire.ErrorPayload": wire.TypeError,
		"*wire.ProcessInput": wire.TypeProcessInput, "*wire.TerminalSize": wire.TypeProcessResize}
	for name, c := range map[string]struct {
		from, to *Hall
		dir      wire.Direction
		all      []wire.Payload
	}{"to the hub": {machine, hub, wire.ToHub, toHub}, "to the machine": {hub, machine, wire.ToMachine, toMachine}} {
		for _, first := range []string{"stream", "BULK"} {
			id := strings.ReplaceAll(name, " ", "-") + first
			var in *In
			took := make(chan error, 1)
			take := func() {
				var err error
				in, err = c.to.Take(t.Context(), id)
				took <- err
			}
			if first == "BULK" {
				go take()
				until(t, "it waits for the stream", func() bool { c.to.mu.Lock(); defer c.to.mu.Unlock(); return c.to.wanted[id] != nil })
			}
			out, err := c.from.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for _, p := range c.all {
					send(t, out, p, types[fmt.Sprintf("%T", p)])
				}
				out.Close()
			}()
			if first == "stream" {
				until(t, "the stream is parked", func() bool { c.to.mu.Lock(); defer c.to.mu.Unlock(); return c.to.parked[id] != nil })
				go take()
			}
			if err := <-took; err != nil {
				t.Fatalf("%s, %s first: %v", name, first, err)
			}
			for i, want := range c.all {
				m, err := in.Next(t.Context(), c.dir)
				if err != nil {
					t.Fatalf("%s: frame %d: %v", name, i, err)
				}
				if m.ID != id || m.Type != types[fmt.Sprintf("%T", want)] || !same(m.Payload, want) {
					t.Errorf("%s: frame %d is %s %T", name, i, m.Type, m.Payload)
				}
			}
			if _, err := in.Next(t.Context(), c.dir); err != io.EOF {
				t.Errorf("%s: after the last: %v", name, err)
			}
			in.Close()
		}
	}
}

func same(a, b wire.Payload) bool { return fmt.Sprintf("%T%+v", a, a) == fmt.Sprintf("%T%+v", b, b) }

// Who waits is let go when its ctx ends, and can go on: what went of a frame
// by then is completed, and no byte is lost or comes twice.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	machine, hub := halls(t)
	out, err := machine.Open(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	var sent, tried bytes.Buffer
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		chunk := bytes.Repeat([]byte{byte(i)}, 200_000)
		err := out.Send(ctx, wire.Message{Type: wire.TypeFileChunk, ID: "r1", Payload: &wire.FileChunk{Data: chunk}})
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			tried.Write(chunk)
			break // nobody reads
		}
		if err != nil {
			t.Fatal(err)
		}
		sent.Write(chunk)
		if i > 100 {
			t.Fatal("a stream that nobody reads takes without end")
		}
	}
	in, err := hub.Take(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	rest := make(chan error, 1)
	go func() {
		rest <- out.Send(t.Context(), wire.Message{Type: wire.TypeAck, ID: "r1", Payload: &wire.Empty{}})
	}()
	var got bytes.Buffer
	for {
		// A reader without patience loses nothing.
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		m, err := in.Next(ctx, wire.ToHub)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			m, err = in.Next(t.Context(), wire.ToHub)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Type == wire.TypeAck {
			break
		}
		got.Write(m.Payload.(*wire.FileChunk).Data)
	}
	if err := <-rest; err != nil {
		t.Errorf("the last frame: %v", err)
	}
	// The frame that was broken off came whole, or not at all.
	if !bytes.Equal(got.Bytes(), sent.Bytes()) && !bytes.Equal(got.Bytes(), append(sent.Bytes(), tried.Bytes()...)) {
		t.Errorf("%d bytes came, %d were sent and %d tried", got.Len(), sent.Len(), tried.Len())
	}
}

// A reader that lets go ends its sender, and nothing else.
func TestReset(t *testing.T) {
	t.Parallel()
	machine, hub := halls(t)
	chunk := &wire.FileChunk{Data: make([]byte, wire.MaxChunk)}
	endless := func(id string) (*Out, chan error) {
		out, err := machine.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			for {
				if err := out.Send(context.Background(), wire.Message{Type: wire.TypeFileChunk, ID: id, Payload: chunk}); err != nil {
					done <- err
					return
				}
			}
		}()
		return out, done
	}
	_, first := endless("r1")
	_, second := endless("r2")
	in, err := hub.Take(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	in.Reset()
	if err := <-first; !errors.Is(err, ErrReset) {
		t.Errorf("its sender ended with %v", err)
	}
	// One whose request has ended before it was taken.
	hubHas := func() bool { hub.mu.Lock(); defer hub.mu.Unlock(); return hub.parked["r2"] != nil }
	until(t, "the second stream is there", hubHas)
	hub.Drop("r2")
	if err := <-second; !errors.Is(err, ErrReset) {
		t.Errorf("the dropped one's sender ended with %v", err)
	}
	// A sender that drops what it has sent.
	third, ended := endless("r3")
	in, err = hub.Take(t.Context(), "r3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Next(t.Context(), wire.ToHub); err != nil {
		t.Fatal(err)
	}
	third.Reset()
	for err == nil {
		_, err = in.Next(t.Context(), wire.ToHub)
	}
	if !errors.Is(err, ErrReset) {
		t.Errorf("its reader ended with %v", err)
	}
	<-ended
	// The lost socket.
	fourth, ended := endless("r4")
	_ = fourth
	if in, err = hub.Take(t.Context(), "r4"); err != nil {
		t.Fatal(err)
	}
	machine.Close()
	for err == nil {
		_, err = in.Next(t.Context(), wire.ToHub)
	}
	if !errors.Is(err, ErrLost) {
		t.Errorf("its reader ended with %v", err)
	}
	if err := <-ended; !errors.Is(err, ErrLost) {
		t.Errorf("its sender ended with %v", err)
	}
	if _, err := machine.Open(t.Context(), "r5"); !errors.Is(err, ErrLost) {
		t.Errorf("without a socket a stream was opened: %v", err)
	}
	if _, err := machine.Take(t.Context(), "r5"); !errors.Is(err, ErrLost) {
		t.Errorf("without a socket a stream was waited for: %v", err)
	}
}

// A newer socket takes the place of the one before it.
func TestNewer(t *testing.T) {
	t.Parallel()
	hub := NewHall()
	n1, f1 := sockets(t)
	heard := make(chan struct{}, 2)
	first := serve(t, hub, f1, false, func() { heard <- struct{}{} })
	m1 := NewHall()
	lost := serve(t, m1, n1, true, nil)
	<-heard
	n2, f2 := sockets(t)
	serve(t, hub, f2, false, nil)
	m2 := NewHall()
	serve(t, m2, n2, true, nil)
	if err := <-first; !errors.Is(err, ErrLost) {
		t.Errorf("the first ended with %v", err)
	}
	<-lost
	until(t, "the second is there", m2.Joined)
	out, err := m2.Open(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	send(t, out, &wire.Empty{}, wire.TypeAck)
	in, err := hub.Take(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := in.Next(t.Context(), wire.ToHub); err != nil || m.Type != wire.TypeAck {
		t.Errorf("over the second came %+v, %v", m, err)
	}
	if len(heard) != 0 {
		t.Error("the first was heard more than once")
	}
}

// Nothing that the other end sends does harm: it loses its stream, or its
// socket, and what it can have kept here is bounded.
func TestHostile(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*Hall, *yamux.Session, chan error) {
		near, far := sockets(t)
		hub := NewHall()
		ended := serve(t, hub, far, false, nil)
		config := yamux.DefaultConfig()
		config.EnableKeepAlive, config.LogOutput = false, io.Discard
		mux, err := yamux.Client(&carrier{ws: near, quiet: ws.NewPatience(near, time.Minute)}, config, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { mux.Close() })
		return hub, mux, ended
	}
	open := func(t *testing.T, mux *yamux.Session, data []byte) *yamux.Stream {
		t.Helper()
		st, err := mux.OpenStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Write(data); err != nil {
			t.Fatal(err)
		}
		return st
	}
	reset := func(t *testing.T, st *yamux.Stream) {
		t.Helper()
		_ = st.SetReadDeadline(time.Now().Add(20 * time.Second))
		var gone *yamux.StreamError
		if _, err := st.Read(make([]byte, 1)); !errors.As(err, &gone) || !gone.Remote {
			t.Errorf("the stream ended with %v", err)
		}
	}
	name := func(id string) []byte { return append([]byte{byte(len(id))}, id...) }

	t.Run("names", func(t *testing.T) {
		t.Parallel()
		hub, mux, _ := begin(t)
		for what, data := range map[string][]byte{"no name": {0}, "no id": name("../x"), "too long": name(strings.Repeat("a", 200)), "NUL": name("a\x00")} {
			t.Log(what)
			reset(t, open(t, mux, data))
		}
		// The second of a name is dropped, the first goes on.
		first := open(t, mux, append(name("r1"), kindLastChunk, 0, 0, 0, 1, 'x'))
		until(t, "it is parked", func() bool { hub.mu.Lock(); defer hub.mu.Unlock(); return hub.parked["r1"] != nil })
		reset(t, open(t, mux, name("r1")))
		in, err := hub.Take(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := in.Next(t.Context(), wire.ToHub); err != nil || string(m.Payload.(*wire.FileChunk).Data) != "x" {
			t.Errorf("of the first came %v, %v", m, err)
		}
		_ = first
	})
	t.Run("many that wait", func(t *testing.T) {
		t.Parallel()
		hub, mux, _ := begin(t)
		for i := range maxParked {
			open(t, mux, name(fmt.Sprintf("r%d", i)))
		}
		until(t, "all are parked", func() bool { hub.mu.Lock(); defer hub.mu.Unlock(); return len(hub.parked) == maxParked })
		reset(t, open(t, mux, name("more")))
	})
	t.Run("frames", func(t *testing.T) {
		t.Parallel()
		hub, mux, _ := begin(t)
		frame := func(kind byte, size uint32, data string) []byte {
			return append(binary.BigEndian.AppendUint32([]byte{kind}, size), data...)
		}
		for what, data := range map[string][]byte{
			"unknown kind":           frame(8, 0, ""),
			"too much data":          frame(kindChunk, wire.MaxChunk+1, ""),
			"too large":              frame(kindFrame, wire.MaxFrame+1, ""),
			"not for this end":       frame(kindInput, 1, "x"),
			"not a frame":            frame(kindFrame, 2, "%%"),
			"of another request":     frame(kindFrame, 33, `{"type":"ACK","id":"a","payload":{}}`[:33]),
			"of the other direction": frame(kindFrame, uint32(len(`{"type":"SESSION_CLOSE","id":"r","payload":{"session_id":"s"}}`)), `{"type":"SESSION_CLOSE","id":"r","payload":{"session_id":"s"}}`),
		} {
			id := "r" + strings.ReplaceAll(what, " ", "-")
			open(t, mux, append(name(id), data...))
			in, err := hub.Take(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			var bad *wire.FrameError
			if _, err := in.Next(t.Context(), wire.ToHub); !errors.As(err, &bad) || bad.ID != id {
				t.Errorf("%s: %v", what, err)
			}
		}
		// An end in the middle is not the end.
		for what, data := range map[string][]byte{"head": {kindChunk, 0}, "data": frame(kindChunk, 5, "abc"), "frame": frame(kindFrame, 5, "{")} {
			id := "cut-" + what
			st := open(t, mux, append(name(id), data...))
			_ = st.CloseWrite()
			in, err := hub.Take(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := in.Next(t.Context(), wire.ToHub); !errors.Is(err, ErrLost) {
				t.Errorf("cut in the %s: %v", what, err)
			}
		}
	})
	t.Run("beyond the window", func(t *testing.T) {
		t.Parallel()
		near, far := sockets(t)
		hub := NewHall()
		ended := serve(t, hub, far, false, nil)
		head := []byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0} // data, with SYN, of stream 1
		body := make([]byte, 64<<10)
		copy(body, name("r1")) // it waits for its BULK
		for i := range 64 {
			if i == 1 {
				head[3] = 0
			}
			binary.BigEndian.PutUint32(head[8:], uint32(len(body)))
			if near.WriteMessage(websocket.BinaryMessage, append(bytes.Clone(head), body...)) != nil {
				break
			}
		}
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("a sender beyond its window goes on")
		}
	})
	for what, message := range map[string][]byte{"no multiplexer": []byte("GET / HTTP/1.1\r\n\r\n"), "a text": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			near, far := sockets(t)
			hub := NewHall()
			ended := serve(t, hub, far, false, nil)
			kind := websocket.BinaryMessage
			if message == nil {
				kind = websocket.TextMessage
			}
			_ = near.WriteMessage(kind, append(message, 0))
			select {
			case err := <-ended:
				if !errors.Is(err, ErrLost) {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it goes on")
			}
		})
	}
}

// A socket on which nothing is heard ends; a ping keeps it.
func TestSilence(t *testing.T) {
	t.Parallel()
	near, far := sockets(t)
	machine, hub := NewHall(), NewHall()
	serve(t, machine, near, true, nil)
	ended := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { ended <- hub.Serve(far, false, 2*time.Second, nil) })
	t.Cleanup(func() { hub.Close(); wg.Wait() })
	began := time.Now()
	for time.Since(began) < 5*time.Second {
		time.Sleep(300 * time.Millisecond)
		machine.mu.Lock()
		s := machine.now
		machine.mu.Unlock()
		if s == nil {
			break
		}
		s.conn.heard.Store(0) // as after a long time
		machine.Ping()
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended while it was pinged: %v", err)
	default:
	}
	select {
	case err := <-ended:
		if !errors.Is(err, ErrLost) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a silent socket was kept")
	}
}

// A program that prints now and then keeps its place beside the keystrokes; a
// file and a flood do not.
func TestGauge(t *testing.T) {
	t.Parallel()
	var file, talk, flood Gauge
	if file.Due(&wire.FileContents{}) || file.Due(&wire.FileChunk{Data: make([]byte, Enough)}) || !file.Due(&wire.FileChunk{Data: make([]byte, 1)}) {
		t.Error("a file")
	}
	for range 10 {
		if talk.Due(&wire.ProcessOutput{Stream: "pty", Data: make([]byte, Enough/2)}) {
			t.Error("a program that pauses")
		}
		talk.last = talk.last.Add(-2 * pause)
	}
	flood.Due(&wire.ProcessOutput{Stream: "stdout", Data: make([]byte, Enough)})
	if !flood.Due(&wire.ProcessOutput{Stream: "stdout", Data: make([]byte, 1)}) {
		t.Error("a flood")
	}
}

// Windows grow by so much together, and what a stream had of it comes back.
func TestAllowance(t *testing.T) {
	t.Parallel()
	var all allowance
	a, b := &span{of: &all}, &span{of: &all}
	if a.ReserveMemory(maxGrown, forStream) != nil || a.ReserveMemory(maxGrown-1, 128) != nil || b.ReserveMemory(2, 128) == nil {
		t.Error("the allowance is not kept")
	}
	a.Done()
	a.Done()
	if a.ReserveMemory(1, 128) == nil || b.ReserveMemory(maxGrown, 128) != nil {
		t.Error("it does not come back")
	}
	b.ReleaseMemory(1)
	b.ReleaseMemory(2 * maxGrown)
	if n := all.used.Load(); n != 0 {
		t.Errorf("%d are still used", n)
	}
}

// FuzzNext has a stream of any bytes read: it ends, and what comes out of it
// would have been sent so.
func FuzzNext(f *testing.F) {
	for _, m := range []wire.Message{{Type: wire.TypeFileChunk, Payload: &wire.FileChunk{Data: []byte("abc"), Last: true}}, {Type: wire.TypeProcessOutput, Payload: &wire.ProcessOutput{Stream: "pty", Data: []byte("x")}},
		{Type: wire.TypeProcessInput, Payload: &wire.ProcessInput{Data: []byte("x"), End: true}}, {Type: wire.TypeAck, Payload: &wire.Empty{}}} {
		kind, data := raw(m.Payload)
		if kind == kindFrame {
			m.ID = "r"
			data, _ = wire.Encode(m)
		}
		frame := append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(data))), data...)
		f.Add(frame)
		f.Add(append(frame, frame...))
		f.Add(frame[:len(frame)-1])
	}
	f.Add([]byte{kindFrame, 0, 0x40, 0, 1})
	f.Add([]byte{kindChunk, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, dir := range []wire.Direction{wire.ToHub, wire.ToMachine} {
			in := &In{id: "r"}
			r := bytes.NewReader(data)
			for range len(data) + 1 {
				m, err := in.next(r, dir)
				if err != nil {
					break
				}
				if m.ID != "r" || m.Payload.Validate() != nil {
					t.Fatalf("out of it came %+v", m)
				}
				if n := wire.DataLen(m.Payload); n > wire.MaxChunk {
					t.Fatalf("%d bytes of data", n)
				}
			}
		}
	})
}
