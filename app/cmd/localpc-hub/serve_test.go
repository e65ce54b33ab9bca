//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// authority is a private one, whose root is in a file.
type authority struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// until is how long what it issues is good.
	until time.Time
	pool  *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.pem"), pool: x509.NewCertPool(), until: time.Now().Add(time.Hour)}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate for localhost with that serial number.
func (a *authority) issue(t testing.TB, cert, key string, serial int64) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: a.until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, cert, "CERTIFICATE", der)
	writePEM(t, key, "PRIVATE KEY", secret)
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// client trusts the authority.
func (a *authority) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

// network is how a computer trusts it.
func (a *authority) network(t testing.TB) *tunnel.Network {
	t.Helper()
	n, err := tunnel.NewNetwork(a.file)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TLS from files, which are exchanged while computers and programs are there.
func TestTLS(t *testing.T) {
	dir, ca := t.TempDir(), newAuthority(t)
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	ca.issue(t, cert, key, 7)
	c, address := serve(t, dir, "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(address, "https://127.0.0.1:") {
		t.Fatalf("it is at %s", address)
	}
	m := pair(t, dir, "m-1", ca.network(t))
	secret := newKey(t, dir)
	status, box := create(t, ca.client(), address, secret, plain)
	if status != 201 {
		t.Fatalf("over TLS: %d %v", status, box)
	}
	if status, text := file(t, ca.client(), address, box, "POST", "a.txt", "hello"); status != 200 {
		t.Errorf("write over TLS: %d %s", status, text)
	}
	if code, out, errs := cmd(t, "health", "--data", dir); code != 0 || !strings.Contains(out, "well") {
		t.Errorf("health: %d %s %s", code, out, errs)
	}
	served := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", strings.TrimPrefix(address, "https://"), &tls.Config{RootCAs: ca.pool})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if n := served(); n != 7 {
		t.Errorf("certificate %d is served", n)
	}
	// In the middle of an exchange the files do not fit.
	old, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	ca.issue(t, cert, key, 8)
	renewed, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := served(); n != 7 {
		t.Errorf("in the middle of an exchange certificate %d is served", n)
	}
	if err := os.WriteFile(key, renewed, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := served(); n != 8 {
		t.Errorf("after the exchange certificate %d is served", n)
	}
	// One that has expired does not take the place of a good one, and neither does
	// a file that is gone. To ask for the files to be read again changes nothing.
	ca.until = time.Now().Add(-time.Minute)
	ca.issue(t, cert, key, 9)
	if n := served(); n != 8 {
		t.Errorf("instead of an expired one, certificate %d is served", n)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	_ = c.Process.Signal(syscall.SIGHUP)
	eventually(t, "the hang-up is logged", func() bool { return strings.Contains(c.errs.String(), "Nothing has to be read again") })
	if n := served(); n != 8 {
		t.Errorf("without a file, certificate %d is served", n)
	}
	eventually(t, "the log says what is wrong with the files", func() bool {
		log := c.errs.String() // comes a moment after the answer
		return strings.Contains(log, "expired on") && strings.Contains(log, "no such file")
	})
	if _, text := file(t, ca.client(), address, box, "GET", "a.txt", ""); text != "hello" {
		t.Errorf("after the exchange: %q", text)
	}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(address, "https://"), &tls.Config{RootCAs: ca.pool, MaxVersion: tls.VersionTLS11}); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
	if len(m.Sessions()) != 1 {
		t.Error("the computer lost its session")
	}
}

// Asked to stop, the hub lets what is under way end, and a computer that has
// nothing to do come back to the hub that follows.
func TestGracefulStop(t *testing.T) {
	dir := t.TempDir()
	c, address := serve(t, dir, "127.0.0.1:0")
	m := pair(t, dir, "m-1", nil)
	idle := pair(t, dir, "m-2", nil)
	key := newKey(t, dir)
	// A person who is still thinking when the signal comes.
	asked, release := make(chan struct{}), make(chan struct{})
	m.ask(func(wire.Message) { close(asked); <-release })
	type answer struct {
		status int
		box    map[string]any
	}
	answered := make(chan answer, 1)
	go func() {
		status, box := create(t, http.DefaultClient, address, key, `{"templateID":"base","metadata":{"machine":"m-1"}}`)
		answered <- answer{status, box}
	}()
	<-asked
	began := time.Now()
	_ = c.Process.Signal(syscall.SIGTERM)
	if s := idle.wait(t, tunnel.Offline); time.Since(began) > 5*time.Second {
		t.Errorf("the idle computer was let go after %s: %s", time.Since(began), s.Reason)
	}
	eventually(t, "nothing new is taken", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	m.asked.Store(nil)
	close(release)
	got := <-answered
	if got.status != 201 {
		t.Fatalf("the request that was under way: %d %v", got.status, got.box)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the hub ended with %v", err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %s although all had ended", d)
	}
	m.wait(t, tunnel.Offline)
	_, _ = serve(t, dir, strings.TrimPrefix(address, "http://"))
	m.wait(t, tunnel.Online)
	idle.wait(t, tunnel.Online)
	if status, text := file(t, http.DefaultClient, address, got.box, "POST", "a.txt", "x"); status != 200 {
		t.Errorf("the sandbox that was agreed to meanwhile: %d %q", status, text)
	}
}

// A second signal ends it at once, whatever is under way.
func TestSecondSignal(t *testing.T) {
	dir := t.TempDir()
	c, address := serve(t, dir, "127.0.0.1:0")
	m := pair(t, dir, "m-1", nil)
	asked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	m.ask(func(wire.Message) { close(asked); <-release })
	key := newKey(t, dir)
	go func() {
		req, _ := http.NewRequest("POST", address+"/api/v2/sandboxes", strings.NewReader(plain))
		req.Header.Set("X-API-KEY", key)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-asked
	began := time.Now()
	_ = c.Process.Signal(syscall.SIGTERM)
	eventually(t, "it stops", func() bool { return strings.Contains(c.errs.String(), "Stopping") })
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("it took %s after the second signal", d)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so in 10 s: %s", what)
		}
	}
}

// Each person's programs reach that person's computers and no others, and who
// leaves is gone within a second.
func TestPeople(t *testing.T) {
	dir := t.TempDir()
	_, address := serve(t, dir, "127.0.0.1:0")
	_, link, _ := cmd(t, "user", "add", "Ann", "--data", dir)
	if !strings.HasPrefix(link, address+"/join?token=") {
		t.Fatalf("user add printed %q", link)
	}
	resp, err := http.Get(strings.TrimSpace(link))
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || !strings.Contains(string(page), "Ann") {
		t.Errorf("the link leads to %s: %.300s", resp.Status, page)
	}
	mine := pair(t, dir, "m-owner", nil)
	hers := pair(t, dir, "m-ann", nil, "--user", "ann") // connected last
	myKey, herKey := newKey(t, dir), newKey(t, dir, "--user", "Ann")

	if status, box := create(t, http.DefaultClient, address, myKey, plain); status != 201 || box["clientID"] != "m-owner" {
		t.Errorf("the owner's program got %d %v", status, box)
	}
	status, box := create(t, http.DefaultClient, address, herKey, plain)
	if status != 201 || box["clientID"] != "m-ann" {
		t.Errorf("Ann's program got %d %v", status, box)
	}
	if status, box := create(t, http.DefaultClient, address, myKey, `{"templateID":"base","metadata":{"machine":"m-ann"}}`); status == 201 {
		t.Errorf("the owner's program got Ann's computer by name: %v", box)
	}
	for _, key := range []string{myKey} {
		req, _ := http.NewRequest("GET", address+"/api/v2/sandboxes/"+box["sandboxID"].(string), nil)
		req.Header.Set("X-API-KEY", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("Ann's sandbox with another's key: %s", resp.Status)
		}
	}
	_, table, _ := cmd(t, "machine", "list", "--data", dir)
	_, keys, _ := cmd(t, "key", "list", "--data", dir)
	for _, out := range []string{table, keys} {
		if !strings.Contains(out, "WHOSE") || !strings.Contains(out, "Ann") {
			t.Errorf("a list does not say whose things are:\n%s", out)
		}
	}
	var users []struct{ ID, Name string }
	_, out, _ := cmd(t, "user", "list", "--json", "--data", dir)
	if err := json.Unmarshal([]byte(out), &users); err != nil || len(users) != 2 || users[1].Name != "Ann" {
		t.Fatalf("user list: %s", out)
	}
	began := time.Now()
	if code, _, errs := cmd(t, "user", "remove", users[1].ID, "--data", dir); code != 0 {
		t.Fatalf("user remove: %s", errs)
	}
	if s := hers.wait(t, tunnel.Offline); time.Since(began) > time.Second || !strings.Contains(s.Reason, "disconnected") {
		t.Errorf("her computer was told %q after %s", s.Reason, time.Since(began))
	}
	if status, _ := create(t, http.DefaultClient, address, herKey, plain); status != 401 {
		t.Errorf("her key after that: %d", status)
	}
	if status, text := file(t, http.DefaultClient, address, box, "GET", "a.txt", ""); status == 200 {
		t.Errorf("her sandbox after that: %d %s", status, text)
	}
	if status, _ := create(t, http.DefaultClient, address, myKey, plain); status != 201 {
		t.Errorf("the owner after that: %d", status)
	}
	began = time.Now()
	if code, _, errs := cmd(t, "machine", "revoke", "m-owner", "--data", dir); code != 0 {
		t.Fatalf("machine revoke: %s", errs)
	}
	if mine.wait(t, tunnel.Offline); time.Since(began) > time.Second {
		t.Errorf("a revoked computer was let go after %s", time.Since(began))
	}
}

// Behind a proxy the word of a trusted one counts, and the log has neither
// queries nor tokens.
func TestLogAndMetrics(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "metrics-token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, address := serve(t, dir, "127.0.0.1:0", "--log-format", "json", "--behind-proxy", "--metrics-listen", "127.0.0.1:0", "--metrics-token", token)
	pair(t, dir, "m-1", nil)
	key := newKey(t, dir)
	status, box := create(t, http.DefaultClient, address, key, plain)
	if status != 201 {
		t.Fatal(status)
	}
	file(t, http.DefaultClient, address, box, "GET", "secret-name.txt", "")
	secret := "0123456789abcdef0123456789abcdef01234567"
	// Nor what a stranger sends to the sign-in, which refuses it.
	long := secret + strings.Repeat("x", 10_000)
	ask, err := http.NewRequest("GET", address+"/oauth/authorize?"+url.Values{"client_id": {"localpc"}, "response_type": {"code"},
		"redirect_uri": {"http://127.0.0.1:1/callback"}, "scope": {"machine " + secret}, "state": {long}, "code_challenge": {secret}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultTransport.RoundTrip(ask); err != nil || resp.StatusCode != 302 {
		t.Errorf("authorize: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	for _, path := range []string{"/oauth/token", "/oauth/device_authorization", "/oauth/revoke", "/api/oauth/token"} {
		if resp, err := http.PostForm(address+path, url.Values{"client_id": {"localpc"}, "grant_type": {long}, "token": {long}, long: {"x"}, "scope": {secret}}); err != nil || resp.StatusCode >= 500 {
			t.Errorf("%s: %v, %v", path, resp, err)
		} else {
			resp.Body.Close()
		}
	}
	req, _ := http.NewRequest("GET", address+"/join/"+secret+"?token="+secret, nil)
	req.Header.Set("X-Forwarded-For", "6.6.6.6, 203.0.113.9")
	if resp, err := http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	} else {
		resp.Body.Close()
	}
	eventually(t, "it is logged", func() bool { return strings.Contains(c.errs.String(), "/join/") })
	log := c.errs.String()
	for _, bad := range []string{secret, key, "secret-name", box["envdAccessToken"].(string), "6.6.6.6"} {
		if strings.Contains(log, bad) {
			t.Errorf("the log has %q:\n%s", bad, log)
		}
	}
	found := false
	for line := range strings.Lines(log) {
		if len(line) > 1000 {
			t.Errorf("a line has %d bytes: %.200s", len(line), line)
		}
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("a line is not JSON: %s", line)
		}
		if from, _ := entry["from"].(string); strings.HasPrefix(from, "203.0.113.9:") && entry["path"] == "/join/…" {
			found = true
		}
	}
	if !found {
		t.Errorf("no request from 203.0.113.9:\n%s", log)
	}
	text := metricsOf(t, c)
	for _, want := range []string{
		"localpc_hub_machines_online 1\n",
		`localpc_hub_requests_total{kind="session_open",outcome="ok"} 1`,
		`localpc_hub_requests_total{kind="file_read",outcome="path_not_found"} 1`,
		`localpc_hub_request_duration_seconds_count{kind="session_open"} 1`,
		`localpc_hub_http_requests_total{kind="e2b-control",status="2xx"} 1`,
		"localpc_hub_sign_ins_total 0\n", "localpc_hub_refresh_reuse_total 0\n", "localpc_hub_database_bytes ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q:\n%s", want, text)
		}
	}
	if status, _ := get(t, metricsAddress(t, c), ""); status != 401 {
		t.Errorf("metrics without their token: %d", status)
	}
	if status, text := get(t, address+"/metrics", ""); status == 200 {
		t.Errorf("metrics on the hub's own address: %s", text)
	}
	cmd(t, "machine", "revoke", "m-1", "--data", dir)
	eventually(t, "the close is counted", func() bool {
		return strings.Contains(metricsOf(t, c), `localpc_hub_websocket_closes_total{code="4428"} 1`)
	})
}

// metricsAddress is where the hub said that it serves them.
func metricsAddress(t *testing.T, c *process) string {
	t.Helper()
	for line := range strings.Lines(c.errs.String()) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "Metrics are served" {
			return "http://" + entry.Address + "/metrics"
		}
	}
	t.Fatal("metrics are not served")
	return ""
}

func metricsOf(t *testing.T, c *process) string {
	t.Helper()
	_, text := get(t, metricsAddress(t, c), "0123456789abcdef")
	return text
}

func get(t *testing.T, url, bearer string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data)
}
