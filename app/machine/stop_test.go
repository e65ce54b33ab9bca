package machine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

func TestPauseRefusesAllButEndingIt(t *testing.T) {
	m := newMachine(t)
	p := pausable{m, policy.Policy{Preset: policy.PresetFull, Folder: "/project"}}
	run := command("r1", "ls")
	run.Mode = consent.ModeWork
	closing := consent.Request{Capability: consent.CapabilitySession, Action: "close", Effects: []consent.Effect{{Kind: consent.EffectOwn}}}
	if v := p.Decide(run, nil, time.Now()); v.Outcome != consent.Allowed {
		t.Fatalf("%+v", v)
	}
	must(t, m.pause(t.Context()))
	if v := p.Decide(run, nil, time.Now()); v.Outcome != consent.Denied || v.By != byPause {
		t.Errorf("paused: %+v", v)
	}
	if v := p.Decide(sessionRequest(""), nil, time.Now()); v.Outcome != consent.Denied {
		t.Errorf("paused, a new session: %+v", v)
	}
	if v := p.Decide(closing, nil, time.Now()); v.Outcome != consent.Allowed {
		t.Errorf("paused, closing: %+v", v)
	}
	// What was allowed for next time waits, too.
	run.Containable = true
	m.gate.AllowNext(run, consent.Choice{Contain: consent.Contained})
	if _, err := m.gate.Authorize(t.Context(), run); err == nil {
		t.Error("it runs while paused")
	}
	must(t, m.resume(t.Context()))
	if g, err := m.gate.Authorize(t.Context(), run); err != nil || g.Choice().Contain != consent.Contained {
		t.Errorf("after the pause: %v", err)
	}
}

// Pause holds even when it can't be recorded; resuming does not.
func TestPauseWithoutARecord(t *testing.T) {
	m := newMachine(t)
	must(t, m.o.Store.Close())
	must(t, m.pause(t.Context()))
	if !m.isPaused() {
		t.Error("it is not paused")
	}
	if err := m.resume(t.Context()); err == nil || !m.isPaused() {
		t.Errorf("it goes on without a record: %v", err)
	}
}

func TestFlights(t *testing.T) {
	f := newFlights()
	cause := errors.New("stopped")
	a, endA := f.begin(t.Context(), "a", "s1", flightRequest)
	b, endB := f.begin(t.Context(), "b", "s1", flightRequest)
	c, endC := f.begin(t.Context(), "c", "s2", flightRequest)
	if f.in("") != 3 || f.in("s1") != 2 || f.in("s3") != 0 {
		t.Errorf("%d, %d, %d", f.in(""), f.in("s1"), f.in("s3"))
	}
	stopped := f.stop("s1", cause, "b")
	if context.Cause(a) != cause || b.Err() != nil || c.Err() != nil || len(stopped) != 1 {
		t.Errorf("%v, %v, %v", context.Cause(a), b.Err(), c.Err())
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := f.wait(short, stopped); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what does not end: %v", err)
	}
	endA()
	must(t, f.wait(t.Context(), stopped))
	if f.one("a", cause) || !f.one("c", cause) || context.Cause(c) != cause {
		t.Error("one by one")
	}
	endC()
	rest := f.stop("", cause)
	if len(rest) != 1 || context.Cause(b) != cause {
		t.Errorf("%d, %v", len(rest), context.Cause(b))
	}
	endB()
	must(t, f.wait(t.Context(), rest))
	if f.in("") != 0 {
		t.Error("something is left")
	}
}

func TestStopEverythingWaitsForWhatRuns(t *testing.T) {
	m := newMachine(t)
	var wg sync.WaitGroup
	for i := range 5 {
		ctx, end := m.flights.begin(t.Context(), fmt.Sprint(i), "s1", flightRequest)
		wg.Go(func() {
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond)
			end()
		})
	}
	must(t, m.stopEverything(t.Context()))
	if m.flights.in("") != 0 || !m.isPaused() {
		t.Errorf("%d still run, paused %v", m.flights.in(""), m.isPaused())
	}
	wg.Wait()
	if s := m.Snapshot(); s.Stopped == nil || s.Line != "Everything stopped" {
		t.Errorf("%+v, %q", s.Stopped, s.Line)
	}
	must(t, m.resume(t.Context()))
	if s := m.Snapshot(); s.Stopped != nil || s.Paused {
		t.Errorf("after resuming: %+v", s)
	}
}

// A request that waits for its card does not run yet.
func TestWhatWaitsDoesNotRun(t *testing.T) {
	m := newMachine(t)
	run := command("r1", "ls")
	run.Session = "s1"
	_, end := m.flights.begin(t.Context(), "r1", "s1", flightRequest)
	defer end()
	m.journal.asking(run)
	if n := m.runningIn("s1"); n != 0 {
		t.Errorf("%d run while one waits", n)
	}
	m.journal.running(run, consent.Choice{}, "you")
	if n := m.runningIn("s1"); n != 1 {
		t.Errorf("%d run", n)
	}
}
