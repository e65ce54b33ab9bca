package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/capabilities/files"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel"
	hubstore "localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// rig is a machine whose dispatcher is joined to a real hub.
type rig struct {
	t      *testing.T
	m      *Machine
	probe  *probe
	person *person
	pair   *tunneltest.Pair
	folder string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, m: newMachine(t), probe: &probe{}}
	r.m.o.Executors = []capabilities.Capability{r.probe}
	r.m.registry = capabilities.NewRegistry(r.m.sessions, r.probe)
	r.m.link.view.id, r.m.link.view.hub.Name = settings.HubThis, "This computer only"
	r.person = &person{m: r.m, answer: func(q consent.Request) (consent.Answer, bool) {
		c := consent.Choice{Scope: consent.Once}
		if q.Capability == consent.CapabilitySession {
			c = consent.Choice{Scope: consent.Session, Mode: consent.ModeWork, Folder: r.folder}
		}
		return consent.Answer{Allow: true, Choice: c, Via: "card"}, true
	}}
	r.m.asks.Add(r.person)
	home, err := os.UserHomeDir()
	must(t, err)
	r.folder = home + "/project"
	must(t, os.Mkdir(r.folder, 0o755))
	t.Cleanup(func() {
		r.m.sessions.endAll(context.Background(), "The test is over.")
		r.m.cancel()
		r.m.wg.Wait()
	})
	r.pair = tunneltest.New(t, r.m.dispatch)
	return r
}

// box is how the hub names the machine for its one user.
func (r *rig) box() hubstore.Sandbox {
	return hubstore.Sandbox{User: hubstore.OwnerID, Machine: r.pair.MachineID}
}

func (r *rig) call(typ wire.Type, p wire.Payload) (wire.Message, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	return r.pair.Hub.Call(ctx, r.box(), typ, p)
}

func (r *rig) open(id string, ttl int) {
	r.t.Helper()
	m, err := r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: id, PrincipalID: "k1", PrincipalName: "Research agent", TTLSeconds: ttl})
	must(r.t, err)
	if o := m.Payload.(*wire.SessionOpened); o.Folder != r.folder || o.Mode != string(consent.ModeWork) {
		r.t.Fatalf("opened %+v", o)
	}
}

func (r *rig) do(session string) error {
	_, err := r.call(wire.TypeProcessStart, &wire.ProcessStart{SessionID: session, Cmd: "it"})
	return err
}

// decided is what the record says of a request before it runs.
func (r *rig) decided(id string) (record.Decision, bool) { return decisionOf(r.t, r.m, id) }

func TestDecisionIsRecordedBeforeAnythingRuns(t *testing.T) {
	r := newRig(t)
	ran := ""
	r.probe.run = func(_ context.Context, _ capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		ran = g.Request()
		if d, ok := r.decided(ran); !ok || d.Decision.Outcome != consent.Allowed || d.Decision.By != "you" || d.Request.Sentence != "Research agent wants to do it." {
			t.Errorf("when it runs the record says %+v", d)
		}
		return exited(), nil
	}
	r.open("s1", 0)
	must(t, r.do("s1"))
	if ran == "" {
		t.Fatal("nothing ran")
	}
	// While each of the two cards was open, what could answer it stood still.
	if r.probe.mu.Lock(); fmt.Sprint(r.probe.frozen) != "[true false true false]" {
		t.Errorf("frozen: %v", r.probe.frozen)
	}
	r.probe.mu.Unlock()
	if cards := r.person.seen(); len(cards) != 2 || cards[0].Capability != consent.CapabilitySession || cards[1].ID != ran || cards[1].Folder != r.folder {
		t.Errorf("the cards were %+v", cards)
	}
	entries, err := r.m.o.Store.EntriesByRef(t.Context(), ran)
	must(t, err)
	if len(entries) != 2 || entries[1].Kind != record.KindOutcome {
		t.Errorf("the record of the request is %+v", entries)
	}
}

func TestRefusalsCrossWithTheirCodes(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		t.Error("a refused request ran")
		return exited(), nil
	}
	r.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, true }
	wantCode(t, r.do("s1"), wire.CodeDenied)
	must(t, r.m.pause(t.Context()))
	wantCode(t, r.do("s1"), wire.CodePaused)
	must(t, r.m.resume(t.Context()))
	// Too little time to ask anybody.
	_, err := r.call(wire.TypeProcessStart, &wire.ProcessStart{SessionID: "s1", Cmd: "it", WaitMS: 1000})
	wantCode(t, err, wire.CodeUndelivered)
	wantCode(t, r.do("another"), wire.CodeSessionNotOpen)
	_, err = r.call(wire.TypeFileStat, &wire.FileStat{SessionID: "s1", Path: "x"})
	wantCode(t, err, wire.CodeNotSupported)
	_, err = r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: "s1", PrincipalID: "k1", PrincipalName: "Research agent"})
	wantCode(t, err, wire.CodeInvalid)
	_, err = r.call(wire.TypeSessionOpen, &wire.SessionOpen{SessionID: "s2", PrincipalID: "k1", PrincipalName: "Research agent", TTLSeconds: 25 * 3600})
	wantCode(t, err, wire.CodeInvalid)
}

// What was looked at for the card is different when it is to run: the person
// is asked again, a bounded number of times.
func TestChangedMeansAskedAgain(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	state := 0
	r.probe.describe = func(capabilities.Call) capabilities.Description {
		return capabilities.Description{Action: "do", Title: "Do it", Sentence: "%s wants to do it.", Exact: fmt.Sprint("it ", state), Payload: "it", Fingerprint: fmt.Sprint(state),
			Effects: []consent.Effect{{Kind: consent.EffectOverwrite, Text: "replaces a file"}}, Risk: consent.RiskNormal}
	}
	changes := 1
	r.probe.run = func(_ context.Context, _ capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		if changes > 0 {
			changes--
			state++
		}
		return exited(), g.Check(consent.DigestOf("it"), fmt.Sprint(state))
	}
	must(t, r.do("s1"))
	if cards := r.person.seen()[1:]; len(cards) != 2 || cards[0].Exact != "it 0" || cards[1].Exact != "it 1" || cards[0].ID == cards[1].ID {
		t.Errorf("the cards were %+v", cards)
	}
	changes = 100
	wantCode(t, r.do("s1"), wire.CodeChanged)
	if n := len(r.person.seen()) - 3; n != asksAgain {
		t.Errorf("asked %d times", n)
	}
}

// running starts a request that runs until its context ends, and returns what
// ended it and what came back.
func (r *rig) running(session string) (cause, reply <-chan error) {
	r.t.Helper()
	began, why, back := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	r.probe.run = func(ctx context.Context, _ capabilities.Call, _ consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		close(began)
		<-ctx.Done()
		why <- context.Cause(ctx)
		return capabilities.Result{}, ctx.Err()
	}
	go func() { back <- r.do(session) }()
	select {
	case <-began:
	case <-time.After(20 * time.Second):
		r.t.Fatal("the request does not run")
	}
	return why, back
}

func TestClosingASessionEndsWhatItDoes(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	s, err := r.m.sessions.get("s1")
	must(t, err)
	must(t, r.m.o.Store.Remember(t.Context(), consent.Stored{ID: "g1", Scope: consent.Session, Session: "s1", Rule: consent.Rule{Hub: "this", Principal: "k1"}}))
	cause, reply := r.running("s1")
	m, err := r.call(wire.TypeSessionClose, &wire.SessionRef{SessionID: "s1"})
	must(t, err)
	if m.Type != wire.TypeAck {
		t.Errorf("closing answered %s", m.Type)
	}
	wantCode(t, within(t, "cause", cause), wire.CodeStopped)
	wantCode(t, within(t, "reply", reply), wire.CodeStopped)
	if len(r.probe.ended) != 1 || r.probe.ended[0] != "s1" {
		t.Errorf("the executor was told of %q", r.probe.ended)
	}
	if _, err := os.Stat(s.Tmp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the session's own directory: %v", err)
	}
	if g, err := r.m.o.Store.Remembered(t.Context(), "this", "k1"); err != nil || len(g) != 0 {
		t.Errorf("what held for the session: %+v, %v", g, err)
	}
	wantCode(t, r.do("s1"), wire.CodeSessionNotOpen)
}

func TestASessionEndsAtItsTime(t *testing.T) {
	r := newRig(t)
	r.open("s1", 1)
	cause, reply := r.running("s1")
	wantCode(t, within(t, "cause", cause), wire.CodeStopped)
	if err := within(t, "reply", reply); wire.CodeOf(err) != wire.CodeStopped || !strings.Contains(err.Error(), "time is over") {
		t.Errorf("the program is told %v", err)
	}
	// A longer time, set while it is open, holds.
	r.open("s2", 1)
	_, err := r.call(wire.TypeSessionTTL, &wire.SessionTTL{SessionID: "s2", TTLSeconds: 60})
	must(t, err)
	r.probe.run = nil
	time.Sleep(1500 * time.Millisecond)
	must(t, r.do("s2"))
}

func TestStopEverythingEndsAndPauses(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	cause, reply := r.running("s1")
	if _, err := r.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.StopAll}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, within(t, "cause", cause), wire.CodeStopped)
	wantCode(t, within(t, "reply", reply), wire.CodeStopped)
	if s := r.m.Snapshot(); s.Stopped == nil || s.Stopped.Commands != 1 || s.Stopped.Sessions != 1 || !s.Paused || len(s.Sessions) != 1 {
		t.Errorf("the state is %+v", s)
	}
	wantCode(t, r.do("s1"), wire.CodePaused)
	if _, err := r.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Resume}); err != nil {
		t.Fatal(err)
	}
	r.probe.run = nil
	must(t, r.do("s1"))
}

func TestALostTunnelEndsWhatRuns(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	cause, reply := r.running("s1")
	must(t, r.pair.Hub.RevokeMachine(t.Context(), r.pair.MachineID))
	wantCode(t, within(t, "cause", cause), wire.CodeLost)
	if err := within(t, "reply", reply); err == nil {
		t.Error("the program was told that it worked")
	}
	if _, err := r.m.sessions.get("s1"); err != nil {
		t.Errorf("the session did not survive the connection: %v", err)
	}
}

// An upload is whole, hashed and counted before anybody is asked about it, and
// nothing of it is left afterwards, however it ends.
func TestUploadsAreSpooled(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	body := strings.Repeat("0123456789abcdef", 40_000)
	sum := sha256.Sum256([]byte(body))
	r.probe.describe = func(c capabilities.Call) capabilities.Description {
		b, err := os.ReadFile(c.Upload.Path)
		if err != nil || string(b) != body || c.Upload.Size != int64(len(body)) || c.Upload.SHA256 != hex.EncodeToString(sum[:]) || string(c.Upload.Head) != body[:headBytes] {
			t.Errorf("the upload is %+v with %d bytes, %v", c.Upload, len(b), err)
		}
		return capabilities.Description{Action: "write", Title: "Write it", Payload: "it", Effects: []consent.Effect{{Kind: consent.EffectCreate}}}
	}
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		return capabilities.Result{Type: wire.TypeFileStatResponse, Payload: &wire.FileStatResponse{}}, nil
	}
	upload := func(ctx context.Context, whole bool) error {
		st, err := r.pair.Hub.Do(ctx, r.box(), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s1", Path: "x"})
		must(t, err)
		defer st.Close()
		for at := 0; at < len(body); at += wire.MaxChunk {
			end := min(at+wire.MaxChunk, len(body))
			if !whole && end == len(body) {
				return nil // the rest never comes
			}
			must(t, st.Send(&wire.FileChunk{Data: []byte(body[at:end]), Last: end == len(body)}))
		}
		_, err = st.Recv()
		return err
	}
	must(t, upload(t.Context(), true))
	must(t, upload(t.Context(), false))
	wait := time.Now().Add(10 * time.Second)
	for {
		left, err := os.ReadDir(r.m.o.Paths.Spool())
		must(t, err)
		if len(left) == 0 {
			break
		}
		if time.Now().After(wait) {
			t.Fatalf("%d spool files are left", len(left))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var _ tunnel.Handler = (*Machine)(nil).dispatch

// An executor that hangs while it looks (a folder on a server that has gone)
// can be stopped like everything else.
func TestARequestThatHangsWhileItLooksCanBeStopped(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	looks, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	r.probe.describe = func(capabilities.Call) capabilities.Description {
		close(looks)
		<-never
		return capabilities.Description{}
	}
	reply := make(chan error, 1)
	go func() { reply <- r.do("s1") }()
	within(t, "looking", looks)
	if _, err := r.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.StopAll}); err != nil {
		t.Error(err)
	}
	wantCode(t, within(t, "reply", reply), wire.CodeStopped)
}

// A very long command does not fill the record: its head is there, the whole
// beside it, and the detail shows it all.
func TestLongTextsAreKeptBesideTheRecord(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	long := strings.Repeat("ä long command ", 20_000)
	r.probe.describe = func(capabilities.Call) capabilities.Description {
		return capabilities.Description{Action: "do", Title: "Do it", Exact: long, Details: []string{long}, Payload: "it", Rule: capabilities.RuleParts{Exact: long, Env: long},
			Effects: []consent.Effect{{Kind: consent.EffectOverwrite, Text: "replaces a file"}}, Risk: consent.RiskNormal}
	}
	must(t, r.do("s1"))
	id := r.person.seen()[1].ID
	entries, err := r.m.o.Store.EntriesByRef(t.Context(), id)
	must(t, err)
	if n := len(entries[0].Body); n > 5*maxInRecord {
		t.Errorf("the decision has %d bytes", n)
	}
	if d, err := r.m.journal.detail(t.Context(), id); err != nil || d.Exact != long {
		t.Errorf("the detail shows %d of %d bytes, %v", len(d.Exact), len(long), err)
	}
}

// What is remembered holds for what its card told, and no more: a name that
// was created is asked about when it would be replaced.
func TestARuleHoldsForWhatItsCardTold(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	effects := []consent.Effect{{Kind: consent.EffectStartup, Text: "changes what other programs run"}, {Kind: consent.EffectCreate, Text: "makes a file"}}
	r.probe.describe = func(capabilities.Call) capabilities.Description {
		return capabilities.Description{Action: "write", Title: "Write .envrc", Payload: "it", Effects: effects, Risk: consent.RiskNormal, Scopes: []consent.Scope{consent.Session}, Rule: capabilities.RuleParts{Exact: ".envrc"}}
	}
	r.person.answer = func(consent.Request) (consent.Answer, bool) {
		return consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Session}}, true
	}
	must(t, r.do("s1"))
	must(t, r.do("s1"))
	if n := len(r.person.seen()); n != 2 {
		t.Fatalf("%d cards, want the session's and one", n)
	}
	effects[1].Kind = consent.EffectOverwrite
	must(t, r.do("s1"))
	if n := len(r.person.seen()); n != 3 {
		t.Errorf("a file that is there now was replaced under a rule for making it (%d cards)", n)
	}
}

// One program with many requests under way leaves room for others.
func TestOneSessionLeavesRoom(t *testing.T) {
	r := newRig(t)
	r.m.registry = capabilities.NewRegistry(r.m.sessions, statsOnly{r.probe})
	r.open("s1", 0)
	r.open("s2", 0)
	began, end := make(chan struct{}, 100), make(chan struct{})
	r.probe.run = func(ctx context.Context, c capabilities.Call, _ consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		if c.Session.ID == "s1" {
			began <- struct{}{}
			<-end
		}
		return capabilities.Result{Type: wire.TypeFileStatResponse, Payload: &wire.FileStatResponse{}}, nil
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(end)
	r.person.answer = nil
	r.m.gate = consent.New(consent.Options{Decider: everything{}, Prompter: r.m.asks, Recorder: r.m.o.Record, Book: r.m.o.Store, Log: r.m.log})
	stat := func(session string) error {
		_, err := r.call(wire.TypeFileStat, &wire.FileStat{SessionID: session, Path: "x"})
		return err
	}
	for range maxOfSession {
		all.Go(func() { _ = stat("s1") })
	}
	for range maxOfSession {
		within(t, "a request of the first session", began)
	}
	wantCode(t, stat("s1"), wire.CodeOverloaded)
	must(t, stat("s2"))
	// What ends a command is let in.
	all.Go(func() {
		_, _ = r.call(wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: "s1", PID: 7, Signal: "SIGKILL"})
	})
	within(t, "the signal", began)
}

// statsOnly is the probe for looking at names, and for signals.
type statsOnly struct{ *probe }

func (statsOnly) Types() []wire.Type { return []wire.Type{wire.TypeFileStat, wire.TypeProcessSignal} }

// Commands that go on for long are counted apart: they take nothing off what
// else their session, or another, may have under way, and there are so many at
// most.
func TestCommandsAreCountedApart(t *testing.T) {
	r := newRig(t)
	e := files.New(files.Options{})
	t.Cleanup(func() { must(t, e.Close()) })
	r.m.o.Executors = append(r.m.o.Executors, e)
	r.m.registry = capabilities.NewRegistry(r.m.sessions, e, commandsOnly{r.probe})
	r.open("s1", 0)
	r.open("s2", 0)
	must(t, os.WriteFile(filepath.Join(r.folder, "a.txt"), []byte("hello"), 0o600))
	r.m.gate = consent.New(consent.Options{Decider: everything{}, Prompter: r.m.asks, Recorder: r.m.o.Record, Book: r.m.o.Store, Log: r.m.log})
	r.probe.run = func(ctx context.Context, _ capabilities.Call, _ consent.Grant, out capabilities.Output) (capabilities.Result, error) {
		must(t, out.Send(ctx, wire.TypeProcessStarted, &wire.ProcessStarted{PID: 7}))
		<-ctx.Done()
		return capabilities.Result{}, context.Cause(ctx)
	}
	var streams []wire.Stream
	serve := func(session string) error {
		st, err := r.pair.Hub.Do(t.Context(), r.box(), wire.TypeProcessStart, &wire.ProcessStart{SessionID: session, Cmd: "serve"})
		must(t, err)
		if _, err := st.Recv(); err != nil {
			st.Close()
			return err
		}
		streams = append(streams, st)
		return nil
	}
	read := func(session string) {
		t.Helper()
		st, err := r.pair.Hub.Do(t.Context(), r.box(), wire.TypeFileRead, &wire.FileRead{SessionID: session, Path: "a.txt"})
		must(t, err)
		defer st.Close()
		for {
			m, err := st.Recv()
			must(t, err)
			if c, ok := m.Payload.(*wire.FileChunk); ok {
				if string(c.Data) != "hello" {
					t.Errorf("it read %q", c.Data)
				}
				return
			}
		}
	}
	for n := range maxCommands {
		if err := serve("s1"); err != nil {
			t.Fatalf("command %d: %v", n+1, err)
		}
		if n == 29 {
			read("s1")
		}
	}
	err := serve("s1")
	wantCode(t, err, wire.CodeOverloaded)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxCommands, " commands")) {
		t.Errorf("one too many: %v", err)
	}
	read("s1")
	read("s2")
	must(t, serve("s2"))
	if n := r.m.runningIn("s1"); n != maxCommands {
		t.Errorf("%d count as running, %d are", n, maxCommands)
	}
	streams[0].Close()
	for end := time.Now().Add(20 * time.Second); r.m.flights.count("s1", flightCommand) == maxCommands; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a command that was ended goes on")
		}
	}
	must(t, serve("s1"))
	for _, st := range streams {
		st.Close()
	}
}

// everything allows whatever is asked.
type everything struct{}

func (everything) Decide(consent.Request, []consent.Stored, time.Time) consent.Verdict {
	return consent.Verdict{Outcome: consent.Allowed, By: "policy", Choice: consent.Choice{Scope: consent.Once}}
}

// What a stopped command had sent is told, and shown.
func TestAStoppedCommandKeepsWhatItSent(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	r.probe.run = func(ctx context.Context, _ capabilities.Call, _ consent.Grant, out capabilities.Output) (capabilities.Result, error) {
		must(t, out.Send(ctx, wire.TypeProcessStarted, &wire.ProcessStarted{PID: 7}))
		must(t, out.Send(ctx, wire.TypeProcessOutput, &wire.ProcessOutput{Stream: "stdout", Data: []byte("hello")}))
		<-ctx.Done()
		return capabilities.Result{}, ctx.Err()
	}
	st, err := r.pair.Hub.Do(t.Context(), r.box(), wire.TypeProcessStart, &wire.ProcessStart{SessionID: "s1", Cmd: "it"})
	must(t, err)
	defer st.Close()
	for range 2 {
		_, err := st.Recv()
		must(t, err)
	}
	id := r.person.seen()[1].ID
	if _, err := r.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.StopOne, Entry: id}); err != nil {
		t.Fatal(err)
	}
	_, err = st.Recv()
	wantCode(t, err, wire.CodeStopped)
	if e := r.m.Snapshot().Entries[0]; e.ID != id || e.Outcome != snapshot.Halted || e.Sent != 5 || e.CanStop {
		t.Errorf("the log shows %+v", e)
	}
	if d, err := r.m.journal.detail(t.Context(), id); err != nil || d.Output != "hello" {
		t.Errorf("the detail is %+v, %v", d, err)
	}
}
