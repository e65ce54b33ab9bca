package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// deniedOf is what windows are told of a session.
func (r *rig) deniedOf(session string) int {
	r.t.Helper()
	for _, s := range r.m.Snapshot().Sessions {
		if s.ID == session {
			return s.Denied
		}
	}
	r.t.Fatalf("the session %s is not open", session)
	return 0
}

func TestASessionThatKeepsBeingDenied(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	r.open("s2", 0)
	var shown []int // what each card said
	answer := func(allow bool, c consent.Choice) {
		r.person.answer = func(consent.Request) (consent.Answer, bool) {
			_, info, _ := r.heads()
			shown = append(shown, info.Denied)
			return consent.Answer{Allow: allow, Choice: c, Via: "card"}, true
		}
	}
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		return exited(), nil
	}
	deny := consent.Choice{Scope: consent.Once}
	answer(false, deny)
	for n := range 2 {
		wantCode(t, r.do("s1"), wire.CodeDenied)
		if got := r.deniedOf("s1"); got != n+1 {
			t.Errorf("after %d denials: %d", n+1, got)
		}
	}
	answer(true, consent.Choice{Scope: consent.Once})
	must(t, r.do("s1"))
	if r.deniedOf("s1") != 0 {
		t.Error("an answer that allows does not count anew")
	}
	answer(false, deny)
	for range 3 {
		wantCode(t, r.do("s1"), wire.CodeDenied)
	}
	if a, b := r.deniedOf("s1"), r.deniedOf("s2"); a != snapshot.DeniedOften || b != 0 {
		t.Errorf("denied %d and %d", a, b)
	}
	// The card offers to end it; the person does.
	answer(false, consent.Choice{Scope: consent.Once, End: true})
	wantCode(t, r.do("s1"), wire.CodeDenied)
	if got := fmt.Sprint(shown); got != "[0 1 2 0 1 2 3]" {
		t.Errorf("the cards said %s", got)
	}
	for end := time.Now().Add(10 * time.Second); len(events(t, r.m, "The person ended this session.")) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the session is still open")
		}
	}
	wantCode(t, r.do("s1"), wire.CodeSessionNotOpen)
	// The refusal stands before the end.
	last := r.person.seen()[len(r.person.seen())-1]
	entries, err := r.m.o.Store.EntriesByRef(t.Context(), last.ID)
	must(t, err)
	d, _ := r.decided(last.ID)
	if d.Decision.Outcome != consent.Denied || !d.Decision.Choice.End || entries[0].Seq > events(t, r.m, "The person ended this session.")[0].Seq {
		t.Errorf("the decision is %+v", d.Decision)
	}
	// A later session of the name begins anew.
	answer(true, consent.Choice{Scope: consent.Session, Mode: consent.ModeWork, Folder: r.folder})
	r.open("s1", 0)
	if r.deniedOf("s1") != 0 {
		t.Error("what was denied before counts")
	}
}

// heads is the open card while it is being presented, when the queue is locked.
func (r *rig) heads() (consent.Request, snapshot.CardInfo, bool) {
	return r.m.asks.card.asks[0].r, r.m.asks.cardInfo(), true
}

// A program whose session cards are denied again and again can't go on asking;
// the person can still let it.
func TestAProgramThatNags(t *testing.T) {
	r := newRig(t)
	yes := r.person.answer
	r.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, true }
	open := func(id, principal string) error {
		_, err := r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: id, PrincipalID: principal, PrincipalName: "Agent " + principal})
		return err
	}
	for n := range snapshot.DeniedOften {
		wantCode(t, open(fmt.Sprint("s", n), "k1"), wire.CodeDenied)
	}
	err := open("s3", "k1")
	wantCode(t, err, wire.CodeUndelivered)
	if n := len(r.person.seen()); n != 3 || !strings.Contains(err.Error(), "declined this program 3 times in a row") {
		t.Errorf("%d cards; %v", n, err)
	}
	entries, _ := r.m.journal.entries(func(string) int { return 0 })
	if d, ok := r.decided(entries[0].ID); !ok || d.Decision.Outcome != consent.Undelivered || !entries[0].CanAllowNext {
		t.Errorf("the log has %+v, the record %+v", entries[0], d.Decision)
	}
	r.person.answer = yes
	must(t, open("other", "k2")) // another program is asked about
	if _, err := r.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.AllowNext, Entry: entries[0].ID}); err != nil {
		t.Fatal(err)
	}
	must(t, open("s4", "k1"))
	if n := len(r.person.seen()); n != 4 {
		t.Errorf("%d cards", n)
	}
}

func TestQuietForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDenials(time.Now)
		card := func(principal string) consent.Request {
			return consent.Request{Hub: "this", Principal: consent.Principal{ID: principal}, Capability: consent.CapabilitySession}
		}
		deny := func(principal string) { d.answered(card(principal), consent.Answer{}) }
		quiet := func(principal string) bool {
			var ref *consent.Refusal
			err := d.quiet(card(principal))
			if err != nil && (!errors.As(err, &ref) || ref.Outcome != consent.Undelivered) {
				t.Errorf("%v", err)
			}
			return err != nil
		}
		deny("a")
		time.Sleep(6 * time.Minute)
		deny("a")
		time.Sleep(5 * time.Minute)
		deny("a") // the first is too long ago
		if quiet("a") {
			t.Error("quiet after three in eleven minutes")
		}
		deny("a")
		if !quiet("a") || quiet("b") {
			t.Errorf("after three in ten minutes: %v; another: %v", quiet("a"), quiet("b"))
		}
		if d.quiet(consent.Request{Hub: "this", Principal: consent.Principal{ID: "a"}, Capability: "shell"}) != nil {
			t.Error("its open sessions are not asked about")
		}
		time.Sleep(quietFor - time.Second)
		if !quiet("a") {
			t.Error("asked too soon")
		}
		time.Sleep(time.Second)
		if quiet("a") {
			t.Error("quiet for too long")
		}
		deny("a")
		deny("a")
		d.answered(card("a"), consent.Answer{Allow: true})
		deny("a")
		if quiet("a") {
			t.Error("one that was allowed does not count anew")
		}
		time.Sleep(time.Hour)
		deny("b")
		if len(d.programs) != 1 {
			t.Errorf("%d programs are kept", len(d.programs))
		}
	})
}

// Those that wait already are not shown either.
func TestQueuedCardsOfANaggingProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{instant: true}
		q, _ := newAsks(p)
		q.denied = newDenials(time.Now)
		var all []*asked
		for n := range 5 {
			r := question(fmt.Sprint(n), 50*time.Second)
			r.Capability, r.Principal.ID = consent.CapabilitySession, "k1"
			all = append(all, prompt(t.Context(), q, r))
		}
		other := prompt(t.Context(), q, question("other", 50*time.Second))
		for n := range 3 {
			must(t, q.Answer(fmt.Sprint(n), consent.Answer{}))
		}
		for _, a := range all[3:] {
			a.ended(t, consent.Undelivered, 0, "declined this program 3 times")
		}
		p.want(t, "0+0", "-0", "1+4", "-1", "2+3", "-2", "other+0")
		must(t, q.Answer("other", allow))
		other.ended(t, consent.Allowed, 0, "")
	})
}
