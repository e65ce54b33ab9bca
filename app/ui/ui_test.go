package ui

import (
	"net/url"
	"os"
	"reflect"
	"sort"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"go.uber.org/goleak"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// stage is a UI under Fyne's test driver, with a clock that the test turns and
// an ear for what goes up.
type stage struct {
	t     *testing.T
	u     *UI
	clock *clock
	sent  []desklink.Up
	// visited are the pages opened in the browser; noBrowser fails that.
	visited   []string
	noBrowser error
}

type clock struct {
	now    time.Time
	timers []*timer
}

type timer struct {
	at  time.Time
	f   func()
	off bool
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) After(d time.Duration, f func()) func() {
	t := &timer{at: c.now.Add(d), f: f}
	c.timers = append(c.timers, t)
	return func() { t.off = true }
}

// run lets d go by.
func (c *clock) run(d time.Duration) {
	end := c.now.Add(d)
	for {
		sort.SliceStable(c.timers, func(i, j int) bool { return c.timers[i].at.Before(c.timers[j].at) })
		if len(c.timers) == 0 || c.timers[0].at.After(end) {
			break
		}
		t := c.timers[0]
		c.timers = c.timers[1:]
		if t.at.After(c.now) {
			c.now = t.at
		}
		if !t.off {
			t.f()
		}
	}
	c.now = end
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, clock: &clock{now: time.Date(2026, 3, 3, 14, 2, 20, 0, time.Local)}}
	a := test.NewApp()
	t.Cleanup(a.Quit)
	s.u = New(Options{App: a, Clock: s.clock, Send: func(m desklink.Up) { s.sent = append(s.sent, m) },
		Open: func(u *url.URL) error {
			s.visited = append(s.visited, u.String())
			return s.noBrowser
		},
		Background: func(work func() func()) { work()() }})
	return s
}

// paint draws the card's window, as a screen would.
func (s *stage) paint() {
	s.u.card.win.Canvas().Capture()
	s.clock.run(0)
}

// card shows a card, paints it and lets it arm.
func (s *stage) card(c desklink.Card) *openCard {
	s.t.Helper()
	s.show(c)
	s.paint()
	s.clock.run(time.Second)
	o := s.u.card.now
	if o == nil || !o.armed {
		s.t.Fatal("the card is not armed a second after it was drawn")
	}
	return o
}

func (s *stage) show(c desklink.Card) { s.u.Handle(desklink.Down{Card: &c}) }

func (s *stage) answers() []consent.Answer {
	var out []consent.Answer
	for _, m := range s.sent {
		if m.Answer != nil {
			out = append(out, m.Answer.Answer)
		}
	}
	return out
}

func (s *stage) shown() (ids []string) {
	for _, m := range s.sent {
		if m.Shown != nil {
			ids = append(ids, m.Shown.ID)
		}
	}
	return ids
}

// intents are those sent since the last call.
func (s *stage) intents() []snapshot.Intent {
	var out []snapshot.Intent
	var rest []desklink.Up
	for _, m := range s.sent {
		if m.Intent != nil {
			out = append(out, *m.Intent)
		} else {
			rest = append(rest, m)
		}
	}
	s.sent = rest
	return out
}

func (s *stage) wantIntent(want snapshot.Intent) {
	s.t.Helper()
	got := s.intents()
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		s.t.Fatalf("intents %+v, want %+v", got, want)
	}
}

// texts is everything written in a window, in order.
func texts(w fyne.Window) []string {
	var out []string
	walk(w.Content(), func(o fyne.CanvasObject) {
		switch v := o.(type) {
		case *kit.Flow:
			out = append(out, v.Text())
		case interface{ Text() string }:
			out = append(out, v.Text())
		}
	})
	return out
}

// walk visits what is visible below o.
func walk(o fyne.CanvasObject, visit func(fyne.CanvasObject)) {
	if o == nil || !o.Visible() {
		return
	}
	visit(o)
	switch v := o.(type) {
	case *fyne.Container:
		for _, c := range v.Objects {
			walk(c, visit)
		}
	case fyne.Widget:
		for _, c := range test.WidgetRenderer(v).Objects() {
			walk(c, visit)
		}
	}
}

// has says whether some text of the window holds s.
func has(w fyne.Window, s string) bool {
	for _, t := range texts(w) {
		if contains(t, s) {
			return true
		}
	}
	return false
}

// button is the visible button with a word on it.
func (s *stage) button(w fyne.Window, word string) *kit.Button {
	s.t.Helper()
	var found *kit.Button
	walk(w.Content(), func(o fyne.CanvasObject) {
		if b, ok := o.(*kit.Button); ok && b.Text() == word {
			found = b
		}
	})
	if found == nil {
		s.t.Fatalf("no button %q among %q", word, texts(w))
	}
	return found
}

func (s *stage) tap(w fyne.Window, word string) {
	s.t.Helper()
	test.Tap(s.button(w, word))
}

func TestMain(m *testing.M) {
	os.Setenv(kit.ThemeEnv, "light")
	// Fyne's own queue to its main loop lives as long as the program.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("fyne.io/fyne/v2/internal/async.(*UnboundedChan[...]).processing"))
}
