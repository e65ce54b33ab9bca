//go:build unix

package autogpt_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/store"
	msg "localpc/tunnel/wire/autogpt"
)

// Whatever a machine sends, first or later, the hub lives and goes on with
// others.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", "{", "[]", "null", `{"type":"STATUS","id":"a","payload":{"in_flight":0,"max_concurrent":4}}`,
		`{"type":"STATUS","id":"a","payload":{"in_flight":-1,"max_concurrent":1e99,"pending_capacity":1e99}}`,
		`{"type":"FILE_STAT_RESPONSE","id":"a","pending_capacity":99999999999999999999,"payload":{"exists":true,"mtime":1e308}}`,
		`{"type":"HELLO","id":"a","payload":{"machine_id":"m"}}`, `{"type":"DIRECTORY_LIST_RESPONSE","id":"a","payload":{"entries":[null]}}`,
		`{"type":"SCREENSHOT_RESPONSE","id":"a","payload":{"image_base64":"","width":1,"height":1,"region":[1,2,3]}}`,
		`{"type":"ERROR","id":"a","payload":{"code":"X","message":"\u0000","details":[]}}`} {
		f.Add([]byte(s), []byte(`{"type":"ACK","id":"a","payload":{}}`))
		f.Add([]byte(`{"type":"HELLO","id":"h","payload":{"protocol_version":"1.1","machine_id":"m","platform":"linux","arch":"x86_64","capabilities":["directory_browse"]}}`), []byte(s))
	}
	b := &books{access: map[string]store.Access{"t": {SignIn: "s", User: user, Client: msg.ClientID, Scopes: []string{msg.Scope}, Expires: time.Now().Add(time.Hour)}},
		revoked: map[string]bool{}, bound: map[string]string{}, bindings: map[string]store.Binding{}}
	face := autogpt.New(context.Background(), autogpt.Options{Hub: b, Strict: false, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), HelloTimeout: 5 * time.Second})
	srv := httptest.NewServer(face.Handler())
	f.Cleanup(func() { face.Close(); srv.Close() })
	f.Fuzz(func(t *testing.T, first, second []byte) {
		b.set(func(b *books) { b.bound = map[string]string{} }) // any machine id may come
		ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http")+msg.Path, map[string][]string{"Authorization": {"Bearer t"}})
		if err != nil {
			t.Fatalf("the hub takes no connections any more: %v", err)
		}
		defer ws.Close()
		_ = ws.WriteMessage(websocket.TextMessage, first)
		_ = ws.WriteMessage(websocket.TextMessage, second)
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
		_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		for {
			if _, _, err := ws.ReadMessage(); err != nil {
				if late, ok := err.(net.Error); ok && late.Timeout() {
					t.Fatal("the hub neither answered nor closed")
				}
				return
			}
		}
	})
}
