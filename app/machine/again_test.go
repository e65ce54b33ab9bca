package machine

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// What the person answers for the whole session is the answer to what waits,
// too: nobody is asked the same again.
func TestAnAnswerForTheSessionSettlesWhatWaits(t *testing.T) {
	for _, allow := range []bool{true, false} {
		r := newRig(t)
		r.open("s1", 0)
		what := func(c capabilities.Call) string { return c.Payload.(*wire.ProcessStart).Cmd }
		r.probe.describe = func(c capabilities.Call) capabilities.Description {
			return capabilities.Description{Action: "do", Title: "Do " + what(c), Sentence: "%s wants to.", Exact: what(c), Payload: "it", Rule: capabilities.RuleParts{Exact: what(c)},
				Effects: []consent.Effect{{Kind: consent.EffectOverwrite, Text: "replaces a file"}}, Risk: consent.RiskHigh, Scopes: []consent.Scope{consent.Session}}
		}
		r.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, false }
		ended := make(chan error, 4)
		for n, cmd := range []string{"same", "same", "other", "same"} {
			go func() {
				_, err := r.call(wire.TypeProcessStart, &wire.ProcessStart{SessionID: "s1", Cmd: cmd})
				ended <- err
			}()
			for end := time.Now().Add(10 * time.Second); r.m.asks.Waiting() != n+1; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d wait", r.m.asks.Waiting())
				}
			}
		}
		answer := func(c consent.Scope) {
			t.Helper()
			head, _, _ := r.m.asks.Head()
			must(t, r.m.asks.Answer(head.ID, consent.Answer{Allow: allow, Choice: consent.Choice{Scope: c}, Via: "card"}))
		}
		check := func() {
			t.Helper()
			if err := within(t, "a reply", ended); allow {
				must(t, err)
			} else {
				wantCode(t, err, wire.CodeDenied)
			}
		}
		answer(consent.Session)
		for range 3 {
			check()
		}
		cards := r.person.seen()[1:]
		if len(cards) != 2 || cards[0].Exact != "same" || cards[1].Exact != "other" {
			t.Errorf("the cards were %+v", cards)
		}
		answer(consent.Once)
		check()
		by := map[string]int{}
		entries, _ := r.m.journal.entries(func(string) int { return 0 })
		for _, e := range entries[:4] {
			d, _ := r.decided(e.ID)
			by[d.Decision.By]++
		}
		if fmt.Sprint(by) != "map[rule:2 you:2]" {
			t.Errorf("decided by %v", by)
		}
	}
}

// The next card waits for what is to be remembered, but not for long.
func TestTheNextCardWaitsForWhatIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{instant: true}
		q, notes := newAsks(p)
		ruled := ""
		q.ruled = func(_, principal string) func(consent.Request) bool {
			return func(r consent.Request) bool { return principal == "p1" && r.ID == ruled }
		}
		always := consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Always}}
		all := map[string]*asked{}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			r := question(id, 50*time.Second)
			r.Hub, r.Principal.ID = "this", "p1"
			all[id] = prompt(t.Context(), q, r)
		}
		must(t, q.Answer("a", always))
		p.want(t, "a+0", "-a")
		q.Remembered("this", "p1") // it decides nothing else
		p.want(t, "a+0", "-a", "b+3")
		must(t, q.Answer("b", always))
		ruled = "c"
		q.Remembered("this", "p2")
		q.Remembered("other", "p1")
		p.want(t, "a+0", "-a", "b+3", "-b")
		if !all["c"].open() {
			t.Error("another program's answer settles it")
		}
		ruled = ""
		q.Remembered("this", "p1")
		must(t, q.Answer("c", always))
		p.want(t, "a+0", "-a", "b+3", "-b", "c+2", "-c")
		ruled = "d"
		q.Remembered("this", "p1")
		p.want(t, "a+0", "-a", "b+3", "-b", "c+2", "-c", "e+0")
		if all["d"].open() || !errors.Is(all["d"].err, consent.ErrAgain) {
			t.Errorf("%v", all["d"].err)
		}
		f := prompt(t.Context(), q, question("f", 50*time.Second))
		must(t, q.Answer("e", always)) // and nothing is remembered
		time.Sleep(heldAtMost - time.Millisecond)
		p.want(t, "a+0", "-a", "b+3", "-b", "c+2", "-c", "e+0", "-e")
		time.Sleep(time.Millisecond)
		p.want(t, "a+0", "-a", "b+3", "-b", "c+2", "-c", "e+0", "-e", "f+0")
		// The last of all: what was held still stays so until the end.
		if fmt.Sprint(*notes) != "[a b c e f]" {
			t.Errorf("notified %v", *notes)
		}
		must(t, q.Answer("f", always))
		f.ended(t, consent.Allowed, heldAtMost, "")
		if fmt.Sprint(*notes) != "[a b c e f none]" {
			t.Errorf("notified %v", *notes)
		}
	})
}
