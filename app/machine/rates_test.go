package machine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel/wire"
)

// events are those of the record that contain text, in order.
func events(t *testing.T, m *Machine, text string) (out []consent.Entry) {
	t.Helper()
	must(t, m.o.Store.Since(t.Context(), record.KindEvent, time.Now().Add(-time.Hour), func(e consent.Entry) error {
		if strings.Contains(string(e.Body), text) {
			out = append(out, e)
		}
		return nil
	}))
	return out
}

func (r *rig) rate(change func(*settings.Rates)) {
	r.t.Helper()
	must(r.t, r.m.o.Settings.Change(func(s *settings.Settings) { change(&s.Rates) }))
}

// A session that asks too fast is told when to try again; others, and what only
// ends something, go on. The record and the log do not grow with it.
func TestASessionAsksTooFast(t *testing.T) {
	r := newRig(t)
	ran := 0
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		ran++
		return exited(), nil
	}
	r.open("s1", 0)
	r.open("s2", 0)
	r.rate(func(s *settings.Rates) { s.Shell = 4 }) // two at once, then one each 15 seconds
	must(t, r.do("s1"))
	must(t, r.do("s1"))
	before, _ := r.m.o.Record.Head()
	for range 30 {
		err := r.do("s1")
		wantCode(t, err, wire.CodeOverloaded)
		_, wait, _ := strings.Cut(err.Error(), "4 commands of one session a minute. Try again in ")
		if n, err := strconv.Atoi(strings.TrimSuffix(wait, " seconds.")); err != nil || n < 2 || n > 15 {
			t.Fatalf("it says to wait for %q", wait)
		}
	}
	if now, _ := r.m.o.Record.Head(); now != before+1 {
		t.Errorf("the record has grown by %d", now-before)
	}
	if e := events(t, r.m, "too many requests"); len(e) != 1 || !strings.Contains(string(e[0].Body), "more than 4 commands of one session a minute, session s1") {
		t.Errorf("the record says %+v", e)
	}
	notes := func() (n int) {
		entries, _ := r.m.journal.entries(func(string) int { return 0 })
		for _, e := range entries {
			if e.What == "Too many requests" && e.Who == "Research agent" && e.Outcome == snapshot.Failed && e.Result == "It made more than 4 commands of one session a minute; what is too much is refused." {
				n++
			}
		}
		return n
	}
	if n := notes(); n != 1 {
		t.Errorf("the log tells of it %d times", n)
	}
	must(t, r.do("s2"))
	r.rate(func(s *settings.Rates) { s.Shell = 0 }) // the usual, at once
	must(t, r.do("s1"))
	if ran != 4 {
		t.Errorf("%d ran", ran)
	}
	if _, err := r.call(wire.TypeSessionClose, &wire.SessionRef{SessionID: "s1"}); err != nil {
		t.Errorf("closing: %v", err)
	}

	// A minute later it is told again if it goes on; after a quiet one it is over.
	key := rateKey{"s1", "shell"}
	f := r.m.rates.all[key].flood
	r.m.rates.calm(t.Context(), key, f)
	if e := events(t, r.m, "too many requests"); len(e) != 1 {
		t.Errorf("it is over at once: %+v", e)
	}
	r.m.rates.mu.Lock()
	f.last = f.last.Add(-floodOver)
	r.m.rates.mu.Unlock()
	r.m.rates.calm(t.Context(), key, f)
	r.m.rates.close()
	if e := events(t, r.m, "too many requests"); len(e) != 2 || !strings.Contains(string(e[1].Body), "30 were refused beyond 4 commands of one session a minute") {
		t.Errorf("the record says %+v", e)
	}
}

func TestAProgramOpensSessionsTooFast(t *testing.T) {
	r := newRig(t)
	r.rate(func(s *settings.Rates) { s.Session = 2 })
	open := func(id, principal string) error {
		_, err := r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: id, PrincipalID: principal, PrincipalName: "Agent " + principal})
		return err
	}
	must(t, open("s1", "k1"))
	for n := range 3 {
		wantCode(t, open(fmt.Sprint("more", n), "k1"), wire.CodeOverloaded)
	}
	must(t, open("s2", "k2"))
	if _, err := r.call(wire.TypeSessionTTL, &wire.SessionTTL{SessionID: "s1", TTLSeconds: 60}); err != nil {
		t.Errorf("setting a session's end: %v", err)
	}
	for _, typ := range []wire.Type{wire.TypeSessionTTL, wire.TypeSessionClose, wire.TypeProcessSignal} {
		for range 3 {
			must(t, r.m.rates.begins(&task{who: asker{hub: settings.HubThis, principal: consent.Principal{ID: "k1"}}, executor: r.m.sessions, call: capabilities.Call{Type: typ}}))
		}
	}
	if len(r.m.sessions.ids()) != 2 || len(r.person.seen()) != 2 {
		t.Errorf("sessions %v, %d cards", r.m.sessions.ids(), len(r.person.seen()))
	}
	r.m.rates.close()
	if e := events(t, r.m, "too many requests end"); len(e) != 1 || !strings.Contains(string(e[0].Body), "k1: 3 were refused beyond 2 new sessions of one program a minute") {
		t.Errorf("the record says %+v", e)
	}
}

// What only ends or prolongs what a session has does not let the record grow
// without end either; it takes nothing off what else the session may do.
func TestOwnRequestsAreCounted(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	s, err := r.m.sessions.get("s1")
	must(t, err)
	signal := &task{who: s.who, executor: r.probe, call: capabilities.Call{Type: wire.TypeProcessSignal}}
	n := 0
	for ; n <= ownPerMinute && err == nil; n++ {
		err = r.m.rates.begins(signal)
	}
	wantCode(t, err, wire.CodeOverloaded)
	if n < burstOf(ownPerMinute) {
		t.Errorf("only %d are taken", n)
	}
	_, err = r.call(wire.TypeSessionTTL, &wire.SessionTTL{SessionID: "s1", TTLSeconds: 60})
	wantCode(t, err, wire.CodeOverloaded)
	must(t, r.do("s1"))
	r.m.rates.close()
}

// Each session has rates of its own, so a program does not open any number.
func TestAProgramHasManySessions(t *testing.T) {
	m := newMachine(t)
	named := func(id, principal string) *session {
		return &session{Session: &capabilities.Session{ID: id}, who: asker{principal: consent.Principal{ID: principal}}}
	}
	for i := range maxSessions {
		must(t, m.sessions.add(t.Context(), named(fmt.Sprint(i), "k1")))
	}
	wantCode(t, m.sessions.add(t.Context(), named("one more", "k1")), wire.CodeOverloaded)
	_, err := m.sessions.Describe(t.Context(), capabilities.Call{Payload: &wire.SessionOpen{SessionID: "one more", PrincipalID: "k1"}})
	wantCode(t, err, wire.CodeOverloaded)
	must(t, m.sessions.add(t.Context(), named("another's", "k2")))
}

// The refusal tells the truth: who waits that long is served.
func TestTheRateRefills(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	r.rate(func(s *settings.Rates) { s.Shell = 60 })
	served := 0
	for ; served < 20*burstOf(60); served++ { // some time passes meanwhile
		if err := r.do("s1"); err != nil {
			wantCode(t, err, wire.CodeOverloaded)
			break
		}
	}
	if served < burstOf(60) || served == 20*burstOf(60) {
		t.Fatalf("%d were served at once", served)
	}
	time.Sleep(time.Second)
	must(t, r.do("s1"))
}

// What is not in use is forgotten; what is refused is not.
func TestRatesStayBounded(t *testing.T) {
	m := newMachine(t)
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Rates.Files = 2 }))
	busy := asker{session: "busy"}
	must(t, m.rates.take(busy, "files"))
	wantCode(t, m.rates.take(busy, "files"), wire.CodeOverloaded)
	for i := range 3 * manyAllowances {
		_ = m.rates.take(asker{session: fmt.Sprint(i)}, "shell")
		if a := m.rates.all[rateKey{fmt.Sprint(i), "shell"}]; a != nil {
			m.rates.mu.Lock()
			a.bucket.SetBurstAt(time.Now(), 1)
			a.bucket.SetLimitAt(time.Now().Add(-time.Hour), 1000)
			m.rates.mu.Unlock()
		}
	}
	if n := len(m.rates.all); n > 2*manyAllowances {
		t.Errorf("%d are kept", n)
	}
	wantCode(t, m.rates.take(busy, "files"), wire.CodeOverloaded)
	m.rates.close()
}
