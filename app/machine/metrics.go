package machine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// keepMetrics is how long samples are kept, in memory only.
const keepMetrics = time.Hour

// measureOver is the least time over which the load is measured: the system
// counts in hundredths of a second.
const measureOver = 200 * time.Millisecond

// metrics is how busy the machine is, and was in the last hour. A sample is
// taken with each STATUS, so that nothing wakes up for it alone. Safe for
// concurrent use.
type metrics struct {
	m *Machine

	measuring sync.Mutex // one measurement at a time; it holds last
	last      counters   // guarded by measuring

	mu      sync.Mutex
	busy    bool     // guarded by mu: a sample is being taken
	samples []sample // guarded by mu; oldest first
}

// sample is one moment, with the disks of the sessions' folders.
type sample struct {
	wire.Sample
	disks map[string]disk
}

type disk struct{ total, used int64 }

// counters are what the processors have done since the start.
type counters struct {
	when        time.Time
	busy, total uint64
}

// kick takes a sample in the background, unless one is being taken.
func (x *metrics) kick() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.busy {
		return
	}
	x.busy = x.m.background(func(ctx context.Context) {
		s, err := x.measure(ctx)
		for _, ses := range x.m.sessions.list() {
			if s.disks == nil {
				s.disks = map[string]disk{}
			}
			s.disks[ses.Folder] = diskOf(ses.Folder)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.busy = false
		if err == nil {
			x.keep(s)
		}
	})
}

// keep adds a sample, and drops what is too old. Called with mu held.
func (x *metrics) keep(s sample) {
	old := 0
	for old < len(x.samples) && x.samples[old].Time < s.Time-int64(keepMetrics.Seconds()) {
		old++
	}
	x.samples = append(x.samples[old:], s)
}

// measure looks at processors and memory now.
func (x *metrics) measure(ctx context.Context) (sample, error) {
	x.measuring.Lock()
	defer x.measuring.Unlock()
	if x.last.when.IsZero() {
		x.last = readCounters()
	}
	select {
	case <-time.After(measureOver - time.Since(x.last.when)):
	case <-ctx.Done():
		return sample{}, context.Cause(ctx)
	}
	now := readCounters()
	s := sample{}
	s.Time = now.when.Unix()
	s.CPUPercent = percent(x.last, now)
	readMemory(&s.Sample)
	x.last = now
	return s, nil
}

// percent is how busy the processors were between two looks.
func percent(a, b counters) float64 {
	if b.total <= a.total || b.busy < a.busy {
		return 0
	}
	return min(100, 100*float64(b.busy-a.busy)/float64(b.total-a.total))
}

func describeMetrics(p *wire.Metrics) capabilities.Description {
	return capabilities.Description{Action: "metrics", Title: "See how busy this computer is", Sentence: "%s wants to see how busy this computer is",
		Exact: "Processors, memory, and the disk that the session's folder is on", Risk: consent.RiskLow,
		Effects: []consent.Effect{{Kind: consent.EffectRead, Text: "tells how busy this computer is"}}, Payload: []any{"metrics", p.Start, p.End}}
}

// run answers METRICS: what was kept since the session was opened, and now.
func (x *metrics) run(ctx context.Context, p *wire.Metrics) (capabilities.Result, error) {
	s, err := x.m.sessions.get(p.SessionID)
	if err != nil {
		return capabilities.Result{}, err
	}
	begin := max(p.Start, s.opened.Unix())
	reply := &wire.MetricsResponse{Samples: []wire.Sample{}}
	add := func(t sample, d disk) {
		t.DiskTotal, t.DiskUsed = d.total, d.used
		reply.Samples = append(reply.Samples, t.Sample)
	}
	x.mu.Lock()
	for _, t := range x.samples {
		if t.Time >= begin && (p.End == 0 || t.Time <= p.End) {
			add(t, t.disks[s.Folder])
		}
	}
	x.mu.Unlock()
	if p.End == 0 || p.End >= time.Now().Unix() {
		now, err := x.measure(ctx)
		if err != nil {
			return capabilities.Result{}, err
		}
		if n := len(reply.Samples); n == 0 || reply.Samples[n-1].Time < now.Time {
			add(now, diskOf(s.Folder))
		}
	}
	words := fmt.Sprintf("%d moments told", len(reply.Samples))
	if len(reply.Samples) == 1 {
		words = "1 moment told"
	}
	return capabilities.Result{Type: wire.TypeMetricsResponse, Payload: reply, Outcome: words, Notes: metricsNotes}, nil
}
