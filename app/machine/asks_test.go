package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// place is a fake surface. It notes what it was told; broken: it can't show
// anything; instant: what it shows is before the person at once.
type place struct {
	q       *Asks
	instant bool

	mu     sync.Mutex
	broken bool     // guarded by mu
	told   []string // guarded by mu
}

func (p *place) Present(r consent.Request, info snapshot.CardInfo) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return false, errors.New("no display")
	}
	p.told = append(p.told, fmt.Sprintf("%s+%d", r.ID, info.Waiting))
	return p.instant, nil
}

func (p *place) Update(r consent.Request, info snapshot.CardInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, fmt.Sprintf("%s=%d", r.ID, len(info.Folded)))
}

func (p *place) Withdraw(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, "-"+id)
}

// now sets whether it is broken, and forgets what it was told.
func (p *place) now(broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken, p.told = broken, nil
}

func (p *place) want(t *testing.T, told ...string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.told, told) {
		t.Errorf("the surface was told %v, want %v", p.told, told)
	}
}

// newAsks makes a queue with the given surfaces, and a list of what it told
// the desktop's notifications.
func newAsks(surfaces ...*place) (*Asks, *[]string) {
	notes := &[]string{}
	q := &Asks{now: time.Now, changed: func() {}, info: func(consent.Request) snapshot.CardInfo { return snapshot.CardInfo{} },
		notify: func(r *consent.Request) {
			if r == nil {
				*notes = append(*notes, "none")
			} else {
				*notes = append(*notes, r.ID)
			}
		}}
	for _, s := range surfaces {
		s.q = q
		q.Add(s)
	}
	return q, notes
}

func question(id string, left time.Duration) consent.Request {
	return consent.Request{ID: id, Session: "s-" + id, Capability: "shell", Title: "Run " + id, Deadline: time.Now().Add(left)}
}

// asked is a question under way. Its fields are for a test that knows by open
// that it has ended.
type asked struct {
	end    chan struct{}
	answer consent.Answer
	err    error
	took   time.Duration
}

func (a *asked) open() bool {
	synctest.Wait()
	select {
	case <-a.end:
		return false
	default:
		return true
	}
}

func prompt(ctx context.Context, q *Asks, r consent.Request) *asked {
	a := &asked{end: make(chan struct{})}
	begin := time.Now()
	go func() {
		a.answer, a.err = q.Prompt(ctx, r)
		a.took = time.Since(begin)
		close(a.end)
	}()
	synctest.Wait()
	return a
}

// ended checks how and when a question has ended.
func (a *asked) ended(t *testing.T, want consent.Outcome, after time.Duration, part string) {
	t.Helper()
	var ref *consent.Refusal
	switch {
	case a.open():
		t.Errorf("it is still open")
	case a.took != after:
		t.Errorf("it took %v, want %v", a.took, after)
	case want == consent.Allowed:
		if a.err != nil || !a.answer.Allow {
			t.Errorf("%+v, %v", a.answer, a.err)
		}
	case !errors.As(a.err, &ref) || ref.Outcome != want || !strings.Contains(ref.Reason, part):
		t.Errorf("%v, want %s with %q", a.err, want, part)
	}
}

var allow = consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Once}}

func TestAskShownAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{}
		q, notes := newAsks(p)
		a := prompt(t.Context(), q, question("a", 50*time.Second))
		p.want(t, "a+0")
		if r, _, ok := q.Head(); !ok || r.ID != "a" || q.Waiting() != 1 {
			t.Errorf("head %q, %v, %d waiting", r.ID, ok, q.Waiting())
		}
		if err := q.Answer("a", allow); !errors.Is(err, ErrGone) {
			t.Errorf("answered before it was shown: %v", err)
		}
		q.Shown("another")
		if err := q.Answer("a", allow); !errors.Is(err, ErrGone) {
			t.Errorf("answered while another was shown: %v", err)
		}
		q.Shown("a")
		q.Shown("a")
		time.Sleep(40 * time.Second)
		if err := q.Answer("b", allow); !errors.Is(err, ErrGone) {
			t.Errorf("another's answer: %v", err)
		}
		if err := q.Answer("a", allow); err != nil {
			t.Error(err)
		}
		if err := q.Answer("a", consent.Answer{}); !errors.Is(err, ErrGone) {
			t.Errorf("answered twice: %v", err)
		}
		a.ended(t, consent.Allowed, 40*time.Second, "")
		p.want(t, "a+0", "-a")
		if err := q.Answer("a", allow); !errors.Is(err, ErrGone) {
			t.Errorf("answered after it closed: %v", err)
		}
		q.Shown("a")
		if q.Waiting() != 0 || !slices.Equal(*notes, []string{"a", "none"}) {
			t.Errorf("%d waiting, notified %v", q.Waiting(), *notes)
		}
	})
}

func TestAsksOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{instant: true}
		q, notes := newAsks(p)
		a := prompt(t.Context(), q, question("a", 50*time.Second))
		b := prompt(t.Context(), q, question("b", 50*time.Second))
		c := prompt(t.Context(), q, question("c", 50*time.Second))
		p.want(t, "a+0")
		if err := q.Answer("b", allow); !errors.Is(err, ErrGone) {
			t.Errorf("one that has not its turn was answered: %v", err)
		}
		time.Sleep(time.Second)
		must(t, q.Answer("a", allow))
		a.ended(t, consent.Allowed, time.Second, "")
		p.want(t, "a+0", "-a", "b+1")
		time.Sleep(time.Second)
		must(t, q.Answer("b", consent.Answer{}))
		if b.open() || b.err != nil || b.answer.Allow {
			t.Errorf("%+v, %v", b.answer, b.err)
		}
		p.want(t, "a+0", "-a", "b+1", "-b", "c+0")
		must(t, q.Answer("c", allow))
		c.ended(t, consent.Allowed, 2*time.Second, "")
		if !slices.Equal(*notes, []string{"a", "b", "c", "none"}) {
			t.Errorf("notified %v", *notes)
		}
	})
}

// openclaw#104282, #59993, #17498: a card lives as long as its request;
// agent-os#1597: that nobody answered is not a no.
func TestAskExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{}
		q, _ := newAsks(p)
		a := prompt(t.Context(), q, question("a", 50*time.Second))
		time.Sleep(9 * time.Second)
		q.Shown("a")
		time.Sleep(40 * time.Second)
		if !a.open() {
			t.Fatalf("it ended after %v: %v", a.took, a.err)
		}
		time.Sleep(time.Second)
		a.ended(t, consent.Expired, 50*time.Second, "")
		p.want(t, "a+0", "-a")
	})
}

func TestAskNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{}
		q, _ := newAsks(p)
		a := prompt(t.Context(), q, question("a", 50*time.Second))
		time.Sleep(showWithin)
		a.ended(t, consent.Undelivered, showWithin, "its window did not open")
		p.want(t, "a+0", "-a")

		broken := &place{broken: true}
		q, _ = newAsks(broken)
		a = prompt(t.Context(), q, question("a", 50*time.Second))
		time.Sleep(showWithin)
		a.ended(t, consent.Undelivered, showWithin, "its window did not open")
		broken.want(t)

		q, _ = newAsks()
		a = prompt(t.Context(), q, question("a", 50*time.Second))
		a.ended(t, consent.Undelivered, 0, "neither a display nor a terminal")
	})
}

func TestAskWithTooLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{instant: true}
		q, _ := newAsks(p)
		for left, part := range map[time.Duration]string{9999 * time.Millisecond: "9 seconds", 0: "0 seconds", -time.Hour: "0 seconds"} {
			a := prompt(t.Context(), q, question("late", left))
			a.ended(t, consent.Undelivered, 0, part)
		}
		p.want(t)
		a := prompt(t.Context(), q, question("a", 10*time.Second))
		p.want(t, "a+0")
		time.Sleep(10 * time.Second)
		a.ended(t, consent.Expired, 10*time.Second, "")
	})
}

// The time spent behind others counts: one whose turn comes with less than 5 s
// left is not flashed at the person, and the next one has its turn.
func TestAskWhoseTurnComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{instant: true}
		q, _ := newAsks(p)
		prompt(t.Context(), q, question("a", 50*time.Second))
		b := prompt(t.Context(), q, question("b", 30*time.Second))
		c := prompt(t.Context(), q, question("c", 40*time.Second))
		d := prompt(t.Context(), q, question("d", 20*time.Second))
		time.Sleep(20 * time.Second)
		d.ended(t, consent.Undelivered, 20*time.Second, "earlier questions took the time") // never had its turn
		time.Sleep(5001 * time.Millisecond)
		must(t, q.Answer("a", allow))
		b.ended(t, consent.Undelivered, 25001*time.Millisecond, "earlier questions took the time")
		p.want(t, "a+0", "-a", "c+0")
		must(t, q.Answer("c", allow))
		c.ended(t, consent.Allowed, 25001*time.Millisecond, "")
	})
}

func TestAskCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{instant: true}
		q, _ := newAsks(p)
		cause := errors.New("the client hung up")
		ctx, cancel := context.WithCancelCause(t.Context())
		a := prompt(ctx, q, question("a", 50*time.Second))
		bctx, bcancel := context.WithCancelCause(t.Context())
		b := prompt(bctx, q, question("b", 50*time.Second))
		c := prompt(t.Context(), q, question("c", 50*time.Second))
		bcancel(cause) // in the queue: nothing was shown of it
		if b.open() || !errors.Is(b.err, cause) {
			t.Errorf("%v", b.err)
		}
		p.want(t, "a+0")
		cancel(cause)
		if a.open() || !errors.Is(a.err, cause) {
			t.Errorf("%v", a.err)
		}
		p.want(t, "a+0", "-a", "c+0")
		if err := q.Answer("a", allow); !errors.Is(err, ErrGone) {
			t.Errorf("an answer to what is gone: %v", err)
		}
		must(t, q.Answer("c", allow))
		c.ended(t, consent.Allowed, 0, "")
	})
}

// An answer and the end at the very same moment: either counts, and who
// answered is told the truth.
func TestAnswerInTheLastMoment(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			p := &place{instant: true}
			q, _ := newAsks(p)
			a := prompt(t.Context(), q, question("a", 50*time.Second))
			time.Sleep(50 * time.Second) // the clock has run out, Prompt may not know yet
			err := q.Answer("a", allow)
			if a.open() {
				t.Fatal("still open")
			}
			if taken := a.err == nil && a.answer.Allow; taken != (err == nil) {
				t.Fatalf("told %v, decided %+v %v", err, a.answer, a.err)
			}
		})
	}
}

func TestEightQuestionsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{instant: true}
		q, _ := newAsks(p)
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(id string, change func(*consent.Request)) *asked {
			r := question(id, 50*time.Second)
			r.Session, r.Hub, r.Principal.ID = "s1", "this", "p1"
			if change != nil {
				change(&r)
			}
			return prompt(ctx, q, r)
		}
		for i := range maxWaiting {
			if a := ask(fmt.Sprint(i), nil); !a.open() {
				t.Fatalf("question %d: %v", i+1, a.err)
			}
		}
		ask("ninth", nil).ended(t, consent.Undelivered, 0, "8 questions wait")
		if a := ask("other session", func(r *consent.Request) { r.Session = "s2" }); !a.open() {
			t.Errorf("another session: %v", a.err)
		}
		must(t, q.Answer("0", allow))
		synctest.Wait()
		if a := ask("after one was answered", nil); !a.open() {
			t.Errorf("%v", a.err)
		}
		// Each session card is of a session of its own; one program's count together.
		card := func(n int, who string) *asked {
			return ask(fmt.Sprint("card", who, n), func(r *consent.Request) {
				r.Capability, r.Session, r.Principal.ID = consent.CapabilitySession, fmt.Sprint("new", n), who
			})
		}
		for i := range maxWaiting {
			if a := card(i, "p1"); !a.open() {
				t.Fatalf("session card %d: %v", i+1, a.err)
			}
		}
		card(99, "p1").ended(t, consent.Undelivered, 0, "8 questions wait")
		if a := card(0, "p2"); !a.open() {
			t.Errorf("another program: %v", a.err)
		}
		cancel()
		synctest.Wait()
		if q.Waiting() != 0 {
			t.Errorf("%d still wait", q.Waiting())
		}
	})
}

func TestSurfaceLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("before it was shown: once more, and no third time")
		p := &place{}
		q, _ := newAsks(p)
		a := prompt(t.Context(), q, question("a", 50*time.Second))
		time.Sleep(time.Second)
		q.Lost(p)
		p.want(t, "a+0", "a+0")
		q.Shown("a")
		must(t, q.Answer("a", allow))
		a.ended(t, consent.Allowed, time.Second, "")

		a = prompt(t.Context(), q, question("b", 50*time.Second))
		q.Lost(p)
		q.Lost(p)
		a.ended(t, consent.Undelivered, 0, "closed by an error")

		t.Log("it can't be started again")
		a = prompt(t.Context(), q, question("c", 50*time.Second))
		p.now(true)
		q.Lost(p)
		a.ended(t, consent.Undelivered, 0, "closed by an error")
		p.now(false)

		t.Log("after it was shown: never again; the next card works")
		a = prompt(t.Context(), q, question("d", 50*time.Second))
		b := prompt(t.Context(), q, question("e", 50*time.Second))
		q.Shown("d")
		q.Lost(p)
		a.ended(t, consent.Undelivered, 0, "closed by an error")
		if err := q.Answer("d", allow); !errors.Is(err, ErrGone) {
			t.Errorf("answered: %v", err)
		}
		p.want(t, "d+0", "e+0")
		q.Shown("e")
		must(t, q.Answer("e", allow))
		b.ended(t, consent.Allowed, 0, "")

		q.Lost(p) // with nothing open
		q.Lost(&place{})
	})
}

func TestTwoSurfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk, term := &place{}, &place{instant: true}
		q, _ := newAsks(desk)
		a := prompt(t.Context(), q, question("a", 50*time.Second))
		q.Add(term) // the open card is shown there too
		term.want(t, "a+0")
		q.Lost(desk) // the other one still has it
		if !a.open() {
			t.Fatalf("%v", a.err)
		}
		must(t, q.Answer("a", allow))
		a.ended(t, consent.Allowed, 0, "")
		term.want(t, "a+0", "-a")
		desk.want(t, "a+0")
	})
}

// A terminal that came to the open card by itself keeps it open when the
// desktop dies, and is the last when it leaves.
func TestJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &place{}
		q, _ := newAsks(desk)
		a := prompt(t.Context(), q, question("a", 50*time.Second))
		if _, ok := q.Join("another"); ok {
			t.Error("joined a question that is not open")
		}
		leave, ok := q.Join("a")
		if !ok {
			t.Fatal("the open question can't be joined")
		}
		q.Lost(desk)
		if !a.open() {
			t.Fatalf("%v", a.err)
		}
		leave()
		a.ended(t, consent.Undelivered, 0, "could not be shown")
		leave() // later it does nothing
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
