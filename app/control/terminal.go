package control

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"localpc/app/snapshot"
	"localpc/consent"
)

// WriteCard writes a question for a terminal: everything a card shows, with
// nothing in it that a terminal obeys.
func WriteCard(w io.Writer, c Card, digits string) {
	r := c.Request
	v := func(s string) string { return consent.Visible(s, false) }
	fmt.Fprintf(w, "\n── %s ──\n", v(r.Principal.Name))
	if r.Claims.Agent != "" {
		fmt.Fprintf(w, "   calls itself “%s”\n", v(r.Claims.Agent))
	}
	if r.Claims.Title != "" {
		fmt.Fprintf(w, "   about “%s”\n", v(r.Claims.Title))
	}
	fmt.Fprintf(w, "%s\n", v(r.Sentence))
	for _, e := range r.Effects {
		fmt.Fprintf(w, "  • %s\n", v(e.Text))
	}
	if r.Exact != "" {
		fmt.Fprintf(w, "\n    %s\n\n", strings.ReplaceAll(consent.Visible(r.Exact, true), "\n", "\n    "))
	}
	for _, d := range r.Details {
		fmt.Fprintf(w, "  %s\n", v(d))
	}
	if c.Info.ContainProblem != "" && r.Action == "run" {
		fmt.Fprintf(w, "  %s\n", v(c.Info.ContainProblem))
	}
	if r.Capability == consent.CapabilitySession {
		for i, f := range c.Info.Folders {
			if c.Info.FolderOnly {
				fmt.Fprintf(w, "  folder: %s\n", v(f))
				continue
			}
			fmt.Fprintf(w, "  folder %d: %s\n", i+1, v(f))
		}
		fmt.Fprintf(w, "Type  %s w  to let it work in the folder,  %s l  to look only,  %s a  to be asked each time.\n", digits, digits, digits)
		if c.Info.FolderOnly {
			fmt.Fprintf(w, "Add  r  to remember.  d  declines.\n> ")
			return
		}
		fmt.Fprintf(w, "Add a folder's number, and  r  to remember; or end the line with the path of another folder.  d  declines.\n> ")
		return
	}
	if r.Folder != "" {
		fmt.Fprintf(w, "  in %s\n", v(r.Folder))
	}
	fmt.Fprintf(w, "Type  %s  to allow this once.", digits)
	for _, s := range r.Scopes {
		switch s {
		case consent.Session:
			fmt.Fprintf(w, "  %s s : %s.", digits, sessionWords(r))
		case consent.Minutes15:
			fmt.Fprintf(w, "  %s 15 : 15 minutes.", digits)
		case consent.Always:
			fmt.Fprintf(w, "  %s a : always.", digits)
		}
	}
	if r.FullOffered && r.Containable {
		fmt.Fprint(w, "  Add  full  for full access: it can then do whatever you can do.")
	} else if r.FullOffered {
		fmt.Fprint(w, "  It runs with full access: it can do whatever you can do.")
	}
	switch {
	case r.Session == "":
		fmt.Fprint(w, "\nd  declines.\n> ")
	case r.Capability == consent.CapabilityFolders:
		fmt.Fprint(w, "\nd  declines,  d s  until this program ends.\n> ")
	default:
		fmt.Fprint(w, "\nd  declines,  d s  for the whole session.\n> ")
	}
}

// moreWords counts the folded requests of a card.
func moreWords(n int) string {
	switch n {
	case 0:
		return "no other"
	case 1:
		return "1 more like it"
	}
	return fmt.Sprintf("%d more like it", n)
}

func sessionWords(r consent.Request) string {
	if r.Capability == consent.CapabilityFolders {
		return "until this program ends"
	}
	return "this session"
}

// howTo says what can be typed, to somebody who typed something else.
func howTo(digits string, r consent.Request) string {
	if r.Capability == consent.CapabilitySession {
		return fmt.Sprintf("Type %[1]s w, %[1]s l or %[1]s a to start, or d to decline.", digits)
	}
	return "Type " + digits + " to allow, or d to decline."
}

// ParseAnswer reads a line typed under a card. A line that is neither a yes
// nor a no gives a complaint instead, and the card stays open.
func ParseAnswer(line, digits string, c Card) (a consent.Answer, complaint string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return a, howTo(digits, c.Request)
	}
	a.Via = "terminal"
	r := c.Request
	switch strings.ToLower(words[0]) {
	case "d", "n", "no", "deny", "decline":
		a.Choice.Scope = consent.Once
		if len(words) > 1 && words[1] == "s" {
			a.Choice.Scope = consent.Session
		}
		return a, ""
	case digits:
	default:
		return a, howTo(digits, c.Request)
	}
	a.Allow = true
	if r.Capability == consent.CapabilitySession {
		return sessionAnswer(line, words[1:], a, c)
	}
	a.Choice.Scope = consent.Once
	if r.Containable {
		a.Choice.Contain = consent.Contained
	} else if r.FullOffered {
		a.Choice.Contain = consent.FullAccess
	}
	for _, w := range words[1:] {
		switch strings.ToLower(w) {
		case "s":
			a.Choice.Scope = consent.Session
		case "15":
			a.Choice.Scope = consent.Minutes15
		case "a":
			a.Choice.Scope = consent.Always
		case "full":
			a.Choice.Contain = consent.FullAccess
		default:
			return a, notOffered(w)
		}
	}
	// What the card does not offer would be refused by the gate, and the
	// question would be gone.
	switch c := a.Choice; {
	case c.Scope != consent.Once && !slices.Contains(r.Scopes, c.Scope):
		return a, "That is not offered for this question."
	case c.Contain == consent.FullAccess && !r.FullOffered:
		return a, "Full access is not offered for this question."
	case c.Contain == consent.FullAccess && c.Scope != consent.Once && c.Scope != consent.Session:
		return a, "Full access is at most for this session."
	case c.Scope == consent.Always && r.Risk >= consent.RiskHigh:
		return a, "This can't be allowed always."
	}
	return a, ""
}

func notOffered(word string) string {
	return "“" + consent.Visible(word, false) + "” is not one of the choices."
}

func sessionAnswer(line string, words []string, a consent.Answer, c Card) (consent.Answer, string) {
	if len(c.Info.Folders) > 0 {
		a.Choice.Folder = c.Info.Folders[0]
	}
	a.Choice.Scope = consent.Session
	for _, w := range words {
		switch strings.ToLower(w) {
		case "w":
			a.Choice.Mode = consent.ModeWork
		case "l":
			a.Choice.Mode = consent.ModeLook
		case "a":
			a.Choice.Mode = consent.ModeAsk
		case "r":
			a.Choice.Remember = true
		default:
			if c.Info.FolderOnly {
				if _, err := strconv.Atoi(w); err == nil || filepath.IsAbs(w) {
					return a, "This is about that one folder; no other can be chosen here."
				}
				return a, notOffered(w)
			}
			if n, err := strconv.Atoi(w); err == nil && n >= 1 && n <= len(c.Info.Folders) {
				a.Choice.Folder = c.Info.Folders[n-1]
				continue
			}
			if filepath.IsAbs(w) {
				// The path goes to the end of the line: it may hold spaces.
				a.Choice.Folder = strings.TrimSpace(line[pathAt(line):])
				// The machine takes no link: it may be a program's.
				if real, err := filepath.EvalSymlinks(a.Choice.Folder); err == nil && real != filepath.Clean(a.Choice.Folder) {
					return a, "That leads through a link to " + consent.Visible(real, false) + "; type that if you mean it."
				}
				if a.Choice.Mode == "" {
					return a, "Say how, before the path: w, l or a."
				}
				return a, ""
			}
			return a, notOffered(w)
		}
	}
	if a.Choice.Mode == "" {
		return a, "Say how: w to let it work in the folder, l to look only, a to be asked each time."
	}
	if a.Choice.Folder == "" {
		return a, "Name a folder by its path."
	}
	return a, ""
}

// pathAt is where the first word that begins with a slash begins.
func pathAt(line string) int {
	start := true
	for i, r := range line {
		if r == '/' && start {
			return i
		}
		start = unicode.IsSpace(r)
	}
	return len(line)
}

// Terminal shows cards where the program itself was started, and takes the
// answers from there: the machine's surface where there is no display. A
// terminal that is held (Ctrl-S) holds only its own goroutines.
type Terminal struct {
	out    io.Writer
	shown  func(id string)
	answer func(id string, a consent.Answer) error
	wake   chan struct{} // holds one: there is something to write, or the end
	done   chan struct{} // closed when the writer has ended

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
		if _, err := io.WriteString(t.out, text); err == nil && asked != "" {
			t.shown(asked)
		}
		if closed {
			return
		}
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
		t.mu.Lock()
		card, digits := t.card, t.digits
		t.mu.Unlock()
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
