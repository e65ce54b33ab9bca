package machine

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"localpc/consent"
	"localpc/tunnel/wire"
)

// floodOver is how long after its last refusal a flood is over, and how often
// the log tells of one that goes on.
const floodOver = time.Minute

// manyAllowances is when those that are not in use are thrown away.
const manyAllowances = 1000

// rates bounds how many requests a minute a session may make of each
// capability, and how many sessions a program may open. What is refused for it
// is neither asked nor recorded one by one: the record tells when it begins,
// and how many there were when it is over. Safe for concurrent use.
type rates struct {
	m *Machine

	mu  sync.Mutex
	all map[rateKey]*allowance // guarded by mu
}

type rateKey struct{ who, capability string }

// allowance is what is left of a rate. Its fields are guarded by rates.mu.
type allowance struct {
	perMinute int
	bucket    *rate.Limiter
	flood     *flood // nil: nothing is refused
}

// flood is a row of requests that come too fast.
type flood struct {
	who        asker
	refused    int
	told, last time.Time // in the log; the last refusal
	timer      *time.Timer
	rate       string // "600 commands of one session a minute"
}

func newRates(m *Machine) *rates { return &rates{m: m, all: map[rateKey]*allowance{}} }

// rateWords say what a capability's rate counts.
var rateWords = map[string]string{
	consent.CapabilitySession:  "new sessions of one program",
	consent.CapabilityFiles:    "file requests of one session",
	consent.CapabilityShell:    "commands of one session",
	consent.CapabilityNetwork:  "connections of one session",
	consent.CapabilityComputer: "uses of screen, mouse and keyboard of one session",
	ownRequests:                "signals, looks at the load, and changes of one session's end",
}

// burstOf is how many may come at once: half a minute's worth.
func burstOf(perMinute int) int { return max(1, perMinute/2) }

// What only ends or prolongs what its session has is counted by itself, with a
// rate that bounds no more than how fast the record grows with it.
const (
	ownRequests  = "own"
	ownPerMinute = 3000
)

// begins takes a request off what is left.
func (r *rates) begins(t *task) error {
	switch t.call.Type {
	case wire.TypeSessionTTL, wire.TypeSessionClose, wire.TypeSessionPause, wire.TypeSessionResume, wire.TypeProcessSignal, wire.TypeMetrics:
		return r.take(t.who, ownRequests)
	}
	return r.take(t.who, t.executor.Name())
}

// take takes one use of a capability off what is left for who. The error says
// when to try again.
func (r *rates) take(who asker, capability string) error {
	set := r.m.o.Settings.Get().Rates
	perMinute, what := ownPerMinute, rateWords[capability]
	if limit := rateIn(&set, capability); limit != nil {
		perMinute = *limit
	} else if capability != ownRequests {
		return nil // it has bounds of its own
	}
	key := rateKey{who.session, capability}
	if capability == consent.CapabilitySession {
		key.who = who.hub + "\x00" + who.principal.ID
	}
	now := time.Now()
	r.mu.Lock()
	a := r.of(key, now)
	if a.perMinute != perMinute {
		a.perMinute, a.bucket = perMinute, rate.NewLimiter(rate.Limit(float64(perMinute)/60), burstOf(perMinute))
	}
	if a.bucket.AllowN(now, 1) {
		r.mu.Unlock()
		return nil
	}
	wait := time.Duration((1 - a.bucket.TokensAt(now)) / float64(a.bucket.Limit()) * float64(time.Second))
	begun, tell := a.flood == nil, false
	if begun {
		f := &flood{who: who}
		f.timer = time.AfterFunc(floodOver, func() { r.m.background(func(ctx context.Context) { r.calm(ctx, key, f) }) })
		a.flood = f
	}
	f := a.flood
	said := fmt.Sprintf("%d %s a minute", perMinute, what)
	f.refused++
	f.last, f.rate = now, said
	if tell = now.Sub(f.told) >= floodOver; tell {
		f.told = now
	}
	r.mu.Unlock()

	err := wire.Errorf(wire.CodeOverloaded, "Too many requests: this computer takes %s. Try again in %s.", said, inWords(seconds(wait)))
	if begun {
		r.record("too many requests begin", f, "more than "+said)
	}
	if tell {
		r.m.log.Warn("A session makes more requests than its rate allows", "capability", capability, "perMinute", perMinute)
		r.m.journal.failed(consent.Request{ID: consent.NewID(), Principal: who.principal, Session: who.session, Capability: capability,
			Title: "Too many requests", Arrived: now},
			wire.Errorf(wire.CodeOverloaded, "It made more than %s; what is too much is refused.", said))
	}
	return err
}

// seconds is a wait in whole seconds, at least one.
func seconds(d time.Duration) time.Duration {
	return time.Duration(max(1, math.Ceil(d.Seconds()))) * time.Second
}

// of is the allowance of key, a full one where there was none. Called with mu
// held.
func (r *rates) of(key rateKey, now time.Time) *allowance {
	if a := r.all[key]; a != nil {
		return a
	}
	if len(r.all) >= manyAllowances {
		for k, a := range r.all {
			if a.flood == nil && a.bucket.TokensAt(now) >= float64(a.bucket.Burst()) {
				delete(r.all, k)
			}
		}
	}
	a := &allowance{}
	r.all[key] = a
	return a
}

// calm ends a flood that is over, and looks again later at one that is not.
func (r *rates) calm(ctx context.Context, key rateKey, f *flood) {
	r.mu.Lock()
	a := r.all[key]
	if a == nil || a.flood != f {
		r.mu.Unlock()
		return
	}
	if left := floodOver - time.Since(f.last); left > 0 && ctx.Err() == nil {
		f.timer.Reset(left)
		r.mu.Unlock()
		return
	}
	a.flood = nil
	r.mu.Unlock()
	r.ended(f)
}

func (r *rates) ended(f *flood) {
	r.record("too many requests end", f, fmt.Sprintf("%d were refused beyond %s", f.refused, f.rate))
}

func (r *rates) record(what string, f *flood, detail string) {
	if f.who.session != "" {
		detail += ", session " + f.who.session
	}
	if err := r.m.o.Record.Happened(context.Background(), what, f.who.principal.ID+": "+detail); err != nil {
		r.m.log.Error("A flood of requests could not be recorded", "err", err)
	}
}

// close records what has been refused so far. Nothing is taken any more.
func (r *rates) close() {
	r.mu.Lock()
	var open []*flood
	for _, a := range r.all {
		if a.flood != nil {
			a.flood.timer.Stop()
			open, a.flood = append(open, a.flood), nil
		}
	}
	r.mu.Unlock()
	for _, f := range open {
		r.ended(f)
	}
}
