package machine

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// An open connection ends with what allowed it, and with the switch.
func TestConnectionsEndWithTheirPermission(t *testing.T) {
	var open atomic.Int64
	n := newNetRig(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	wait := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(15 * time.Second); open.Load() != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections are open, want %d", open.Load(), want)
			}
		}
	}
	intend := func(in snapshot.Intent) {
		t.Helper()
		_, err := n.m.Intend(t.Context(), in)
		must(t, err)
	}
	done := make(chan string, 1)
	long := func(host string) {
		t.Helper()
		go func() { done <- n.sh("curl -s http://" + host + "/; echo over") }()
		wait(1)
	}
	grantOf := func() string {
		t.Helper()
		n.grants(1)
		stored, _ := n.m.lists.stored()
		for _, g := range stored {
			if g.Rule.Capability == "network" {
				return g.ID
			}
		}
		t.Fatal("nothing is listed")
		return ""
	}
	n.choice.Scope = consent.Session
	long("one.example.org")
	must(t, n.m.o.Store.Remember(t.Context(), consent.Stored{ID: "another", Scope: consent.Always, Created: time.Now(), Rule: consent.Rule{Hub: "this", Principal: "k1", Capability: "files"}}))
	intend(snapshot.Intent{Kind: snapshot.Revoke, Text: "another"})
	time.Sleep(100 * time.Millisecond)
	wait(1) // that was about something else
	intend(snapshot.Intent{Kind: snapshot.Revoke, Text: grantOf()})
	wait(0)
	if out := within(t, "the command", done); out != "over\n" {
		t.Errorf("the command said %q", out)
	}

	long("two.example.org")
	if n.grants(1); len(n.cards()) != 2 {
		t.Errorf("%d questions", len(n.cards()))
	}
	intend(snapshot.Intent{Kind: snapshot.SetCapability, Text: "network", Way: "off"})
	wait(0)
	if out := within(t, "the command", done); out != "over\n" {
		t.Errorf("the command said %q", out)
	}
	if out := n.sh("curl -s -o /dev/null -w '%{http_code}' http://two.example.org/"); out != "403" || len(n.cards()) != 2 {
		t.Errorf("switched off: %q, %d questions", out, len(n.cards()))
	}
}
