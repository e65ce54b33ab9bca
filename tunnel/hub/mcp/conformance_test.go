//go:build unix

package mcp_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/mcp"
	"localpc/tunnel/tunneltest"
)

const npmDir = "testdata/npm"

// install brings the suite, and a Node that is new enough for it, as the lock
// file has them.
var install = sync.OnceValue(func() error {
	if _, err := os.Stat(filepath.Join(npmDir, "node_modules", ".package-lock.json")); err == nil {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = npmDir
	cmd.Stderr = os.Stderr
	return cmd.Run()
})

// The suite of the protocol, as published, against the hub's own handler,
// doors and keys. It cannot send a key itself: a proxy adds it, and changes
// nothing else.
func TestConformance(t *testing.T) {
	if err := install(); err != nil {
		t.Fatalf("npm ci: %v", err)
	}
	h, address := tunneltest.Serve(t, hub.Options{Data: t.TempDir(), Name: "Test hub", Log: tunneltest.Log(t), MCP: func(o *mcp.Options) { o.Fixtures = fixtures }})
	key, err := h.MakeKey(t.Context(), "Conformance suite")
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	front := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+key)
	}})
	defer front.Close()
	baseline, err := filepath.Abs("testdata/expected-failures.yml")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := filepath.Abs(filepath.Join(npmDir, "node_modules", ".bin"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "node"), filepath.Join(bin, "conformance"), "server", "--url", front.URL+"/mcp",
		"--requirements", "2026-07-28", "--timeout", "60000", "--expected-failures", baseline)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	// The revision has 37 scenarios for servers. Those of the Tasks extension are
	// run beside them, and not counted.
	if passed := strings.Count(out.String(), "✓ "); err != nil || passed < 37 {
		t.Fatalf("%d scenarios passed, %v\n%s", passed, err, out.String())
	}
}
