package ui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/ui/kit"
	"localpc/consent"
)

func contains(s, sub string) bool { return strings.Contains(s, sub) }

func (s *stage) command(id string) desklink.Card {
	r := consent.Request{
		ID: id, Hub: "this", HubName: "This computer only", Principal: consent.Principal{ID: "p", Name: "Claude Desktop"},
		Claims: consent.Claims{Agent: "Claude", Title: "Tidy up"}, Session: "s", Mode: consent.ModeAsk, Folder: "/home/person/project",
		Capability: "shell", Action: "run", Title: "Run npm test", Sentence: "Claude Desktop wants to run npm test", Exact: "npm test",
		Effects: []consent.Effect{{Kind: consent.EffectRun, Text: "Runs npm"}}, Risk: consent.RiskNormal,
		Containable: true, FullOffered: true, Scopes: []consent.Scope{consent.Once, consent.Session, consent.Minutes15, consent.Always},
		Arrived: s.clock.now, Deadline: s.clock.now.Add(50 * time.Second),
	}
	r.Rule = consent.Rule{Hub: "this", Principal: "p", Folder: r.Folder, Capability: "shell", Action: "run", Exact: r.Exact}
	return desklink.Card{Request: r, Digits: "47", ArmMS: 700}
}

func (s *stage) session(folders ...string) desklink.Card {
	c := s.command("open")
	c.Request.Capability, c.Request.Action, c.Request.Exact, c.Request.Mode = consent.CapabilitySession, "open", "", ""
	c.Request.Sentence, c.Request.Effects, c.Request.Scopes = "Let Claude Desktop work on this computer?", nil, nil
	c.Folders = folders
	return c
}

func TestShownOnceWhenPainted(t *testing.T) {
	s := newStage(t)
	s.show(s.command("a"))
	s.clock.run(5 * time.Second)
	if got := s.shown(); len(got) != 0 {
		t.Fatalf("shown %v before anything was painted", got)
	}
	s.paint()
	s.paint()
	s.clock.run(5 * time.Second)
	s.paint()
	if got := s.shown(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("shown %v, want a once", got)
	}
	s.show(s.command("b"))
	s.paint()
	if got := s.shown(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("shown %v after the second card", got)
	}
}

func TestArming(t *testing.T) {
	s := newStage(t)
	press := func() {
		click(s.u.card.now.allow)
		typeOn(s.u.card.win, "47")
	}
	for _, id := range []string{"a", "b"} { // again for each new card
		s.show(s.command(id))
		press()
		s.paint()
		s.clock.run(699 * time.Millisecond)
		if s.u.card.now.allow.Armed() {
			t.Fatal("armed too early")
		}
		press()
		if a := s.answers(); len(a) != 0 {
			t.Fatalf("answered %+v before it was armed", a)
		}
		s.clock.run(time.Millisecond)
		if !s.u.card.now.allow.Armed() {
			t.Fatal("not armed after 0.7 s")
		}
	}
	press()
	if a := s.answers(); len(a) != 1 || !a[0].Allow || a[0].Choice != (consent.Choice{Scope: consent.Once, Contain: consent.Contained}) || a[0].Via != "card" {
		t.Fatalf("answers %+v, want one that allows once, contained", a)
	}
}

// click presses the mouse on the button and lets it go again.
func click(a *kit.Allow) {
	a.MouseDown(nil)
	test.Tap(a)
}

// A click that began before the card was armed is none.
func TestClickFromBeforeArming(t *testing.T) {
	s := newStage(t)
	s.show(s.command("a"))
	s.paint()
	allow := s.u.card.now.allow
	allow.MouseDown(nil)
	s.clock.run(time.Second)
	test.Tap(allow)
	if a := s.answers(); len(a) != 0 {
		t.Fatalf("answered %+v", a)
	}
	click(allow)
	if a := s.answers(); len(a) != 1 || !a[0].Allow {
		t.Fatalf("answers %+v", a)
	}
}

// typeOn types as a keyboard would: to what has the focus, or to the window.
func typeOn(w fyne.Window, text string) {
	for _, r := range text {
		if f := w.Canvas().Focused(); f != nil {
			f.TypedRune(r)
		} else {
			w.Canvas().OnTypedRune()(r)
		}
	}
}

func keyOn(w fyne.Window, names ...fyne.KeyName) {
	for _, n := range names {
		if n == fyne.KeyTab {
			w.Canvas().(test.WindowlessCanvas).FocusNext()
			continue
		}
		if f := w.Canvas().Focused(); f != nil {
			f.TypedKey(&fyne.KeyEvent{Name: n})
		} else {
			w.Canvas().OnTypedKey()(&fyne.KeyEvent{Name: n})
		}
	}
}

func TestEnterAndSpaceAllowNothing(t *testing.T) {
	for _, kind := range []string{"command", "session"} {
		t.Run(kind, func(t *testing.T) {
			// From every place that Tab leads to.
			for tabs := range 9 { // once round
				s := newStage(t)
				c := s.command("a")
				if kind == "session" {
					c = s.session("/home/person/project")
				}
				s.card(c)
				for range tabs {
					s.u.card.win.Canvas().(interface{ FocusNext() }).FocusNext()
				}
				for _, k := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyEnter, fyne.KeySpace} {
					keyOn(s.u.card.win, k)
					typeOn(s.u.card.win, " ")
				}
				s.u.card.win.Canvas().Unfocus()
				keyOn(s.u.card.win, fyne.KeyReturn, fyne.KeySpace)
				for _, a := range s.answers() {
					if a.Allow {
						t.Fatalf("a key allowed after %d tabs", tabs)
					}
				}
			}
		})
	}
}

func TestKeysBeforeArmingDoNothing(t *testing.T) {
	s := newStage(t)
	s.show(s.command("a"))
	s.paint()
	keyOn(s.u.card.win, fyne.KeyReturn, fyne.KeySpace, fyne.KeyEscape)
	typeOn(s.u.card.win, "4")
	s.clock.run(time.Second)
	typeOn(s.u.card.win, "7") // the 4 came too early to count
	if a := s.answers(); len(a) != 0 {
		t.Fatalf("answered %+v by what was typed while the card opened", a)
	}
}

func TestDigits(t *testing.T) {
	for text, allow := range map[string]bool{"47": true, "447": true, "747": true, "4x7": false, "74": false, "4 7": false, "4": false} {
		s := newStage(t)
		s.card(s.command("a"))
		typeOn(s.u.card.win, text)
		a := s.answers()
		if got := len(a) == 1 && a[0].Allow; got != allow {
			t.Errorf("typing %q: allowed %v, want %v", text, got, allow)
		}
	}
}

func TestDenying(t *testing.T) {
	once := consent.Choice{Scope: consent.Once}
	for name, c := range map[string]struct {
		do   func(s *stage)
		want consent.Choice
	}{
		"button":      {func(s *stage) { s.tap(s.u.card.win, "Deny") }, once},
		"Escape":      {func(s *stage) { keyOn(s.u.card.win, fyne.KeyEscape) }, once},
		"Enter":       {func(s *stage) { keyOn(s.u.card.win, fyne.KeyReturn) }, once}, // Deny has the focus
		"closing":     {func(s *stage) { s.u.card.win.Close() }, once},
		"for session": {func(s *stage) { s.tap(s.u.card.win, "Deny for this session") }, consent.Choice{Scope: consent.Session}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.card(s.command("a"))
			if name == "closing" {
				s.u.card.now.answer(false, consent.Choice{Scope: consent.Once})
			} else {
				c.do(s)
			}
			if a := s.answers(); len(a) != 1 || a[0].Allow || a[0].Choice != c.want {
				t.Fatalf("answers %+v, want one that denies with %+v", a, c.want)
			}
			if s.u.card.now != nil {
				t.Fatal("the card is still there")
			}
		})
	}
}

func TestLateAnswerSendsNothing(t *testing.T) {
	s := newStage(t)
	o := s.card(s.command("a"))
	deny := s.button(s.u.card.win, "Deny")
	s.u.Handle(desklink.Down{Close: &desklink.CloseCard{ID: "other"}})
	if s.u.card.now != o {
		t.Fatal("closing another card took this one away")
	}
	s.u.Handle(desklink.Down{Close: &desklink.CloseCard{ID: "a"}})
	click(o.allow)
	test.Tap(deny)
	typeOn(s.u.card.win, "47")
	keyOn(s.u.card.win, fyne.KeyEscape)
	s.clock.run(time.Minute)
	if a := s.answers(); len(a) != 0 {
		t.Fatalf("a card that was gone answered %+v", a)
	}
	// Its buttons do not answer the next card either.
	s.card(s.command("b"))
	click(o.allow)
	test.Tap(deny)
	if a := s.answers(); len(a) != 0 {
		t.Fatalf("the old card's buttons answered the new one: %+v", a)
	}
}

func TestContainmentAndScopes(t *testing.T) {
	s := newStage(t)
	o := s.card(s.command("a"))
	b := o.body.(*actionBody)
	pick := func(seg *kit.Segments, steps ...fyne.KeyName) {
		for _, k := range steps {
			seg.TypedKey(&fyne.KeyEvent{Name: k})
		}
	}
	pick(b.scope, fyne.KeyRight, fyne.KeyRight, fyne.KeyRight)
	if c, _ := b.choice(); c != (consent.Choice{Scope: consent.Always, Contain: consent.Contained}) {
		t.Fatalf("choice %+v, want always contained", c)
	}
	if !has(s.u.card.win, "Remembers exactly this: Run `npm test` in /home/person/project, kept inside its folder") {
		t.Fatalf("the rule is not printed: %q", texts(s.u.card.win))
	}
	pick(b.where, fyne.KeyRight)
	if c, _ := b.choice(); c != (consent.Choice{Scope: consent.Once, Contain: consent.FullAccess}) {
		t.Fatalf("choice %+v: full access must fall back to once", c)
	}
	if !has(s.u.card.win, "Full access: it can do everything that you can do") {
		t.Fatal("full access is not warned of")
	}
	if o.allow.Text() != "Allow full access" {
		t.Fatalf("the button says %q", o.allow.Text())
	}
	pick(b.scope, fyne.KeyRight, fyne.KeyRight, fyne.KeyRight)
	click(o.allow)
	if a := s.answers(); len(a) != 1 || a[0].Choice != (consent.Choice{Scope: consent.Session, Contain: consent.FullAccess}) {
		t.Fatalf("answers %+v, want full access for the session at most", a)
	}
}

func TestWithoutContainment(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Request.Containable, c.ContainProblem = false, "Commands can't be contained here: bubblewrap is missing."
	o := s.card(c)
	if !has(s.u.card.win, c.ContainProblem) || !has(s.u.card.win, "Full access: ") {
		t.Fatalf("the card does not say what is wrong: %q", texts(s.u.card.win))
	}
	click(o.allow)
	if a := s.answers(); a[0].Choice.Contain != consent.FullAccess {
		t.Fatalf("answered %+v", a)
	}
}

func TestFileCard(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Request.Capability, c.Request.Action, c.Request.Containable, c.Request.FullOffered = "files", "remove", false, false
	c.Request.Effects = []consent.Effect{{Kind: consent.EffectDelete, Text: "Deletes 11 files", Count: 11}}
	c.Request.Scopes = []consent.Scope{consent.Once}
	o := s.card(c)
	if o.allow.Text() != "Allow deletion" || !has(s.u.card.win, "Deletes 11 files") {
		t.Fatalf("card says %q", texts(s.u.card.win))
	}
	click(o.allow)
	if a := s.answers(); a[0].Choice != (consent.Choice{Scope: consent.Once}) {
		t.Fatalf("answered %+v", a)
	}
}

func TestSessionCard(t *testing.T) {
	s := newStage(t)
	o := s.card(s.session("/home/person/project", "/home/person/other"))
	b := o.body.(*sessionBody)
	s.tap(s.u.card.win, otherWay)
	for i, mode := range modes {
		b.mode.Select(i)
		if c, ok := b.choice(); !ok || c.Mode != mode || c.Folder != "/home/person/project" || c.Remember {
			t.Fatalf("choice %+v, %v for way %d", c, ok, i)
		}
	}
	b.mode.Select(0)
	test.Tap(b.remember)
	typeOn(s.u.card.win, "47")
	want := consent.Choice{Scope: consent.Session, Mode: consent.ModeLook, Folder: "/home/person/project", Remember: true}
	if a := s.answers(); len(a) != 1 || !a[0].Allow || a[0].Choice != want {
		t.Fatalf("answers %+v, want %+v", a, want)
	}
}

func TestSessionFolderPicker(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"alpha/inner", "beta", ".hidden"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := newStage(t)
	o := s.card(s.session(root, "/suggested"))
	b := o.body.(*sessionBody)
	s.tap(s.u.card.win, "Choose…")
	typeOn(s.u.card.win, "47")
	if a := s.answers(); len(a) != 0 {
		t.Fatal("the digits allowed while a folder is being chosen")
	}
	rows := s.u.card.win.Canvas().Focused().(*kit.Rows)
	names := func() (n int) { return rows.Count() }
	if names() != 4 { // suggested, up, alpha, beta
		t.Fatalf("%d rows", names())
	}
	keyOn(s.u.card.win, fyne.KeyDown, fyne.KeyDown, fyne.KeyDown, fyne.KeyReturn) // into alpha
	s.tap(s.u.card.win, "Use this folder")
	if b.folder != filepath.Join(root, "alpha") {
		t.Fatalf("folder %q", b.folder)
	}
	click(s.u.card.now.allow)
	if a := s.answers(); len(a) != 1 || a[0].Choice.Folder != filepath.Join(root, "alpha") {
		t.Fatalf("answers %+v", a)
	}
}

func TestSessionWithoutFolder(t *testing.T) {
	s := newStage(t)
	c := s.session()
	c.Request.Folder = ""
	o := s.card(c)
	if o.allow.Armed() {
		t.Fatal("the card starts without a folder")
	}
	typeOn(s.u.card.win, "47")
	if a := s.answers(); len(a) != 0 {
		t.Fatalf("answered %+v without a folder", a)
	}
}

func TestCountdownAndWaiting(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Waiting = 1
	s.card(c)
	if !has(s.u.card.win, "Closes in 0:49") || !has(s.u.card.win, "1 more waiting") {
		t.Fatalf("card says %q", texts(s.u.card.win))
	}
	s.clock.run(9 * time.Second)
	if !has(s.u.card.win, "Closes in 0:40") {
		t.Fatalf("card says %q", texts(s.u.card.win))
	}
	s.clock.run(time.Minute)
	if !has(s.u.card.win, "Closes in 0:00") || len(s.answers()) != 0 {
		t.Fatal("the card must wait for its end without an answer of its own")
	}
}

// openclaw/openclaw#43687, NousResearch/hermes-agent#81403: on a card, too.
func TestHostileText(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Request.Principal.Name = "Evil\n\u202ename" + strings.Repeat("w", 300)
	c.Request.Claims.Title = "two\nlines\u2028\x1b[31m"
	c.Request.Sentence = "wants\r\nto \u200brun"
	c.Request.Exact = "rm\u00a0-rf \x00 /\ttab\nend"
	c.Request.Details = []string{"A=\u202e1\nFolder: /forged"}
	s.card(c)
	bad := []string{"\u202e", "\u2028", "\x1b", "\u200b", "\u00a0", "\r", "\x00"}
	var exact []string
	walk(s.u.card.win.Content(), func(o fyne.CanvasObject) {
		if e, ok := o.(*kit.Exact); ok {
			exact = append(exact, e.Lines()...)
		}
	})
	all := append(texts(s.u.card.win), exact...)
	for _, text := range all {
		for _, b := range bad {
			if contains(text, b) {
				t.Errorf("%q is drawn raw in %q", b, text)
			}
		}
	}
	joined := strings.Join(all, "\n")
	for _, want := range []string{`Evil\n\u202ename`, `two\nlines\u2028\x1b[31m`, `wants\r\nto \u200brun`, `rm\u00a0-rf \x00 /`, `A=\u202e1\nFolder: /forged`, strings.Repeat("w", 40)} {
		if !contains(joined, want) {
			t.Errorf("%q is not on the card", want)
		}
	}
}

func TestMebibyteIsDrawnInPart(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Request.Exact = strings.Repeat("echo \u202ex 世界 abcdefghijklmnop\n", 1<<20/40)
	s.card(c)
	objects := 0
	walk(s.u.card.win.Content(), func(fyne.CanvasObject) { objects++ })
	if objects > 2000 {
		t.Fatalf("%d objects on the card: the text is not virtualised", objects)
	}
}

func TestDetailsAreSorted(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Request.Details = []string{"Working in /home/person/project", "With NODE_ENV=test", "Ends after 60 seconds at the latest"}
	s.card(c)
	var exact []string
	walk(s.u.card.win.Content(), func(o fyne.CanvasObject) {
		if e, ok := o.(*kit.Exact); ok {
			exact = append(exact, e.Lines()...)
		}
	})
	if !slices.Equal(exact, []string{"npm test", "With NODE_ENV=test"}) {
		t.Errorf("exact lines %q", exact)
	}
	if w := s.u.card.win; !has(w, "Working in /home/person/project\nEnds after 60 seconds at the latest") || has(w, "Folder: ") {
		t.Errorf("card says %q", texts(w))
	}
	c.Request.Details[0] = "Working in /home/person/project/lib"
	s.card(c)
	if !has(s.u.card.win, "Folder: /home/person/project") {
		t.Errorf("the folder is not told whole: %q", texts(s.u.card.win))
	}
}

// A long text says how much of it there is, and a heading ends without a full
// stop.
func TestLongExactText(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Request.Sentence = "Claude wants to run a command on this computer."
	c.Request.Exact = strings.Repeat("echo more\n", 200)
	s.card(c)
	if w := s.u.card.win; !has(w, "Exactly this runs · 200 lines") || has(w, "this computer.") {
		t.Errorf("card says %q", texts(w))
	}
}

// A new program's own folder is made only when its session starts: the list
// begins at the home, and offers it.
func TestPickerOffersAFolderThatIsStillToBeMade(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, "Documents"), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(home, "Local PC", "Claude")
	s := newStage(t)
	b := s.card(s.session(fresh)).body.(*sessionBody)
	s.tap(s.u.card.win, "Choose…")
	if w := s.u.card.win; has(w, "can't be opened") || !has(w, "Home folder") {
		t.Fatalf("the list begins with %q", texts(w))
	}
	keyOn(s.u.card.win, fyne.KeyDown, fyne.KeyReturn) // the suggestion
	if w := s.u.card.win; !has(w, "it is made when you start") || s.button(w, "Use this folder").Disabled() {
		t.Fatalf("the new folder is not offered: %q", texts(w))
	}
	s.tap(s.u.card.win, "Use this folder")
	if c, ok := b.choice(); !ok || c.Folder != fresh {
		t.Fatalf("chosen %+v, %v", c, ok)
	}
}

// At a small size the body of a card scrolls; Tab and the arrows bring what
// they reach in sight.
func TestKeyboardScrolls(t *testing.T) {
	s := newStage(t)
	o := s.card(s.session("/home/person/project"))
	w := s.u.card.win
	w.Resize(fyne.NewSize(520, 300))
	w.Canvas().Capture()
	b := o.body.(*sessionBody)
	sees := func(what fyne.CanvasObject, name string) {
		t.Helper()
		y := s.u.o.App.Driver().AbsolutePositionForObject(what).Y
		foot := s.u.o.App.Driver().AbsolutePositionForObject(o.deny).Y
		if y < 0 || y+what.Size().Height > foot {
			t.Errorf("%s is at %v to %v, the body ends at %v", name, y, y+what.Size().Height, foot)
		}
	}
	w.Canvas().Focus(b.remember)
	sees(b.remember, "Remember")
	w.Canvas().Focus(b.mode)
	keyOn(w, fyne.KeyUp)
	var row fyne.CanvasObject
	walk(b.mode, func(c fyne.CanvasObject) {
		if f, ok := c.(*kit.Flow); ok && f.Text() == "Look only" {
			row = f
		}
	})
	sees(row, "Look only")
	keyOn(w, fyne.KeyDown, fyne.KeyDown)
	walk(b.mode, func(c fyne.CanvasObject) {
		if f, ok := c.(*kit.Flow); ok && f.Text() == "Ask me each time" {
			row = f
		}
	})
	sees(row, "Ask me each time")
}

// Folders are written as people write them: from the home on. What is compared,
// and what is remembered, is whole.
func TestFoldersBeginAtHome(t *testing.T) {
	t.Setenv("HOME", "/home/person")
	s := newStage(t)
	c := s.command("home")
	c.Request.Details = []string{"Working in /home/person/project/lib"}
	c.Request.Rule.Folder, c.Request.Rule.Cwd = "/home/person/project", "/home/person/project/lib"
	o := s.card(c)
	o.body.(*actionBody).scope.Select(1)
	o.body.(*actionBody).draw()
	w := s.u.card.win
	for _, want := range []string{"Working in ~/project/lib", " in ~/project, working in ~/project/lib"} {
		if !has(w, want) {
			t.Errorf("the card lacks %q: %q", want, texts(w))
		}
	}
	for path, want := range map[string]string{"/home/person": "~", "/home/persons/x": "/home/persons/x", "/srv/home/person": "/srv/home/person"} {
		if got := consent.HomePath("/home/person/", path); got != want {
			t.Errorf("%s is written %q, want %q", path, got, want)
		}
	}
}
