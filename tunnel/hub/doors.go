package hub

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"localpc/tunnel/hub/store"
)

// doors stands before every route. A web page that a person visits can send
// requests to a hub on their own computer, and by giving its name a new
// address (DNS rebinding) even read the answers: so the name in Host must be
// one that belongs to this hub, and a page of another origin is refused.
func (h *Hub) doors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		if !h.knows(r.Host) {
			writeError(w, http.StatusMisdirectedRequest, "This hub is not known by that name. Use its IP address, or start it with --public-url and that name.")
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !ownOrigin(origin, r.Host) {
			writeError(w, http.StatusForbidden, "Pages of other sites may not use this hub.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knows tells whether host (with or without a port) is a name of this hub. An
// IP address cannot be rebound.
func (h *Hub) knows(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(hostname(host), "."))
	if name == "localhost" {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	for _, own := range h.hosts {
		if name == own || strings.HasSuffix(name, "."+own) {
			return true
		}
	}
	return false
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// ownOrigin tells whether a page of that origin came from this hub, which
// answered it under the same host and port.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}

// refuse answers a caller without a good token.
func (h *Hub) refuse(w http.ResponseWriter, err error) {
	if !errors.Is(err, store.ErrNotFound) {
		h.log.Error("Token could not be checked", "err", err)
		writeError(w, http.StatusInternalServerError, "Something went wrong in the hub; its log says what.")
		return
	}
	writeError(w, http.StatusUnauthorized, "A key or token is needed that this hub knows.")
}

// writeError writes the error shape that E2B clients read; others can too.
func writeError(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": status, "message": sentence})
}
