package machine

import (
	"context"
	"errors"
	"slices"
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
	// Update says that the card of r has fewer folded requests now. What the
	// person has begun on it stays.
	Update(r consent.Request, info snapshot.CardInfo)
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
//
// A card is for the question that has its turn, its head, and for those of the
// same kind that wait at that moment (fold.go). Its answer is the answer of all
// that are still on it. A card never grows: what comes later waits for the next
// one. It closes when its head ends; what else was on it is asked anew.
type Asks struct {
	now     func() time.Time
	changed func()
	info    func(consent.Request) snapshot.CardInfo
	notify  func(r *consent.Request)               // nil: the last card has gone
	first   func(context.Context, consent.Request) // before a question's card opens; nil: nothing is
	denied  *denials                               // nil: not counted
	// ruled returns what tells whether a request of a program is decided by
	// what is remembered now; nil: nothing ever is.
	ruled func(hub, principal string) func(consent.Request) bool

	mu       sync.Mutex
	surfaces []Surface // guarded by mu
	queue    []*ask    // open questions, those of the open card first; guarded by mu
	card     *openCard // nil: there is none; guarded by mu
	held     *hold     // no card opens before its end; guarded by mu
}

// ask is one question. It is settled once, with mu held, so that an answer that
// was taken counts and a later one is told so.
type ask struct {
	r       consent.Request // its ID is the question's: Request.Card, where there is one
	request string          // its id
	info    snapshot.CardInfo
	seen    bool // it was on a card that was drawn
	settled bool
	done    chan result // buffered 1
}

type result struct {
	a   consent.Answer
	err error
}

// openCard is the card that is before the person, or on its way there.
type openCard struct {
	asks  []*ask // the head first; none is settled
	by    map[Surface]bool
	shown bool
	// retried: its surface went before it was shown, and it was presented
	// once more.
	retried bool
	late    *time.Timer // ends it when nobody has drawn it
}

// Add makes s a place for cards; the open one is shown there too.
func (q *Asks) Add(s Surface) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.surfaces = append(q.surfaces, s)
	if q.card != nil {
		q.present(s)
	}
}

// Waiting is how many questions are open; those on the open card are one.
func (q *Asks) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.card == nil {
		return len(q.queue)
	}
	return 1 + q.behind()
}

// behind is how many questions wait behind the open card. Called with mu held.
func (q *Asks) behind() int { return len(q.queue) - len(q.card.asks) }

// Head is the question that has its turn, with what its card shows.
func (q *Asks) Head() (consent.Request, snapshot.CardInfo, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.card == nil {
		return consent.Request{}, snapshot.CardInfo{}, false
	}
	return q.card.asks[0].r, q.cardInfo(), true
}

// cardInfo is what the open card shows. Called with mu held.
func (q *Asks) cardInfo() snapshot.CardInfo {
	head, rest := q.card.asks[0], q.card.asks[1:]
	info := head.info
	info.Waiting, info.Denied = q.behind(), q.denied.of(head.r.Session)
	for _, a := range rest {
		info.Folded = append(info.Folded, folded(a.r))
	}
	return info
}

// Prompt implements consent.Prompter.
func (q *Asks) Prompt(ctx context.Context, r consent.Request) (consent.Answer, error) {
	if left := r.Deadline.Sub(q.now()); left < leastToBegin {
		return consent.Answer{}, consent.Refuse(consent.Undelivered, "There was too little time to ask the person (%d seconds): %s. They can choose \"Allow next time\" in Activity.", max(0, int(left.Seconds())), r.Title)
	}
	if err := q.denied.quiet(r); err != nil {
		return consent.Answer{}, err
	}
	if q.first != nil {
		q.first(ctx, r)
	}
	// What its card shows is looked up before the lock: it may read the disk.
	a := &ask{r: r, request: r.ID, info: q.info(r), done: make(chan result, 1)}
	if r.Card != "" {
		a.r.ID = r.Card
	}
	if err := q.add(a); err != nil {
		return consent.Answer{}, err
	}
	q.changed()
	defer q.changed()

	deadline := time.NewTimer(r.Deadline.Sub(q.now()))
	defer deadline.Stop()
	select {
	case <-ctx.Done():
		q.end(a, func() error { return context.Cause(ctx) })
	case <-deadline.C:
		q.end(a, func() error { return tooLate(a) })
	case res := <-a.done:
		return res.a, res.err
	}
	res := <-a.done
	return res.a, res.err
}

// add puts a question into the queue.
func (q *Asks) add(a *ask) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, other := range q.queue {
		if other.r.Session == a.r.Session || opens(a.r) && opens(other.r) && other.r.Hub == a.r.Hub && other.r.Principal.ID == a.r.Principal.ID {
			n++
		}
	}
	if n >= maxWaiting {
		return consent.Refuse(consent.Undelivered, "%d questions wait for the person already; ask again when they are answered.", n)
	}
	if len(q.surfaces) == 0 {
		return consent.Refuse(consent.Undelivered, "This computer has neither a display nor a terminal to ask the person on, so nothing was run.")
	}
	q.queue = append(q.queue, a)
	q.tidy()
	return nil
}

func opens(r consent.Request) bool { return r.Capability == consent.CapabilitySession }

// end gives a what why says, unless it has its result already.
func (q *Asks) end(a *ask, why func() error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settle(a, result{err: why()})
	q.tidy()
}

// settle gives a its one result, and takes it out of the queue. Called with mu
// held; whoever calls it tidies up.
func (q *Asks) settle(a *ask, res result) {
	if a.settled {
		return
	}
	a.settled = true
	a.done <- res
	q.queue = slices.DeleteFunc(q.queue, func(other *ask) bool { return other == a })
}

// settleCard gives everything on the open card its result. Called with mu held.
func (q *Asks) settleCard(res func(*ask) result) {
	for _, a := range slices.Clone(q.card.asks) {
		q.settle(a, res(a))
	}
	q.tidy()
}

func undelivered(r consent.Request, why string) error {
	return consent.Refuse(consent.Undelivered, "The question could not be shown to the person, since %s: %s. They can choose \"Allow next time\" in Activity.", why, r.Title)
}

// tooLate ends a question whose time is over.
func tooLate(a *ask) error {
	if a.seen {
		return &consent.Refusal{Outcome: consent.Expired}
	}
	return undelivered(a.r, "earlier questions took the time")
}

// tidy makes the open card what the queue says. Called with mu held after each
// change of the queue.
func (q *Asks) tidy() {
	c := q.card
	if c == nil {
		if q.held == nil {
			q.next()
		}
		return
	}
	head, n := c.asks[0], len(c.asks)
	c.asks = slices.DeleteFunc(c.asks, func(a *ask) bool { return a.settled })
	switch {
	case head.settled:
		c.late.Stop()
		for s := range c.by {
			s.Withdraw(head.r.ID)
		}
		q.card = nil
		if q.held == nil {
			q.nextOrNone()
		}
	case len(c.asks) < n:
		info := q.cardInfo()
		for s := range c.by {
			s.Update(head.r, info)
		}
	}
}

// nextOrNone opens the card after the one that has closed. Called with mu held.
func (q *Asks) nextOrNone() {
	if q.next(); q.card == nil {
		q.notify(nil)
	}
}

// next opens a card for the first question that can still be asked. One that
// would be shown for a moment only is not any more. Called with mu held.
func (q *Asks) next() {
	for len(q.queue) > 0 {
		a := q.queue[0]
		err := q.denied.quiet(a.r)
		if err == nil && q.shortOf(a) {
			err = tooLate(a)
		}
		if err == nil {
			q.open(a)
			return
		}
		q.settle(a, result{err: err})
	}
}

// shortOf tells whether a has too little time left to be shown.
func (q *Asks) shortOf(a *ask) bool { return a.r.Deadline.Sub(q.now()) < leastToShow }

// open gives head its turn, and with it those of its kind. Called with mu held.
func (q *Asks) open(head *ask) {
	on, behind := []*ask{head}, []*ask(nil)
	kind, room := foldKey(head.r), foldBytes
	for _, a := range q.queue {
		switch size := foldSize(a.r); {
		case a == head:
		case kind != "" && foldKey(a.r) == kind && size <= room && !q.shortOf(a):
			on, room = append(on, a), room-size
		default:
			behind = append(behind, a)
		}
	}
	// Those that go on, should the head end, have their turn first.
	q.queue = slices.Concat(on, behind)
	c := &openCard{asks: on, by: map[Surface]bool{}, retried: head.seen}
	c.late = time.AfterFunc(showWithin, func() { q.undrawn(c) })
	q.card = c
	for _, s := range q.surfaces {
		q.present(s)
	}
	r := head.r
	q.notify(&r)
}

// present shows the open card on s. Called with mu held.
func (q *Asks) present(s Surface) {
	shown, err := s.Present(q.card.asks[0].r, q.cardInfo())
	if err != nil {
		return
	}
	q.card.by[s] = true
	if shown {
		q.markShown()
	}
}

// undrawn ends a card that nobody has drawn in time.
func (q *Asks) undrawn(c *openCard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.card == c && !c.shown {
		q.settleCard(func(a *ask) result { return result{err: undelivered(a.r, "its window did not open")} })
	}
}

// isOpen tells whether the open card is that of request id. Called with mu held.
func (q *Asks) isOpen(id string) bool { return q.card != nil && q.card.asks[0].r.ID == id }

// Shown notes that a surface has drawn the card of request id.
func (q *Asks) Shown(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isOpen(id) {
		q.markShown()
	}
}

// markShown is called with mu held.
func (q *Asks) markShown() {
	q.card.shown = true
	q.card.late.Stop()
	for _, a := range q.card.asks {
		a.seen = true
	}
}

// ErrGone means that the question is not open any more.
var ErrGone = errors.New("this question is not open any more")

// Answer gives the person's answer to the card of request id, and so to all
// that is on it. Only the open card can be answered, once, and only after it
// was shown.
func (q *Asks) Answer(id string, answer consent.Answer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isOpen(id) || !q.card.shown {
		return ErrGone
	}
	q.denied.answered(q.card.asks[0].r, answer)
	q.hold(answer)
	q.settleCard(func(*ask) result { return result{a: answer} })
	return nil
}

// joined is a surface that came to one card by itself.
type joined struct{ _ byte } // not of size zero: each has its own address

func (*joined) Present(consent.Request, snapshot.CardInfo) (bool, error) { return false, ErrGone }
func (*joined) Update(consent.Request, snapshot.CardInfo)                {}
func (*joined) Withdraw(string)                                          {}

// Join makes somebody who shows the card of request id by himself a surface of
// it, until he leaves.
func (q *Asks) Join(id string) (leave func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isOpen(id) {
		return nil, false
	}
	s := &joined{}
	q.card.by[s] = true
	q.markShown()
	return func() { q.Lost(s) }, true
}

// Lost says that a surface died. A card that it had not drawn yet is presented
// once more; one that was on its screen, and nowhere else, is undelivered.
func (q *Asks) Lost(s Surface) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.card
	if c == nil || !c.by[s] {
		return
	}
	delete(c.by, s)
	if len(c.by) > 0 {
		return
	}
	if !c.shown && !c.retried {
		c.retried = true
		q.present(s)
		if len(c.by) > 0 {
			return
		}
	}
	q.settleCard(func(a *ask) result {
		return result{err: undelivered(a.r, "the window that asked it was closed by an error")}
	})
}
