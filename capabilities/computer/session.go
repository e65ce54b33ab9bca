package computer

import (
	"image"
	"slices"
	"strings"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

const (
	// keptPictures is how many of a session's pictures can be aimed at.
	keptPictures = 32
	// idleAfter is Options.Idle where that is 0; lingers, how long one that was allowed once is shown.
	idleAfter = 10 * time.Minute
	lingers   = 5 * time.Second
)

// session is what is known of one. Its fields are guarded by Computer.mu.
type session struct {
	c        *Computer
	id       string
	pictures []picture               // the newest last
	listed   map[string]space.Window // by the ids of the newest list
	// may are the screens of grants that are remembered, as Choice.Screens has
	// them, the newest last; shared is all that was allowed for more than one
	// picture. chose: a choice of screens was made, which holds on although what
	// it allowed is taken away.
	may    []string
	shared map[string]bool
	chose  bool
	// allowed is when it first acted; answered when the person last allowed an
	// action at a card.
	allowed, answered time.Time
	held              bool // a button may be down
	pastes            bool // it may write to the clipboard without being asked
	shown             []shown
	used              hands.Use
	busy              int
	clip              clip
}

// picture is one that was sent.
type picture struct {
	view  space.View
	stack space.Stack // nil: windows can't be listed
	at    time.Time
	// allowed are the screens that it was allowed to show.
	allowed []string
}

// shown is where the card of a request says that it goes, by the request's
// payload: the pointer moves on to the card, which may take the keyboard too.
type shown struct {
	of       wire.Payload
	marks    []image.Point
	keyboard *space.Window // that keys go to; nil: they do not, or none was known
	aim      []hands.Aim   // what lay there, where no picture says that
}

// shows remembers it, hides forgets it, and showed gives it.
func (s *session) shows(w shown) {
	s.hides(w.of)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.shown = append(s.shown, w); len(s.shown) > keptPictures {
		s.shown = slices.Delete(s.shown, 0, len(s.shown)-keptPictures)
	}
}

func (s *session) hides(of wire.Payload) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.shown = slices.DeleteFunc(s.shown, func(w shown) bool { return w.of == of })
}

func (s *session) showed(of wire.Payload) (shown, bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, w := range s.shown {
		if w.of == of {
			return w, true
		}
	}
	return shown{}, false
}

// clip is what the session put on the clipboard itself.
type clip struct {
	text string
	at   time.Time // zero: nothing
}

// use is how a request uses the display.
//
// blind: the display does not tell which windows there are, so that those of
// this program can't be left out.
type use struct{ sees, acts, once, blind bool }

func (c *Computer) session(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if s == nil {
		s = &session{c: c, id: id, shared: map[string]bool{}}
		if !c.closed {
			c.sessions[id] = s
		}
	}
	return s
}

// begins and ends note a use. Called with mu held.
func (s *session) begins(u use, now time.Time) {
	if !u.sees && !u.acts {
		return
	}
	if over := s.used.Until.Before(now) && s.busy == 0; over || !s.used.On() {
		// What was allowed for longer than a request still is.
		s.used = hands.Use{Session: s.id, Since: now, Idle: s.used.Idle}
	}
	s.busy++
	s.used.Sees, s.used.Acts = s.used.Sees || u.sees, s.used.Acts || u.acts
	s.used.Idle = s.used.Idle || !u.once
	if u.acts && s.allowed.IsZero() {
		s.allowed = now
	}
	s.holds(now)
}

func (s *session) ends(u use, now time.Time) {
	if !u.sees && !u.acts {
		return
	}
	s.busy--
	s.holds(now)
}

func (s *session) holds(now time.Time) {
	s.used.Until = now.Add(lingers)
	if s.used.Idle {
		s.used.Until = now.Add(s.c.o.Idle)
	}
}

// Uses are the sessions that see the screens or have mouse and keyboard now,
// those that may do so again, and those whose time is just over; the oldest
// first. Drop takes one away.
func (c *Computer) Uses() []hands.Use {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	var out []hands.Use
	for _, s := range c.sessions {
		if s.used.Since.IsZero() {
			continue
		}
		if s.busy > 0 {
			s.holds(now)
		}
		u := s.used
		u.Rested = s.rested()
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b hands.Use) int { return a.Since.Compare(b.Since) })
	return out
}

// Drop ends what a session sees and does, for all sessions where it is "": the
// requests under way too, with cause. forget also forgets which screens it was
// allowed; without it what was allowed for longer than a request goes on to count
// as not used. What is held down is released in the background.
func (c *Computer) Drop(id string, cause error, forget bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range c.sessions {
		if id != "" && name != id {
			continue
		}
		for r := range c.runs[name] {
			r.cancel(cause)
		}
		s.used.Sees, s.used.Acts, s.pastes = false, false, false
		if forget || !s.used.Idle {
			s.used = hands.Use{}
		}
		if forget {
			s.may, s.shared = nil, map[string]bool{}
			for i := range s.pictures {
				s.pictures[i].allowed = nil
			}
			s.allowed, s.answered = time.Time{}, time.Time{}
		}
	}
	c.letGo(func(s *session) bool { return s.held && (id == "" || s.id == id) })
}

// Moved says that the screens have changed: what is done with mouse and keyboard
// was aimed at what was there before, so it ends, and what is held down is let go.
func (c *Computer) Moved() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acting != nil {
		c.acting(errScreensChanged())
	}
	c.letGo(func(s *session) bool { return s.held })
}

// Without are the sessions that share none of the screens of l any more.
func (c *Computer) Without(l space.Layout) (gone []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := names(l)
	for id, s := range c.sessions {
		if len(s.shared) > 0 && !slices.ContainsFunc(left, func(name string) bool { return s.shared[name] }) {
			gone = append(gone, id)
		}
	}
	return gone
}

// Void makes every window id void: the other end has connected anew.
func (c *Computer) Void() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		s.listed = nil
	}
	c.letGo(func(s *session) bool { return s.held })
}

func (s *session) acted() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.actedLocked()
}

func (s *session) actedLocked() bool { return !s.allowed.IsZero() || s.held }

// keep remembers a picture that is sent.
func (s *session) keep(p picture) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.pictures = append(s.pictures, p); len(s.pictures) > keptPictures {
		s.pictures = slices.Delete(s.pictures, 0, len(s.pictures)-keptPictures)
	}
}

// picture finds one by its id; "" is the last, ok is false where there was none.
func (s *session) picture(id string) (p picture, ok bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, p := range slices.Backward(s.pictures) {
		if id == "" || p.view.ID == id {
			return p, true
		}
	}
	return picture{}, false
}

// shows tells whether a device pixel, on the screen of this name, was to be seen
// in the picture.
func (p picture) shows(at image.Point, name string) bool {
	return at.In(p.view.Area) && slices.Contains(p.allowed, name)
}

func errOldPicture() error {
	return wire.Errorf(wire.CodePictureStale, "This picture is not known any more; take a new one.")
}

// share notes the screens of a grant, and gives them. What was allowed once
// holds for that picture; a policy allows it again each time.
func (s *session) share(g consent.Grant, needs []string) []string {
	c := g.Choice()
	names := consent.SplitScreens(c.Screens)
	if names == nil {
		names = needs // it was allowed as it was described
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.chose = true
	if c.Scope != consent.Once || g.By() == "policy" {
		for _, n := range names {
			s.shared[n] = true
		}
	}
	if c.Scope != consent.Once && c.Screens != "" {
		s.may = append(slices.DeleteFunc(s.may, func(m string) bool { return m == c.Screens }), c.Screens)
	}
	return names
}

// covering is the newest remembered choice with all that is needed, or, with
// some, with any of it; "" for none.
func (s *session) covering(needs []string, some bool) string {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, m := range slices.Backward(s.may) {
		has := consent.SplitScreens(m)
		missing := slices.ContainsFunc(needs, func(n string) bool { return !slices.Contains(has, n) })
		any := slices.ContainsFunc(needs, func(n string) bool { return slices.Contains(has, n) })
		if !missing || some && any {
			return m
		}
	}
	return ""
}

// reaches tells whether the session may act on a screen: on those that it was
// allowed to see, and on all where there was no choice of screens.
func (s *session) reaches(name string) bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return !s.chose || s.shared[name]
}

// seen is since when the person's own hands must have rested: since the picture
// was taken that the session last got, or it was allowed to act. What the person
// did to allow an action does not count against what follows.
func (s *session) seen() time.Time {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.rested()
}

// rested is seen with mu held.
func (s *session) rested() time.Time {
	at := s.allowed
	if n := len(s.pictures); n > 0 {
		at = s.pictures[n-1].at
	}
	if s.answered.After(at) {
		at = s.answered
	}
	return at
}

// names are what the screens of a layout are called: unique, and never empty.
func names(l space.Layout) []string {
	var out []string
	for i, sc := range l.Screens {
		name := strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, sc.Name)
		if name == "" || slices.Contains(out, name) {
			name = "screen " + number(i)
		}
		out = append(out, name)
	}
	return out
}
