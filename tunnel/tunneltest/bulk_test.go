package tunneltest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"localpc/tunnel"
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
	s, err := p.Hub.Do(ctx, owners(p), wire.TypeFileRead, &wire.FileRead{SessionID: "s", Path: path})
	if err != nil {
		return "", 0, err
	}
	defer s.Close()
	h := sha256.New()
	for {
		m, err := s.Recv()
		if err == io.EOF {
			return string(h.Sum(nil)), size, nil
		}
		if err != nil {
			return "", size, err
		}
		if c, ok := m.Payload.(*wire.FileChunk); ok {
			h.Write(c.Data)
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

// joined waits for the bulk socket.
func joined(t testing.TB, p *tunneltest.Pair) {
	t.Helper()
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
