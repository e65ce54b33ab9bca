package hub

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Whoever connects may send slowly, or take slowly, to hold as many connections
// as there are. Headers are bound by the server; the rest is bound here.
type patience struct {
	form time.Duration // for the body of a form, whole
	page time.Duration // for a page to be fetched
	rest time.Duration // for what nobody reads of a body: that of a request that was refused, above all
}

var usual = patience{form: 30 * time.Second, page: 2 * time.Minute, rest: 10 * time.Second}

// handler bounds how long requests of next may take to come, and answers to go.
// What programs do with sandboxes takes as long as it takes; they have shown a
// key when their bodies are read.
func (p patience) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if !long(r.URL.Path) {
			_ = c.SetWriteDeadline(time.Now().Add(p.page))
			if r.Body != nil && r.Body != http.NoBody {
				_ = c.SetReadDeadline(time.Now().Add(p.form))
				r.Body = &body{r.Body, c}
			}
		}
		next.ServeHTTP(w, r)
		_ = c.SetReadDeadline(time.Now().Add(p.rest))
	})
}

// long tells whether requests at a path may take long.
func long(path string) bool {
	if strings.HasPrefix(path, "/api/oauth/") {
		return false
	}
	for _, face := range []string{"/api/", "/sbx/", "/files", "/ws/", "/mcp"} {
		if strings.HasPrefix(path, face) {
			return true
		}
	}
	return false
}

// body lifts the bound when it has been read: after that the server reads on
// only to learn that the client is gone.
type body struct {
	io.ReadCloser
	c *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.c.SetReadDeadline(time.Time{})
	}
	return n, err
}

// serverLog takes what the HTTP server says of itself. Most of it is about
// clients that went away; a few words are the operator's to know.
type serverLog struct{ log *slog.Logger }

func (s serverLog) Write(p []byte) (int, error) {
	text := string(bytes.TrimSpace(p))
	switch {
	case strings.Contains(text, "Accept error"):
		s.log.Warn("Connections cannot be taken for the moment", "err", text)
	case strings.Contains(text, "panic serving"):
		s.log.Error("A request failed in the hub", "err", text)
	default:
		s.log.Debug("HTTP server", "text", text)
	}
	return len(p), nil
}
