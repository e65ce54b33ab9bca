// Package autogpt is the words of AutoGPT's local executor protocol 1.1, for
// both ends of the tunnel: step 1 turns a chat's request into one of these
// messages, step 2 decodes and validates it, step 6 sends the reply. It holds
// every message, limit, close code, error code and validator of that profile.
//
// The rule is: emit strictly, accept leniently. Decode ignores unknown fields,
// fills in the defaults of missing optional ones, and takes null as missing.
// Encode writes exactly the fields of the protocol, and from the machine every
// one of them, nulls and defaults too. Exact tells whether a frame is what the
// existing other end demands.
package autogpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"localpc/tunnel/wire"
)

// Version is the only version of the protocol spoken here.
const Version = "1.1"

// Path is where a hub accepts control connections; a data connection's path is
// this, a slash, and the percent-encoded id of the chat.
const Path = "/ws/local-executor"

// How a machine signs in: a public client, without a secret, that listens for
// the answer at http://localhost:PORT/callback, on the first port that is free.
const (
	ClientID  = "autogpt-local-executor"
	Scope     = "USE_TOOLS"
	FirstPort = 41899
	LastPort  = 41910
)

// Limits of the protocol. Sizes are bytes after decompression.
const (
	MaxFrame   = 16 << 20 // one frame, both ways
	MaxHello   = 64 << 10
	MaxFile    = 10 << 20 // max_file_size_bytes where the hub names none
	MaxText    = 2785280  // text in one reply: a byte may become six in JSON
	MaxBase64  = 12533760 // raw bytes in one reply as base64
	MaxID      = 1024     // correlation ids; the protocol names no bound
	MaxSession = 256      // a chat's id at the machine
	MaxPage    = 200      // entries in one directory page
	MaxRef     = 256      // browse_id, directory_ref, cursor
	MaxName    = 1024     // a directory entry's name
	MaxPath    = 32767    // a path in a directory entry or a binding, in characters
	MaxRoot    = 4096     // allowed_root in HELLO, in characters
	MaxGrant   = 131072   // root_grant
	MaxReason  = 123      // bytes of a close reason (RFC 6455)
	MaxEntries = 10000    // of FILE_LIST, here
	Concurrent = 4        // max_concurrent where the hub names none

	CommandTimeout = 30 * time.Second // command_timeout_seconds where the hub names none
	// CommandLimit lets killing and draining end before the hub gives up.
	CommandLimit = 23 * time.Second

	HelloTimeout = 10 * time.Second // for HELLO, and for HELLO_ACK
	Heartbeat    = 20 * time.Second // WebSocket ping from the machine
	PongTimeout  = 10 * time.Second
	StatusEvery  = 30 * time.Second
	DataWait     = 30 * time.Second // how long a hub waits for a data reply
	ControlWait  = 10 * time.Second // for a control reply
	DetachWait   = 5 * time.Second  // for the ACK of DETACH_SESSION
	LateFor      = 15 * time.Minute // a reply that comes later than this is a breach
)

// Close codes.
const (
	CloseBadHello     = 4400
	CloseUnauthorized = 4401
	CloseForbidden    = 4403
	CloseHelloTimeout = 4408
	CloseVersion      = 4426
	CloseReplaced     = 4427 // a newer connection took over
	CloseRevoked      = 4428
	CloseShutdown     = 4429
	CloseInternal     = 4500
)

// Type names a message. The values are serialised.
type Type string

// Message is one decoded frame.
type Message struct {
	Type Type
	ID   string
	// TS is the sender's Unix time in seconds; informative only.
	TS float64
	// PendingCapacity is how many more requests the machine admits; nil means
	// no signal. Machine to hub only.
	PendingCapacity *int
	Payload         wire.Payload
}

type envelope struct {
	Type    Type            `json:"type"`
	ID      string          `json:"id"`
	TS      float64         `json:"ts"`
	Version string          `json:"version"`
	Payload json.RawMessage `json:"payload"`
}

// machineEnvelope is what a machine writes: pending_capacity always stands there.
type machineEnvelope struct {
	Type            Type            `json:"type"`
	ID              string          `json:"id"`
	TS              float64         `json:"ts"`
	Version         string          `json:"version"`
	PendingCapacity *int            `json:"pending_capacity"`
	Payload         json.RawMessage `json:"payload"`
}

// Rules of the protocol's section 11. For a breach of one a strict hub drops the
// connection.
const (
	RuleJSON    = 1 // at most MaxFrame bytes of JSON text, which is an object
	RuleType    = 2 // of a type that the machine sends, HELLO once
	RuleShape   = 3 // id is a string and not empty, payload is an object
	RuleUnasked = 4 // a reply is to an outstanding request
	RuleOther   = 5 // and of a type that answers it
	RuleBacklog = 6 // replies that nobody has taken stay few
)

// FrameError is a frame that could not be read. ID and Type are set when they
// could be read.
type FrameError struct {
	ID     string
	Type   Type
	Reason string
	// Rule is the rule of the protocol's section 11 that was broken, for which a
	// hub drops the connection: RuleJSON to RuleShape. 0: only the one request
	// fails.
	Rule int
	// NotJSON tells the one breach that HELLO has another close code for.
	NotJSON bool
}

func (e *FrameError) Error() string {
	if e.Type != "" {
		return fmt.Sprintf("frame %s: %s", e.Type, e.Reason)
	}
	return "frame: " + e.Reason
}

// Decode reads and validates one frame that travels in direction dir. The
// error is a *FrameError.
func Decode(data []byte, dir wire.Direction) (Message, error) {
	fail := func(id string, t Type, rule int, format string, args ...any) (Message, error) {
		return Message{}, &FrameError{ID: id, Type: clip(t), Rule: rule, Reason: fmt.Sprintf(format, args...)}
	}
	if len(data) > MaxFrame {
		return fail("", "", RuleJSON, "%d bytes, at most %d are allowed", len(data), MaxFrame)
	}
	// Every field by itself: a peer's odd ts or version spoils nothing.
	var env struct {
		Type, ID, TS, Payload json.RawMessage
		Pending               json.RawMessage `json:"pending_capacity"`
	}
	if err := json.Unmarshal(data, &env); err != nil && !json.Valid(data) {
		return Message{}, &FrameError{Rule: RuleJSON, NotJSON: true, Reason: "not JSON"}
	} else if err != nil || !isObject(data) {
		return fail("", "", RuleJSON, "not an object")
	}
	var m Message
	if json.Unmarshal(env.Type, &m.Type) != nil || m.Type == "" {
		return fail("", "", RuleType, "type must be a string")
	}
	if json.Unmarshal(env.ID, &m.ID) != nil || checkID(m.ID) != nil {
		return fail("", m.Type, RuleShape, "id must be a string of 1 to %d characters", MaxID)
	}
	kind, known := kinds[m.Type]
	if !known {
		return fail(m.ID, m.Type, RuleType, "unknown type")
	}
	if kind.dir&dir == 0 {
		return fail(m.ID, m.Type, RuleType, "this end does not take this type")
	}
	if !isObject(env.Payload) {
		return fail(m.ID, m.Type, RuleShape, "payload must be an object")
	}
	if json.Unmarshal(env.TS, &m.TS) != nil {
		m.TS = 0
	}
	if dir == wire.ToHub {
		m.PendingCapacity = capacity(env.Pending)
	}
	payload := kind.make()
	if err := missing(env.Payload, payload); err != nil {
		return fail(m.ID, m.Type, 0, "payload: %s", err)
	}
	if err := json.Unmarshal(env.Payload, payload); err != nil {
		return fail(m.ID, m.Type, 0, "payload: %s", jsonReason(err))
	}
	if err := payload.Validate(); err != nil {
		return fail(m.ID, m.Type, 0, "payload: %s", err)
	}
	if s, ok := payload.(interface{ settle() }); ok {
		s.settle()
	}
	m.Payload = payload
	return m, nil
}

// capacity ignores what is no number of requests.
func capacity(raw json.RawMessage) *int {
	var n *int
	if json.Unmarshal(raw, &n) != nil || n == nil || *n < 0 {
		return nil
	}
	return n
}

func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// ErrTooLarge is a frame over MaxFrame: its request is answered with
// FILE_TOO_LARGE in its place.
var ErrTooLarge = errors.New("more than 16 MiB in one frame")

// Encode writes m as one frame that travels in direction dir, with the time
// filled in when it is zero. It refuses what the other end would refuse.
func Encode(m Message, dir wire.Direction) ([]byte, error) {
	kind, known := kinds[m.Type]
	switch {
	case !known || kind.dir&dir == 0:
		return nil, fmt.Errorf("encode %s: not a type of this direction", clip(m.Type))
	case m.Payload == nil:
		return nil, fmt.Errorf("encode %s: no payload", m.Type)
	case math.IsNaN(m.TS) || math.IsInf(m.TS, 0):
		return nil, fmt.Errorf("encode %s: ts is not a number", m.Type)
	}
	if want := kind.make(); fmt.Sprintf("%T", want) != fmt.Sprintf("%T", m.Payload) {
		return nil, fmt.Errorf("encode %s: its payload is a %T, not a %T", m.Type, want, m.Payload)
	}
	if err := checkID(m.ID); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if err := m.Payload.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Type, err)
	}
	body, err := marshal(m.Payload)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if m.TS == 0 {
		m.TS = float64(time.Now().UnixMilli()) / 1000
	}
	var env any = envelope{Type: m.Type, ID: m.ID, TS: m.TS, Version: Version, Payload: body}
	if dir == wire.ToHub {
		env = machineEnvelope{Type: m.Type, ID: m.ID, TS: m.TS, Version: Version, PendingCapacity: m.PendingCapacity, Payload: body}
	}
	data, err := marshal(env)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if len(data) > MaxFrame {
		return nil, fmt.Errorf("encode %s: %w", m.Type, ErrTooLarge)
	}
	return data, nil
}

// marshal leaves <, > and & as they are: six bytes for one would make frames
// too large.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// IsRequest tells whether t is asked by the hub and answered by the machine.
func IsRequest(t Type) bool { return len(kinds[t].replies) > 0 }

// Replies tells whether reply is a frame that may answer request.
func Replies(request, reply Type) bool {
	return IsRequest(request) && (reply == TypeError || slices.Contains(kinds[request].replies, reply))
}

// Terminal tells whether t ends the request it answers.
func Terminal(t Type) bool { return kinds[t].terminal }

// Control tells whether t is a request of the control connection.
func Control(t Type) bool { return kinds[t].control }

// CapabilityOf names the capability that the hub must have granted for the
// request t; "" for none.
func CapabilityOf(t Type) string { return kinds[t].needs }

// Harmless tells whether a hub may send the request t a second time, once,
// after it lost the connection: nothing is changed by it.
func Harmless(t Type) bool { return kinds[t].harmless }

func clip(t Type) Type {
	if len(t) > 40 {
		return t[:40]
	}
	return t
}

func checkID(id string) error {
	if id == "" || len(id) > MaxID || !utf8.ValidString(id) {
		return fmt.Errorf("id must have 1 to %d characters", MaxID)
	}
	return nil
}

func jsonReason(err error) string {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) && te.Field != "" {
		return fmt.Sprintf("%s must not be a %s", te.Field, te.Value)
	}
	var shape shapeError
	if errors.As(err, &shape) {
		return shape.Error()
	}
	return "a field has another type"
}
