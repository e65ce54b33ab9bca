package bulk

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/wire/ws"
)

// carrier makes a WebSocket the connection of a multiplexer: each of its
// writes, which are whole frames, is one binary message.
type carrier struct {
	ws    *websocket.Conn
	quiet *ws.Patience
	every time.Duration // how often a sign of life is noted
	heard atomic.Int64  // when it was last, Unix nanoseconds
	first func()        // nil once it was called; of the reader

	r io.Reader // the rest of a message; of the reader
}

func (c *carrier) Read(p []byte) (int, error) {
	for {
		if c.r == nil {
			kind, r, err := c.ws.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("a text message on a bulk socket")
			}
			c.r = r
		}
		n, err := c.r.Read(p)
		if err == io.EOF {
			c.r, err = nil, nil
			if n == 0 {
				continue
			}
		}
		if n > 0 {
			c.alive()
		}
		return n, err
	}
}

func (c *carrier) alive() {
	if now := time.Now().UnixNano(); now-c.heard.Load() > int64(c.every) {
		c.heard.Store(now)
		c.quiet.Heard()
	}
	if c.first != nil {
		c.first()
		c.first = nil
	}
}

// idle tells whether nothing was heard lately.
func (c *carrier) idle() bool {
	return time.Now().UnixNano()-c.heard.Load() > 2*int64(c.every)
}

func (c *carrier) Write(p []byte) (int, error) {
	if err := c.ws.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *carrier) Close() error                       { return c.ws.Close() }
func (c *carrier) LocalAddr() net.Addr                { return c.ws.LocalAddr() }
func (c *carrier) RemoteAddr() net.Addr               { return c.ws.RemoteAddr() }
func (c *carrier) SetDeadline(t time.Time) error      { return c.SetWriteDeadline(t) }
func (c *carrier) SetReadDeadline(time.Time) error    { return nil } // the patience's
func (c *carrier) SetWriteDeadline(t time.Time) error { return c.ws.SetWriteDeadline(t) }

// allowance is what windows have grown by together.
type allowance struct{ used atomic.Int64 }

// span is what one stream has of it; it is the multiplexer's MemoryManager.
type span struct {
	of   *allowance
	mu   sync.Mutex
	held int64 // guarded by mu
	done bool  // guarded by mu
}

var errFull = errors.New("windows are large enough")

// forStream is the multiplexer's priority of a stream's first window, which it
// always has; what is less is growth.
const forStream = 255

func (s *span) ReserveMemory(size int, prio uint8) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if prio == forStream {
		return nil
	}
	if s.done || s.of.used.Add(int64(size)) > maxGrown {
		if !s.done {
			s.of.used.Add(-int64(size))
		}
		return errFull
	}
	s.held += int64(size)
	return nil
}

func (s *span) ReleaseMemory(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.held, int64(size))
	s.held -= n
	s.of.used.Add(-n)
}

func (s *span) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.used.Add(-s.held)
	s.held, s.done = 0, true
}
