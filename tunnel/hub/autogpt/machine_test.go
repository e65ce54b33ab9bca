//go:build unix

package autogpt_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	machineend "localpc/tunnel/autogpt"
	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// oneFolder lets the hub find and bind one folder.
type oneFolder struct{ dir string }

func (f oneFolder) Reset() {}

func (f oneFolder) List(_ context.Context, d msg.DirectoryList) (msg.Directory, error) {
	if d.BrowseID != nil && *d.BrowseID != "b" {
		return msg.Directory{}, wire.Errorf(msg.CodeReferenceInvalid, "There is no such browse.")
	}
	return msg.Directory{BrowseID: "b", Entries: msg.List[msg.DirectoryRef]{{Ref: "r", Name: filepath.Base(f.dir), Path: f.dir}}, ExpiresAt: float64(time.Now().Add(time.Minute).Unix())}, nil
}

func (f oneFolder) bound(session string) msg.Binding {
	return msg.Binding{SessionID: session, AllowedRoot: f.dir, Fingerprint: strings.Repeat("0a", 32), Revision: 1, RootGrant: "v1.own.grant"}
}

func (f oneFolder) Attach(_ context.Context, a msg.Attach) (msg.Binding, error) {
	return f.bound(a.SessionID), nil
}

func (f oneFolder) Activate(_ context.Context, a msg.Activate) (msg.Binding, error) {
	return f.bound(a.SessionID), nil
}

func (f oneFolder) Restore(_ context.Context, r msg.Restore) (msg.Binding, error) {
	if r.RootGrant != "v1.own.grant" {
		return msg.Binding{}, wire.Errorf(msg.CodeGrantInvalid, "The grant does not hold.")
	}
	return f.bound(r.SessionID), nil
}

func (f oneFolder) Detach(context.Context, string) error { return nil }

// ourMachine runs our own machine end until the test ends, on a folder.
func ourMachine(t *testing.T, url, token string, ask func(context.Context, wire.Message) error, change ...func(*machineend.Options)) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	noError(t, "folder", err)
	folder := &tunneltest.Folder{Dir: dir, Ask: ask}
	if _, _, err := folder.Handle(t.Context(), wire.Message{Type: wire.TypeSessionOpen, Payload: &wire.SessionOpen{SessionID: chat}}, nil); err != nil {
		t.Fatal(err)
	}
	o := machineend.Options{URL: url, HubName: "Test hub", Token: func(context.Context) (string, error) { return token, nil },
		Hello: func() msg.Hello {
			return msg.Hello{ShimVersion: "1.0", Protocol: msg.Version, MachineID: machine, DisplayName: "Our PC", Platform: "linux", Arch: "x86_64", Capabilities: msg.List[string]{"files", "shell"}}
		},
		Folders: oneFolder{dir},
		Handler: func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
			if !x.Begin() {
				return "", nil, wire.Errorf(wire.CodePending, "Nobody waits any more.")
			}
			return folder.Handle(ctx, m, x)
		},
		Timings: machineend.Timings{BackoffBase: 10 * time.Millisecond, Status: 100 * time.Millisecond, Heartbeat: time.Second, PongTimeout: 5 * time.Second},
		Log:     tunneltest.Log(t)}
	for _, c := range change {
		c(&o)
	}
	c, err := machineend.New(o)
	noError(t, "machine", err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return dir
}

// Our own machine end gives a strict hub no reason to drop it, whatever it is
// asked, and what it writes has every field that the companion writes.
func TestOurMachineIsStrict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sent := seen{machine: true}
	dir := ourMachine(t, newRelay(t, r.url, sent.saw).url, r.token("s1"), nil)
	eventually(t, "our machine is connected", func() bool { return len(r.Machines(user)) == 1 })
	connection := r.Machines(user)[0].Connection
	b := r.open(chat, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	if a := reply[*msg.Ack](t, r, msg.TypeFileWrite, &msg.FileWrite{Path: at("a/b.txt"), Content: "hellö", Encoding: msg.UTF8, CreateParents: true}); !a.OK {
		t.Error("not ok")
	}
	if f := reply[*msg.FileContents](t, r, msg.TypeFileRead, &msg.FileRead{Path: at("a/b.txt"), Encoding: msg.UTF8, Format: "text"}); f.Content != "hellö" {
		t.Errorf("read %+v", f)
	}
	if c := reply[*msg.Result](t, r, msg.TypeExecute, &msg.Execute{Command: new("cat a/b.txt; exit 4"), Shell: "auto"}); c.Stdout != "hellö" || c.ExitCode != 4 {
		t.Errorf("a command: %+v", c)
	}
	if l := reply[*msg.FileListResponse](t, r, msg.TypeFileList, &msg.FileList{Path: dir, Recursive: true, MaxEntries: 100}); len(l.Entries) != 2 {
		t.Errorf("list %+v", l)
	}
	fails(t, r, msg.TypeFileRead, &msg.FileRead{Path: at("nothing"), Encoding: msg.UTF8, Format: "text"}, msg.CodePathNotFound)
	fails(t, r, msg.TypeExecute, &msg.Execute{Shell: "auto"}, msg.CodeInternal)
	for _, k := range []msg.Type{msg.TypeCursor, msg.TypeDisplays} {
		fails(t, r, k, &msg.Empty{}, msg.CodeNotGranted)
	}
	reply[*msg.Empty](t, r, msg.TypePing, &msg.Empty{})
	sent.golden(t, "machine-data", chat, dir)
	sent.until(t, "STATUS")
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			if _, err := r.Do(t.Context(), chat, msg.TypeExecute, &msg.Execute{Command: new(fmt.Sprintf("echo %d", i)), Shell: "auto"}); err != nil && wire.CodeOf(err) != wire.CodeOverloaded {
				t.Errorf("one of many: %v", err)
			}
		})
	}
	wg.Wait()
	noError(t, "detach", r.Detach(t.Context(), user, machine, chat))
	eventually(t, "the chat is closed", func() bool { return !r.Connected(chat) })
	noError(t, "restore", r.Restore(t.Context(), user, machine, b))
	noError(t, "the chat", r.Await(t.Context(), chat, 8*time.Second))
	reply[*msg.FileContents](t, r, msg.TypeFileRead, &msg.FileRead{Path: at("a/b.txt"), Encoding: msg.UTF8, Format: "text"})
	sent.golden(t, "machine-control", "", dir)
	sent.exact(t)
	if m := r.Machines(user); len(m) != 1 || m[0].Connection != connection {
		t.Errorf("it was dropped meanwhile: %+v", m)
	}
	if strings.Contains(r.log.String(), "breach") {
		t.Errorf("the hub found a breach:\n%s", r.log)
	}
}

// A command that goes on longer than the hub waits is no breach, and one that
// is revoked in its middle ends.
func TestOurMachineIsRevoked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := ourMachine(t, r.url, r.token("s1"), nil)
	eventually(t, "our machine is connected", func() bool { return len(r.Machines(user)) == 1 })
	r.open(chat, dir)
	result := r.ask(msg.TypeExecute, &msg.Execute{Command: new("touch began; sleep 2; touch ended"), Shell: "auto"})
	eventually(t, "it runs", func() bool { _, err := os.Stat(filepath.Join(dir, "began")); return err == nil })
	began := time.Now()
	r.RevokeSignIn("s1")
	if got := <-result; wire.CodeOf(got.err) != autogpt.CodeUnconfirmed {
		t.Errorf("the command: %v", got.err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
	time.Sleep(2500 * time.Millisecond)
	if _, err := os.Stat(filepath.Join(dir, "ended")); err == nil {
		t.Error("the command ran on")
	}
	if len(r.Machines(user)) != 0 {
		t.Error("it came back")
	}
	if strings.Contains(r.log.String(), "breach") {
		t.Errorf("the hub found a breach:\n%s", r.log)
	}
}

// A hub that gives up sooner than our machine answers takes the late answer.
func TestOurMachineIsLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.DataWait, o.CommandTimeout = 200*time.Millisecond, time.Second })
	slow := make(chan struct{})
	dir := ourMachine(t, r.url, r.token("s1"), func(_ context.Context, m wire.Message) error {
		if m.Type == wire.TypeFileRead {
			<-slow
		}
		return nil
	})
	eventually(t, "our machine is connected", func() bool { return len(r.Machines(user)) == 1 })
	r.open(chat, dir)
	write(t, filepath.Join(dir, "a"), "text")
	read := &msg.FileRead{Path: filepath.Join(dir, "a"), Encoding: msg.UTF8, Format: "text"}
	if _, err := r.Do(t.Context(), chat, msg.TypeFileRead, read); wire.CodeOf(err) != autogpt.CodeTimeout {
		t.Errorf("while it is slow: %v", err)
	}
	close(slow)
	eventually(t, "it answers again", func() bool {
		m, err := r.Do(t.Context(), chat, msg.TypeFileRead, read)
		return err == nil && m.Payload.(*msg.FileContents).Content == "text"
	})
	if strings.Contains(r.log.String(), "breach") {
		t.Errorf("the hub found a breach:\n%s", r.log)
	}
}

// garbage is a relay that greets well and then sends what no hub may.
type garbage struct {
	t     *testing.T
	conns chan *websocket.Conn
	srv   *httptest.Server
}

func newGarbage(t *testing.T) *garbage {
	g := &garbage{t: t, conns: make(chan *websocket.Conn, 16)}
	up := websocket.Upgrader{}
	g.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ws, err := up.Upgrade(w, req, nil)
		if err != nil {
			return
		}
		t.Cleanup(func() { ws.Close() })
		var h map[string]any
		if err := ws.ReadJSON(&h); err != nil {
			return // the test has ended meanwhile
		}
		p := h["payload"].(map[string]any)
		ack := map[string]any{"session_id": nil, "connection_id": "c1", "granted_capabilities": p["capabilities"], "protocol_version": "1.1",
			"max_file_size_bytes": 10485760, "command_timeout_seconds": 30, "max_concurrent": 4}
		if session, ok := strings.CutPrefix(req.URL.Path, msg.Path+"/"); ok {
			ack["session_id"] = session
			delete(ack, "connection_id")
		}
		if err := ws.WriteJSON(map[string]any{"type": "HELLO_ACK", "id": h["id"], "ts": 1.5, "version": "1.1", "payload": ack}); err != nil {
			return
		}
		g.conns <- ws
	}))
	t.Cleanup(g.srv.Close)
	return g
}

func (g *garbage) next() *raw {
	g.t.Helper()
	select {
	case ws := <-g.conns:
		return &raw{g.t, ws}
	case <-time.After(10 * time.Second):
		g.t.Fatal("no connection")
		return nil
	}
}

// answer reads until the answer with that id comes.
func (w *raw) answer(id string) map[string]any {
	w.t.Helper()
	for {
		if m := w.next(); m["id"] == id {
			return m
		}
	}
}

func TestOurMachineSurvivesGarbage(t *testing.T) {
	t.Parallel()
	g := newGarbage(t)
	dir := ourMachine(t, g.srv.URL, "token", nil)
	control := g.next()
	control.send("RESTORE_SESSION", "r1", map[string]any{"session_id": chat, "root_grant": "v1.own.grant"})
	if m := control.answer("r1"); m["type"] != "SESSION_RESTORED" {
		t.Fatalf("restore: %v", m)
	}
	data := g.next()
	write(t, filepath.Join(dir, "a"), "text")
	for name, w := range map[string]*raw{"control": control, "data": data} {
		for _, s := range []string{"", "{", "nonsense", "[]", "null", "7", `"PING"`, `{}`, `{"type":7,"id":"x","ts":1,"payload":{}}`, `{"type":"PING","id":{},"ts":1,"payload":{}}`,
			`{"type":"PING","id":"","ts":1,"payload":{}}`, `{"type":"FILE_READ","id":"x1","ts":1,"payload":[]}`, `{"type":"FILE_READ","id":"x2","ts":1,"payload":{"path":{}}}`,
			`{"type":"ACK","id":"never","ts":1,"payload":{"ok":true}}`, `{"type":"ERROR","id":"never","ts":1,"payload":{"code":"X","message":"m","fatal":true}}`,
			`{"type":"PONG","id":"never","ts":1,"payload":{}}`, `{"type":"HELLO_ACK","id":"again","ts":1,"payload":{"granted_capabilities":["shell"]}}`,
			`{"type":"HELLO","id":"h","ts":1,"payload":{}}`, `{"type":"FORMAT_DISK","id":"x3","ts":1,"payload":{}}`, `{"type":"COMMAND_RESULT","id":"x4","ts":1,"payload":{}}`,
			`{"type":"EXECUTE_COMMAND","id":"x5","ts":1,"payload":{"command":"x","argv":["y"],"env":{"A":1}}}`, `{"type":"START_RECORDING","id":"x6","ts":1,"payload":{}}`,
			strings.Repeat("[", 100_000), `{"type":"PING","id":"` + strings.Repeat("x", 1<<20) + `","ts":1,"payload":{}}`} {
			w.text(s)
		}
		noError(t, "binary", w.ws.WriteMessage(websocket.BinaryMessage, []byte{0, 1, 2, 255}))
		w.send("PING", "still-there", map[string]any{})
		if m := w.answer("still-there"); m["type"] != "PONG" {
			t.Errorf("%s after the garbage: %v", name, m)
		}
	}
	data.send("FILE_READ", "f1", map[string]any{"path": filepath.Join(dir, "a")})
	if m := data.answer("f1"); m["type"] != "FILE_CONTENTS" || m["payload"].(map[string]any)["content"] != "text" {
		t.Errorf("a request after the garbage: %v", m)
	}
	// So is a frame that is too large.
	control.text(`{"type":"PING","id":"big","ts":1,"payload":{"x":"` + strings.Repeat("x", msg.MaxFrame) + `"}}`)
	control.send("PING", "p2", map[string]any{})
	if m := control.answer("p2"); m["type"] != "PONG" {
		t.Errorf("after a frame that was too large: %v", m)
	}
}
