package network_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/network"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zone answers look-ups: each name with its answers in turn, the last for ever.
type zone struct {
	mu      sync.Mutex
	answers map[string][][]string // guarded by mu
	asked   int                   // guarded by mu
}

func (z *zone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	a := z.answers[host]
	if len(a) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(a) > 1 {
		z.answers[host] = a[1:]
	}
	var out []netip.Addr
	for _, s := range a[0] {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

// rig is a Network whose edge is the test's own.
type rig struct {
	*network.Network
	zone   *zone
	mu     sync.Mutex
	dialed []string // guarded by mu
	leads  string   // where each connection leads; "" refuses
}

func newRig(t testing.TB, changes ...func(*network.Options)) *rig {
	t.Helper()
	r := &rig{zone: &zone{answers: map[string][][]string{"www.example.org": {{"203.0.113.7"}}, "localhost": {{"127.0.0.1", "::1"}}, "printer.example.org": {{"192.168.1.5"}},
		"both.example.org": {{"203.0.113.7", "192.168.1.5"}}, "metadata.google.internal": {{"169.254.169.254"}}, "all.example.org": {{"224.0.0.1"}}}}}
	o := network.Options{Resolver: r.zone, Interfaces: func() ([]netip.Prefix, error) { return nil, nil }, Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		r.mu.Lock()
		r.dialed = append(r.dialed, to.String())
		leads := r.leads
		r.mu.Unlock()
		if leads == "" {
			return nil, errors.New("refused")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", leads)
	}}
	for _, c := range changes {
		c(&o)
	}
	r.Network = network.New(o)
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *rig) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dialed)
}

// server takes connections on this computer.
func server(t testing.TB, serve func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer c.Close(); serve(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// ends are the two ends of a TCP connection: the program's, and the command's
// as the executor gets it.
func ends(t testing.TB) (program, client *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); c.Close() })
	return p.(*net.TCPConn), c.(*net.TCPConn)
}

func connectTo(host string, port int) *capabilities.Connect {
	return &capabilities.Connect{SessionID: "s", Command: "c1", Program: "npm", Line: "npm install", Host: host, Port: port, Established: func() error { return nil }}
}

func call(t testing.TB, c *capabilities.Connect) capabilities.Call {
	t.Helper()
	s := capabilitytest.NewSession(t, consent.ModeWork)
	c.SessionID = s.ID
	return capabilitytest.NewCall(t, s, capabilities.TypeConnect, c)
}

func describe(t testing.TB, r *rig, host string, port int) capabilities.Description {
	t.Helper()
	d, err := r.Describe(t.Context(), call(t, connectTo(host, port)))
	if err != nil {
		t.Fatalf("%s: %v", host, err)
	}
	return d
}

func TestACardSaysWhereItLeads(t *testing.T) {
	r := newRig(t)
	d := describe(t, r, "WWW.example.org.", 443)
	if d.Sentence != "%s: a command (npm) wants to reach www.example.org." || d.Title != "Reach www.example.org" || d.Exact != "www.example.org:443" || d.Action != "internet" || d.Risk != consent.RiskNormal {
		t.Errorf("%+v", d)
	}
	if !d.NoOnce || !slices.Equal(d.Scopes, []consent.Scope{consent.Command, consent.Session, consent.Minutes15, consent.Always}) || d.Rule.Exact != "www.example.org:443" || d.Wide == nil || d.Wide.Action != "internet" {
		t.Errorf("offered: %+v", d)
	}
	if got := strings.Join(d.Details, "\n"); got != "At port 443, encrypted web\nIts addresses now: 203.0.113.7\nThe command: npm install" {
		t.Errorf("details: %s", got)
	}
	for host, want := range map[string][]string{
		"printer.example.org":      {"home", "a device in your own network"},
		"both.example.org":         {"home", "203.0.113.7 (a computer on the internet), 192.168.1.5"},
		"localhost":                {"local", "a program on this computer"},
		"0x7f.1":                   {"local", "which is another way to write 127.0.0.1"},
		"169.254.169.254":          {"link", "gives a cloud computer its own keys"},
		"metadata.google.internal": {"link", "act for this whole computer"},
		"169.254.7.7":              {"link", "on the same cable"},
	} {
		d := describe(t, r, host, 80)
		if text := d.Sentence + strings.Join(d.Details, "\n"); d.Action != want[0] || !strings.Contains(text, want[1]) {
			t.Errorf("%s: %s, %s", host, d.Action, text)
		}
		if d.Risk != consent.RiskHigh || slices.Contains(d.Scopes, consent.Always) || d.Wide != nil {
			t.Errorf("%s: risk %d, scopes %v, wide %v", host, d.Risk, d.Scopes, d.Wide)
		}
	}
	if text := strings.Join(describe(t, newRig(t, func(o *network.Options) {
		o.Resolver = &zone{answers: map[string][][]string{"xn--pple-43d.example": {{"203.0.113.7"}}}}
	}), "аpple.example", 443).Details, "\n"); !strings.Contains(text, "Careful: the name аpple.example has letters of several alphabets") {
		t.Errorf("a name that looks like another: %s", text)
	}
	for host, code := range map[string]wire.Code{"nowhere.example.org": wire.CodePathNotFound, "all.example.org": wire.CodeInvalid, "255.255.255.255": wire.CodeInvalid, "a b": wire.CodeInvalid} {
		if _, err := r.Describe(t.Context(), call(t, connectTo(host, 80))); wire.CodeOf(err) != code {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// run takes c through describe, a grant for what was described, and run.
func run(t testing.TB, r *rig, c *capabilities.Connect) (capabilities.Result, error) {
	t.Helper()
	res, _, err := capabilitytest.Do(t.Context(), t, r, call(t, c))
	return res, err
}

func TestBytesGoBothWaysAndAreCounted(t *testing.T) {
	r := newRig(t)
	r.leads = server(t, func(c *net.TCPConn) {
		got, _ := io.ReadAll(c) // the program's end comes before the answer
		fmt.Fprintf(c, "got %d", len(got))
	})
	program, client := ends(t)
	c := connectTo("www.example.org", 443)
	c.Client = client
	told := 0
	c.Established = func() error { told++; return nil }
	var answer []byte
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = program.Write(make([]byte, 5000))
		_ = program.CloseWrite()
		answer, _ = io.ReadAll(program)
	}()
	res, err := run(t, r, c)
	<-done
	if err != nil || string(answer) != "got 5000" || told != 1 {
		t.Fatalf("%v: %q, told %d times", err, answer, told)
	}
	if res.Sent != 5000 || res.Received != 8 || res.Outcome != "sent 5.0 KB, received 8 bytes" {
		t.Errorf("%+v", res)
	}
	if got := r.seen(); !slices.Equal(got, []string{"203.0.113.7:443"}) {
		t.Errorf("connected to %v", got)
	}
}

func TestTheServersEndIsPassedOn(t *testing.T) {
	r := newRig(t)
	rest := make(chan string, 1)
	r.leads = server(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "all I have")
		_ = c.CloseWrite()
		b, _ := io.ReadAll(c)
		rest <- string(b)
	})
	program, client := ends(t)
	c := connectTo("www.example.org", 443)
	c.Client = client
	go func() {
		b, _ := io.ReadAll(program) // ends before this one does
		_, _ = io.WriteString(program, "you said "+string(b))
		program.Close()
	}()
	if _, err := run(t, r, c); err != nil {
		t.Fatal(err)
	}
	if got := <-rest; got != "you said all I have" {
		t.Errorf("the server heard %q", got)
	}
}

// The name leads to the internet for the card, and home when it is connected
// to: nothing is dialled.
func TestANameThatMovesIsNotConnectedTo(t *testing.T) {
	for _, second := range []string{"127.0.0.1", "192.168.1.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1"} {
		r := newRig(t)
		r.zone.answers["moves.example.org"] = [][]string{{"203.0.113.7"}, {second}}
		r.leads = server(t, func(*net.TCPConn) {})
		c := connectTo("moves.example.org", 80)
		_, c.Client = ends(t)
		if _, err := run(t, r, c); !errors.Is(err, consent.ErrChanged) {
			t.Errorf("%s: %v", second, err)
		}
		if got := r.seen(); len(got) > 0 {
			t.Errorf("%s: connected to %v", second, got)
		}
	}
	// Another address of the same kind is what large services have all the time.
	r := newRig(t)
	r.zone.answers["moves.example.org"] = [][]string{{"203.0.113.7"}, {"203.0.113.8"}}
	r.leads = server(t, func(*net.TCPConn) {})
	c := connectTo("moves.example.org", 80)
	var program *net.TCPConn
	program, c.Client = ends(t)
	_ = program.CloseWrite()
	if _, err := run(t, r, c); err != nil || !slices.Equal(r.seen(), []string{"203.0.113.8:80"}) || r.zone.asked != 2 {
		t.Errorf("%v, connected to %v after %d look-ups", err, r.seen(), r.zone.asked)
	}
}

func TestTheNextAddressIsTried(t *testing.T) {
	to := server(t, func(*net.TCPConn) {})
	r := newRig(t)
	r.zone.answers["many.example.org"] = [][]string{{"2001:db8::1", "203.0.113.1", "203.0.113.2"}}
	n := newRig(t, func(o *network.Options) {
		o.Resolver = r.zone
		o.Dial = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			switch a.Addr().String() {
			case "2001:db8::1":
				return nil, errors.New("no route")
			case "203.0.113.1":
				<-ctx.Done() // silent
				return nil, ctx.Err()
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", to)
		}
	})
	c := connectTo("many.example.org", 80)
	var program *net.TCPConn
	program, c.Client = ends(t)
	_ = program.CloseWrite()
	begin := time.Now()
	if _, err := run(t, n, c); err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	// None at all is said.
	none := newRig(t)
	c = connectTo("www.example.org", 80)
	_, c.Client = ends(t)
	if _, err := run(t, none, c); wire.CodeOf(err) != wire.CodeOffline || !strings.Contains(err.Error(), "www.example.org") {
		t.Errorf("nobody answers: %v", err)
	}
}

func TestThisComputersOwnProxy(t *testing.T) {
	to := server(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "through") })
	var through []string
	r := newRig(t, func(o *network.Options) {
		o.Proxy = func(host string, port int) (string, func(context.Context) (net.Conn, error)) {
			return "proxy.example.org:3128", func(ctx context.Context) (net.Conn, error) {
				through = append(through, fmt.Sprintf("%s:%d", host, port))
				return (&net.Dialer{}).DialContext(ctx, "tcp", to)
			}
		}
	})
	for _, host := range []string{"www.example.org", "onlytheproxyknows.example.org"} {
		if d := describe(t, r, host, 443); !strings.Contains(strings.Join(d.Details, "\n"), "this computer's own proxy, proxy.example.org:3128") || d.Action != "internet" {
			t.Errorf("%s: %+v", host, d)
		}
		program, client := ends(t)
		c := connectTo(host, 443)
		c.Client = client
		go func() { _, _ = io.ReadAll(program); program.Close() }()
		if res, err := run(t, r, c); err != nil || res.Received != 7 {
			t.Errorf("%s: %v, %+v", host, err, res)
		}
	}
	if !slices.Equal(through, []string{"www.example.org:443", "onlytheproxyknows.example.org:443"}) || len(r.seen()) > 0 {
		t.Errorf("through the proxy %v, past it %v", through, r.seen())
	}
	// What is near is neither the proxy's to look up nor to connect to.
	if _, err := r.Describe(t.Context(), call(t, connectTo("nas.local", 80))); wire.CodeOf(err) != wire.CodePathNotFound {
		t.Errorf("a near name: %v", err)
	}
	if d := describe(t, r, "localhost", 80); d.Action != "local" || strings.Contains(strings.Join(d.Details, "\n"), "proxy") {
		t.Errorf("localhost: %+v", d)
	}
}

// asFile lets the suite see a connection as it sees every executor: what the
// other end sends becomes the frames of a reply.
type asFile struct{ *rig }

func (asFile) Types() []wire.Type { return []wire.Type{wire.TypeFileRead} }

func (a asFile) connect(c capabilities.Call) capabilities.Call {
	p := c.Payload.(*wire.FileRead)
	c.Type, c.Payload = capabilities.TypeConnect, connectTo(p.Path, 443)
	return c
}

func (a asFile) Describe(ctx context.Context, c capabilities.Call) (capabilities.Description, error) {
	return a.rig.Describe(ctx, a.connect(c))
}

func (a asFile) Run(ctx context.Context, c capabilities.Call, g consent.Grant, out capabilities.Output) (capabilities.Result, error) {
	program, client := net.Pipe()
	c = a.connect(c)
	c.Payload.(*capabilities.Connect).Client = client
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer program.Close()
		b := make([]byte, wire.MaxChunk)
		for {
			k, err := program.Read(b)
			if k > 0 {
				if err := out.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: b[:k]}); err != nil {
					done <- err
					return
				}
			}
			if err != nil {
				done <- nil
				return
			}
		}
	}()
	defer cancel()
	res, err := a.rig.Run(ctx, c, g, out)
	if err != nil {
		cancel() // else the last piece may still be on its way
	}
	client.Close()
	if serr := <-done; err == nil && serr != nil {
		err = serr
	}
	return res, err
}

func TestConformance(t *testing.T) {
	var size atomic.Int64
	to := server(t, func(c *net.TCPConn) {
		b := make([]byte, 64<<10)
		for left := size.Load(); left > 0; left -= int64(len(b)) {
			if _, err := c.Write(b[:min(int64(len(b)), left)]); err != nil {
				return
			}
		}
	})
	read := func(n int64) func(testing.TB, *capabilities.Session) capabilities.Call {
		return func(t testing.TB, s *capabilities.Session) capabilities.Call {
			size.Store(n)
			return capabilitytest.NewCall(t, s, wire.TypeFileRead, &wire.FileRead{SessionID: s.ID, Path: "www.example.org"})
		}
	}
	var last *rig
	capabilitytest.Run(t, capabilitytest.Suite{
		New: func(t testing.TB) capabilities.Capability {
			last = newRig(t)
			last.leads = to
			return asFile{last}
		},
		Small: read(3), Large: read(capabilitytest.LargeBytes),
		Change: func(testing.TB, *capabilities.Session) {
			last.zone.mu.Lock()
			last.zone.answers["www.example.org"] = [][]string{{"10.0.0.1"}}
			last.zone.mu.Unlock()
		},
	})
}
