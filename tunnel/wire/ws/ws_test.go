package ws_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"localpc/tunnel/wire/ws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is both ends of a connection.
func pair(t *testing.T) (here, there *websocket.Conn) {
	t.Helper()
	conns := make(chan *websocket.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{}
		if c, err := up.Upgrade(w, r, nil); err == nil {
			conns <- c
		}
	}))
	t.Cleanup(srv.Close)
	there, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	here = <-conns
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// What is heard keeps a connection: pings, and each piece of a long frame. Then
// silence ends it.
func TestPatience(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(*websocket.Conn) error{
		"pings": func(c *websocket.Conn) error {
			return c.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		},
		"pongs": func(c *websocket.Conn) error {
			return c.WriteControl(websocket.PongMessage, nil, time.Now().Add(time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there := pair(t)
			p := ws.NewPatience(here, time.Second)
			p.Begin()
			began := time.Now()
			go func() {
				for range 8 {
					time.Sleep(200 * time.Millisecond)
					_ = say(there)
				}
			}()
			_, _, err := here.ReadMessage()
			if took := time.Since(began); !ws.IsTimeout(err) || took < 2500*time.Millisecond {
				t.Errorf("it ended after %s with %v", took, err)
			}
		})
	}
	t.Run("pieces", func(t *testing.T) {
		t.Parallel()
		here, there := pair(t)
		p := ws.NewPatience(here, time.Second)
		p.Begin()
		w, err := there.NextWriter(websocket.TextMessage)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			piece := []byte(strings.Repeat("x", 8<<10)) // more than the writer keeps
			for range 8 {
				time.Sleep(200 * time.Millisecond)
				_, _ = w.Write(piece)
			}
			_ = w.Close()
		}()
		_, r, err := here.NextReader()
		if err != nil {
			t.Fatal(err)
		}
		n, buf := 0, make([]byte, 4<<10)
		for r := p.Reader(r); err == nil; {
			var k int
			k, err = r.Read(buf)
			n += k
		}
		if n != 64<<10 {
			t.Errorf("after %d bytes it ended with %v", n, err)
		}
	})
}

// Once it is ended nothing that is heard keeps it.
func TestEnd(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	p := ws.NewPatience(here, time.Minute)
	p.Begin()
	p.End()
	began := time.Now()
	for err := error(nil); err == nil; {
		_ = there.WriteMessage(websocket.TextMessage, []byte("still here"))
		_, _, err = here.ReadMessage()
		p.Heard()
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(began); took > ws.Farewell+5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestClip(t *testing.T) {
	for _, s := range []string{"", "gone", strings.Repeat("x", 123), strings.Repeat("x", 500), strings.Repeat("ä", 100)} {
		got := ws.Clip(s)
		if len(got) > 123 || len(s) <= 123 && got != s || len(s) > 123 && len(got) < 122 || !utf8.ValidString(got) || !strings.HasPrefix(s, got) {
			t.Errorf("%d bytes became %q", len(s), got)
		}
	}
}

func TestCloseCode(t *testing.T) {
	closed := func(code int) error { return fmt.Errorf("read: %w", &websocket.CloseError{Code: code}) }
	for _, c := range []struct {
		said int
		err  error
		want int
	}{
		{4428, closed(1000), 4428}, {0, closed(4400), 4400}, {1000, closed(1001), 1001}, {1000, nil, 1006}, {0, errors.New("reset"), 1006}, {0, closed(3999), 1006},
	} {
		if got := ws.CloseCode(c.said, c.err); got != c.want {
			t.Errorf("%d and %v are %d, not %d", c.said, c.err, got, c.want)
		}
	}
}
