package consent_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"localpc/consent"
)

func TestAllowNextRunsOnce(t *testing.T) {
	p := &parts{prompt: func(context.Context, consent.Request) (consent.Answer, error) {
		return consent.Answer{}, &consent.Refusal{Outcome: consent.Expired}
	}}
	gate := newGate(p)
	r := command()
	gate.AllowNext(r, consent.Choice{Contain: consent.Contained})

	for name, change := range map[string]func(*consent.Request){
		"payload":         func(r *consent.Request) { r.Digest = consent.DigestOf("npm run evil") },
		"principal":       func(r *consent.Request) { r.Principal.ID = "p2" },
		"hub":             func(r *consent.Request) { r.Hub = "https://elsewhere" },
		"session":         func(r *consent.Request) { r.Session = "s2" },
		"action":          func(r *consent.Request) { r.Action = "delete" },
		"what was looked": func(r *consent.Request) { r.Fingerprint = "214 files now" },
	} {
		other := command()
		change(&other)
		if _, err := gate.Authorize(t.Context(), other); err == nil {
			t.Errorf("another %s was let through", name)
		}
	}

	again := r
	again.ID = "r9"
	g, err := gate.Authorize(t.Context(), again)
	if err != nil {
		t.Fatalf("the repeat was not let through: %v", err)
	}
	if g.Choice().Scope != consent.Once || g.Choice().Contain != consent.Contained || g.Request() != "r9" {
		t.Errorf("%+v", g.Choice())
	}
	if d := p.recorded[len(p.recorded)-1]; d.By != "allow-next" {
		t.Errorf("recorded as %+v", d)
	}
	if _, err := gate.Authorize(t.Context(), again); err == nil {
		t.Error("it was let through twice")
	}
}

func TestAllowNextEnds(t *testing.T) {
	for name, c := range map[string]struct {
		passes time.Duration
		ok     bool
	}{
		"in time":           {9*time.Minute + 59*time.Second, true},
		"after ten minutes": {consent.NextTime, false},
		"the next day":      {24 * time.Hour, false},
		"a clock set back":  {-time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &parts{prompt: func(context.Context, consent.Request) (consent.Answer, error) {
				return consent.Answer{}, &consent.Refusal{Outcome: consent.Expired}
			}}
			gate := newGate(p)
			gate.AllowNext(command(), consent.Choice{Contain: consent.Contained})
			p.now = p.now.Add(c.passes)
			if _, err := gate.Authorize(t.Context(), command()); (err == nil) != c.ok {
				t.Errorf("let through: %v", err == nil)
			}
		})
	}
}

// A pause, or a denial for the session, comes through the decider, and holds
// against what was allowed for next time before it.
func TestDenialHoldsAgainstAllowNext(t *testing.T) {
	p := &parts{verdict: consent.Verdict{Outcome: consent.Denied, By: "pause", Reason: "Paused."}}
	gate := newGate(p)
	gate.AllowNext(command(), consent.Choice{Contain: consent.Contained})
	g, err := gate.Authorize(t.Context(), command())
	refused(t, err, consent.Denied)
	none(t, g, command())
	p.verdict = consent.Verdict{}
	if _, err := gate.Authorize(t.Context(), command()); err != nil {
		t.Errorf("after the pause it is not let through: %v", err)
	}
}

// What the person allowed for next time holds for no more than can be had then:
// full access that was switched off since is asked about.
func TestAllowNextHoldsForWhatIsOffered(t *testing.T) {
	for name, c := range map[string]struct {
		given  consent.Containment
		change func(*consent.Request)
	}{
		"full access, not offered any more": {consent.FullAccess, func(r *consent.Request) { r.FullOffered = false }},
		"contained, not possible any more":  {consent.Contained, func(r *consent.Request) { r.Containable = false }},
	} {
		t.Run(name, func(t *testing.T) {
			p := &parts{prompt: says(consent.Answer{})}
			gate := newGate(p)
			gate.AllowNext(command(), consent.Choice{Contain: c.given})
			r := command()
			c.change(&r)
			g, err := gate.Authorize(t.Context(), r)
			refused(t, err, consent.Denied)
			none(t, g, r)
			if !slices.Contains(p.calls, "prompter") {
				t.Error("nobody was asked")
			}
		})
	}
}

// A time is over by either clock: the steady one stands still while the
// computer sleeps, and the other may be set.
func TestOver(t *testing.T) {
	from := time.Now()
	for _, c := range []struct {
		name string
		from time.Time
		now  time.Time
		want bool
	}{
		{"before", from, from.Add(time.Minute - 1), false},
		{"at its end", from, from.Add(time.Minute), true},
		{"by the wall's clock", from.Round(0), from.Round(0).Add(time.Hour), true},
		{"set back a little", from.Round(0), from.Round(0).Add(-time.Second), false},
		{"set back", from.Round(0), from.Round(0).Add(-2 * time.Minute), true},
	} {
		if got := consent.Over(c.from, c.now, time.Minute); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAllowNextOfASessionCard(t *testing.T) {
	p := &parts{}
	gate := newGate(p)
	gate.AllowNext(sessionCard(), consent.Choice{Scope: consent.Session, Mode: consent.ModeAsk, Folder: "/project"})
	again := sessionCard()
	again.Session = "another, as each new sandbox has"
	g, err := gate.Authorize(t.Context(), again)
	if err != nil || g.Choice().Mode != consent.ModeAsk {
		t.Errorf("%v, %+v", err, g.Choice())
	}
}
