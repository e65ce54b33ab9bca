package consent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Verdict is what the policy says of a request.
type Verdict struct {
	Outcome Outcome // Allowed, Denied, or "" for: ask
	By      string
	Reason  string
	Grant   string // id of the stored grant that decided
	Choice  Choice // for Allowed
}

// Decider judges a request against what is remembered. It is pure.
type Decider interface {
	Decide(r Request, remembered []Stored, now time.Time) Verdict
}

// Prompter asks the person and waits for the answer, at most until
// r.Deadline. It returns a *Refusal for Expired and Undelivered, ErrAgain where
// there is nothing to ask any more, and ctx's error when the request ended
// first. Any other error counts as undelivered.
type Prompter interface {
	Prompt(ctx context.Context, r Request) (Answer, error)
}

// ErrAgain is a Prompter's: what was remembered while the question waited
// decides it now, so the request is judged again.
var ErrAgain = errors.New("what is remembered decides it now")

// Recorder writes a decision to the record. When it fails nothing runs.
type Recorder interface {
	Decided(ctx context.Context, r Request, d Decision) error
}

// Book keeps remembered decisions.
type Book interface {
	// Remembered returns the live grants of r's hub and principal.
	Remembered(ctx context.Context, hub, principal string) ([]Stored, error)
	Remember(ctx context.Context, s Stored) error
	Used(ctx context.Context, id string, at time.Time) error
}

// Options build a Gate. All four parts are needed.
type Options struct {
	Decider  Decider
	Prompter Prompter
	Recorder Recorder
	Book     Book
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
}

// Gate is the one way to a Grant. It is safe for concurrent use.
type Gate struct {
	o Options

	mu sync.Mutex
	// next holds payloads that the person allowed after their card had gone:
	// each runs once without asking. Guarded by mu.
	next map[string]allowNext
}

type allowNext struct {
	choice Choice
	given  time.Time
}

// NextTime is how long "Allow next time" holds.
const NextTime = 10 * time.Minute

// New makes a Gate; it panics when a part is missing, which is a mistake of
// the caller.
func New(o Options) *Gate {
	if o.Decider == nil || o.Prompter == nil || o.Recorder == nil || o.Book == nil {
		panic("consent: gate needs decider, prompter, recorder and book")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Gate{o: o, next: map[string]allowNext{}}
}

// Authorize decides r: by rule, by mode, or by asking. What the person allowed
// for next time stands in for the question, never for a rule: a denial, or a
// pause, holds against it. The decision is recorded before anything else is
// done with it. The error is a *Refusal, or ctx's error when the request ended
// before it was granted (recorded as cancelled).
func (g *Gate) Authorize(ctx context.Context, r Request) (Grant, error) {
	for {
		grant, err := g.judge(ctx, r)
		if !errors.Is(err, ErrAgain) {
			return grant, err
		}
		r.Card = NewID()
	}
}

func (g *Gate) judge(ctx context.Context, r Request) (Grant, error) {
	now := g.o.Now()
	remembered, err := g.o.Book.Remembered(ctx, r.Hub, r.Principal.ID)
	if err != nil {
		if ctx.Err() != nil {
			return Grant{}, g.gone(ctx, r)
		}
		g.o.Log.Error("Grants could not be read", "err", err)
		return Grant{}, g.refuse(ctx, r, Decision{Outcome: Undelivered, By: "limit", Reason: "This computer could not read its list of permissions, so nothing was run."})
	}
	v := g.o.Decider.Decide(r, remembered, now)
	switch v.Outcome {
	case Allowed:
		if v.Grant != "" {
			if err := g.o.Book.Used(ctx, v.Grant, now); err != nil {
				g.o.Log.Warn("Last use of a grant could not be noted", "err", err)
			}
		}
		return g.grant(ctx, r, Decision{Outcome: Allowed, By: v.By, Reason: v.Reason, Grant: v.Grant, Choice: v.Choice})
	case Denied:
		return Grant{}, g.refuse(ctx, r, Decision{Outcome: Denied, By: v.By, Reason: v.Reason, Grant: v.Grant})
	}
	// What can't be had any more, or is switched off since, is asked about.
	if n, ok := g.takeNext(r, now); ok && checkContain(r, n.choice.Contain) == nil {
		return g.grant(ctx, r, Decision{Outcome: Allowed, By: "allow-next", Reason: "allowed in Activity after the earlier card had closed", Choice: n.choice})
	}
	return g.ask(ctx, r)
}

func (g *Gate) ask(ctx context.Context, r Request) (Grant, error) {
	a, err := g.o.Prompter.Prompt(ctx, r)
	if err != nil {
		var ref *Refusal
		switch {
		case errors.Is(err, ErrAgain):
			return Grant{}, ErrAgain
		case errors.As(err, &ref):
			reason := ref.Reason
			if ref.Outcome == Expired && reason == "" {
				reason = expiredSentence(r)
			}
			return Grant{}, g.refuse(ctx, r, Decision{Outcome: ref.Outcome, By: "limit", Reason: reason})
		case ctx.Err() != nil:
			return Grant{}, g.gone(ctx, r)
		default:
			g.o.Log.Error("A card could not be shown", "err", err)
			return Grant{}, g.refuse(ctx, r, Decision{Outcome: Undelivered, By: "limit", Reason: "This computer could not show the question to anybody, so nothing was run."})
		}
	}
	if !a.Allow {
		if denialHolds(r, a.Choice.Scope) {
			if err := g.remember(ctx, r, a, true); err != nil {
				g.o.Log.Warn("A denial could not be remembered", "err", err)
			}
		}
		return Grant{}, g.refuse(ctx, r, Decision{Outcome: Denied, By: "you", Via: a.Via, Reason: deniedSentence(r), Choice: a.Choice})
	}
	if err := checkAnswer(r, a); err != nil {
		g.o.Log.Warn("An answer did not fit its question", "err", err)
		return Grant{}, g.refuse(ctx, r, Decision{Outcome: Undelivered, By: "limit", Reason: "The answer did not fit the question, so nothing was run."})
	}
	// What was switched off, or paused, while the card was open holds.
	if v := g.o.Decider.Decide(r, nil, g.o.Now()); v.Outcome == Denied {
		return Grant{}, g.refuse(ctx, r, Decision{Outcome: Denied, By: v.By, Reason: v.Reason})
	}
	// Recorded first: nothing is remembered that the record does not tell of.
	grant, err := g.grant(ctx, r, Decision{Outcome: Allowed, By: "you", Via: a.Via, Choice: a.Choice})
	if err != nil {
		return Grant{}, err
	}
	if err := g.remember(ctx, r, a, false); err != nil {
		g.o.Log.Error("A permission could not be stored", "err", err)
		return Grant{}, g.refuse(ctx, r, Decision{Outcome: Undelivered, By: "limit", Reason: "This computer could not store the permission, so nothing was run."})
	}
	return grant, nil
}

// gone records that the request ended first, and returns why.
func (g *Gate) gone(ctx context.Context, r Request) error {
	_ = g.refuse(ctx, r, Decision{Outcome: Cancelled, By: "limit", Reason: "The request ended before anybody answered."})
	return context.Cause(ctx)
}

// denialHolds tells whether a denial is remembered: for the session, and for
// a session's own card for 15 minutes.
func denialHolds(r Request, s Scope) bool {
	if r.Capability == CapabilitySession {
		return s == Minutes15
	}
	return s == Session
}

// checkAnswer holds what allows against what its card offered: hiding a button
// is not a check. A denial is one whatever else it says.
func checkAnswer(r Request, a Answer) error {
	c := a.Choice
	if c.End {
		return errors.New("an answer that allows, and ends the session")
	}
	if r.Capability == CapabilitySession {
		switch {
		case c.Mode != ModeLook && c.Mode != ModeWork && c.Mode != ModeAsk && c.Mode != ModeTrusted, c.Folder == "":
			return errors.New("session answer without mode or folder")
		case r.FolderOnly && c.Folder != r.Folder:
			return errors.New("session answer with another folder than the only one")
		case c.Wide:
			return errors.New("session answer with a rule")
		}
		return nil
	}
	switch {
	case c.Scope == "":
		return errors.New("answer without scope")
	case !slices.Contains(r.Scopes, c.Scope):
		return errors.New("scope was not offered")
	case c.Scope == Command && r.Command == "":
		return errors.New("there is no command for it to hold for")
	case c.Contain == FullAccess && c.Scope != Once && c.Scope != Session:
		return errors.New("full access is at most for a session")
	case c.Scope == Always && r.Risk >= RiskHigh:
		return errors.New("high risk is not allowed always")
	}
	if err := checkContain(r, c.Contain); err != nil {
		return err
	}
	if err := checkScreens(r, c.Screens); err != nil {
		return err
	}
	if !c.Wide {
		return nil
	}
	switch {
	case r.Wide == nil || !r.Wide.Wide:
		return errors.New("the broader rule was not offered")
	case c.Scope == Once || c.Scope == Command:
		return errors.New("a broader rule that would not be remembered")
	case c.Contain == FullAccess:
		return errors.New("full access is for one exact text")
	case r.Risk >= RiskHigh:
		return errors.New("high risk is allowed by its exact text only")
	}
	return nil
}

// checkScreens holds the screens that were chosen against those of the card.
func checkScreens(r Request, screens string) error {
	chosen := SplitScreens(screens)
	if len(r.Screens) == 0 && len(chosen) == 0 {
		return nil
	}
	if len(chosen) == 0 {
		return errors.New("no screen was chosen")
	}
	for _, name := range chosen {
		if !slices.ContainsFunc(r.Screens, func(s Screen) bool { return s.Name == name }) {
			return errors.New("a screen that was not offered")
		}
	}
	return nil
}

// checkContain tells whether r may run there.
func checkContain(r Request, c Containment) error {
	switch {
	case c != "" && c != Contained && c != FullAccess:
		return errors.New("containment is not known")
	case c == "" && (r.Containable || r.FullOffered):
		return errors.New("answer without containment")
	case c == FullAccess && !r.FullOffered:
		return errors.New("full access was not offered")
	case c == Contained && !r.Containable:
		return errors.New("containment is not possible")
	}
	return nil
}

// CapabilitySession is the capability of the session card itself.
const CapabilitySession = "session"

// The capabilities that the policy knows by name.
const (
	CapabilityFiles   = "files"
	CapabilityShell   = "shell"
	CapabilityNetwork = "network"
	// CapabilityComputer is the screen, mouse and keyboard, windows and the
	// clipboard.
	CapabilityComputer = "computer"
)

// CapabilityFolders is the capability of looking for a folder to lend. Its
// permission belongs to no session: "this session" is as long as the program
// runs.
const CapabilityFolders = "folders"

// remember stores what holds beyond this request. It is a short write that the
// request's end does not cut off.
func (g *Gate) remember(ctx context.Context, r Request, a Answer, deny bool) error {
	ctx = context.WithoutCancel(ctx)
	now := g.o.Now()
	s := Stored{ID: NewID(), Rule: r.Rule, Deny: deny, Scope: a.Choice.Scope, Choice: a.Choice, Name: r.Principal.Name, Created: now, LastUsed: now}
	if deny {
		s.Choice = Choice{Scope: a.Choice.Scope}
	}
	switch {
	case r.Capability == CapabilitySession && deny:
		// It is the program that is not to ask again, whatever folder it names;
		// but where the folder is all that was asked for, it is about that.
		if !r.FolderOnly {
			s.Rule.Folder = ""
		}
	case r.Capability == CapabilitySession:
		if !a.Choice.Remember {
			return nil
		}
		s.Scope, s.Rule.Folder = Always, a.Choice.Folder
		if s.Choice.Mode == ModeTrusted {
			s.Choice.Mode = ModeWork // trust is given each time, and ends
		}
	case deny:
		// What was declined is the text, whatever it would do the next time.
		s.Rule.Effects = ""
	default:
		if a.Choice.Wide {
			s.Rule = *r.Wide
		}
		if len(r.Screens) > 0 {
			s.Rule.Exact = ScreensRule(a.Choice.Screens)
		}
		s.Rule.Contain = a.Choice.Contain
		if s.Rule.Contain == FullAccess {
			s.Rule.Looked = r.Fingerprint
		}
	}
	switch s.Scope {
	case Command:
		s.Session = r.Command
	case Session:
		s.Session = r.Session
	case Minutes15:
		s.Expires = now.Add(TrustedFor)
	case Always:
	default:
		return nil
	}
	return g.o.Book.Remember(ctx, s)
}

func (g *Gate) grant(ctx context.Context, r Request, d Decision) (Grant, error) {
	if ctx.Err() != nil {
		return Grant{}, g.gone(ctx, r)
	}
	if err := g.o.Recorder.Decided(context.WithoutCancel(ctx), r, d); err != nil {
		g.o.Log.Error("A decision could not be recorded", "err", err)
		return Grant{}, Refuse(Undelivered, "This computer could not write its record (is the disk full?), so nothing was run.")
	}
	return Grant{request: r.ID, digest: r.Digest, fingerprint: r.Fingerprint, choice: d.Choice, by: d.By, valid: true}, nil
}

func (g *Gate) refuse(ctx context.Context, r Request, d Decision) error {
	if err := g.o.Recorder.Decided(context.WithoutCancel(ctx), r, d); err != nil {
		g.o.Log.Error("A refusal could not be recorded", "err", err)
	}
	return &Refusal{Outcome: d.Outcome, Reason: d.Reason, By: d.By}
}

// AllowNext lets r's exact payload run once without asking, within NextTime:
// the answer to an Activity entry whose card has gone.
func (g *Gate) AllowNext(r Request, c Choice) {
	if c.Scope == "" {
		c.Scope = Once
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.o.Now()
	for k, n := range g.next {
		if Over(n.given, now, NextTime) {
			delete(g.next, k)
		}
	}
	g.next[nextKey(r)] = allowNext{choice: c, given: now}
}

func (g *Gate) takeNext(r Request, now time.Time) (allowNext, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := nextKey(r)
	n, ok := g.next[k]
	if !ok {
		return n, false
	}
	delete(g.next, k)
	return n, !Over(n.given, now, NextTime)
}

// nextKey names what was on the card: the payload, and what was looked at for
// it. Where that is different now, the person is asked again.
func nextKey(r Request) string {
	scope := r.Session
	if r.RepeatKey != "" {
		scope = r.RepeatKey
	}
	b, _ := json.Marshal([]string{r.Hub, r.Principal.ID, scope, r.Capability, r.Action, r.Digest.String(), r.Fingerprint})
	return string(b)
}

// NewID is a random name of 26 letters and digits.
func NewID() string { return rand.Text() }

// Grant is the right to run one exact payload once. Its zero value is refused.
// Only a Gate makes a valid one.
type Grant struct {
	request     string
	digest      Digest
	fingerprint string
	choice      Choice
	by          string
	valid       bool
}

// ErrNoGrant means that an executor was called without a grant for what it
// was asked to do: a mistake in the program, never a person's answer.
var ErrNoGrant = errors.New("no grant for this payload")

// ErrChanged means that what was looked at for the card is different now, so
// the person has to be asked again.
var ErrChanged = errors.New("what was shown has changed")

// Check is what every executor calls first, with the digest of what it is
// about to run and the fingerprint of what it finds now.
func (g Grant) Check(d Digest, fingerprint string) error {
	if !g.valid || g.digest != d {
		return ErrNoGrant
	}
	if g.fingerprint != fingerprint {
		return ErrChanged
	}
	return nil
}

// Request is the id of the request that was granted; "" for the zero value.
func (g Grant) Request() string { return g.request }

// Choice is what the person, or the rule, chose.
func (g Grant) Choice() Choice { return g.choice }

// By is Decision.By of the decision it comes from.
func (g Grant) By() string { return g.by }
