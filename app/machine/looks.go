package machine

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
)

const (
	// lookAgain is how often the pictures of an open card are taken anew.
	lookAgain = time.Second
	// lookRefused is how long none is taken where the system asks the person
	// about each and gave none, or was slow to give none.
	lookRefused = 30 * time.Second
	lookSlow    = 5 * time.Second
	// firstWithin is how long a card waits for the picture from before it opens.
	firstWithin = 250 * time.Millisecond
	// asksAfter is when the card says that the system may be asking.
	asksAfter = 1500 * time.Millisecond
)

// systemAsksWords stand on a card where its picture is to be, while that waits
// for a question of the system.
const systemAsksWords = "Your desktop asks about this in a window of its own. Once you answer there, the picture is shown here."

// beforeWords stand on the picture that was taken before the card opened.
const beforeWords = "As it was before this card opened."

// Looker is a Surface that can show what would be seen. Look returns at once.
type Looker interface{ Look(l consent.Look) }

// pictured is a request that may be pictured on its card.
type pictured struct {
	call  capabilities.Call
	n     int          // how many of the same payload ask
	first consent.Look // of an action, before its card opened; guarded by controls.mu
}

func askedKey(r consent.Request) string { return r.Session + "\x00" + r.Digest.String() }

// asks notes what a request asks for, until forget is called: its card may show
// pictures of it.
func (c *controls) asks(r consent.Request, call capabilities.Call) (forget func()) {
	if c.exec == nil || !r.Looks {
		return func() {}
	}
	key := askedKey(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.calls[key]
	if a == nil {
		a = &pictured{call: call}
		c.calls[key] = a
	}
	a.n++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if a.n--; a.n == 0 {
			delete(c.calls, key)
		}
	}
}

// firstLook takes the picture of where an action goes before its card opens: the
// card may come to lie over that. It takes a moment at most.
func (c *controls) firstLook(ctx context.Context, r consent.Request) {
	if c.exec == nil || !r.Looks || len(r.Screens) > 0 {
		return
	}
	c.mu.Lock()
	a, asksFirst := c.calls[askedKey(r)], c.abilities == nil || c.abilities.System == hands.Wayland
	c.mu.Unlock()
	if a == nil || asksFirst { // no question of the system's comes before the card
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstWithin)
	defer cancel()
	done := make(chan struct{})
	if !c.m.background(func(context.Context) {
		defer close(done)
		looks := c.exec.Look(ctx, a.call, r)
		if ctx.Err() != nil || len(looks) != 1 || len(looks[0].Data) == 0 || looks[0].Under {
			return
		}
		c.mu.Lock()
		a.first = looks[0]
		c.mu.Unlock()
	}) {
		return
	}
	select {
	case <-done:
	case <-ctx.Done(): // it waits for something else at the display
	}
}

// orFirst is l, or, where the card hides where the action goes, the picture from
// before it opened.
func (c *controls) orFirst(l consent.Look, r consent.Request) consent.Look {
	if !l.Under {
		return l
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.calls[askedKey(r)]
	if a == nil || len(a.first.Data) == 0 {
		return l
	}
	l = a.first
	l.Note = strings.TrimSuffix(beforeWords+" "+l.Note, " ")
	return l
}

// looks begins to take the pictures for the card of r, and ends those of the
// card before; nil: there is no card. It returns at once.
func (c *controls) looks(r *consent.Request) {
	if c.exec == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.card = r != nil
	if c.stopLooks != nil {
		c.stopLooks()
		c.stopLooks = nil
	}
	if r == nil || !r.Looks {
		return
	}
	a := c.calls[askedKey(*r)]
	if a == nil {
		return
	}
	ctx, stop := context.WithCancel(c.m.ctx)
	call, req := a.call, *r
	if c.m.background(func(context.Context) { defer stop(); c.keepLooking(ctx, call, req) }) {
		c.stopLooks = stop
	} else {
		stop()
	}
}

// keepLooking takes pictures for a card until it has gone.
func (c *controls) keepLooking(ctx context.Context, call capabilities.Call, r consent.Request) {
	last := map[string]consent.Look{}
	for {
		wait, began, missing := lookAgain, time.Now(), false
		taken := make(chan []consent.Look, 1)
		go func() { taken <- c.exec.Look(ctx, call, r) }()
		var looks []consent.Look
		select {
		case looks = <-taken:
		case <-time.After(asksAfter):
			if c.systemAsks(ctx) {
				c.waits(r, last)
			}
			looks = <-taken
		}
		for _, l := range looks {
			missing = missing || len(l.Data) == 0
			if ctx.Err() != nil {
				return
			}
			l = c.orFirst(l, r)
			l.Request = r.ID
			if was, ok := last[l.Screen]; ok && was.Note == l.Note && bytes.Equal(was.Data, l.Data) && slices.Equal(was.Covers, l.Covers) {
				continue
			}
			last[l.Screen] = l
			if !c.m.asks.look(l) {
				return
			}
		}
		if missing && (c.systemAsks(ctx) || time.Since(began) > lookSlow) {
			wait = lookRefused
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// waits says on a card, where it has no picture yet, what the picture waits for.
func (c *controls) waits(r consent.Request, last map[string]consent.Look) {
	places := []string{""}
	if len(r.Screens) > 0 {
		places = nil
		for _, s := range r.Screens {
			places = append(places, s.Name)
		}
	}
	for _, name := range places {
		if len(last[name].Data) > 0 || last[name].Note == systemAsksWords {
			continue
		}
		last[name] = consent.Look{Request: r.ID, Screen: name, Note: systemAsksWords}
		c.m.asks.look(last[name])
	}
}

// systemAsks says whether the system itself may ask the person about a picture.
func (c *controls) systemAsks(ctx context.Context) bool {
	c.mu.Lock()
	a := c.abilities
	c.mu.Unlock()
	if a == nil {
		c.find(ctx)
		c.mu.Lock()
		a = c.abilities
		c.mu.Unlock()
	}
	return a != nil && a.System == hands.Wayland
}

// look hands a picture to who shows the open card; false when that is another
// one by now.
func (q *Asks) look(l consent.Look) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isOpen(l.Request) {
		return false
	}
	for s := range q.card.by {
		if shows, ok := s.(Looker); ok {
			shows.Look(l)
		}
	}
	return true
}
