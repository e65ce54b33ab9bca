//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a hub, a machine that works in a folder, and MCP clients.
type rig struct {
	*tunneltest.Pair
	*tunneltest.Folder
}

// newRig makes one; ask stands for the person, nil allows everything.
func newRig(t *testing.T, ask func(context.Context, wire.Message) error, options ...tunneltest.Option) *rig {
	t.Helper()
	folder := &tunneltest.Folder{Dir: t.TempDir(), Ask: ask}
	return &rig{tunneltest.New(t, folder.Handle, options...), folder}
}

// hold makes calls answer after a while instead of 50 s.
func hold(d time.Duration) tunneltest.Option {
	return func(h *hub.Options, _ *tunnel.Options) { h.Wait = d }
}

// withKey adds a key to each request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// client connects a client with a key; protocol "" is the newest.
func (r *rig) client(t *testing.T, key, protocol string, options ...func(*sdk.ClientOptions)) *sdk.ClientSession {
	t.Helper()
	o := &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}
	for _, set := range options {
		set(o)
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "test-agent", Version: "1.2"}, o)
	s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: r.URL + "/mcp", HTTPClient: &http.Client{Transport: withKey(key)}, DisableStandaloneSSE: true, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(); http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	return s
}

// result is what a tool answered.
type result struct {
	t       *testing.T
	what    string
	text    string
	isError bool
	content []sdk.Content
	all     map[string]any // the structured content
	meta    sdk.Meta
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) result {
	t.Helper()
	return callWith(t, t.Context(), s, &sdk.CallToolParams{Name: tool, Arguments: args})
}

func callWith(t *testing.T, ctx context.Context, s *sdk.ClientSession, p *sdk.CallToolParams) result {
	t.Helper()
	res, err := s.CallTool(ctx, p)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return resultOf(t, p.Name, res)
}

func resultOf(t *testing.T, what string, res *sdk.CallToolResult) result {
	t.Helper()
	r := result{t: t, what: what, isError: res.IsError, content: res.Content, meta: res.Meta}
	for _, c := range res.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			r.text += text.Text
		}
	}
	if res.StructuredContent != nil {
		b, _ := json.Marshal(res.StructuredContent)
		if err := json.Unmarshal(b, &r.all); err != nil {
			t.Fatalf("%s: structured content %s: %v", what, b, err)
		}
	}
	return r
}

func (r result) ok(parts ...string) result {
	r.t.Helper()
	if r.isError {
		r.t.Errorf("%s failed: %s", r.what, r.text)
	}
	return r.has(parts...)
}

func (r result) fails(parts ...string) result {
	r.t.Helper()
	if !r.isError {
		r.t.Errorf("%s did not fail: %s", r.what, r.text)
	}
	return r.has(parts...)
}

func (r result) has(parts ...string) result {
	r.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.text, p) {
			r.t.Errorf("%s: %q lacks %q", r.what, r.text, p)
		}
	}
	return r
}

func (r result) str(key string) string {
	s, _ := r.all[key].(string)
	return s
}

func (r result) num(key string) int64 {
	n, _ := r.all[key].(float64)
	return int64(n)
}
