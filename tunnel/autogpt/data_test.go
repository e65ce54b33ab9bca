package autogpt

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// script is a handler that notes what it was asked and answers as it is told.
type script struct {
	mu     sync.Mutex
	asked  []wire.Message
	body   []byte
	answer func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error)
}

func (s *script) handle(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	var body []byte
	if m.Type == wire.TypeFileWrite {
		for {
			c, err := tunnel.Chunk(ctx, x)
			if err != nil {
				return "", nil, err
			}
			if len(c.Data) > wire.MaxChunk {
				return "", nil, errors.New("a chunk is too large")
			}
			body = append(body, c.Data...)
			if c.Last {
				break
			}
		}
	}
	s.mu.Lock()
	s.asked, s.body = append(s.asked, m), body
	answer := s.answer
	s.mu.Unlock()
	if err := m.Payload.Validate(); err != nil {
		return "", nil, err
	}
	if !x.Begin() {
		return "", nil, wire.Errorf(wire.CodePending, "Nobody waits.")
	}
	return answer(ctx, m, x)
}

func (s *script) last(t *testing.T) wire.Payload {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		t.Fatal("nothing was asked")
	}
	return s.asked[len(s.asked)-1].Payload
}

func (s *script) set(answer func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error)) {
	s.mu.Lock()
	s.answer = answer
	s.mu.Unlock()
}

// replies sends frames, and then the last one.
func replies(frames ...any) func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
	return func(ctx context.Context, _ wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		for i, f := range frames {
			if err, ok := f.(error); ok {
				return "", nil, err
			}
			p := f.(wire.Payload)
			if i == len(frames)-1 {
				return "", p, nil
			}
			if err := x.Send(ctx, "", p); err != nil {
				return "", nil, err
			}
		}
		return wire.TypeAck, &wire.Empty{}, nil
	}
}

func scripted(t *testing.T, change func(o *Options)) (*script, *machine, *peer) {
	t.Helper()
	s := &script{answer: replies()}
	m, _, data := working(t, newHub(t), func(o *Options) {
		o.Handler = s.handle
		if change != nil {
			change(o)
		}
	})
	return s, m, data
}

func TestExecuteIsTranslated(t *testing.T) {
	s, _, p := scripted(t, nil)
	s.set(replies(&wire.ProcessStarted{PID: 1}, &wire.ProcessOutput{Stream: "stdout", Data: []byte("a\xff")}, &wire.ProcessOutput{Stream: "stderr", Data: []byte("b")},
		&wire.ProcessOutput{Stream: "stdout", Data: []byte("\xffc\n")}, &wire.ProcessExited{ExitCode: 3}))
	f := p.call("EXECUTE_COMMAND", object{"command": "echo \"a b\"", "shell": "sh", "cwd": root + "/sub", "timeout_seconds": 5, "env": object{"A": "b"}})
	if f.Type != "COMMAND_RESULT" {
		t.Fatalf("%s %s", f.Type, f.Payload)
	}
	var r msg.Result
	if f.into(t, &r); r.Stdout != "a\ufffd\ufffdc\n" || r.Stderr != "b" || r.ExitCode != 3 || r.TimedOut || r.Truncated {
		t.Errorf("%+v", r)
	}
	want := &wire.ProcessStart{SessionID: chat, Cmd: "sh", Args: []string{"-c", "echo \"a b\""}, Cwd: "sub", CwdInside: true, TimeoutMS: 5000, GraceMS: 2000,
		Env: map[string]string{"A": "b", "PYTHONIOENCODING": "utf-8"}}
	if got := s.last(t); !reflect.DeepEqual(got, want) {
		t.Errorf("asked %+v", got)
	}
	p.call("EXECUTE_COMMAND", object{"argv": []string{"ls", "-l"}, "timeout_seconds": 600, "env": object{"PYTHONIOENCODING": "latin-1"}})
	want = &wire.ProcessStart{SessionID: chat, Cmd: "ls", Args: []string{"-l"}, TimeoutMS: 23000, GraceMS: 2000, Env: map[string]string{"PYTHONIOENCODING": "utf-8"}}
	if got := s.last(t); !reflect.DeepEqual(got, want) {
		t.Errorf("asked %+v", got)
	}
	for _, bad := range []object{{}, {"command": "ls", "argv": []string{"ls"}}, {"argv": []string{}}, {"command": strings.Repeat("x", 200<<10)}, {"argv": []string{"ls", "a\x00"}}} {
		p.fails("EXECUTE_COMMAND", bad, msg.CodeInternal)
	}
	for _, cwd := range []string{"/etc", root + "x", root + "/..", "..", root + "/a/../../b"} {
		p.fails("EXECUTE_COMMAND", object{"command": "ls", "cwd": cwd}, msg.CodePathOutside)
	}
	p.fails("EXECUTE_COMMAND", object{"command": "ls", "shell": "cmd"}, msg.CodeShellMissing)
	p.fails("EXECUTE_COMMAND", object{"command": "ls", "shell": "fish"}, msg.CodeInternal)
}

func TestTimeLimitIsNegotiated(t *testing.T) {
	h := newHub(t)
	s := &script{answer: replies(&wire.ProcessExited{})}
	_, control := online(t, h, func(o *Options) { o.Handler = s.handle })
	control.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant})
	p := take(t, h.data, "data connection")
	p.greet(object{"command_timeout_seconds": 7, "max_file_size_bytes": 10})
	p.call("EXECUTE_COMMAND", object{"command": "ls"})
	if got := s.last(t).(*wire.ProcessStart); got.TimeoutMS != 7000 {
		t.Errorf("%d ms", got.TimeoutMS)
	}
	p.call("EXECUTE_COMMAND", object{"command": "ls", "timeout_seconds": 8})
	if got := s.last(t).(*wire.ProcessStart); got.TimeoutMS != 7000 {
		t.Errorf("%d ms", got.TimeoutMS)
	}
	p.fails("FILE_WRITE", object{"path": root + "/a", "content": "12345678901"}, msg.CodeTooLarge)
	p.fails("FILE_READ", object{"path": root + "/a", "length": 11}, msg.CodeTooLarge)
}

func TestCommandEnds(t *testing.T) {
	s, _, p := scripted(t, nil)
	for _, c := range []struct {
		exit wire.ProcessExited
		code int
	}{
		{wire.ProcessExited{ExitCode: -1, Signal: "killed"}, -9},
		{wire.ProcessExited{ExitCode: -1, Signal: "terminated", TimedOut: true}, -15},
		{wire.ProcessExited{ExitCode: -1}, -1},
		{wire.ProcessExited{ExitCode: 255}, 255},
	} {
		s.set(replies(&wire.ProcessStarted{PID: 1}, &c.exit))
		var r msg.Result
		if p.call("EXECUTE_COMMAND", object{"command": "x"}).into(t, &r); r.ExitCode != c.code || r.TimedOut != c.exit.TimedOut {
			t.Errorf("%+v becomes %+v", c.exit, r)
		}
	}
	s.set(func(ctx context.Context, _ wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if err := x.Send(ctx, wire.TypeProcessStarted, &wire.ProcessStarted{PID: 1}); err != nil {
			return "", nil, err
		}
		time.Sleep(30 * time.Millisecond)
		return wire.TypeProcessExited, &wire.ProcessExited{}, nil
	})
	var r msg.Result
	if p.call("EXECUTE_COMMAND", object{"command": "x"}).into(t, &r); r.Duration < 0.03 || r.Duration > 3 {
		t.Errorf("took %v", r.Duration)
	}
}

func TestOutputBudget(t *testing.T) {
	at := place{chat, root}
	run := func(budget int, parts ...string) (*msg.Result, error) {
		c, err := newCommand(at, &msg.Execute{Argv: []string{"x"}}, time.Second, budget)
		if err != nil {
			return nil, err
		}
		for i, p := range parts {
			stream := "stdout"
			if i%2 == 1 {
				stream = "stderr"
			}
			if err := c.send(wire.TypeProcessOutput, &wire.ProcessOutput{Stream: stream, Data: []byte(p)}); err != nil {
				return nil, err
			}
		}
		_, p, err := c.reply(&wire.ProcessExited{})
		return p.(*msg.Result), err
	}
	mark := "\n[command output truncated]\n"
	for _, c := range []struct {
		budget   int
		parts    []string
		out, err string
		cut      bool
	}{
		{100, []string{strings.Repeat("o", 60), strings.Repeat("e", 40)}, strings.Repeat("o", 60), strings.Repeat("e", 40), false},
		{100, []string{strings.Repeat("o", 60), strings.Repeat("e", 41)}, strings.Repeat("o", 32), strings.Repeat("e", 40) + mark, true},
		{100, []string{strings.Repeat("o", 200)}, strings.Repeat("o", 72), mark, true},
		{100, []string{strings.Repeat("o", 10), strings.Repeat("e", 200), "late"}, "", strings.Repeat("e", 72) + mark, true},
		{10, []string{strings.Repeat("o", 20)}, "", mark[:10], true},
	} {
		r, err := run(c.budget, c.parts...)
		if err != nil || r.Stdout != c.out || r.Stderr != c.err || r.Truncated != c.cut || len(r.Stdout)+len(r.Stderr) > c.budget {
			t.Errorf("%d, %q: %+v, %v", c.budget, c.parts, r, err)
		}
	}
	if len(msg.TruncationMark) != 28 || msg.TruncationMark != mark {
		t.Errorf("%q", msg.TruncationMark)
	}
}

func TestShells(t *testing.T) {
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	for _, c := range []struct {
		goos, shell string
		there       func(string) bool
		want        string // "": not available
	}{
		{"linux", "auto", all, "bash -c X"}, {"linux", "auto", none, "sh -c X"}, {"darwin", "auto", all, "bash -c X"},
		{"linux", "bash", all, "bash -c X"}, {"linux", "bash", none, ""}, {"linux", "sh", all, "sh -c X"}, {"linux", "zsh", all, "zsh -c X"}, {"linux", "zsh", none, ""},
		{"linux", "pwsh", all, "pwsh -NoLogo -NoProfile -Command X"}, {"linux", "pwsh", none, ""}, {"linux", "powershell", all, ""}, {"linux", "cmd", all, ""},
		{"windows", "auto", none, "cmd.exe /C chcp 65001 >NUL & X"}, {"windows", "cmd", none, "cmd.exe /C chcp 65001 >NUL & X"},
		{"windows", "powershell", all, "powershell -NoLogo -NoProfile -Command X"}, {"windows", "bash", all, "bash -c X"}, {"windows", "sh", all, ""}, {"windows", "zsh", all, ""},
	} {
		argv, err := shellFor(c.goos, c.shell, "X", c.there)
		if got := strings.Join(argv, " "); got != c.want || (err == nil) != (c.want != "") || err != nil && msg.CodeOf(err) != msg.CodeShellMissing {
			t.Errorf("%s %s: %q, %v", c.goos, c.shell, got, err)
		}
	}
}

func TestReadIsTranslated(t *testing.T) {
	s, _, p := scripted(t, nil)
	s.set(replies(&wire.FileContents{Size: 100, Length: 5}, &wire.FileChunk{Data: []byte("he")}, &wire.FileChunk{Data: []byte("\xffo\n")}, &wire.Empty{}))
	var r msg.FileContents
	f := p.call("FILE_READ", object{"path": root + "/a/b.txt", "offset": 10, "length": 5})
	if f.into(t, &r); f.Type != "FILE_CONTENTS" || r != (msg.FileContents{Content: "he\ufffdo\n", Encoding: "utf-8", Size: 5, Truncated: true}) {
		t.Errorf("%s %+v", f.Type, r)
	}
	if got := s.last(t); !reflect.DeepEqual(got, &wire.FileRead{SessionID: chat, Path: "a/b.txt", Offset: 10, Length: new(int64(5))}) {
		t.Errorf("asked %+v", got)
	}
	for _, how := range []object{{"encoding": "base64"}, {"format": "bytes"}} {
		how["path"] = root + "/a"
		how["offset"] = 95
		if p.call("FILE_READ", how).into(t, &r); r != (msg.FileContents{Content: "aGX/bwo=", Encoding: "base64", Size: 5}) {
			t.Errorf("%+v", r)
		}
	}
	// Past the end.
	s.set(replies(&wire.FileContents{Size: 3}, &wire.Empty{}))
	if p.call("FILE_READ", object{"path": root + "/a", "offset": 10}).into(t, &r); r != (msg.FileContents{Encoding: "utf-8"}) {
		t.Errorf("%+v", r)
	}
	// Too much, asked or found.
	p.fails("FILE_READ", object{"path": root + "/a", "length": msg.MaxText + 1}, msg.CodeTooLarge)
	s.set(replies(&wire.FileContents{Size: msg.MaxText + 1, Length: msg.MaxText + 1}, &wire.Empty{}))
	p.fails("FILE_READ", object{"path": root + "/a"}, msg.CodeTooLarge)
	s.set(replies(&wire.FileContents{Size: msg.MaxText + 1, Length: msg.MaxText + 1}, &wire.FileChunk{Data: []byte("x")}, &wire.Empty{}))
	if f := p.call("FILE_READ", object{"path": root + "/a", "encoding": "base64"}); f.Type != "FILE_CONTENTS" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	// The most there may be goes through, whatever it is made of.
	chunk := []byte(strings.Repeat("\x01", wire.MaxChunk))
	s.set(func(ctx context.Context, _ wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if err := x.Send(ctx, wire.TypeFileContents, &wire.FileContents{Size: msg.MaxText, Length: msg.MaxText}); err != nil {
			return "", nil, err
		}
		for left := msg.MaxText; left > 0; left -= len(chunk) {
			if err := x.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: chunk[:min(left, len(chunk))]}); err != nil {
				return "", nil, err
			}
		}
		return wire.TypeAck, &wire.Empty{}, nil
	})
	if p.call("FILE_READ", object{"path": root + "/a"}).into(t, &r); len(r.Content) != msg.MaxText || r.Truncated {
		t.Errorf("%d bytes", len(r.Content))
	}
	p.fails("FILE_READ", object{"path": root + "/" + strings.Repeat("x", 5000)}, msg.CodePathChars)
	p.fails("FILE_READ", object{"path": root + "/a\x00"}, msg.CodePathChars)
}

func TestWriteIsTranslated(t *testing.T) {
	s, _, p := scripted(t, nil)
	s.set(replies(&wire.FileStatResponse{}))
	big := strings.Repeat("0123456789", 60_000) // more than two chunks
	for _, c := range []struct {
		payload object
		body    string
		ask     wire.FileWrite
	}{
		{object{"path": root + "/a", "content": ""}, "", wire.FileWrite{NoParents: true}},
		{object{"path": root + "/a", "content": "grün\r\n", "create_parents": true}, "grün\r\n", wire.FileWrite{}},
		{object{"path": root + "/a", "content": base64.StdEncoding.EncodeToString([]byte("\x00\xff")), "encoding": "base64"}, "\x00\xff", wire.FileWrite{NoParents: true}},
		{object{"path": root + "/a", "content": big}, big, wire.FileWrite{NoParents: true}},
	} {
		f := p.call("FILE_WRITE", c.payload)
		c.ask.SessionID, c.ask.Path = chat, "a"
		if f.Type != "ACK" || string(f.Payload) != `{"ok":true}` || string(s.body) != c.body || !reflect.DeepEqual(s.last(t), &c.ask) {
			t.Errorf("%s %s; asked %+v with %d bytes", f.Type, f.Payload, s.last(t), len(s.body))
		}
	}
	for _, bad := range []string{"aGk", "aGk=\n", "aG k=", "aGk-", "a_k="} {
		p.fails("FILE_WRITE", object{"path": root + "/a", "content": bad, "encoding": "base64"}, msg.CodeInternal)
	}
}

func TestStatIsTranslated(t *testing.T) {
	s, _, p := scripted(t, nil)
	s.set(replies(&wire.FileStatResponse{Exists: true, Entry: &wire.Entry{Name: "b.txt", Path: "a/b.txt", Kind: "file", Size: 5, Mode: 0o640, MTime: 1767225600123, CTime: 1767225600456,
		UID: new(0), GID: new(1000), LinkTarget: "a/b.txt"}}))
	f := p.call("FILE_STAT", object{"path": root + "/l"})
	want := `{"exists":true,"is_file":true,"is_dir":false,"is_symlink":true,"size_bytes":5,"mtime":1767225600.123,"ctime":1767225600.456,"mode":"0640","owner_uid":0,"owner_gid":1000,"mime_type":"text/plain","path":"` + root + `/a/b.txt"}`
	if f.Type != "FILE_STAT_RESPONSE" || string(f.Payload) != want {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if got := s.last(t); !reflect.DeepEqual(got, &wire.FileStat{SessionID: chat, Path: "l", Follow: true}) {
		t.Errorf("asked %+v", got)
	}
	s.set(replies(&wire.FileStatResponse{Path: "a/none"}))
	f = p.call("FILE_STAT", object{"path": root + "/none", "follow_symlinks": false})
	want = `{"exists":false,"is_file":null,"is_dir":null,"is_symlink":null,"size_bytes":null,"mtime":null,"ctime":null,"mode":null,"owner_uid":null,"owner_gid":null,"mime_type":null,"path":"` + root + `/a/none"}`
	if string(f.Payload) != want {
		t.Errorf("%s", f.Payload)
	}
	if got := s.last(t); !reflect.DeepEqual(got, &wire.FileStat{SessionID: chat, Path: "none", NoFollow: true}) {
		t.Errorf("asked %+v", got)
	}
}

func TestListIsTranslated(t *testing.T) {
	s, _, p := scripted(t, nil)
	entry := func(path, kind string) wire.Entry {
		return wire.Entry{Name: path[strings.LastIndex(path, "/")+1:], Path: path, Kind: kind, Size: 7, MTime: 1500}
	}
	link := entry("d/l.md", "dir")
	link.LinkTarget = "elsewhere"
	s.set(replies(&wire.FileListResponse{Entries: []wire.Entry{entry("d/.git", "dir"), entry("d/.git/a.md", "file"), entry("d/b.md", "file")}},
		&wire.FileListResponse{Entries: []wire.Entry{entry("d/c.txt", "file"), link}}, &wire.Empty{}))
	list := func(payload object) (names []string, truncated bool) {
		t.Helper()
		payload["path"] = root + "/d"
		f := p.call("FILE_LIST", payload)
		var r msg.FileListResponse
		if f.into(t, &r); f.Type != "FILE_LIST_RESPONSE" {
			t.Fatalf("%s %s", f.Type, f.Payload)
		}
		for _, e := range r.Entries {
			if e.Path != root+"/d/"+strings.TrimPrefix(e.Path, root+"/d/") || *e.Size != 7 || *e.MTime != 1.5 || e.IsSymlink != (e.Name == "l.md") {
				t.Errorf("%+v", e)
			}
			names = append(names, e.Name)
		}
		return names, r.Truncated
	}
	for _, c := range []struct {
		payload object
		names   string
		more    bool
	}{
		{object{}, "a.md b.md c.txt l.md", false},
		{object{"include_hidden": true}, ".git a.md b.md c.txt l.md", false},
		{object{"glob": "*.md"}, "a.md b.md l.md", false},
		{object{"glob": "[!ab].*"}, "c.txt l.md", false},
		{object{"max_entries": 2}, "a.md b.md", true},
		{object{"max_entries": 4}, "a.md b.md c.txt l.md", false},
		{object{"max_entries": 0}, "a.md", true},
		{object{"max_entries": -5, "glob": "l*"}, "l.md", false},
		{object{"glob": "nothing"}, "", false},
	} {
		names, more := list(c.payload)
		if strings.Join(names, " ") != c.names || more != c.more {
			t.Errorf("%v: %v, %v", c.payload, names, more)
		}
	}
	if got := s.last(t); !reflect.DeepEqual(got, &wire.FileList{SessionID: chat, Path: "d", Depth: 1}) {
		t.Errorf("asked %+v", got)
	}
	list(object{"recursive": true})
	if got := s.last(t); !reflect.DeepEqual(got, &wire.FileList{SessionID: chat, Path: "d", Depth: 1000}) {
		t.Errorf("asked %+v", got)
	}
	// Much more than is told is not listed to its end, and the frame has room.
	sent := 0
	s.set(func(ctx context.Context, _ wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		many := &wire.FileListResponse{Entries: slices.Repeat([]wire.Entry{entry("d/"+strings.Repeat("\x01", 250), "file")}, 1000)}
		for sent = 0; sent < 10_000; sent++ {
			if err := x.Send(ctx, wire.TypeFileListResponse, many); err != nil {
				return "", nil, fmt.Errorf("list: %w", err)
			}
		}
		return wire.TypeAck, &wire.Empty{}, nil
	})
	if names, more := list(object{"max_entries": 1_000_000}); len(names) < 1000 || len(names) > msg.MaxEntries || !more || sent > 200 {
		t.Errorf("%d names, %v, %d frames", len(names), more, sent)
	}
}

func TestDeleteAndMoveAreTranslated(t *testing.T) {
	s, _, p := scripted(t, nil)
	for _, c := range []struct {
		kind    string
		payload object
		want    wire.Payload
	}{
		{"FILE_DELETE", object{"path": root + "/a"}, &wire.FileDelete{SessionID: chat, Path: "a", OnlyEmpty: true, MustExist: true}},
		{"FILE_DELETE", object{"path": root, "recursive": true, "missing_ok": true}, &wire.FileDelete{SessionID: chat, Path: "."}},
		{"FILE_MOVE", object{"src": root + "/a", "dst": "/elsewhere/b"}, &wire.FileMove{SessionID: chat, Src: "a", Dst: "/elsewhere/b", NoReplace: true, NoParents: true}},
		{"FILE_MOVE", object{"src": "a", "dst": root + "/../b", "overwrite": true}, &wire.FileMove{SessionID: chat, Src: "a", Dst: "../b", NoParents: true}},
	} {
		if f := p.call(c.kind, c.payload); f.Type != "ACK" || !reflect.DeepEqual(s.last(t), c.want) {
			t.Errorf("%s %v: %s, asked %+v", c.kind, c.payload, f.Type, s.last(t))
		}
	}
}

// Every error of localpc.v1 becomes one of 1.1, with its sentence.
func TestErrorsAreMapped(t *testing.T) {
	s, _, p := scripted(t, nil)
	known := []wire.Code{msg.CodePathOutside, msg.CodePathChars, msg.CodePathNotFound, msg.CodePathNotEmpty, msg.CodePathExists, msg.CodeShellMissing, msg.CodeNotGranted,
		msg.CodeNotSupported, msg.CodeOverloaded, msg.CodeInternal, msg.CodeTooLarge, msg.CodeNotAttached, msg.CodePending}
	for _, code := range []wire.Code{wire.CodeDenied, wire.CodeExpired, wire.CodeUndelivered, wire.CodePending, wire.CodePaused, wire.CodeStopped, wire.CodeOverloaded, wire.CodeSessionNotOpen,
		wire.CodeInvalid, wire.CodeNotSupported, wire.CodeInternal, wire.CodeCancelled, wire.CodePathOutside, wire.CodePathChars, wire.CodePathNotFound, wire.CodePathExists, wire.CodePathNotEmpty,
		wire.CodePathKind, wire.CodeForbidden, wire.CodeTooLarge, wire.CodeChanged, wire.CodeDiskFull, wire.CodeShellMissing, wire.CodeUnconfined, wire.CodeOffline, wire.CodeLost} {
		s.set(replies(wire.Errorf(code, "A sentence.")))
		var e failure
		f := p.call("FILE_DELETE", object{"path": root + "/a"})
		f.into(t, &e)
		if f.Type != "ERROR" || !slices.Contains(known, e.Code) || e.Message != "A sentence." || e.Code != code && e.Details["reason"] != strings.ToLower(string(code)) {
			t.Errorf("%s becomes %s", code, f.Payload)
		}
	}
	for code, want := range map[wire.Code]wire.Code{wire.CodePathNotFound: msg.CodeShellMissing, wire.CodeForbidden: msg.CodeShellMissing, wire.CodeInvalid: msg.CodeShellMissing,
		wire.CodeShellMissing: msg.CodeShellMissing, wire.CodeDenied: msg.CodeNotGranted} {
		s.set(replies(wire.Errorf(code, "A sentence.")))
		p.fails("EXECUTE_COMMAND", object{"command": "x"}, want)
	}
	s.set(replies(errors.New("secret")))
	if e := p.fails("FILE_DELETE", object{"path": root + "/a"}, msg.CodeInternal); strings.Contains(e.Message, "secret") {
		t.Errorf("%+v", e)
	}
}

func TestPlaces(t *testing.T) {
	p := place{chat, "/home/user/project"}
	for name, want := range map[string]string{"/home/user/project": ".", "/home/user/project/": ".", "/home/user/project/a/b": "a/b", "/home/user/project//a": "a", "/home/user/projects": "/home/user/projects",
		"/home/user/a": "/home/user/a", "a": "a", "~/a": "~/a", "/tmp/a": "/tmp/a", "/home/user/project/../x": "../x"} {
		if got := p.to(name); got != want {
			t.Errorf("to %q: %q", name, got)
		}
	}
	for name, want := range map[string]string{"a/b": "/home/user/project/a/b", ".": "/home/user/project", "~/a": "/home/user/project/a", "/home/user/a": "/home/user/project/a",
		"/home/user/project/a": "/home/user/project/a", "/tmp/a": "/tmp/a"} {
		if got := p.from(name); got != want {
			t.Errorf("from %q: %q", name, got)
		}
	}
	top := place{chat, "/"}
	if top.to("/a") != "a" || top.from("a") != "/a" {
		t.Error("the top")
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		glob, yes, no string
	}{
		{"*", "a .b", ""}, {"*.md", "a.md .md", "a.mdx md"}, {"a?c", "abc aüc", "ac abbc"}, {"[a-c]x", "ax cx", "dx"}, {"[!a-c]x", "dx", "ax"},
		{"[]]", "]", "a"}, {"[!]]", "a", "]"}, {"[ab", "[ab", "a"}, {"a.b", "a.b", "axb"}, {"[^a]", "^ a", "b"}, {`a\*`, `a\ a\b`, "a*"}, {"[a[]", "[ a", "b"}, {"(x)|y", "(x)|y", "x"}, {"[z-a]", "[z-a]", "m"},
	} {
		re := globPattern(c.glob)
		for _, name := range strings.Fields(c.yes) {
			if !re.MatchString(name) {
				t.Errorf("%s does not match %s (%s)", c.glob, name, re)
			}
		}
		for _, name := range strings.Fields(c.no) {
			if re.MatchString(name) {
				t.Errorf("%s matches %s (%s)", c.glob, name, re)
			}
		}
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("[!a-\\]*?", "abc")
	f.Fuzz(func(t *testing.T, glob, name string) {
		_ = globPattern(glob).MatchString(name)
		if utf8.ValidString(glob) && !strings.ContainsAny(glob, "*?[") && !globPattern(glob).MatchString(glob) {
			t.Errorf("%q does not match itself", glob)
		}
	})
}
