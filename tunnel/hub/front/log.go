package front

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/felixge/httpsnoop"

	"localpc/tunnel/wire"
)

// longest is the longest part of a path that is logged: tokens are longer.
const longest = 32

// Log writes one line for each request that has been answered, without its
// query and without what looks like a token, and counts it in m (nil counts
// nothing). Requests for the hub's health are logged for debugging only;
// connections of computers tell of themselves.
func Log(log *slog.Logger, m *Metrics, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := kindOf(r.URL.Path)
		path := told(r.URL.Path)
		hijacked := false
		wrapped := httpsnoop.Wrap(w, httpsnoop.Hooks{Hijack: func(h httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			hijacked = true
			return h
		}})
		// The address is noted now: later handlers see the same.
		from, method := r.RemoteAddr, r.Method
		got := httpsnoop.CaptureMetrics(next, wrapped, r)
		if hijacked && got.Code == http.StatusOK {
			return
		}
		if m != nil {
			m.answered(kind, got.Code, got.Duration)
		}
		level := slog.LevelInfo
		if kind == "health" {
			level = slog.LevelDebug
		}
		log.Log(r.Context(), level, "Request", "kind", kind, "method", method, "path", path, "status", got.Code,
			"bytes", got.Written, "ms", float64(got.Duration.Round(100*time.Microsecond))/float64(time.Millisecond), "from", from)
	})
}

// kindOf is the face that answers at a path.
func kindOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case path == wire.Path || strings.HasPrefix(path, wire.Path+"/"):
		return "tunnel"
	case path == "/healthz" || path == "/health" || path == "/readyz":
		return "health"
	case strings.HasPrefix(path, "/api/oauth/") || first == "oauth" || first == "auth" || first == ".well-known":
		return "sign-in"
	case first == "api":
		return "e2b-control"
	case first == "sbx" || first == "files":
		return "e2b-sandbox"
	case first == "mcp":
		return "mcp"
	}
	return "page"
}

// told is a path as it may be logged.
func told(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 12 {
		parts = append(parts[:12], "…")
	}
	for i, p := range parts {
		if len(p) > longest {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}
