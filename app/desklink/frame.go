package desklink

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// Limits of one message on the link to hands, in bytes: of its head, which is
// JSON, and of what follows it as it is (a picture, a clipboard's text).
const (
	MaxHead = 8 << 20
	MaxBody = 32 << 20
)

// head is the first part of a message. Requests and "cancel" go down, answers
// and events up; an answer has the ID of its request and no Op.
type head struct {
	ID   uint64          `json:"id,omitempty"`
	Op   string          `json:"op,omitempty"`
	Args json.RawMessage `json:"args,omitempty"` // of a request, or what it gave
	// Error is what a client is to learn, Plain any other failure.
	Error *wire.ErrorPayload `json:"error,omitempty"`
	Plain string             `json:"plain,omitempty"`
	Event *hands.Event       `json:"event,omitempty"`
}

// The requests, one for each method of hands.Hands.
const (
	opAbilities = "abilities"
	opLayout    = "layout"
	opShoot     = "shoot"
	opAct       = "act"
	opCursor    = "cursor"
	opWindows   = "windows"
	opFocus     = "focus"
	opRead      = "read-clipboard"
	opWrite     = "write-clipboard"
	opControl   = "control"
	opRelease   = "release"
	opTarget    = "target"
	opHits      = "hits"
	opCancel    = "cancel" // ends the request of the same ID; has no answer
)

// errTooMuch is a message above its limits.
var errTooMuch = errors.New("a message on the link to the display is too large")

// frame is head and body as they are sent: the lengths of both, four bytes
// each, the head, the body.
func frame(h head, body []byte) ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	if len(b) > MaxHead || len(body) > MaxBody {
		return nil, errTooMuch
	}
	out := make([]byte, 8, 8+len(b)+len(body))
	binary.BigEndian.PutUint32(out, uint32(len(b)))
	binary.BigEndian.PutUint32(out[4:], uint32(len(body)))
	return append(append(out, b...), body...), nil
}

// readFrame is the inverse of frame; io.EOF at the end between two messages.
func readFrame(r *bufio.Reader) (h head, body []byte, err error) {
	var n [8]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return head{}, nil, err
	}
	size, rest := binary.BigEndian.Uint32(n[:]), binary.BigEndian.Uint32(n[4:])
	if size > MaxHead || rest > MaxBody {
		return head{}, nil, errTooMuch
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return head{}, nil, fmt.Errorf("half a message: %w", err)
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return head{}, nil, fmt.Errorf("a message that can't be read: %w", err)
	}
	if rest > 0 {
		body = make([]byte, rest)
		if _, err := io.ReadFull(r, body); err != nil {
			return head{}, nil, fmt.Errorf("half a message: %w", err)
		}
	}
	return h, body, nil
}

// frameWriter sends frames, each whole.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (f *frameWriter) send(h head, body []byte) error {
	b, err := frame(h, body)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.w.Write(b)
	return err
}

// shotHead is a hands.Shot without its file. Listed says that its windows were
// listed, which no list of none would.
type shotHead struct {
	hands.Shot
	Listed bool `json:"listed"`
}
