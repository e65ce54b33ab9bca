package machine

import (
	"context"
	"errors"
	"sync"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// Surface is a place where a card can be shown: the desktop's cards, or a
// terminal. Its methods return at once; what happens is told to Asks by Shown,
// Answer and Lost.
type Surface interface {
	// Present shows a card, or returns an error when it cannot. shown says
	// that it is before the person already; otherwise Asks.Shown tells.
	Present(r consent.Request, info snapshot.CardInfo) (shown bool, err error)
	// Withdraw takes the card of request id away.
	Withdraw(id string)
}

// Clocks of a card, as design.md's "Waiting for a person" has them.
const (
	showWithin   = 10 * time.Second // from its turn until it is on screen
	leastToShow  = 5 * time.Second  // less than this left: not shown any more
	leastToBegin = 10 * time.Second // less than this at arrival: not asked at all
	maxWaiting   = 8                // questions of one session, or session cards of one program
)

// Asks is the queue of questions: the consent.Prompter. It owns every
// question's clock. One card is on screen at a time; the time spent in the
// queue counts. Safe for concurrent use.
type Asks struct {
	now     func() time.Time
	changed func()
	info    func(consent.Request) snapshot.CardInfo
	notify  func(r *consent.Request) // nil: the last card has gone

	mu       sync.Mutex
	surfaces []Surface // guarded by mu
	queue    []*ask    // guarded by mu; the first has its turn
}

type ask struct {
	r       consent.Request
	info    snapshot.CardInfo
	turn    chan struct{} // closed when it is first in the queue
	shown   chan struct{} // closed when a surface has drawn it
	isShown bool
	// retried: its surface went before it was shown, and it was presented
	// once more.
	retried bool
	by      map[Surface]bool // surfaces that have it
	// settled: it has its result, or will take none. Set once, with mu held,
	// so that an answer that was taken counts and a later one is told so.
	settled bool
	done    chan result // buffered 1; written by who settles
}

type result struct {
	a   consent.Answer
	err error
}

// Add makes s a place for cards; the open one is shown there too.
func (q *Asks) Add(s Surface) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.surfaces = append(q.surfaces, s)
	if len(q.queue) > 0 {
		q.present(q.queue[0], s)
	}
}

// Waiting is how many questions are open.
func (q *Asks) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queue)
}

// Head is the question that has its turn, with what its card shows.
func (q *Asks) Head() (consent.Request, snapshot.CardInfo, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return consent.Request{}, snapshot.CardInfo{}, false
	}
	return q.queue[0].r, q.cardInfo(q.queue[0]), true
}

func (q *Asks) cardInfo(a *ask) snapshot.CardInfo {
	info := a.info
	info.Waiting = len(q.queue) - 1
	return info
}

// Prompt implements consent.Prompter.
func (q *Asks) Prompt(ctx context.Context, r consent.Request) (consent.Answer, error) {
	if left := r.Deadline.Sub(q.now()); left < leastToBegin {
		return consent.Answer{}, consent.Refuse(consent.Undelivered, "There was too little time to ask the person (%d seconds): %s. They can choose \"Allow next time\" in Activity.", max(0, int(left.Seconds())), r.Title)
	}
	// What its card shows is looked up before the lock: it may read the disk.
	a := &ask{r: r, info: q.info(r), turn: make(chan struct{}), shown: make(chan struct{}), by: map[Surface]bool{}, done: make(chan result, 1)}
	q.mu.Lock()
	n := 0
	for _, other := range q.queue {
		if other.r.Session == r.Session || opens(r) && opens(other.r) && other.r.Hub == r.Hub && other.r.Principal.ID == r.Principal.ID {
			n++
		}
	}
	if n >= maxWaiting {
		q.mu.Unlock()
		return consent.Answer{}, consent.Refuse(consent.Undelivered, "%d questions wait for the person already; ask again when they are answered.", n)
	}
	if len(q.surfaces) == 0 {
		q.mu.Unlock()
		return consent.Answer{}, consent.Refuse(consent.Undelivered, "This computer has neither a display nor a terminal to ask the person on, so nothing was run.")
	}
	q.queue = append(q.queue, a)
	if len(q.queue) == 1 {
		q.begin(a)
	}
	q.mu.Unlock()
	q.changed()
	defer q.remove(a)

	deadline := time.NewTimer(r.Deadline.Sub(q.now()))
	defer deadline.Stop()
	turn, shown, turnOver := a.turn, a.shown, (<-chan time.Time)(nil)
	for {
		select {
		case res := <-a.done:
			return res.a, res.err
		case <-ctx.Done():
			return q.give(a, context.Cause(ctx))
		case <-turn:
			turn = nil
			if r.Deadline.Sub(q.now()) < leastToShow {
				return q.give(a, undelivered(r, "earlier questions took the time"))
			}
			t := time.NewTimer(showWithin)
			defer t.Stop()
			turnOver = t.C
		case <-shown:
			shown, turnOver = nil, nil
		case <-turnOver:
			turnOver = nil
			if !q.wasShown(a) {
				return q.give(a, undelivered(r, "its window did not open"))
			}
		case <-deadline.C:
			if !q.wasShown(a) {
				return q.give(a, undelivered(r, "earlier questions took the time"))
			}
			return q.give(a, &consent.Refusal{Outcome: consent.Expired})
		}
	}
}

func opens(r consent.Request) bool { return r.Capability == consent.CapabilitySession }

func (q *Asks) wasShown(a *ask) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return a.isShown
}

// give ends a with err, unless its answer was taken at the same moment.
func (q *Asks) give(a *ask, err error) (consent.Answer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.settle(a, result{err: err}) {
		return consent.Answer{}, err
	}
	res := <-a.done
	return res.a, res.err
}

// settle gives a its one result; false when it has one. Called with mu held.
func (q *Asks) settle(a *ask, res result) bool {
	if a.settled {
		return false
	}
	a.settled = true
	a.done <- res
	return true
}

func undelivered(r consent.Request, why string) error {
	return consent.Refuse(consent.Undelivered, "The question could not be shown to the person, since %s: %s. They can choose \"Allow next time\" in Activity.", why, r.Title)
}

// begin gives a its turn. It is not shown any more when that would be for a
// moment only. Called with mu held.
func (q *Asks) begin(a *ask) {
	close(a.turn)
	if a.r.Deadline.Sub(q.now()) < leastToShow {
		return
	}
	for _, s := range q.surfaces {
		q.present(a, s)
	}
	r := a.r
	q.notify(&r)
}

func (q *Asks) present(a *ask, s Surface) {
	shown, err := s.Present(a.r, q.cardInfo(a))
	if err != nil {
		return
	}
	a.by[s] = true
	if shown {
		q.markShown(a)
	}
}

func (q *Asks) remove(a *ask) {
	q.mu.Lock()
	for i, other := range q.queue {
		if other != a {
			continue
		}
		q.queue = append(q.queue[:i], q.queue[i+1:]...)
		for s := range a.by {
			s.Withdraw(a.r.ID)
		}
		if i == 0 {
			if len(q.queue) > 0 {
				q.begin(q.queue[0])
			} else {
				q.notify(nil)
			}
		}
		break
	}
	q.mu.Unlock()
	q.changed()
}

func (q *Asks) find(id string) *ask {
	if len(q.queue) > 0 && q.queue[0].r.ID == id {
		return q.queue[0]
	}
	return nil
}

// Shown notes that a surface has drawn the card of request id.
func (q *Asks) Shown(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.find(id); a != nil {
		q.markShown(a)
	}
}

// markShown is called with mu held.
func (q *Asks) markShown(a *ask) {
	if !a.isShown {
		a.isShown = true
		close(a.shown)
	}
}

// ErrGone means that the question is not open any more.
var ErrGone = errors.New("this question is not open any more")

// Answer gives the person's answer to request id. Only the question that has
// its turn can be answered, once, and only after it was shown.
func (q *Asks) Answer(id string, answer consent.Answer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.find(id)
	if a == nil || !a.isShown || !q.settle(a, result{a: answer}) {
		return ErrGone
	}
	return nil
}

// joined is a surface that came to one card by itself.
type joined struct{ _ byte } // not of size zero: each has its own address

func (*joined) Present(consent.Request, snapshot.CardInfo) (bool, error) { return false, ErrGone }
func (*joined) Withdraw(string)                                          {}

// Join makes somebody who shows the card of request id by himself a surface of
// it, until he leaves.
func (q *Asks) Join(id string) (leave func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.find(id)
	if a == nil {
		return nil, false
	}
	s := &joined{}
	a.by[s] = true
	q.markShown(a)
	return func() { q.Lost(s) }, true
}

// Lost says that a surface died. A card that it had not drawn yet is presented
// once more; one that was on its screen, and nowhere else, is undelivered.
func (q *Asks) Lost(s Surface) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return
	}
	a := q.queue[0]
	if !a.by[s] {
		return
	}
	delete(a.by, s)
	if len(a.by) > 0 {
		return
	}
	if !a.isShown && !a.retried {
		a.retried = true
		q.present(a, s)
		if len(a.by) > 0 {
			return
		}
	}
	q.settle(a, result{err: undelivered(a.r, "the window that asked it was closed by an error")})
}
