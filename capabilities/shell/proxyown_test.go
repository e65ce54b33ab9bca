//go:build linux

package shell

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/tunnel/wire"
)

// newTestProxy is a proxy without a container around its clients.
func newTestProxy(t *testing.T, connect capabilities.Connector) (*process, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Shell{o: Options{Connect: connect}, rooms: map[string]*room{}}
	p := &process{session: "s", proxy: s.newProxy(capabilities.Connect{SessionID: "s", Command: "c", Program: "sh"})}
	p.proxy.listenTo(l)
	t.Cleanup(p.closeProxy)
	return p, l.Addr().String()
}

// leadTo is a Connector that leads every connection to one server.
func leadTo(address string) capabilities.Connector {
	return func(ctx context.Context, c *capabilities.Connect) error {
		remote, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer remote.Close()
		defer c.Client.Close()
		defer context.AfterFunc(ctx, func() { remote.Close(); c.Client.Close() })()
		if err := c.Established(); err != nil {
			return err
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = io.Copy(remote, c.Client)
			_ = remote.(*net.TCPConn).CloseWrite()
		})
		_, _ = io.Copy(c.Client, remote)
		_ = c.Client.(interface{ CloseWrite() error }).CloseWrite()
		wg.Wait()
		return nil
	}
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c.(*net.TCPConn)
}

func TestWhatAProxyDoesNotTake(t *testing.T) {
	asked := atomic.Int64{}
	_, address := newTestProxy(t, func(context.Context, *capabilities.Connect) error {
		asked.Add(1)
		return wire.Errorf(wire.CodeInternal, "no")
	})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n":                  "400 ",
		"GET ftp://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n":    "400 ",
		"GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n":  "400 ",
		"CONNECT example.org HTTP/1.1\r\nHost: example.org\r\n\r\n":       "400 ",
		"CONNECT example.org:0 HTTP/1.1\r\nHost: example.org\r\n\r\n":     "400 ",
		"CONNECT example.org:65536 HTTP/1.1\r\nHost: example.org\r\n\r\n": "400 ",
		"CONNECT :443 HTTP/1.1\r\nHost: example.org\r\n\r\n":              "400 ",
		"nonsense\r\n\r\n": "400 ",
		"GET http://example.org/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHead) + "\r\n": "431 ",
	} {
		c := dial(t, address)
		go func() { _, _ = io.WriteString(c, request) }()
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) {
			t.Errorf("%.60q: %q, %v", request, line, err)
		}
	}
	for request, want := range map[string]string{
		"\x05\x01\x02": "\x05\xff", // a log-in only
		"\x05\x00":     "\x05\xff", // nothing
		"\x05\x01\x00\x05\x02\x00\x01\x01\x02\x03\x04PP": "\x05\x00\x05\x07", // BIND
		"\x05\x01\x00\x05\x03\x00\x01\x01\x02\x03\x04PP": "\x05\x00\x05\x07", // UDP
		"\x05\x01\x00\x05\x01\x00\x09\x00\x50":           "\x05\x00\x05\x08", // no kind of address
		"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50":       "\x05\x00\x05\x08", // no name
		"\x05\x01\x00\x04\x01\x00\x03":                   "\x05\x00",         // another version
		"\x04\x01\x00\x50\x01\x02\x03\x04\x00":           "HTTP",             // SOCKS4 is neither
	} {
		c := dial(t, address)
		_, _ = io.WriteString(c, request)
		_ = c.CloseWrite()
		got, _ := io.ReadAll(c)
		if !strings.HasPrefix(string(got), want) || len(want) == 2 && len(got) != 2 {
			t.Errorf("%q: %q", request, got)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestASlowHeadIsGivenUp(t *testing.T) {
	was := headWithin
	t.Cleanup(func() { headWithin = was }) // after the proxy's end
	headWithin = 300 * time.Millisecond
	_, address := newTestProxy(t, leadTo(""))
	for _, begin := range []string{"", "GET http://exa", "\x05\x01"} {
		c := dial(t, address)
		_, _ = io.WriteString(c, begin)
		begun := time.Now()
		_, _ = io.ReadAll(c)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%q was waited for, for %v", begin, took)
		}
	}
}

func TestPlainRequestsGoThroughWhole(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range []string{"Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "X-Named"} {
			if v := r.Header.Get(h); v != "" {
				t.Errorf("the server sees %s: %s", h, v)
			}
		}
		if r.Header.Get("Upgrade") != "" {
			c, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := rw.ReadString('\n')
			_, _ = io.WriteString(c, "echo "+line)
			return
		}
		if !r.Close {
			t.Error("the server is to keep the connection")
		}
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %d", r.Method, r.Host, r.URL, len(b))
	}))
	t.Cleanup(web.Close)
	_, address := newTestProxy(t, leadTo(web.Listener.Addr().String()))
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: address, User: url.UserPassword("a", "b")}), ExpectContinueTimeout: 5 * time.Second}}
	t.Cleanup(client.CloseIdleConnections)
	for i, try := range []struct {
		method string
		body   io.Reader
		header string
		want   string
	}{
		{"GET", nil, "", "GET example.org /a?b=c 0"},
		{"POST", strings.NewReader("12345"), "", "POST example.org /a?b=c 5"},
		{"POST", io.MultiReader(bytes.NewReader(make([]byte, 100_000))), "", "POST example.org /a?b=c 100000"}, // chunked
		{"PUT", bytes.NewReader(make([]byte, 3<<20)), "100-continue", "PUT example.org /a?b=c 3145728"},
		{"POST", nil, "", "POST example.org /a?b=c 0"},
		{"DELETE", nil, "", "DELETE example.org /a?b=c 0"},
	} {
		req, err := http.NewRequest(try.method, "http://example.org/a?b=c", try.body)
		if err != nil {
			t.Fatal(err)
		}
		if try.header != "" {
			req.Header.Set("Expect", try.header)
		}
		begin := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != try.want || time.Since(begin) > 3*time.Second {
			t.Errorf("%d: %q after %v", i, b, time.Since(begin))
		}
	}
	c := dial(t, address)
	_, _ = io.WriteString(c, "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: Upgrade, X-Named\r\nX-Named: 1\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v, %v", resp, err)
	}
	_, _ = io.WriteString(c, "hello\n")
	if b, _ := io.ReadAll(in); string(b) != "echo hello\n" {
		t.Errorf("after the upgrade: %q", b)
	}
}

// A client that sends two requests at once has one answered: the other may be
// for somewhere else. The server here takes whatever comes.
func TestARequestThatFollowsIsNotPassedOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		b, _ := io.ReadAll(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		heard <- string(b)
	}()
	_, address := newTestProxy(t, leadTo(l.Addr().String()))
	c := dial(t, address)
	_, _ = io.WriteString(c, "GET http://a.example/1 HTTP/1.1\r\nHost: a.example\r\n\r\nGET http://b.example/2 HTTP/1.1\r\nHost: b.example\r\n\r\n")
	got := <-heard
	if !strings.HasPrefix(got, "GET /1 HTTP/1.1\r\nHost: a.example\r\n") || strings.Contains(got, "b.example") {
		t.Errorf("the server heard %q", got)
	}
	_ = c.CloseWrite()
	if b, _ := io.ReadAll(c); strings.Count(string(b), "200 OK") != 1 {
		t.Errorf("the client heard %q", b)
	}
}

func TestConnectionsOfASessionAreBounded(t *testing.T) {
	asked := make(chan struct{}, 100)
	p, address := newTestProxy(t, func(ctx context.Context, _ *capabilities.Connect) error {
		asked <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	connect := func(i int) *net.TCPConn {
		c := dial(t, address)
		fmt.Fprintf(c, "CONNECT h%d.example:443 HTTP/1.1\r\n\r\n", i)
		return c
	}
	for i := range maxAsking {
		connect(i)
		<-asked
	}
	c := connect(99)
	if line, _ := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, " 503 ") {
		t.Errorf("one more: %q", line)
	}
	c.Close()
	// Silent ones take what is left; who comes then waits for a place.
	for range maxOpen - maxAsking {
		dial(t, address)
	}
	for deadline := time.Now().Add(5 * time.Second); len(p.proxy.room.open) < maxOpen; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d are open", len(p.proxy.room.open))
		}
	}
	c = dial(t, address)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("it was served although all places are taken")
	}
	begin := time.Now()
	p.closeProxy()
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("it took %v to close", took)
	}
}

func TestNotesAreBounded(t *testing.T) {
	x := &proxy{}
	for i := range 25 {
		x.note(fmt.Sprintf("h%d.example", i))
		x.note("h0.example")
	}
	if n := x.notes(); len(n) != maxRefused+1 || n[0] != "was not allowed to reach h0.example" || n[maxRefused] != "was not allowed to reach 15 other places" {
		t.Errorf("%q", n)
	}
}
