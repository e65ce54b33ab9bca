package tunneltest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// source makes the same bytes again and again, without keeping them.
type source struct {
	block []byte
	sum   hash.Hash
	left  int64
	buf   []byte
}

func newSource(size int64) *source {
	r := rand.NewChaCha8([32]byte{1})
	block := make([]byte, 1<<20)
	_, _ = r.Read(block)
	return &source{block: block, sum: sha256.New(), left: size}
}

// next is the next piece; nil is the end.
func (s *source) next() []byte {
	n := min(s.left, wire.MaxChunk)
	if n == 0 {
		return nil
	}
	at := s.left % int64(len(s.block)-wire.MaxChunk)
	s.left -= n
	s.buf = append(s.buf[:0], s.block[at:at+n]...)
	s.sum.Write(s.buf)
	return s.buf
}

// transfers is a machine that takes and gives files, and answers FILE_STAT at
// once.
type transfers struct {
	size  int64         // of what it gives
	stall chan struct{} // until it is closed, FILE_WRITE of "stalled" takes nothing
	sums  sync.Map      // path to sum, of what it gave or took
	ends  chan error    // how FILE_READ and FILE_WRITE ended, where somebody listens
}

func (m *transfers) handle(ctx context.Context, msg wire.Message, x tunnel.Exchange) (t wire.Type, p wire.Payload, err error) {
	defer func() {
		if msg.Type != wire.TypeFileStat && m.ends != nil {
			m.ends <- err
		}
	}()
	switch q := msg.Payload.(type) {
	case *wire.FileRead:
		s := newSource(m.size)
		if err := x.Send(ctx, wire.TypeFileContents, &wire.FileContents{Size: s.left, Length: s.left}); err != nil {
			return "", nil, err
		}
		for b := s.next(); b != nil; b = s.next() {
			if err := x.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: b}); err != nil {
				return "", nil, err
			}
		}
		m.sums.Store(q.Path, string(s.sum.Sum(nil)))
		return wire.TypeAck, &wire.Empty{}, nil
	case *wire.FileWrite:
		if q.Path == "stalled" {
			select {
			case <-m.stall:
			case <-ctx.Done():
				return "", nil, context.Cause(ctx)
			}
		}
		sum, size := sha256.New(), int64(0)
		for {
			c, err := tunnel.Chunk(ctx, x)
			if err != nil {
				return "", nil, err
			}
			sum.Write(c.Data)
			if size += int64(len(c.Data)); c.Last {
				break
			}
		}
		m.sums.Store(q.Path, string(sum.Sum(nil)))
		return wire.TypeFileStatResponse, &wire.FileStatResponse{Exists: true, Entry: &wire.Entry{Name: "p", Path: q.Path, Kind: "file", Size: size}}, nil
	}
	return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
}

func owners(p *tunneltest.Pair) store.Sandbox {
	return store.Sandbox{User: store.OwnerID, Machine: p.MachineID}
}

// download reads a file; each is told of every piece.
func download(ctx context.Context, p *tunneltest.Pair, path string, each func(n int)) (sum string, size int64, err error) {
	h := sha256.New()
	size, err = receive(ctx, p, path, h, each)
	return string(h.Sum(nil)), size, err
}

func receive(ctx context.Context, p *tunneltest.Pair, path string, to io.Writer, each func(n int)) (size int64, err error) {
	s, err := p.Hub.Do(ctx, owners(p), wire.TypeFileRead, &wire.FileRead{SessionID: "s", Path: path})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for {
		m, err := s.Recv()
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		if c, ok := m.Payload.(*wire.FileChunk); ok {
			_, _ = to.Write(c.Data)
			size += int64(len(c.Data))
			each(len(c.Data))
		}
	}
}

// upload writes a file.
func upload(ctx context.Context, p *tunneltest.Pair, path string, size int64, each func(n int)) (sum string, answer *wire.FileStatResponse, err error) {
	s, err := p.Hub.Do(ctx, owners(p), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s", Path: path})
	if err != nil {
		return "", nil, err
	}
	defer s.Close()
	from := newSource(size)
	for b := from.next(); b != nil; b = from.next() {
		if err := s.Send(&wire.FileChunk{Data: b, Last: from.left == 0}); err != nil {
			if errors.Is(err, io.EOF) {
				_, err = s.Recv()
			}
			return "", nil, err
		}
		each(len(b))
	}
	m, err := s.Recv()
	if err != nil {
		return "", nil, err
	}
	return string(from.sum.Sum(nil)), m.Payload.(*wire.FileStatResponse), nil
}

func nothing(int) {}

// joined waits for the bulk socket, which comes when something is asked.
func joined(t testing.TB, p *tunneltest.Pair) {
	t.Helper()
	if _, err := p.Hub.Call(t.Context(), owners(p), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); !p.Client.BulkJoined(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the bulk socket was not joined")
		}
	}
}

// What is sent arrives, each way, whatever its size, with a second socket and
// without.
func TestTransfers(t *testing.T) {
	t.Parallel()
	for name, bulk := range map[string]bool{"with": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int64{1, 64 << 10, 64<<10 + 1, 300_000, 5<<20 + 7} {
				m := &transfers{size: size}
				p := tunneltest.New(t, m.handle, tunneltest.Bulk(bulk))
				if bulk {
					joined(t, p)
				}
				sum, n, err := download(t.Context(), p, "down", nothing)
				if want, _ := m.sums.Load("down"); err != nil || n != size || sum != want {
					t.Errorf("of %d bytes %d came, %v", size, n, err)
				}
				sum, answer, err := upload(t.Context(), p, "up", size, nothing)
				if got, _ := m.sums.Load("up"); err != nil || answer.Entry.Size != size || sum != got {
					t.Errorf("of %d bytes %+v went, %v", size, answer, err)
				}
			}
		})
	}
}

// proxied is a hub and a machine that are joined through a proxy.
func proxied(t *testing.T, m *transfers, rate int64, bulk bool) (*tunneltest.Pair, *proxy) {
	t.Helper()
	h, url := tunneltest.Serve(t, hub.Options{Data: t.TempDir(), Log: tunneltest.Log(t), NoBulk: !bulk})
	via := slowProxy(t, strings.TrimPrefix(url, "http://"), rate)
	p := &tunneltest.Pair{Hub: h, URL: url, MachineID: "m1", States: make(chan tunnel.State, 64)}
	token, err := h.MachineToken(t.Context(), p.MachineID, "Mac-1")
	if err != nil {
		t.Fatal(err)
	}
	p.Client = tunneltest.Run(t, tunnel.Options{
		URL: "http://" + via.Addr().String(), Token: func(context.Context) (string, error) { return token, nil },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "m1", Platform: "linux", Arch: "amd64"}
		},
		Status: func() wire.Status { return wire.Status{} }, OnState: func(s tunnel.State) { p.States <- s }, Log: tunneltest.Log(t),
		BackoffBase: 10 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Handler: m.handle,
	})
	p.WaitFor(t, tunnel.Online)
	if bulk {
		joined(t, p)
	}
	return p, via
}

// rounds measures requests that are answered at once, and gives their median.
func rounds(t *testing.T, p *tunneltest.Pair, n int) time.Duration {
	t.Helper()
	var took []time.Duration
	for range n {
		began := time.Now()
		if _, err := p.Hub.Call(t.Context(), owners(p), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(took)
	return took[n/2]
}

// Nothing waits behind a transfer, either way: on a line of 2 MiB a second, what
// was on its way of a transfer would hold each answer up by half a second.
func TestNothingWaits(t *testing.T) {
	t.Parallel()
	m := &transfers{size: 1 << 40}
	p, _ := proxied(t, m, 2<<20, true)
	for _, way := range []string{"down", "up"} {
		ctx, cancel := context.WithCancel(t.Context())
		moved := make(chan struct{}, 1)
		each := func(int) {
			select {
			case moved <- struct{}{}:
			default:
			}
		}
		done := make(chan error, 1)
		go func() {
			var err error
			if way == "down" {
				_, _, err = download(ctx, p, "p", each)
			} else {
				_, _, err = upload(ctx, p, "p", 1<<40, each)
			}
			done <- err
		}()
		for range 5 {
			<-moved // so the line is full
		}
		if took := rounds(t, p, 31); took > 250*time.Millisecond {
			t.Errorf("during a transfer %s an answer takes %s", way, took)
		}
		select {
		case <-moved:
		case err := <-done:
			t.Errorf("the transfer %s ended with %v", way, err)
		case <-time.After(30 * time.Second):
			t.Errorf("the transfer %s does not move", way)
		}
		cancel()
		if err := <-done; wire.CodeOf(err) != wire.CodeCancelled {
			t.Errorf("the transfer %s ended with %v", way, err)
		}
	}
}

// Who reads nothing, in the hub or on the machine, holds up itself alone, and
// holds a bounded amount of memory.
func TestOneThatNeverReads(t *testing.T) {
	t.Parallel()
	m := &transfers{size: 12 << 20, stall: make(chan struct{})}
	p := tunneltest.New(t, m.handle)
	joined(t, p)
	stalled, err := p.Hub.Do(t.Context(), owners(p), wire.TypeFileRead, &wire.FileRead{SessionID: "s", Path: "stalled down"})
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	var sent atomic.Int64
	up := make(chan error, 1)
	go func() {
		_, _, err := upload(t.Context(), p, "stalled", 12<<20, func(n int) { sent.Add(int64(n)) })
		up <- err
	}()
	// More goes past them than all windows hold, each way.
	for range 3 {
		if _, n, err := download(t.Context(), p, "p", nothing); err != nil || n != m.size {
			t.Fatalf("beside them %d bytes came, %v", n, err)
		}
		if _, _, err := upload(t.Context(), p, "p", m.size, nothing); err != nil {
			t.Fatalf("beside them an upload ended with %v", err)
		}
	}
	if n := sent.Load(); n > 4<<20 {
		t.Errorf("%d MiB were taken from an upload that nobody reads", n>>20)
	}
	// Once they read, they get all of it.
	close(m.stall)
	if err := <-up; err != nil {
		t.Errorf("the upload that had stalled: %v", err)
	}
	var total int64
	for {
		msg, err := stalled.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the download that had stalled: %v", err)
		}
		if c, ok := msg.Payload.(*wire.FileChunk); ok {
			total += int64(len(c.Data))
		}
	}
	if total != m.size {
		t.Errorf("of the download that had stalled %d bytes came", total)
	}
}

// A hundred requests at once, of all kinds.
func TestHundredAtOnce(t *testing.T) {
	t.Parallel()
	m := &transfers{size: 1 << 20}
	p := tunneltest.New(t, m.handle, func(_ *hub.Options, o *tunnel.Options) { o.MaxConcurrent = 100 })
	joined(t, p)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			path := fmt.Sprint(i)
			switch i % 3 {
			case 0:
				sum, _, err := download(t.Context(), p, path, nothing)
				if want, _ := m.sums.Load(path); err != nil || sum != want {
					t.Errorf("download %d: %v", i, err)
				}
			case 1:
				sum, _, err := upload(t.Context(), p, path, m.size+int64(i), nothing)
				if got, _ := m.sums.Load(path); err != nil || sum != got {
					t.Errorf("upload %d: %v", i, err)
				}
			default:
				if _, err := p.Hub.Call(t.Context(), owners(p), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: path}); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

// The second socket is lost: what went over it ends with the reason, at both
// ends, what did not goes on, and soon there is another one.
func TestBulkLost(t *testing.T) {
	t.Parallel()
	m := &transfers{size: 1 << 40, ends: make(chan error, 8)}
	p, via := proxied(t, m, 0, true)
	for i := 1; i <= 2; i++ {
		moved := make(chan struct{}, 2)
		each := func() func(int) {
			n := 0
			return func(int) {
				if n++; n == 20 {
					moved <- struct{}{}
				}
			}
		}
		down, up := make(chan error, 1), make(chan error, 1)
		first, second := each(), each()
		go func() { _, _, err := download(t.Context(), p, "p", first); down <- err }()
		go func() { _, _, err := upload(t.Context(), p, "p", 1<<40, second); up <- err }()
		<-moved
		<-moved
		via.cut(i)
		for name, end := range map[string]chan error{"download": down, "upload": up} {
			select {
			case err := <-end:
				if wire.CodeOf(err) != wire.CodeLost {
					t.Errorf("the %s ended with %v", name, err)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("the %s did not end", name)
			}
			select {
			case err := <-m.ends:
				if code := wire.CodeOf(err); code != wire.CodeLost && code != wire.CodeCancelled {
					t.Errorf("on the machine it ended with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("on the machine it did not end")
			}
		}
		if _, err := p.Hub.Call(t.Context(), owners(p), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		joined(t, p)
	}
	select {
	case s := <-p.States:
		t.Errorf("the machine became %+v", s)
	default:
	}
	go func() { <-m.ends }()
	m.size = 1 << 20
	if _, n, err := download(t.Context(), p, "again", nothing); err != nil || n != 1<<20 {
		t.Errorf("over the new one %d bytes came, %v", n, err)
	}
}

// Memory stays flat, whatever is moved: 1 GiB each way.
func TestFlatMemory(t *testing.T) { // not beside others, whose memory it would measure
	m := &zeros{size: moved}
	p := tunneltest.New(t, m.handle)
	joined(t, p)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	look := func(done int64) {
		if done%(16<<20) < wire.MaxChunk {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse+now.StackInuse)
		}
	}
	var done int64
	if _, err := receive(t.Context(), p, "p", io.Discard, func(n int) { done += int64(n); look(done) }); err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, wire.MaxChunk)
	s, err := p.Hub.Do(t.Context(), owners(p), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for sent := int64(0); sent < m.size; look(sent) {
		sent += int64(len(chunk))
		if err := s.Send(&wire.FileChunk{Data: chunk, Last: sent == m.size}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	if done != m.size {
		t.Errorf("%d bytes came", done)
	}
	if grown := int64(most) - int64(before.HeapInuse+before.StackInuse); grown > 64<<20 {
		t.Errorf("both ends grew by %d MiB", grown>>20)
	} else {
		t.Logf("both ends grew by %d MiB", grown>>20)
	}
}
