package machine

import (
	"context"
	"slices"
	"time"

	"localpc/consent"
)

// heldAtMost is how long the next card waits for what the last answer settles.
const heldAtMost = 100 * time.Millisecond

// hold keeps the next card back until what the answer to the last one gives
// for longer is remembered: it may be the answer to what waits.
type hold struct {
	who   program
	owed  int // what is still to be remembered
	timer *time.Timer
}

// hold begins one, where an answer holds for longer. Called with mu held and
// the card still open.
func (q *Asks) hold(a consent.Answer) {
	if q.ruled == nil || a.Choice.Scope == "" || a.Choice.Scope == consent.Once || q.behind() == 0 {
		return
	}
	r := q.card.asks[0].r
	h := &hold{who: program{r.Hub, r.Principal.ID}, owed: len(q.card.asks)}
	h.timer = time.AfterFunc(heldAtMost, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.release(h)
	})
	q.held = h
}

// release ends a hold. Called with mu held.
func (q *Asks) release(h *hold) {
	if h == nil || q.held != h {
		return
	}
	h.timer.Stop()
	q.held = nil
	q.nextOrNone()
}

// Remembered says that something is remembered for a program from now on. Those
// of its questions that it decides are not asked: they are judged again.
func (q *Asks) Remembered(hub, principal string) {
	q.mu.Lock()
	waiting := slices.Clone(q.queue)
	q.mu.Unlock()
	// Judged before the lock: it may read the disk.
	ruled := q.ruled(hub, principal)
	decided := slices.DeleteFunc(waiting, func(a *ask) bool {
		return a.r.Hub != hub || a.r.Principal.ID != principal || !ruled(a.r)
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range decided {
		q.settle(a, result{err: consent.ErrAgain})
	}
	q.tidy()
	if h := q.held; h != nil && h.who == (program{hub, principal}) {
		if h.owed--; h.owed <= 0 {
			q.release(h)
		}
	}
}

// book is where the gate keeps what it remembers; the queue hears of it.
type book struct {
	consent.Book
	asks *Asks
}

func (b book) Remember(ctx context.Context, s consent.Stored) error {
	err := b.Book.Remember(ctx, s)
	if err == nil {
		b.asks.Remembered(s.Rule.Hub, s.Rule.Principal)
	}
	return err
}

// ruled tells which requests of a program a rule decides now.
func (m *Machine) ruled(hub, principal string) func(consent.Request) bool {
	remembered, err := m.o.Store.Remembered(m.ctx, hub, principal)
	if err != nil {
		m.log.Warn("What is remembered could not be read", "err", err)
	}
	decider := pausable{m, m.o.Policy}
	return func(r consent.Request) bool { return decider.Decide(r, remembered, time.Now()).Grant != "" }
}
