package machine

import (
	"context"
	"slices"
	"sync"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// A program whose session cards are denied DeniedOften times in a row within
// quietWithin is not asked for again for quietFor.
const (
	quietWithin = 10 * time.Minute
	quietFor    = 15 * time.Minute
)

// denials counts what the person denies in a row, so that a session that keeps
// being denied can be ended, and a program that wants to begin can't nag. What
// nobody answered does not count. Safe for concurrent use; a nil one counts
// nothing.
type denials struct {
	now func() time.Time

	mu       sync.Mutex
	sessions map[string]int       // by session; guarded by mu
	programs map[program]*nagging // by whom session cards are for; guarded by mu
}

type program struct{ hub, principal string }

type nagging struct {
	denied []time.Time // in a row, within quietWithin
	until  time.Time   // not asked before that
}

func newDenials(now func() time.Time) *denials {
	return &denials{now: now, sessions: map[string]int{}, programs: map[program]*nagging{}}
}

// answered counts the person's answer to the card of r.
func (d *denials) answered(r consent.Request, a consent.Answer) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case opens(r):
		d.begins(program{r.Hub, r.Principal.ID}, a.Allow)
	case a.Allow:
		delete(d.sessions, r.Session)
	case r.Session != "":
		d.sessions[r.Session]++
	}
}

// begins counts the answer to a session card. Called with mu held.
func (d *denials) begins(p program, allow bool) {
	now := d.now()
	for other, n := range d.programs { // what does not matter any more
		n.denied = slices.DeleteFunc(n.denied, func(t time.Time) bool { return now.Sub(t) > quietWithin })
		if len(n.denied) == 0 && !now.Before(n.until) {
			delete(d.programs, other)
		}
	}
	if allow {
		delete(d.programs, p)
		return
	}
	n := d.programs[p]
	if n == nil {
		n = &nagging{}
		d.programs[p] = n
	}
	if n.denied = append(n.denied, now); len(n.denied) >= snapshot.DeniedOften {
		n.denied, n.until = nil, now.Add(quietFor)
	}
}

// of is how many questions of a session were denied one after the other.
func (d *denials) of(session string) int {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[session]
}

// over forgets a session that has ended: a later one may have its name.
func (d *denials) over(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session)
}

// quiet refuses a session card that is not shown to the person, since they have
// denied those of its program again and again; nil for what is asked.
func (d *denials) quiet(r consent.Request) error {
	if d == nil || !opens(r) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.programs[program{r.Hub, r.Principal.ID}]
	if n == nil || !d.now().Before(n.until) {
		return nil
	}
	return consent.Refuse(consent.Undelivered, "The person declined this program %d times in a row, so they are not asked again before %s. They can choose \"Allow next time\" in Activity.", snapshot.DeniedOften, n.until.Local().Format("15:04"))
}

// ending is the recorder of step 4, and what follows a denial by which the
// person ends its session: once that is recorded, the session ends.
type ending struct {
	consent.Recorder
	m *Machine
}

func (e ending) Decided(ctx context.Context, r consent.Request, d consent.Decision) error {
	err := e.Recorder.Decided(ctx, r, d)
	if d.Outcome == consent.Denied && d.Choice.End && r.Session != "" {
		e.m.background(func(ctx context.Context) {
			// It may have ended already: the card had several requests of it.
			_ = e.m.sessions.end(ctx, r.Session, "The person ended this session.", "")
		})
	}
	return err
}
