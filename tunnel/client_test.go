package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is the hub's end, by hand: one machine at a time.
type far struct {
	t     *testing.T
	url   string
	conns chan *conn
	// before decides on a dial; nil takes it.
	before func(w http.ResponseWriter, r *http.Request) bool
}

type conn struct {
	t  *testing.T
	ws *websocket.Conn
}

func newFar(t *testing.T) *far {
	f := &far{t: t, conns: make(chan *conn, 16)}
	up := websocket.Upgrader{Subprotocols: []string{wire.Subprotocol}, CheckOrigin: func(*http.Request) bool { return true }}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.before != nil && !f.before(w, r) {
			return
		}
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		f.conns <- &conn{t, ws}
	}))
	t.Cleanup(func() {
		for {
			select {
			case c := <-f.conns:
				c.ws.Close()
			default:
				srv.Close()
				return
			}
		}
	})
	f.url = srv.URL
	return f
}

// near is the machine's end under test.
type near struct {
	*tunnel.Client
	states chan tunnel.State
	done   chan error
}

func (f *far) machine(t *testing.T, h tunnel.Handler, change ...func(*tunnel.Options)) *near {
	t.Helper()
	n := &near{states: make(chan tunnel.State, 1000), done: make(chan error, 1)}
	o := tunnel.Options{
		URL: f.url, Token: func(context.Context) (string, error) { return "token-1", nil },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "m1", DisplayName: "Mac-1", Platform: "linux", Arch: "amd64", Capabilities: []string{}, Sessions: []string{}}
		},
		Status: func() wire.Status { return wire.Status{Waiting: 3} }, Handler: h,
		OnState: func(s tunnel.State) { n.states <- s }, BackoffBase: 20 * time.Millisecond, BackoffMax: 100 * time.Millisecond,
	}
	for _, c := range change {
		c(&o)
	}
	var err error
	if n.Client, err = tunnel.New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { n.done <- n.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return n
}

func (n *near) until(t *testing.T, phase tunnel.Phase) tunnel.State {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case s := <-n.states:
			if s.Phase == phase {
				return s
			}
		case <-timeout:
			t.Fatalf("it did not become %s", phase)
		}
	}
}

// accept takes the next connection and answers its HELLO.
func (f *far) accept() *conn {
	f.t.Helper()
	c := f.next()
	m := c.read()
	if m.Type != wire.TypeHello {
		f.t.Fatalf("the first frame is %s", m.Type)
	}
	c.send(wire.TypeHelloAck, m.ID, &wire.HelloAck{Protocol: wire.Version, ConnectionID: "c1", HubName: "Far hub"})
	return c
}

func (f *far) next() *conn {
	f.t.Helper()
	select {
	case c := <-f.conns:
		f.t.Cleanup(func() { c.ws.Close() })
		return c
	case <-time.After(10 * time.Second):
		f.t.Fatal("nobody dialled")
		return nil
	}
}

func (c *conn) send(kind wire.Type, id string, p wire.Payload) string {
	c.t.Helper()
	if id == "" {
		id = uuid.NewString()
	}
	data, err := wire.Encode(wire.Message{Type: kind, ID: id, Payload: p})
	if err != nil {
		c.t.Fatal(err)
	}
	c.sendBytes(data)
	return id
}

func (c *conn) sendBytes(data []byte) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, data); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conn) read() wire.Message {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, data, err := c.ws.ReadMessage()
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	m, err := wire.Decode(data, wire.ToHub)
	if err != nil {
		c.t.Fatalf("the machine sent %.200s: %v", data, err)
	}
	return m
}

// fails reads the answer to id and wants an ERROR with that code.
func (c *conn) fails(id string, code wire.Code, text string) wire.Message {
	c.t.Helper()
	m := c.read()
	p, ok := m.Payload.(*wire.ErrorPayload)
	if m.ID != id || !ok || p.Code != code || !strings.Contains(p.Message, text) {
		c.t.Errorf("%s was answered with %s %+v, want %s with %q", id, m.Type, m.Payload, code, text)
	}
	return m
}

// works has a request answered: the tunnel lives.
func (c *conn) works() {
	c.t.Helper()
	id := c.send(wire.TypePing, "", &wire.Empty{})
	if m := c.read(); m.Type != wire.TypePong || m.ID != id {
		c.t.Fatalf("PING was answered with %s %+v", m.Type, m.Payload)
	}
}

func echo(_ context.Context, m wire.Message, _ *tunnel.Exchange) (wire.Type, wire.Payload, error) {
	return wire.TypeAck, &wire.Empty{}, nil
}

func TestJoin(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != wire.Path || r.Header.Get("Authorization") != "Bearer token-1" {
			t.Errorf("dialled %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		return true
	}
	n := f.machine(t, echo)
	c := f.accept()
	if s := n.until(t, tunnel.Online); s.HubName != "Far hub" {
		t.Errorf("online: %+v", s)
	}
	c.works()
	if err := n.Notify(wire.TypeSessionEnded, &wire.SessionEnded{SessionID: "s1", Reason: "Ann ended it."}); err != nil {
		t.Fatal(err)
	}
	if m := c.read(); m.Type != wire.TypeSessionEnded || m.Payload.(*wire.SessionEnded).Reason != "Ann ended it." {
		t.Errorf("notified %s %+v", m.Type, m.Payload)
	}
	if err := n.Notify(wire.TypeSessionEnded, &wire.SessionEnded{}); err == nil {
		t.Error("an invalid message was sent")
	}
	c.ws.Close()
	n.until(t, tunnel.Offline)
	if err := n.Notify(wire.TypeSessionEnded, &wire.SessionEnded{SessionID: "s1"}); !errors.Is(err, tunnel.ErrOffline) {
		t.Errorf("notify without a connection: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	o := tunnel.Options{Token: func(context.Context) (string, error) { return "", nil }, Hello: func() wire.Hello { return wire.Hello{} },
		Status: func() wire.Status { return wire.Status{} }, Handler: echo}
	for _, u := range []string{"", "hub.example", "ftp://hub.example", "https://", "://x"} {
		o.URL = u
		if _, err := tunnel.New(o); err == nil || !strings.Contains(err.Error(), "not the address of a hub") {
			t.Errorf("%q: %v", u, err)
		}
	}
	if _, err := tunnel.New(tunnel.Options{URL: "https://hub.example"}); err == nil {
		t.Error("a client without its parts was made")
	}
}

// The ends that no dialling again can mend are final, and said in plain words.
func TestFinalEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		status   int
		code     int
		want     error
		sentence string
	}{
		{"401", 401, 0, tunnel.ErrUnauthorized, "Pair it again"},
		{"replaced", 0, wire.CloseReplaced, tunnel.ErrReplaced, "took over"},
		{"revoked", 0, wire.CloseRevoked, tunnel.ErrRevoked, "Pair it again"},
		{"version", 0, wire.CloseVersion, tunnel.ErrVersion, "Update"},
		{"unauthorized", 0, wire.CloseUnauthorized, tunnel.ErrUnauthorized, "Pair it again"},
		{"forbidden", 0, wire.CloseForbidden, tunnel.ErrUnauthorized, "Pair it again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			if c.status != 0 {
				f.before = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(c.status); return false }
			}
			n := f.machine(t, echo)
			if c.code != 0 {
				far := f.accept()
				_ = far.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(c.code, "reason"), time.Now().Add(time.Second))
			}
			select {
			case err := <-n.done:
				if !errors.Is(err, c.want) {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it dials again and again")
			}
			if s := n.until(t, tunnel.Offline); !strings.Contains(s.Reason, c.sentence) || !s.Retry.IsZero() {
				t.Errorf("it says %+v", s)
			}
		})
	}
}

// Everything else is tried again, with a growing, random wait.
func TestDialsAgain(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	var mu sync.Mutex
	dials := 0
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		dials++
		switch dials {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
			return false
		case 2:
			panic(http.ErrAbortHandler)
		}
		return true
	}
	tokens := 0
	n := f.machine(t, echo, func(o *tunnel.Options) {
		o.Token = func(context.Context) (string, error) {
			if tokens++; tokens == 1 {
				return "", errors.New("keychain is locked")
			}
			return "token-1", nil
		}
	})
	c := f.next() // dial 3: a hub that answers HELLO with nonsense
	c.read()
	c.sendBytes([]byte("%%"))
	c = f.next() // dial 4: with another id
	m := c.read()
	c.send(wire.TypeHelloAck, m.ID+"x", &wire.HelloAck{Protocol: wire.Version, ConnectionID: "c", HubName: "x"})
	c = f.next() // dial 5: that dies at once
	c.ws.Close()
	c = f.accept()
	n.until(t, tunnel.Online)
	c.works()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, "restart"), time.Now().Add(time.Second))
	s := n.until(t, tunnel.Offline)
	if s.Retry.IsZero() || !strings.Contains(s.Reason, "tried again") {
		t.Errorf("after a loss it says %+v", s)
	}
	c = f.accept()
	n.until(t, tunnel.Online)
	c.works()
}

// elastic/elastic-agent#13874: machines that lose their hub at the same moment
// come back spread out, and wait longer each time.
func TestJitter(t *testing.T) {
	t.Parallel()
	const machines = 1000
	const base = 10 * time.Second
	f := &far{t: t, url: "http://127.0.0.1:1"}
	waits := make(chan time.Duration, machines)
	var group sync.WaitGroup
	limit := make(chan struct{}, 50)
	for range machines {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			ctx, cancel := context.WithCancel(context.Background())
			c, err := tunnel.New(tunnel.Options{URL: f.url, Token: func(context.Context) (string, error) { return "", nil }, Hello: func() wire.Hello { return wire.Hello{} },
				Status: func() wire.Status { return wire.Status{} }, Handler: echo, BackoffBase: base, BackoffMax: time.Minute,
				OnState: func(s tunnel.State) {
					if s.Phase == tunnel.Offline && !s.Retry.IsZero() {
						waits <- time.Until(s.Retry)
						cancel()
					}
				}})
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		})
	}
	group.Wait()
	close(waits)
	var buckets [10]int
	for w := range waits {
		if w > base {
			t.Fatalf("the first wait is %s", w)
		}
		buckets[min(max(int(w*10/base), 0), 9)]++
	}
	for i, n := range buckets {
		if n == 0 || n > 3*machines/10 {
			t.Errorf("%d of %d come back in tenth %d of the time: %v", n, machines, i, buckets)
			break
		}
	}
}

// Its end waits for its requests, and tells them why they end.
func TestStopsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	causes := make(chan error, 1)
	handling := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	n := &near{states: make(chan tunnel.State, 100)}
	c, err := tunnel.New(tunnel.Options{URL: f.url, Token: func(context.Context) (string, error) { return "t", nil },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "m1", Platform: "linux", Arch: "amd64"}
		},
		Status: func() wire.Status { return wire.Status{} }, OnState: func(s tunnel.State) { n.states <- s },
		Handler: func(ctx context.Context, _ wire.Message, _ *tunnel.Exchange) (wire.Type, wire.Payload, error) {
			close(handling)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "", nil, context.Cause(ctx)
		}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	hub := f.accept()
	n.until(t, tunnel.Online)
	hub.send(wire.TypeFileStat, "", &wire.FilePath{SessionID: "s", Path: "p"})
	<-handling
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	select {
	case err := <-causes:
		if wire.CodeOf(err) != wire.CodeLost {
			t.Errorf("its request ended with %v", err)
		}
	default:
		t.Error("Run did not wait for its request")
	}
	_ = hub.ws.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, _, err := hub.ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the hub heard %v", err)
	}
}

// superset-sh/superset#5130: nothing comes through any more, and no end either.
func TestSilentHubIsNoticed(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	causes := make(chan error, 1)
	n := f.machine(t, func(ctx context.Context, _ wire.Message, _ *tunnel.Exchange) (wire.Type, wire.Payload, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "", nil, context.Cause(ctx)
	}, func(o *tunnel.Options) { o.Heartbeat, o.PongTimeout = 200*time.Millisecond, time.Second })
	c := f.accept()
	n.until(t, tunnel.Online)
	c.send(wire.TypeFileStat, "", &wire.FilePath{SessionID: "s", Path: "p"})
	// Any frame counts as life: pongs go out while this end reads.
	_ = c.ws.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, _, err := c.ws.ReadMessage(); err == nil {
		t.Error("an answer came")
	}
	select {
	case s := <-n.states:
		t.Fatalf("it became %+v while its pings were answered", s)
	default:
	}
	began := time.Now() // now nobody answers
	n.until(t, tunnel.Offline)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("noticed after %s", took)
	}
	if err := <-causes; wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("its request ended with %v", err)
	}
	f.accept()
	n.until(t, tunnel.Online)
}

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
	if id := c.send(wire.TypeFileDelete, "", &wire.FilePath{SessionID: "s", Path: "p"}); c.read().ID != id {
		t.Error("a good request was not answered")
	}
}

// A request whose id is in use is dropped: the first one goes on.
func TestDuplicateID(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	calls := make(chan string, 4)
	release := make(chan struct{})
	n := f.machine(t, func(_ context.Context, m wire.Message, _ *tunnel.Exchange) (wire.Type, wire.Payload, error) {
		calls <- m.Payload.(*wire.FilePath).Path
		<-release
		return wire.TypeAck, &wire.Empty{}, nil
	})
	c := f.accept()
	n.until(t, tunnel.Online)
	c.send(wire.TypeFileDelete, "d1", &wire.FilePath{SessionID: "s", Path: "first"})
	if p := <-calls; p != "first" {
		t.Fatal(p)
	}
	c.send(wire.TypeFileDelete, "d1", &wire.FilePath{SessionID: "s", Path: "second"})
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

func TestAdmission(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	release := make(chan struct{})
	n := f.machine(t, func(_ context.Context, m wire.Message, _ *tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if m.Type == wire.TypeFileStat {
			<-release
			return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
		}
		return wire.TypeAck, &wire.Empty{}, nil
	}, func(o *tunnel.Options) { o.MaxConcurrent = 2 })
	c := f.accept()
	n.until(t, tunnel.Online)
	for range 2 {
		c.send(wire.TypeFileStat, "", &wire.FilePath{SessionID: "s", Path: "p"})
	}
	c.works()
	m := c.fails(c.send(wire.TypeFileDelete, "", &wire.FilePath{SessionID: "s", Path: "p"}), wire.CodeOverloaded, "2 requests")
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
	n := f.machine(t, func(ctx context.Context, m wire.Message, x *tunnel.Exchange) (wire.Type, wire.Payload, error) {
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
				ch, err := x.Chunk(ctx)
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
	stat := c.send(wire.TypeFileStat, "", &wire.FilePath{SessionID: "s", Path: "p"})
	for range 6 {
		c.send(wire.TypeFileChunk, stat, &wire.FileChunk{Data: chunk})
	}
	c.fails(stat, wire.CodeInvalid, "more of the file")
	<-ended
	c.works()
}

// An answer that may not be sent becomes an error that can.
func TestUnsendableAnswer(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	n := f.machine(t, func(_ context.Context, m wire.Message, _ *tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if m.Type == wire.TypeFileStat {
			return wire.TypeFileStatResponse, &wire.FileStatResponse{Exists: true}, nil
		}
		return "", nil, errors.New("open /home/ann/secret: no such file")
	})
	c := f.accept()
	n.until(t, tunnel.Online)
	c.fails(c.send(wire.TypeFileStat, "", &wire.FilePath{SessionID: "s", Path: "p"}), wire.CodeInternal, "its log says what")
	m := c.fails(c.send(wire.TypeFileDelete, "", &wire.FilePath{SessionID: "s", Path: "p"}), wire.CodeInternal, "its log says what")
	if strings.Contains(m.Payload.(*wire.ErrorPayload).Message, "secret") {
		t.Error("the cause crossed the tunnel")
	}
	c.works()
}
