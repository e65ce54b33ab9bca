//go:build unix

package autogpt_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/autogpt/companiontest"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

var update = flag.Bool("update", false, "write the golden files anew")

// seen keeps the frames that one end sent, in order, for each channel.
type seen struct {
	machine bool // the machine's frames, and not the hub's

	mu     sync.Mutex
	frames map[string][]string // by session
	all    []string
}

func (s *seen) saw(session string, fromHub bool, data []byte) {
	if fromHub == s.machine {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frames == nil {
		s.frames = map[string][]string{}
	}
	s.frames[session] = append(s.frames[session], string(data))
	s.all = append(s.all, string(data))
}

// exact holds every frame of the machine's against what the companion sends.
func (s *seen) exact(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.all {
		if err := msg.Exact([]byte(f), wire.ToHub); err != nil {
			t.Errorf("not what the companion sends: %v\n%s", err, f)
		}
	}
}

// until waits for a frame of that type.
func (s *seen) until(t *testing.T, kind string) {
	t.Helper()
	eventually(t, kind+" has come", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range s.all {
			if strings.Contains(f, `"type":"`+kind+`"`) {
				return true
			}
		}
		return false
	})
}

var varying = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`^(\{"type":"[A-Z_]+",)"id":"[0-9a-f-]{36}"`), `$1"id":"ID"`},
	{regexp.MustCompile(`"ts":[0-9]+(\.[0-9]+)?,`), `"ts":TS,`},
	{regexp.MustCompile(`"(connection_id|expected_connection_id|browse_id|directory_ref|cursor)":"[0-9a-f-]{36}"`), `"$1":"REF"`},
	{regexp.MustCompile(`"pending_capacity":[0-9]+`), `"pending_capacity":N`},
	{regexp.MustCompile(`"(mtime|modified_at|duration_seconds|expires_at)":[0-9.e+-]+`), `"$1":N`},
	{regexp.MustCompile(`("is_dir":true,"is_symlink":(?:true|false),"size_bytes":)[0-9]+`), `${1}N`},
	{regexp.MustCompile(`"root_grant":"v1\.[A-Za-z0-9_.-]+"`), `"root_grant":"GRANT"`},
}

// golden compares the frames of a channel, with what is new each time put out.
func (s *seen) golden(t *testing.T, name, session, home string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	dir := wire.ToMachine
	if s.machine {
		dir = wire.ToHub
	}
	for _, f := range s.frames[session] {
		if err := msg.Exact([]byte(f), dir); err != nil {
			t.Errorf("not what the companion takes, or sends: %v\n%s", err, f)
		}
		if strings.HasPrefix(f, `{"type":"STATUS"`) {
			continue // it comes when it will
		}
		for _, v := range varying {
			f = v.find.ReplaceAllString(f, v.with)
		}
		text.WriteString(strings.ReplaceAll(f, home, "HOME") + "\n")
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		noError(t, "write", errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(text.String()), 0o644)))
	}
	want, err := os.ReadFile(path)
	noError(t, "read", err)
	if text.String() != string(want) {
		got, exp := strings.Split(text.String(), "\n"), strings.Split(string(want), "\n")
		for i := range max(len(got), len(exp)) {
			a, b := "(none)", "(none)"
			if i < len(got) {
				a = got[i]
			}
			if i < len(exp) {
				b = exp[i]
			}
			if a != b {
				t.Errorf("%s, line %d:\n got %s\nwant %s", path, i+1, a, b)
			}
		}
	}
}

// reply is what a request must be answered with.
func reply[T wire.Payload](t *testing.T, r *rig, kind msg.Type, p wire.Payload) T {
	t.Helper()
	m, err := r.Do(t.Context(), chat, kind, p)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	out, ok := m.Payload.(T)
	if !ok {
		t.Fatalf("%s was answered with %s", kind, m.Type)
	}
	return out
}

// fails is a request that must be answered with an ERROR of that code.
func fails(t *testing.T, r *rig, kind msg.Type, p wire.Payload, code wire.Code) *msg.Detailed {
	t.Helper()
	_, err := r.Do(t.Context(), chat, kind, p)
	var d *msg.Detailed
	if !errors.As(err, &d) || d.Code != code {
		t.Errorf("%s %+v: %v, not %s", kind, p, err, code)
		return &msg.Detailed{}
	}
	return d
}

// Each message goes both ways between the hub and a client that does what the
// companion does; the bytes of every frame that the hub sends are kept.
func TestEveryMessage(t *testing.T) {
	t.Parallel()
	var s seen
	home := t.TempDir()
	for i := range 230 {
		noError(t, "mkdir", os.Mkdir(filepath.Join(home, fmt.Sprintf("d%03d", i)), 0o755))
	}
	root := filepath.Join(home, "d229", "sub")
	noError(t, "mkdir", os.MkdirAll(filepath.Join(root, "docs"), 0o755))
	r := newRig(t)
	c := r.companion(func(o *companiontest.Options) { o.Home, o.Saw = home, s.saw })
	ctx := t.Context()

	// The control connection: browse over two pages, bind, activate.
	b := r.open(chat, root)
	if b.AllowedRoot != root || b.Revision != 1 {
		t.Errorf("bound: %+v", b)
	}
	if _, err := r.Attach(ctx, user, machine, msg.Attach{SessionID: chat, BrowseID: "gone", DirectoryRef: "gone"}); msg.CodeOf(err) != msg.CodeAlreadyActive {
		t.Errorf("bind an active chat: %v", err)
	}
	if _, err := r.Activate(ctx, user, machine, msg.Activate{SessionID: chat, Revision: 7}); msg.CodeOf(err) != msg.CodeRevision {
		t.Errorf("another revision: %v", err)
	}
	if _, err := r.Activate(ctx, user, machine, msg.Activate{SessionID: chat, Revision: 1}); err != nil {
		t.Errorf("activate again: %v", err)
	}
	if err := r.Restore(ctx, user, machine, b); err != nil {
		t.Errorf("restore what runs: %v", err)
	}
	forged := b
	forged.RootGrant = "v1.a.b"
	if err := r.Restore(ctx, user, machine, forged); msg.CodeOf(err) != msg.CodeGrantInvalid {
		t.Errorf("a forged grant: %v", err)
	}
	ref := "gone"
	if _, err := r.Browse(ctx, user, machine, msg.DirectoryList{BrowseID: &ref, DirectoryRef: &ref}); msg.CodeOf(err) != msg.CodeReferenceInvalid {
		t.Errorf("an unknown reference: %v", err)
	}

	everyFile(t, r, root)
	everyCommand(t, r, root)
	everyDesktop(t, r)
	call, err := r.Stream(ctx, chat, msg.TypeLLM, &msg.LLM{Model: "llama3", Messages: msg.List[msg.LLMMessage]{{Role: "system", Content: "<&>"}, {Role: "user", Content: "hi"}}, MaxTokens: 1024, TopP: 1, Stream: true})
	noError(t, "a completion", err)
	var words string
	for {
		m, err := call.Recv(ctx)
		if err == io.EOF {
			break
		}
		noError(t, "a completion's frame", err)
		switch p := m.Payload.(type) {
		case *msg.LLMChunk:
			words += p.Delta
		case *msg.LLMResponse:
			if p.Content != words || *p.Tokens.Total != 5 {
				t.Errorf("%q, after the chunks %q", p.Content, words)
			}
		}
	}
	call.Close()
	fails(t, r, msg.TypeLLM, &msg.LLM{Model: "other", Messages: msg.List[msg.LLMMessage]{}, MaxTokens: 1, TopP: 1}, msg.CodeModelMissing)
	reply[*msg.Empty](t, r, msg.TypePing, &msg.Empty{})

	if err := r.Detach(ctx, user, machine, chat); err != nil {
		t.Errorf("detach: %v", err)
	}
	eventually(t, "the chat is closed", func() bool { return !r.Connected(chat) })
	if _, err := r.Activate(ctx, user, machine, msg.Activate{SessionID: chat, Revision: 1}); msg.CodeOf(err) != msg.CodeNotAttached {
		t.Errorf("activate what is detached: %v", err)
	}
	r.RevokeSignIn("s1")
	s.until(t, "SESSION_REVOKED")
	for _, d := range c.Dropped() {
		t.Errorf("the companion dropped %s", d)
	}
	s.golden(t, "control", "", home)
	s.golden(t, "data", chat, home)
}

func everyFile(t *testing.T, r *rig, root string) {
	at := func(name string) string { return filepath.Join(root, name) }
	if a := reply[*msg.Ack](t, r, msg.TypeFileWrite, &msg.FileWrite{Path: at("new/a.txt"), Content: "<ä&\u2028>\n", Encoding: msg.UTF8, CreateParents: true}); !a.OK {
		t.Error("not ok")
	}
	reply[*msg.Ack](t, r, msg.TypeFileWrite, &msg.FileWrite{Path: at("b.bin"), Content: "AAEC", Encoding: msg.Base64})
	fails(t, r, msg.TypeFileWrite, &msg.FileWrite{Path: at("missing/c"), Encoding: msg.UTF8}, msg.CodePathNotFound)
	fails(t, r, msg.TypeFileWrite, &msg.FileWrite{Path: "/etc/c", Encoding: msg.UTF8}, msg.CodePathOutside)
	if f := reply[*msg.FileContents](t, r, msg.TypeFileRead, &msg.FileRead{Path: at("new/a.txt"), Encoding: msg.UTF8, Format: "text"}); f.Content != "<ä&\u2028>\n" || f.Truncated {
		t.Errorf("read %+v", f)
	}
	if f := reply[*msg.FileContents](t, r, msg.TypeFileRead, &msg.FileRead{Path: at("b.bin"), Encoding: msg.Base64, Format: "text", Offset: 1, Length: new(int64(1))}); f.Content != "AQ==" || !f.Truncated || f.Size != 1 {
		t.Errorf("read %+v", f)
	}
	fails(t, r, msg.TypeFileRead, &msg.FileRead{Path: at("new"), Encoding: msg.UTF8, Format: "text"}, msg.CodeInternal)
	if s := reply[*msg.FileStatResponse](t, r, msg.TypeFileStat, &msg.FileStat{Path: at("new/a.txt"), FollowSymlinks: true}); !s.Exists || !*s.IsFile || *s.Size != 9 || *s.Mode != "0644" || *s.Path != at("new/a.txt") {
		t.Errorf("stat %+v", s)
	}
	if s := reply[*msg.FileStatResponse](t, r, msg.TypeFileStat, &msg.FileStat{Path: at("nothing")}); s.Exists || s.Path != nil {
		t.Errorf("stat of nothing: %+v", s)
	}
	if l := reply[*msg.FileListResponse](t, r, msg.TypeFileList, &msg.FileList{Path: root, Glob: new("*.txt"), Recursive: true, IncludeHidden: true, MaxEntries: 100}); len(l.Entries) != 1 || l.Entries[0].Name != "a.txt" {
		t.Errorf("list %+v", l)
	}
	if l := reply[*msg.FileListResponse](t, r, msg.TypeFileList, &msg.FileList{Path: root, MaxEntries: 1}); len(l.Entries) != 1 || !l.Truncated {
		t.Errorf("list %+v", l)
	}
	reply[*msg.Ack](t, r, msg.TypeFileMove, &msg.FileMove{Src: at("new/a.txt"), Dst: at("a.txt")})
	fails(t, r, msg.TypeFileMove, &msg.FileMove{Src: at("a.txt"), Dst: at("b.bin")}, msg.CodePathExists)
	reply[*msg.Ack](t, r, msg.TypeFileMove, &msg.FileMove{Src: at("a.txt"), Dst: at("b.bin"), Overwrite: true})
	fails(t, r, msg.TypeFileDelete, &msg.FileDelete{Path: at("nothing")}, msg.CodePathNotFound)
	reply[*msg.Ack](t, r, msg.TypeFileDelete, &msg.FileDelete{Path: at("nothing"), MissingOK: true})
	write(t, at("new/x"), "")
	fails(t, r, msg.TypeFileDelete, &msg.FileDelete{Path: at("new")}, msg.CodePathNotEmpty)
	reply[*msg.Ack](t, r, msg.TypeFileDelete, &msg.FileDelete{Path: at("new"), Recursive: true})
}

func everyCommand(t *testing.T, r *rig, root string) {
	if c := reply[*msg.Result](t, r, msg.TypeExecute, &msg.Execute{Command: new("echo out; echo err >&2; echo $GREETING; pwd; exit 3"), Shell: "auto", Env: msg.Map{"GREETING": "<hi>"}}); c.Stdout != "out\n<hi>\n"+root+"\n" || c.Stderr != "err\n" || c.ExitCode != 3 {
		t.Errorf("a command: %+v", c)
	}
	if c := reply[*msg.Result](t, r, msg.TypeExecute, &msg.Execute{Argv: []string{"pwd"}, Shell: "auto", Cwd: new(filepath.Join(root, "docs")), Timeout: new(int64(5))}); c.Stdout != filepath.Join(root, "docs")+"\n" {
		t.Errorf("argv: %+v", c)
	}
	if c := reply[*msg.Result](t, r, msg.TypeExecute, &msg.Execute{Command: new("sleep 20"), Shell: "sh", Timeout: new(int64(1))}); !c.TimedOut {
		t.Errorf("past its time: %+v", c)
	}
	fails(t, r, msg.TypeExecute, &msg.Execute{Shell: "auto"}, msg.CodeInternal)
	fails(t, r, msg.TypeExecute, &msg.Execute{Command: new("x"), Shell: "powershell"}, msg.CodeShellMissing)
	fails(t, r, msg.TypeExecute, &msg.Execute{Command: new("x"), Shell: "auto", Cwd: new("/")}, msg.CodePathOutside)
}

func everyDesktop(t *testing.T, r *rig) {
	if s := reply[*msg.ScreenshotImage](t, r, msg.TypeScreenshot, &msg.Screenshot{Quality: 75, Region: &msg.Rect{1, 2, 3, 4}, Format: "png"}); s.Width != 2 || s.Meta.Origin != (msg.Pair{1, 2}) || *s.Region != (msg.Rect{1, 2, 3, 4}) || *s.LogicalSize != (msg.Pair{1280, 720}) {
		t.Errorf("a picture: %+v", s)
	}
	if d := fails(t, r, msg.TypeScreenshot, &msg.Screenshot{Quality: 75, WindowID: new("win_0"), Format: "jpeg", IncludeCursor: true}, msg.CodeWindowStale); d.Details["window_id"] != "win_0" {
		t.Errorf("details: %v", d.Details)
	}
	for _, in := range []*msg.Input{
		{Action: "left_click", Coordinate: &msg.Pair{3, 4}, Modifiers: []string{"ctrl", "super"}},
		{Action: "drag", Path: []msg.Pair{{1, 2}, {3, 4}}, Button: new("right")},
		{Action: "type", Text: new("<ä>"), Paste: true, PreserveClipboard: true},
		{Action: "key", Key: new("ctrl+c")},
		{Action: "scroll", ScrollAmount: new(2), ScrollDirection: new("left"), Direction: new("down"), Clicks: new(1)},
		{Action: "wait", DurationMS: new(1)},
	} {
		reply[*msg.Ack](t, r, msg.TypeInput, in)
	}
	if d := fails(t, r, msg.TypeInput, &msg.Input{Action: "mouse_move", Coordinate: &msg.Pair{-1, 4}}, msg.CodeOutOfBounds); d.Details["displays"] == nil {
		t.Errorf("details: %v", d.Details)
	}
	fails(t, r, msg.TypeInput, &msg.Input{Action: "left_click"}, msg.CodeNotSupported)
	if p := reply[*msg.CursorPosition](t, r, msg.TypeCursor, &msg.Empty{}); p.X != 10 || p.Y != 20 {
		t.Errorf("the pointer: %+v", p)
	}
	if d := reply[*msg.DisplayInfo](t, r, msg.TypeDisplays, &msg.Empty{}); len(d.Monitors) != 1 || !d.Monitors[0].Primary {
		t.Errorf("screens: %+v", d)
	}
	w := reply[*msg.WindowList](t, r, msg.TypeWindows, &msg.Windows{IncludeMinimized: true})
	if len(w.Windows) != 1 || w.Windows[0].Bounds != (msg.Rect{0, 0, 640, 480}) {
		t.Fatalf("windows: %+v", w)
	}
	reply[*msg.Ack](t, r, msg.TypeWindowFocus, &msg.WindowFocus{WindowID: w.Windows[0].ID, Raise: true})
	if a := reply[*msg.AppList](t, r, msg.TypeApps, &msg.Apps{}); len(a.Apps) != 1 || a.Apps[0].Name != "Editor" {
		t.Errorf("programs: %+v", a)
	}
	reply[*msg.Ack](t, r, msg.TypeAppLaunch, &msg.AppLaunch{ExecutablePath: new("/usr/bin/editor"), Args: msg.List[string]{"-x"}, Activate: true})
	fails(t, r, msg.TypeAppLaunch, &msg.AppLaunch{BundleID: new("org.example")}, msg.CodeNotSupported)
	if c := reply[*msg.ClipboardContent](t, r, msg.TypeClipboardRead, &msg.ClipboardRead{Format: "text"}); c.Content != "copied" {
		t.Errorf("clipboard: %+v", c)
	}
	reply[*msg.Ack](t, r, msg.TypeClipboardWrite, &msg.ClipboardWrite{Format: "text", Content: "x"})
	if p := reply[*msg.PermissionStates](t, r, msg.TypePermissions, &msg.Permissions{Permissions: msg.List[string]{"accessibility", "other"}}); p.Permissions["accessibility"] != "granted" || p.Permissions["other"] != "not_applicable" {
		t.Errorf("permissions: %+v", p)
	}
}

// A companion that is busy refuses nothing, because the hub sends no more than
// it takes.
func TestManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.companion(func(o *companiontest.Options) {
		o.MaxConcurrent = 3
		o.Hold = func(ctx context.Context, kind string) {
			if kind == "FILE_STAT" {
				time.Sleep(20 * time.Millisecond)
			}
		}
		o.Status = 100 * time.Millisecond
		noError(t, "mkdir", os.Mkdir(filepath.Join(o.Home, "work"), 0o755))
	})
	root := r.home(t)
	r.open(chat, root)
	// The limits are known from the first STATUS on.
	time.Sleep(300 * time.Millisecond)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := r.Do(t.Context(), chat, msg.TypeFileStat, &msg.FileStat{Path: root, FollowSymlinks: true}); err != nil {
				t.Errorf("one of many: %v", err)
			}
		})
	}
	wg.Wait()
	if d := c.Dropped(); len(d) > 0 {
		t.Errorf("dropped: %q", d)
	}
}

// home is the one root that the companion offers, and a folder in it.
func (r *rig) home(t *testing.T) string {
	t.Helper()
	d, err := r.Browse(t.Context(), user, machine, msg.DirectoryList{})
	noError(t, "browse", err)
	if len(d.Entries) != 1 {
		t.Fatalf("roots: %+v", d)
	}
	return filepath.Join(d.Entries[0].Path, "work")
}

// A twin of the companion, with the same machine and sign-in: the newest wins,
// and the other stays away.
func TestTwinCompanions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var s seen
	first := r.companion(func(o *companiontest.Options) { o.Saw = s.saw })
	id := r.Machines(user)[0].Connection
	s.until(t, "PING") // the last of its beginning
	second := r.companion()
	eventually(t, "the second has taken over", func() bool { m := r.Machines(user); return len(m) == 1 && m[0].Connection != id })
	s.until(t, "SESSION_REVOKED")
	s.golden(t, "twin", "", "no home")
	newest := r.Machines(user)[0].Connection
	time.Sleep(500 * time.Millisecond)
	if m := r.Machines(user); len(m) != 1 || m[0].Connection != newest {
		t.Errorf("they fight: %+v", m)
	}
	if d := append(first.Dropped(), second.Dropped()...); len(d) > 0 {
		t.Errorf("dropped: %q", d)
	}
}

// What a companion was doing when it was revoked ends there too.
func TestRevokedInMidCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	home := t.TempDir()
	noError(t, "mkdir", os.Mkdir(filepath.Join(home, "work"), 0o755))
	c := r.companion(func(o *companiontest.Options) { o.Home = home })
	root := filepath.Join(home, "work")
	r.open(chat, root)
	result := r.ask(msg.TypeExecute, &msg.Execute{Command: new("touch began; sleep 1; touch ended"), Shell: "auto"})
	eventually(t, "it runs", func() bool { _, err := os.Stat(filepath.Join(root, "began")); return err == nil })
	r.RevokeSignIn("s1")
	if got := <-result; wire.CodeOf(got.err) != autogpt.CodeUnconfirmed {
		t.Errorf("the command: %v", got.err)
	}
	eventually(t, "its chats have ended", func() bool { return c.Running() == 0 })
	time.Sleep(1500 * time.Millisecond)
	if _, err := os.Stat(filepath.Join(root, "ended")); err == nil {
		t.Error("the command ran on")
	}
	if len(r.Machines(user)) != 0 {
		t.Error("it came back")
	}
}

// The companion comes back by itself when its token has expired, with a fresh
// one, and its chat is restored.
func TestCompanionRefreshes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	home := t.TempDir()
	root := filepath.Join(home, "work")
	noError(t, "mkdir", os.Mkdir(root, 0o755))
	var mu sync.Mutex
	token := r.token("s1", soon(2*time.Second))
	refreshed := 0
	c := r.companion(func(o *companiontest.Options) {
		o.Home = home
		o.Token = func(refresh bool) string {
			mu.Lock()
			defer mu.Unlock()
			if refresh {
				refreshed++
				token = r.token("s1")
			}
			return token
		}
	})
	b := r.open(chat, root)
	eventually(t, "the token has expired", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return refreshed > 0
	})
	eventually(t, "it is back", func() bool { return len(r.Machines(user)) == 1 })
	if err := r.Restore(t.Context(), user, machine, b); err != nil {
		t.Fatal(err)
	}
	noError(t, "the chat", r.Await(t.Context(), chat, 8*time.Second))
	reply[*msg.FileStatResponse](t, r, msg.TypeFileStat, &msg.FileStat{Path: root, FollowSymlinks: true})
	for _, code := range c.Closes() {
		if code != 4401 && code != 1000 {
			t.Errorf("closed with %d", code)
		}
	}
}
