// Package capabilities is steps 3 and 5: what an executor is. Describe looks
// and says what would happen; Run takes the Gate's Grant and does it. The
// package holds the Capability interface, the session an executor works in,
// what a session made itself, and the registry.
package capabilities

import (
	"context"
	"fmt"
	"io"
	"time"

	"localpc/consent"
	"localpc/tunnel/wire"
)

// Call is one request as an executor sees it.
type Call struct {
	Type    wire.Type
	Payload wire.Payload // validated
	Session *Session
	// Upload is the spooled body of a FILE_WRITE, nil for the others. Its
	// owner, the dispatcher, removes it.
	Upload *Upload
	// Input is what follows a PROCESS_START; nil for the others, and for a
	// process that takes nothing.
	Input Input
}

// Input gives what the hub sends after a request, in order. Next waits for it;
// its error says why nothing more comes. For one goroutine at a time.
type Input interface {
	Next(ctx context.Context) (wire.Follow, error)
}

// Upload is a body that arrived before anybody is asked about it.
type Upload struct {
	Path   string // of the spool file, 0600, outside every session folder
	Size   int64
	SHA256 string // hex
	// Changed is the change time (ctime) that the spool file has had since it was
	// hashed; zero where the system does not tell.
	Changed time.Time
	// Head is the first 4 KiB, for the card.
	Head []byte
}

// Description is what Describe found: everything the policy, the card and the
// record need. The dispatcher adds who asks, when, and until when.
type Description struct {
	Action   string   // "read", "write", "delete", "run", …
	Title    string   // a few words for a list: "Write notes/plan.md"
	Sentence string   // what the card asks, with %s for the principal's name
	Exact    string   // the exact text
	Steps    []string // see consent.Request
	Details  []string
	Effects  []consent.Effect
	Risk     consent.Risk
	// Payload is what the digest is made of: everything that decides what
	// runs, without ids and deadlines.
	Payload any
	// Fingerprint is of what was looked at; Run looks again and passes what
	// it finds to Grant.Check.
	Fingerprint string

	Containable bool
	FullOffered bool
	Rule        RuleParts
	Scopes      []consent.Scope // offered beside Once
	// NoOnce: Scopes are all that is offered.
	NoOnce bool
	// Wide is the broader rule that may be remembered instead; nil for none.
	Wide *Wide
	// Screens and Looks are as in consent.Request.
	Screens []consent.Screen
	Looks   bool
}

// Wide is a rule for a direction of a capability, in the session's folder.
type Wide struct {
	Action  string               // "" for every action
	Effects []consent.EffectKind // that it holds for at most
	Words   string               // "reading in this folder"
}

// RuleParts is the capability's part of a remembered rule.
type RuleParts struct{ Exact, Env, Cwd string }

// Output takes the frames of a reply that come before its last. Send blocks
// while the other end has no credit for more data; it returns an error when
// the request has gone. It is safe for concurrent use.
type Output interface {
	Send(ctx context.Context, t wire.Type, p wire.Payload) error
}

// Result ends a request that worked.
type Result struct {
	Type    wire.Type
	Payload wire.Payload
	// Outcome is for the record and the log: "exit code 0", "3 KB written".
	Outcome string
	// Failed marks a run that worked but ended badly (non-zero exit).
	Failed bool
	// Sent and Received count bytes of contents that left or came in.
	Sent, Received int64
	// Notes are further sentences for the log: "changed .envrc".
	Notes []string
	// Output is what was sent, kept for the detail in Activity; bounded by the
	// executor with a Keeper.
	Output []byte
}

// Capability is one executor.
//
// Describe is bounded by its context (300 ms) and changes nothing. Run is
// called with a grant for exactly what Describe described, calls Grant.Check
// with the digest and the fingerprint it finds now before it does anything,
// and returns promptly when ctx ends, with nothing left running or half done
// but what its docs say. Both may be called from many goroutines. Their
// errors are *wire.Error where the client is to learn the reason.
type Capability interface {
	// Name is the capability as people and HELLO know it: "files", "shell".
	Name() string
	// Types are the requests it takes; no two capabilities share one.
	Types() []wire.Type
	Describe(ctx context.Context, c Call) (Description, error)
	Run(ctx context.Context, c Call, g consent.Grant, out Output) (Result, error)
	// Running counts what goes on in a session beyond its requests (children
	// that were left behind).
	Running(session string) int
	// EndSession stops everything that belongs to the session and waits for it
	// (bounded by ctx).
	EndSession(ctx context.Context, session string) error
	// Close ends everything.
	Close() error
}

// Freezer is an executor that can hold still what could answer a card in the
// person's place. Freeze is called with true when a card opens and with false
// when the last has gone; it returns at once.
type Freezer interface{ Freeze(on bool) }

// Sleeper is an executor that can hold still what runs in one session, what
// starts there meanwhile too. PauseSession returns at once; the newest call
// holds. Ending the session, or a process of it, works meanwhile.
type Sleeper interface {
	PauseSession(session string, on bool)
}

// Registry finds the executor of a request.
type Registry struct {
	all    []Capability
	byType map[wire.Type]Capability
}

// NewRegistry panics when two capabilities share a name or a type.
func NewRegistry(all ...Capability) *Registry {
	r := &Registry{all: all, byType: map[wire.Type]Capability{}}
	names := map[string]bool{}
	for _, c := range all {
		if names[c.Name()] {
			panic("capabilities: two named " + c.Name())
		}
		names[c.Name()] = true
		for _, t := range c.Types() {
			if r.byType[t] != nil {
				panic(fmt.Sprintf("capabilities: two take %s", t))
			}
			r.byType[t] = c
		}
	}
	return r
}

// Lookup returns the executor of t, or nil.
func (r *Registry) Lookup(t wire.Type) Capability { return r.byType[t] }

// All returns the executors in the order of their registration.
func (r *Registry) All() []Capability { return r.all }

// Keeper keeps the head and the tail of an output, so that memory stays flat
// whatever is written. The zero value keeps 64 KiB of each. Not safe for
// concurrent use.
type Keeper struct {
	Max     int // of head and of tail; 0 means 64 KiB
	head    []byte
	tail    []byte
	skipped int64
}

func (k *Keeper) Write(p []byte) (int, error) {
	n := len(p)
	max := k.Max
	if max == 0 {
		max = 64 << 10
	}
	if room := max - len(k.head); room > 0 {
		take := min(room, len(p))
		k.head = append(k.head, p[:take]...)
		p = p[take:]
	}
	k.tail = append(k.tail, p...)
	if over := len(k.tail) - 2*max; over > 0 {
		// Cut in steps of max, so that each byte is copied once or twice.
		cut := len(k.tail) - max
		k.skipped += int64(cut)
		k.tail = append(k.tail[:0], k.tail[cut:]...)
	}
	return n, nil
}

// Bytes returns what was kept, with a line that says how much was left out.
func (k *Keeper) Bytes() []byte {
	max := k.Max
	if max == 0 {
		max = 64 << 10
	}
	tail, skipped := k.tail, k.skipped
	if over := len(tail) - max; over > 0 {
		skipped += int64(over)
		tail = tail[over:]
	}
	out := append([]byte(nil), k.head...)
	if skipped > 0 {
		out = fmt.Appendf(out, "\n… %d bytes left out …\n", skipped)
	}
	return append(out, tail...)
}

var _ io.Writer = (*Keeper)(nil)
