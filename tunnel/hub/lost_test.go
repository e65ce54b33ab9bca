//go:build unix

package hub_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// beat and patience are wire's times, scaled down.
const (
	beat     = 400 * time.Millisecond
	patience = 400 * time.Millisecond
	// slack is for a busy computer.
	slack = 3 * time.Second
)

// role runs this program as the far end, until its standard input ends.
func role(name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	quiet := slog.New(slog.DiscardHandler)
	switch name {
	case "hub":
		h, err := hub.New(ctx, hub.Options{Data: os.Getenv("HUB_DATA"), Heartbeat: beat, PongTimeout: patience, Log: quiet})
		if err != nil {
			return err
		}
		defer h.Close()
		l, err := net.Listen("tcp", os.Getenv("HUB_LISTEN"))
		if err != nil {
			return err
		}
		srv := h.Server()
		defer srv.Close()
		go func() { _ = srv.Serve(l) }()
		fmt.Printf("http://%s\n", l.Addr())
		<-ctx.Done()
	case "machine":
		c, err := tunnel.New(near(os.Getenv("HUB_URL"), os.Getenv("HUB_TOKEN"), "m1", func(s tunnel.State) { fmt.Println(s.Phase) }))
		if err != nil {
			return err
		}
		return c.Run(ctx)
	}
	return nil
}

// near is a machine's end that answers every file request with "not there".
func near(url, token, machine string, told func(tunnel.State)) tunnel.Options {
	return tunnel.Options{
		URL: url, Token: func(context.Context) (string, error) { return token, nil },
		Hello:   func() wire.Hello { return *hello(machine) },
		Status:  func() wire.Status { return wire.Status{} },
		OnState: told, Log: slog.New(slog.DiscardHandler),
		Handler: func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
			return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
		},
		Heartbeat: beat, PongTimeout: patience, BackoffBase: 50 * time.Millisecond, BackoffMax: 300 * time.Millisecond,
	}
}

// far starts the other end as a process and gives the lines that it prints.
func far(t *testing.T, role string, env ...string) (*os.Process, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "LOCALPC_TEST_ROLE="+role), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process, bufio.NewReader(out)
}

// hang stops a process, and returns when all of it stands still.
func hang(t *testing.T, p *os.Process) {
	t.Helper()
	must(t, p.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		must(t, err)
		if !status.Stopped() {
			t.Fatalf("it ended: %v", status)
		}
		return
	}
}

// phases collects the states of a machine's end.
type phases chan tunnel.State

func (p phases) tell(s tunnel.State) { p <- s }

func (p phases) until(t *testing.T, phase tunnel.Phase, within time.Duration) tunnel.State {
	t.Helper()
	for timeout := time.After(within); ; {
		select {
		case s := <-p:
			if s.Phase == phase {
				return s
			}
		case <-timeout:
			t.Fatalf("not %s within %s", phase, within)
		}
	}
}

// superset-sh/superset#5130: the other end is there for the operating system,
// and hangs. Only the silence after a ping tells.
func TestOtherEndHangs(t *testing.T) {
	t.Parallel()
	t.Run("the computer", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, func(o *hub.Options) { o.Heartbeat, o.PongTimeout = beat, patience })
		p, _ := far(t, "machine", "HUB_URL="+b.url, "HUB_TOKEN="+b.token(t, "m1"))
		eventually(t, "it is online", func() bool { return b.Online() == 1 })
		time.Sleep(2 * (beat + patience)) // it stays so
		if b.Online() != 1 {
			t.Fatal("a computer that is well was let go")
		}
		hang(t, p)
		s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		began := time.Now()
		if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
			t.Errorf("the request ended with %v", err)
		}
		if d := time.Since(began); d > beat+patience+slack {
			t.Errorf("the hub noticed after %s", d)
		}
		eventually(t, "it is offline", func() bool { return b.Online() == 0 })
		must(t, p.Signal(syscall.SIGCONT))
		eventually(t, "it is back", func() bool { return b.Online() == 1 })
	})
	t.Run("the hub", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s, err := store.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		token, err := s.AddMachineToken(t.Context(), store.OwnerID, "m1", "Mac-1", false)
		if err != nil {
			t.Fatal(err)
		}
		p, out := far(t, "hub", "HUB_DATA="+dir, "HUB_LISTEN=127.0.0.1:0")
		url, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		states := make(phases, 1000)
		tunneltest.Run(t, near(strings.TrimSpace(url), token, "m1", states.tell))
		states.until(t, tunnel.Online, 10*time.Second)
		hang(t, p)
		began := time.Now()
		states.until(t, tunnel.Offline, beat+patience+slack)
		if d := time.Since(began); d < beat/2 {
			t.Errorf("it went offline after %s, before it can have known", d)
		}
		must(t, p.Signal(syscall.SIGCONT))
		states.until(t, tunnel.Online, 20*time.Second)
	})
}

// Packets vanish without a word, both ways: in a network of the test's own,
// whose filter drops them. Both ends notice, and find each other again.
func TestPacketsVanish(t *testing.T) {
	if os.Getenv("LOCALPC_TEST_NETWORK") == "" {
		t.Parallel()
		inside(t)
		return
	}
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
	}
	run("ip", "link", "set", "lo", "up")
	b := newBench(t, func(o *hub.Options) { o.Heartbeat, o.PongTimeout = beat, patience })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	states := make(phases, 1000)
	tunneltest.Run(t, near(b.url, b.token(t, "m1"), "m1", states.tell))
	states.until(t, tunnel.Online, 10*time.Second)
	eventually(t, "it is online", func() bool { return b.Online() == 1 })
	for _, side := range []string{"--dport", "--sport"} {
		run("iptables", "-A", "INPUT", "-p", "tcp", side, port, "-j", "DROP")
	}
	began := time.Now()
	states.until(t, tunnel.Offline, beat+patience+slack)
	for b.Online() != 0 {
		if time.Since(began) > beat+patience+slack {
			t.Fatalf("the hub has not noticed after %s", time.Since(began))
		}
		time.Sleep(5 * time.Millisecond)
	}
	run("iptables", "-F", "INPUT")
	states.until(t, tunnel.Online, 30*time.Second)
	eventually(t, "it is back", func() bool { return b.Online() == 1 })
	if _, err := b.Call(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); err != nil {
		t.Errorf("a request afterwards: %v", err)
	}
}

// inside runs the test again, in a network namespace of its own.
func inside(t *testing.T) {
	t.Helper()
	how := "-n"
	if os.Getuid() != 0 {
		how = "-rn" // with a user namespace, in which one is root
	}
	cmd := exec.Command("unshare", how, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=90s")
	cmd.Env = append(os.Environ(), "LOCALPC_TEST_NETWORK=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

// Two computers with one identity: the newest wins, and the other is told so
// and stays away. It does not fight for the place.
func TestTwin(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := b.token(t, "m1")
	run := func() (phases, chan error) {
		states := make(phases, 1000)
		c, err := tunnel.New(near(b.url, token, "m1", states.tell))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { ended <- c.Run(ctx) })
		t.Cleanup(func() { cancel(); wg.Wait() })
		states.until(t, tunnel.Online, 10*time.Second)
		return states, ended
	}
	_, first := run()
	second, secondEnded := run()
	select {
	case err := <-first:
		if !errors.Is(err, tunnel.ErrReplaced) {
			t.Errorf("the older one ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the older one was not told")
	}
	// Many times the longest wait between two dials.
	time.Sleep(time.Second)
	select {
	case err := <-secondEnded:
		t.Errorf("the newer one ended with %v", err)
	case s := <-second:
		t.Errorf("the newer one was disturbed: %+v", s)
	default:
	}
	list, err := b.Hub.Machines(t.Context())
	if err != nil || len(list) != 1 || list[0].Epoch != 2 || !list[0].Online {
		t.Errorf("the hub knows %+v, %v", list, err)
	}
}

// elastic/elastic-agent#13874: thousand computers lose their hub at the same
// moment, and it comes back: they arrive at a rate under three times the
// average, and all are served at the first try.
func TestThousandComeBack(t *testing.T) {
	// Few parts, so that a busy computer that stands still for a moment is not
	// taken for a crowd; crew begin together.
	const machines, parts, crew = 1000, 5, 50
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	must(t, err)
	secrets := make([]string, machines)
	for i := range secrets {
		secrets[i], err = s.AddMachineToken(t.Context(), store.OwnerID, fmt.Sprintf("m%d", i), "Mac", false)
		must(t, err)
	}
	must(t, s.Close())

	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	first := newArrivals(t, dir, l)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { cancel(); wg.Wait() }()
	for i, secret := range secrets {
		o := near("http://"+address, secret, fmt.Sprintf("m%d", i), func(tunnel.State) {})
		o.Heartbeat, o.PongTimeout = wire.Heartbeat, wire.PongTimeout
		o.BackoffBase, o.BackoffMax = 6*time.Second, 12*time.Second
		c, err := tunnel.New(o)
		must(t, err)
		first.wait(i - crew)
		wg.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Errorf("a machine gave up: %v", err)
			}
		})
	}
	first.wait(machines)
	// It is stopped as localpc-hub stops it, and started again a moment later.
	first.stop()
	time.Sleep(300 * time.Millisecond)
	l, err = net.Listen("tcp", address)
	must(t, err)
	second := newArrivals(t, dir, l)
	defer second.stop()
	second.wait(machines)

	second.mu.Lock()
	defer second.mu.Unlock()
	if len(second.at) != machines {
		t.Errorf("%d computers came %d times: some had to come again", machines, len(second.at))
	}
	last := second.at[len(second.at)-1].Sub(second.began)
	var counts [parts]int
	for _, at := range second.at {
		counts[min(int(at.Sub(second.began)*parts/last), parts-1)]++
	}
	for i, n := range counts {
		if n >= 3*machines/parts {
			t.Errorf("%d of %d came in part %d of %s", n, machines, i, last)
		}
	}
	t.Logf("they came within %s: %v", last, counts)
}

// arrivals is a hub that notes when computers come.
type arrivals struct {
	t     *testing.T
	hub   *hub.Hub
	srv   *http.Server
	done  chan struct{}
	began time.Time

	mu sync.Mutex
	at []time.Time // guarded by mu
}

func newArrivals(t *testing.T, dir string, l net.Listener) *arrivals {
	t.Helper()
	h, err := hub.New(context.Background(), hub.Options{Data: dir, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	a := &arrivals{t: t, hub: h, srv: h.Server(), done: make(chan struct{}), began: time.Now()}
	next := a.srv.Handler
	a.srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.at = append(a.at, time.Now())
		a.mu.Unlock()
		next.ServeHTTP(w, r)
	})
	go func() { defer close(a.done); _ = a.srv.Serve(l) }()
	return a
}

func (a *arrivals) wait(n int) {
	a.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); a.hub.Online() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("%d of %d computers are there", a.hub.Online(), n)
		}
	}
}

func (a *arrivals) stop() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	a.hub.Drain()
	_ = a.srv.Shutdown(ctx)
	must(a.t, a.hub.Close())
	<-a.done
}
