package machine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// One answer to a card of several: each is decided, recorded, remembered and
// run by itself, with a grant for what it is and nothing else.
func TestEachOnACardHasItsOwnGrant(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	what := func(c capabilities.Call) string { return c.Payload.(*wire.ProcessStart).Cmd }
	r.probe.describe = func(c capabilities.Call) capabilities.Description {
		return capabilities.Description{Action: "do", Title: "Do " + what(c), Sentence: "%s wants to.", Exact: what(c), Payload: what(c), Rule: capabilities.RuleParts{Exact: what(c)},
			Effects: []consent.Effect{{Kind: consent.EffectOverwrite, Text: "replaces a file"}}, Risk: consent.RiskNormal, Scopes: []consent.Scope{consent.Session}}
	}
	var mu sync.Mutex
	ran, grants := []string{}, map[string]bool{}
	r.probe.run = func(_ context.Context, c capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if err := g.Check(consent.DigestOf("another"), ""); err == nil {
			t.Error("a grant covers what is not its own")
		}
		ran, grants[g.Request()] = append(ran, what(c)), true
		return exited(), g.Check(consent.DigestOf(what(c)), "")
	}
	r.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, false }
	ended := make(chan error, 4)
	for n := range 4 {
		go func() {
			_, err := r.call(wire.TypeProcessStart, &wire.ProcessStart{SessionID: "s1", Cmd: fmt.Sprint("job ", n)})
			ended <- err
		}()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if r.m.asks.Waiting() == n+1 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d wait", r.m.asks.Waiting())
			}
		}
	}
	head, _, _ := r.m.asks.Head()
	must(t, r.m.asks.Answer(head.ID, allow))
	head, info, _ := r.m.asks.Head()
	if len(info.Folded) != 2 || r.m.asks.Waiting() != 1 {
		t.Fatalf("the second card is %+v with %+v", head, info)
	}
	must(t, r.m.asks.Answer(head.ID, consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Session}, Via: "card"}))
	for range 4 {
		must(t, within(t, "a reply", ended))
	}
	slices.Sort(ran)
	if !slices.Equal(ran, []string{"job 0", "job 1", "job 2", "job 3"}) || len(grants) != 4 {
		t.Errorf("ran %v with grants %v", ran, grants)
	}
	for _, id := range []string{head.ID, info.Folded[0].ID, info.Folded[1].ID} {
		if d, ok := r.decided(id); !ok || d.Decision.By != "you" || d.Decision.Choice.Scope != consent.Session {
			t.Errorf("the decision of %s is %+v", id, d.Decision)
		}
	}
	g, err := r.m.o.Store.Remembered(t.Context(), "this", "k1")
	must(t, err)
	var rules []string
	for _, s := range g {
		rules = append(rules, s.Rule.Exact)
	}
	slices.Sort(rules)
	if !slices.Equal(rules, []string{"job 1", "job 2", "job 3"}) {
		t.Errorf("remembered: %v", rules)
	}
}
