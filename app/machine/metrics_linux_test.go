package machine

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"localpc/tunnel/wire"
)

func TestWhatTheSystemTellsOfItsLoad(t *testing.T) {
	now := time.Now()
	a := countersOf([]byte("cpu  100 10 50 800 40 0 0 0 7 7\ncpu0 1 1 1 1\n"), now)
	b := countersOf([]byte("cpu  150 10 75 1000 65 0 0 0 7 7\ncpu0 1 1 1 1\n"), now)
	if a.total != 1000 || a.busy != 160 || percent(a, b) != 25 {
		t.Errorf("%+v, %+v, %v %%", a, b, percent(a, b))
	}
	for _, same := range [][2]counters{{a, a}, {b, a}, {{}, {}}} {
		if p := percent(same[0], same[1]); p != 0 {
			t.Errorf("%+v: %v", same, p)
		}
	}
	var s wire.Sample
	memoryOf([]byte("MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\nBuffers:          10 kB\nCached:          200 kB\nSReclaimable:     30 kB\nHugePages_Total:       0\n"), &s)
	if s.MemTotal != 1000<<10 || s.MemUsed != 400<<10 || s.MemCache != 240<<10 {
		t.Errorf("%+v", s)
	}
}

// While a processor works, this is seen; memory and disk are this computer's.
func TestMeasure(t *testing.T) {
	m := newMachine(t)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; !stop.Load(); {
			n++ // work
		}
	}()
	defer func() { stop.Store(true); <-done }()
	s, err := m.metrics.measure(t.Context())
	must(t, err)
	var si syscall.Sysinfo_t
	must(t, syscall.Sysinfo(&si))
	total := int64(si.Totalram) * int64(si.Unit)
	if s.CPUs < runtime.NumCPU() || s.CPUPercent < 50/float64(s.CPUs) || s.CPUPercent > 100 || s.MemTotal < total*9/10 || s.MemTotal > total*11/10 || s.MemUsed <= 0 || s.MemUsed >= s.MemTotal || s.MemCache <= 0 {
		t.Errorf("%+v", s.Sample)
	}
	dir := t.TempDir()
	d := diskOf(dir)
	if d.total <= 0 || d.used <= 0 || d.used > d.total {
		t.Errorf("%+v", d)
	}
	must(t, os.Remove(dir))
	if diskOf(dir) != (disk{}) {
		t.Error("a folder that is not there has a disk")
	}
}
