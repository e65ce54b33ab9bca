//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/tunnel"
)

const packaging = "../../../packaging/"

func packaged(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(packaging + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// change replaces what must be there.
func change(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q in:\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// The unit is one that systemd takes without a word, and that leaves the
// program little to do harm with.
func TestUnit(t *testing.T) {
	unit := filepath.Join(t.TempDir(), "localpc-hub.service")
	text := change(t, packaged(t, "localpc-hub.service"), "/usr/local/bin/localpc-hub", os.Args[0])
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// The scale goes from 0 to 100; what is not hardened at all has 96.
	out, err = exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=15", unit).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	// Its flags are ones that the program takes.
	for line := range strings.Lines(text) {
		if _, flags, ok := strings.Cut(strings.TrimSpace(line), "HUB_FLAGS="); ok {
			c := &cli{}
			if err := c.parse(append([]string{"serve"}, strings.Fields(flags)...)); err != nil || len(c.args) != 1 {
				t.Errorf("HUB_FLAGS=%s: %v, %q", flags, err, c.args)
			}
		}
	}
}

// freePort is one that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// proxy runs nginx with the recipe before a hub that is to listen on hubPort.
func proxy(t *testing.T, ca *authority, port, hubPort string) (access string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cert, key, access := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "access.log")
	ca.issue(t, cert, key, 1)
	recipe := change(t, packaged(t, "nginx.conf"),
		"listen 443 ssl;", "listen 127.0.0.1:"+port+" ssl;", "    listen [::]:443 ssl;\n", "", "server_name hub.example;", "server_name localhost;",
		"/etc/ssl/hub.example/fullchain.pem", cert, "/etc/ssl/hub.example/privkey.pem", key, "127.0.0.1:4417", "127.0.0.1:"+hubPort)
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	// As the account that runs the test, which need not be root.
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	conf := fmt.Sprintf("%s daemon off; master_process off; pid %s/pid; error_log stderr warn; events {} http { log_format bytes '$request $status in $upstream_bytes_received out $upstream_bytes_sent'; access_log %s bytes; %s %s }", user, dir, access, temp, recipe)
	file := filepath.Join(dir, "main.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs lines
	cmd := exec.Command("/usr/sbin/nginx", "-p", dir, "-c", file)
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx wrote:\n%s", &errs)
		}
	})
	eventually(t, "nginx listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return access
}

// A computer and a program reach a hub through nginx with TLS and a private
// authority: the WebSocket, a large upload, output as it comes.
func TestBehindNginx(t *testing.T) {
	dir, ca := t.TempDir(), newAuthority(t)
	port, hubPort := freePort(t), freePort(t)
	access := proxy(t, ca, port, hubPort)
	public := "https://localhost:" + port
	c, address := serve(t, dir, "127.0.0.1:"+hubPort, "--behind-proxy", "--public-url", public, "--log-format", "json")
	if address != public {
		t.Fatalf("it is at %s", address)
	}
	m := pair(t, dir, "m-1", ca.network(t))
	key := newKey(t, dir)
	status, box := create(t, ca.client(), public, key, plain)
	if status != 201 {
		t.Fatalf("through nginx: %d %v", status, box)
	}
	large := strings.Repeat("0123456789abcdef", 256<<10) // 4 MiB, over nginx's own limit
	if status, text := file(t, ca.client(), public, box, "POST", "large.txt", large); status != 200 {
		t.Fatalf("upload through nginx: %d %s", status, text)
	}
	if status, text := file(t, ca.client(), public, box, "GET", "large.txt", ""); status != 200 || text != large {
		t.Errorf("download through nginx: %d, %d bytes", status, len(text))
	}
	firstOutput(t, ca.client(), public, box)
	// The request log has the program's address, not the proxy's word about it
	// alone: here both are this computer.
	if !strings.Contains(c.errs.String(), `"path":"/api/v2/sandboxes"`) {
		t.Errorf("the request is not logged:\n%s", c.errs)
	}
	// The pages know that they are reached over TLS.
	resp, err := ca.client().Get(public + "/login")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, cookie := range resp.Cookies() {
		if !cookie.Secure {
			t.Errorf("a cookie is not for TLS only: %v", cookie)
		}
	}
	if log, err := os.ReadFile(access); err != nil || !bytes.Contains(log, []byte("POST /sbx/files")) {
		t.Errorf("it did not go through nginx: %s %v", log, err)
	}
	// A restart of the hub behind it: nginx is asked again until it is there.
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	m.wait(t, tunnel.Offline)
	_, _ = serve(t, dir, "127.0.0.1:"+hubPort, "--behind-proxy", "--public-url", public)
	m.wait(t, tunnel.Online)
	if status, text := file(t, ca.client(), public, box, "GET", "large.txt", ""); status != 200 || text != large {
		t.Errorf("after a restart behind nginx: %d, %d bytes", status, len(text))
	}
}

// What is large goes over the second WebSocket, both ways and through nginx,
// and no limit of nginx's is in its way.
func TestLargeFilesBehindNginx(t *testing.T) {
	const size = 200 << 20
	dir, ca := t.TempDir(), newAuthority(t)
	port, hubPort := freePort(t), freePort(t)
	access := proxy(t, ca, port, hubPort)
	public := "https://localhost:" + port
	c, _ := serve(t, dir, "127.0.0.1:"+hubPort, "--behind-proxy", "--public-url", public)
	m := pair(t, dir, "m-1", ca.network(t))
	status, box := create(t, ca.client(), public, newKey(t, dir), plain)
	if status != 201 {
		t.Fatalf("through nginx: %d %v", status, box)
	}
	eventually(t, "the second WebSocket is there", m.client.BulkJoined)
	request := func(method string, body io.Reader) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, public+"/sbx/files?path=large.bin", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("E2b-Sandbox-Id", box["sandboxID"].(string))
		req.Header.Set("X-Access-Token", box["envdAccessToken"].(string))
		req.Header.Set("Content-Type", "application/octet-stream")
		resp, err := ca.client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != 200 {
			text, _ := io.ReadAll(resp.Body)
			t.Fatalf("%s through nginx: %d %s", method, resp.StatusCode, text)
		}
		return resp
	}
	sent, got := sha256.New(), sha256.New()
	request("POST", io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), size), sent))
	n, err := io.Copy(got, request("GET", nil).Body)
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Errorf("%d of %d bytes came back, %v", n, size, err)
	}
	// nginx notes what a WebSocket carried when it ends.
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	var log []byte
	eventually(t, "nginx notes the second WebSocket", func() bool {
		log, _ = os.ReadFile(access)
		return bytes.Contains(log, []byte("/ws/local-executor/bulk"))
	})
	most := [2]int64{}
	for line := range strings.Lines(string(log)) {
		var in, out int64
		_, counts, ok := strings.Cut(line, "GET /ws/local-executor/bulk HTTP/1.1 101 ")
		if _, err := fmt.Sscanf(counts, "in %d out %d", &in, &out); ok && err == nil {
			most = [2]int64{max(most[0], in), max(most[1], out)}
		}
	}
	if most[0] < size || most[1] < size {
		t.Errorf("the second WebSocket carried %d bytes to the computer and %d from it:\n%s", most[0], most[1], log)
	}
}

// firstOutput runs a command that speaks, and goes on for long: what it says
// must come before it ends.
func firstOutput(t *testing.T, client *http.Client, address string, box map[string]any) {
	t.Helper()
	message := `{"process":{"cmd":"/bin/sh","args":["-c","echo early; sleep 20"]}}`
	body := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
	req, err := http.NewRequest("POST", address+"/sbx/process.Process/Start", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("E2b-Sandbox-Id", box["sandboxID"].(string))
	req.Header.Set("X-Access-Token", box["envdAccessToken"].(string))
	req.Header.Set("Content-Type", "application/connect+json")
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(got, []byte("ZWFybHkK")) { // "early\n"
		n, err := resp.Body.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			t.Fatalf("the output ended with %v: %s", err, got)
		}
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("the first output came after %s", d)
	}
}

// The container file's program is static and runs as its user, from an empty
// root, with the flags that are there; its own health check finds it well.
func TestContainer(t *testing.T) {
	text := packaged(t, "Containerfile")
	root := t.TempDir()
	build, _, ok := strings.Cut(between(t, text, "RUN CGO_ENABLED=0 ", "\n"), " -o /out/localpc-hub ")
	if !ok {
		t.Fatalf("the file builds with %q", build)
	}
	cmd := exec.Command("go", append(strings.Fields(build)[1:], "-o", filepath.Join(root, "localpc-hub"), ".")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data := filepath.Join(root, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	run := exec.Command
	if os.Getuid() == 0 {
		const user = 65532
		if !strings.Contains(text, "USER 65532:65532") {
			t.Error("the container's user is another")
		}
		for dir := root; dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil || filepath.Dir(dir) == os.TempDir() {
				break
			}
		}
		if err := os.Chown(data, user, user); err != nil {
			t.Fatal(err)
		}
		run = func(name string, args ...string) *exec.Cmd {
			c := exec.Command(name, args...)
			c.Dir = "/data"
			c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
			return c
		}
	} else {
		// Without the right to change the root, the same program where it is.
		run = func(name string, args ...string) *exec.Cmd {
			for i, a := range args {
				if a == "/data" {
					args[i] = data
				}
			}
			return exec.Command(filepath.Join(root, name), args...)
		}
	}
	entry := quotedWords(t, between(t, text, "ENTRYPOINT [", "]"))
	// What is said after the image's name comes after the entry point.
	words := append(entry[1:], strings.Fields(between(t, text, " localpc-hub \\\n#", "\n"))...)
	for i, w := range words {
		if w == "0.0.0.0:4417" {
			words[i] = "0.0.0.0:0" // the usual port may be in use here
		}
	}
	c, address := start(t, run(entry[0], words...))
	if address != "https://hub.example" {
		t.Errorf("it is at %s", address)
	}
	check := quotedWords(t, between(t, text, "CMD [\"/localpc-hub\", \"health\"", "]"))
	if out, err := run(entry[0], append([]string{"health"}, check...)...).CombinedOutput(); err != nil {
		t.Errorf("its health check: %v %s", err, out)
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Errorf("asked to stop: %v", err)
	}
	if out, err := run(entry[0], append([]string{"health"}, check...)...).CombinedOutput(); err == nil {
		t.Errorf("the health check of a hub that has stopped: %s", out)
	}
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	got, _, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("there is nothing between %q and %q", from, to)
	}
	return got
}

func quotedWords(t *testing.T, s string) []string {
	t.Helper()
	var words []string
	if err := json.Unmarshal([]byte("["+strings.TrimPrefix(s, ",")+"]"), &words); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return words
}
