//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv("LOCALPC_HUB_TEST_RUN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func cmd(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := cmd(t, "key", "add", "Claude Code", "--data", dir)
	if code != 0 || !regexp.MustCompile(`^e2b_[0-9a-f]{40}\n$`).MatchString(out) || !strings.Contains(errs, "shown once") {
		t.Fatalf("key add: %d %q %q", code, out, errs)
	}
	secret := strings.TrimSpace(out)
	cmd(t, "--data", dir, "key", "add", "--", "-odd name-")
	code, out, _ = cmd(t, "key", "list", "--json", "--data="+dir)
	var keys []store.Key
	if err := json.Unmarshal([]byte(out), &keys); err != nil || code != 0 || len(keys) != 2 || keys[0].Name != "Claude Code" || keys[1].Name != "-odd name-" {
		t.Fatalf("key list --json: %d %s %v", code, out, err)
	}
	_, table, _ := cmd(t, "key", "list", "--data", dir)
	if !strings.Contains(table, "Claude Code") || strings.Contains(table+out, secret) {
		t.Errorf("key list: %s", table)
	}
	// Nothing in the data gives the key away.
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds the key", f)
		}
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f, info.Mode(), err)
		}
	}
	if code, _, errs := cmd(t, "key", "revoke", keys[0].ID, "--data", dir); code != 0 {
		t.Errorf("key revoke: %d %s", code, errs)
	}
	if code, _, errs := cmd(t, "key", "revoke", keys[0].ID, "--data", dir); code != 1 || !strings.Contains(errs, "no key") {
		t.Errorf("key revoke, again: %d %s", code, errs)
	}
	if _, out, _ := cmd(t, "key", "list", "--json", "--data", dir); strings.Contains(out, "Claude Code") {
		t.Errorf("after revoke: %s", out)
	}
}

func TestWrongUse(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "none")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{nil, 2, "no command"},
		{[]string{"key"}, 2, "no command"},
		{[]string{"key", "make", "x"}, 2, "no command"},
		{[]string{"key", "add"}, 2, "one more word"},
		{[]string{"key", "add", "a", "b"}, 2, "one more word"},
		{[]string{"key", "list", "x"}, 2, "no more words"},
		{[]string{"serve", "now"}, 2, "no more words"},
		{[]string{"key", "list", "--bogus"}, 2, "bogus"},
		{[]string{"key", "add", "", "--data", dir}, 1, "empty"},
		{[]string{"key", "add", "   ", "--data", dir}, 1, "empty"},
		{[]string{"key", "add", "a\nb", "--data", dir}, 1, "line break"},
		{[]string{"key", "add", "evil\u202ename", "--data", dir}, 1, "cannot be seen"},
		{[]string{"key", "add", "a\x1b[31m", "--data", dir}, 1, "cannot be seen"},
		{[]string{"key", "add", "\xff\xfe", "--data", dir}, 1, "cannot be seen"},
		{[]string{"key", "add", strings.Repeat("x", 300), "--data", dir}, 1, "300 bytes"},
		{[]string{"machine", "add", "a\nb", "--public-url", "http://h", "--data", dir}, 1, "line break"},
		{[]string{"machine", "add", "Mac", "--data", dir}, 1, "--public-url"},
		{[]string{"machine", "revoke", "\u202ex", "--data", dir}, 1, "no paired computer"},
		{[]string{"key", "list", "--data", empty}, 1, "no hub's data"},
		{[]string{"machine", "list", "--data", empty}, 1, "no hub's data"},
		{[]string{"serve", "--listen", "nowhere", "--data", dir}, 1, "cannot listen"},
		{[]string{"serve", "--listen", taken.Addr().String(), "--data", dir}, 1, "name another port"},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--public-url", "hub", "--data", dir}, 1, "public address"},
		{[]string{"serve", "--listen", "0.0.0.0:0", "--data", dir}, 1, "unencrypted"},
		{[]string{"serve", "--listen", "0.0.0.0:0", "--behind-proxy", "--data", dir}, 1, "--public-url"},
		{[]string{"serve", "--tls-cert", "x.pem", "--data", dir}, 2, "belong together"},
		{[]string{"serve", "--tls-cert", "/none/c.pem", "--tls-key", "/none/k.pem", "--data", dir}, 1, "/none/c.pem"},
		{[]string{"serve", "--trusted-proxy", "10.0.0.0/8", "--data", dir}, 2, "--behind-proxy"},
		{[]string{"serve", "--behind-proxy", "--trusted-proxy", "ten", "--data", dir}, 1, "network of proxies"},
		{[]string{"serve", "--log-format", "xml", "--data", dir}, 2, "text or json"},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--metrics-listen", "0.0.0.0:0", "--data", dir}, 1, "open to the network"},
		{[]string{"user", "add", "a\nb", "--data", dir}, 1, "cannot be seen"},
		{[]string{"user", "remove", "owner", "--data", dir}, 1, "owner"},
		{[]string{"user", "remove", "\u202ex", "--data", dir}, 1, "nobody"},
		{[]string{"user", "list", "--data", empty}, 1, "no hub's data"},
		{[]string{"key", "add", "x", "--user", "Zoe", "--data", dir}, 1, "nobody named Zoe"},
		{[]string{"backup", "b.db", "--data", empty}, 1, "no hub's data"},
		{[]string{"backup", "--data", dir}, 2, "one more word"},
		{[]string{"health", "--data", empty}, 1, "no hub has run"},
		{[]string{"key", "add", "x", "--data", "/proc/none"}, 1, "hub data"},
	} {
		code, out, errs := cmd(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.text) || out != "" {
			t.Errorf("%q: %d %q %.200q, want %d and %q", c.args, code, out, errs, c.code, c.text)
		}
		if strings.ContainsAny(errs, "\u202e\x1b") {
			t.Errorf("%q: %q would be acted on by a terminal", c.args, errs)
		}
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("a list made new data")
	}
	for _, word := range []string{"help", "--help"} {
		if code, out, errs := cmd(t, word); code != 0 || !strings.Contains(out, "localpc-hub serve") || errs != "" {
			t.Errorf("%s: %d %s %s", word, code, out, errs)
		}
	}
}

// process is the hub as a program of its own.
type process struct {
	*exec.Cmd
	errs *lines
}

// lines is what a program wrote; it can be read while it writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serve starts the program as a process of its own and returns its address.
func serve(t testing.TB, dir, listen string, more ...string) (*process, string) {
	t.Helper()
	return start(t, exec.Command(os.Args[0], append([]string{"serve", "--listen", listen, "--data", dir}, more...)...))
}

func start(t testing.TB, cmd *exec.Cmd) (*process, string) {
	t.Helper()
	c := &process{cmd, &lines{}}
	c.Env = append(os.Environ(), "LOCALPC_HUB_TEST_RUN=1")
	c.Stderr = c.errs
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the hub wrote:\n%s", c.errs)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v; it wrote %s", err, c.errs)
	}
	_, address, ok := strings.Cut(strings.TrimSpace(line), "The hub is at ")
	if !ok {
		t.Fatalf("it said %q", line)
	}
	return c, address
}

// computer is a machine's end that does what it is asked in one folder.
type computer struct {
	*tunneltest.Folder
	client *tunnel.Client
	states chan tunnel.State
	asked  atomic.Pointer[func(wire.Message)]
}

// pair makes a pairing line and connects a computer with it.
func pair(t *testing.T, dir, machine string, network *tunnel.Network, more ...string) *computer {
	t.Helper()
	code, line, errs := cmd(t, append([]string{"machine", "add", machine, "--data", dir}, more...)...)
	url, token, ok := strings.Cut(strings.TrimSpace(line), "#")
	if code != 0 || !ok {
		t.Fatalf("machine add: %d %q %s", code, line, errs)
	}
	c := &computer{Folder: &tunneltest.Folder{Dir: t.TempDir()}, states: make(chan tunnel.State, 1000)}
	c.Ask = func(_ context.Context, m wire.Message) error {
		if f := c.asked.Load(); f != nil {
			(*f)(m)
		}
		return nil
	}
	c.client = tunneltest.Run(t, tunnel.Options{
		URL: url, Token: func(context.Context) (string, error) { return token, nil }, Network: network,
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: machine, DisplayName: machine + "\u202e\n", Platform: "linux", Arch: "amd64", Capabilities: []string{}, Sessions: c.Sessions()}
		},
		Status: func() wire.Status { return wire.Status{} }, Handler: c.Handle, OnState: func(s tunnel.State) { c.states <- s },
		BackoffBase: 50 * time.Millisecond, BackoffMax: 200 * time.Millisecond, Log: tunneltest.Log(t),
	})
	c.wait(t, tunnel.Online)
	return c
}

// ask has f called with each request before it is done.
func (c *computer) ask(f func(wire.Message)) { c.asked.Store(&f) }

// wait reads the states of the connection until one of that phase comes.
func (c *computer) wait(t *testing.T, phase tunnel.Phase) tunnel.State {
	t.Helper()
	for timeout := time.After(20 * time.Second); ; {
		select {
		case s := <-c.states:
			if s.Phase == phase {
				return s
			}
		case <-timeout:
			t.Fatalf("the machine did not become %s", phase)
		}
	}
}

// newKey makes a key with the program.
func newKey(t *testing.T, dir string, more ...string) string {
	t.Helper()
	code, out, errs := cmd(t, append([]string{"key", "add", "Test", "--data", dir}, more...)...)
	if code != 0 {
		t.Fatalf("key add: %s", errs)
	}
	return strings.TrimSpace(out)
}

// create asks for a sandbox and returns the status and the answer.
func create(t *testing.T, client *http.Client, address, key, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest("POST", address+"/api/v2/sandboxes", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", key)
	req.Close = true
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&got)
	return resp.StatusCode, got
}

// file writes or reads a file of a sandbox, as an E2B program does.
func file(t *testing.T, client *http.Client, address string, box map[string]any, method, name, text string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, address+"/sbx/files?path="+name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("E2b-Sandbox-Id", box["sandboxID"].(string))
	req.Header.Set("X-Access-Token", box["envdAccessToken"].(string))
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	req.Close = true
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

const plain = `{"templateID":"base"}`

// A hub that is killed and started again finds its machine back, keys made
// meanwhile work at once, and a revoked key stops working.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	c, address := serve(t, dir, "127.0.0.1:0")
	m := pair(t, dir, "m-1", nil)
	if code, out, _ := cmd(t, "machine", "list", "--data", dir); code != 0 || !strings.Contains(out, "online") || !strings.Contains(out, "m-1") || strings.Contains(out, "\u202e") || strings.Count(out, "\n") != 2 {
		t.Errorf("machine list: %d %q", code, out)
	}
	key := newKey(t, dir)
	status, first := create(t, http.DefaultClient, address, key, plain)
	if status != 201 {
		t.Fatalf("with a key made while it runs: %d %v", status, first)
	}
	if status, text := file(t, http.DefaultClient, address, first, "POST", "a.txt", "kept"); status != 200 {
		t.Fatalf("write: %d %s", status, text)
	}
	for _, end := range []os.Signal{os.Kill, os.Kill, syscall.SIGTERM} {
		_ = c.Process.Signal(end)
		_ = c.Wait()
		m.wait(t, tunnel.Offline)
		c, _ = serve(t, dir, strings.TrimPrefix(address, "http://"))
		m.wait(t, tunnel.Online)
		if status, _ := create(t, http.DefaultClient, address, key, plain); status != 201 {
			t.Errorf("after %v: %d", end, status)
		}
		// The sandbox from before is there, with what was written.
		if status, text := file(t, http.DefaultClient, address, first, "GET", "a.txt", ""); status != 200 || text != "kept" {
			t.Errorf("the sandbox from before, after %v: %d %q", end, status, text)
		}
	}
	if n := len(m.Sessions()); n != 4 {
		t.Errorf("%d sessions survived on the machine, want 4", n)
	}

	var keys []store.Key
	_, out, _ := cmd(t, "key", "list", "--json", "--data", dir)
	if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) != 1 || keys[0].LastUsed.IsZero() {
		t.Fatalf("key list: %s", out)
	}
	// What it opened ends at once, on the computer too.
	cmd(t, "key", "revoke", keys[0].ID, "--data", dir)
	soon(t, "the sessions of a revoked key end", func() bool { return len(m.Sessions()) == 0 })
	if status, _ := create(t, http.DefaultClient, address, key, plain); status != 401 {
		t.Errorf("with a revoked key: %d", status)
	}

	// Asked to stop, it goes in peace.
	_ = c.Process.Signal(os.Interrupt)
	if err := c.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	m.wait(t, tunnel.Offline)
	if code, out, _ := cmd(t, "machine", "list", "--data", dir, "--json"); code != 0 || !strings.Contains(out, `"online": false`) {
		t.Errorf("machine list afterwards: %d %s", code, out)
	}
}

// soon wants something within the second that a revocation may take.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so within a second: %s", what)
		}
	}
}

// The commands work on the data of a hub that another program runs.
func TestEmbeddedData(t *testing.T) {
	dir := t.TempDir()
	h, url := tunneltest.Serve(t, hub.Options{Data: dir, PublicURL: "http://127.0.0.1:4417", Log: tunneltest.Log(t)})
	code, key, errs := cmd(t, "key", "add", "Test", "--data", dir)
	if code != 0 || !strings.Contains(errs, "E2B_API_URL=http://127.0.0.1:4417/api") {
		t.Fatalf("key add: %d %s", code, errs)
	}
	if keys, err := h.Keys(t.Context()); err != nil || len(keys) != 1 {
		t.Errorf("the hub has %v, %v", keys, err)
	}
	req, _ := http.NewRequest("GET", url+"/api/v2/sandboxes", nil)
	req.Header.Set("X-API-KEY", strings.TrimSpace(key))
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("with the key: %s", resp.Status)
	}
}

// Folders and files are named from where one stands, too; what is printed about
// them is right from everywhere.
func TestNamedFromHere(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"hub", "./a b/50%#?x"} {
		full, copied := filepath.Join(here, dir), "copy of "+filepath.Base(dir)
		if code, _, errs := cmd(t, "key", "add", "Program", "--data", dir); code != 0 || !strings.Contains(errs, full) {
			t.Errorf("key add: %d %s", code, errs)
		}
		for _, args := range [][]string{{"user", "add", "Ann"}, {"machine", "add", "PC", "--public-url", "http://127.0.0.1:4417"}, {"backup", copied}, {"restore", copied}} {
			if code, _, errs := cmd(t, append(args, "--data", dir)...); code != 0 {
				t.Errorf("%s in %q: %d %s", args[0], dir, code, errs)
			}
		}
		for _, d := range []string{dir, full} {
			if code, out, errs := cmd(t, "key", "list", "--data", d); code != 0 || strings.Count(out, "\n") != 2 {
				t.Errorf("the keys in %q: %d %s%s", d, code, out, errs)
			}
		}
	}
}

// From a folder that is gone, what was named is said.
func TestNamedFromNowhere(t *testing.T) {
	gone := t.TempDir()
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := cmd(t, "key", "list", "--data", "hub"); code != 1 || !strings.Contains(errs, "localpc-hub: hub: ") {
		t.Errorf("%d %s", code, errs)
	}
}
