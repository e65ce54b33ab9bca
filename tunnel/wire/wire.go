// Package wire is the words both ends of the tunnel speak: step 1 turns a
// client's call into one of these messages, step 2 decodes and validates it,
// step 6 sends the reply. It holds every message, limit, error code and
// validator of the localpc.v1 profile, and imports nothing of ours.
//
// Every frame is one JSON object in one WebSocket text message: the envelope
// of AutoGPT's local executor protocol 1.1 (type, id, ts, version, payload,
// and pending_capacity from the machine). A request carries an id of its
// sender's choosing; every frame that belongs to it repeats that id. A request
// ends with exactly one terminal reply, ERROR included.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Version history. A change that an older end would misread gets a new minor.
//
//	1.0  first: sessions, processes, files in chunks, directories, status
//	1.1  AUTHORIZE; SESSION_OPEN may name the only folder; file requests that
//	     follow no link, or refuse to replace, to make folders, to delete more
//	1.2  terminals and standard input; watches, searches and metadata of files;
//	     pausing a session; METRICS; the bulk socket
//	1.3  the computer: pictures, input, windows, the clipboard; details of errors
const Version = "1.3"

// Major is the part of a version that both ends must have in common.
func Major(version string) string {
	major, _, _ := strings.Cut(version, ".")
	return major
}

// Subprotocol is the WebSocket subprotocol that selects this profile.
const Subprotocol = "localpc.v1"

// Path is where a hub accepts machines; BulkPath where it accepts the second
// socket of one, with the same bearer token and the header BulkHeader, whose
// value is the connection_id of HELLO_ACK. Each such id is good once; the answer
// names the next in the same header, for when the socket is lost.
const (
	Path       = "/ws/local-executor"
	BulkPath   = Path + "/bulk"
	BulkHeader = "Localpc-Connection"
)

// Limits that both ends keep. Sizes are bytes after decoding from UTF-8 frames.
const (
	MaxFrame      = 4 << 20   // one frame, both ways
	MaxHello      = 64 << 10  // the first frame of a machine
	MaxChunk      = 256 << 10 // raw bytes in one data frame (base64 makes them 4/3)
	InitialCredit = 1 << 20   // raw bytes a sender may have unacknowledged per request
	MaxID         = 128       // request, session and machine ids
	MaxPath       = 4096      // a path as sent
	MaxCommand    = 131071    // bytes of one argument (Linux MAX_ARG_STRLEN less the NUL)
	MaxArgs       = 4096
	// All of it is shown, recorded and kept in the log: it has a bound together.
	MaxArgBytes    = 256 << 10 // arguments in one request together
	MaxEnv         = 1024      // variables in one request
	MaxEnvBytes    = 128 << 10 // their names and values together
	MaxText        = 1024      // names and titles that a program gives itself
	MaxListEntries = 20000     // entries in one directory reply
	MaxMetadata    = 16 << 10  // names and values of a file's metadata together
	MaxEvents      = 1000      // changes in one FILE_CHANGES
	MaxSearch      = 1000      // hits of one search
	MaxToken       = 8 << 10   // an access token
	MaxDetails     = 8 << 10   // details of an error, as JSON

	HelloTimeout = 10 * time.Second // for HELLO, and for HELLO_ACK
	Heartbeat    = 20 * time.Second // WebSocket ping from the machine
	PongTimeout  = 10 * time.Second // silence after a ping that ends the connection
)

// Close codes (4xxx as in wire 1.1, section 7).
const (
	CloseBadHello     = 4400
	CloseUnauthorized = 4401
	CloseForbidden    = 4403
	CloseHelloTimeout = 4408
	CloseVersion      = 4426
	CloseReplaced     = 4427 // a newer connection of this machine took over
	CloseRevoked      = 4428
	CloseInternal     = 4500
)

// Type names a message. The values are serialised: never reuse one.
type Type string

// Direction says which end may send a message.
type Direction int

const (
	ToMachine Direction = 1
	ToHub     Direction = 2
	BothWays  Direction = 3
)

// Payload is the body of a message. Validate runs before anything else reads
// it, and names the field that is wrong.
type Payload interface{ Validate() error }

// Message is one decoded frame.
type Message struct {
	Type Type
	ID   string
	// TS is the sender's Unix time in seconds; informative only.
	TS float64
	// PendingCapacity is how many more requests the machine admits right now;
	// nil means no signal. Machine to hub only.
	PendingCapacity *int
	Payload         Payload
}

type envelope[P any] struct {
	Type            Type    `json:"type"`
	ID              string  `json:"id"`
	TS              float64 `json:"ts"`
	Version         string  `json:"version"`
	PendingCapacity *int    `json:"pending_capacity,omitempty"`
	Payload         P       `json:"payload"`
}

// FrameError is a frame that could not be read. ID is set when it could be
// read that far, so that the request can be answered instead of dropped.
type FrameError struct {
	ID     string
	Type   Type
	Reason string
}

func (e *FrameError) Error() string {
	if e.Type != "" {
		return fmt.Sprintf("frame %s: %s", e.Type, e.Reason)
	}
	return "frame: " + e.Reason
}

// ReadFrame reads one frame of at most max bytes from r. A longer one is read
// to its end and dropped, so that the connection can live on; the error is
// then a *FrameError. Other errors are r's.
func ReadFrame(r io.Reader, max int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(max)+1))
	if err != nil || len(data) <= max {
		return data, err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return nil, &FrameError{Reason: fmt.Sprintf("more than %d bytes", max)}
}

// Decode reads and validates one frame that travels in direction dir. Unknown
// fields are ignored and null counts as missing. The error is a *FrameError.
func Decode(data []byte, dir Direction) (Message, error) {
	if len(data) > MaxFrame {
		return Message{}, &FrameError{Reason: fmt.Sprintf("%d bytes, at most %d are allowed", len(data), MaxFrame)}
	}
	env, read := decodeKnown(data)
	if !read {
		var err error
		if env, err = decodeAny(data, dir); err != nil {
			return Message{}, err
		}
	}
	if err := checkID("id", env.ID); err != nil {
		return Message{}, &FrameError{Type: env.Type, Reason: err.Error()}
	}
	if kinds[env.Type].dir&dir == 0 {
		return Message{}, errDirection(env.ID, env.Type)
	}
	if err := env.Payload.Validate(); err != nil {
		return Message{}, &FrameError{ID: env.ID, Type: env.Type, Reason: "payload: " + err.Error()}
	}
	if env.PendingCapacity != nil && *env.PendingCapacity < 0 {
		env.PendingCapacity = nil
	}
	return Message{Type: env.Type, ID: env.ID, TS: env.TS, PendingCapacity: env.PendingCapacity, Payload: env.Payload}, nil
}

// decodeKnown reads a frame that begins as Encode writes it, in one pass: a
// picture's is long. Whatever is odd about it is decodeAny's.
func decodeKnown(data []byte) (envelope[Payload], bool) {
	var env envelope[Payload]
	head, _, ok := bytes.Cut(data[:min(len(data), 512)], []byte(`,"payload":{`))
	name, begun := bytes.CutPrefix(head, []byte(`{"type":"`))
	name, _, _ = bytes.Cut(name, []byte{'"'})
	kind, known := kinds[Type(name)]
	if !ok || !begun || !known || bytes.ContainsAny(head[1:], `{[\`) {
		return env, false
	}
	env.Payload = kind.make()
	err := json.Unmarshal(data, &env)
	return env, err == nil && env.Type == Type(name) && env.Payload != nil
}

// decodeAny reads any frame, and says what is wrong with it.
func decodeAny(data []byte, dir Direction) (envelope[Payload], error) {
	var raw envelope[json.RawMessage]
	env := envelope[Payload]{}
	if err := json.Unmarshal(data, &raw); err != nil {
		return env, &FrameError{Reason: "not a JSON object of the envelope's shape"}
	}
	if err := checkID("id", raw.ID); err != nil {
		return env, &FrameError{Type: clip(raw.Type), Reason: err.Error()}
	}
	kind, known := kinds[raw.Type]
	if !known {
		return env, &FrameError{ID: raw.ID, Type: clip(raw.Type), Reason: "unknown type"}
	}
	if kind.dir&dir == 0 {
		return env, errDirection(raw.ID, raw.Type)
	}
	body := bytes.TrimSpace(raw.Payload)
	if len(body) == 0 || body[0] != '{' {
		return env, &FrameError{ID: raw.ID, Type: raw.Type, Reason: "payload must be an object"}
	}
	payload := kind.make()
	if err := json.Unmarshal(body, payload); err != nil {
		return env, &FrameError{ID: raw.ID, Type: raw.Type, Reason: "payload: " + jsonReason(err)}
	}
	return envelope[Payload]{Type: raw.Type, ID: raw.ID, TS: raw.TS, Version: raw.Version, PendingCapacity: raw.PendingCapacity, Payload: payload}, nil
}

func errDirection(id string, t Type) error {
	return &FrameError{ID: id, Type: t, Reason: "this end does not take this type"}
}

// Encode writes m as one frame, with the time filled in when it is zero. It
// refuses what the other end would refuse.
func Encode(m Message) ([]byte, error) {
	if m.Payload == nil {
		return nil, fmt.Errorf("encode %s: no payload", m.Type)
	}
	if err := checkID("id", m.ID); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if err := m.Payload.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if m.TS == 0 {
		m.TS = float64(time.Now().UnixMilli()) / 1000
	}
	// In one pass: a picture's frame is long, and each pass over it takes longer
	// than writing it did.
	data, err := json.Marshal(envelope[Payload]{Type: m.Type, ID: m.ID, TS: m.TS, Version: Version, PendingCapacity: m.PendingCapacity, Payload: m.Payload})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if len(data) > MaxFrame {
		return nil, fmt.Errorf("encode %s: %d bytes, at most %d are allowed", m.Type, len(data), MaxFrame)
	}
	return data, nil
}

// Terminal tells whether t ends the request it answers.
func Terminal(t Type) bool { return kinds[t].terminal }

// Replies tells whether reply is a frame that may answer request.
func Replies(request, reply Type) bool {
	if reply == TypeError || reply == TypeCredit {
		return true
	}
	for _, t := range kinds[request].replies {
		if t == reply {
			return true
		}
	}
	return false
}

func clip(t Type) Type {
	if len(t) > 40 {
		return t[:40]
	}
	return t
}

func jsonReason(err error) string {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return fmt.Sprintf("%s must be a %s", te.Field, te.Type)
	}
	return "not readable"
}
