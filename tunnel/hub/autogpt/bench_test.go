//go:build unix

package autogpt_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/autogpt/companiontest"
	"localpc/tunnel/hub/store"
	msg "localpc/tunnel/wire/autogpt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// books is a hub's memory: one user, whose sign-ins are named by their tokens.
type books struct {
	mu       sync.Mutex
	access   map[string]store.Access // by token
	revoked  map[string]bool         // by sign-in
	bound    map[string]string       // machine by sign-in
	bindings map[string]store.Binding
	joined   []*autogpt.Machine
	left     []*autogpt.Machine
	heard    int
	broken   error  // of Access
	unsure   error  // of SignInLive
	asked    func() // when SignInLive is asked
}

func (b *books) Access(_ context.Context, bearer string) (store.Access, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return store.Access{}, b.broken
	}
	a, ok := b.access[bearer]
	if !ok || b.revoked[a.SignIn] {
		return store.Access{}, store.ErrNotFound
	}
	a.Machine = b.bound[a.SignIn]
	return a, nil
}

func (b *books) BindSignIn(_ context.Context, signIn, machine string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.bound[signIn]; m != "" && m != machine {
		return store.ErrNotFound
	}
	b.bound[signIn] = machine
	return nil
}

func (b *books) SignInLive(_ context.Context, signIn string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked != nil {
		b.asked()
	}
	if b.unsure != nil {
		return false, b.unsure
	}
	return !b.revoked[signIn], nil
}

func (b *books) Binding(_ context.Context, session string) (store.Binding, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.bindings[session]
	if !ok {
		return found, store.ErrNotFound
	}
	return found, nil
}

func (b *books) Joined(_ context.Context, m *autogpt.Machine) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joined = append(b.joined, m)
	return nil
}

func (b *books) Left(m *autogpt.Machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, m)
}

func (b *books) Heard(context.Context, *autogpt.Machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard++
}

// Machines are those of a user that have joined and not left, the newest first.
func (r *rig) Machines(user string) []*autogpt.Machine {
	r.books.mu.Lock()
	defer r.books.mu.Unlock()
	list := []*autogpt.Machine{}
	for _, m := range slices.Backward(r.books.joined) {
		if m.User == user && !slices.Contains(r.books.left, m) {
			list = append(list, m)
		}
	}
	return list
}

func (b *books) set(do func(b *books)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do(b)
}

const (
	user    = "ann"
	machine = "5b1f2c9a-77aa-4e0e-8c51-0d9e6b7f4a21"
	chat    = "0e4a7a0c-93c5-4b53-b0b2-6f7ad8b2c9d4"
)

// rig is a face on loopback.
type rig struct {
	*autogpt.Face
	t     testing.TB
	books *books
	url   string
	log   *logs
	codes chan int // of the connections that ended
}

// logs keeps what the face says.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t testing.TB, change ...func(*autogpt.Options)) *rig {
	t.Helper()
	r := &rig{t: t, log: &logs{}, codes: make(chan int, 1000), books: &books{access: map[string]store.Access{}, revoked: map[string]bool{}, bound: map[string]string{}, bindings: map[string]store.Binding{}}}
	o := autogpt.Options{Hub: r.books, Strict: true, Closed: func(code int) { r.codes <- code }, Log: slog.New(slog.NewTextHandler(r.log, nil))}
	for _, c := range change {
		c(&o)
	}
	r.Face = autogpt.New(context.Background(), o)
	srv := httptest.NewServer(r.Handler())
	r.url = srv.URL
	t.Cleanup(func() {
		r.Face.Close()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
		if t.Failed() {
			t.Log(r.log)
		}
	})
	return r
}

// token makes a sign-in of that name and returns its token.
func (r *rig) token(signIn string, change ...func(*store.Access)) string {
	a := store.Access{SignIn: signIn, User: user, Client: msg.ClientID, Scopes: []string{msg.Scope}, Expires: time.Now().Add(time.Hour)}
	for _, c := range change {
		c(&a)
	}
	token := "agpt_xt_" + signIn + "_" + uuid.NewString()
	r.books.set(func(b *books) { b.access[token] = a })
	return token
}

func soon(d time.Duration) func(*store.Access) {
	return func(a *store.Access) { a.Expires = time.Now().Add(d) }
}

// bind notes a chat as bound, as the hub does after ATTACH.
func (r *rig) bind(session, root string) {
	r.books.set(func(b *books) {
		b.bindings[session] = store.Binding{Session: session, User: user, Machine: machine, Root: root, Fingerprint: strings.Repeat("0a", 32), Revision: 1, Grant: "v1.a.b"}
	})
}

// companion runs a companion until the test ends, and waits for its control
// connection.
func (r *rig) companion(change ...func(*companiontest.Options)) *companiontest.Companion {
	r.t.Helper()
	token := r.token("s1")
	o := companiontest.Options{URL: r.url, Token: func(bool) string { return token }, MachineID: machine, Name: "Workshop PC", Home: r.t.TempDir(),
		Shell: true, Desktop: true, Model: "llama3", Secret: "secret", BackoffBase: 10 * time.Millisecond, Jitter: 10 * time.Millisecond, TermWait: 50 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	c := companiontest.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	r.t.Cleanup(func() { cancel(); wg.Wait() })
	eventually(r.t, "the companion is connected", func() bool { return len(r.Machines(user)) == 1 })
	return c
}

// open binds and activates the chat on a folder, the whole way.
func (r *rig) open(session, folder string) msg.Binding {
	r.t.Helper()
	ctx := r.t.Context()
	browse, ref, err := r.Walk(ctx, user, machine, folder)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := r.Attach(ctx, user, machine, msg.Attach{SessionID: session, BrowseID: browse, DirectoryRef: ref})
	if err != nil {
		r.t.Fatal(err)
	}
	r.books.set(func(books *books) {
		books.bindings[session] = store.Binding{Session: session, User: user, Machine: machine, Root: b.AllowedRoot, Fingerprint: b.Fingerprint, Revision: b.Revision, Grant: b.RootGrant}
	})
	if _, err := r.Activate(ctx, user, machine, msg.Activate{SessionID: session, Revision: b.Revision}); err != nil {
		r.t.Fatal(err)
	}
	if err := r.Await(ctx, session, 8*time.Second); err != nil {
		r.t.Fatal(err)
	}
	return *b
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}

// raw is a machine that speaks frame by frame.
type raw struct {
	t  testing.TB
	ws *websocket.Conn
}

func (r *rig) dial(session, token string) (*websocket.Conn, *http.Response, error) {
	path := msg.Path
	if session != "" {
		path += "/" + session
	}
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	d := websocket.Dialer{HandshakeTimeout: 5 * time.Second}
	return d.Dial("ws"+strings.TrimPrefix(r.url, "http")+path, header)
}

func (r *rig) raw(session, token string) *raw {
	r.t.Helper()
	ws, _, err := r.dial(session, token)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { ws.Close() })
	return &raw{r.t, ws}
}

// hello is the payload of a good HELLO.
func hello(root any) map[string]any {
	capabilities := []string{"shell", "files", "computer_use", "local_llm"}
	if root == nil {
		capabilities = append(capabilities, "directory_browse")
	}
	return map[string]any{"shim_version": "0.3.0", "protocol_version": "1.1", "machine_id": machine, "display_name": "Workshop PC", "platform": "linux",
		"arch": "x86_64", "capabilities": capabilities, "allowed_root": root}
}

// join dials and greets; it returns HELLO_ACK's payload.
func (r *rig) join(session, token string, root any) (*raw, map[string]any) {
	r.t.Helper()
	w := r.raw(session, token)
	w.send("HELLO", "h1", hello(root))
	ack := w.next()
	if ack["type"] != "HELLO_ACK" || ack["id"] != "h1" {
		r.t.Fatalf("the first frame is %v", ack)
	}
	if session == "" {
		ping := w.next()
		if ping["type"] != "PING" {
			r.t.Fatalf("the second frame is %v", ping)
		}
		w.send("PONG", ping["id"].(string), map[string]any{})
		// Once the first request comes, the hub is done with what was before.
		var asked sync.WaitGroup
		asked.Go(func() { _ = r.Detach(context.Background(), user, machine, "none") })
		w.send("ACK", w.next()["id"].(string), map[string]any{"ok": true})
		asked.Wait()
	}
	return w, ack["payload"].(map[string]any)
}

func (w *raw) send(kind, id string, payload any) {
	w.t.Helper()
	data, err := json.Marshal(map[string]any{"type": kind, "id": id, "ts": 1.5, "version": "1.1", "payload": payload})
	if err != nil {
		w.t.Fatal(err)
	}
	w.text(string(data))
}

func (w *raw) text(s string) {
	w.t.Helper()
	if err := w.ws.WriteMessage(websocket.TextMessage, []byte(s)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *raw) next() map[string]any {
	w.t.Helper()
	_ = w.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, data, err := w.ws.ReadMessage()
	if err != nil {
		w.t.Fatalf("no frame: %v", err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// closed reads until the end, which must be a close frame with that code. It
// returns the frames before it and the reason.
func (w *raw) closed(code int) ([]map[string]any, string) {
	w.t.Helper()
	var before []map[string]any
	for {
		_ = w.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, data, err := w.ws.ReadMessage()
		if err == nil {
			var m map[string]any
			_ = json.Unmarshal(data, &m)
			before = append(before, m)
			continue
		}
		ce, ok := err.(*websocket.CloseError)
		if !ok || ce.Code != code {
			w.t.Errorf("ended with %v, not %d", err, code)
			return before, ""
		}
		return before, ce.Text
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func noError(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func describe(v any) string { return fmt.Sprintf("%+v", v) }
