package machine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/files"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func (r *rig) metrics(p wire.Metrics) []wire.Sample {
	r.t.Helper()
	m, err := r.call(wire.TypeMetrics, &p)
	must(r.t, err)
	return m.Payload.(*wire.MetricsResponse).Samples
}

// A program may know how busy the computer is, without a question in any mode;
// the record has it.
func TestMetricsAreToldAndRecorded(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	before := time.Now().Unix()
	r.person.answer = func(q consent.Request) (consent.Answer, bool) {
		t.Errorf("asked: %s", q.Title)
		return consent.Answer{}, true
	}
	got := r.metrics(wire.Metrics{SessionID: "s1"})
	if len(got) != 1 || got[0].Time < before || got[0].CPUs < 1 {
		t.Errorf("%+v", got)
	}
	entries, _ := r.m.journal.entries(func(string) int { return 0 })
	d, ok := r.decided(entries[0].ID)
	if !ok || d.Decision.Outcome != consent.Allowed || d.Decision.By != "mode" || entries[0].Result != "1 moment told" || entries[0].What != "See how busy this computer is" {
		t.Errorf("the record says %+v, the log %+v", d, entries[0])
	}
	_, err := r.call(wire.TypeMetrics, &wire.Metrics{SessionID: "another"})
	wantCode(t, err, wire.CodeSessionNotOpen)
	must(t, r.m.pause(t.Context()))
	_, err = r.call(wire.TypeMetrics, &wire.Metrics{SessionID: "s1"})
	wantCode(t, err, wire.CodePaused)
}

// Each STATUS takes a sample; they are kept for an hour, and a session is told
// of those since it was opened.
func TestMetricsOfTheLastHour(t *testing.T) {
	r := newRig(t)
	r.open("s1", 0)
	kept := func() int {
		r.m.metrics.mu.Lock()
		defer r.m.metrics.mu.Unlock()
		return len(r.m.metrics.samples)
	}
	_ = r.m.link.status()
	for end := time.Now().Add(20 * time.Second); kept() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a STATUS takes no sample")
		}
	}
	s, err := r.m.sessions.get("s1")
	must(t, err)
	now := time.Now().Unix()
	s.opened = time.Unix(now-1000, 0)
	r.m.metrics.mu.Lock()
	first := r.m.metrics.samples[0]
	if _, ok := first.disks[r.folder]; !ok {
		t.Errorf("the sample has no disk of the session's folder: %+v", first)
	}
	r.m.metrics.samples = nil
	for _, ago := range []int64{5000, 3500, 900, 60, 30} {
		x := first
		x.Time, x.disks = now-ago, map[string]disk{r.folder: {total: 1000, used: ago}}
		r.m.metrics.keep(x)
	}
	n := len(r.m.metrics.samples)
	r.m.metrics.mu.Unlock()
	if n != 4 {
		t.Errorf("%d samples are kept for an hour, want 4", n)
	}
	times := func(p wire.Metrics) (out []int64) {
		p.SessionID = "s1"
		for _, x := range r.metrics(p) {
			if ago := now - x.Time; ago > 0 {
				out = append(out, ago)
				if x.DiskUsed != ago || x.DiskTotal != 1000 {
					t.Errorf("the disk of another moment: %+v", x)
				}
			} else {
				out = append(out, 0)
			}
		}
		return out
	}
	for _, c := range []struct {
		p    wire.Metrics
		want string
	}{
		{wire.Metrics{}, "[900 60 30 0]"},
		{wire.Metrics{Start: now - 60}, "[60 30 0]"},
		{wire.Metrics{End: now - 40}, "[900 60]"},
		{wire.Metrics{Start: now - 100, End: now - 60}, "[60]"},
		{wire.Metrics{Start: 1, End: 2}, "[]"},
		{wire.Metrics{Start: now + 100}, "[0]"}, // the clocks of two computers differ
	} {
		if got := fmt.Sprint(times(c.p)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
}

// Watches are counted apart: they take nothing off what else a session may have
// under way, and there are so many at most.
func TestWatchesAreCountedApart(t *testing.T) {
	r := newRig(t)
	e := files.New(files.Options{})
	t.Cleanup(func() { must(t, e.Close()) })
	r.m.o.Executors = append(r.m.o.Executors, e)
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		return exited(), nil
	}
	r.m.registry = capabilities.NewRegistry(r.m.sessions, e, commandsOnly{r.probe})
	r.open("s1", 0)
	var streams []wire.Stream
	watch := func() error {
		st, err := r.pair.Hub.Do(t.Context(), r.box(), wire.TypeFileWatch, &wire.FileWatch{SessionID: "s1", Path: "."})
		if err != nil {
			return err
		}
		if _, err := st.Recv(); err != nil {
			return err
		}
		streams = append(streams, st)
		return nil
	}
	for n := range maxWatches {
		if err := watch(); err != nil {
			t.Fatalf("watch %d: %v", n+1, err)
		}
	}
	wantCode(t, watch(), wire.CodeOverloaded)
	if n := r.m.runningIn("s1"); n != 0 {
		t.Errorf("%d count as running, and only watches are there", n)
	}
	must(t, r.do("s1"))
	streams[0].Close()
	for end := time.Now().Add(20 * time.Second); r.m.flights.count("s1", flightWatch) == maxWatches; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a watch that was ended goes on")
		}
	}
	must(t, watch())
	must(t, r.m.sessions.end(t.Context(), "s1", "The test ends it.", ""))
	for _, st := range streams[1:] {
		_, err := st.Recv()
		if wire.CodeOf(err) != wire.CodeStopped {
			t.Errorf("a watch of a session that ended: %v", err)
		}
		st.Close()
	}
}

// commandsOnly is the probe without files, which the real executor has.
type commandsOnly struct{ *probe }

func (commandsOnly) Types() []wire.Type { return []wire.Type{wire.TypeProcessStart} }
