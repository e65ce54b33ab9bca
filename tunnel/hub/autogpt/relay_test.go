//go:build unix

package autogpt_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	machineend "localpc/tunnel/autogpt"
	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// relay stands between a machine and its hub, as the platform's own does. It
// can keep what either end says, and lose a machine's connection in a way that
// the hub does not notice.
type relay struct {
	t     *testing.T
	url   string
	saw   func(session string, fromHub bool, data []byte)
	wg    sync.WaitGroup
	mu    sync.Mutex
	gates map[bool]chan struct{}     // closed while open; by fromHub; guarded by mu
	near  map[string]*websocket.Conn // the machine's ends, by session; guarded by mu
}

func newRelay(t *testing.T, hub string, saw func(string, bool, []byte)) *relay {
	t.Helper()
	open := make(chan struct{})
	close(open)
	r := &relay{t: t, saw: saw, gates: map[bool]chan struct{}{true: open, false: open}, near: map[string]*websocket.Conn{}}
	up := websocket.Upgrader{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		far, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(hub, "http")+req.URL.Path, http.Header{"Authorization": req.Header["Authorization"]})
		if err != nil {
			status := http.StatusBadGateway
			if resp != nil {
				status = resp.StatusCode
			}
			w.WriteHeader(status)
			return
		}
		near, err := up.Upgrade(w, req, nil)
		if err != nil {
			far.Close()
			return
		}
		session := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, msg.Path), "/")
		r.mu.Lock()
		r.near[session] = near
		r.mu.Unlock()
		r.wg.Go(func() { r.pass(session, true, far, near) })
		r.wg.Go(func() { r.pass(session, false, near, far) })
	}))
	r.url = srv.URL
	t.Cleanup(func() {
		r.let(true)
		r.let(false)
		srv.Close()
		r.wg.Wait()
	})
	return r
}

// pass hands frames on until either end is gone, and then the close.
func (r *relay) pass(session string, fromHub bool, from, to *websocket.Conn) {
	queue := make(chan func(), 10_000) // more than any test keeps back
	r.wg.Go(func() {
		for hand := range queue {
			<-r.gate(fromHub)
			hand()
		}
	})
	defer close(queue)
	for {
		kind, data, err := from.ReadMessage()
		if err != nil {
			code := websocket.CloseNormalClosure
			if ce := (&websocket.CloseError{}); errors.As(err, &ce) && ce.Code != websocket.CloseNoStatusReceived && ce.Code != websocket.CloseAbnormalClosure {
				code = ce.Code
			}
			queue <- func() {
				_ = to.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
				from.Close()
				time.AfterFunc(time.Second, func() { to.Close() })
			}
			return
		}
		if r.saw != nil {
			r.saw(session, fromHub, data)
		}
		queue <- func() { _ = to.WriteMessage(kind, data) }
	}
}

func (r *relay) gate(fromHub bool) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gates[fromHub]
}

// hold keeps what an end says from now on, and let hands it on.
func (r *relay) hold(fromHub bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gates[fromHub] = make(chan struct{})
}

func (r *relay) let(fromHub bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.gates[fromHub]:
	default:
		close(r.gates[fromHub])
	}
}

// cut loses the machine's end of a session.
func (r *relay) cut(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.near[session].Close()
}

// Requests that come long after the hub gave up waiting are answered in a way
// that no strict hub minds, and what they asked for is done.
func TestRequestsAreHeldBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *autogpt.Options) { o.DataWait, o.Hold = 500*time.Millisecond, 500*time.Millisecond })
	way := newRelay(t, r.url, nil)
	// A STATUS would say that nothing is worked on, which gives the room back.
	dir := ourMachine(t, way.url, r.token("s1"), nil, func(o *machineend.Options) { o.Timings.Status = time.Hour })
	eventually(t, "our machine is connected", func() bool { return len(r.Machines(user)) == 1 })
	connection := r.Machines(user)[0].Connection
	r.open(chat, dir)
	way.hold(true)
	results := []chan outcome{r.ask(msg.TypeFileWrite, &msg.FileWrite{Path: filepath.Join(dir, "late"), Content: "done", Encoding: msg.UTF8})}
	for range msg.Concurrent - 1 {
		results = append(results, r.ask(msg.TypeFileStat, &msg.FileStat{Path: dir}))
	}
	for _, result := range results {
		if got := <-result; wire.CodeOf(got.err) != autogpt.CodeTimeout {
			t.Errorf("held back: %v", got.err)
		}
	}
	// All of the machine's room is taken by what nobody waits for any more.
	if got := <-r.ask(msg.TypeFileStat, &msg.FileStat{Path: dir}); wire.CodeOf(got.err) != wire.CodeOverloaded {
		t.Errorf("one more: %v", got.err)
	}
	way.let(true)
	eventually(t, "it answers again", func() bool { return (<-r.ask(msg.TypeFileStat, &msg.FileStat{Path: dir})).err == nil })
	eventually(t, "the late request is done", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "late"))
		return err == nil && string(data) == "done"
	})
	if m := r.Machines(user); len(m) != 1 || m[0].Connection != connection || !r.Connected(chat) {
		t.Errorf("it was dropped meanwhile: %+v", m)
	}
	if strings.Contains(r.log.String(), "breach") {
		t.Errorf("the hub found a breach:\n%s", r.log)
	}
}

// The machine loses its connection in the middle of requests and makes a new
// one: their replies do not come on that, where nobody asked for them, and those
// which the relay still has come to nobody.
func TestReplyCrossesReconnect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		held bool // by the relay, after the machine has answered
	}{{"not given yet", false}, {"on its way", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			answered := make(chan struct{}, 10)
			way := newRelay(t, r.url, func(_ string, fromHub bool, data []byte) {
				if m, err := msg.Decode(data, wire.ToHub); err == nil && !fromHub && m.Type == msg.TypeAck {
					answered <- struct{}{}
				}
			})
			goOn, begun := make(chan struct{}), make(chan struct{}, 10)
			dir := ourMachine(t, way.url, r.token("s1"), func(_ context.Context, m wire.Message) error {
				if m.Type == wire.TypeFileWrite {
					begun <- struct{}{}
					if !c.held {
						<-goOn
					}
				}
				return nil
			})
			eventually(t, "our machine is connected", func() bool { return len(r.Machines(user)) == 1 })
			r.open(chat, dir)
			if c.held {
				way.hold(false)
			}
			result := r.ask(msg.TypeFileWrite, &msg.FileWrite{Path: filepath.Join(dir, "a"), Content: "text", Encoding: msg.UTF8})
			<-begun
			if c.held {
				<-answered
			}
			way.cut(chat)
			if c.held {
				// The hub still has the earlier connection when the next one comes.
				time.Sleep(300 * time.Millisecond)
				way.let(false)
			}
			got := <-result
			if got.err != nil && wire.CodeOf(got.err) != autogpt.CodeUnconfirmed || got.err == nil && !c.held {
				t.Errorf("the write ended with %v", got.err)
			}
			close(goOn)
			noError(t, "the next connection", r.Await(t.Context(), chat, 8*time.Second))
			if f := reply[*msg.FileContents](t, r, msg.TypeFileRead, &msg.FileRead{Path: filepath.Join(dir, "a"), Encoding: msg.UTF8, Format: "text"}); c.held && f.Content != "text" {
				t.Errorf("read %q", f.Content)
			}
			if strings.Contains(r.log.String(), "breach") {
				t.Errorf("the hub found a breach:\n%s", r.log)
			}
		})
	}
}
