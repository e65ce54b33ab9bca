//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/app/control"
	"localpc/app/settings"
	"localpc/tunnel/hub"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// bridged is a bridge whose other end is a test.
type bridged struct {
	in  io.WriteCloser
	out io.ReadCloser
}

// startBridge runs one until the test ends.
func startBridge(t *testing.T, b *bridge) bridged {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b.out = outW
	if b.http == nil {
		b.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := b.run(context.Background(), inR); err != nil {
			t.Error(err)
		}
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("the bridge does not end with its standard input")
		}
	})
	return bridged{inW, outR}
}

// dial connects a client to a bridge.
func (b bridged) dial(t *testing.T, protocol string, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession {
	t.Helper()
	c := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "test-agent", Version: "1.2"}, o)
	s, err := c.Connect(t.Context(), &mcpsdk.IOTransport{Reader: b.out, Writer: b.in}, &mcpsdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func toolText(t *testing.T, s *mcpsdk.ClientSession, tool string, args map[string]any) (string, bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text := ""
	for _, c := range res.Content {
		if part, ok := c.(*mcpsdk.TextContent); ok {
			text += part.Text
		}
	}
	return text, res.IsError
}

// A client that takes no URL works through the bridge as it would with the hub:
// calls, progress, cancelling.
func TestBridgeCarriesEverything(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			asked, gone := make(chan struct{}, 8), make(chan struct{}, 8)
			folder := &tunneltest.Folder{Dir: t.TempDir(), Ask: func(ctx context.Context, m wire.Message) error {
				if p, ok := m.Payload.(*wire.FileWrite); ok && p.Path == "asked" {
					asked <- struct{}{}
					<-ctx.Done()
					gone <- struct{}{}
					return context.Cause(ctx)
				}
				return nil
			}}
			p := tunneltest.New(t, folder.Handle)
			var progress atomic.Int32
			b := startBridge(t, &bridge{hub: func() (string, string, error) { return p.URL, p.Key, nil }, unreachable: notRunning})
			s := b.dial(t, protocol, &mcpsdk.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcpsdk.ProgressNotificationClientRequest) { progress.Add(1) }})
			if list, err := s.ListTools(t.Context(), nil); err != nil || len(list.Tools) < 10 {
				t.Fatalf("the tools are %v, %v", list, err)
			}
			if text, failed := toolText(t, s, "run_command", map[string]any{"command": "echo 'a\nb' é"}); failed || !strings.Contains(text, "a\nb é\n[exit code 0]") {
				t.Errorf("a command gave %q", text)
			}
			// A picture comes whole, of the size that those of a screen have at most.
			picture := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{0, 1, 2, 250}, 700_000)...)
			if err := os.WriteFile(filepath.Join(folder.Dir, "a.png"), picture, 0o600); err != nil {
				t.Fatal(err)
			}
			res, err := s.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "a.png"}})
			if err != nil {
				t.Fatal(err)
			}
			if img, ok := res.Content[0].(*mcpsdk.ImageContent); !ok || img.MIMEType != "image/png" || !bytes.Equal(img.Data, picture) {
				t.Errorf("a picture did not come through: %T", res.Content[0])
			}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if text, _ := toolText(t, s, "run_command", map[string]any{"command": fmt.Sprint("sleep 0.2; echo ", i)}); !strings.HasPrefix(text, fmt.Sprintln(i)) {
						t.Errorf("command %d gave %q", i, text)
					}
				})
			}
			wg.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			params := &mcpsdk.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "asked", "content": "x"}}
			params.SetProgressToken("p")
			failed := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, params)
				failed <- err
			}()
			wait := func(c chan struct{}, what string) {
				t.Helper()
				select {
				case <-c:
				case <-time.After(30 * time.Second):
					t.Fatal(what)
				}
			}
			wait(asked, "the person was not asked")
			for range 600 {
				if progress.Load() > 0 {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if progress.Load() == 0 {
				t.Error("no progress came through")
			}
			cancel()
			if <-failed == nil {
				t.Error("a cancelled call succeeded")
			}
			wait(gone, "the question was not taken back")

			// A program that goes takes its calls along.
			go func() {
				_, err := s.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "asked", "content": "x"}})
				failed <- err
			}()
			wait(asked, "the person was not asked again")
			b.in.Close()
			wait(gone, "the question outlived its program")
			<-failed
		})
	}
}

// While the program does not run, its client is told so; and once it runs, all
// works, without a new start of the client.
func TestBridgeWithoutTheProgram(t *testing.T) {
	folder := &tunneltest.Folder{Dir: t.TempDir()}
	p := tunneltest.New(t, folder.Handle)
	dir, err := os.MkdirTemp("", "b") // a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cli{paths: settings.Paths{Data: dir}, mcp: mcpFlags{program: "Claude Desktop"}}
	changed := make(chan struct{}, 8)
	b := startBridge(t, &bridge{hub: c.hubInside, unreachable: notRunning})
	s := b.dial(t, "", &mcpsdk.ClientOptions{ToolListChangedHandler: func(context.Context, *mcpsdk.ToolListChangedRequest) { changed <- struct{}{} }})
	if _, err := s.ListTools(t.Context(), nil); err == nil || !strings.Contains(err.Error(), notRunning) {
		t.Errorf("list tools said %v", err)
	}
	if text, failed := toolText(t, s, "run_command", map[string]any{"command": "echo hello"}); !failed || text != notRunning {
		t.Errorf("a call said %q", text)
	}
	if err := s.Ping(t.Context(), nil); err != nil {
		t.Errorf("ping: %v", err)
	}

	var named atomic.Value
	server, err := control.Listen(c.paths.Socket(), control.Handler{Program: func(_ context.Context, name string) (string, string, error) {
		named.Store(name)
		return p.URL, p.Key, nil
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		t.Error("the client was not told that there are tools now")
	}
	if list, err := s.ListTools(t.Context(), nil); err != nil || len(list.Tools) < 10 {
		t.Errorf("the tools are %v, %v", list, err)
	}
	if text, failed := toolText(t, s, "run_command", map[string]any{"command": "echo hello"}); failed || !strings.HasPrefix(text, "hello\n") {
		t.Errorf("a command gave %q", text)
	}
	if named.Load() != "Claude Desktop" {
		t.Errorf("the program was named %v", named.Load())
	}
	server.Close()
	if text, failed := toolText(t, s, "run_command", map[string]any{"command": "echo hello"}); !failed || text != notRunning {
		t.Errorf("after the program has quit a call said %q", text)
	}
}

// A program that the person disconnected is told; connected again, with a new
// key, it works on.
func TestBridgeDisconnected(t *testing.T) {
	h, url := tunneltest.Serve(t, hub.Options{Data: t.TempDir(), Log: tunneltest.Log(t)})
	key, err := h.MakeKey(t.Context(), "Claude Desktop")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	b := startBridge(t, &bridge{hub: func() (string, string, error) {
		mu.Lock()
		defer mu.Unlock()
		return url, key, nil
	}, unreachable: notRunning})
	s := b.dial(t, "2025-11-25", nil)
	if text, failed := toolText(t, s, "list_machines", nil); failed {
		t.Error(text)
	}
	keys, err := h.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.RevokeKey(t.Context(), keys[0].ID); err != nil {
		t.Fatal(err)
	}
	if text, failed := toolText(t, s, "list_machines", nil); !failed || !strings.Contains(text, "disconnected from this computer") {
		t.Errorf("a disconnected program was told %q", text)
	}
	again, err := h.MakeKey(t.Context(), "Claude Desktop")
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	key = again
	mu.Unlock()
	if text, failed := toolText(t, s, "list_machines", nil); failed {
		t.Errorf("connected again it was told %q", text)
	}
}

// Only messages come out, one a line, whatever comes in.
func TestBridgeAnswersOddLines(t *testing.T) {
	h, url := tunneltest.Serve(t, hub.Options{Data: t.TempDir(), Log: tunneltest.Log(t)})
	key, err := h.MakeKey(t.Context(), "Test")
	if err != nil {
		t.Fatal(err)
	}
	b := startBridge(t, &bridge{hub: func() (string, string, error) { return url, key, nil }, unreachable: notRunning})
	lines := bufio.NewScanner(b.out)
	for _, c := range []struct{ in, want string }{
		{"no JSON", `"code":-32700`},
		{`{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `"id":1`},
		{"\n\n" + `{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`, `"protocolVersion":"2025-06-18"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `"id":2`},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write_file","arguments":{"path":"x","content":"` + strings.Repeat("x", 20<<20) + `"}},"id":3}`, `"id":3,"jsonrpc":"2.0","result":{"content":[{"text":"The message has more than`},
		{strings.Repeat("x", maxMessage+1), `"code":-32600`},
		{`{"jsonrpc":"2.0","id":4,"method":"ping"}`, `"id":4`},
	} {
		if _, err := io.WriteString(b.in, c.in+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !json.Valid(lines.Bytes()) || !strings.Contains(lines.Text(), c.want) {
			t.Errorf("%.100s was answered with %s", c.in, lines.Text())
		}
	}
}

func TestMCPNeedsAKeyForAnotherHub(t *testing.T) {
	t.Setenv(mcpKey, "")
	if code := realMain([]string{"mcp", "--hub", "https://hub.example", "--data", filepath.Join(t.TempDir(), "none")}); code != exitUsage {
		t.Errorf("without a key it ended with %d", code)
	}
}

// heard notes the session that each request names.
type heard struct {
	mu       sync.Mutex
	sessions []string
}

func (h *heard) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.sessions = append(h.sessions, r.Header.Get("Mcp-Session-Id"))
	h.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// Two chats have a bridge each, and one key: the hub can tell them apart,
// whatever version of the protocol they speak.
func TestBridgesAreToldApart(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	p := tunneltest.New(t, (&tunneltest.Folder{Dir: t.TempDir()}).Handle)
	last := map[string]string{}
	for i, protocol := range []string{"", "", "2025-11-25", "2025-11-25"} {
		h := &heard{}
		b := startBridge(t, &bridge{hub: func() (string, string, error) { return p.URL, p.Key, nil }, unreachable: notRunning, http: &http.Client{Transport: h}})
		s := b.dial(t, protocol, nil)
		for range 2 {
			if _, failed := toolText(t, s, "list_machines", nil); failed {
				t.Fatal("the call failed")
			}
		}
		h.mu.Lock()
		calls := h.sessions[len(h.sessions)-2:]
		h.mu.Unlock()
		who := fmt.Sprintf("chat %d of protocol %q", i, protocol)
		if calls[0] == "" || calls[0] != calls[1] || last[calls[0]] != "" {
			t.Errorf("%s names the sessions %q, and so does %s", who, calls, last[calls[0]])
		}
		last[calls[0]] = who
	}
}
