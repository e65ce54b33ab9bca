package machine

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// like is a question of session s1; those of one action are of one kind.
func like(id, action string) consent.Request {
	r := question(id, 50*time.Second)
	r.Hub, r.Principal.ID, r.Session, r.Action, r.Risk = "this", "p1", "s1", action, consent.RiskNormal
	r.Exact = "exactly " + id
	return r
}

// table is a surface that knows what is on its card.
type table struct {
	slow int // each slowth card is not drawn at once; 0: all are

	mu    sync.Mutex
	on    []string          // ids, the head first; guarded by mu
	cards int               // presented so far; guarded by mu
	drawn bool              // guarded by mu
	info  snapshot.CardInfo // guarded by mu
	bad   []string          // what must not happen; guarded by mu
	was   map[string]int    // how often each was on a card that was presented; guarded by mu
}

func newTable() *table { return &table{was: map[string]int{}} }

func ids(r consent.Request, info snapshot.CardInfo) []string {
	out := []string{r.ID}
	for _, f := range info.Folded {
		out = append(out, f.ID)
	}
	return out
}

func (p *table) Present(r consent.Request, info snapshot.CardInfo) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.on) > 0 && p.on[0] != r.ID {
		p.bad = append(p.bad, fmt.Sprintf("%s is presented over %s", r.ID, p.on[0]))
	}
	p.on, p.info = ids(r, info), info
	for _, id := range p.on {
		p.was[id]++
	}
	p.cards++
	p.drawn = p.slow == 0 || p.cards%p.slow > 0
	return p.drawn, nil
}

func (p *table) Update(r consent.Request, info snapshot.CardInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := ids(r, info)
	if len(now) >= len(p.on) || len(p.on) == 0 || now[0] != p.on[0] || slices.ContainsFunc(now, func(id string) bool { return !slices.Contains(p.on, id) }) {
		p.bad = append(p.bad, fmt.Sprintf("a card of %v becomes one of %v", p.on, now))
	}
	p.on, p.info = now, info
}

func (p *table) Withdraw(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.on) == 0 || p.on[0] != id {
		p.bad = append(p.bad, fmt.Sprintf("%s is withdrawn, and %v is there", id, p.on))
	}
	p.on = nil
}

// die takes its card off the screen, as an error would.
func (p *table) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = nil
}

func (p *table) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drawn = true
}

func (p *table) isDrawn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drawn
}

func (p *table) card() ([]string, snapshot.CardInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.on), p.info
}

func (p *table) want(t *testing.T, waiting int, on ...string) {
	t.Helper()
	synctest.Wait()
	if got, info := p.card(); !slices.Equal(got, on) || len(on) > 0 && info.Waiting != waiting {
		t.Errorf("the card is for %v, %d wait; want %v and %d", got, info.Waiting, on, waiting)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.bad) > 0 {
		t.Error(strings.Join(p.bad, "\n"))
	}
}

func tableAsks() (*Asks, *table) {
	q, _ := newAsks()
	p := newTable()
	q.Add(p)
	return q, p
}

// What waits of one kind goes onto one card when its turn comes, and its answer
// is the answer of each. What comes while it is open waits for the next.
func TestEqualQuestionsFold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := tableAsks()
		all := map[string]*asked{}
		ask := func(id, action string) { all[id] = prompt(t.Context(), q, like(id, action)) }
		for _, id := range []string{"a1", "b1", "a2", "c1", "b2", "b3"} {
			ask(id, id[:1])
		}
		p.want(t, 0, "a1")
		must(t, q.Answer("a1", allow))
		p.want(t, 2, "b1", "b2", "b3")
		if _, info := p.card(); info.Folded[1].Exact != "exactly b3" || info.Folded[1].Title != "Run b3" {
			t.Errorf("the card shows %+v", info.Folded)
		}
		if n := q.Waiting(); n != 3 {
			t.Errorf("%d wait", n)
		}
		ask("b4", "b")
		p.want(t, 2, "b1", "b2", "b3") // the card has not grown
		for _, id := range []string{"b2", "a2", "b4"} {
			if err := q.Answer(id, allow); !errors.Is(err, ErrGone) {
				t.Errorf("%s, which is no card's head, was answered: %v", id, err)
			}
		}
		choice := consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Session}, Via: "b"}
		must(t, q.Answer("b1", choice))
		for _, id := range []string{"b1", "b2", "b3"} {
			if all[id].open() || all[id].answer != choice || all[id].err != nil {
				t.Errorf("%s was answered %+v, %v", id, all[id].answer, all[id].err)
			}
		}
		if !all["b4"].open() || !all["a2"].open() {
			t.Error("one that was not on the card has the card's answer")
		}
		p.want(t, 2, "a2")
		must(t, q.Answer("a2", allow))
		p.want(t, 1, "c1")
		must(t, q.Answer("c1", consent.Answer{}))
		p.want(t, 0, "b4")
		must(t, q.Answer("b4", allow))
		p.want(t, 0)
	})
}

func TestWhatDoesNotFold(t *testing.T) {
	change := map[string]func(*consent.Request){
		"another hub":           func(r *consent.Request) { r.Hub = "other" },
		"another program":       func(r *consent.Request) { r.Principal.ID = "p2" },
		"another session":       func(r *consent.Request) { r.Session = "s2" },
		"another capability":    func(r *consent.Request) { r.Capability = "files" },
		"another action":        func(r *consent.Request) { r.Action = "other" },
		"another mode":          func(r *consent.Request) { r.Mode = consent.ModeWork },
		"another effect":        func(r *consent.Request) { r.Effects = []consent.Effect{{Kind: consent.EffectDelete}} },
		"an effect on its own":  func(r *consent.Request) { r.Effects = []consent.Effect{{Kind: consent.EffectRead, Own: true}} },
		"low risk":              func(r *consent.Request) { r.Risk = consent.RiskLow },
		"containable":           func(r *consent.Request) { r.Containable = true },
		"full access":           func(r *consent.Request) { r.FullOffered = true },
		"another scope":         func(r *consent.Request) { r.Scopes = []consent.Scope{consent.Once, consent.Session} },
		"a broader rule":        func(r *consent.Request) { r.Wide = &consent.Rule{Wide: true, Action: "x"} },
		"more than can be read": func(r *consent.Request) { r.Exact = strings.Repeat("x", foldBytes+1) },
		"too little time":       func(r *consent.Request) { r.Deadline = time.Now().Add(12 * time.Second) },
	}
	for name, change := range change {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer func() { cancel(); synctest.Wait() }()
			q, p := tableAsks()
			prompt(ctx, q, question("first", 50*time.Second))
			for _, id := range []string{"a", "b", "c"} {
				r := like(id, "a")
				r.Effects = []consent.Effect{{Kind: consent.EffectRead, Count: len(id), Text: "reads " + id}}
				if id == "b" {
					change(&r)
				}
				prompt(ctx, q, r)
			}
			time.Sleep(8 * time.Second)
			must(t, q.Answer("first", allow))
			synctest.Wait()
			if on, _ := p.card(); !slices.Equal(on, []string{"a", "c"}) {
				t.Errorf("%s: the card is for %v", name, on)
			}
		})
	}
	alone := map[string]func(*consent.Request){
		"high risk":    func(r *consent.Request) { r.Risk = consent.RiskHigh },
		"folders":      func(r *consent.Request) { r.Capability = consent.CapabilityFolders },
		"no session":   func(r *consent.Request) { r.Session = "" },
		"session card": func(r *consent.Request) { r.Capability = consent.CapabilitySession },
	}
	for name, change := range alone {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer func() { cancel(); synctest.Wait() }()
			q, p := tableAsks()
			prompt(ctx, q, question("first", 50*time.Second))
			for _, id := range []string{"a", "b"} {
				r := like(id, "a")
				change(&r)
				r.Exact = "the very same"
				prompt(ctx, q, r)
			}
			must(t, q.Answer("first", allow))
			synctest.Wait()
			if on, _ := p.card(); !slices.Equal(on, []string{"a"}) {
				t.Errorf("%s: the card is for %v", name, on)
			}
		})
	}
}

// One that ends leaves the card, which stays. When its head ends the card
// closes, and the rest is asked anew, in front of what came before it.
func TestFoldedOnesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := tableAsks()
		cause := errors.New("the client hung up")
		all, ends := map[string]*asked{}, map[string]context.CancelCauseFunc{}
		for _, id := range []string{"first", "a1", "b1", "a2", "a3", "a4"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			ends[id] = cancel
			all[id] = prompt(ctx, q, like(id, id[:1]))
		}
		must(t, q.Answer("first", allow))
		p.want(t, 1, "a1", "a2", "a3", "a4")
		ends["a3"](cause)
		p.want(t, 1, "a1", "a2", "a4")
		if all["a3"].open() || !errors.Is(all["a3"].err, cause) {
			t.Errorf("%v", all["a3"].err)
		}
		ends["a1"](cause)
		p.want(t, 1, "a2", "a4")
		if p.was["a2"] != 2 {
			t.Error("what was left is not on a new card")
		}
		if err := q.Answer("a1", allow); !errors.Is(err, ErrGone) {
			t.Errorf("an answer to the closed card: %v", err)
		}
		must(t, q.Answer("a2", allow))
		p.want(t, 0, "b1")
		for _, id := range []string{"a2", "a4"} {
			all[id].ended(t, consent.Allowed, 0, "")
		}
		must(t, q.Answer("b1", allow))
		p.want(t, 0)
	})
}

// Nobody is there: what was on a card that was shown has expired, what was not
// could not be asked, and each is told so when its own time is over.
func TestNobodyAnswersMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := tableAsks()
		first := prompt(t.Context(), q, like("first", "f"))
		time.Sleep(20 * time.Second)
		a1 := prompt(t.Context(), q, like("a1", "a"))
		time.Sleep(10 * time.Second)
		a2 := prompt(t.Context(), q, like("a2", "a"))
		time.Sleep(2 * time.Second)
		a3 := prompt(t.Context(), q, like("a3", "a"))
		b1 := prompt(t.Context(), q, like("b1", "b"))
		time.Sleep(18*time.Second + time.Millisecond)
		first.ended(t, consent.Expired, 50*time.Second, "")
		p.want(t, 1, "a1", "a2", "a3")
		time.Sleep(20 * time.Second)
		a1.ended(t, consent.Expired, 50*time.Second, "")
		p.want(t, 1, "a2", "a3") // 10 and 12 seconds are left
		time.Sleep(10 * time.Second)
		a2.ended(t, consent.Expired, 50*time.Second, "")
		a3.ended(t, consent.Expired, 48*time.Second, "") // it was seen; for two seconds it is not shown again
		b1.ended(t, consent.Undelivered, 48*time.Second, "earlier questions took the time: Run b1")
		p.want(t, 0)
	})
}

func TestSurfaceLostWithMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{}
		q, _ := newAsks(p)
		all := []*asked{}
		ctx, cancel := context.WithCancel(t.Context())
		head := prompt(ctx, q, like("a", "a"))
		for _, id := range []string{"b", "c", "d"} {
			all = append(all, prompt(t.Context(), q, like(id, "b")))
		}
		q.Shown("a")
		cancel()
		head.open()
		q.Lost(p) // b's card was not drawn: once more
		p.want(t, "a+0", "-a", "b+0", "b+0")
		q.Lost(p)
		for _, a := range all {
			a.ended(t, consent.Undelivered, 0, "closed by an error")
		}
		p.want(t, "a+0", "-a", "b+0", "b+0")

		// What the person has seen is not shown once more after an error.
		p.now(false)
		ctx, cancel = context.WithCancel(t.Context())
		first := prompt(t.Context(), q, like("first", "f"))
		head = prompt(ctx, q, like("e", "e"))
		rest := prompt(t.Context(), q, like("f", "e"))
		q.Shown("first")
		must(t, q.Answer("first", allow))
		first.ended(t, consent.Allowed, 0, "")
		q.Shown("e")
		cancel()
		head.open()
		q.Lost(p)
		rest.ended(t, consent.Undelivered, 0, "closed by an error")
		p.want(t, "first+0", "-first", "e+0", "-e", "f+0")
	})
}

// Whatever comes, goes, is answered or breaks in whatever order: each question
// has exactly one result, and nobody has the answer of a card it was not on.
func TestEveryQuestionHasOneResult(t *testing.T) {
	for seed := range int64(300) {
		synctest.Test(t, func(t *testing.T) { anyOrder(t, rand.New(rand.NewSource(seed)), seed) })
	}
}

func anyOrder(t *testing.T, rnd *rand.Rand, seed int64) {
	q, p := tableAsks()
	p.slow = 2 + rnd.Intn(3)
	type one struct {
		*asked
		cancel context.CancelFunc
		gets   string // the card whose answer it must have
	}
	all := map[string]*one{}
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("seed %d: %s", seed, fmt.Sprintf(format, args...))
	}
	open := func() (out []string) {
		for id, o := range all {
			if o.open() {
				out = append(out, id)
			}
		}
		slices.Sort(out)
		return out
	}
	for step := range 120 {
		switch n := rnd.Intn(10); {
		case n < 4:
			id := fmt.Sprintf("q%d", step)
			r := like(id, string(rune('a'+rnd.Intn(2))))
			r.Session = fmt.Sprint("s", rnd.Intn(2))
			r.Deadline = time.Now().Add(time.Duration(10+rnd.Intn(50)) * time.Second)
			ctx, cancel := context.WithCancel(context.Background())
			all[id] = &one{prompt(ctx, q, r), cancel, ""}
		case n < 6:
			if ids := open(); len(ids) > 0 {
				all[ids[rnd.Intn(len(ids))]].cancel()
			}
		case n < 8:
			on, _ := p.card()
			if len(on) == 0 {
				break
			}
			if rnd.Intn(3) > 0 {
				q.Shown(on[0])
				p.draw()
			}
			a := consent.Answer{Allow: rnd.Intn(2) == 0, Via: fmt.Sprint("card ", step)}
			drawn := p.isDrawn() // of this card; the next one is presented at once
			if err := q.Answer(on[0], a); (err == nil) != drawn {
				fail("the card of %v, drawn %v, is answered: %v", on, drawn, err)
			} else if err == nil {
				for _, id := range on {
					all[id].gets = a.Via
				}
			}
		case n < 9:
			time.Sleep(time.Duration(rnd.Intn(8000)) * time.Millisecond)
		default:
			p.die()
			q.Lost(p)
		}
		synctest.Wait()
		if on, _ := p.card(); len(on) == 0 && len(open()) > 0 || len(p.bad) > 0 {
			fail("step %d: the card is for %v, and %v wait; %q", step, on, open(), p.bad)
		}
	}
	for _, o := range all {
		o.cancel()
	}
	synctest.Wait()
	for id, o := range all {
		switch {
		case o.open():
			fail("%s has no result", id)
		case o.gets != "" && (o.err != nil || o.answer.Via != o.gets):
			fail("%s was on the card with the answer %q, and has %q, %v", id, o.gets, o.answer.Via, o.err)
		case o.gets == "" && o.err == nil:
			fail("%s has the answer %q of a card that it was not on", id, o.answer.Via)
		}
	}
	if on, _ := p.card(); q.Waiting() != 0 || len(on) != 0 {
		fail("at the end %v is there, %d wait", on, q.Waiting())
	}
}

// The same from many goroutines at once, for the race detector: an answer that
// was taken reaches exactly those who were on its card.
func TestManyAskAndAnswerAtOnce(t *testing.T) {
	q, p := tableAsks()
	results := make(chan string, 1000)
	var askers sync.WaitGroup
	for s := range 6 {
		for n := range 6 {
			askers.Go(func() {
				for i := range 20 {
					r := like(fmt.Sprintf("%d-%d-%d", s, n, i), string(rune('a'+i%2)))
					r.Session = fmt.Sprint("s", s)
					ctx, cancel := context.WithCancel(t.Context())
					if i%3 == 0 {
						time.AfterFunc(time.Duration(n)*time.Millisecond, cancel)
					}
					a, err := q.Prompt(ctx, r)
					cancel()
					if err == nil {
						results <- a.Via + " " + r.ID
					}
				}
			})
		}
	}
	ended := make(chan struct{})
	go func() { askers.Wait(); close(ended) }()
	taken := map[string]bool{}
	for n := 0; ; n++ {
		select {
		case <-ended:
			close(results)
			got := map[string]int{}
			for res := range results {
				via, _, _ := strings.Cut(res, " ")
				if !taken[via] {
					t.Errorf("%s: an answer that was not taken", res)
				}
				got[via]++
			}
			if len(p.bad) > 0 {
				t.Error(strings.Join(p.bad, "\n"))
			}
			if len(got) != len(taken) {
				t.Errorf("%d answers were taken, and %d arrived", len(taken), len(got))
			}
			return
		default:
		}
		if r, _, ok := q.Head(); ok {
			via := fmt.Sprint("n", n)
			if q.Answer(r.ID, consent.Answer{Allow: true, Via: via}) == nil {
				taken[via] = true
			}
		}
	}
}
