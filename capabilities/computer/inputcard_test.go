package computer

import (
	"context"
	"errors"
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestWhatACardSaysOfActions(t *testing.T) {
	r := newRig(t)
	click := &wire.InputAction{SessionID: r.ses.ID, Action: "double_click", Coordinate: &wire.Point{-700, 20}, Modifiers: []string{"ctrl"}}
	d := r.describe(wire.TypeInput, click)
	if d.Sentence != "%s wants to use mouse and keyboard." || d.Exact != "double-click at 580, 20 on screen 2 with ctrl held" || d.Rule.Exact != "mouse and keyboard" ||
		!slices.Equal(d.Scopes, []consent.Scope{consent.Session}) || d.NoOnce || d.Risk != consent.RiskNormal || d.Effects[0].Kind != consent.EffectControl {
		t.Errorf("for a session: %+v", d)
	}
	r.terms.PerAction = true
	d = r.describe(wire.TypeInput, click)
	if d.Sentence != "%s wants to double-click at 580, 20 on screen 2 with ctrl held." || len(d.Scopes) != 0 || !d.Looks || d.Rule.Exact == "mouse and keyboard" {
		t.Errorf("each: %+v", d)
	}
	long := strings.Repeat("long ", 50)
	if d = r.describe(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "type", Text: long}); d.Exact != "type: "+long || len(d.Sentence) > 100 {
		t.Errorf("typing: %+v", d)
	}
	// The card shows where it goes, with what is hidden blacked out.
	call := r.call(wire.TypeInput, click)
	looks := r.c.Look(t.Context(), call, consent.Request{Looks: true})
	ask := r.s.lastAsk()
	if len(looks) != 1 || looks[0].Screen != "" || len(looks[0].Data) == 0 || !slices.Equal(ask.Mark, []image.Point{{-700, 20}}) || len(ask.Hide.Words) == 0 {
		t.Errorf("looks %+v, asked %+v", looks, ask)
	}
	if !ask.Area.In(two().Screens[1].Device) || !image.Pt(-700, 20).In(ask.Area) || ask.Limit.Edge != 480 || ask.Quality != 70 {
		t.Errorf("the look is of %v within %+v", ask.Area, ask.Limit)
	}
	// Once is enough for one: the session's permission from before does not count.
	if err := r.act(*click, consent.Choice{Scope: consent.Once}); err != nil {
		t.Error(err)
	}
	// Where this program lies over the place itself the person can move it aside.
	r.s.set(func(s *screen) { // of which another covers a part, so that what is named is elsewhere
		s.stack = append(space.Stack{{ID: 9, Ours: true, Frame: image.Rect(-800, 0, -100, 1000)}}, s.stack...)
		s.covers = []hands.Cover{{Area: image.Rect(-800, 100, -100, 1000), Own: true}}
	})
	if looks = r.c.Look(t.Context(), call, consent.Request{Looks: true}); !looks[0].Under || !strings.Contains(looks[0].Note, "move it aside") {
		t.Errorf("under this program: %+v", looks)
	}
	r.s.set(func(s *screen) { s.stack[0].Ours = false })
	if looks = r.c.Look(t.Context(), call, consent.Request{Looks: true}); looks[0].Under || looks[0].Note != "" {
		t.Errorf("under another: %+v", looks)
	}
	// A card for the screen shows each one that may be chosen, and names what the
	// pictures do not show, where it lies in them.
	r.s.set(func(s *screen) {
		s.covers = []hands.Cover{{Area: image.Rect(480, 540, 960, 1080), Own: true}, {Area: image.Rect(0, 0, 192, 108), Name: "xterm"}}
	})
	looks = r.c.Look(t.Context(), r.call(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID}),
		consent.Request{Looks: true, Screens: []consent.Screen{{Name: "DP-1"}, {Name: "HDMI-1"}}})
	if len(looks) != 2 || looks[0].Screen != "DP-1" || looks[1].Screen != "HDMI-1" || r.s.lastAsk().Area != two().Screens[1].Device {
		t.Errorf("looks at screens: %+v", looks)
	}
	if want := []consent.Cover{{Min: [2]int{120, 135}, Max: [2]int{240, 270}, Own: true}, {Max: [2]int{48, 27}, Name: "xterm"}}; !slices.Equal(looks[0].Covers, want) {
		t.Errorf("not shown: %+v, want %+v", looks[0].Covers, want)
	}
}

// Where the pointer was when it was asked for is where it goes, although the hand
// that answers the card takes the mouse along.
func TestAClickWhereThePointerIs(t *testing.T) {
	r := newRig(t)
	r.see(0)
	r.s.set(func(s *screen) { s.pointer = image.Pt(120, 130) })
	call := r.call(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "left_click"})
	d, err := r.c.Describe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	r.s.set(func(s *screen) { s.pointer = image.Pt(900, 900) })
	r.c.Look(t.Context(), call, consent.Request{Looks: true})
	if mark := r.s.lastAsk().Mark; !slices.Equal(mark, []image.Point{{120, 130}}) {
		t.Errorf("the card marks %v", mark)
	}
	if _, err := r.c.Run(t.Context(), call, byYou(t, r.ses, d, r.session()), nil); err != nil {
		t.Fatal(err)
	}
	if a := r.s.lastAct(); a.At == nil || *a.At != image.Pt(120, 130) || len(a.Aim) != 1 || a.Aim[0].Point != *a.At || a.Aim[0].Window == nil {
		t.Errorf("it clicked %+v at %v", a, a.At)
	}
	if err := r.act(wire.InputAction{Action: "scroll"}, r.session()); err != nil {
		t.Fatal(err)
	}
	if a := r.s.lastAct(); a.At != nil || len(a.Aim) != 1 || a.Aim[0].Point != image.Pt(900, 900) || a.Aim[0].Window != nil {
		t.Errorf("by a rule: %+v at %v", a, a.At)
	}
	// It is no way to a screen that is not shared.
	r.ses = capabilitytest.NewSession(t, consent.ModeWork)
	if _, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 1}, r.session("HDMI-1")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.act(wire.InputAction{Action: "left_click"}, r.session()), wire.CodeBounds)
}

func TestACardForTheKeyboard(t *testing.T) {
	r := newRig(t)
	r.terms.PerAction = true
	call := r.call(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "type", Text: "a"})
	d, err := r.c.Describe(t.Context(), call)
	if err != nil || !d.Looks || !slices.Equal(d.Details, []string{`It goes to the window that has the keyboard: "notes" of gedit.`}) {
		t.Errorf("the card says %+v, %v", d, err)
	}
	r.s.set(func(s *screen) { s.stack[0].Focused, s.stack[1].Focused = false, true }) // as the card does
	r.c.Look(t.Context(), call, consent.Request{Looks: true})
	if mark := r.s.lastAsk().Mark; !slices.Equal(mark, []image.Point{{300, 250}}) {
		t.Errorf("the card marks %v", mark)
	}
	r.s.set(func(s *screen) { s.abilities.Windows = false })
	for _, p := range []wire.InputAction{{Action: "key", Key: "a"}, {Action: "hold_key", Key: "a", DurationMS: 5}} {
		p.SessionID = r.ses.ID
		call := r.call(wire.TypeInput, &p)
		if d, err := r.c.Describe(t.Context(), call); err != nil || d.Looks || len(d.Details) != 0 {
			t.Errorf("%s, where nobody knows: %+v, %v", p.Action, d, err)
		}
		if r.c.Look(t.Context(), call, consent.Request{Looks: true}); len(r.s.lastAsk().Mark) != 0 {
			t.Errorf("%s: %v is marked", p.Action, r.s.lastAsk().Mark)
		}
	}
}

// Where a card could not name the window that keys go to, nobody is asked; a card
// that is about to leave is waited for.
func TestKeysThatGoToNoWindow(t *testing.T) {
	broken := errors.New("the windows can't be listed now")
	for name, c := range map[string]struct {
		set  func(*screen)
		card bool
		want wire.Code
		says string
	}{
		"nobody has the keyboard":    {set: func(s *screen) { s.stack[0].Focused = false }, want: wire.CodePictureStale, says: "No window has the keyboard; click one first."},
		"this program has it":        {set: func(s *screen) { s.stack[0].Ours = true }, want: wire.CodeOwnWindow, says: "has the keyboard"},
		"a card has it":              {set: func(s *screen) { s.stack[0].Ours = true }, card: true, want: wire.CodePaused, says: "A question is open"},
		"the windows are not listed": {set: func(s *screen) { s.stackErr = broken }, says: broken.Error()},
	} {
		r := newRig(t)
		r.terms.PerAction = true
		r.s.set(c.set)
		r.c.Freeze(c.card)
		for _, p := range []wire.InputAction{{Action: "type", Text: "a"}, {Action: "key", Key: "a"}, {Action: "hold_key", Key: "a", DurationMS: 5}} {
			p.SessionID = r.ses.ID
			if d, err := r.c.Describe(t.Context(), r.call(wire.TypeInput, &p)); err == nil || wire.CodeOf(err) != c.want || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %+v, %v", name, p.Action, d.Details, err)
			}
		}
		r.c.Freeze(false)
	}
	r := newRig(t)
	r.terms.PerAction = true
	r.s.set(func(s *screen) { s.stackErr = broken })
	if _, err := r.c.Describe(t.Context(), r.call(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "left_click", Coordinate: &wire.Point{200, 200}})); !errors.Is(err, broken) {
		t.Errorf("a click where nobody knows what lies there: %v", err)
	}
	r.s.set(func(s *screen) { s.stackErr, s.stack[0].Ours = nil, true })
	r.c.o.thaw = 20 * time.Second
	left := time.AfterFunc(100*time.Millisecond, func() { r.s.set(func(s *screen) { s.stack[0].Ours = false }) })
	defer left.Stop()
	if d := r.describe(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "key", Key: "a"}); len(d.Details) != 1 || !strings.Contains(d.Details[0], "notes") {
		t.Errorf("after a card that was about to leave: %+v", d.Details)
	}
}

// A card for screens says of each why there is no picture of it.
func TestLooksThatFail(t *testing.T) {
	r := newRig(t)
	call := r.call(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID})
	asked := consent.Request{Looks: true, Screens: []consent.Screen{{Name: "DP-1"}, {Name: "HDMI-1"}}}
	says := func(when string, want ...consent.Look) {
		t.Helper()
		got := r.c.Look(t.Context(), call, asked)
		if !slices.EqualFunc(got, want, func(a, b consent.Look) bool {
			return a.Screen == b.Screen && a.Note == b.Note && len(a.Data) == len(b.Data)
		}) {
			t.Errorf("%s: %+v", when, got)
		}
	}
	r.s.set(func(s *screen) { s.layout.Screens = s.layout.Screens[:1] })
	says("one is gone", consent.Look{Screen: "DP-1", Data: r.s.picture}, consent.Look{Screen: "HDMI-1", Note: "This screen is not connected any more."})
	r.c.Bind(hands.Host{Begin: func(context.Context) error { return wire.Errorf(wire.CodePaused, "Paused.") }})
	says("none at all", consent.Look{Screen: "DP-1", Note: "Paused."}, consent.Look{Screen: "HDMI-1", Note: "Paused."})
}

// What a card of one action says is what is done: keys go to the window that it
// names, a click to what it shows, or nowhere.
func TestACardsWindowIsTheOne(t *testing.T) {
	r := newRig(t)
	r.terms.PerAction = true
	notes := r.s.stack[0]
	call := r.call(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "type", Text: "a"})
	d, err := r.c.Describe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	grant := byYou(t, r.ses, d, consent.Choice{Scope: consent.Once})
	r.s.set(func(s *screen) { // another window takes the keyboard while the card is open
		s.stack = append(space.Stack{{ID: 3, PID: 103, Class: "xterm", Frame: image.Rect(0, 0, 50, 50), Focused: true}}, s.stack...)
		s.stack[1].Focused = false
	})
	if _, err := r.c.Run(t.Context(), call, grant, nil); err != nil {
		t.Fatal(err)
	}
	if a := r.s.lastAct(); a.Keyboard == nil || !a.Keyboard.Same(notes) {
		t.Errorf("the hands type into %+v", a.Keyboard)
	}
	// Asked again, it is about the other window; and that is another question.
	again, err := r.c.Describe(t.Context(), call)
	if err != nil || again.Fingerprint == d.Fingerprint {
		t.Errorf("the next card's fingerprint is %q, as the one before; %v", again.Fingerprint, err)
	}
	if _, err := r.c.Run(t.Context(), call, grant, nil); !errors.Is(err, consent.ErrChanged) {
		t.Errorf("with the grant of the card before: %v", err)
	}

	// A click that no picture was taken for.
	for name, p := range map[string]*wire.InputAction{
		"at a place":     {Action: "left_click", Coordinate: &wire.Point{200, 200}},
		"at the pointer": {Action: "left_click"},
		"a drag":         {Action: "drag", Path: []wire.Point{{200, 200}, {700, 700}}},
	} {
		p.SessionID = r.ses.ID
		r.s.set(func(s *screen) { s.stack, s.pointer = newScreen().stack, image.Pt(200, 200) })
		call := r.call(wire.TypeInput, p)
		d, err := r.c.Describe(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		r.s.set(func(s *screen) { // the card, or what came meanwhile
			s.stack = append(space.Stack{{ID: 4, PID: 104, Class: "other", Frame: image.Rect(0, 0, 900, 900)}}, s.stack...)
			s.pointer = image.Pt(600, 600)
		})
		if r.c.Look(t.Context(), call, consent.Request{Looks: true}); r.s.lastAsk().Mark[0] != image.Pt(200, 200) || len(r.s.lastAsk().Mark) != max(1, len(p.Path)) {
			t.Errorf("%s: the card marks %v", name, r.s.lastAsk().Mark)
		}
		if _, err := r.c.Run(t.Context(), call, byYou(t, r.ses, d, consent.Choice{Scope: consent.Once}), nil); err != nil {
			t.Fatal(err)
		}
		if a := r.s.lastAct(); len(a.Aim) != max(1, len(p.Path)) || a.Aim[0].Window == nil || !a.Aim[0].Window.Same(notes) {
			t.Errorf("%s: it is aimed at %+v", name, a.Aim)
		}
	}
}

// yes is a person who allows it.
type yes consent.Choice

func (y yes) Prompt(context.Context, consent.Request) (consent.Answer, error) {
	return consent.Answer{Allow: true, Choice: consent.Choice(y), Via: "card"}, nil
}

type asks struct{}

func (asks) Decide(consent.Request, []consent.Stored, time.Time) consent.Verdict {
	return consent.Verdict{}
}

// byYou is a grant that a person gave at a card.
func byYou(t *testing.T, s *capabilities.Session, d capabilities.Description, c consent.Choice) consent.Grant {
	t.Helper()
	book := &capabilitytest.Record{}
	g, err := consent.New(consent.Options{Decider: asks{}, Prompter: yes(c), Recorder: book, Book: book}).Authorize(t.Context(), capabilitytest.Request(s, "computer", d))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What this display can't do is on the cards: the person's hands do not pause the
// agent, and no frame shows who is in control.
func TestLimitsAreOnTheCards(t *testing.T) {
	r := newRig(t)
	cards := func() (see, act string) {
		t.Helper()
		return strings.Join(r.describe(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 0}).Details, "\n"),
			strings.Join(r.describe(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: wire.ActType, Text: "x"}).Details, "\n")
	}
	see, act := cards()
	if !strings.Contains(act, "it stops at once") || strings.Contains(see+act, "frame") {
		t.Errorf("where all works:\n%s\n%s", see, act)
	}
	const hands_, frame = "Hands don't pause it here.", "No frame here."
	r.s.set(func(s *screen) {
		s.abilities.Person, s.abilities.Frame = false, false
		s.abilities.Why = map[string]string{hands.AbilityPerson: hands_, hands.AbilityFrame: frame}
	})
	see, act = cards()
	if strings.Contains(act, "it stops at once") || !strings.Contains(act, hands_) || !strings.Contains(act, frame) || !strings.Contains(see, frame) {
		t.Errorf("where they do not:\n%s\n%s", see, act)
	}
}
