package tunnel_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// Loopback addresses and "localhost" are never reached through a proxy, so the
// hubs of these tests have a name that only squid knows (its hosts_file), and
// one that the system's resolver reads as 127.0.0.1 but that is no address.
const (
	hubName    = "hub.test"
	hubNumbers = "127.1"
)

// The log-in that the proxies ask for, and what it is in a URL.
const (
	proxyUser    = "anna"
	proxyHash    = "$apr1$abcdefgh$UHd7rImQ4AkEpmvxzeVUZ/" // of "se:cr@t/"
	proxyInURL   = "anna:se%3Acr%40t%2F@"
	proxyNotGood = "anna:wrong@"
)

// authority is a private one. It signs certificates that nobody else trusts.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert, a.key, _ = a.sign("Anna's authority", nil, time.Hour)
	must(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o644))
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sign makes a certificate for names, or the authority's own for none.
func (a *authority) sign(subject string, names []string, life time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: subject}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life)}
	parent, by := c, key
	if names == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, by = a.cert, a.key
		for _, n := range names {
			if ip := net.ParseIP(n); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, n)
			}
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	must(a.t, err)
	cert, err := x509.ParseCertificate(der)
	must(a.t, err)
	return cert, key, der
}

// hub is a far end that also answers calls; over TLS when life is not 0.
func (a *authority) hub(life time.Duration, names ...string) (*far, string) {
	a.t.Helper()
	f := &far{t: a.t, conns: make(chan *conn, 16)}
	up := websocket.Upgrader{Subprotocols: []string{wire.Subprotocol}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /call", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "got %s", b)
	})
	mux.HandleFunc(wire.Path, func(w http.ResponseWriter, r *http.Request) {
		if f.before != nil && !f.before(w, r) {
			return
		}
		if ws, err := up.Upgrade(w, r, nil); err == nil {
			f.conns <- &conn{a.t, ws}
		}
	})
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes
	if life != 0 {
		_, key, der := a.sign("hub", names, life)
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		srv.StartTLS()
	} else {
		srv.Start()
	}
	a.t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	must(a.t, err)
	return f, u.Port()
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// proxy is a real one of Debian's, on loopback.
type proxy struct {
	t         *testing.T
	port, log string
	tlsPort   string // squid's
}

func (p *proxy) start(name string, args ...string) {
	p.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = "/usr/sbin/" + name
	}
	cmd := exec.Command(path, args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(p.t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-done
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp4", "127.0.0.1:"+p.port); err == nil {
			c.Close()
			return
		}
		select {
		case err := <-done:
			done <- err
			p.t.Fatalf("%s ended: %v\n%s", name, err, out.String())
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s does not listen", name)
		}
	}
}

// used waits for n lines of its log that contain what; it writes them late.
func (p *proxy) used(what string, n int) {
	p.t.Helper()
	var b []byte
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b, _ = os.ReadFile(p.log); strings.Count(string(b), what) == n {
			return
		}
	}
	p.t.Errorf("the proxy was not used %d times for %q:\n%s", n, what, b)
}

func (a *authority) squid() *proxy {
	a.t.Helper()
	// Its own user, where the test runs as root, must get in.
	dir, err := os.MkdirTemp("", "squid")
	must(a.t, err)
	a.t.Cleanup(func() { os.RemoveAll(dir) })
	must(a.t, os.Chmod(dir, 0o777))
	p := &proxy{t: a.t, port: freePort(a.t), tlsPort: freePort(a.t), log: filepath.Join(dir, "access.log")}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(a.t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	_, key, der := a.sign("proxy", []string{"127.0.0.1"}, time.Hour)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	cert := write("proxy.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))+string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	passwd := write("passwd", proxyUser+":"+proxyHash+"\n")
	hosts := write("hosts", "127.0.0.1 "+hubName+" forbidden.test\n")
	conf := write("squid.conf", strings.Join([]string{
		"http_port 127.0.0.1:" + p.port,
		"https_port 127.0.0.1:" + p.tlsPort + " tls-cert=" + cert,
		"pid_filename " + filepath.Join(dir, "pid"), "cache_log " + filepath.Join(dir, "cache.log"), "access_log stdio:" + p.log,
		"coredump_dir " + dir, "hosts_file " + hosts, "dns_nameservers 127.0.0.1", "dns_timeout 1 seconds", "cache deny all", "pinger_enable off", "shutdown_lifetime 0 seconds",
		"auth_param basic program /usr/lib/squid/basic_ncsa_auth " + passwd, "auth_param basic children 1",
		"acl known proxy_auth REQUIRED", "acl forbidden dstdomain forbidden.test",
		"http_access deny forbidden", "http_access allow known", "http_access deny all", "",
	}, "\n"))
	p.start("squid", "-N", "-n", "localpc"+p.port, "-f", conf)
	return p
}

func (a *authority) tinyproxy() *proxy {
	a.t.Helper()
	dir := a.t.TempDir()
	p := &proxy{t: a.t, port: freePort(a.t), log: filepath.Join(dir, "log")}
	conf := filepath.Join(dir, "conf")
	must(a.t, os.WriteFile(conf, fmt.Appendf(nil, "Port %s\nListen 127.0.0.1\nTimeout 60\nLogFile %q\nLogLevel Connect\nPidFile %q\nMaxClients 20\nAllow 127.0.0.1\nBasicAuth %s %s\n",
		p.port, p.log, filepath.Join(dir, "pid"), "anna", "secret"), 0o644))
	p.start("tinyproxy", "-d", "-c", conf)
	return p
}

// environment sets the variables that name proxies and authorities, and no
// others of theirs.
func environment(t *testing.T, set ...string) {
	t.Helper()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "REQUEST_METHOD"} {
		t.Setenv(name, "")
	}
	for _, s := range set {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv(name, value)
	}
}

// reach opens a socket and makes a call to a hub, and returns both errors.
func reach(t *testing.T, caFile, base string) (socket, call error) {
	t.Helper()
	n, err := tunnel.NewNetwork(caFile)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ws, _, socket := n.Dial(ctx, "ws"+strings.TrimPrefix(base, "http")+wire.Path, nil, wire.Subprotocol)
	if socket == nil {
		ws.Close()
	}
	resp, call := n.Client().Post(base+"/call", "text/plain", strings.NewReader("hello"))
	if call == nil {
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != "got hello" {
			t.Errorf("the call was answered %s %q, %v", resp.Status, b, err)
		}
	}
	return socket, call
}

// reaches checks both ways: why is a part of the sentence, "" where they work.
func reaches(t *testing.T, caFile, base, why string) {
	t.Helper()
	socket, call := reach(t, caFile, base)
	for name, err := range map[string]error{"socket": socket, "call": call} {
		said := ""
		if err != nil {
			if said = tunnel.Reason(err); said == "" {
				said = "nothing, of " + err.Error()
			}
		}
		if why == "" && err != nil || !strings.Contains(said, why) {
			t.Errorf("%s to %s: it says %q, want %q", name, base, said, why)
		}
		if strings.Contains(said, "wrong") || strings.Contains(said, "se%3A") {
			t.Errorf("the password is told: %q", said)
		}
	}
}

func TestOwnAuthority(t *testing.T) {
	a := newAuthority(t)
	_, port := a.hub(time.Hour, "127.0.0.1")
	base := "https://127.0.0.1:" + port
	environment(t)
	reaches(t, "", base, "ca_file in the settings (or in SSL_CERT_FILE)")
	reaches(t, newAuthority(t).file, base, "an authority that this computer does not know")
	reaches(t, a.file, base, "")
	_, old := a.hub(-time.Minute, "127.0.0.1")
	reaches(t, a.file, "https://127.0.0.1:"+old, "Is this computer's clock right?")
	_, other := a.hub(time.Hour, "other.test")
	reaches(t, a.file, "https://127.0.0.1:"+other, "for another name")
	_, plain := a.hub(0)
	reaches(t, a.file, "https://127.0.0.1:"+plain, "http:// in front")
	reaches(t, "", "http://127.0.0.1:"+plain, "")
	reaches(t, "", "http://127.0.0.1:1", "does not answer")
	environment(t, "SSL_CERT_FILE="+a.file)
	reaches(t, "", base, "")
	reaches(t, newAuthority(t).file, base, "") // both together

	silent, err := net.Listen("tcp4", "127.0.0.1:0") // takes connections, says nothing
	must(t, err)
	defer silent.Close()
	n, err := tunnel.NewNetwork(a.file)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, socket := n.Dial(ctx, "wss://"+silent.Addr().String()+wire.Path, nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+silent.Addr().String(), nil)
	must(t, err)
	_, call := n.Client().Do(req)
	for _, err := range []error{socket, call} {
		if why := tunnel.Reason(err); !strings.Contains(why, "did not answer in time") {
			t.Errorf("it says %q of %v", why, err)
		}
	}

	// A proxy that is reached over TLS, and hangs.
	environment(t, "HTTPS_PROXY=https://"+silent.Addr().String())
	n, err = tunnel.NewNetwork(a.file)
	must(t, err)
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := n.Dial(ctx, "wss://hub.example", nil); !strings.Contains(tunnel.Reason(err), "The proxy "+silent.Addr().String()+" does not answer") {
		t.Errorf("it says %q of %v", tunnel.Reason(err), err)
	}
	environment(t)

	for what, file := range map[string]string{"can't be read": filepath.Join(t.TempDir(), "none"), "no certificate": "/etc/hostname"} {
		if _, err := tunnel.NewNetwork(file); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "ca_file") {
			t.Errorf("%v", err)
		}
	}
}

func TestSquid(t *testing.T) {
	a := newAuthority(t)
	p := a.squid()
	_, port := a.hub(time.Hour, hubName, "forbidden.test")
	_, plain := a.hub(0)
	base, open := "https://"+hubName+":"+port, "http://"+hubName+":"+plain
	with := func(login string) []string {
		return []string{"HTTPS_PROXY=http://" + login + "127.0.0.1:" + p.port, "HTTP_PROXY=http://" + login + "127.0.0.1:" + p.port}
	}
	environment(t, with(proxyInURL)...)
	reaches(t, a.file, base, "")
	p.used("CONNECT "+hubName+":"+port, 2)
	reaches(t, "", open, "")
	p.used("CONNECT "+hubName+":"+plain, 1)
	p.used("POST "+open, 1)
	reaches(t, "", base, "ca_file")
	reaches(t, a.file, "https://forbidden.test:"+port, "does not let this computer reach the hub")
	reaches(t, a.file, "https://nowhere.test:"+port, "could not reach the hub")
	n, err := tunnel.NewNetwork("")
	must(t, err)
	for address, want := range map[string]string{base: "127.0.0.1:" + p.port, "wss" + base[5:]: "127.0.0.1:" + p.port, "http://127.0.0.1:4417": ""} {
		if got := n.ProxyName(address); got != want {
			t.Errorf("%s is reached through %q, want %q", address, got, want)
		}
	}

	environment(t, with("")...)
	reaches(t, a.file, base, "asks for a log-in. Put it into HTTPS_PROXY")
	socket, _ := reach(t, "", open)
	// The variable to mend is the one that names the proxy for this address.
	if why := tunnel.Reason(socket); !strings.Contains(why, "asks for a log-in. Put it into HTTP_PROXY") {
		t.Errorf("without encryption: %q", why)
	}
	environment(t, with(proxyNotGood)...)
	reaches(t, a.file, base, "does not accept the name and the password")

	environment(t, append(with(proxyInURL), "NO_PROXY=localhost,.test")...)
	reaches(t, a.file, base, "could not be found") // the proxy alone knows the name
	environment(t, "HTTPS_PROXY=http://127.0.0.1:1")
	reaches(t, a.file, base, "The proxy 127.0.0.1:1 does not answer")
	// The proxy's own connection encrypted, by the same authority.
	environment(t, "HTTPS_PROXY=https://"+proxyInURL+"127.0.0.1:"+p.tlsPort)
	reaches(t, a.file, base, "")
}

func TestTinyproxy(t *testing.T) {
	a := newAuthority(t)
	p := a.tinyproxy()
	_, port := a.hub(time.Hour, hubNumbers)
	base := "https://" + hubNumbers + ":" + port
	environment(t, "HTTPS_PROXY=http://anna:secret@127.0.0.1:"+p.port)
	reaches(t, a.file, base, "")
	p.used("CONNECT "+hubNumbers+":"+port, 2)
	environment(t, "https_proxy=127.0.0.1:"+p.port)
	reaches(t, a.file, base, "asks for a log-in")
}

// A machine joins through a proxy that asks for a log-in, at a hub of a private
// authority, and works; when the proxy goes away it says so.
//
// gorilla/websocket#739, mendersoftware/mender#1063.
func TestJoinThroughProxy(t *testing.T) {
	a := newAuthority(t)
	p := a.squid()
	f, port := a.hub(time.Hour, hubName)
	f.url = "https://" + hubName + ":" + port
	environment(t, "HTTPS_PROXY=http://"+proxyInURL+"127.0.0.1:"+p.port)
	network, err := tunnel.NewNetwork(a.file)
	must(t, err)
	n := f.machine(t, echo, func(o *tunnel.Options) { o.Network = network })
	c := f.accept()
	n.until(t, tunnel.Online)
	c.works()
	id := c.send(wire.TypeFileStat, "", &wire.FilePath{SessionID: "s", Path: "p"})
	if m := c.read(); m.ID != id || m.Type != wire.TypeAck {
		t.Errorf("answered %s %+v", m.Type, m.Payload)
	}
	environment(t, "HTTPS_PROXY=http://127.0.0.1:"+p.port)
	network, err = tunnel.NewNetwork(a.file)
	must(t, err)
	n = f.machine(t, echo, func(o *tunnel.Options) { o.Network = network })
	if s := n.until(t, tunnel.Offline); !strings.Contains(s.Reason, "asks for a log-in") {
		t.Errorf("it says %+v", s)
	}
}

// SOCKS, as package net/http has it for calls.
func TestSOCKS(t *testing.T) {
	a := newAuthority(t)
	_, port := a.hub(time.Hour, hubName)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go socks(c, hubName)
		}
	}()
	defer func() { l.Close(); <-done }()
	environment(t, "HTTPS_PROXY=socks5://"+l.Addr().String())
	reaches(t, a.file, "https://"+hubName+":"+port, "")
	reaches(t, a.file, "https://nowhere.test:"+port, "The proxy")
}

// socks serves one connection of RFC 1928 without a log-in, to one name.
func socks(c net.Conn, name string) {
	defer c.Close()
	b := make([]byte, 300)
	if _, err := io.ReadFull(c, b[:2]); err != nil {
		return
	}
	_, _ = io.ReadFull(c, b[:b[1]])
	_, _ = c.Write([]byte{5, 0})
	if _, err := io.ReadFull(c, b[:5]); err != nil {
		return
	}
	n := int(b[4])
	_, _ = io.ReadFull(c, b[:n+2])
	if string(b[:n]) != name {
		_, _ = c.Write([]byte{5, 4, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	to, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", int(b[n])<<8|int(b[n+1])))
	if err != nil {
		return
	}
	defer to.Close()
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	go func() { _, _ = io.Copy(to, c); to.Close() }()
	_, _ = io.Copy(c, to)
}
