package ui

import (
	"errors"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// pairing is a stage with the Pair window open.
func pairing(t *testing.T) (*stage, fyne.Window) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.AutoGPT, n.Connect.AutoGPTUsual = autoGPT, autoGPT })
	w := s.window(snapshot.WindowPair)
	s.intents()
	return s, w
}

// ended is the snapshot after a sign-in.
func (s *stage) ended(why string) {
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Connect.Pairing, n.Connect.SignIn, n.Connect.PairError = false, nil, why
	})
}

// By keyboard alone: the arrows choose, Tab goes on, Enter in the address
// pairs.
func TestPairWithAnOwnHubByKeyboard(t *testing.T) {
	s, w := pairing(t)
	keyOn(w, fyne.KeyDown)
	if s.u.pair.choose.way() != wayOwn || w.Canvas().Focused() != fyne.Focusable(s.u.pair.choose.options) {
		t.Fatalf("the arrow chose %d, the keyboard is at %T", s.u.pair.choose.way(), w.Canvas().Focused())
	}
	if !s.button(w, "Pair").Disabled() {
		t.Error("one can pair without an address")
	}
	w.Canvas().(interface{ FocusNext() }).FocusNext()
	if w.Canvas().Focused() != fyne.Focusable(s.u.pair.choose.address) {
		t.Fatalf("Tab went to %T", w.Canvas().Focused())
	}
	typeOn(w, " hub.example ")
	keyOn(w, fyne.KeyReturn)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: "hub.example"})
	keyOn(w, fyne.KeyReturn)
	if got := s.intents(); len(got) != 0 {
		t.Errorf("it is asked for twice: %+v", got)
	}
	// It fails: the reason stands by the address, which is kept.
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Pair, Text: "There is no hub there."}})
	s.ended("There is no hub there.")
	said := 0
	for _, text := range texts(w) {
		if text == "There is no hub there." {
			said++
		}
	}
	if said != 1 || s.u.pair.choose.address.Text != " hub.example " {
		t.Fatalf("the reason is said %d times, the address is %q", said, s.u.pair.choose.address.Text)
	}
	keyOn(w, fyne.KeyReturn)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: "hub.example"})
	keyOn(w, fyne.KeyEscape)
	if s.u.open[w] {
		t.Error("Escape leaves the window open")
	}
}

func TestEnterOnAChoicePairs(t *testing.T) {
	s, w := pairing(t)
	keyOn(w, fyne.KeyReturn)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair})
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Pair, Text: "The port is taken."}})
	keyOn(w, fyne.KeyDown, fyne.KeyDown, fyne.KeyReturn)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: "autogpt"})
}

// A click on the own hub takes the keyboard to its address.
func TestClickOnOwnHub(t *testing.T) {
	s, w := pairing(t)
	s.u.pair.choose.options.Select(wayOwn)
	s.u.pair.choose.options.OnTap(wayOwn)
	if w.Canvas().Focused() != fyne.Focusable(s.u.pair.choose.address) {
		t.Errorf("the keyboard is at %T", w.Canvas().Focused())
	}
}

// Closing the window during a sign-in cancels nothing; opened again it shows
// how far it is.
func TestSignInGoesOnBehindTheWindow(t *testing.T) {
	s, w := pairing(t)
	s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInStarting})
	s.u.pair.leave()
	if got := s.intents(); len(got) != 0 || s.u.open[w] {
		t.Fatalf("closing sent %+v", got)
	}
	s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/pair?request=1"})
	if n := len(s.clock.timers); n > 0 {
		t.Errorf("%d timers go on behind a hidden window", n)
	}
	w = s.window(snapshot.WindowPair)
	if !has(w, "4821") || !has(w, "9:41 left") {
		t.Fatalf("window says %q", texts(w))
	}
	s.clock.run(2 * time.Second)
	if !has(w, "9:39 left") {
		t.Errorf("the time does not go by: %q", texts(w))
	}
	s.tap(w, "Open the page again")
	if len(s.visited) != 1 || s.visited[0] != "https://hub.example/pair?request=1" {
		t.Errorf("opened %q", s.visited)
	}
	s.tap(w, "Copy the address")
	if got := s.u.o.App.Clipboard().Content(); got != "https://hub.example/pair?request=1" || !has(w, "● Copied") {
		t.Errorf("copied %q", got)
	}
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Connect = snapshot.Connect{}
		n.Hub = snapshot.Hub{Paired: true, Kind: "own", Name: "Home", Address: "https://hub.example/"}
	})
	s.tap(w, "Open the Keys page")
	if s.visited[1] != "https://hub.example/keys" {
		t.Errorf("opened %q", s.visited)
	}
	s.clock.run(time.Minute)
	if n := len(s.clock.timers); n > 0 {
		t.Errorf("%d timers go on after the sign-in", n)
	}
}

func TestCancelASignIn(t *testing.T) {
	s, w := pairing(t)
	in := snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/pair"}
	s.signingIn(in)
	s.tap(w, "Cancel")
	s.wantIntent(snapshot.Intent{Kind: snapshot.CancelPair})
	if !s.button(w, "Cancelling…").Disabled() {
		t.Error("it can be cancelled twice")
	}
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.CancelPair, OK: true}})
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Pair, Text: "The sign-in was cancelled."}})
	s.ended("")
	if has(w, "was cancelled") || s.button(w, "Pair").Disabled() || s.u.pair.choose.address.Text != in.Hub {
		t.Fatalf("after a cancel the window says %q, the address is %q", texts(w), s.u.pair.choose.address.Text)
	}
	s.tap(w, "Pair")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: in.Hub})
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Pair, Text: "There is no hub there."}})
	if !has(w, "There is no hub there.") {
		t.Errorf("a later failure is not said: %q", texts(w))
	}
}

// The other way begins when the first has ended, and not before.
func TestUseACodeInstead(t *testing.T) {
	s, w := pairing(t)
	in := snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/pair"}
	s.signingIn(in)
	s.tap(w, "Use a code instead")
	s.wantIntent(snapshot.Intent{Kind: snapshot.CancelPair})
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.SignIn = nil }) // still at it
	if got := s.intents(); len(got) != 0 {
		t.Fatalf("sent %+v before the first had ended", got)
	}
	s.ended("")
	if got := s.intents(); len(got) != 0 || !has(w, "One moment") {
		t.Fatalf("sent %+v before the first had ended, the window says %q", got, texts(w))
	}
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.CancelPair, OK: true}})
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: in.Hub, Way: "code"})
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Pair, Text: "The sign-in was cancelled."}}) // the first's, late
	in.Stage, in.Match, in.URL, in.UserCode = snapshot.SignInCode, "", "https://hub.example/pair", "BCDF-GHJK"
	s.signingIn(in)
	if has(w, "was cancelled") || !has(w, "BCDF-GHJK") {
		t.Fatalf("window says %q", texts(w))
	}
	s.tap(w, "Copy the code")
	if got := s.u.o.App.Clipboard().Content(); got != "BCDF-GHJK" {
		t.Errorf("copied %q", got)
	}
	s.tap(w, "Use the browser here instead")
	s.intents()
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.CancelPair, OK: true}})
	s.ended("")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: in.Hub})
}

// The person agreed just before the other way was asked for: paired is paired.
func TestAWayThatIsNotNeededAnyMore(t *testing.T) {
	s, w := pairing(t)
	s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/pair"})
	s.tap(w, "Use a code instead")
	s.intents()
	s.ended("")
	s.pairedWith(snapshot.Hub{Kind: "own", Name: "Home", Address: "https://hub.example"})
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.CancelPair, OK: true}})
	if got := s.intents(); len(got) != 0 || !has(w, "Paired with Home") {
		t.Errorf("sent %+v, the window says %q", got, texts(w))
	}
}

func TestPairWithAutoGPT(t *testing.T) {
	s, w := pairing(t)
	s.u.pair.choose.options.Select(wayAutoGPT)
	s.tap(w, "Pair")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: "autogpt"})
	s.ended("AutoGPT has not switched local computers on for your account yet.")
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Pair, Text: s.u.snap.Connect.PairError}})
	if !has(w, "not switched local computers on") {
		t.Fatalf("window says %q", texts(w))
	}
	s.tap(w, "▸ Advanced")
	fields := s.u.pair.choose.advanced.fields
	fields[3].field.SetText("https://gpt.example ")
	fields[5].field.SetText("")
	w.Canvas().Focus(fields[3].field)
	s.snapshot(func(n *snapshot.Snapshot) { n.Line = "Something else" })
	if w.Canvas().Focused() != fyne.Focusable(fields[3].field) || fields[3].field.Text != "https://gpt.example " {
		t.Errorf("news took away what is being typed: %q", fields[3].field.Text)
	}
	keyOn(w, fyne.KeyReturn)
	want := autoGPT
	want.Web, want.WS = "https://gpt.example", ""
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: "autogpt", AutoGPT: &want})
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.AutoGPT = want; n.Connect.PairError = "No." })
	s.tap(w, "Reset to defaults")
	if got := s.u.pair.choose.advanced.typed(); got != autoGPT {
		t.Fatalf("reset to %+v", got)
	}
	s.tap(w, "Try again")
	usual := autoGPT
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: "autogpt", AutoGPT: &usual})
}

// A sign-in that has ended leads back with the address filled in, from the
// banner too.
func TestSignInAgain(t *testing.T) {
	s, w := pairing(t)
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub = snapshot.Hub{Paired: true, Kind: "own", Name: "Home", Address: "https://hub.example"}
		n.State, n.Problem, n.Fix, n.FixLabel = snapshot.SignIn, "Not connected: the sign-in has ended.", snapshot.Pair, "Sign in"
	})
	if got := s.u.pair.choose.address.Text; got != "https://hub.example" {
		t.Fatalf("the address is %q", got)
	}
	said := 0
	walk(w.Content(), func(o fyne.CanvasObject) {
		if b, ok := o.(*kit.Button); ok && b.Text() == "Sign in" {
			said++
		}
	})
	if said != 1 {
		t.Errorf("%d buttons say Sign in", said)
	}
	keyOn(w, fyne.KeyReturn)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair, Text: "https://hub.example"})
	s.u.pair.leave()
	a := s.window(snapshot.WindowActivity)
	s.intents()
	s.tap(a, "Sign in")
	if !s.u.open[w] || s.u.pair.page != pageAgain {
		t.Error("the banner does not lead to the sign-in")
	}
	s.tap(w, "Unpair")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Unpair})
}

func TestPairedPageUnpairs(t *testing.T) {
	s, w := pairing(t)
	s.pairedWith(snapshot.Hub{Kind: "autogpt", Name: "AutoGPT", Address: "https://platform.autogpt.net"})
	s.tap(w, "Open AutoGPT")
	if len(s.visited) != 1 || s.visited[0] != autoGPT.Web {
		t.Errorf("opened %q", s.visited)
	}
	s.tap(w, "Unpair")
	if got := s.intents(); len(got) != 0 {
		t.Fatalf("unpaired without a question: %+v", got)
	}
	keyOn(w, fyne.KeyReturn) // what has the keyboard keeps it paired
	if got := s.intents(); len(got) != 0 || has(w, "Unpair this computer?") {
		t.Fatalf("%+v, %q", got, texts(w))
	}
	s.tap(w, "Unpair")
	var really *kit.Button
	walk(w.Content(), func(o fyne.CanvasObject) {
		if b, ok := o.(*kit.Button); ok && b.Text() == "Unpair" {
			really = b
		}
	})
	really.Tapped(nil)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Unpair})
}

// What a hub calls its page is opened only if it is one of the web.
func TestOnlyWebPagesAreOpened(t *testing.T) {
	s, w := pairing(t)
	for _, bad := range []string{"file:///etc/passwd", "javascript:alert(1)", "https:", "-x", "%zz", ""} {
		s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: bad})
		s.tap(w, "Open the page again")
		if len(s.visited) != 0 {
			t.Fatalf("%q was opened", s.visited)
		}
	}
	s.noBrowser = errors.New("no xdg-open")
	s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/x"})
	s.tap(w, "Open the page again")
	if !has(w, "The browser could not be opened. Copy the address, and open it yourself.") {
		t.Errorf("window says %q", texts(w))
	}
}

func TestMainWindowLeadsToTheSignIn(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowMain)
	for _, c := range []struct {
		label string
		set   func(*snapshot.Snapshot)
	}{
		{"Pair…", func(n *snapshot.Snapshot) {}},
		{"Show the sign-in", func(n *snapshot.Snapshot) { n.Connect.SignIn = &snapshot.SigningIn{Kind: "own"} }},
		{"Use in AutoGPT", func(n *snapshot.Snapshot) { n.Connect.SignIn, n.Hub = nil, snapshot.Hub{Paired: true, Kind: "autogpt"} }},
		{"Sign in again", func(n *snapshot.Snapshot) { n.State = snapshot.SignIn }},
		{"Connect a program", func(n *snapshot.Snapshot) { n.State, n.Hub.Kind = snapshot.Online, "own" }},
	} {
		s.snapshot(c.set)
		if c.label == "Show the sign-in" && !has(w, "Signing in…") {
			t.Errorf("the state line says %q", texts(w))
		}
		s.tap(w, c.label)
		if !s.u.open[s.u.pair.win] {
			t.Errorf("%s does not open the window", c.label)
		}
		s.u.pair.leave()
	}
}
