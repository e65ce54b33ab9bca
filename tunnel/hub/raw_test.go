package hub_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// The sessions' library begins a store that the pages do not use, and has no
// safe way to end it.
func TestMain(m *testing.M) {
	if name := os.Getenv("LOCALPC_TEST_ROLE"); name != "" {
		if err := role(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"))
}

// bench is a hub for machines that speak frame by frame.
type bench struct {
	*hub.Hub
	url string
}

func newBench(t *testing.T, change ...func(*hub.Options)) *bench {
	t.Helper()
	o := hub.Options{Data: t.TempDir(), Name: "Test hub", Log: tunneltest.Log(t)}
	for _, c := range change {
		c(&o)
	}
	h, url := tunneltest.Serve(t, o)
	return &bench{h, url}
}

func (b *bench) token(t *testing.T, machine string) string {
	t.Helper()
	token, err := b.MachineToken(t.Context(), machine, machine)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// on is a sandbox of the owner's on that machine, as far as a request needs it.
func on(machine string) store.Sandbox { return store.Sandbox{User: store.OwnerID, Machine: machine} }

// raw is a machine's connection, by hand.
type raw struct {
	t  *testing.T
	ws *websocket.Conn
}

func dial(t *testing.T, url, token string, header http.Header) (*raw, *http.Response, error) {
	t.Helper()
	if header == nil {
		header = http.Header{}
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	d := websocket.Dialer{Subprotocols: []string{wire.Subprotocol}, HandshakeTimeout: 5 * time.Second}
	ws, resp, err := d.Dial("ws"+strings.TrimPrefix(url, "http")+wire.Path, header)
	if err != nil {
		return nil, resp, err
	}
	t.Cleanup(func() { ws.Close() })
	return &raw{t, ws}, resp, nil
}

func mustDial(t *testing.T, url, token string) *raw {
	t.Helper()
	r, _, err := dial(t, url, token, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hello(machine string, sessions ...string) *wire.Hello {
	if sessions == nil {
		sessions = []string{}
	}
	return &wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: machine, DisplayName: "Mac-1", Platform: "linux", Arch: "amd64", Capabilities: []string{}, Sessions: sessions}
}

// join connects and says HELLO.
func (b *bench) join(t *testing.T, token string, h *wire.Hello) *raw {
	t.Helper()
	r := mustDial(t, b.url, token)
	id := r.send(wire.TypeHello, "", h)
	m := r.read()
	ack, ok := m.Payload.(*wire.HelloAck)
	if !ok || m.ID != id || ack.HubName != "Test hub" || ack.Protocol != wire.Version {
		t.Fatalf("HELLO was answered with %+v %+v", m, m.Payload)
	}
	eventually(t, "the machine is online", func() bool {
		for _, m := range b.machines(t) {
			if m.ID == h.MachineID {
				return m.Online
			}
		}
		return false
	})
	return r
}

func (r *raw) send(kind wire.Type, id string, p wire.Payload) string {
	r.t.Helper()
	if id == "" {
		id = uuid.NewString()
	}
	data, err := wire.Encode(wire.Message{Type: kind, ID: id, Payload: p})
	if err != nil {
		r.t.Fatal(err)
	}
	r.sendBytes(data)
	return id
}

func (r *raw) sendBytes(data []byte) {
	r.t.Helper()
	if err := r.ws.WriteMessage(websocket.TextMessage, data); err != nil {
		r.t.Fatal(err)
	}
}

// read gives the next frame from the hub.
func (r *raw) read() wire.Message {
	r.t.Helper()
	_ = r.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, data, err := r.ws.ReadMessage()
	if err != nil {
		r.t.Fatalf("read: %v", err)
	}
	m, err := wire.Decode(data, wire.ToMachine)
	if err != nil {
		r.t.Fatalf("the hub sent %.200s: %v", data, err)
	}
	return m
}

// until reads until a frame of that type comes.
func (r *raw) until(kind wire.Type) wire.Message {
	r.t.Helper()
	for {
		if m := r.read(); m.Type == kind {
			return m
		}
	}
}

// closed reads until the end and wants that close code.
func (r *raw) closed(code int) (reason string) {
	r.t.Helper()
	_ = r.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		_, _, err := r.ws.ReadMessage()
		if err == nil {
			continue
		}
		var ce *websocket.CloseError
		if !errors.As(err, &ce) || ce.Code != code {
			r.t.Errorf("the connection ended with %v, want code %d", err, code)
		}
		if ce != nil {
			reason = ce.Text
		}
		return reason
	}
}

// breakData makes such statements fail in a hub's data until it is mended, as a
// full disk would.
func breakData(t *testing.T, dir string, statements ...string) (mend func()) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "hub.db")+"?_pragma=busy_timeout(10000)")
	must(t, err)
	t.Cleanup(func() { db.Close() })
	for i, s := range statements {
		_, err := db.ExecContext(t.Context(), fmt.Sprintf("CREATE TRIGGER broken%d BEFORE %s BEGIN SELECT RAISE(ABORT, 'the disk is full'); END", i, s))
		must(t, err)
	}
	return func() {
		t.Helper()
		for i := range statements {
			_, err := db.ExecContext(t.Context(), fmt.Sprintf("DROP TRIGGER broken%d", i))
			must(t, err)
		}
	}
}

// holdData keeps a hub's data from being written until let is called.
func holdData(t *testing.T, dir string) (let func()) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "hub.db")+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	must(t, err)
	t.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	return func() { must(t, tx.Rollback()) }
}

func (b *bench) machines(t *testing.T) []machineState {
	t.Helper()
	list, err := b.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := make([]machineState, len(list))
	for i, m := range list {
		out[i] = machineState{m.ID, m.Name, m.Online, m.RecordSeq, !m.RecordCut.IsZero()}
	}
	return out
}

type machineState struct {
	ID, Name string
	Online   bool
	Seq      int64
	Cut      bool
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so in 10 s: %s", what)
		}
	}
}

// works sends a request to the machine and has it answered: the tunnel lives.
func (b *bench) works(t *testing.T, r *raw, machine string) {
	t.Helper()
	s, err := b.Do(t.Context(), on(machine), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "works"})
	if err != nil {
		t.Fatalf("the tunnel does not live: %v", err)
	}
	defer s.Close()
	for {
		m := r.until(wire.TypeFileStat)
		if m.Payload.(*wire.FileStat).Path == "works" {
			r.send(wire.TypeFileStatResponse, m.ID, &wire.FileStatResponse{})
			break
		}
	}
	if _, err := s.Recv(); err != nil {
		t.Fatalf("the tunnel does not live: %v", err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
