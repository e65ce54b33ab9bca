package machine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Trust covers changes of the person's own files without a card, is work for
// whoever runs them, and is over after 15 minutes.
func TestTrustEndsByItself(t *testing.T) {
	r := newRig(t)
	var ran []*capabilities.Session
	r.probe.run = func(_ context.Context, c capabilities.Call, _ consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		ran = append(ran, c.Session)
		return exited(), nil
	}
	r.open("s1", 0)
	must(t, r.do("s1"))
	if n := len(r.person.seen()); n != 2 {
		t.Fatalf("%d cards at work", n)
	}
	must(t, r.m.sessions.setMode(t.Context(), "s1", consent.ModeTrusted))
	must(t, r.do("s1"))
	if n := len(r.person.seen()); n != 2 {
		t.Errorf("trusted, a card is shown")
	}
	s := r.m.sessions.snapshot()[0]
	if left := time.Until(s.TrustedUntil); s.Mode != "Trusted for 15 minutes" || left < 14*time.Minute || left > 15*time.Minute {
		t.Errorf("trusted: %+v", s)
	}
	if ran[1].Mode != consent.ModeWork || ran[0].Made != ran[1].Made || ran[0].FolderID != ran[1].FolderID || ran[1].Made == nil {
		t.Errorf("it runs with %+v, before with %+v", ran[1], ran[0])
	}

	open, err := r.m.sessions.get("s1")
	must(t, err)
	open.mu.Lock()
	open.trusted = open.trusted.Add(-consent.TrustedFor)
	open.mu.Unlock()
	must(t, r.do("s1"))
	if n := len(r.person.seen()); n != 3 {
		t.Errorf("%d cards after trust is over", n)
	}
	if s := r.m.sessions.snapshot()[0]; s.Mode != "Work in this folder" || !s.TrustedUntil.IsZero() {
		t.Errorf("trust is over: %+v", s)
	}
}

func TestTrustByEitherClock(t *testing.T) {
	given := time.Now()
	wall := given.Round(0)
	s := &session{mode: consent.ModeTrusted, trusted: given}
	for _, c := range []struct {
		name string
		now  time.Time
		want consent.Mode
	}{
		{"at once", given, consent.ModeTrusted},
		{"after 14 minutes", given.Add(14 * time.Minute), consent.ModeTrusted},
		{"after 15 minutes", given.Add(15 * time.Minute), consent.ModeWork},
		{"after a sleep of an hour, which the steady clock does not count", wall.Add(time.Hour), consent.ModeWork},
		{"after the clock was set back by an hour", wall.Add(-time.Hour), consent.ModeWork},
		{"after the clock was set right by a second", wall.Add(-time.Second), consent.ModeTrusted},
	} {
		if got, until := s.modeAt(c.now); got != c.want || (got == consent.ModeTrusted) == until.IsZero() {
			t.Errorf("%s: %s until %v", c.name, got, until)
		}
	}
}

// The person changes how a session may work, and the record tells of it; what
// it can't tell of does not change.
func TestModeOfAnOpenSession(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	must(t, r.m.sessions.setMode(t.Context(), "s1", consent.ModeLook))
	wantCode(t, r.do("s1"), wire.CodeDenied)
	if n := len(r.person.seen()); n != 1 {
		t.Errorf("%d cards, though the session may only look", n)
	}
	if s := r.m.sessions.snapshot()[0]; s.Mode != "Look only" {
		t.Errorf("%+v", s)
	}
	var events []string
	must(t, r.m.o.Store.EachEntry(t.Context(), 1, func(e consent.Entry) error {
		events = append(events, string(e.Body))
		return nil
	}))
	if !slices.ContainsFunc(events, func(s string) bool {
		return strings.Contains(s, "session mode") && strings.Contains(s, "k1: Look only")
	}) {
		t.Errorf("the record does not tell: %s", events)
	}
	for _, m := range []consent.Mode{"", "root"} {
		if err := r.m.sessions.setMode(t.Context(), "s1", m); err == nil {
			t.Errorf("the mode %q was taken", m)
		}
	}
	if err := r.m.sessions.setMode(t.Context(), "s2", consent.ModeAsk); wire.CodeOf(err) != wire.CodeSessionNotOpen {
		t.Errorf("a session that is not open: %v", err)
	}
	must(t, r.m.o.Store.Close())
	if err := r.m.sessions.setMode(t.Context(), "s1", consent.ModeTrusted); err == nil || r.m.sessions.snapshot()[0].Mode != "Look only" {
		t.Errorf("without a record: %v, %+v", err, r.m.sessions.snapshot()[0])
	}
}

// A session card may give trust at once. Its program is told of work, which is
// what stays, and the next session of it is not trusted again.
func TestTrustOnTheSessionCard(t *testing.T) {
	r := newRig(t)
	yes := r.person.answer
	r.person.answer = func(q consent.Request) (consent.Answer, bool) {
		a, now := yes(q)
		if q.Capability == consent.CapabilitySession {
			a.Choice.Mode, a.Choice.Remember = consent.ModeTrusted, true
		}
		return a, now
	}
	r.open("s1", 0)
	must(t, r.do("s1"))
	r.open("s2", 0)
	if n := len(r.person.seen()); n != 1 {
		t.Errorf("%d cards", n)
	}
	modes := map[string]string{}
	for _, s := range r.m.sessions.snapshot() {
		modes[s.ID] = s.Mode
	}
	if modes["s1"] != "Trusted for 15 minutes" || modes["s2"] != "Work in this folder" {
		t.Errorf("%v", modes)
	}
}

// A program whose session was declined for 15 minutes is not asked about again
// in them, even where another of its sessions is remembered.
func TestADeclinedProgramDoesNotAskAgain(t *testing.T) {
	r := newRig(t)
	r.person.answer = func(consent.Request) (consent.Answer, bool) {
		return consent.Answer{Choice: consent.Choice{Scope: consent.Minutes15}, Via: "card"}, true
	}
	for _, id := range []string{"s1", "s2", "s3"} {
		_, err := r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: id, PrincipalID: "k1", PrincipalName: "Research agent"})
		wantCode(t, err, wire.CodeDenied)
		if id != "s1" && !strings.Contains(err.Error(), "not to be asked again for 15 minutes") {
			t.Errorf("%s: %v", id, err)
		}
	}
	if n := len(r.person.seen()); n != 1 {
		t.Errorf("%d cards", n)
	}
	_, err := r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: "s4", PrincipalID: "k2", PrincipalName: "Another"})
	wantCode(t, err, wire.CodeDenied)
	if n := len(r.person.seen()); n != 2 {
		t.Errorf("%d cards, one of them another program's", n)
	}
}

// What is switched off in Settings is refused without a card, from the next
// request on; what is limited is not offered, and not taken.
func TestSwitchesInSettings(t *testing.T) {
	r := newRig(t)
	r.probe.describe = func(capabilities.Call) capabilities.Description {
		return capabilities.Description{Action: "run", Title: "Run it", Sentence: "%s wants to run it.", Exact: "it", Payload: "it", Risk: consent.RiskNormal,
			Effects: []consent.Effect{{Kind: consent.EffectOverwrite}}, Containable: true, FullOffered: true, Scopes: []consent.Scope{consent.Session}}
	}
	yes := r.person.answer
	r.person.answer = func(q consent.Request) (consent.Answer, bool) {
		a, now := yes(q)
		if q.Capability == "shell" {
			a.Choice.Contain = consent.FullAccess
		}
		return a, now
	}
	set := func(shell string) {
		t.Helper()
		must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.Capabilities.Shell = shell }))
	}
	r.open("s1", 0)
	must(t, r.do("s1"))
	set("contained")
	wantCode(t, r.do("s1"), wire.CodeUndelivered)
	cards := r.person.seen()
	if len(cards) != 3 || !cards[1].FullOffered || cards[2].FullOffered || !cards[2].Containable {
		t.Errorf("the cards were %+v", cards)
	}
	set("off")
	err := r.do("s1")
	wantCode(t, err, wire.CodeDenied)
	if !strings.Contains(err.Error(), "switched off in Settings") || len(r.person.seen()) != 3 {
		t.Errorf("%v, after %d cards", err, len(r.person.seen()))
	}
	set("ask")
	must(t, r.do("s1"))
	if e, _ := r.m.journal.entries(r.m.leftIn); !slices.ContainsFunc(e, func(e snapshot.Entry) bool { return e.By == "Settings" && e.Outcome == snapshot.Denied }) {
		t.Errorf("Activity does not say what refused it: %+v", e)
	}
}

// An answer does not run what was limited, or paused, while its card was open.
func TestSwitchedOffWhileTheCardIsOpen(t *testing.T) {
	r := newRig(t)
	r.probe.describe = func(capabilities.Call) capabilities.Description {
		return capabilities.Description{Action: "run", Title: "Run it", Sentence: "%s wants to run it.", Exact: "it", Payload: "it", Risk: consent.RiskNormal,
			Effects: []consent.Effect{{Kind: consent.EffectOverwrite}}, Containable: true, FullOffered: true}
	}
	r.open("s1", 0)
	meanwhile := func() {}
	r.person.mu.Lock()
	r.person.answer = func(consent.Request) (consent.Answer, bool) {
		meanwhile()
		return consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Once, Contain: consent.FullAccess}}, true
	}
	r.person.mu.Unlock()
	must(t, r.do("s1"))
	for _, shell := range []string{"contained", "off"} {
		meanwhile = func() {
			must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.Capabilities.Shell = shell }))
		}
		err := r.do("s1")
		wantCode(t, err, wire.CodeDenied)
		if err == nil || !strings.Contains(err.Error(), "Settings on this computer") {
			t.Errorf("%s: %v", shell, err)
		}
		must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.Capabilities.Shell = "ask" }))
	}
	meanwhile = func() {
		r.m.mu.Lock()
		r.m.paused = true
		r.m.mu.Unlock()
	}
	wantCode(t, r.do("s1"), wire.CodePaused)
}

// Grants that were not used for long are removed while it runs.
func TestOldGrantsAreRemoved(t *testing.T) {
	r := newRig(t)
	old := time.Now().Add(-consent.UnusedFor - time.Hour)
	must(t, r.m.o.Store.Remember(t.Context(), consent.Stored{ID: "old", Scope: consent.Always, Created: old, Rule: consent.Rule{Hub: "this", Principal: "k1", Exact: "a"}}))
	done := r.m.o.Store.GrantsVersion() + 2 // it writes twice
	r.m.background(r.m.expire)
	for until := time.Now().Add(10 * time.Second); r.m.o.Store.GrantsVersion() < done; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("nothing was removed")
		}
	}
	if n, err := r.m.o.Store.Expire(t.Context(), time.Now()); n != 0 || err != nil {
		t.Errorf("%d were left, %v", n, err)
	}
}
