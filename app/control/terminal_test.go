package control_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"localpc/app/control"
	"localpc/app/snapshot"
	"localpc/consent"
)

func runCard() control.Card {
	return control.Card{Request: consent.Request{ID: "r1", Principal: consent.Principal{Name: "Claude"}, Capability: "shell", Action: "run", Sentence: "Claude wants to run a command on this computer.",
		Exact: "npm test", Folder: "/project", Containable: true, FullOffered: true, Risk: consent.RiskNormal,
		Scopes: []consent.Scope{consent.Once, consent.Session, consent.Minutes15, consent.Always}}}
}

// connectCard is a question that can't be answered with "once".
func connectCard() control.Card {
	return control.Card{Request: consent.Request{ID: "r3", Session: "s1", Principal: consent.Principal{Name: "Claude"}, Capability: "network", Action: "internet",
		Sentence: "npm wants to reach example.org.", Command: "r1", Risk: consent.RiskNormal, Scopes: []consent.Scope{consent.Command, consent.Session, consent.Minutes15}}}
}

func openCard() control.Card {
	return control.Card{Request: consent.Request{ID: "r2", Capability: consent.CapabilitySession, Action: "open"},
		Info: snapshot.CardInfo{Folders: []string{"/project", "/home/me/My Photos"}}}
}

// A link may have been put there by the very program that asks.
func TestAFolderBehindALinkIsNamed(t *testing.T) {
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(real, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	card := control.Card{Request: consent.Request{Capability: consent.CapabilitySession}}
	if _, complaint := control.ParseAnswer("42 w "+link, "42", card); !strings.Contains(complaint, real+";") {
		t.Errorf("complaint %q", complaint)
	}
	if a, complaint := control.ParseAnswer("42 w "+real+"/", "42", card); complaint != "" || filepath.Clean(a.Choice.Folder) != real {
		t.Errorf("%+v, complaint %q", a, complaint)
	}
}

func TestParseAnswer(t *testing.T) {
	plain, high, onlyFull, file, session := runCard(), runCard(), runCard(), runCard(), openCard()
	high.Request.Risk, high.Request.Scopes = consent.RiskHigh, []consent.Scope{consent.Once, consent.Session}
	onlyFull.Request.Containable = false
	file.Request.Containable, file.Request.FullOffered, file.Request.Action, file.Request.Scopes = false, false, "write", nil
	wide, connect := runCard(), connectCard()
	wide.Request.Wide, wide.Request.WideWords = &consent.Rule{Wide: true}, "reading in this folder"
	bare := openCard()
	bare.Info.Folders = nil
	yes := func(s consent.Scope, c consent.Containment) *consent.Choice {
		return &consent.Choice{Scope: s, Contain: c}
	}
	opens := func(m consent.Mode, folder string, remember bool) *consent.Choice {
		return &consent.Choice{Scope: consent.Session, Mode: m, Folder: folder, Remember: remember}
	}
	widely := func(s consent.Scope) *consent.Choice {
		return &consent.Choice{Scope: s, Contain: consent.Contained, Wide: true}
	}
	cases := []struct {
		card  control.Card
		line  string
		allow *consent.Choice // nil: not allowed
		deny  consent.Scope   // "": not declined, so a complaint
	}{
		{plain, "42", yes(consent.Once, consent.Contained), ""},
		{plain, "  42 \t", yes(consent.Once, consent.Contained), ""},
		{plain, "42 s", yes(consent.Session, consent.Contained), ""},
		{plain, "42 S full", yes(consent.Session, consent.FullAccess), ""},
		{plain, "42 full", yes(consent.Once, consent.FullAccess), ""},
		{plain, "42 15", yes(consent.Minutes15, consent.Contained), ""},
		{plain, "42 a", yes(consent.Always, consent.Contained), ""},
		{plain, "42 full a", nil, ""},
		{plain, "42 15 full", nil, ""},
		{plain, "42 forever", nil, ""},
		{plain, "42 w", nil, ""},
		{plain, "", nil, ""},
		{plain, "   ", nil, ""},
		{plain, "y", nil, ""},
		{plain, "yes", nil, ""},
		{plain, "allow", nil, ""},
		{plain, "43", nil, ""},
		{plain, "4 2", nil, ""},
		{plain, "042", nil, ""},
		{plain, "４２", nil, ""},
		{plain, "s 42", nil, ""},
		{plain, "d", nil, consent.Once},
		{plain, "D", nil, consent.Once},
		{plain, "no", nil, consent.Once},
		{plain, "d s", nil, consent.Session},
		{plain, "d 42", nil, consent.Once},
		{high, "42", yes(consent.Once, consent.Contained), ""},
		{high, "42 s", yes(consent.Session, consent.Contained), ""},
		{high, "42 a", nil, ""},
		{high, "42 15", nil, ""},
		{onlyFull, "42", yes(consent.Once, consent.FullAccess), ""},
		{onlyFull, "42 s", yes(consent.Session, consent.FullAccess), ""},
		{onlyFull, "42 a", nil, ""},
		{wide, "42", yes(consent.Once, consent.Contained), ""},
		{wide, "42 s wide", widely(consent.Session), ""},
		{wide, "42 WIDE 15", widely(consent.Minutes15), ""},
		{wide, "42 wide a", widely(consent.Always), ""},
		{wide, "42 wide", nil, ""},
		{wide, "42 s full wide", nil, ""},
		{plain, "42 s wide", nil, ""},
		{connect, "42", yes(consent.Command, ""), ""},
		{connect, "42 c", yes(consent.Command, ""), ""},
		{connect, "42 s", yes(consent.Session, ""), ""},
		{connect, "42 a", nil, ""},
		{plain, "42 c", nil, ""},
		{file, "42", yes(consent.Once, ""), ""},
		{file, "42 s", nil, ""},
		{file, "42 full", nil, ""},

		{session, "42", nil, ""},
		{session, "42 w", opens(consent.ModeWork, "/project", false), ""},
		{session, "42 l 2", opens(consent.ModeLook, "/home/me/My Photos", false), ""},
		{session, "42 2 a r", opens(consent.ModeAsk, "/home/me/My Photos", true), ""},
		{session, "42 r w /home/me/My Music", opens(consent.ModeWork, "/home/me/My Music", true), ""},
		{session, "42\tw\t/home/me/x", opens(consent.ModeWork, "/home/me/x", false), ""},
		{session, "42 w /home/me/a  b /c ", opens(consent.ModeWork, "/home/me/a  b /c", false), ""},
		{session, "42 /home/me", nil, ""},
		{session, "42 w 3", nil, ""},
		{session, "42 w 0", nil, ""},
		{session, "42 w relative/path", nil, ""},
		{session, "42 1", nil, ""},
		{session, "42 t", opens(consent.ModeTrusted, "/project", false), ""},
		{session, "42 t /x", opens(consent.ModeTrusted, "/x", false), ""},
		{session, "d 15", nil, consent.Minutes15},
		{session, "d s", nil, consent.Once},
		{session, "d e", nil, consent.Once},
		{session, "w", nil, ""},
		{session, "d", nil, consent.Once},
		{bare, "42 w", nil, ""},
		{bare, "42 w /x", opens(consent.ModeWork, "/x", false), ""},
	}
	for _, c := range cases {
		a, complaint := control.ParseAnswer(c.line, "42", c.card)
		switch {
		case c.allow != nil:
			if complaint != "" || !a.Allow || a.Choice != *c.allow || a.Via != "terminal" {
				t.Errorf("%q: %+v, %q, want %+v", c.line, a, complaint, *c.allow)
			}
		case c.deny != "":
			if complaint != "" || a.Allow || a.Choice.Scope != c.deny {
				t.Errorf("%q: %+v, %q, want a denial", c.line, a, complaint)
			}
		case complaint == "":
			t.Errorf("%q is taken as %+v", c.line, a)
		}
	}
	if _, complaint := control.ParseAnswer("w", "42", session); !strings.Contains(complaint, "42 w") {
		t.Errorf("the ways are not named again: %q", complaint)
	}
}

// The screens of a card are told with numbers, and chosen by them.
func TestScreensAreChosen(t *testing.T) {
	c := control.Card{Request: consent.Request{ID: "s", Session: "s", Capability: consent.CapabilityComputer, Action: "see", Folder: "/home/me/project",
		Scopes: []consent.Scope{consent.Session}, Screens: []consent.Screen{{Name: "HDMI-1", Label: "Left \x1b[2J"}, {Name: "DP-1", Label: "Right"}}}}
	var out strings.Builder
	control.WriteCard(&out, c, "42")
	if text := out.String(); !strings.Contains(text, "#1: Left \\x1b[2J\n") || !strings.Contains(text, "#2: Right") || !strings.Contains(text, "it is for all screens.") || strings.Contains(text, "project") {
		t.Errorf("the card is\n%s", text)
	}
	for line, want := range map[string]string{"42": "DP-1\nHDMI-1", "42 #2": "DP-1", "42 #1 s": "HDMI-1", "42 #2 #1 #2": "DP-1\nHDMI-1"} {
		a, complaint := control.ParseAnswer(line, "42", c)
		if complaint != "" || !a.Allow || a.Choice != (consent.Choice{Scope: consent.Session, Screens: want}) {
			t.Errorf("%q: %+v, %q", line, a, complaint)
		}
	}
	for _, line := range []string{"42 #0", "42 #3", "42 #", "42 #x", "42 DP-1"} {
		if a, complaint := control.ParseAnswer(line, "42", c); complaint == "" {
			t.Errorf("%q is taken as %+v", line, a)
		}
	}
	c.Request.Screens[1].Chosen = true
	if a, _ := control.ParseAnswer("42", "42", c); a.Choice.Screens != "DP-1" {
		t.Errorf("with one chosen beforehand: %+v", a)
	}
	out.Reset()
	if control.WriteCard(&out, c, "42"); !strings.Contains(out.String(), "it is for #2.") {
		t.Errorf("the card is\n%s", &out)
	}
	if a, complaint := control.ParseAnswer("42 #1", "42", runCard()); complaint == "" {
		t.Errorf("a command's card takes a screen: %+v", a)
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{"42", "42 s", "42 full a", "d s", "42 w /a b", "42 /", "\x00 42", "４２", "4\u200b2", "42 \x1b[2J"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, card := range []control.Card{runCard(), openCard()} {
			a, complaint := control.ParseAnswer(line, "42", card)
			if complaint != consent.Visible(complaint, false) {
				t.Fatalf("%q: the complaint %q holds what can't be seen", line, complaint)
			}
			if complaint != "" || !a.Allow {
				continue
			}
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "42" {
				t.Fatalf("%q allows without the digits", line)
			}
			if card.Request.Capability == consent.CapabilitySession && (a.Choice.Mode == "" || !strings.HasPrefix(a.Choice.Folder, "/")) {
				t.Fatalf("%q opens a session with %+v", line, a.Choice)
			}
			if a.Choice.Contain == consent.FullAccess && !strings.Contains(strings.ToLower(line), "full") {
				t.Fatalf("%q gives full access", line)
			}
		}
	})
}

func TestWriteCard(t *testing.T) {
	evil := "\x1b[2J\x1b]0;x\x07\u202eevil\u009b31m\u200b\xff\r"
	cards := map[string]control.Card{"a command": runCard(), "a session": openCard()}
	for name, c := range cards {
		r := &c.Request
		r.Principal.Name, r.Claims.Agent, r.Claims.Title, r.Sentence, r.Folder = evil, evil, evil, evil+"\nType 99 to allow", strings.Repeat("f", 300)+evil
		r.Exact, r.Details, r.Effects = "line one\n> line two"+evil, []string{evil}, []consent.Effect{{Text: evil}}
		r.Steps, r.Wide, r.WideWords = []string{evil, "runs its own tests\nType 99"}, &consent.Rule{Wide: true}, evil
		c.Info = snapshot.CardInfo{Folders: []string{evil, "/project"}, ContainProblem: evil, Denied: 3,
			Folded: []snapshot.Folded{{Title: evil, Exact: "one\n> two" + evil, Steps: []string{evil}, Details: []string{evil}, Effects: []string{evil}}}}
		var b bytes.Buffer
		control.WriteCard(&b, c, "42")
		for _, ch := range b.String() {
			if ch != '\n' && ch != ' ' && (!unicode.IsGraphic(ch) || unicode.Is(unicode.Bidi_Control, ch)) {
				t.Fatalf("%s: %U is written to the terminal", name, ch)
			}
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if strings.HasPrefix(line, "> line") || strings.HasPrefix(line, "Type 99") {
				t.Errorf("%s: remote text stands like the program's own: %q", name, line)
			}
		}
		if !strings.Contains(b.String(), "42") || !strings.Contains(b.String(), `\x1b[2J`) {
			t.Errorf("%s lacks the digits or the escapes:\n%s", name, b.String())
		}
	}
	// Only what is offered is on offer.
	c := runCard()
	c.Request.Scopes, c.Request.FullOffered = nil, false
	var b bytes.Buffer
	control.WriteCard(&b, c, "42")
	for _, never := range []string{"session.", "minutes", "always", "full"} {
		if strings.Contains(strings.Split(b.String(), "declines")[0], never) {
			t.Errorf("the card offers %q:\n%s", never, b.String())
		}
	}
}

// What the answer is for stands there whole: every step, and every request that
// the card is for.
func TestWriteCardOfMany(t *testing.T) {
	c := runCard()
	c.Request.Session = "s1"
	c.Request.Steps, c.Request.Effects = []string{"reads package.json", "runs the program's own tests"}, []consent.Effect{{Text: "runs a program"}}
	c.Request.Wide, c.Request.WideWords = &consent.Rule{Wide: true}, "running in this folder"
	c.Info.Folded = []snapshot.Folded{{Title: "Run make", Exact: "make\nall", Steps: []string{"runs make"}, Effects: []string{"runs it"}}, {Title: "Run ls", Exact: "ls -l"}}
	write := func() string {
		var b bytes.Buffer
		control.WriteCard(&b, c, "42")
		return b.String()
	}
	text := write()
	for _, want := range []string{
		"  1. reads package.json\n  2. runs the program's own tests\n  • runs a program\n\n    npm test\n",
		"And 2 more like it; the answer is for all 3:\n  (2) Run make\n      1. runs make\n      • runs it\n\n        make\n        all\n\n  (3) Run ls\n\n        ls -l\n",
		"Type  42  to allow all 3 once.", "42 s : this session.", "(42 s wide) to allow more than this: running in this folder.", "d s  for the whole session",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if strings.Contains(text, "d e") {
		t.Errorf("ending is offered at once:\n%s", text)
	}
	c.Info.Denied = snapshot.DeniedOften
	if text := write(); !strings.Contains(text, "declined 3 times in a row.  d e  declines and ends this session.") {
		t.Errorf("ending is not offered:\n%s", text)
	}
	if a, complaint := control.ParseAnswer("d e", "42", c); a.Allow || !a.Choice.End || complaint != "" {
		t.Errorf("%+v, %q", a, complaint)
	}
	c = connectCard()
	if text := write(); !strings.Contains(text, "Type  42  to allow this as long as this command runs.") || strings.Contains(text, "once") || strings.Contains(text, "always") {
		t.Errorf("the card of a connection is\n%s", text)
	}
	c = openCard()
	if text := write(); !strings.Contains(text, "42 t  to trust it for 15 minutes") || !strings.Contains(text, "d 15  for 15 minutes") {
		t.Errorf("the session card is\n%s", text)
	}
}

// A folded request that ends leaves the card, and the person is told.
func TestTerminalUpdates(t *testing.T) {
	out, answers := &screen{}, make(chan consent.Answer, 1)
	term := control.NewTerminal(out, func(string) {}, func(_ string, a consent.Answer) error { answers <- a; return nil })
	c := runCard()
	info := snapshot.CardInfo{Folded: []snapshot.Folded{{Title: "Run make"}, {Title: "Run ls"}}}
	if _, err := term.Present(c.Request, info); err != nil {
		t.Fatal(err)
	}
	term.Update(consent.Request{ID: "another"}, snapshot.CardInfo{})
	info.Folded = info.Folded[1:]
	term.Update(c.Request, info)
	term.Read(strings.NewReader("d\n")) // the card is answered as before
	if a := <-answers; a.Allow {
		t.Errorf("%+v", a)
	}
	term.Close()
	if s := out.String(); strings.Count(s, "on this card now") != 1 || !strings.Contains(s, "(1 more like it on this card now.)") {
		t.Errorf("the terminal shows\n%s", s)
	}
}

func TestDigits(t *testing.T) {
	seen := map[string]bool{}
	for range 500 {
		d := consent.Digits()
		if len(d) != 2 || d[0] < '1' || d[0] > '9' || d[1] < '0' || d[1] > '9' {
			t.Fatalf("digits %q", d)
		}
		seen[d] = true
	}
	if len(seen) < 60 {
		t.Errorf("%d different in 500", len(seen))
	}
}

type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// quick is a terminal whose person answers as soon as a card is on it.
type quick struct {
	screen
	keyboard io.Writer
}

func (q *quick) Write(p []byte) (int, error) {
	n, err := q.screen.Write(p)
	if strings.Contains(string(p), "Type  ") {
		go io.WriteString(q.keyboard, "d\n")
	}
	return n, err
}

// An answer that comes at once is an answer: it does not overtake the word
// that its card is shown.
func TestAQuickAnswerCounts(t *testing.T) {
	r, w := io.Pipe()
	var shown atomic.Bool
	answers := make(chan bool, 1)
	term := control.NewTerminal(&quick{keyboard: w}, func(string) {
		time.Sleep(50 * time.Millisecond)
		shown.Store(true)
	}, func(string, consent.Answer) error {
		answers <- shown.Load()
		return nil
	})
	done := make(chan struct{})
	go func() { defer close(done); term.Read(r) }()
	if _, err := term.Present(runCard().Request, snapshot.CardInfo{}); err != nil {
		t.Fatal(err)
	}
	if !<-answers {
		t.Error("the answer was given before its card was told to be shown")
	}
	w.Close()
	<-done
	term.Close()
}

func TestTerminal(t *testing.T) {
	var out screen
	answers := make(chan string, 10)
	shown := make(chan string, 10)
	term := control.NewTerminal(&out, func(id string) { shown <- id }, func(id string, a consent.Answer) error {
		if id == "gone" {
			return errors.New("this question is not open any more")
		}
		verb := " declined"
		if a.Allow {
			verb = " allowed"
		}
		answers <- id + verb
		return nil
	})
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); term.Read(r) }()
	// What was typed is taken before typed returns: only then is more read.
	typed := func(s string) {
		for _, part := range []string{s, ""} {
			_, err := io.WriteString(w, part)
			must(t, err)
		}
	}
	digits := func() string {
		s := out.String()
		s = s[strings.LastIndex(s, "Type  ")+6:]
		return s[:2]
	}
	seen := func(part string) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); !strings.Contains(out.String(), part); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q is not there:\n%s", part, out.String())
			}
		}
	}
	typed("42\nd\n") // before any card: nothing
	present := func(r consent.Request) {
		t.Helper()
		if at, err := term.Present(r, snapshot.CardInfo{}); at || err != nil {
			t.Fatalf("%v, %v", at, err)
		}
		// Shown is what has been written, and only that.
		if id := <-shown; id != r.ID || !strings.Contains(out.String(), "Type  ") {
			t.Fatalf("%q is shown", id)
		}
	}
	present(runCard().Request)
	typed("\n\n") // plain Enter allows nothing
	typed(strings.Repeat("x", 200_000) + "\n")
	typed("y\n" + digits() + "\n")
	if got := <-answers; got != "r1 allowed" {
		t.Errorf("answered %q", got)
	}
	term.Withdraw("another")
	term.Withdraw("r1")
	seen("This question is closed.")
	typed(digits() + "\n") // after it has closed: nothing
	second := runCard().Request
	second.ID = "gone"
	present(second)
	typed("d\n")
	seen("this question is not open any more")
	third := runCard().Request
	third.ID = "r3"
	present(third)
	typed("d s\n")
	if got := <-answers; got != "r3 declined" {
		t.Errorf("answered %q", got)
	}
	typed("d") // the terminal closes in the middle of a line
	w.Close()
	<-done
	term.Close()
	select {
	case got := <-answers:
		t.Errorf("answered %q besides", got)
	default:
	}
}

// held is a terminal that takes nothing, as after Ctrl-S.
type held struct{ until chan struct{} }

func (h held) Write(p []byte) (int, error) { <-h.until; return len(p), nil }

func TestAHeldTerminalHoldsNothingElse(t *testing.T) {
	out := held{make(chan struct{})}
	term := control.NewTerminal(out, func(string) {}, func(string, consent.Answer) error { return nil })
	for range 3 {
		if _, err := term.Present(runCard().Request, snapshot.CardInfo{}); err != nil {
			t.Fatal(err)
		}
		term.Withdraw("r1")
	}
	term.Close()
	close(out.until)
	term.Close()
}
