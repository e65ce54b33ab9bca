package consent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/consent"
)

// parts are fakes at the gate's four edges. They note in what order they were
// used.
type parts struct {
	mu       sync.Mutex
	calls    []string
	verdict  consent.Verdict
	prompt   func(context.Context, consent.Request) (consent.Answer, error)
	recorded []consent.Decision
	// recording fails with this error; so do the book's parts.
	failRecord, failRead, failRemember error
	stored                             []consent.Stored
	used                               []string
	onRecord                           func()
	now                                time.Time
}

func (p *parts) note(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, s)
}

func (p *parts) Decide(consent.Request, []consent.Stored, time.Time) consent.Verdict {
	p.note("decider")
	return p.verdict
}

func (p *parts) Prompt(ctx context.Context, r consent.Request) (consent.Answer, error) {
	p.note("prompter")
	return p.prompt(ctx, r)
}

func (p *parts) Decided(ctx context.Context, _ consent.Request, d consent.Decision) error {
	p.note("recorder:" + string(d.Outcome))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failRecord != nil {
		return p.failRecord
	}
	if ctx.Err() != nil {
		return ctx.Err() // as a database does
	}
	p.recorded = append(p.recorded, d)
	if p.onRecord != nil {
		p.onRecord()
	}
	return nil
}

func (p *parts) Remembered(ctx context.Context, _, _ string) ([]consent.Stored, error) {
	p.note("book")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p.stored, p.failRead
}

func (p *parts) Remember(ctx context.Context, s consent.Stored) error {
	p.note("remember")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failRemember != nil {
		return p.failRemember
	}
	p.stored = append(p.stored, s)
	return nil
}

func (p *parts) Used(_ context.Context, id string, _ time.Time) error {
	p.used = append(p.used, id)
	return nil
}

func newGate(p *parts) *consent.Gate {
	if p.now.IsZero() {
		p.now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	}
	return consent.New(consent.Options{Decider: p, Prompter: p, Recorder: p, Book: p,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: func() time.Time { p.mu.Lock(); defer p.mu.Unlock(); return p.now }})
}

func command() consent.Request {
	return consent.Request{ID: "r1", Hub: "this", Principal: consent.Principal{ID: "p1", Name: "Claude"}, Session: "s1",
		Mode: consent.ModeAsk, Folder: "/project", Capability: "shell", Action: "run", Title: "Run npm test", Exact: "npm test",
		Effects: []consent.Effect{{Kind: consent.EffectRun}}, Risk: consent.RiskNormal,
		Digest: consent.DigestOf("npm test"), Fingerprint: "f1", Containable: true, FullOffered: true,
		Rule:   consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: "shell", Action: "run", Exact: "npm test", Effects: "run"},
		Scopes: []consent.Scope{consent.Once, consent.Session, consent.Minutes15, consent.Always}}
}

// connection is what a command asks for in between: it is never asked once.
func connection() consent.Request {
	r := command()
	r.ID, r.Capability, r.Action, r.Exact, r.Command = "r3", "network", "internet", "example.org:443", "r1"
	r.Effects, r.Containable, r.FullOffered = []consent.Effect{{Kind: consent.EffectConnect}}, false, false
	r.Rule.Capability, r.Rule.Action, r.Rule.Exact, r.Rule.Effects = "network", "internet", "example.org:443", "connect"
	r.Scopes = []consent.Scope{consent.Command, consent.Session, consent.Always}
	return r
}

// broad offers a wider rule beside the exact one.
func broad(r *consent.Request) {
	r.Wide = &consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: "shell", Effects: "own read, read", Wide: true}
	r.WideWords = "reading in this folder"
}

func sessionCard() consent.Request {
	return consent.Request{ID: "r2", Hub: "this", Principal: consent.Principal{ID: "p1", Name: "Claude"}, Session: "s1",
		Capability: consent.CapabilitySession, Action: "open", Title: "Open a session", Digest: consent.DigestOf("open"), RepeatKey: "open",
		Rule: consent.Rule{Hub: "this", Principal: "p1", Capability: consent.CapabilitySession, Action: "open"}}
}

func says(a consent.Answer) func(context.Context, consent.Request) (consent.Answer, error) {
	return func(context.Context, consent.Request) (consent.Answer, error) { return a, nil }
}

func yes(s consent.Scope, c consent.Containment) consent.Answer {
	return consent.Answer{Allow: true, Choice: consent.Choice{Scope: s, Contain: c}}
}

func widely(s consent.Scope, c consent.Containment) consent.Answer {
	a := yes(s, c)
	a.Choice.Wide = true
	return a
}

// refused checks that err is a refusal of that outcome, told in one sentence.
func refused(t *testing.T, err error, want consent.Outcome) *consent.Refusal {
	t.Helper()
	var ref *consent.Refusal
	if !errors.As(err, &ref) {
		t.Fatalf("error %v is no refusal", err)
	}
	if ref.Outcome != want {
		t.Errorf("outcome %q, want %q (%s)", ref.Outcome, want, ref.Reason)
	}
	if want != consent.Cancelled && !strings.HasSuffix(ref.Reason, ".") {
		t.Errorf("reason %q is not a sentence", ref.Reason)
	}
	return ref
}

func none(t *testing.T, g consent.Grant, r consent.Request) {
	t.Helper()
	if err := g.Check(r.Digest, r.Fingerprint); !errors.Is(err, consent.ErrNoGrant) {
		t.Errorf("a refused request holds a grant: Check gave %v", err)
	}
}

func TestAskedThenRecordedThenGranted(t *testing.T) {
	p := &parts{prompt: says(yes(consent.Once, consent.Contained))}
	r := command()
	g, err := newGate(p).Authorize(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"book", "decider", "prompter", "decider", "recorder:allowed"}; !slices.Equal(p.calls, want) {
		t.Errorf("order %v, want %v", p.calls, want)
	}
	if err := g.Check(r.Digest, "f1"); err != nil {
		t.Errorf("the grant does not hold for what was asked: %v", err)
	}
	if g.Request() != "r1" || g.Choice().Contain != consent.Contained {
		t.Errorf("grant of %q with %+v", g.Request(), g.Choice())
	}
}

func TestGrantHoldsForNothingElse(t *testing.T) {
	r := command()
	var zero consent.Grant
	none(t, zero, r)
	if err := zero.Check(consent.Digest{}, ""); !errors.Is(err, consent.ErrNoGrant) {
		t.Errorf("the zero grant passes for the zero digest: %v", err)
	}
	g, err := newGate(&parts{prompt: says(yes(consent.Once, consent.Contained))}).Authorize(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(consent.DigestOf("rm -rf ."), "f1"); !errors.Is(err, consent.ErrNoGrant) {
		t.Errorf("another payload: %v", err)
	}
	if err := g.Check(r.Digest, "f2"); !errors.Is(err, consent.ErrChanged) {
		t.Errorf("another fingerprint: %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	t.Run("allowed by a rule", func(t *testing.T) {
		p := &parts{verdict: consent.Verdict{Outcome: consent.Allowed, By: "rule", Grant: "g7", Choice: consent.Choice{Scope: consent.Always, Contain: consent.Contained}}}
		g, err := newGate(p).Authorize(t.Context(), command())
		if err != nil || g.Choice().Contain != consent.Contained {
			t.Fatalf("%v, %+v", err, g.Choice())
		}
		if !slices.Equal(p.used, []string{"g7"}) || p.recorded[0].Grant != "g7" || p.recorded[0].By != "rule" {
			t.Errorf("used %v, recorded %+v", p.used, p.recorded)
		}
		if slices.Contains(p.calls, "prompter") {
			t.Error("it was asked all the same")
		}
	})
	t.Run("denied", func(t *testing.T) {
		p := &parts{verdict: consent.Verdict{Outcome: consent.Denied, By: "mode", Reason: "Only looking was allowed."}}
		g, err := newGate(p).Authorize(t.Context(), command())
		if ref := refused(t, err, consent.Denied); ref.Reason != "Only looking was allowed." || ref.By != "mode" {
			t.Errorf("%+v", ref)
		}
		none(t, g, command())
	})
}

func TestNoRecordMeansNo(t *testing.T) {
	full := errors.New("disk full")
	for name, p := range map[string]*parts{
		"asked":   {prompt: says(yes(consent.Always, consent.Contained))},
		"by rule": {verdict: consent.Verdict{Outcome: consent.Allowed, By: "rule"}},
	} {
		p.failRecord = full
		g, err := newGate(p).Authorize(t.Context(), command())
		refused(t, err, consent.Undelivered)
		none(t, g, command())
		if len(p.stored) != 0 {
			t.Errorf("%s: a permission is remembered that the record does not tell of", name)
		}
	}
	p := &parts{prompt: says(yes(consent.Once, consent.Contained)), failRecord: full}
	gate := newGate(p)
	gate.AllowNext(command(), consent.Choice{Contain: consent.Contained})
	g, err := gate.Authorize(t.Context(), command())
	refused(t, err, consent.Undelivered)
	none(t, g, command())
}

func TestBrokenPartsMeanNo(t *testing.T) {
	broken := errors.New("broken")
	for name, p := range map[string]*parts{
		"the book can't be read":    {failRead: broken, prompt: says(yes(consent.Once, consent.Contained)), verdict: consent.Verdict{Outcome: consent.Allowed}},
		"the book can't be written": {failRemember: broken, prompt: says(yes(consent.Session, consent.Contained))},
		"the prompter crashed": {prompt: func(context.Context, consent.Request) (consent.Answer, error) {
			return consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Once, Contain: consent.Contained}}, broken
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := newGate(p).Authorize(t.Context(), command())
			refused(t, err, consent.Undelivered)
			none(t, g, command())
			if n := len(p.recorded); n == 0 || p.recorded[n-1].Outcome != consent.Undelivered {
				t.Errorf("the record's last word is %+v", p.recorded)
			}
		})
	}
}

func TestExpiredSaysWhatToDo(t *testing.T) {
	p := &parts{prompt: func(context.Context, consent.Request) (consent.Answer, error) {
		return consent.Answer{}, &consent.Refusal{Outcome: consent.Expired}
	}}
	_, err := newGate(p).Authorize(t.Context(), command())
	ref := refused(t, err, consent.Expired)
	if !strings.Contains(ref.Reason, "Run npm test") || !strings.Contains(ref.Reason, "Allow next time") {
		t.Errorf("reason %q", ref.Reason)
	}
}

func TestRequestThatEnds(t *testing.T) {
	cause := errors.New("the client hung up")
	t.Run("while it is asked", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &parts{prompt: func(ctx context.Context, _ consent.Request) (consent.Answer, error) {
			cancel(cause)
			<-ctx.Done()
			return consent.Answer{}, context.Cause(ctx)
		}}
		g, err := newGate(p).Authorize(ctx, command())
		gone(t, p, g, err, cause)
	})
	t.Run("with the answer already there", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &parts{prompt: func(context.Context, consent.Request) (consent.Answer, error) {
			cancel(cause)
			return yes(consent.Always, consent.Contained), nil
		}}
		g, err := newGate(p).Authorize(ctx, command())
		gone(t, p, g, err, cause)
		if len(p.stored) != 0 {
			t.Error("a permission was remembered for a request that had gone")
		}
	})
	t.Run("just after it was recorded", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &parts{prompt: says(yes(consent.Always, consent.Contained)), onRecord: func() { cancel(cause) }}
		if _, err := newGate(p).Authorize(ctx, command()); err != nil {
			t.Fatal(err)
		}
		// It is recorded as allowed always, so that is what holds.
		if len(p.stored) != 1 || len(p.recorded) != 1 {
			t.Errorf("stored %+v, recorded %+v", p.stored, p.recorded)
		}
	})
	t.Run("before it began", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		p := &parts{}
		g, err := newGate(p).Authorize(ctx, command())
		gone(t, p, g, err, cause)
	})
}

func gone(t *testing.T, p *parts, g consent.Grant, err, cause error) {
	t.Helper()
	if !errors.Is(err, cause) {
		t.Errorf("error %v, want the request's own cause", err)
	}
	none(t, g, command())
	if len(p.recorded) != 1 || p.recorded[0].Outcome != consent.Cancelled {
		t.Errorf("recorded %+v, want one cancelled", p.recorded)
	}
}

// Hiding a button is not a check: the gate holds each answer against what its
// card offered.
func TestAnswersThatWereNotOffered(t *testing.T) {
	contained := func(r *consent.Request) { r.FullOffered = false }
	onlyFull := func(r *consent.Request) { r.Containable = false }
	once := func(r *consent.Request) { r.Scopes = []consent.Scope{consent.Once} }
	network := func(r *consent.Request) { *r = connection() }
	orphan := func(r *consent.Request) { *r = connection(); r.Command = "" }
	notWide := func(r *consent.Request) { broad(r); r.Wide.Wide = false }
	highWide := func(r *consent.Request) { broad(r); r.Risk = consent.RiskHigh }
	high := func(r *consent.Request) { r.Risk = consent.RiskHigh }
	file := func(r *consent.Request) { r.Containable, r.FullOffered, r.Action = false, false, "write" }
	cases := []struct {
		name   string
		change func(*consent.Request)
		answer consent.Answer
		ok     bool
	}{
		{"once, contained", nil, yes(consent.Once, consent.Contained), true},
		{"session, full", nil, yes(consent.Session, consent.FullAccess), true},
		{"always, contained", nil, yes(consent.Always, consent.Contained), true},
		{"15 minutes, contained", nil, yes(consent.Minutes15, consent.Contained), true},
		{"no scope", nil, yes("", consent.Contained), false},
		{"a scope of no kind", nil, yes("forever", consent.Contained), false},
		{"once where nothing else is offered", once, yes(consent.Once, consent.Contained), true},
		{"session not offered", once, yes(consent.Session, consent.Contained), false},
		{"always not offered", once, yes(consent.Always, consent.Contained), false},
		{"always, full", nil, yes(consent.Always, consent.FullAccess), false},
		{"15 minutes, full", nil, yes(consent.Minutes15, consent.FullAccess), false},
		{"full not offered", contained, yes(consent.Once, consent.FullAccess), false},
		{"contained not possible", onlyFull, yes(consent.Once, consent.Contained), false},
		{"neither contained nor full", nil, yes(consent.Once, ""), false},
		{"neither, where only full can be", onlyFull, yes(consent.Once, ""), false},
		{"a containment of no kind", nil, yes(consent.Once, "mostly"), false},
		{"always, at high risk", high, yes(consent.Always, consent.Contained), false},
		{"session, at high risk", high, yes(consent.Session, consent.Contained), true},
		{"a file, once", file, yes(consent.Once, ""), true},
		{"a file, full", file, yes(consent.Once, consent.FullAccess), false},
		{"nothing offered", func(r *consent.Request) { r.Scopes = nil }, yes(consent.Once, consent.Contained), false},
		{"a connection, for its command", network, yes(consent.Command, ""), true},
		{"a connection, this session", network, yes(consent.Session, ""), true},
		{"a connection, once", network, yes(consent.Once, ""), false},
		{"a connection of no command", orphan, yes(consent.Command, ""), false},
		{"for a command where that is not offered", nil, yes(consent.Command, consent.Contained), false},
		{"the broader rule", broad, widely(consent.Always, consent.Contained), true},
		{"the broader rule, this session", broad, widely(consent.Session, consent.Contained), true},
		{"the broader rule, not offered", nil, widely(consent.Always, consent.Contained), false},
		{"a broader rule that is none", notWide, widely(consent.Always, consent.Contained), false},
		{"the broader rule, once", broad, widely(consent.Once, consent.Contained), false},
		{"the broader rule, full", broad, widely(consent.Session, consent.FullAccess), false},
		{"the broader rule, at high risk", highWide, widely(consent.Session, consent.Contained), false},
		{"allowed, and the session ended", nil, consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Once, Contain: consent.Contained, End: true}}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &parts{prompt: says(c.answer)}
			r := command()
			if c.change != nil {
				c.change(&r)
			}
			g, err := newGate(p).Authorize(t.Context(), r)
			if c.ok {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			refused(t, err, consent.Undelivered)
			none(t, g, r)
			if len(p.stored) != 0 {
				t.Error("it was remembered")
			}
		})
	}
	for name, c := range map[string]consent.Choice{
		"no mode":           {Folder: "/project", Scope: consent.Session},
		"a mode of no kind": {Folder: "/project", Mode: "root"},
		"no folder":         {Mode: consent.ModeWork},
		"a broader rule":    {Mode: consent.ModeWork, Folder: "/project", Wide: true},
		"and ended":         {Mode: consent.ModeWork, Folder: "/project", End: true},
	} {
		t.Run("session card, "+name, func(t *testing.T) {
			p := &parts{prompt: says(consent.Answer{Allow: true, Choice: c})}
			g, err := newGate(p).Authorize(t.Context(), sessionCard())
			refused(t, err, consent.Undelivered)
			none(t, g, sessionCard())
		})
	}
}

// What is switched off, or paused, while its card is open is not run by an
// answer to it.
func TestDenialWhileTheCardIsOpen(t *testing.T) {
	p := &parts{}
	p.prompt = func(context.Context, consent.Request) (consent.Answer, error) {
		p.verdict = consent.Verdict{Outcome: consent.Denied, By: "settings", Reason: "Commands are switched off."}
		return yes(consent.Session, consent.Contained), nil
	}
	g, err := newGate(p).Authorize(t.Context(), command())
	if ref := refused(t, err, consent.Denied); ref.By != "settings" {
		t.Errorf("%+v", ref)
	}
	none(t, g, command())
	if len(p.stored) != 0 || len(p.recorded) != 1 || p.recorded[0].Outcome != consent.Denied {
		t.Errorf("remembered %+v, recorded %+v", p.stored, p.recorded)
	}
}

func TestManyAtOnce(t *testing.T) {
	p := &parts{prompt: says(yes(consent.Once, consent.Contained))}
	gate := newGate(p)
	gate.AllowNext(command(), consent.Choice{Contain: consent.Contained})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			r := command()
			r.ID = fmt.Sprint(i)
			if g, err := gate.Authorize(t.Context(), r); err != nil || g.Request() != r.ID {
				t.Errorf("%v, %q", err, g.Request())
			}
		})
	}
	wg.Wait()
	next := 0
	for _, d := range p.recorded {
		if d.By == "allow-next" {
			next++
		}
	}
	if len(p.recorded) != 64 || next != 1 {
		t.Errorf("%d recorded, %d of them allowed next", len(p.recorded), next)
	}
}

func TestGateNeedsItsParts(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a gate without a recorder was made")
		}
	}()
	p := &parts{}
	consent.New(consent.Options{Decider: p, Prompter: p, Book: p})
}

func TestDigest(t *testing.T) {
	a := consent.DigestOf(map[string]string{"A": "1", "B": "2"})
	if b := consent.DigestOf(map[string]string{"B": "2", "A": "1"}); a != b {
		t.Error("equal payloads have different digests")
	}
	if b := consent.DigestOf([]string{"a b"}); b == consent.DigestOf([]string{"a", "b"}) {
		t.Error("different payloads have one digest")
	}
}

// The record tells where a person's answer was given.
func TestRecordTellsWhereItWasAnswered(t *testing.T) {
	for _, allow := range []bool{true, false} {
		a := yes(consent.Once, consent.Contained)
		a.Allow, a.Via = allow, "terminal"
		p := &parts{prompt: says(a)}
		_, err := newGate(p).Authorize(t.Context(), command())
		if (err == nil) != allow || len(p.recorded) != 1 || p.recorded[0].By != "you" || p.recorded[0].Via != "terminal" {
			t.Errorf("%v, recorded %+v", err, p.recorded)
		}
	}
}

// A question that is asked anew is another one: an answer to what was shown
// before is none to it.
func TestAskedAnewIsAnotherQuestion(t *testing.T) {
	p := &parts{}
	var cards []string
	p.prompt = func(_ context.Context, r consent.Request) (consent.Answer, error) {
		if cards = append(cards, r.Card); len(cards) < 3 {
			return consent.Answer{}, consent.ErrAgain
		}
		return yes(consent.Once, consent.Contained), nil
	}
	g, err := newGate(p).Authorize(t.Context(), command())
	if err != nil || g.Request() != "r1" {
		t.Errorf("%v, %q", err, g.Request())
	}
	if len(cards) != 3 || cards[0] != "" || cards[1] == "" || cards[2] == "" || cards[1] == cards[2] {
		t.Errorf("asked as %q", cards)
	}
}

// What is remembered while a question waits decides it: it is judged again, and
// recorded once, by its rule.
func TestJudgedAgain(t *testing.T) {
	p := &parts{}
	p.prompt = func(context.Context, consent.Request) (consent.Answer, error) {
		p.verdict = consent.Verdict{Outcome: consent.Denied, By: "rule", Grant: "g1", Reason: "declined for the session"}
		return consent.Answer{}, fmt.Errorf("wrapped: %w", consent.ErrAgain)
	}
	_, err := newGate(p).Authorize(t.Context(), command())
	var ref *consent.Refusal
	if !errors.As(err, &ref) || ref.Outcome != consent.Denied || ref.By != "rule" {
		t.Errorf("%v", err)
	}
	if want := []string{"book", "decider", "prompter", "book", "decider", "recorder:denied"}; !slices.Equal(p.calls, want) {
		t.Errorf("calls %v, want %v", p.calls, want)
	}
	p.verdict, p.calls = consent.Verdict{}, nil
	p.prompt = func(context.Context, consent.Request) (consent.Answer, error) {
		p.verdict = consent.Verdict{Outcome: consent.Allowed, By: "rule", Grant: "g2", Choice: consent.Choice{Scope: consent.Session, Contain: consent.Contained}}
		return consent.Answer{}, consent.ErrAgain
	}
	g, err := newGate(p).Authorize(t.Context(), command())
	if err != nil || g.By() != "rule" || !slices.Equal(p.used, []string{"g2"}) || g.Check(consent.DigestOf("npm test"), "f1") != nil {
		t.Errorf("%v, by %q, used %v", err, g.By(), p.used)
	}
}
