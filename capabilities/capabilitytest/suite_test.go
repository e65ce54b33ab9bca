package capabilitytest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nothing is a decider that knows nothing: it always asks.
type nothing struct{}

func (nothing) Decide(consent.Request, []consent.Stored, time.Time) consent.Verdict {
	return consent.Verdict{}
}

// reader is the smallest executor: it sends one file of its session's folder.
type reader struct {
	mu   sync.Mutex
	work map[string][]context.CancelCauseFunc // guarded by mu; by session
	wait sync.WaitGroup
}

func (*reader) Name() string       { return "reader" }
func (*reader) Types() []wire.Type { return []wire.Type{wire.TypeFileRead} }

func look(c capabilities.Call) (*os.File, string, error) {
	f, err := os.Open(filepath.Join(c.Session.Folder, c.Payload.(*wire.FileRead).Path))
	if err != nil {
		return nil, "", err
	}
	fi, err := f.Stat()
	return f, fmt.Sprint(fi.Size()), err
}

func (r *reader) Describe(_ context.Context, c capabilities.Call) (capabilities.Description, error) {
	p := c.Payload.(*wire.FileRead)
	f, print, err := look(c)
	f.Close()
	return capabilities.Description{Action: "read", Title: "Read " + p.Path, Sentence: "%s wants to read a file", Exact: p.Path,
		Effects: []consent.Effect{{Kind: consent.EffectRead, Text: "reads a file"}}, Risk: consent.RiskLow,
		Payload: p.Path, Fingerprint: print}, err
}

func (r *reader) Run(ctx context.Context, c capabilities.Call, g consent.Grant, out capabilities.Output) (capabilities.Result, error) {
	f, print, err := look(c)
	if err != nil {
		return capabilities.Result{}, err
	}
	defer f.Close()
	if err := g.Check(consent.DigestOf(c.Payload.(*wire.FileRead).Path), print); err != nil {
		return capabilities.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	r.work[c.Session.ID] = append(r.work[c.Session.ID], cancel)
	r.wait.Add(1)
	r.mu.Unlock()
	defer r.wait.Done()
	for buf := make([]byte, wire.MaxChunk); ; {
		n, err := f.Read(buf)
		if err == io.EOF {
			break
		}
		if err := out.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: buf[:n]}); err != nil {
			return capabilities.Result{}, err
		}
	}
	return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "read"}, nil
}

func (*reader) Running(string) int { return 0 }

func (r *reader) EndSession(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.work[id] {
		cancel(context.Canceled)
	}
	return nil
}

func (r *reader) Close() error {
	r.mu.Lock()
	for _, list := range r.work {
		for _, cancel := range list {
			cancel(context.Canceled)
		}
	}
	r.mu.Unlock()
	r.wait.Wait()
	return nil
}

func TestSuiteTakesARightExecutor(t *testing.T) {
	file := func(size int) func(testing.TB, *capabilities.Session) capabilities.Call {
		return func(t testing.TB, s *capabilities.Session) capabilities.Call {
			if err := os.WriteFile(filepath.Join(s.Folder, "f"), make([]byte, size), 0o600); err != nil {
				t.Fatal(err)
			}
			return NewCall(t, s, wire.TypeFileRead, &wire.FileRead{SessionID: s.ID, Path: "f"})
		}
	}
	Run(t, Suite{
		New:   func(testing.TB) capabilities.Capability { return &reader{work: map[string][]context.CancelCauseFunc{}} },
		Small: file(3),
		Large: file(LargeBytes),
		Change: func(t testing.TB, s *capabilities.Session) {
			if err := os.WriteFile(filepath.Join(s.Folder, "f"), []byte("other"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func TestTheGateIsReal(t *testing.T) {
	s := NewSession(t, consent.ModeAsk)
	d := capabilities.Description{Action: "read", Sentence: "%s wants to read", Payload: "a", Fingerprint: "f", Risk: consent.RiskLow}
	g := GrantWith(t, s, "files", d, consent.Choice{Scope: consent.Once, Contain: consent.Contained})
	if err := g.Check(consent.DigestOf("a"), "f"); err != nil || g.Choice().Contain != consent.Contained {
		t.Errorf("the grant is not for what was described: %v, %+v", err, g.Choice())
	}
	if err := g.Check(consent.DigestOf("b"), "f"); err == nil {
		t.Error("the grant took another payload")
	}
	r := &Record{}
	gate := consent.New(consent.Options{Decider: nothing{}, Prompter: Nobody{}, Recorder: r, Book: r})
	if _, err := gate.Authorize(t.Context(), Request(s, "files", d)); err == nil {
		t.Error("a gate with nobody behind it allowed something")
	}
	if got := r.Decisions(); len(got) != 1 || got[0].Outcome != consent.Undelivered {
		t.Errorf("recorded %+v", got)
	}
}
