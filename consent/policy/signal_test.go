package policy_test

import (
	"testing"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

func TestASessionStopsItsOwnProcessesWithoutACard(t *testing.T) {
	for _, mode := range []consent.Mode{consent.ModeLook, consent.ModeWork, consent.ModeAsk} {
		r := consent.Request{Capability: "shell", Action: "signal", Mode: mode, Session: "s1", Effects: []consent.Effect{{Kind: consent.EffectOwn, Own: true}}}
		if v := (policy.Policy{}).Decide(r, nil, time.Now()); v.Outcome != consent.Allowed {
			t.Errorf("in mode %s: %+v, want allowed", mode, v)
		}
		// Nothing else gets through by the same door.
		r.Action, r.Effects = "run", append(r.Effects, consent.Effect{Kind: consent.EffectRun})
		if v := (policy.Policy{}).Decide(r, nil, time.Now()); v.Outcome == consent.Allowed {
			t.Errorf("a command that can't be contained was allowed in mode %s", mode)
		}
	}
}
