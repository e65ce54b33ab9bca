package computer

import (
	"context"
	"errors"
	"image"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func (r *rig) act(p wire.InputAction, c consent.Choice) error {
	r.t.Helper()
	p.SessionID = r.ses.ID
	_, err := r.do(wire.TypeInput, &p, c)
	return err
}

func TestEveryAction(t *testing.T) {
	r := newRig(t)
	pic := r.see(0) // half size
	at := &wire.Point{10, 10}
	amount := 0
	on := image.Pt(21, 21)
	cases := []struct {
		p    wire.InputAction
		want hands.Action
	}{
		{wire.InputAction{Action: "left_click", Coordinate: at, Modifiers: []string{"ctrl", "shift"}}, hands.Action{Kind: "click", At: &on, Button: "left", Count: 1, Modifiers: []string{"ctrl", "shift"}}},
		{wire.InputAction{Action: "left_click"}, hands.Action{Kind: "click", Button: "left", Count: 1}},
		{wire.InputAction{Action: "right_click", Coordinate: at, Button: "left"}, hands.Action{Kind: "click", At: &on, Button: "right", Count: 1}},
		{wire.InputAction{Action: "middle_click", Coordinate: at}, hands.Action{Kind: "click", At: &on, Button: "middle", Count: 1}},
		{wire.InputAction{Action: "double_click", Coordinate: at}, hands.Action{Kind: "click", At: &on, Button: "left", Count: 2}},
		{wire.InputAction{Action: "triple_click", Coordinate: at}, hands.Action{Kind: "click", At: &on, Button: "left", Count: 3}},
		{wire.InputAction{Action: "mouse_move", Coordinate: at}, hands.Action{Kind: "move", At: &on}},
		{wire.InputAction{Action: "mouse_down", Coordinate: at, Button: "right"}, hands.Action{Kind: "press", At: &on, Button: "right"}},
		{wire.InputAction{Action: "mouse_up"}, hands.Action{Kind: "unpress", Button: "left"}},
		{wire.InputAction{Action: "drag", Path: []wire.Point{{10, 10}, {11, 10}, {20, 20}}}, hands.Action{Kind: "drag", Button: "left", Path: []image.Point{on, {23, 21}, {41, 41}}}},
		{wire.InputAction{Action: "type", Text: "grüße %s"}, hands.Action{Kind: "type", Text: "grüße %s"}},
		{wire.InputAction{Action: "key", Key: "ctrl+s", Repeat: 3}, hands.Action{Kind: "key", Chord: "ctrl+s", Repeat: 3}},
		{wire.InputAction{Action: "key", Key: "Return"}, hands.Action{Kind: "key", Chord: "Return", Repeat: 1}},
		{wire.InputAction{Action: "hold_key", Key: "w", DurationMS: 1500}, hands.Action{Kind: "hold-key", Chord: "w", Hold: 1500 * time.Millisecond}},
		{wire.InputAction{Action: "scroll"}, hands.Action{Kind: "scroll", Amount: 3, Direction: "down"}},
		{wire.InputAction{Action: "scroll", Coordinate: at, ScrollAmount: &amount, ScrollDirection: "left"}, hands.Action{Kind: "scroll", At: &on, Direction: "left"}},
	}
	for _, c := range cases {
		c.p.Picture = pic.Picture
		if err := r.act(c.p, r.session()); err != nil {
			t.Errorf("%s: %v", c.p.Action, err)
			continue
		}
		got := r.s.lastAct()
		points := len(got.Path)
		if got.At != nil {
			points = 1
		}
		if points == 0 && pointed(got.Kind) {
			points = 1 // what is under the pointer
		}
		if len(got.Aim) != points || got.Layout == "" || got.Seen.IsZero() {
			t.Errorf("%s: not checked against the picture: %+v", c.p.Action, got)
		}
		if (got.At == nil) != (c.want.At == nil) || got.At != nil && *got.At != *c.want.At {
			t.Errorf("%s: at %v, want %v", c.p.Action, got.At, c.want.At)
		}
		same := got.Kind == c.want.Kind && got.Button == c.want.Button && got.Count == c.want.Count && slices.Equal(got.Path, c.want.Path) &&
			slices.Equal(got.Modifiers, c.want.Modifiers) && got.Text == c.want.Text && got.Chord == c.want.Chord && got.Repeat == c.want.Repeat &&
			got.Hold == c.want.Hold && got.Amount == c.want.Amount && got.Direction == c.want.Direction
		if !same {
			t.Errorf("%s: %+v, want %+v", c.p.Action, got, c.want)
		}
	}
	before := r.s.actions()
	begin := time.Now()
	if err := r.act(wire.InputAction{Action: "wait", DurationMS: 30}, consent.Choice{}); err != nil || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("wait: %v after %v", err, time.Since(begin))
	}
	if d := r.describe(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "wait", DurationMS: 1}); !d.Effects[0].Own || d.Effects[0].Kind != consent.EffectOwn {
		t.Errorf("waiting is asked for: %+v", d.Effects)
	}
	if r.s.actions() != before {
		t.Error("waiting touched the display")
	}
}

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

// A button counts as held until it was let go, however its action ended.
func TestAButtonIsNotForgotten(t *testing.T) {
	for name, act := range map[string]func(*rig){
		"failed": func(r *rig) {
			r.s.set(func(s *screen) { s.actErr = errors.New("the display does not answer") })
			_ = r.act(wire.InputAction{Action: "mouse_down"}, r.session())
		},
		"one came up": func(r *rig) {
			_ = r.act(wire.InputAction{Action: "mouse_down"}, r.session())
			_ = r.act(wire.InputAction{Action: "mouse_down", Button: "right"}, r.session())
			_ = r.act(wire.InputAction{Action: "mouse_up"}, r.session())
		},
	} {
		r := newRig(t)
		act(r)
		r.c.Person()
		eventually(t, name+": the person's hands let it go", func() bool { return r.s.releases() == 1 })
		r.c.Person()
		time.Sleep(5 * time.Millisecond)
		if n := r.s.releases(); n != 1 {
			t.Errorf("%s: let go %d times", name, n)
		}
	}
	// Its request is cancelled in the middle.
	r := newRig(t)
	hold := make(chan struct{})
	defer close(hold)
	r.s.set(func(s *screen) { s.hold = hold })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	call := r.call(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "mouse_down"})
	go func() { _, _, err := capabilitytest.DoWith(ctx, t, r.c, call, r.session()); done <- err }()
	eventually(t, "it presses", func() bool { return get(r.s, func(s *screen) int { return s.begun }) == 1 })
	cancel()
	<-done
	eventually(t, "what was cancelled is let go", func() bool { return r.s.releases() == 1 })
}

// What the machine did not make ready for has used nothing.
func TestWhatDidNotBeginIsNoUse(t *testing.T) {
	r := newRig(t)
	r.c.Bind(hands.Host{Begin: func(context.Context) error { return wire.Errorf(wire.CodePaused, "paused") }})
	wantCode(t, r.act(wire.InputAction{Action: "key", Key: "a"}, r.session()), wire.CodePaused)
	if u := r.c.Uses(); len(u) != 0 {
		t.Errorf("in use: %+v", u)
	}
}

func TestACardHoldsTheHandsStill(t *testing.T) {
	r := newRig(t)
	r.see(0)
	if err := r.act(wire.InputAction{Action: "mouse_down"}, r.session()); err != nil {
		t.Fatal(err)
	}
	// The action under way ends, and what is held is let go.
	hold := make(chan struct{})
	r.s.set(func(s *screen) { s.hold = hold })
	done := make(chan error, 1)
	go func() { done <- r.act(wire.InputAction{Action: "hold_key", Key: "a", DurationMS: 60_000}, r.session()) }()
	eventually(t, "the key is held", func() bool { return get(r.s, func(s *screen) int { return s.begun }) == 2 })
	r.c.Freeze(true)
	wantCode(t, <-done, wire.CodePaused)
	eventually(t, "the button is let go", func() bool { return r.s.releases() == 1 })
	r.s.set(func(s *screen) { s.hold = nil })
	// Others are refused, and pictures wait.
	before := r.s.actions()
	wantCode(t, r.act(wire.InputAction{Action: "type", Text: "y"}, r.session()), wire.CodePaused)
	shots := get(r.s, func(s *screen) int { return len(s.asks) })
	picture := make(chan error, 1)
	go func() {
		_, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID}, r.session("DP-1"))
		picture <- err
	}()
	select {
	case err := <-picture:
		t.Errorf("a picture did not wait for the card: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	_, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, WaitMS: 20}, r.session("DP-1"))
	wantCode(t, err, wire.CodePaused)
	if r.s.actions() != before || get(r.s, func(s *screen) int { return len(s.asks) }) != shots {
		t.Error("the display was touched while a card was open")
	}
	r.c.Freeze(false)
	if err := <-picture; err != nil {
		t.Errorf("the picture: %v", err)
	}
	if err := r.act(wire.InputAction{Action: "type", Text: "y"}, r.session()); err != nil {
		t.Errorf("after the card: %v", err)
	}
	// One that waits for its turn when a card opens does not act behind it.
	r.c.turn <- struct{}{}
	go func() { done <- r.act(wire.InputAction{Action: "type", Text: "z"}, r.session()) }()
	time.Sleep(20 * time.Millisecond)
	before = r.s.actions()
	r.c.Freeze(true)
	<-r.c.turn
	wantCode(t, <-done, wire.CodePaused)
	if r.s.actions() != before {
		t.Error("it acted behind the card")
	}
	r.c.Freeze(false)
	// An answer comes a little before its card has gone.
	r.c.Freeze(true)
	time.AfterFunc(10*time.Millisecond, func() { r.c.Freeze(false) })
	if err := r.act(wire.InputAction{Action: "type", Text: "y"}, r.session()); err != nil {
		t.Errorf("as the card closes: %v", err)
	}
}

func TestOneAtATime(t *testing.T) {
	r := newRig(t)
	r.see(0)
	hold := make(chan struct{})
	r.s.set(func(s *screen) { s.hold = hold })
	first := make(chan error, 1)
	go func() { first <- r.act(wire.InputAction{Action: "key", Key: "a"}, r.session()) }()
	eventually(t, "the first acts", func() bool { return get(r.s, func(s *screen) int { return s.begun }) == 1 })
	// One that waits for its turn can be cancelled.
	ctx, cancel := context.WithCancel(t.Context())
	call := r.call(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "key", Key: "b"})
	waits := make(chan error, 1)
	go func() {
		_, _, err := capabilitytest.DoWith(ctx, t, r.c, call, r.session())
		waits <- err
	}()
	time.Sleep(20 * time.Millisecond)
	cancel()
	if err := <-waits; err == nil {
		t.Error("it was cancelled, and acted")
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			_, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID}, r.session("DP-1"))
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(hold)
	wg.Wait()
	if err := <-first; err != nil {
		t.Error(err)
	}
	if most := get(r.s, func(s *screen) int { return s.most }); most != 1 {
		t.Errorf("%d were at the display at once", most)
	}
	if n := r.s.actions(); n != 1 {
		t.Errorf("%d actions, one was to be made", n)
	}
}

func TestThePersonsHandsWin(t *testing.T) {
	r := newRig(t)
	pic := r.see(0)
	taken := time.Now()
	r.s.set(func(s *screen) { s.actErr = wire.Errorf(wire.CodePerson, "You are using the mouse.") })
	wantCode(t, r.click(pic.Picture, 5, 5), wire.CodePerson)
	r.s.set(func(s *screen) { s.actErr = nil })
	// An old picture is as old as it was, however often it is aimed at; a new one
	// is a new look.
	time.Sleep(5 * time.Millisecond)
	if err := r.click(pic.Picture, 5, 5); err != nil || !r.s.lastAct().Seen.Before(taken) {
		t.Errorf("seen %v, taken before %v, %v", r.s.lastAct().Seen, taken, err)
	}
	r.see(0)
	if err := r.click(pic.Picture, 5, 5); err != nil || !r.s.lastAct().Seen.After(taken) {
		t.Errorf("after a new picture: seen %v, %v", r.s.lastAct().Seen, err)
	}
	// Without a picture it is since it was allowed.
	r.ses = capabilitytest.NewSession(t, consent.ModeWork)
	before := time.Now()
	if err := r.act(wire.InputAction{Action: "key", Key: "a"}, r.session()); err != nil || r.s.lastAct().Seen.Before(before) {
		t.Errorf("without a picture: seen %v, %v", r.s.lastAct().Seen, err)
	}
	// Where the person has just allowed it, their hand at the card does not count
	// against it.
	r.see(0)
	call := r.call(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: "key", Key: "a"})
	d, err := r.c.Describe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	before = time.Now()
	g := capabilitytest.GrantWith(t, r.ses, r.c.Name(), d, r.session())
	if _, err := r.c.Run(t.Context(), call, g, nil); err != nil || !r.s.lastAct().Seen.Before(before) {
		t.Errorf("by a rule: seen %v, %v", r.s.lastAct().Seen, err)
	}
	g = byYou(t, r.ses, d, r.session())
	if _, err := r.c.Run(t.Context(), call, g, nil); err != nil || r.s.lastAct().Seen.Before(before) {
		t.Errorf("by the person: seen %v, %v", r.s.lastAct().Seen, err)
	}
	// Allowed in Activity after the card had closed, it is as if just now.
	time.Sleep(time.Millisecond)
	before = time.Now()
	book := &capabilitytest.Record{}
	gate := consent.New(consent.Options{Decider: asks{}, Prompter: capabilitytest.Nobody{}, Recorder: book, Book: book})
	next := capabilitytest.Request(r.ses, "computer", d)
	gate.AllowNext(next, consent.Choice{})
	if g, err = gate.Authorize(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if _, err := r.c.Run(t.Context(), call, g, nil); err != nil || r.s.lastAct().Seen.Before(before) {
		t.Errorf("allowed for next time: seen %v, %v", r.s.lastAct().Seen, err)
	}
	// Nor does it against what follows by that leave.
	if err := r.act(wire.InputAction{Action: "key", Key: "b"}, r.session()); err != nil || r.s.lastAct().Seen.Before(before) {
		t.Errorf("after the person's leave: seen %v, %v", r.s.lastAct().Seen, err)
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

// Where a display does not tell which windows there are, none of this program's
// that can change something is seen or reached: while one is open, nothing is.
func TestAnOpenWindowThatCantBeFound(t *testing.T) {
	r := newRig(t)
	picture := func() error {
		_, err := r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, Monitor: 0}, r.session("DP-1", "HDMI-1"))
		return err
	}
	click := func() error {
		_, err := r.do(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: wire.ActLeftClick, Coordinate: &wire.Point{10, 10}}, r.session())
		return err
	}
	for _, c := range []struct {
		listed bool
		open   int64
		want   wire.Code
	}{{true, 1, ""}, {false, 0, ""}, {false, 1, wire.CodeOwnWindow}} {
		r.s.mu.Lock()
		r.s.abilities.Windows = c.listed
		r.s.mu.Unlock()
		r.open.Store(c.open)
		for what, err := range map[string]error{"a picture": picture(), "a click": click()} {
			if wire.CodeOf(err) != c.want || err != nil && c.want == "" {
				t.Errorf("%s with %d windows open, listed %v: %v", what, c.open, c.listed, err)
			}
		}
	}
}

// There, too, a window that opens while a picture is on its way or something is
// done breaks that off; the card that was just answered is waited for until it
// has left; and what is asked while a card is open waits for that, as elsewhere.
func TestAWindowThatOpensMeanwhile(t *testing.T) {
	r := newRig(t)
	r.s.set(func(s *screen) { s.abilities.Windows = false })
	look := &wire.Screenshot{SessionID: r.ses.ID, Monitor: 0}
	see := func() error {
		_, err := r.do(wire.TypeScreenshot, look, r.session("DP-1", "HDMI-1"))
		return err
	}
	if err := see(); err != nil {
		t.Fatal(err)
	}
	r.s.set(func(s *screen) { s.shooting = func() { r.open.Store(1) } })
	err := see()
	wantCode(t, err, wire.CodeOwnWindow)
	if err == nil || !strings.Contains(err.Error(), "was opened meanwhile") {
		t.Errorf("a window in the picture: %v", err)
	}
	r.s.set(func(s *screen) { s.shooting = nil })

	// The card of this request is still about to leave.
	card := func(left chan struct{}) {
		time.Sleep(100 * time.Millisecond)
		r.open.Store(0)
		close(left)
	}
	r.open.Store(0)
	call := r.call(wire.TypeScreenshot, look)
	d, err := r.c.Describe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	r.open.Store(1)
	left := make(chan struct{})
	go card(left)
	_, err = r.c.Run(t.Context(), call, byYou(t, r.ses, d, r.session("DP-1", "HDMI-1")), nil)
	if err != nil {
		t.Errorf("after its card: %v", err)
	}
	<-left

	// One that comes while the card before it is about to leave is asked.
	r.open.Store(1)
	left = make(chan struct{})
	go card(left)
	if _, err := r.c.Describe(t.Context(), call); err != nil {
		t.Errorf("after another's card: %v", err)
	}
	<-left

	// A window that opens while another request has its turn: nothing begins.
	r.c.turn <- struct{}{}
	begun := get(r.s, func(s *screen) int { return len(s.asks) })
	early := make(chan error, 1)
	go func() { early <- see() }()
	time.Sleep(200 * time.Millisecond) // it waits for its turn
	r.open.Store(1)
	<-r.c.turn
	err = <-early
	if wantCode(t, err, wire.CodeOwnWindow); err == nil || strings.Contains(err.Error(), "meanwhile") || get(r.s, func(s *screen) int { return len(s.asks) }) != begun {
		t.Errorf("it began, with a window open: %v", err)
	}
	r.open.Store(0)

	// While a card is open it is asked all the same, and waits.
	r.c.Freeze(true)
	r.open.Store(1)
	left = make(chan struct{})
	go func() {
		time.Sleep(100 * time.Millisecond)
		r.open.Store(0)
		r.c.Freeze(false)
		close(left)
	}()
	if err := see(); err != nil {
		t.Errorf("during another card: %v", err)
	}
	<-left

	// A window that opens in the middle of typing.
	hold := make(chan struct{})
	defer close(hold)
	r.s.set(func(s *screen) { s.hold = hold; s.begun = 0 })
	done := make(chan error, 1)
	go func() {
		_, err := r.do(wire.TypeInput, &wire.InputAction{SessionID: r.ses.ID, Action: wire.ActType, Text: "long"}, r.session())
		done <- err
	}()
	eventually(t, "typing has begun", func() bool { return get(r.s, func(s *screen) int { return s.begun }) > 0 })
	r.open.Store(1)
	select {
	case err := <-done:
		wantCode(t, err, wire.CodeOwnWindow)
	case <-time.After(20 * time.Second):
		t.Error("typing went on into this program's window")
	}
	r.open.Store(0)
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

func TestEveryEndLetsGo(t *testing.T) {
	down := wire.InputAction{Action: "mouse_down"}
	for name, end := range map[string]func(*rig){
		"end of the session": func(r *rig) {
			if err := r.c.EndSession(r.t.Context(), r.ses.ID); err != nil {
				r.t.Error(err)
			}
		},
		"drop":       func(r *rig) { r.c.Drop(r.ses.ID, errStopped(), false) },
		"drop all":   func(r *rig) { r.c.Drop("", errStopped(), true) },
		"disconnect": func(r *rig) { r.c.Void() },
		"screens":    func(r *rig) { r.c.Moved() },
		"card":       func(r *rig) { r.c.Freeze(true) },
		"close": func(r *rig) {
			if err := r.c.Close(); err != nil {
				r.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if err := r.act(down, r.session()); err != nil {
				t.Fatal(err)
			}
			end(r)
			eventually(t, "the button is let go", func() bool { return r.s.releases() >= 1 })
		})
	}
	r := newRig(t)
	hold := make(chan struct{})
	defer close(hold)
	r.s.set(func(s *screen) { s.hold = hold })
	done := make(chan error, 1)
	go func() { done <- r.act(wire.InputAction{Action: "hold_key", Key: "a", DurationMS: 1000}, r.session()) }()
	eventually(t, "the key is held", func() bool { return get(r.s, func(s *screen) int { return s.begun }) == 1 })
	r.c.Drop(r.ses.ID, wire.Errorf(wire.CodePaused, "paused"), false)
	wantCode(t, <-done, wire.CodePaused)
}

// When the screens change, what was aimed at them ends; a session ends with the
// last screen that it shares.
func TestScreensThatGo(t *testing.T) {
	r := newRig(t)
	r.see(0) // both are shared
	hold := make(chan struct{})
	defer close(hold)
	r.s.set(func(s *screen) { s.hold = hold })
	done := make(chan error, 1)
	go func() { done <- r.act(wire.InputAction{Action: "hold_key", Key: "a", DurationMS: 1000}, r.session()) }()
	eventually(t, "the key is held", func() bool { return get(r.s, func(s *screen) int { return s.begun }) == 1 })
	one := space.Layout{Screens: two().Screens[1:]}
	r.c.Moved()
	if gone := r.c.Without(one); len(gone) > 0 {
		t.Errorf("with one of two screens left %q end", gone)
	}
	wantCode(t, <-done, wire.CodePictureStale)
	other := two().Screens[:1]
	other[0].Name = "DP-2"
	if gone := r.c.Without(space.Layout{Screens: other}); !slices.Equal(gone, []string{r.ses.ID}) {
		t.Errorf("with none of their screens left %q end", gone)
	}
}

func TestUses(t *testing.T) {
	r := newRig(t)
	if u := r.c.Uses(); len(u) != 0 {
		t.Errorf("at first %+v", u)
	}
	call := r.call(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID})
	d, err := r.c.Describe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.c.Run(t.Context(), call, byYou(t, r.ses, d, consent.Choice{Scope: consent.Once, Screens: "DP-1"}), nil); err != nil {
		t.Fatal(err)
	}
	if u := r.c.Uses(); len(u) != 1 || u[0].Idle || !u[0].Sees || u[0].Acts || time.Until(u[0].Until) > lingers {
		t.Errorf("once: %+v", u)
	}
	r.see(0)
	if err := r.act(wire.InputAction{Action: "key", Key: "a"}, r.session()); err != nil {
		t.Error(err)
	}
	u := r.c.Uses()
	if len(u) != 1 || !u[0].Idle || !u[0].Sees || !u[0].Acts || u[0].Session != r.ses.ID || time.Until(u[0].Until) < 9*time.Minute {
		t.Errorf("for the session: %+v", u)
	}
	// What is broken off is not used, and ends for that when it would have.
	for range 2 {
		r.c.Drop(r.ses.ID, errStopped(), false)
		time.Sleep(time.Millisecond)
	}
	was := u[0]
	if u = r.c.Uses(); len(u) != 1 || !u[0].Idle || u[0].On() || u[0].Until != was.Until {
		t.Errorf("broken off: %+v, before %+v", u, was)
	}
	r.see(0)
	if u = r.c.Uses(); len(u) != 1 || !u[0].Idle || !u[0].Sees || u[0].Acts || !u[0].Since.After(was.Since) || !u[0].Until.After(was.Until) {
		t.Errorf("used again: %+v, before %+v", u, was)
	}
	r.c.Drop(r.ses.ID, errStopped(), true)
	if u := r.c.Uses(); len(u) != 0 {
		t.Errorf("dropped: %+v", u)
	}
}

// What is dropped while it is under way is a use again as soon as it acts again.
func TestUsesAfterADrop(t *testing.T) {
	r := newRig(t)
	hold := make(chan struct{})
	defer close(hold)
	r.s.set(func(s *screen) { s.hold = hold })
	done := make(chan error, 1)
	go func() { done <- r.act(wire.InputAction{Action: "hold_key", Key: "a", DurationMS: 1000}, r.session()) }()
	eventually(t, "the key is held", func() bool { return get(r.s, func(s *screen) int { return s.begun }) == 1 })
	r.c.Drop(r.ses.ID, errStopped(), true)
	if err := <-done; err == nil {
		t.Error("it was not ended")
	}
	r.s.set(func(s *screen) { s.hold = nil })
	if err := r.act(wire.InputAction{Action: "key", Key: "a"}, r.session()); err != nil {
		t.Fatal(err)
	}
	if u := r.c.Uses(); len(u) != 1 || u[0].Session != r.ses.ID || !u[0].Acts {
		t.Errorf("after it acts again: %+v", u)
	}
}
