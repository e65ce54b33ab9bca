package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	hash    = strings.Repeat("0a", 32)
	session = "i0123456789abcdef0123"
	entry   = Entry{Name: "b.txt", Path: "/home/user/a/b.txt", Kind: "file", Size: 5, Mode: 0o644, Owner: "ann", Group: "users", MTime: 1767225600123}
	looked  = Entry{Name: "b.txt", Path: "/home/user/a/b.txt", Kind: "file", Size: 5, Mode: 0o644, Owner: "ann", Group: "users", MTime: 1767225600123, CTime: 1767225600124, UID: new(1000), GID: new(0), Metadata: map[string]string{"source": "x"}}
	link    = Entry{Name: "l", Path: "l", Kind: "other", Size: 3, Mode: 0o777, MTime: 1767225600123, LinkTarget: "a/b"}
)

// samples has one message of each type, with every field set.
var samples = map[Type]Payload{
	TypeHello: &Hello{Software: "localpc/1.0.0", Protocol: Version, MachineID: "m-1", DisplayName: "Mac-1 „grün“", Platform: "linux", Arch: "amd64",
		Capabilities: []string{"files", "shell"}, Sessions: []string{session}, Record: &RecordHead{Seq: 7, Hash: hash}},
	TypeHelloAck:  &HelloAck{Protocol: Version, ConnectionID: "c-1", HubName: "This computer", Account: "Ana", Bulk: true},
	TypeBulk:      &Empty{},
	TypeAuthorize: &Authorize{Token: "lpa_c0ffee"},
	TypeStatus:    &Status{InFlight: 1, MaxConcurrent: 32, Waiting: 2, UptimeSeconds: 30.5, Record: &RecordHead{Seq: 8, Hash: hash}},
	TypePing:      &Empty{}, TypePong: &Empty{}, TypeCancel: &Empty{}, TypeAck: &Empty{},
	TypeCredit: &Credit{Bytes: 262144},
	TypeError:  &ErrorPayload{Code: CodeDenied, Message: "Ann declined: run \"ls\"."},

	TypeSessionOpen: &SessionOpen{SessionID: session, PrincipalID: "k1", PrincipalName: "Claude", Agent: "e2b-js-sdk/2.51.0", Title: "Sort my photos",
		Folder: "~/Photos", TTLSeconds: 3600, Env: map[string]string{"LANG": "C.UTF-8"}, WaitMS: 50000},
	TypeSessionOpened: &SessionOpened{Folder: "/home/ann/Photos", Mode: "work", TTLSeconds: 3600},
	TypeSessionTTL:    &SessionTTL{SessionID: session, TTLSeconds: 60},
	TypeSessionClose:  &SessionRef{SessionID: session},
	TypeSessionEnded:  &SessionEnded{SessionID: session, Reason: "The person ended it."},
	TypeSessionPause:  &SessionRef{SessionID: session},
	TypeSessionResume: &SessionRef{SessionID: session},

	TypeMetrics: &Metrics{SessionID: session, Start: 1767225600, End: 1767229200},
	TypeMetricsResponse: &MetricsResponse{Samples: []Sample{{Time: 1767225600, CPUs: 8, CPUPercent: 12.5, MemTotal: 16 << 30, MemUsed: 4 << 30, MemCache: 2 << 30,
		DiskTotal: 512 << 30, DiskUsed: 100 << 30}}},

	TypeProcessStart: &ProcessStart{SessionID: session, Cmd: "/bin/bash", Args: []string{"-l", "-c", "echo \"<&>\"\u2028"}, Env: map[string]string{"A": "b"},
		Cwd: "sub", TimeoutMS: 60000, Stdin: true, PTY: &TerminalSize{Cols: 80, Rows: 24}, WaitMS: 50000},
	TypeProcessStarted: &ProcessStarted{PID: 4711},
	TypeProcessOutput:  &ProcessOutput{Stream: "stderr", Data: []byte{0, 255, 'x', '\n'}},
	TypeProcessExited:  &ProcessExited{ExitCode: -1, Signal: "killed", TimedOut: true, Truncated: true, Running: 2},
	TypeProcessSignal:  &ProcessSignal{SessionID: session, PID: 4711, Signal: "SIGKILL"},
	TypeProcessInput:   &ProcessInput{Data: []byte("yes\n"), End: true},
	TypeProcessResize:  &TerminalSize{Cols: 132, Rows: 43},

	TypeFileRead:         &FileRead{SessionID: session, Path: "a/b.txt", Offset: 10, Length: new(int64(0)), WaitMS: 50000},
	TypeFileContents:     &FileContents{Size: 100, Length: 90, MTime: 1767225600123},
	TypeFileChunk:        &FileChunk{Data: []byte("hello"), Last: true},
	TypeFileWrite:        &FileWrite{SessionID: session, Path: "/home/user/a/b.txt", NoParents: true, Metadata: map[string]string{"source": "héllo"}, WaitMS: 50000},
	TypeFileStat:         &FileStat{SessionID: session, Path: "~", NoFollow: true, WaitMS: 50000},
	TypeFileStatResponse: &FileStatResponse{Exists: true, Entry: &looked},
	TypeFileList:         &FileList{SessionID: session, Path: ".", Depth: 2, WaitMS: 50000},
	TypeFileListResponse: &FileListResponse{Entries: []Entry{entry, link}},
	TypeFileMkdir:        &FilePath{SessionID: session, Path: "new/dir", WaitMS: 50000},
	TypeFileDelete:       &FileDelete{SessionID: session, Path: "old", OnlyEmpty: true, MustExist: true, WaitMS: 50000},
	TypeFileMove:         &FileMove{SessionID: session, Src: "a", Dst: "b", NoReplace: true, NoParents: true, WaitMS: 50000},

	TypeFileWatch:          &FileWatch{SessionID: session, Path: "src", Recursive: true, Entries: true, WaitMS: 50000},
	TypeFileWatching:       &Empty{},
	TypeFileChanges:        &FileChanges{Changes: []FileChange{{Op: "create", Name: "a/b.txt", Entry: &entry}, {Op: "remove", Name: "c"}}, Overflow: true},
	TypeFileSearch:         &FileSearch{SessionID: session, Path: ".", Name: "**/*.go", Text: "func (", Regexp: true, IgnoreCase: true, Max: 100, WaitMS: 50000},
	TypeFileSearchResponse: &FileSearchResponse{Hits: []Hit{{Path: "/home/user/a.go", Kind: "file", Line: 3, Text: "func main() {"}, {Path: "/home/user/b", Kind: "dir"}}, More: true},
}

func sample(t Type) Message {
	m := Message{Type: t, ID: "0b7c9f0e-1111-4222-8333-444455556666", TS: 1767225600.25, Payload: samples[t]}
	if kinds[t].dir&ToHub != 0 {
		m.PendingCapacity = new(31)
	}
	return m
}

func direction(t Type) Direction {
	if kinds[t].dir&ToMachine != 0 {
		return ToMachine
	}
	return ToHub
}

// What goes over the wire is fixed: an end of another version reads it.
func TestGoldenFrames(t *testing.T) {
	for kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			if samples[kind] == nil {
				t.Fatal("no sample of this type")
			}
			m := sample(kind)
			got, err := Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, got, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", "golden", string(kind)+".json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(pretty.Bytes(), want) {
				t.Errorf("got\n%s\nwant\n%s", pretty.Bytes(), want)
			}
			back, err := Decode(want, direction(kind))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, m) {
				t.Errorf("read back\n%+v\nwant\n%+v", back.Payload, m.Payload)
			}
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(kinds) {
		t.Errorf("%d golden files for %d types", len(files), len(kinds))
	}
}

func TestDirections(t *testing.T) {
	for kind, k := range kinds {
		data, err := Encode(sample(kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []Direction{ToMachine, ToHub} {
			_, err := Decode(data, dir)
			if takes := k.dir&dir != 0; takes != (err == nil) {
				t.Errorf("%s in direction %d: error %v", kind, dir, err)
			}
		}
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		request, reply Type
		want           bool
	}{
		{TypeProcessStart, TypeProcessStarted, true},
		{TypeProcessStart, TypeError, true},
		{TypeFileWrite, TypeCredit, true},
		{TypeFileRead, TypeProcessExited, false},
		{TypeSessionOpen, TypeAck, false},
		{TypeStatus, TypeAck, false},
	} {
		if got := Replies(c.request, c.reply); got != c.want {
			t.Errorf("Replies(%s, %s) = %v", c.request, c.reply, got)
		}
	}
	// Every request can end.
	for kind, k := range kinds {
		if len(k.replies) == 0 {
			continue
		}
		ends := false
		for _, r := range k.replies {
			ends = ends || Terminal(r)
		}
		if !ends {
			t.Errorf("no reply ends %s", kind)
		}
	}
	if !Terminal(TypeError) || Terminal(TypeProcessOutput) || Terminal(TypeCredit) {
		t.Error("terminal: ERROR is, PROCESS_OUTPUT and CREDIT are not")
	}
}
