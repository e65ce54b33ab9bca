package computer

import (
	"context"
	"errors"
	"image"
	"slices"
	"sync"
	"testing"
	"time"

	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/computer/hands"
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
