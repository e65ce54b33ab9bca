package e2b

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// sizeWait bounds what a computer takes to say how large it is, for a call
// that can do without.
const sizeWait = 2 * time.Second

// size is what of a computer does not change while it runs; zero: not told.
type size struct {
	cpus         int
	memory, disk int64
}

// metrics serves GET …/metrics: how busy the whole computer is, and was.
func (f *Face) metrics(w http.ResponseWriter, r *http.Request, key store.Key) {
	b, ok := f.own(w, r, key)
	if !ok {
		return
	}
	v := r.URL.Query()
	start, ok1 := seconds(v, "start")
	end, ok2 := seconds(v, "end")
	if !ok1 || !ok2 {
		writeError(w, http.StatusBadRequest, "start and end must be times in seconds since 1970.")
		return
	}
	samples, err := f.samples(r.Context(), b, start, end)
	if err != nil {
		f.sessionError(w, r, err)
		return
	}
	out := make([]map[string]any, 0, len(samples))
	for _, s := range samples {
		out = append(out, map[string]any{
			"timestamp": time.Unix(s.Time, 0).UTC().Format(time.RFC3339), "timestampUnix": s.Time,
			"cpuCount": s.CPUs, "cpuUsedPct": s.CPUPercent, "memTotal": s.MemTotal, "memUsed": s.MemUsed, "memCache": s.MemCache,
			"diskTotal": s.DiskTotal, "diskUsed": s.DiskUsed,
		})
	}
	writeJSON(w, http.StatusOK, out)
}

func seconds(v url.Values, name string) (int64, bool) {
	if v.Get(name) == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(v.Get(name), 10, 64)
	return n, err == nil && n >= 0
}

func (f *Face) samples(ctx context.Context, b store.Sandbox, start, end int64) ([]wire.Sample, error) {
	s, err := f.o.Backend.Do(ctx, b, wire.TypeMetrics, &wire.Metrics{SessionID: b.ID, Start: start, End: end})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	msg, err := s.Recv()
	if err != nil {
		return nil, err
	}
	reply, ok := msg.Payload.(*wire.MetricsResponse)
	if !ok {
		return nil, wire.Errorf(wire.CodeInternal, "The computer did not say how busy it is.")
	}
	if n := len(reply.Samples); n > 0 {
		last := reply.Samples[n-1]
		f.mu.Lock()
		f.sizes[b.Machine] = size{last.CPUs, last.MemTotal, last.DiskTotal}
		f.mu.Unlock()
	}
	return reply.Samples, nil
}

// known is the size of a computer that has told it since the hub started.
func (f *Face) known(machine string) size {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sizes[machine]
}

// sizeOf asks a computer for its size where it is not known.
func (f *Face) sizeOf(ctx context.Context, b store.Sandbox) size {
	if of := f.known(b.Machine); of.cpus > 0 || b.Paused || !f.o.Backend.Online(b) {
		return of
	}
	ctx, cancel := context.WithTimeout(ctx, sizeWait)
	defer cancel()
	if _, err := f.samples(ctx, b, time.Now().Unix(), 0); err != nil {
		f.o.Log.Info("The computer did not say how large it is", "machine", b.Machine, "err", err)
	}
	return f.known(b.Machine)
}
