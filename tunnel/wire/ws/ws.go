// Package ws is what step 1 does with a computer's WebSocket in either profile:
// notice silence, let go of a connection in time, and say how it ended. It
// imports nothing of ours.
package ws

import (
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Farewell is how long a connection that the hub ends may take to say so.
const Farewell = 2 * time.Second

// maxReason is how many bytes of text a close frame holds (RFC 6455).
const maxReason = 123

// Patience ends a connection on which nothing is heard for too long. Its
// methods are safe for concurrent use, Begin apart.
type Patience struct {
	conn *websocket.Conn
	max  time.Duration

	mu    sync.Mutex
	ended bool // guarded by mu
}

// NewPatience makes one that lasts for max. It counts from Begin on.
func NewPatience(conn *websocket.Conn, max time.Duration) *Patience {
	return &Patience{conn: conn, max: max}
}

// Begin has pings and pongs count as signs of life. The connection's reader
// calls it before it reads.
func (p *Patience) Begin() {
	p.Heard()
	p.conn.SetPongHandler(func(string) error { p.Heard(); return nil })
	pong := p.conn.PingHandler()
	p.conn.SetPingHandler(func(d string) error { p.Heard(); return pong(d) })
}

// Heard puts off the end of a silent connection.
func (p *Patience) Heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.conn.SetReadDeadline(time.Now().Add(p.max))
	}
}

// End lets the reader go within Farewell, whatever is heard.
func (p *Patience) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	_ = p.conn.SetReadDeadline(time.Now().Add(Farewell))
}

// Reader counts every piece of a long frame as a sign of life.
func (p *Patience) Reader(r io.Reader) io.Reader { return lively{r, p} }

type lively struct {
	r io.Reader
	p *Patience
}

func (l lively) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if n > 0 {
		l.p.Heard()
	}
	return n, err
}

// IsTimeout tells whether a read ended because nothing was heard.
func IsTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// Clip bounds the text of a close frame.
func Clip(reason string) string {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return reason
}

// CloseCode is how a connection ended: as this end said (0 and 1000 do not
// count), or the other in err, or 1006 when neither did.
func CloseCode(said int, err error) int {
	var ce *websocket.CloseError
	switch {
	case said != 0 && said != websocket.CloseNormalClosure:
		return said
	case errors.As(err, &ce) && (ce.Code >= 1000 && ce.Code <= 1014 || ce.Code >= 4400 && ce.Code <= 4500):
		return ce.Code
	}
	return websocket.CloseAbnormalClosure
}
