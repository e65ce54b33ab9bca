package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Bounds of what the commands of one session may have at the proxy, and of
// what one connection may send to say where it wants to go.
const (
	maxOpen   = 64
	maxAsking = 32
	maxHead   = 32 << 10
)

// headWithin is how long it may take for that. Tests are less patient.
var headWithin = 15 * time.Second

// room is what the commands of one session share.
type room struct{ open, asking chan struct{} }

// proxy is one command's way out of its container: an HTTP proxy and SOCKS5 on
// one port. The code is small and our own, since libraries for either dial, and
// here the Connector decides, dials and pipes. It lives as long as any process
// of its command.
//
// A command that has its container alone has all that comes to the port there.
// In a container that is entered once the port is the same for all commands, and
// the keeper says whose each connection is. What it can't say comes to a proxy of
// the container, stray: there each connection is asked for by itself, as if it
// were a command of its own, so that what was allowed to one command only never
// holds for it.
type proxy struct {
	listener net.Listener // of a command that has its container alone
	connect  capabilities.Connector
	ask      capabilities.Connect // what all its connections have in common
	stray    bool
	room     *room

	// Once leaving has ended nothing is asked any more; once life has, nothing is
	// connected.
	leaving, life context.Context
	leave, stop   context.CancelCauseFunc
	wg            sync.WaitGroup

	mu      sync.Mutex
	refused []string // hosts, in the order of their first refusal; guarded by mu
}

// newProxy serves what it is given, or what listenTo brings, until close.
func (s *Shell) newProxy(ask capabilities.Connect) *proxy {
	s.mu.Lock()
	r := s.rooms[ask.SessionID]
	if r == nil {
		r = &room{make(chan struct{}, maxOpen), make(chan struct{}, maxAsking)}
		s.rooms[ask.SessionID] = r
	}
	s.mu.Unlock()
	x := &proxy{connect: s.o.Connect, ask: ask, room: r}
	x.life, x.stop = context.WithCancelCause(context.Background())
	x.leaving, x.leave = context.WithCancelCause(x.life)
	return x
}

func (x *proxy) listenTo(l net.Listener) {
	x.listener = l
	x.wg.Go(x.accept)
}

// closeProxy ends p's way out.
func (p *process) closeProxy() {
	if p.proxy == nil {
		return
	}
	if p.box != nil {
		p.box.forget(p.number)
	}
	p.proxy.close()
}

// close ends what is asked, lets connections whose programs have gone end by
// themselves for a moment, ends them, and waits for that. Nothing new is given to
// x meanwhile.
func (x *proxy) close() {
	x.leave(errStopped())
	if x.listener != nil {
		x.listener.Close()
	}
	patience := time.AfterFunc(time.Second, func() { x.stop(errStopped()) })
	x.wg.Wait()
	patience.Stop()
	x.stop(errStopped())
}

func (x *proxy) accept() {
	for {
		conn, err := x.listener.Accept()
		if err != nil {
			if x.leaving.Err() == nil && !errors.Is(err, net.ErrClosed) { // out of descriptors, say
				select {
				case <-time.After(50 * time.Millisecond):
				case <-x.leaving.Done():
				}
				continue
			}
			return
		}
		x.take(conn)
	}
}

// take serves a connection. Whoever comes when all is taken waits for that.
func (x *proxy) take(conn net.Conn) {
	select {
	case x.room.open <- struct{}{}:
	case <-x.leaving.Done():
		conn.Close()
		return
	}
	x.wg.Go(func() {
		defer func() { <-x.room.open }()
		defer conn.Close()
		defer context.AfterFunc(x.life, func() { conn.Close() })()
		x.serve(conn)
	})
}

// serve finds out what is spoken: SOCKS begins with its version.
func (x *proxy) serve(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(headWithin))
	head := &io.LimitedReader{R: conn, N: maxHead}
	in := bufio.NewReader(head)
	first, err := in.Peek(1)
	if err != nil {
		return
	}
	if first[0] == 5 {
		x.socks(conn, in, head)
	} else {
		x.http(conn, in, head)
	}
}

// begun ends the bounds of a connection's head.
func begun(conn net.Conn, head *io.LimitedReader) {
	head.N = 1<<63 - 1
	_ = conn.SetReadDeadline(time.Time{})
}

// tunnel asks for a connection and pipes client to it. established is called
// once it is there; an error before that is for who asked, as a sentence.
//
// That the program hangs up meanwhile does not end the question: many give up
// after a few seconds and try again, and the answer is for their next try.
func (x *proxy) tunnel(host string, port int, program string, client net.Conn, established func() error) (there bool, err error) {
	select {
	case x.room.asking <- struct{}{}:
	default:
		return false, wire.Errorf(wire.CodeOverloaded, "%d connections of this session wait for an answer already; try again in a moment.", maxAsking)
	}
	asking := sync.OnceFunc(func() { <-x.room.asking })
	defer asking()
	ctx, cancel := context.WithCancelCause(x.life)
	defer cancel(nil)
	left := context.AfterFunc(x.leaving, func() { cancel(errStopped()) })
	defer left()
	c := x.ask
	c.Host, c.Port, c.Client = host, port, client
	if x.stray {
		ended := make(chan struct{})
		defer close(ended)
		c.Command, c.Ended = consent.NewID(), ended
	}
	if program != "" {
		c.Program = program
	}
	c.Established = func() error {
		there = true
		left()
		asking()
		return established()
	}
	if err := c.Validate(); err != nil {
		return false, err
	}
	err = x.connect(ctx, &c)
	switch wire.CodeOf(err) {
	case wire.CodeDenied, wire.CodeExpired, wire.CodeUndelivered, wire.CodePaused:
		x.note(host)
	}
	return there, err
}

// maxRefused is how many hosts a command's result names.
const maxRefused = 10

func (x *proxy) note(host string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Contains(x.refused, host) && len(x.refused) < 1000 {
		x.refused = append(x.refused, host)
	}
}

// notes are the sentences for the command's result.
func (x *proxy) notes() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for i, host := range x.refused {
		if i == maxRefused {
			return append(out, fmt.Sprintf("was not allowed to reach %d other places", len(x.refused)-i))
		}
		out = append(out, "was not allowed to reach "+host)
	}
	return out
}

// sentence is what a program is told about a connection that there is not.
func sentence(err error) string {
	var e *wire.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "There is no connection; this computer's log says why."
}
