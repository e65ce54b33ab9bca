package network

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// lingers is how long a command may be silent after the other end has said its
// last word.
const lingers = 60 * time.Second

// pipe joins the command's end to remote until both directions have ended. The
// end of one is passed on, and the other goes on.
func (n *Network) pipe(ctx context.Context, c *capabilities.Connect, remote net.Conn) (capabilities.Result, error) {
	defer remote.Close()
	defer c.Client.Close()
	stop := context.AfterFunc(ctx, func() {
		remote.Close()
		c.Client.Close()
	})
	defer stop()
	if err := c.Established(); err != nil {
		return capabilities.Result{}, ended(ctx, wire.Wrap(err, wire.CodeLost, "The program had stopped waiting for its connection."))
	}
	var wg sync.WaitGroup
	var sent, received int64
	var out, back error
	var whole atomic.Bool // the command has said its last word
	over := make(chan struct{})
	wg.Go(func() {
		sent, out = carry(remote, c.Client, over)
		whole.Store(out == nil && ctx.Err() == nil)
		if out != nil {
			remote.Close()
			c.Client.Close()
		}
	})
	received, back = carry(c.Client, remote, nil)
	close(over)
	_ = c.Client.SetReadDeadline(time.Now().Add(lingers))
	if back != nil {
		remote.Close()
		c.Client.Close()
	}
	wg.Wait()
	r := capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "sent " + consent.Bytes(sent) + ", received " + consent.Bytes(received),
		Sent: sent, Received: received}
	if ctx.Err() != nil && !whole.Load() {
		return r, context.Cause(ctx)
	}
	return r, nil
}

// carry copies until the source's end, which it passes on. Once over is
// closed, the source has lingers for each further piece.
func carry(to, from net.Conn, over <-chan struct{}) (n int64, err error) {
	buf := make([]byte, 32<<10)
	for {
		k, rerr := from.Read(buf)
		if k > 0 {
			w, werr := to.Write(buf[:k])
			n += int64(w)
			if werr != nil {
				return n, werr
			}
		}
		if rerr != nil {
			if half, ok := to.(interface{ CloseWrite() error }); ok && errors.Is(rerr, io.EOF) {
				_ = half.CloseWrite()
				return n, nil
			}
			return n, rerr
		}
		select {
		case <-over:
			_ = from.SetReadDeadline(time.Now().Add(lingers))
		default:
		}
	}
}
