//go:build unix

package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
)

// Who sends or takes too slowly loses the connection, and nobody else does.
func TestSlowClients(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key, err := s.AddKey(t.Context(), store.OwnerID, "Test program")
	if err != nil {
		t.Fatal(err)
	}
	const much = 32 << 20
	f, err := New(t.Context(), Options{Store: s, Log: slog.New(slog.DiscardHandler), Fixtures: func(*sdk.ServerOptions) func(*sdk.Server) {
		return func(server *sdk.Server) {
			server.AddTool(&sdk.Tool{Name: "much", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return said(strings.Repeat("x", much), nil), nil
			})
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.bodyWithin, f.writeWithin = 500*time.Millisecond, 500*time.Millisecond
	srv := httptest.NewServer(f.Handler())
	defer srv.Close()
	post := func(length int, body string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
			"Mcp-Protocol-Version: 2025-11-25\r\nContent-Length: %d\r\n\r\n%s", key.Secret, length, body)
		return c
	}
	began := time.Now()
	slow := post(1000, `{"jsonrpc"`)
	line, err := bufio.NewReader(slow).ReadString('\n')
	if err != nil || !strings.Contains(line, " 400 ") {
		t.Errorf("a body that does not come is answered with %q, %v after %s", line, err, time.Since(began))
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"much","arguments":{}}}`
	taker := post(len(call), call)
	answered := bufio.NewReader(taker)
	if _, err := answered.Peek(1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // takes nothing more
	got, err := io.ReadAll(answered)
	if len(got) >= much || !strings.Contains(string(got), "xxxx") {
		t.Errorf("a client that did not take what it was sent has %d bytes, %v: %.300s", len(got), err, got)
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	resp := bufio.NewReader(post(len(list), list))
	if line, err := resp.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Errorf("another client is answered with %q, %v", line, err)
	}
}
