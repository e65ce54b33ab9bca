package capabilitytest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Suite is what Run needs to know of an executor.
type Suite struct {
	// New makes one; Run closes it.
	New func(t testing.TB) capabilities.Capability
	// Small prepares a call that ends well within a few seconds and changes
	// something below the session's folder or sends at least one frame.
	Small func(t testing.TB, s *capabilities.Session) capabilities.Call
	// Change alters what Small's Describe looked at. Nil only where there is
	// nothing to look at.
	Change func(t testing.TB, s *capabilities.Session)
	// Large prepares a call that sends at least LargeBytes of contents, and ends.
	Large func(t testing.TB, s *capabilities.Session) capabilities.Call
	// Long prepares a call that keeps sending and does not end by itself within
	// a minute while its reader stalls. Nil: Large, whose sender then waits.
	Long func(t testing.TB, s *capabilities.Session) capabilities.Call
	// Choice is what the person chose for every call; the zero value is Once.
	Choice consent.Choice
}

// LargeBytes is the least that Suite.Large sends.
const LargeBytes = 24 << 20

// Prompt is how soon an executor has to be back once it was told to stop.
const Prompt = 3 * time.Second

// maxGrowth is how much more heap a large reply may take.
const maxGrowth = 12 << 20

// Run is the suite every executor passes.
func Run(t *testing.T, s Suite) {
	cases := []struct {
		name string
		run  func(*testing.T, Suite, capabilities.Capability)
	}{
		{"describes without changing anything", describes},
		{"refuses the zero grant", refusesZero},
		{"refuses a grant of another digest", refusesOther},
		{"asks again when what was shown has changed", asksAgain},
		{"runs with its grant", runs},
		{"cancels promptly", cancels},
		{"ends when nobody reads any more", gone},
		{"bounds its output", bounds},
		{"ends with its session", endsSession},
		{"closes with work under way", closes},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			capability := s.New(t)
			defer func() {
				if err := capability.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			c.run(t, s, capability)
		})
	}
}

func describe(t *testing.T, c capabilities.Capability, call capabilities.Call) capabilities.Description {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	d, err := c.Describe(ctx, call)
	if err != nil {
		t.Fatalf("Describe: %v", err)
	}
	if took := time.Since(begin); took > Prompt {
		t.Errorf("Describe took %v", took)
	}
	return d
}

func describes(t *testing.T, s Suite, c capabilities.Capability) {
	if c.Name() == "" || len(c.Types()) == 0 {
		t.Error("no name or no types")
	}
	capabilities.NewRegistry(c) // panics on types taken twice
	ses := NewSession(t, consent.ModeWork)
	call := s.Small(t, ses)
	before := Tree(t, ses.Folder)
	d := describe(t, c, call)
	if after := Tree(t, ses.Folder); after != before {
		t.Errorf("Describe changed the folder:\n%s\nwas\n%s", after, before)
	}
	if d.Action == "" || d.Title == "" || d.Exact == "" {
		t.Errorf("action %q, title %q, exact %q: none may be empty", d.Action, d.Title, d.Exact)
	}
	if strings.Count(d.Sentence, "%s") != 1 {
		t.Errorf("sentence %q must hold one %%s, for the name", d.Sentence)
	}
	if len(d.Effects) == 0 || d.Risk < consent.RiskLow || d.Risk > consent.RiskHigh {
		t.Errorf("effects %v, risk %d", d.Effects, d.Risk)
	}
	for _, scope := range d.Scopes {
		if scope == consent.Once || scope == consent.Always && d.Risk == consent.RiskHigh {
			t.Errorf("scope %q must not be in the description", scope)
		}
	}
	again := describe(t, c, call)
	if consent.DigestOf(again.Payload) != consent.DigestOf(d.Payload) || again.Fingerprint != d.Fingerprint {
		t.Error("the same call was described differently the second time")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	begin := time.Now()
	_, _ = c.Describe(ctx, call)
	if took := time.Since(begin); took > Prompt {
		t.Errorf("Describe took %v although its context had ended", took)
	}
}

// refused runs call with g and wants the error, and that nothing happened.
func refused(t *testing.T, c capabilities.Capability, call capabilities.Call, g consent.Grant, want error) {
	t.Helper()
	before, out := Tree(t, call.Session.Folder), &Output{}
	_, err := c.Run(context.Background(), call, g, out)
	if !errors.Is(err, want) {
		t.Errorf("Run gave %v, want %v", err, want)
	}
	if n := len(out.Frames()); n != 0 {
		t.Errorf("%d frames were sent", n)
	}
	if after := Tree(t, call.Session.Folder); after != before {
		t.Errorf("the folder was changed:\n%s\nwas\n%s", after, before)
	}
}

func refusesZero(t *testing.T, s Suite, c capabilities.Capability) {
	call := s.Small(t, NewSession(t, consent.ModeWork))
	refused(t, c, call, consent.Grant{}, consent.ErrNoGrant)
}

func refusesOther(t *testing.T, s Suite, c capabilities.Capability) {
	call := s.Small(t, NewSession(t, consent.ModeWork))
	d := describe(t, c, call)
	d.Payload = map[string]any{"another": d.Payload}
	refused(t, c, call, GrantWith(t, call.Session, c.Name(), d, s.Choice), consent.ErrNoGrant)
}

func asksAgain(t *testing.T, s Suite, c capabilities.Capability) {
	ses := NewSession(t, consent.ModeWork)
	call := s.Small(t, ses)
	d := describe(t, c, call)
	other := d
	other.Fingerprint += "x"
	refused(t, c, call, GrantWith(t, ses, c.Name(), other, s.Choice), consent.ErrChanged)
	if s.Change == nil {
		return
	}
	g := GrantWith(t, ses, c.Name(), d, s.Choice)
	s.Change(t, ses)
	refused(t, c, call, g, consent.ErrChanged)
}

func runs(t *testing.T, s Suite, c capabilities.Capability) {
	ses := NewSession(t, consent.ModeWork)
	call := s.Small(t, ses)
	d := describe(t, c, call)
	before, out := Tree(t, ses.Folder), &Output{}
	res, err := c.Run(context.Background(), call, GrantWith(t, ses, c.Name(), d, s.Choice), out)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	if len(out.Frames()) == 0 && Tree(t, ses.Folder) == before {
		t.Error("nothing was sent and nothing was changed")
	}
	checkReply(t, call, res, out)
	if res.Outcome == "" {
		t.Error("the result has no words for the record")
	}
}

// checkReply holds a reply against the wire: right types, valid, bounded.
func checkReply(t *testing.T, call capabilities.Call, res capabilities.Result, out *Output) {
	t.Helper()
	for _, f := range out.Frames() {
		if !wire.Replies(call.Type, f.Type) || wire.Terminal(f.Type) {
			t.Errorf("%s does not come before the end of a reply to %s", f.Type, call.Type)
		}
	}
	if !wire.Replies(call.Type, res.Type) || !wire.Terminal(res.Type) {
		t.Errorf("%s does not end a reply to %s", res.Type, call.Type)
	} else if res.Payload == nil {
		t.Error("the result has no payload")
	} else if err := res.Payload.Validate(); err != nil {
		t.Errorf("the result is not valid: %v", err)
	}
	if n := out.Largest(); n > wire.MaxChunk {
		t.Errorf("a piece of %d bytes, at most %d are allowed", n, wire.MaxChunk)
	}
	if n := len(res.Output); n > 1<<20 {
		t.Errorf("%d bytes of output kept for the detail", n)
	}
}

type ended struct {
	res capabilities.Result
	err error
}

// start runs the suite's long call in the background, and returns once it has
// sent something.
func start(ctx context.Context, t *testing.T, s Suite, c capabilities.Capability, out *Output) (*capabilities.Session, chan ended) {
	t.Helper()
	ses := NewSession(t, consent.ModeWork)
	prepare := s.Long
	if prepare == nil {
		prepare = s.Large
	}
	call := prepare(t, ses)
	g := GrantWith(t, ses, c.Name(), describe(t, c, call), s.Choice)
	done := make(chan ended, 1)
	go func() {
		res, err := c.Run(ctx, call, g, out)
		done <- ended{res, err}
	}()
	for deadline := time.Now().Add(10 * time.Second); out.Bytes() == 0; time.Sleep(time.Millisecond) {
		select {
		case e := <-done:
			t.Fatalf("the long call ended before it sent anything: %v", e.err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the long call sent nothing in 10 s")
		}
	}
	return ses, done
}

// soon wants the call to be over, with an error.
func soon(t *testing.T, done chan ended, what string) {
	t.Helper()
	select {
	case e := <-done:
		if e.err == nil {
			t.Errorf("%s: Run ended without an error", what)
		}
	case <-time.After(Prompt):
		t.Errorf("%s: Run is not back after %v", what, Prompt)
		<-done
	}
}

func cancels(t *testing.T, s Suite, c capabilities.Capability) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ses, done := start(ctx, t, s, c, &Output{Stall: 1})
	cancel()
	soon(t, done, "cancelled")
	if n := c.Running(ses.ID); n != 0 {
		t.Errorf("%d still run in the session after a cancel", n)
	}
}

func gone(t *testing.T, s Suite, c capabilities.Capability) {
	out := &Output{}
	out.Hook = func(Frame) error {
		if out.Bytes() > 0 {
			return ErrGone
		}
		return nil
	}
	_, done := start(context.Background(), t, s, c, out)
	soon(t, done, "nobody reads")
}

func bounds(t *testing.T, s Suite, c capabilities.Capability) {
	ses := NewSession(t, consent.ModeWork)
	call := s.Large(t, ses)
	g := GrantWith(t, ses, c.Name(), describe(t, c, call), s.Choice)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var mu sync.Mutex // guards peak and seen: an executor may send from several goroutines
	var peak, seen uint64
	out := &Output{Discard: true}
	out.Hook = func(Frame) error {
		mu.Lock()
		defer mu.Unlock()
		// A collection now and then, so that what is measured is held, not
		// just not yet collected.
		if seen++; seen%64 == 0 {
			peak = max(peak, heap())
		}
		return nil
	}
	res, err := c.Run(context.Background(), call, g, out)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	peak = max(peak, heap())
	if out.Bytes() < LargeBytes {
		t.Errorf("%d bytes came, the suite needs %d", out.Bytes(), LargeBytes)
	}
	if peak > before+maxGrowth {
		t.Errorf("the heap grew by %d MiB", (peak-before)>>20)
	}
	checkReply(t, call, res, out)
}

func endsSession(t *testing.T, s Suite, c capabilities.Capability) {
	ses, done := start(context.Background(), t, s, c, &Output{Stall: 1})
	ctx, cancel := context.WithTimeout(context.Background(), Prompt)
	defer cancel()
	if err := c.EndSession(ctx, "another"); err != nil {
		t.Errorf("EndSession of a session without work: %v", err)
	}
	select {
	case e := <-done:
		t.Fatalf("the end of another session ended this one: %v", e.err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := c.EndSession(ctx, ses.ID); err != nil {
		t.Errorf("EndSession: %v", err)
	}
	soon(t, done, "session ended")
	if n := c.Running(ses.ID); n != 0 {
		t.Errorf("%d still run after the session's end", n)
	}
}

func closes(t *testing.T, s Suite, c capabilities.Capability) {
	_, done := start(context.Background(), t, s, c, &Output{Stall: 1})
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	soon(t, done, "closed")
}
