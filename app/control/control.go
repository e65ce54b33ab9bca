// Package control is the local control socket: how "localpc status", "quit" and
// a second start reach the program that runs, and how cards are answered in a
// terminal (step 4). One JSON object a line, one answer to each request. Only
// the person's own user may connect, and containers do not see the socket.
package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// maxLine bounds one message, both ways, in bytes.
const maxLine = 8 << 20

// Op is what a request wants. Serialised.
type Op string

const (
	OpStatus Op = "status" // the snapshot
	OpIntent Op = "intent" // Intent; the answer is its Reply
	OpCard   Op = "card"   // the open question; it counts as shown from now on
	OpAnswer Op = "answer" // ID, Answer
	// OpProgram gives what the program named ID speaks to the hub inside with.
	OpProgram Op = "program"
)

// Request is one line to the socket.
type Request struct {
	Op     Op               `json:"op"`
	Intent *snapshot.Intent `json:"intent,omitempty"`
	ID     string           `json:"id,omitempty"`
	Answer *consent.Answer  `json:"answer,omitempty"`
}

// Response is one line back. Error is one plain sentence, or "".
type Response struct {
	Error    string             `json:"error,omitempty"`
	Snapshot *snapshot.Snapshot `json:"snapshot,omitempty"`
	Reply    *snapshot.Reply    `json:"reply,omitempty"`
	Card     *Card              `json:"card,omitempty"`
	Hub      *Hub               `json:"hub,omitempty"`
}

// Hub is where a program finds the hub inside, and its key there.
type Hub struct {
	Address string `json:"address"`
	Key     string `json:"key"`
}

// Card is a question as a terminal shows it.
type Card struct {
	Request consent.Request   `json:"request"`
	Info    snapshot.CardInfo `json:"info"`
}

// Handler is the running machine as the socket needs it.
type Handler struct {
	Snapshot func() snapshot.Snapshot
	Intend   func(context.Context, snapshot.Intent) (snapshot.Reply, error)
	Head     func() (consent.Request, snapshot.CardInfo, bool)
	// Join makes this connection a place where the card of request id is
	// shown, until leave is called; ok is false when it is not open any more.
	Join   func(id string) (leave func(), ok bool)
	Answer func(id string, a consent.Answer) error
	// Program gives the address of the hub inside and the key of a program,
	// which is made when it has none.
	Program func(ctx context.Context, name string) (address, key string, err error)
}

// Server listens. Make it with Listen, end it with Close.
type Server struct {
	h      Handler
	l      net.Listener
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Listen serves the socket at path (0600). Whoever holds the program's lock
// may call it: a socket that is there is a leftover.
func Listen(path string, h Handler, log *slog.Logger) (*Server, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove an old control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// Its directory is 0700 already; this is for whoever opens that.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect the control socket: %w", err)
	}
	s := &Server{h: h, l: l, log: log}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Add(1)
	go s.accept()
	return s, nil
}

// Close ends the server and waits for what it is doing.
func (s *Server) Close() {
	s.cancel()
	s.l.Close()
	s.wg.Wait()
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		c, err := s.l.Accept()
		if err != nil {
			if s.ctx.Err() != nil {
				return
			}
			// Too many open files, say: it passes.
			s.log.Error("A connection to the control socket could not be taken", "err", err)
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
				continue
			}
		}
		s.wg.Add(1)
		go s.serve(c.(*net.UnixConn))
	}
}

func (s *Server) serve(c *net.UnixConn) {
	defer s.wg.Done()
	defer c.Close()
	// The answer under way is still given: it may be that to "quit".
	stop := context.AfterFunc(s.ctx, func() {
		_ = c.SetReadDeadline(time.Now())
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	})
	defer stop()
	if err := checkPeer(c); err != nil {
		s.log.Warn("A connection to the control socket was refused", "err", err)
		return
	}
	sc := bufio.NewScanner(c)
	sc.Buffer(make([]byte, 4<<10), maxLine)
	enc := json.NewEncoder(c)
	var left []func()
	defer func() {
		for _, fn := range left {
			fn()
		}
	}()
	for sc.Scan() {
		var r Request
		resp := Response{Error: "The request is not readable."}
		if err := json.Unmarshal(sc.Bytes(), &r); err == nil {
			resp = s.answer(r, &left)
		}
		if err := enc.Encode(resp); err != nil {
			return
		}
	}
	if errors.Is(sc.Err(), bufio.ErrTooLong) {
		_ = enc.Encode(Response{Error: "The request is too long."})
	}
}

// answer does what a request wants. What has to be done when its connection
// ends is put into left.
func (s *Server) answer(r Request, left *[]func()) Response {
	fail := func(err error) Response { return Response{Error: err.Error()} }
	switch {
	case r.Op == OpStatus:
		snap := s.h.Snapshot()
		return Response{Snapshot: &snap}
	case r.Op == OpIntent && r.Intent != nil:
		reply, err := s.h.Intend(s.ctx, *r.Intent)
		if err != nil {
			return fail(err)
		}
		return Response{Reply: &reply}
	case r.Op == OpCard:
		req, info, ok := s.h.Head()
		if !ok {
			return Response{}
		}
		leave, ok := s.h.Join(req.ID)
		if !ok {
			return Response{}
		}
		*left = append(*left, leave)
		return Response{Card: &Card{req, info}}
	case r.Op == OpAnswer && r.Answer != nil:
		if err := s.h.Answer(r.ID, *r.Answer); err != nil {
			return fail(err)
		}
		return Response{}
	case r.Op == OpProgram && s.h.Program != nil:
		address, key, err := s.h.Program(s.ctx, r.ID)
		if err != nil {
			return fail(err)
		}
		return Response{Hub: &Hub{Address: address, Key: key}}
	}
	return Response{Error: fmt.Sprintf("The request %q is not known.", r.Op)}
}

// ErrNotRunning means that nobody listens on the socket.
var ErrNotRunning = errors.New("the program is not running; start it with localpc")

// Client is one connection to the running program.
type Client struct {
	c  net.Conn
	sc *bufio.Scanner
}

// Dial connects to the program that runs with this socket.
func Dial(path string) (*Client, error) {
	c, err := net.DialTimeout("unix", path, 2*time.Second)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNotRunning // there is nothing more to know
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	sc := bufio.NewScanner(c)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	return &Client{c, sc}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.c.Close() }

// Do sends one request and waits for its answer; an Error in it becomes err.
func (c *Client) Do(r Request) (Response, error) {
	if err := json.NewEncoder(c.c).Encode(r); err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if !c.sc.Scan() {
		return Response{}, fmt.Errorf("%w: it ended meanwhile", ErrNotRunning)
	}
	var resp Response
	if err := json.Unmarshal(c.sc.Bytes(), &resp); err != nil {
		return Response{}, fmt.Errorf("the running program's answer is not readable: %w", err)
	}
	if resp.Error != "" {
		return resp, errors.New(resp.Error)
	}
	return resp, nil
}

// Intend sends one intent.
func (c *Client) Intend(in snapshot.Intent) (snapshot.Reply, error) {
	resp, err := c.Do(Request{Op: OpIntent, Intent: &in})
	if err != nil || resp.Reply == nil {
		return snapshot.Reply{}, err
	}
	return *resp.Reply, nil
}
