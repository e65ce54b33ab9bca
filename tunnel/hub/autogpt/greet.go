package autogpt

import (
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
	"localpc/tunnel/wire/ws"
)

// greet waits for HELLO and checks it, in the protocol's order.
func (c *conn) greet(b store.Binding) (msg.Message, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(c.f.o.HelloTimeout))
	kind, r, err := c.conn.NextReader()
	var data []byte
	if err == nil {
		data, err = wire.ReadFrame(r, msg.MaxHello)
	}
	var frame *wire.FrameError
	switch {
	case errors.As(err, &frame):
		return msg.Message{}, c.sayClose(msg.CloseBadHello, "HELLO is over 64 KiB")
	case ws.IsTimeout(err):
		return msg.Message{}, c.sayClose(msg.CloseHelloTimeout, "no HELLO in time")
	case err != nil:
		return msg.Message{}, err
	case kind != websocket.TextMessage:
		return msg.Message{}, c.sayClose(msg.CloseBadHello, "HELLO must be text")
	}
	m, hello, err := msg.DecodeHello(data, c.control())
	var refused *msg.CloseError
	if errors.As(err, &refused) {
		return m, c.sayClose(refused.Code, refused.Reason)
	}
	if err != nil {
		return m, c.sayClose(msg.CloseInternal, "HELLO could not be read")
	}
	version, ok := msg.Negotiate(hello.Protocol)
	c.machine = hello.MachineID
	c.granted = c.f.grant(hello.Capabilities, c.control())
	switch {
	case !ok:
		return m, c.sayClose(msg.CloseVersion, "this hub speaks version "+msg.Version)
	case !c.control() && (b.Machine != c.machine || b.Root != *hello.AllowedRoot):
		return m, c.sayClose(msg.CloseForbidden, "the chat is bound to another computer or folder")
	case c.access.Machine != "" && c.access.Machine != c.machine:
		return m, c.sayClose(msg.CloseForbidden, "the sign-in belongs to another computer")
	case c.control() && (version != msg.Version || len(msg.Grant(hello.Capabilities, []string{msg.Browse})) == 0):
		return m, c.sayClose(msg.CloseVersion, "a control connection needs version 1.1 and directory_browse")
	}
	err = c.f.o.Hub.BindSignIn(c.f.ctx, c.access.SignIn, c.machine)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrTaken):
		return m, c.sayClose(msg.CloseForbidden, "the computer, or the sign-in, is somebody else's")
	case err != nil:
		c.f.log.Error("Sign-in could not be bound", "machine", c.machine, "err", err)
		return m, c.sayClose(c.failed("the hub could not note the computer"))
	}
	return m, nil
}

// failed is how to close for a failure of the hub's own, so that the machine
// comes back: while the hub is being stopped everything fails.
func (c *conn) failed(reason string) (int, string) {
	if c.f.ctx.Err() != nil {
		return websocket.CloseGoingAway, why(websocket.CloseGoingAway)
	}
	return msg.CloseInternal, reason
}

func (f *Face) grant(advertised []string, control bool) []string {
	granted := msg.Grant(advertised, f.o.Grants)
	if control {
		return granted
	}
	// Folders are browsed on the control connection alone.
	out := granted[:0]
	for _, g := range granted {
		if g != msg.Browse {
			out = append(out, g)
		}
	}
	return out
}

// serve makes the connection the only one of its kind and reads until it ends.
func (c *conn) serve(hello msg.Message) error {
	c.writing <- struct{}{} // HELLO_ACK is the first frame
	old, stale, err := c.join(hello)
	if err != nil {
		<-c.writing
		if errors.Is(err, errStale) {
			c.end(websocket.CloseNormalClosure, "the control connection is new", "")
		} else {
			code, why := c.failed("the hub could not note the connection")
			c.end(code, why, "")
		}
		return err
	}
	defer c.leave()
	// Together: those of a machine that hung take their time, and this one waits
	// for HELLO_ACK.
	var ending sync.WaitGroup
	if old != nil {
		ending.Go(func() { old.end(msg.CloseReplaced, "a newer connection took over", msg.ReasonAnother) })
	}
	for _, o := range stale {
		ending.Go(func() { o.end(websocket.CloseNormalClosure, "the control connection is new", "") })
	}
	ending.Wait()
	err = c.acknowledge(hello)
	<-c.writing
	if err != nil {
		c.end(msg.CloseInternal, "HELLO_ACK could not be sent", "")
		return err
	}
	// A revocation that came after the token was checked has found the
	// connection, or is found here.
	switch live, err := c.f.o.Hub.SignInLive(c.f.ctx, c.access.SignIn); {
	case err != nil:
		c.f.log.Error("Sign-in could not be checked", "machine", c.machine, "err", err)
		code, why := c.failed("the hub could not check the sign-in")
		c.end(code, why, "")
	case !live:
		c.end(msg.CloseRevoked, why(msg.CloseRevoked), msg.ReasonUser)
	}
	c.f.arrived(c)
	c.f.log.Info("Connection accepted", "user", c.access.User, "machine", c.machine, "session", c.session)
	if c.control() {
		c.f.o.Hub.Heard(c.f.ctx, c.info)
	}
	var beating sync.WaitGroup
	beating.Go(c.beat)
	if c.control() {
		beating.Go(c.settle)
	}
	err = c.read()
	c.end(websocket.CloseNormalClosure, "", "")
	beating.Wait()
	return err
}

// settleFor is how long a machine may take to answer the first PING.
const settleFor = 2 * time.Second

// settle waits until the machine has surely read HELLO_ACK, and so ended the
// chats that it had. Only then may it be asked for chats, and only data
// connections that begin later are of this time: an older one, perhaps made
// anew in this very moment, would swallow requests.
func (c *conn) settle() {
	defer close(c.settled)
	_, err := c.ask(c.f.ctx, msg.TypePing, &msg.Empty{}, settleFor)
	if err != nil {
		c.f.log.Info("First PING was not answered", "user", c.access.User, "machine", c.machine, "err", err)
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.since = time.Now()
}

// errStale is a data connection from before the machine's control connection.
var errStale = errors.New("the connection is older than the machine's control connection")

// join takes its place. It returns the connection that had it, and those of
// the machine's chats that a new control connection ends.
func (c *conn) join(hello msg.Message) (old *conn, stale []*conn, err error) {
	f := c.f
	f.joining.Lock()
	defer f.joining.Unlock()
	if c.control() {
		c.info = &Machine{User: c.access.User, ID: c.machine, SignIn: c.access.SignIn, Connection: uuid.NewString(), Since: time.Now(),
			Hello: *hello.Payload.(*msg.Hello), Granted: c.granted, c: c}
		if err := f.o.Hub.Joined(f.ctx, c.info); err != nil {
			return nil, nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[c] = struct{}{}
	key := owned{c.access.User, c.machine}
	if !c.control() {
		if control := f.controls[key]; control != nil && (control.since.IsZero() || c.began.Before(control.since)) {
			delete(f.conns, c)
			return nil, nil, errStale
		}
		old, f.chats[c.session] = f.chats[c.session], c
		return old, nil, nil
	}
	old, f.controls[key] = f.controls[key], c
	for o := range f.conns {
		if !o.control() && (owned{o.access.User, o.machine}) == key {
			stale = append(stale, o)
			if f.chats[o.session] == o {
				delete(f.chats, o.session)
			}
		}
	}
	return old, stale, nil
}

func (c *conn) leave() {
	f := c.f
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	f.forget(c)
	if c.control() {
		f.o.Hub.Left(c.info)
	}
}

// forget takes a connection out of use, if it still is the one in use.
func (f *Face) forget(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := (owned{c.access.User, c.machine}); c.control() && f.controls[key] == c {
		delete(f.controls, key)
	}
	if !c.control() && f.chats[c.session] == c {
		delete(f.chats, c.session)
	}
}

// acknowledge sends HELLO_ACK; the caller may write.
func (c *conn) acknowledge(hello msg.Message) error {
	version, _ := msg.Negotiate(hello.Payload.(*msg.Hello).Protocol)
	ack := &msg.HelloAck{Protocol: version, Granted: c.granted, MaxFileSize: c.f.o.MaxFileSize,
		CommandTimeout: int64(c.f.o.CommandTimeout / time.Second), MaxConcurrent: int64(c.f.o.MaxConcurrent)}
	if c.control() {
		ack.ConnectionID = &c.info.Connection
	} else {
		ack.SessionID = &c.session
	}
	data, err := msg.Encode(msg.Message{Type: msg.TypeHelloAck, ID: hello.ID, Payload: ack}, wire.ToMachine)
	if err != nil {
		return err
	}
	return c.put(data, c.f.o.HelloTimeout)
}
