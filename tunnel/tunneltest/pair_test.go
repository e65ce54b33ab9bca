package tunneltest_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// proxy carries TCP between the two ends, until it is told to carry nothing:
// then packets are lost both ways, and neither end hears of an end.
type proxy struct {
	net.Listener
	// rate is how many bytes a second one connection carries each way; 0 is as
	// many as there are.
	rate  int64
	mu    sync.Mutex
	conns []*carried
	wg    sync.WaitGroup
}

type carried struct {
	a, b   net.Conn
	silent chan struct{}
}

func newProxy(t *testing.T, target string) *proxy { return slowProxy(t, target, 0) }

func slowProxy(t *testing.T, target string, rate int64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, rate: rate}
	p.wg.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", target)
			if err != nil {
				a.Close()
				continue
			}
			c := &carried{a, b, make(chan struct{})}
			p.mu.Lock()
			p.conns = append(p.conns, c)
			p.mu.Unlock()
			p.wg.Go(func() { c.carry(a, b, rate) })
			p.wg.Go(func() { c.carry(b, a, rate) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.a.Close()
			c.b.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (c *carried) carry(from, to net.Conn, rate int64) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-c.silent:
			// Read on, so that the sender sees nothing odd; end nothing.
			if err == nil {
				continue
			}
			return
		default:
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			from.Close()
			return
		}
		if rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
		}
	}
}

// cut ends the i-th connection that came.
func (p *proxy) cut(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[i].a.Close()
	p.conns[i].b.Close()
}

func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		select {
		case <-c.silent:
		default:
			close(c.silent)
		}
	}
}

// superset-sh/superset#5130: packets are dropped both ways. Both ends notice
// by themselves, what was asked ends with the reason, and the machine is back
// on a new connection.
func TestSilence(t *testing.T) {
	t.Parallel()
	const beat, pong = 200 * time.Millisecond, time.Second
	h, url := tunneltest.Serve(t, hub.Options{Data: t.TempDir(), Log: tunneltest.Log(t), Heartbeat: beat, PongTimeout: pong})
	p := newProxy(t, strings.TrimPrefix(url, "http://"))
	token, err := h.MachineToken(t.Context(), "m1", "Mac-1")
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan tunnel.State, 1000)
	causes := make(chan error, 1)
	tunneltest.Run(t, tunnel.Options{
		URL: "http://" + p.Addr().String(), Token: func(context.Context) (string, error) { return token, nil },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "m1", Platform: "linux", Arch: "amd64"}
		},
		Status: func() wire.Status { return wire.Status{} }, OnState: func(s tunnel.State) { states <- s }, Log: tunneltest.Log(t),
		Heartbeat: beat, PongTimeout: pong, BackoffBase: 10 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		Handler: func(ctx context.Context, m wire.Message, _ tunnel.Exchange) (wire.Type, wire.Payload, error) {
			if m.Payload.(*wire.FileStat).Path == "now" {
				return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "", nil, context.Cause(ctx)
		},
	})
	wait := func(phase tunnel.Phase) {
		t.Helper()
		for timeout := time.After(10 * time.Second); ; {
			select {
			case s := <-states:
				if s.Phase == phase {
					return
				}
			case <-timeout:
				t.Fatalf("the machine did not become %s", phase)
			}
		}
	}
	wait(tunnel.Online)
	s, err := h.Do(t.Context(), store.Sandbox{User: store.OwnerID, Machine: "m1"}, wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "never"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := h.Call(t.Context(), store.Sandbox{User: store.OwnerID, Machine: "m1"}, wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "now"}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.silence()
	wait(tunnel.Offline)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the machine noticed after %s", took)
	}
	if err := <-causes; wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("on the machine the request ended with %v", err)
	}
	if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("in the hub the request ended with %v", err)
	}
	wait(tunnel.Online)
	if _, err := h.Call(t.Context(), store.Sandbox{User: store.OwnerID, Machine: "m1"}, wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "now"}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Readers that do not read hold up nobody else, and cost a bounded amount of
// memory at both ends, however much there is to send.
func TestSlowReaders(t *testing.T) {
	// Not beside other tests: it measures the memory of all.
	chunk := make([]byte, wire.MaxChunk)
	const whole = 4 << 20
	p := tunneltest.New(t, func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if m.Type == wire.TypeFileStat {
			return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
		}
		for sent := 0; sent < whole; sent += len(chunk) {
			if err := x.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: chunk}); err != nil {
				return "", nil, err
			}
		}
		return wire.TypeAck, &wire.Empty{}, nil
	})
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var stalled []hub.Stream
	for range 10 {
		s, err := p.Hub.Do(t.Context(), store.Sandbox{User: store.OwnerID, Machine: p.MachineID}, wire.TypeFileRead, &wire.FileRead{SessionID: "s", Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, s)
	}
	began := time.Now()
	for range 50 {
		if _, err := p.Hub.Call(t.Context(), store.Sandbox{User: store.OwnerID, Machine: p.MachineID}, wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("50 requests beside ten stalled ones took %s", took)
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > 10*wire.InitialCredit+(32<<20) {
		t.Errorf("ten stalled readers of %d MiB hold %d MiB", whole>>20, grown>>20)
	}
	// One that reads again gets all of it.
	total := len(chunk)
	for {
		m, err := stalled[0].Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := m.Payload.(*wire.FileChunk); ok {
			total += len(c.Data)
		}
	}
	if total != whole {
		t.Errorf("%d of %d bytes arrived", total, whole)
	}
}
