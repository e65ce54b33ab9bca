//go:build unix

package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/autogpt/companiontest"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

const workshop = "5b1f2c9a-77aa-4e0e-8c51-0d9e6b7f4a21"

// shop is a hub with a companion's computer.
type shop struct {
	*bench
	t    *testing.T
	data string
	home string
	c    *companiontest.Companion
	stop func() // ends the companion's program
	o    companiontest.Options
}

func newShop(t *testing.T, change ...func(*companiontest.Options)) *shop {
	t.Helper()
	s := &shop{t: t, data: t.TempDir(), home: t.TempDir()}
	s.bench = newBench(t, func(o *hub.Options) { o.Data, o.Pages, o.PublicURL = s.data, true, "http://127.0.0.1" })
	token := tunneltest.CompanionToken(t, s.data)
	s.o = companiontest.Options{URL: s.url, Token: func(bool) string { return token }, MachineID: workshop, Name: "Workshop", Home: s.home,
		Shell: true, Secret: "secret", BackoffBase: 10 * time.Millisecond, Jitter: 10 * time.Millisecond, TermWait: 50 * time.Millisecond}
	for _, c := range change {
		c(&s.o)
	}
	s.start()
	return s
}

// start runs the companion's program.
func (s *shop) start() {
	s.t.Helper()
	s.c = companiontest.New(s.o)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	c := s.c
	wg.Go(func() { _ = c.Run(ctx) })
	s.stop = func() { cancel(); wg.Wait() }
	s.t.Cleanup(s.stop)
	s.online(true)
}

func (s *shop) online(want bool) {
	s.t.Helper()
	eventually(s.t, "the computer's state is as expected", func() bool {
		list, err := s.Machines(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return len(list) == 1 && list[0].Online == want
	})
}

// open makes a sandbox in a folder of the computer.
func (s *shop) open() (store.Sandbox, string) {
	s.t.Helper()
	folder := filepath.Join(s.home, "work", "shop")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		s.t.Fatal(err)
	}
	tunneltest.SetFolder(s.t, s.data, workshop, folder)
	b, err := s.Open(s.t.Context(), wire.SessionOpen{PrincipalID: store.OwnPrincipal, PrincipalName: "Test", TTLSeconds: 600, WaitMS: 10_000, Env: map[string]string{"SHOP": "open"}},
		store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal, Template: "base"})
	if err != nil {
		s.t.Fatal(err)
	}
	return b, folder
}

// all sends a request and gathers what it answers.
func (s *shop) all(b store.Sandbox, t wire.Type, p wire.Payload, upload ...string) ([]wire.Message, error) {
	s.t.Helper()
	st, err := s.Do(s.t.Context(), b, t, p)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	for i, u := range upload {
		if err := st.Send(&wire.FileChunk{Data: []byte(u), Last: i == len(upload)-1}); err != nil && err != io.EOF {
			s.t.Fatal(err)
		}
	}
	var out []wire.Message
	for {
		m, err := st.Recv()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		// What the other profile's machine sends must pass its own checks.
		if err := m.Payload.Validate(); err != nil {
			s.t.Errorf("%s: %v", m.Type, err)
		}
		out = append(out, m)
	}
}

// run runs a command and gives its output and how it ended.
func (s *shop) run(b store.Sandbox, command string, ms int) (string, *wire.ProcessExited, error) {
	s.t.Helper()
	list, err := s.all(b, wire.TypeProcessStart, &wire.ProcessStart{SessionID: b.ID, Cmd: "/bin/bash", Args: []string{"-l", "-c", command}, TimeoutMS: ms})
	if err != nil {
		return "", nil, err
	}
	var text strings.Builder
	for _, m := range list {
		switch p := m.Payload.(type) {
		case *wire.ProcessOutput:
			text.WriteString(p.Stream + ":" + string(p.Data))
		case *wire.ProcessExited:
			return text.String(), p, nil
		}
	}
	s.t.Fatalf("the command has no end: %+v", list)
	return "", nil, nil
}

func (s *shop) dropsNothing() {
	s.t.Helper()
	if d := s.c.Dropped(); len(d) > 0 {
		s.t.Errorf("the companion dropped: %q", d)
	}
}

func TestCompanionNeedsAFolder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	key, err := s.MakeKey(t.Context(), "Test program")
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/sandboxes", strings.NewReader(`{"templateID":"base"}`))
	req.Header.Set("X-API-KEY", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusPreconditionFailed || !strings.Contains(string(body), "No folder is set yet for the computer Workshop") || !strings.Contains(string(body), "http://127.0.0.1/machines/"+workshop+"/folder") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for name, folder := range map[string]string{"is not there": filepath.Join(s.home, "nothing"), "is elsewhere": "/etc"} {
		tunneltest.SetFolder(t, s.data, workshop, folder)
		if _, err := s.Open(t.Context(), wire.SessionOpen{PrincipalID: store.OwnPrincipal, TTLSeconds: 600, WaitMS: 10_000}, store.Sandbox{User: store.OwnerID, Principal: store.OwnPrincipal}); wire.CodeOf(err) != wire.CodePathNotFound {
			t.Errorf("a folder that %s: %v", name, err)
		}
	}
	s.dropsNothing()
}

func TestCompanionRunsCommands(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b, folder := s.open()
	if b.Folder != folder || b.Machine != workshop || b.User != store.OwnerID {
		t.Errorf("sandbox %+v", b)
	}
	out, end, err := s.run(b, "pwd; echo $SHOP $HOME >&2; exit 3", 5000)
	if err != nil || out != "stdout:"+folder+"\nstderr:open "+os.Getenv("HOME")+"\n" || end.ExitCode != 3 || end.Signal != "" {
		t.Errorf("%q %+v %v", out, end, err)
	}
	if _, end, err = s.run(b, "kill -9 $$", 5000); err != nil || end.ExitCode != -1 || end.Signal != "killed" {
		t.Errorf("killed: %+v %v", end, err)
	}
	if _, end, err = s.run(b, "sleep 20", 1000); err != nil || !end.TimedOut {
		t.Errorf("past its time: %+v %v", end, err)
	}
	big, end, err := s.run(b, "head -c 1000000 /dev/zero | tr '\\0' x", 5000)
	if err != nil || strings.Count(big, "x") != 1000000 || end.Truncated {
		t.Errorf("%d bytes, %+v %v", len(big), end, err)
	}
	for _, env := range []string{"a", "b"} {
		list, err := s.all(b, wire.TypeProcessStart, &wire.ProcessStart{SessionID: b.ID, Cmd: "sh", Args: []string{"-c", "echo $SHOP; pwd"}, Cwd: "sub" + env, Env: map[string]string{"SHOP": env}, TimeoutMS: 5000})
		if wire.CodeOf(err) != wire.CodeShellMissing {
			t.Errorf("in a folder that is not there: %v %v", list, err)
		}
	}
	for name, p := range map[string]wire.Payload{
		"without a limit": &wire.ProcessStart{SessionID: b.ID, Cmd: "sleep", Args: []string{"1"}},
		"a signal":        &wire.ProcessSignal{SessionID: b.ID, PID: 1, Signal: "SIGKILL"},
	} {
		kind := wire.TypeProcessStart
		if _, ok := p.(*wire.ProcessSignal); ok {
			kind = wire.TypeProcessSignal
		}
		if _, err := s.all(b, kind, p); wire.CodeOf(err) != wire.CodeNotSupported || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.dropsNothing()
}

func TestCompanionFiles(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b, folder := s.open()
	entryOf := func(list []wire.Message, err error) *wire.Entry {
		t.Helper()
		if err != nil || len(list) != 1 {
			t.Fatalf("%v %v", list, err)
		}
		return list[0].Payload.(*wire.FileStatResponse).Entry
	}
	big := strings.Repeat("0123456789abcdef", 600_000) // 9.6 MB, more than two pieces
	e := entryOf(s.all(b, wire.TypeFileWrite, &wire.FileWrite{SessionID: b.ID, Path: "/home/user/a/big.bin"}, big[:5_000_000], big[5_000_000:]))
	if e.Path != "/home/user/a/big.bin" || e.Name != "big.bin" || e.Kind != "file" || e.Size != int64(len(big)) || e.Mode != 0o644 || time.Since(time.UnixMilli(e.MTime)) > time.Minute {
		t.Errorf("written: %+v", e)
	}
	if data, err := os.ReadFile(filepath.Join(folder, "a", "big.bin")); err != nil || string(data) != big {
		t.Errorf("on the disk: %d bytes, %v", len(data), err)
	}
	read := func(p *wire.FileRead) (string, *wire.FileContents) {
		t.Helper()
		list, err := s.all(b, wire.TypeFileRead, p)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for _, m := range list[1:] {
			if c, ok := m.Payload.(*wire.FileChunk); ok {
				got.Write(c.Data)
			}
		}
		return got.String(), list[0].Payload.(*wire.FileContents)
	}
	if got, head := read(&wire.FileRead{SessionID: b.ID, Path: "a/big.bin"}); got != big || head.Size != int64(len(big)) {
		t.Errorf("read %d bytes, %+v", len(got), head)
	}
	n := int64(10)
	for _, name := range []string{"~/a/big.bin", filepath.Join(folder, "a/big.bin")} {
		if got, head := read(&wire.FileRead{SessionID: b.ID, Path: name, Offset: 16, Length: &n}); got != "0123456789" || head.Length != 10 {
			t.Errorf("%s: %q %+v", name, got, head)
		}
	}
	entryOf(s.all(b, wire.TypeFileWrite, &wire.FileWrite{SessionID: b.ID, Path: "empty"}, ""))
	if got, head := read(&wire.FileRead{SessionID: b.ID, Path: "empty"}); got != "" || head.Size != 0 {
		t.Errorf("an empty file: %q %+v", got, head)
	}
	if e := entryOf(s.all(b, wire.TypeFileMkdir, &wire.FilePath{SessionID: b.ID, Path: "d/e"})); e.Kind != "dir" {
		t.Errorf("made %+v", e)
	}
	if left, _ := os.ReadDir(filepath.Join(folder, "d/e")); len(left) != 0 {
		t.Errorf("left in the new directory: %v", left)
	}
	if err := os.Symlink("big.bin", filepath.Join(folder, "a", "link")); err != nil {
		t.Fatal(err)
	}
	list, err := s.all(b, wire.TypeFileList, &wire.FileList{SessionID: b.ID, Path: "/home/user", Depth: 2})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list[0].Payload.(*wire.FileListResponse).Entries {
		names = append(names, e.Path+" "+e.Kind)
		if strings.HasSuffix(e.Path, "link") && e.LinkTarget == "" {
			t.Errorf("a link: %+v", e)
		}
	}
	if got := strings.Join(names, ", "); got != "/home/user/a dir, /home/user/a/big.bin file, /home/user/a/link file, /home/user/d dir, /home/user/d/e dir, /home/user/empty file" {
		t.Errorf("listed %s", got)
	}
	if e := entryOf(s.all(b, wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: "a/big.bin", Dst: "empty"})); e.Size != int64(len(big)) {
		t.Errorf("moved: %+v", e)
	}
	// Onto itself nothing happens, and a directory is not removed to make room.
	entryOf(s.all(b, wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: "empty", Dst: "~/empty"}))
	if data, _ := os.ReadFile(filepath.Join(folder, "empty")); len(data) != len(big) {
		t.Error("a file that was moved onto itself is gone")
	}
	if e := entryOf(s.all(b, wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: "empty", Dst: "new/folder/empty"})); e.Path != "new/folder/empty" {
		t.Errorf("moved into a new folder: %+v", e)
	}
	entryOf(s.all(b, wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: "new/folder/empty", Dst: "empty"}))
	for _, c := range []struct {
		name string
		t    wire.Type
		p    wire.Payload
		code wire.Code
	}{
		{"into a folder that must be there", wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: "empty", Dst: "no/x", NoParents: true}, wire.CodePathNotFound},
		{"onto what must not be there", wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: "empty", Dst: "d", NoReplace: true}, wire.CodePathExists},
		{"delete what must be there", wire.TypeFileDelete, &wire.FileDelete{SessionID: b.ID, Path: "no", MustExist: true}, wire.CodePathNotFound},
		{"delete what must be empty", wire.TypeFileDelete, &wire.FileDelete{SessionID: b.ID, Path: "d", OnlyEmpty: true}, wire.CodePathNotEmpty},
		{"onto a directory", wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: "empty", Dst: "d"}, wire.CodePathExists},
		{"read what is not there", wire.TypeFileRead, &wire.FileRead{SessionID: b.ID, Path: "nothing"}, wire.CodePathNotFound},
		{"read a directory", wire.TypeFileRead, &wire.FileRead{SessionID: b.ID, Path: "d"}, wire.CodePathKind},
		{"list a file", wire.TypeFileList, &wire.FileList{SessionID: b.ID, Path: "empty", Depth: 1}, wire.CodePathKind},
		{"make what is there", wire.TypeFileMkdir, &wire.FilePath{SessionID: b.ID, Path: "d"}, wire.CodePathExists},
		{"outside", wire.TypeFileRead, &wire.FileRead{SessionID: b.ID, Path: "../../x"}, wire.CodePathOutside},
		{"outside by its path", wire.TypeFileStat, &wire.FileStat{SessionID: b.ID, Path: "/etc/passwd"}, wire.CodePathOutside},
		{"another session", wire.TypeFileStat, &wire.FileStat{SessionID: "other", Path: "d"}, wire.CodeSessionNotOpen},
	} {
		if _, err := s.all(b, c.t, c.p); wire.CodeOf(err) != c.code {
			t.Errorf("%s: %v (%s)", c.name, err, wire.CodeOf(err))
		}
	}
	for range 2 {
		if _, err := s.all(b, wire.TypeFileDelete, &wire.FileDelete{SessionID: b.ID, Path: "d"}); err != nil {
			t.Error(err)
		}
	}
	if list, err := s.all(b, wire.TypeFileStat, &wire.FileStat{SessionID: b.ID, Path: "d"}); err != nil || list[0].Payload.(*wire.FileStatResponse).Exists {
		t.Errorf("deleted: %v %v", list, err)
	}
	if _, err := s.all(b, wire.TypeFileWrite, &wire.FileWrite{SessionID: b.ID, Path: "huge"}, strings.Repeat("x", 6<<20), strings.Repeat("x", 6<<20)); wire.CodeOf(err) != wire.CodeTooLarge {
		t.Errorf("too large: %v", err)
	}
	s.dropsNothing()
}

// A chat goes on after its data connection was idle, and after a restart of
// either end.
func TestCompanionIsRestored(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, data: t.TempDir(), home: t.TempDir()}
	options := hub.Options{Data: s.data, Pages: true, PublicURL: "http://127.0.0.1", Log: tunneltest.Log(t)}
	// The address stays while the hub behind it is another.
	var mu sync.Mutex
	var now http.Handler
	front := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := now
		mu.Unlock()
		h.ServeHTTP(w, r)
	})
	open := func() *hub.Hub {
		h, err := hub.New(context.Background(), options)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		now = h.Handler()
		mu.Unlock()
		return h
	}
	h := open()
	s.bench = &bench{h, front}
	token := tunneltest.CompanionToken(t, s.data)
	s.o = companiontest.Options{URL: front, Token: func(bool) string { return token }, MachineID: workshop, Name: "Workshop", Home: s.home, Shell: true, Secret: "secret",
		BackoffBase: 10 * time.Millisecond, Jitter: 10 * time.Millisecond, IdleStop: 2 * time.Second, IdleCheck: 50 * time.Millisecond}
	s.start()
	b, folder := s.open()
	works := func(when string) {
		t.Helper()
		if out, _, err := s.run(b, "pwd", 5000); err != nil || out != "stdout:"+folder+"\n" {
			t.Errorf("%s: %q %v", when, out, err)
		}
	}
	works("at first")
	eventually(t, "the chat is idle", func() bool { return s.c.Running() == 0 })
	works("after it was idle")
	s.stop()
	s.online(false)
	s.start()
	works("after the computer's program was started anew")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open()
	s.Hub = h
	s.online(true)
	works("after the hub was started anew")
	s.dropsNothing()
	// Its end reaches the computer even when that is away for the moment.
	s.stop()
	s.online(false)
	if err := s.End(t.Context(), b, "its program ended it"); err != nil {
		t.Fatal(err)
	}
	s.start()
	st, err := store.Open(t.Context(), s.data)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	eventually(t, "the binding is forgotten", func() bool { _, err := st.Binding(t.Context(), b.ID); return err == store.ErrNotFound })
	if _, _, err := s.run(b, "pwd", 5000); wire.CodeOf(err) != wire.CodeSessionNotOpen {
		t.Errorf("after its end: %v", err)
	}
	s.stop()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// A folder that was put in the place of the bound one is not worked in.
func TestCompanionFolderWasReplaced(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b, folder := s.open()
	s.stop()
	s.online(false)
	if err := os.Rename(folder, folder+"-old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	s.start()
	if _, _, err := s.run(b, "pwd", 5000); wire.CodeOf(err) != wire.CodeSessionNotOpen {
		t.Errorf("in the new folder: %v", err)
	}
	st, err := store.Open(t.Context(), s.data)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if b, err := st.Sandbox(t.Context(), b.ID); err != nil || !b.Ended {
		t.Errorf("the sandbox: %+v %v", b, err)
	}
}

// Revoking the sign-in ends a command that runs, and the companion stays away.
func TestCompanionIsRevokedInMidCommand(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b, _ := s.open()
	ended := make(chan error, 1)
	go func() {
		_, err := s.all(b, wire.TypeProcessStart, &wire.ProcessStart{SessionID: b.ID, Cmd: "/bin/bash", Args: []string{"-l", "-c", "touch began; sleep 30"}, TimeoutMS: 30_000})
		ended <- err
	}()
	eventually(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(b.Folder, "began")); return err == nil })
	began := time.Now()
	st, err := store.Open(t.Context(), s.data)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	list, err := st.SignIns(t.Context(), store.OwnerID)
	if err != nil || len(list) != 1 || list[0].Machine != workshop {
		t.Fatalf("sign-ins: %+v %v", list, err)
	}
	if err := st.RevokeSignIn(t.Context(), list[0].ID, "by its person"); err != nil {
		t.Fatal(err)
	}
	if err := st.Poke(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("the command ended with %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
	s.online(false)
	eventually(t, "the companion has stopped its chats", func() bool { return s.c.Running() == 0 })
	time.Sleep(300 * time.Millisecond)
	s.online(false)
	for _, code := range s.c.Closes() {
		if code != 4428 {
			t.Errorf("the hub closed with %d", code)
		}
	}
}

// A chat's connection whose computer's own is gone ends with the sign-in too,
// whoever ends that.
func TestChatAloneIsRevoked(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(*shop, *store.Store) error{
		"by the hub": func(s *shop, _ *store.Store) error { return s.RevokeMachine(t.Context(), workshop) },
		"by a page or a command": func(_ *shop, st *store.Store) error {
			if err := st.RevokeMachine(t.Context(), store.OwnerID, workshop); err != nil {
				return err
			}
			return st.Poke()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			b, folder := s.open()
			s.stop()
			s.online(false)
			ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+msg.Path+"/"+b.ID, http.Header{"Authorization": {"Bearer " + s.o.Token(false)}})
			must(t, err)
			defer ws.Close()
			must(t, ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"HELLO","id":"h","ts":1,"payload":{"shim_version":"0.3.0","protocol_version":"1.1","machine_id":%q,`+
				`"platform":"linux","arch":"x86_64","capabilities":["files"],"allowed_root":%q}}`, workshop, folder)))
			_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, data, err := ws.ReadMessage(); err != nil || !bytes.Contains(data, []byte("HELLO_ACK")) {
				t.Fatalf("HELLO was answered with %s, %v", data, err)
			}
			st, err := store.Open(t.Context(), s.data)
			must(t, err)
			defer st.Close()
			began := time.Now()
			must(t, revoke(s, st))
			for err == nil {
				_, _, err = ws.ReadMessage()
			}
			if !websocket.IsCloseError(err, msg.CloseRevoked) || time.Since(began) > time.Second {
				t.Errorf("it ended after %s with %v", time.Since(began), err)
			}
		})
	}
}

// The newest of a computer's connections wins, whichever profile they have.
func TestProfilesReplaceEachOther(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b, _ := s.open()
	r := s.join(t, s.token(t, workshop), hello(workshop))
	eventually(t, "the companion has ended", func() bool { return s.c.Running() == 0 })
	s.works(t, r, workshop)
	s.start()
	r.closed(wire.CloseReplaced)
	_ = b
}

// newFront serves on an address that outlives the hub behind it.
func newFront(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}
