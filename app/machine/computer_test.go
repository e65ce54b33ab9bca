package machine

import (
	"bytes"
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities/computer"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/tunnel"
	"localpc/tunnel/wire"
)

func TestSeeingAndActing(t *testing.T) {
	s := newScreens(t, computer.Options{})
	if c := s.m.Snapshot().Control; c != nil {
		t.Errorf("at first %+v is in control", c)
	}
	pic, err := s.see()
	must(t, err)
	card := s.person.seen()[1]
	if card.Sentence != "Research agent is requesting screen access." || len(card.Screens) != 2 || !card.Looks || !slices.Contains(card.Scopes, consent.Session) {
		t.Errorf("the card is %+v", card)
	}
	f := s.d.frame()
	if c := s.m.Snapshot().Control; c == nil || !c.Sees || c.Acts || c.Who != "Research agent" || c.Session != "s1" || c.Colour == "" || !f.On || f.Colour != c.Colour || !slices.Equal(f.Own, []int{ownPID}) {
		t.Errorf("after a look %+v is in control, the frame is %+v", c, f)
	}
	if line := s.m.Snapshot(); line.State != snapshot.Working || line.Line != "Research agent sees your screen" {
		t.Errorf("the tray says %s, %q", line.State, line.Line)
	}
	// What was sent is kept as it was.
	soon(t, "the picture is in the log", func() bool { e, _ := s.entry("See screen 1"); return e.Outcome == snapshot.Done })
	e, _ := s.entry("See screen 1")
	reply, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.GetDetail, Entry: e.ID})
	must(t, err)
	if d := reply.Detail; !bytes.Equal(d.Picture, pic.Image) || d.PictureType != "image/jpeg" || d.Output != "" || e.Sent != int64(len(pic.Image)) {
		t.Errorf("kept are %d bytes of %q, sent %d, output %.20q", len(d.Picture), d.PictureType, e.Sent, d.Output)
	}
	// Asked once; the other screen is asked for by itself.
	_, err = s.see()
	must(t, err)
	if n := s.cards(); n != 2 {
		t.Errorf("%d cards, want 2", n)
	}
	must(t, s.act(wire.ActKey))
	must(t, s.act(wire.ActKey))
	if n := s.cards(); n != 3 {
		t.Errorf("%d cards, want 3", n)
	}
	soon(t, "it acts, and the stop key is known", func() bool { c := s.m.Snapshot().Control; return c != nil && c.Acts && c.StopKey == "Ctrl+Alt+Esc" })
	if line := s.m.Snapshot().Line; line != "Research agent uses mouse and keyboard" {
		t.Errorf("the tray says %q", line)
	}
	if _, err := s.call(wire.TypeScreenshot, &wire.Screenshot{SessionID: "s1", Monitor: 1}); wire.CodeOf(err) != wire.CodeDenied {
		t.Errorf("the other screen, which was not chosen: %v", err)
	}
	if n := s.cards(); n != 4 {
		t.Errorf("%d cards, want 4", n)
	}
}

func TestADeniedScreenIsNotAskedAgain(t *testing.T) {
	s := newScreens(t, computer.Options{})
	s.person.answer = func(consent.Request) (consent.Answer, bool) {
		return consent.Answer{Choice: consent.Choice{Scope: consent.Session}}, true
	}
	_, err := s.see()
	wantCode(t, err, wire.CodeDenied)
	for _, monitor := range []int{0, 1, -1} {
		_, err := s.call(wire.TypeScreenshot, &wire.Screenshot{SessionID: "s1", Monitor: monitor})
		wantCode(t, err, wire.CodeDenied)
	}
	if n := s.cards(); n != 2 {
		t.Errorf("%d cards, want 2", n)
	}
	if f := s.d.frame(); f.On || len(s.d.asks) > 0 && s.m.Snapshot().Control != nil {
		t.Errorf("the frame is %+v", f)
	}
}

// between is an exchange in which something happens after the grant and before
// the executor has it.
type between struct {
	tunnel.Exchange
	do func()
}

func (b between) Begin() bool { b.do(); return true }

// What is taken away at the very moment at which it was granted is not done.
func TestTakenAwayAsItIsGranted(t *testing.T) {
	for name, in := range map[string]snapshot.Intent{
		"revoked": {Kind: snapshot.Revoke}, "paused": {Kind: snapshot.Pause},
		"switched off": {Kind: snapshot.SetCapability, Text: "computer", Way: "see"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScreens(t, computer.Options{})
			must(t, s.act(wire.ActKey))
			did := s.d.actions()
			p := &wire.InputAction{SessionID: "s1", Action: wire.ActKey, Key: "a"}
			_, _, err := s.m.dispatch(t.Context(), wire.Message{Type: wire.TypeInput, Payload: p}, between{do: func() {
				if _, err := s.m.Intend(t.Context(), in); err != nil {
					t.Error(err)
				}
			}})
			if err == nil || s.d.actions() != did {
				t.Errorf("it was done all the same: %d actions, %v", s.d.actions()-did, err)
			}
			if code := wire.CodeOf(err); code != wire.CodeStopped && code != wire.CodePaused {
				t.Errorf("the program is told %v", err)
			}
		})
	}
}

// Leave to see for a quarter of an hour does not outlive a stop, nor the mouse's
// being taken away what may be seen.
func TestLeaveToSee(t *testing.T) {
	s := newScreens(t, computer.Options{})
	before := s.person.answer
	s.person.answer = func(q consent.Request) (consent.Answer, bool) {
		a, ok := before(q)
		if len(q.Screens) > 0 {
			a.Choice.Scope = consent.Minutes15
		}
		return a, ok
	}
	see := func() (asked bool) {
		t.Helper()
		cards := s.cards()
		_, err := s.see()
		must(t, err)
		return s.cards() > cards
	}
	if !see() || see() {
		t.Fatal("a quarter of an hour is not what was allowed")
	}
	must(t, s.act(wire.ActKey))
	grants, err := s.m.o.Store.Remembered(t.Context(), "", "")
	must(t, err)
	for _, g := range grants {
		if g.Rule.Action == "act" {
			_, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Revoke, Text: g.ID})
			must(t, err)
		}
	}
	if _, err := s.call(wire.TypeScreenshot, &wire.Screenshot{SessionID: "s1", Monitor: -1, MaxEdge: 400}); err != nil {
		t.Fatal(err)
	}
	if see() {
		t.Error("with the mouse what may be seen is gone")
	}
	_, err = s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.StopAll})
	must(t, err)
	_, err = s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Resume})
	must(t, err)
	if !see() {
		t.Error("it sees after everything was stopped")
	}
}

// A request that was granted and has not begun when the person pauses does not
// begin.
func TestAPauseHoldsWhatHasNotBegun(t *testing.T) {
	s := newScreens(t, computer.Options{})
	s.m.mu.Lock()
	s.m.paused = true
	s.m.mu.Unlock()
	if err := s.m.controls.begin(t.Context()); wire.CodeOf(err) != wire.CodePaused {
		t.Errorf("while paused: %v", err)
	}
}

func TestControlEndsUnused(t *testing.T) {
	s := newScreens(t, computer.Options{Idle: 300 * time.Millisecond})
	must(t, s.act(wire.ActKey))
	soon(t, "it is over", func() bool { return !s.d.frame().On && s.m.Snapshot().Control == nil })
	soon(t, "the log says so", func() bool {
		e, ok := s.entry("Screen, mouse and keyboard: ended")
		return ok && e.Who == "Research agent" && e.Capability == consent.CapabilityComputer
	})
	cards := s.cards()
	must(t, s.act(wire.ActKey))
	if s.cards() != cards+1 {
		t.Error("it was not asked again")
	}
}

// What is broken off, and still allowed, ends for not being used too.
func TestWhatIsBrokenOffEndsUnused(t *testing.T) {
	for name, end := range map[string]func(*screensRig){
		"the hub is gone": func(s *screensRig) { s.m.link.onState(tunnel.State{Phase: tunnel.Offline}) },
		"paused":          func(s *screensRig) { s.intend(snapshot.Intent{Kind: snapshot.Pause}) },
		"mouse revoked":   func(s *screensRig) { s.intend(snapshot.Intent{Kind: snapshot.Revoke, Text: s.leave("act").ID}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScreens(t, computer.Options{Idle: 2 * time.Second})
			_, err := s.see()
			must(t, err)
			must(t, s.act(wire.ActKey))
			end(s)
			soon(t, "neither frame nor strip", func() bool { c := s.m.Snapshot().Control; return !s.d.frame().On && (c == nil || name == "paused") })
			soon(t, "the log says that it has ended", func() bool { _, ok := s.entry("Screen, mouse and keyboard: ended, not used"); return ok })
			all, err := s.m.o.Store.Remembered(t.Context(), "", "")
			must(t, err)
			if i := slices.IndexFunc(all, func(g consent.Stored) bool { return g.Rule.Capability == consent.CapabilityComputer }); i >= 0 {
				t.Errorf("it may still %s", all[i].Rule.Action)
			}
			if c := s.m.Snapshot().Control; c != nil {
				t.Errorf("it has ended, and the strip shows %+v", c)
			}
		})
	}
}

func TestTheHubGoesAndTheButtonComesUp(t *testing.T) {
	s := newScreens(t, computer.Options{})
	must(t, s.act(wire.ActMouseDown))
	before, begin := s.d.releases(), time.Now()
	s.m.link.onState(tunnel.State{Phase: tunnel.Offline})
	soon(t, "the button is let go", func() bool { return s.d.releases() > before })
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it was up after %v", took)
	}
}

func TestWhatTheDisplayTells(t *testing.T) {
	s := newScreens(t, computer.Options{})
	must(t, s.act(wire.ActKey))
	s.d.tell(hands.Event{Person: true, At: time.Now()})
	if c := s.m.Snapshot().Control; c == nil || !c.Person {
		t.Errorf("the person's hands: %+v", c)
	}
	s.d.tell(hands.Event{Person: true, At: time.Now()})
	soon(t, "the log tells of them", func() bool { _, ok := s.entry("Your own hands were at work"); return ok })
	n := 0
	for _, e := range s.m.Snapshot().Entries {
		if strings.HasPrefix(e.What, "Your own hands") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("told %d times", n)
	}
	must(t, s.act(wire.ActMouseDown))
	up := s.d.releases()
	s.d.tell(hands.Event{Person: true, At: time.Now()})
	soon(t, "the person's hands let go of the button", func() bool { return s.d.releases() > up })
	before := of(s.d, func() int { return len(s.d.controls) })
	s.d.tell(hands.Event{Lost: true, At: time.Now()})
	soon(t, "the log tells that it was lost", func() bool { _, ok := s.entry("The part that uses the screen ended"); return ok })
	soon(t, "the fresh one draws the frame", func() bool { return of(s.d, func() int { return len(s.d.controls) }) > before && s.d.frame().On })
	soon(t, "the person's hands rest", func() bool { c := s.m.Snapshot().Control; return c != nil && !c.Person })
}

// Who a pause holds up is not said any more once its session or what it was
// allowed has ended, everything is stopped, or they have gone on.
func TestWhatAPauseHoldsUpEnds(t *testing.T) {
	for name, end := range map[string]snapshot.Intent{"session ended": {Kind: snapshot.EndSession, Entry: "s1"}, "stopped": {Kind: snapshot.StopAll}, "resumed": {Kind: snapshot.Resume},
		"all revoked": {Kind: snapshot.Revoke}, "switched off": {Kind: snapshot.SetCapability, Text: "computer", Way: "off"}} {
		t.Run(name, func(t *testing.T) {
			s := newScreens(t, computer.Options{})
			must(t, s.act(wire.ActKey))
			for _, in := range []snapshot.Intent{{Kind: snapshot.Pause}, {Kind: snapshot.Pause}} { // the second changes nothing
				_, err := s.m.Intend(t.Context(), in)
				must(t, err)
			}
			c := s.m.Snapshot().Control
			if c == nil || c.Who != "Research agent" || !c.Acts || c.StopKey != "" {
				t.Fatalf("paused, it shows %+v", c)
			}
			if s.m.Snapshot().Control == c { // published ones are read at any time
				t.Error("two snapshots share one")
			}
			_, err := s.m.Intend(t.Context(), end)
			must(t, err)
			if c := s.m.Snapshot().Control; c != nil {
				t.Errorf("then it shows %+v", c)
			}
		})
	}
}

// The strip says that it waits for the person's hands only when it does.
func TestTheStripSaysWhoIsAtWork(t *testing.T) {
	s := newScreens(t, computer.Options{})
	hand := func() { s.d.tell(hands.Event{Person: true, At: time.Now()}) }
	waits := func(want bool, when string) {
		t.Helper()
		if c := s.m.Snapshot().Control; c == nil || c.Person != want {
			t.Errorf("%s: %+v", when, c)
		}
	}
	_, err := s.see()
	must(t, err)
	hand()
	waits(false, "it only looks, and the person works")
	answer := s.person.answer
	s.person.answer = func(r consent.Request) (consent.Answer, bool) {
		hand() // it is the one that answers
		return answer(r)
	}
	must(t, s.act(wire.ActKey))
	waits(false, "the person has allowed it, and it has acted")
	if e, told := s.entry("Your own hands"); told {
		t.Errorf("the log has %+v", e)
	}
	hand()
	waits(true, "the person works")
	_, err = s.see()
	must(t, err)
	waits(false, "it has a new picture")
	hand()
	waits(true, "the person works again")
}

// The stop key is shown for as long as it is bound.
func TestTheStopKeyIsShownWhileBound(t *testing.T) {
	s := newScreens(t, computer.Options{})
	key := func() string { return s.m.Snapshot().Settings.Computer.StopKey }
	must(t, s.act(wire.ActKey))
	soon(t, "the key is shown", func() bool { return key() != "" })
	_, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Pause})
	must(t, err)
	soon(t, "the frame goes", func() bool { return !s.d.frame().On })
	soon(t, "the key goes with it", func() bool { return key() == "" })
}

func TestScreenTest(t *testing.T) {
	s := newScreens(t, computer.Options{})
	s.d.set(func() { // one of which pictures are smaller than it is
		s.d.layout.Screens[0].Device = image.Rect(0, 0, 2000, 300)
		s.d.layout.Screens[1].Device = image.Rect(-400, -50, 0, 250)
	})
	run := func() *snapshot.ScreenTest {
		t.Helper()
		_, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.TestScreens})
		must(t, err)
		soon(t, "the test is over", func() bool { return !s.m.Snapshot().Settings.Computer.Testing })
		return s.m.Snapshot().Settings.Computer.Test
	}
	if got := run(); !got.OK || got.Text != "2 screens OK" || len(got.Screens) != 2 || !got.Screens[1].OK || len(s.d.targets) != 0 {
		t.Errorf("all is well: %+v", got)
	}
	if n := s.d.actions(); n != 10 {
		t.Errorf("%d clicks, 10 were to be made", n)
	}
	s.d.set(func() { s.d.off.X = 2 })
	if got := run(); got.OK || !strings.Contains(got.Text, "2 of 2 screens off") || !strings.Contains(got.Text, "2 right and 0 below") {
		t.Errorf("clicks miss: %+v", got)
	}
	s.d.set(func() { s.d.off.X, s.d.shifted.Y = 0, 20 })
	if got := run(); got.OK || !strings.Contains(got.Text, "0 right and ") {
		t.Errorf("pictures lie: %+v", got)
	}
	s.d.set(func() { s.d.shifted.Y, s.d.actErr = 0, wire.Errorf(wire.CodePerson, "hands") })
	if got := run(); got.OK || !strings.Contains(got.Text, "you used mouse or keyboard") {
		t.Errorf("the person's hands: %+v", got)
	}
	// It runs again by itself when the screens change.
	s.d.set(func() { s.d.actErr = nil; s.d.layout.Screens = s.d.layout.Screens[:1] })
	s.d.tell(hands.Event{Screens: true})
	time.Sleep(settledAfter / 2)
	last := time.Now()
	s.d.tell(hands.Event{Screens: true})
	soon(t, "it runs again", func() bool { c := s.m.Snapshot().Settings.Computer; return c.Test.OK && c.Test.Text == "1 screen OK" })
	if waited := s.m.Snapshot().Settings.Computer.Test.At.Sub(last); waited < settledAfter-100*time.Millisecond {
		t.Errorf("it ran %v after the screens had changed last", waited)
	}
}

func TestSettingsOfTheComputer(t *testing.T) {
	s := newScreens(t, computer.Options{})
	c := s.m.Snapshot().Settings.Computer
	if c == nil || c.PerAction || c.Clipboard != "own" || !c.HideUsual || len(c.Usual) == 0 || c.Remote || len(c.Hide) != 0 {
		t.Fatalf("at first %+v", c)
	}
	change := func(c snapshot.Changes) error {
		_, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Change, Changes: &c})
		return err
	}
	all, no, yes, hide := "all", false, true, []string{"Signal", "Signal", " "}
	must(t, change(snapshot.Changes{Clipboard: &all, HideUsual: &no, Remote: &yes, Hide: &hide, Rates: map[string]int{"computer": 100}}))
	c = s.m.Snapshot().Settings.Computer
	if c.Clipboard != "all" || c.HideUsual || !c.Remote || !slices.Equal(c.Hide, []string{"Signal"}) {
		t.Errorf("then %+v", c)
	}
	wrong, lines := "some", []string{"a\nb"}
	for _, bad := range []snapshot.Changes{{Clipboard: &wrong}, {Hide: &lines}} {
		if err := change(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	_, err := s.see()
	must(t, err)
	if words := s.d.asks[len(s.d.asks)-1].Hide.Words; !slices.Equal(words, []string{"Signal"}) {
		t.Errorf("hidden are %q", words)
	}
	if i := slices.IndexFunc(s.m.Snapshot().Capabilities, func(c snapshot.Capability) bool { return c.Name == "computer" }); i < 0 || s.m.Snapshot().Capabilities[i].Extent != "ask" {
		t.Errorf("capabilities: %+v", s.m.Snapshot().Capabilities)
	}
	if !slices.Contains(s.m.link.hello().Capabilities, "computer") {
		t.Error("HELLO does not name it")
	}
	_, err = s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.SetCapability, Text: "computer", Way: "off"})
	must(t, err)
	if slices.Contains(s.m.link.hello().Capabilities, "computer") {
		t.Error("HELLO names what is off")
	}
	_, err = s.see()
	wantCode(t, err, wire.CodeDenied)
	// Without a display there is none of it.
	m := newMachine(t)
	if snap := m.Snapshot(); snap.Settings.Computer != nil || snap.Control != nil {
		t.Errorf("without a display: %+v", snap.Settings.Computer)
	}
	if _, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.TestScreens}); err == nil {
		t.Error("a screen test without a screen")
	}
}

func TestTheComputersRate(t *testing.T) {
	s := newScreens(t, computer.Options{})
	_, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Rates: map[string]int{"computer": 4}}})
	must(t, err)
	_, err = s.see()
	must(t, err)
	_, err = s.see()
	must(t, err)
	_, err = s.see()
	wantCode(t, err, wire.CodeOverloaded)
}
