package autogpt

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// A client of this protocol waits for 30 s, a person may need longer. A request
// that can't be answered in time is answered with PERMISSION_PENDING while its
// task goes on. The identical request, sent again, joins the task: it waits
// with it, or takes its result. So a repeat asks nobody twice, and never runs
// twice.

// task is one request being worked on, and how many wait for its result.
type task struct {
	done chan struct{} // closed when t, p and err are set

	mu      sync.Mutex
	waiting int  // frames of the hub that it will answer; guarded by mu
	begun   bool // it was granted, and runs; guarded by mu
	late    bool // it was granted when nobody waited, and does not run; guarded by mu
	// free gives its place among what is worked on back; guarded by mu.
	free func()

	// looks: the result is what the computer's screen was at that moment, and is
	// no answer to a later request.
	looks bool

	t   msg.Type
	p   wire.Payload
	err error
}

func newTask() *task { return &task{done: make(chan struct{}), waiting: 1} }

// begin is Exchange.Begin: it runs only if somebody waits for it.
func (k *task) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = k.waiting > 0
	k.late = !k.begun
	return k.begun
}

// runs tells whether it was granted.
func (k *task) runs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun
}

// holds notes how to give the task's place back.
func (k *task) holds(free func()) {
	k.mu.Lock()
	k.free = free
	k.mu.Unlock()
}

// yield gives the place back, once.
func (k *task) yield() {
	k.mu.Lock()
	free := k.free
	k.free = nil
	k.mu.Unlock()
	if free != nil {
		free()
	}
}

// leave is called by a frame that has waited long enough: while the person is
// asked (asking), or for a task that runs. False means that it has to wait on.
func (k *task) leave(asking bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if asking && k.begun {
		return false
	}
	k.waiting--
	return true
}

// join is one more that waits. False: it was granted when nobody did, and ends
// without having run.
func (k *task) join() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.late {
		return false
	}
	k.waiting++
	return true
}

// wanted tells whether the result is worth keeping for a repeat: it ran, or the
// person said no. What nobody answered is asked again; what was allowed too
// late is remembered by the gate.
func (k *task) wanted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.late || k.looks && k.err == nil {
		return false
	}
	switch wire.CodeOf(k.err) {
	case wire.CodePerson, wire.CodePictureStale, wire.CodeWindowStale, wire.CodeBlank,
		wire.CodeExpired, wire.CodeUndelivered, wire.CodePending, wire.CodePaused, wire.CodeCancelled, wire.CodeLost, wire.CodeOverloaded:
		return false
	}
	return true
}

// size is about what the result takes in memory.
func (k *task) size() int {
	switch p := k.p.(type) {
	case *msg.FileContents:
		return len(p.Content)
	case *msg.Result:
		return len(p.Stdout) + len(p.Stderr)
	case *msg.FileListResponse:
		return 256 * len(p.Entries)
	}
	return 256
}

// key tells identical requests. What a chat asked in one folder is something
// else in another, or when it was bound anew.
type key struct {
	session string // "" on the control connection
	bound   string
	sum     [sha256.Size]byte
}

func keyOf(ch *channel, m msg.Message) key {
	body, _ := json.Marshal(m.Payload) // decoded from JSON, it can be written
	return key{ch.session, ch.bound, sha256.Sum256(append([]byte(m.Type+"\x00"), body...))}
}

// Results that wait for their repeat are bounded together.
const (
	maxKept      = 32
	maxKeptBytes = 64 << 20
)

// book holds the tasks that were answered with PERMISSION_PENDING, oldest
// first.
type book struct {
	keep time.Duration

	mu    sync.Mutex
	pages []*page // guarded by mu
}

type page struct {
	key  key
	task *task
	// until is when the result is forgotten; zero while the task goes on.
	until time.Time
}

func newBook(keep time.Duration) *book { return &book{keep: keep} }

// join finds the task that a repeat belongs to, and counts it among those that
// wait; a result is given once. nil: the request is a new one.
func (b *book) join(ch *channel, m msg.Message) *task {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tidy(); len(b.pages) == 0 {
		return nil
	}
	k := keyOf(ch, m)
	for i, p := range b.pages {
		if p.key != k {
			continue
		}
		if !p.task.join() {
			continue
		}
		if !p.until.IsZero() {
			b.pages = append(b.pages[:i], b.pages[i+1:]...)
		}
		return p.task
	}
	return nil
}

// add notes a task that was answered with PERMISSION_PENDING.
func (b *book) add(ch *channel, m msg.Message, t *task) {
	k := keyOf(ch, m)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pages {
		if p.task == t {
			return
		}
	}
	p := &page{key: k, task: t}
	select {
	case <-t.done: // ended at this very moment
		if !t.wanted() {
			return
		}
		p.until = time.Now().Add(b.keep)
	default:
	}
	b.pages = append(b.pages, p)
	b.tidy()
}

// ended gives a task's result to those who wait, and keeps that of a noted one
// when nobody does. A repeat comes before that or after, never in between: it
// would get what another one was given.
func (b *book) ended(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(t.done)
	for i, p := range b.pages {
		if p.task != t {
			continue
		}
		t.mu.Lock()
		taken := t.waiting > 0
		t.mu.Unlock()
		if taken || !t.wanted() {
			b.pages = append(b.pages[:i], b.pages[i+1:]...)
		} else {
			p.until = time.Now().Add(b.keep)
		}
		break
	}
	b.tidy()
}

// purge forgets what is too old.
func (b *book) purge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tidy()
}

// drop forgets the results of a chat; "" is the control connection.
func (b *book) drop(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.pages[:0]
	for _, p := range b.pages {
		if p.key.session != session {
			kept = append(kept, p)
		}
	}
	b.pages = kept
}

// tidy forgets what is too old, and the oldest of what is too much. Caller
// holds mu.
func (b *book) tidy() {
	now, count, bytes := time.Now(), 0, 0
	for i := len(b.pages) - 1; i >= 0; i-- {
		p := b.pages[i]
		if p.until.IsZero() {
			continue
		}
		count, bytes = count+1, bytes+p.task.size()
		if now.After(p.until) || count > maxKept || count > 1 && bytes > maxKeptBytes {
			b.pages = append(b.pages[:i], b.pages[i+1:]...)
		}
	}
}
