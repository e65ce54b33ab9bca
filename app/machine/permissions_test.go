package machine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel/wire"
)

// keyHub is a hub inside that has keys and counts how often it is asked.
type keyHub struct {
	fakeHub
	keys  []Key
	asked int
}

func (h *keyHub) Keys(context.Context) ([]Key, error) {
	h.asked++
	return slices.Clone(h.keys), nil
}

func (h *keyHub) RevokeKey(_ context.Context, id string) error {
	h.keys = slices.DeleteFunc(h.keys, func(k Key) bool { return k.ID == id })
	return nil
}

func (r *rig) intend(in snapshot.Intent) string {
	r.t.Helper()
	reply, err := r.m.Intend(r.t.Context(), in)
	must(r.t, err)
	return reply.Text
}

// refused is an intent that is not done, and why.
func refused(t *testing.T, m *Machine, in snapshot.Intent, words string) {
	t.Helper()
	_, err := m.Intend(t.Context(), in)
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s %q %q: %v, want one about %q", in.Kind, in.Text, in.Way, err, words)
	}
}

// happened are the events that the record has of a kind.
func happened(t *testing.T, m *Machine, what string) (details []string) {
	t.Helper()
	must(t, m.o.Store.Since(t.Context(), record.KindEvent, time.Time{}, func(e consent.Entry) error {
		if ev := readEvent(t, e); ev.What == what {
			details = append(details, ev.Detail)
		}
		return nil
	}))
	return details
}

func grant(t *testing.T, m *Machine, s consent.Stored) {
	t.Helper()
	s.Rule.Hub, s.Created, s.Name = settings.HubThis, time.Now(), "Research\nagent"
	must(t, m.o.Store.Remember(t.Context(), s))
}

func TestGrantsAreShown(t *testing.T) {
	m := newMachine(t)
	soon := time.Now().Add(2 * time.Second)
	must(t, m.o.Store.Remember(t.Context(), consent.Stored{ID: "0", Rule: consent.Rule{Hub: settings.HubThis, Principal: "k1", Capability: "files"}, Scope: consent.Always,
		Created: soon.Add(-consent.UnusedFor)}))
	grant(t, m, consent.Stored{ID: "1", Rule: consent.Rule{Principal: "k1", Capability: "files", Action: "read", Folder: "/home/anna/project"}, Scope: consent.Always})
	time.Sleep(2 * time.Millisecond) // the newest comes first
	grant(t, m, consent.Stored{ID: "2", Rule: consent.Rule{Principal: "k1", Capability: "shell", Action: "run", Exact: "npm test"}, Scope: consent.Session, Session: "s1", Deny: true})
	time.Sleep(2 * time.Millisecond)
	grant(t, m, consent.Stored{ID: "3", Rule: consent.Rule{Principal: "k1", Capability: "network", Action: "internet"}, Scope: consent.Minutes15, Expires: soon})
	all := m.Snapshot().Grants
	if len(all) != 4 || all[3].ID != "0" || all[0].ID != "3" || all[1].ID != "2" || all[2].ID != "1" {
		t.Fatalf("the snapshot has %+v", all)
	}
	if g := all[1]; g.Who != consent.Visible("Research\nagent", false) || !g.Deny || g.Scope != "this session" || g.Session != "s1" || !strings.Contains(g.May, "npm test") {
		t.Errorf("the denial is shown as %+v", g)
	}
	if g := all[2]; g.Scope != "always" || g.Session != "" || !strings.Contains(g.May, "/home/anna/project") || !g.LastUsed.IsZero() {
		t.Errorf("the rule that holds always is shown as %+v", g)
	}
	if g := all[0]; g.Scope != "15 minutes" || !g.Until.Equal(time.UnixMilli(soon.UnixMilli())) {
		t.Errorf("the one for 15 minutes is shown as %+v", g)
	}
	must(t, m.o.Store.Used(t.Context(), "1", time.Now()))
	if g := m.Snapshot().Grants[2]; g.LastUsed.IsZero() {
		t.Error("its last use is not shown")
	}
	time.Sleep(time.Until(soon))
	if all := m.Snapshot().Grants; len(all) != 2 {
		t.Errorf("one that has ended, or was not used for 30 days, is shown: %+v", all)
	}
	_, err := m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Revoke, Text: "1"})
	if must(t, err); len(m.Snapshot().Grants) != 1 {
		t.Error("one that was revoked is shown")
	}
}

// What is published again and again reads neither the database nor the hub.
func TestListsAreReadWhenTheyChange(t *testing.T) {
	m := newMachine(t)
	hub := &keyHub{keys: []Key{{ID: "k1", Name: "Research agent"}}}
	m.o.Hub = hub
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Hub = settings.HubThis }))
	grant(t, m, consent.Stored{ID: "1", Rule: consent.Rule{Principal: "k1", Capability: "files"}, Scope: consent.Always})
	m.Snapshot()
	must(t, m.o.Store.Close()) // from here on a reading fails
	for range 20 {
		if s := m.Snapshot(); len(s.Grants) != 1 || len(s.Programs) != 1 {
			t.Fatalf("the snapshot has %+v and %+v", s.Grants, s.Programs)
		}
	}
	if hub.asked != 1 {
		t.Errorf("the hub was asked %d times", hub.asked)
	}
}

func TestCapabilitiesAreSet(t *testing.T) {
	r := newRig(t)
	if all := r.m.Snapshot().Capabilities; len(all) != 1 || all[0].Name != "shell" || all[0].Extent != "ask" || len(all[0].Extents) != 3 {
		t.Fatalf("the snapshot has %+v", all) // of what this build has only
	}
	r.open("s1", 0)
	must(t, r.do("s1"))
	if said := r.intend(snapshot.Intent{Kind: snapshot.SetCapability, Text: "shell", Way: "off"}); said != "Commands: never." {
		t.Errorf("it says %q", said)
	}
	if all := r.m.Snapshot().Capabilities; all[0].Extent != "off" {
		t.Errorf("the snapshot has %+v", all)
	}
	wantCode(t, r.do("s1"), wire.CodeDenied)
	r.intend(snapshot.Intent{Kind: snapshot.SetCapability, Text: "shell", Way: "ask"})
	must(t, r.do("s1"))
	if got := happened(t, r.m, "capability set"); !slices.Equal(got, []string{"shell: off", "shell: ask"}) {
		t.Errorf("the record has %v", got)
	}
	refused(t, r.m, snapshot.Intent{Kind: snapshot.SetCapability, Text: "shell", Way: "read"}, "can't be set")
	refused(t, r.m, snapshot.Intent{Kind: snapshot.SetCapability, Text: "camera", Way: "ask"}, "camera")
	// What can't be recorded is not widened.
	r.intend(snapshot.Intent{Kind: snapshot.SetCapability, Text: "shell", Way: "off"})
	must(t, r.m.o.Store.Close())
	refused(t, r.m, snapshot.Intent{Kind: snapshot.SetCapability, Text: "shell", Way: "ask"}, "record")
	if got := r.m.o.Settings.Get().Capabilities.Shell; got != "off" {
		t.Errorf("it is %q", got)
	}
}

func TestASessionIsChangedAndEnded(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	r.intend(snapshot.Intent{Kind: snapshot.SetMode, Entry: "s1", Text: string(consent.ModeAsk)})
	if s := r.m.Snapshot().Sessions[0]; s.Mode != "Ask me each time" {
		t.Errorf("its mode is %q", s.Mode)
	}
	refused(t, r.m, snapshot.Intent{Kind: snapshot.SetMode, Entry: "s1", Text: "everything"}, "no such way")
	cause, reply := r.running("s1")
	r.intend(snapshot.Intent{Kind: snapshot.EndSession, Entry: "s1"})
	wantCode(t, within(t, "cause", cause), wire.CodeStopped)
	wantCode(t, within(t, "reply", reply), wire.CodeStopped)
	if s := r.m.Snapshot(); len(s.Sessions) != 0 {
		t.Errorf("there are %+v", s.Sessions)
	}
	refused(t, r.m, snapshot.Intent{Kind: snapshot.EndSession, Entry: "s1"}, "not open")
}

// A program that is disconnected has no key, no session, no question and no
// grant any more; the others have all of theirs.
func TestDisconnect(t *testing.T) {
	r := newRig(t)
	hub := &keyHub{keys: []Key{{ID: "k1", Name: "Research agent", Created: time.Now()}, {ID: "k2", Name: "Other"}}}
	r.m.o.Hub = hub
	must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.Hub = settings.HubThis }))
	r.open("s1", 0)
	cause, _ := r.running("s1")
	r.person.mu.Lock()
	r.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, false }
	r.person.mu.Unlock()
	waits := make(chan error, 1)
	go func() {
		_, err := r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: "s2", PrincipalID: "k1", PrincipalName: "Research agent"})
		waits <- err
	}()
	for end := time.Now().Add(20 * time.Second); r.m.asks.Waiting() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the second session is not asked about")
		}
	}
	for id, principal := range map[string]string{"1": "k1", "2": "k2"} {
		grant(t, r.m, consent.Stored{ID: id, Rule: consent.Rule{Principal: principal, Capability: "files", Exact: id}, Scope: consent.Always})
	}
	all := r.m.Snapshot().Programs
	if len(all) != 2 || all[0].ID != "k1" || all[0].Sessions != 1 || !all[0].CanDisconnect || all[0].LastSeen.IsZero() || all[1].Sessions != 0 {
		t.Errorf("the programs are %+v", all)
	}
	// It was heard of when it asked for what runs, after its session's opening.
	if s := r.m.Snapshot().Sessions; len(s) != 1 || !all[0].LastSeen.After(s[0].Since) {
		t.Errorf("the program was last seen %s, its sessions are %+v", all[0].LastSeen, s)
	}
	if said := r.intend(snapshot.Intent{Kind: snapshot.Disconnect, Text: "k1"}); said != "Research agent is disconnected." {
		t.Errorf("it says %q", said)
	}
	wantCode(t, within(t, "cause", cause), wire.CodeStopped)
	wantCode(t, within(t, "the question", waits), wire.CodeStopped)
	s := r.m.Snapshot()
	if len(s.Programs) != 1 || s.Programs[0].ID != "k2" || len(s.Sessions) != 0 || s.Waiting != 0 || len(s.Grants) != 1 || s.Grants[0].ID != "2" {
		t.Errorf("afterwards there are %+v, %+v, %d, %+v", s.Programs, s.Sessions, s.Waiting, s.Grants)
	}
	if got := happened(t, r.m, "program disconnected"); !slices.Equal(got, []string{"k1: Research agent"}) {
		t.Errorf("the record has %v", got)
	}
	refused(t, r.m, snapshot.Intent{Kind: snapshot.Disconnect, Text: "k1"}, "no such program")
}

// A program of a hub elsewhere is disconnected there.
func TestProgramsOfAHubElsewhere(t *testing.T) {
	r := newRig(t)
	must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.Hub = "https://hub.example" }))
	r.m.link.set(func(v *linkState) { v.id, v.hub.Name = "https://hub.example", "Anna's hub" })
	r.open("s1", 0)
	all := r.m.Snapshot().Programs
	if len(all) != 1 || all[0].Name != "Research agent" || all[0].Sessions != 1 || all[0].CanDisconnect {
		t.Errorf("the programs are %+v", all)
	}
	refused(t, r.m, snapshot.Intent{Kind: snapshot.Disconnect, Text: "k1"}, "Anna's hub: disconnect it on the hub's own page")
	if len(r.m.Snapshot().Sessions) != 1 {
		t.Error("its session was ended all the same")
	}
}
