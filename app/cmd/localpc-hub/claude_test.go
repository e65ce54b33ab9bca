//go:build unix

package main

import (
	"context"
	"fmt"
	"image"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"localpc/tunnel"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// Claude does a task on a computer through a hub, and who started it reads what
// happens.
func TestClaude(t *testing.T) {
	screen := &tunneltest.Screen{Size: image.Pt(800, 600)}
	folder := &tunneltest.Folder{Dir: t.TempDir()}
	pair := tunneltest.New(t, func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if reply, p, err, ok := screen.Handle(ctx, m); ok {
			return reply, p, err
		}
		return folder.Handle(ctx, m, x)
	}, tunneltest.WithScreen)
	var asked atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := asked.Add(1)
		if r.Header.Get("X-Api-Key") != "sk-test" || n == 1 && !strings.Contains(string(body), "Open the \\\"editor\\\".") {
			t.Errorf("the API is asked %.300s with %v", body, r.Header)
		}
		if n == 1 {
			fmt.Fprint(w, `{"stop_reason":"tool_use","content":[{"type":"text","text":"I start it\u001b[2J."},{"type":"tool_use","id":"a","name":"key","toolset_name":"computer","input":{"text":"super"}}]}`)
			return
		}
		fmt.Fprint(w, `{"stop_reason":"end_turn","content":[{"type":"text","text":"It is open."}]}`)
	}))
	defer api.Close()
	t.Setenv("LOCALPC_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	if code, _, errs := cmd(t, "claude", "Task"); code != exitUsage || !strings.Contains(errs, "LOCALPC_KEY") {
		t.Errorf("without a key of the hub: %d %s", code, errs)
	}
	t.Setenv("LOCALPC_KEY", pair.Key)
	if code, _, errs := cmd(t, "claude", "Task"); code != exitUsage || !strings.Contains(errs, "ANTHROPIC_API_KEY") {
		t.Errorf("without a key of the API: %d %s", code, errs)
	}
	t.Setenv("ANTHROPIC_API_KEY", "sk-test")
	if code, _, errs := cmd(t, "claude", "Task", "--tool", "hammer"); code != exitUsage || !strings.Contains(errs, "computer_20251124") {
		t.Errorf("with another tool: %d %s", code, errs)
	}
	code, out, errs := cmd(t, "claude", `Open the "editor".`, "--hub", pair.URL, "--machine", "Mac-1", "--api", api.URL)
	if code != 0 {
		t.Fatalf("it ended with %d: %s\n%s", code, errs, out)
	}
	for _, want := range []string{"I start it\uFFFD[2J.\n", `  key {"text":"super"}`, "It is open.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it printed %q, without %q", out, want)
		}
	}
	if r := screen.Reached(); len(r) != 1 || r[0].Action.Key != "super" || asked.Load() != 2 {
		t.Errorf("what was done: %+v", r)
	}
}
