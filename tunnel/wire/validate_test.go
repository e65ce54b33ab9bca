package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// with gives a copy of the sample of kind, changed.
func with[P any](kind Type, change func(*P)) Payload {
	data, err := json.Marshal(samples[kind])
	if err != nil {
		panic(err)
	}
	p := new(P)
	if err := json.Unmarshal(data, p); err != nil {
		panic(err)
	}
	change(p)
	return any(p).(Payload)
}

func TestValidators(t *testing.T) {
	long := strings.Repeat("x", MaxCommand+1)
	manyEnv := map[string]string{}
	for i := range MaxEnv + 1 {
		manyEnv[fmt.Sprint("V", i)] = ""
	}
	for _, c := range []struct {
		kind    Type
		payload Payload
		reason  string
	}{
		{TypeHello, with(TypeHello, func(p *Hello) { p.Protocol = "1" }), "protocol_version"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.MachineID = "" }), "machine_id"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.MachineID = "../x" }), "machine_id"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.DisplayName = strings.Repeat("n", MaxText+1) }), "display_name"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Software = "a b" }), "software"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Platform = "" }), "platform"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Arch = "a\n" }), "arch"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Capabilities = []string{"a b"} }), "capability"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Capabilities = make([]string, 65) }), "too many"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Sessions = []string{"a/b"} }), "session"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Sessions = make([]string, 257) }), "too many"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Record.Hash = "00" }), "record"},
		{TypeHello, with(TypeHello, func(p *Hello) { p.Record.Seq = -1 }), "record"},
		{TypeHelloAck, with(TypeHelloAck, func(p *HelloAck) { p.Protocol = "x" }), "protocol_version"},
		{TypeHelloAck, with(TypeHelloAck, func(p *HelloAck) { p.ConnectionID = "" }), "connection_id"},
		{TypeHelloAck, with(TypeHelloAck, func(p *HelloAck) { p.HubName = "\x00" }), "hub_name"},
		{TypeHelloAck, with(TypeHelloAck, func(p *HelloAck) { p.Account = strings.Repeat("n", MaxText+1) }), "account"},
		{TypeStatus, with(TypeStatus, func(p *Status) { p.MaxConcurrent = 0 }), "counts"},
		{TypeStatus, with(TypeStatus, func(p *Status) { p.Waiting = -1 }), "counts"},
		{TypeStatus, with(TypeStatus, func(p *Status) { p.Record.Hash = "zz" }), "record"},
		{TypeCredit, &Credit{Bytes: -1}, "bytes"},
		{TypeCredit, &Credit{Bytes: 64<<20 + 1}, "bytes"},
		{TypeError, &ErrorPayload{}, "code"},
		{TypeError, &ErrorPayload{Code: Code(strings.Repeat("C", 65))}, "code"},
		{TypeError, &ErrorPayload{Code: "X", Message: strings.Repeat("m", 4097)}, "message"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.SessionID = "-x" }), "session_id"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.PrincipalID = "" }), "principal_id"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.PrincipalName = "\xff" }), "principal_name"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.Agent = strings.Repeat("a", MaxText+1) }), "agent"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.Title = "a\x00" }), "title"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.Folder = strings.Repeat("f", MaxPath+1) }), "folder"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.TTLSeconds = -1 }), "ttl_seconds"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.WaitMS = 3600_001 }), "wait_ms"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.Env = map[string]string{"A=B": ""} }), "env"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.Env = map[string]string{"": "x"} }), "env"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.Env = manyEnv }), "env"},
		{TypeSessionOpened, with(TypeSessionOpened, func(p *SessionOpened) { p.Mode = "" }), "mode"},
		{TypeSessionOpened, with(TypeSessionOpened, func(p *SessionOpened) { p.TTLSeconds = 31 * 24 * 3600 }), "ttl_seconds"},
		{TypeSessionTTL, with(TypeSessionTTL, func(p *SessionTTL) { p.TTLSeconds = -1 }), "ttl_seconds"},
		{TypeSessionClose, &SessionRef{}, "session_id"},
		{TypeSessionEnded, with(TypeSessionEnded, func(p *SessionEnded) { p.Reason = strings.Repeat("r", MaxText+1) }), "reason"},
		{TypeInput, with(TypeInput, func(p *InputAction) { p.Action, p.Coordinate = ActMouseMove, nil }), "coordinate"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Cmd = "" }), "cmd"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Args = []string{"a\x00b"} }), "NUL"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Args = []string{long} }), "argument"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Args = make([]string, MaxArgs+1) }), "args"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Args = strings.Split(strings.Repeat(long[1:]+" ", 3), " ") }), "args has 393213 bytes"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Env = map[string]string{"A": long[1:], "B": ""} }), "env has 131073 bytes"},
		{TypeSessionOpen, with(TypeSessionOpen, func(p *SessionOpen) { p.Env = map[string]string{"A": long[1:], "B": ""} }), "env has 131073 bytes"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Env = map[string]string{"A": "\x00"} }), "env value"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.Cwd = strings.Repeat("d", MaxPath+1) }), "path"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.TimeoutMS = -1 }), "timeout_ms"},
		{TypeProcessStart, with(TypeProcessStart, func(p *ProcessStart) { p.WaitMS = -1 }), "wait_ms"},
		{TypeProcessStarted, &ProcessStarted{}, "pid"},
		{TypeProcessOutput, &ProcessOutput{Stream: "stdin"}, "stream"},
		{TypeProcessOutput, &ProcessOutput{Stream: "stdout", Data: make([]byte, MaxChunk+1)}, "data"},
		{TypeProcessExited, &ProcessExited{ExitCode: -2}, "exit_code"},
		{TypeProcessExited, &ProcessExited{Signal: strings.Repeat("s", 65)}, "signal"},
		{TypeProcessSignal, with(TypeProcessSignal, func(p *ProcessSignal) { p.Signal = "SIGSTOP" }), "signal"},
		{TypeProcessSignal, with(TypeProcessSignal, func(p *ProcessSignal) { p.PID = 0 }), "pid"},
		{TypeFileRead, with(TypeFileRead, func(p *FileRead) { p.Offset = -1 }), "offset"},
		{TypeFileRead, with(TypeFileRead, func(p *FileRead) { p.Length = new(int64(-1)) }), "length"},
		{TypeFileRead, with(TypeFileRead, func(p *FileRead) { p.Path = "a\x00b" }), "path"},
		{TypeFileContents, &FileContents{Size: -1}, "size"},
		{TypeFileChunk, &FileChunk{Data: make([]byte, MaxChunk+1)}, "data"},
		{TypeFileWrite, with(TypeFileWrite, func(p *FileWrite) { p.Path = strings.Repeat("p", MaxPath+1) }), "path"},
		{TypeFileStat, with(TypeFileStat, func(p *FileStat) { p.SessionID = "" }), "session_id"},
		{TypeFileStat, with(TypeFileStat, func(p *FileStat) { p.Follow = true }), "exclude each other"},
		{TypeFileStatResponse, with(TypeFileStatResponse, func(p *FileStatResponse) { p.Path = "a\x00" }), "NUL"},
		{TypeFileStatResponse, &FileStatResponse{Exists: true}, "entry"},
		{TypeFileStatResponse, &FileStatResponse{Entry: &entry}, "entry"},
		{TypeFileStatResponse, &FileStatResponse{Exists: true, Entry: &Entry{Kind: "pipe"}}, "kind"},
		{TypeFileList, with(TypeFileList, func(p *FileList) { p.Depth = 0 }), "depth"},
		{TypeFileList, with(TypeFileList, func(p *FileList) { p.Depth = 1001 }), "depth"},
		{TypeFileListResponse, &FileListResponse{Entries: make([]Entry, MaxListEntries+1)}, "entries"},
		{TypeFileListResponse, &FileListResponse{Entries: []Entry{{Kind: "file", Size: -1}}}, "size"},
		{TypeFileListResponse, &FileListResponse{Entries: []Entry{{Kind: "file", Name: "a\x00"}}}, "name"},
		{TypeFileMkdir, with(TypeFileMkdir, func(p *FilePath) { p.WaitMS = -1 }), "wait_ms"},
		{TypeFileDelete, with(TypeFileDelete, func(p *FileDelete) { p.Path = "\xff" }), "UTF-8"},
		{TypeFileMove, with(TypeFileMove, func(p *FileMove) { p.Src = "a\x00" }), "path"},
		{TypeFileMove, with(TypeFileMove, func(p *FileMove) { p.Dst = strings.Repeat("d", MaxPath+1) }), "dst"},
	} {
		if want := reflect.TypeOf(samples[c.kind]); reflect.TypeOf(c.payload) != want {
			t.Errorf("%s: %T is not its payload", c.kind, c.payload)
		}
		if err := c.payload.Validate(); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s %+.80v: error %v, want one with %q", c.kind, c.payload, err, c.reason)
		}
	}
	for kind, p := range samples {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: the sample is refused: %v", kind, err)
		}
	}
}

// Names are the person's files: whatever a file system takes is taken here,
// and it is for who shows a name to make it safe to see.
func TestNamesThatAreTaken(t *testing.T) {
	for _, name := range []string{"a\nb", "\u202etxt.exe", strings.Repeat("ü", 150), "-rf", " ", "a\\b", "…"} {
		if err := (&FilePath{SessionID: "s", Path: name}).Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
