//go:build linux

package shell_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/network"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// world is what stands behind a container in these tests: the person, who
// decides by host, and the network, where every name leads to a server here.
type world struct {
	net *network.Network

	mu     sync.Mutex
	ports  map[int]string                    // where each port leads; guarded by mu
	decide func(*capabilities.Connect) error // nil: allowed; guarded by mu
	asked  []capabilities.Connect            // guarded by mu
	ended  []capabilities.Result             // guarded by mu
	fails  []error                           // guarded by mu
}

func newWorld(t testing.TB, changes ...func(*shell.Options)) (*world, *shell.Shell, *capabilities.Session) {
	t.Helper()
	w := &world{ports: map[int]string{}}
	w.net = network.New(atTheEdge(w))
	t.Cleanup(func() { w.net.Close() })
	s := newShell(t, append([]func(*shell.Options){func(o *shell.Options) { o.Connect = w.connect }}, changes...)...)
	return w, s, capabilitytest.NewSession(t, consent.ModeWork)
}

// connect is a Connector: the real executor behind a real gate that does as
// the test decides.
func (w *world) connect(ctx context.Context, c *capabilities.Connect) error {
	w.mu.Lock()
	w.asked = append(w.asked, *c)
	decide := w.decide
	w.mu.Unlock()
	if decide != nil {
		if err := decide(c); err != nil {
			return err
		}
	}
	call := capabilities.Call{Type: capabilities.TypeConnect, Payload: c, Session: &capabilities.Session{ID: c.SessionID}}
	d, err := w.net.Describe(ctx, call)
	if err != nil {
		return err
	}
	g, err := grant(ctx, call, d)
	if err != nil {
		return err
	}
	res, err := w.net.Run(ctx, call, g, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.fails = append(w.fails, err)
		return err
	}
	w.ended = append(w.ended, res)
	return nil
}

func grant(ctx context.Context, call capabilities.Call, d capabilities.Description) (consent.Grant, error) {
	r := &capabilitytest.Record{}
	gate := consent.New(consent.Options{Decider: capabilitytest.Allow{}, Prompter: capabilitytest.Nobody{}, Recorder: r, Book: r})
	return gate.Authorize(ctx, capabilitytest.Request(call.Session, "network", d))
}

// serve makes a server that names lead to at port.
func (w *world) serve(port int, address string) {
	w.mu.Lock()
	w.ports[port] = address
	w.mu.Unlock()
}

func (w *world) deny(hosts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decide = func(c *capabilities.Connect) error {
		if slices.Contains(hosts, c.Host) {
			return wire.Errorf(wire.CodeDenied, "The person at this computer did not allow it.")
		}
		return nil
	}
}

func (w *world) hosts() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.asked {
		out = append(out, c.Host+":"+strconv.Itoa(c.Port))
	}
	return out
}

// programs are ways to fetch an address, as their users know them.
var programs = map[string]string{
	"curl":   "curl -sSf %s",
	"wget":   "wget -qO- %s",
	"python": `/usr/bin/python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen("%s").read().decode())'`,
	"socks":  "curl -sSf -x socks5h://127.0.0.1:3128 %s",
	"raw":    "curl -sSf --proxytunnel %s",
}

func TestProgramsReachTheNetwork(t *testing.T) {
	w, s, ses := newWorld(t)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "hello %s from %s", r.URL.Path, r.Host)
	}))
	t.Cleanup(web.Close)
	tls := httptest.NewTLSServer(web.Config.Handler)
	t.Cleanup(tls.Close)
	w.serve(80, web.Listener.Addr().String())
	w.serve(443, tls.Listener.Addr().String())
	for name, text := range programs {
		if got := sh(t, s, ses, contained, fmt.Sprintf(text, "http://www.example.org/a")); got != "hello /a from www.example.org" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, text := range map[string]string{"curl": "curl -sSfk %s", "wget": "wget --no-check-certificate -qO- %s",
		"python": `/usr/bin/python3 -c 'import ssl, sys, urllib.request; sys.stdout.write(urllib.request.urlopen("%s", context=ssl._create_unverified_context()).read().decode())'`,
	} {
		if got := sh(t, s, ses, contained, fmt.Sprintf(text, "https://www.example.org/b")); got != "hello /b from www.example.org" {
			t.Errorf("%s over TLS: %q", name, got)
		}
	}
	// npm keeps its connections, asks for compressed answers, and follows what
	// the registry says.
	npm := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"name":"a","dist-tags":{"latest":"1.2.3"},"versions":{"1.2.3":{"name":"a","version":"1.2.3","dist":{"tarball":"http://www.example.org/a.tgz"}}}}`)
	}))
	t.Cleanup(npm.Close)
	w.serve(80, npm.Listener.Addr().String())
	if got := sh(t, s, ses, contained, "npm view --registry http://www.example.org/ a version"); got != "1.2.3\n" {
		t.Errorf("npm: %q", got)
	}
	for _, h := range w.hosts() {
		if h != "www.example.org:80" && h != "www.example.org:443" {
			t.Errorf("asked for %s", h)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	for _, c := range w.asked {
		seen[c.Program] = true
		if c.SessionID != ses.ID || c.Command == "" || c.Line == "" || c.Ended == nil {
			t.Errorf("asked as %+v", c)
		}
	}
	if !seen["curl"] || !seen["Wget"] || !seen["Python-urllib"] || !seen["npm"] {
		t.Errorf("programs named: %v", seen)
	}
	for _, r := range w.ended {
		if r.Sent == 0 || r.Received == 0 {
			t.Errorf("counted %d sent, %d received", r.Sent, r.Received)
		}
	}
}

func TestADeniedConnectionSaysSo(t *testing.T) {
	w, s, ses := newWorld(t)
	w.deny("bad.example.org")
	r := do(t, s, ses, contained, bash(ses, "curl -sS http://bad.example.org/; echo; curl -sS https://bad.example.org/; echo $?; curl -sS -x socks5h://127.0.0.1:3128 http://bad.example.org/; echo $?"))
	if !strings.HasPrefix(r.out, "The person at this computer did not allow it.\n") || !strings.Contains(r.err, "403") || !strings.Contains(r.err, "SOCKS") && !strings.Contains(r.err, "connect to bad") {
		t.Errorf("output %q, errors %q", r.out, r.err)
	}
	if !slices.Contains(r.res.Notes, "was not allowed to reach bad.example.org") {
		t.Errorf("notes: %q", r.res.Notes)
	}
	r = do(t, s, ses, contained, bash(ses, "curl -s -o /dev/null -w '%{http_connect} ' https://nowhere.invalid/; curl -s http://nowhere.invalid/"))
	if !strings.HasPrefix(r.out, "502 ") || !strings.Contains(r.out, "could not be looked up") {
		t.Errorf("a name that there is not: %q", r.out)
	}
	if len(r.res.Notes) > 0 {
		t.Errorf("notes of what was not refused: %q", r.res.Notes)
	}
}

func TestAProgramWaitsForTheAnswer(t *testing.T) {
	w, s, ses := newWorld(t)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "late") }))
	t.Cleanup(web.Close)
	w.serve(80, web.Listener.Addr().String())
	w.mu.Lock()
	w.decide = func(*capabilities.Connect) error { time.Sleep(700 * time.Millisecond); return nil }
	w.mu.Unlock()
	r := do(t, s, ses, contained, bash(ses, "curl -sS http://slow.example.org/"))
	if r.out != "late" || r.took < 700*time.Millisecond {
		t.Errorf("%q after %v: %s", r.out, r.took, r.err)
	}
}

func TestGitClonesAndSSHFindsItsWay(t *testing.T) {
	w, s, ses := newWorld(t)
	dir := t.TempDir()
	work, bare := filepath.Join(dir, "work"), filepath.Join(dir, "repo.git")
	for _, args := range [][]string{{"init", "-q", work}, {"-C", work, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "one"},
		{"clone", "-q", "--bare", work, bare}, {"-C", bare, "update-server-info"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	web := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(web.Close)
	w.serve(80, web.Listener.Addr().String())
	if got := sh(t, s, ses, contained, "git clone -q http://git.example.org/repo.git cloned && git -C cloned log --format=%s"); got != "one\n" {
		t.Errorf("cloned: %q", got)
	}
	// An ssh server that says who it is, and no more.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "SSH-2.0-test\r\n")
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, _ = io.ReadFull(c, make([]byte, 8))
			c.Close()
		}
	}()
	w.serve(22, l.Addr().String())
	do(t, s, ses, contained, bash(ses, "ssh -o StrictHostKeyChecking=no git@ssh.example.org; git clone -q git@ssh.example.org:a/b.git"))
	n := 0
	for _, h := range w.hosts() {
		if h == "ssh.example.org:22" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("asked for %v", w.hosts())
	}
	w.deny("ssh.example.org")
	if r := do(t, s, ses, contained, bash(ses, "ssh -o StrictHostKeyChecking=no git@ssh.example.org")); !strings.Contains(r.err, "was not allowed") {
		t.Errorf("ssh said %q", r.err)
	}
}

func TestAHundredMegabytesBothWays(t *testing.T) {
	w, s, ses := newWorld(t)
	const size = 100 << 20
	var got string
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			h := sha256.New()
			n, _ := io.Copy(h, r.Body)
			got = fmt.Sprintf("%d %s", n, hex.EncodeToString(h.Sum(nil)))
			return
		}
		rw.Header().Set("Content-Length", strconv.Itoa(size))
		chunk := make([]byte, 1<<20)
		for range size >> 20 {
			_, _ = rw.Write(chunk)
		}
	}))
	t.Cleanup(web.Close)
	w.serve(80, web.Listener.Addr().String())
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, peak := heap(), uint64(0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				peak = max(peak, heap())
			}
		}
	})
	out := sh(t, s, ses, contained, "head -c 104857600 /dev/zero > z; curl -sSf http://big.example.org/ | wc -c; curl -sSf -T z http://big.example.org/z; curl -sSf -p http://big.example.org/ | cmp - z && echo same")
	close(stop)
	wg.Wait()
	if out != "104857600\nsame\n" {
		t.Errorf("came: %q", out)
	}
	if want := fmt.Sprintf("%d %s", size, zeros(size)); got != want {
		t.Errorf("went %s, want %s", got, want)
	}
	if peak > before+12<<20 {
		t.Errorf("the heap grew by %d MiB", (peak-before)>>20)
	}
}

func zeros(n int64) string {
	h := sha256.New()
	_, _ = io.CopyN(h, zero{}, n)
	return hex.EncodeToString(h.Sum(nil))
}

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestStopEndsATransfer(t *testing.T) {
	w, s, ses := newWorld(t)
	gone := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 4096)
		for r.Context().Err() == nil {
			if _, err := rw.Write(chunk); err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		close(gone)
	}))
	t.Cleanup(web.Close)
	w.serve(80, web.Listener.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := capabilitytest.DoWith(ctx, t, s, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "curl -sS http://long.example.org/ > out")), contained)
		done <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); len(w.hosts()) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was asked for")
		}
	}
	time.Sleep(100 * time.Millisecond)
	cancel()
	if err := <-done; wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("ended with %v", err)
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the server still sends")
	}
}

// TestNoOtherWayOut tries what needs no proxy; with full access each works.
func TestNoOtherWayOut(t *testing.T) {
	_, s, ses := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	abstract, err := net.Listen("unix", "@shelltest-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	go func() {
		b := make([]byte, 64)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(b[:n], from)
		}
	}()
	py := func(body string) string { return "/usr/bin/python3 -c 'import socket\n" + body + "'" }
	attempts := map[string]string{
		"tcp":             py(fmt.Sprintf(`socket.create_connection(("127.0.0.1", %d), 3)`, l.Addr().(*net.TCPAddr).Port)),
		"abstract socket": py(fmt.Sprintf(`s = socket.socket(socket.AF_UNIX); s.connect("\0%s")`, strings.TrimPrefix(abstract.Addr().String(), "@"))),
		"udp":             py(fmt.Sprintf("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(b\"x\", (\"127.0.0.1\", %d)); s.recv(1)", udp.LocalAddr().(*net.UDPAddr).Port)),
	}
	if six, err := net.Listen("tcp", "[::1]:0"); err == nil {
		defer six.Close()
		attempts["ipv6"] = py(fmt.Sprintf(`socket.create_connection(("::1", %d), 3)`, six.Addr().(*net.TCPAddr).Port))
	}
	for name, text := range attempts {
		if r := do(t, s, ses, full, bash(ses, text)); r.exit.ExitCode != 0 {
			t.Errorf("%s: the attempt itself is wrong: %s", name, r.err)
		}
		if r := do(t, s, ses, contained, bash(ses, text)); r.exit.ExitCode == 0 {
			t.Errorf("%s gets out of the container", name)
		}
	}
	if r := do(t, s, ses, contained, bash(ses, "ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; grep -c . /proc/net/route")); !strings.HasPrefix(r.out, "lo\n1\n") {
		t.Errorf("interfaces and routes: %q", r.out)
	}
}

func TestWithoutAConnectorThereIsNoProxy(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	if r := do(t, s, ses, contained, bash(ses, "env | grep -i proxy; exec 3<>/dev/tcp/127.0.0.1/3128")); r.out != "" || r.exit.ExitCode == 0 {
		t.Errorf("a proxy: %q, %s", r.out, r.res.Outcome)
	}
	// With one, full access has its own network and needs none.
	_, s, ses = newWorld(t)
	if r := do(t, s, ses, full, bash(ses, "env | grep -i _proxy=http://127.0.0.1:3128")); r.out != "" {
		t.Errorf("full access is sent through the proxy: %q", r.out)
	}
}
