package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func frameOf(kind, payload string) []byte {
	return fmt.Appendf(nil, `{"type":%q,"id":"r1","ts":1,"version":"1.0","payload":%s}`, kind, payload)
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, frame string
		id          string // what can be answered
		reason      string
	}{
		{"empty", ``, "", "JSON object"},
		{"not JSON", `hello`, "", "JSON object"},
		{"array", `[1]`, "", "JSON object"},
		{"null", `null`, "", "id must"},
		{"cut off", `{"type":"PING","id":"r1"`, "", "JSON object"},
		{"id is a number", `{"type":"PING","id":1,"payload":{}}`, "", "JSON object"},
		{"no id", `{"type":"PING","payload":{}}`, "", "id must"},
		{"id with a line break", `{"type":"PING","id":"a\nb","payload":{}}`, "", "id must"},
		{"id too long", `{"type":"PING","id":"` + strings.Repeat("x", MaxID+1) + `","payload":{}}`, "", "id must"},
		{"unknown type", string(frameOf("REBOOT", `{}`)), "r1", "unknown type"},
		{"type of the other direction", string(frameOf("HELLO", `{}`)), "r1", "does not take"},
		{"no payload", `{"type":"PING","id":"r1"}`, "r1", "must be an object"},
		{"payload null", string(frameOf("PING", `null`)), "r1", "must be an object"},
		{"payload array", string(frameOf("PING", `[]`)), "r1", "must be an object"},
		{"field of another type", string(frameOf("FILE_READ", `{"session_id":"s","path":7}`)), "r1", "path must be a string"},
		{"bytes that are no base64", string(frameOf("FILE_CHUNK", `{"data":"***"}`)), "r1", "payload:"},
		{"number too large", string(frameOf("CREDIT", `{"bytes":1e30}`)), "r1", "bytes must be"},
		{"invalid field", string(frameOf("CREDIT", `{"bytes":0}`)), "r1", "bytes must be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.frame), ToMachine)
			var fe *FrameError
			if !errors.As(err, &fe) {
				t.Fatalf("error is %v", err)
			}
			if fe.ID != c.id || !strings.Contains(fe.Reason, c.reason) {
				t.Errorf("id %q, reason %q; want id %q, reason with %q", fe.ID, fe.Reason, c.id, c.reason)
			}
			if len(fe.Error()) > 400 {
				t.Errorf("the reason is too long to show: %d bytes", len(fe.Error()))
			}
		})
	}
}

func TestDecodeBounds(t *testing.T) {
	if _, err := Decode(make([]byte, MaxFrame+1), ToHub); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("oversized frame: %v", err)
	}
	// The name of an unknown type is the sender's, and is cut before it is told.
	_, err := Decode(frameOf(strings.Repeat("X", 5000), `{}`), ToHub)
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("long type: %v", err)
	}
}

func TestDecodeIsLenient(t *testing.T) {
	m, err := Decode([]byte(`{"type":"FILE_READ","id":"r1","unknown":[1],"pending_capacity":-4,"payload":{"session_id":"s","path":"p","length":null,"new_field":{"a":1}}}`), ToMachine)
	if err != nil {
		t.Fatal(err)
	}
	p := m.Payload.(*FileRead)
	if p.Length != nil || p.Path != "p" || m.PendingCapacity != nil {
		t.Errorf("got %+v, capacity %v", p, m.PendingCapacity)
	}
}

func TestEncodeRefusesWhatTheOtherEndWould(t *testing.T) {
	for name, m := range map[string]Message{
		"no payload":      {Type: TypePing, ID: "r1"},
		"no id":           {Type: TypePing, Payload: &Empty{}},
		"invalid payload": {Type: TypeCredit, ID: "r1", Payload: &Credit{}},
		"not a number":    {Type: TypePing, ID: "r1", TS: math.NaN(), Payload: &Empty{}},
		"too large": {Type: TypeFileListResponse, ID: "r1", Payload: &FileListResponse{Entries: func() []Entry {
			list := make([]Entry, 1100)
			for i := range list {
				list[i] = Entry{Name: strings.Repeat("n", MaxPath), Path: "p", Kind: "file"}
			}
			return list
		}()}},
	} {
		if data, err := Encode(m); err == nil {
			t.Errorf("%s: encoded as %d bytes", name, len(data))
		}
	}
}

func TestReadFrame(t *testing.T) {
	whole := bytes.Repeat([]byte("x"), 100)
	if got, err := ReadFrame(iotest.OneByteReader(bytes.NewReader(whole)), 100); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("frame of the largest size: %d bytes, %v", len(got), err)
	}
	r := bytes.NewReader(whole)
	_, err := ReadFrame(r, 99)
	var fe *FrameError
	if !errors.As(err, &fe) || r.Len() != 0 {
		t.Errorf("too long: %v, %d bytes left unread", err, r.Len())
	}
	broken := errors.New("broken")
	if _, err := ReadFrame(io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(broken)), 50); !errors.Is(err, broken) {
		t.Errorf("too long and broken: %v", err)
	}
}

func TestErrorsCross(t *testing.T) {
	cause := errors.New("open /home/ann/secret: permission denied")
	for _, c := range []struct {
		err  error
		code Code
		text string
	}{
		{Errorf(CodeDenied, "Ann declined."), CodeDenied, "Ann declined."},
		{fmt.Errorf("run: %w", Wrap(cause, CodeForbidden, "The system refused %s.", "a.txt")), CodeForbidden, "The system refused a.txt."},
		{cause, CodeInternal, "Something went wrong on this computer; its log says what."},
	} {
		p := ToWire(c.err)
		if p.Code != c.code || p.Message != c.text {
			t.Errorf("%v crosses as %+v", c.err, p)
		}
		if back := FromWire(p); CodeOf(back) != c.code || back.Error() != c.text {
			t.Errorf("%v comes back as %v", c.err, back)
		}
	}
	if err := Wrap(cause, CodeForbidden, "no"); !errors.Is(err, cause) {
		t.Error("the cause is lost to the log")
	}
	if CodeOf(cause) != "" {
		t.Error("an error without a code has one")
	}
}

func fuzzDecode(f *testing.F, dir Direction) {
	for kind := range kinds {
		data, err := Encode(sample(kind))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
		for _, again := range []string{`PAYLOAD`, `pay\u006coad`} {
			f.Add([]byte(strings.TrimSuffix(string(data), "}") + `,"` + again + `":{}}`))
		}
	}
	f.Add([]byte(`{"type":"HELLO","id":"r1","payload":{"record":{"seq":-1}}}`))
	f.Add([]byte(`{"type":"FILE_READ","id":"r1","ts":1e308,"payload":{"length":-1}}`))
	f.Add([]byte("{\"type\":\"ERROR\",\"id\":\"r1\",\"payload\":{\"code\":\"X\",\"message\":\"\xff\\u0000\"}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data, dir)
		if err != nil {
			var fe *FrameError
			if !errors.As(err, &fe) {
				t.Fatalf("error is %T", err)
			}
			if fe.ID != "" && checkID("id", fe.ID) != nil {
				t.Fatalf("the id to answer is not valid: %q", fe.ID)
			}
			return
		}
		if kinds[m.Type].dir&dir == 0 {
			t.Fatalf("%s was taken in the wrong direction", m.Type)
		}
		if err := m.Payload.Validate(); err != nil {
			t.Fatalf("decoded, not valid: %v", err)
		}
		// Both ways to read a frame read the same, where it has one payload: names
		// count in either case, and written with escapes too.
		short, read := decodeKnown(data)
		long, err := decodeAny(data, dir)
		one := bytes.Count(bytes.ToLower(data), []byte("payload")) == 1 && !bytes.Contains(data, []byte(`\`))
		if err != nil || read && one && !reflect.DeepEqual(short, long) {
			t.Fatalf("in one pass %+v, in two %+v, %v", short, long, err)
		}
		// What one end takes it can say again, and it means the same.
		if m.TS == 0 {
			m.TS = 1
		}
		once, err := Encode(m)
		if err != nil {
			if len(data) > MaxFrame/8 {
				return // escaped, it may be too large
			}
			t.Fatalf("decoded, not encoded: %v", err)
		}
		again, err := Decode(once, dir)
		if err != nil {
			t.Fatalf("encoded, not decoded: %v", err)
		}
		twice, err := Encode(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not the same after a round (%v):\n%s\n%s", err, once, twice)
		}
	})
}

func FuzzDecodeToMachine(f *testing.F) { fuzzDecode(f, ToMachine) }
func FuzzDecodeToHub(f *testing.F)     { fuzzDecode(f, ToHub) }
