package control

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// Terminal shows cards where the program itself was started, and takes the
// answers from there: the machine's surface where there is no display. A
// terminal that is held (Ctrl-S) holds only its own goroutines.
type Terminal struct {
	out    io.Writer
	shown  func(id string)
	answer func(id string, a consent.Answer) error
	wake   chan struct{} // holds one: there is something to write, or the end
	done   chan struct{} // closed when the writer has ended
	// writing is held from the first byte of a card until it was told to be
	// shown: a line can be the answer to what was written a moment ago.
	writing sync.Mutex

	mu     sync.Mutex
	card   *Card    // guarded by mu; nil: none is open
	digits string   // guarded by mu
	queue  []string // to write; guarded by mu
	asked  string   // the card whose text is the last of queue; guarded by mu
	signed string   // the sign-in that was told of last; guarded by mu
	closed bool     // guarded by mu
}

// NewTerminal makes a Terminal; Close ends it. shown and answer are called
// without locks.
func NewTerminal(out io.Writer, shown func(id string), answer func(string, consent.Answer) error) *Terminal {
	t := &Terminal{out: out, shown: shown, answer: answer, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go t.write()
	return t
}

// Close ends the writer, which is not waited for longer than a held terminal
// lets it write.
func (t *Terminal) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.kick()
	select {
	case <-t.done:
	case <-time.After(time.Second):
	}
}

func (t *Terminal) kick() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// write is the goroutine of everything that is written.
func (t *Terminal) write() {
	defer close(t.done)
	for range t.wake {
		t.mu.Lock()
		text, asked, closed := strings.Join(t.queue, ""), t.asked, t.closed
		t.queue, t.asked = nil, ""
		t.mu.Unlock()
		t.put(text, asked)
		if closed {
			return
		}
	}
}

func (t *Terminal) put(text, asked string) {
	t.writing.Lock()
	defer t.writing.Unlock()
	if _, err := io.WriteString(t.out, text); err == nil && asked != "" {
		t.shown(asked)
	}
}

// say queues text. Called with mu held.
func (t *Terminal) say(text string) {
	t.queue = append(t.queue, text)
	t.kick()
}

// Present writes a card; shown is told when it has been written.
func (t *Terminal) Present(r consent.Request, info snapshot.CardInfo) (shown bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.card, t.digits, t.asked = &Card{r, info}, consent.Digits(), r.ID
	var b strings.Builder
	WriteCard(&b, *t.card, t.digits)
	t.say(b.String())
	return false, nil
}

// Update says how many are on the card still.
func (t *Terminal) Update(r consent.Request, info snapshot.CardInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.card != nil && t.card.Request.ID == r.ID {
		t.card.Info = info
		t.say(fmt.Sprintf("\n(%s on this card now.)\n> ", moreWords(len(info.Folded))))
	}
}

// Withdraw says that a card is gone.
func (t *Terminal) Withdraw(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.card != nil && t.card.Request.ID == id {
		t.card, t.asked = nil, ""
		t.say("\nThis question is closed.\n")
	}
}

// SignIn tells of a sign-in when it has come a step further; nil when there is
// none. It is called with each snapshot.
func (t *Terminal) SignIn(s *snapshot.SigningIn) {
	var b strings.Builder
	step := ""
	if s != nil {
		step = strings.Join([]string{s.Kind, s.Hub, string(s.Stage), s.Match, s.URL, s.UserCode}, "\x00")
		b.WriteString("\n")
		WriteSignIn(&b, *s, time.Now())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if step == t.signed {
		return
	}
	t.signed = step
	if s != nil {
		t.say(b.String())
	}
}

// Read takes lines from in until it ends. Its goroutine is the caller's.
func (t *Terminal) Read(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return // what has no newline was not entered
		}
		t.writing.Lock()
		t.mu.Lock()
		card, digits := t.card, t.digits
		t.mu.Unlock()
		t.writing.Unlock()
		if card == nil {
			continue
		}
		a, complaint := ParseAnswer(line, digits, *card)
		if complaint == "" {
			if err := t.answer(card.Request.ID, a); err != nil {
				complaint = consent.Visible(err.Error(), false)
			}
		}
		if complaint != "" {
			t.mu.Lock()
			t.say(complaint + "\n> ")
			t.mu.Unlock()
		}
	}
}
