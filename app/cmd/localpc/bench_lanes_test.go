//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/gorilla/websocket"

	"localpc/app/apptest"
)

// moved is how much a transfer moves.
const moved = 100 << 20

// BenchmarkLanes is the second half of "make bench": a command and 100 MiB each
// way through a hub of one's own over TLS, at three distances from it, beside
// ssh and scp over the same distance; what a transfer does to a command's time;
// and the memory that 10 GiB take. The distance is a relay that keeps each byte
// for half of the round trip.
func BenchmarkLanes(b *testing.B) {
	if b.N > 1 {
		b.Skip("one round tells it: -benchtime 1x")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	defer w.Flush()
	lane := newLane(b)
	server := startSSH(b)
	for _, delay := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		lane.connect(b, delay)
		sshAt := relay(b, server.address, delay)
		rounds := 100
		if delay > 0 {
			rounds = 20
		}
		fmt.Fprintf(w, "\nround trip %s: sh -c true\tmedian\tp95\tto bare\tto ssh\n", delay)
		rows := []*timed{
			{name: "bare fork and exec", do: func() error { return exec.Command("sh", "-c", "true").Run() }},
			{name: "ssh, ControlMaster", do: server.master(b, sshAt)},
			{name: "a bare WebSocket", do: overWebSocket(b, delay)},
			{name: "localpc, contained", do: lane.command},
		}
		takeTurns(b, rows, rounds, 5)
		for _, r := range rows {
			printRow(w, r, rows[0], rows[1])
		}
		ours := median(rows[3].took)
		aim(w, "contained, less the line, to bare", ratio(ours-median(rows[2].took)+median(rows[0].took), median(rows[0].took)), 1.5)
		aim(w, "contained, to ssh", ratio(ours, median(rows[1].took)), 0.2)
		w.Flush()

		fmt.Fprintf(w, "\nround trip %s: 100 MiB\tmedian\tMiB/s\tto scp\n", delay)
		file := filepath.Join(b.TempDir(), "payload")
		payload := make([]byte, moved)
		rand.Read(payload)
		if err := os.WriteFile(file, payload, 0o600); err != nil {
			b.Fatal(err)
		}
		scp := func(from, to string) func() error {
			return func() error {
				return exec.Command("scp", append(server.options("-P", sshAt), "-q", "-c", "aes128-gcm@openssh.com", from, to)...).Run()
			}
		}
		there := server.user + "@127.0.0.1:" + filepath.Join(server.dir, "payload")
		moves := []*timed{
			{name: "scp, there", do: scp(file, there)},
			{name: "localpc, there", do: func() error { return lane.upload(payload) }},
			{name: "scp, back", do: scp(there, filepath.Join(server.dir, "back"))},
			{name: "localpc, back", do: func() error { return lane.download(lane.last, moved) }},
		}
		takeTurns(b, moves, 3, 0)
		for i, r := range moves {
			m := median(r.took)
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.2f ×\n", r.name, m.Round(time.Millisecond), 100/m.Seconds(), ratio(m, median(moves[i&^1].took)))
		}
		for i, way := range []string{"there", "back"} {
			aim(w, "100 MiB "+way+", to scp", ratio(median(moves[2*i+1].took), median(moves[2*i].took)), 1)
		}
		w.Flush()

		fmt.Fprintf(w, "\nround trip %s: a command\tmedian\tp95\tp95 to idle\n", delay)
		// What the two cores alone do to a command is told by ssh beside scp.
		for _, who := range []struct {
			name        string
			do          func() error
			there, back func() error
		}{
			{"ssh", rows[1].do, scp(file, there), scp(there, filepath.Join(server.dir, "back"))},
			{"localpc", lane.command, func() error { return lane.upload(payload) }, func() error { return lane.download(lane.last, moved) }},
		} {
			idle := &timed{name: who.name + ", while nothing else goes on", do: who.do}
			takeTurns(b, []*timed{idle}, rounds, 2)
			during := []*timed{
				{name: who.name + ", while 100 MiB go there, again and again", do: who.do},
				{name: who.name + ", while 100 MiB come back, again and again", do: who.do},
			}
			for i, move := range []func() error{who.there, who.back} {
				again(b, move, func() { takeTurns(b, during[i:i+1], rounds, 2) })
			}
			for _, r := range append([]*timed{idle}, during...) {
				fmt.Fprintf(w, "%s\t%s\t%s\t%.1f ×\n", r.name, median(r.took).Round(10*time.Microsecond), quantile(r.took, 0.95).Round(10*time.Microsecond),
					ratio(quantile(r.took, 0.95), quantile(idle.took, 0.95)))
			}
			if who.name == "localpc" {
				for _, r := range during {
					aim(w, "p95, "+strings.TrimPrefix(r.name, "localpc, "), ratio(quantile(r.took, 0.95), quantile(idle.took, 0.95)), 2)
				}
			}
		}
		w.Flush()
	}
	lane.connect(b, 0)
	fmt.Fprintln(w, "\n10 GiB\ttook\tMiB/s\tlocalpc grew by\tlocalpc-hub grew by")
	for _, way := range []struct {
		name string
		do   func(size int64) error
	}{
		{"there", lane.fill}, {"back", func(size int64) error { return lane.download(lane.last, size) }},
	} {
		took, grown := lane.grows(b, func() error { return way.do(10 << 30) })
		fmt.Fprintf(w, "localpc, %s\t%s\t%.0f\t%.1f MB\t%.1f MB\n", way.name, took.Round(time.Second), 10*1024/took.Seconds(), float64(grown[0])/1e6, float64(grown[1])/1e6)
	}
}

// aim prints what was measured beside the most that it should be, by design.
func aim(w io.Writer, what string, got, most float64) {
	word := "met"
	if got > most {
		word = "missed"
	}
	fmt.Fprintf(w, "  aim: %s\t%.2f ×\tat most %g ×\t%s\n", what, got, most, word)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func printRow(w io.Writer, r, bare, ssh *timed) {
	m := median(r.took)
	fmt.Fprintf(w, "%s\t%s\t%s\t%.1f ×\t%.2f ×\n", r.name, m.Round(10*time.Microsecond), quantile(r.took, 0.95).Round(10*time.Microsecond),
		ratio(m, median(bare.took)), ratio(m, median(ssh.took)))
}

// takeTurns runs each row once a round, so that what else the computer does
// meets all alike; the first rounds are not counted.
func takeTurns(b *testing.B, rows []*timed, rounds, warm int) {
	b.Helper()
	for i := range rounds + warm {
		for _, r := range rows {
			began := time.Now()
			if err := r.do(); err != nil {
				b.Fatalf("%s: %v", r.name, err)
			}
			if i >= warm {
				r.took = append(r.took, time.Since(began))
			}
		}
	}
}

// again repeats move beside while, and waits for both.
func again(b *testing.B, move func() error, while func()) {
	b.Helper()
	var over atomic.Bool
	done := make(chan error, 1)
	go func() {
		for !over.Load() {
			if err := move(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	while()
	over.Store(true)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// relay is address at a distance: what goes in comes out half of the round trip
// later, each way, however much it is.
func relay(b *testing.B, address string, roundTrip time.Duration) string {
	b.Helper()
	if roundTrip == 0 {
		return address
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	keep := func(c net.Conn) { mu.Lock(); open[c] = true; mu.Unlock() }
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				near.Close()
				continue
			}
			keep(near)
			keep(far)
			wg.Go(func() { later(far, near, roundTrip/2) })
			wg.Go(func() { later(near, far, roundTrip/2) })
		}
	})
	b.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// later copies from src to dst, each piece by so much later.
func later(dst, src net.Conn, by time.Duration) {
	type piece struct {
		due  time.Time
		data []byte
	}
	line := make(chan piece, 4096) // of 64 KiB at most: more than any window here
	go func() {
		defer close(line)
		for {
			buf := make([]byte, 64<<10)
			n, err := src.Read(buf)
			if n > 0 {
				line <- piece{time.Now().Add(by), buf[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	failed := false
	for p := range line {
		time.Sleep(time.Until(p.due))
		if !failed {
			_, err := dst.Write(p.data)
			failed = err != nil
		}
	}
	if c, ok := dst.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}

// overWebSocket is the least that any tunnel costs: one frame there, the
// command, one frame back.
func overWebSocket(b *testing.B, delay time.Duration) func() error {
	up := websocket.Upgrader{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			if _, _, err := c.ReadMessage(); err != nil {
				return
			}
			if exec.Command("sh", "-c", "true").Run() != nil || c.WriteMessage(websocket.TextMessage, []byte("0")) != nil {
				return
			}
		}
	}))
	b.Cleanup(srv.Close)
	c, _, err := websocket.DefaultDialer.Dial("ws://"+relay(b, srv.Listener.Addr().String(), delay), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return func() error {
		if err := c.WriteMessage(websocket.TextMessage, []byte("sh -c true")); err != nil {
			return err
		}
		_, _, err := c.ReadMessage()
		return err
	}
}

// lane is a hub of one's own with TLS, a computer that is connected to it, and a
// client.
type lane struct {
	d            *apptest.Desktop
	bin, hubData string
	folder       string
	cert         string
	hub          string // its address
	hubProcess   *apptest.Process
	machine      *apptest.Process
	client       *http.Client
	key          string
	sandbox      string
	token        string
	n            int
	uploads      atomic.Int64
	last         string // the newest upload
}

func newLane(b *testing.B) *lane {
	l := &lane{d: apptest.New(b, apptest.Options{NoTray: true, NoNotifications: true}), hub: freeAddress(b)}
	l.bin = l.d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	l.hubData, l.folder = filepath.Join(l.d.Home, "hub"), filepath.Join(l.d.Home, "work")
	if err := os.Mkdir(l.folder, 0o755); err != nil {
		b.Fatal(err)
	}
	var key string
	var pool *x509.CertPool
	l.cert, key, pool = certificate(b)
	l.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, WriteBufferSize: 256 << 10, ReadBufferSize: 256 << 10}}
	b.Cleanup(l.client.CloseIdleConnections)
	l.hubProcess = l.d.Start(filepath.Join(l.bin, "localpc-hub"), "serve", "--data", l.hubData, "--listen", l.hub, "--tls-cert", l.cert, "--tls-key", key)
	l.d.WaitOutput(l.hubProcess, 20*time.Second, "set it up")
	l.key = keyIn(l.run(b, "localpc-hub", "key", "add", "Bench", "--data", l.hubData))
	return l
}

func (l *lane) run(b *testing.B, name string, args ...string) string {
	b.Helper()
	out, err := l.d.Run(30*time.Second, filepath.Join(l.bin, name), args...)
	if err != nil {
		b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// connect puts the computer at a distance from the hub, and opens a sandbox.
func (l *lane) connect(b *testing.B, delay time.Duration) {
	b.Helper()
	if l.machine != nil {
		_ = l.machine.Signal(syscall.SIGINT)
		l.machine.ExitCode(20 * time.Second)
	}
	l.n++
	data := filepath.Join(l.d.Home, fmt.Sprint("data", l.n))
	line := ""
	for _, w := range strings.Fields(l.run(b, "localpc-hub", "machine", "add", "Bench", "--data", l.hubData)) {
		if strings.Contains(w, "://") {
			line = strings.Replace(w, l.hub, relay(b, l.hub, delay), 1)
		}
	}
	cmd := l.d.Command(filepath.Join(l.bin, "localpc"), "run", "--data", data, "--policy", "contained", "--folder", l.folder)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") }), "SSL_CERT_FILE="+l.cert)
	l.machine = l.d.StartCmd("localpc", cmd)
	l.d.WaitOutput(l.machine, 20*time.Second, "running")
	l.run(b, "localpc", "pair", line, "--data", data)
	var made struct {
		SandboxID       string `json:"sandboxID"`
		EnvdAccessToken string `json:"envdAccessToken"`
	}
	l.sandbox = ""
	l.d.Until(20*time.Second, func() bool {
		resp, err := l.do("POST", "/api/sandboxes", strings.NewReader(`{"templateID":"base","timeout":3600,"secure":true}`))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == 201 && json.NewDecoder(resp.Body).Decode(&made) == nil
	})
	if made.SandboxID == "" {
		b.Fatal("no sandbox was made")
	}
	l.sandbox, l.token = made.SandboxID, made.EnvdAccessToken
}

func (l *lane) do(method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, "https://"+l.hub+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-API-KEY", l.key)
	if l.sandbox != "" {
		req.Header.Set("E2b-Sandbox-Id", l.sandbox)
		req.Header.Set("X-Access-Token", l.token)
	}
	if strings.Contains(path, ".Process/") {
		req.Header.Set("Content-Type", "application/connect+json")
		req.Header.Set("Connect-Protocol-Version", "1")
	} else if strings.Contains(path, "/files") {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	return l.client.Do(req)
}

func (l *lane) command() error {
	message := []byte(`{"process":{"cmd":"/bin/sh","args":["-c","true"]}}`)
	resp, err := l.do("POST", "/sbx/process.Process/Start", bytes.NewReader(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Contains(answer, []byte(`"exited":true`)) {
		err = fmt.Errorf("the answer is %q", answer)
	}
	return err
}

// upload makes a new file each time: to replace one is another question.
func (l *lane) upload(data []byte) error { return l.put(bytes.NewReader(data)) }

// fill uploads so many zeros.
func (l *lane) fill(size int64) error { return l.put(io.LimitReader(zeros{}, size)) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (l *lane) put(data io.Reader) error {
	name := fmt.Sprint("payload", l.uploads.Add(1))
	resp, err := l.do("POST", "/sbx/files?path="+name, data)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 {
		return fmt.Errorf("upload: %s: %s", resp.Status, answer)
	}
	if before := l.last; before != "" {
		_ = os.Remove(filepath.Join(l.folder, before))
	}
	l.last = name
	return nil
}

func (l *lane) download(name string, size int64) error {
	resp, err := l.do("GET", "/sbx/files?path="+name, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && n != size {
		err = fmt.Errorf("download: %s with %d bytes of %d", resp.Status, n, size)
	}
	return err
}

// grows says how long it took, and by how much the two programs grew meanwhile
// at most.
func (l *lane) grows(b *testing.B, do func() error) (took time.Duration, grown [2]int64) {
	pids := [2]int{l.machine.PID, l.hubProcess.PID}
	var before [2]int64
	for i, pid := range pids {
		before[i] = resident(pid)
	}
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			return time.Since(began), grown
		case <-time.After(200 * time.Millisecond):
			for i, pid := range pids {
				grown[i] = max(grown[i], resident(pid)-before[i])
			}
		}
	}
}

func resident(pid int) int64 {
	c, err := apptest.Idle(pid, 0)
	if err != nil {
		return 0
	}
	return c.Resident
}

// certificate is one for loopback that nobody has signed.
func certificate(b *testing.B) (cert, key string, pool *x509.CertPool) {
	b.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &k.PublicKey, k)
	if err != nil {
		b.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		b.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	put(b, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	put(b, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	for _, f := range []string{dir, cert, key} { // the program runs as somebody else
		if err := os.Chmod(f, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AddCert(made)
	return cert, key, pool
}
