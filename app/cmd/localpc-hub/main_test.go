//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
		{[]string{"serve", "--listen", "127.0.0.1:0", "--public-url", "hub", "--data", dir}, 1, "public address"},
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
	if code, out, _ := cmd(t, "--help"); code != 0 || !strings.Contains(out, "localpc-hub serve") {
		t.Errorf("help: %d %s", code, out)
	}
}

// serve starts the program as a process of its own and returns its address.
func serve(t *testing.T, dir, listen string) (*exec.Cmd, string) {
	t.Helper()
	c := exec.Command(os.Args[0], "serve", "--listen", listen, "--data", dir)
	c.Env = append(os.Environ(), "LOCALPC_HUB_TEST_RUN=1")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, address, ok := strings.Cut(strings.TrimSpace(line), "The hub is at ")
	if !ok {
		t.Fatalf("it said %q", line)
	}
	return c, address
}

// A hub that is killed and started again finds its machine back, keys made
// meanwhile work at once, and a revoked key stops working.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	c, address := serve(t, dir, "127.0.0.1:0")
	_, line, _ := cmd(t, "machine", "add", "Mac-1", "--data", dir)
	url, token, ok := strings.Cut(strings.TrimSpace(line), "#")
	if !ok || url != address {
		t.Fatalf("machine add printed %q", line)
	}
	states := make(chan tunnel.State, 1000)
	folder := &tunneltest.Folder{Dir: t.TempDir()}
	tunneltest.Run(t, tunnel.Options{
		URL: url, Token: func(context.Context) (string, error) { return token, nil },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: "m-1", DisplayName: "Mac\u202e-1\n", Platform: "linux", Arch: "amd64", Capabilities: []string{}, Sessions: folder.Sessions()}
		},
		Status: func() wire.Status { return wire.Status{} }, Handler: folder.Handle, OnState: func(s tunnel.State) { states <- s },
		BackoffBase: 50 * time.Millisecond, BackoffMax: 200 * time.Millisecond,
	})
	wait := func(phase tunnel.Phase) {
		t.Helper()
		for timeout := time.After(20 * time.Second); ; {
			select {
			case s := <-states:
				if s.Phase == phase {
					return
				}
			case <-timeout:
				t.Fatalf("the machine did not become %s", phase)
			}
		}
	}
	wait(tunnel.Online)
	if code, out, _ := cmd(t, "machine", "list", "--data", dir); code != 0 || !strings.Contains(out, "online") || !strings.Contains(out, "Mac") || strings.Contains(out, "\u202e") || strings.Count(out, "\n") != 2 {
		t.Errorf("machine list: %d %q", code, out)
	}

	_, key, _ := cmd(t, "key", "add", "Test", "--data", dir)
	api := func(key string) int {
		t.Helper()
		req, err := http.NewRequest("POST", address+"/api/v2/sandboxes", strings.NewReader(`{"templateID":"base"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-KEY", strings.TrimSpace(key))
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status := api(key); status != 201 {
		t.Errorf("with a key made while it runs: %d", status)
	}

	for range 3 {
		_ = c.Process.Kill()
		_ = c.Wait()
		wait(tunnel.Offline)
		c, _ = serve(t, dir, strings.TrimPrefix(address, "http://"))
		wait(tunnel.Online)
		if status := api(key); status != 201 {
			t.Errorf("after a kill: %d", status)
		}
	}
	if n := len(folder.Sessions()); n != 4 {
		t.Errorf("%d sessions survived on the machine, want 4", n)
	}

	var keys []store.Key
	_, out, _ := cmd(t, "key", "list", "--json", "--data", dir)
	if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) != 1 || keys[0].LastUsed.IsZero() {
		t.Fatalf("key list: %s", out)
	}
	cmd(t, "key", "revoke", keys[0].ID, "--data", dir)
	if status := api(key); status != 401 {
		t.Errorf("with a revoked key: %d", status)
	}

	// Asked to stop, it goes in peace.
	_ = c.Process.Signal(os.Interrupt)
	if err := c.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	wait(tunnel.Offline)
	if code, out, _ := cmd(t, "machine", "list", "--data", dir, "--json"); code != 0 || !strings.Contains(out, `"online": false`) {
		t.Errorf("machine list afterwards: %d %s", code, out)
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
