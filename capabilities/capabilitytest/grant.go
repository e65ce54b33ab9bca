package capabilitytest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/consent"
)

// Allow is a decider that allows everything with its choice. Its zero value
// chooses Once.
type Allow struct{ Choice consent.Choice }

func (a Allow) Decide(consent.Request, []consent.Stored, time.Time) consent.Verdict {
	c := a.Choice
	if c.Scope == "" {
		c.Scope = consent.Once
	}
	return consent.Verdict{Outcome: consent.Allowed, By: "policy", Reason: "allowed by the test", Choice: c}
}

// Record is a recorder and a book in memory. The zero value is ready; safe for
// concurrent use.
type Record struct {
	mu        sync.Mutex
	decisions []consent.Decision // guarded by mu
	stored    []consent.Stored   // guarded by mu
}

// Decided keeps d.
func (r *Record) Decided(_ context.Context, _ consent.Request, d consent.Decision) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decisions = append(r.decisions, d)
	return nil
}

// Remembered returns what was remembered for hub and principal.
func (r *Record) Remembered(_ context.Context, hub, principal string) ([]consent.Stored, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []consent.Stored
	for _, s := range r.stored {
		if s.Rule.Hub == hub && s.Rule.Principal == principal {
			out = append(out, s)
		}
	}
	return out, nil
}

// Remember keeps s.
func (r *Record) Remember(_ context.Context, s consent.Stored) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = append(r.stored, s)
	return nil
}

// Used does nothing: the tests have no use for it.
func (r *Record) Used(context.Context, string, time.Time) error { return nil }

// Decisions returns what was decided so far.
func (r *Record) Decisions() []consent.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]consent.Decision(nil), r.decisions...)
}

// Nobody is a prompter without anybody behind it.
type Nobody struct{}

func (Nobody) Prompt(context.Context, consent.Request) (consent.Answer, error) {
	return consent.Answer{}, consent.Refuse(consent.Undelivered, "nobody is here")
}

// NewGate makes a real Gate whose decider is d, with nobody to ask.
func NewGate(d consent.Decider) *consent.Gate {
	r := &Record{}
	return consent.New(consent.Options{Decider: d, Prompter: Nobody{}, Recorder: r, Book: r})
}

// Request is what the dispatcher makes of a description.
func Request(s *capabilities.Session, capability string, d capabilities.Description) consent.Request {
	const hub = "this"
	p := consent.Principal{ID: "p1", Name: "Claude"}
	now := time.Now()
	return consent.Request{
		ID: consent.NewID(), Hub: hub, HubName: "This computer", Principal: p,
		Session: s.ID, Mode: s.Mode, Folder: s.Folder, Capability: capability, Action: d.Action,
		Title: d.Title, Sentence: strings.Replace(d.Sentence, "%s", p.Name, 1), Exact: d.Exact, Details: d.Details,
		Effects: d.Effects, Risk: d.Risk,
		Digest: consent.DigestOf(d.Payload), Fingerprint: d.Fingerprint,
		Containable: d.Containable, FullOffered: d.FullOffered,
		Rule: consent.Rule{Hub: hub, Principal: p.ID, Folder: s.Folder, Capability: capability,
			Action: d.Action, Exact: d.Rule.Exact, Env: d.Rule.Env, Cwd: d.Rule.Cwd},
		Scopes:  append([]consent.Scope{consent.Once}, d.Scopes...),
		Screens: d.Screens, Looks: d.Looks,
		Arrived: now, Deadline: now.Add(50 * time.Second),
	}
}

// Grant gets a grant for d from a real Gate that allows everything.
func Grant(t testing.TB, s *capabilities.Session, capability string, d capabilities.Description) consent.Grant {
	t.Helper()
	return GrantWith(t, s, capability, d, consent.Choice{})
}

// GrantWith is Grant with what the person chose: the containment of a command.
func GrantWith(t testing.TB, s *capabilities.Session, capability string, d capabilities.Description, c consent.Choice) consent.Grant {
	t.Helper()
	g, err := NewGate(Allow{Choice: c}).Authorize(context.Background(), Request(s, capability, d))
	if err != nil {
		t.Fatalf("the gate that allows everything refused: %v", err)
	}
	return g
}

// Do takes a call through describe, grant and run.
func Do(ctx context.Context, t testing.TB, c capabilities.Capability, call capabilities.Call) (capabilities.Result, *Output, error) {
	t.Helper()
	return DoWith(ctx, t, c, call, consent.Choice{})
}

// DoWith is Do with what the person chose.
func DoWith(ctx context.Context, t testing.TB, c capabilities.Capability, call capabilities.Call, choice consent.Choice) (capabilities.Result, *Output, error) {
	t.Helper()
	out := &Output{}
	d, err := c.Describe(ctx, call)
	if err != nil {
		return capabilities.Result{}, out, err
	}
	res, err := c.Run(ctx, call, GrantWith(t, call.Session, c.Name(), d, choice), out)
	return res, out, err
}
