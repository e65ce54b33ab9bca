//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// crowd is how many computers the benchmark has.
const crowd = 10_000

// BenchmarkIdleMachines connects ten thousand computers with nothing to do to a
// hub that is a process of its own, with TLS and as behind a proxy, and prints
// what that costs the hub; then it stops the hub as systemd does, starts it
// again, and waits until all are back. A crowd needs as many file descriptors,
// here and in the hub.
func BenchmarkIdleMachines(b *testing.B) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < crowd+200 {
		b.Fatalf("%d files may be open, and %d are needed: ulimit -n %d", limit.Cur, crowd+200, 2*crowd)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HUB\tCOMPUTERS\tMEMORY\tEACH\tCPU, IDLE\tALL CONNECTED IN\tCLOSED IN\tALL BACK IN\tTURNED AWAY")
	for _, name := range []string{"proxy", "tls"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := measureCrowd(b, name == "tls")
				fmt.Fprintf(w, "%s\t%d\t%.0f MiB\t%.1f KiB\t%.1f %%\t%.1f s\t%.1f s\t%.1f s\t%d\n", name, crowd, c.memory/(1<<20), c.memory/crowd/1024,
					c.processor*100, c.connected.Seconds(), c.closed.Seconds(), c.back.Seconds(), c.refused)
				b.ReportMetric(c.memory/crowd, "B/machine")
				b.ReportMetric(c.processor*100, "%cpu")
				b.ReportMetric(c.back.Seconds(), "s-back")
				b.ReportMetric(float64(c.refused), "refused")
			}
		})
	}
	w.Flush()
	b.Logf("\n%s", &table)
}

// costs are what one hub's crowd cost it.
type costs struct {
	memory                  float64 // resident, in bytes
	processor               float64 // of one core, while nothing happens
	connected, closed, back time.Duration
	refused                 int64 // connections that failed although the hub was there
}

func measureCrowd(b *testing.B, encrypted bool) (c costs) {
	dir, secrets := b.TempDir(), make([]string, crowd)
	s, err := store.Open(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	for i := range secrets {
		if secrets[i], err = s.AddMachineToken(b.Context(), store.OwnerID, fmt.Sprintf("m-%d", i), "PC", false); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	flags := []string{"--behind-proxy"}
	var network *tunnel.Network
	if encrypted {
		ca := newAuthority(b)
		cert, key := filepath.Join(b.TempDir(), "cert.pem"), filepath.Join(b.TempDir(), "key.pem")
		ca.issue(b, cert, key, 1)
		flags, network = []string{"--tls-cert", cert, "--tls-key", key}, ca.network(b)
	}
	p, address := serve(b, dir, "127.0.0.1:0", flags...)
	_, listen, _ := strings.Cut(address, "://")

	var online, refused atomic.Int64
	var up atomic.Bool
	up.Store(true)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	defer func() { cancel(); wg.Wait() }()
	began := time.Now()
	for i, secret := range secrets {
		was := false
		m, err := tunnel.New(tunnel.Options{
			URL: address, Token: func(context.Context) (string, error) { return secret, nil }, Network: network,
			Hello: func() wire.Hello {
				return wire.Hello{Software: "localpc/bench", Protocol: wire.Version, MachineID: fmt.Sprintf("m-%d", i), DisplayName: "PC", Platform: "linux", Arch: "amd64", Capabilities: []string{}, Sessions: []string{}}
			},
			Status: func() wire.Status {
				return wire.Status{Record: &wire.RecordHead{Seq: 1, Hash: strings.Repeat("0", 64)}}
			},
			Handler: func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
				return wire.TypeError, wire.ToWire(io.EOF), nil
			},
			OnState: func(s tunnel.State) {
				switch {
				case s.Phase == tunnel.Online:
					online.Add(1)
					was = true
				case s.Phase == tunnel.Offline && was:
					online.Add(-1)
					was = false
				case s.Phase == tunnel.Offline && up.Load() && ctx.Err() == nil:
					refused.Add(1)
				}
			},
			Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			if err := m.Run(ctx); err != nil {
				b.Errorf("a computer gave up: %v", err)
			}
		})
		// No faster than the hub takes them.
		for int64(i)-online.Load() > 100 {
			time.Sleep(time.Millisecond)
		}
	}
	until := func(n int64) {
		for deadline := time.Now().Add(3 * time.Minute); online.Load() != n; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				b.Fatalf("%d of %d computers are connected; the hub wrote …%s", online.Load(), n, tail(p.errs.String()))
			}
		}
	}
	until(crowd)
	c.connected = time.Since(began)
	time.Sleep(2 * time.Second)
	before := processorTime(b, p.Process.Pid)
	// Every computer pings and tells of itself within this time.
	const window = 30 * time.Second
	time.Sleep(window)
	c.processor = (processorTime(b, p.Process.Pid) - before).Seconds() / window.Seconds()
	c.memory = resident(b, p.Process.Pid)

	up.Store(false)
	began = time.Now()
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		b.Fatalf("asked to stop: %v", err)
	}
	c.closed = time.Since(began)
	until(0)
	p, _ = serve(b, dir, listen, flags...)
	up.Store(true)
	began = time.Now()
	until(crowd)
	c.back, c.refused = time.Since(began), refused.Load()
	return c
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// resident is what a process has in memory, in bytes.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "VmRSS:" {
			n, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return n * 1024
		}
	}
	b.Fatal("the memory of the hub is not known")
	return 0
}

// processorTime is what a process has computed so far.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on Linux
}
