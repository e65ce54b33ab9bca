package hub

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Somebody who sends a body byte by byte holds a connection for so long, and no
// longer; a program's body, and an answer that takes its time, are not cut off.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	const bound = 300 * time.Millisecond
	p := patience{form: bound, page: time.Minute, rest: bound}
	srv := httptest.NewServer(p.handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("refuse") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		time.Sleep(2 * bound)
		if r.Context().Err() == nil { // the bound must not look like a client that went away
			_, _ = w.Write(data)
		}
	})))
	t.Cleanup(srv.Close)
	for name, c := range map[string]struct {
		path     string
		ends, ok bool
	}{
		"a form":              {"/login", true, false},
		"a sign-in":           {"/api/oauth/token", true, false},
		"a refused program":   {"/sbx/files?refuse", true, false},
		"a program":           {"/sbx/files", false, true},
		"a program's sandbox": {"/api/v2/sandboxes", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			const bytes = 20 // over 1 s
			head := "POST " + c.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\nConnection: close\r\n\r\n"
			if _, err := conn.Write([]byte(head)); err != nil {
				t.Fatal(err)
			}
			cut := false
			for range bytes {
				time.Sleep(4 * bound / bytes)
				if _, err := conn.Write([]byte("a")); err != nil {
					cut = true
					break
				}
			}
			_ = conn.SetReadDeadline(time.Now().Add(20 * bound))
			answer, _ := io.ReadAll(conn)
			if got := strings.HasSuffix(string(answer), strings.Repeat("a", bytes)); got != c.ok || cut && !c.ends {
				t.Errorf("cut off %v, answered %q", cut, answer)
			}
		})
	}
	// What comes at once is answered in its own time.
	resp, err := http.Post(srv.URL+"/login", "text/plain", strings.NewReader("a=b"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if data, err := io.ReadAll(resp.Body); err != nil || string(data) != "a=b" {
		t.Errorf("a form that came at once: %q %v", data, err)
	}
}

// An operator hears of what is theirs to mend, and not of every client.
func TestServerLog(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	l := serverLog{slog.New(slog.NewTextHandler(&got, nil))}
	for _, line := range []string{"http: TLS handshake error from 1.2.3.4:5: EOF", "http: Accept error: accept tcp: too many open files; retrying in 5ms", "http: panic serving 1.2.3.4:5: oh"} {
		if n, err := l.Write([]byte(line + "\n")); n != len(line)+1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if s := got.String(); strings.Count(s, "\n") != 2 || !strings.Contains(s, "level=WARN") || !strings.Contains(s, "too many open files") || !strings.Contains(s, "level=ERROR") {
		t.Errorf("it logged\n%s", s)
	}
}
