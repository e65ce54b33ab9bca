package autogpt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"localpc/tunnel/wire"
)

func frameOf(kind Type, payload string) []byte {
	return fmt.Appendf(nil, `{"type":%q,"id":"r1","ts":1,"payload":%s}`, kind, payload)
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, frame string
		dir         wire.Direction
		id          string // what can be answered
		rule        int
		reason      string
	}{
		{"empty", ``, wire.ToHub, "", RuleJSON, "not JSON"},
		{"not JSON", `hello`, wire.ToHub, "", RuleJSON, "not JSON"},
		{"array", `[1]`, wire.ToHub, "", RuleJSON, "object"},
		{"null", `null`, wire.ToHub, "", RuleJSON, "object"},
		{"no type", `{"id":"r1","payload":{}}`, wire.ToHub, "", RuleType, "type must"},
		{"no id", `{"type":"PONG","payload":{}}`, wire.ToHub, "", RuleShape, "id must"},
		{"empty id", `{"type":"PONG","id":"","payload":{}}`, wire.ToHub, "", RuleShape, "id must"},
		{"id is a number", `{"type":"PONG","id":1,"payload":{}}`, wire.ToHub, "", RuleShape, "id must"},
		{"id too long", `{"type":"PONG","id":"` + strings.Repeat("x", MaxID+1) + `","payload":{}}`, wire.ToHub, "", RuleShape, "id must"},
		{"unknown type", string(frameOf("REBOOT", `{}`)), wire.ToHub, "r1", RuleType, "unknown type"},
		{"the hub's own type", string(frameOf("PING", `{}`)), wire.ToHub, "r1", RuleType, "does not take"},
		{"a reply to the machine", string(frameOf("ACK", `{}`)), wire.ToMachine, "r1", RuleType, "does not take"},
		{"no payload", `{"type":"PONG","id":"r1"}`, wire.ToHub, "r1", RuleShape, "must be an object"},
		{"payload null", string(frameOf("PONG", `null`)), wire.ToHub, "r1", RuleShape, "must be an object"},
		{"payload array", string(frameOf("PONG", `[]`)), wire.ToHub, "r1", RuleShape, "must be an object"},
		{"required field missing", string(frameOf("FILE_WRITE", `{"path":"/a"}`)), wire.ToMachine, "r1", 0, "content is missing"},
		{"required field null", string(frameOf("FILE_WRITE", `{"path":"/a","content":null}`)), wire.ToMachine, "r1", 0, "content is missing"},
		{"field of another type", string(frameOf("FILE_READ", `{"path":7}`)), wire.ToMachine, "r1", 0, "path must not be a number"},
		{"a part of a number", string(frameOf("FILE_READ", `{"path":"/a","offset":1.5}`)), wire.ToMachine, "r1", 0, "offset"},
		{"array too long", string(frameOf("INPUT_ACTION", `{"action":"left_click","coordinate":[1,2,3]}`)), wire.ToMachine, "r1", 0, "exactly 2"},
		{"array too short", string(frameOf("SCREENSHOT_REQUEST", `{"region":[1,2,3]}`)), wire.ToMachine, "r1", 0, "exactly 4"},
		{"null in an array", string(frameOf("INPUT_ACTION", `{"action":"left_click","coordinate":[1,null]}`)), wire.ToMachine, "r1", 0, "exactly 2"},
		{"unknown value", string(frameOf("FILE_READ", `{"path":"/a","encoding":"latin-1"}`)), wire.ToMachine, "r1", 0, "encoding"},
		{"negative", string(frameOf("FILE_READ", `{"path":"/a","offset":-1}`)), wire.ToMachine, "r1", 0, "offset"},
		{"no length", string(frameOf("FILE_READ", `{"path":"/a","length":0}`)), wire.ToMachine, "r1", 0, "length"},
		{"no time", string(frameOf("EXECUTE_COMMAND", `{"command":"ls","timeout_seconds":0}`)), wire.ToMachine, "r1", 0, "timeout_seconds"},
		{"limit of nothing", string(frameOf("HELLO_ACK", `{"granted_capabilities":[],"max_concurrent":0}`)), wire.ToMachine, "r1", 0, "positive"},
		{"no revision", string(frameOf("ACTIVATE_SESSION", `{"session_id":"s","revision":0}`)), wire.ToMachine, "r1", 0, "revision"},
		{"session with a blank", string(frameOf("DETACH_SESSION", `{"session_id":"a b"}`)), wire.ToMachine, "r1", 0, "session_id"},
		{"folder without its browse", string(frameOf("DIRECTORY_LIST_REQUEST", `{"directory_ref":"r"}`)), wire.ToMachine, "r1", 0, "go together"},
		{"browse without its folder", string(frameOf("DIRECTORY_LIST_REQUEST", `{"browse_id":"b","cursor":"c"}`)), wire.ToMachine, "r1", 0, "go together"},
		{"page too long", string(frameOf("DIRECTORY_LIST_RESPONSE", `{"browse_id":"b","expires_at":1,"entries":[`+strings.Repeat(`{"directory_ref":"r","name":"n","path":"/n"},`, 200)+`{"directory_ref":"r","name":"n","path":"/n"}]}`)), wire.ToHub, "r1", 0, "201"},
		{"fingerprint in capitals", string(frameOf("SESSION_ACTIVATED", `{"session_id":"s","allowed_root":"/a","revision":1,"fingerprint":"`+strings.Repeat("A", 64)+`"}`)), wire.ToHub, "r1", 0, "fingerprint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.frame), c.dir)
			var fe *FrameError
			if !errors.As(err, &fe) {
				t.Fatalf("error is %v", err)
			}
			if fe.ID != c.id || fe.Rule != c.rule || !strings.Contains(fe.Reason, c.reason) {
				t.Errorf("id %q, rule %d, reason %q; want id %q, rule %d, reason with %q", fe.ID, fe.Rule, fe.Reason, c.id, c.rule, c.reason)
			}
			if len(fe.Error()) > 300 {
				t.Errorf("the reason is too long to show: %d bytes", len(fe.Error()))
			}
		})
	}
	if _, err := Decode(make([]byte, MaxFrame+1), wire.ToHub); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("oversized frame: %v", err)
	}
}

func TestDecodeIsLenient(t *testing.T) {
	m, err := Decode([]byte(`{"type":"FILE_READ","id":"r 1/ü","ts":"now","version":7,"unknown":[1],"pending_capacity":2,"payload":{"path":"p","length":null,"new_field":{"a":1}}}`), wire.ToMachine)
	if err != nil {
		t.Fatal(err)
	}
	if p := m.Payload.(*FileRead); p.Length != nil || p.Path != "p" || m.PendingCapacity != nil || m.ID != "r 1/ü" {
		t.Errorf("got %+v, %+v", m, p)
	}
	for raw, want := range map[string]int{`3`: 3, `-1`: -1, `1.5`: -1, `"3"`: -1, `null`: -1} {
		m, err := Decode(fmt.Appendf(nil, `{"type":"ACK","id":"r1","pending_capacity":%s,"payload":{}}`, raw), wire.ToHub)
		if err != nil || (m.PendingCapacity == nil) != (want < 0) || m.PendingCapacity != nil && *m.PendingCapacity != want {
			t.Errorf("pending_capacity %s: %v, %v", raw, m.PendingCapacity, err)
		}
	}
}

func TestExactRefuses(t *testing.T) {
	for _, c := range []struct {
		name, frame string
		dir         wire.Direction
		reason      string
	}{
		{"no ts", `{"type":"PING","id":"r1","payload":{}}`, wire.ToMachine, "no ts"},
		{"ts as text", `{"type":"PING","id":"r1","ts":"1","payload":{}}`, wire.ToMachine, "ts is not"},
		{"unknown field beside", `{"type":"PING","id":"r1","ts":1,"trace":"x","payload":{}}`, wire.ToMachine, `"trace"`},
		{"unknown field within", string(frameOf("FILE_STAT", `{"path":"/a","mode":"x"}`)), wire.ToMachine, `"mode"`},
		{"unknown field further in", string(frameOf("LOCAL_LLM_COMPLETION", `{"model":"m","messages":[{"role":"user","content":"c","name":"n"}]}`)), wire.ToMachine, `"name"`},
		{"null where none may stand", string(frameOf("FILE_STAT", `{"path":"/a","follow_symlinks":null}`)), wire.ToMachine, "must not be null"},
		{"another type", string(frameOf("EXECUTE_COMMAND", `{"command":"ls","env":{"A":1}}`)), wire.ToMachine, "env"},
		{"raise misspelt", string(frameOf("WINDOW_FOCUS", `{"window_id":"w","raise_":true}`)), wire.ToMachine, "raise_"},
		{"capacity from a hub", `{"type":"PING","id":"r1","ts":1,"pending_capacity":1,"payload":{}}`, wire.ToMachine, "pending_capacity"},
		{"default left out by a machine", `{"type":"ACK","id":"r1","ts":1,"version":"1.1","pending_capacity":1,"payload":{}}`, wire.ToHub, "ok is missing"},
		{"capacity left out by a machine", `{"type":"PONG","id":"r1","ts":1,"version":"1.1","payload":{}}`, wire.ToHub, "pending_capacity"},
		{"version left out by a machine", `{"type":"PONG","id":"r1","ts":1,"pending_capacity":null,"payload":{}}`, wire.ToHub, "version"},
		{"null left out by a machine", `{"type":"ERROR","id":"r1","ts":1,"version":"1.1","pending_capacity":1,"payload":{"code":"X","message":"m","fatal":false}}`, wire.ToHub, "details is missing"},
	} {
		if err := Exact([]byte(c.frame), c.dir); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v; want %q", c.name, err, c.reason)
		}
		if _, err := Decode([]byte(c.frame), c.dir); err != nil && c.name != "another type" {
			t.Errorf("%s: Decode must take it: %v", c.name, err)
		}
	}
	for _, frame := range []string{`{"type":"EXECUTE_COMMAND","id":"r1","ts":1,"payload":{"command":"ls"}}`,
		`{"type":"HELLO_ACK","id":"r1","ts":1,"version":"1.0","payload":{"session_id":null,"connection_id":"c","granted_capabilities":[]}}`} {
		if err := Exact([]byte(frame), wire.ToMachine); err != nil {
			t.Errorf("the companion takes %s: %v", frame, err)
		}
	}
}

func TestEncodeRefusesWhatTheOtherEndWould(t *testing.T) {
	for name, c := range map[string]struct {
		m   Message
		dir wire.Direction
	}{
		"no payload":            {Message{Type: TypePing, ID: "r1"}, wire.ToMachine},
		"no id":                 {Message{Type: TypePing, Payload: &Empty{}}, wire.ToMachine},
		"another direction":     {Message{Type: TypePing, ID: "r1", Payload: &Empty{}}, wire.ToHub},
		"payload of another":    {Message{Type: TypeFileRead, ID: "r1", Payload: &FileStat{Path: "/a"}}, wire.ToMachine},
		"invalid payload":       {Message{Type: TypeActivate, ID: "r1", Payload: &Activate{SessionID: "s"}}, wire.ToMachine},
		"unknown type":          {Message{Type: "REBOOT", ID: "r1", Payload: &Empty{}}, wire.ToMachine},
		"root of control chars": {Message{Type: TypeHello, ID: "r1", Payload: &Hello{Protocol: Version, MachineID: "m", Platform: "linux", Arch: "arm64", AllowedRoot: new("/a\nb")}}, wire.ToHub},
	} {
		if data, err := Encode(c.m, c.dir); err == nil {
			t.Errorf("%s: encoded as %s", name, data)
		}
	}
	_, err := Encode(Message{Type: TypeFileContents, ID: "r1", Payload: &FileContents{Content: strings.Repeat("\x01", MaxFrame/6), Encoding: UTF8}}, wire.ToHub)
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("a reply over 16 MiB: %v", err)
	}
	// What may be read at most fits, whatever it is made of.
	for _, content := range []string{strings.Repeat("\x01", MaxText), strings.Repeat("<", MaxText)} {
		if _, err := Encode(Message{Type: TypeFileContents, ID: "r1", Payload: &FileContents{Content: content, Encoding: UTF8}}, wire.ToHub); err != nil {
			t.Error(err)
		}
	}
}

func TestRepliesAndRights(t *testing.T) {
	for kind, k := range kinds {
		if IsRequest(kind) != (k.dir == wire.ToMachine && kind != TypeHelloAck && kind != TypeRevoked) {
			t.Errorf("%s: request is %v", kind, IsRequest(kind))
		}
		for _, r := range k.replies {
			if kinds[r].dir != wire.ToHub || !Replies(kind, r) || !Replies(kind, TypeError) || Replies(kind, TypeHello) {
				t.Errorf("%s is answered by %s", kind, r)
			}
		}
		if Control(kind) != (CapabilityOf(kind) == Browse) {
			t.Errorf("%s is of control: %v", kind, Control(kind))
		}
	}
	if Replies(TypeFileRead, TypeAck) || !Terminal(TypeError) || Terminal(TypeLLMChunk) || Terminal(TypeStatus) {
		t.Error("replies are mixed up")
	}
	if Harmless(TypeExecute) || Harmless(TypeFileWrite) || !Harmless(TypeFileRead) || !Harmless(TypeScreenshot) {
		t.Error("what may be sent twice is mixed up")
	}
}

func TestErrorsCross(t *testing.T) {
	cause := errors.New("open /home/ana/secret: permission denied")
	for _, c := range []struct {
		err  error
		code wire.Code
		text string
	}{
		{&Detailed{Code: CodeOverloaded, Message: "Busy.", Details: map[string]any{"max_concurrent": 4}}, CodeOverloaded, "Busy."},
		{fmt.Errorf("run: %w", wire.Wrap(cause, CodePathNotFound, "Nothing is there.")), CodePathNotFound, "Nothing is there."},
		{cause, CodeInternal, "Something went wrong on this computer; its log says what."},
	} {
		p := FromError(c.err)
		if p.Code != c.code || p.Message != c.text || p.Fatal {
			t.Errorf("%v crosses as %+v", c.err, p)
		}
		if back := ToError(p); CodeOf(back) != c.code || back.Error() != c.text {
			t.Errorf("%v comes back as %v", c.err, back)
		}
	}
	if CodeOf(cause) != "" {
		t.Error("an error without a code has one")
	}
}

func fuzzDecode(f *testing.F, dir wire.Direction) {
	for _, s := range samples() {
		if kinds[s.Type].dir != dir {
			continue
		}
		data, err := Encode(s.Message, dir)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(`{"type":"HELLO","id":"r1","payload":{"machine_id":"m","platform":"linux","arch":"arm64","screen_resolution":"x"}}`))
	f.Add([]byte(`{"type":"FILE_READ","id":"r1","ts":1e308,"payload":{"path":"\ud800","length":-1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data, dir)
		if err != nil {
			var fe *FrameError
			if !errors.As(err, &fe) {
				t.Fatalf("error is %T", err)
			}
			if Exact(data, dir) == nil {
				t.Fatal("exact, not decoded")
			}
			return
		}
		_ = Exact(data, dir)
		if kinds[m.Type].dir != dir {
			t.Fatalf("%s was taken in the wrong direction", m.Type)
		}
		if err := m.Payload.Validate(); err != nil {
			t.Fatalf("decoded, not valid: %v", err)
		}
		// What one end takes it can say again, exactly, and it means the same.
		if m.TS == 0 {
			m.TS = 1
		}
		once, err := Encode(m, dir)
		if err != nil {
			if len(data) > MaxFrame/8 {
				return // escaped, it may be too large
			}
			t.Fatalf("decoded, not encoded: %v", err)
		}
		if err := Exact(once, dir); err != nil {
			t.Fatalf("encoded, not exact: %v\n%s", err, once)
		}
		again, err := Decode(once, dir)
		if err != nil {
			t.Fatalf("encoded, not decoded: %v", err)
		}
		twice, err := Encode(again, dir)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not the same after a round (%v):\n%s\n%s", err, once, twice)
		}
	})
}

func FuzzDecodeToMachine(f *testing.F) { fuzzDecode(f, wire.ToMachine) }
func FuzzDecodeToHub(f *testing.F)     { fuzzDecode(f, wire.ToHub) }
