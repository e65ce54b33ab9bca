package desklink

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"reflect"
	"testing"
)

// What comes over the link to the display is read or refused, never more of it
// than there is; and what is read is said again as it was.
func FuzzReadFrame(f *testing.F) {
	for _, h := range []head{{}, {ID: 7, Op: opShoot, Args: []byte(`{"id":"p"}`)}, {ID: 9, Plain: "the server said no"}} {
		b, err := frame(h, []byte("\xff\xd8 a picture\n"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-3])
		f.Add(append(b, b...))
	}
	f.Add(binary.BigEndian.AppendUint64(nil, 1<<63))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for range len(data)/8 + 1 {
			h, body, err := readFrame(r)
			if err != nil {
				return
			}
			again, err := frame(h, body)
			if err != nil {
				t.Fatalf("read, not said: %v", err)
			}
			same, rest, err := readFrame(bufio.NewReader(bytes.NewReader(again)))
			if err != nil || !bytes.Equal(rest, body) {
				t.Fatalf("said, not read: %v", err)
			}
			twice, err := frame(same, rest)
			if err != nil || !bytes.Equal(again, twice) {
				t.Fatalf("not the same after a round, %v:\n%q\n%q", err, again, twice)
			}
		}
		if _, _, err := readFrame(r); err != io.EOF {
			t.Fatalf("more messages than bytes, %v", err)
		}
	})
}

// What says that it is longer than may be is refused before it is waited for.
func TestFrameTooLarge(t *testing.T) {
	for _, n := range [][2]uint32{{MaxHead + 1, 0}, {2, MaxBody + 1}} {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, n[0]), n[1])
		if _, _, err := readFrame(bufio.NewReader(io.MultiReader(bytes.NewReader(b), forever{}))); err != errTooMuch {
			t.Errorf("lengths of %v: %v", n, err)
		}
	}
	if _, err := frame(head{}, make([]byte, MaxBody+1)); err != errTooMuch {
		t.Errorf("a body that is too large is sent: %v", err)
	}
	b, err := frame(head{ID: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h, body, err := readFrame(bufio.NewReader(bytes.NewReader(b))); err != nil || body != nil || !reflect.DeepEqual(h, head{ID: 1}) {
		t.Errorf("it came as %+v, %q, %v", h, body, err)
	}
}

// forever is a sender that never ends, and never says anything.
type forever struct{}

func (forever) Read(b []byte) (int, error) { return len(b), nil }
