package autogpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = time.Minute

// hub is the other end, written from the protocol alone: raw JSON, checked for
// what a strict hub drops a connection for.
type hub struct {
	t       *testing.T
	srv     *httptest.Server
	refuse  func(r *http.Request) int // a status, or 0
	control chan *peer
	data    chan *peer
	dials   atomic.Int32
}

func newHub(t *testing.T) *hub {
	h := &hub{t: t, refuse: func(*http.Request) int { return 0 }, control: make(chan *peer, 16), data: make(chan *peer, 16)}
	up := websocket.Upgrader{}
	var mu sync.Mutex
	var open []*websocket.Conn
	h.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.dials.Add(1)
		if status := h.refuse(r); status != 0 {
			http.Error(w, `{"detail":"no"}`, status)
			return
		}
		session, isData := strings.CutPrefix(r.URL.Path, "/base/ws/local-executor/")
		if !isData {
			session = ""
		}
		if !isData && r.URL.Path != "/base/ws/local-executor" || r.URL.RawQuery != "" || r.Header.Get("Sec-WebSocket-Protocol") != "" {
			t.Errorf("dialled %s with the subprotocol %q", r.URL, r.Header.Get("Sec-WebSocket-Protocol"))
		}
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		mu.Lock()
		open = append(open, ws)
		mu.Unlock()
		p := &peer{t: t, ws: ws, session: session, token: r.Header.Get("Authorization"), waiting: map[string]string{}}
		if isData {
			h.data <- p
		} else {
			h.control <- p
		}
	}))
	t.Cleanup(func() {
		mu.Lock()
		for _, ws := range open {
			ws.Close()
		}
		mu.Unlock()
		h.srv.Close()
	})
	return h
}

func (h *hub) url() string { return h.srv.URL + "/base/" }

func take[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(soon):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// peer is one accepted connection. Its methods are for one goroutine.
type peer struct {
	t       *testing.T
	ws      *websocket.Conn
	session string
	token   string
	hello   frame
	waiting map[string]string // id to type of what was asked
	status  []frame
}

type object = map[string]any

type frame struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	TS       float64         `json:"ts"`
	Version  string          `json:"version"`
	Capacity *int            `json:"pending_capacity"`
	Payload  json.RawMessage `json:"payload"`
}

func (f frame) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(f.Payload, v); err != nil {
		t.Fatalf("%s: %v in %s", f.Type, err, f.Payload)
	}
}

func (p *peer) read() (frame, error) {
	_ = p.ws.SetReadDeadline(time.Now().Add(soon))
	_, data, err := p.ws.ReadMessage()
	if err != nil {
		return frame{}, err
	}
	if len(data) < 1<<20 { // more takes too long under the race detector
		if err := msg.Exact(data, wire.ToHub); err != nil {
			p.t.Errorf("the machine wrote %s: %v", data, err)
		}
	}
	var f frame
	if err := json.Unmarshal(data, &f); err != nil {
		p.t.Fatal(err)
	}
	return f, nil
}

func (p *peer) send(kind, id string, payload object) {
	p.t.Helper()
	data, err := json.Marshal(object{"type": kind, "id": id, "ts": 1781000000.5, "payload": payload})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.ws.WriteMessage(websocket.TextMessage, data); err != nil {
		p.t.Fatalf("send %s: %v", kind, err)
	}
}

// greet takes HELLO and answers it, with changes to what is usual.
func (p *peer) greet(change object) {
	p.t.Helper()
	f, err := p.read()
	if err != nil || f.Type != "HELLO" || f.Capacity != nil {
		p.t.Fatalf("instead of HELLO came %+v, %v", f, err)
	}
	p.hello = f
	var hello struct {
		Capabilities []string `json:"capabilities"`
	}
	f.into(p.t, &hello)
	ack := object{"session_id": nil, "connection_id": "c-1", "protocol_version": "1.1", "granted_capabilities": hello.Capabilities,
		"max_file_size_bytes": 10485760, "command_timeout_seconds": 30, "max_concurrent": 4}
	if p.session != "" {
		ack["session_id"] = p.session
		delete(ack, "connection_id")
	}
	id := f.ID
	for k, v := range change {
		if k == "id" {
			id = v.(string)
			continue
		}
		ack[k] = v
	}
	p.send("HELLO_ACK", id, ack)
}

// ask sends a request.
func (p *peer) ask(kind, id string, payload object) {
	p.t.Helper()
	p.waiting[id] = kind
	p.send(kind, id, payload)
}

// next is the next frame that answers something; STATUS is put aside.
func (p *peer) next() frame {
	p.t.Helper()
	for {
		f, err := p.read()
		if err != nil {
			p.t.Fatalf("instead of a reply: %v", err)
		}
		if f.Type == "STATUS" {
			p.status = append(p.status, f)
			continue
		}
		asked, ok := p.waiting[f.ID]
		if !ok {
			p.t.Fatalf("%s answers nothing that was asked", f.Type)
		}
		if !msg.Replies(msg.Type(asked), msg.Type(f.Type)) {
			p.t.Fatalf("%s was answered with %s", asked, f.Type)
		}
		delete(p.waiting, f.ID)
		return f
	}
}

// call asks and waits for the reply.
func (p *peer) call(kind string, payload object) frame {
	p.t.Helper()
	p.ask(kind, fmt.Sprintf("id-%d", time.Now().UnixNano()), payload)
	return p.next()
}

type failure struct {
	Code    wire.Code `json:"code"`
	Message string    `json:"message"`
	Details object    `json:"details"`
}

// fails is call for what must be refused.
func (p *peer) fails(kind string, payload object, code wire.Code) failure {
	p.t.Helper()
	f := p.call(kind, payload)
	return refusedWith(p.t, f, code)
}

func refusedWith(t *testing.T, f frame, code wire.Code) failure {
	t.Helper()
	var e failure
	f.into(t, &e)
	if f.Type != "ERROR" || e.Code != code || e.Message == "" {
		t.Fatalf("%s %s; want %s", f.Type, f.Payload, code)
	}
	return e
}

// closes waits for the machine's close and gives its code.
func (p *peer) closes() int {
	p.t.Helper()
	for {
		_, err := p.read()
		var ce *websocket.CloseError
		if errors.As(err, &ce) {
			return ce.Code
		}
		if err != nil {
			return websocket.CloseAbnormalClosure
		}
	}
}

func (p *peer) close(code int) {
	_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
	_ = p.ws.SetReadDeadline(time.Now().Add(time.Second))
	for {
		if _, _, err := p.ws.ReadMessage(); err != nil {
			break
		}
	}
	p.ws.Close()
}

// machine is a Client that runs, with parts that a test can set.
type machine struct {
	t       *testing.T
	c       *Client
	folders *folders
	states  chan tunnel.State
	ended   chan error
	stop    context.CancelFunc
}

func quick(o *Options) {
	o.Timings = Timings{BackoffBase: time.Millisecond, BackoffMax: 5 * time.Millisecond, Goodbye: 100 * time.Millisecond, PongTimeout: 2 * time.Minute} // a slow computer is not a silent one
}

func runMachine(t *testing.T, h *hub, change func(o *Options)) *machine {
	t.Helper()
	m := &machine{t: t, folders: newFolders(), states: make(chan tunnel.State, 256), ended: make(chan error, 1)}
	o := Options{
		URL:     h.url(),
		HubName: "AutoGPT",
		Token:   func(context.Context) (string, error) { return "agpt_xt_1", nil },
		Hello: func() msg.Hello {
			return msg.Hello{ShimVersion: "1.0.0", MachineID: "m-1", DisplayName: "Workshop", Platform: "linux", Arch: "x86_64",
				Capabilities: msg.List[string]{msg.Files, msg.Shell, msg.Browse}}
		},
		Folders: m.folders,
		Handler: func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
			return wire.TypeAck, &wire.Empty{}, nil
		},
		OnState: func(s tunnel.State) { m.states <- s },
		Network: &tunnel.Network{},
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	quick(&o)
	if change != nil {
		change(&o)
	}
	var err error
	if m.c, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.ended <- m.c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(soon):
			t.Error("the client did not end")
		}
	})
	return m
}

// online is a machine with a greeted control connection.
func online(t *testing.T, h *hub, change func(o *Options)) (*machine, *peer) {
	t.Helper()
	m := runMachine(t, h, change)
	p := take(t, h.control, "control connection")
	p.greet(nil)
	return m, p
}

const (
	chat  = "3f0c7a54-6f2e-4f0e-9a3e-6a1de8a3c001"
	root  = "/home/ana/project"
	grant = "v1.claims.mac"
)

// working is a machine with a live chat.
func working(t *testing.T, h *hub, change func(o *Options)) (*machine, *peer, *peer) {
	t.Helper()
	m, control := online(t, h, change)
	f := control.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant})
	if f.Type != "SESSION_RESTORED" {
		t.Fatalf("%s %s", f.Type, f.Payload)
	}
	data := take(t, h.data, "data connection")
	data.greet(nil)
	data.call("PING", object{}) // the machine has read the answer
	return m, control, data
}

// folders is a Folders whose answers a test can change.
type folders struct {
	mu       sync.Mutex
	resets   int
	detached []string
	root     string
	revision int64
	list     func(context.Context, msg.DirectoryList) (msg.Directory, error)
	attach   func(context.Context) error
}

func newFolders() *folders {
	return &folders{root: root, revision: 1, attach: func(context.Context) error { return nil },
		list: func(context.Context, msg.DirectoryList) (msg.Directory, error) {
			return msg.Directory{BrowseID: "b1", Entries: msg.List[msg.DirectoryRef]{{Ref: "r1", Name: "ana", Path: "/home/ana"}}, ExpiresAt: 1781000300}, nil
		}}
}

func (f *folders) binding(session string) msg.Binding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return msg.Binding{SessionID: session, AllowedRoot: f.root, Fingerprint: strings.Repeat("0a", 32), Revision: f.revision, RootGrant: grant}
}

func (f *folders) set(fn func()) { f.mu.Lock(); fn(); f.mu.Unlock() }

func (f *folders) Reset() { f.set(func() { f.resets++ }) }
func (f *folders) List(ctx context.Context, d msg.DirectoryList) (msg.Directory, error) {
	f.mu.Lock()
	list := f.list
	f.mu.Unlock()
	return list(ctx, d)
}
func (f *folders) Attach(ctx context.Context, a msg.Attach) (msg.Binding, error) {
	f.mu.Lock()
	attach := f.attach
	f.mu.Unlock()
	return f.binding(a.SessionID), attach(ctx)
}
func (f *folders) Activate(_ context.Context, a msg.Activate) (msg.Binding, error) {
	b := f.binding(a.SessionID)
	if a.Revision != b.Revision {
		return msg.Binding{}, &msg.Detailed{Code: msg.CodeRevision, Message: "Another revision.", Details: map[string]any{"current_revision": b.Revision}}
	}
	return b, nil
}
func (f *folders) Restore(_ context.Context, r msg.Restore) (msg.Binding, error) {
	if r.RootGrant != grant {
		return msg.Binding{}, wire.Errorf(msg.CodeGrantInvalid, "This grant is not of this machine.")
	}
	return f.binding(r.SessionID), nil
}
func (f *folders) Detach(_ context.Context, session string) error {
	f.set(func() { f.detached = append(f.detached, session) })
	return nil
}

func (m *machine) waitState(phase tunnel.Phase) tunnel.State {
	m.t.Helper()
	for {
		if s := take(m.t, m.states, "state "+string(phase)); s.Phase == phase {
			return s
		}
	}
}

// put sends to whoever takes it.
func put[T any](t *testing.T, ch chan<- T, v T, what string) {
	t.Helper()
	select {
	case ch <- v:
	case <-time.After(soon):
		t.Fatalf("nobody took the %s", what)
	}
}

// within waits until ok holds.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}
