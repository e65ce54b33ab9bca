package autogpt

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"localpc/tunnel/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	chat  = "3f0c7a54-6f2e-4f0e-9a3e-6a1de8a3c001"
	conn  = "0e4a7a0c-93c5-4b53-b0b2-6f7ad8b2c9d4"
	grant = "v1.eyJyZXZpc2lvbiI6MX0.c2lnbmF0dXJl"
)

var print64 = strings.Repeat("0a", 32)

type frame struct {
	name string
	Message
}

// samples has every message, some twice: with all that may be set, and with
// nothing set that need not be.
func samples() []frame {
	at := func(name string, t Type, p wire.Payload) frame {
		m := Message{Type: t, ID: "7d0c2f6e-1a34-4f0b-9a53-2f2f5f7c1b10", TS: 1781000000.25, Payload: p}
		if k := kinds[t]; k.dir == wire.ToHub && t != TypeHello && t != TypePong && t != TypeLLMChunk {
			m.PendingCapacity = new(3)
		}
		return frame{name: string(t) + name, Message: m}
	}
	full, bare := "", ".bare"
	where := &DirectoryRef{Ref: "r1", Name: "ana", Path: "/home/ana"}
	entry := Entry{Name: "plan & „notes“.md", Path: "/home/ana/plan & „notes“.md", IsFile: true, Size: new(int64(12)), MTime: new(1781000000.5)}
	return []frame{
		at(full, TypeHello, &Hello{ShimVersion: "0.3.0", Protocol: Version, MachineID: "5b1f2c9a-77aa-4e0e-8c51-0d9e6b7f4a21", DisplayName: "Workshop PC",
			Platform: "linux", Arch: "x86_64", ScreenResolution: &Resolution{1920, 1080}, Capabilities: List[string]{Shell, Files, ComputerUse, Browse},
			Features: List[string]{"screenshot.capture", "input.click"}, Coarse: List[string]{"screenshot", "input"}}),
		at(".data", TypeHello, &Hello{ShimVersion: "0.3.0", Protocol: Version, MachineID: "5b1f2c9a-77aa-4e0e-8c51-0d9e6b7f4a21", DisplayName: "Workshop PC",
			Platform: "linux", Arch: "x86_64", Capabilities: List[string]{Files}, AllowedRoot: new("/home/ana/project")}),
		at(full, TypeHelloAck, &HelloAck{ConnectionID: new(conn), Protocol: Version, Granted: List[string]{Files, Browse}, MaxFileSize: MaxFile, CommandTimeout: 30, MaxConcurrent: 4}),
		at(".data", TypeHelloAck, &HelloAck{SessionID: new(chat), Protocol: Version, MaxFileSize: 1, CommandTimeout: 1, MaxConcurrent: 1}),
		at(full, TypeStatus, &Status{InFlight: 1, MaxConcurrent: 4, QueueDepth: 2, AuditLogBytes: 4096, UptimeSeconds: 30.5}),
		at(full, TypePing, &Empty{}), at(full, TypePong, &Empty{}), at(full, TypeAck, &Ack{OK: true}),
		at(full, TypeRevoked, &Revoked{Reason: ReasonAnother, NewMachine: new("m-2")}),
		at(bare, TypeRevoked, &Revoked{Reason: ReasonUser}),
		at(full, TypeError, &Error{Code: CodeNotGranted, Message: "Commands are not allowed.", Details: map[string]any{"required_capability": Shell, "granted_capabilities": []string{Files}}}),
		at(bare, TypeError, &Error{Code: CodeInternal, Message: "Something went wrong."}),

		at(full, TypeDirectoryList, &DirectoryList{BrowseID: new("b1"), DirectoryRef: new("r1"), Cursor: new("c1")}),
		at(bare, TypeDirectoryList, &DirectoryList{}),
		at(full, TypeDirectory, &Directory{BrowseID: "b1", Current: where, ParentRef: new("r0"), Entries: List[DirectoryRef]{{Ref: "r2", Name: "Fotos", Path: "/home/ana/Fotos"}}, NextCursor: new("c2"), Truncated: true, ExpiresAt: 1781000300.25}),
		at(bare, TypeDirectory, &Directory{BrowseID: "b1", ExpiresAt: 1781000300}),
		at(full, TypeAttach, &Attach{SessionID: chat, BrowseID: "b1", DirectoryRef: "r2", ExpectedConnection: new(conn)}),
		at(bare, TypeAttach, &Attach{SessionID: chat, BrowseID: "b1", DirectoryRef: "r2"}),
		at(full, TypeAttached, &Binding{SessionID: chat, AllowedRoot: "/home/ana/Fotos", Fingerprint: print64, Revision: 1, RootGrant: grant}),
		at(full, TypeActivate, &Activate{SessionID: chat, Revision: 1}),
		at(full, TypeActivated, &Activated{SessionID: chat, AllowedRoot: "/home/ana/Fotos", Fingerprint: print64, Revision: 1}),
		at(full, TypeRestore, &Restore{SessionID: chat, RootGrant: grant}),
		at(full, TypeRestored, &Binding{SessionID: chat, AllowedRoot: "/home/ana/Fotos", Fingerprint: print64, Revision: 1, RootGrant: grant}),
		at(full, TypeDetach, &Detach{SessionID: chat}),

		at(full, TypeExecute, &Execute{Command: new("echo \"<&>\""), Shell: "bash", Cwd: new("/home/ana"), Timeout: new(int64(20)), Env: Map{"A": "b"}}),
		at(".argv", TypeExecute, &Execute{Argv: []string{"ls", "-l"}, Shell: "auto"}),
		at(full, TypeResult, &Result{Stdout: "out\n", Stderr: "err" + TruncationMark, ExitCode: -9, TimedOut: true, Duration: 1.25, Truncated: true}),
		at(full, TypeFileRead, &FileRead{Path: "/home/ana/a", Encoding: Base64, Format: "bytes", Offset: 10, Length: new(int64(5))}),
		at(bare, TypeFileRead, &FileRead{Path: "/home/ana/a", Encoding: UTF8, Format: "text"}),
		at(full, TypeFileContents, &FileContents{Content: "hello", Encoding: UTF8, Size: 5, Truncated: true}),
		at(full, TypeFileWrite, &FileWrite{Path: "/home/ana/a", Content: "", Encoding: UTF8, CreateParents: true}),
		at(full, TypeFileStat, &FileStat{Path: "/home/ana/a", FollowSymlinks: true}),
		at(full, TypeFileStatResponse, &FileStatResponse{Exists: true, IsFile: new(true), IsDir: new(false), IsSymlink: new(false), Size: new(int64(5)), MTime: new(1.5), CTime: new(2.0),
			Mode: new("0640"), UID: new(1000), GID: new(1000), MIMEType: new("text/plain"), Path: new("/home/ana/a")}),
		at(bare, TypeFileStatResponse, &FileStatResponse{}),
		at(full, TypeFileList, &FileList{Path: "/home/ana", Glob: new("*.md"), Recursive: true, IncludeHidden: true, MaxEntries: 10}),
		at(full, TypeFileListResponse, &FileListResponse{Entries: List[Entry]{entry, {Name: "l", Path: "/home/ana/l", IsSymlink: true}}, Truncated: true}),
		at(bare, TypeFileListResponse, &FileListResponse{}),
		at(full, TypeFileDelete, &FileDelete{Path: "/home/ana/a", Recursive: true, MissingOK: true}),
		at(full, TypeFileMove, &FileMove{Src: "/home/ana/a", Dst: "/home/ana/b", Overwrite: true}),

		at(full, TypeScreenshot, &Screenshot{Monitor: -1, Quality: 75, Region: &Rect{0, 0, 10, 10}, WindowID: new("win_1"), Format: "png"}),
		at(bare, TypeScreenshot, &Screenshot{Quality: 75, Format: "jpeg", IncludeCursor: true}),
		at(full, TypeScreenshotImage, &ScreenshotImage{Image: "aGk=", MIMEType: "image/png", Width: 10, Height: 10, Region: &Rect{0, 0, 10, 10}, DisplayScale: 1.5, LogicalSize: &Pair{7, 7}, Meta: ScreenshotMeta{Origin: Pair{-1, 2}}}),
		at(bare, TypeScreenshotImage, &ScreenshotImage{Image: "aGk=", MIMEType: "image/jpeg", Width: 10, Height: 10, DisplayScale: 1}),
		at(full, TypeInput, &Input{Action: "drag", Coordinate: &Pair{1, 2}, Text: new("t"), Key: new("ctrl+c"), Direction: new("up"), Clicks: new(1), Button: new("left"), Modifiers: []string{"shift"},
			ScrollAmount: new(3), ScrollDirection: new("left"), DurationMS: new(10), Path: []Pair{{1, 2}, {3, 4}}, Paste: true, PreserveClipboard: true}),
		at(bare, TypeInput, &Input{Action: "wait"}),
		at(full, TypeCursor, &Empty{}), at(full, TypeCursorPosition, &CursorPosition{X: -1, Y: 2}),
		at(full, TypeDisplays, &Empty{}),
		at(full, TypeDisplayInfo, &DisplayInfo{Monitors: List[Monitor]{{Primary: true, PhysicalSize: Pair{1920, 1080}, LogicalSize: Pair{1920, 1080}, Scale: 1}}}),
		at(full, TypeWindows, &Windows{AppBundleID: new("org.example"), IncludeMinimized: true, IncludeOffscreen: true}),
		at(bare, TypeWindows, &Windows{}),
		at(full, TypeWindowList, &WindowList{Windows: List[Window]{{ID: "win_1", PID: 7, AppName: new("xterm"), Title: new("sh"), Bounds: Rect{0, 0, 5, 5}, IsFocused: true}}}),
		at(full, TypeWindowFocus, &WindowFocus{WindowID: "win_1", Raise: true}),
		at(full, TypeApps, &Apps{IncludeBackground: true}),
		at(full, TypeAppList, &AppList{Apps: List[App]{{PID: 7, Name: "xterm", ExecutablePath: new("/usr/bin/xterm"), WindowCount: 1}}}),
		at(full, TypeAppLaunch, &AppLaunch{BundleID: new("org.example"), ExecutablePath: new("/usr/bin/xterm"), Args: List[string]{"-e"}, Activate: true}),
		at(bare, TypeAppLaunch, &AppLaunch{Activate: true}),
		at(full, TypeClipboardRead, &ClipboardRead{Format: "text"}),
		at(full, TypeClipboardContent, &ClipboardContent{Format: "text", Content: "ü", Size: 2}),
		at(full, TypeClipboardWrite, &ClipboardWrite{Format: "text", Content: "ü"}),
		at(full, TypePermissions, &Permissions{Permissions: List[string]{"accessibility"}}),
		at(full, TypePermissionStates, &PermissionStates{Permissions: Map{"accessibility": "granted"}}),

		at(full, TypeLLM, &LLM{Model: "llama", Messages: List[LLMMessage]{{Role: "user", Content: "hi"}}, MaxTokens: 10, Temperature: 0.5, TopP: 1, Stream: true}),
		at(full, TypeLLMChunk, &LLMChunk{Delta: "he"}),
		at(".last", TypeLLMChunk, &LLMChunk{FinishReason: new("stop")}),
		at(full, TypeLLMResponse, &LLMResponse{Content: "hello", FinishReason: new("stop"), Tokens: LLMTokens{Prompt: new(1), Completion: new(2), Total: new(3)}, Duration: 0.5}),

		at(full, TypeRecordingConsent, &Reserved{}), at(full, TypeRecordingAnswer, &Reserved{}), at(full, TypeRecordingStart, &Reserved{}),
		at(full, TypeRecordingStarted, &Reserved{}), at(full, TypeRecordingStop, &Reserved{}), at(full, TypeRecordingSummary, &Reserved{}),
		at(full, TypeRecordingFetch, &Reserved{}), at(full, TypeRecordingData, &Reserved{}), at(full, TypeRecordingReview, &Reserved{}),
		at(full, TypeRecordingApplied, &Reserved{}), at(full, TypeRecordingStep, &Reserved{}),
	}
}

// What goes over the wire is fixed: programs that are not ours read it.
func TestGoldenFrames(t *testing.T) {
	seen := map[Type]bool{}
	for _, f := range samples() {
		seen[f.Type] = true
		t.Run(f.name, func(t *testing.T) {
			dir := kinds[f.Type].dir
			got, err := Encode(f.Message, dir)
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, got, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", "golden", f.name+".json")
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
				t.Errorf("encoded as\n%s\nwant\n%s", pretty.Bytes(), want)
			}
			if err := Exact(want, dir); err != nil {
				t.Errorf("the existing other end would not take it: %v", err)
			}
			back, err := Decode(want, dir)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Encode(back, dir)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("it comes back as %s (%v)", again, err)
			}
			if _, err := Decode(want, wire.BothWays&^dir); err == nil {
				t.Error("it was taken in the other direction")
			}
		})
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("no sample of %s", kind)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	if err != nil || len(files) != len(samples()) {
		t.Errorf("%d golden files for %d samples (%v)", len(files), len(samples()), err)
	}
}

// An optional field that is missing has its default, and null is missing.
func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		kind    Type
		payload string
		want    wire.Payload
	}{
		{TypeHelloAck, `{"granted_capabilities":[]}`, &HelloAck{Protocol: "1.1", Granted: List[string]{}, MaxFileSize: 10485760, CommandTimeout: 30, MaxConcurrent: 4}},
		{TypeExecute, `{"command":"ls","shell":null,"env":null,"cwd":null,"argv":null,"timeout_seconds":null}`, &Execute{Command: new("ls"), Shell: "auto"}},
		{TypeFileRead, `{"path":"/a"}`, &FileRead{Path: "/a", Encoding: "utf-8", Format: "text"}},
		{TypeFileWrite, `{"path":"/a","content":""}`, &FileWrite{Path: "/a", Encoding: "utf-8"}},
		{TypeFileStat, `{"path":"/a"}`, &FileStat{Path: "/a", FollowSymlinks: true}},
		{TypeFileList, `{"path":"/a","max_entries":null,"new":{}}`, &FileList{Path: "/a", MaxEntries: 1000}},
		{TypeFileDelete, `{"path":"/a"}`, &FileDelete{Path: "/a"}},
		{TypeFileMove, `{"src":"/a","dst":"/b"}`, &FileMove{Src: "/a", Dst: "/b"}},
		{TypeScreenshot, `{"region":null}`, &Screenshot{Quality: 75, Format: "jpeg", IncludeCursor: true}},
		{TypeWindowFocus, `{"window_id":"w"}`, &WindowFocus{WindowID: "w", Raise: true}},
		{TypeAppLaunch, `{}`, &AppLaunch{Activate: true}},
		{TypeClipboardRead, `{}`, &ClipboardRead{Format: "text"}},
		{TypeLLM, `{"model":"m","messages":[]}`, &LLM{Model: "m", Messages: List[LLMMessage]{}, MaxTokens: 1024, TopP: 1, Stream: true}},
	} {
		m, err := Decode(frameOf(c.kind, c.payload), wire.ToMachine)
		if err != nil || !reflect.DeepEqual(m.Payload, c.want) {
			t.Errorf("%s %s: %+v, %v", c.kind, c.payload, m.Payload, err)
		}
	}
	for _, c := range []struct {
		kind    Type
		payload string
		want    wire.Payload
	}{
		{TypeHello, `{"machine_id":"m","platform":"linux","arch":"arm64","screen_resolution":[1,2,3],"capabilities":null,"computer_use_features":["input.click","telepathy"]}`,
			&Hello{Protocol: "1.0", MachineID: "m", Platform: "linux", Arch: "arm64", Features: List[string]{"input.click"}}},
		{TypeAck, `{}`, &Ack{OK: true}},
		{TypeStatus, `{"in_flight":0,"max_concurrent":4}`, &Status{MaxConcurrent: 4}},
		{TypeScreenshotImage, `{"image_base64":"","width":1,"height":1}`, &ScreenshotImage{MIMEType: "image/jpeg", Width: 1, Height: 1, DisplayScale: 1}},
	} {
		m, err := Decode(frameOf(c.kind, c.payload), wire.ToHub)
		if err != nil || !reflect.DeepEqual(m.Payload, c.want) {
			t.Errorf("%s %s: %+v, %v", c.kind, c.payload, m.Payload, err)
		}
	}
}
