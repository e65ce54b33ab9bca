package mcp

import (
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// keptHead and keptTail are how much of a command's output is kept: its
	// beginning, and what came last.
	keptHead = 64 << 10
	keptTail = 512 << 10
)

// output keeps what a command prints, standard output and errors as they came.
// It is safe for concurrent use.
type output struct {
	mu    sync.Mutex
	head  []byte        // guarded by mu
	tail  []byte        // what follows head, or the end of it; guarded by mu
	total int64         // bytes printed; guarded by mu
	ended bool          // guarded by mu
	more  chan struct{} // closed at the next piece; guarded by mu
}

func newOutput() *output { return &output{more: make(chan struct{})} }

func (o *output) write(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	if room := keptHead - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	o.tail = append(o.tail, p...)
	// Cut in large steps, so that each byte is copied once or twice.
	if len(o.tail) > 2*keptTail {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-keptTail:]...)
	}
	o.wake()
}

// end says that nothing more comes.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.wake()
}

// wake is called with mu held.
func (o *output) wake() {
	close(o.more)
	o.more = make(chan struct{})
}

// next is closed when there is more than there was.
func (o *output) next() (more <-chan struct{}, total int64, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.more, o.total, o.ended
}

// piece is a part of an output.
type piece struct {
	text    string // bytes that are no text are shown as U+FFFD
	next    int64  // where to go on reading
	missing int64  // bytes before text that are not kept any more
	more    bool   // there is more that has been printed already
}

// from gives what was printed from byte since on, at most max bytes of it.
func (o *output) from(since int64, max int) piece {
	o.mu.Lock()
	defer o.mu.Unlock()
	var p piece
	since = min(since, o.total)
	tailAt := o.total - int64(len(o.tail))
	var raw []byte
	switch {
	case since < int64(len(o.head)):
		raw = o.head[since:]
		if tailAt == int64(len(o.head)) {
			raw = append(raw[:len(raw):len(raw)], o.tail[:min(len(o.tail), max)]...)
		}
	case since < tailAt:
		p.missing = tailAt - since
		since, raw = tailAt, o.tail
	default:
		raw = o.tail[since-tailAt:]
	}
	if len(raw) > max {
		raw = raw[:max]
	}
	// A character that has come in part only is left for the next time.
	if !o.ended || since+int64(len(raw)) < o.total {
		raw = raw[:wholeRunes(raw)]
	}
	p.text, p.next = strings.ToValidUTF8(string(raw), "\uFFFD"), since+int64(len(raw))
	p.more = p.next < o.total
	return p
}

// all gives the whole output if it is not long, else its beginning and end;
// cut tells whether something is missing.
func (o *output) all(max int) (s string, cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gap := o.total - int64(len(o.head)) - int64(len(o.tail))
	if gap == 0 {
		raw := append(o.head[:len(o.head):len(o.head)], o.tail...)
		s, n := middle(strings.ToValidUTF8(string(raw), "\uFFFD"), max)
		return s, n > 0
	}
	head := strings.ToValidUTF8(string(o.head[:min(len(o.head), max/4)]), "")
	tail := strings.ToValidUTF8(string(o.tail[len(o.tail)-min(len(o.tail), max*3/4):]), "")
	left := o.total - int64(len(head)) - int64(len(tail))
	return head + "\n… " + inBytes(left) + " left out …\n" + tail, true
}

// last is the end of the output, as much as one result takes.
func (o *output) last(max int) piece {
	_, total, _ := o.next()
	return o.from(total-min(total, int64(max)), max)
}

// wholeRunes is how many bytes of b come before a character that is not whole.
func wholeRunes(b []byte) int {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}
