package computer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

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
