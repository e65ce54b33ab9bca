package tunnel_test

import (
	"context"
	"errors"
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
	c.send(wire.TypeHelloAck, m.ID, &wire.HelloAck{Protocol: wire.Version, ConnectionID: "c1", HubName: "Far hub", Account: "Ana"})
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

func echo(_ context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
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
	if s := n.until(t, tunnel.Online); s.HubName != "Far hub" || s.Account != "Ana" {
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
		{"401", 401, 0, tunnel.ErrUnauthorized, "Sign in again"},
		{"replaced", 0, wire.CloseReplaced, tunnel.ErrReplaced, "took over"},
		{"revoked", 0, wire.CloseRevoked, tunnel.ErrRevoked, "Sign in again"},
		{"version", 0, wire.CloseVersion, tunnel.ErrVersion, "Update"},
		{"unauthorized", 0, wire.CloseUnauthorized, tunnel.ErrUnauthorized, "Sign in again"},
		{"forbidden", 0, wire.CloseForbidden, tunnel.ErrForbidden, "refuses this computer"},
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
	if s.Retry.IsZero() || !strings.Contains(s.Reason, "keeps trying") {
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
		Handler: func(ctx context.Context, _ wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
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
	hub.send(wire.TypeFileStat, "", &wire.FileStat{SessionID: "s", Path: "p"})
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
	n := f.machine(t, func(ctx context.Context, _ wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "", nil, context.Cause(ctx)
	}, func(o *tunnel.Options) { o.Heartbeat, o.PongTimeout = 200*time.Millisecond, time.Second })
	c := f.accept()
	n.until(t, tunnel.Online)
	c.send(wire.TypeFileStat, "", &wire.FileStat{SessionID: "s", Path: "p"})
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
