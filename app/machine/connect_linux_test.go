package machine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/capabilities/network"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel/wire"
)

// buildSpawn is localpc-spawn, built once for the tests that run commands.
var buildSpawn = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "machinetest")
	if err != nil {
		return "", err
	}
	spawnDir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "localpc-spawn")
	build := exec.Command("go", "build", "-tags", "gles", "-o", path, "localpc/app/cmd/localpc-spawn")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// netRig is a machine with the real executors of commands and connections;
// only the edge of the network is the test's own.
type netRig struct {
	*rig
	web *httptest.Server

	mu      sync.Mutex
	answers map[string][]string // a name's addresses, one after the other; guarded by mu
	dialed  []string            // guarded by mu
	choice  consent.Choice      // of each card about a connection
	allow   bool
	hold    chan struct{} // the person waits for it; nil: not
}

// LookupNetIP gives each name an address of the internet's unless told.
func (n *netRig) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.answers[host]
	if len(a) == 0 {
		return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
	}
	if len(a) > 1 {
		n.answers[host] = a[1:]
	}
	return []netip.Addr{netip.MustParseAddr(a[0])}, nil
}

func newNetRig(t *testing.T, page http.HandlerFunc) *netRig {
	t.Helper()
	spawn, err := buildSpawn()
	must(t, err)
	n := &netRig{rig: newRig(t), answers: map[string][]string{}, allow: true, choice: consent.Choice{Scope: consent.Command}}
	n.web = httptest.NewServer(page)
	t.Cleanup(n.web.Close)
	net := network.New(network.Options{Resolver: n, Interfaces: func() ([]netip.Prefix, error) { return nil, nil },
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			n.mu.Lock()
			n.dialed = append(n.dialed, to.String())
			n.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, "tcp", n.web.Listener.Addr().String())
		}})
	sh, err := shell.New(shell.Options{Spawn: spawn, Home: t.TempDir(), LoginPath: "/usr/local/bin:/usr/bin:/bin", Connect: n.m.Connect})
	must(t, err)
	t.Cleanup(func() { must(t, sh.Close()); must(t, net.Close()) })
	if why := sh.Probe(t.Context()); why != "" {
		t.Fatalf("these tests need containment: %s", why)
	}
	n.m.o.Executors = []capabilities.Capability{sh, net}
	n.m.registry = capabilities.NewRegistry(n.m.sessions, sh, net)
	others := n.person.answer
	n.person.answer = func(q consent.Request) (consent.Answer, bool) {
		if q.Capability != "network" {
			return others(q)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		a := consent.Answer{Allow: n.allow, Choice: n.choice, Via: "card"}
		if n.hold == nil {
			return a, true
		}
		hold := n.hold
		go func() { <-hold; _ = n.m.asks.Answer(q.ID, a) }()
		return a, false
	}
	n.open("s1", 0)
	return n
}

// cards are the questions about connections.
func (n *netRig) cards() (out []consent.Request) {
	for _, q := range n.person.seen() {
		if q.Capability == "network" {
			out = append(out, q)
		}
	}
	return out
}

func (n *netRig) reached() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dialed)
}

// lines are the log's, of connections.
func (n *netRig) lines() (out []snapshot.Entry) {
	entries, _ := n.m.journal.entries(func(string) int { return 0 })
	for _, e := range entries {
		if e.Capability == "network" {
			out = append(out, e)
		}
	}
	return out
}

// said takes what a command writes.
type said struct {
	here
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *said) Send(_ context.Context, _ wire.Type, p wire.Payload) error {
	if o, ok := p.(*wire.ProcessOutput); ok {
		s.mu.Lock()
		s.out.Write(o.Data)
		s.mu.Unlock()
	}
	return nil
}

// run runs a command.
func (n *netRig) run(text string, x *said) error {
	ctx, cancel := context.WithTimeout(n.t.Context(), 40*time.Second)
	defer cancel()
	_, _, err := n.m.dispatch(ctx, wire.Message{Type: wire.TypeProcessStart, Payload: &wire.ProcessStart{SessionID: "s1", Cmd: "/bin/bash", Args: []string{"-c", text}}}, x)
	return err
}

// sh runs a command and returns what it wrote, once its connections have ended.
func (n *netRig) sh(text string) string {
	n.t.Helper()
	x := &said{}
	if err := n.run(text, x); err != nil {
		n.t.Fatalf("%s: %v", text, err)
	}
	// Its connections end with it, a moment later.
	for deadline := time.Now().Add(10 * time.Second); n.m.flights.count("s1", flightConnection) > 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

// decisions counts what the record has about connections.
func (n *netRig) decisions() (allowed, others int) {
	n.t.Helper()
	must(n.t, n.m.o.Store.Since(n.t.Context(), record.KindDecision, time.Now().Add(-time.Hour), func(e consent.Entry) error {
		switch s := string(e.Body); {
		case !strings.Contains(s, `"capability":"network"`):
		case strings.Contains(s, `"outcome":"allowed"`):
			allowed++
		default:
			others++
		}
		return nil
	}))
	return allowed, others
}

// grants waits until as many are remembered for connections.
func (n *netRig) grants(want int) {
	n.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		all, err := n.m.o.Store.Remembered(n.t.Context(), "", "")
		must(n.t, err)
		all = slices.DeleteFunc(all, func(s consent.Stored) bool { return s.Rule.Capability != "network" })
		if len(all) == want {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("remembered are %+v, want %d", all, want)
		}
	}
}

func webPage(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page\n") }

const twelve = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do curl -sS http://www.example.org/$i & done; wait"

func TestManyConnectionsOfACommandAreOneQuestion(t *testing.T) {
	n := newNetRig(t, webPage)
	if got := n.sh(twelve); got != strings.Repeat("page\n", 12) {
		t.Fatalf("came %q", got)
	}
	cards := n.cards()
	if len(cards) != 1 {
		t.Fatalf("%d questions", len(cards))
	}
	q := cards[0]
	if q.Sentence != "Research agent: a command (curl) wants to reach www.example.org." || q.Command == "" || q.Exact != "www.example.org:80" || q.Action != "internet" ||
		!slices.Equal(q.Scopes, []consent.Scope{consent.Command, consent.Session, consent.Minutes15, consent.Always}) {
		t.Errorf("the card: %+v", q)
	}
	if left := time.Until(q.Deadline); left < 40*time.Second || left > 51*time.Second {
		t.Errorf("its card lives %v", left)
	}
	if allowed, others := n.decisions(); allowed != 12 || others != 0 {
		t.Errorf("the record has %d allowed and %d other decisions", allowed, others)
	}
	lines := n.lines()
	if len(lines) != 1 || lines[0].What != "Reach www.example.org:80" || lines[0].Outcome != snapshot.Done || lines[0].Result != "12 connections" || lines[0].By != "you" || lines[0].Received < 12*5 || lines[0].CanStop {
		t.Errorf("the log: %+v", lines)
	}
	// So it is after a restart, and a search finds the one.
	again := newJournal(n.m)
	must(t, again.load(t.Context()))
	for name, j := range map[string]*journal{"now": n.m.journal, "after a restart": again} {
		found, err := j.find(t.Context(), "www.example.org:80", "network")
		must(t, err)
		if len(found) != 1 || found[0].ID != lines[0].ID || found[0].Result != "12 connections" || found[0].Received != lines[0].Received || found[0].Took < 0 {
			t.Errorf("%s: %+v, was %+v", name, found, lines[0])
		}
	}
	// What was allowed for the command has ended with it.
	n.grants(0)
	n.sh("curl -sS http://www.example.org/")
	if len(n.cards()) != 2 {
		t.Error("the next command was not asked about")
	}
	n.choice.Scope = consent.Session
	n.sh("curl -sS http://session.example.org/")
	n.grants(1)
	n.sh("curl -sS http://session.example.org/; curl -sS http://SESSION.example.org./")
	if len(n.cards()) != 3 {
		t.Errorf("asked %d times", len(n.cards()))
	}
}

func TestADeniedConnectionIsDeniedForItsCommand(t *testing.T) {
	n := newNetRig(t, webPage)
	n.allow, n.choice = false, consent.Choice{Scope: consent.Once}
	out := n.sh(twelve + "; for i in 1 2 3; do curl -sS -o /dev/null -w '%{http_code} ' http://www.example.org/$i; done")
	if len(n.cards()) != 1 || strings.Count(out, "403 ") != 3 || strings.Contains(out, "page") || len(n.reached()) > 0 {
		t.Errorf("%d questions, reached %v: %q", len(n.cards()), n.reached(), out)
	}
	if lines := n.lines(); len(lines) != 1 || lines[0].Outcome != snapshot.Denied {
		t.Errorf("the log: %+v", lines)
	}
	entries, _ := n.m.journal.entries(func(string) int { return 0 })
	for _, e := range entries {
		if e.Capability != "shell" {
			continue
		}
		d, err := n.m.journal.detail(t.Context(), e.ID)
		must(t, err)
		if !slices.Contains(d.Notes, "was not allowed to reach www.example.org") {
			t.Errorf("the command's notes: %q", d.Notes)
		}
	}
}

// Many programs give up soon and try again: the answer is for their next try.
func TestAnAnswerAfterTheProgramGaveUp(t *testing.T) {
	n := newNetRig(t, webPage)
	n.hold = make(chan struct{})
	time.AfterFunc(2500*time.Millisecond, func() { close(n.hold) })
	out := n.sh("for i in 1 2 3; do curl -s -m 1 http://www.example.org/; echo $?; done; curl -sS http://www.example.org/")
	if len(n.cards()) != 1 || !strings.HasPrefix(out, "28\n28\n") || !strings.HasSuffix(out, "page\n") {
		t.Errorf("%d questions: %q", len(n.cards()), out)
	}
}

func TestTheEndOfACommandEndsItsQuestion(t *testing.T) {
	n := newNetRig(t, webPage)
	n.hold = make(chan struct{})
	defer close(n.hold)
	n.sh("curl -s -m 1 http://www.example.org/; true")
	for deadline := time.Now().Add(5 * time.Second); n.m.asks.Waiting() > 0 || n.m.flights.count("s1", flightConnection) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the question is still open")
		}
	}
	if len(n.cards()) != 1 || len(n.reached()) > 0 {
		t.Errorf("%d questions, reached %v", len(n.cards()), n.reached())
	}
}

func TestWhatIsNearAsksForItself(t *testing.T) {
	n := newNetRig(t, webPage)
	n.choice.Scope = consent.Session
	n.sh("curl -sS http://www.example.org/")
	for host, action := range map[string]string{"127.0.0.1": "local", "0x7f.1": "local", "192.168.1.1": "home", "169.254.169.254": "link", "[::ffff:127.0.0.1]": "local"} {
		before := len(n.cards())
		n.sh("curl -sS --noproxy '' -x http://127.0.0.1:3128 -p http://" + host + "/")
		cards := n.cards()
		if len(cards) != before+1 {
			// The spellings of one address are one place.
			if action == "local" && len(cards) == before {
				continue
			}
			t.Errorf("%s: %d questions", host, len(cards)-before)
			continue
		}
		if q := cards[before]; q.Action != action || q.Risk != consent.RiskHigh || slices.Contains(q.Scopes, consent.Always) {
			t.Errorf("%s: %+v", host, q)
		}
	}
}

// A name that was allowed leads to this computer when it is connected to.
func TestANameThatMovesIsAskedAgain(t *testing.T) {
	n := newNetRig(t, webPage)
	n.choice.Scope = consent.Session
	n.sh("curl -sS http://moves.example.org/")
	n.mu.Lock()
	n.answers["moves.example.org"] = []string{"203.0.113.7", "127.0.0.1"}
	n.dialed, n.allow = nil, false
	n.mu.Unlock()
	if out := n.sh("curl -sS -o /dev/null -w '%{http_code}' http://moves.example.org/"); out != "403" || len(n.reached()) > 0 {
		t.Errorf("%q, reached %v", out, n.reached())
	}
	if cards := n.cards(); len(cards) != 2 || cards[1].Action != "local" || !strings.Contains(cards[1].Sentence, "a program on this computer") {
		t.Errorf("the cards: %+v", cards)
	}
}

func TestStopEndsConnections(t *testing.T) {
	var open atomic.Int64
	n := newNetRig(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	wait := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(15 * time.Second); open.Load() != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections are open, want %d", open.Load(), want)
			}
		}
	}
	done := make(chan string, 1)
	go func() {
		done <- n.sh("for i in 1 2 3; do curl -s http://long.example.org/ >/dev/null & done; wait; echo over")
	}()
	wait(3)
	if n.m.flights.in("s1") != 1 || n.m.flights.count("s1", flightConnection) != 3 {
		t.Errorf("%d requests, %d connections", n.m.flights.in("s1"), n.m.flights.count("s1", flightConnection))
	}
	// The one line in the log stands for all three.
	lines := n.lines()
	if len(lines) != 1 || lines[0].Outcome != snapshot.Running || !lines[0].CanStop {
		t.Fatalf("the log: %+v", lines)
	}
	_, err := n.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.StopOne, Entry: lines[0].ID})
	must(t, err)
	wait(0)
	if out := within(t, "the command", done); out != "over\n" {
		t.Errorf("the command said %q", out)
	}
	if lines := n.lines(); len(lines) != 1 || lines[0].Outcome != snapshot.Halted || lines[0].Received == 0 {
		t.Errorf("the log: %+v", lines)
	}
	// The end of the session ends command and connection.
	go func() {
		_, _, err := n.m.dispatch(context.Background(), wire.Message{Type: wire.TypeProcessStart, Payload: &wire.ProcessStart{SessionID: "s1", Cmd: "curl", Args: []string{"-s", "http://long.example.org/"}}}, &said{})
		done <- string(wire.CodeOf(err))
	}()
	wait(1)
	must(t, n.m.sessions.end(t.Context(), "s1", "The test ends it.", ""))
	if code := within(t, "the command", done); code != string(wire.CodeStopped) {
		t.Errorf("the command ended with %s", code)
	}
	wait(0)
	n.grants(0)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n.m.journal.mu.Lock()
		lines := len(n.m.journal.joins)
		n.m.journal.mu.Unlock()
		n.m.connects.mu.Lock()
		commands := len(n.m.connects.commands)
		n.m.connects.mu.Unlock()
		if lines == 0 && commands == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d lines and %d commands are kept", lines, commands)
		}
	}
}
